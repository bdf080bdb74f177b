//! A measured figure, and what it is held against.

use serde::Serialize;

/// One line of the output.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
}

/// What a figure is to be.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Figure {
    /// A figure that is held against nothing.
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, target: None }
    }

    /// The same, held against `target`.
    pub fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    fn line(&self) -> String {
        let (value, verdict) = (number(self.value), self.verdict());
        format!("{:<54} {value:>9} {:<9} {verdict}", self.name, self.unit)
    }

    fn verdict(&self) -> String {
        let (word, limit, reached) = match self.target {
            None => return String::new(),
            Some(Target::AtMost(limit)) => ("at most", limit, self.value <= limit),
            Some(Target::AtLeast(limit)) => ("at least", limit, self.value >= limit),
        };
        format!("{word} {}: {}", number(limit), if reached { "reached" } else { "missed" })
    }
}

/// Prints a table, or one JSON object a line.
pub fn print_figures(figures: &[Figure], json: bool) {
    for figure in figures {
        match serde_json::to_string(figure) {
            Ok(line) if json => println!("{line}"),
            _ => println!("{}", figure.line().trim_end()),
        }
    }
    if !json {
        println!();
    }
}

fn number(value: f64) -> String {
    let digits = if value >= 100.0 { 0 } else { 3 };
    format!("{value:.digits$}")
}

/// The median of some measurements; 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
