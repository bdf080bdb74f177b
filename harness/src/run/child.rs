//! The child process: one run of one engine, so that memory, processor time and open files are
//! that engine's alone, and so that its crash is a result and not the end of everything.
//!
//! The parent starts its own executable with the argument `run-one`, writes a [`RunPlan`] as JSON
//! to its standard input, and reads [`Event`]s from its standard output.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use engines::{Engine, OpenOptions, registry};
use parking_lot::Mutex;

use super::event::{Event, Events};
use super::parent;
use super::plan::RunPlan;
use crate::results::Run;
use crate::{Error, Result};

/// How a child opens an engine: its name, the directory, the options. Tests open wrapped ones.
pub type Open<'a> =
    dyn Fn(&str, &Path, &OpenOptions) -> engines::Result<Box<dyn Engine>> + Sync + 'a;

/// The argument that makes a child of this executable.
pub(super) const ARGUMENT: &str = "run-one";

/// Serves as a child, and does not return, if this process was started as one. Every program that
/// starts comparisons calls it first.
pub fn serve_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) && arguments.next().is_none() {
        let whole =
            serve(&|name, directory, options| registry::find(name)?.open(directory, options));
        std::process::exit(if whole { 0 } else { 1 });
    }
}

/// Reads a plan from standard input, carries it out with engines from `open`, and tells of it on
/// standard output. Returns whether the run was complete.
pub fn serve(open: &Open<'_>) -> bool {
    end_with_the_parent();
    abort_on_panic();
    let events = Events::new(Box::new(io::stdout()));
    match read_plan().and_then(|plan| super::lifecycle::run(&plan, open, &events)) {
        Ok(()) => events.send(&Event::Done),
        Err(Error::Engine(error @ engines::Error::Unsupported { .. })) => {
            events.send(&Event::NotApplicable { reason: error.to_string() });
            events.send(&Event::Done);
        }
        Err(error) => {
            events.send(&Event::Failed { error: error.to_string() });
            return false;
        }
    }
    true
}

/// Carries out `plan` in this process, for benches and tests: nothing is set apart then.
///
/// # Errors
/// As a run in a child.
pub fn run_here(plan: &RunPlan) -> Result<Run> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Events::new(Box::new(Into(Arc::clone(&heard))));
    let open: &Open<'_> =
        &|name, directory, options| registry::find(name)?.open(directory, options);
    super::lifecycle::run(plan, open, &events)?;
    let heard = heard.lock();
    Ok(parent::follow(plan, heard.split(|&byte| byte == b'\n')))
}

struct Into(Arc<Mutex<Vec<u8>>>);

impl Write for Into {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read_plan() -> Result<RunPlan> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(Error::io("read", "standard input"))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::Usage(format!(
            "{ARGUMENT} is for enginelab's own use: no plan on standard input: {error}"
        ))
    })
}

/// A panic in any thread ends the run, as it would end a program: no thread waits at a barrier for
/// one that is gone.
fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

/// A child must not go on writing when its parent was killed.
#[cfg(target_os = "linux")]
fn end_with_the_parent() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(not(target_os = "linux"))]
fn end_with_the_parent() {}
