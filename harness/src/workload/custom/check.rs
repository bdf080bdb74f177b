//! What a file may say beyond what its types allow.

use super::{Custom, Distribution, Keys, MOST_OPERATIONS, Mix, Phase, PhaseKind, Size, Values};
use crate::cli::size::{MOST_BATCH, MOST_THREADS, is_rate, is_time};
use crate::report::figures::grouped;
use crate::workload::custom::KeyForm;
use crate::workload::job::{FIRST_PHASE, LAST_PHASES, closing_before};
use crate::workload::sized::{MOST_KEY_BYTES, MOST_VALUE_BYTES};

/// What is wrong, and where.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) place: Vec<Step>,
    pub(super) said: String,
}

/// A step on the way to a place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Key(&'static str),
    Item(usize),
}

use Step::{Item, Key};

type Checked = Result<(), Wrong>;

/// Wrong at `place` unless it holds; the last key of the place is named.
fn ensure(holds: bool, place: &[Step], said: impl FnOnce() -> String) -> Checked {
    if holds {
        return Ok(());
    }
    let name = place.iter().rev().find_map(|step| match step {
        Key(key) => Some(*key),
        Item(_) => None,
    });
    let said = match (name, place.last()) {
        (Some(name), Some(Key(_))) => format!("{name}: {}", said()),
        _ => said(),
    };
    Err(Wrong { place: place.to_vec(), said })
}

const MOST_KEYS: u64 = 1 << 48;

/// Checks all of it.
pub(super) fn check(custom: &Custom) -> Checked {
    keys(&custom.keys)?;
    values(&custom.values)?;
    let phases = &[Key("phases")];
    ensure(!custom.phases.is_empty(), phases, || "expected one phase at least".into())?;
    ensure(custom.phases.len() <= 1_000, phases, || "at most 1,000".into())?;
    for (at, phase) in custom.phases.iter().enumerate() {
        let here = Place(at);
        name(custom, at)?;
        match phase.kind {
            PhaseKind::Operations => {
                amount(phase, here)?;
                mix(phase, here)?;
                choice(phase, here)?;
                clients(phase, here)?;
                records(custom, at)?;
            }
            kind => no_operations(phase, kind, here)?,
        }
    }
    Ok(())
}

/// A phase by its number.
#[derive(Debug, Clone, Copy)]
struct Place(usize);

impl Place {
    fn key(self, key: &'static str) -> [Step; 3] {
        [Key("phases"), Item(self.0), Key(key)]
    }
}

fn keys(keys: &Keys) -> Checked {
    let bytes = keys.bytes.get();
    let place = |key| [Key("keys"), Key(key)];
    ensure(bytes <= MOST_KEY_BYTES, &place("bytes"), || {
        format!("at most {}", grouped(MOST_KEY_BYTES.into()))
    })?;
    let prefix = keys.prefix.len();
    let digits = (bytes as usize).saturating_sub(prefix);
    ensure(digits > 0, &place("prefix"), || {
        format!("{prefix} bytes leave no digit of keys of {bytes} bytes")
    })?;
    let base = match keys.form {
        KeyForm::Decimal => 10u64,
        KeyForm::Hex => 16,
    };
    let digits = u32::try_from(digits).unwrap_or(u32::MAX);
    let most = base.saturating_pow(digits).min(MOST_KEYS);
    ensure(keys.count.get() <= most, &place("count"), || {
        let (count, most) = (grouped(keys.count.get()), grouped(most));
        format!("{count} keys, but a prefix of {prefix} and {digits} digits behind it make {most}")
    })
}

fn values(values: &Values) -> Checked {
    let place = [Key("values")];
    let in_one_way = values.bytes.is_some() == values.sizes.is_empty();
    ensure(in_one_way, &place, || "expected either bytes or sizes".into())?;
    let most = || format!("at most {}", grouped(MOST_VALUE_BYTES.into()));
    let fits = |bytes: u32| bytes <= MOST_VALUE_BYTES;
    ensure(values.bytes.is_none_or(fits), &[Key("values"), Key("bytes")], most)?;
    let place = [Key("values"), Key("sizes")];
    for (at, Size { bytes: [from, to], share }) in values.sizes.iter().enumerate() {
        let place = |key| [Key("values"), Key("sizes"), Item(at), Key(key)];
        ensure(from <= to, &place("bytes"), || format!("from {from} to {to}"))?;
        ensure(fits(*to), &place("bytes"), most)?;
        is_share(*share, &place("share"))?;
    }
    let sum: f64 = values.sizes.iter().map(|size| size.share).sum();
    ensure(values.bytes.is_some() || is_whole(sum), &place, || {
        format!("the shares sum up to {}, not 1", rounded(sum))
    })
}

fn is_share(share: f64, place: &[Step]) -> Checked {
    ensure((0.0..=1.0).contains(&share), place, || {
        format!("expected a share from 0 to 1, found {share}")
    })
}

/// Whether it is 1, but for what decimals lose.
fn is_whole(sum: f64) -> bool {
    (sum - 1.0).abs() < 1e-6
}

/// Without the digits that only binary numbers have.
fn rounded(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

fn name(custom: &Custom, at: usize) -> Checked {
    let name = &custom.phases[at].name;
    let place = Place(at).key("name");
    let length = name.chars().count();
    let is_plain = (1..=40).contains(&length) && !name.chars().any(char::is_control);
    ensure(is_plain, &place, || "expected 1 to 40 characters".into())?;
    let closing = closing_before("");
    let is_reserved =
        name == FIRST_PHASE || LAST_PHASES.contains(&name.as_str()) || name.starts_with(&closing);
    ensure(!is_reserved, &place, || format!("every run has a phase {name:?} of its own"))?;
    let is_new = custom.phases[..at].iter().all(|earlier| earlier.name != *name);
    ensure(is_new, &place, || format!("{name:?} is the name of an earlier phase"))
}

fn no_operations(phase: &Phase, kind: PhaseKind, here: Place) -> Checked {
    for (key, is_there) in [
        ("operations", phase.operations.is_some()),
        ("seconds", phase.seconds.is_some()),
        ("mix", phase.mix.is_some()),
        ("distribution", phase.distribution.is_some()),
        ("theta", phase.theta.is_some()),
        ("hot_records", phase.hot_records.is_some()),
        ("hot_operations", phase.hot_operations.is_some()),
        ("scan_lengths", phase.scan_lengths.is_some()),
        ("threads", phase.threads.is_some()),
        ("rate", phase.rate.is_some()),
        ("batch", phase.batch.is_some()),
    ] {
        ensure(!is_there, &here.key(key), || {
            format!("means nothing in a phase of kind {kind:?}").to_lowercase()
        })?;
    }
    Ok(())
}

fn amount(phase: &Phase, here: Place) -> Checked {
    let is_limited = phase.operations.is_some() || phase.seconds.is_some();
    ensure(is_limited, &[Key("phases"), Item(here.0)], || {
        "expected operations, seconds or both".into()
    })?;
    let few = phase.operations.is_none_or(|count| count.get() <= MOST_OPERATIONS);
    ensure(few, &here.key("operations"), || format!("at most {}", grouped(MOST_OPERATIONS)))?;
    ensure(phase.seconds.is_none_or(is_time), &here.key("seconds"), || {
        "expected a number over 0, at most 1,000,000,000".into()
    })
}

fn mix(phase: &Phase, here: Place) -> Checked {
    let Some(mix) = phase.mix else {
        return ensure(false, &[Key("phases"), Item(here.0)], || {
            "expected a mix, such as mix = { read = 0.9, update = 0.1 }".into()
        });
    };
    for (key, _, share) in mix.shares() {
        is_share(share, &[Key("phases"), Item(here.0), Key("mix"), Key(key)])?;
    }
    let sum: f64 = mix.shares().iter().map(|(_, _, share)| share).sum();
    ensure(is_whole(sum), &here.key("mix"), || {
        let given = mix.shares().into_iter().filter(|(_, _, share)| *share > 0.0);
        let listed: Vec<String> = given.map(|(key, _, share)| format!("{key} {share}")).collect();
        let listed = if listed.is_empty() { "nothing".into() } else { listed.join(", ") };
        format!("the shares sum up to {}, not 1: {listed}", rounded(sum))
    })
}

fn choice(phase: &Phase, here: Place) -> Checked {
    let distribution = phase.distribution.unwrap_or_default();
    for (key, value, of, word) in [
        ("theta", phase.theta, Distribution::Zipfian, "zipfian"),
        ("hot_records", phase.hot_records, Distribution::Hotspot, "hotspot"),
        ("hot_operations", phase.hot_operations, Distribution::Hotspot, "hotspot"),
    ] {
        ensure(value.is_none() || distribution == of, &here.key(key), || {
            format!("means something for the distribution {word} alone")
        })?;
    }
    let is_exponent = phase.theta.is_none_or(|theta| theta > 0.0 && theta <= 10.0);
    ensure(is_exponent, &here.key("theta"), || "expected an exponent over 0, at most 10".into())?;
    is_share(phase.hot_records.unwrap_or(0.0), &here.key("hot_records"))?;
    is_share(phase.hot_operations.unwrap_or(0.0), &here.key("hot_operations"))
}

fn clients(phase: &Phase, here: Place) -> Checked {
    let few = phase.threads.is_none_or(|threads| threads.get() <= MOST_THREADS);
    ensure(few, &here.key("threads"), || format!("at most {}", grouped(MOST_THREADS.into())))?;
    let few = phase.batch.is_none_or(|batch| batch.get() <= MOST_BATCH);
    ensure(few, &here.key("batch"), || format!("at most {}", grouped(MOST_BATCH.into())))?;
    ensure(phase.rate.is_none_or(is_rate), &here.key("rate"), || {
        "expected operations a second from 0.001 to 1,000,000,000".into()
    })?;
    let Some([least, most]) = phase.scan_lengths else { return Ok(()) };
    let place = here.key("scan_lengths");
    ensure(1 <= least && least <= most && most <= 1 << 31, &place, || {
        format!("expected from 1 up, the least before the most, found [{least}, {most}]")
    })?;
    let Mix { scan, scan_back, .. } = phase.mix.unwrap_or_default();
    ensure(scan + scan_back > 0.0, &place, || "there are no scans in the mix".into())
}

/// What is there for the operations of phase `at`, and what they insert.
fn records(custom: &Custom, at: usize) -> Checked {
    let (phase, here) = (&custom.phases[at], Place(at));
    let before = custom.records_before(at);
    let mix = phase.mix.unwrap_or_default();
    ensure(before > 0 || mix.insert >= 1.0 - 1e-6, &here.key("mix"), || {
        "there is no record before this phase that anything but inserts could be about".into()
    })?;
    if mix.insert == 0.0 {
        return Ok(());
    }
    let is_last = custom.phases[at + 1..].iter().all(|later| !later.is_traffic());
    let is_known = phase.seconds.is_none() || (is_last && phase.operations.is_some());
    ensure(is_known, &here.key("mix"), || {
        "inserts in a phase with seconds: that is possible in the last phase of operations, with \
         operations beside; else nobody could tell what later phases find"
            .into()
    })?;
    let inserted = before.saturating_add(phase.inserts());
    let count = custom.keys.count.get();
    ensure(inserted <= count, &here.key("operations"), || {
        let (inserted, count) = (grouped(inserted), grouped(count));
        format!("{inserted} records are inserted until here, but keys.count is {count}")
    })
}
