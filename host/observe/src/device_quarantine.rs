//! Devices through which nothing is switched off: they failed to switch a machine on (rule A13).
//!
//! The records of the incidents say which (`onFailed`): until a later `on` of theirs works, or a
//! person acknowledges it. Nothing is remembered anywhere else.

use kube::ResourceExt as _;
use node_remedy_api::annotations::ACK;
use node_remedy_api::nodefence::{FailureKind, NodeFence, OnFailure};
use node_remedy_api::plan::{Method, NodePlan};
use node_remedy_api::time::Moment;
use node_remedy_decide::{ClosedDevice, Span, Time};

use crate::caches::Caches;

/// Two devices of a kind that fail within this time speak against the kind.
const TOGETHER: Span = Span::minutes(60);

/// A device that failed to switch a machine on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// As a method's `device`.
    pub device: String,
    /// The plugin that speaks to it.
    kind: String,
    node: String,
    /// When.
    pub at: Time,
    /// It did not accept the credential: neither will others of its kind.
    is_denied: bool,
}

/// A device of this plan that is closed; what the incident `own` did is for its own retries.
pub fn device_of(plan: &NodePlan, caches: &Caches, own: Option<&str>) -> Option<ClosedDevice> {
    let nodefences = caches.nodefences.all();
    let others = nodefences.values().map(|kept| &kept.0);
    let failed = others.filter(|one| Some(one.name_any().as_str()) != own).flat_map(failed_in);
    find(plan, &failed.collect::<Vec<_>>())
}

/// Whether a record keeps a device closed.
pub fn is_closing(nodefence: &NodeFence) -> bool {
    !failed_in(nodefence).is_empty()
}

/// The first device of the plan that one of these failures closes.
pub fn find(plan: &NodePlan, failed: &[Failed]) -> Option<ClosedDevice> {
    let closes = |one: &&Failed| {
        plan.methods.iter().any(|method| {
            let of_kind = method.plugin.as_ref() == Some(&one.kind);
            let is_it = method.device == one.device;
            of_kind && (is_it || one.is_denied || is_one_of_two(one, failed))
        })
    };
    let found = failed.iter().find(closes)?;
    Some(ClosedDevice { device: found.device.clone(), node: found.node.clone() })
}

fn is_one_of_two(one: &Failed, failed: &[Failed]) -> bool {
    failed.iter().any(|other| {
        let apart = other.at.since(one.at).max(one.at.since(other.at));
        other.kind == one.kind && other.device != one.device && apart <= TOGETHER
    })
}

/// The devices that failed in one incident since somebody last acknowledged it.
pub fn failed_in(nodefence: &NodeFence) -> Vec<Failed> {
    let Some(status) = &nodefence.status else { return Vec::new() };
    let acknowledged = acknowledged_until(nodefence);
    let unseen = status.on_failed.iter().filter(|one| Some(one.at) > acknowledged);
    let failed = |one: &OnFailure| {
        let method: &Method = nodefence.spec.plan.methods.get(usize::try_from(one.method).ok()?)?;
        Some(Failed {
            device: method.device.clone(),
            kind: method.plugin.clone()?,
            node: nodefence.spec.node.name.clone(),
            at: Time(one.at.ms),
            is_denied: matches!(one.kind, FailureKind::Unauthenticated | FailureKind::Denied),
        })
    };
    unseen.filter_map(failed).collect()
}

/// What a person writes who has seen to the devices that failed in an incident so far: its UID,
/// and when the last of them failed. A later failure is not acknowledged by it.
pub fn acknowledgement(nodefence: &NodeFence) -> Option<String> {
    let last = nodefence.status.as_ref()?.on_failed.iter().map(|one| one.at.ms).max()?;
    Some(format!("{}/{last}", nodefence.uid()?))
}

fn acknowledged_until(nodefence: &NodeFence) -> Option<Moment> {
    let (uid, last) = nodefence.annotations().get(ACK)?.split_once('/')?;
    let is_of_this = Some(uid) == nodefence.uid().as_deref();
    is_of_this.then(|| last.parse().ok().map(Moment::from_ms))?
}
