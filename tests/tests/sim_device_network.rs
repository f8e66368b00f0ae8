//! Runs in which the management network of a process is lost for long: nothing is opened while no device
//! answers it, and one that hears them leads.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_controller::refusals::Reason;
use node_remedy_simulate::{Part, Played, play};

use crate::sim_run::parse;

/// A run in which `faults` hit three nodes with a BMC each, of which node-a is lost after six
/// minutes. Devices are asked every five.
fn check(controllers: u32, faults: &str, expected: &str) -> Played {
    let text = format!(
        "title: the management network is lost
seed: 11
duration: 30m
controllers: {controllers}
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
configuration:
- file: ../config/remedy.yaml
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
{faults}- {{ at: 360s, kubeletStops: node-a }}
expect:
- {{ fact: twoWriters, times: 0 }}
{expected}
"
    );
    let scenario = parse(&text);
    let played = play(&scenario, Part::With).expect("a run");
    let unmet = scenario.expect.iter().filter(|one| one.judge(&played.facts).is_err());
    let unmet: Vec<String> = unmet.map(ToString::to_string).collect();
    assert_eq!(unmet, [""; 0]);
    played
}

/// What was said of this guard, one sentence for each time that it refused.
fn refused(played: &Played) -> Vec<String> {
    let is_it = |reason: &&Reason| reason.guard() == "DeviceNetworkLost";
    let reasons = played.collected.refused.iter().map(|refused| &refused.reason);
    reasons.filter(is_it).map(ToString::to_string).collect()
}

const LOST: &str = "- { at: 290s, devicesLost: { lasts: 10m } }\n";
const CUT_ONCE: &str = r#"- { fact: powerChanged, where: { node: node-a, power: "off", cause: command }, times: 1 }
- { fact: powerChanged, where: { node: node-a, power: "on", cause: command }, times: 1 }
- { fact: nodeReady, where: { node: node-a, status: "True" }, after: 370s }
"#;

#[test]
fn nothing_is_opened_while_no_device_answers_and_what_was_refused_is_fenced_then() {
    let expected = format!(
        "{CUT_ONCE}- {{ fact: fenceState, times: 0, by: 890s }}
- {{ fact: deviceAwaited, times: 0 }}
- {{ fact: powerChanged, where: {{ node: node-a, power: \"off\" }}, after: 890s, by: 960s }}"
    );
    let played = check(1, LOST, &expected);
    let said = refused(&played);
    let sentence = "none of the 3 devices has answered this replica for";
    assert!(said.iter().all(|one| one.contains(sentence)), "{said:#?}");
    assert!(!said.is_empty(), "it says why");
}

#[test]
fn a_process_that_hears_devices_leads() {
    let expected = format!(
        "{CUT_ONCE}- {{ fact: leaderChanged, after: 360s, by: 600s }}
- {{ fact: deviceAwaited, times: 0 }}
- {{ fact: powerChanged, where: {{ node: node-a, power: \"off\" }}, by: 600s }}"
    );
    let played = check(2, LOST, &expected);
    assert!(!refused(&played).is_empty(), "the one that led before refused");
}

/// The incident is open when the network goes: it waits for its own device, and its way back is not held.
#[test]
fn an_incident_that_is_open_is_not_held() {
    let lost = "- { when: { fact: powerChanged, where: { node: node-a, power: \"off\" } }, \
                devicesLost: { lasts: 8m } }\n";
    let played = check(1, lost, CUT_ONCE);
    assert_eq!(refused(&played), [""; 0]);
}
