//! The record of an incident: the status of a `NodeFence`. Where it stands, what is proven, what was
//! released, why it stopped.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::limits;
use crate::nodefence::journal::{FailureKind, Operation};
use crate::nodefence::ladder::{Decided, JobRun};
use crate::nodefence::liveness::Liveness;
use crate::nodefence::proof::Proof;
use crate::time::Moment;

/// All that a controller knows of an incident; a new process needs nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.epoch >= oldSelf.epoch")
        .message("a record with a larger epoch belongs to a newer leader")
)]
pub struct NodeFenceStatus {
    /// The node's name, in the proposal's place.
    #[schemars(length(max = 253))]
    pub node: String,
    /// Isolation, Power-Management or Recovery; follows from the phase.
    pub step: Step,
    /// New, Running, Done, Final or Error; follows from the phase.
    pub status: State,
    /// Where the incident stands.
    pub phase: Phase,
    /// Why it is over; set in phase `Final`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_reason: Option<FinalReason>,
    /// When the phase was entered.
    pub entered_at: Moment,
    /// When the incident was opened.
    pub opened_at: Moment,
    /// Tries of a step over the whole incident, so that an operation can say which one it belongs to.
    pub attempt: u32,
    /// Operations from this number on belong to the present phase.
    pub phase_first_operation: u32,
    /// Further tries of the step used so far.
    pub retries: u32,
    /// Times the flow went back to New.
    pub restarts: u32,
    /// Which remedy of the ladder has its turn, from 0.
    #[serde(default)]
    pub remedy_step: u32,
    /// Jobs of podTemplate remedies, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 253)))]
    pub jobs: Vec<String>,
    /// The same Jobs and what became of them, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::JOBS_MAX))]
    pub job_runs: Vec<JobRun>,
    /// What plugins that are remedies decided, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::DECISIONS_MAX))]
    pub decisions: Vec<Decided>,
    /// The epoch of the leader that wrote this.
    pub epoch: u64,
    /// The process that wrote this.
    #[schemars(length(max = 128))]
    pub process: String,
    /// The last signs of life when the incident was opened.
    pub liveness_at_open: Liveness,
    /// The last signs of life before the present verifying read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::OPERATIONS_MAX))]
    pub operations: Vec<Operation>,
    /// The number of the next operation.
    pub next_operation: u32,
    /// Methods whose plugs were off before this incident first meant to switch them off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub found_off: Vec<u32>,
    /// Methods whose machine was read to be the node, in this pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub identified: Vec<u32>,
    /// Methods that were given up on in this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub failed: Vec<u32>,
    /// What is proven, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What a proof allowed to be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Released>,
    /// When this incident first released anything, in any pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_released_at: Option<Moment>,
    /// When something was first released behind grade `partition`, after which the boot may go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partly_released_at: Option<Moment>,
    /// What stood on the node before it was cut off: what is missing of it later may run elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// When leadership was last offered to another replica because of this incident.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over_at: Option<Moment>,
    /// What we put on the Node and owe to take away.
    #[serde(default)]
    pub marks: Marks,
    /// Whether an entry of the `RemedyBudget` is held.
    #[serde(default)]
    pub slot_held: bool,
    /// Where the way back leads.
    pub goal: Goal,
    /// The phase that a pause goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Phase>,
    /// Since when the gate is closed behind an isolated node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_closed_at: Option<Moment>,
    /// Since when the power-off waits for a kernel dump that the node writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump_held_at: Option<Moment>,
    /// Since when a device cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable_at: Option<Moment>,
    /// The method whose device that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<u32>,
    /// Methods that did not switch their machine on and have not done so since; their devices
    /// switch nothing off until somebody acknowledged it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub on_failed: Vec<OnFailure>,
    /// Why it stopped for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    /// When a person aborted this incident. Nothing is powered off in it any more until somebody runs `retry` on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_at: Option<Moment>,
    /// What a person asked for and is not yet done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// For tools that wait: derived from the fields above, never decided on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// The last transitions, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::HISTORY_MAX))]
    pub history: Vec<Transition>,
}

/// The steps of the automaton, spelled as the proposal spells them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Step {
    /// Cut the node from what it shares.
    Isolation,
    /// Off, proof, release, on.
    #[serde(rename = "Power-Management")]
    PowerManagement,
    /// Undo isolation of a node that is well.
    Recovery,
}

/// The states of the automaton.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum State {
    /// Opened, nothing done yet or isolating.
    New,
    /// Isolated, power management under way.
    Running,
    /// Ready for recovery, waiting for the node to be well.
    Done,
    /// Over.
    Final,
    /// A step failed; retried, restarted or parked.
    Error,
}

/// Where an incident stands, finer than the five states.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Phase {
    /// Waits for its time, the gate, a slot or an approval; nothing was done yet.
    Waiting,
    /// Quarantine, then the isolation stages.
    Isolating,
    /// A Job of the admin's own runs.
    Remedying,
    /// Isolation has ended; waits before power is cut.
    AwaitingPower,
    /// Reads what the devices call the machine, and whether it is on.
    ReadingIdentity,
    /// Switches every feed off.
    PoweringOff,
    /// Reads every feed again, in fresh calls.
    VerifyingOff,
    /// Releases pods and attachments.
    Releasing,
    /// Restores what isolation cut.
    Restoring,
    /// Lifts the out-of-service taint.
    Untainting,
    /// Switches on what was, or may have been, switched off.
    PoweringOn,
    /// Waits for the node to be well.
    AwaitingHealthy,
    /// The node is well: left-overs, recovery stages, quarantine, cordon.
    Recovering,
    /// A device cannot be reached; it is probed.
    AwaitingDevice,
    /// A pause before the next try.
    Backoff,
    /// Stopped for a person.
    Parked,
    /// Over.
    Final,
}

/// How an incident ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum FinalReason {
    /// The node is well again.
    Remedied,
    /// The trigger cleared before the machine was switched off.
    Recovered,
    /// A parked node came back well.
    RecoveredByHand,
    /// A person stopped it before the machine was switched off.
    Aborted,
    /// The provider terminated the instance.
    Replaced,
    /// The Node object is gone or is another one.
    NodeGone,
    /// Another threshold of the node was crossed whose remedy fences it: that has an incident of its own.
    Superseded,
    /// Nothing was cut yet, and for `gateTimeout` nobody reported the condition any more.
    Unreported,
}

/// Why a person is needed, in one word.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ParkCode {
    /// The device calls its machine something else.
    WrongMachine,
    /// The device names no machine, and policy requires it.
    NoIdentity,
    /// The plug was asked to go off and still reads on.
    OffNotVerified,
    /// The device says off, and its witness, or another method that names the machine, still reads on.
    WitnessReadsOn,
    /// The device says off and the node gives signs of life.
    AliveThoughOff,
    /// Another node fell silent or rebooted when this plug was switched off.
    WrongPlug,
    /// Switching on failed.
    OnFailed,
    /// What isolation cut could not be restored.
    RestoreFailed,
    /// A method that must succeed did not.
    MethodFailed,
    /// The device could not be reached for too long.
    DeviceUnreachable,
    /// Something is cut, what ran behind it may run elsewhere, and nothing proves the machine off.
    StillCut,
    /// What was cut was restored by others after pods of the node were released or deleted.
    CutUndone,
    /// After something was cut or switched off, another Node claimed the machine, or the configuration named another plug.
    MachineDisputed,
    /// The gate stayed closed after power was cut or something was released.
    GateClosed,
    /// Somebody wants the node left alone that was cut off, or may be off.
    LeftAlone,
    /// The machine was off before us, and is to stay off.
    OffBeforeUs,
    /// The node did not become well in time.
    NotHealthy,
    /// Nothing in the plan can prove the node off or isolated.
    NoProofPossible,
    /// The node is isolated, as its plan says.
    Isolated,
    /// The node was released without power-off and is alive with the same boot.
    SameBootAfterRelease,
    /// A person stopped it after something was switched off.
    Aborted,
    /// Every remedy of the ladder had its turn and the node is not well.
    RemediesExhausted,
    /// A remedy's Job was not seen to end, long after its deadline.
    JobStuck,
    /// A remedy's plugin gave up, or nothing that it decided could be followed.
    PluginFailed,
    /// Pods did not leave the node in time.
    NotDrained,
    /// The record or the plan contradicts itself.
    BrokenRecord,
}

/// Where restoring, untainting and switching on lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// Which of the four ways.
    pub kind: GoalKind,
    /// The end, for `close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_reason: Option<FinalReason>,
    /// The reason to stop, for `park`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park: Option<ParkReason>,
}

/// The ways back.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum GoalKind {
    /// Into the cluster: wait for the node to be well.
    BringBack,
    /// To New: nothing was released, and the gate closed.
    Withdraw,
    /// To the end.
    Close,
    /// To a person.
    Park,
}

/// Why a person is needed, with what the reason speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParkReason {
    /// In one word.
    pub reason: ParkCode,
    /// What the node calls itself, for `WrongMachine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub expected: Option<String>,
    /// What the device calls its machine, for `WrongMachine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub found: Option<String>,
    /// How often the plug was asked, for `OffNotVerified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Which method, for `MethodFailed`, `CutUndone` and `WitnessReadsOn`; which remedy, for `RemediesExhausted`, `JobStuck` and `PluginFailed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub method: Option<String>,
    /// What its device answered, for `MethodFailed` and `CutUndone`; the method that reads on, for `WitnessReadsOn`; what came of it, for `RemediesExhausted`; whose word,
    /// for `LeftAlone`; which pods, for `NotDrained`; which of its ways, for `JobStuck`; why, for
    /// `PluginFailed` and `MachineDisputed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub detail: Option<String>,
    /// The node that fell silent or rebooted, for `WrongPlug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub neighbour: Option<String>,
}

/// What a person asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Which of the four.
    pub kind: RequestKind,
    /// Who confirmed, for `confirmOff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub by: Option<String>,
    /// The boot that they were told of, for `confirmOff`.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub boot_id: Option<String>,
}

/// What a person can ask for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum RequestKind {
    /// A parked incident's way out: try again.
    Retry,
    /// Stop; after an off, switch on first.
    Abort,
    /// Stop, and leave the machine as it is.
    AbortLeaveOff,
    /// The machine was seen off.
    ConfirmOff,
}

/// Signs of life and when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// When the cluster was looked at.
    pub at: Moment,
    /// What it showed.
    pub liveness: Liveness,
}

/// What is, or was, released behind a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Released {
    /// When the snapshot was taken.
    pub at: Moment,
    /// The pods of the snapshot; only these, by UID, are ever deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::RELEASED_PODS_MAX))]
    pub pods: Vec<ReleasedPod>,
    /// The volume attachments of the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::RELEASED_ATTACHMENTS_MAX))]
    pub attachments: Vec<ReleasedAttachment>,
    /// The proof covers everything, so that the out-of-service taint is allowed.
    pub everything: bool,
    /// How many of both were still there at the last look.
    pub left: u32,
    /// When that number last went down.
    pub progress_at: Moment,
    /// When deletes were last sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Moment>,
    /// How many pods our deletes have been sent for.
    #[serde(default)]
    pub sent: u32,
    /// When release was ended, complete or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
}

/// What stood on a node right before isolation cut it off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CutOff {
    /// UIDs of pods that may write behind the cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::RELEASED_PODS_MAX), inner(length(max = 128)))]
    pub pods: Vec<String>,
    /// UIDs of the node's volume attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::RELEASED_ATTACHMENTS_MAX), inner(length(max = 128)))]
    pub attachments: Vec<String>,
    /// Whether one of the pods uses storage that `volumesInUse` does not name.
    #[serde(default)]
    pub untold: bool,
}

/// One pod of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasedPod {
    /// Precondition of its deletion.
    #[schemars(length(max = 128))]
    pub uid: String,
    /// Its namespace.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
}

/// One volume attachment of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasedAttachment {
    /// Precondition of its deletion.
    #[schemars(length(max = 128))]
    pub uid: String,
    /// Its name.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
    /// The persistent volume behind it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub volume: String,
}

/// Why an incident stopped for a person, and what that person does next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// The reason and what it speaks of.
    #[serde(flatten)]
    pub why: ParkReason,
    /// Since when.
    pub at: Moment,
    /// Methods whose plugs we may have left off, or that a late off of ours may still switch off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub powered_off_by_us: Vec<u32>,
    /// The same plugs by name, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX), inner(length(max = 1024)))]
    pub plugs: Vec<String>,
    /// Methods whose cut of network or storage may still stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PLAN_METHODS_MAX))]
    pub still_cut: Vec<u32>,
    /// What happened, with its numbers, and what of ours stands.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub sentence: String,
    /// The next thing to check or to type.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub next: String,
}

/// A method that did not switch its machine on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnFailure {
    /// The method's place in the plan's list of methods, from 0.
    pub method: u32,
    /// When it was given up on.
    pub at: Moment,
    /// How its device failed; `other` where it said yes and did nothing.
    pub kind: FailureKind,
}

/// What we put on the Node object and owe to take away again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Marks {
    /// Our NoSchedule taint.
    #[serde(default)]
    pub quarantine: bool,
    /// `spec.unschedulable`, which was not set before us.
    #[serde(default)]
    pub cordon: bool,
    /// The out-of-service taint.
    #[serde(default)]
    pub out_of_service: bool,
}

/// One line of history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// When.
    pub at: Moment,
    /// Into which phase.
    pub phase: Phase,
    /// Why, in a sentence.
    #[schemars(length(max = 1024))]
    pub why: String,
}
