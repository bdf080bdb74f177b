//! What was published, beside what was measured; and the long load, million by million.

use super::{BULK_READS, BULK_WRITES, LONG, SINGLE_READS, SINGLE_WRITES, Settee};
use crate::report::figures::{grouped, grouped_decimal, seconds};
use crate::report::summary::{Spread, Summary};
use crate::report::tables::{NOT_THERE, Table, head, middle};
use crate::results::{Phase, Run};

/// Writes and reads a second; user, system and real seconds.
struct Published {
    client: &'static str,
    figures: [&'static str; 5],
}

const PUBLISHED: [Published; 8] = [
    Published { client: "CouchDB-Python", figures: ["24", "603", "1.248", "1.108", "85.7"] },
    Published { client: "CouchDB-Psyco", figures: ["24", "654", "1.112", "0.848", "85.3"] },
    Published { client: "CouchDB-Curl", figures: ["422", "665", "0.536", "0.368", "7.93"] },
    Published { client: "CouchDB-Curl-Psyco", figures: ["421", "711", "0.576", "0.452", "7.93"] },
    Published { client: "Settee-Requests", figures: ["272", "418", "2.704", "1.564", "12.4"] },
    Published { client: "Settee-Requests-Psyco", figures: ["305", "453", "1.96", "1.47", "11.2"] },
    Published { client: "Settee-Httplib2", figures: ["376", "636", "0.98", "0.784", "8.48"] },
    Published { client: "Settee-H2-Psyco", figures: ["392", "687", "0.6", "0.77", "8.48"] },
];

/// Engines beside each other in 100 columns.
const ENGINES_A_TABLE: usize = 6;
const MILLION: u64 = 1_000_000;

pub(super) fn all(settee: &Settee, summaries: &[Summary<'_>]) -> Vec<Table> {
    let mut tables = vec![clients(settee, summaries)];
    tables.extend(summaries.chunks(ENGINES_A_TABLE).map(|some| long_load(settee.long, some)));
    tables
}

fn clients(settee: &Settee, summaries: &[Summary<'_>]) -> Table {
    let rows = summaries.iter().map(|summary| {
        let rate = |name: &'static str| {
            let rate = summary.figure(|run| run.phase(name)?.throughput());
            middle(rate, |rate| grouped_decimal(rate, 0))
        };
        let took = |pick: fn(&Phase) -> f64| middle(singles(summary, pick), seconds);
        vec![
            summary.engine.to_owned(),
            rate(SINGLE_WRITES),
            rate(SINGLE_READS),
            took(|phase| phase.usage.user_seconds),
            took(|phase| phase.usage.system_seconds),
            took(|phase| phase.wall_seconds),
            rate(BULK_WRITES),
            rate(BULK_READS),
        ]
    });
    let published = PUBLISHED.iter().map(|published| {
        let mut row = vec![published.client.to_owned()];
        row.extend(published.figures.map(str::to_owned));
        let bulk = if published.client.starts_with("Settee") { "7,000..7,700" } else { NOT_THERE };
        row.extend([bulk.to_owned(), NOT_THERE.to_owned()]);
        row
    });
    Table {
        title: "Settee's table: records a second, and seconds".into(),
        head: head(&[
            "engine or client",
            "write/s",
            "read/s",
            "user",
            "sys",
            "real",
            "bulk write/s",
            "bulk read/s",
        ]),
        rows: rows.chain(published).collect(),
        notes: vec![format!(
            "user, sys, real: of the single writes and reads together, making the records \
             included; {} of each here, about 2,000 of each as published. The published clients \
             spoke HTTP with a CouchDB server; an embedded engine does not. Which of them wrote in \
             bulk was not said: Settee did. Bulk reads were wanted there.",
            grouped(settee.singles)
        )],
    }
}

/// A figure of both phases of single records together.
fn singles(summary: &Summary<'_>, pick: fn(&Phase) -> f64) -> Option<Spread> {
    summary.figure(|run| Some(pick(run.phase(SINGLE_WRITES)?) + pick(run.phase(SINGLE_READS)?)))
}

fn long_load(records: u64, summaries: &[Summary<'_>]) -> Table {
    let rows = (0..records.div_ceil(MILLION)).map(|million| {
        let (first, last) = (million * MILLION, records.min((million + 1) * MILLION));
        let mut row = vec![grouped(last)];
        row.extend(summaries.iter().map(|summary| {
            let rate = summary.figure(|run| rate_between(run, first, last));
            middle(rate, |rate| grouped_decimal(rate, 0))
        }));
        row
    });
    let mut names = vec!["until"];
    names.extend(summaries.iter().map(|summary| summary.engine));
    Table {
        title: "The long load: records a second of each million".into(),
        head: head(&names),
        rows: rows.collect(),
        notes: vec![
            "Published: about 6,000 a second, and still so at 5,000,000 of 20,000,000.".into(),
        ],
    }
}

/// Records a second from record `first` of the long load up to record `last`.
fn rate_between(run: &Run, first: u64, last: u64) -> Option<f64> {
    let phase = run.phase(LONG)?;
    let took = moment(phase, last)? - moment(phase, first)?;
    (took > 0.0).then(|| (last - first) as f64 / took)
}

const BUCKET_SECONDS: f64 = 0.1;

/// The second at which `records` had been written: by the time line, evenly within its buckets, of
/// which the last one ends with the phase.
fn moment(phase: &Phase, records: u64) -> Option<f64> {
    let timeline = &phase.traffic.as_ref()?.timeline;
    let mut before = 0;
    for (bucket, &count) in timeline.iter().enumerate() {
        if before + count >= records && count > 0 {
            let start = bucket as f64 * BUCKET_SECONDS;
            let end = match bucket + 1 == timeline.len() {
                true => phase.seconds.max(start),
                false => start + BUCKET_SECONDS,
            };
            return Some(start + (end - start) * (records - before) as f64 / count as f64);
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Traffic;

    fn run(timeline: &[u64], seconds: f64) -> Run {
        let traffic = Traffic { timeline: timeline.to_vec(), ..Traffic::default() };
        let phase =
            Phase { name: LONG.into(), seconds, traffic: Some(traffic), ..Phase::default() };
        Run { phases: vec![phase], ..Run::default() }
    }

    /// By hand: 400 in 0.1 s, none in 0.1 s (a stall), 400 in 0.1 s, 200 in the last 0.05 s.
    #[test]
    fn rates_follow_the_time_line() {
        let run = run(&[400, 0, 400, 200], 0.35);
        let near = |first, last, expected: f64| {
            let rate = rate_between(&run, first, last).unwrap();
            assert!((rate - expected).abs() < 1e-6, "{first}..{last}: {rate}, not {expected}");
        };
        near(0, 200, 4_000.0);
        near(0, 400, 4_000.0);
        // From 0.1 s over the stall to the middle of the third tenth.
        near(400, 600, 200.0 / 0.15);
        near(600, 900, 300.0 / 0.075);
        near(0, 1_000, 1_000.0 / 0.35);
        assert_eq!(rate_between(&run, 0, 1_001), None, "no more were written");
    }

    /// The published real times are those of 2,000 writes and reads at the published rates, give
    /// or take a start of the client.
    #[test]
    fn the_published_figures_agree_with_each_other() {
        for Published { client, figures } in PUBLISHED {
            let [write, read, _, _, real] = figures.map(|figure| figure.parse::<f64>().unwrap());
            let expected = 2_000.0 / write + 2_000.0 / read;
            assert!((real / expected - 1.0).abs() < 0.07, "{client}: {real} s, not {expected} s");
        }
    }
}
