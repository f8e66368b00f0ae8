//! Grade `partition`: a node that nobody hears and no device answers for gives back what its driver
//! detaches, and the driver detaches nothing that is written to.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Part, play};
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;

use crate::sim_run::parse;

/// A run in which node-a ails so, its BMC says nothing for ten minutes, and the policy is this.
fn check(ailment: &str, policies: &str, and_then: &str, expected: &str) {
    let text = format!(
        "title: the driver checks
seed: 3
duration: 20m
cluster: {{ checksAtDetach: true }}
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }}, bmc: {{ faults: {{ silent: 1 }} }} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
workloads:
  statefulSets:
  - {{ name: db, replicas: 3, volumes: true, toleration: 30s, parallel: true }}
  - {{ name: web, replicas: 3, volumes: false, toleration: 30s, parallel: true }}
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: {{ name: all }}
    spec:
      thresholdConfigs: [{{ nodeLeaseAge: 20s, remedy1: [{{ name: fence }}] }}]
      policies: {policies}
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: {{ name: bmc-credentials, namespace: node-remedy }}
    stringData: {{ username: admin, password: simulated }}
faults:
- {{ at: 60s, {ailment}: node-a }}
{and_then}expect:
- {{ fact: twoWriters, times: 0 }}
- {{ fact: fenceState, where: {{ node: node-a, state: Final }} }}
{expected}
"
    );
    let scenario = parse(&text);
    let played = play(&scenario, Part::With).expect("a run");
    let unmet = scenario.expect.iter().filter(|one| one.judge(&played.facts).is_err());
    let unmet: Vec<String> = unmet.map(ToString::to_string).collect();
    assert_eq!(unmet, [""; 0], "{}", timeline(&played.facts));
    let setting = Setting { drivers_check: true, ..Setting::default() };
    assert_eq!(judge(&played.facts, &setting).broken, [], "{}", timeline(&played.facts));
}

const CHECKED: &str = "{ grades: [power-off-verified, partition], \
                       safeDetachDrivers: [block.csi.node-remedy.io] }";
const BMC_ANSWERS: &str = "- { at: 660s, bmcFault: { node: node-a, fault: silent, value: 0 } }\n";

/// Its kernel stands still and so writes nothing: the database runs elsewhere at once, the rest, and the
/// machine, when the BMC answers.
#[test]
fn a_machine_that_hangs_gives_its_databases_back_while_its_bmc_is_silent() {
    check(
        "machineHangs",
        CHECKED,
        BMC_ANSWERS,
        r#"- { fact: proofRecorded, where: { node: node-a, grade: partition }, times: 1, by: 120s }
- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 1, by: 120s }
- { fact: writerStarted, where: { pod: default/db-0 }, after: 60s, by: 180s }
- { fact: podGone, where: { pod: default/web-0, node: node-a }, times: 1, after: 600s }
- { fact: powerChanged, where: { node: node-a, power: "off", cause: command }, times: 1, after: 600s }
- { fact: proofRecorded, where: { node: node-a, grade: power-off-verified }, times: 1 }"#,
    );
}

/// It goes on where it stood, and the driver keeps it from the volume that moved: its process writes no more.
#[test]
fn a_machine_that_hung_and_goes_on_writes_to_no_volume_that_moved() {
    check(
        "machineHangs",
        CHECKED,
        "- { at: 400s, nodeComesBack: node-a }\n",
        "- { fact: proofRecorded, where: { node: node-a, grade: partition }, times: 1, by: 120s }
- { fact: writerStarted, where: { pod: default/db-0 }, after: 60s, by: 180s }
- { fact: writerStarted, where: { pod: default/db-0 }, times: 0, after: 400s }
- { fact: powerChanged, times: 0 }",
    );
}

/// Nobody hears it, and it goes on writing: its volume stays until it hears that its pod is gone. It is
/// not switched off for that.
#[test]
fn a_node_that_is_only_cut_off_keeps_its_volumes_until_it_is_back() {
    check(
        "networkLost",
        CHECKED,
        "- { at: 400s, nodeComesBack: node-a }\n",
        "- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 1, by: 120s }
- { fact: writerStarted, where: { pod: default/db-0 }, times: 0, after: 60s, by: 400s }
- { fact: writerStarted, where: { pod: default/db-0 }, after: 400s }
- { fact: powerChanged, times: 0 }
- { fact: taintRemoved, where: { node: node-a, key: node-remedy.io/quarantine }, times: 1, after: 400s }",
    );
}

/// Only where the policy names both.
#[test]
fn without_the_grade_and_the_driver_nothing_goes_before_the_machine_is_off() {
    for policies in [
        "{}",
        "{ grades: [power-off-verified, partition], safeDetachDrivers: [other.example.com] }",
        "{ grades: [power-off-verified] }",
    ] {
        check(
            "machineHangs",
            policies,
            BMC_ANSWERS,
            "- { fact: proofRecorded, where: { grade: partition }, times: 0 }
- { fact: podGone, where: { pod: default/db-0, node: node-a }, times: 1, after: 600s }",
        );
    }
}

/// Somebody deleted the pod of a machine that hangs, with force: what it leaves attached is given back behind
/// the proof that the machine is off, well before Kubernetes gives it up by itself after six minutes.
#[test]
fn an_attachment_that_no_pod_uses_any_more_goes_once_its_machine_is_off() {
    check(
        "machineHangs",
        "{ releaseMode: paced }",
        "- { at: 120s, forceDeletePod: default/db-0 }
- { at: 200s, bmcFault: { node: node-a, fault: silent, value: 0 } }\n",
        r#"- { fact: podGone, where: { pod: default/db-0, node: node-a, by: people }, times: 1, by: 125s }
- { fact: podGone, where: { pod: default/db-0, node: node-a }, times: 1 }
- { fact: powerChanged, where: { node: node-a, power: "off", cause: command }, times: 1, after: 200s }
- { fact: detachRequested, where: { node: node-a, by: node-remedy }, times: 1, after: 200s, by: 260s }
- { fact: writerStarted, where: { pod: default/db-0 }, times: 1, after: 200s, by: 300s }"#,
    );
}
