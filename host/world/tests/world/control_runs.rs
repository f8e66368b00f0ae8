//! Whole timelines, compared with what was measured on a real control plane with the same
//! grace period (16 s), toleration (10 s) and driver times.

use node_remedy_world::facts::What;

use crate::stage::{first, run, scenario, timeline};

/// When people act in the timelines below; the pod has been Terminating for a while.
const ACT: f64 = 120.0;

#[test]
fn a_lost_nodes_pod_is_terminating_for_ever_and_still_writes() {
    let world = run(&scenario("- { at: 60s, kubeletStops: node-a }"));
    let unknown = first(&world, 60.0, "node-a: Ready Unknown").unwrap();
    assert!((66.0..=80.0).contains(&unknown), "{unknown}");
    let terminating = first(&world, unknown, "db-0: Terminating on node-a").unwrap();
    // A toleration, and two calls of the API.
    assert!((10.0..=10.4).contains(&(terminating - unknown)), "{terminating}");
    for never in ["db-0: gone", "db-0: bound to node-b", "pv-default-db-0: detached"] {
        assert_eq!(first(&world, 60.0, never), None, "{never}");
    }
    let writers = world.writers("pv-default-db-0");
    assert_eq!(writers.len(), 1);
    assert_eq!(writers[0].node, "node-a");
}

#[test]
fn the_taint_alone_waits_for_pod_garbage_collection() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, taintOutOfService: node-a }",
    ));
    let gone = first(&world, ACT, "db-0: gone from node-a (pod-garbage-collector)").unwrap();
    assert!(gone - ACT <= 20.0, "a round takes 20 s: {gone}");
    assert!(gone - ACT > 0.0);
    let running = first(&world, gone, "db-0: Running").unwrap();
    assert!((1.0..2.5).contains(&(running - gone)), "measured 1.7: {running}");
}

#[test]
fn taint_and_delete_together_move_the_volume_at_once() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, taintOutOfService: node-a }
- { at: 120s, forceDeletePod: default/db-0 }",
    ));
    let since = |sentence| first(&world, ACT, sentence).unwrap() - ACT;
    assert!(since("pv-default-db-0: detached from node-a") < 1.0);
    assert!(since("pv-default-db-0: attached to node-c") < 1.0);
    let running = since("db-0: Running on node-c");
    assert!((1.2..2.2).contains(&running), "measured 1.7: {running}");
    assert_eq!(first(&world, 0.0, "TWO WRITERS"), None);
}

#[test]
fn a_delete_alone_leaves_the_volume_with_the_dead_node_for_six_minutes() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, forceDeletePod: default/db-0 }",
    ));
    let bound = first(&world, ACT, "db-0: bound to node-c").unwrap();
    assert!(bound - ACT < 0.5, "the new pod comes at once");
    let detached = first(&world, ACT, "pv-default-db-0: detached from node-a").unwrap();
    assert!((360.0..361.0).contains(&(detached - ACT)), "{detached}");
}

#[test]
fn a_deleted_node_keeps_its_volume_for_six_minutes() {
    let world = run(&scenario(
        "- { at: 60s, kubeletStops: node-a }
- { at: 120s, deleteNode: node-a }",
    ));
    let gone = first(&world, ACT, "db-0: gone from node-a (pod-garbage-collector)").unwrap();
    assert!((40.0..=65.0).contains(&(gone - ACT)), "a quarantine and a round: {gone}");
    let detached = first(&world, ACT, "pv-default-db-0: detached from node-a").unwrap();
    assert!((360.0..361.0).contains(&(detached - gone)), "{detached}");
}

#[test]
fn delete_and_attachment_delete_wait_for_the_controllers_verification() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, forceDeletePod: default/db-0 }
- { at: 120s, deleteAttachments: node-a }",
    ));
    let detached = first(&world, ACT, "pv-default-db-0: detached from node-a").unwrap();
    assert!(detached - ACT < 0.5);
    let attached = first(&world, ACT, "pv-default-db-0: attached to node-c").unwrap();
    assert!((1.0..=61.0).contains(&(attached - ACT)), "measured 29, at most 60: {attached}");
}

#[test]
fn an_attachment_deleted_alone_is_made_again_on_the_dead_node() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, deleteAttachments: node-a }",
    ));
    let detached = first(&world, ACT, "pv-default-db-0: detached from node-a").unwrap();
    let again = first(&world, detached, "pv-default-db-0: attached to node-a").unwrap();
    assert!((1.0..=61.0).contains(&(again - detached)), "measured 28, at most 60: {again}");
}

#[test]
fn a_release_without_proof_makes_two_writers() {
    let world = run(&scenario(
        "- { at: 60s, kubeletStops: node-a }
- { at: 120s, taintOutOfService: node-a }
- { at: 120s, forceDeletePod: default/db-0 }",
    ));
    let two = |what: &&What| matches!(what, What::TwoWriters { .. });
    let found: Vec<&What> = world.facts().iter().map(|fact| &fact.what).filter(two).collect();
    let expected = What::TwoWriters {
        volume: "pv-default-db-0".to_owned(),
        pod: "default/db-0".to_owned(),
        node: "node-c".to_owned(),
        other: "node-a".to_owned(),
    };
    assert_eq!(found, [&expected], "{}", timeline(&world));
}

#[test]
fn a_machine_that_hangs_through_a_release_writes_again_when_it_goes_on() {
    let world = run(&scenario(
        "- { at: 60s, machineHangs: node-a }
- { at: 120s, taintOutOfService: node-a }
- { at: 120s, forceDeletePod: default/db-0 }
- { at: 200s, nodeComesBack: node-a }",
    ));
    assert_eq!(first(&world, 60.0, "no longer written by default/db-0 on node-a"), Some(60.0));
    assert_eq!(first(&world, 0.0, "TWO WRITERS"), Some(200.0));
}

#[test]
fn a_machine_that_boots_starts_no_pod_before_it_has_listed_them() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 80s, powerOnByHand: node-a }",
    ));
    let started = first(&world, 80.0, "node-a: the kubelet started").unwrap();
    assert!((started - 125.0).abs() < 0.001, "45 s of boot: {started}");
    // By then it is Terminating: the first list ends it, and the set makes a new one.
    let gone = first(&world, started, "db-0: gone from node-a (kubelet:node-a)").unwrap();
    assert!(gone - started < 5.0, "{gone}");
    let writes = first(&world, 80.0, "pv-default-db-0: written by default/db-0 on node-a");
    assert!(writes.is_none_or(|writes| writes > gone), "{writes:?}");
    assert!(first(&world, gone, "db-0: Running on").is_some());
    assert_eq!(first(&world, 0.0, "TWO WRITERS"), None);

    // Without a network it lists none: what ran here before stays stopped.
    let world = run(&scenario(
        "- { at: 60s, networkLost: node-a }
- { at: 61s, powerOffByHand: node-a }
- { at: 62s, powerOnByHand: node-a }",
    ));
    assert!(first(&world, 62.0, "node-a: the kubelet started").is_some());
    assert_eq!(first(&world, 62.0, "written by default/db-0 on node-a"), None);
}

#[test]
fn a_machine_switched_on_after_the_release_does_not_touch_the_volume() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 120s, taintOutOfService: node-a }
- { at: 120s, forceDeletePod: default/db-0 }
- { at: 180s, powerOnByHand: node-a }",
    ));
    assert!(first(&world, 180.0, "node-a: Ready True").is_some());
    assert_eq!(first(&world, 180.0, "written by default/db-0 on node-a"), None);
    assert_eq!(first(&world, 0.0, "TWO WRITERS"), None);
}

#[test]
fn pods_of_a_deleted_node_are_orphans_after_a_quarantine() {
    let world = run(&scenario(
        "- { at: 60s, powerOffByHand: node-a }
- { at: 61s, deleteNode: node-a }",
    ));
    let gone = first(&world, 61.0, "db-0: gone from node-a (pod-garbage-collector)").unwrap();
    assert!((40.0..=81.0).contains(&(gone - 61.0)), "{gone}");
    assert!(first(&world, gone, "db-0: Running on").is_some());
}

#[test]
fn a_short_silence_changes_nothing() {
    let world = run(&scenario(
        "- { at: 60s, networkLost: node-a }
- { at: 65s, nodeComesBack: node-a }",
    ));
    for never in ["Ready Unknown", "Terminating", "tainted"] {
        assert_eq!(first(&world, 60.0, never), None, "{never}");
    }
}
