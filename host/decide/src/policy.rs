//! The numbers in force for an incident, each with its default and the reason for it.

use alloc::collections::BTreeSet;

use crate::{Grade, Span};

/// The first off, isolation or release waits for nothing unless told to.
pub const ISOLATE_AFTER: Span = Span::ZERO;
/// Power is cut as soon as isolation has ended.
pub const POWER_AFTER: Span = Span::ZERO;
/// Two further tries: a BMC that lost one command seldom loses three.
pub const RETRIES: u32 = 2;
/// A second power cycle seldom mends what the first did not.
pub const RESTARTS: u32 = 0;
/// First pause before a retry; it doubles up to [`BACKOFF_MAX`].
pub const BACKOFF: Span = Span::seconds(5);
/// Longest pause before a retry.
pub const BACKOFF_MAX: Span = Span::seconds(60);
/// A machine that is to go off is off in seconds; a chassis with slow firmware in half a minute.
pub const OFF_TIMEOUT: Span = Span::seconds(30);
/// Switching on may wait for a management controller that boots too.
pub const ON_TIMEOUT: Span = Span::seconds(60);
/// How often an unfinished change is looked at again.
pub const LOOK_EVERY: Span = Span::seconds(2);
/// After the last thing went, whoever still holds something is not about to let go.
pub const RELEASE_TIMEOUT: Span = Span::minutes(2);
/// After this the record names the object and the finalizer that hold the clean-up.
pub const CLEANUP_TIMEOUT: Span = Span::minutes(10);
/// Firmware, memory test, kernel, kubelet: large machines take ten minutes.
pub const RECOVER_TIMEOUT: Span = Span::minutes(15);
/// How long an isolated node waits for a gate that closed behind it, and an incident that has cut nothing for a condition
/// that nobody reports any more.
pub const GATE_TIMEOUT: Span = Span::minutes(15);
/// How long a silent device is probed before a person is asked.
pub const DEVICE_TIMEOUT: Span = Span::minutes(24 * 60);
/// How often a silent device is probed.
pub const PROBE_EVERY: Span = Span::seconds(5);
/// How often a parked incident's device and node are looked at.
pub const PARKED_LOOK_EVERY: Span = Span::seconds(60);
/// For so long the API server may still carry out a write whose answer was lost: the default of kube-apiserver's
/// `--request-timeout`.
pub const WRITE_LATE_MAX: Span = Span::seconds(60);
/// How long another process's unfinished call may still have an effect: its lease and its call.
pub const FOREIGN_CALL_MAX: Span = Span::seconds(20);
/// Kubelets and node-problem-detector report at least every five minutes: three reports in a row are
/// seldom lost.
pub const STALE_AFTER: Span = Span::minutes(15);
/// A kubelet that is heard again renews its Lease at once and reports its status seconds later, when its first
/// attempt has gone through: it tries every 10 s (`nodeStatusUpdateFrequency`, kubelet-config.v1beta1).
pub const REPORTS_WITHIN: Span = Span::minutes(1);
/// A view older than this allows nothing that cannot be undone.
pub const VIEW_AGE_MAX: Span = Span::seconds(5);
/// A power read older than this is read again before the next batch is released.
pub const PROOF_READ_AGE_MAX: Span = Span::seconds(15);
/// A cut that was seen longer ago than this is read again before the next batch is released.
pub const CUT_READ_AGE_MAX: Span = Span::seconds(2);
/// So many pods, and attachments, a record names; a kubelet runs some hundreds at most. Others may be bound to its node
/// by name, and are left to whoever did that.
pub const RELEASED_MAX: usize = 2048;
/// Reads with no more time than this between and after them are one round: recording each and looking at the
/// node takes two requests of at most so long.
pub const ROUND_PAUSES_MAX: Span = Span::seconds(5);
/// Between incidents of a node.
pub const COOL_DOWN: Span = Span::minutes(10);
/// How long another replica has to take over before our own node is simply refused.
pub const HAND_OVER: Span = Span::seconds(30);
/// Between two offers of one incident to let another process lead that says it reaches the device.
pub const HAND_OVER_AGAIN: Span = Span::minutes(10);
/// Nothing heard from the API server for so long: we may be the ones who are cut off.
pub const SILENCE_MAX: Span = Span::seconds(15);
/// Writes to the cluster that show no effect are repeated this often.
pub const RESEND_EVERY: Span = Span::seconds(5);

/// What one incident may do and how long it waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IncidentPolicy {
    /// Wait between the opening and isolation.
    pub isolate_after: Span,
    /// Wait between isolation and power-off.
    pub power_after: Span,
    /// For how long after the first word of a dump power is not cut, its boot included; `None`: dumps are not waited for.
    pub kdump_grace: Option<Span>,
    /// Further tries of a step.
    pub retries: u32,
    /// Flows back to New.
    pub restarts: u32,
    /// First pause before a retry.
    pub backoff: Span,
    /// How long an off may take to show.
    pub off_timeout: Span,
    /// How long an on may take to show.
    pub on_timeout: Span,
    /// How long a release waits for the next pod or attachment to go; with `paced` at least twice the time between two
    /// deletes.
    pub release_timeout: Span,
    /// When left-overs are named.
    pub cleanup_timeout: Span,
    /// How long a machine may take to be well.
    pub recover_timeout: Span,
    /// How long an isolated node waits for a closed gate.
    pub gate_timeout: Span,
    /// How long a silent device is probed.
    pub device_timeout: Span,
    /// How pods and attachments are given back.
    pub release: ReleaseMode,
    /// Grades that may release.
    pub grades: BTreeSet<Grade>,
    /// What a dump that is heard releases, where its grade may.
    pub kdump_releases: KdumpReleases,
    /// What a machine's identity must be.
    pub identity: IdentityRule,
    /// What becomes of a machine that was found off.
    pub found_off: FoundOff,
    /// What becomes of a node whose way to the API was cut and that has no power method.
    pub isolated_for_good: IsolatedForGood,
    /// Whether a person must approve before the first off.
    pub approval: Approval,
    /// Pace of our deletes etc. is in `release`; patience for disruption budgets is here.
    pub pdb_patience: Span,
}

/// How pods and attachments are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseMode {
    /// The out-of-service taint and our own deletes, all at once.
    Prompt,
    /// So many pods a minute, then the attachments, then the taint.
    Paced {
        /// Pods deleted per minute; at least one.
        pods_per_minute: u32,
    },
}

/// What a dump that is heard releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KdumpReleases {
    /// Pods none of whose volumes only one node may write.
    #[default]
    WithoutVolumes,
    /// Everything, as if the machine were off.
    All,
}

/// What a machine's identity must be before its power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IdentityRule {
    /// The device names the node's machine.
    Require,
    /// A device that names no machine is believed; one that names another never is.
    Prefer,
}

/// What becomes of a machine that was found off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FoundOff {
    /// It is switched on after the release.
    PowerOn,
    /// It stays off and the incident parks.
    LeaveOff,
}

/// What becomes of a node that isolation cuts off for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IsolatedForGood {
    /// Such a plan is refused.
    Refuse,
    /// It is isolated and parked.
    Park,
}

/// Whether a person must say yes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Approval {
    /// Policy decides alone.
    NotNeeded,
    /// The incident waits for `node-remedy approve`.
    Needed,
}

impl Default for IncidentPolicy {
    fn default() -> Self {
        Self {
            isolate_after: ISOLATE_AFTER,
            power_after: POWER_AFTER,
            kdump_grace: None,
            retries: RETRIES,
            restarts: RESTARTS,
            backoff: BACKOFF,
            off_timeout: OFF_TIMEOUT,
            on_timeout: ON_TIMEOUT,
            release_timeout: RELEASE_TIMEOUT,
            cleanup_timeout: CLEANUP_TIMEOUT,
            recover_timeout: RECOVER_TIMEOUT,
            gate_timeout: GATE_TIMEOUT,
            device_timeout: DEVICE_TIMEOUT,
            release: ReleaseMode::Prompt,
            grades: Grade::default_grades(),
            kdump_releases: KdumpReleases::WithoutVolumes,
            identity: IdentityRule::Require,
            found_off: FoundOff::PowerOn,
            isolated_for_good: IsolatedForGood::Refuse,
            approval: Approval::NotNeeded,
            pdb_patience: PDB_PATIENCE,
        }
    }
}

/// How long a disruption budget may hold back the release of pods that still answer.
pub const PDB_PATIENCE: Span = Span::minutes(10);
