//! The rows of the table of attacks (SAFETY.md §2.1), which `cargo xtask test plugins` prints and which
//! must have a row for each number. Whoever tests an attack leaves its rows here, wherever that is.

use anyhow::{Result, ensure};

use crate::fence_command;

/// The attacks are numbered from one to this.
pub const LAST: u8 = 71;
/// Where the rows are, one file for each process that runs tests.
const TABLE: &str = "target/tmp/attacks-table";
/// Longer verdicts are cut, in characters: a row is read on one line.
const CELL_CHARS_MAX: usize = 110;

/// One attack that was made, and what came of it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Its number in SAFETY.md §2.1.
    pub number: u8,
    /// A letter, where one number is several attacks.
    pub part: &'a str,
    /// What is attacked, in the words of that list.
    pub attack: &'a str,
    /// By what: a component, a document, an answer.
    pub how: &'a str,
    /// What the host made of it.
    pub verdict: &'a str,
    /// What succeeded beside it, under the same grant or just below the limit.
    pub twin: &'a str,
    /// How long it took.
    pub seconds: f64,
    /// How much the host's memory grew meanwhile, at its peak.
    pub grew_kib: u64,
}

impl Row<'_> {
    /// Adds it to the table.
    pub fn leave(&self) -> Result<()> {
        let Self { number, part, attack, how, verdict, twin, seconds, grew_kib } = self;
        ensure!((1..=LAST).contains(number), "there is no attack {number}");
        let [attack, how, verdict, twin] = [attack, how, verdict, twin].map(|cell| cell_of(cell));
        let grew = format!("{:.1} MiB", f64::from(u32::try_from(*grew_kib)?) / 1024.0);
        // Two places, so that text sorts as numbers do.
        fence_command::leave(
            TABLE,
            &format!("{number:02}{part}\t{attack}\t{how}\t{verdict}\t{twin}\t{seconds:.2}\t{grew}"),
        )
    }
}

/// One cell: no tab and no line's end in it, and not too long.
fn cell_of(text: &str) -> String {
    let plain = text.replace(['\t', '\n', '\r'], " ");
    if plain.chars().count() <= CELL_CHARS_MAX {
        return plain;
    }
    plain.chars().take(CELL_CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_stays_one_cell() {
        assert_eq!(cell_of("a\tb\nc"), "a b c");
        assert_eq!(cell_of(&"x".repeat(500)).chars().count(), CELL_CHARS_MAX + 1);
    }

    #[test]
    fn a_number_that_is_none_is_refused() {
        let row = Row {
            number: LAST + 1,
            part: "",
            attack: "",
            how: "",
            verdict: "",
            twin: "",
            seconds: 0.0,
            grew_kib: 0,
        };
        assert!(row.leave().unwrap_err().to_string().contains("there is no attack"));
    }
}
