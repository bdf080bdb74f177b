//! From what was recorded to the figures of a result.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::recorder::{KindRecord, Recorder};
use crate::results::{KindFigures, Latency};
use crate::workload::op::Kind;

/// The figures of every kind.
pub fn by_kind(recorder: &Recorder) -> BTreeMap<Kind, KindFigures> {
    recorder.kinds().map(|(kind, record)| (kind, of_kind(record))).collect()
}

fn of_kind(record: &KindRecord) -> KindFigures {
    let counts = record.counts;
    KindFigures {
        calls: record.latency.len(),
        operations: counts.operations,
        not_found: counts.not_found,
        visited: counts.visited,
        written_bytes: counts.written_bytes,
        read_bytes: counts.read_bytes,
        latency: latency(&record.latency, record.total_ns),
    }
}

fn latency(histogram: &Histogram<u64>, total_ns: u128) -> Latency {
    let total_ns = total_ns as f64;
    let at = |quantile| histogram.value_at_quantile(quantile);
    Latency {
        total_seconds: total_ns / 1e9,
        mean_ns: total_ns / histogram.len().max(1) as f64,
        min_ns: histogram.min(),
        max_ns: histogram.max(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        histogram: encode(histogram),
    }
}

/// Empty if it cannot be written, which memory never refuses.
fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// Reads the histogram of a result; `None` if it is none.
pub fn decode(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=100_000u64).for_each(|value| histogram.record(value * 1_000).unwrap());
        let latency = latency(&histogram, (1..=100_000u128).sum::<u128>() * 1_000);
        let near = |value: u64, expected: u64| value.abs_diff(expected) * 1_000 <= expected * 2;
        assert!(near(latency.p50_ns, 50_000_000), "{latency:?}");
        assert!(near(latency.p90_ns, 90_000_000), "{latency:?}");
        assert!(near(latency.p99_ns, 99_000_000), "{latency:?}");
        assert!(near(latency.p999_ns, 99_900_000), "{latency:?}");
        assert!(near(latency.p9999_ns, 99_990_000), "{latency:?}");
        assert!(near(latency.max_ns, 100_000_000) && near(latency.min_ns, 1_000), "{latency:?}");
        assert_eq!(latency.mean_ns, 50_000_500.0);
        let again = decode(&latency.histogram).unwrap();
        assert_eq!(again, histogram);
        assert_eq!(decode("no histogram"), None);
    }
}
