//! What of an object is kept in memory: plain values, pruned to what decisions read.
//!
//! A node object is some 10 kB of JSON and most of it images; what is kept is a few
//! hundred bytes. Nothing here judges.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use litemap::LiteMap;
use node_remedy_api::limits::{MACHINE_ID_CHARACTERS_MAX, NODE_ADDRESSES_MAX};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Span, Time};
use node_remedy_runtime::clock::{Clock, time_of};

/// Two reports of one condition that arrive within this time were held back by the watch.
const HELD_BACK_WITHIN: Span = Span::seconds(5);

/// A node condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`.
    pub status: Cow<'static, str>,
    /// Why, in one word.
    pub reason: Cow<'static, str>,
    /// When the status last changed, by whoever wrote it.
    pub since: Time,
    /// When it was last reported, by whoever wrote it; 0 where its writer does not say.
    pub reported: Time,
    /// When this process first saw that report.
    pub seen_at: Time,
    /// When it was reported, by our own clock; `None` for the first report that this process saw.
    pub made_at: Option<Time>,
}

impl Condition {
    /// When it was last reported, by our own clock where a watch told of it: the clocks of nodes and servers may be
    /// wrong. `None` where its writer does not say.
    pub fn reported_at(&self, clock: &Clock) -> Option<Time> {
        let made_at = self.made_at.filter(|_| guard(Bug::ReportsByTheirStamps, true));
        (self.reported > Time(0)).then(|| made_at.unwrap_or_else(|| clock.when(self.reported)))
    }

    /// The earliest time at which the report after this one may have been made. Normally that is after this one was seen; a
    /// watch that was silent delivers both at once, and then it is after this one was made.
    fn earliest_next(&self, now: Time) -> Time {
        let are_held_back = now < self.seen_at.after(HELD_BACK_WITHIN);
        self.made_at.filter(|_| are_held_back).unwrap_or(self.seen_at)
    }
}

/// What most conditions of most nodes say; kept once, and not for every node.
const COMMON_WORDS: [&str; 12] = [
    "Ready",
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "True",
    "False",
    "Unknown",
    "KubeletReady",
    "KubeletHasSufficientMemory",
    "KubeletHasNoDiskPressure",
    "KubeletHasSufficientPID",
    "NodeStatusUnknown",
];

/// Words that most nodes have need no room of their own.
fn common(word: String) -> Cow<'static, str> {
    let common = COMMON_WORDS.into_iter().find(|common| *common == word);
    common.map_or(Cow::Owned(word), Cow::Borrowed)
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedNode {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.creationTimestamp`.
    pub created: Time,
    /// Labels, for selectors.
    pub labels: LiteMap<String, String>,
    /// Annotations, for parameters taken from the node.
    pub annotations: LiteMap<String, String>,
    /// `spec.providerID`.
    pub provider_id: Option<String>,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: String,
    /// `status.nodeInfo.bootID`.
    pub boot_id: String,
    /// Address by type; the first of each type.
    pub addresses: LiteMap<String, String>,
    /// `status.daemonEndpoints.kubeletEndpoint.Port`.
    pub kubelet_port: Option<u16>,
    /// All of `status.addresses` that are of type InternalIP.
    pub internal_ips: Vec<String>,
    /// By type.
    pub conditions: LiteMap<Cow<'static, str>, Condition>,
    /// `spec.taints` as (key, value, effect).
    pub taints: Vec<(String, String, String)>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `status.volumesInUse`.
    pub volumes_in_use: Vec<String>,
}

/// The labels of nodes that carry the control plane, or etcd for it: servers of k3s and RKE2 may carry etcd alone
/// (docs.k3s.io/installation/server-roles).
const CONTROL_PLANE: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd"];

impl PrunedNode {
    /// The same, with when each condition was first seen reported so. `before` is how this Node was last seen.
    ///
    /// A report was made after the one before it was seen, and before it was seen itself: a watch may have been silent
    /// for long, and the stamp's clock may be wrong.
    #[must_use]
    pub fn after(mut self, before: Option<&Self>, clock: &Clock) -> Self {
        let now = clock.now();
        let before = before.filter(|before| before.uid == self.uid);
        for (kind, condition) in self.conditions.iter_mut() {
            let was = before.and_then(|before| before.conditions.get(kind));
            if let Some(same) = was.filter(|was| was.reported == condition.reported) {
                (condition.seen_at, condition.made_at) = (same.seen_at, same.made_at);
                continue;
            }
            condition.seen_at = now;
            let earliest = was.map(|was| was.earliest_next(now).min(now));
            condition.made_at =
                earliest.map(|earliest| clock.when(condition.reported).clamp(earliest, now));
        }
        self
    }

    /// Whether it carries the control plane, or etcd for it.
    pub fn is_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }

    /// Whether its kubelet last said that it is.
    pub fn is_ready(&self) -> bool {
        self.conditions.get("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Reads what matters of a node; `None` for an object without name or UID.
    pub fn of(node: Node) -> Option<Self> {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let info = status.node_info.unwrap_or_default();
        let (mut addresses, mut internal_ips) = (LiteMap::new(), Vec::new());
        for address in status.addresses.unwrap_or_default() {
            if address.type_ == "InternalIP" && internal_ips.len() <= NODE_ADDRESSES_MAX {
                internal_ips.push(address.address.clone());
            }
            // The first of each type stays.
            let _ = addresses.try_insert(address.type_, address.address);
        }
        let kubelet = status.daemon_endpoints.and_then(|all| all.kubelet_endpoint);
        let kubelet_port = kubelet.and_then(|one| u16::try_from(one.port).ok());
        let conditions = status
            .conditions
            .unwrap_or_default()
            .into_iter()
            .map(|condition| {
                let at = |stamp: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
                    stamp.map_or(Time(0), |stamp| time_of(&stamp.0))
                };
                let seen = Condition {
                    status: common(condition.status),
                    reason: common(condition.reason.unwrap_or_default()),
                    since: at(condition.last_transition_time),
                    reported: at(condition.last_heartbeat_time),
                    seen_at: Time(0),
                    made_at: None,
                };
                (common(condition.type_), seen)
            })
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .collect();
        Some(Self {
            name: node.metadata.name?,
            uid: node.metadata.uid?,
            resource_version: node.metadata.resource_version.unwrap_or_default(),
            created: node.metadata.creation_timestamp.map_or(Time(0), |stamp| time_of(&stamp.0)),
            labels: node.metadata.labels.unwrap_or_default().into_iter().collect(),
            annotations: node.metadata.annotations.unwrap_or_default().into_iter().collect(),
            provider_id: spec.provider_id,
            system_uuid: fitting(&info.system_uuid),
            boot_id: fitting(&info.boot_id),
            addresses,
            kubelet_port,
            internal_ips,
            conditions,
            taints: spec
                .taints
                .unwrap_or_default()
                .into_iter()
                .map(|taint| (taint.key, taint.value.unwrap_or_default(), taint.effect))
                .collect(),
            unschedulable: spec.unschedulable.unwrap_or_default(),
            volumes_in_use: status.volumes_in_use.unwrap_or_default(),
        })
    }

    /// What an incident keeps of it.
    pub fn fenced(&self) -> FencedNode {
        FencedNode {
            name: self.name.clone(),
            uid: self.uid.clone(),
            provider_id: self.provider_id.clone().unwrap_or_default(),
            system_uuid: self.system_uuid.clone(),
            boot_id: self.boot_id.clone(),
        }
    }
}

/// As much of a machine's id as a record has room for. A kubelet may write any text there.
fn fitting(id: &str) -> String {
    id.chars().take(MACHINE_ID_CHARACTERS_MAX).collect()
}

/// The taint that tells Kubernetes a node is down for good reason.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Its value as Kubernetes documents it.
pub const OUT_OF_SERVICE_VALUE: &str = "nodeshutdown";
/// Our own taint: nothing new is scheduled here until the node is proven well.
pub const QUARANTINE: &str = "node-remedy.io/quarantine";

/// A volume attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedAttachment {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.name`.
    pub name: String,
    /// `spec.nodeName`.
    pub node: String,
    /// `spec.attacher`: the CSI driver.
    pub driver: String,
    /// The persistent volume.
    pub volume: String,
    /// Whether a deletion is under way.
    pub deleting: bool,
    /// Who holds it.
    pub finalizers: Vec<String>,
}

impl PrunedAttachment {
    /// Reads what matters of an attachment; `None` for an object without name or UID.
    pub fn of(attachment: VolumeAttachment) -> Option<Self> {
        Some(Self {
            uid: attachment.metadata.uid?,
            name: attachment.metadata.name?,
            deleting: attachment.metadata.deletion_timestamp.is_some(),
            finalizers: attachment.metadata.finalizers.unwrap_or_default(),
            node: attachment.spec.node_name,
            driver: attachment.spec.attacher,
            volume: attachment.spec.source.persistent_volume_name.unwrap_or_default(),
        })
    }
}

/// A node's Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrunedLease {
    /// The node's name.
    pub node: String,
    /// As the kubelet wrote it, by the node's own clock.
    pub renewed: String,
    /// `spec.leaseDurationSeconds`.
    pub duration_s: u64,
    /// When *we* saw the renewal: clocks of nodes are not trusted.
    pub observed: Time,
    /// Since when it was renewed without a silence, or found.
    pub heard_since: Time,
    /// How far our clock was ahead of the node's at its last sightings, milliseconds, newest last.
    ahead_ms: Vec<i64>,
    /// The last silence that ended: the renewal before it, and the one that ended it.
    pub silence: Option<(Time, Time)>,
}

/// So many sightings of a Lease are held against each other: after a watch that was broken or slow
/// the first one is late, and the next ones are not.
const SIGHTINGS: usize = 3;
/// A kubelet renews four times in its Lease's duration; one that let two of these pass was silent.
const RENEWALS_IN_DURATION: u64 = 4;

impl PrunedLease {
    /// Reads a Lease; `observed` is now.
    pub fn of(lease: Lease, now: Time) -> Option<Self> {
        let spec = lease.spec.unwrap_or_default();
        let by_node = spec.renew_time.as_ref().map(|stamp| stamp.0.as_millisecond());
        let ahead = by_node.zip(i64::try_from(now.0).ok()).map(|(by_node, now)| now - by_node);
        Some(Self {
            node: lease.metadata.name?,
            ahead_ms: ahead.into_iter().collect(),
            renewed: spec.renew_time.map(|stamp| stamp.0.to_string()).unwrap_or_default(),
            duration_s: u64::try_from(spec.lease_duration_seconds.unwrap_or(40)).unwrap_or(40),
            observed: now,
            heard_since: now,
            silence: None,
        })
    }

    fn interval(&self) -> Span {
        Span(Span::seconds(self.duration_s).0 / RENEWALS_IN_DURATION)
    }

    /// Whether its kubelet renews it, as far as its last renewal says.
    pub fn is_renewed(&self, now: Time) -> bool {
        now <= self.renewed_at().after(Span(self.interval().0.saturating_mul(12) / 10))
    }

    /// A renewal seen after another one of the same node.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        // A watch that tells late, or a clock that drifts, makes no silence.
        let is_late =
            self.observed > before.observed.after(Span(before.interval().0.saturating_mul(2)));
        let silence = is_late.then_some((before.observed, self.observed));
        self.silence = silence.or(before.silence);
        self.heard_since = if is_late { self.observed } else { before.heard_since };
        let known = before.ahead_ms.len().saturating_add(1).saturating_sub(SIGHTINGS);
        self.ahead_ms.splice(0..0, before.ahead_ms.iter().skip(known).copied());
        self
    }

    /// Whether it was seen to be renewed, and not only found.
    pub fn was_renewed(&self) -> bool {
        self.ahead_ms.len() > 1
    }

    /// When the Lease was renewed at the earliest, by our clock: what was told late by a watch that
    /// had broken was not renewed late. For counting the silent, where too early is the safe side.
    pub fn renewed_at(&self) -> Time {
        let least = self.ahead_ms.iter().min().copied();
        let late = self.ahead_ms.last().zip(least).map_or(0, |(last, least)| last - least);
        Time(self.observed.0.saturating_sub(u64::try_from(late).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

    use super::*;
    use node_remedy_runtime::clock::timestamp;
    use node_remedy_runtime::virtual_clock::VirtualClock;

    fn seen(renewed_ms: u64, now_ms: u64) -> PrunedLease {
        let spec = LeaseSpec {
            renew_time: Some(MicroTime(timestamp(Time(renewed_ms)))),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { name: Some("n".to_owned()), ..ObjectMeta::default() };
        PrunedLease::of(Lease { metadata, spec: Some(spec) }, Time(now_ms)).unwrap()
    }

    #[test]
    fn a_report_is_as_old_as_it_was_seen_to_be_whatever_its_stamp_says() {
        let clock = |now: u64| Clock::simulated(VirtualClock::start_at(Time(now * 1_000)));
        let node = |uid: &str, second: u64| {
            let reported = timestamp(Time(second * 1_000)).to_string();
            let ready = serde_json::json!(
                {"type": "Ready", "status": "True", "lastHeartbeatTime": reported}
            );
            let node = serde_json::json!(
                {"metadata": {"name": "n", "uid": uid}, "status": {"conditions": [ready]}}
            );
            PrunedNode::of(serde_json::from_value(node).unwrap()).unwrap()
        };
        let at = |node: &PrunedNode| {
            node.conditions.get("Ready").unwrap().reported_at(&clock(9_000)).map(|at| at.0 / 1_000)
        };
        let first = node("u", 10).after(None, &clock(8_000));
        assert_eq!(at(&first), Some(10), "by its stamp: it stood when this began");
        assert_eq!(at(&first.clone().after(Some(&first), &clock(8_050))), Some(10), "nothing new");
        // A clock that is behind, or a server's that was set ahead: not before the one that was seen.
        let second = node("u", 20).after(Some(&first), &clock(8_100));
        assert_eq!(at(&second), Some(8_000));
        assert_eq!(at(&second.clone().after(Some(&second), &clock(8_200))), Some(8_000));
        // A watch that was silent for long tells of a report that is old by now.
        let late = node("u", 8_150).after(Some(&second), &clock(8_900));
        assert_eq!(at(&late), Some(8_150));
        // So it does of the next one, which it had kept back with that.
        let next = node("u", 8_450).after(Some(&late), &clock(8_902));
        assert_eq!(at(&next), Some(8_450));
        let on_time = node("u", 8_750).after(Some(&next), &clock(9_000));
        assert_eq!(at(&on_time), Some(8_902), "by a clock that is behind");
        let ahead = node("u", 20_000).after(Some(&second), &clock(8_200));
        assert_eq!(at(&ahead), Some(8_200), "a clock that is ahead");
        let other = node("v", 20).after(Some(&second), &clock(8_200));
        assert_eq!(at(&other), Some(20), "another Node of the same name");
    }

    #[test]
    fn a_renewal_that_a_broken_watch_told_late_was_not_a_late_renewal() {
        // The node's clock is 5 s behind ours.
        let first = seen(10_000, 15_000);
        assert_eq!(first.renewed_at(), Time(15_000));
        let second = seen(20_000, 25_002).after(&first);
        assert_eq!(second.renewed_at(), Time(25_000));
        let late = seen(30_000, 70_000).after(&second);
        assert_eq!((late.renewed_at(), late.observed), (Time(35_000), Time(70_000)));
        let on_time = seen(70_000, 75_001).after(&late);
        assert_eq!(on_time.renewed_at(), Time(75_001));
    }

    #[test]
    fn a_node_whose_clock_was_set_back_is_not_taken_for_silent_for_long() {
        let mut last = seen(100_000, 100_000);
        for renewal in 1..4 {
            last = seen(50_000 + renewal * 10_000, 100_000 + renewal * 10_000).after(&last);
        }
        assert_eq!(last.renewed_at(), last.observed);
    }
}
