//! What a proof covers: which pods and attachments may be given back, and what is left of them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::{
    Access, AttachmentView, Deletion, Grade, Kind, Plan, PlugState, PodView, Record, Released,
    Time, View,
};

impl Grade {
    /// Whether everything on the node may go.
    pub const fn covers_everything(self) -> bool {
        match self {
            Self::PowerOffVerified
            | Self::WatchdogDeadline
            | Self::OperatorConfirmed
            | Self::JobSucceeded => true,
            Self::StorageFenced | Self::KdumpSeen | Self::Partition | Self::NewBootId => false,
        }
    }
}

/// The snapshot: what of the view this grade covers, exempt pods and what they share left out.
pub(crate) fn snapshot(
    plan: &Plan,
    record: &Record,
    grade: Grade,
    view: &View,
    now: Time,
) -> Released {
    let cut = cut_volumes(plan, record);
    let mut kept_volumes = BTreeSet::new();
    let mut pods = Vec::new();
    for pod in &view.pods {
        if !guard(Bug::DaemonsReleased, pod.exempt.is_some()) && covers_pod(grade, pod, &cut) {
            pods.push(pod.uid.clone());
        } else {
            kept_volumes.extend(pod.volumes.iter().map(|volume| volume.name.as_str()));
        }
    }
    let attachments: Vec<String> = view
        .attachments
        .iter()
        .filter(|one| !kept_volumes.contains(one.volume.as_str()))
        .filter(|one| grade.covers_everything() || covers_attachment(grade, one, view, &cut))
        .map(|one| one.uid.clone())
        .collect();
    let left = pods.len().saturating_add(attachments.len());
    Released {
        at: now,
        pods,
        attachments,
        everything: grade.covers_everything(),
        left: u32::try_from(left).unwrap_or(u32::MAX),
        progress_at: now,
        sent_at: None,
        sent: 0,
        ended_at: None,
    }
}

/// Whether a proof of this grade covers a pod that nothing exempts. `cut` are the volumes whose storage is
/// read as cut.
pub fn covers_pod(grade: Grade, pod: &PodView, cut: &BTreeSet<&str>) -> bool {
    let volumes = &pod.volumes;
    match grade {
        Grade::PowerOffVerified
        | Grade::WatchdogDeadline
        | Grade::OperatorConfirmed
        | Grade::JobSucceeded => true,
        Grade::StorageFenced => {
            !volumes.is_empty() && volumes.iter().all(|one| cut.contains(one.name.as_str()))
        }
        Grade::KdumpSeen => volumes.iter().all(|one| one.access == Access::Many),
        Grade::Partition => {
            !volumes.is_empty()
                && volumes.iter().all(|one| one.safe_detach && one.access == Access::One)
        }
        Grade::NewBootId => false,
    }
}

/// Under a partial grade an attachment goes only with the pods that used it.
fn covers_attachment(
    grade: Grade,
    attachment: &AttachmentView,
    view: &View,
    cut: &BTreeSet<&str>,
) -> bool {
    let uses = |pod: &&PodView| pod.volumes.iter().any(|one| one.name == attachment.volume);
    let mut pods_on_it = view.pods.iter().filter(uses).peekable();
    pods_on_it.peek().is_some()
        && pods_on_it.all(|pod| pod.exempt.is_none() && covers_pod(grade, pod, cut))
}

fn cut_volumes<'a>(plan: &'a Plan, record: &Record) -> BTreeSet<&'a str> {
    let verified = |index: &usize| record.state_since_effect(*index) == Some(PlugState::Off);
    plan.cut_methods()
        .filter(verified)
        .filter_map(|index| match &plan.method(index)?.kind {
            Kind::Storage { volumes } => Some(volumes.iter().map(String::as_str)),
            Kind::Power(_) | Kind::ResetOnly | Kind::Fabric(_) | Kind::Watch | Kind::Builtin(_) => {
                None
            }
        })
        .flatten()
        .collect()
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
