//! Evidence that a node is off or isolated, and what it allows to be released.

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;

use crate::{Liveness, OpId, Time};

/// How strong a proof is; DESIGN's table of grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// A later, separate read says off for every feed, and no sign of life came since.
    PowerOffVerified,
    /// Access to storage is cut, and read as cut.
    StorageFenced,
    /// The armed self-fence agent's attested worst case has passed.
    WatchdogDeadline,
    /// A person's word, bound to this record and this boot.
    OperatorConfirmed,
    /// An admin's own remedy succeeded.
    JobSucceeded,
    /// A crash notice from a trusted network.
    KdumpSeen,
    /// No proof; only for drivers that check at detach.
    Partition,
    /// The node came back with another boot id.
    NewBootId,
}

/// Evidence, and what it was evidence against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proof {
    /// How strong it is.
    pub grade: Grade,
    /// When it was complete.
    pub at: Time,
    /// The reads or the word that it rests on.
    pub by: Evidence,
    /// The last signs of life known; any other sign voids it.
    pub liveness: Liveness,
    /// When a sign of life voided it, or a later read of what it rests on.
    pub voided_at: Option<Time>,
}

/// What a proof rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// These operations of the journal, each a read in a fresh instance.
    Reads(alloc::vec::Vec<OpId>),
    /// This person said so.
    Person(String),
    /// Something outside the journal: an agent's attestation, a Job, a notice.
    Report(String),
}

impl Evidence {
    /// Whether this operation is part of it.
    pub fn names(&self, op: OpId) -> bool {
        match self {
            Self::Reads(reads) => reads.contains(&op),
            Self::Person(_) | Self::Report(_) => false,
        }
    }
}

impl Grade {
    /// Those that release without being asked for by name.
    pub fn default_grades() -> BTreeSet<Self> {
        [
            Self::PowerOffVerified,
            Self::StorageFenced,
            Self::WatchdogDeadline,
            Self::OperatorConfirmed,
            Self::JobSucceeded,
        ]
        .into()
    }

    /// Whether it is had before anything is switched off, which then follows.
    pub(crate) const fn is_before_off(self) -> bool {
        matches!(self, Self::StorageFenced | Self::KdumpSeen | Self::Partition)
    }

    /// The word of the design and of the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::PowerOffVerified => "power-off-verified",
            Self::StorageFenced => "storage-fenced",
            Self::WatchdogDeadline => "watchdog-deadline",
            Self::OperatorConfirmed => "operator-confirmed",
            Self::JobSucceeded => "job-succeeded",
            Self::KdumpSeen => "kdump-seen",
            Self::Partition => "partition",
            Self::NewBootId => "new-boot-id",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
