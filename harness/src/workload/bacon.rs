//! Bacon ipsum: filler text made of the names of meat, in the exact shape of the text that the
//! published comparison stored.
//!
//! ```text
//! text       paragraph "\n\n" paragraph "\n\n" … paragraph "\n"           2,601 bytes
//! paragraph  4 to 7 sentences, lines of at most 80 columns                317 574 475 556 670
//! lines      of each paragraph                                              5   8   7   8   9
//! sentence   4 to 19 words, a capital first, commas now and then, a full stop
//! ```
//! The line counts follow from the published sizes: as a JSON string every newline takes one byte
//! more, and 2,656 bytes leave room for 41 of them, 9 of which end paragraphs.

use super::rng::SplitMix64;

/// The length of every text in bytes.
pub const TEXT_BYTES: usize = 2_601;

/// The newlines in every text.
pub const NEWLINES: usize = 41;

const COLUMNS: usize = 80;
const FEWEST_WORDS: usize = 4;
const MOST_WORDS: usize = 19;
const COMMA_EVERY: usize = 16;

struct Shape {
    bytes: usize,
    lines: usize,
    sentences: usize,
}

const PARAGRAPHS: [Shape; 5] = [
    Shape { bytes: 317, lines: 5, sentences: 4 },
    Shape { bytes: 574, lines: 8, sentences: 6 },
    Shape { bytes: 475, lines: 7, sentences: 5 },
    Shape { bytes: 556, lines: 8, sentences: 6 },
    Shape { bytes: 670, lines: 9, sentences: 7 },
];

const _: () = {
    let (mut bytes, mut newlines, mut at) = (0, 0, 0);
    while at < PARAGRAPHS.len() {
        bytes += PARAGRAPHS[at].bytes + 2;
        newlines += PARAGRAPHS[at].lines + 1;
        at += 1;
    }
    // The last paragraph ends with one newline, not two.
    assert!(bytes - 1 == TEXT_BYTES);
    assert!(newlines - 1 == NEWLINES);
};

/// What the generator picks from, each as often as any other. Cuts that are sold under two words
/// stay together, so that some words come up more often than others, as in the published text.
#[rustfmt::skip]
const CUTS: [&[&str]; 73] = [
    &["andouille"], &["bacon"], &["beef", "brisket"], &["beef", "ribs"], &["beef", "tenderloin"],
    &["boar"], &["bratwurst"], &["bresaola"], &["brisket"], &["capocollo"], &["chicken"],
    &["chicken", "wing"], &["chorizo"], &["chuck"], &["chuck", "roast"], &["corned", "beef"],
    &["cow"], &["drumstick"], &["fatback"], &["flank"], &["flank", "steak"], &["frankfurter"],
    &["gammon"], &["goose"], &["ground", "beef"], &["ground", "chuck"], &["guanciale"], &["ham"],
    &["ham", "hock"], &["hamburger"], &["jerky"], &["jowl"], &["kidney"], &["kielbasa"],
    &["lamb", "shank"], &["lamb", "shoulder"], &["liver"], &["meatball"], &["meatloaf"],
    &["mortadella"], &["mutton"], &["oxtail"], &["pancetta"], &["pastrami"], &["porchetta"],
    &["pork"], &["pork", "belly"], &["pork", "loin"], &["pork", "roast"], &["pork", "sausage"],
    &["prosciutto"], &["ribeye"], &["rump"], &["salami"], &["salt", "pork"], &["sausage"],
    &["short", "loin"], &["short", "ribs"], &["shoulder"], &["sirloin"], &["soppressata"],
    &["spare", "ribs"], &["speck"], &["strip", "steak"], &["tenderloin"], &["tongue"], &["tri-tip"],
    &["tri-tip", "roast"], &["turkey"], &["turkey", "breast"], &["venison"],
    &["venison", "sausage"], &["wurst"],
];

/// The bytes of a word and of the space and marks after it, on average.
const WORD_BYTES: usize = 7;
/// There is a word of every length from the shortest to the longest, so every gap can be filled.
const SHORTEST_WORD: usize = 3;

/// The paragraphs of a text.
pub(super) const PARAGRAPH_COUNT: usize = PARAGRAPHS.len();

/// Appends paragraph `number` of a text, which `rng` leads to, and the newlines behind it, each as
/// `newline`. All paragraphs in turn make a text.
pub(super) fn write_paragraph(
    rng: &mut SplitMix64,
    number: usize,
    newline: &[u8],
    out: &mut Vec<u8>,
) {
    let (start, shape) = (out.len(), &PARAGRAPHS[number]);
    while !Paragraph::new(newline, out, shape).write(rng, shape) {
        out.truncate(start);
    }
    out.extend_from_slice(newline);
    if number + 1 < PARAGRAPH_COUNT {
        out.extend_from_slice(newline);
    }
}

/// A paragraph being written.
struct Paragraph<'a> {
    newline: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Bytes that are still to be written, a newline counted as one.
    left: usize,
    column: usize,
    lines: usize,
}

impl<'a> Paragraph<'a> {
    fn new(newline: &'a [u8], out: &'a mut Vec<u8>, shape: &Shape) -> Self {
        // The first word has no space before it: as if one had been written already.
        Self { newline, out, left: shape.bytes + 1, column: 0, lines: 1 }
    }

    /// Whether the paragraph came out in its shape; if not, another try will.
    fn write(mut self, rng: &mut SplitMix64, shape: &Shape) -> bool {
        for sentences_left in (2..=shape.sentences).rev() {
            let mean = self.left / WORD_BYTES / sentences_left;
            let words =
                (mean + rng.below(11)).saturating_sub(5).clamp(FEWEST_WORDS, MOST_WORDS - 1);
            self.sentence(rng, words);
        }
        self.last_sentence(rng) && self.lines == shape.lines
    }

    /// A sentence of `words` words, or one more where the last cut has two.
    fn sentence(&mut self, rng: &mut SplitMix64, words: usize) {
        let mut written = 0;
        while written < words {
            let cut = CUTS[rng.below(CUTS.len())];
            let mark = if written + cut.len() >= words {
                b"."
            } else if rng.below(COMMA_EVERY) == 0 {
                b","
            } else {
                b"".as_slice()
            };
            self.cut(cut, written == 0, mark);
            written += cut.len();
        }
    }

    /// The sentence that takes exactly the bytes that are left; false if it cannot.
    fn last_sentence(&mut self, rng: &mut SplitMix64) -> bool {
        let mut written = 0;
        while written < MOST_WORDS {
            // A space before the next cut and the full stop behind it.
            let Some(room) = self.left.checked_sub(2).filter(|&room| room >= SHORTEST_WORD) else {
                return false;
            };
            let cut = CUTS[rng.below(CUTS.len())];
            let bytes = cut.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
            let is_last = bytes == room;
            if !is_last && bytes + 1 + SHORTEST_WORD > room {
                continue;
            }
            self.cut(cut, written == 0, if is_last { b"." } else { b"" });
            written += cut.len();
            if is_last {
                return (FEWEST_WORDS..=MOST_WORDS).contains(&written);
            }
        }
        false
    }

    fn cut(&mut self, cut: &[&str], capital: bool, mark: &[u8]) {
        for (number, word) in cut.iter().enumerate() {
            let mark = if number + 1 == cut.len() { mark } else { b"" };
            let at = self.word(word.as_bytes(), mark);
            if capital && number == 0 {
                self.out[at].make_ascii_uppercase();
            }
        }
    }

    /// Writes a word, on the next line if this one has no room, and returns where it starts.
    fn word(&mut self, word: &[u8], mark: &[u8]) -> usize {
        let bytes = word.len() + mark.len();
        if self.column == 0 {
            self.column = bytes;
        } else if self.column + 1 + bytes > COLUMNS {
            self.out.extend_from_slice(self.newline);
            self.lines += 1;
            self.column = bytes;
        } else {
            self.out.push(b' ');
            self.column += 1 + bytes;
        }
        let at = self.out.len();
        self.out.extend_from_slice(word);
        self.out.extend_from_slice(mark);
        self.left = self.left.saturating_sub(1 + bytes);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn texts(count: usize) -> impl Iterator<Item = String> {
        let mut rng = SplitMix64::new(42);
        std::iter::repeat_with(move || {
            let mut out = Vec::new();
            (0..PARAGRAPH_COUNT)
                .for_each(|number| write_paragraph(&mut rng, number, b"\n", &mut out));
            String::from_utf8(out).unwrap()
        })
        .take(count)
    }

    fn words(text: &str) -> Vec<String> {
        text.split_ascii_whitespace()
            .map(|w| w.trim_end_matches(['.', ',']).to_lowercase())
            .collect()
    }

    #[test]
    fn every_text_has_the_published_sizes() {
        for (number, text) in texts(500).enumerate() {
            assert_eq!(text.len(), 2_601, "text {number}");
            assert_eq!(text.matches('\n').count(), 41, "text {number}");
            assert!(text.lines().all(|line| line.len() <= 80), "text {number}:\n{text}");
            let paragraphs: Vec<&str> = text.trim_end().split("\n\n").collect();
            let sizes: Vec<usize> = paragraphs.iter().map(|p| p.len()).collect();
            assert_eq!(sizes, [317, 574, 475, 556, 670], "text {number}");
        }
    }

    #[test]
    fn sentences_have_4_to_19_words_a_capital_and_a_full_stop() {
        for (number, text) in texts(500).enumerate() {
            for paragraph in text.trim_end().split("\n\n") {
                let flat = paragraph.replace('\n', " ");
                let sentences: Vec<&str> = flat.split_inclusive('.').map(str::trim).collect();
                assert!((4..=7).contains(&sentences.len()), "text {number}: {sentences:?}");
                for sentence in sentences {
                    let count = sentence.split(' ').count();
                    assert!((4..=19).contains(&count), "text {number}: {count} words: {sentence}");
                    assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{sentence}");
                    assert!(sentence.ends_with('.'), "{sentence}");
                }
            }
        }
    }

    /// Lines are filled: the first word of a line would not have fitted on the line before.
    #[test]
    fn lines_are_broken_where_they_are_full() {
        for (number, text) in texts(100).enumerate() {
            for paragraph in text.trim_end().split("\n\n") {
                let lines: Vec<&str> = paragraph.lines().collect();
                for pair in lines.windows(2) {
                    let word = pair[1].split(' ').next().unwrap();
                    assert!(pair[0].len() + 1 + word.len() > 80, "text {number}: {pair:?}");
                }
            }
        }
    }

    /// Published: 367 words, 66 of them distinct.
    #[test]
    fn words_are_as_many_and_as_varied_as_published() {
        let (mut count, mut distinct) = (0, 0);
        for text in texts(500) {
            let words = words(&text);
            count += words.len();
            distinct += words.iter().collect::<HashSet<_>>().len();
        }
        let (count, distinct) = (count / 500, distinct / 500);
        assert!((360..=374).contains(&count), "{count} words");
        assert!((63..=69).contains(&distinct), "{distinct} distinct words");
    }

    /// Published: the text is 1,240 bytes after Snappy.
    #[test]
    fn snappy_makes_of_it_what_was_published() {
        let mut encoder = snap::raw::Encoder::new();
        let total: usize =
            texts(500).map(|text| encoder.compress_vec(text.as_bytes()).unwrap().len()).sum();
        let mean = total / 500;
        assert!((1_240 - 37..=1_240 + 37).contains(&mean), "{mean} bytes, 3 % off at most");
    }

    #[test]
    fn there_is_a_word_of_every_length_that_a_gap_may_have() {
        let singles: HashSet<usize> =
            CUTS.iter().filter(|cut| cut.len() == 1).map(|cut| cut[0].len()).collect();
        let longest = CUTS.iter().flat_map(|cut| cut.iter()).map(|word| word.len()).max().unwrap();
        assert!((SHORTEST_WORD..=longest).all(|length| singles.contains(&length)), "{singles:?}");
        assert!(CUTS.iter().flat_map(|cut| cut.iter()).all(|word| word.len() >= SHORTEST_WORD));
    }
}
