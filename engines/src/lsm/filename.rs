//! The names of a database's files, made and parsed in one place.
//!
//! ```text
//! 000005.ldb       a table (000005.sst in older databases)
//! 000004.log       a log
//! MANIFEST-000002  a log of version edits
//! CURRENT          the name of the manifest in use and a newline, nothing else
//! LOCK             held while the database is open
//! LOG, LOG.old     messages for people, written by other programs
//! 000006.dbtmp     a file to be renamed over another
//! ```
//! Numbers are decimal, padded with zeros to six digits. Only a name that would be made exactly so
//! is parsed: whatever else lies in the directory is not ours.

use std::fmt;
use std::path::{Path, PathBuf};

/// The number in a file's name: one counter for tables, logs and manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct FileNumber(pub(crate) u64);

impl FileNumber {
    /// The number after this one; `None` when there is no more.
    pub(crate) fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// A file of a database, by its role. `Display` makes the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    Table(FileNumber),
    /// A table under the suffix that LevelDB before 1.14 gave.
    OldTable(FileNumber),
    Log(FileNumber),
    Manifest(FileNumber),
    Temporary(FileNumber),
    Current,
    Lock,
    InfoLog,
    OldInfoLog,
}

impl FileKind {
    /// The role of a file called `name`; `None` if it is not ours.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let kind = match name {
            "CURRENT" => Self::Current,
            "LOCK" => Self::Lock,
            "LOG" => Self::InfoLog,
            "LOG.old" => Self::OldInfoLog,
            _ => Self::parse_numbered(name)?,
        };
        (kind.to_string() == name).then_some(kind)
    }

    /// The number in the name.
    pub(crate) fn number(self) -> Option<FileNumber> {
        match self {
            Self::Table(number)
            | Self::OldTable(number)
            | Self::Log(number)
            | Self::Manifest(number)
            | Self::Temporary(number) => Some(number),
            Self::Current | Self::Lock | Self::InfoLog | Self::OldInfoLog => None,
        }
    }

    /// The path of this file of the database in `directory`.
    pub(crate) fn path(self, directory: &Path) -> PathBuf {
        directory.join(self.to_string())
    }

    fn parse_numbered(name: &str) -> Option<Self> {
        if let Some(digits) = name.strip_prefix("MANIFEST-") {
            return digits.parse().ok().map(|number| Self::Manifest(FileNumber(number)));
        }
        let (digits, suffix) = name.split_once('.')?;
        let number = FileNumber(digits.parse().ok()?);
        match suffix {
            "ldb" => Some(Self::Table(number)),
            "sst" => Some(Self::OldTable(number)),
            "log" => Some(Self::Log(number)),
            "dbtmp" => Some(Self::Temporary(number)),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(number) => write!(f, "{number}.ldb"),
            Self::OldTable(number) => write!(f, "{number}.sst"),
            Self::Log(number) => write!(f, "{number}.log"),
            Self::Manifest(number) => write!(f, "MANIFEST-{number}"),
            Self::Temporary(number) => write!(f, "{number}.dbtmp"),
            Self::Current => f.write_str("CURRENT"),
            Self::Lock => f.write_str("LOCK"),
            Self::InfoLog => f.write_str("LOG"),
            Self::OldInfoLog => f.write_str("LOG.old"),
        }
    }
}

/// What CURRENT holds when `manifest` is in use.
pub(crate) fn current_content(manifest: FileNumber) -> String {
    format!("{}\n", FileKind::Manifest(manifest))
}

/// The manifest that CURRENT names, or what is wrong with its content.
pub(crate) fn parse_current(content: &[u8]) -> Result<FileNumber, String> {
    let name = content.strip_suffix(b"\n").and_then(|name| str::from_utf8(name).ok());
    match name.and_then(FileKind::parse) {
        Some(FileKind::Manifest(number)) => Ok(number),
        _ => {
            let shown = &content[..content.len().min(64)];
            Err(format!(
                "it must hold the name of one manifest and a newline, as in \"MANIFEST-000002\\n\"; \
                 it holds {} bytes: \"{}\"",
                content.len(),
                shown.escape_ascii()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_and_parsed_alike() {
        let five = FileNumber(5);
        for (name, kind) in [
            ("000005.ldb", FileKind::Table(five)),
            ("000005.sst", FileKind::OldTable(five)),
            ("000005.log", FileKind::Log(five)),
            ("MANIFEST-000005", FileKind::Manifest(five)),
            ("000005.dbtmp", FileKind::Temporary(five)),
            ("18446744073709551615.ldb", FileKind::Table(FileNumber(u64::MAX))),
            ("CURRENT", FileKind::Current),
            ("LOCK", FileKind::Lock),
            ("LOG", FileKind::InfoLog),
            ("LOG.old", FileKind::OldInfoLog),
        ] {
            assert_eq!(FileKind::parse(name), Some(kind), "{name}");
            assert_eq!(kind.to_string(), name);
        }
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in [
            "",
            "5.ldb",
            "0000005.ldb",
            "+00005.ldb",
            "000005.LDB",
            "000005.ldb.bak",
            "000005",
            ".ldb",
            "-00005.log",
            "MANIFEST-",
            "MANIFEST-5",
            "MANIFEST-000005.tmp",
            "current",
            "18446744073709551616.ldb",
            "000005.ldb\n",
            "../000005.ldb",
            "LOG.older",
        ] {
            assert_eq!(FileKind::parse(name), None, "{name:?}");
        }
    }

    #[test]
    fn current_must_hold_one_manifest_and_a_newline() {
        assert_eq!(current_content(FileNumber(2)), "MANIFEST-000002\n");
        assert_eq!(parse_current(b"MANIFEST-000002\n"), Ok(FileNumber(2)));
        for wrong in [
            &b""[..],
            b"\n",
            b"MANIFEST-000002",
            b"MANIFEST-000002\n\n",
            b"MANIFEST-000002\r\n",
            b"MANIFEST-000002\nMANIFEST-000002\n",
            b"../MANIFEST-000002\n",
            b"000002.log\n",
            &[0; 16],
            b"MANIFEST-\xff\n",
            b" MANIFEST-000002\n",
        ] {
            let problem = parse_current(wrong).unwrap_err();
            assert!(problem.contains(&format!("{} bytes", wrong.len())), "{problem}");
        }
    }
}
