//! Records that are loaded into an engine once and kept for later runs.

use std::fs;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use engines::registry::Registration;
use engines::{Direction, Engine, KeyRange, OpenOptions};
use harness::workload::keys::{Key, Keys};
use harness::workload::values::{Corpus, Framing, Values};

/// What keys and values are derived from.
const SEED: u64 = 42;

/// Records under random keys, each derived from its number.
pub struct Dataset {
    items: u64,
    keys: Keys,
    values: Values,
    /// Values are cut to so many bytes.
    value_bytes: usize,
    /// Eight bytes from the middle of each value: what is compared while the clock runs.
    probes: Vec<u64>,
}

impl Dataset {
    /// `items` records of varied text, each of at most `value_bytes`.
    pub fn new(items: NonZeroU64, value_bytes: usize) -> Self {
        let framing = Framing::Json;
        let mut dataset = Self {
            items: items.get(),
            keys: Keys::new(SEED),
            values: Values::new(Corpus::Varied, framing, SEED),
            value_bytes: value_bytes.clamp(16, framing.value_bytes()),
            probes: Vec::new(),
        };
        let mut value = Vec::new();
        dataset.probes = (0..dataset.items)
            .map(|index| {
                dataset.value(index, &mut value);
                probe(&value)
            })
            .collect();
        dataset
    }

    /// How many records there are.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The key of record `index`; those from `items` on are in no engine.
    pub fn key(&self, index: u64) -> Key {
        self.keys.key(index)
    }

    /// Replaces `out` by the value of record `index`.
    pub fn value(&self, index: u64, out: &mut Vec<u8>) {
        out.clear();
        self.values.write(index, out);
        // Short values are cut from another place of each text: their beginnings are much alike.
        let spare = out.len() - self.value_bytes;
        #[expect(clippy::cast_possible_truncation, reason = "less than the spare bytes")]
        let start = (index % (spare as u64 + 1)) as usize;
        out.drain(..start);
        out.truncate(self.value_bytes);
    }

    /// Whether `value` looks like that of record `index`, as far as a glance tells.
    pub fn looks_right(&self, index: u64, value: &[u8]) -> bool {
        value.len() == self.value_bytes
            && usize::try_from(index).is_ok_and(|index| self.probes[index] == probe(value))
    }

    /// Whether a record that an engine returned is one of ours, as far as a glance tells.
    pub fn is_right(&self, key: &[u8], value: &[u8]) -> bool {
        let index = self.keys.index_of(key).filter(|index| *index < self.items);
        index.is_some_and(|index| self.looks_right(index, value))
    }

    /// Compares all records with what a walk over the engine visits, in order.
    ///
    /// # Errors
    /// Records that are missing, too many, or not what was put, and what the engine reports.
    pub fn verify_walk(&self, engine: &dyn Engine) -> Result<(), String> {
        let (mut seen, mut last, mut is_right) = (0, Vec::new(), true);
        let walked = engine.scan(KeyRange::all(), Direction::Forward, &mut |key, value| {
            is_right &= key > &last[..] && self.is_right(key, value);
            seen += 1;
            last.clear();
            last.extend_from_slice(key);
            ControlFlow::Continue(())
        });
        walked.map_err(|error| error.to_string())?;
        if is_right && seen == self.items { Ok(()) } else { Err("a walk found others".to_owned()) }
    }

    /// Compares the whole of some records that are spread over all of them.
    ///
    /// # Errors
    /// A record that is missing or not what was put, and what the engine reports.
    pub fn verify(&self, engine: &dyn Engine, count: u64) -> Result<(), String> {
        let mut expected = Vec::new();
        for at in 0..count.min(self.items) {
            let index = at * (self.items / count.min(self.items));
            self.value(index, &mut expected);
            let found = engine.get_vec(&self.key(index)).map_err(|error| error.to_string())?;
            if found.as_ref() != Some(&expected) {
                return Err(format!("record {index} is not what was put"));
            }
        }
        Ok(())
    }

    /// The directory below `parent` in which the engine holds these records, compacted; loads them
    /// if they are not there.
    ///
    /// # Errors
    /// What the engine and the file system report.
    pub fn loaded(
        &self,
        parent: &Path,
        engine: &Registration,
        options: &OpenOptions,
    ) -> Result<PathBuf, String> {
        let name = format!("{}-{}-{}", engine.name, self.items, self.value_bytes);
        let directory = parent.join(&name);
        // Beside the directory, which is the engine's alone.
        let marker = parent.join(format!("{name}.loaded"));
        let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
        if !marker.exists() {
            eprintln!("loading {} records into {}", self.items, engine.name);
            if directory.exists() {
                fs::remove_dir_all(&directory).map_err(fail)?;
            }
            fs::create_dir_all(&directory).map_err(fail)?;
            self.load(&directory, engine, options).map_err(|error| error.to_string())?;
            fs::write(&marker, b"").map_err(fail)?;
        }
        Ok(directory)
    }

    fn load(
        &self,
        directory: &Path,
        engine: &Registration,
        options: &OpenOptions,
    ) -> engines::Result<()> {
        let engine = engine.open(directory, options)?;
        let mut value = Vec::new();
        for index in 0..self.items {
            self.value(index, &mut value);
            engine.put(&self.key(index), &value)?;
        }
        engine.compact()?;
        engine.close()
    }
}

fn probe(value: &[u8]) -> u64 {
    let middle = value.len() / 2;
    value.get(middle..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
