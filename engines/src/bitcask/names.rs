//! The names of the files in a Bitcask directory, made and parsed here only.
//!
//! ```text
//! <id>.bitcask.data               a data file; ids are decimal and grow with time
//! <id>.bitcask.hint               the keydir image of the data file with that id
//! <id>.bitcask.data.tmp           a merge output that is not finished: worthless after a crash
//! <id>.bitcask.hint.tmp           a hint file that is not finished: worthless after a crash
//! <id>.bitcask.data.<offset>.cut  what opening cut off a data file, for a person to look at
//! bitcask.write.lock              who has the directory open for writing
//! bitcask.merge.lock              who merges
//! ```
//! The temporary names and that of the cut are ours. Basho's Bitcask takes a name apart at its dots
//! and wants exactly three parts, so it does not see them.

use std::path::{Path, PathBuf};

/// The number of a data file. Files load in ascending order, and the later record of a key wins.
pub(super) type FileId = u32;

/// The lock of the writer.
pub(super) const WRITE_LOCK: &str = "bitcask.write.lock";

/// The lock of whoever merges.
pub(super) const MERGE_LOCK: &str = "bitcask.merge.lock";

/// What a file in the directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Data(FileId),
    Hint(FileId),
    /// An unfinished data or hint file.
    Temporary(FileId),
    /// What was cut off a data file.
    SetAside(FileId),
}

impl Name {
    /// The id in the name.
    pub(super) fn id(self) -> FileId {
        let (Self::Data(id) | Self::Hint(id) | Self::Temporary(id) | Self::SetAside(id)) = self;
        id
    }

    /// What `name` says; `None` for files that are not the engine's.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (digits, suffix) = name.split_once('.')?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let id: FileId = digits.parse().ok()?;
        // Only what is made here is ours: `01` beside `1` would be the same file twice.
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        match suffix {
            "bitcask.data" => Some(Self::Data(id)),
            "bitcask.hint" => Some(Self::Hint(id)),
            "bitcask.data.tmp" | "bitcask.hint.tmp" => Some(Self::Temporary(id)),
            _ => {
                let offset = suffix.strip_prefix("bitcask.data.")?.strip_suffix(".cut")?;
                offset.parse::<u64>().is_ok().then_some(Self::SetAside(id))
            }
        }
    }
}

pub(super) fn data(directory: &Path, id: FileId) -> PathBuf {
    directory.join(format!("{id}.bitcask.data"))
}

pub(super) fn hint(directory: &Path, id: FileId) -> PathBuf {
    directory.join(format!("{id}.bitcask.hint"))
}

pub(super) fn temporary_data(directory: &Path, id: FileId) -> PathBuf {
    directory.join(format!("{id}.bitcask.data.tmp"))
}

pub(super) fn temporary_hint(directory: &Path, id: FileId) -> PathBuf {
    directory.join(format!("{id}.bitcask.hint.tmp"))
}

pub(super) fn set_aside(directory: &Path, id: FileId, offset: u64) -> PathBuf {
    directory.join(format!("{id}.bitcask.data.{offset}.cut"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_they_are_made() {
        let directory = Path::new("d");
        for (path, name) in [
            (data(directory, 7), Name::Data(7)),
            (hint(directory, u32::MAX), Name::Hint(u32::MAX)),
            (temporary_data(directory, 0), Name::Temporary(0)),
            (temporary_hint(directory, 1), Name::Temporary(1)),
            (set_aside(directory, 2, u64::MAX), Name::SetAside(2)),
        ] {
            assert_eq!(Name::parse(path.file_name().unwrap().to_str().unwrap()), Some(name));
        }
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in [
            WRITE_LOCK,
            MERGE_LOCK,
            "bitcask.create.lock",
            "x.bitcask.data",
            ".bitcask.data",
            "+1.bitcask.data",
            "01.bitcask.data",
            "00.bitcask.hint",
            "1.bitcask.data.bak",
            "1.bitcask",
            "1.bitcask.data.cut",
            "1.bitcask.data.x.cut",
            "4294967296.bitcask.data",
        ] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
    }
}
