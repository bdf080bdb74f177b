//! Traces made here, and what they must do to a store.

use std::collections::{BTreeMap, HashMap};

use harness::workload::op::Kind;
use harness::workload::rng::SplitMix64;

/// What a trace must do to a store, found by a store of its own: the sizes by their keys.
#[derive(Default)]
pub(super) struct Model {
    pub(super) store: HashMap<String, u64>,
    pub(super) kinds: BTreeMap<Kind, u64>,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) put_bytes: u64,
}

impl Model {
    pub(super) fn request(&mut self, key: &str, word: &str, bytes: u64) {
        let there = self.store.contains_key(key);
        let (kind, reads, puts) = match word {
            "get" | "gets" => (Kind::Read, true, false),
            "set" => (Kind::Update, false, true),
            "add" if there => (Kind::Read, true, false),
            "add" => (Kind::Insert, false, true),
            "delete" => (Kind::Delete, false, false),
            _ if there => (Kind::ReadModifyWrite, true, true),
            _ => (Kind::Read, true, false),
        };
        *self.kinds.entry(kind).or_default() += 1;
        if reads {
            *(if there { &mut self.hits } else { &mut self.misses }) += 1;
        }
        if puts {
            self.store.insert(key.to_owned(), bytes);
            self.put_bytes += bytes;
        }
        if kind == Kind::Delete {
            self.store.remove(key);
        }
    }
}

const WORDS: [&str; 11] =
    ["get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr"];

/// A cache trace as Twitter published them, and what it must do.
pub(super) fn synthetic(seed: u64, requests: u64) -> (String, Model) {
    let (mut lines, mut model, mut rng) = (String::new(), Model::default(), SplitMix64::new(seed));
    let mut second = 1_583_990_400u64;
    for _ in 0..requests {
        second += u64::from(rng.below(50) == 0);
        // Popular keys among many, of different lengths; some have a comma.
        let bits = rng.below(10);
        let number = rng.below(1 << bits);
        let key = format!("nz:{number:x}{}", "k,".repeat(number % 7));
        let word = WORDS[rng.below(WORDS.len())];
        let (bytes, client) = (rng.below(400) as u64, rng.below(30));
        let ttl = if word == "set" { 86_400 } else { 0 };
        let size = key.len();
        lines += &format!("{second},{key},{size},{bytes},{client},{word},{ttl}\n");
        model.request(&key, word, bytes);
    }
    (lines, model)
}
