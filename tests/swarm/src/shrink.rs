//! Makes a run that broke an invariant short: the same run with as few faults as still
//! break it, one process of node-remedy where one will do, and an end right after it is broken.
//!
//! Works on the lines of the scenario, so that what runs draw need not know of it. The judge's
//! `Setting` stays that of the whole run, and that accuses nobody falsely:
//!
//! * What the setting excuses in the whole run (people who act, a BMC that tells old news, slow
//!   requests) it excuses in the short one too. A run can only lose a violation by that.
//! * L1 asks for nodes that the whole run loses. One that is no longer lost has been Ready all
//!   along, and so well.
//! * What is asked at the end is asked once trouble is over. So where the end broke the invariant,
//!   what ends a trouble that nobody else ends (`relieved`) is left out only with that trouble.
//!   What is broken by a fact is broken whatever comes later.
//! * A violation by a fact does not count as the same as one by the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::scenario::START;
use node_remedy_world::time::between;

use crate::checks::Violation;
use crate::ddmin::{Tried, ddmin};
use crate::play::{Outcome, judged};
use crate::seed_run::SeedRun;

/// Of each run that went wrong. Thirty faults take some sixty plays of a third of a second.
pub const PLAYS_MAX: usize = 200;
/// What comes right after an invariant is broken is shown too.
const AFTERMATH: Duration = Duration::from_secs(1);
/// What a scenario says where two processes of node-remedy run, and where one does.
const PROCESSES: [&str; 2] = ["\ncontrollers: 2\n", "\ncontrollers: 1\n"];

/// A run made short.
pub struct Shrunk {
    /// What became of it.
    pub outcome: Outcome,
    /// How the invariant is broken in it.
    pub violation: Violation,
    /// The faults that are left, a line of the scenario each.
    pub faults: Vec<String>,
    /// How many the whole run has.
    pub faults_whole: usize,
    /// How many nodes there are, which are never left out.
    pub nodes: usize,
    /// How many processes of node-remedy are left.
    pub processes: u32,
    /// How many plays it took.
    pub plays: usize,
}

/// Makes a run short that broke `wanted`, by at most so many plays. `tell` is told of each
/// shorter one: how many faults are left, after how many plays. Fails if one cannot be played.
pub fn shrink(
    whole: &Outcome,
    wanted: &Violation,
    plays_max: usize,
    tell: impl FnMut(usize, usize),
) -> anyhow::Result<Shrunk> {
    let text = &whole.run.text;
    let all: Vec<&str> = faults(text).collect();
    let mut shrinker = Shrinker {
        run: &whole.run,
        all: all.clone(),
        wanted,
        plays: 0,
        plays_max,
        held: BTreeSet::new(),
        shortest: None,
        tell,
    };
    // Whole classes first: most have nothing to do with it.
    let kept = ddmin(&by_class(&all), |kept| shrinker.attempt(text, &kept.concat()))?.concat();
    let kept: Vec<&str> = all.iter().filter(|line| kept.contains(line)).copied().collect();
    let [two, one] = PROCESSES;
    let alone = text.replace(two, one);
    let of_first = |line: &&&str| !line.contains("controller: 2");
    let kept_alone: Vec<&str> = kept.iter().filter(of_first).copied().collect();
    let is_alone = alone != *text && shrinker.attempt(&alone, &kept_alone)? == Tried::Breaks;
    let (text, kept) = if is_alone { (&alone, kept_alone) } else { (text, kept) };
    let kept = ddmin(&kept, |kept| shrinker.attempt(text, kept))?;
    if let Some(ended) = shrinker.ended(whole) {
        shrinker.attempt(&with_duration(text, ended), &kept)?;
    }
    let plays = shrinker.plays;
    let outcome = match shrinker.shortest {
        Some(outcome) => outcome,
        None => judged(whole.run.clone())?,
    };
    let scenario = outcome.run.scenario()?;
    Ok(Shrunk {
        nodes: scenario.nodes.len(),
        processes: scenario.controllers,
        violation: broken_alike(&outcome, wanted).unwrap_or(wanted).clone(),
        faults: faults(&outcome.run.text).map(str::to_owned).collect(),
        faults_whole: all.len(),
        outcome,
        plays,
    })
}

struct Shrinker<'a, T> {
    run: &'a SeedRun,
    /// All that happens in it.
    all: Vec<&'a str>,
    wanted: &'a Violation,
    plays: usize,
    plays_max: usize,
    /// Scenarios that were played and do not break it.
    held: BTreeSet<String>,
    /// The last that was played and breaks it.
    shortest: Option<Outcome>,
    tell: T,
}

impl<T: FnMut(usize, usize)> Shrinker<'_, T> {
    /// Plays a scenario with these faults only, out of all of the run.
    fn attempt(&mut self, text: &str, kept: &[&str]) -> anyhow::Result<Tried> {
        let is_at_the_end = self.wanted.at.is_none();
        if is_at_the_end && !is_trouble_over(&self.all, kept) {
            return Ok(Tried::Holds);
        }
        let text = with_faults(text, kept);
        if self.held.contains(&text) {
            return Ok(Tried::Holds);
        }
        let run = SeedRun { text, ..self.run.clone() };
        // Such as one that says what happens after it is over.
        if run.scenario().is_err() {
            return Ok(Tried::Holds);
        }
        if self.plays == self.plays_max {
            return Ok(Tried::NoneLeft);
        }
        self.plays += 1;
        let outcome = judged(run)?;
        if broken_alike(&outcome, self.wanted).is_none() {
            self.held.insert(outcome.run.text);
            return Ok(Tried::Holds);
        }
        (self.tell)(kept.len(), self.plays);
        self.shortest = Some(outcome);
        Ok(Tried::Breaks)
    }

    /// How long the shortest run has to last for the invariant to be broken, and a little.
    fn ended(&self, whole: &Outcome) -> Option<Duration> {
        let outcome = self.shortest.as_ref().unwrap_or(whole);
        let at = broken_alike(outcome, self.wanted)?.at?;
        Some(between(START, at) + AFTERMATH)
    }
}

/// The first violation of the same invariant, by a fact if `wanted` is by a fact.
fn broken_alike<'a>(outcome: &'a Outcome, wanted: &Violation) -> Option<&'a Violation> {
    outcome.broken.iter().find(|broken| {
        broken.invariant == wanted.invariant && broken.at.is_some() == wanted.at.is_some()
    })
}

fn is_fault(line: &str) -> bool {
    line.starts_with("- { at: ") || line.starts_with("- { when: ")
}

/// What happens in a scenario, a line each.
fn faults(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| is_fault(line))
}

/// The scenario with these of its faults only.
fn with_faults(text: &str, kept: &[&str]) -> String {
    let is_kept = |line: &&str| !is_fault(line) || kept.contains(line);
    let mut short: String = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
    if kept.is_empty() {
        short = short.replace("\nfaults:\n", "\nfaults: []\n");
    }
    short
}

fn with_duration(text: &str, duration: Duration) -> String {
    let of_duration = |line: &&str| line.starts_with("duration: ");
    let said = text.lines().find(of_duration).unwrap_or_default();
    text.replacen(said, &format!("duration: {}ms", duration.as_millis()), 1)
}

/// What happens, without the moment that it happens at.
fn what(line: &str) -> &str {
    let after = line.split_once(", after: ").map_or(line, |(_, after)| after);
    after.split_once("ms, ").map_or(after, |(_, what)| what)
}

fn by_class<'a>(faults: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut classes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for line in faults {
        classes.entry(class(line)).or_default().push(line);
    }
    classes.into_values().collect()
}

/// What kind of thing happens, such as `bmcFault stale` or `controllerKilled`.
fn class(line: &str) -> String {
    let fault = what(line).split_once("fault: ").map(|(_, fault)| fault);
    let fault = fault.and_then(|fault| fault.split([',', ' ']).next()).unwrap_or_default();
    format!("{} {fault}", kind(line)).trim_end().to_owned()
}

fn kind(line: &str) -> &str {
    let what = what(line);
    what.split_once(':').map_or(what, |(kind, _)| kind)
}

/// What kind of trouble a fault ends, and whose, if it ends any. Other kinds end by themselves
/// (`lasts`), or are for node-remedy to end.
fn relieved(line: &str) -> Option<(&str, &str)> {
    let what = what(line);
    let value_of = |field: &str| what.split_once(field)?.1.split([',', ' ']).next();
    match kind(line) {
        "nodeComesBack" => Some(("networkLost", value_of("nodeComesBack: ")?)),
        "letPodGo" => Some(("holdPod", value_of("letPodGo: ")?)),
        fault @ ("bmcFault" | "cloudFault") => {
            let is_over = value_of("fault: ") == Some("none") || value_of("value: ") == Some("0");
            is_over.then_some((fault, value_of("node: ")?))
        }
        "deviceFault" => {
            let is_over = value_of("fault: ") == Some("none") || value_of("value: ") == Some("0");
            is_over.then_some(("deviceFault", value_of("device: ")?))
        }
        _ => None,
    }
}

/// The object that people change, who change it back later.
fn edited(line: &str) -> Option<&str> {
    let object =
        what(line).strip_prefix("edit: ").or_else(|| what(line).strip_prefix("remove: "))?;
    object.split(", merge:").next().map(|object| object.trim_end_matches([' ', '}']))
}

/// Whether all that ends a trouble is kept where the trouble is.
fn is_trouble_over(all: &[&str], kept: &[&str]) -> bool {
    let mut left_out = all.iter().filter(|line| !kept.contains(line));
    left_out.all(|line| {
        let is_edited_still =
            kept.iter().any(|other| edited(line).is_some() && edited(other) == edited(line));
        let is_trouble_left = relieved(line).is_some_and(|(trouble, name)| {
            let mut troubles = kept.iter().filter(|line| relieved(line).is_none());
            troubles.any(|line| kind(line) == trouble && what(line).contains(name))
        });
        !is_edited_still && !is_trouble_left
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: &str = "- { at: 110896ms, networkLost: node-c }";
    const BACK: &str = "- { at: 420000ms, nodeComesBack: node-c }";
    const STALE: &str = "- { at: 3ms, bmcFault: { node: node-a, fault: stale, value: 20 } }";
    const NOT_STALE: &str = "- { at: 9ms, bmcFault: { node: node-a, fault: stale, value: 0 } }";
    const MENDED: &str = "- { at: 420000ms, bmcFault: { node: node-a, fault: none } }";
    const HELD: &str = "- { at: 10ms, holdPod: default/db-0 }";
    const LET_GO: &str = "- { when: { fact: proofRecorded, where: { node: node-c, \
         grade: power-off-verified } }, after: 43312ms, letPodGo: default/db-0 }";
    const BAD_WAY: &str = "- { when: { fact: bmcAccepted, where: { node: node-c, command: \"off\" } \
         }, after: 5ms, apiFault: { fault: slow, percent: 60, takes: 7ms, lasts: 20ms } }";
    const KILLED: &str = "- { at: 4ms, controllerKilled: { controller: 2, lasts: 20ms } }";
    const GONE: &str = "- { at: 5ms, remove: { kind: FenceConfiguration, name: ipmi } }";
    const REMADE: &str =
        "- { at: 9ms, edit: { kind: FenceConfiguration, name: ipmi, merge: { spec: {} } } }";
    const ALL: [&str; 11] =
        [LOST, BACK, STALE, NOT_STALE, MENDED, HELD, LET_GO, BAD_WAY, KILLED, GONE, REMADE];

    #[test]
    fn faults_are_of_a_class() {
        assert_eq!(
            ALL.map(class),
            [
                "networkLost",
                "nodeComesBack",
                "bmcFault stale",
                "bmcFault stale",
                "bmcFault none",
                "holdPod",
                "letPodGo",
                "apiFault slow",
                "controllerKilled",
                "remove",
                "edit",
            ]
        );
    }

    #[test]
    fn what_ends_a_trouble_is_left_out_only_with_it() {
        let is_over_without = |left_out: &[&str]| {
            let kept: Vec<&str> =
                ALL.iter().filter(|line| !left_out.contains(line)).copied().collect();
            is_trouble_over(&ALL, &kept)
        };
        for fine in [
            &[][..],
            &[LOST],
            &[LOST, BACK],
            &[STALE, NOT_STALE, MENDED],
            &[STALE],
            &[HELD, LET_GO],
            &[BAD_WAY, KILLED],
            &[GONE, REMADE],
            &ALL,
        ] {
            assert!(is_over_without(fine), "{fine:?}");
        }
        let wrong: [&[&str]; 6] =
            [&[BACK], &[MENDED], &[NOT_STALE], &[LET_GO], &[REMADE], &[LOST, BACK, LET_GO]];
        for wrong in wrong {
            assert!(!is_over_without(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_scenario_keeps_all_but_what_is_left_out() {
        let run = SeedRun::of(7, crate::seed_run::LASTS);
        let all: Vec<&str> = faults(&run.text).collect();
        assert!(all.len() > 3);
        assert_eq!(with_faults(&run.text, &all), run.text);
        let some: Vec<&str> = all.iter().step_by(2).copied().collect();
        for kept in [some.as_slice(), &[]] {
            let text =
                with_duration(&with_faults(&run.text, kept), Duration::from_millis(1_490_001));
            let short = SeedRun { text, ..run.clone() };
            let scenario = short.scenario().unwrap();
            assert_eq!(scenario.faults.len(), kept.len());
            assert_eq!(scenario.duration, Duration::from_millis(1_490_001));
            assert_eq!(
                short.text.lines().count(),
                run.text.lines().count() - all.len() + kept.len()
            );
        }
    }
}
