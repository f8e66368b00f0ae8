//! What a proof covers: which pods and attachments may be given back, and what is left of them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, guard, is_seeded};
use crate::standing::is_cut;
use crate::{
    Access, AttachmentView, Backing, Binding, Deletion, Execution, Exempt, Grade, KdumpReleases,
    Method, MethodIndex, Plan, PodView, RELEASED_MAX, Record, Released, Time, View, VolumeView,
};

/// What a proof covers: its grade, and what the policy says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cover {
    /// How strong the proof is.
    pub grade: Grade,
    /// What the policy lets a dump that is heard release.
    pub dumps: KdumpReleases,
}

impl Cover {
    /// Whether everything on the node may go.
    pub const fn is_whole(self) -> bool {
        match self.grade {
            Grade::PowerOffVerified
            | Grade::WatchdogDeadline
            | Grade::OperatorConfirmed
            | Grade::JobSucceeded => true,
            Grade::KdumpSeen => matches!(self.dumps, KdumpReleases::All),
            Grade::StorageFenced | Grade::Partition | Grade::NewBootId => false,
        }
    }

    /// Whether what ran there is over for good, so that the out-of-service taint may be set. A machine that
    /// dumps boots by itself, and the taint would keep its network from starting.
    pub(crate) fn allows_taint(self) -> bool {
        self.is_whole() && self.grade != Grade::KdumpSeen || is_seeded(Bug::TaintOfAPart)
    }

    /// Whether it covers a pod that nothing exempts. `cut` are the drivers whose storage is read as cut.
    pub fn covers_pod(self, pod: &PodView, cut: &BTreeSet<&str>) -> bool {
        let volumes = &pod.volumes;
        let is_cut = |one: &VolumeView| one.driver().is_some_and(|driver| cut.contains(driver));
        match self.grade {
            Grade::PowerOffVerified
            | Grade::WatchdogDeadline
            | Grade::OperatorConfirmed
            | Grade::JobSucceeded => true,
            Grade::StorageFenced => !volumes.is_empty() && volumes.iter().all(is_cut),
            Grade::KdumpSeen => {
                let is_shared = |one: &VolumeView| one.access == Access::Many;
                self.is_whole() || !guard(Bug::DumpsCoverAll, !volumes.iter().all(is_shared))
            }
            Grade::Partition => {
                !volumes.is_empty()
                    && volumes.iter().all(|one| one.safe_detach && one.access == Access::One)
            }
            Grade::NewBootId => false,
        }
    }
}

/// The snapshot: what of the view the proof covers, exempt pods and what they share left out.
pub(crate) fn snapshot(
    plan: &Plan,
    record: &Record,
    cover: Cover,
    view: &View,
    now: Time,
) -> Released {
    let cut = cut_drivers(plan, record);
    let is_released = |pod: &&PodView| {
        !guard(Bug::DaemonsReleased, pod.exempt.is_some()) && cover.covers_pod(pod, &cut)
    };
    let living = view.pods.iter().filter(|pod| pod.exempt != Some(Exempt::Ended));
    let (mut released, kept): (Vec<&PodView>, Vec<&PodView>) = living.partition(is_released);
    // A record holds so many, and those with volumes are what is waited for.
    released.sort_by_key(|pod| pod.volumes.is_empty());
    released.truncate(RELEASED_MAX);
    let pods: Vec<String> = released.iter().map(|pod| pod.uid.clone()).collect();
    let is_whole = cover.is_whole();
    let goes = |one: &&AttachmentView| {
        let is_shared = kept.iter().any(|pod| uses(pod, one) == Some(true));
        let may_be_shared = kept.iter().any(|pod| uses(pod, one).is_none());
        let is_theirs = released.iter().any(|pod| uses(pod, one) == Some(true));
        // What nobody is known to use goes with a whole machine only. What a pod that stays may use goes if a
        // pod is released that does, and the machine's other pods cannot use it any more.
        !is_shared
            && if is_whole { is_theirs || !may_be_shared } else { is_theirs && !may_be_shared }
    };
    let attachments = view.attachments.iter().filter(goes).take(RELEASED_MAX);
    let attachments: Vec<String> = attachments.map(|one| one.uid.clone()).collect();
    let left = pods.len().saturating_add(attachments.len());
    Released {
        at: now,
        pods,
        attachments,
        everything: cover.allows_taint(),
        left: u32::try_from(left).unwrap_or(u32::MAX),
        progress_at: now,
        sent_at: None,
        sent: 0,
        ended_at: None,
    }
}

/// Whether a pod uses what is attached there; `None` where nobody knows.
fn uses(pod: &PodView, attachment: &AttachmentView) -> Option<bool> {
    let mut volumes = pod.volumes.iter();
    if volumes.any(|one| one.name() == Some(attachment.volume.as_str())) {
        return Some(true);
    }
    let is_unknown = pod.volumes.iter().any(|one| one.backing == Backing::Unknown);
    (!is_unknown).then_some(false)
}

/// The drivers whose storage is cut, by a read since. Each method that names a driver cuts one way to it, and the driver's
/// storage is cut once all are, whatever names them or nothing does; of a stage that runs only one, each cuts it whole.
pub(crate) fn cut_drivers<'a>(plan: &'a Plan, record: &Record) -> BTreeSet<&'a str> {
    let is_shut = |index: &MethodIndex| {
        let method = plan.method(*index);
        // Whose storage it cuts nobody knows.
        let is_trusted = method.is_some_and(|one| one.binding != Binding::Unverified);
        is_trusted && is_cut(record, *index)
    };
    let drivers = |index: MethodIndex| plan.method(index).into_iter().flat_map(Method::drivers);
    let is_of_a_stage =
        |index: &MethodIndex| plan.isolation.iter().any(|stage| stage.methods.contains(index));
    let others: Vec<MethodIndex> =
        (0..plan.methods.len()).filter(|index| !is_of_a_stage(index)).collect();
    let has_open_way = |driver: &str| {
        let names = |index: &&MethodIndex| drivers(**index).any(|named| named == driver);
        let is_open = |methods: &[MethodIndex], execution| {
            let mut ways = methods.iter().filter(names).peekable();
            match execution {
                Execution::All => ways.any(|way| !is_shut(way)),
                Execution::OnlyOne => ways.peek().is_some() && !ways.any(is_shut),
            }
        };
        let mut stages = plan.isolation.iter();
        stages.any(|stage| is_open(&stage.methods, stage.execution))
            || is_open(&others, Execution::All)
    };
    let cut = plan.cut_methods().filter(is_shut).flat_map(drivers);
    cut.filter(|driver| !guard(Bug::OneWayIsAll, has_open_way(driver))).collect()
}

/// What of the snapshot is still there.
pub(crate) struct Left<'v> {
    pub(crate) pods: Vec<&'v PodView>,
    pub(crate) attachments: Vec<&'v AttachmentView>,
}

impl<'v> Left<'v> {
    pub(crate) fn of(released: &Released, view: &'v View) -> Self {
        let pods = view.pods.iter().filter(|pod| released.pods.contains(&pod.uid)).collect();
        let attachments =
            view.attachments.iter().filter(|one| released.attachments.contains(&one.uid)).collect();
        Self { pods, attachments }
    }

    pub(crate) fn count(&self) -> u32 {
        let count = self.pods.len().saturating_add(self.attachments.len());
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Pods whose deletion has not come this far yet.
    pub(crate) fn pods_before(&self, deletion: Deletion) -> Vec<String> {
        let open = self.pods.iter().filter(|pod| pod.deletion < deletion);
        open.map(|pod| pod.uid.clone()).collect()
    }

    /// Attachments whose deletion nobody asked for yet.
    pub(crate) fn attachments_not_asked(&self) -> Vec<String> {
        let open = self.attachments.iter().filter(|one| !one.deleting);
        open.map(|one| one.uid.clone()).collect()
    }

    /// Who holds what is left, for people.
    pub(crate) fn holders(&self) -> Vec<String> {
        let held = |kind: &str, name: &str, finalizers: &[String]| {
            if finalizers.is_empty() {
                format!("{kind} {name}")
            } else {
                format!("{kind} {name}, held by {}", finalizers.join(", "))
            }
        };
        let pods = self.pods.iter().map(|one| held("pod", &one.name, &one.finalizers));
        let attachments =
            self.attachments.iter().map(|one| held("attachment", &one.name, &one.finalizers));
        pods.chain(attachments).collect()
    }
}
