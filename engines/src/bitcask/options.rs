//! What is chosen when a Bitcask directory is opened.

use std::sync::Arc;
use std::time::Duration;

use super::clock::{Clock, SystemClock};
use super::expiry::Expiry;
use crate::{Durability, Error, OpenOptions, Result};

/// How a [`Bitcask`](super::Bitcask) works, each field with its default and what it trades.
#[derive(Debug, Clone)]
pub struct Options {
    /// What an acknowledged write survives. Default: [`Durability::Process`]. `Buffered` saves the
    /// system call of each put, `Power` adds a disk flush to each, shared by the threads that
    /// write at the same time.
    pub durability: Durability,
    /// Whether a missing database is created. Default: yes.
    pub create: bool,
    /// The size, in bytes, that a data file does not outgrow unless one record or batch does.
    /// Default: 256 MiB; Basho's is 2 GiB. A merge reclaims disk space one file at a time, so
    /// smaller files need less free space and give space back sooner, and files load in parallel;
    /// larger ones need fewer open files and mappings.
    pub max_file_bytes: u64,
    /// How many bytes of acknowledged writes may wait in the process at level `Buffered`.
    /// Default: 256 KiB. More saves system calls, and loses more in a crash.
    pub buffer_bytes: usize,
    /// When files are merged in the background.
    pub merge: MergePolicy,
    /// After which time records are no longer there. Default: never. Not in the format: whoever
    /// opens the directory decides for all records, old ones included.
    pub expiry: Option<Expiry>,
    /// Where the time comes from. Default: the operating system.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            create: true,
            max_file_bytes: 256 << 20,
            buffer_bytes: 256 << 10,
            merge: MergePolicy::default(),
            expiry: None,
            clock: Arc::new(SystemClock::default()),
        }
    }
}

impl Options {
    /// Checks what cannot be meant.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] that names the field.
    pub(super) fn check(&self) -> Result<()> {
        let merge = &self.merge;
        check_fraction("merge.trigger_dead_fraction", merge.trigger_dead_fraction)?;
        check_fraction("merge.threshold_dead_fraction", merge.threshold_dead_fraction)?;
        let not_zero = [
            ("max_file_bytes", self.max_file_bytes == 0),
            ("merge.bytes_per_second", merge.bytes_per_second == Some(0)),
            ("merge.max_dead_age", merge.max_dead_age == Some(Duration::ZERO)),
            ("expiry.after", self.expiry.is_some_and(|expiry| expiry.after.is_zero())),
        ];
        if let Some((field, _)) = not_zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(Error::InvalidArgument(format!("{field} is 0, and must be more")));
        }
        merge.window.check()
    }

    /// The policy as it can be carried out: what a merge writes is not small itself. Otherwise files
    /// that are full would be merged again and again, with every new one beside them.
    pub(super) fn policy(&self) -> MergePolicy {
        let small_file_bytes = self.merge.small_file_bytes.min(self.max_file_bytes / 2);
        MergePolicy { small_file_bytes, ..self.merge.clone() }
    }

    /// How often to see whether to merge though nothing was written: where time alone can be a
    /// reason to.
    pub(super) fn look_every(&self) -> Option<Duration> {
        let merge = &self.merge;
        let by_window = (merge.window != MergeWindow::Always).then_some(LOOK_EVERY_MAX);
        let by_age = merge.max_dead_age.map(|age| age / LOOK_PART);
        let by_expiry = self.expiry.map(|expiry| expiry.after / LOOK_PART);
        let shortest = by_window.into_iter().chain(by_age).chain(by_expiry).min()?;
        merge.enabled.then(|| shortest.clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX))
    }
}

/// A merge may come later than it should by this part of the time that it waits for.
const LOOK_PART: u32 = 64;
const LOOK_EVERY_MIN: Duration = Duration::from_secs(1);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(60);

fn check_fraction(field: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!("{field} is {value}, and must be from 0 to 1")))
}

impl From<&OpenOptions> for Options {
    /// The memory budget bounds the write buffer; the keydir comes on top, and there is no cache
    /// but the system's. Compression is not in the format.
    fn from(options: &OpenOptions) -> Self {
        let defaults = Self::default();
        let budget = usize::try_from(options.memory_bytes).unwrap_or(usize::MAX);
        Self {
            durability: options.durability,
            create: options.create,
            buffer_bytes: defaults.buffer_bytes.min(budget),
            ..defaults
        }
    }
}

/// When the background thread merges, and which files. Dead bytes are those that no read can reach
/// any more and that merging the file would give back. Where records [expire](Options::expiry),
/// those that may be dropped count as dead too: how many there are in a file is estimated from its
/// oldest and its newest record.
///
/// A merge starts when some file reaches a trigger, or when there are many small files. It then
/// takes every sealed file that reaches a threshold. Damaged files are never merged.
#[derive(Debug, Clone, PartialEq)]
pub struct MergePolicy {
    /// Whether there are background merges at all. Default: yes. Without them
    /// [`compact`](crate::Engine::compact) reclaims space when it is called.
    pub enabled: bool,
    /// At which hours merges may begin. Default: at all. One that has begun goes on.
    pub window: MergeWindow,
    /// The share of dead bytes in a file, from 0 to 1, that starts a merge. Default: 0.6. Lower
    /// keeps the directory smaller and writes more.
    pub trigger_dead_fraction: f64,
    /// The dead bytes in a file that start a merge. Default: 512 MiB.
    pub trigger_dead_bytes: u64,
    /// The number of small files that starts a merge. Default: 16. Every session that writes
    /// leaves a file.
    pub trigger_small_files: usize,
    /// The share of dead bytes that takes a file into a merge. Default: 0.4.
    pub threshold_dead_fraction: f64,
    /// The dead bytes that take a file into a merge. Default: 128 MiB.
    pub threshold_dead_bytes: u64,
    /// Files below this size in bytes are small: they are taken into every merge. Default: 10 MiB,
    /// but never more than half of [`max_file_bytes`](Options::max_file_bytes).
    pub small_file_bytes: u64,
    /// How long dead bytes stay at most: a file that has had some for longer starts a merge, and is
    /// taken into it, however few they are, and also if it is the file that is written to. So what
    /// was deleted or overwritten leaves the disk after so long, give or take the time that a merge
    /// takes and the hours of the window. Default: no limit. Each such merge copies all that lives
    /// in the file.
    ///
    /// What was dead already when the directory was opened counts as dead since the oldest record
    /// of its file was written. So programs that open a directory often merge old files often.
    pub max_dead_age: Option<Duration>,
    /// How many bytes a second a background merge reads at most. Default: no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for MergePolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            window: MergeWindow::Always,
            trigger_dead_fraction: 0.6,
            trigger_dead_bytes: 512 << 20,
            trigger_small_files: 16,
            threshold_dead_fraction: 0.4,
            threshold_dead_bytes: 128 << 20,
            small_file_bytes: 10 << 20,
            max_dead_age: None,
            bytes_per_second: None,
        }
    }
}

/// The hours at which merges may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeWindow {
    /// All of them.
    Always,
    /// Every day from the start of one hour to the end of another, both from 0 to 23: 22 to 5 is
    /// from 22:00 to 5:59, over midnight. So it is in Basho's `merge_window`.
    Daily {
        /// The first hour.
        first_hour: u8,
        /// The last hour, which belongs to the window.
        last_hour: u8,
        /// How many minutes local time is ahead of UTC; 0 for hours in UTC. It does not follow
        /// summer time.
        utc_offset_minutes: i16,
    },
}

/// No place is further from UTC than 14 hours.
const UTC_OFFSET_MINUTES_MAX: u16 = 14 * 60;
const DAY_SECONDS: i64 = 24 * 60 * 60;

impl MergeWindow {
    /// Whether the window is open, so many seconds after 1970.
    pub(super) fn is_open(&self, unix_seconds: u32) -> bool {
        let Self::Daily { first_hour, last_hour, utc_offset_minutes } = *self else { return true };
        let local = i64::from(unix_seconds) + 60 * i64::from(utc_offset_minutes);
        let hour = local.rem_euclid(DAY_SECONDS) / 3_600;
        let (first, last) = (i64::from(first_hour), i64::from(last_hour));
        if first <= last { (first..=last).contains(&hour) } else { hour >= first || hour <= last }
    }

    fn check(&self) -> Result<()> {
        let Self::Daily { first_hour, last_hour, utc_offset_minutes } = *self else {
            return Ok(());
        };
        for (field, hour) in [("first_hour", first_hour), ("last_hour", last_hour)] {
            if hour > 23 {
                let problem = format!("merge.window.{field} is {hour}, and must be from 0 to 23");
                return Err(Error::InvalidArgument(problem));
            }
        }
        if utc_offset_minutes.unsigned_abs() > UTC_OFFSET_MINUTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "merge.window.utc_offset_minutes is {utc_offset_minutes}, \
                 and must be from -{UTC_OFFSET_MINUTES_MAX} to {UTC_OFFSET_MINUTES_MAX}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(first_hour: u8, last_hour: u8, utc_offset_minutes: i16) -> MergeWindow {
        MergeWindow::Daily { first_hour, last_hour, utc_offset_minutes }
    }

    #[test]
    fn a_window_is_open_from_its_first_hour_to_the_end_of_its_last() {
        // 2026-11-30 00:00:00 UTC.
        const MIDNIGHT: u32 = 1_795_996_800;
        let at = |hour: u32, minute: u32| MIDNIGHT + hour * 3_600 + minute * 60;
        for (window, time, open) in [
            (MergeWindow::Always, 0, true),
            (daily(3, 5, 0), at(2, 59), false),
            (daily(3, 5, 0), at(3, 0), true),
            (daily(3, 5, 0), at(5, 59), true),
            (daily(3, 5, 0), at(6, 0), false),
            (daily(22, 5, 0), at(21, 59), false),
            (daily(22, 5, 0), at(22, 0), true),
            (daily(22, 5, 0), at(0, 0), true),
            (daily(22, 5, 0), at(5, 59), true),
            (daily(22, 5, 0), at(6, 0), false),
            (daily(4, 4, 0), at(4, 30), true),
            (daily(4, 4, 0), at(5, 0), false),
            (daily(0, 23, 0), at(12, 0), true),
            // 3:00 in Kathmandu is 21:15 in UTC, and 3:00 in New York 8:00.
            (daily(3, 3, 345), at(21, 14), false),
            (daily(3, 3, 345), at(21, 15), true),
            (daily(3, 3, -300), at(8, 0), true),
            (daily(3, 3, -300), at(3, 0), false),
            (daily(23, 23, -60), 0, true),
        ] {
            assert_eq!(window.is_open(time), open, "{window:?} at {time}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_the_name_of_its_field() {
        type Change = fn(&mut Options);
        let wrong: [(&str, Change); 11] = [
            ("merge.trigger_dead_fraction", |o| o.merge.trigger_dead_fraction = 1.1),
            ("merge.trigger_dead_fraction", |o| o.merge.trigger_dead_fraction = f64::NAN),
            ("merge.threshold_dead_fraction", |o| o.merge.threshold_dead_fraction = -0.1),
            ("max_file_bytes", |o| o.max_file_bytes = 0),
            ("merge.bytes_per_second", |o| o.merge.bytes_per_second = Some(0)),
            ("merge.max_dead_age", |o| o.merge.max_dead_age = Some(Duration::ZERO)),
            ("expiry.after", |o| o.expiry = Some(Expiry::after(Duration::ZERO))),
            ("merge.window.first_hour", |o| o.merge.window = daily(24, 0, 0)),
            ("merge.window.last_hour", |o| o.merge.window = daily(0, 24, 0)),
            ("merge.window.utc_offset_minutes", |o| o.merge.window = daily(0, 0, 841)),
            ("merge.window.utc_offset_minutes", |o| o.merge.window = daily(0, 0, i16::MIN)),
        ];
        for (field, change) in wrong {
            let mut options = Options::default();
            assert!(options.check().is_ok());
            change(&mut options);
            let error = options.check().unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)));
            assert!(error.to_string().starts_with(&format!("{field} is ")), "{error}");
        }
    }
}
