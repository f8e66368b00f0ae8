//! What people and other controllers said that bears on one node. Plain translation; what it
//! means is judged in `decide`.
//!
//! Pauses and maintenances are read live like everything that allows a cut, but apart from it:
//! where they cannot be read nothing is cut, and what is on its way back goes on (rule A2).

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use node_remedy_api::policy::{CordonedByOthers, GateLimits};
use node_remedy_api::remedypause::{RemedyPause, RemedyPauseSpec};
use node_remedy_api::selector::Selector;
use node_remedy_api::time::Moment;
use node_remedy_decide::{ForeignCordon, Pause, Span, Time, Words};
use serde::{Deserialize, Serialize};

use super::Mirror;
use super::changes::Changes;
use super::seen::NodeSeen;
use crate::act::node::CORDONED_BY;
use crate::clock::Clock;
use crate::cluster::{Cluster, ClusterError, Read, Scope, Unread};

/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);

/// Labels or annotations, each with any value but `false`, that keep us from a node. The second
/// one is honoured by medik8s, too.
const EXCLUDES: [&str; 2] =
    ["node-remedy.io/exclude", "remediation.medik8s.io/exclude-from-remediation"];
/// Taints by which an autoscaler says that the node goes. `DeletionCandidateOfClusterAutoscaler`
/// is none of them: most candidates stay.
const REMOVES: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];

/// Conditions that say that a node goes away as planned: by the kubelet's graceful shutdown, by tools that drain
/// nodes and repair machines (Kubernetes 1.37, node lifecycle conditions).
const PLANNED: [&str; 3] =
    ["MaintenanceInProgress", "DrainInProgress", "GracefulNodeShutdownInProgress"];
/// A planned absence ends: a server that tests its memory boots in a quarter of an hour. A condition that nobody
/// wrote for longer is of a node that did not come back.
const PLANNED_MAX: Duration = Duration::from_mins(15);
/// A report further ahead of our clock than this is ignored.
const CLOCKS_APART_MAX: Span = Span::seconds(10);

/// A maintenance as medik8s' Node Maintenance Operator has it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "nodemaintenance.medik8s.io",
    version = "v1beta1",
    kind = "NodeMaintenance",
    plural = "nodemaintenances",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct NodeMaintenanceSpec {
    /// The node.
    pub node_name: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// What was said, about all nodes; an error says what could not be read, and why.
#[derive(Debug, Clone)]
pub struct Said {
    /// Pauses.
    pub pauses: Result<Vec<RemedyPause>, String>,
    /// Maintenances.
    pub maintenances: Result<Vec<NodeMaintenance>, String>,
}

/// From the API server, by quorum reads.
pub async fn read<C: Cluster>(cluster: &C) -> Said {
    let pauses = bounded(pauses(cluster));
    let maintenances = bounded(maintenances(cluster));
    let (pauses, maintenances) = futures::join!(pauses, maintenances);
    let or_why = |error: ClusterError, what: &str| format!("{what}: {error}");
    Said {
        pauses: pauses.map_err(|error| or_why(error, "RemedyPauses")),
        maintenances: match maintenances {
            // Nobody serves the kind: there is no such operator here.
            Err(ClusterError::NotFound(_)) => Ok(Vec::new()),
            other => other.map_err(|error| or_why(error, "NodeMaintenances")),
        },
    }
}

/// All pauses, those that cannot be read among them.
pub async fn pauses<C: Cluster>(cluster: &C) -> Result<Vec<RemedyPause>, ClusterError> {
    let mut pauses = Vec::new();
    let keep = |read: Read<_>| pauses.push(read.unwrap_or_else(|unread| unread_pause(&unread)));
    cluster.list_each(&Scope::all(), keep).await?;
    Ok(pauses)
}

/// All maintenances. One that cannot be read counts for the node that it names; one that names none might be about any.
async fn maintenances<C: Cluster>(cluster: &C) -> Result<Vec<NodeMaintenance>, ClusterError> {
    let mut read = Vec::new();
    cluster.list_each(&Scope::all(), |one| read.push(maintenance(one))).await?;
    read.into_iter().collect()
}

fn maintenance(read: Read<NodeMaintenance>) -> Result<NodeMaintenance, ClusterError> {
    let unread = match read {
        Ok(maintenance) => return Ok(maintenance),
        Err(unread) => unread,
    };
    let why = format!("{}: {}", unread.name(), unread.why());
    let Some(node) = unread.text("/spec/nodeName") else {
        return Err(ClusterError::Unreadable(why));
    };
    let reason = format!("it cannot be read, and counts until it can: {}", unread.why());
    Ok(NodeMaintenance::new(
        unread.name(),
        NodeMaintenanceSpec { node_name: node.to_owned(), reason },
    ))
}

/// What cannot be read pauses the nodes that it selects until somebody deletes or corrects it; no
/// selector but the empty text selects every node by being none.
fn unread_pause(unread: &Unread) -> RemedyPause {
    let (object, text) = (unread.object(), |place| unread.text(place).map(str::to_owned));
    let selector = object.pointer("/spec/nodeSelector").filter(|selector| !selector.is_null());
    RemedyPause {
        metadata: ObjectMeta {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            ..ObjectMeta::default()
        },
        spec: RemedyPauseSpec {
            node_selector: selector.map(|one| one.as_str().unwrap_or_default().to_owned()),
            reason: format!("it cannot be read, and counts until it can: {}", unread.why()),
            by: text("/spec/by").unwrap_or_else(|| "nobody knows whom".to_owned()),
            until: None,
        },
    }
}

async fn bounded<T>(
    read: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, ClusterError> {
    let late = || ClusterError::Unavailable(format!("no answer in {} s", READ_MAX.as_secs()));
    tokio::time::timeout(READ_MAX, read).await.map_err(|_| late())?
}

/// From the caches, which know no maintenances: enough to hold back, never to act.
pub fn cached(mirror: &Mirror) -> Said {
    let mut pauses: Vec<_> = mirror.pauses.all().values().map(|kept| kept.0.clone()).collect();
    pauses.extend(mirror.pauses.unread().values().map(unread_pause));
    Said { pauses: Ok(pauses), maintenances: Ok(Vec::new()) }
}

/// What was said about this node, under these limits.
pub fn of_node(
    said: &Said,
    node: &NodeSeen,
    changes: &Changes,
    limits: &GateLimits,
    clock: &Clock,
) -> Words {
    let by_its_own = Words {
        excluded_by: EXCLUDES.into_iter().find(|key| is_marked(node, key)).map(str::to_owned),
        cordoned_by_other: node.unschedulable && !node.annotations.contains_key(CORDONED_BY),
        removed_by: node
            .taints
            .iter()
            .map(|(key, ..)| key)
            .find(|key| REMOVES.contains(&key.as_str()))
            .cloned(),
        maintenance: planned(node, changes, clock),
        ..Words::default()
    };
    by_objects(by_its_own, said, &node.name, Some(&node.labels), limits, clock.now())
}

/// What was said about a machine whose Node is gone: its labels and its own marks went with it.
pub fn of_gone(said: &Said, name: &str, limits: &GateLimits, now: Time) -> Words {
    by_objects(Words::default(), said, name, None, limits, now)
}

fn by_objects(
    mut words: Words,
    said: &Said,
    name: &str,
    labels: Option<&BTreeMap<String, String>>,
    limits: &GateLimits,
    now: Time,
) -> Words {
    match &said.pauses {
        Ok(pauses) => words.pauses.extend(pauses.iter().filter_map(|one| pause(one, labels))),
        Err(why) => words.unread.push(why.clone()),
    }
    match &said.maintenances {
        Ok(all) => {
            let of_node = all.iter().find(|one| one.spec.node_name == name);
            let by_object = of_node.map(|one| {
                let reason = Some(&one.spec.reason).filter(|reason| !reason.is_empty());
                let reason = reason.map_or("no reason given", String::as_str);
                format!("NodeMaintenance {}: {reason}", one.name_any())
            });
            words.maintenance = by_object.or(words.maintenance);
        }
        Err(why) => words.unread.push(why.clone()),
    }
    for window in &limits.pause_windows {
        match window.open_until(Moment::from_ms(now.0)) {
            Ok(None) => {}
            Ok(Some(until)) => words.pauses.push(Pause {
                reason: window.reason.clone(),
                by: format!("the window {}", window.cron),
                until: Some(Time(until.ms)),
            }),
            Err(why) => words.unread.push(format!("the window {}: {why}", window.cron)),
        }
    }
    words
}

/// What a fresh condition says of a planned absence.
fn planned(node: &NodeSeen, changes: &Changes, clock: &Clock) -> Option<String> {
    let now = clock.now();
    let is_fresh =
        |at: Time| now.since(at).0 <= u64::try_from(PLANNED_MAX.as_millis()).unwrap_or(0);
    // A clock that is ahead would keep a node for as long as it is.
    let is_to_come = |at: Time| at > now.after(CLOCKS_APART_MAX);
    PLANNED.iter().find_map(|kind| {
        let condition = node.conditions.get(*kind).filter(|one| one.status == "True")?;
        let began = changes.began(node, kind, clock.when(condition.since), now);
        let reported_at = condition.reported_at(clock);
        let is_reported = reported_at.is_some_and(|at| is_fresh(at) && !is_to_come(at));
        (is_fresh(began) || is_reported).then(|| format!("condition {kind}: {}", condition.reason))
    })
}

/// What the policy makes of a cordon that is not ours.
pub fn foreign_cordon(limits: &GateLimits) -> ForeignCordon {
    match limits.cordoned_by_others {
        CordonedByOthers::Maintenance => ForeignCordon::Maintenance,
        CordonedByOthers::Ignore => ForeignCordon::Ignore,
    }
}

fn is_marked(node: &NodeSeen, key: &str) -> bool {
    let marks = [node.labels.get(key), node.annotations.get(key)];
    marks.into_iter().flatten().any(|value| value != "false")
}

/// A pause, if it is for the node of these labels; one that names nodes unreadably is for all, and any is for a
/// node whose labels nobody knows any more.
fn pause(pause: &RemedyPause, labels: Option<&BTreeMap<String, String>>) -> Option<Pause> {
    let selector = pause.spec.node_selector.as_deref().map(Selector::parse);
    let reason = match selector {
        Some(Ok(selector)) if labels.is_some_and(|labels| !selector.matches(labels)) => {
            return None;
        }
        Some(Ok(_)) if labels.is_none() => {
            format!("{} (its labels are gone with the Node)", pause.spec.reason)
        }
        Some(Err(error)) => {
            format!("{} (every node: its nodeSelector is not {error})", pause.spec.reason)
        }
        Some(Ok(_)) | None => pause.spec.reason.clone(),
    };
    Some(Pause {
        reason,
        by: format!("{} (RemedyPause {})", pause.spec.by, pause.name_any()),
        until: pause.spec.until.map(|until| Time(until.ms)),
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use node_remedy_api::policy::PauseWindow;
    use serde_json::{Value, json};

    use super::*;
    use crate::clock::VirtualClock;
    use crate::simulate::door::Guarded;
    use crate::testing::{Door, Request, in_quiet_world};

    fn node(more: &Value) -> NodeSeen {
        let mut object = json!({"metadata": {"name": "worker-3", "uid": "u"}});
        json_patch::merge(&mut object, more);
        NodeSeen::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    fn paused(spec: &Value) -> RemedyPause {
        let pause = json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyPause",
            "metadata": {"name": "p"}, "spec": spec,
        });
        serde_json::from_value(pause).unwrap()
    }

    fn nothing() -> Said {
        Said { pauses: Ok(Vec::new()), maintenances: Ok(Vec::new()) }
    }

    fn at(now: u64) -> Clock {
        Clock::simulated(VirtualClock::start_at(Time(now)))
    }

    fn words(said: &Said, node: &NodeSeen) -> Words {
        of_node(said, node, &Changes::default(), &GateLimits::default(), &at(0))
    }

    #[test]
    fn a_pause_is_for_the_nodes_that_it_selects_and_an_unreadable_one_for_all() {
        let compute = node(&json!({"metadata": {"labels": {"type": "compute"}}}));
        for (selector, is_for_it) in [
            (json!(null), true),
            (json!("type=compute"), true),
            (json!("type=storage"), false),
            (json!("type in"), true),
        ] {
            let pause = paused(&json!({"reason": "r", "by": "alice", "nodeSelector": selector}));
            let said = Said { pauses: Ok(vec![pause]), ..nothing() };
            assert_eq!(words(&said, &compute).pauses.len(), usize::from(is_for_it), "{selector}");
            let of_gone = of_gone(&said, "worker-3", &GateLimits::default(), Time(0));
            assert_eq!(of_gone.pauses.len(), 1, "nobody knows the labels any more: {selector}");
        }
    }

    #[test]
    fn a_maintenance_is_of_a_machine_whose_node_is_gone_too() {
        let maintenance = |node: &str| {
            let spec =
                NodeMaintenanceSpec { node_name: node.to_owned(), reason: "disks".to_owned() };
            NodeMaintenance::new("m", spec)
        };
        for (of, is_for_it) in [("worker-3", true), ("worker-4", false)] {
            let said = Said { maintenances: Ok(vec![maintenance(of)]), ..nothing() };
            let words = of_gone(&said, "worker-3", &GateLimits::default(), Time(0));
            assert_eq!(words.maintenance.is_some(), is_for_it, "{of}");
        }
    }

    #[test]
    fn a_maintenance_that_cannot_be_read_counts_for_the_node_that_it_names() {
        let of = |spec: Value| {
            let object = json!({"metadata": {"name": "m"}, "spec": spec});
            let read = crate::cluster::unread::read::<NodeMaintenance>(object);
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
            let read = crate::cluster::unread::read::<RemedyPause>(object);
            let mirror = Mirror::new(&tokio::sync::mpsc::unbounded_channel().0);
            mirror.pauses.apply_unread("p".to_owned(), read.unwrap_err());
            let pauses = words(&cached(&mirror), &compute).pauses;
            assert_eq!(pauses.len(), usize::from(is_for_it), "{selector}");
            assert!(pauses.iter().all(|pause| pause.until.is_none()), "{pauses:?}");
        }
    }

    #[test]
    fn marks_taints_and_cordons_are_told_apart() {
        let rows = [
            (json!({}), Words::default()),
            (
                json!({"metadata": {"labels": {"node-remedy.io/exclude": ""}}}),
                Words { excluded_by: Some(EXCLUDES[0].to_owned()), ..Words::default() },
            ),
            (
                json!({"metadata": {"labels": {"node-remedy.io/exclude": "false"}}}),
                Words::default(),
            ),
            (
                json!({"metadata": {"labels": {EXCLUDES[1]: "true"}}}),
                Words { excluded_by: Some(EXCLUDES[1].to_owned()), ..Words::default() },
            ),
            (
                json!({"spec": {"taints": [{"key": REMOVES[0], "effect": "NoSchedule"}]}}),
                Words { removed_by: Some(REMOVES[0].to_owned()), ..Words::default() },
            ),
            (
                json!({"spec": {"taints": [
                    {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
                ]}}),
                Words::default(),
            ),
            (
                json!({"spec": {"unschedulable": true}}),
                Words { cordoned_by_other: true, ..Words::default() },
            ),
            (
                json!({
                    "metadata": {"annotations": {CORDONED_BY: "worker-3-1"}},
                    "spec": {"unschedulable": true},
                }),
                Words::default(),
            ),
        ];
        for (more, expected) in rows {
            assert_eq!(words(&nothing(), &node(&more)), expected, "{more}");
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
        let by_then = |now| {
            of_node(&nothing(), &ahead, &Changes::default(), &GateLimits::default(), &at(now))
        };
        assert!(by_then(60_000).maintenance.is_some());
        assert_eq!(by_then(60 * 60_000).maintenance, None);
        for kind in PLANNED {
            let said = Some(format!("condition {kind}: Shutdown"));
            assert_eq!(told(kind, "True", PLANNED_MAX), said);
            assert_eq!(told(kind, "True", PLANNED_MAX + Duration::from_millis(1)), None);
            assert_eq!(told(kind, "False", PLANNED_MAX), None);
            assert_eq!(told(kind, "Unknown", PLANNED_MAX), None);
        }
        assert_eq!(told("Ready", "True", PLANNED_MAX), None);
    }

    #[test]
    fn a_maintenance_is_of_its_node_and_what_cannot_be_read_is_said() {
        let mut fans = NodeMaintenance::new(
            "fans",
            NodeMaintenanceSpec { node_name: "worker-3".to_owned(), reason: "new fans".to_owned() },
        );
        let said =
            |one: &NodeMaintenance| Said { maintenances: Ok(vec![one.clone()]), ..nothing() };
        let found = words(&said(&fans), &node(&json!({}))).maintenance;
        assert_eq!(found.as_deref(), Some("NodeMaintenance fans: new fans"));
        fans.spec.node_name = "worker-4".to_owned();
        assert_eq!(words(&said(&fans), &node(&json!({}))), Words::default());
        let unread =
            Said { pauses: Err("denied".to_owned()), maintenances: Err("late".to_owned()) };
        assert_eq!(words(&unread, &node(&json!({}))).unread, ["denied", "late"]);
    }

    /// An API server that answers one of two lists late, or not at all.
    struct Answers {
        resource: &'static str,
        with: Result<Duration, ClusterError>,
    }

    impl Door for Answers {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            if request.resource == self.resource {
                tokio::time::sleep(self.with.clone()?).await;
            }
            Ok(())
        }
    }

    #[test]
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
            (
                maintenances,
                late,
                "NodeMaintenances: the API server did not answer: no answer in 4 s",
            ),
            (
                maintenances,
                denied(),
                "NodeMaintenances: the API server denied the request: forbidden",
            ),
            (maintenances, not_served(), ""),
        ];
        for (resource, with, expected) in rows {
            in_quiet_world(|bench| async move {
                let door = Rc::new(Answers { resource, with: with.clone() });
                let said = read(&Guarded::new(bench.client("us"), door)).await;
                let unread = words(&said, &node(&json!({}))).unread.concat();
                assert_eq!(unread, expected, "{resource}: {with:?}");
            });
        }
    }

    #[test]
    fn a_window_that_cannot_be_computed_is_unread() {
        let window = |cron: &str, time_zone: Option<&str>| PauseWindow {
            cron: cron.to_owned(),
            duration: node_remedy_api::time::Span::from_minutes(60),
            time_zone: time_zone.map(str::to_owned),
            reason: "trading".to_owned(),
        };
        for broken in [window("0 25 * * *", None), window("0 8 * * *", Some("Europe/Atlantis"))] {
            let limits = GateLimits { pause_windows: vec![broken], ..GateLimits::default() };
            let words =
                of_node(&nothing(), &node(&json!({})), &Changes::default(), &limits, &at(0));
            assert_eq!((words.unread.len(), words.pauses.len()), (1, 0), "{words:?}");
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
            let words = of_node(
                &nothing(),
                &node(&json!({})),
                &Changes::default(),
                &limits,
                &at(now * hour),
            );
            let found = words.pauses.first().and_then(|pause| pause.until);
            assert_eq!(found, until, "{now} o'clock");
        }
    }
}
