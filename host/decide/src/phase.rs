//! Where an incident stands, finer than the five states that people see.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// Where an incident stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waits for its time, the gate, a slot or an approval. Nothing was done yet.
    Waiting,
    /// Quarantine, then the isolation stages.
    Isolating,
    /// A Job of the admin's own runs, something is done in the cluster, or a plugin decides.
    Remedying,
    /// Isolation has ended; waits for its time, the gate, an approval or a dump.
    AwaitingPower,
    /// Reads what the devices call the machine, and whether it is on.
    ReadingIdentity,
    /// Switches every feed off.
    PoweringOff,
    /// Reads every feed again, in fresh calls.
    VerifyingOff,
    /// Gives pods and attachments back.
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
    Final(FinalReason),
}

/// The state that people see; the words of the first proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Not fenced yet.
    New,
    /// Being fenced.
    Running,
    /// Fenced; not yet well.
    Done,
    /// Over.
    Final,
    /// Something failed.
    Error,
}

/// The step that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Isolation.
    Isolation,
    /// Power-Management.
    PowerManagement,
    /// Recovery.
    Recovery,
}

/// How an incident ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Another threshold of the node was crossed whose remedy fences it.
    Superseded,
    /// Nothing was cut yet, and for too long nobody reported the condition any more.
    Unreported,
}

/// Why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ParkReason {
    /// The device calls its machine something else.
    WrongMachine {
        /// What the node calls itself.
        expected: String,
        /// What the device calls its machine.
        found: String,
    },
    /// The device names no machine, and policy requires it.
    NoIdentity,
    /// The plug was asked to go off and still reads on.
    OffNotVerified {
        /// How often it was asked.
        tries: u32,
    },
    /// The device says off, and its witness, or another method that names the machine, still reads on.
    WitnessReadsOn {
        /// The method whose device says off.
        method: String,
        /// The method that still reads on.
        witness: String,
    },
    /// The device says off and the node gives signs of life with the same boot.
    AliveThoughOff,
    /// Another node fell silent when this plug was switched off.
    WrongPlug {
        /// Which node.
        neighbour: String,
    },
    /// Switching on failed.
    OnFailed,
    /// What isolation cut could not be restored.
    RestoreFailed,
    /// A method did not do what it must.
    MethodFailed {
        /// Its name.
        method: String,
        /// What its device said.
        detail: String,
    },
    /// The device could not be reached for too long.
    DeviceUnreachable,
    /// Something is cut, what ran behind it may run elsewhere, and nothing proves the machine off.
    StillCut,
    /// What was cut was given back by others after pods of the node were released or deleted.
    CutUndone {
        /// The method that had cut it.
        method: String,
        /// What kept it from being cut once more; none: it is cut.
        failure: Option<String>,
    },
    /// After something was cut or switched off, another Node claimed the machine, or the configuration named another plug.
    MachineDisputed {
        /// What was found.
        why: String,
    },
    /// The gate stayed closed after power was cut or something was released.
    GateClosed,
    /// Somebody wants the node left alone that we cut off, or may have switched off.
    LeftAlone {
        /// Their word.
        word: String,
    },
    /// The machine was off before us, and is to stay off.
    OffBeforeUs,
    /// The node did not become well in time.
    NotHealthy,
    /// Nothing in the plan can prove the node off or isolated.
    NoProofPossible,
    /// The node is isolated, as its plan says, and cannot come back by itself.
    Isolated,
    /// The node was released without power-off and is alive with the same boot.
    SameBootAfterRelease,
    /// A person stopped it after something was switched off.
    Aborted,
    /// Every remedy of the ladder had its turn and the node is not well.
    RemediesExhausted {
        /// The last one.
        remedy: String,
        /// What came of it.
        detail: String,
    },
    /// A remedy's Job was not seen to end, long after its deadline or after it was to be stopped.
    JobStuck {
        /// The remedy.
        remedy: String,
        /// Which of both, and what the API server said.
        why: String,
    },
    /// A remedy's plugin gave up, or nothing that it decided could be followed.
    PluginFailed {
        /// The remedy.
        remedy: String,
        /// Why.
        why: String,
    },
    /// Pods did not leave the node in time.
    NotDrained {
        /// Which, by namespace and name.
        left: String,
    },
    /// The record or the plan contradicts itself.
    BrokenRecord,
}

impl Phase {
    /// The state that people see.
    pub const fn state(self) -> State {
        match self {
            Self::Waiting | Self::Isolating => State::New,
            Self::Remedying
            | Self::AwaitingPower
            | Self::ReadingIdentity
            | Self::PoweringOff
            | Self::VerifyingOff
            | Self::Releasing
            | Self::Restoring
            | Self::Untainting
            | Self::PoweringOn
            | Self::AwaitingDevice => State::Running,
            Self::AwaitingHealthy | Self::Recovering => State::Done,
            Self::Backoff | Self::Parked => State::Error,
            Self::Final(_) => State::Final,
        }
    }

    /// The step that people see.
    pub const fn step(self) -> Step {
        match self {
            Self::Waiting | Self::Isolating => Step::Isolation,
            Self::Remedying
            | Self::AwaitingPower
            | Self::ReadingIdentity
            | Self::PoweringOff
            | Self::VerifyingOff
            | Self::Releasing
            | Self::Restoring
            | Self::Untainting
            | Self::PoweringOn
            | Self::AwaitingDevice
            | Self::Backoff
            | Self::Parked => Step::PowerManagement,
            Self::AwaitingHealthy | Self::Recovering | Self::Final(_) => Step::Recovery,
        }
    }
}

impl ParkReason {
    /// What was found, without advice: when a remedy fails and another one follows, nobody has to act.
    pub fn found(&self) -> String {
        match self {
            Self::WrongMachine { expected, found } => format!(
                "the device is wired to another machine: the node is {expected}, the device says {found}"
            ),
            Self::NoIdentity => "the device does not say which machine it powers".into(),
            Self::OffNotVerified { tries } => format!(
                "the machine was told {tries} times to switch off, and its devices do not all say that it is off"
            ),
            Self::WitnessReadsOn { method, witness } => format!(
                "{method} reads off and {witness} still reads on: the plug powers another machine, or one of the \
                 two devices lies"
            ),
            Self::AliveThoughOff => {
                "the device says off and the node still gives signs of life: the \
                                     plug powers another machine, or the device lies"
                    .into()
            }
            Self::WrongPlug { neighbour } => {
                format!("{neighbour} fell silent when this plug was cut: the plug is {neighbour}'s")
            }
            Self::OnFailed => "the machine was switched off and could not be switched on".into(),
            Self::RestoreFailed => "what isolation cut could not be restored".into(),
            Self::MethodFailed { method, detail } => format!("{method} failed: {detail}"),
            Self::DeviceUnreachable => "the device could not be reached".into(),
            Self::StillCut => "the machine is cut off, its Node or pods are gone and may run \
                               elsewhere, and nothing proves the machine off"
                .into(),
            Self::CutUndone { method, failure } => {
                let cut_again = failure.as_ref().map_or_else(
                    || "was cut once more: it may have written in between".into(),
                    |failure| format!("could not be cut once more: {failure}"),
                );
                format!(
                    "somebody gave back what {method} had cut after pods of the node were released or deleted, \
                     and it {cut_again}"
                )
            }
            Self::MachineDisputed { why } => {
                format!("this incident may have cut or switched off another machine: {why}")
            }
            Self::GateClosed => {
                "the gate stayed closed after power was cut or pods were released".into()
            }
            Self::LeftAlone { word } => word.clone(),
            Self::OffBeforeUs => "the machine was off before us and stays off".into(),
            Self::NotHealthy => "the node did not become well in time after what was tried".into(),
            Self::NoProofPossible => "nothing in the plan can prove the node off".into(),
            Self::Isolated => "the node is cut off, as its plan says".into(),
            Self::SameBootAfterRelease => {
                "the node is alive with the same boot after its pods were released".into()
            }
            Self::Aborted => "a person stopped the incident after an off or a release".into(),
            Self::RemediesExhausted { remedy, detail } => {
                format!("{remedy} was the last remedy and the node is not well ({detail})")
            }
            Self::JobStuck { remedy, why } => format!("the Job of {remedy} {why}"),
            Self::PluginFailed { remedy, why } => format!("{remedy} gave up: {why}"),
            Self::NotDrained { left } => format!(
                "the drain left {left}: a disruption budget holds them, they do not stop, or the node is silent"
            ),
            Self::BrokenRecord => "the record contradicts its plan".into(),
        }
    }

    /// What a person is to do about it.
    const fn advice(&self) -> &'static str {
        match self {
            Self::WrongMachine { .. } => {
                "correct the device's address or plug, then kubectl delete nodefence NODEFENCE: the next \
                 incident uses the correction"
            }
            Self::NoIdentity => {
                "if you are certain that it is this one, set identity: prefer, then kubectl delete nodefence \
                 NODEFENCE"
            }
            Self::OffNotVerified { .. } => {
                "switch the machine off by hand, see that it is off, then node-remedy confirm-off NODEFENCE"
            }
            Self::WitnessReadsOn { .. } | Self::AliveThoughOff => {
                "check the wiring; where it was wrong, correct it and restart this node's own machine: the \
                 incident ends when the node is well with a new boot, and the next one uses the correction; \
                 where it was right, node-remedy retry NODEFENCE"
            }
            Self::WrongPlug { .. } => {
                "switch that node's machine on, correct the wiring, and restart this node's own machine: the incident \
                 ends when the node is well with a new boot, and the next one uses the correction"
            }
            Self::OnFailed => {
                "switch the machine on by hand: the incident ends when the node is well; repair its device, then \
                 node-remedy ack NODE"
            }
            Self::RestoreFailed => {
                "repair the switch or storage that refuses, then node-remedy retry NODEFENCE, which gives back what is \
                 safe to give back; do not give it back by hand"
            }
            Self::MethodFailed { .. } => {
                "correct what the message names, then node-remedy retry NODEFENCE"
            }
            Self::DeviceUnreachable => {
                "check its network and power; the incident goes on by itself when the device answers"
            }
            Self::StillCut => {
                "switch it off by hand, then node-remedy confirm-off NODEFENCE, which gives back what was \
                 cut"
            }
            Self::CutUndone { failure: None, .. } => {
                "find who gave it back, switch the machine off, then node-remedy confirm-off NODEFENCE"
            }
            Self::CutUndone { failure: Some(_), .. } => {
                "node-remedy keeps trying; it may write: switch the machine off now, then node-remedy \
                 confirm-off NODEFENCE"
            }
            Self::MachineDisputed { .. } => {
                "if pods of the node were released, make sure that it does not run; correct what is wrong, and \
                 restart this node's own machine: the incident ends when the node is well with a new boot, and the \
                 next one uses the correction"
            }
            Self::GateClosed => {
                "the last Held Event of its Node, or the controller's log after an hour, says why; when that is over, \
                 node-remedy retry NODEFENCE"
            }
            Self::LeftAlone { .. } => {
                "the node was cut off, switched off or released before that and stays so; the incident goes on \
                 by itself when the word is taken back; node-remedy abort NODEFENCE undoes what can be \
                 undone safely"
            }
            Self::OffBeforeUs => "switch it on when its work is done",
            Self::NotHealthy => {
                "look at its console; if its machine is off, switch it on; then node-remedy retry NODEFENCE"
            }
            Self::NoProofPossible => {
                "switch the machine off by hand, see that it is off, then node-remedy confirm-off NODEFENCE"
            }
            Self::Isolated => {
                "look at its console and reboot it, or switch it off, then node-remedy confirm-off \
                 NODEFENCE; a newer boot gets back what was cut"
            }
            Self::SameBootAfterRelease => {
                "switch the machine off now, then node-remedy confirm-off NODEFENCE"
            }
            Self::Aborted => {
                "if the machine is off, switch it on by hand; a newer boot gets back what isolation cut; \
                 node-remedy retry NODEFENCE begins again"
            }
            Self::RemediesExhausted { .. } => {
                "look at its console, then node-remedy retry NODEFENCE"
            }
            Self::JobStuck { .. } => {
                "find it with kubectl get jobs in node-remedy's namespace, delete it, then node-remedy retry \
                 NODEFENCE, or abort it"
            }
            Self::PluginFailed { .. } => {
                "look at the node's console, then node-remedy retry NODEFENCE, which asks its plugin anew"
            }
            Self::NotDrained { .. } => {
                "see to these pods, then node-remedy retry NODEFENCE, which drains again"
            }
            Self::BrokenRecord => {
                "read the NodeFence, see whether the machine is on or off, then kubectl delete nodefence NODEFENCE"
            }
        }
    }
}

/// What was found, and what to do about it.
impl fmt::Display for ParkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.found(), self.advice())
    }
}
