//! What `decide` reads, out of what was seen. Plain translation; nothing is judged here
//! that `decide` can judge.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use node_remedy_api::annotations::{CORDONED_BY, OUT_OF_SERVICE_BY, REMEDIATION_POD};
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::policy::GateLimits;
use node_remedy_decide as decide;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_decide::{
    AttachmentView, CameBack, ConditionView, GateView, Liveness, NodeHealth, NodeView, People,
    PodView, Span, Time, View,
};
use node_remedy_runtime::clock::{Clock, time_of};

use crate::caches::{Caches, lease_key};
use crate::condition_history::status_of;
use crate::live::Facts;
use crate::node_events::PrunedEvent;
use crate::nodefences::{holds_slot, is_open, last_ended};
use crate::pods::PrunedPod;
use crate::pruned::{OUT_OF_SERVICE, PrunedAttachment, PrunedLease, PrunedNode, QUARANTINE};
use crate::volumes::Volumes;
use crate::{incident_rate, unread};

/// How the keys begin of taints that say how a node is now, and not whose pods it is for.
const PASSING_TAINTS: [&str; 2] = ["node.kubernetes.io/", "node-remedy.io/"];
/// What a kubelet writes when it names no duration.
const LEASE_DURATION_DEFAULT_S: u64 = 40;

/// A view from its parts.
pub fn view(
    facts: &Facts,
    volumes: &Volumes,
    node: Option<NodeView>,
    trigger: decide::Crossing,
    gate: decide::Verdict,
) -> View {
    View {
        taken_at: facts.taken_at,
        freshness: facts.freshness,
        node,
        pods: facts.pods.values().map(|pod| pod_view(pod, facts, volumes)).collect(),
        attachments: facts.attachments.values().map(attachment_view).collect(),
        trigger,
        gate,
        people: People::default(),
        dump: decide::Dump::None,
        is_another_machine: false,
        hosts_us: false,
        reached_elsewhere: false,
        fence_is_due: false,
        // Only a live look asks.
        neighbours: decide::Neighbours::Awaited,
        job: None,
    }
}

/// Tells the gate of the symptom for which the target is looked at.
pub fn note_symptom(gate: &mut GateView, node: Option<&NodeView>, symptom: &decide::Crossing) {
    gate.symptom_since = match symptom {
        decide::Crossing::Crossed { since } | decide::Crossing::Ripening { since, .. } => {
            Some(*since)
        }
        decide::Crossing::Clear { .. } | decide::Crossing::Unclear => None,
    };
    gate.never_joined = node.is_some_and(decide::never_joined);
}

/// A node as decisions see it; when its conditions changed is told by `clock`.
pub fn node_view(
    node: &PrunedNode,
    lease: Option<&PrunedLease>,
    events: Option<&[PrunedEvent]>,
    caches: &Caches,
    clock: &Clock,
) -> NodeView {
    let renewed = lease.and_then(|lease| lease.renewed.parse::<jiff::Timestamp>().ok());
    let out_of_service = node.taints.iter().any(|(key, ..)| key == OUT_OF_SERVICE);
    let boot_heard = || {
        let nodefences = caches.nodefences.all();
        let all = nodefences.values().map(|kept| &kept.0);
        let own: Vec<_> = all.filter(|one| one.spec.node.uid == node.uid).collect();
        boot_heard_at(node, &own, caches.changes.booted_at(node))
    };
    NodeView {
        uid: node.uid.clone(),
        liveness: Liveness {
            boot_id: caches.changes.boot_of(node),
            lease_renewed: renewed.map(|stamp| time_of(&stamp)),
            reported: reported(node),
        },
        conditions: node
            .conditions
            .iter()
            .map(|(kind, condition)| ConditionView {
                kind: kind.to_string(),
                status: status_of(&condition.status),
                reason: condition.reason.clone().into_owned(),
                since: caches.changes.began(node, kind, clock.when(condition.since), clock.now()),
                reported: condition.reported_at(clock),
                left: caches.changes.left(node, kind),
            })
            .collect(),
        created_at: clock.when(node.created),
        boot_heard_at: events.map_or(Time(0), |_| boot_heard()),
        events: events.map(|events| {
            let own = events.iter().filter(|event| event.is_about(&node.name, &node.uid));
            own.map(|event| event.view(clock)).collect()
        }),
        changes: Some(caches.changes.of(node)),
        lease_duration: Span::seconds(
            lease.map_or(LEASE_DURATION_DEFAULT_S, |lease| lease.duration_s),
        ),
        lease_seen_at: lease.map(|lease| lease.observed),
        answers_since: caches.answers.since(&node.name, clock.now()),
        heard_since: lease.map(|lease| lease.heard_since),
        lease_was_renewed: lease.is_some_and(PrunedLease::was_renewed),
        quarantined: node.taints.iter().any(|(key, ..)| key == QUARANTINE),
        cordoned: node.unschedulable,
        cordoned_by_us: node.annotations.contains_key(CORDONED_BY),
        out_of_service,
        out_of_service_by_us: out_of_service && node.annotations.contains_key(OUT_OF_SERVICE_BY),
        volumes_in_use: node.volumes_in_use.clone(),
        remediation_pod: node.annotations.get(REMEDIATION_POD).cloned(),
    }
}

/// What a kubelet itself reports of its node. Others, as a monitor of hardware, write conditions of a machine that is off.
const OF_KUBELETS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The newest of the stamps that a node's kubelet put on its conditions, by its own clock.
fn reported(node: &PrunedNode) -> Option<Time> {
    let conditions = node.conditions.iter();
    let own = conditions
        .filter(|(kind, _)| OF_KUBELETS.contains(&&***kind) || is_seeded(Bug::AnyReportIsLife));
    own.map(|(_, condition)| condition.reported).max()
}

/// When a node's present boot was first heard of: by this process, at `booted_at`, or by the record of one of its own
/// incidents that another boot of it had.
pub fn boot_heard_at(node: &PrunedNode, own: &[&NodeFence], booted_at: Time) -> Time {
    let of_other_boots = own.iter().filter(|one| one.spec.node.boot_id != node.boot_id);
    let ended = of_other_boots.filter_map(|one| {
        let status = one.status.as_ref()?;
        let proven_at = status.proof.as_ref().map(|proof| proof.at);
        Some(Time(proven_at.unwrap_or(status.opened_at).ms))
    });
    ended.max().unwrap_or_default().max(booted_at)
}

fn pod_view(pod: &PrunedPod, facts: &Facts, volumes: &Volumes) -> PodView {
    let volume = |one| volumes.view(pod, one, facts.attachments.values());
    PodView {
        uid: pod.uid.clone(),
        name: format!("{}/{}", pod.namespace, pod.name),
        exempt: pod.exempt(),
        volumes: pod.volumes.iter().map(volume).collect(),
        ready: pod.ready,
        deletion: pod.deletion,
        finalizers: pod.finalizers.clone(),
    }
}

fn attachment_view(attachment: &PrunedAttachment) -> AttachmentView {
    AttachmentView {
        uid: attachment.uid.clone(),
        name: attachment.name.clone(),
        volume: attachment.volume.clone(),
        deleting: attachment.deleting,
        finalizers: attachment.finalizers.clone(),
    }
}

/// A Node whose renewals nobody here saw fell silent so long before Kubernetes missed it, at most: its grace, and the time
/// that the node controller takes.
const MISSED_WITHIN_MS: u64 = 120_000;

/// Between which times a node's last renewal came. Of a Lease that this process only found, when Kubernetes missed it.
fn renewed_between(node: &PrunedNode, lease: &PrunedLease, clock: &Clock) -> (Time, Time) {
    let (first, last) = (lease.renewed_at(), lease.observed);
    let ready = node.conditions.get("Ready").filter(|ready| ready.status == "Unknown");
    let missed = ready.filter(|_| !lease.was_renewed()).map(|ready| clock.when(ready.since));
    missed.map_or((first, last), |missed| {
        (first.min(Time(missed.0.saturating_sub(MISSED_WITHIN_MS))), last.min(missed))
    })
}

/// What the gate is told about everything around `target`.
pub fn gate_view(
    caches: &Caches,
    clock: &Clock,
    limits: &GateLimits,
    target: &str,
    own: Option<&str>,
) -> GateView {
    let nodefences = caches.nodefences.all();
    let open: Vec<&NodeFence> =
        nodefences.values().map(|kept| &kept.0).filter(|one| is_open(one)).collect();
    let unread = unread::down(caches);
    let down = open.iter().map(|one| one.spec.node.name.as_str());
    let down: BTreeSet<&str> = down.chain(unread.iter().map(String::as_str)).collect();
    let leases = caches.leases.all();
    let nodes = caches.nodes.all();
    let target_seen = nodes.get(target);
    let pods = caches.pods.all();
    let members = pods.iter().filter(|(_, pod)| pod.of_etcd).map(|(key, pod)| pod.unpack(key));
    let etcd: BTreeMap<String, bool> = members.map(|pod| (pod.node, pod.ready)).collect();
    let health = nodes.values().map(|node| {
        let lease = leases.get(&*lease_key(&node.name));
        NodeHealth {
            name: node.name.clone(),
            ready: !caches.unhealthy.contains(&node.name)
                && node.conditions.get("Ready").is_some_and(|ready| ready.status == "True"),
            down: node.name != target && down.contains(node.name.as_str()),
            // Others count as silent too early rather than too late, and the target as silent no
            // earlier than it was seen to be: both keep a storm from looking like one lost node.
            renewed_at: lease
                .map(|lease| if node.name == target { lease.observed } else { lease.renewed_at() }),
            renewed_between: lease.map(|lease| renewed_between(node, lease, clock)),
            came_back: came_back(node, lease, caches),
            lease_duration: Span::seconds(
                lease.map_or(LEASE_DURATION_DEFAULT_S, |lease| lease.duration_s),
            ),
            domains: domains_of(node, limits),
            takes_pods: takes_pods(node, target_seen),
            control_plane: node.is_control_plane(),
            etcd: etcd.get(node.name.as_str()).copied(),
        }
    });
    let held_by_us =
        own.and_then(|own| nodefences.get(own)).is_some_and(|kept| holds_slot(&kept.0));
    // Of two that were given the last room, by leaders that did not know of each other, the first goes on.
    let is_other = |one: &&&NodeFence| {
        own.is_none_or(|own| {
            if held_by_us { one.name_any().as_str() < own } else { one.name_any() != own }
        })
    };
    let in_flight = || open.iter().filter(|one| holds_slot(one)).filter(is_other);
    GateView {
        target: target.to_owned(),
        nodes: health.collect(),
        in_flight: in_flight().map(|one| one.name_any()).collect(),
        in_flight_on: in_flight()
            .map(|one| one.spec.node.name.clone())
            // Of whom it is not known where they are is asked before a slot is given, and not again.
            .filter(|name| !held_by_us || nodes.contains_key(name.as_str()))
            .collect(),
        incidents: own
            .map_or_else(|| incident_rate::cached(caches, limits), |_| decide::Incidents::Begun),
        // Known to whoever read them, for a node under some policy.
        vetoes: decide::OperatorVetoes::default(),
        // Read live by whoever acts on it.
        storage: decide::StorageLease::Absent,
        heard_at: caches.heard(),
        not_followed: None,
        held_by: None,
        // Known once there is a plan.
        closed_device: None,
        disputed: None,
        unverified: None,
        // Told of an incident that is not open yet.
        device_network: decide::DeviceNetwork::default(),
        last_incident_ended_at: last_ended(nodefences.values().map(|kept| &kept.0), target),
        // Known once it is looked at.
        symptom_since: None,
        never_joined: false,
    }
}

/// When this process last saw the node come back: renew its Lease after a silence, or become Ready.
fn came_back(node: &PrunedNode, lease: Option<&PrunedLease>, caches: &Caches) -> Option<CameBack> {
    let silence = lease.and_then(|lease| lease.silence);
    let ready_at = caches.changes.last_ready(node);
    let at = silence.map(|(_, ended)| ended).max(ready_at)?;
    Some(CameBack { at, silent_since: silence.map(|(since, _)| since) })
}

/// Of the nodes beside `target` so many are not ready, or their machine is in our hands, and so many there are.
pub fn peers_of(caches: &Caches, target: &str) -> (usize, usize) {
    let nodefences = caches.nodefences.all();
    let open = nodefences.values().map(|kept| &kept.0).filter(|one| is_open(one));
    let down: BTreeSet<&str> = open.map(|one| one.spec.node.name.as_str()).collect();
    let nodes = caches.nodes.all();
    let peers = nodes.values().filter(|node| node.name != target);
    let is_unhealthy = |node: &&PrunedNode| {
        let ready = node.conditions.get("Ready").is_some_and(|ready| ready.status == "True");
        !ready || caches.unhealthy.contains(&node.name) || down.contains(node.name.as_str())
    };
    (peers.clone().filter(is_unhealthy).count(), peers.count())
}

/// Whether nothing keeps `target`'s pods from a node: they tolerate the taints that it was given for
/// good, and no other.
fn takes_pods(node: &PrunedNode, target: Option<&PrunedNode>) -> bool {
    let keeps_away = |(_, _, effect): &&(String, String, String)| effect != "PreferNoSchedule";
    let is_tolerated = |taint: &(String, String, String)| {
        let for_good = PASSING_TAINTS.iter().all(|passing| !taint.0.starts_with(passing));
        for_good && target.is_some_and(|target| target.taints.contains(taint))
    };
    !node.unschedulable && node.taints.iter().filter(keeps_away).all(is_tolerated)
}

/// The failure domains that a node is in, by the labels that the limits name.
fn domains_of(node: &PrunedNode, limits: &GateLimits) -> Vec<Option<String>> {
    limits.topologies.iter().map(|limit| node.labels.get(&limit.key).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(cordoned: bool, taints: &Value) -> PrunedNode {
        let object = json!({
            "metadata": {"name": "node-b", "uid": "u"},
            "spec": {"unschedulable": cordoned, "taints": taints},
        });
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    #[test]
    fn a_node_takes_pods_unless_a_cordon_or_a_taint_keeps_them_away() {
        let gpu = json!({"key": "gpu", "value": "a", "effect": "NoSchedule"});
        let other_gpu = json!({"key": "gpu", "value": "b", "effect": "NoSchedule"});
        let soft = json!({"key": "old", "effect": "PreferNoSchedule"});
        let full = json!({"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"});
        let ours = json!({"key": QUARANTINE, "effect": "NoSchedule"});
        let lost = node(false, &json!([gpu, full, ours]));
        let rows = [
            (false, json!([]), true),
            (true, json!([]), false),
            (false, json!([soft]), true),
            (false, json!([gpu]), true),
            (false, json!([other_gpu]), false),
            (false, json!([gpu, full]), false),
            (false, json!([ours]), false),
            (false, json!([{"key": "team", "effect": "NoExecute"}]), false),
        ];
        for (cordoned, taints, expected) in rows {
            let seen = node(cordoned, &taints);
            assert_eq!(takes_pods(&seen, Some(&lost)), expected, "{cordoned} {taints}");
        }
        let seen = node(false, &json!([gpu]));
        assert!(!takes_pods(&seen, None), "of a target that is not known nothing is tolerated");
    }
}
