//! What a process took from the machine: processor time, memory, device traffic, switches, faults.
//!
//! Processor time, switches and faults come from getrusage; memory and device bytes from /proc,
//! so that they are there on Linux only.

use serde::{Deserialize, Serialize};

/// What the process took until now, or between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in the program and its libraries, of all threads, in seconds.
    pub user_seconds: f64,
    /// Processor time in the kernel for it.
    pub system_seconds: f64,
    /// Times that a thread gave its core away to wait.
    pub voluntary_switches: u64,
    /// Times that a core was taken from a thread.
    pub involuntary_switches: u64,
    /// Page faults without a device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// Bytes that came from a device for it; absent where the system does not tell.
    pub device_read_bytes: Option<u64>,
    /// Bytes of pages that it made dirty and that go to a device, less those that were dropped
    /// before they did.
    pub device_written_bytes: Option<u64>,
    /// Bytes that it read by system calls, from wherever.
    pub call_read_bytes: Option<u64>,
    /// Bytes that it wrote by system calls, to wherever.
    pub call_written_bytes: Option<u64>,
}

/// Memory that a process has in use at a moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Its own: heap, stacks, anonymous maps.
    pub own_bytes: u64,
    /// Pages of files that it mapped, which the system can take back.
    pub mapped_bytes: u64,
}

impl Usage {
    /// Of this process, until now. What cannot be told is zero or absent.
    pub fn now() -> Self {
        let (read, written, call_read, call_written) = io();
        Self {
            device_read_bytes: read,
            device_written_bytes: written,
            call_read_bytes: call_read,
            call_written_bytes: call_written,
            ..of_getrusage()
        }
    }

    /// What was taken since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            user_seconds: (self.user_seconds - earlier.user_seconds).max(0.0),
            system_seconds: (self.system_seconds - earlier.system_seconds).max(0.0),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            device_read_bytes: less(self.device_read_bytes, earlier.device_read_bytes),
            device_written_bytes: less(self.device_written_bytes, earlier.device_written_bytes),
            call_read_bytes: less(self.call_read_bytes, earlier.call_read_bytes),
            call_written_bytes: less(self.call_written_bytes, earlier.call_written_bytes),
        }
    }

    /// Processor time in all, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }
}

#[cfg(unix)]
fn of_getrusage() -> Usage {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Usage::default() };
    let count = |number: std::ffi::c_long| u64::try_from(number).unwrap_or(0);
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
    Usage {
        user_seconds: seconds(usage.user_time()),
        system_seconds: seconds(usage.system_time()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        ..Usage::default()
    }
}

#[cfg(not(unix))]
fn of_getrusage() -> Usage {
    Usage::default()
}

type Io = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);

fn io() -> Io {
    std::fs::read_to_string("/proc/self/io").map_or((None, None, None, None), |text| io_in(&text))
}

/// Lines of `name: number`.
fn io_in(text: &str) -> Io {
    let number = |name: &str| field(text, name)?.parse::<u64>().ok();
    let written = number("write_bytes")
        .map(|written| written.saturating_sub(number("cancelled_write_bytes").unwrap_or(0)));
    (number("read_bytes"), written, number("rchar"), number("wchar"))
}

impl Memory {
    /// Of this process; `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/status").ok()?)
    }

    /// Lines of `name:   number kB`.
    fn parse(text: &str) -> Option<Self> {
        let kibibytes = |name: &str| {
            let number = field(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            number.checked_mul(1 << 10)
        };
        let mapped = kibibytes("RssFile")?.saturating_add(kibibytes("RssShmem")?);
        Some(Self { own_bytes: kibibytes("RssAnon")?, mapped_bytes: mapped })
    }
}

/// The value of the line that begins with `name:`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let text = "rchar: 11\nwchar: 22\nsyscr: 3\nread_bytes: 4096\nwrite_bytes: 8192\n\
                    cancelled_write_bytes: 4096\n";
        assert_eq!(io_in(text), (Some(4_096), Some(4_096), Some(11), Some(22)));
        assert_eq!(io_in("rchar: x\n"), (None, None, None, None));
        let text =
            "VmRSS:\t 9 kB\nRssAnon:\t     100 kB\nRssFile:\t      20 kB\nRssShmem:\t 4 kB\n";
        let memory = Memory { own_bytes: 100 << 10, mapped_bytes: 24 << 10 };
        assert_eq!(Memory::parse(text), Some(memory));
        assert_eq!(Memory::parse("RssAnon:\t 1 MB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn work_shows() {
        let before = Usage::now();
        let bytes = vec![1u8; 64 << 20];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes[..8 << 20]).unwrap();
        let mut sum = 0u64;
        // Once at least: other tests of this process work meanwhile.
        loop {
            sum += bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            if Usage::now().since(&before).user_seconds >= 0.01 {
                break;
            }
        }
        assert!(sum > 0);
        let used = Usage::now().since(&before);
        assert!(used.cpu_seconds() >= 0.01, "{used:?}");
        assert!(used.minor_faults > 0, "{used:?}");
        assert!(used.call_written_bytes.unwrap() >= 8 << 20, "{used:?}");
        // Not the growth: other tests of this process give memory back meanwhile.
        let own = Memory::now().unwrap().own_bytes;
        assert!(own >= bytes.len() as u64, "{own}");
    }
}
