//! A cap on all memory of a run's process, page cache included: a control group of Linux.
//!
//! ```text
//! version 2   /sys/fs/cgroup/…/enginelab-PID-N/         memory.max, memory.swap.max, memory.events
//! version 1   /sys/fs/cgroup/memory/…/enginelab-PID-N/  memory.limit_in_bytes, memory.oom_control
//! ```
//! Each run gets a group of its own, so that no run pays for pages of the one before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// A group with a limit, removed when dropped.
#[derive(Debug)]
pub(super) struct MemoryCap {
    group: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }

    fn events_file(self) -> &'static str {
        match self {
            Self::One => "memory.oom_control",
            Self::Two => "memory.events",
        }
    }
}

impl MemoryCap {
    /// Makes a group whose members may use `bytes` together.
    ///
    /// # Errors
    /// [`Error::Usage`] with the reason where that is not possible here.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let refused = |why: &str| Error::Usage(format!("--memory-cap cannot be had here: {why}"));
        let mounts = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|_| refused("there are no control groups on this system"))?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let places = places(&mounts, &own);
        let mut why = "no control group with a memory controller is mounted".to_owned();
        for (version, parent) in places {
            match Self::within(&parent, version, bytes) {
                Ok(cap) => return Ok(cap),
                Err(reason) => why = reason,
            }
        }
        Err(refused(&why))
    }

    fn within(parent: &Path, version: Version, bytes: u64) -> std::result::Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let group = parent.join(format!("enginelab-{}-{number}", std::process::id()));
        let failed = |what: &Path| {
            let what = what.display().to_string();
            move |error: std::io::Error| format!("{what}: {error}")
        };
        fs::create_dir(&group).map_err(failed(&group))?;
        // From here on the group is removed again, whatever happens.
        let cap = Self { group, version };
        let limit = cap.group.join(version.limit_file());
        if !limit.exists() {
            let parent = parent.display();
            return Err(format!("the memory controller is not handed down to groups in {parent}"));
        }
        fs::write(&limit, bytes.to_string()).map_err(failed(&limit))?;
        let swap = cap.group.join("memory.swap.max");
        if swap.exists() {
            fs::write(&swap, "0").map_err(failed(&swap))?;
        }
        Ok(cap)
    }

    /// Puts a process into the group. What it used before is not counted.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel refuses.
    pub(super) fn add(&self, process: u32) -> Result<()> {
        let members = self.group.join("cgroup.procs");
        fs::write(&members, process.to_string()).map_err(Error::io("write", &members))
    }

    /// Whether a member was killed because the group had no memory left.
    pub(super) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.group.join(self.version.events_file()));
        events.is_ok_and(|text| {
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            count.is_some_and(|count| count.trim() != "0")
        })
    }
}

impl Drop for MemoryCap {
    fn drop(&mut self) {
        // Fails while a member lives, which the end of its run has seen to.
        let _ = fs::remove_dir(&self.group);
    }
}

/// Directories in which a group with a memory limit might be made, the likeliest first: beside
/// this process's own group, and at the top.
fn places(mounts: &str, own: &str) -> Vec<(Version, PathBuf)> {
    let mut places = Vec::new();
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let Some(point) = left.split(' ').nth(4) else { continue };
        let mut right = right.split(' ');
        let (kind, options) = (right.next().unwrap_or_default(), right.nth(1).unwrap_or_default());
        let version = match kind {
            "cgroup2" => Version::Two,
            "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
            _ => continue,
        };
        let top = PathBuf::from(point);
        if let Some(path) = own_path(own, version) {
            let mine = top.join(path.trim_start_matches('/'));
            // In version 2 a group with members hands no controller down: its parent may.
            let beside = match version {
                Version::One => Some(mine.as_path()),
                Version::Two => mine.parent().filter(|parent| parent.starts_with(&top)),
            };
            places.extend(beside.map(|path| (version, path.to_path_buf())));
        }
        places.push((version, top));
    }
    places.sort_by_key(|(version, _)| *version == Version::One);
    places
}

/// This process's group: `0::/path` in version 2, `5:memory:/path` in version 1.
fn own_path(own: &str, version: Version) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match version {
            Version::Two => number == "0" && controllers.is_empty(),
            Version::One => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_it.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_looked_for_where_they_are_mounted() {
        let one = "33 22 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                   34 22 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let own = "9:memory:/user/me\n0::/init\n";
        let at = |path: &str| PathBuf::from(path);
        let expected = [
            (Version::One, at("/sys/fs/cgroup/memory/user/me")),
            (Version::One, at("/sys/fs/cgroup/memory")),
        ];
        assert_eq!(places(one, own), expected);
        let two = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let expected =
            [(Version::Two, at("/sys/fs/cgroup/user.slice")), (Version::Two, at("/sys/fs/cgroup"))];
        assert_eq!(places(two, "0::/user.slice/session-1.scope\n"), expected);
        assert_eq!(places("22 1 254:0 / / rw - ext4 /dev/vda rw\n", own), []);
    }

    #[test]
    fn a_group_is_removed_with_its_cap_and_what_cannot_be_is_said() {
        let directory = tempfile::tempdir().unwrap();
        // An ordinary directory has no such files: the reason names the directory.
        let why = MemoryCap::within(directory.path(), Version::Two, 1 << 30).unwrap_err();
        assert!(why.contains("not handed down"), "{why}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let why = MemoryCap::within(Path::new("/proc"), Version::One, 1 << 30).unwrap_err();
        assert!(why.starts_with("/proc/enginelab-"), "{why}");
    }
}
