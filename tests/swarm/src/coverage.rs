//! What a swarm of nights has seen: a rule or a fault that never came is not tested.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Counts over many nights.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Nights played.
    pub nights: u64,
    /// Nights in which a machine was switched off by command.
    pub with_off: u64,
    /// Nights by class of fault.
    pub faults: BTreeMap<String, u64>,
    /// Transitions by rule.
    pub rules: BTreeMap<String, u64>,
    /// Things that happened.
    pub facts: u64,
}

impl Coverage {
    /// Takes over what another has counted.
    pub fn merge(&mut self, other: Self) {
        self.nights += other.nights;
        self.with_off += other.with_off;
        self.facts += other.facts;
        for (all, more) in [(&mut self.faults, other.faults), (&mut self.rules, other.rules)] {
            for (name, count) in more {
                *all.entry(name).or_default() += count;
            }
        }
    }
}

impl Display for Coverage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let line = |counts: &BTreeMap<String, u64>| {
            let all: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            all.join(" · ")
        };
        let percent = (self.with_off * 100).checked_div(self.nights).unwrap_or_default();
        writeln!(f, "nights with an off: {} of {} ({percent} %)", self.with_off, self.nights)?;
        writeln!(f, "faults  {}", line(&self.faults))?;
        write!(f, "rules   {}", line(&self.rules))
    }
}
