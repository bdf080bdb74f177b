//! The parent's side of one run: starts the child, follows its events, and makes a result of
//! whatever happened, a crash included.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::child::ARGUMENT;
use super::event::Event;
use super::memory_cap::MemoryCap;
use super::plan::RunPlan;
use crate::results::Run;
use crate::{Error, Result};

/// How a child is started.
#[derive(Debug, Clone)]
pub struct ChildCommand {
    /// The program, which serves as a child when started so.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables set in its environment, on top of this process's.
    pub environment: Vec<(OsString, OsString)>,
}

impl ChildCommand {
    /// This executable, whose `main` calls [`serve_if_asked`](super::child::serve_if_asked).
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not tell where the executable is.
    pub fn this_program() -> Result<Self> {
        let program = std::env::current_exe().map_err(Error::io("find", "this program"))?;
        Ok(Self { program, arguments: vec![ARGUMENT.into()], environment: Vec::new() })
    }
}

/// How a child ended.
pub(super) enum Outcome {
    /// With a result, if only that it failed.
    Finished(Box<Run>),
    /// It was killed because the user asked to stop.
    Interrupted,
}

/// Runs `plan` in a child and follows it; `watch` sees every event.
///
/// # Errors
/// [`Error::Io`] if the child cannot be started.
pub(super) fn run(
    command: &ChildCommand,
    plan: &RunPlan,
    kind: &str,
    interrupt: &AtomicBool,
    watch: &mut dyn FnMut(&Event),
) -> Result<Outcome> {
    let cap = plan.conditions.memory_cap_bytes.map(MemoryCap::new).transpose()?;
    let child = start(command, plan, cap.as_ref())?;
    let mut following = Following::new(plan, kind);
    let deadline = plan.time_limit().and_then(|limit| Instant::now().checked_add(limit));
    loop {
        match child.events.recv_timeout(LOOK_FOR_INTERRUPT_EVERY) {
            Ok(event) => {
                watch(&event);
                following.take(event);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if interrupt.load(Ordering::Acquire) {
            child.kill();
            return Ok(Outcome::Interrupted);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            child.kill();
            return Ok(Outcome::Finished(Box::new(following.out_of_time(plan))));
        }
    }
    let (status, last_words) = child.wait()?;
    let mut run = following.finish(status, &last_words);
    if cap.is_some_and(|cap| cap.has_killed()) {
        run.error =
            run.error.map(|error| format!("{error}, for lack of memory under --memory-cap"));
    }
    Ok(Outcome::Finished(Box::new(run)))
}

const LOOK_FOR_INTERRUPT_EVERY: Duration = Duration::from_millis(50);

/// What of a child's standard error is kept, from its end.
const LAST_WORDS_BYTES: usize = 4 << 10;

struct Running {
    process: Child,
    events: Receiver<Event>,
    standard_error: JoinHandle<Vec<u8>>,
}

fn start(command: &ChildCommand, plan: &RunPlan, cap: Option<&MemoryCap>) -> Result<Running> {
    let failed = |action| Error::io(action, &command.program);
    let mut prepared = Command::new(&command.program);
    prepared
        .args(&command.arguments)
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // The terminal's Ctrl-C reaches this process only, which then ends the child.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut prepared, 0);
    let mut process = prepared.spawn().map_err(failed("start"))?;
    let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (Some(mut input), Some(output), Some(standard_error)) = pipes else {
        return Err(failed("talk to")(std::io::ErrorKind::BrokenPipe.into()));
    };
    if let Some(Err(error)) = cap.map(|cap| cap.add(process.id())) {
        drop(input);
        let _ = process.kill();
        let _ = process.wait();
        return Err(error);
    }
    // The child waits for its plan: until now it has done nothing.
    let plan = serde_json::to_vec(plan).map_err(|error| failed("talk to")(error.into()))?;
    // A child that is gone already says so by its exit.
    let _ = input.write_all(&plan);
    drop(input);
    let (sender, events) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(|line| line.ok()) {
            if let Ok(event) = serde_json::from_slice(&line)
                && sender.send(event).is_err()
            {
                break;
            }
        }
    });
    let standard_error = thread::spawn(move || tail(standard_error));
    Ok(Running { process, events, standard_error })
}

/// Reads to the end and keeps the last part.
fn tail(mut from: impl Read) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; LAST_WORDS_BYTES]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS_BYTES);
        kept.drain(..surplus);
    }
    kept
}

impl Running {
    fn kill(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn wait(mut self) -> Result<(ExitStatus, String)> {
        let status = self.process.wait().map_err(Error::io("wait for", "the child process"))?;
        let last_words = self.standard_error.join().unwrap_or_default();
        Ok((status, String::from_utf8_lossy(&last_words).into_owned()))
    }
}

/// The result as far as the child has told it.
struct Following {
    run: Run,
    /// The phase that has begun and not ended.
    phase: Option<String>,
    is_done: bool,
}

/// The result of a run that told `lines` and ended well.
pub(super) fn follow<'a>(plan: &RunPlan, lines: impl Iterator<Item = &'a [u8]>) -> Run {
    let mut following = Following::new(plan, "");
    lines.filter_map(|line| serde_json::from_slice(line).ok()).for_each(|event| {
        following.take(event);
    });
    following.run
}

impl Following {
    fn new(plan: &RunPlan, kind: &str) -> Self {
        let (engine, kind, repeat) = (plan.engine.clone(), kind.to_owned(), plan.repeat);
        Self { run: Run { engine, kind, repeat, ..Run::default() }, phase: None, is_done: false }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Begins { phases: _, disk, own_memory } => {
                self.run.disk_before = Some(disk);
                self.run.own_memory = own_memory;
            }
            Event::Engine { version, durability, settings } => {
                self.run.version = version;
                self.run.durability = durability;
                self.run.settings = settings;
            }
            Event::Begun { phase } => self.phase = Some(phase),
            Event::Progress { .. } => {}
            Event::Ended(phase) => {
                self.phase = None;
                self.run.phases.push(*phase);
            }
            Event::LeftOut { phase, reason } => {
                self.phase = None;
                self.run.left_out.insert(phase, reason);
            }
            Event::Stats { phase, told } => {
                self.run.stats.insert(phase, told);
            }
            Event::Operations(operations) => self.run.operations = Some(operations),
            Event::Verified(verified) => self.run.verified = Some(verified),
            Event::NotApplicable { reason } => self.run.not_applicable = Some(reason),
            Event::Failed { error } => self.run.error = Some(self.in_phase(&error)),
            Event::Done => self.is_done = true,
        }
    }

    fn in_phase(&self, what: &str) -> String {
        match &self.phase {
            Some(phase) => format!("{phase}: {what}"),
            None => what.to_owned(),
        }
    }

    fn out_of_time(mut self, plan: &RunPlan) -> Run {
        let limit = plan.time_limit().unwrap_or_default();
        let what = format!("ended after {limit:?}, as --time-limit says");
        self.run.error = Some(self.in_phase(&what));
        self.run
    }

    fn finish(mut self, status: ExitStatus, last_words: &str) -> Run {
        if self.run.error.is_none() && !(self.is_done && status.success()) {
            let said = last_words_line(last_words);
            let what = format!("the process ended with {status}{said}");
            self.run.error = Some(self.in_phase(&what));
        }
        self.run
    }
}

/// What a dying child said last that tells most: its panic, else its last line.
fn last_words_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let panic = text
        .lines()
        .zip(text.lines().skip(1))
        .find(|(line, _)| line.contains("panicked at"))
        .map(|(line, message)| format!("{} {}", line.trim(), message.trim()));
    match panic.or_else(|| lines.next_back().map(str::to_owned)) {
        Some(line) => format!(", after saying: {line}"),
        None => String::new(),
    }
}
