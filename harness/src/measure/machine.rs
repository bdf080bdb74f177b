//! The machine and the build that a result was measured with.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use super::filesystem::{self, FileSystem};
use crate::Result;

/// What a reader must know to judge a figure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// When the first run began: RFC 3339, in UTC.
    pub date: String,
    /// The processor's name.
    pub cpu: String,
    /// Its logical cores.
    pub cores: u64,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The operating system and its release.
    pub os: String,
    /// The kernel's release.
    pub kernel: String,
    /// The instruction set.
    pub architecture: String,
    /// The file system that the data lay on.
    pub file_system: FileSystem,
    /// The version of enginelab.
    pub enginelab: String,
    /// The compiler that built it.
    pub rustc: String,
    /// `release`, or `debug`: built without optimisation, so that times mean little.
    pub build: String,
}

impl Machine {
    /// This machine, at this moment, with the file system of `directory`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the directory cannot be looked at.
    pub fn describe(directory: &Path) -> Result<Self> {
        let what = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(what).ok();
        let cpu = system.as_ref().and_then(|system| system.cpus().first());
        let date = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
        Ok(Self {
            date: date.to_string(),
            cpu: cpu.map_or_else(String::new, |cpu| cpu.brand().trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(0, |cores| cores.get() as u64),
            memory_bytes: system.as_ref().map_or(0, System::total_memory),
            os: System::long_os_version().unwrap_or_default(),
            kernel: System::kernel_version().unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            file_system: filesystem::of(directory)?,
            enginelab: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: env!("ENGINELAB_RUSTC").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        })
    }

    /// One line: processor, cores, memory, system, file system.
    pub fn summary(&self) -> String {
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        let file_system = match self.file_system.in_memory {
            true => format!("{} in memory, not on a disk", self.file_system.kind),
            false => self.file_system.kind.clone(),
        };
        format!(
            "{}, {} cores, {gib:.1} GiB, {}, kernel {}, data on {file_system}",
            self.cpu, self.cores, self.os, self.kernel
        )
    }

    /// The date and the processor as a part of a file name: `2026-03-01-intel-xeon-2-cores`.
    pub fn slug(&self) -> String {
        let date = self.date.split('T').next().unwrap_or_default();
        let plain = self.cpu.replace("(R)", "").replace("(TM)", "").to_lowercase();
        let name = plain.split(" @").next().unwrap_or_default();
        let words: Vec<&str> = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty() && *word != "cpu" && *word != "processor")
            .collect();
        let cpu = if words.is_empty() { self.architecture.clone() } else { words.join("-") };
        format!("{date}-{cpu}-{}-cores", self.cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::describe(Path::new(".")).unwrap();
        assert!(machine.cores > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.rustc.starts_with("rustc "), "{machine:?}");
        let date: jiff::Timestamp = machine.date.parse().unwrap();
        assert!(date.as_second() > 1_700_000_000);
    }

    #[test]
    fn a_slug_is_fit_for_a_file_name() {
        let machine = |cpu: &str| Machine {
            date: "2026-03-01T10:00:00Z".into(),
            cpu: cpu.into(),
            cores: 2,
            architecture: "x86_64".into(),
            ..Machine::default()
        };
        assert_eq!(
            machine("Intel(R) Xeon(R) Processor @ 2.10GHz").slug(),
            "2026-03-01-intel-xeon-2-cores"
        );
        assert_eq!(
            machine("AMD Ryzen 7 5800X 8-Core Processor").slug(),
            "2026-03-01-amd-ryzen-7-5800x-8-core-2-cores"
        );
        assert_eq!(machine("").slug(), "2026-03-01-x86_64-2-cores");
    }
}
