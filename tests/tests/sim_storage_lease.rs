//! A node that nobody hears but that still uses its storage: whoever sees it renews the node's storage
//! Lease, and as long as that goes on the node is left alone.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

/// The node's network is lost after a minute; its storage Lease is renewed every 10 s until `until_s`.
/// What of the run's expectations did not come true.
fn missed(policies: &str, until_s: u64, expected: &str) -> Vec<String> {
    let mut renewals = String::new();
    for at in (0..until_s).step_by(10) {
        let stamp = format!("2026-01-01T00:{:02}:{:02}.000000Z", at / 60, at % 60);
        let lease = "kind: Lease, namespace: storage, name: node-a";
        writeln!(
            renewals,
            "- {{ at: {at}s, edit: {{ {lease}, merge: {{ spec: {{ renewTime: \"{stamp}\" }} }} }} }}"
        )
        .expect("a text");
    }
    let text = format!(
        "title: the storage speaks for a node
seed: 7
duration: 15m
nodes:
- {{ name: node-a, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-b, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
- {{ name: node-c, bootTime: 20s, labels: {{ node-remedy.io/fence: ipmi }} }}
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
- {{ at: 60s, networkLost: node-a }}
{renewals}expect:
{expected}
"
    );
    let source = Source { name: "a storage lease".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

const ASKED: &str = "{ storageLeases: { namespace: storage, maxAge: 40s } }";
const CUT_LATE: &str =
    r#"- { fact: powerChanged, where: { node: node-a, power: "off" }, times: 1, after: 330s }"#;
const CUT_EARLY: &str =
    r#"- { fact: powerChanged, where: { node: node-a, power: "off" }, times: 1, by: 180s }"#;
const LEFT_ALONE: &str = "- { fact: powerChanged, times: 0 }";

#[test] // promise: G4
fn a_node_that_renews_its_storage_lease_is_fenced_only_once_it_stops() {
    let none: [String; 0] = [];
    assert_eq!(missed(ASKED, 890, LEFT_ALONE), none);
    assert_eq!(missed(ASKED, 300, CUT_LATE), none);
    assert_eq!(missed("{}", 300, CUT_EARLY), none, "nobody asked");
    assert_eq!(missed(ASKED, 0, CUT_EARLY), none, "nobody vouches");
}
