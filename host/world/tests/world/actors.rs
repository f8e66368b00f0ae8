//! Single actors where their rules are easy to get wrong.

use node_remedy_world::World;
use node_remedy_world::facts::What;

use crate::stage::{first, parse, run, scenario, timeline};

/// A cluster of `count` nodes in one zone, some of which fall silent at 60 s.
fn silent(count: usize, lost: usize) -> World {
    let width = count.to_string().len();
    let lost: Vec<String> = (1..=lost).map(|number| format!("n-{number:0width$}")).collect();
    run(&parse(&format!(
        "title: test
duration: 10m
cluster: {{ nodeMonitorGrace: 16s, nodeMonitorPeriod: 30s }}
nodes: [{{ name: n, count: {count} }}]
expect: [{{ fact: podCreated }}]
faults: [{{ at: 60s, rackSilent: [{}] }}]",
        lost.join(", ")
    )))
}

fn evicted(world: &World) -> usize {
    let no_execute =
        |what: &&What| matches!(what, What::TaintAdded { effect, .. } if effect == "NoExecute");
    world.facts().iter().map(|fact| &fact.what).filter(no_execute).count()
}

#[test]
fn evictions_stop_when_too_much_of_a_zone_is_not_ready() {
    let rows = [
        // (nodes, silent, nodes that get a NoExecute taint)
        (3, 1, 1),
        (3, 2, 2),
        (3, 3, 0),
        (5, 2, 2),
        (5, 3, 0),
        (6, 3, 3),
        (9, 8, 0),
    ];
    for (count, lost, expected) in rows {
        let world = silent(count, lost);
        assert_eq!(evicted(&world), expected, "{lost} of {count}: {}", timeline(&world));
    }
}

#[test]
fn one_node_of_a_zone_is_evicted_every_ten_seconds() {
    let world = silent(6, 3);
    let tainted = |node: &str| {
        first(&world, 60.0, &format!("{node}: tainted node.kubernetes.io/unreachable:NoExecute"))
    };
    let mut at: Vec<f64> = ["n-1", "n-2", "n-3"].iter().filter_map(|node| tainted(node)).collect();
    at.sort_by(f64::total_cmp);
    assert!((10.0..10.1).contains(&(at[1] - at[0])), "{at:?}");
    assert!((10.0..10.1).contains(&(at[2] - at[1])), "{at:?}");
}

#[test]
fn a_node_heard_of_again_loses_its_taints() {
    let world = run(&scenario(
        "- { at: 60s, networkLost: node-a }
- { at: 100s, nodeComesBack: node-a }",
    ));
    for effect in ["NoSchedule", "NoExecute"] {
        let removed = format!("taint node.kubernetes.io/unreachable:{effect} removed");
        let at = first(&world, 100.0, &removed).unwrap();
        assert!(at < 103.0, "{effect} {at}");
    }
    // The pod was told to end while nobody heard; it ends now and comes anew.
    assert!(first(&world, 100.0, "db-0: gone from node-a (kubelet:node-a)").is_some());
}

#[test]
fn the_default_toleration_is_five_minutes() {
    let world = run(&parse(
        "title: test
duration: 10m
nodes: [{ name: n, count: 3 }]
workloads: { statefulSets: [{ name: db, replicas: 1 }] }
expect: [{ fact: podCreated }]
faults: [{ at: 60s, kubeletStops: n-1 }]",
    ));
    let unknown = first(&world, 60.0, "n-1: Ready Unknown").unwrap();
    let terminating = first(&world, 60.0, "db-0: Terminating").unwrap();
    assert!((90.0..=116.0).contains(&unknown), "50 s of grace, looked at every 5 s: {unknown}");
    assert!((300.0..300.5).contains(&(terminating - unknown)), "{terminating}");
}

#[test]
fn a_cordoned_node_takes_no_new_pods() {
    let world = run(&parse(
        "title: test
duration: 5m
nodes: [{ name: n, count: 2 }]
workloads: { statefulSets: [{ name: db, replicas: 1 }] }
expect: [{ fact: podCreated }]
faults:
- { at: 60s, cordon: n-1 }
- { at: 61s, forceDeletePod: default/db-0 }",
    ));
    assert!(
        first(&world, 60.0, "n-1: tainted node.kubernetes.io/unschedulable:NoSchedule").is_some()
    );
    assert!(first(&world, 61.0, "db-0: bound to n-2").is_some());
}

#[test]
fn an_ordered_set_does_not_go_on_behind_a_lost_pod_and_a_parallel_one_does() {
    for (parallel, comes_back) in [(false, false), (true, true)] {
        let world = run(&parse(&format!(
            "title: test
duration: 5m
cluster: {{ nodeMonitorGrace: 16s, nodeMonitorPeriod: 2s }}
nodes: [{{ name: n, count: 3 }}]
workloads:
  statefulSets: [{{ name: db, replicas: 2, toleration: 300s, parallel: {parallel} }}]
expect: [{{ fact: podCreated }}]
faults:
- {{ at: 60s, kubeletStops: n-1 }}
- {{ at: 100s, forceDeletePod: default/db-1 }}"
        )));
        let again = first(&world, 100.0, "db-1: created").is_some();
        assert_eq!(again, comes_back, "parallel {parallel}");
    }
}

/// Its last pods go first; in an ordered set none does behind one that nobody ends.
#[test]
fn a_set_that_shrinks_loses_its_last_pods_first() {
    for (parallel, is_lost, end_of_db_1) in
        [(false, false, true), (true, false, true), (false, true, false), (true, true, true)]
    {
        let lost = if is_lost { "- { at: 60s, kubeletStops: n-3 }\n" } else { "" };
        let world = run(&parse(&format!(
            "title: test
duration: 8m
nodes: [{{ name: n, count: 3 }}]
workloads:
  statefulSets: [{{ name: db, replicas: 3, parallel: {parallel} }}]
expect: [{{ fact: podCreated }}]
faults:
{lost}- {{ at: 65s, edit: {{ kind: StatefulSet, namespace: default, name: db, \
             merge: {{ spec: {{ replicas: 1 }} }} }} }}"
        )));
        let told = |sentence| first(&world, 65.0, sentence);
        let (last, second) = (told("db-2: Terminating"), told("db-1: Terminating"));
        assert!(last.is_some_and(|at| at < 66.0), "{}", timeline(&world));
        assert_eq!(second.is_some(), end_of_db_1, "{}", timeline(&world));
        assert_eq!(told("db-1: gone").is_some(), end_of_db_1, "{}", timeline(&world));
        assert_eq!(told("db-2: gone").is_none(), is_lost, "{}", timeline(&world));
        if !parallel && !is_lost {
            assert!(second >= told("db-2: gone"), "one after the other: {}", timeline(&world));
        }
        for never in ["db-0: Terminating", "db-1: created", "db-2: created"] {
            assert_eq!(told(never), None, "{}", timeline(&world));
        }
    }
}

#[test]
fn leases_are_renewed_every_ten_seconds_and_not_in_step() {
    let mut world = World::new(&scenario("- { at: 9m, cordon: node-c }"));
    let mut renewals: Vec<Vec<u64>> = vec![Vec::new(); 3];
    let end = world.now().0 + 300_000;
    while let Some(next) = world.next_at().filter(|next| next.0 <= end) {
        let before = world.api().version();
        world.advance(next);
        let leases = world.api().changes(before).unwrap();
        let renewed: Vec<_> = leases
            .filter(|change| change.key.namespace == "kube-node-lease")
            .map(|change| (change.key.name.clone(), change.at.0))
            .collect();
        for (node, at) in renewed {
            let number = ["node-a", "node-b", "node-c"].iter().position(|name| *name == node);
            renewals[number.unwrap()].push(at);
        }
    }
    for of_node in &renewals {
        assert!(of_node.len() >= 29, "{}", of_node.len());
        for pair in of_node.windows(2).skip(1) {
            assert!((9_600..=10_400).contains(&(pair[1] - pair[0])), "{pair:?}");
        }
    }
    assert_ne!(renewals[0][2], renewals[1][2]);
}
