//! Runs of instances of EC2: the shipped component, the host's own signatures, and the modelled API.

use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, What};
use node_remedy_world::scenario::Expectation;

use crate::{Part, play};

const SCENARIO: &str = include_str!("../../../tests/scenarios/cloud-loss.yaml");
const FENCE: &str = include_str!("../../../examples/config/fence-aws.yaml");

/// The plain loss of an instance, changed as a test needs it.
fn run(from: &str, to: &str) -> Scenario {
    assert!(SCENARIO.contains(from));
    let load = |_: &str| Ok(FENCE.to_owned());
    Scenario::parse("cloud-loss.yaml", &SCENARIO.replace(from, to), &load).unwrap()
}

fn told(facts: &[Fact], test: impl Fn(&What) -> bool) -> usize {
    facts.iter().filter(|fact| test(&fact.what)).count()
}

/// What a run expected and did not see.
fn unmet(scenario: &Scenario, facts: &[Fact]) -> Vec<String> {
    let unmet = |one: &Expectation| Some(one.judge(facts).err()?.to_string());
    scenario.expect.iter().filter_map(unmet).collect()
}

#[test]
fn a_lost_instance_is_stopped_proven_and_started() {
    let scenario = run("seed: 1", "seed: 1");
    let played = play(&scenario, Part::With).unwrap();
    assert_eq!(unmet(&scenario, &played.facts), [""; 0]);
    // Nothing was released of it while it was stopping.
    let proven = played.facts.iter().position(
        |fact| matches!(&fact.what, What::CloudReported { state, .. } if state == "stopped"),
    );
    let released = played.facts.iter().position(|fact| matches!(fact.what, What::PodGone { .. }));
    assert!(proven.unwrap() < released.unwrap());
}

/// The service checks how old a signature is. Ours are made by the API server's time.
#[test]
fn a_wall_clock_that_is_wrong_keeps_nobody_from_being_heard() {
    let scenario = run(
        "faults:\n",
        "faults:\n- { at: 5s, clockFault: { controller: 1, ahead: 1h } }\n\
         - { at: 6s, controllerKilled: { controller: 1, lasts: 1s } }\n\
         - { at: 5s, clockFault: { controller: 2, ahead: 1h } }\n\
         - { at: 6s, controllerKilled: { controller: 2, lasts: 1s } }\n",
    );
    let facts = play(&scenario, Part::With).unwrap().facts;
    assert_eq!(told(&facts, |what| matches!(what, What::CloudRefused { .. })), 0);
    assert_eq!(unmet(&scenario, &facts), [""; 0]);
}

#[test]
fn a_wrong_key_cuts_nothing_and_says_so() {
    let wrong_key = run("password: simulated", "password: guessed");
    let unknown_key = run("username: admin", "username: fence");
    for (scenario, says) in [(wrong_key, "SignatureDoesNotMatch"), (unknown_key, "AuthFailure")] {
        let facts = play(&scenario, Part::With).unwrap().facts;
        let refused =
            |what: &What| matches!(what, What::CloudRefused { reason, .. } if reason == says);
        assert!(told(&facts, refused) > 0, "{says}");
        let parked =
            |what: &What| matches!(what, What::FenceState { state, .. } if state == "Error");
        assert!(told(&facts, parked) > 0, "{says}");
        for what in ["powerChanged", "podGone"] {
            let is_it = |one: &What| serde_json::to_value(one).unwrap()["fact"] == what;
            assert_eq!(told(&facts, is_it), 0, "{says}: {what}");
        }
    }
}
