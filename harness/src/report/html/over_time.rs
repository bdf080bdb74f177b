//! Pictures of what changed over time: operations in each phase, memory and disk space from opening
//! to closing. Each shows the middle run of an engine.

use super::charts::{self, Picture, Strip};
use super::findings::phases;
use super::pictures::labelled;
use crate::Result;
use crate::measure::over_time::OverTime;
use crate::report::figures::megabytes;
use crate::report::summary::Summary;
use crate::results::{Comparison, Run};

/// All of them.
pub(super) fn all(comparison: &Comparison, summaries: &[Summary<'_>]) -> Result<Vec<Picture>> {
    let mut pictures = operations(comparison, summaries)?;
    pictures.extend(memory(comparison, summaries)?);
    pictures.extend(disk(summaries)?);
    Ok(pictures)
}

/// Memory of the process's own, less what it had before the engine was opened.
fn memory(comparison: &Comparison, summaries: &[Summary<'_>]) -> Result<Option<Picture>> {
    let budget = comparison.workload.settings.memory_bytes;
    let strips = whole_runs(summaries, |run, seen| {
        let before = run.own_memory?.own_bytes;
        Some(seen.own_bytes.iter().map(|bytes| bytes.saturating_sub(before)).collect())
    });
    let title = format!(
        "Memory of its own in MB (10^6 bytes) from opening to closing, mapped files not counted; \
         the line: the budget of {}",
        megabytes(budget as f64)
    );
    picture(title, &strips, Some(budget as f64 / 1e6))
}

/// Blocks of the directory.
fn disk(summaries: &[Summary<'_>]) -> Result<Option<Picture>> {
    let strips = whole_runs(summaries, |_, seen| Some(seen.disk_bytes.clone()));
    let title = "Disk space in MB (10^6 bytes) from opening to closing, in blocks".to_owned();
    picture(title, &strips, None)
}

fn picture(title: String, strips: &[Strip], limit: Option<f64>) -> Result<Option<Picture>> {
    if strips.is_empty() {
        return Ok(None);
    }
    let told = |strip: &Strip| {
        let most = strip.line.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("at most {most:.0} MB")
    };
    charts::strips(title, told, strips, limit).map(Some)
}

/// A strip for each engine; `of` tells the bytes of each stretch of a phase.
fn whole_runs(
    summaries: &[Summary<'_>],
    of: impl Fn(&Run, &OverTime) -> Option<Vec<u64>>,
) -> Vec<Strip> {
    let strips = summaries.iter().filter_map(|summary| {
        let run = middle(summary, |run| {
            Some((run.until_closed().map(|phase| phase.wall_seconds).sum(), run))
        })?;
        let line = line(run, &of)?;
        Some(Strip { name: labelled(summary), line, stalls: Vec::new() })
    });
    strips.collect()
}

/// The phases of a run one behind the other. `None` if it tells nothing of them.
fn line(run: &Run, of: impl Fn(&Run, &OverTime) -> Option<Vec<u64>>) -> Option<Vec<(f64, f64)>> {
    let (mut line, mut began) = (Vec::new(), 0.0);
    for phase in run.until_closed() {
        let seen = &phase.seen.over_time;
        for (at, bytes) in of(run, seen)?.into_iter().enumerate() {
            let middle = (at as f64 + 0.5) * seen.every_ms as f64 / 1e3;
            line.push((began + middle.min(phase.wall_seconds), bytes as f64 / 1e6));
        }
        began += phase.wall_seconds;
    }
    (line.len() > 1).then_some(line)
}

/// Of the runs that have it, what the one in the middle has; `of` tells what they are ordered by.
fn middle<'a, T: Copy>(
    summary: &Summary<'a>,
    of: impl Fn(&'a Run) -> Option<(f64, T)>,
) -> Option<T> {
    let mut runs: Vec<(f64, T)> = summary.runs.iter().filter_map(|&run| of(run)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(runs.get(runs.len().checked_sub(1)? / 2)?.1)
}

/// A bucket of a time line in seconds.
const BUCKET: f64 = 0.1;

/// Points that a line has at most.
const MOST_POINTS: usize = 300;

/// A picture for each phase with operations that was long enough: of each engine the middle run.
fn operations(comparison: &Comparison, summaries: &[Summary<'_>]) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for phase in phases(comparison) {
        let strips = summaries.iter().filter_map(|summary| strip(summary, &phase));
        let strips: Vec<Strip> = strips.collect();
        if strips.is_empty() {
            continue;
        }
        let told = |strip: &Strip| {
            let longest = strip.stalls.iter().map(|[from, to]| to - from).fold(0.0, f64::max);
            let count = strip.stalls.len();
            let stalls = if count == 1 { "stall" } else { "stalls" };
            format!("{count} {stalls}, the longest {longest:.1} s")
        };
        let title = format!(
            "{phase}: operations a second over time in the middle run of each engine; red: \
             nothing ended for 100 ms or more"
        );
        pictures.push(charts::strips(title, told, &strips, None)?);
    }
    Ok(pictures)
}

/// `None` if the engine has no run with two whole buckets.
fn strip(summary: &Summary<'_>, phase: &str) -> Option<Strip> {
    let timeline = middle(summary, |run| {
        let phase = run.phase(phase)?;
        Some((phase.seconds, phase.traffic.as_ref()?.timeline.as_slice()))
    })?;
    // The last bucket is seldom a whole one.
    let (_, buckets) = timeline.split_last()?;
    if buckets.len() < 2 {
        return None;
    }
    let size = buckets.len().div_ceil(MOST_POINTS);
    let line = buckets.chunks(size).enumerate().map(|(at, chunk)| {
        let count = chunk.len() as f64;
        let middle = ((at * size) as f64 + count / 2.0) * BUCKET;
        (middle, chunk.iter().sum::<u64>() as f64 / (count * BUCKET))
    });
    Some(Strip { name: labelled(summary), line: line.collect(), stalls: stalls(buckets) })
}

/// From when to when nothing ended, in seconds.
fn stalls(buckets: &[u64]) -> Vec<[f64; 2]> {
    let mut at = 0;
    let mut found = Vec::new();
    for run in buckets.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
        if run.first() == Some(&0) {
            found.push([at as f64 * BUCKET, (at + run.len()) as f64 * BUCKET]);
        }
        at += run.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_where_nothing_ended() {
        let found = stalls(&[5, 0, 0, 3, 0]);
        assert_eq!(found.len(), 2);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found[0][0], 0.1) && near(found[0][1], 0.3), "{found:?}");
        assert!(near(found[1][0], 0.4) && near(found[1][1], 0.5), "{found:?}");
        assert!(stalls(&[1, 2]).is_empty());
    }
}
