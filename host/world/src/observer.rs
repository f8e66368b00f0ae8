//! Turns committed writes into facts: what changed in the API, and who changed it.

use serde_json::Value;

use crate::api::object::{
    condition_status, is_terminating, is_true, list, name, namespace, number, text, uid,
};
use crate::api::{Change, ChangeType, Kind};
use crate::facts::{Facts, What};
use crate::stage::{LEADER_LEASE, LEADER_NAMESPACE, LOCKS, REMEDY};

/// What people say of an incident, by annotations.
const COMMANDS: [&str; 4] = ["approve", "retry", "abort", "confirm-off"];

/// Notes what `change` means.
pub(crate) fn note(facts: &mut Facts, change: &Change) {
    let mut say = |what| facts.note(change.at, what);
    match change.key.kind {
        Kind::Node => node(change, &mut say),
        Kind::Pod => pod(change, &mut say),
        Kind::VolumeAttachment => attachment(change, &mut say),
        Kind::NodeFence => fence(change, &mut say),
        Kind::Lease => lease(change, &mut say),
        Kind::RemedyConfiguration => policy(change, &mut say),
        Kind::Namespace
        | Kind::ConfigMap
        | Kind::Secret
        | Kind::CoreEvent
        | Kind::Event
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::Job
        | Kind::PodDisruptionBudget
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::FenceConfiguration
        | Kind::RemedyBudget
        | Kind::RemedyPause
        | Kind::NodeMaintenance
        | Kind::NetworkFence
        | Kind::FencePlugin => {}
    }
}

fn node(change: &Change, say: &mut impl FnMut(What)) {
    let by = || change.by.to_string();
    let node = || change.key.name.clone();
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    let after = match change.change {
        ChangeType::Deleted => return say(What::NodeDeleted { node: node(), by: by() }),
        ChangeType::Added => {
            say(What::NodeCreated { node: node() });
            &*change.object
        }
        ChangeType::Modified => &*change.object,
    };
    let ready = condition_status(after, "Ready");
    if ready != condition_status(before, "Ready") {
        say(What::NodeReady { node: node(), status: ready.to_owned(), by: by() });
    }
    let taints = |object| {
        list(object, "/spec/taints")
            .iter()
            .map(|taint| (text(taint, "/key").to_owned(), text(taint, "/effect").to_owned()))
            .collect::<Vec<_>>()
    };
    let (had, has) = (taints(before), taints(after));
    for (key, effect) in has.iter().filter(|taint| !had.contains(taint)).cloned() {
        say(What::TaintAdded { node: node(), key, effect, by: by() });
    }
    for (key, effect) in had.iter().filter(|taint| !has.contains(taint)).cloned() {
        say(What::TaintRemoved { node: node(), key, effect, by: by() });
    }
    match (is_true(before, "/spec/unschedulable"), is_true(after, "/spec/unschedulable")) {
        (false, true) => say(What::Cordoned { node: node(), by: by() }),
        (true, false) => say(What::Uncordoned { node: node(), by: by() }),
        (false, false) | (true, true) => {}
    }
}

fn pod(change: &Change, say: &mut impl FnMut(What)) {
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    let after = &*change.object;
    let by = || change.by.to_string();
    let pod = || format!("{}/{}", namespace(after), name(after));
    let uid = || uid(after).to_owned();
    let node = || text(after, "/spec/nodeName").to_owned();
    match change.change {
        ChangeType::Deleted => {
            return say(What::PodGone { pod: pod(), uid: uid(), node: node(), by: by() });
        }
        ChangeType::Added => say(What::PodCreated { pod: pod(), uid: uid() }),
        ChangeType::Modified => {}
    }
    if text(before, "/spec/nodeName").is_empty() && !node().is_empty() {
        say(What::PodScheduled { pod: pod(), uid: uid(), node: node() });
    }
    let phase = text(after, "/status/phase");
    if phase != text(before, "/status/phase") && phase != "Pending" {
        let phase = phase.to_owned();
        say(What::PodPhase { pod: pod(), uid: uid(), node: node(), phase, by: by() });
    }
    let grace = |object| number(object, "/metadata/deletionGracePeriodSeconds");
    let graceful = grace(after) != Some(0);
    let is_cut_short = !graceful && grace(before) != Some(0);
    if is_terminating(after) && (!is_terminating(before) || is_cut_short) {
        say(What::PodTerminating { pod: pod(), uid: uid(), node: node(), graceful, by: by() });
    }
}

fn attachment(change: &Change, say: &mut impl FnMut(What)) {
    let before = change.before.as_deref().unwrap_or(&Value::Null);
    let after = &*change.object;
    let volume = || text(after, "/spec/source/persistentVolumeName").to_owned();
    let node = || text(after, "/spec/nodeName").to_owned();
    let was = is_true(before, "/status/attached");
    let is = change.change != ChangeType::Deleted && is_true(after, "/status/attached");
    if change.change != ChangeType::Deleted && is_terminating(after) && !is_terminating(before) {
        let by = change.by.to_string();
        say(What::DetachRequested { volume: volume(), node: node(), by });
    }
    match (was, is) {
        (false, true) => say(What::VolumeAttached { volume: volume(), node: node() }),
        (true, false) => say(What::VolumeDetached { volume: volume(), node: node() }),
        (false, false) | (true, true) => {}
    }
}

fn fence(change: &Change, say: &mut impl FnMut(What)) {
    let state = |object| {
        (text(object, "/status/step").to_owned(), text(object, "/status/status").to_owned())
    };
    let fence = || change.key.name.clone();
    let node = || text(&change.object, "/spec/node/name").to_owned();
    let before = change.before.as_deref().map(state);
    let (step, status) = state(&change.object);
    if change.change != ChangeType::Deleted
        && !status.is_empty()
        && before != Some((step.clone(), status.clone()))
    {
        let reason = text(&change.object, "/status/finalReason").to_owned();
        say(What::FenceState { fence: fence(), node: node(), step, state: status, reason });
    }
    if change.change == ChangeType::Deleted {
        return;
    }
    let nothing = Value::Null;
    let before = change.before.as_deref().unwrap_or(&nothing);
    let next = |object| number(object, "/status/nextOperation").unwrap_or_default();
    let known = next(before);
    for operation in list(&change.object, "/status/operations") {
        let id = number(operation, "/id").unwrap_or_default();
        if id >= known {
            let action = text(operation, "/action").to_owned();
            let method = text(operation, "/name").to_owned();
            let (fence, node) = (fence(), node());
            say(What::IntentRecorded { fence, node, operation: id, method, action });
        }
    }
    for command in COMMANDS {
        let path = format!("/metadata/annotations/node-remedy.io~1{command}");
        let value = |object| text(object, &path);
        if !value(&change.object).is_empty() && value(&change.object) != value(before) {
            let leaves_off = value(&change.object).ends_with("/leave-off");
            let command =
                if leaves_off { format!("{command}-leave-off") } else { command.to_owned() };
            say(What::OperatorCommand {
                fence: fence(),
                node: node(),
                command,
                by: change.by.to_string(),
            });
        }
    }
    let parked = |object| text(object, "/status/parked/at").to_owned();
    if parked(&change.object) != parked(before) && !parked(&change.object).is_empty() {
        let plugs = list(&change.object, "/status/parked/poweredOffByUs");
        let left_off = u64::try_from(plugs.len()).unwrap_or(u64::MAX);
        let reason = text(&change.object, "/status/parked/reason").to_owned();
        say(What::ParkedRecorded { fence: fence(), node: node(), reason, left_off });
    }
    let awaits = |object| text(object, "/status/phase") == "AwaitingDevice";
    if awaits(&change.object) && !awaits(before) {
        say(What::DeviceAwaited { fence: fence(), node: node() });
    }
    let proof = |object| text(object, "/status/proof/at").to_owned();
    // One that is void from the start says what was undone, and allows nothing.
    let is_void = !text(&change.object, "/status/proof/voidedAt").is_empty();
    let is_new = proof(&change.object) != proof(before) && !proof(&change.object).is_empty();
    if is_new && !is_void {
        let grade = text(&change.object, "/status/proof/grade").to_owned();
        say(What::ProofRecorded { fence: fence(), node: node(), grade });
    }
}

/// Who leads, and whose the lock of a node is. The Leases of nodes say nothing that `Ready` does
/// not.
fn lease(change: &Change, say: &mut impl FnMut(What)) {
    let holder = |object| text(object, "/spec/holderIdentity").to_owned();
    let by = holder(&change.object);
    let is_new = change.before.as_deref().map(holder).unwrap_or_default() != by;
    match &*change.key.namespace {
        LEADER_NAMESPACE if is_new && change.key.name == LEADER_LEASE => {
            say(What::LeaderChanged { process: by });
        }
        LOCKS if change.change != ChangeType::Deleted && by != REMEDY => {
            let node = change.key.name.strip_prefix("node-").unwrap_or_default().to_owned();
            let lasts = number(&change.object, "/spec/leaseDurationSeconds").unwrap_or_default();
            say(What::NodeLocked { node, by, lasts });
        }
        _ => {}
    }
}

fn policy(change: &Change, say: &mut impl FnMut(What)) {
    // As the API server fills it in.
    let mode = |object| match text(object, "/spec/mode") {
        "" => "enforce".to_owned(),
        mode => mode.to_owned(),
    };
    let is_gone = change.change == ChangeType::Deleted;
    let now = if is_gone { String::new() } else { mode(&change.object) };
    if is_gone || change.before.as_deref().map(mode).as_ref() != Some(&now) {
        say(What::PolicyMode { policy: change.key.name.clone(), mode: now });
    }
}
