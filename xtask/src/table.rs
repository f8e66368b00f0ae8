//! The tables that level `plugins` ends with, from the rows that its tests leave: what fence methods came
//! to, what came of each fault of a device, and of each attack. What stands in a row is the tests' business.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::root::at;

/// A table: rows are lines in files of a folder, with tabs between their cells.
struct Table<const COLUMNS: usize> {
    folder: &'static str,
    header: [&'static str; COLUMNS],
    /// A last cell that is longer is cut here, in characters.
    last_max: usize,
}

/// `node_remedy_tests::hand` leaves them.
const METHODS: Table<5> = Table {
    folder: "target/tmp/plugins-table",
    header: ["method", "authentication", "action", "device", "verdict"],
    last_max: 100,
};
/// `node_remedy_sdk::testing::faults` leaves them, and `node_remedy_tests::hand` some.
const FAULTS: Table<7> = Table {
    folder: "target/tmp/faults-table",
    header: ["method", "fault", "action", "kind", "seconds", "left", "what is said"],
    last_max: 160,
};
/// `node_remedy_tests::attacks` leaves them.
const ATTACKS: Table<7> = Table {
    folder: "target/tmp/attacks-table",
    header: ["no", "attack", "how", "verdict", "twin", "seconds", "host grew by"],
    last_max: 20,
};
/// The attacks of SAFETY.md §2.1 are numbered from one to this; each has a row.
const ATTACKS_LAST: u8 = 71;
/// Below the attacks.
const ATTACKS_NOTES: &str = "
  twin          what succeeds under the same grant, or just below the limit
  seconds       by the wall, beside everything else that runs
  host grew by  the peak of the process that runs the plugin, over what it had before the attack
";
/// `tests/tests/plugins_languages.rs` leaves them, where there are plugins in other languages.
const LANGUAGES: Table<8> = Table {
    folder: "target/tmp/languages-table",
    header: [
        "plugin",
        "bytes",
        "gzipped",
        "compile CPU s",
        "compile MiB",
        "code bytes",
        "µs a call",
        "imports",
    ],
    last_max: 100,
};
/// Below the faults.
const NOTES: &str = "
  seconds  of virtual time, by which the device in memory lives; no call is past its deadline
  left     sessions open at the device when the call has ended
  ¹        the protocol has no sessions
  ²        the host logs in and out: host/sandbox/tests/sandbox/login.rs
  ³        a watcher is not called: it hears
  ⁴        by the wall: node-remedy fence, whole, with a device over TLS that counts its sessions
";
/// The fewest faults, told apart by their names, that the table may have.
const FAULTS_MIN: usize = 30;

/// Forgets the rows of earlier runs.
pub(crate) fn clear() -> Result<()> {
    for folder in [METHODS.folder, FAULTS.folder, ATTACKS.folder, LANGUAGES.folder] {
        match fs::remove_dir_all(at(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("failed to clear the tables of fence methods");
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// All tables, one line for each row.
pub(crate) fn print() -> Result<()> {
    println!("{}\n", METHODS.lines(&METHODS.read(&at(METHODS.folder))?));
    let faults = FAULTS.read(&at(FAULTS.folder))?;
    println!("{}\n{NOTES}", FAULTS.lines(&faults));
    let [methods, names] = [0, 1].map(|column| kinds_in(column, &faults));
    println!("  {methods} methods, {} rows, {names} faults by name", faults.len());
    if at(LANGUAGES.folder).is_dir() {
        println!("\n{}\n", LANGUAGES.lines(&LANGUAGES.read(&at(LANGUAGES.folder))?));
    }
    ensure!(names >= FAULTS_MIN, "{names} faults by name, expected at least {FAULTS_MIN}");
    let attacks = ATTACKS.read(&at(ATTACKS.folder))?;
    println!("\n{}\n{ATTACKS_NOTES}", ATTACKS.lines(&attacks));
    let missing = without_row(&attacks);
    println!("  {} attacks, {} rows", usize::from(ATTACKS_LAST) - missing.len(), attacks.len());
    ensure!(missing.is_empty(), "attacks without a row: {missing:?}");
    Ok(())
}

/// The attacks that no row tells of; the first cell is the number, and perhaps a letter.
fn without_row<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> Vec<u8> {
    let number = |cell: &String| -> Option<u8> {
        cell.trim_end_matches(|last: char| last.is_ascii_lowercase()).parse().ok()
    };
    let told: BTreeSet<u8> = rows.iter().filter_map(|row| number(row.first()?)).collect();
    (1..=ATTACKS_LAST).filter(|number| !told.contains(number)).collect()
}

/// How many cells of a column differ.
fn kinds_in<const COLUMNS: usize>(column: usize, rows: &[[String; COLUMNS]]) -> usize {
    rows.iter().filter_map(|row| row.get(column)).collect::<BTreeSet<_>>().len()
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    fn read(&self, folder: &Path) -> Result<Vec<[String; COLUMNS]>> {
        let mut rows = Vec::new();
        let files = fs::read_dir(folder);
        for entry in files.with_context(|| format!("the tests left no {}", folder.display()))? {
            let text = fs::read_to_string(entry?.path())?;
            rows.extend(text.lines().filter_map(|line| self.row(line)));
        }
        rows.sort();
        rows.dedup();
        Ok(rows)
    }

    fn row(&self, line: &str) -> Option<[String; COLUMNS]> {
        let mut cells: Vec<String> = line.splitn(COLUMNS, '\t').map(str::to_owned).collect();
        if let Some(last) = cells.last_mut().filter(|one| one.chars().count() > self.last_max) {
            *last = last.chars().take(self.last_max).chain(['…']).collect();
        }
        cells.try_into().ok()
    }

    fn lines(&self, rows: &[[String; COLUMNS]]) -> String {
        let header = self.header.map(str::to_owned);
        let all: Vec<_> = std::iter::once(&header).chain(rows).collect();
        let mut widths = [0; COLUMNS];
        for row in &all {
            for (width, cell) in widths.iter_mut().zip(*row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let line = |row: &&[String; COLUMNS]| {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
            format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_below_each_other() {
        let rows = ["ipmi\tsuite 17\toff\tbmc\texit 0", "aws\tkeys\toff\tmoto\texit 0"];
        let rows: Vec<_> = rows.into_iter().filter_map(|row| METHODS.row(row)).collect();
        let expected = "  method  authentication  action  device  verdict
  ipmi    suite 17        off     bmc     exit 0
  aws     keys            off     moto    exit 0";
        assert_eq!(METHODS.lines(&rows), expected);
        assert_eq!((kinds_in(0, &rows), kinds_in(2, &rows)), (2, 1));
        assert_eq!(METHODS.row("a\tb"), None);
        let attack = |number: &str| -> [String; 1] { [number.to_owned()] };
        let rows: Vec<_> =
            (2..=ATTACKS_LAST).map(|number| attack(&format!("{number:02}"))).collect();
        assert_eq!(without_row(&rows), [1]);
        let mut rows = rows;
        rows.extend([attack("01b"), attack("x")]);
        assert_eq!(without_row(&rows), [0; 0]);
        let long = format!("a\tb\tc\td\t{}", "x".repeat(200));
        assert_eq!(METHODS.row(&long).unwrap()[4].chars().count(), METHODS.last_max + 1);
    }
}
