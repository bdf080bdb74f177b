//! Crash images: a workload runs on the simulated disk; then, for a crash behind each of its
//! mutating calls and under each model of what a crash takes away, the engine is opened on what is
//! left, and an oracle says whether what it finds is what may be found.

mod beside;
mod bitcask;
mod expiry;
mod faults;
mod lsm;
mod merge;
mod oracle;
mod toy;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engines::Engine;
use engines::fs::sim::{Call, CrashModel, SimFs};

use oracle::{Law, Oracle, State};
use workload::{Recording, Shape, Subject, record};

/// What is written after a recovery, to see that the engine goes on.
const MARKER: (&[u8], &[u8]) = (b"written after the crash", b"and still there");

/// How many second crashes are tried behind each first one that is picked for them.
const SECOND_CRASHES: usize = 12;

const SHOWN_FINDINGS: usize = 8;

/// What was tried and what was found wrong.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Crashes judged.
    crashes: usize,
    /// Disks that the engine was opened on.
    images: usize,
    /// The kinds of calls that the workload made, as `create .log`.
    calls: BTreeSet<String>,
    finding_count: usize,
    /// The first few.
    findings: Vec<String>,
}

impl Report {
    fn find(&mut self, finding: String) {
        self.finding_count += 1;
        if self.findings.len() < SHOWN_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn add(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.images += other.images;
        self.calls.extend(other.calls);
        self.finding_count += other.finding_count;
        self.findings.extend(other.findings);
        self.findings.truncate(SHOWN_FINDINGS);
    }

    /// A workload that did not come to these calls shows nothing.
    #[track_caller]
    fn assert_reached(&self, calls: &[&str]) {
        for call in calls {
            assert!(self.calls.contains(*call), "no call was {call:?}: {:?}", self.calls);
        }
    }

    #[track_caller]
    fn assert_clean(&self, what: &str) {
        println!("{what}: {self}");
        assert_eq!(self.finding_count, 0, "{what}: {self}");
    }
}

/// What was called on what sort of file.
fn kind_of(call: &Call) -> String {
    let text = format!("{call:?}");
    let mut words = text.split(' ');
    let (name, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let file = path.rsplit('/').next().unwrap_or_default();
    let sort: String = file.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    format!("{name} {sort}")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crashes, images, finding_count, findings, .. } = self;
        write!(f, "{crashes} crashes, {images} images opened, {finding_count} findings")?;
        findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// Records the workload and tries a crash at each cut, under each model.
fn crash_everywhere(subject: Subject<'_>, shape: Shape) -> Report {
    let disk = SimFs::new();
    let recording = record(subject, &disk, &shape.draw());
    let mut report = Report::default();
    for error in &recording.errors {
        report.find(format!("{} seed {}: without a crash: {error}", subject.name, shape.seed));
    }
    check_live(&recording, &mut report);
    report.calls.extend(recording.trace.calls().iter().map(kind_of));
    let seed = shape.seed;
    let models = [
        CrashModel::KeepAll,
        CrashModel::DropUnsynced,
        CrashModel::TornWrite { seed },
        CrashModel::RandomSubset { seed },
        CrashModel::RandomSubset { seed: seed + 1000 },
    ];
    for model in models {
        report.add(crash_under(subject, shape, &recording, model));
    }
    report
}

fn crash_under(
    subject: Subject<'_>,
    shape: Shape,
    recording: &Recording,
    model: CrashModel,
) -> Report {
    let mut report = Report::default();
    let mut oracle = Oracle::new(recording.history.clone());
    let mut before: Option<State> = None;
    for image in recording.trace.images(model) {
        report.crashes += 1;
        let cut = image.cut;
        let outcome = match &before {
            Some(state) if image.unchanged => {
                oracle.check(state, cut, model, Law::of(model)).map(|()| None)
            }
            _ => recover(subject, &image.disk, &oracle, &mut report).and_then(|state| {
                oracle.check(&state, cut, model, Law::of(model))?;
                Ok(Some(state))
            }),
        };
        let place = || {
            let call = cut.checked_sub(1).and_then(|at| recording.trace.calls().get(at));
            format!(
                "{} {} seed {} {model:?} cut {cut} ({call:?})",
                subject.name, subject.durability, shape.seed
            )
        };
        match outcome {
            Ok(None) => {}
            Ok(Some(state)) => {
                if (cut as u64 + shape.seed).is_multiple_of(29) {
                    let second = crash_again(subject, &image.disk, &state, &oracle, &mut report);
                    second.unwrap_or_else(|problem| {
                        report.find(format!("{}: second crash: {problem}", place()));
                    });
                }
                before = Some(state);
            }
            Err(problem) => {
                report.find(format!("{}: {problem}", place()));
                before = None;
            }
        }
    }
    report
}

/// Opens the engine on a disk, reads everything, writes one record more, and sees that all of it
/// is there after closing and opening again. Returns what was there at first.
fn recover(
    subject: Subject<'_>,
    disk: &SimFs,
    oracle: &Oracle,
    report: &mut Report,
) -> Result<State, String> {
    report.images += 1;
    guarded(|| {
        let engine = (subject.open)(disk).map_err(|error| format!("open: {error}"))?;
        let state = read(engine.as_ref(), oracle)?;
        engine.put(MARKER.0, MARKER.1).map_err(|error| format!("put: {error}"))?;
        engine.close().map_err(|error| format!("close: {error}"))?;

        let engine = (subject.open)(disk).map_err(|error| format!("open again: {error}"))?;
        let mut expected = state.clone();
        expected.insert(MARKER.0.to_vec(), MARKER.1.to_vec());
        let again = read(engine.as_ref(), oracle)?;
        engine.close().map_err(|error| format!("close again: {error}"))?;
        if again != expected {
            return Err(format!("opened again: {}", difference(&again, &expected)));
        }
        Ok(state)
    })
}

/// Crashes within the calls that recovery made on `disk`. What was found after the first crash was
/// on the disk, so nothing of it may go.
fn crash_again(
    subject: Subject<'_>,
    disk: &SimFs,
    state: &State,
    oracle: &Oracle,
    report: &mut Report,
) -> Result<(), String> {
    let trace = disk.trace();
    let step = trace.len().div_ceil(SECOND_CRASHES).max(1);
    let models =
        [CrashModel::KeepAll, CrashModel::DropUnsynced, CrashModel::RandomSubset { seed: 7 }];
    for (number, cut) in (0..=trace.len()).step_by(step).enumerate() {
        let model = models[number % models.len()];
        let image = trace.crash_at(cut, model);
        report.crashes += 1;
        report.images += 1;
        let found = guarded(|| {
            let engine = (subject.open)(&image).map_err(|error| format!("open: {error}"))?;
            let mut found = read(engine.as_ref(), oracle)?;
            engine.close().map_err(|error| format!("close: {error}"))?;
            found.remove(MARKER.0);
            Ok(found)
        });
        let call = cut.checked_sub(1).and_then(|at| trace.calls().get(at));
        let place = || format!("{model:?} cut {cut} of {} ({call:?})", trace.len());
        let found = found.map_err(|problem| format!("{}: {problem}", place()))?;
        if found != *state {
            return Err(format!("{}: {}", place(), difference(&found, state)));
        }
    }
    Ok(())
}

/// Before any crash, what was acknowledged must be seen; all of it and nothing else, if nothing
/// failed.
fn check_live(recording: &Recording, report: &mut Report) {
    let law = if recording.errors.is_empty() { Law::Prefix } else { Law::EachKey };
    for (history, found) in &recording.live {
        let verdict = found.as_ref().map_err(Clone::clone).and_then(|state| {
            let everything = usize::MAX;
            Oracle::new(history.clone()).check(state, everything, CrashModel::KeepAll, law)
        });
        if let Err(problem) = verdict {
            report.find(format!("before the crash: {problem}"));
        }
    }
}

/// Every record, once from a fold and once key by key.
fn read(engine: &dyn Engine, oracle: &Oracle) -> Result<State, String> {
    let state = fold(engine)?;
    for key in oracle.keys() {
        let value = engine.get_vec(key).map_err(|error| format!("get: {error}"))?;
        if value.as_ref() != state.get(key) {
            return Err(format!("get and fold differ on {}", oracle::text(key)));
        }
    }
    Ok(state)
}

fn fold(engine: &dyn Engine) -> Result<State, String> {
    let mut state = BTreeMap::new();
    let mut twice = None;
    engine
        .fold(&mut |key, value| {
            if state.insert(key.to_vec(), value.to_vec()).is_some() {
                twice = Some(oracle::text(key));
            }
            ControlFlow::Continue(())
        })
        .map_err(|error| format!("fold: {error}"))?;
    twice.map_or(Ok(state), |key| Err(format!("fold visits {key} twice")))
}

fn difference(found: &State, expected: &State) -> String {
    let lost: Vec<_> = expected
        .iter()
        .filter(|(key, value)| found.get(*key) != Some(value))
        .map(|(key, _)| oracle::text(key))
        .collect();
    let extra: Vec<_> = found
        .keys()
        .filter(|key| !expected.contains_key(*key))
        .map(|key| oracle::text(key))
        .collect();
    format!("lost or changed: {lost:?}, not there before: {extra:?}")
}

/// A panic is a finding like others.
fn guarded<T>(act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", message.unwrap_or_default()))
    })
}

/// As many seeds as fit a normal run, times `ENGINELAB_CRASH_SEEDS`.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let times = std::env::var("ENGINELAB_CRASH_SEEDS").ok();
    let times: u64 = times.map_or(1, |times| times.parse().expect("a number of seeds"));
    0..count * times
}

/// Debug builds are several times slower, and are there to show overflow: they do less.
fn scaled(steps: usize) -> usize {
    if cfg!(debug_assertions) { steps / 4 } else { steps }
}
