//! The table of what fence methods came to, from the rows that the tests of level `plugins` leave.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use crate::root::at;

/// Where the rows are: method, authentication, action, device, verdict, with tabs between.
const ROWS: &str = "target/tmp/plugins-table";
/// Longer verdicts are cut here, in characters.
const VERDICT_MAX: usize = 100;

/// Forgets the rows of earlier runs.
pub(crate) fn clear() -> Result<()> {
    match fs::remove_dir_all(at(ROWS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("failed to clear the table of fence methods")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The rows, in order, one line each.
pub(crate) fn print() -> Result<()> {
    let rows = read(&at(ROWS))?;
    println!("{}", lines(&rows));
    Ok(())
}

fn read(folder: &Path) -> Result<Vec<[String; 5]>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(folder).context("the tests left no table of fence methods")? {
        let text = fs::read_to_string(entry?.path())?;
        rows.extend(text.lines().filter_map(row));
    }
    rows.sort();
    rows.dedup();
    Ok(rows)
}

fn row(line: &str) -> Option<[String; 5]> {
    let mut cells: Vec<String> = line.splitn(5, '\t').map(str::to_owned).collect();
    if let Some(verdict) = cells.last_mut().filter(|one| one.chars().count() > VERDICT_MAX) {
        *verdict = verdict.chars().take(VERDICT_MAX).chain(['…']).collect();
    }
    cells.try_into().ok()
}

fn lines(rows: &[[String; 5]]) -> String {
    let mut widths = [0; 5];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_below_each_other() {
        let rows = ["ipmi\tsuite 17\toff\tbmc\texit 0", "aws\tkeys\tstatus\tmoto\texit 2"];
        let rows: Vec<_> = rows.into_iter().filter_map(row).collect();
        let expected =
            "  ipmi  suite 17  off     bmc   exit 0\n  aws   keys      status  moto  exit 2";
        assert_eq!(lines(&rows), expected);
        assert_eq!(row("a\tb"), None);
        let long = format!("a\tb\tc\td\t{}", "x".repeat(200));
        assert_eq!(row(&long).unwrap()[4].chars().count(), VERDICT_MAX + 1);
    }
}
