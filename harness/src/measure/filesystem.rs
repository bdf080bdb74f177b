//! The file system that the data lie on: its name, whether it is one at all, and its free space.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its type, as the kernel calls it; empty where that cannot be told.
    pub kind: String,
    /// Its mount options; empty where they cannot be told.
    pub options: String,
    /// Whether files are kept in memory, so that nothing here says anything about a disk.
    pub in_memory: bool,
}

/// The file system of `directory`, which exists.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be looked at.
pub fn of(directory: &Path) -> Result<FileSystem> {
    let directory = directory.canonicalize().map_err(Error::io("look at", directory))?;
    let (kind, options) = mount(&directory).unwrap_or_default();
    Ok(FileSystem { kind, options, in_memory: is_in_memory(&directory)? })
}

/// The bytes that a user without privileges can still write in `directory`.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be looked at.
#[cfg(unix)]
pub fn free_bytes(directory: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|errno| Error::io("look at", directory)(errno.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The bytes that can still be written in `directory`.
///
/// # Errors
/// [`Error::Io`] if the directory cannot be looked at.
#[cfg(not(unix))]
pub fn free_bytes(directory: &Path) -> Result<u64> {
    let directory = directory.canonicalize().map_err(Error::io("look at", directory))?;
    Ok(of_disk(&directory, sysinfo::Disk::available_space).unwrap_or(u64::MAX))
}

#[cfg(target_os = "linux")]
fn is_in_memory(directory: &Path) -> Result<bool> {
    // The numbers by which Linux tells file systems apart, from linux/magic.h.
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let stat = rustix::fs::statfs(directory)
        .map_err(|errno| Error::io("look at", directory)(errno.into()))?;
    #[allow(clippy::unnecessary_cast, reason = "the width of the field differs between targets")]
    let magic = stat.f_type as i64 & 0xffff_ffff;
    Ok(magic == TMPFS || magic == RAMFS)
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(target_os = "linux")]
fn mount(directory: &Path) -> Option<(String, String)> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mount_in(&table, directory)
}

#[cfg(not(target_os = "linux"))]
fn mount(directory: &Path) -> Option<(String, String)> {
    of_disk(directory, |disk| (disk.file_system().to_string_lossy().into_owned(), String::new()))
}

/// Asks the disk that `directory` is on, where the system has no call of its own for it.
#[cfg(not(target_os = "linux"))]
fn of_disk<T>(directory: &Path, ask: impl FnOnce(&sysinfo::Disk) -> T) -> Option<T> {
    let disks = sysinfo::Disks::new_with_refreshed_list().ok()?;
    let mounted_above = disks.iter().filter(|disk| directory.starts_with(disk.mount_point()));
    mounted_above.max_by_key(|disk| disk.mount_point().as_os_str().len()).map(ask)
}

/// Finds the mount that `directory` is on in a table of Linux's mountinfo:
/// ```text
/// 36 35 98:0 /root-within /mount\040point rw,noatime shared:1 … - ext4 /dev/sda1 rw
/// ```
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn mount_in(table: &str, directory: &Path) -> Option<(String, String)> {
    let mut nearest: Option<(usize, (String, String))> = None;
    for line in table.lines() {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let (Some(point), Some(options)) = (left.get(4), left.get(5)) else { continue };
        let point = unescape(point);
        // The later of two mounts on one point is the one in use.
        if directory.starts_with(&point)
            && nearest.as_ref().is_none_or(|(length, _)| *length <= point.len())
        {
            let kind = right.split(' ').next().unwrap_or_default();
            nearest = Some((point.len(), (kind.to_owned(), (*options).to_owned())));
        }
    }
    nearest.map(|(_, found)| found)
}

/// Blanks and backslashes stand in the table as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                plain.push(escaped);
                rest = &after[3..];
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /dev/shm rw,nosuid shared:2 master:1 - tmpfs tmpfs rw,size=1g
31 22 8:1 /sub /mnt/my\\040disk rw,noatime - xfs /dev/sda1 rw
32 31 8:2 / /mnt/my\\040disk ro - btrfs /dev/sda2 rw
";

    #[test]
    fn the_nearest_and_latest_mount_is_found() {
        let find = |path: &str| mount_in(TABLE, Path::new(path)).unwrap();
        assert_eq!(find("/home/me"), ("ext4".into(), "rw,relatime".into()));
        assert_eq!(find("/dev/shm/x"), ("tmpfs".into(), "rw,nosuid".into()));
        assert_eq!(find("/mnt/my disk/data"), ("btrfs".into(), "ro".into()));
        assert_eq!(find("/mnt/my diskette"), ("ext4".into(), "rw,relatime".into()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_and_disk_are_told_apart() {
        let shm = Path::new("/dev/shm");
        if mount(shm).is_some_and(|(kind, _)| kind == "tmpfs") {
            assert!(of(shm).unwrap().in_memory);
        }
        let here = of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(here.in_memory, ["tmpfs", "ramfs"].contains(&here.kind.as_str()), "{here:?}");
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
    }
}
