//! `enginelab engines`: what there is, what is here, and how to get the rest.

use std::io::Write;

use clap::Args;
use engines::Durability;
use engines::registry::{self, Registration};
use serde::Serialize;

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
    durability: Levels,
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
        let unavailable_because = (engine.available)().err().map(|error| error.to_string());
        let level = engine.durability;
        Self {
            name: engine.name,
            kind: kind_word(engine.kind),
            summary: engine.summary,
            available: unavailable_because.is_none(),
            unavailable_because,
            durability: Levels {
                buffered: level(Durability::Buffered),
                process: level(Durability::Process),
                power: level(Durability::Power),
            },
        }
    }
}

/// Lists the engines.
///
/// # Errors
/// None in practice: everything listed can be written as JSON.
pub fn list(args: &EnginesArgs) -> Result<()> {
    let engines: Vec<Listed> = registry::all().iter().map(Listed::new).collect();
    let text = if args.json {
        let json = serde_json::to_string_pretty(&engines)
            .map_err(|error| Error::Usage(error.to_string()))?;
        json + "\n"
    } else {
        engines.iter().map(in_words).collect()
    };
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    Ok(())
}

fn in_words(engine: &Listed) -> String {
    let mut text = format!("{} ({}): {}\n", engine.name, engine.kind, engine.summary);
    if let Some(reason) = &engine.unavailable_because {
        text += &format!("  not here: {reason}\n");
    }
    let levels = &engine.durability;
    for (level, means) in
        [("buffered", levels.buffered), ("process", levels.process), ("power", levels.power)]
    {
        text += &format!("  {level}: {}\n", means.unwrap_or("n/a"));
    }
    text + "\n"
}
