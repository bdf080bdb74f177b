//! What is shown while a comparison runs: a bar on a terminal, a line a run elsewhere.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use crate::plain;
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
    /// Where the run starts on the bar, and its phases in it.
    run_start: u64,
    shares: Vec<Share>,
    phase: Share,
}

/// The part of a run's length on the bar that a phase has.
#[derive(Debug, Clone, Default, PartialEq)]
struct Share {
    phase: String,
    start: u64,
    length: u64,
}

/// The length of a run on the bar.
const RUN: u64 = 1_000;

/// How long phases take against each other, roughly: what the remaining time is guessed from.
fn shares(phases: &[String]) -> Vec<Share> {
    let weight = |phase: &String| match phase.as_str() {
        "open" | "close" | "reopen" => 0,
        "quiesce" => 1,
        "count" => 2,
        "verify" => 3,
        "compact" => 5,
        _ => 9,
    };
    let total = phases.iter().map(weight).sum::<u64>().max(1);
    let mut before = 0;
    let share = |phase: &String| {
        let start = before * RUN / total;
        before += weight(phase);
        Share { phase: phase.clone(), start, length: before * RUN / total - start }
    };
    phases.iter().map(share).collect()
}

impl Progress {
    pub(super) fn new(out: Option<PathBuf>, keep: bool) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let bar = if on_terminal { ProgressBar::new(1) } else { ProgressBar::hidden() };
        let template = "{msg:36} {wide_bar} {percent:>3}%  {elapsed} so far, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (run, shares, phase) = (String::new(), Vec::new(), Share::default());
        Self { out, bar, on_terminal, keep, run, run_start: 0, shares, phase }
    }

    fn say(&self, line: &str) {
        if self.on_terminal {
            self.bar.suspend(|| super::say(line));
        } else {
            super::say(line);
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
            Event::Begins { phases, .. } => self.shares = shares(phases),
            Event::Begun { phase } => {
                let share = self.shares.iter().find(|share| share.phase == *phase);
                self.phase = share.cloned().unwrap_or_default();
                let message = format!("{}: {phase}", self.run);
                self.bar.set_message(plain::line(&message).into_owned());
                self.bar.set_position(self.run_start + self.phase.start);
            }
            Event::Progress { done, total } => {
                let part = self.phase.length * done / (*total).max(1);
                self.bar.set_position(self.run_start + self.phase.start + part);
            }
            _ => {}
        }
    }

    fn run_ends(&mut self, run: &Run, so_far: &Comparison) {
        let traffic = run.phases.iter().filter(|phase| phase.traffic.is_some());
        let took: Vec<String> =
            traffic.map(|phase| format!("{} {:.3} s", phase.name, phase.seconds)).collect();
        let outcome = match (run.problem(), &run.not_applicable) {
            (Some(problem), _) => format!("FAILED {problem}"),
            (None, Some(reason)) => format!("n/a: {reason}"),
            (None, None) => took.join(", "),
        };
        self.say(&format!("{}, run {}: {outcome}", self.run, run.repeat));
        // The next run may find room again, and in the end it is told whether it did.
        if let Some(Err(error)) = self.out.as_ref().map(|out| json::save(so_far, out)) {
            self.warning(&error.to_string());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phases_fill_a_run() {
        let phases = ["open", "load", "quiesce", "run", "close", "verify"].map(str::to_owned);
        let shares = shares(&phases);
        let mut end = 0;
        for (share, phase) in shares.iter().zip(&phases) {
            assert_eq!((&share.phase, share.start), (phase, end));
            end += share.length;
        }
        assert_eq!(end, RUN);
    }
}
