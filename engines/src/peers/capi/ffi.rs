//! Safe wrappers around the C interface: this file and `api` hold all its unsafe code.
//!
//! # Invariants
//! Beside those of `api`:
//! - Every object is made and freed here, once, by the type that owns it, and used only while that
//!   lives: [`Db`] frees its options, cache and filter after the database, [`Iter`] borrows its
//!   [`Db`].
//! - Bytes that the library lends (values, keys of an iterator) are used only until the next call
//!   on the object that lent them; the borrow checker is told so by `&self` and `&mut self`.
//! - Both libraries allow any number of threads on one database; an iterator and a batch stay
//!   with the thread that made them.
#![expect(unsafe_code, reason = "a C interface; see the invariants above")]

use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::slice;

use super::api::{Api, Object, Own};
use super::library::Library;
use crate::{Batch, Operation};

/// What a database is opened with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) create: bool,
    pub(super) write_buffer_bytes: usize,
    pub(super) cache_bytes: usize,
    pub(super) bloom_bits: i32,
    /// The number that the library has for it.
    pub(super) compression: i32,
    /// RocksDB only.
    pub(super) compression_level: Option<i32>,
    /// RocksDB only: how many threads work in the background.
    pub(super) threads: i32,
    /// RocksDB only: the log waits in the process until [`Db::flush_log`].
    pub(super) manual_log_flush: bool,
    /// Each write is synced.
    pub(super) sync: bool,
}

/// An open database.
pub(super) struct Db {
    library: &'static Library,
    db: Object,
    read_options: Object,
    write_options: Object,
    parts: Parts,
}

// SAFETY: both libraries document their database, and options that nobody changes, as usable by
// any number of threads at once.
unsafe impl Send for Db {}
// SAFETY: as above.
unsafe impl Sync for Db {}

/// What the options point to, freed after the database.
struct Parts {
    options: Object,
    cache: Object,
    /// LevelDB only: RocksDB's table options take the filter over.
    filter: Object,
}

impl Db {
    pub(super) fn open(
        library: &'static Library,
        directory: &Path,
        settings: Settings,
    ) -> Result<Self, String> {
        let api = &library.api;
        let path = CString::new(directory.as_os_str().as_encoded_bytes())
            .map_err(|_| "a path with a zero byte".to_owned())?;
        let parts = Parts::new(api, settings);
        // SAFETY: the options and the path live across the call.
        let opened =
            api.checked(|error| unsafe { (api.common.open)(parts.options, path.as_ptr(), error) });
        let db = match opened {
            Ok(db) => db,
            Err(message) => {
                parts.free(api);
                return Err(message);
            }
        };
        // SAFETY: plain constructors; `write_options` is ours.
        unsafe {
            let write_options = (api.common.writeoptions_create)();
            (api.common.writeoptions_set_sync)(write_options, settings.sync.into());
            let read_options = (api.common.readoptions_create)();
            Ok(Self { library, db, read_options, write_options, parts })
        }
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let (api, (key, key_length), (value, value_length)) = (self.api(), raw(key), raw(value));
        // SAFETY: the library copies key and value during the call.
        api.checked(|error| unsafe {
            let options = self.write_options;
            (api.common.put)(self.db, options, key, key_length, value, value_length, error);
        })
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<(), String> {
        let (api, (key, length)) = (self.api(), raw(key));
        // SAFETY: the library copies the key during the call.
        api.checked(|error| unsafe {
            (api.common.delete)(self.db, self.write_options, key, length, error);
        })
    }

    pub(super) fn write(&self, batch: &Batch) -> Result<(), String> {
        let api = self.api();
        // SAFETY: the library copies keys and values into its batch, which lives until destroyed.
        unsafe {
            let writes = (api.common.writebatch_create)();
            for operation in batch.iter() {
                let (key, length) = raw(operation.key());
                match operation {
                    Operation::Put { value, .. } => {
                        let (value, value_length) = raw(value);
                        (api.common.writebatch_put)(writes, key, length, value, value_length);
                    }
                    Operation::Delete { .. } => {
                        (api.common.writebatch_delete)(writes, key, length);
                    }
                }
            }
            let options = self.write_options;
            let result = api.checked(|error| (api.common.write)(self.db, options, writes, error));
            (api.common.writebatch_destroy)(writes);
            result
        }
    }

    /// Lends the value: RocksDB's out of its cache, LevelDB's out of a copy that its interface
    /// makes.
    pub(super) fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, String> {
        let (api, (key, key_length)) = (self.api(), raw(key));
        let mut length = 0;
        match &api.own {
            Own::LevelDb(own) => {
                // SAFETY: the value is the caller's, `length` bytes, until freed.
                let value = api.checked(|error| unsafe {
                    (own.get)(self.db, self.read_options, key, key_length, &mut length, error)
                })?;
                let value = Owned { pointer: value.cast(), free: api.common.free };
                Ok(value.lend(value.pointer.cast(), length, read))
            }
            Own::RocksDb(own) => {
                // SAFETY: the slice is pinned, and its bytes lent, until it is destroyed.
                let slice = api.checked(|error| unsafe {
                    (own.get_pinned)(self.db, self.read_options, key, key_length, error)
                })?;
                let slice = Owned { pointer: slice, free: own.pinnableslice_destroy };
                // SAFETY: as above; the function accepts null and answers null.
                let value = unsafe { (own.pinnableslice_value)(slice.pointer, &mut length) };
                Ok(slice.lend(value, length, read))
            }
        }
    }

    /// An iterator over the records of this moment, standing nowhere.
    pub(super) fn iter(&self) -> Iter<'_> {
        let api = self.api();
        // SAFETY: the database outlives the iterator, which borrows it.
        let iterator = unsafe { (api.common.create_iterator)(self.db, self.read_options) };
        Iter { api, iterator, _database: PhantomData }
    }

    /// A property as text; `None` if the library does not know it.
    pub(super) fn property(&self, name: &CStr) -> Option<String> {
        let api = self.api();
        // SAFETY: the text is the caller's; `take_text` frees it.
        api.take_text(unsafe { (api.common.property_value)(self.db, name.as_ptr()) })
    }

    /// RocksDB's properties that are numbers.
    pub(super) fn number(&self, name: &CStr) -> Option<u64> {
        let Own::RocksDb(own) = &self.api().own else { return None };
        let mut number = 0;
        // SAFETY: the function writes one u64.
        let status = unsafe { (own.property_int)(self.db, name.as_ptr(), &mut number) };
        (status == 0).then_some(number)
    }

    /// Compacts everything; returns when that is done.
    pub(super) fn compact_all(&self) {
        // SAFETY: null bounds mean from the first to the last key.
        unsafe { (self.api().common.compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) }
    }

    /// Hands RocksDB's log to the system, and to the disk if `sync`. Nothing to do for LevelDB,
    /// whose log does not wait in the process.
    pub(super) fn flush_log(&self, sync: bool) -> Result<(), String> {
        let api = self.api();
        let Own::RocksDb(own) = &api.own else { return Ok(()) };
        // SAFETY: a call on an open database.
        api.checked(|error| unsafe { (own.flush_wal)(self.db, sync.into(), error) })
    }

    fn api(&self) -> &'static Api {
        &self.library.api
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        let api = self.api();
        // SAFETY: each is freed once, what the database points to after the database.
        unsafe {
            (api.common.close)(self.db);
            (api.common.readoptions_destroy)(self.read_options);
            (api.common.writeoptions_destroy)(self.write_options);
        }
        self.parts.free(api);
    }
}

impl Parts {
    fn new(api: &Api, settings: Settings) -> Self {
        let common = &api.common;
        // SAFETY: plain constructors and setters on the objects they made.
        unsafe {
            let options = (common.options_create)();
            (common.options_set_create_if_missing)(options, settings.create.into());
            (common.options_set_write_buffer_size)(options, settings.write_buffer_bytes);
            (common.options_set_compression)(options, settings.compression);
            let cache = (common.cache_create_lru)(settings.cache_bytes);
            let filter = match &api.own {
                Own::LevelDb(own) => {
                    let filter = (own.filterpolicy_create_bloom)(settings.bloom_bits);
                    (own.options_set_cache)(options, cache);
                    (own.options_set_filter_policy)(options, filter);
                    filter
                }
                Own::RocksDb(own) => {
                    let table = (own.block_based_options_create)();
                    let filter = (own.filterpolicy_create_bloom)(settings.bloom_bits.into());
                    (own.block_based_options_set_block_cache)(table, cache);
                    (own.block_based_options_set_filter_policy)(table, filter);
                    (own.options_set_block_based_table_factory)(options, table);
                    (own.block_based_options_destroy)(table);
                    (own.options_increase_parallelism)(options, settings.threads);
                    let manual = settings.manual_log_flush.into();
                    (own.options_set_manual_wal_flush)(options, manual);
                    if let Some(level) = settings.compression_level {
                        // Window and strategy as by default, no dictionary.
                        (own.options_set_compression_options)(options, -14, level, 0, 0);
                    }
                    ptr::null_mut()
                }
            };
            Self { options, cache, filter }
        }
    }

    fn free(&self, api: &Api) {
        // SAFETY: called once, by whoever owns the parts, after the database is closed.
        unsafe {
            (api.common.options_destroy)(self.options);
            (api.common.cache_destroy)(self.cache);
            if let (Own::LevelDb(own), false) = (&api.own, self.filter.is_null()) {
                (own.filterpolicy_destroy)(self.filter);
            }
        }
    }
}

/// What LevelDB alone has, for the tests of our own engine.
#[cfg(test)]
impl Db {
    /// About how many bytes the records from each start up to each limit take in tables.
    pub(super) fn approximate_sizes(&self, ranges: &[(Vec<u8>, Vec<u8>)]) -> Vec<u64> {
        let extra = super::api::LevelDbExtra::of(self.library.file.as_ref());
        let (starts, start_lengths): (Vec<_>, Vec<_>) =
            ranges.iter().map(|(start, _)| raw(start)).unzip();
        let (limits, limit_lengths): (Vec<_>, Vec<_>) =
            ranges.iter().map(|(_, limit)| raw(limit)).unzip();
        let mut sizes = vec![0; ranges.len()];
        let count = i32::try_from(ranges.len()).expect("few ranges");
        // SAFETY: all arrays have `count` elements and live across the call.
        unsafe {
            (extra.approximate_sizes)(
                self.db,
                count,
                starts.as_ptr(),
                start_lengths.as_ptr(),
                limits.as_ptr(),
                limit_lengths.as_ptr(),
                sizes.as_mut_ptr(),
            );
        }
        sizes
    }

    /// LevelDB's own repair.
    pub(super) fn repair(library: &'static Library, directory: &Path, settings: Settings) {
        let api = &library.api;
        let extra = super::api::LevelDbExtra::of(library.file.as_ref());
        let path = CString::new(directory.as_os_str().as_encoded_bytes()).expect("no zero byte");
        let parts = Parts::new(api, settings);
        // SAFETY: the options and the path live across the call.
        let repaired =
            api.checked(|error| unsafe { (extra.repair_db)(parts.options, path.as_ptr(), error) });
        parts.free(api);
        repaired.expect("LevelDB repairs");
    }
}

/// An iterator; it stands on a record or nowhere.
pub(super) struct Iter<'db> {
    api: &'static Api,
    iterator: Object,
    _database: PhantomData<&'db Db>,
}

impl Iter<'_> {
    pub(super) fn seek_to_first(&mut self) {
        // SAFETY: the iterator is ours until dropped; so for the calls below.
        unsafe { (self.api.common.iter_seek_to_first)(self.iterator) }
    }

    pub(super) fn seek_to_last(&mut self) {
        // SAFETY: as above.
        unsafe { (self.api.common.iter_seek_to_last)(self.iterator) }
    }

    /// To the first key at or after `key`.
    pub(super) fn seek(&mut self, key: &[u8]) {
        let (key, length) = raw(key);
        // SAFETY: as above; the key is read during the call.
        unsafe { (self.api.common.iter_seek)(self.iterator, key, length) }
    }

    /// One on; only from a record.
    pub(super) fn next(&mut self) {
        if self.record().is_some() {
            // SAFETY: as above; the libraries ask for a valid iterator.
            unsafe { (self.api.common.iter_next)(self.iterator) }
        }
    }

    /// One back; only from a record.
    pub(super) fn prev(&mut self) {
        if self.record().is_some() {
            // SAFETY: as above.
            unsafe { (self.api.common.iter_prev)(self.iterator) }
        }
    }

    /// Key and value it stands on.
    pub(super) fn record(&self) -> Option<(&[u8], &[u8])> {
        let common = &self.api.common;
        // SAFETY: a valid iterator lends key and value until it moves, which takes `&mut self`.
        unsafe {
            if (common.iter_valid)(self.iterator) == 0 {
                return None;
            }
            let (mut key_length, mut value_length) = (0, 0);
            let key = (common.iter_key)(self.iterator, &mut key_length);
            let value = (common.iter_value)(self.iterator, &mut value_length);
            Some((bytes(key, key_length), bytes(value, value_length)))
        }
    }

    /// What stopped it, if not the end.
    pub(super) fn status(&self) -> Result<(), String> {
        // SAFETY: as above.
        self.api.checked(|error| unsafe {
            (self.api.common.iter_get_error)(self.iterator, error);
        })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once.
        unsafe { (self.api.common.iter_destroy)(self.iterator) }
    }
}

/// An object that is freed at the end of its scope, a panic in between or not.
struct Owned {
    pointer: Object,
    free: unsafe extern "C" fn(Object),
}

impl Owned {
    /// Lends `length` bytes that live as long as the object; null means that there are none.
    fn lend(&self, value: *const c_char, length: usize, read: &mut dyn FnMut(&[u8])) -> bool {
        if value.is_null() {
            return false;
        }
        // SAFETY: the caller passes what the library gave together with the object.
        read(unsafe { bytes(value, length) });
        true
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.pointer.is_null() {
            // SAFETY: freed once, by the function that belongs to it.
            unsafe { (self.free)(self.pointer) }
        }
    }
}

fn raw(bytes: &[u8]) -> (*const c_char, usize) {
    (bytes.as_ptr().cast(), bytes.len())
}

/// # Safety
/// `pointer` is null, or `length` bytes live there for `'a`.
unsafe fn bytes<'a>(pointer: *const c_char, length: usize) -> &'a [u8] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(pointer.cast(), length) }
}
