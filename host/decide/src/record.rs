//! Everything an incident remembers: what `NodeFence.status` holds.
//!
//! A record is plain data. It is written before any effect is carried out, so that whoever
//! finds it after a crash knows what may have happened.

use alloc::string::String;
use alloc::vec::Vec;

use crate::liveness::Liveness;
use crate::operation::{FailureKind, OpId, Operation};
use crate::{Decided, FinalReason, JobRun, MethodIndex, ParkReason, Phase, Proof, Time};

/// What `NodeFence.status` holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Where the incident stands.
    pub phase: Phase,
    /// Since when.
    pub entered_at: Time,
    /// When the incident was opened.
    pub opened_at: Time,
    /// Counts tries over the whole incident, so that an operation can say which one it belongs to.
    pub attempt: u32,
    /// Operations from this number on belong to the present phase.
    pub phase_first: OpId,
    /// Further tries of the present step so far.
    pub retries: u32,
    /// Flows back to New so far.
    pub restarts: u32,
    /// Which remedy of the ladder has its turn, from 0.
    pub remedy_step: usize,
    /// The Jobs that were meant to run, oldest first.
    pub jobs: Vec<JobRun>,
    /// What plugins decided, or are asked, oldest first.
    pub decisions: Vec<Decided>,
    /// The fencing token it was last written under.
    pub epoch: u64,
    /// The process it was last written by.
    pub process: String,
    /// The last signs of life when the incident was opened.
    pub liveness_at_open: Liveness,
    /// The last signs of life before the present verifying read; what a proof is held against.
    pub baseline: Option<Baseline>,
    /// The journal: intents and how they ended, oldest first.
    pub operations: Vec<Operation>,
    /// The next operation's number.
    pub next_operation: OpId,
    /// Plugs that were off before this incident first meant to switch them off.
    pub found_off: Vec<MethodIndex>,
    /// Plugs whose machine was read to be the node, in this pass.
    pub identified: Vec<MethodIndex>,
    /// Methods that were given up on in this step.
    pub failed: Vec<MethodIndex>,
    /// The latest proof.
    pub proof: Option<Proof>,
    /// What is being, or was, released.
    pub released: Option<Released>,
    /// When this incident first released anything of the boot that it is about, in any pass.
    pub first_released_at: Option<Time>,
    /// The same of a release behind grade `partition`, after which the boot may go on.
    pub partly_released_at: Option<Time>,
    /// What stood on the node before the first cut that may still stand.
    pub cut_off: Option<CutOff>,
    /// When leadership was last offered to another replica because of this incident.
    pub handed_over_at: Option<Time>,
    /// What of ours stands on the Node.
    pub marks: Marks,
    /// Whether a slot of the budget is held.
    pub slot: Slot,
    /// Where the way back leads.
    pub goal: Goal,
    /// The phase that a pause (backoff, silent device, Job that is not seen to end) goes back to.
    pub resume: Option<Phase>,
    /// Since when the gate is closed behind an isolated node.
    pub gate_closed_at: Option<Time>,
    /// Since when the power-off of this pass waits for a kernel dump.
    pub dump_held_at: Option<Time>,
    /// Since when the device cannot be reached.
    pub unreachable_at: Option<Time>,
    /// Which method's device cannot be reached.
    pub unreachable: Option<MethodIndex>,
    /// Devices that did not switch a machine on and have not done so since: closed for further
    /// offs (A13).
    pub on_failed: Vec<OnFailure>,
    /// Why a person is needed.
    pub parked: Option<Parked>,
    /// When a person aborted it. Nothing is switched off any more after that, until somebody says `retry` of it.
    pub aborted_at: Option<Time>,
    /// What a person asked for and is not yet done.
    pub request: Option<Request>,
}

impl Record {
    /// Why the incident is parked.
    pub(crate) fn park_reason(&self) -> Option<&ParkReason> {
        self.parked.as_ref().map(|parked| &parked.reason)
    }
}

/// Signs of life and when they were read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Baseline {
    /// When the view was taken.
    pub at: Time,
    /// What it showed.
    pub liveness: Liveness,
}

/// What of ours stands, or may stand, on the Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Marks {
    /// Our NoSchedule taint.
    pub quarantine: bool,
    /// Our cordon, with our annotation.
    pub cordon: bool,
    /// The out-of-service taint, put by us.
    pub out_of_service: bool,
}

/// The incident's slot of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// None held.
    Free,
    /// Held.
    Held,
}

/// What is being released: the snapshot made at proof time and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Released {
    /// When the snapshot was made.
    pub at: Time,
    /// UIDs of the pods that the proof covers, exempt ones left out.
    pub pods: Vec<String>,
    /// UIDs of the attachments that the proof covers.
    pub attachments: Vec<String>,
    /// Whether the proof covers everything and the machine stays down, so that the out-of-service taint is allowed.
    pub everything: bool,
    /// How many of both were still there at the last look.
    pub left: u32,
    /// When that number last went down.
    pub progress_at: Time,
    /// When deletes were last sent.
    pub sent_at: Option<Time>,
    /// How many pods our deletes have been sent for (paced release).
    pub sent: u32,
    /// When release was ended, complete or not.
    pub ended_at: Option<Time>,
}

/// Where restoring, untainting and switching on lead.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Back into the cluster: wait for the node to be well.
    BringBack,
    /// Back to New: nothing was released, and the gate closed.
    Withdraw,
    /// The end, with this reason.
    Close(FinalReason),
    /// A person, with this reason.
    Park(ParkReason),
}

/// A method that did not switch its machine on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OnFailure {
    /// Which method of the plan.
    pub method: MethodIndex,
    /// When it was given up on.
    pub at: Time,
    /// How its device failed; `Other` where it said yes and did nothing.
    pub kind: FailureKind,
}

/// Stopped for a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parked {
    /// Why.
    pub reason: ParkReason,
    /// Since when.
    pub at: Time,
    /// Plugs that we may have left off, or that a late off of ours may still switch off.
    pub powered_off_by_us: Vec<MethodIndex>,
    /// Methods whose cut may still stand.
    pub still_cut: Vec<MethodIndex>,
}

/// What a person asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// Try again.
    Retry,
    /// Stop; after an off, switch on first.
    Abort,
    /// Stop, and leave the machine as it is.
    AbortLeaveOff,
    /// This person has seen the machine off.
    ConfirmOff {
        /// Who said so.
        by: String,
        /// The boot that they were told of.
        boot_id: String,
    },
}

/// What stood on a node right before it was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CutOff {
    /// UIDs of pods that may write behind the cut, and that may run elsewhere once they are gone.
    pub pods: Vec<String>,
    /// UIDs of the node's volume attachments, those left out whose driver is not cut.
    pub attachments: Vec<String>,
    /// Whether one of these pods uses cut storage that the kubelet does not tell as in use: its
    /// driver attaches nothing. What is not told of says nothing.
    pub untold: bool,
}
