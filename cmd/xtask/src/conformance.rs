//! `cargo xtask conformance-table`: the table in csi/CONFORMANCE.md, made from what csi-sanity gave.
//!
//! ```text
//!   suite ── a line `CONFORMANCE: {…}` ──► runner ──► target/conformance/*.json      cargo xtask test conformance
//!                                                        │
//!   csi/conformance.json, and the table between its marks ◄┘                         cargo xtask conformance-table
//! ```
//!
//! The committed results are compared with real ones by the suite, and the table with the committed results by a test here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::paths;

/// What it may be told.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Change nothing; fail where the table is not what the committed results give
    #[arg(long)]
    check: bool,
}

const RESULTS: &str = "csi/conformance.json";
const DOCUMENT: &str = "csi/CONFORMANCE.md";
const BEGIN: &str = "<!-- made by `cargo xtask conformance-table` from conformance.json -->\n";
const END: &str = "<!-- end of what is made -->";

/// How the tests of one call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    #[serde(default, skip_serializing_if = "is_zero")]
    passed: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    skipped: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    failed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// By class and access type, then by call.
type Results = BTreeMap<String, BTreeMap<String, Cell>>;

/// Keeps the results in a line of a suite, if it holds some.
///
/// # Errors
/// When they cannot be read or written.
pub fn keep(line: &str) -> Result<()> {
    let Some((_, text)) = line.split_once("CONFORMANCE: ") else { return Ok(()) };
    let fresh: Results = serde_json::from_str(text).context("reading the results of a suite")?;
    let directory = kept()?;
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    for (column, calls) in fresh {
        let name: String = column.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = directory.join(format!("{name}.json"));
        let text = serde_json::to_string(&Results::from([(column, calls)]))?;
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn kept() -> Result<PathBuf> {
    Ok(paths::target()?.join("conformance"))
}

/// Runs it.
///
/// # Errors
/// When a file cannot be read or written, or the document has no place for the table.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let top = paths::repository()?;
    if arguments.check {
        let fresh = is_fresh(&top)?;
        println!("{DOCUMENT} is {}what {RESULTS} gives", if fresh { "" } else { "not " });
        return Ok(if fresh { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut results = read(&top.join(RESULTS))?;
    for entry in fs::read_dir(kept()?).context("no results are kept; run `cargo xtask test conformance`")? {
        results.extend(read(&entry?.path())?);
    }
    let text = serde_json::to_string_pretty(&results)? + "\n";
    fs::write(top.join(RESULTS), text).with_context(|| format!("writing {RESULTS}"))?;
    let document = fs::read_to_string(top.join(DOCUMENT)).with_context(|| format!("reading {DOCUMENT}"))?;
    fs::write(top.join(DOCUMENT), with_table(&document, &results)?)?;
    println!("wrote {RESULTS} and the table in {DOCUMENT}: {}", join(results.keys(), "; "));
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Results> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))
}

fn is_fresh(top: &Path) -> Result<bool> {
    let document = fs::read_to_string(top.join(DOCUMENT)).with_context(|| format!("reading {DOCUMENT}"))?;
    Ok(with_table(&document, &read(&top.join(RESULTS))?)? == document)
}

/// The document with another table.
fn with_table(document: &str, results: &Results) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).context("the document has no mark before its table")?;
    let (_, after) = rest.split_once(END).context("the document has no mark after its table")?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table(results)))
}

/// One row a call, one column a class and access type.
fn table(results: &Results) -> String {
    let calls: BTreeSet<&String> = results.values().flat_map(BTreeMap::keys).collect();
    let mut text =
        format!("| call | {} |\n|---|{}\n", join(results.keys(), " | "), "---|".repeat(results.len()));
    for call in calls {
        let cells = results.values().map(|column| column.get(call).map_or_else(|| "–".to_owned(), told));
        text += &format!("| {call} | {} |\n", join(cells, " | "));
    }
    let sums = results.values().map(|column| {
        told(&column.values().fold(Cell::default(), |sum, cell| Cell {
            passed: sum.passed + cell.passed,
            skipped: sum.skipped + cell.skipped,
            failed: sum.failed + cell.failed,
        }))
    });
    text + &format!("| **all** | {} |\n", join(sums, " | "))
}

fn told(cell: &Cell) -> String {
    let parts = [(cell.passed, "passed"), (cell.skipped, "skipped"), (cell.failed, "**failed**")];
    let some = parts.iter().filter(|(count, _)| *count > 0);
    join(some.map(|(count, what)| format!("{count} {what}")), ", ")
}

fn join(parts: impl IntoIterator<Item = impl AsRef<str>>, between: &str) -> String {
    let mut text = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            text += between;
        }
        text += part.as_ref();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_is_what_the_committed_results_give() {
        assert!(is_fresh(&paths::repository().unwrap()).unwrap(), "run `cargo xtask conformance-table`");
    }

    #[test]
    fn each_call_has_a_row_and_each_class_a_column() {
        let results: Results = serde_json::from_str(
            r#"{"thick, block": {"Probe": {"passed": 1}, "ModifyVolume": {"skipped": 6}},
                "thin, mount": {"Probe": {"passed": 1, "failed": 2}}}"#,
        )
        .unwrap();
        let document = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let rendered = with_table(&document, &results).unwrap();
        let table = "| call | thick, block | thin, mount |\n|---|---|---|\n| ModifyVolume | 6 skipped | – |\n\
                     | Probe | 1 passed | 1 passed, 2 **failed** |\n\
                     | **all** | 1 passed, 6 skipped | 1 passed, 2 **failed** |\n";
        assert_eq!(rendered, format!("before\n{BEGIN}{table}{END}\nafter\n"));
        assert_eq!(with_table(&rendered, &results).unwrap(), rendered);
        assert!(with_table("no marks", &results).is_err());
    }
}
