//! The functions of the C interface that LevelDB and RocksDB share, loaded by name.
//!
//! # Invariants
//! - The signatures are those of the two `c.h`: the same in LevelDB since 1.18 and in RocksDB since
//!   7.6, except for what [`Own`] keeps apart. A library without one of the symbols is not used;
//!   `rocksdb_options_set_manual_wal_flush` keeps out RocksDB before 7, where a Bloom filter took
//!   its bits as an integer.
//! - A library is never unloaded, so its functions live as long as the process.
#![expect(unsafe_code, reason = "functions of a C interface; see the invariants above")]

use std::ffi::{CStr, OsStr, c_char, c_double, c_int, c_uchar, c_void};
use std::ptr::{self, NonNull};

/// An object of the library, of whatever type.
pub(super) type Object = *mut c_void;
/// Where a call leaves the text of its error, which the caller frees.
pub(super) type Text = *mut *mut c_char;

macro_rules! functions {
    ($table:ident, $($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[doc = "Functions by their names without the prefix."]
        pub(super) struct $table {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl $table {
            fn load(library: &libloading::Library, prefix: &str) -> Result<Self, String> {
                Ok(Self {
                    $($name: {
                        let symbol = format!("{prefix}_{}", stringify!($name));
                        // SAFETY: the signature is the library's; see the module's invariants.
                        *unsafe { library.get(symbol.as_bytes()) }
                            .map_err(|_| format!("it lacks the symbol {symbol}"))?
                    },)*
                })
            }
        }
    };
}

functions! { Common,
    open(Object, *const c_char, Text) -> Object;
    close(Object);
    put(Object, Object, *const c_char, usize, *const c_char, usize, Text);
    delete(Object, Object, *const c_char, usize, Text);
    write(Object, Object, Object, Text);
    free(Object);
    property_value(Object, *const c_char) -> *mut c_char;
    compact_range(Object, *const c_char, usize, *const c_char, usize);
    create_iterator(Object, Object) -> Object;
    iter_destroy(Object);
    iter_valid(Object) -> c_uchar;
    iter_seek_to_first(Object);
    iter_seek_to_last(Object);
    iter_seek(Object, *const c_char, usize);
    iter_next(Object);
    iter_prev(Object);
    iter_key(Object, *mut usize) -> *const c_char;
    iter_value(Object, *mut usize) -> *const c_char;
    iter_get_error(Object, Text);
    writebatch_create() -> Object;
    writebatch_destroy(Object);
    writebatch_put(Object, *const c_char, usize, *const c_char, usize);
    writebatch_delete(Object, *const c_char, usize);
    options_create() -> Object;
    options_destroy(Object);
    options_set_create_if_missing(Object, c_uchar);
    options_set_write_buffer_size(Object, usize);
    options_set_compression(Object, c_int);
    readoptions_create() -> Object;
    readoptions_destroy(Object);
    writeoptions_create() -> Object;
    writeoptions_destroy(Object);
    writeoptions_set_sync(Object, c_uchar);
    cache_create_lru(usize) -> Object;
    cache_destroy(Object);
}

functions! { LevelDb,
    get(Object, Object, *const c_char, usize, *mut usize, Text) -> *mut c_char;
    options_set_cache(Object, Object);
    options_set_filter_policy(Object, Object);
    filterpolicy_create_bloom(c_int) -> Object;
    filterpolicy_destroy(Object);
    major_version() -> c_int;
    minor_version() -> c_int;
}

functions! { RocksDb,
    get_pinned(Object, Object, *const c_char, usize, Text) -> Object;
    pinnableslice_value(Object, *mut usize) -> *const c_char;
    pinnableslice_destroy(Object);
    block_based_options_create() -> Object;
    block_based_options_destroy(Object);
    block_based_options_set_block_cache(Object, Object);
    block_based_options_set_filter_policy(Object, Object);
    filterpolicy_create_bloom(c_double) -> Object;
    options_set_block_based_table_factory(Object, Object);
    options_increase_parallelism(Object, c_int);
    options_set_compression_options(Object, c_int, c_int, c_int, c_int);
    options_set_manual_wal_flush(Object, c_uchar);
    flush_wal(Object, c_uchar, Text);
    property_int(Object, *const c_char, *mut u64) -> c_int;
}

// What our own engine is compared with in its tests.
#[cfg(test)]
functions! { LevelDbExtra,
    approximate_sizes(
        Object, c_int, *const *const c_char, *const usize, *const *const c_char, *const usize,
        *mut u64
    );
    repair_db(Object, *const c_char, Text);
}

#[cfg(test)]
impl LevelDbExtra {
    /// From the library that was loaded as `file`.
    pub(super) fn of(file: &OsStr) -> Self {
        // SAFETY: the library is loaded already and stays so.
        let library = unsafe { libloading::Library::new(file) }.expect("it is loaded");
        let extra = Self::load(&library, "leveldb").expect("every LevelDB has them");
        std::mem::forget(library);
        extra
    }
}

/// The functions of a library.
pub(super) struct Api {
    pub(super) common: Common,
    pub(super) own: Own,
}

/// What only one of the two has, or has in another shape.
pub(super) enum Own {
    LevelDb(LevelDb),
    RocksDb(RocksDb),
}

impl Api {
    /// Loads a library by path, or by a name that the system resolves.
    pub(super) fn load(file: &OsStr, prefix: &str) -> Result<Self, String> {
        // SAFETY: loading runs the library's initializers; LevelDB's and RocksDB's are harmless,
        // and another file was named by the user to be run.
        let library =
            unsafe { libloading::Library::new(file) }.map_err(|error| error.to_string())?;
        let common = Common::load(&library, prefix)?;
        let own = match prefix {
            "rocksdb" => Own::RocksDb(RocksDb::load(&library, prefix)?),
            _ => Own::LevelDb(LevelDb::load(&library, prefix)?),
        };
        std::mem::forget(library);
        Ok(Self { common, own })
    }

    /// The version that LevelDB tells of itself.
    pub(super) fn version(&self) -> Option<(i32, i32)> {
        match &self.own {
            // SAFETY: the functions take nothing and read constants.
            Own::LevelDb(own) => Some(unsafe { ((own.major_version)(), (own.minor_version)()) }),
            Own::RocksDb(_) => None,
        }
    }

    /// Runs a call that reports an error as a text which the caller frees.
    pub(super) fn checked<T>(&self, call: impl FnOnce(Text) -> T) -> Result<T, String> {
        let mut error = ptr::null_mut();
        let result = call(&mut error);
        match self.take_text(error) {
            Some(message) => Err(message),
            None => Ok(result),
        }
    }

    /// Copies and frees a text of the library; `None` for null.
    pub(super) fn take_text(&self, text: *mut c_char) -> Option<String> {
        let text = NonNull::new(text)?;
        // SAFETY: the library gave a C string away; it is copied, then freed by its allocator.
        unsafe {
            let copy = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
            (self.common.free)(text.as_ptr().cast());
            Some(copy)
        }
    }
}
