//! What a scenario lets happen after a fact, and not at a time.

use node_remedy_world::facts::What;

use crate::stage::{first, run, scenario};

#[test]
fn what_waits_for_a_fact_comes_after_it() {
    let world = run(&scenario(
        "- { at: 60s, kubeletStops: node-a }
- { when: { fact: nodeReady, where: { node: node-a, status: Unknown } }, after: 3s, cordon: node-a }
- { when: { fact: nodeReady, where: { node: node-a }, time: 3 }, powerOffByHand: node-a }
- { when: { fact: nodeDeleted, where: { node: node-a } }, cordon: node-b }
- { at: 120s, nodeComesBack: node-a }",
    ));
    let unknown = first(&world, 60.0, "node-a: Ready Unknown").unwrap();
    let cordoned = first(&world, 0.0, "node-a: cordoned").unwrap();
    assert!((cordoned - unknown - 3.0).abs() < 0.001, "{unknown} {cordoned}");
    // True at first, Unknown, True again.
    let back = first(&world, 120.0, "node-a: Ready True").unwrap();
    assert!(first(&world, 0.0, "node-a: power off").is_some_and(|off| off >= back));
    let is_cordoned = |what: &What| matches!(what, What::Cordoned { node, .. } if node == "node-b");
    assert!(!world.facts().iter().any(|fact| is_cordoned(&fact.what)), "nothing was deleted");
}

#[test]
fn a_held_pod_waits_for_whoever_holds_it() {
    let world = run(&scenario(
        "- { at: 50s, holdPod: default/db-0 }
- { at: 60s, forceDeletePod: default/db-0 }
- { at: 90s, letPodGo: default/db-0 }",
    ));
    assert_eq!(first(&world, 0.0, "default/db-0: gone"), Some(90.0));
}

#[test]
fn people_make_change_and_remove_objects() {
    let policy = "kind: RemedyConfiguration, name: p";
    let world = run(&scenario(&format!(
        "- {{ at: 10s, edit: {{ {policy}, merge: {{ spec: {{ mode: enforce }} }} }} }}
- {{ at: 20s, edit: {{ {policy}, merge: {{ spec: {{ mode: shadow }} }} }} }}
- {{ at: 30s, remove: {{ {policy} }} }}
- {{ at: 40s, remove: {{ {policy} }} }}"
    )));
    for (at, sentence) in
        [(10.0, "p: says mode enforce"), (20.0, "p: says mode shadow"), (30.0, "p: is gone")]
    {
        assert_eq!(first(&world, 0.0, sentence), Some(at), "{sentence}");
    }
    let edited = |from| first(&world, from, "RemedyConfiguration p: edited (people)");
    assert_eq!((edited(0.0), edited(21.0), edited(31.0)), (Some(10.0), Some(30.0), None));
}

#[test]
fn a_remediator_leaves_a_lock_that_somebody_has() {
    let world = run(&scenario(
        "- { at: 10s, edit: { kind: Lease, namespace: medik8s-leases, name: node-node-b, merge: { spec: { holderIdentity: node-remedy, leaseDurationSeconds: 60, renewTime: '2026-01-01T00:00:10.000000Z' } } } }
- { at: 20s, otherRemedy: { node: node-a, lasts: 60s } }
- { at: 30s, otherRemedy: { node: node-b, lasts: 60s } }
- { at: 90s, otherRemedy: { node: node-b, lasts: 60s } }",
    ));
    assert_eq!(first(&world, 0.0, "node-a: node-healthcheck has its lock for 60 s"), Some(20.0));
    assert_eq!(first(&world, 0.0, "node-b: node-healthcheck has its lock"), Some(90.0));
}
