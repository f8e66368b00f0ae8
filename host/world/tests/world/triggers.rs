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
