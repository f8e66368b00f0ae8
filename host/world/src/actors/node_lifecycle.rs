//! The node lifecycle controller: decides from Leases and reports that a node is gone,
//! and taints it, as long as not everything looks gone.
//!
//! ```text
//!   every 5 s:  heard from? ── no, for the grace period ──▶ Ready Unknown, pods not ready
//!                                                            │
//!   at once:    taints NoSchedule after the conditions       ▼
//!   per zone:   NoExecute taints, one node in 10 s ◀── queue; none while all nodes are
//!               not ready, none in a small zone of which 55 % and more than two are
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::taints;
use crate::api::object::{Key, condition, condition_status, is_true, name, set_condition, text};
use crate::api::{Kind, Part};
use crate::stage::{LEASE_NAMESPACE, Stage, sooner};
use crate::time::{Time, after, seconds_stamp};

const NAME: &str = "node-lifecycle-controller";
/// How long a new node may take to say anything.
const STARTUP_GRACE: Duration = Duration::from_mins(1);
/// Between two nodes of a zone that get NoExecute taints: 0.1 a second.
const EVICTION_INTERVAL: Duration = Duration::from_secs(10);
/// The same in a large zone of which too much is not ready: 0.01 a second.
const SLOW_EVICTION_INTERVAL: Duration = Duration::from_secs(100);
/// Up to so many nodes a zone is small, and evictions stop instead of going slowly.
const LARGE_ZONE_NODES: usize = 50;
/// From such a share on a zone is partially disrupted, if more than two nodes are.
const UNHEALTHY_PERCENT: usize = 55;

/// The conditions that only a kubelet knows of.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The controller, and what it heard of each node.
#[derive(Debug)]
pub(crate) struct NodeLifecycle {
    next_round: Time,
    heard: BTreeMap<String, LastContact>,
    zones: BTreeMap<String, Zone>,
    every_zone_is_down: bool,
}

/// The last sign of life of a node: what it was, and when it was noticed.
#[derive(Debug)]
struct LastContact {
    renewed: String,
    reported: String,
    at: Time,
}

#[derive(Debug, Default)]
struct Zone {
    disruption: Disruption,
    /// Nodes that wait for their NoExecute taint.
    queue: BTreeSet<String>,
    /// When the next of them may get it.
    next: Time,
}

/// How much of a zone is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Disruption {
    #[default]
    Normal,
    Partial,
    Full,
}

impl NodeLifecycle {
    /// A controller that starts now.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            next_round: now,
            heard: BTreeMap::new(),
            zones: BTreeMap::new(),
            every_zone_is_down: false,
        }
    }

    /// One turn; says when the next is due.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        if self.next_round <= stage.now {
            self.next_round = after(stage.now, stage.timings.node_monitor_period);
            self.monitor(stage);
        }
        for node in names(stage) {
            taint_by_conditions(stage, &node);
        }
        let tainting = self.taint_from_queues(stage);
        sooner(Some(self.next_round), tainting)
    }

    fn monitor(&mut self, stage: &mut Stage<'_>) {
        let nodes = names(stage);
        self.heard.retain(|node, _| nodes.contains(node));
        for node in &nodes {
            self.listen(stage, node);
            self.queue_or_clear(stage, node);
        }
        self.judge_zones(stage, &nodes);
    }

    /// Notices signs of life; a node without any for too long becomes Unknown.
    fn listen(&mut self, stage: &mut Stage<'_>, node: &str) {
        let Some(object) = stage.api.peek(&Key::cluster(Kind::Node, node)) else { return };
        let lease = stage.api.peek(&Key::within(Kind::Lease, LEASE_NAMESPACE, node));
        let renewed = lease.map_or("", |lease| text(lease, "/spec/renewTime"));
        let reported = condition(object, "Ready").map_or("", |one| text(one, "/lastHeartbeatTime"));
        let heard = self.heard.entry(node.to_owned()).or_insert_with(|| LastContact {
            renewed: renewed.to_owned(),
            reported: reported.to_owned(),
            at: stage.now,
        });
        if heard.renewed != renewed || heard.reported != reported {
            *heard = LastContact {
                renewed: renewed.to_owned(),
                reported: reported.to_owned(),
                at: stage.now,
            };
        }
        let never_reported = condition(object, "Ready").is_none();
        let grace = if never_reported { STARTUP_GRACE } else { stage.timings.node_monitor_grace };
        if stage.now > after(heard.at, grace) {
            let was_ready = condition_status(object, "Ready") == "True";
            mark_unknown(stage, node);
            if was_ready {
                mark_pods_not_ready(stage, node);
            }
        }
    }

    /// A node that is not ready waits for its NoExecute taint; one that is loses it.
    fn queue_or_clear(&mut self, stage: &mut Stage<'_>, node: &str) {
        let Some(object) = stage.api.peek(&Key::cluster(Kind::Node, node)) else { return };
        let zone = self.zones.entry(zone(object).to_owned()).or_default();
        match condition_status(object, "Ready") {
            "" => {}
            "True" => {
                zone.queue.remove(node);
                let tainted = [NOT_READY, UNREACHABLE]
                    .iter()
                    .any(|key| taints::has(object, key, "NoExecute"));
                if !tainted {
                    return;
                }
                change(stage, node, |object, _| {
                    taints::remove(object, NOT_READY, "NoExecute");
                    taints::remove(object, UNREACHABLE, "NoExecute");
                });
            }
            status => {
                let (wanted, other) = if status == "False" {
                    (NOT_READY, UNREACHABLE)
                } else {
                    (UNREACHABLE, NOT_READY)
                };
                if taints::has(object, other, "NoExecute") {
                    change(stage, node, |object, now| {
                        taints::remove(object, other, "NoExecute");
                        taints::add(object, wanted, "NoExecute", now);
                    });
                } else if !taints::has(object, wanted, "NoExecute") {
                    zone.queue.insert(node.to_owned());
                }
            }
        }
    }

    /// When every node of every zone is gone, it is rather the controller that is cut off.
    fn judge_zones(&mut self, stage: &mut Stage<'_>, nodes: &[String]) {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for node in stage.api.all(Kind::Node) {
            let (ready, all) = counts.entry(zone(node).to_owned()).or_default();
            *ready += usize::from(condition_status(node, "Ready") == "True");
            *all += 1;
        }
        self.zones.retain(|zone, _| counts.contains_key(zone));
        let every_zone_was_down = self.every_zone_is_down;
        self.every_zone_is_down =
            !counts.is_empty() && counts.values().all(|(ready, _)| *ready == 0);
        for (zone, (ready, all)) in &counts {
            let zone = self.zones.entry(zone.clone()).or_default();
            zone.disruption = disruption(*ready, *all);
        }
        match (every_zone_was_down, self.every_zone_is_down) {
            (false, true) => {
                for node in nodes {
                    change(stage, node, |object, _| {
                        taints::remove(object, NOT_READY, "NoExecute");
                        taints::remove(object, UNREACHABLE, "NoExecute");
                    });
                }
            }
            // After such an outage every node gets a whole grace period again.
            (true, false) => {
                for heard in self.heard.values_mut() {
                    heard.at = stage.now;
                }
            }
            (false, false) | (true, true) => {}
        }
    }

    /// Gives NoExecute taints at each zone's pace; says when the next one may be given.
    fn taint_from_queues(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        let mut next: Option<Time> = None;
        for (key, zone) in &mut self.zones {
            let size = stage.api.all(Kind::Node).filter(|node| self::zone(node) == key).count();
            let Some(interval) = pace(zone.disruption, size, self.every_zone_is_down) else {
                continue;
            };
            while zone.next <= stage.now
                && let Some(node) = zone.queue.pop_first()
            {
                let object = stage.api.peek(&Key::cluster(Kind::Node, &node));
                let taint = match object.map_or("", |node| condition_status(node, "Ready")) {
                    "False" => NOT_READY,
                    "Unknown" => UNREACHABLE,
                    _ => continue,
                };
                change(stage, &node, |object, now| taints::add(object, taint, "NoExecute", now));
                zone.next = after(stage.now, interval);
            }
            if !zone.queue.is_empty() {
                next = sooner(next, Some(zone.next));
            }
        }
        next
    }
}

fn disruption(ready: usize, all: usize) -> Disruption {
    let not_ready = all.saturating_sub(ready);
    if ready == 0 && not_ready > 0 {
        Disruption::Full
    } else if not_ready > 2 && not_ready * 100 >= all * UNHEALTHY_PERCENT {
        Disruption::Partial
    } else {
        Disruption::Normal
    }
}

/// Time between two nodes of a zone; none while evictions are stopped.
fn pace(disruption: Disruption, nodes: usize, every_zone_is_down: bool) -> Option<Duration> {
    match disruption {
        Disruption::Full if every_zone_is_down => None,
        Disruption::Normal | Disruption::Full => Some(EVICTION_INTERVAL),
        Disruption::Partial => (nodes > LARGE_ZONE_NODES).then_some(SLOW_EVICTION_INTERVAL),
    }
}

fn zone(node: &Value) -> &str {
    text(node, "/metadata/labels/topology.kubernetes.io~1zone")
}

fn names(stage: &Stage<'_>) -> Vec<String> {
    stage.api.all(Kind::Node).map(|node| name(node).to_owned()).collect()
}

fn mark_unknown(stage: &mut Stage<'_>, node: &str) {
    let Some(object) = stage.api.peek(&Key::cluster(Kind::Node, node)) else { return };
    let is_known = |kind: &&&str| condition_status(object, kind) != "Unknown";
    let known: Vec<&str> = REPORTED.iter().filter(is_known).copied().collect();
    if known.is_empty() {
        return;
    }
    let stamp = seconds_stamp(stage.api.shows());
    let mut new = object.clone();
    for kind in known {
        let never = condition(object, kind).is_none();
        let (reason, message) = if never {
            ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
        } else {
            ("NodeStatusUnknown", "Kubelet stopped posting node status.")
        };
        let more = json!({ "reason": reason, "message": message });
        set_condition(&mut new, kind, "Unknown", &stamp, more);
    }
    // The next round in five seconds sees whether it took.
    drop(stage.api.client(NAME).update(Kind::Node, new, Part::Status));
}

fn mark_pods_not_ready(stage: &mut Stage<'_>, node: &str) {
    let stamp = seconds_stamp(stage.api.shows());
    let on_node = |pod: &&Value| {
        text(pod, "/spec/nodeName") == node && condition_status(pod, "Ready") == "True"
    };
    let pods: Vec<Value> = stage.api.all(Kind::Pod).filter(on_node).cloned().collect();
    for mut pod in pods {
        set_condition(&mut pod, "Ready", "False", &stamp, json!({ "reason": "NodeNotReady" }));
        // A pod that is gone needs no marking.
        drop(stage.api.client(NAME).update(Kind::Pod, pod, Part::Status));
    }
}

/// NoSchedule taints say what the conditions and the cordon say, at once.
fn taint_by_conditions(stage: &mut Stage<'_>, node: &str) {
    let Some(object) = stage.api.peek(&Key::cluster(Kind::Node, node)) else { return };
    let ready = condition_status(object, "Ready");
    let wanted = [
        (NOT_READY, matches!(ready, "False" | "")),
        (UNREACHABLE, ready == "Unknown"),
        (UNSCHEDULABLE, is_true(object, "/spec/unschedulable")),
    ];
    let differs = |(key, wanted): &(&str, bool)| taints::has(object, key, "NoSchedule") != *wanted;
    if !wanted.iter().any(differs) {
        return;
    }
    change(stage, node, |object, now| {
        for (key, wanted) in wanted {
            if wanted {
                taints::add(object, key, "NoSchedule", now);
            } else {
                taints::remove(object, key, "NoSchedule");
            }
        }
    });
}

/// Reads, changes and writes a node; writes nothing where nothing changes.
fn change(stage: &mut Stage<'_>, node: &str, edit: impl FnOnce(&mut Value, Time)) {
    let Some(object) = stage.api.peek(&Key::cluster(Kind::Node, node)) else { return };
    let mut new = object.clone();
    edit(&mut new, stage.now);
    if new != *object {
        // Everything here is repeated every five seconds.
        drop(stage.api.client(NAME).update(Kind::Node, new, Part::Main));
    }
}
