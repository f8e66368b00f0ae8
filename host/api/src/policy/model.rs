//! What is done about which nodes.

use litemap::LiteMap;
use std::collections::{BTreeMap, BTreeSet};

use super::numbers::{GateLimits, IncidentPolicy, RepeatAlarm};
use crate::nodefence::{ClusterAction, JobTemplate};
use crate::policy::symptom::Symptom;
use crate::remedyconfiguration::Mode;
use crate::selector::Selector;
use crate::time::Span;

/// Which nodes, what counts as misbehaving, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The object's name, or the file's.
    pub name: String,
    /// Where it was read from, for messages.
    pub origin: String,
    /// Whether anything is done.
    pub mode: Mode,
    /// The nodes; absent: every node.
    pub selector: Option<Selector>,
    /// What is watched for, in the order written.
    pub thresholds: Vec<Threshold>,
    /// A condition that was last reported longer ago is not known.
    pub condition_stale_after: Span,
    /// When no further incident is opened.
    pub gate: GateLimits,
    /// The numbers of an incident.
    pub incident: IncidentPolicy,
    /// When incidents of one node are too many.
    pub repeat_alarm: Option<RepeatAlarm>,
}

/// Something that must hold for some time, and the remedies that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// What is looked at.
    pub symptom: Symptom,
    /// For how long; nothing where the symptom names a time itself.
    pub period: Span,
    /// The remedies, one after the other while the symptom holds.
    pub ladder: Vec<RemedyStep>,
}

/// One remedy of a ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemedyStep {
    /// The remedy's name, for records and messages.
    pub name: String,
    /// What it is.
    pub remedy: Remedy,
    /// How long the symptom must still hold after this remedy before the next one.
    pub period: Span,
    /// Its success is the admin's word that the node's pods may go.
    pub clean_resource: bool,
}

/// How a remedy is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The whole automaton.
    Fence,
    /// Its isolation step alone (`storage-fence` of the proposal).
    Isolation,
    /// One method of the node's fence configuration.
    Method(String),
    /// Something in the cluster itself.
    Cluster(ClusterAction),
    /// A Job.
    PodTemplate(JobTemplate),
    /// Whatever a FencePlugin of kind remedy decides, of this name.
    Plugin(String),
}

impl Remedy {
    /// Whether the node's plan is carried out, or a part of it.
    pub fn is_of_plan(&self) -> bool {
        match self {
            Self::Fence | Self::Isolation | Self::Method(_) => true,
            Self::Cluster(_) | Self::PodTemplate(_) | Self::Plugin(_) => false,
        }
    }
}

/// Two policies that select one node: neither is followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "node {node} is selected by {first} and by {second}; change a nodeSelector so that one does"
)]
pub struct SelectedTwice {
    /// The node.
    pub node: String,
    /// One configuration.
    pub first: String,
    /// The other.
    pub second: String,
}

impl Policy {
    /// Whether this policy is for a node with these labels.
    pub fn selects(&self, labels: &LiteMap<String, String>) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    }
}

impl Remedy {
    /// Whether the node's plan is carried out, or a part of it, or may be.
    pub fn may_be_of_plan(&self) -> bool {
        self.is_of_plan() || matches!(self, Self::Plugin(_))
    }
}

impl Policy {
    /// The plugins that its remedies name.
    pub fn plugins_named(&self) -> BTreeSet<&str> {
        let remedy_steps = self.thresholds.iter().flat_map(|threshold| &threshold.ladder);
        let named = remedy_steps.filter_map(|remedy_step| match &remedy_step.remedy {
            Remedy::Plugin(plugin) => Some(plugin.as_str()),
            Remedy::Fence
            | Remedy::Isolation
            | Remedy::Method(_)
            | Remedy::Cluster(_)
            | Remedy::PodTemplate(_) => None,
        });
        named.collect()
    }

    /// The methods that its remedies name.
    pub fn methods_named(&self) -> BTreeSet<String> {
        let remedy_steps = self.thresholds.iter().flat_map(|threshold| &threshold.ladder);
        let named = remedy_steps.filter_map(|remedy_step| match &remedy_step.remedy {
            Remedy::Method(method) => Some(method.clone()),
            Remedy::Fence
            | Remedy::Isolation
            | Remedy::Cluster(_)
            | Remedy::PodTemplate(_)
            | Remedy::Plugin(_) => None,
        });
        named.collect()
    }

    /// Every number in force, under the name that `policies` has for it; one that is not limited is
    /// missing.
    pub fn numbers(&self) -> BTreeMap<String, serde_json::Value> {
        let mut numbers = BTreeMap::new();
        for part in [serde_json::to_value(&self.incident), serde_json::to_value(&self.gate)] {
            if let Ok(serde_json::Value::Object(fields)) = part {
                numbers.extend(fields);
            }
        }
        let stale = self.condition_stale_after.to_string();
        numbers.insert("conditionStaleAfter".to_owned(), stale.into());
        let alarm = self.repeat_alarm.and_then(|alarm| serde_json::to_value(alarm).ok());
        numbers.extend(alarm.map(|alarm| ("repeatAlarm".to_owned(), alarm)));
        numbers
    }
}

/// The one policy for a node, if there is one.
pub fn for_node<'a>(
    node: &str,
    labels: &LiteMap<String, String>,
    policies: impl IntoIterator<Item = &'a Policy>,
) -> Result<Option<&'a Policy>, SelectedTwice> {
    let mut selecting = policies.into_iter().filter(|policy| policy.selects(labels));
    let first = selecting.next();
    match (first, selecting.next()) {
        (Some(first), Some(second)) => Err(SelectedTwice {
            node: node.to_owned(),
            first: first.origin.clone(),
            second: second.origin.clone(),
        }),
        (first, _) => Ok(first),
    }
}
