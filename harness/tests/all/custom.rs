//! The workload of a file, from outside.

use std::fs;
use std::path::{Path, PathBuf};

use harness::files::output;
use harness::report::json;
use harness::workload::Workload;
use harness::workload::op::Kind;
use tempfile::TempDir;

use crate::support::{
    compare, enginelab, json_of, not_found, operations, printed, refused, sound, stdout,
};

/// A workload in a file, and a place for the data beside it.
struct Place {
    directory: TempDir,
    file: PathBuf,
    data: PathBuf,
}

impl Place {
    fn new(text: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let (file, data) = (directory.path().join("w.toml"), directory.path().join("data"));
        fs::create_dir(&data).unwrap();
        fs::write(&file, text).unwrap();
        Self { directory, file, data }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `custom FILE` and more.
    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["custom", text(&self.file)], more].concat()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_example_is_printed_and_runs() {
    let place = Place::new(&stdout(enginelab(&["compare", "custom", "--example"])));
    let comparison =
        sound(&place.data, &place.arguments(&["--engines", "bitcask,lsm,redb,memory,raw-append"]));
    assert_eq!(comparison.runs.len(), 5);
    for run in &comparison.runs {
        if run.engine == "raw-append" {
            assert_eq!(run.not_applicable.as_deref(), Some("raw-append has no ordered scan"));
            continue;
        }
        let traffic = |phase: &str| run.phase(phase).unwrap().traffic.clone().unwrap();
        assert_eq!(traffic("load").kinds[&Kind::BatchWrite].calls, 2_000);
        assert_eq!((traffic("load").threads, traffic("run").threads), (1, 2));
        assert_eq!(traffic("run").operations, 20_000);
        assert_eq!(operations(run, "run", Kind::Insert), 2_000);
        assert_eq!(traffic("scans").operations, 500);
    }
}

/// By hand: of 1,000 records the first 500 are deleted, 250 of them put back; the reads go through
/// all of them, and scans of 10 from each record on find what is behind it.
#[test]
fn what_is_deleted_is_missed_and_put_back() {
    let place = Place::new(
        "keys = { count = 1000, bytes = 6 }\nvalues = { bytes = 50, content = 'random' }\n\
         [[phases]]\nname = 'load'\noperations = 1000\nmix = { insert = 1 }\n\
         [[phases]]\nname = 'delete'\noperations = 500\nmix = { delete = 1 }\n\
         distribution = 'sequential'\n\
         [[phases]]\nname = 'sync'\nkind = 'sync'\n\
         [[phases]]\nname = 'again'\nkind = 'reopen'\n\
         [[phases]]\nname = 'read'\noperations = 2000\nmix = { read = 1 }\nthreads = 3\n\
         distribution = 'sequential'\n\
         [[phases]]\nname = 'update'\noperations = 250\nmix = { update = 1 }\n\
         distribution = 'sequential'\n\
         [[phases]]\nname = 'modify'\noperations = 1000\nmix = { read_modify_write = 1 }\n\
         distribution = 'sequential'\nrate = 100_000\nbatch = 10\n",
    );
    let comparison = sound(&place.data, &place.arguments(&["--engines", "bitcask,lsm,memory"]));
    for run in &comparison.runs {
        let missing = |phase: &str, kind| {
            run.phase(phase).unwrap().traffic.as_ref().unwrap().kinds[&kind].not_found
        };
        assert_eq!(missing("read", Kind::Read), 1_000);
        assert_eq!(missing("modify", Kind::ReadModifyWrite), 250);
        assert_eq!(not_found(run), 1_250);
        let verified = run.verified.unwrap();
        assert_eq!((verified.read_back, verified.live_bytes), (1_000, 1_000 * 56));
        let traffic = |phase: &str| run.phase(phase).unwrap().traffic.clone().unwrap();
        assert_eq!((traffic("read").threads, traffic("update").threads), (3, 1));
        assert_eq!((traffic("modify").rate, traffic("read").rate), (Some(100_000.0), None));
        assert!(run.phase("sync").is_some());
        assert_eq!(run.phase("again").is_some(), run.engine != "memory");
    }
}

#[test]
fn scans_go_both_ways_from_the_key() {
    let place = Place::new(
        "keys = { count = 100, bytes = 3 }\nvalues = { bytes = 10 }\n\
         [[phases]]\nname = 'load'\noperations = 100\nmix = { insert = 1 }\n\
         [[phases]]\nname = 'on'\noperations = 100\nmix = { scan = 1 }\n\
         distribution = 'sequential'\nscan_lengths = [10, 10]\n\
         [[phases]]\nname = 'back'\noperations = 100\nmix = { scan_back = 1 }\n\
         distribution = 'sequential'\nscan_lengths = [10, 10]\n",
    );
    for run in sound(&place.data, &place.arguments(&["--engines", "lsm,redb,memory"])).runs {
        for (phase, kind) in [("on", Kind::Scan), ("back", Kind::ScanBack)] {
            let figures = &run.phase(phase).unwrap().traffic.as_ref().unwrap().kinds[&kind];
            // The nine next to the end have 9, 8, … 1 records only.
            assert_eq!(figures.visited, 91 * 10 + 45, "{phase} {}", run.engine);
        }
    }
}

/// A result stands alone: what the file said is in it. Its reports can be made, it is resumed by
/// the same file and by no other.
#[test]
fn a_result_holds_the_file_and_is_resumed_by_it_alone() {
    const FILE: &str = "keys = { count = 500, bytes = 12, form = 'hex' }\n\
         [[values.sizes]]\nbytes = [10, 20]\nshare = 1\n\
         [[phases]]\nname = 'load'\noperations = 300\nmix = { insert = 1 }\n\
         [[phases]]\nname = 'run'\nseconds = 0.3\nmix = { read = 0.5, delete = 0.5 }\nthreads = 2\n\
         distribution = 'latest'\n";
    let place = Place::new(FILE);
    let out = place.path("r.json");
    let arguments = place.arguments(&["--engines", "memory,lsm", "--out", text(&out)]);
    let mut command = compare(&place.data, &arguments);
    for flag in ["--markdown", "--csv", "--html"] {
        command.arg(flag).arg(place.path(&flag[2..]));
    }
    command.assert().success();
    let whole = json::read(&out).unwrap();
    assert_eq!(whole.problems(), Vec::<String>::new());
    let Workload::Custom(custom) = &whole.workload.workload else { panic!("another workload") };
    assert_eq!((custom.keys.count.get(), custom.phases.len()), (500, 2));
    assert!(whole.runs[0].phase("run").unwrap().traffic.as_ref().unwrap().time_limited);
    for (name, expected) in [
        ("markdown", "Custom: 2 phases of operations on 300 records"),
        ("csv", ",run,"),
        ("html", "0.3 s, 0.5 read, 0.5 delete, latest, threads 2"),
    ] {
        let written = fs::read_to_string(place.path(name)).unwrap();
        assert!(written.contains(expected), "{expected:?} is not in {name}");
    }
    enginelab(&["diff", text(&out), text(&out)]).assert().success();

    let mut cut = whole.clone();
    cut.runs.truncate(1);
    output::replace(&out, &json::render(&cut).unwrap()).unwrap();
    let resume = place.arguments(&["--engines", "memory,lsm", "--resume", text(&out)]);
    let resumed = json_of(compare(&place.data, &resume));
    assert_eq!((resumed.runs.len(), &resumed.runs[0]), (2, &whole.runs[0]));
    fs::write(&place.file, FILE.replace("0.3", "0.4")).unwrap();
    let said = refused(compare(&place.data, &resume));
    assert!(
        said.contains("cannot resume") && said.contains("phases[1].seconds was 0.3 there"),
        "{said}"
    );
}

#[test]
fn a_wrong_file_is_refused_with_its_line_and_nothing_is_written() {
    let place = Place::new("keys = { count = 5, bytes = 2 }\nvalues = { bytes = 1 }\nphase = []\n");
    let out = place.path("r.json");
    let arguments = place.arguments(&["--out", text(&out)]);
    let said = refused(compare(&place.data, &arguments));
    assert!(said.contains("w.toml, line 3: unknown field `phase`"), "{said}");
    assert!(said.contains("expected one of `keys`, `values`, `phases`"), "{said}");
    assert!(!out.exists() && fs::read_dir(&place.data).unwrap().next().is_none());
    let said = refused(compare(&place.data, &["custom", text(&place.path("none.toml"))]));
    assert!(said.contains("cannot read") && said.contains("none.toml: No such file"), "{said}");
    let said = refused(compare(&place.data, &["custom"]));
    assert!(said.contains("FILE.toml"), "{said}");
    fs::write(&place.file, vec![b'#'; 2 << 20]).unwrap();
    assert!(refused(compare(&place.data, &arguments)).contains("a file of at most 1 MiB"));
}

#[test]
fn the_report_tells_the_phases() {
    let place = Place::new(
        "keys = { count = 60, bytes = 9, prefix = 'k-' }\nvalues = { bytes = 1000 }\n\
         [[phases]]\nname = 'fill it'\noperations = 60\nmix = { insert = 1 }\n\
         [[phases]]\nname = 'wait'\nkind = 'quiesce'\n",
    );
    let printed = printed(&place.data, &place.arguments(&["--engines", "memory"]));
    for expected in [
        "Custom: one phase of operations on 60 records",
        "keys at most 60 of 9 bytes, decimal, ascending, after \"k-\"",
        "phase fill it: 60 operations, 1 insert",
        "phase wait: quiesce",
    ] {
        let flat = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(expected), "{expected:?} is not in:\n{printed}");
    }
}
