//! Nights of instances of EC2: the shipped component, the host's own signatures, and the modelled API.

use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, What};

use super::{Part, play};

const NIGHT: &str = include_str!("../../../../tests/scenarios/cloud-loss.yaml");
const FENCE: &str = include_str!("../../../../examples/config/fence-aws.yaml");

/// The plain loss of an instance, changed as a test needs it.
fn night(from: &str, to: &str) -> Scenario {
    assert!(NIGHT.contains(from));
    let load = |_: &str| Ok(FENCE.to_owned());
    Scenario::parse("cloud-loss.yaml", &NIGHT.replace(from, to), &load).unwrap()
}

fn told(facts: &[Fact], test: impl Fn(&What) -> bool) -> usize {
    facts.iter().filter(|fact| test(&fact.what)).count()
}

#[test]
fn a_lost_instance_is_stopped_proven_and_started() {
    let scenario = night("seed: 1", "seed: 1");
    let played = play(&scenario, Part::With).unwrap();
    let unmet: Vec<String> = scenario
        .expect
        .iter()
        .filter_map(|one| Some(one.judge(&played.facts).err()?.to_string()))
        .collect();
    assert_eq!(unmet, [""; 0]);
    // Nothing was released of it while it was stopping.
    let proven = played
        .facts
        .iter()
        .position(|fact| matches!(&fact.what, What::CloudTold { state, .. } if state == "stopped"));
    let released = played.facts.iter().position(|fact| matches!(fact.what, What::PodGone { .. }));
    assert!(proven.unwrap() < released.unwrap());
}

/// Key and clock are checked by the service.
#[test]
fn a_wrong_key_cuts_nothing_and_says_so() {
    let wrong_key = night("password: simulated", "password: guessed");
    let unknown_key = night("username: admin", "username: fence");
    let wrong_clock = night(
        "happenings:\n",
        "happenings:\n- { at: 5s, clockFault: { controller: 1, ahead: 1h } }\n\
         - { at: 6s, controllerKilled: { controller: 1, lasts: 1s } }\n\
         - { at: 5s, clockFault: { controller: 2, ahead: 1h } }\n\
         - { at: 6s, controllerKilled: { controller: 2, lasts: 1s } }\n",
    );
    for (scenario, says) in [
        (wrong_key, "SignatureDoesNotMatch"),
        (unknown_key, "AuthFailure"),
        (wrong_clock, "RequestExpired"),
    ] {
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
