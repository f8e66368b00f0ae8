//! What an incident wants done, and what it wants said.
//!
//! Writes to the cluster are idempotent: the next look shows whether they took, and they are
//! asked for again if not. Calls to devices are not: each stands in the journal first.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{
    Choice, FailureKind, FinalReason, Grade, JobOutcome, MethodIndex, OpId, ParkReason, Rule, Time,
};

/// What an incident wants done, after its record was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read the world by quorum reads and come back with `Event::Looked`.
    Look,
    /// Ask the budget for a slot and come back with `Event::Slot`.
    TakeSlot,
    /// Give the slot back.
    ReturnSlot,
    /// Hand leadership to another replica, if there is one that could do this better.
    HandOver,
    /// Carry out this operation of the journal and come back with `Event::Ended`.
    Call(OpId),
    /// Do not let this operation begin, if it has not begun yet; it ends as any other.
    Withdraw(OpId),
    /// Put our NoSchedule taint.
    Quarantine,
    /// Lift it.
    Unquarantine,
    /// Cordon, with our annotation; nothing if somebody else did.
    Cordon,
    /// Undo our cordon; nothing if it is not ours.
    Uncordon,
    /// Put the out-of-service taint.
    OutOfService,
    /// Lift it, if it is ours.
    LiftOutOfService,
    /// Delete these pods with grace 0, by UID.
    DeletePods(Vec<String>),
    /// Delete these pods as their kubelet is asked to, by UID.
    GracefulDelete(Vec<String>),
    /// Evict these pods, by UID: deleted where their disruption budgets allow it, and asked for again
    /// where not.
    Evict {
        /// Their UIDs.
        pods: Vec<String>,
        /// With grace 0, behind proof; otherwise as their kubelet is asked to.
        at_once: bool,
    },
    /// Delete these attachments, by UID; never strip their finalizers.
    DeleteAttachments(Vec<String>),
    /// Delete the Node, by UID.
    DeleteNode,
    /// Create the Job of this number; nothing if it exists.
    StartJob(u32),
    /// Delete the Job of this number, and its pods with it.
    StopJob(u32),
    /// Ask the plugin of the remedy that has its turn, for the decision of this number, and come back with
    /// `Event::Decided`.
    AskRemedy(u32),
    /// Annotate the Node with the pod that remedies it, and the time.
    AnnotateNode {
        /// The pod's name.
        pod: String,
    },
}

/// What a step of the automaton comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The record to write before anything else.
    pub record: crate::Record,
    /// What to do then, in order.
    pub effects: Vec<Effect>,
    /// When to look again (live) if nothing happens.
    pub next_look: Option<Time>,
    /// What to tell people.
    pub notices: Vec<Notice>,
    /// The rules that shaped it.
    pub rules: Vec<Rule>,
}

/// Something people should know: an Event, a log line, a line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Isolation begins.
    Isolating,
    /// A method failed and the flow went on.
    MethodFailed {
        /// Which.
        method: MethodIndex,
    },
    /// The device names the node's machine.
    Identified {
        /// By which method.
        method: MethodIndex,
    },
    /// An off is about to be sent.
    PoweringOff {
        /// By which method.
        method: MethodIndex,
    },
    /// Proof.
    Proven {
        /// Of this grade.
        grade: Grade,
    },
    /// A person says that the machine is off, and is believed.
    Confirmed {
        /// Who.
        by: String,
    },
    /// The proof counts no more.
    ProofVoided {
        /// What it rests on and reads on again; none: the node gave a sign of life.
        reads_on: Option<MethodIndex>,
    },
    /// Somebody gave back a cut behind which pods may run elsewhere, and there is no proof that this could void.
    CutUndone {
        /// What reads on again.
        method: MethodIndex,
    },
    /// Pods and attachments are given back.
    Releasing {
        /// So many pods.
        pods: u32,
        /// So many attachments.
        attachments: u32,
    },
    /// Pods are asked to leave.
    Draining {
        /// So many.
        pods: u32,
    },
    /// Everything that was to be released is gone.
    Released,
    /// Release ended with something left.
    ReleaseStalled {
        /// What is left, and who holds it.
        holders: Vec<String>,
    },
    /// An on is about to be sent.
    PoweringOn {
        /// By which method.
        method: MethodIndex,
    },
    /// An operation's end is unknown; the device will be read.
    Indeterminate {
        /// Which.
        op: OpId,
    },
    /// The device cannot be reached, or not even be asked.
    DeviceUnreachable {
        /// By which method.
        method: MethodIndex,
        /// Why, where that is known.
        detail: Option<String>,
    },
    /// The device answers again.
    DeviceBack {
        /// By which method.
        method: MethodIndex,
    },
    /// Nobody wants the node left alone any more.
    VetoLifted,
    /// Nothing is to be switched off through this device until somebody acknowledges it.
    CloseDevice {
        /// Which device.
        device: String,
        /// Why its `on` failed.
        kind: FailureKind,
        /// Whether all devices of its kind are meant.
        scope: Closure,
    },
    /// A further try of a step.
    Retrying {
        /// Which, from 1.
        retry: u32,
        /// Of so many.
        of: u32,
    },
    /// A Job is about to be started.
    StartingJob {
        /// Of this remedy.
        remedy: String,
    },
    /// A Job ended.
    JobEnded {
        /// Of this remedy.
        remedy: String,
        /// One way or the other.
        outcome: JobOutcome,
        /// Why, and its last lines.
        detail: String,
    },
    /// A remedy's plugin decided, or nothing was to be had from it.
    Decided {
        /// Of this remedy.
        remedy: String,
        /// What.
        choice: Choice,
    },
    /// What a remedy's plugin decided has ended and did not help; it is asked again.
    AskingAgain {
        /// Of this remedy.
        remedy: String,
    },
    /// The remedy did not help; the next one has its turn.
    NextRemedy {
        /// Which.
        remedy: String,
    },
    /// The remedy failed, and there is a next one: the way back is taken first.
    RemedyFailed(ParkReason),
    /// The flow goes back to New.
    Restarting {
        /// Which, from 1.
        restart: u32,
    },
    /// Waits, and why.
    Held {
        /// Why, in a sentence.
        reason: Hold,
    },
    /// An abort took this boundary.
    AbortTaken {
        /// In a sentence.
        boundary: Boundary,
    },
    /// Stopped for a person.
    Parked(ParkReason),
    /// Over.
    Ended(FinalReason),
    /// A command or an answer that changes nothing here, and why.
    Ignored {
        /// Why, in a sentence.
        why: &'static str,
    },
}

/// How much a failed `on` closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closure {
    /// This device.
    Device,
    /// Every device of its kind.
    Kind,
}

/// Why an incident waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hold {
    /// Its time has not come.
    NotYet {
        /// When it will.
        until: Time,
    },
    /// The gate is closed.
    Gate(Vec<crate::Refusal>),
    /// No slot is free.
    NoSlot,
    /// Our own process runs on the node, and no other replica took over.
    OwnNode,
    /// A person has to approve.
    Approval {
        /// The methods whose cut may stand meanwhile, by name.
        cut: Vec<String>,
    },
    /// The node writes a kernel dump, or boots after one.
    Dump {
        /// Until when.
        until: Time,
    },
    /// The API server takes or shows no Job of ours.
    JobRefused {
        /// Why, in its words.
        why: String,
    },
    /// A remedy's plugin could not be asked.
    NotDecided {
        /// Why.
        why: String,
    },
    /// Something of ours, or that we released, does not go.
    CleanUp {
        /// What, and where.
        left: Vec<String>,
    },
    /// No device proves that the node is off: somebody else has to.
    Proof,
    /// The trigger does not hold.
    TriggerClear,
    /// What was seen is too old, or only a cache's word.
    StaleView,
}

/// Where an abort took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// No off was sent, and no pod was released.
    BeforeOff,
    /// An off was sent or pods were released: what can be undone safely is undone.
    AfterOffPowersOn,
    /// Likewise, and nothing is switched on.
    AfterOffLeftOff,
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeOff => "stopped before anything was switched off",
            Self::AfterOffPowersOn => {
                "after an off or a release: undone where that is safe, then parked"
            }
            Self::AfterOffLeftOff => "after an off or a release: the machine stays as it is",
        })
    }
}
