//! What a swarm of runs has seen: a rule, a step or a fault that never came is not tested.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use crate::seed_run::classes;

/// Counts over many runs.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// Runs played.
    pub runs: u64,
    /// Runs in which a machine was switched off by command.
    pub with_off: u64,
    /// Runs by class of fault.
    pub faults: BTreeMap<String, u64>,
    /// Decisions by rule.
    pub rules: BTreeMap<String, u64>,
    /// Steps from one phase of an incident to another.
    pub transitions: BTreeMap<String, u64>,
    /// Things that happened.
    pub facts: u64,
    /// How long the runs lasted, in seconds of their own.
    pub simulated_s: u64,
}

/// The rules that a run can come to. Not among them is A18, which is asked before an incident begins, where no
/// rule is noted.
const RULES: [&str; 25] = [
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A10", "A11", "A12", "A13", "A14", "A15",
    "A16", "A17", "A19", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8",
];
/// The steps between phases that runs come to often enough to miss them: fourteen times or more in
/// three thousand. Rarer ones are not asked for; `host/decide/src/tests/walk.txt` lists what one BMC
/// can lead to.
const TRANSITIONS: [&str; 38] = [
    "AwaitingDevice -> PoweringOn",
    "AwaitingDevice -> ReadingIdentity",
    "AwaitingDevice -> Recovering",
    "AwaitingHealthy -> Parked",
    "AwaitingHealthy -> Recovering",
    "AwaitingHealthy -> Waiting",
    "Backoff -> PoweringOff",
    "Backoff -> PoweringOn",
    "Backoff -> ReadingIdentity",
    "Backoff -> VerifyingOff",
    "Parked -> Recovering",
    "PoweringOff -> Recovering",
    "PoweringOff -> VerifyingOff",
    "PoweringOn -> AwaitingDevice",
    "PoweringOn -> AwaitingHealthy",
    "PoweringOn -> Backoff",
    "PoweringOn -> Parked",
    "ReadingIdentity -> AwaitingDevice",
    "ReadingIdentity -> Backoff",
    "ReadingIdentity -> Parked",
    "ReadingIdentity -> PoweringOff",
    "ReadingIdentity -> VerifyingOff",
    "Recovering -> Final(Recovered)",
    "Recovering -> Final(RecoveredByHand)",
    "Recovering -> Final(Remedied)",
    "Recovering -> Waiting",
    "Releasing -> PoweringOn",
    "Releasing -> Untainting",
    "Untainting -> AwaitingHealthy",
    "Untainting -> PoweringOn",
    "VerifyingOff -> Backoff",
    "VerifyingOff -> Parked",
    "VerifyingOff -> PoweringOn",
    "VerifyingOff -> ReadingIdentity",
    "VerifyingOff -> Recovering",
    "VerifyingOff -> Releasing",
    "VerifyingOff -> Waiting",
    "Waiting -> ReadingIdentity",
];
/// With fewer runs nothing is asked of their coverage.
const ENOUGH: u64 = 1_500;
/// Of a hundred runs so many have to come to an off.
const WITH_OFF_PERCENT: u64 = 40;
/// Runs in which each class of fault has to come, once there are many.
const OF_EACH_CLASS: u64 = 100;
/// Before, one in so many.
const ONE_IN: u64 = 400;

impl Coverage {
    /// What these runs have not seen, and should have.
    pub fn missing(&self) -> Vec<String> {
        if self.runs < ENOUGH {
            return Vec::new();
        }
        let rules = RULES.iter().filter(|rule| !self.rules.contains_key(**rule));
        let mut missing: Vec<String> =
            rules.map(|rule| format!("rule {rule} never came to bear")).collect();
        let steps = TRANSITIONS.iter().filter(|step| !self.transitions.contains_key(**step));
        missing.extend(steps.map(|step| format!("no run went {step}")));
        let wanted = OF_EACH_CLASS.min(self.runs / ONE_IN);
        for class in classes() {
            let drawn = self.faults.get(&class).copied().unwrap_or_default();
            if drawn < wanted {
                missing.push(format!("{class} was drawn {drawn} times, expected {wanted}"));
            }
        }
        if self.with_off * 100 < self.runs * WITH_OFF_PERCENT {
            missing.push(format!("{} of {} runs came to an off", self.with_off, self.runs));
        }
        missing
    }

    /// Takes over what another has counted.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.with_off += other.with_off;
        self.facts += other.facts;
        self.simulated_s += other.simulated_s;
        for (all, more) in [
            (&mut self.faults, other.faults),
            (&mut self.rules, other.rules),
            (&mut self.transitions, other.transitions),
        ] {
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
        let percent = (self.with_off * 100).checked_div(self.runs).unwrap_or_default();
        writeln!(f, "runs with an off: {} of {} ({percent} %)", self.with_off, self.runs)?;
        writeln!(f, "faults  {}", line(&self.faults))?;
        writeln!(f, "rules   {}", line(&self.rules))?;
        write!(f, "phases  {}", line(&self.transitions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_told() {
        let full = |count: u64| Coverage {
            runs: 2_000,
            with_off: 800,
            faults: classes().into_iter().map(|class| (class, count)).collect(),
            rules: RULES.iter().map(|rule| ((*rule).to_owned(), 1)).collect(),
            transitions: TRANSITIONS.iter().map(|step| ((*step).to_owned(), 1)).collect(),
            facts: 1,
            simulated_s: count,
        };
        assert_eq!(full(10).missing(), [""; 0]);
        assert_eq!(full(4).missing().len(), classes().len());
        let few_offs = Coverage { with_off: 799, ..full(10) };
        assert_eq!(few_offs.missing(), ["799 of 2000 runs came to an off"]);
        let mut without = full(10);
        without.rules.remove("A13");
        assert_eq!(without.missing(), ["rule A13 never came to bear"]);
        let mut without = full(10);
        without.transitions.remove("VerifyingOff -> Releasing");
        assert_eq!(without.missing(), ["no run went VerifyingOff -> Releasing"]);
    }
}
