//! Text that comes from elsewhere (names of files and engines, labels, lines of a trace), made such
//! that whoever shows it shows it as it is: no control characters, no more of it than is read.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

/// As text of several lines: everything but line ends and tabs that is not shown, but does something,
/// is written as JSON escapes it.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    without(text, |character| does_something(character) && !matches!(character, '\n' | '\t'))
}

/// The same in one line: line ends and tabs are blanks.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    let is_blank = |character: char| matches!(character, '\n' | '\r' | '\t');
    match text.contains(is_blank) {
        true => Cow::Owned(lines(&text.replace("\r\n", " ").replace(is_blank, " ")).into_owned()),
        false => lines(text),
    }
}

/// The beginning and the end of a text of more than `most` characters, and how much is left out.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    let half = most / 2;
    let end_of =
        |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (before, after) = (&text[..end_of(half)], &text[end_of(count - half)..]);
    let left_out = crate::report::figures::grouped((count - 2 * half) as u64);
    Cow::Owned(format!("{before} … {left_out} characters left out … {after}"))
}

/// The columns that a line takes on a terminal.
pub(crate) fn width(line: &str) -> usize {
    UnicodeWidthStr::width(line)
}

/// Controls, and what turns the direction of the text around it or ends its line.
fn does_something(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn without(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            // All of them have four digits. Writing to a string does not fail.
            true => drop(write!(plain, "\\u{:04x}", u32::from(character))),
            false => plain.push(character),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(
            line("a\x1b[2Jb\r\nc\td\u{9b}e\u{202e}f\0"),
            "a\\u001b[2Jb c d\\u009be\\u202ef\\u0000"
        );
        assert_eq!(lines("a\x07\n\tb\r"), "a\\u0007\n\tb\\u000d");
        assert_eq!(line("déjà 漢字 👩‍👩‍👧"), "déjà 漢字 👩‍👩‍👧");
        for code in (0..=0x2fff).filter_map(char::from_u32) {
            let text = format!("a{code}b");
            assert!(!line(&text).contains(char::is_control), "{code:?}");
            // What is escaped in JSON means the same.
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<String>(&lines(&json)).unwrap(), text);
        }
    }

    #[test]
    fn of_a_long_text_both_ends_are_shown() {
        assert_eq!(shortened("äöüß", 4), "äöüß");
        assert_eq!(shortened("äöü.....ßab", 6), "äöü … 5 characters left out … ßab");
        assert_eq!(shortened("", 0), "");
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!((width("abc"), width("漢字"), width("é")), (3, 4, 1));
    }
}
