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
}

impl Progress {
    pub(super) fn new(out: Option<PathBuf>, keep: bool) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = if on_terminal { ProgressBar::new(1) } else { ProgressBar::hidden() };
        let template = "{msg:36} {wide_bar} {percent:>3}%  {elapsed} so far, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { out, bar, on_terminal, keep, run: String::new() }
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
        self.bar.reset();
        self.bar.set_message(self.run.clone());
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Begun { phase } => {
                self.bar.set_message(format!("{}: {phase}", self.run));
                self.bar.reset();
            }
            Event::Progress { done, total } => {
                self.bar.set_length(*total);
                self.bar.set_position(*done);
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
