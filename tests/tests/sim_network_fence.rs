//! The built-in method network-fence against a modelled csi-addons that is quick, slow, fails or does not
//! run: what is released, when, and what is left in the cluster. No CSI driver is behind it.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Part, play};
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;

use crate::sim_run::parse;

/// A run in which node-a is lost, in a cluster with such a csi-addons.
fn check(cluster: &str, drivers: &str, and_then: &str, expected: &str) {
    let asked = "driver: block.csi.node-remedy.io, secretName: s, secretNamespace: ns, pool: a";
    check_asked(asked, cluster, drivers, and_then, expected);
}

/// The same, where csi-addons is asked so.
fn check_asked(asked: &str, cluster: &str, drivers: &str, and_then: &str, expected: &str) {
    check_text(&text(asked, cluster, drivers, and_then, expected));
}

fn text(asked: &str, cluster: &str, drivers: &str, and_then: &str, expected: &str) -> String {
    format!(
        "title: storage is cut by its driver
seed: 3
duration: 20m
cluster: {cluster}
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: storage }} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: storage }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: storage }} }}
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
      policies: {{ grades: [power-off-verified, storage-fenced] }}
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: FenceConfiguration
    metadata: {{ name: storage }}
    spec:
      nodeSelector: node-remedy.io/fence=storage
      methods:
      - name: storage
        builtin: network-fence
        parameters: {{ {asked} }}
        storageDrivers: [{drivers}]
      isolation: [{{ name: cut, methods: [storage] }}]
      recovery: [{{ name: back, methods: [storage] }}]
faults:
- {{ at: 60s, kubeletStops: node-a }}
{and_then}expect:
- {{ fact: twoWriters, times: 0 }}
{expected}
"
    )
}

fn check_text(text: &str) {
    let scenario = parse(text);
    let played = play(&scenario, Part::With).expect("a run");
    let unmet = scenario.expect.iter().filter(|one| one.judge(&played.facts).is_err());
    let unmet: Vec<String> = unmet.map(ToString::to_string).collect();
    assert_eq!(unmet, [""; 0], "{}", timeline(&played.facts));
    let broken = judge(&played.facts, &Setting::default()).broken;
    assert_eq!(broken, [], "{}", timeline(&played.facts));
}

const OURS: &str = "block.csi.node-remedy.io";
const REBOOTS: &str =
    "- { at: 400s, powerOffByHand: node-a }\n- { at: 410s, powerOnByHand: node-a }\n";
/// Cut and read as cut, once; its database runs elsewhere; it is let back when the node is.
const RELEASED: &str =
    "- { fact: proofRecorded, where: { node: node-a, grade: storage-fenced }, times: 1 }
- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 1 }
- { fact: writerStarted, where: { pod: default/db-0 }, after: 60s, by: 400s }
- { fact: fenceState, where: { node: node-a, state: Final } }";
const NOT_RELEASED: &str = "- { fact: proofRecorded, times: 0 }
- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 0 }
- { fact: writerStarted, where: { pod: default/db-0 }, times: 0, after: 60s, by: 400s }";

/// Also where csi-addons takes longer than one call.
#[test]
fn a_network_fence_releases_the_pods_of_its_driver() {
    for cluster in ["{}", "{ networkFence: 70s }"] {
        check(cluster, OURS, REBOOTS, RELEASED);
    }
}

/// csi-addons finds the driver; the model does not tell classes apart.
#[test]
fn a_network_fence_of_a_class_releases_the_pods_of_its_driver() {
    check_asked("networkFenceClass: ceph", "{}", OURS, REBOOTS, RELEASED);
}

/// What it cut is another driver's.
#[test]
fn a_network_fence_releases_nothing_of_another_driver() {
    check(
        "{}",
        "other.example.com",
        "",
        "- { fact: podGone, where: { pod: default/db-0, node: node-a, by: node-remedy }, times: 0 }
- { fact: writerStarted, where: { pod: default/db-0 }, times: 0, after: 60s }",
    );
}

/// Neither is believed to be cut.
#[test]
fn a_network_fence_that_failed_or_has_no_answer_releases_nothing() {
    for cluster in ["{ csiAddons: failed }", "{ csiAddons: never }"] {
        check(cluster, OURS, "", NOT_RELEASED);
    }
}

/// What the API server refuses is known not to have been done: a person is told, and nothing is given back.
#[test]
fn a_network_fence_that_may_not_be_made_is_told_of_and_not_given_back() {
    let denied = "- { at: 30s, apiFault: { fault: denied, verb: create, resource: networkfences, lasts: 15m } }\n";
    let told = format!(
        "{NOT_RELEASED}
- {{ fact: parkedRecorded, where: {{ node: node-a, reason: MethodFailed }}, by: 2m }}
- {{ fact: intentRecorded, where: {{ node: node-a, action: \"on\" }}, times: 0 }}
- {{ fact: fenceState, where: {{ node: node-a, state: Final }} }}"
    );
    let asked = "driver: block.csi.node-remedy.io, secretName: s, secretNamespace: ns, pool: a";
    let denied = format!("{denied}{REBOOTS}");
    let may_fail = text(asked, "{}", OURS, &denied, &told);
    let must_succeed =
        may_fail.replace("name: cut, methods", "name: cut, mustSuccess: true, methods");
    check_text(&must_succeed);
}

/// Neither taken over nor let back: it is theirs.
#[test]
fn a_network_fence_of_somebody_else_is_left_alone() {
    let theirs = "- { at: 30s, edit: { kind: NetworkFence, name: theirs, merge: { spec: { driver: block.csi.node-remedy.io, cidrs: [0.0.0.0/0], fenceState: Unfenced } } } }\n";
    check("{}", OURS, theirs, NOT_RELEASED);
}
