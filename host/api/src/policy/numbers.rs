//! Every number of a policy with its default and the reason for it. [`IncidentPolicy`] and
//! [`GateLimits`] are what is in force; [`Policies`] is what a user may write in place of a
//! default.

use std::collections::BTreeSet;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::windows::PauseWindow;
use crate::limits;
use crate::nodefence::Grade;
use crate::time::Span;

/// Nothing is gained by waiting: thresholds have their own period.
pub const ISOLATE_AFTER: Span = Span::from_s(0);
/// The proposal's example is 5m; proof comes the later.
pub const POWER_AFTER: Span = Span::from_s(0);
/// A BMC that lost one command seldom loses three.
pub const RETRIES: u32 = 2;
/// A second power cycle seldom mends what the first did not.
pub const RESTARTS: u32 = 0;
/// A BMC that just said yes and did nothing needs a moment.
pub const BACKOFF: Span = Span::from_s(5);
/// A chassis with slow firmware takes half a minute.
pub const OFF_TIMEOUT: Span = Span::from_s(30);
/// A management controller may be booting too.
pub const ON_TIMEOUT: Span = Span::from_s(60);
/// Whoever still holds something then is not about to let go.
pub const RELEASE_TIMEOUT: Span = Span::from_minutes(2);
/// A finalizer that waits this long waits for a person.
pub const CLEANUP_TIMEOUT: Span = Span::from_minutes(10);
/// Firmware, memory test, kernel, kubelet: large machines take ten minutes.
pub const RECOVER_TIMEOUT: Span = Span::from_minutes(15);
/// Longer than a switch takes to boot.
pub const GATE_TIMEOUT: Span = Span::from_minutes(15);
/// Somebody looks at a rack within a day.
pub const DEVICE_TIMEOUT: Span = Span::from_minutes(24 * 60);
/// A node that fails at once again needs a person, not a power cycle.
pub const COOL_DOWN: Span = Span::from_minutes(10);
/// A budget that no rollout frees in ten minutes will not be freed.
pub const PDB_PATIENCE: Span = Span::from_minutes(10);
/// A Job that drains a large node takes this long.
pub const JOB_DEADLINE: Span = Span::from_minutes(30);
/// A repair that failed is the next remedy's turn, not its own again.
pub const JOB_BACKOFF_LIMIT: u32 = 0;
/// Kubelets and node-problem-detector report at least every five minutes: three reports in a row are
/// seldom lost.
pub const CONDITION_STALE_AFTER: Span = Span::from_minutes(15);
/// Share of unhealthy or silent nodes from which on nothing is cut. A third of a cluster does not
/// die at once; its network does.
pub const MAX_UNHEALTHY_PERCENT: u32 = 30;
/// Two machines may die in the same seconds; of three it is what they share that died.
pub const MAX_SILENT_AT_ONCE: u32 = 3;
/// Machines that die by themselves are hours apart; five within one are something else's work. Half an
/// hour is time for somebody to look.
pub const BREAKER: Breaker =
    Breaker { max_incidents: 5, window: Span::from_minutes(60), cool_down: Span::from_minutes(30) };
/// Half of a rack does not die at once; its switch does.
pub const MAX_UNHEALTHY_PERCENT_OF_DOMAIN: u32 = 50;
/// As long as a node's own Lease lasts.
pub const STORAGE_LEASE_MAX_AGE: Span = Span::from_s(40);
/// Incidents at one time: the proposal's "only one node at a given time".
pub const MAX_IN_FLIGHT: u32 = 1;
/// Deletions a minute in mode `paced`: the scheduler's and the registry's comfort.
pub const PODS_PER_MINUTE: u32 = 60;
/// Grades that release without being asked for by name.
pub const GRADES: [Grade; 5] = [
    Grade::PowerOffVerified,
    Grade::StorageFenced,
    Grade::WatchdogDeadline,
    Grade::OperatorConfirmed,
    Grade::JobSucceeded,
];

/// The numbers in force for one incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncidentPolicy {
    /// Wait between the opening of an incident and isolation.
    pub isolate_after: Span,
    /// Wait between isolation and power management.
    pub power_after: Span,
    /// For how long power is not cut once an incident knows of a kernel dump, the boot after it included; absent: dumps are not waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdump_grace: Option<Span>,
    /// Further tries of a failed step.
    pub retries: u32,
    /// Times a failed flow goes back to New.
    pub restarts: u32,
    /// First pause before a retry; it doubles up to a minute.
    pub backoff: Span,
    /// How long an off may take to show.
    pub off_timeout: Span,
    /// How long an on may take to show.
    pub on_timeout: Span,
    /// How long a release waits for the next pod or attachment to go; with `paced` at least twice the time between two
    /// deletes.
    pub release_timeout: Span,
    /// After how long what holds an object is named.
    pub cleanup_timeout: Span,
    /// How long a machine may take from power-on to well.
    pub recover_timeout: Span,
    /// How long an isolated node waits for a gate that closed behind it, and an incident that has cut nothing for a
    /// condition that nobody reports any more.
    pub gate_timeout: Span,
    /// How long a device that cannot be reached is probed.
    pub device_timeout: Span,
    /// How long a disruption budget may hold back pods that still answer.
    pub pdb_patience: Span,
    /// How pods and attachments are released.
    pub release_mode: ReleaseMode,
    /// Pods deleted a minute in mode `paced`.
    pub pods_per_minute: u32,
    /// Grades that may release.
    #[schemars(length(max = 8))]
    pub grades: Vec<Grade>,
    /// What a kernel dump that is heard releases, where its grade may.
    #[serde(default)]
    pub kdump_releases: KdumpReleases,
    /// CSI drivers that check at detach whether somebody still writes, for grade `partition`.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub safe_detach_drivers: BTreeSet<String>,
    /// What a machine's identity must be before its power is cut.
    pub identity: Identity,
    /// A machine that was found off is powered on after the release.
    pub power_on_if_found_off: bool,
    /// A plan that cuts the node off for good is isolated and parked instead of refused.
    pub park_isolated: bool,
    /// A person must approve before the first off.
    pub approval: bool,
}

/// How many nodes may be unhealthy, how many incidents go on, and what people said, while another is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateLimits {
    /// From this share of unhealthy nodes on, in percent, nothing is cut.
    pub max_unhealthy_percent: u32,
    /// From this many on nothing is cut; absent: only the share counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unhealthy_count: Option<u32>,
    /// From this many nodes on that fell silent at once none of them is cut.
    #[serde(default = "silent_at_once")]
    pub max_silent_at_once: u32,
    /// Incidents that hold a slot at once.
    pub max_in_flight: u32,
    /// Between two incidents of one node.
    pub cool_down: Span,
    /// Limits within each zone, rack, PDU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::TOPOLOGIES_MAX))]
    pub topologies: Vec<TopologyLimit>,
    /// Leases that vouch for nodes that use their storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_leases: Option<StorageLeases>,
    /// So many percent of all nodes must be left that can take the node's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_schedulable_percent: Option<u32>,
    /// When too many incidents begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
    /// Times at which nothing is cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PAUSE_WINDOWS_MAX))]
    pub pause_windows: Vec<PauseWindow>,
    /// What a cordon that is not ours means.
    #[serde(default)]
    pub cordoned_by_others: CordonedByOthers,
}

const fn silent_at_once() -> u32 {
    MAX_SILENT_AT_ONCE
}

/// Limits within one failure domain: nodes that share the value of a label share a switch, a PDU, a
/// room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyLimit {
    /// The label, such as `topology.kubernetes.io/zone`.
    #[schemars(length(min = 1, max = 316))]
    pub key: String,
    /// From this share of unhealthy nodes of a domain on, in percent, none of it is cut. Default 50.
    #[serde(default = "domain_percent")]
    #[schemars(range(min = 1, max = 100))]
    pub max_unhealthy_percent: u32,
    /// Incidents at one time within a domain; absent: only `maxInFlight` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::IN_FLIGHT_MAX))]
    pub max_in_flight: Option<u32>,
}

const fn domain_percent() -> u32 {
    MAX_UNHEALTHY_PERCENT_OF_DOMAIN
}

/// Where whoever sees nodes use their storage keeps a Lease for each, under the node's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageLeases {
    /// The namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// A node whose Lease was renewed within this time is left alone. Default 40s.
    #[serde(default = "storage_lease_age")]
    pub max_age: Span,
}

const fn storage_lease_age() -> Span {
    STORAGE_LEASE_MAX_AGE
}

/// When too many incidents begin: then nothing more is begun until one, let through to try it, ends
/// well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breaker {
    /// From so many incidents on, of all nodes together.
    #[schemars(range(min = 1, max = limits::BREAKER_INCIDENTS_MAX))]
    pub max_incidents: u32,
    /// That begin within this time, 1m to 7d.
    pub window: Span,
    /// For how long nothing more is begun, 1m to 7d.
    pub cool_down: Span,
}

/// How fast pods are released.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseMode {
    /// The out-of-service taint, and at once our own deletes.
    #[default]
    Prompt,
    /// So many deletes a minute, the taint last.
    Paced,
}

/// What a kernel dump that is heard releases, where the grade `kdump-seen` may release.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum KdumpReleases {
    /// Pods none of whose volumes only one node may write.
    #[default]
    WithoutVolumes,
    /// Everything, as if the machine were off.
    All,
}

/// What a cordon means that node-remedy did not set.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum CordonedByOthers {
    /// Somebody works on the node: nothing of it is cut.
    #[default]
    Maintenance,
    /// Nothing.
    Ignore,
}

/// How many incidents of one node are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepeatAlarm {
    /// From this many on people are told at each.
    #[schemars(range(min = 2, max = limits::REPEATS_MAX))]
    pub count: u32,
    /// Within this time, 1m to 14d.
    pub window: Span,
}

/// What is asked of a device's word about the machine behind it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// It must name the node's machine.
    #[default]
    Require,
    /// A device that names no machine is believed; one that names another never is.
    Prefer,
}

/// Numbers in place of their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policies {
    /// Nothing is cut from this share of unhealthy or silent nodes on. Default 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_unhealthy_percent: Option<u32>,
    /// Nothing is cut from this many unhealthy or silent nodes on. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_unhealthy_count: Option<u32>,
    /// From this many nodes on that fell silent at once, none of them is cut. Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 1_000_000))]
    pub max_silent_at_once: Option<u32>,
    /// Incidents at one time. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = limits::IN_FLIGHT_MAX))]
    pub max_in_flight: Option<u32>,
    /// A condition that was last reported longer ago is not known. Default 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_stale_after: Option<Span>,
    /// Limits within each zone, rack, PDU. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::TOPOLOGIES_MAX))]
    pub topologies: Option<Vec<TopologyLimit>>,
    /// Leases that vouch for nodes that use their storage. No default: nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_leases: Option<StorageLeases>,
    /// Nothing is cut unless so many percent of all nodes are left that can take its pods. No default.
    /// The node itself is among all, so that 100 are never left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 99))]
    pub min_schedulable_percent: Option<u32>,
    /// When too many incidents begin. Default: 5 within 1h, and then none for 30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
    /// Wait between the opening of an incident and isolation. Default 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolate_after: Option<Span>,
    /// Wait between isolation and power management. Default 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_after: Option<Span>,
    /// For how long power is not cut once an incident knows of a kernel dump, the boot after it included. No default: dumps are not waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdump_grace: Option<Span>,
    /// Further tries of a failed step. Default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10))]
    pub retries: Option<u32>,
    /// How often a failed incident begins anew; at most restarts + 1 power cycles. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10))]
    pub restarts: Option<u32>,
    /// First pause before a retry; it doubles up to a minute. Default 5s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Span>,
    /// How long an off may take to show. Default 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_timeout: Option<Span>,
    /// How long an on may take to show. Default 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<Span>,
    /// How long a release waits for the next pod or attachment to go; with `paced` at least twice the time between two
    /// deletes. Default 2m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_timeout: Option<Span>,
    /// After this time people are told what keeps an object from going. Default 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_timeout: Option<Span>,
    /// How long a machine may take from power-on to well. Default 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover_timeout: Option<Span>,
    /// How long an isolated node waits for a gate that closed behind it, and an incident that has cut nothing for a
    /// condition that nobody reports any more. Default 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_timeout: Option<Span>,
    /// How long a device that cannot be reached is probed. Default 1d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_timeout: Option<Span>,
    /// Pause between two incidents of one node. Default 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cool_down: Option<Span>,
    /// How long a disruption budget may hold back pods that still answer. Default 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdb_patience: Option<Span>,
    /// prompt or paced. Default prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_mode: Option<ReleaseMode>,
    /// Deletions a minute in mode `paced`. Default 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub pods_per_minute: Option<u32>,
    /// Grades of proof that release. `watchdog-deadline` is reserved: nothing gives it yet. Default: every grade that is proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    pub grades: Option<Vec<Grade>>,
    /// withoutVolumes or all: what a kernel dump releases, for grade `kdump-seen`. Default withoutVolumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kdump_releases: Option<KdumpReleases>,
    /// require or prefer. Default require.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// A machine that was found off is powered on after the release. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_if_found_off: Option<bool>,
    /// A plan that only isolates may end isolated and parked. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park_isolated: Option<bool>,
    /// A person must approve before the first off. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<bool>,
    /// Times at which nothing is cut. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::PAUSE_WINDOWS_MAX))]
    pub pause_windows: Option<Vec<PauseWindow>>,
    /// maintenance or ignore. Default maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned_by_others: Option<CordonedByOthers>,
    /// When incidents of one node are too many. No default: nobody is alarmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_alarm: Option<RepeatAlarm>,
    /// CSI drivers that check at detach, for grade `partition`. Default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub safe_detach_drivers: Option<Vec<String>>,
}

impl Policies {
    /// The numbers in force for an incident: those written, and defaults for the rest.
    pub fn incident(&self) -> IncidentPolicy {
        IncidentPolicy {
            isolate_after: self.isolate_after.unwrap_or(ISOLATE_AFTER),
            power_after: self.power_after.unwrap_or(POWER_AFTER),
            kdump_grace: self.kdump_grace,
            kdump_releases: self.kdump_releases.unwrap_or_default(),
            safe_detach_drivers: self.safe_detach_drivers.iter().flatten().cloned().collect(),
            retries: self.retries.unwrap_or(RETRIES),
            restarts: self.restarts.unwrap_or(RESTARTS),
            backoff: self.backoff.unwrap_or(BACKOFF),
            off_timeout: self.off_timeout.unwrap_or(OFF_TIMEOUT),
            on_timeout: self.on_timeout.unwrap_or(ON_TIMEOUT),
            release_timeout: self.release_timeout.unwrap_or(RELEASE_TIMEOUT),
            cleanup_timeout: self.cleanup_timeout.unwrap_or(CLEANUP_TIMEOUT),
            recover_timeout: self.recover_timeout.unwrap_or(RECOVER_TIMEOUT),
            gate_timeout: self.gate_timeout.unwrap_or(GATE_TIMEOUT),
            device_timeout: self.device_timeout.unwrap_or(DEVICE_TIMEOUT),
            pdb_patience: self.pdb_patience.unwrap_or(PDB_PATIENCE),
            release_mode: self.release_mode.unwrap_or_default(),
            pods_per_minute: self.pods_per_minute.unwrap_or(PODS_PER_MINUTE),
            grades: self.grades.clone().unwrap_or_else(|| GRADES.to_vec()),
            identity: self.identity.unwrap_or_default(),
            power_on_if_found_off: self.power_on_if_found_off.unwrap_or(true),
            park_isolated: self.park_isolated.unwrap_or(false),
            approval: self.approval.unwrap_or(false),
        }
    }

    /// The gate's limits in force.
    pub fn gate(&self) -> GateLimits {
        GateLimits {
            max_unhealthy_percent: self.max_unhealthy_percent.unwrap_or(MAX_UNHEALTHY_PERCENT),
            max_unhealthy_count: self.max_unhealthy_count,
            max_silent_at_once: self.max_silent_at_once.unwrap_or(MAX_SILENT_AT_ONCE),
            max_in_flight: self.max_in_flight.unwrap_or(MAX_IN_FLIGHT),
            topologies: self.topologies.clone().unwrap_or_default(),
            storage_leases: self.storage_leases.clone(),
            min_schedulable_percent: self.min_schedulable_percent,
            breaker: Some(self.breaker.unwrap_or(BREAKER)),
            cool_down: self.cool_down.unwrap_or(COOL_DOWN),
            pause_windows: self.pause_windows.clone().unwrap_or_default(),
            cordoned_by_others: self.cordoned_by_others.unwrap_or_default(),
        }
    }
}

impl Default for IncidentPolicy {
    fn default() -> Self {
        Policies::default().incident()
    }
}

impl Default for GateLimits {
    fn default() -> Self {
        Policies::default().gate()
    }
}
