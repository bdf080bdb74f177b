//! Which engines run, how often, in which order.

use std::path::PathBuf;
use std::time::Duration;

use engines::registry::{self, Kind, Registration};
use serde::{Deserialize, Serialize};

use crate::report::figures::grouped;
use crate::results::{Client, Conditions, Settings, Skipped};
use crate::workload::Workload;
use crate::workload::rng::SplitMix64;
use crate::{Error, Result};

/// One run, as its child is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The engine's name.
    pub engine: String,
    /// Which of the repeats this is, from 1.
    pub repeat: u32,
    /// What it is given to do.
    pub workload: Workload,
    /// By whom.
    pub client: Client,
    /// How it is opened.
    pub settings: Settings,
    /// What surrounds it.
    pub conditions: Conditions,
    /// An empty directory of its own.
    pub directory: PathBuf,
}

impl RunPlan {
    /// The time after which the run is ended.
    pub fn time_limit(&self) -> Option<Duration> {
        // Longer than any duration is no limit.
        Duration::try_from_secs_f64(self.conditions.time_limit_seconds?).ok()
    }
}

/// The engines of a comparison.
#[derive(Debug, Default)]
pub struct Selection {
    /// Those that run.
    pub engines: Vec<&'static Registration>,
    /// Those that cannot.
    pub skipped: Vec<Skipped>,
}

impl Selection {
    /// The engines called `names`.
    ///
    /// # Errors
    /// [`Error::Engine`] for a name that nobody has and an engine that is not available,
    /// [`Error::Usage`] for one that is named twice or if none is left.
    pub fn named(names: &[String], settings: &Settings) -> Result<Self> {
        let mut selection = Self::default();
        for (at, name) in names.iter().enumerate() {
            let engine = registry::find(name)?;
            if names[..at].contains(name) {
                return Err(Error::Usage(format!("{name} is named twice")));
            }
            (engine.available)()?;
            selection.add(engine, settings);
        }
        selection.or_fail()
    }

    /// Every engine that is here, ours and the peers, and the reference points in `references`.
    ///
    /// # Errors
    /// [`Error::Usage`] if none is left.
    pub fn all(references: &[&str], settings: &Settings) -> Result<Self> {
        let mut selection = Self::default();
        for engine in registry::all() {
            if engine.kind != Kind::Reference || references.contains(&engine.name) {
                selection.add(engine, settings);
            }
        }
        selection.or_fail()
    }

    /// Those that hold keys of `bytes` bytes; the others are skipped, each with the reason.
    ///
    /// # Errors
    /// [`Error::Usage`] if none is left.
    pub fn holding_keys_of(mut self, bytes: u64) -> Result<Self> {
        let skipped = &mut self.skipped;
        self.engines.retain(|engine| {
            let most = engine.most_key_bytes.map_or(u64::MAX, |most| most as u64);
            if most < bytes {
                let (engine, most) = (engine.name.to_owned(), grouped(most));
                let reason = format!(
                    "{engine} holds keys of {most} bytes at most, and here they have up to {}",
                    grouped(bytes)
                );
                skipped.push(Skipped { engine, reason });
            }
            most >= bytes
        });
        self.or_fail()
    }

    fn add(&mut self, engine: &'static Registration, settings: &Settings) {
        let reason = match (engine.available)() {
            Err(error) => error.to_string(),
            Ok(()) if (engine.durability)(settings.durability).is_none() => {
                format!("{} has no durability level {}", engine.name, settings.durability)
            }
            Ok(()) => return self.engines.push(engine),
        };
        self.skipped.push(Skipped { engine: engine.name.to_owned(), reason });
    }

    fn or_fail(self) -> Result<Self> {
        if self.engines.is_empty() {
            let reasons: Vec<&str> = self.skipped.iter().map(|s| s.reason.as_str()).collect();
            let why =
                if reasons.is_empty() { "none is built in".into() } else { reasons.join("; ") };
            return Err(Error::Usage(format!("no engine can run: {why}")));
        }
        Ok(self)
    }
}

/// Every engine once a repeat, each repeat in another order drawn from the seed: what changes on
/// the machine meanwhile meets all engines alike.
pub fn order(
    engines: &[&'static Registration],
    seed: u64,
    repeats: u32,
) -> Vec<(&'static Registration, u32)> {
    let mut rng = SplitMix64::for_index(seed, u64::from_le_bytes(*b"in order"));
    let mut order = Vec::new();
    for repeat in 1..=repeats {
        let mut engines = engines.to_vec();
        rng.shuffle(&mut engines);
        order.extend(engines.into_iter().map(|engine| (engine, repeat)));
    }
    order
}

/// The word for a kind in results.
pub fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Own => "own",
        Kind::Peer => "peer",
        Kind::Reference => "reference",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(seed: u64, repeats: u32) -> Vec<(&'static str, u32)> {
        let engines: Vec<_> = registry::all().iter().collect();
        let order = order(&engines, seed, repeats);
        order.into_iter().map(|(engine, repeat)| (engine.name, repeat)).collect()
    }

    #[test]
    fn every_engine_runs_once_in_each_repeat() {
        let order = names(42, 5);
        let mut expected: Vec<_> = registry::all().iter().map(|engine| engine.name).collect();
        expected.sort_unstable();
        for (number, of_repeat) in order.chunks(expected.len()).enumerate() {
            assert!(of_repeat.iter().all(|&(_, repeat)| repeat as usize == number + 1));
            let mut engines: Vec<_> = of_repeat.iter().map(|&(engine, _)| engine).collect();
            engines.sort_unstable();
            assert_eq!(engines, expected);
        }
    }

    #[test]
    fn the_order_hangs_on_the_seed_alone() {
        assert_eq!(names(42, 5), names(42, 5));
        assert_ne!(names(42, 5), names(43, 5));
    }

    #[test]
    fn wrong_names_are_refused_with_the_right_ones() {
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            Selection::named(&names, &Settings::default()).map(|found| found.engines.len())
        };
        assert_eq!(named(&["memory", "null"]).unwrap(), 2);
        let unknown = named(&["memory", "bitcsak"]).unwrap_err().to_string();
        assert!(unknown.contains("bitcsak") && unknown.contains("raw-append"), "{unknown}");
        let twice = named(&["memory", "memory"]).unwrap_err().to_string();
        assert_eq!(twice, "memory is named twice");
    }
}
