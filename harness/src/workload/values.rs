//! Values: which text a record holds, and what is around it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::bacon::{NEWLINES, TEXT_BYTES};
use super::rng::SplitMix64;
use super::texts::Texts;

/// What the values of a run are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Corpus {
    /// One bacon text for every record, as the published test did: an engine that compresses
    /// across records sees the same text again and again.
    Fixed,
    /// Another bacon text for each record.
    #[default]
    Varied,
    /// Random bytes, which nothing compresses.
    Random,
}

/// What is around the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// The JSON object `{"text_s": TEXT}`, as published: 2,656 bytes.
    #[default]
    Json,
    /// Nothing: the 2,601 bytes of the text.
    Text,
}

impl Corpus {
    /// Every corpus.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Varied, Self::Random];
}

impl Framing {
    /// Every framing.
    pub const ALL: [Self; 2] = [Self::Json, Self::Text];

    /// The length of every value in bytes. Random values have it too, but are no JSON.
    pub fn value_bytes(self) -> usize {
        match self {
            Self::Json => JSON_HEAD.len() + TEXT_BYTES + NEWLINES + JSON_TAIL.len(),
            Self::Text => TEXT_BYTES,
        }
    }
}

const JSON_HEAD: &[u8] = b"{\"text_s\": \"";
const JSON_TAIL: &[u8] = b"\"}";

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fixed => "fixed",
            Self::Varied => "varied",
            Self::Random => "random",
        })
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Json => "json",
            Self::Text => "text",
        })
    }
}

impl FromStr for Corpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|corpus| corpus.to_string() == text)
            .ok_or_else(|| "there are: fixed, varied, random".to_owned())
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|framing| framing.to_string() == text)
            .ok_or_else(|| "there are: json, text".to_owned())
    }
}

/// The values of a seed, each derived from its record's number.
pub struct Values(Source);

enum Source {
    Fixed(Vec<u8>),
    Varied { texts: Texts, framing: Framing },
    Random { seed: u64, bytes: usize },
}

impl Values {
    /// The values of `seed`. Writes the paragraphs that varied texts are made of: some 50 ms.
    pub fn new(corpus: Corpus, framing: Framing, seed: u64) -> Self {
        Self(match corpus {
            Corpus::Random => Source::Random { seed, bytes: framing.value_bytes() },
            Corpus::Varied => Source::Varied { texts: texts(framing, seed), framing },
            Corpus::Fixed => {
                let mut value = Vec::new();
                frame(&texts(framing, seed), framing, 0, &mut value);
                Source::Fixed(value)
            }
        })
    }

    /// Appends the value of record `index` to `out`.
    pub fn write(&self, index: u64, out: &mut Vec<u8>) {
        match &self.0 {
            Source::Fixed(value) => out.extend_from_slice(value),
            Source::Varied { texts, framing } => frame(texts, *framing, index, out),
            Source::Random { seed, bytes } => {
                let mut rng = SplitMix64::for_index(*seed, index);
                let end = out.len() + bytes;
                while out.len() < end {
                    out.extend_from_slice(&rng.next_u64().to_le_bytes());
                }
                out.truncate(end);
            }
        }
    }
}

/// The only character of the texts that JSON escapes is the newline.
fn texts(framing: Framing, seed: u64) -> Texts {
    match framing {
        Framing::Json => Texts::new(seed, b"\\n"),
        Framing::Text => Texts::new(seed, b"\n"),
    }
}

fn frame(texts: &Texts, framing: Framing, number: u64, out: &mut Vec<u8>) {
    match framing {
        Framing::Text => texts.write(number, out),
        Framing::Json => {
            out.extend_from_slice(JSON_HEAD);
            texts.write(number, out);
            out.extend_from_slice(JSON_TAIL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(corpus: Corpus, framing: Framing, seed: u64, index: u64) -> Vec<u8> {
        let mut value = Vec::new();
        Values::new(corpus, framing, seed).write(index, &mut value);
        value
    }

    #[test]
    fn json_values_are_the_published_object_around_the_same_text() {
        for corpus in [Corpus::Fixed, Corpus::Varied] {
            let json = value(corpus, Framing::Json, 42, 3);
            assert_eq!(json.len(), 2_656);
            let object: serde_json::Value = serde_json::from_slice(&json).unwrap();
            let text = value(corpus, Framing::Text, 42, 3);
            assert_eq!(object["text_s"].as_str().unwrap().as_bytes(), text);
            assert_eq!(object.as_object().unwrap().len(), 1);
            // The framing of the published client's JSON library: one space after the colon.
            assert!(json.starts_with(b"{\"text_s\": \""));
        }
    }

    #[test]
    fn every_value_has_the_length_that_is_told_beforehand() {
        for corpus in Corpus::ALL {
            for framing in Framing::ALL {
                for index in [0, 1, 499_999, u64::MAX] {
                    assert_eq!(value(corpus, framing, 1, index).len(), framing.value_bytes());
                }
            }
        }
    }

    #[test]
    fn fixed_is_one_value_and_the_others_another_for_each_record_and_seed() {
        let of = |corpus, seed, index| value(corpus, Framing::Json, seed, index);
        assert_eq!(of(Corpus::Fixed, 1, 0), of(Corpus::Fixed, 1, 9));
        assert_ne!(of(Corpus::Fixed, 1, 0), of(Corpus::Fixed, 2, 0));
        for corpus in [Corpus::Varied, Corpus::Random] {
            assert_eq!(of(corpus, 1, 9), of(corpus, 1, 9));
            assert_ne!(of(corpus, 1, 0), of(corpus, 1, 9));
            assert_ne!(of(corpus, 1, 0), of(corpus, 2, 0));
        }
    }

    #[test]
    fn random_values_do_not_compress() {
        let mut bytes = Vec::new();
        let values = Values::new(Corpus::Random, Framing::Json, 42);
        (0..100).for_each(|index| values.write(index, &mut bytes));
        let compressed = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
        assert!(compressed.len() >= bytes.len());
        let mut counts = [0u32; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        assert!(counts.iter().all(|&count| (850..1_250).contains(&count)), "{counts:?}");
    }
}
