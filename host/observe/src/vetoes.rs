//! What people and other controllers said that bears on one node. Plain translation; what it
//! means is judged in `decide`.
//!
//! Pauses and maintenances are read live like everything that allows a cut, but apart from it:
//! where they cannot be read nothing is cut, and what is on its way back goes on (rule A2).

use litemap::LiteMap;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use node_remedy_api::annotations::CORDONED_BY;
use node_remedy_api::policy::GateLimits;
use node_remedy_api::remedypause::{RemedyPause, RemedyPauseSpec};
use node_remedy_api::selector::Selector;
use node_remedy_api::time::Moment;
use node_remedy_decide::{OperatorVetoes, Pause, Span, Time};
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::unread::{Read, Unread};
use node_remedy_runtime::cluster::{Cluster, ClusterError, Scope};
use serde::{Deserialize, Serialize};

use crate::caches::Caches;
use crate::condition_history::Changes;
use crate::pruned::PrunedNode;

/// An answer that takes longer lets the rest of the look grow old: evidence keeps for five seconds.
const READ_MAX: Duration = Duration::from_secs(4);

/// Labels or annotations, each with any value but `false`, that keep us from a node. The second
/// one is honoured by medik8s, too.
pub const EXCLUDES: [&str; 2] =
    ["node-remedy.io/exclude", "remediation.medik8s.io/exclude-from-remediation"];
/// Taints by which an autoscaler says that the node goes. `DeletionCandidateOfClusterAutoscaler`
/// is none of them: most candidates stay.
pub const REMOVES: [&str; 3] =
    ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption"];

/// Conditions that say that a node goes away as planned: by the kubelet's graceful shutdown, by tools that drain
/// nodes and repair machines (Kubernetes 1.37, node lifecycle conditions).
pub const PLANNED: [&str; 3] =
    ["MaintenanceInProgress", "DrainInProgress", "GracefulNodeShutdownInProgress"];
/// A planned absence ends: a server that tests its memory boots in a quarter of an hour. A condition that nobody
/// wrote for longer is of a node that did not come back.
pub const PLANNED_MAX: Duration = Duration::from_mins(15);
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
pub struct LiveVetoes {
    /// Pauses.
    pub pauses: Result<Vec<RemedyPause>, String>,
    /// Maintenances.
    pub maintenances: Result<Vec<NodeMaintenance>, String>,
}

/// From the API server, by quorum reads.
pub async fn read<C: Cluster>(cluster: &C) -> LiveVetoes {
    let pauses = bounded(pauses(cluster));
    let maintenances = bounded(maintenances(cluster));
    let (pauses, maintenances) = futures::join!(pauses, maintenances);
    let or_why = |error: ClusterError, what: &str| format!("{what}: {error}");
    LiveVetoes {
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

/// A NodeMaintenance; one that cannot be read counts for the node that it names.
pub fn maintenance(read: Read<NodeMaintenance>) -> Result<NodeMaintenance, ClusterError> {
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
pub fn cached(caches: &Caches) -> LiveVetoes {
    let mut pauses: Vec<_> = caches.pauses.all().values().map(|kept| kept.0.clone()).collect();
    pauses.extend(caches.pauses.unread().values().map(unread_pause));
    LiveVetoes { pauses: Ok(pauses), maintenances: Ok(Vec::new()) }
}

/// What was said about this node, under these limits.
pub fn of_node(
    live: &LiveVetoes,
    node: &PrunedNode,
    changes: &Changes,
    limits: &GateLimits,
    clock: &Clock,
) -> OperatorVetoes {
    let by_its_own = OperatorVetoes {
        excluded_by: EXCLUDES.into_iter().find(|key| is_marked(node, key)).map(str::to_owned),
        cordoned_by_other: node.unschedulable && !node.annotations.contains_key(CORDONED_BY),
        removed_by: node
            .taints
            .iter()
            .map(|(key, ..)| key)
            .find(|key| REMOVES.contains(&key.as_str()))
            .cloned(),
        maintenance: planned(node, changes, clock),
        ..OperatorVetoes::default()
    };
    by_objects(by_its_own, live, &node.name, Some(&node.labels), limits, clock.now())
}

/// What was said about a machine whose Node is gone: its labels and its own marks went with it.
pub fn of_gone(live: &LiveVetoes, name: &str, limits: &GateLimits, now: Time) -> OperatorVetoes {
    by_objects(OperatorVetoes::default(), live, name, None, limits, now)
}

fn by_objects(
    mut vetoes: OperatorVetoes,
    live: &LiveVetoes,
    name: &str,
    labels: Option<&LiteMap<String, String>>,
    limits: &GateLimits,
    now: Time,
) -> OperatorVetoes {
    match &live.pauses {
        Ok(pauses) => vetoes.pauses.extend(pauses.iter().filter_map(|one| pause(one, labels))),
        Err(why) => vetoes.unread.push(why.clone()),
    }
    match &live.maintenances {
        Ok(all) => {
            let of_node = all.iter().find(|one| one.spec.node_name == name);
            let by_object = of_node.map(|one| {
                let reason = Some(&one.spec.reason).filter(|reason| !reason.is_empty());
                let reason = reason.map_or("no reason given", String::as_str);
                format!("NodeMaintenance {}: {reason}", one.name_any())
            });
            vetoes.maintenance = by_object.or(vetoes.maintenance);
        }
        Err(why) => vetoes.unread.push(why.clone()),
    }
    for window in &limits.pause_windows {
        match window.open_until(Moment::from_ms(now.0)) {
            Ok(None) => {}
            Ok(Some(until)) => vetoes.pauses.push(Pause {
                reason: window.reason.clone(),
                by: format!("the window {}", window.cron),
                until: Some(Time(until.ms)),
            }),
            Err(why) => vetoes.unread.push(format!("the window {}: {why}", window.cron)),
        }
    }
    vetoes
}

/// What a fresh condition says of a planned absence.
fn planned(node: &PrunedNode, changes: &Changes, clock: &Clock) -> Option<String> {
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

fn is_marked(node: &PrunedNode, key: &str) -> bool {
    let marks = [node.labels.get(key), node.annotations.get(key)];
    marks.into_iter().flatten().any(|value| value != "false")
}

/// A pause, if it is for the node of these labels; one that names nodes unreadably is for all, and any is for a
/// node whose labels nobody knows any more.
fn pause(pause: &RemedyPause, labels: Option<&LiteMap<String, String>>) -> Option<Pause> {
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
