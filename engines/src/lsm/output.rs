//! A table on its way to disk, from a flush or a compaction.

use std::path::PathBuf;
use std::sync::Arc;

use super::core::Home;
use super::edit::TableInfo;
use super::filename::{FileKind, FileNumber};
use super::key::{EntryKind, ParsedKey};
use super::key_count::KeySketch;
use super::pace::Pace;
use super::table::{TableBuilder, TableOptions};
use super::version::TableFile;
use crate::Result;
use crate::fs::{Create, FileSystem, WriteFile};

/// A table being written. Dropped unfinished, it takes its file with it.
pub(crate) struct OutputTable<'a> {
    home: &'a Home,
    number: FileNumber,
    builder: TableBuilder,
    file: Arc<dyn WriteFile>,
    leftover: Leftover<'a>,
    last_user_key: Option<Vec<u8>>,
    is_clean: bool,
    keys: Option<KeySketch>,
}

impl<'a> OutputTable<'a> {
    pub(crate) fn create(home: &'a Home, number: FileNumber) -> Result<Self> {
        let path = home.path(FileKind::Table(number));
        let file = Pace::apply(home.pace.as_ref(), home.fs.create(&path, Create::New)?);
        let leftover = Leftover { fs: &*home.fs, path, is_kept: false };
        let options = &home.options;
        let filter_bits = u32::try_from(options.filter_bits).unwrap_or(u32::MAX);
        let options = TableOptions {
            block_size: options.block_bytes,
            restart_interval: options.restart_interval,
            compression: options.compression,
            filter_bits_per_key: Some(filter_bits).filter(|bits| *bits > 0),
            has_table_filter: true,
        };
        let builder = TableBuilder::new(Arc::clone(&file), options)?;
        Ok(Self {
            home,
            number,
            builder,
            file,
            leftover,
            last_user_key: None,
            is_clean: true,
            keys: None,
        })
    }

    /// The same, with a sketch of its keys.
    pub(crate) fn with_sketch(self) -> Self {
        Self { keys: Some(KeySketch::default()), ..self }
    }

    /// Adds an entry; `key` is `entry` as it is stored.
    pub(crate) fn add(&mut self, entry: &ParsedKey<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        self.is_clean &= entry.kind == EntryKind::Value && !self.ends_with(entry.user_key);
        if let Some(keys) = &mut self.keys {
            keys.add(entry.user_key);
        }
        let last = self.last_user_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(entry.user_key);
        self.builder.add(key, value)
    }

    /// Whether the last entry is one of `user_key`.
    pub(crate) fn ends_with(&self, user_key: &[u8]) -> bool {
        self.last_user_key.as_deref() == Some(user_key)
    }

    /// About the size on disk so far, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.builder.estimated_size()
    }

    /// Ends the table and makes its bytes survive power loss; its name does not yet.
    pub(crate) fn finish(mut self) -> Result<Arc<TableFile>> {
        let summary = self.builder.finish()?;
        self.file.sync()?;
        self.leftover.is_kept = true;
        let info = TableInfo {
            number: self.number,
            size: summary.file_size,
            smallest: summary.smallest,
            largest: summary.largest,
        };
        Ok(TableFile::written(info, self.is_clean, self.keys, self.home.disposal.clone()))
    }
}

/// A file that goes unless it is to be kept.
struct Leftover<'a> {
    fs: &'a dyn FileSystem,
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Leftover<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is found unreferenced by the next open.
            let _ = self.fs.remove(&self.path);
        }
    }
}
