//! What is shown while a comparison runs: a bar on a terminal, a line a run elsewhere.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Result;
use crate::report::json;
use crate::results::{Comparison, Run};
use crate::run::Observer;
use crate::run::event::Event;
use crate::run::plan::RunPlan;

/// Shows progress on standard error and saves the result after every run.
pub(super) struct Progress {
    out: Option<PathBuf>,
    /// Draws on a terminal only.
    bar: ProgressBar,
    on_terminal: bool,
    keep: bool,
    /// `[2/9] lsm`.
    run: String,
    /// Where the run and its phase start on the bar.
    run_start: u64,
    phase: Share,
}

/// The part of a run's length on the bar that a phase has.
#[derive(Clone, Copy)]
struct Share {
    start: u64,
    length: u64,
}

/// The length of a run on the bar.
const RUN: u64 = 1_000;

/// How long phases take against each other, roughly: what the remaining time is guessed from.
fn share(phase: &str) -> Share {
    let (start, length) = match phase {
        "open" | "load" => (0, 450),
        "quiesce" => (450, 50),
        "compact" => (500, 250),
        "close" | "reopen" => (750, 0),
        "verify" => (750, 150),
        _ => (900, 100),
    };
    Share { start, length }
}

impl Progress {
    pub(super) fn new(out: Option<PathBuf>, keep: bool) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = if on_terminal { ProgressBar::new(1) } else { ProgressBar::hidden() };
        let template = "{msg:36} {wide_bar} {percent:>3}%  {elapsed} so far, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { out, bar, on_terminal, keep, run: String::new(), run_start: 0, phase: share("open") }
    }

    fn say(&self, line: &str) {
        if self.on_terminal {
            self.bar.suspend(|| eprintln!("{line}"));
        } else {
            eprintln!("{line}");
        }
    }
}

impl Observer for Progress {
    fn directory(&mut self, path: &Path) {
        let fate = if self.keep { "kept" } else { "removed afterwards" };
        self.say(&format!("data in {}, {fate}", path.display()));
    }

    fn run_begins(&mut self, plan: &RunPlan, number: usize, of: usize) {
        self.run = format!("[{number}/{of}] {}", plan.engine);
        self.run_start = (number as u64 - 1) * RUN;
        self.bar.set_length(of as u64 * RUN);
        self.bar.set_position(self.run_start);
        self.bar.set_message(self.run.clone());
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Begun { phase } => {
                self.phase = share(phase);
                self.bar.set_message(format!("{}: {phase}", self.run));
                self.bar.set_position(self.run_start + self.phase.start);
            }
            Event::Progress { done, total } => {
                let part = self.phase.length * done / (*total).max(1);
                self.bar.set_position(self.run_start + self.phase.start + part);
            }
            _ => {}
        }
    }

    fn run_ends(&mut self, run: &Run, so_far: &Comparison) -> Result<()> {
        let outcome = match (run.problem(), run.seconds("load")) {
            (Some(problem), _) => format!("FAILED {problem}"),
            (None, load) => format!("load {:.3} s", load.unwrap_or_default()),
        };
        self.say(&format!("{}, run {}: {outcome}", self.run, run.repeat));
        match &self.out {
            Some(out) => json::replace_file(out, &json::render(so_far)?),
            None => Ok(()),
        }
    }

    fn warning(&mut self, text: &str) {
        self.say(&format!("warning: {text}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
