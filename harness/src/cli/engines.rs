//! `enginelab engines`: what there is, what is here, and how to get the rest.

use clap::Args;
use engines::registry::{self, Registration};
use engines::{Capabilities, Durability, OpenOptions};
use serde::Serialize;

use crate::report::figures::grouped;
use crate::report::json;
use crate::report::terminal::wrapped;
use crate::run::plan::kind_word;
use crate::{Error, Result};

/// What can be chosen.
#[derive(Debug, Clone, Args)]
pub struct EnginesArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One engine, as JSON has it.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    kind: &'static str,
    summary: &'static str,
    available: bool,
    /// Why not, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable_because: Option<String>,
    /// What an open engine tells; absent where it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<ListedCapabilities>,
    /// The longest key in bytes; absent where no limit is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_key_bytes: Option<usize>,
    durability: Levels,
}

/// As [`Capabilities`].
#[derive(Debug, Serialize)]
struct ListedCapabilities {
    ordered_scan: bool,
    scan_sorts: bool,
    atomic_batch: bool,
    snapshot_scan: bool,
    persistent: bool,
}

/// What the engine does at each level; `null` where it has no such level.
#[derive(Debug, Serialize)]
struct Levels {
    buffered: Option<&'static str>,
    process: Option<&'static str>,
    power: Option<&'static str>,
}

impl Listed {
    fn new(engine: &Registration) -> Self {
        // Only an open engine knows its version: the library that is loaded may be any.
        let (opened, unavailable_because) = match opened(engine) {
            Ok(opened) => (Some(opened), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let level = engine.durability;
        let (version, capabilities) = opened.unzip();
        Self {
            name: engine.name,
            kind: kind_word(engine.kind),
            summary: engine.summary,
            available: unavailable_because.is_none(),
            unavailable_because,
            version,
            capabilities: capabilities.map(ListedCapabilities::from),
            most_key_bytes: engine.most_key_bytes,
            durability: Levels {
                buffered: level(Durability::Buffered),
                process: level(Durability::Process),
                power: level(Durability::Power),
            },
        }
    }
}

/// Opens the engine in a temporary directory and asks it.
fn opened(engine: &Registration) -> Result<(String, Capabilities)> {
    (engine.available)()?;
    let directory =
        tempfile::tempdir().map_err(Error::io("make a directory in", std::env::temp_dir()))?;
    let level = Durability::ALL.into_iter().find(|&level| (engine.durability)(level).is_some());
    let options = OpenOptions::new().durability(level.unwrap_or_default());
    let open = engine.open(directory.path(), &options)?;
    let told = (open.description().version, open.capabilities());
    open.close()?;
    Ok(told)
}

impl From<Capabilities> for ListedCapabilities {
    fn from(capabilities: Capabilities) -> Self {
        let Capabilities { ordered_scan, scan_sorts, atomic_batch, snapshot_scan, persistent } =
            capabilities;
        Self { ordered_scan, scan_sorts, atomic_batch, snapshot_scan, persistent }
    }
}

impl ListedCapabilities {
    fn in_words(&self) -> String {
        let scan = match (self.ordered_scan, self.scan_sorts) {
            (true, false) => "ordered scans",
            (true, true) => "ordered scans that sort in memory",
            (false, _) => "no ordered scans",
        };
        let has = |what: bool, words: &'static str| if what { words } else { "" };
        let words = [
            scan,
            has(self.atomic_batch, "atomic batches"),
            has(self.snapshot_scan, "scans of one moment"),
            has(!self.persistent, "keeps nothing on disk"),
        ];
        words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// Lists the engines.
///
/// # Errors
/// [`Error::Io`] if it cannot be written.
pub fn list(args: &EnginesArgs) -> Result<()> {
    let engines: Vec<Listed> = registry::all().iter().map(Listed::new).collect();
    super::print(&match args.json {
        true => json::render(&engines)?,
        false => engines.iter().map(in_words).collect::<Vec<_>>().join("\n"),
    })
}

fn in_words(engine: &Listed) -> String {
    let version = engine.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
    let mut lines = vec![format!("{}{version} ({}): {}", engine.name, engine.kind, engine.summary)];
    lines.extend(engine.unavailable_because.as_ref().map(|why| format!("  not here: {why}")));
    lines.extend(engine.capabilities.as_ref().map(|can| format!("  {}", can.in_words())));
    let keys = engine.most_key_bytes.map(|most| grouped(most as u64));
    lines.extend(keys.map(|most| format!("  keys of {most} bytes at most")));
    let levels = &engine.durability;
    for (level, means) in
        [("buffered", levels.buffered), ("process", levels.process), ("power", levels.power)]
    {
        lines.push(format!("  {level}: {}", means.unwrap_or("n/a")));
    }
    let mut text = String::new();
    for line in lines {
        // Writing to a string does not fail.
        let _ = wrapped(&mut text, &line, "    ");
    }
    text
}
