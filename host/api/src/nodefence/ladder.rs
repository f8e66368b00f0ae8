//! The remedies of an incident, and the Jobs that carry some of them out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::time::{Moment, Span};

/// One remedy of the ladder, as it was when the incident was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemedyStep {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// How long the condition must still hold after it before the next one has its turn.
    pub period: Span,
    /// Its success is the admin's word that the node's pods may go.
    #[serde(default)]
    pub clean_resource: bool,
    /// The Job that carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobTemplate>,
    /// Or what is done in the cluster itself. Absent like the Job: the plan is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterAction>,
    /// Of the plan this method alone, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub method: Option<String>,
    /// Of the plan the isolation step alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolation_only: bool,
    /// Or whatever a plugin decides, which may be any of the others but a Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<DecidingPlugin>,
}

impl RemedyStep {
    /// Whether the node's plan is carried out, or a part of it, or may be.
    pub fn is_of_plan(&self) -> bool {
        self.job.is_none() && self.cluster.is_none()
    }

    /// Whether the node's plan is carried out: isolation, power-management, recovery.
    pub fn is_fence(&self) -> bool {
        self.is_of_plan() && self.method.is_none() && self.plugin.is_none() && !self.isolation_only
    }
}

/// A plugin that decides what is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecidingPlugin {
    /// The FencePlugin, of kind remedy.
    #[schemars(length(min = 1, max = 40))]
    pub name: String,
    /// The component that the incident began with.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub digest: String,
}

/// A decision that a remedy's plugin was asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Counts the decisions of an incident from 1.
    pub number: u32,
    /// The place of its remedy in the ladder, from 0.
    pub remedy_step: u32,
    /// When the plugin was first asked.
    pub asked_at: Moment,
    /// What it decided; absent while it has not answered. It is never asked for this again then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// When that was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_at: Option<Moment>,
    /// When it was begun to be followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_at: Option<Moment>,
    /// Why what was tried failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub failed: Option<String>,
    /// When it had come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
}

/// What a plugin decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// Which of the six.
    pub kind: ChoiceKind,
    /// The method's name, or of what is done in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// How long it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
    /// Why it gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub why: Option<String>,
}

/// What a plugin can decide.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum ChoiceKind {
    /// One method of the plan.
    Method,
    /// Something in the cluster itself.
    Cluster,
    /// The plan.
    Fence,
    /// Nothing for a while.
    Wait,
    /// Nothing more.
    Done,
    /// Nothing more, and it did not help.
    Fail,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name.as_deref().unwrap_or_default();
        match self.kind {
            ChoiceKind::Method => write!(out, "method {name}"),
            ChoiceKind::Cluster => write!(out, "cluster {name}"),
            ChoiceKind::Fence => out.write_str("fence"),
            ChoiceKind::Wait => write!(out, "wait {}", self.wait.unwrap_or_default()),
            ChoiceKind::Done => out.write_str("done"),
            ChoiceKind::Fail => write!(out, "fail: {}", self.why.as_deref().unwrap_or_default()),
        }
    }
}

/// What a remedy does in the cluster itself. The node's recovery lifts its marks.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterAction {
    /// Cordon the node.
    Cordon,
    /// Put our NoSchedule taint.
    Quarantine,
    /// Cordon the node and evict its pods, as far as disruption budgets allow.
    Drain,
    /// Wait for a proof that no device gives, and release what it covers.
    Release,
    /// Wait for one that covers everything, and delete the Node after the release.
    DeleteNode,
}

impl std::fmt::Display for ClusterAction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Cordon => "cordon",
            Self::Quarantine => "quarantine",
            Self::Drain => "drain",
            Self::Release => "release",
            Self::DeleteNode => "delete-node",
        })
    }
}

/// A remedy's Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobTemplate {
    /// The pod template as JSON, shorthands expanded.
    #[schemars(length(max = limits::POD_TEMPLATE_BYTES_MAX))]
    pub pod_template: String,
    /// How long it may take.
    pub deadline: Span,
    /// How often a pod that failed is replaced.
    pub backoff_limit: u32,
}

/// A Job that was meant to run, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRun {
    /// Counts the Jobs of an incident from 1.
    pub number: u32,
    /// Its name, in the controller's namespace.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The place of its remedy in the ladder, from 0.
    pub remedy_step: u32,
    /// Which try of the incident it belongs to.
    pub attempt: u32,
    /// When the intent was written.
    pub intended_at: Moment,
    /// When it was first seen to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Moment>,
    /// Its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pod: Option<String>,
    /// Since when it is to be stopped, by a person's word or before another one is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping_at: Option<Moment>,
    /// How it ended; absent while it runs, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<JobEnd>,
}

/// How a Job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobEnd {
    /// When that was seen.
    pub at: Moment,
    /// One way or the other.
    pub outcome: JobOutcome,
    /// Why, and the last lines that its pod wrote; cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub detail: String,
}

/// The ways a Job can end.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum JobOutcome {
    /// It completed.
    Succeeded,
    /// It failed, or ran into its deadline.
    Failed,
    /// It was there and is gone; that is no success.
    Lost,
}
