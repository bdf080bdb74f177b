//! The flags and properties of the workload.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::properties::Properties;
use super::{Distribution, Mix, SelfCheck, Ycsb, YcsbJob};
use crate::cli::{say, size};
use crate::files::Inputs;
use crate::report::ycsb as lines;
use crate::results::Comparison;
use crate::workload::{Chosen, Workload, WorkloadArgs};
use crate::{Error, Result, plain};

/// The flags of the workload.
#[derive(Debug, Clone, Args)]
pub struct YcsbArgs {
    /// The core workload: a to f [default: a; with property files: what they say]
    #[arg(long, value_name = "LETTER", ignore_case = true, hide_possible_values = true)]
    pub core: Option<Core>,

    /// A property file of YCSB's, of at most 1 MiB; of several, the later one wins
    #[arg(short = 'P', value_name = "FILE")]
    pub property_files: Vec<PathBuf>,

    /// A property, such as requestdistribution=hotspot or writeallfields=true; may be given more
    /// than once, and wins over files
    #[arg(short = 'p', value_name = "NAME=VALUE")]
    pub properties: Vec<String>,

    /// Records to load: recordcount [default: 100,000]
    #[arg(long, value_name = "N", value_parser = size::count)]
    pub records: Option<NonZeroU64>,

    /// Operations to run: operationcount [default: 100,000]
    #[arg(long, value_name = "N", value_parser = size::count)]
    pub operations: Option<NonZeroU64>,

    /// Choose records by a true zipfian distribution over exactly those that there are, instead of
    /// YCSB's scrambled one, whose skew is weaker
    #[arg(long)]
    pub true_zipf: bool,

    /// Print YCSB's own output lines too, for each engine
    #[arg(long)]
    pub ycsb_output: bool,
}

/// A core workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Core {
    /// Half reads, half updates.
    A,
    /// Mostly reads, some updates.
    B,
    /// Reads alone.
    C,
    /// Reads of what was inserted last.
    D,
    /// Short scans.
    E,
    /// Reads and read-modify-writes.
    F,
}

impl Core {
    fn apply(self, ycsb: &mut Ycsb) {
        let [read, update, insert, scan, read_modify_write] = match self {
            Self::A => [0.5, 0.5, 0.0, 0.0, 0.0],
            Self::B => [0.95, 0.05, 0.0, 0.0, 0.0],
            Self::C => [1.0, 0.0, 0.0, 0.0, 0.0],
            Self::D => [0.95, 0.0, 0.05, 0.0, 0.0],
            Self::E => [0.0, 0.0, 0.05, 0.95, 0.0],
            Self::F => [0.5, 0.0, 0.0, 0.0, 0.5],
        };
        ycsb.mix = Mix { read, update, insert, scan, read_modify_write };
        ycsb.distribution = match self {
            Self::D => Distribution::Latest,
            _ => Distribution::Zipfian,
        };
        ycsb.scan_lengths = [1, 100];
    }
}

/// Everything that flags and properties say.
struct Wishes {
    ycsb: Ycsb,
    threads: Option<NonZeroU32>,
    rate: Option<f64>,
    unused: Vec<String>,
}

impl YcsbArgs {
    fn wishes(&self, inputs: &Inputs) -> Result<Wishes> {
        let mut ycsb = Ycsb::default();
        let no_properties = self.property_files.is_empty() && self.properties.is_empty();
        match self.core {
            Some(core) => core.apply(&mut ycsb),
            None if self.property_files.is_empty() => Core::A.apply(&mut ycsb),
            None => {}
        }
        debug_assert!(self.core.is_some() || !no_properties || ycsb.mix.update == 0.5);
        let mut properties = Properties::default();
        self.property_files.iter().try_for_each(|path| properties.add_file(path, inputs))?;
        self.properties.iter().try_for_each(|text| properties.add_flag(text))?;
        set_sizes(&mut ycsb, &mut properties)?;
        set_mix(&mut ycsb, &mut properties)?;
        set_choice(&mut ycsb, &mut properties)?;
        let (threads, rate) = client(&mut properties)?;
        if let Some(records) = self.records {
            ycsb.records = records.get();
        }
        if let Some(operations) = self.operations {
            ycsb.operations = operations.get();
        }
        if self.true_zipf {
            ycsb.distribution = match ycsb.distribution {
                Distribution::Zipfian | Distribution::TrueZipfian => Distribution::TrueZipfian,
                other => {
                    return Err(Error::Usage(format!(
                        "--true-zipf replaces the zipfian distribution, but it is {other}"
                    )));
                }
            };
        }
        let unused = properties.unused().map(str::to_owned).collect();
        Ok(Wishes { ycsb, threads, rate, unused })
    }
}

impl WorkloadArgs for YcsbArgs {
    fn workload(&self, inputs: &Inputs) -> Result<Chosen> {
        let Wishes { ycsb, threads, rate, unused } = self.wishes(inputs)?;
        if !unused.is_empty() {
            let unused = unused.join(", ");
            let unused = plain::shortened(&unused, 500);
            say(&format!("warning: properties that mean nothing here: {unused}"));
        }
        Ok(Chosen { threads, rate, ..Workload::Ycsb(ycsb).into() })
    }

    fn report_flag(&self) -> Option<&'static str> {
        self.ycsb_output.then_some("--ycsb-output")
    }

    fn more_report(&self, comparison: &Comparison) -> Result<String> {
        let Workload::Ycsb(ycsb) = &comparison.workload.workload else { return Ok(String::new()) };
        let job = YcsbJob::new(ycsb, comparison.workload.client.seed);
        let mut text = SelfCheck::of(&job).in_words(comparison);
        if self.ycsb_output {
            text += &lines::render(comparison);
        }
        Ok(text)
    }
}

fn set_sizes(ycsb: &mut Ycsb, properties: &mut Properties) -> Result<()> {
    /// More than any engine takes.
    const LONGEST_FIELD: u32 = 1 << 30;
    let count = |&number: &u64| (1..=size::MOST_COUNT).contains(&number);
    let counts = "a whole number from 1";
    properties.take("recordcount", counts, count, &mut ycsb.records)?;
    properties.take("operationcount", counts, count, &mut ycsb.operations)?;
    let few = |&number: &u64| (1..=10_000).contains(&number);
    properties.take("fieldcount", "a whole number from 1 to 10000", few, &mut ycsb.field_count)?;
    let length = |&number: &u32| number <= LONGEST_FIELD;
    properties.take("fieldlength", "a number of bytes", length, &mut ycsb.field_length)?;
    let digits = |&number: &u32| number <= 1_000;
    let expected = "a number of digits up to 1000";
    properties.take("zeropadding", expected, digits, &mut ycsb.zero_padding)?;
    if ycsb.field_count * u64::from(ycsb.field_length) > u64::from(LONGEST_FIELD) {
        return Err(Error::Usage("fieldcount × fieldlength is over 1 GiB a record".into()));
    }
    let flag = "true or false";
    let mut all = true;
    properties.take("readallfields", flag, |_: &bool| true, &mut all)?;
    properties.take("writeallfields", flag, |_: &bool| true, &mut ycsb.write_all_fields)?;
    let mut seconds = 0u64;
    let expected = "a number of seconds, 0 for no limit";
    properties.take("maxexecutiontime", expected, |_| true, &mut seconds)?;
    ycsb.max_seconds = (seconds > 0).then_some(seconds);
    Ok(())
}

fn set_mix(ycsb: &mut Ycsb, properties: &mut Properties) -> Result<()> {
    let share = |number: &f64| (0.0..=1.0).contains(number);
    let mix = &mut ycsb.mix;
    for (name, place) in [
        ("readproportion", &mut mix.read),
        ("updateproportion", &mut mix.update),
        ("insertproportion", &mut mix.insert),
        ("scanproportion", &mut mix.scan),
        ("readmodifywriteproportion", &mut mix.read_modify_write),
    ] {
        properties.take(name, "a share from 0 to 1", share, place)?;
    }
    let shares = mix.shares();
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > 1e-6 {
        let listed: Vec<String> =
            shares.iter().map(|(name, share)| format!("{name} {share}")).collect();
        return Err(Error::Usage(format!(
            "the shares of the operations sum up to {sum}, not 1: {}",
            listed.join(", ")
        )));
    }
    Ok(())
}

fn set_choice(ycsb: &mut Ycsb, properties: &mut Properties) -> Result<()> {
    let names = Distribution::ALL.map(|distribution| distribution.to_string()).join(", ");
    let any = |_: &Distribution| true;
    properties.take("requestdistribution", names, any, &mut ycsb.distribution)?;
    let length = |&number: &u64| (1..=1 << 31).contains(&number);
    let [least, most] = &mut ycsb.scan_lengths;
    properties.take("minscanlength", "a whole number from 1", length, least)?;
    properties.take("maxscanlength", "a whole number from 1", length, most)?;
    if *least > *most {
        return Err(Error::Usage(format!("minscanlength is {least}, maxscanlength {most}")));
    }
    let mut lengths = "uniform".to_owned();
    let known = |name: &String| ["uniform", "zipfian"].contains(&name.as_str());
    properties.take("scanlengthdistribution", "uniform or zipfian", known, &mut lengths)?;
    ycsb.zipfian_scan_lengths = lengths == "zipfian";
    let mut order = "hashed".to_owned();
    let known = |name: &String| ["hashed", "ordered"].contains(&name.as_str());
    properties.take("insertorder", "hashed or ordered", known, &mut order)?;
    ycsb.hashed = order == "hashed";
    let share = |number: &f64| (0.0..=1.0).contains(number);
    let expected = "a share from 0 to 1";
    properties.take("hotspotdatafraction", expected, share, &mut ycsb.hot_records)?;
    properties.take("hotspotopnfraction", expected, share, &mut ycsb.hot_operations)
}

fn client(properties: &mut Properties) -> Result<(Option<NonZeroU32>, Option<f64>)> {
    let (mut threads, mut target) = (0u32, 0.0f64);
    let allowed = |&number: &u32| (1..=1_024).contains(&number);
    properties.take("threadcount", "a number of threads from 1 to 1024", allowed, &mut threads)?;
    let allowed = |&number: &f64| number == 0.0 || (1e-3..=1e9).contains(&number);
    let expected = "operations a second, 0 for as many as can be";
    properties.take("target", expected, allowed, &mut target)?;
    Ok((NonZeroU32::new(threads), (target > 0.0).then_some(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(arguments: &[&str]) -> Result<Wishes> {
        #[derive(clap::Parser)]
        struct Parser {
            #[command(flatten)]
            args: YcsbArgs,
        }
        let arguments = ["ycsb"].iter().chain(arguments);
        <Parser as clap::Parser>::try_parse_from(arguments).unwrap().args.wishes(&Inputs::default())
    }

    #[test]
    fn the_core_workloads_are_those_of_the_paper() {
        for (letter, shares, distribution) in [
            ("a", [0.5, 0.5, 0.0, 0.0, 0.0], Distribution::Zipfian),
            ("B", [0.95, 0.05, 0.0, 0.0, 0.0], Distribution::Zipfian),
            ("c", [1.0, 0.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
            ("d", [0.95, 0.0, 0.05, 0.0, 0.0], Distribution::Latest),
            ("e", [0.0, 0.0, 0.05, 0.95, 0.0], Distribution::Zipfian),
            ("f", [0.5, 0.0, 0.0, 0.0, 0.5], Distribution::Zipfian),
        ] {
            let ycsb = wishes(&["--core", letter]).unwrap().ycsb;
            assert_eq!(ycsb.mix.shares().map(|(_, share)| share), shares, "{letter}");
            assert_eq!(ycsb.distribution, distribution, "{letter}");
            assert_eq!((ycsb.scan_lengths, ycsb.records), ([1, 100], 100_000));
        }
        assert_eq!(wishes(&[]).unwrap().ycsb, wishes(&["--core", "a"]).unwrap().ycsb);
    }

    #[test]
    fn a_property_file_stands_on_the_codes_defaults_and_flags_win() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "recordcount=5000\noperationcount=7\nworkload=site.ycsb.workloads.CoreWorkload\n\
                    readproportion=0.7\nupdateproportion=0.3\nthreadcount=4\ntarget=250\n\
                    insertorder=ordered\nmaxexecutiontime=9\nfieldlength=10\n";
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let found = wishes(&["-P", path, "-p", "recordcount=6000", "--operations", "8"]).unwrap();
        let expected = Ycsb {
            records: 6_000,
            operations: 8,
            mix: Mix { read: 0.7, update: 0.3, insert: 0.0, scan: 0.0, read_modify_write: 0.0 },
            field_length: 10,
            hashed: false,
            max_seconds: Some(9),
            ..Ycsb::default()
        };
        assert_eq!(found.ycsb, expected);
        assert_eq!((found.threads, found.rate), (NonZeroU32::new(4), Some(250.0)));
        assert_eq!(found.unused, ["workload"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (arguments, expected) in [
            (&["-p", "readproportion=0.6"][..], "sum up to 1.1, not 1: read 0.6, update 0.5"),
            (&["-p", "readproportion=2"], "a share from 0 to 1"),
            (&["-p", "requestdistribution=pareto"], "expected uniform, zipfian, truezipfian"),
            (&["-p", "recordcount=0"], "recordcount is \"0\", expected a whole number from 1"),
            (&["-p", "maxscanlength=5", "-p", "minscanlength=6"], "minscanlength is 6"),
            (&["-p", "insertorder=random"], "hashed or ordered"),
            (&["-p", "threadcount"], "expected name=value"),
            (&["--core", "d", "--true-zipf"], "but it is latest"),
            (&["-p", "fieldcount=10000", "-p", "fieldlength=1000000"], "over 1 GiB"),
            (&["-P", "/no/such/file"], "cannot read /no/such/file"),
        ] {
            let error = wishes(arguments).err().unwrap().to_string();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }
}
