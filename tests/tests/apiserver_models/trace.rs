//! When two orders of facts are the same order.
//!
//! Parts of a control plane that do not wait for each other come first in turn: which one did says
//! nothing. Every fact names what it writes and what it depends on. Two facts that have nothing to
//! do with each other may stand in either order; all others may not. Both sides' facts are brought
//! into the first of all orders that this allows, and are equal or not.

use std::time::Duration;

/// Something that was seen to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    /// The version that the API server gave the write: the order of all facts of a cluster.
    pub(crate) version: u64,
    /// When, since the side's start.
    pub(crate) at: Duration,
    /// What, in words that are the same on both sides.
    pub(crate) line: String,
    /// What it changes.
    pub(crate) writes: Vec<String>,
    /// What somebody looked at to do it.
    pub(crate) reads: Vec<String>,
}

impl Fact {
    /// Whether the order of the two says something.
    fn depends_on(&self, other: &Self) -> bool {
        let touches = |one: &Self, cell| one.writes.contains(cell) || one.reads.contains(cell);
        self.writes.iter().any(|cell| touches(other, cell))
            || other.writes.iter().any(|cell| touches(self, cell))
    }
}

/// The lines of the facts in the alphabetically first order that says the same.
pub(crate) fn in_normal_order(facts: &[Fact]) -> Vec<String> {
    let mut left: Vec<&Fact> = facts.iter().collect();
    left.sort_by_key(|fact| fact.version);
    let mut lines = Vec::new();
    loop {
        let free = left.iter().enumerate().filter(|(place, fact)| {
            !left.iter().take(*place).any(|earlier| fact.depends_on(earlier))
        });
        let Some((place, _)) = free.min_by_key(|(_, fact)| &fact.line) else { return lines };
        lines.push(left.remove(place).line.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(rows: &[(&str, &str, &str)]) -> Vec<Fact> {
        let cells = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        (0..)
            .zip(rows)
            .map(|(version, (line, writes, reads))| Fact {
                version,
                at: Duration::ZERO,
                line: (*line).to_owned(),
                writes: cells(writes),
                reads: cells(reads),
            })
            .collect()
    }

    #[test]
    fn only_facts_that_have_nothing_to_do_with_each_other_change_places() {
        let lost = ("lost", "node", "");
        let (tainted, told) = (("tainted", "taint", "node"), ("told", "pod", "node"));
        let one = in_normal_order(&facts(&[lost, tainted, told]));
        assert_eq!(one, in_normal_order(&facts(&[lost, told, tainted])));
        assert_ne!(one, in_normal_order(&facts(&[tainted, lost, told])));
        let again = ("again", "taint", "");
        assert_ne!(
            in_normal_order(&facts(&[tainted, again])),
            in_normal_order(&facts(&[again, tainted]))
        );
    }
}
