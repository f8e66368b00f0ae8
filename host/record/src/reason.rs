//! Why nothing is done: the CamelCase word of each reason, and its sentence.

use std::fmt;
use std::fmt::{Display, Formatter};

use node_remedy_decide::{Hold, Refusal};

use crate::sentences;

/// The word of a refusal that other processes look for.
pub const DEVICE_NETWORK_LOST: &str = "DeviceNetworkLost";

/// Why nothing is done about a node whose threshold is crossed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The core says so.
    Hold(Hold),
    /// It could not be carried out: what is missing.
    NotReady(String),
    /// It is only to be told.
    Shadow {
        /// The remedy that would be run.
        remedy: String,
    },
    /// Its kubelet takes connections, so it is given a minute to renew its Lease.
    StillAnswers {
        /// Where.
        at: String,
    },
    /// These conditions are missing, Unknown or stale, so that a compound threshold cannot be decided.
    ConditionUnknown {
        /// Their types, with commas between them.
        conditions: String,
    },
    /// The API server did not answer, or not as needed.
    ApiFailed(String),
}

impl Reason {
    /// Its CamelCase word.
    pub fn guard(&self) -> &'static str {
        match self {
            Self::Hold(hold) => word(hold),
            Self::NotReady(_) => "NotReady",
            Self::Shadow { .. } => "Shadow",
            Self::StillAnswers { .. } => "StillAnswers",
            Self::ConditionUnknown { .. } => "ConditionUnknown",
            Self::ApiFailed(_) => "ApiFailed",
        }
    }

    /// Whether it speaks of this threshold's remedy, by what it lacks or by its devices, and of no other one.
    pub fn is_of_remedy(&self) -> bool {
        match self {
            Self::NotReady(_) => true,
            Self::Hold(Hold::Gate(refusals)) => refusals.iter().all(|refusal| {
                matches!(
                    refusal,
                    Refusal::DeviceClosed(_)
                        | Refusal::MachineDisputed { .. }
                        | Refusal::NeighbourUnverified { .. }
                        | Refusal::DeviceNetworkLost { .. }
                )
            }),
            Self::Hold(_)
            | Self::Shadow { .. }
            | Self::StillAnswers { .. }
            | Self::ConditionUnknown { .. }
            | Self::ApiFailed(_) => false,
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hold(hold) => f.write_str(&sentences::hold(hold)),
            Self::NotReady(what) => f.write_str(what),
            Self::Shadow { remedy } => {
                write!(f, "shadow mode: would run remedy {remedy} now")
            }
            Self::StillAnswers { at } => write!(
                f,
                "its Lease is overdue, but its kubelet accepts connections at {at}: it has a minute to renew"
            ),
            Self::ConditionUnknown { conditions } => write!(
                f,
                "the node is silent, and a threshold cannot be decided: missing, Unknown or stale conditions: {conditions}; \
                 check their types and what reports them, or add a threshold without them"
            ),
            Self::ApiFailed(error) => {
                write!(f, "the API server must be asked before anything is done: {error}")
            }
        }
    }
}

/// The words of all that holds an incident back.
pub fn hold_words(hold: &Hold) -> String {
    match hold {
        Hold::Gate(refusals) => refusals.iter().map(refusal_word).collect::<Vec<_>>().join(" "),
        Hold::NotYet { .. }
        | Hold::NoSlot
        | Hold::Approval { .. }
        | Hold::Proof
        | Hold::Dump { .. }
        | Hold::JobRefused { .. }
        | Hold::NotDecided { .. }
        | Hold::CleanUp { .. }
        | Hold::TriggerClear
        | Hold::OwnNode
        | Hold::StaleView => word(hold).to_owned(),
    }
}

/// The CamelCase word of what holds an incident back.
pub fn word(hold: &Hold) -> &'static str {
    match hold {
        Hold::NotYet { .. } => "NotYet",
        Hold::Gate(refusals) => refusals.first().map_or("Gate", refusal_word),
        Hold::NoSlot => "NoSlot",
        Hold::Approval { .. } => "Approval",
        Hold::Dump { .. } => "Dump",
        Hold::JobRefused { .. } => "JobRefused",
        Hold::NotDecided { .. } => "NotDecided",
        Hold::CleanUp { .. } => "CleanUp",
        Hold::Proof => "Proof",
        Hold::TriggerClear => "TriggerClear",
        Hold::OwnNode => "OwnNode",
        Hold::StaleView => "StaleView",
    }
}

/// The CamelCase word of a refusal.
pub fn refusal_word(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::UnhealthyShare { .. } => "UnhealthyShare",
        Refusal::UnhealthyCount { .. } => "UnhealthyCount",
        Refusal::SilentAtOnce { .. } => "SilentAtOnce",
        Refusal::StormTail { .. } => "StormTail",
        Refusal::SilenceNotJudged { .. } => "SilenceNotJudged",
        Refusal::DomainUnhealthy { .. } => "DomainUnhealthy",
        Refusal::DomainInFlight { .. } => "DomainInFlight",
        Refusal::NoDomain { .. } => "NoDomain",
        Refusal::ControlPlane { .. } => "ControlPlane",
        Refusal::Headroom { .. } => "Headroom",
        Refusal::StorageLease { .. } => "StorageLease",
        Refusal::StorageLeaseUnread { .. } => "StorageLeaseUnread",
        Refusal::NoLease => "NoLease",
        Refusal::InFlight { .. } => "InFlight",
        Refusal::BreakerOpen { .. } => "BreakerOpen",
        Refusal::BreakerHalfOpen { .. } => "BreakerHalfOpen",
        Refusal::BreakerUnread { .. } => "BreakerUnread",
        Refusal::Paused(_) => "Paused",
        Refusal::Excluded { .. } => "Excluded",
        Refusal::Maintenance { .. } => "Maintenance",
        Refusal::Cordoned => "Cordoned",
        Refusal::BeingRemoved { .. } => "BeingRemoved",
        Refusal::VetoesUnread { .. } => "VetoesUnread",
        Refusal::OwnView { .. } => "OwnView",
        Refusal::WatchBroken { .. } => "WatchBroken",
        Refusal::HeldByOther { .. } => "HeldByOther",
        Refusal::DeviceClosed(_) => "DeviceClosed",
        Refusal::MachineDisputed { .. } => "MachineDisputed",
        Refusal::NeighbourUnverified { .. } => "NeighbourUnverified",
        Refusal::DeviceNetworkLost { .. } => DEVICE_NETWORK_LOST,
        Refusal::CoolDown { .. } => "CoolDown",
    }
}
