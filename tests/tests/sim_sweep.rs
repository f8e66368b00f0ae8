//! Hundreds of runs, each another seed, way of being lost and fault of the BMC.
//!
//! `NODE_REMEDY_SIM_SEEDS=FROM..TO` plays other or more of them. A run that breaks a promise is
//! printed with its seed, its scenario and everything that happened.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use node_remedy_simulate::{Part, play};
use node_remedy_world::facts::Power;

use crate::sim_run::{Kind, LOST, SeedRun};
use node_remedy_swarm::judge::{Judgement, judge, timeline};
use node_remedy_swarm::scene::Setting;

/// What fits into a minute on two cores in a debug build.
const SEEDS: Range<u64> = 0..203;
/// Of several runs that went wrong, how many are printed.
const TOLD: usize = 3;

#[test]
fn no_run_breaks_a_promise() {
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let wrong = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    if let Some(told) = went_wrong(&SeedRun::of(seed)) {
                        wrong.lock().expect("a list").insert(seed, told);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("a list");
    let told: String = wrong.values().take(TOLD).map(String::as_str).collect();
    let all: Vec<u64> = wrong.keys().copied().collect();
    assert!(wrong.is_empty(), "{told}\n{} seeds went wrong: {all:?}", all.len());
}

/// Plays a run; what is wrong with it, its scenario and its facts.
fn went_wrong(run: &SeedRun) -> Option<String> {
    let played = play(&run.scenario(), Part::With).expect("a run that can be played");
    let mut judgement = judge(&played.facts, &Setting::default());
    let broken = std::mem::take(&mut judgement.broken);
    let broken = broken.iter().map(ToString::to_string);
    let broken: Vec<String> = broken.chain(of_this_run(run, &judgement)).collect();
    if broken.is_empty() {
        return None;
    }
    let (yaml, facts) = (run.yaml(), timeline(&played.facts));
    Some(format!("\n{run:?}\n{yaml}\n{facts}\n{judgement:#?}\nbroken: {broken:#?}\n"))
}

/// What this very run promises besides, by what its BMC is good for.
fn of_this_run(run: &SeedRun, judgement: &Judgement) -> Vec<String> {
    let mut broken = Vec::new();
    let mut promise = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    let others = judgement.commanded.iter().any(|(_, node, _)| node != LOST);
    promise(!others, "only the lost machine is switched");
    let accepted = judgement.offs_accepted.values().copied().max().unwrap_or_default();
    match run.fault.kind {
        Kind::Honest => {
            // Where the answer is lost, the same command is sent again within its session.
            let told_once = accepted <= 1 || run.fault.name == "reply_lost";
            // Somebody who switches it on before it was proven off has undone it.
            let undone = judgement.interfered;
            promise(told_once || undone, "an honest BMC is told off once");
            promise(judgement.times(Power::Off) <= 1 || undone, "there is one power cycle");
            let over = judgement.incidents.values().all(|state| state == "Final");
            promise(over, "the incident is over");
            let ready = judgement.ready.get(LOST).is_some_and(|status| status == "True");
            promise(ready, "the node is well again");
            if run.back_ms.is_none() {
                promise(judgement.incidents.len() == 1, "there is one incident");
                promise(judgement.times(Power::On) == 1, "the machine is on again");
                let pod = judgement.runs_on.get("default/db-0");
                promise(pod.is_some_and(|node| node != LOST), "the pod is back elsewhere");
            }
        }
        Kind::Lying => promise(accepted <= 3, "two retries are two more tries"),
        Kind::Unusable => promise(judgement.times(Power::Off) <= 1, "there is one power cycle"),
    }
    broken
}

#[expect(clippy::disallowed_methods, reason = "a test's only argument is its environment")]
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var("NODE_REMEDY_SIM_SEEDS") else { return SEEDS };
    let range =
        asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("NODE_REMEDY_SIM_SEEDS: found {asked:?}, expected FROM..TO"))
}
