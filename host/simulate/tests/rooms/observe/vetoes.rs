//! Tests of `node_remedy_observe::vetoes` in the model cluster or a simulated run.

use std::rc::Rc;
use std::time::Duration;

use node_remedy_api::annotations::CORDONED_BY;
use node_remedy_api::policy::{GateLimits, PauseWindow};
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_decide::{OperatorVetoes, Time};
use node_remedy_model_cluster::interceptor::{Guarded, Interceptor, Request};
use node_remedy_observe::caches::Caches;
use node_remedy_observe::condition_history::Changes;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::vetoes::*;
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_runtime::virtual_clock::VirtualClock;
use node_remedy_simulate::testing::in_quiet_world;
use serde_json::{Value, json};

fn node(more: &Value) -> PrunedNode {
    let mut object = json!({"metadata": {"name": "worker-3", "uid": "u"}});
    json_patch::merge(&mut object, more);
    PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
}

fn paused(spec: &Value) -> RemedyPause {
    let pause = json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyPause",
        "metadata": {"name": "p"}, "spec": spec,
    });
    serde_json::from_value(pause).unwrap()
}

fn nothing() -> LiveVetoes {
    LiveVetoes { pauses: Ok(Vec::new()), maintenances: Ok(Vec::new()) }
}

fn at(now: u64) -> Clock {
    Clock::simulated(VirtualClock::start_at(Time(now)))
}

fn vetoes(live: &LiveVetoes, node: &PrunedNode) -> OperatorVetoes {
    of_node(live, node, &Changes::default(), &GateLimits::default(), &at(0))
}

#[test] // promise: G9
fn a_pause_is_for_the_nodes_that_it_selects_and_an_unreadable_one_for_all() {
    let compute = node(&json!({"metadata": {"labels": {"type": "compute"}}}));
    for (selector, is_for_it) in [
        (json!(null), true),
        (json!("type=compute"), true),
        (json!("type=storage"), false),
        (json!("type in"), true),
    ] {
        let pause = paused(&json!({"reason": "r", "by": "alice", "nodeSelector": selector}));
        let live = LiveVetoes { pauses: Ok(vec![pause]), ..nothing() };
        assert_eq!(vetoes(&live, &compute).pauses.len(), usize::from(is_for_it), "{selector}");
        let of_gone = of_gone(&live, "worker-3", &GateLimits::default(), Time(0));
        assert_eq!(of_gone.pauses.len(), 1, "nobody knows the labels any more: {selector}");
    }
}

#[test]
fn a_maintenance_is_of_a_machine_whose_node_is_gone_too() {
    let maintenance = |node: &str| {
        let spec = NodeMaintenanceSpec { node_name: node.to_owned(), reason: "disks".to_owned() };
        NodeMaintenance::new("m", spec)
    };
    for (of, is_for_it) in [("worker-3", true), ("worker-4", false)] {
        let live = LiveVetoes { maintenances: Ok(vec![maintenance(of)]), ..nothing() };
        let vetoes = of_gone(&live, "worker-3", &GateLimits::default(), Time(0));
        assert_eq!(vetoes.maintenance.is_some(), is_for_it, "{of}");
    }
}

#[test]
fn a_maintenance_that_cannot_be_read_counts_for_the_node_that_it_names() {
    let of = |spec: Value| {
        let object = json!({"metadata": {"name": "m"}, "spec": spec});
        let read = node_remedy_runtime::cluster::unread::read::<NodeMaintenance>(object);
        assert!(read.is_err(), "{read:?}");
        maintenance(read).map(|one| one.spec.node_name)
    };
    assert_eq!(of(json!({"nodeName": "worker-3", "reason": 7})), Ok("worker-3".to_owned()));
    assert!(of(json!({"nodeName": 3})).is_err(), "it may be any node's");
}

#[test]
fn a_pause_that_cannot_be_read_counts_without_an_end_for_the_nodes_that_it_selects() {
    let compute = node(&json!({"metadata": {"labels": {"type": "compute"}}}));
    for (selector, is_for_it) in [
        (json!(null), true),
        (json!("type=compute"), true),
        (json!("type=storage"), false),
        (json!(7), true),
        (json!({}), true),
    ] {
        let spec = json!({"reason": 7, "until": "soon", "nodeSelector": selector});
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let read = node_remedy_runtime::cluster::unread::read::<RemedyPause>(object);
        let caches = Caches::new(&tokio::sync::mpsc::unbounded_channel().0);
        caches.pauses.apply_unread("p".to_owned(), read.unwrap_err());
        let pauses = vetoes(&cached(&caches), &compute).pauses;
        assert_eq!(pauses.len(), usize::from(is_for_it), "{selector}");
        assert!(pauses.iter().all(|pause| pause.until.is_none()), "{pauses:?}");
    }
}

#[test]
fn marks_taints_and_cordons_are_told_apart() {
    let rows = [
        (json!({}), OperatorVetoes::default()),
        (
            json!({"metadata": {"labels": {"node-remedy.io/exclude": ""}}}),
            OperatorVetoes {
                excluded_by: Some(EXCLUDES[0].to_owned()),
                ..OperatorVetoes::default()
            },
        ),
        (
            json!({"metadata": {"labels": {"node-remedy.io/exclude": "false"}}}),
            OperatorVetoes::default(),
        ),
        (
            json!({"metadata": {"labels": {EXCLUDES[1]: "true"}}}),
            OperatorVetoes {
                excluded_by: Some(EXCLUDES[1].to_owned()),
                ..OperatorVetoes::default()
            },
        ),
        (
            json!({"spec": {"taints": [{"key": REMOVES[0], "effect": "NoSchedule"}]}}),
            OperatorVetoes { removed_by: Some(REMOVES[0].to_owned()), ..OperatorVetoes::default() },
        ),
        (
            json!({"spec": {"taints": [
                {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
            ]}}),
            OperatorVetoes::default(),
        ),
        (
            json!({"spec": {"unschedulable": true}}),
            OperatorVetoes { cordoned_by_other: true, ..OperatorVetoes::default() },
        ),
        (
            json!({
                "metadata": {"annotations": {CORDONED_BY: "worker-3-1"}},
                "spec": {"unschedulable": true},
            }),
            OperatorVetoes::default(),
        ),
    ];
    for (more, expected) in rows {
        assert_eq!(vetoes(&nothing(), &node(&more)), expected, "{more}");
    }
}

#[test]
fn a_planned_absence_counts_while_its_condition_is_fresh() {
    let told = |kind: &str, status: &str, age: Duration| {
        let condition = json!({
            "type": kind,
            "status": status,
            "reason": "Shutdown",
            "lastTransitionTime": "1970-01-01T00:01:00Z",
        });
        let node = node(&json!({"status": {"conditions": [condition]}}));
        let clock = at(60_000 + u64::try_from(age.as_millis()).unwrap());
        let limits = GateLimits::default();
        of_node(&nothing(), &node, &Changes::default(), &limits, &clock).maintenance
    };
    // Its clock is a day ahead: it would keep the node for that long.
    let ahead = json!({
        "type": "DrainInProgress", "status": "True", "reason": "Drain",
        "lastTransitionTime": "1970-01-02T00:00:00Z",
        "lastHeartbeatTime": "1970-01-02T00:00:00Z",
    });
    let ahead = node(&json!({"status": {"conditions": [ahead]}}));
    let by_then =
        |now| of_node(&nothing(), &ahead, &Changes::default(), &GateLimits::default(), &at(now));
    assert!(by_then(60_000).maintenance.is_some());
    assert_eq!(by_then(60 * 60_000).maintenance, None);
    for kind in PLANNED {
        let live = Some(format!("condition {kind}: Shutdown"));
        assert_eq!(told(kind, "True", PLANNED_MAX), live);
        assert_eq!(told(kind, "True", PLANNED_MAX + Duration::from_millis(1)), None);
        assert_eq!(told(kind, "False", PLANNED_MAX), None);
        assert_eq!(told(kind, "Unknown", PLANNED_MAX), None);
    }
    assert_eq!(told("Ready", "True", PLANNED_MAX), None);
}

#[test] // promise: G9
fn a_maintenance_is_of_its_node_and_what_cannot_be_read_is_said() {
    let mut fans = NodeMaintenance::new(
        "fans",
        NodeMaintenanceSpec { node_name: "worker-3".to_owned(), reason: "new fans".to_owned() },
    );
    let live =
        |one: &NodeMaintenance| LiveVetoes { maintenances: Ok(vec![one.clone()]), ..nothing() };
    let found = vetoes(&live(&fans), &node(&json!({}))).maintenance;
    assert_eq!(found.as_deref(), Some("NodeMaintenance fans: new fans"));
    fans.spec.node_name = "worker-4".to_owned();
    assert_eq!(vetoes(&live(&fans), &node(&json!({}))), OperatorVetoes::default());
    let unread =
        LiveVetoes { pauses: Err("denied".to_owned()), maintenances: Err("late".to_owned()) };
    assert_eq!(vetoes(&unread, &node(&json!({}))).unread, ["denied", "late"]);
}

/// An API server that answers one of two lists late, or not at all.
struct Answers {
    resource: &'static str,
    with: Result<Duration, ClusterError>,
}

impl Interceptor for Answers {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.resource == self.resource {
            tokio::time::sleep(self.with.clone()?).await;
        }
        Ok(())
    }
}

#[test] // promise: G9
fn a_list_that_is_denied_or_late_is_unread_and_a_kind_that_nobody_serves_is_none() {
    let denied = || Err(ClusterError::Denied("forbidden".to_owned()));
    let not_served = || Err(ClusterError::NotFound("no such kind".to_owned()));
    let (soon, late) = (Ok(Duration::from_secs(3)), Ok(Duration::from_secs(5)));
    let (pauses, maintenances) = ("remedypauses", "nodemaintenances");
    let rows = [
        (pauses, soon.clone(), ""),
        (pauses, late.clone(), "RemedyPauses: the API server did not answer: no answer in 4 s"),
        (pauses, denied(), "RemedyPauses: the API server denied the request: forbidden"),
        // Our own kind is missing where the installation is broken: nobody can say a pause.
        (pauses, not_served(), "RemedyPauses: the object does not exist: no such kind"),
        (maintenances, soon, ""),
        (maintenances, late, "NodeMaintenances: the API server did not answer: no answer in 4 s"),
        (maintenances, denied(), "NodeMaintenances: the API server denied the request: forbidden"),
        (maintenances, not_served(), ""),
    ];
    for (resource, with, expected) in rows {
        in_quiet_world(|bench| async move {
            let interceptor = Rc::new(Answers { resource, with: with.clone() });
            let live = read(&Guarded::new(bench.client("us"), interceptor)).await;
            let unread = vetoes(&live, &node(&json!({}))).unread.concat();
            assert_eq!(unread, expected, "{resource}: {with:?}");
        });
    }
}

#[test] // promise: G10
fn a_window_that_cannot_be_computed_is_unread() {
    let window = |cron: &str, time_zone: Option<&str>| PauseWindow {
        cron: cron.to_owned(),
        duration: node_remedy_api::time::Span::from_minutes(60),
        time_zone: time_zone.map(str::to_owned),
        reason: "trading".to_owned(),
    };
    for broken in [window("0 25 * * *", None), window("0 8 * * *", Some("Europe/Atlantis"))] {
        let limits = GateLimits { pause_windows: vec![broken], ..GateLimits::default() };
        let vetoes = of_node(&nothing(), &node(&json!({})), &Changes::default(), &limits, &at(0));
        assert_eq!((vetoes.unread.len(), vetoes.pauses.len()), (1, 0), "{vetoes:?}");
    }
}

#[test]
fn an_open_window_is_a_pause_until_its_end() {
    let window = PauseWindow {
        cron: "0 8 * * *".to_owned(),
        duration: node_remedy_api::time::Span::from_minutes(60),
        time_zone: None,
        reason: "trading".to_owned(),
    };
    let limits = GateLimits { pause_windows: vec![window], ..GateLimits::default() };
    let hour = 3_600_000;
    for (now, until) in [(7, None), (8, Some(Time(9 * hour))), (9, None)] {
        let vetoes =
            of_node(&nothing(), &node(&json!({})), &Changes::default(), &limits, &at(now * hour));
        let found = vetoes.pauses.first().and_then(|pause| pause.until);
        assert_eq!(found, until, "{now} o'clock");
    }
}
