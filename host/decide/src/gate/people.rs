//! What people and other controllers said about a node, and when it keeps its power uncut.
//!
//! None of it stops what brings a machine back: on, restoring and untainting ask no gate (A2).

use alloc::string::String;
use alloc::vec::Vec;

use super::{Refusal, Verdict};
use crate::bug::{Bug, guard, is_sown};
use crate::{Span, Time};

/// While somebody's word stands it is read again this often; a word that changes wakes us earlier.
pub const WORD_LOOK_EVERY: Span = Span::seconds(10);

/// What was said about the target, by whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Words {
    /// Pauses that are for the target; those that are over count no more.
    pub pauses: Vec<Pause>,
    /// The label or annotation by which somebody keeps us from the node.
    pub excluded_by: Option<String>,
    /// A maintenance of the node that is declared, with its reason.
    pub maintenance: Option<String>,
    /// The node is cordoned, and not by us.
    pub cordoned_by_other: bool,
    /// The taint by which an autoscaler says that it removes the node.
    pub removed_by: Option<String>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// Somebody wants nothing to be cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pause {
    /// Why.
    pub reason: String,
    /// Who, or which window of the policy.
    pub by: String,
    /// When it ends by itself; `None`: when somebody ends it.
    pub until: Option<Time>,
}

/// What a cordon that is not ours means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ForeignCordon {
    /// Somebody works on the node.
    #[default]
    Maintenance,
    /// Nothing: cordons are set for other reasons here.
    Ignore,
}

/// Refuses by every word that stands.
pub(super) fn refuse_by_words(
    foreign_cordon: ForeignCordon,
    words: &Words,
    now: Time,
    verdict: &mut Verdict,
) {
    let before = verdict.refusals.len();
    for what in &words.unread {
        verdict.refusals.push(Refusal::WordsUnread { what: what.clone() });
    }
    let stands = |pause: &&Pause| pause.until.is_none_or(|until| now < until);
    for pause in words.pauses.iter().filter(|pause| guard(Bug::PauseIgnored, stands(pause))) {
        verdict.refusals.push(Refusal::Paused(pause.clone()));
        verdict.look_at(pause.until.unwrap_or(now.after(WORD_LOOK_EVERY)));
    }
    if let Some(mark) = words.excluded_by.clone().filter(|_| !is_sown(Bug::LabelIgnored)) {
        verdict.refusals.push(Refusal::Excluded { mark });
    }
    if let Some(what) = words.maintenance.clone().filter(|_| !is_sown(Bug::MaintenanceIgnored)) {
        verdict.refusals.push(Refusal::Maintenance { what });
    }
    let is_kept = words.cordoned_by_other && foreign_cordon == ForeignCordon::Maintenance;
    if guard(Bug::CordonIgnored, is_kept) {
        verdict.refusals.push(Refusal::Cordoned);
    }
    if let Some(taint) = words.removed_by.clone() {
        verdict.refusals.push(Refusal::BeingRemoved { taint });
    }
    if verdict.refusals.len() > before {
        verdict.look_at(now.after(WORD_LOOK_EVERY));
    }
}

impl Refusal {
    /// Whether so many are lost that it looks like a network's doing, and not their own.
    pub const fn is_storm(&self) -> bool {
        matches!(
            self,
            Self::UnhealthyShare { .. }
                | Self::UnhealthyCount { .. }
                | Self::SilentAtOnce { .. }
                | Self::DomainUnhealthy { .. }
        )
    }

    /// Whether the machine is in other hands, or may be another one than the node.
    pub(crate) const fn is_anothers(&self) -> bool {
        matches!(self, Self::HeldByOther { .. } | Self::MachineDisputed { .. })
    }

    /// Whether a person wants the machine left alone. Such a word is waited for as long as it
    /// stands: no time-out of ours ends it.
    pub fn is_a_persons(&self) -> bool {
        match self {
            Self::Paused(_) | Self::Excluded { .. } | Self::Maintenance { .. } | Self::Cordoned => {
                true
            }
            Self::UnhealthyShare { .. }
            | Self::UnhealthyCount { .. }
            | Self::SilentAtOnce { .. }
            | Self::StormTail { .. }
            | Self::SilenceNotJudged { .. }
            | Self::StorageLease { .. }
            | Self::StorageLeaseUnread { .. }
            | Self::NoLease
            | Self::ControlPlane { .. }
            | Self::Headroom { .. }
            | Self::DomainUnhealthy { .. }
            | Self::DomainInFlight { .. }
            | Self::NoDomain { .. }
            | Self::InFlight { .. }
            | Self::BreakerOpen { .. }
            | Self::BreakerHalfOpen { .. }
            | Self::BreakerUnread { .. }
            | Self::OwnView { .. }
            | Self::WatchBroken { .. }
            | Self::HeldByOther { .. }
            | Self::DeviceClosed(_)
            | Self::MachineDisputed { .. }
            | Self::NeighbourUnverified { .. }
            | Self::DeviceNetworkLost { .. }
            | Self::CoolDown { .. }
            | Self::WordsUnread { .. }
            | Self::BeingRemoved { .. } => false,
        }
    }

    /// Until when a pause or an open breaker lasts, where that is known.
    pub fn lasts_until(&self) -> Option<Time> {
        match self {
            Self::Paused(pause) => pause.until,
            Self::BreakerOpen { until, .. } => Some(*until),
            Self::UnhealthyShare { .. }
            | Self::UnhealthyCount { .. }
            | Self::SilentAtOnce { .. }
            | Self::StormTail { .. }
            | Self::SilenceNotJudged { .. }
            | Self::StorageLease { .. }
            | Self::StorageLeaseUnread { .. }
            | Self::NoLease
            | Self::ControlPlane { .. }
            | Self::Headroom { .. }
            | Self::DomainUnhealthy { .. }
            | Self::DomainInFlight { .. }
            | Self::NoDomain { .. }
            | Self::InFlight { .. }
            | Self::BreakerHalfOpen { .. }
            | Self::BreakerUnread { .. }
            | Self::OwnView { .. }
            | Self::WatchBroken { .. }
            | Self::HeldByOther { .. }
            | Self::DeviceClosed(_)
            | Self::MachineDisputed { .. }
            | Self::NeighbourUnverified { .. }
            | Self::DeviceNetworkLost { .. }
            | Self::CoolDown { .. }
            | Self::WordsUnread { .. }
            | Self::BeingRemoved { .. }
            | Self::Excluded { .. }
            | Self::Maintenance { .. }
            | Self::Cordoned => None,
        }
    }
}

impl Verdict {
    /// Whether a person wants the machine left alone.
    pub fn is_kept_by_a_person(&self) -> bool {
        self.refusals.iter().any(Refusal::is_a_persons)
    }
}
