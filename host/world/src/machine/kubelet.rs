//! A kubelet: renews its Lease, reports its node, runs and ends the pods bound to it.
//!
//! No kinder than a real one. It takes pods only from the API server: a boot starts none before its
//! first list. One simplification: a change of the volumes in use is reported at once and not with
//! the next round of ten seconds.

use std::time::Duration;

use serde_json::{Value, json};

use super::node_status;
use super::processes::{Life, Pod, Processes};
use crate::api::object::{
    Key, condition_status, is_terminating, list, name, namespace, number, part, set, set_condition,
    text, uid,
};
use crate::api::{ApiServer, DEFAULT_GRACE_S, DeleteOptions, Kind, Part};
use crate::machine::spec::{Network, Spec};
use crate::rng::Rng;
use crate::stage::{LEASE_NAMESPACE, Stage, sooner};
use crate::time::{Time, after, micros_stamp, millis, seconds_stamp};
use crate::volumes;
use crate::volumes::Volume;

/// From the kubelet's start to its first list of pods.
const FIRST_SYNC: Duration = Duration::from_secs(1);
/// From the kubelet's start to a ready network plugin after a boot.
const NETWORK_READY: Duration = Duration::from_secs(3);
/// How often a kubelet looks whether its status has changed.
const STATUS_LOOK: Duration = Duration::from_secs(10);
/// How often it reports a status that has not changed.
const STATUS_REPORT: Duration = Duration::from_mins(5);
/// `leaseDurationSeconds`, by which others know the renewal interval.
const LEASE_DURATION_S: u64 = 40;
/// Renewals come up to so many per cent early or late.
const LEASE_JITTER_PERCENT: u64 = 4;
/// A container whose pod is gone from the API is given no time.
const KILL: Duration = Duration::from_millis(100);

/// A kubelet process.
#[derive(Debug)]
pub(super) struct Kubelet {
    client: String,
    jitter: Rng,
    started: Time,
    /// It started with its machine.
    boots: bool,
    ready_from: Time,
    next_lease: Time,
    next_status: Time,
    /// Its connections to the API server wait until then.
    asks_from: Time,
    last_report: Option<Time>,
    /// What the pods were last made to follow.
    synced: Option<Seen>,
    /// What was last held against the volumes in use, and what in a round.
    looked: Option<Seen>,
    rounded: Option<Seen>,
}

/// All that a kubelet's doings follow from, but for the time: while it stays the same, there is
/// nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// The last change of what it watches.
    version: u64,
    /// Changes of its processes.
    changes: u64,
}

/// What a kubelet watches.
const WATCHED: [Kind; 5] = [
    Kind::Node,
    Kind::Pod,
    Kind::PersistentVolumeClaim,
    Kind::PersistentVolume,
    Kind::VolumeAttachment,
];

impl Kubelet {
    /// A kubelet that has just started after a boot.
    pub(super) fn start(node: &str, seed: u64, now: Time) -> Self {
        Self {
            client: format!("kubelet:{node}"),
            jitter: Rng::named(seed, &format!("kubelet of {node}")),
            started: now,
            boots: true,
            ready_from: after(now, NETWORK_READY),
            next_lease: now,
            next_status: now,
            asks_from: now,
            last_report: None,
            synced: None,
            looked: None,
            rounded: None,
        }
    }

    /// The same on a machine that has run for a while: its network is ready.
    pub(super) fn restart(node: &str, seed: u64, now: Time) -> Self {
        Self { ready_from: now, boots: false, ..Self::start(node, seed, now) }
    }

    /// The API server is reachable again, and is asked from then on.
    pub(super) fn report_soon(&mut self, at: Time) {
        self.next_status = at;
        self.next_lease = at;
        self.asks_from = at;
    }

    /// One turn; says when the next one is due.
    pub(super) fn run(
        &mut self,
        stage: &mut Stage<'_>,
        machine: &Spec,
        boot: &str,
        network: Network,
        processes: &mut Processes,
    ) -> Option<Time> {
        if network == Network::Lost {
            return None;
        }
        if stage.now < self.asks_from {
            return Some(self.asks_from);
        }
        if self.last_report.is_none() {
            node_status::register(stage.api, machine, &self.client);
        }
        if self.next_lease <= stage.now {
            self.renew(stage, &machine.name);
        }
        let first_sync = after(self.started, FIRST_SYNC);
        let mut waiting = None;
        if first_sync > stage.now {
            waiting = Some(first_sync);
        } else {
            let seen = seen(stage, processes);
            if self.synced.replace(seen) != Some(seen) {
                self.sync(stage, &machine.name, processes);
            }
        }
        let first_status = if self.boots { stage.timings.first_status } else { Duration::ZERO };
        let first_status = after(self.started, first_status);
        if first_status > stage.now {
            return sooner(sooner(waiting, Some(first_status)), Some(self.next_lease));
        }
        self.report(stage, machine, boot, processes);
        let ready = Some(self.ready_from).filter(|ready| *ready > stage.now);
        let rounds = Some(self.next_lease.min(self.next_status));
        sooner(sooner(waiting, ready), rounds)
    }

    fn renew(&mut self, stage: &mut Stage<'_>, node: &str) {
        let first = self.last_report.is_none();
        let spec = json!({
            "holderIdentity": node,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": micros_stamp(stage.now),
        });
        let key = Key::within(Kind::Lease, LEASE_NAMESPACE, node);
        let mut client = stage.api.client(&self.client);
        if client.merge_patch(&key, &json!({ "spec": spec }), Part::Main).is_err() {
            let metadata = json!({ "name": node, "namespace": LEASE_NAMESPACE });
            // Refused only if it came to exist meanwhile; the next round renews it.
            drop(client.create(Kind::Lease, json!({ "metadata": metadata, "spec": spec })));
        }
        let interval = millis(stage.timings.lease_renewal);
        let slack = interval * LEASE_JITTER_PERCENT / 100;
        let (low, high) = (interval.saturating_sub(slack), interval + slack);
        // Kubelets of a cluster do not renew in step.
        let low = if first { 0 } else { low };
        let wait = self.jitter.within(low, high);
        self.next_lease = after(stage.now, Duration::from_millis(wait));
    }

    /// Makes the processes those of the pods that the API server has for this node.
    fn sync(&mut self, stage: &mut Stage<'_>, node: &str, processes: &mut Processes) {
        let pods: Vec<Value> = stage
            .api
            .all(Kind::Pod)
            .filter(|pod| text(pod, "/spec/nodeName") == node)
            .cloned()
            .collect();
        for gone in processes.uids() {
            if !pods.iter().any(|pod| uid(pod) == gone) {
                processes.stop(&gone, after(stage.now, KILL));
            }
        }
        for pod in &pods {
            let wanted =
                !is_terminating(pod) && matches!(text(pod, "/status/phase"), "Pending" | "Running");
            match (wanted, processes.life(uid(pod))) {
                (true, None) => start_when_mounted(stage, node, pod, processes),
                (true, Some(Life::Runs)) => self.report_running(stage, pod),
                (false, Some(_)) => {
                    let grace = Duration::from_secs(
                        number(pod, "/metadata/deletionGracePeriodSeconds")
                            .unwrap_or(DEFAULT_GRACE_S),
                    );
                    let wait = grace.min(stage.timings.pod_stop);
                    processes.stop(uid(pod), after(stage.now, wait));
                }
                (false, None) if is_terminating(pod) => self.let_go(stage, pod),
                (true, Some(Life::Starting { .. } | Life::Stopping { .. })) | (false, None) => {}
            }
        }
    }

    /// The pod's processes are gone and its volumes unmounted: the object may go.
    fn let_go(&self, stage: &mut Stage<'_>, pod: &Value) {
        let key = Key::of(Kind::Pod, pod);
        // Somebody else may have removed it first; then there is nothing left to do.
        drop(stage.api.client(&self.client).delete(&key, &DeleteOptions::force(uid(pod))));
    }

    fn report_running(&self, stage: &mut Stage<'_>, pod: &Value) {
        let reported =
            text(pod, "/status/phase") == "Running" && condition_status(pod, "Ready") == "True";
        if reported {
            return;
        }
        let stamp = seconds_stamp(stage.now);
        let mut new = pod.clone();
        let status = part(&mut new, "status");
        set(status, "phase", json!("Running"));
        set(status, "startTime", json!(stamp));
        for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
            set_condition(&mut new, kind, "True", &stamp, json!({}));
        }
        // If somebody was faster, the next turn sees what is left to report.
        drop(stage.api.client(&self.client).update(Kind::Pod, new, Part::Status));
    }

    /// Reports the node where its status has changed, and every five minutes.
    fn report(&mut self, stage: &mut Stage<'_>, machine: &Spec, boot: &str, processes: &Processes) {
        let seen = seen(stage, processes);
        let round = self.next_status <= stage.now;
        if round {
            self.next_status = after(stage.now, STATUS_LOOK);
        }
        let overdue = self.last_report.is_none_or(|last| after(last, STATUS_REPORT) <= stage.now);
        let became_ready = self.ready_from == stage.now;
        let looks = became_ready || round && self.rounded.replace(seen) != Some(seen);
        let is_new = self.looked.replace(seen) != Some(seen);
        if !(overdue || looks || is_new) {
            return;
        }
        let Some(node) = stage.api.peek(&Key::cluster(Kind::Node, &machine.name)) else { return };
        let in_use = volumes_in_use(stage.api, &machine.name, processes);
        let mounts_differ = list(node, "/status/volumesInUse") != in_use.as_slice();
        let readiness = if self.ready_from <= stage.now { "True" } else { "False" };
        let differs = looks && !node_status::is_current(node, boot, readiness);
        if !(overdue || mounts_differ || differs) {
            return;
        }
        let mut new = node.clone();
        node_status::fill(&mut new, machine, boot, readiness, stage.now);
        set(part(&mut new, "status"), "volumesInUse", json!(in_use));
        node_status::stamp(&mut new, stage.now);
        if stage.api.client(&self.client).update(Kind::Node, new, Part::Status).is_ok() {
            self.last_report = Some(stage.now);
        }
    }
}

fn seen(stage: &Stage<'_>, processes: &Processes) -> Seen {
    let latest = WATCHED.into_iter().map(|kind| stage.api.changed(kind)).max();
    Seen { version: latest.unwrap_or_default(), changes: processes.changes() }
}

fn start_when_mounted(stage: &Stage<'_>, node: &str, pod: &Value, processes: &mut Processes) {
    let volumes = volumes::of_pod(stage.api, pod);
    let object = stage.api.peek(&Key::cluster(Kind::Node, node));
    let reported = |volume: &Volume| {
        object.is_some_and(|object| {
            list(object, "/status/volumesAttached")
                .iter()
                .any(|attached| text(attached, "/name") == volume.unique)
        })
    };
    let mountable =
        |volume: &Volume| reported(volume) && volumes::is_attached(stage.api, &volume.name, node);
    if volumes::are_bound(stage.api, pod) && volumes.iter().all(mountable) {
        let name = format!("{}/{}", namespace(pod), name(pod));
        let runs = after(stage.now, stage.timings.pod_start);
        processes.start(uid(pod), Pod { name, volumes }, runs);
    }
}

/// What is mounted, and what is about to be.
fn volumes_in_use(api: &ApiServer, node: &str, processes: &Processes) -> Vec<String> {
    let mut names: Vec<String> = processes.mounted().map(|volume| volume.unique.clone()).collect();
    for pod in api.all(Kind::Pod).filter(|pod| text(pod, "/spec/nodeName") == node) {
        let runs = matches!(text(pod, "/status/phase"), "Pending" | "Running");
        if runs && !is_terminating(pod) {
            names.extend(volumes::of_pod(api, pod).into_iter().map(|volume| volume.unique));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
