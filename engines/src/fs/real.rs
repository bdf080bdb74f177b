//! The operating system's file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::{Access, Create, Entry, FileSystem, LockGuard, ReadFile, WriteFile, map};
use crate::{Error, Result};

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl FileSystem for RealFs {
    fn create_directory(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).map_err(Error::io("create directory", directory))
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>> {
        for _ in 0..LISTINGS_MAX {
            let (entries, complete) = self.list_once(directory)?;
            if complete {
                return Ok(entries);
            }
        }
        Ok(self.list_once(directory)?.0)
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Entry {
                path: path.to_path_buf(),
                is_directory: metadata.is_dir(),
                length: metadata.len(),
                mode: mode(&metadata),
                identity: identity(&metadata),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("look at", path)(error)),
        }
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn ReadFile>> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let mapping = match access {
            Access::Positioned => None,
            Access::Mapped | Access::MappedSoFar => {
                let length = file.metadata().map_err(Error::io("look at", path))?.len();
                // An empty file cannot be mapped, a large one not in a 32-bit address space:
                // positioned reads serve both.
                usize::try_from(length)
                    .ok()
                    .filter(|length| *length > 0)
                    .and_then(|length| map::map(&file, length).ok())
            }
        };
        // A mapping outlives the descriptor it was made with. There may be thousands of files.
        let source = match mapping {
            Some(mapping) if access == Access::Mapped => Source::Mapping(mapping),
            mapping => Source::Descriptor { file, mapping },
        };
        Ok(Arc::new(RealReadFile { path: path.to_path_buf(), source }))
    }

    fn create(&self, path: &Path, create: Create) -> Result<Arc<dyn WriteFile>> {
        let mut options = OpenOptions::new();
        options.write(true);
        match create {
            Create::New => options.create_new(true),
            Create::Replace => options.create(true).truncate(true),
        };
        let file = not_by_link(&mut options).open(path).map_err(Error::io("create", path))?;
        Ok(Arc::new(RealWriteFile { path: path.to_path_buf(), file }))
    }

    fn open_for_write(&self, path: &Path) -> Result<Arc<dyn WriteFile>> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(Error::io("open for writing", path))?;
        Ok(Arc::new(RealWriteFile { path: path.to_path_buf(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(Error::io("rename", from))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(Error::io("link", to))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(Error::io("remove", path))
    }

    #[cfg(unix)]
    fn set_mode(&self, path: &Path, mode: u32) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(Error::io("change the mode of", path))
    }

    #[cfg(not(unix))]
    fn set_mode(&self, _path: &Path, _mode: u32) -> Result<()> {
        Ok(())
    }

    #[cfg(unix)]
    fn sync_directory(&self, directory: &Path) -> Result<()> {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(Error::io("sync directory", directory))
    }

    #[cfg(not(unix))]
    fn sync_directory(&self, _directory: &Path) -> Result<()> {
        // Directories cannot be opened as files; the file system orders names itself.
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Option<Box<dyn LockGuard>>> {
        Ok(RealLock::take(path)?.map(|lock| Box::new(lock) as Box<dyn LockGuard>))
    }
}

/// How often a directory is listed again because a file in it went away meanwhile.
const LISTINGS_MAX: usize = 1_000;

impl RealFs {
    /// Lists a directory, and says whether every file could be looked at.
    ///
    /// If not, the files that were looked at are those of no moment: one may be gone, and what came
    /// in its place was not listed yet. All names come first, because Linux gives some hundred of
    /// them in one call, during which nothing in the directory changes.
    fn list_once(&self, directory: &Path) -> Result<(Vec<Entry>, bool)> {
        let names: Vec<_> = fs::read_dir(directory)
            .and_then(Iterator::collect)
            .map_err(Error::io("list directory", directory))?;
        let mut entries = Vec::with_capacity(names.len());
        for name in &names {
            entries.extend(self.entry(&name.path())?);
        }
        let complete = entries.len() == names.len();
        Ok((entries, complete))
    }
}

/// What is written anew must not be another's file, to which somebody laid a symbolic link.
#[cfg(unix)]
fn not_by_link(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    options.custom_flags(flags.cast_signed())
}

#[cfg(not(unix))]
fn not_by_link(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// LevelDB itself locks with POSIX record locks, which do not see the lock that `File::try_lock`
/// takes: take both, so that neither opens what the other has open.
#[cfg(unix)]
fn lock_against_originals(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use rustix::io::Errno;
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn lock_against_originals(_file: &File) -> io::Result<bool> {
    Ok(true)
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode()
}

#[cfg(not(unix))]
fn mode(_metadata: &fs::Metadata) -> u32 {
    0
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn identity(_metadata: &fs::Metadata) -> u64 {
    0
}

#[derive(Debug)]
struct RealReadFile {
    path: PathBuf,
    source: Source,
}

/// Where the bytes of a file come from.
#[derive(Debug)]
enum Source {
    /// The whole file.
    Mapping(Mmap),
    /// The mapping, if there is one, holds the start of the file.
    Descriptor { file: File, mapping: Option<Mmap> },
}

impl RealReadFile {
    fn mapped(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let mapping = match &self.source {
            Source::Mapping(mapping) => mapping,
            Source::Descriptor { mapping, .. } => mapping.as_ref()?,
        };
        let start = usize::try_from(offset).ok()?;
        mapping.get(start..start.checked_add(length)?)
    }
}

impl ReadFile for RealReadFile {
    fn length(&self) -> Result<u64> {
        match &self.source {
            Source::Mapping(mapping) => Ok(mapping.len() as u64),
            Source::Descriptor { file, .. } => {
                Ok(file.metadata().map_err(Error::io("look at", &self.path))?.len())
            }
        }
    }

    fn read_at<'a>(
        &'a self,
        offset: u64,
        length: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        if let Some(bytes) = self.mapped(offset, length) {
            return Ok(bytes);
        }
        let too_short = || ends_early(&self.path, offset, length);
        let Source::Descriptor { file, .. } = &self.source else { return Err(too_short()) };
        if length > scratch.capacity() {
            // Only a read that would allocate asks for the file's length first.
            let end = offset.checked_add(length as u64);
            if end.is_none_or(|end| self.length().is_ok_and(|file_length| end > file_length)) {
                return Err(too_short());
            }
        }
        scratch.resize(length, 0);
        match read_exact_at(file, scratch, offset) {
            Ok(()) => Ok(scratch),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(too_short()),
            Err(error) => Err(Error::io("read", &self.path)(error)),
        }
    }
}

/// The error of a read past the end of a file.
pub(super) fn ends_early(path: &Path, offset: u64, length: usize) -> Error {
    Error::corruption(path, offset, format!("the file ends before {length} bytes could be read"))
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[derive(Debug)]
struct RealWriteFile {
    path: PathBuf,
    file: File,
}

impl WriteFile for RealWriteFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        write_all_at(&self.file, bytes, offset).map_err(Error::io("write", &self.path))
    }

    #[cfg(target_os = "linux")]
    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let fail = || Error::io("write", &self.path);
        let mut written =
            rustix::io::retry_on_intr(|| rustix::io::pwritev(&self.file, parts, offset))
                .map_err(|error| fail()(error.into()))?;
        if written == total {
            return Ok(());
        }
        // The system took a part of it: the rest goes piece by piece.
        let mut at = offset + written as u64;
        for part in parts {
            let skip = written.min(part.len());
            written -= skip;
            self.write_at(at, &part[skip..])?;
            at += (part.len() - skip) as u64;
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn write_parts_at(&self, offset: u64, parts: &[IoSlice<'_>]) -> Result<()> {
        self.write_at(
            offset,
            &parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<_>>(),
        )
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, length: u64) {
        // Best effort: a file system without it only loses the speed, and a full disk is reported
        // by the write itself.
        let _ = rustix::fs::fallocate(
            &self.file,
            rustix::fs::FallocateFlags::KEEP_SIZE,
            offset,
            length,
        );
    }

    #[cfg(not(target_os = "linux"))]
    fn reserve(&self, _offset: u64, _length: u64) {}

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(Error::io("truncate", &self.path))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("sync", &self.path))
    }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[derive(Debug)]
struct RealLock(RealWriteFile);

impl RealLock {
    /// `None` if somebody has it.
    fn take(path: &Path) -> Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file =
            not_by_link(&mut options).open(path).map_err(Error::io("open lock file", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path)(error)),
        }
        if !lock_against_originals(&file).map_err(Error::io("lock", path))? {
            return Ok(None);
        }
        Ok(Some(Self(RealWriteFile { path: path.to_path_buf(), file })))
    }
}

impl Drop for RealLock {
    /// A child process that is just being started has copies of our descriptors until it executes
    /// its program, and closing ours would leave the lock to that copy.
    fn drop(&mut self) {
        let _ = self.0.file.unlock();
    }
}

impl LockGuard for RealLock {
    fn write_content(&self, content: &[u8]) -> Result<()> {
        self.0.truncate(0)?;
        self.0.write_at(0, content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LOCK");
        let guard = RealFs.lock(&path).unwrap().expect("free");
        assert!(RealFs.lock(&path).unwrap().is_none());
        drop(guard);
        assert!(RealFs.lock(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_ends_with_its_guard_though_a_copy_of_the_descriptor_lives_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("LOCK");
        let guard = RealLock::take(&path).unwrap().expect("free");
        let copy = guard.0.file.try_clone().unwrap();
        assert!(RealFs.lock(&path).unwrap().is_none());
        drop(guard);
        assert!(RealFs.lock(&path).unwrap().is_some());
        drop(copy);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_link_leads_to_is_neither_locked_nor_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let [link, precious] = ["link", "precious"].map(|name| directory.path().join(name));
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(matches!(RealFs.lock(&link), Err(Error::Io { .. })));
        for create in [Create::New, Create::Replace] {
            assert!(matches!(RealFs.create(&link, create), Err(Error::Io { .. })));
        }
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn a_read_past_the_end_is_refused_before_memory_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("short");
        RealFs.create(&path, Create::New).unwrap().write_at(0, b"12345").unwrap();
        for access in [Access::Positioned, Access::Mapped, Access::MappedSoFar] {
            let file = RealFs.open(&path, access).unwrap();
            assert_eq!(file.length().unwrap(), 5);
            let mut scratch = Vec::new();
            assert_eq!(file.read_at(1, 4, &mut scratch).unwrap(), b"2345");
            for (offset, length) in [(0, 6), (5, 1), (u64::MAX, 2), (0, usize::MAX)] {
                let mut scratch = Vec::new();
                assert!(file.read_at(offset, length, &mut scratch).unwrap_err().is_corruption());
                assert_eq!(scratch.capacity(), 0);
            }
        }
    }

    #[test]
    fn a_file_mapped_so_far_is_read_to_the_end_that_it_grew_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("grows");
        let writer = RealFs.create(&path, Create::New).unwrap();
        writer.write_at(0, b"12345").unwrap();
        let file = RealFs.open(&path, Access::MappedSoFar).unwrap();
        writer.write_at(5, b"678").unwrap();
        assert_eq!(file.length().unwrap(), 8);
        assert_eq!(file.read_at(4, 4, &mut Vec::new()).unwrap(), b"5678");
        assert!(file.read_at(4, 5, &mut Vec::new()).unwrap_err().is_corruption());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mapped_file_takes_no_descriptor_and_is_read_after_its_removal() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sealed");
        RealFs.create(&path, Create::New).unwrap().write_at(0, b"12345").unwrap();
        let is_open = || {
            let descriptors = fs::read_dir("/proc/self/fd").unwrap();
            descriptors
                .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
                .any(|target| target.starts_with(directory.path()))
        };
        let positioned = RealFs.open(&path, Access::Positioned).unwrap();
        assert!(is_open());
        drop(positioned);
        let mapped = RealFs.open(&path, Access::Mapped).unwrap();
        assert!(!is_open());
        fs::remove_file(&path).unwrap();
        assert_eq!(mapped.read_at(1, 4, &mut Vec::new()).unwrap(), b"2345");
    }

    #[test]
    fn reserved_space_does_not_show_and_parts_follow_one_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = RealFs.create(&path, Create::New).unwrap();
        file.reserve(0, 1 << 20);
        file.write_parts_at(0, &[IoSlice::new(b"one"), IoSlice::new(b""), IoSlice::new(b"two")])
            .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
    }
}
