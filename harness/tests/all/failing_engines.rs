//! Engines that crash, lie and lose: every one must become a row that says so, while the others
//! go on. The child processes are this test binary, which serves with engines that misbehave.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engines::engine::Visitor;
use engines::registry;
use engines::{
    Batch, Capabilities, Description, Direction, Engine, Error, KeyRange, Result, Stats,
};
use harness::report::diff::Diff;
use harness::results::{Client, Comparison, Conditions, Parameters, Run, Settings};
use harness::run::child::serve;
use harness::run::event::Event;
use harness::run::parent::ChildCommand;
use harness::run::plan::{RunPlan, Selection};
use harness::run::{Observer, Site, compare};
use harness::workload::Workload;
use harness::workload::insert::Insert;
use harness::workload::op::Kind;
use harness::workload::values::{Corpus, Framing};
use serde_json::json;

const ITEMS: u64 = 300;
const VARIABLE: &str = "HARNESS_TEST_MISBEHAVIOUR";

/// What the engine that sleeps, or works, does in each put.
const NAP: Duration = Duration::from_millis(1);

/// The engine that misbehaves; the others are left as they are.
const CULPRIT: &str = "raw-append";

/// Not a test of its own: the way in for the children of the tests below.
#[test]
fn serve_as_a_child() {
    let Ok(how) = std::env::var(VARIABLE) else { return };
    serve(&|name, directory, options| {
        let inner = registry::find(name)?.open(directory, options)?;
        if name == CULPRIT { Ok(Box::new(Culprit::new(inner, &how))) } else { Ok(inner) }
    });
}

/// Takes as long, and hardly longer.
fn work_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

struct Culprit {
    inner: Box<dyn Engine>,
    how: String,
    put_count: AtomicU64,
    get_count: AtomicU64,
}

impl Culprit {
    fn new(inner: Box<dyn Engine>, how: &str) -> Self {
        Self {
            inner,
            how: how.to_owned(),
            put_count: AtomicU64::new(0),
            get_count: AtomicU64::new(0),
        }
    }
}

impl Engine for Culprit {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.how.as_str() {
            "sleeps" => std::thread::sleep(NAP),
            "works" => work_for(NAP),
            _ => {}
        }
        if self.put_count.fetch_add(1, Ordering::Relaxed) != 100 {
            return self.inner.put(key, value);
        }
        match self.how.as_str() {
            "loses" | "loses, cannot get" => Ok(()),
            "changes" | "changes, cannot get" => {
                let mut changed = value.to_vec();
                changed[1_000] ^= 1;
                self.inner.put(key, &changed)
            }
            "cuts" => self.inner.put(key, &value[..value.len() - 1]),
            "invents" | "invents, cannot get" => {
                self.inner.put(b"nobody wrote this", b"")?;
                self.inner.put(key, value)
            }
            "fails" => Err(Error::Corruption {
                file: "some file".into(),
                offset: 4_711,
                problem: "made up".into(),
            }),
            "panics" => panic!("made-up panic"),
            "aborts" => std::process::abort(),
            "leaves" => std::process::exit(0),
            "hangs" => loop {
                std::thread::park();
            },
            "prints" => {
                print!("half a line of an engine's own");
                println!("{{\"event\": \"no such event\"}}");
                print!("and half a line");
                self.inner.put(key, value)
            }
            _ => self.inner.put(key, value),
        }
    }

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.how.ends_with("cannot get") {
            return Err(Error::Unsupported { engine: CULPRIT, operation: "get".into() });
        }
        if self.how == "misses" && self.get_count.fetch_add(1, Ordering::Relaxed) == 300 {
            return Ok(false);
        }
        self.inner.get(key, read)
    }

    fn fold(&self, visit: &mut Visitor<'_>) -> Result<()> {
        if self.how == "repeats itself, cannot get" {
            self.inner.fold(&mut |key, value| {
                let _ = visit(key, value);
                ControlFlow::Break(())
            })?;
        }
        self.inner.fold(visit)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.inner.close()
    }

    fn description(&self) -> Description {
        self.inner.description()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.inner.delete(key)
    }

    fn write(&self, batch: &Batch) -> Result<()> {
        self.inner.write(batch)
    }

    fn scan(
        &self,
        range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        self.inner.scan(range, direction, visit)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn quiesce(&self) -> Result<()> {
        self.inner.quiesce()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }

    fn stats(&self) -> Result<Stats> {
        self.inner.stats()
    }
}

/// Looks on and counts what it was given to save.
#[derive(Default)]
struct Saver {
    saved_runs: Vec<usize>,
}

impl Observer for Saver {
    fn directory(&mut self, _: &Path) {}

    fn run_begins(&mut self, _: &RunPlan, _: usize, _: usize) {}

    fn event(&mut self, _: &Event) {}

    fn run_ends(&mut self, _: &Run, so_far: &Comparison) {
        self.saved_runs.push(so_far.runs.len());
    }

    fn warning(&mut self, text: &str) {
        panic!("{text}");
    }
}

const ONE_CLIENT: Client = Client { threads: NonZeroU32::MIN, seed: 42, rate: None };

/// Compares the culprit with `memory`, whose run must be sound and saved; returns the culprit's.
fn misbehaving(how: &str) -> (Run, Comparison) {
    misbehaving_for(how, None, 1)
}

fn misbehaving_for(how: &str, limit: Option<f64>, repeats: u32) -> (Run, Comparison) {
    misbehaving_with(ONE_CLIENT, how, limit, repeats)
}

fn misbehaving_with(
    client: Client,
    how: &str,
    limit: Option<f64>,
    repeats: u32,
) -> (Run, Comparison) {
    let insert = Insert {
        items: ITEMS.try_into().unwrap(),
        batch: 1.try_into().unwrap(),
        corpus: Corpus::Varied,
        framing: Framing::Json,
        overwrites: 0.0,
        deletes: 0.0,
    };
    misbehaving_in(Workload::Insert(insert), client, how, limit, repeats)
}

fn misbehaving_in(
    workload: Workload,
    client: Client,
    how: &str,
    limit: Option<f64>,
    repeats: u32,
) -> (Run, Comparison) {
    let settings = Settings::default();
    let names = [CULPRIT.to_owned(), "memory".to_owned()];
    let parameters = Parameters {
        workload,
        client,
        settings,
        conditions: Conditions { time_limit_seconds: limit, ..Conditions::default() },
        repeats,
    };
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--exact", "failing_engines::serve_as_a_child", "--nocapture"];
    let site = Site {
        directory: directory.path(),
        keep: false,
        child: ChildCommand {
            program: std::env::current_exe().unwrap(),
            arguments: arguments.map(Into::into).to_vec(),
            environment: vec![(VARIABLE.into(), how.into())],
        },
        interrupt: &AtomicBool::new(false),
        input: None,
    };
    let mut saver = Saver::default();
    let comparison =
        compare(Selection::named(&names, &settings).unwrap(), parameters, None, &site, &mut saver)
            .unwrap();
    let expected: Vec<usize> = (1..=2 * repeats as usize).collect();
    assert_eq!(saver.saved_runs, expected, "saved after each run");
    assert_eq!(comparison.runs_of("memory").next().unwrap().problem(), None);
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none(), "data left behind");
    let run = comparison.runs_of(CULPRIT).next().unwrap().clone();
    (run, comparison)
}

#[test]
fn a_well_behaved_engine_has_no_problem() {
    for how in ["nothing", "nothing, cannot get", "prints"] {
        let (run, comparison) = misbehaving(how);
        assert_eq!(run.problem(), None, "{how}");
        let verified = run.verified.unwrap();
        assert_eq!((verified.read_back, verified.extra), (ITEMS, Some(0)), "{how}");
        assert!(comparison.problems().is_empty(), "{how}");
    }
}

#[test]
fn lost_changed_and_invented_records_are_found() {
    for (how, problem, counts) in [
        ("loses", "records: 1 lost", (ITEMS - 1, 1, 0, 0)),
        ("loses, cannot get", "records: 1 lost", (ITEMS - 1, 1, 0, 0)),
        ("changes", "records: 1 changed", (ITEMS - 1, 0, 1, 0)),
        ("changes, cannot get", "records: 1 changed", (ITEMS - 1, 0, 1, 0)),
        ("cuts", "records: 1 changed", (ITEMS - 1, 0, 1, 0)),
        ("invents", "records: 1 never written or there twice", (ITEMS, 0, 0, 1)),
        ("invents, cannot get", "records: 1 never written or there twice", (ITEMS, 0, 0, 1)),
        ("repeats itself, cannot get", "records: 1 never written or there twice", (ITEMS, 0, 0, 1)),
    ] {
        let (run, comparison) = misbehaving(how);
        assert_eq!(run.problem().as_deref(), Some(problem), "{how}");
        let found = run.verified.unwrap();
        let found = (found.read_back, found.lost, found.wrong, found.extra.unwrap());
        assert_eq!(found, counts, "{how}");
        assert_eq!(comparison.problems(), [format!("{CULPRIT}, run 1: {problem}")], "{how}");
    }
}

#[test]
fn a_crash_is_a_row_that_says_where_and_how() {
    for (how, expected) in [
        ("fails", "load: some file is corrupt at byte 4711: made up"),
        ("panics", "made-up panic"),
        ("panics", "load: the process ended with signal: 6"),
        ("aborts", "load: the process ended with signal: 6"),
        ("leaves", "load: the process ended with exit status: 0"),
    ] {
        let (run, comparison) = misbehaving(how);
        let error = run.error.clone().unwrap();
        assert!(error.contains(expected), "{how}: {error}");
        assert_eq!(run.verified, None);
        assert!(run.phase("open").is_some() && run.phase("load").is_none(), "{how}: {run:?}");
        assert!(run.disk_before.is_some() && run.disk_after("load").is_none(), "{how}");
        assert_eq!(comparison.problems().len(), 1, "{how}");
    }
}

#[test]
fn an_engine_that_hangs_is_ended_and_the_others_go_on() {
    let (run, comparison) = misbehaving_for("hangs", Some(3.0), 1);
    assert_eq!(run.error.as_deref(), Some("load: ended after 3s, as --time-limit says"));
    assert!(run.phase("open").is_some() && run.phase("load").is_none(), "{run:?}");
    assert_eq!(comparison.problems().len(), 1);
}

/// A workload that puts a hundred records before `phases`.
fn after_a_load(phases: serde_json::Value) -> Workload {
    let load = json!({ "name": "load", "operations": 100, "mix": { "insert": 1.0 } });
    let phases = [vec![load], phases.as_array().unwrap().clone()].concat();
    serde_json::from_value(json!({
        "name": "custom",
        "keys": { "count": 100, "bytes": 8 },
        "values": { "bytes": 10 },
        "phases": phases,
    }))
    .unwrap()
}

/// What is there in the end was there all the time: only the reads between tell.
#[test]
fn a_read_that_finds_nothing_is_told_where_others_found_something() {
    let reads = json!({ "read": 1.0 });
    let mixed = json!({ "read": 0.9, "update": 0.1 });
    for (mix, threads, is_told) in
        [(&mixed, 1, true), (&reads, 2, true), (&mixed, 2, false), (&reads, 1, true)]
    {
        let run = json!({ "name": "run", "operations": 500, "mix": mix, "threads": threads });
        let workload = after_a_load(json!([run]));
        let (run, comparison) = misbehaving_in(workload, ONE_CLIENT, "misses", None, 1);
        assert!(run.verified.unwrap().is_whole());
        let problems = comparison.problems();
        let printed = harness::report::terminal::render(&comparison, &[], false);
        let said = "From 0 to 1 times the record was not there";
        assert_eq!(printed.contains(said), !is_told, "{printed}");
        let told = problems.iter().filter(|line| line.contains("did not find the records that"));
        assert_eq!((told.count(), problems.len()), (usize::from(is_told), usize::from(is_told)));
    }
}

/// The engine that sleeps needs two seconds for what the other does at once.
#[test]
fn who_finishes_a_phase_with_a_limit_is_not_held_against_who_does_not() {
    let workload = after_a_load(json!([
        { "name": "run", "operations": 2_000, "seconds": 0.5, "mix": { "update": 1.0 } },
        { "name": "after", "operations": 50, "mix": { "update": 1.0 } },
    ]));
    let (run, comparison) = misbehaving_in(workload, ONE_CLIENT, "sleeps", None, 1);
    let other = comparison.runs_of("memory").next().unwrap();
    let limited =
        |run: &Run, phase| run.phase(phase).unwrap().traffic.clone().unwrap().time_limited;
    assert!(limited(&run, "run") && !limited(other, "run"));
    assert_eq!(comparison.problems(), Vec::<String>::new());
    assert_eq!(run.operations, other.operations);
    assert_eq!(run.operations.unwrap().count, 150);
}

#[test]
fn a_failed_engine_is_reported_but_not_ranked() {
    let (_, comparison) = misbehaving("loses");
    let printed = harness::report::terminal::render(&comparison, &[], false);
    assert!(printed.contains("FAILED raw-append, run 1: records: 1 lost"), "{printed}");
    let mut rows = printed.lines().filter(|line| line.starts_with(" raw-append"));
    assert!(rows.any(|row| row.trim_end().ends_with("FAILED")), "{printed}");
    let markdown = harness::report::markdown::render(&comparison, &[]);
    assert!(markdown.contains("- FAILED raw-append, run 1: records: 1 lost"), "{markdown}");
}

/// Whatever the clock is that calls wait by: what a call takes is part of its latency, also of one
/// that began when it was due.
#[test]
fn no_latency_is_shorter_than_the_call() {
    for threads in [1, 3] {
        for rate in [None, Some(500.0)] {
            let client = Client { threads: threads.try_into().unwrap(), rate, ..ONE_CLIENT };
            let (run, _) = misbehaving_with(client, "works", None, 1);
            let traffic = run.phase("load").unwrap().traffic.as_ref().unwrap();
            let latency = &traffic.kinds[&Kind::Insert].latency;
            // Three digits are kept; the clocks of processor and system differ by less.
            let least = Duration::from_nanos(latency.min_ns);
            assert!(least >= NAP.mul_f64(0.998), "{threads} at {rate:?}: {least:?}");
        }
    }
}

#[test]
fn an_engine_that_became_slow_is_told_and_equal_ones_are_not() {
    let [before, again, slow] =
        ["nothing", "nothing", "sleeps"].map(|how| misbehaving_for(how, None, 5).1);
    let worse = Diff::new(&before, &slow, 0.05);
    let load = |change: &&harness::report::diff::Change| change.figure == "load seconds";
    let change = worse.changes.iter().find(load).unwrap();
    assert!(change.is_regression && worse.has_regression() && !change.assumed, "{change:?}");
    assert_eq!((change.engine.as_str(), change.effect), (CULPRIT, 1.0));
    // Sleeping takes what it takes, and some more: the ratio can only be larger.
    let [was, is] = change.medians;
    let expected = (was + NAP.as_secs_f64() * ITEMS as f64) / was;
    let [low, high] = change.interval;
    assert!(expected <= high && low <= is / was && is / was <= high, "{expected} {change:?}");
    assert!(worse.changes.iter().all(|change| change.engine == CULPRIT), "{worse:?}");
    let better = Diff::new(&slow, &before, 0.05);
    assert!(!better.has_regression());
    assert!(better.changes.iter().any(|change| change.figure == "load seconds"));
    let same = Diff::new(&before, &before, 0.05);
    assert!(same.changes.is_empty() && same.compared > 10, "{same:?}");
    let alike = Diff::new(&before, &again, 0.05);
    let of_time = |change: &harness::report::diff::Change| change.figure.ends_with("seconds");
    assert!(!alike.changes.iter().any(of_time), "{alike:?}");
}
