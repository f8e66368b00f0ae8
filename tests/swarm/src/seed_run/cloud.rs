//! What the machines of a run are, and what is wrong with what switches them: BMCs, or a cloud whose
//! instances they are.

use node_remedy_world::rng::Rng;

use super::{BMC_FAULTS, DeviceFault, Draft, FENCE};

const FENCE_AWS: &str = include_str!("../../../../examples/config/fence-aws.yaml");

/// Of a hundred runs so many are of instances.
const INSTANCES_PERCENT: u64 = 20;
/// Of a hundred of those, in so many a lost instance is taken away.
const TERMINATED_PERCENT: u64 = 10;

/// What EC2 does wrong, and how much of it.
const FAULTS: [DeviceFault; 18] = [
    ("delay", 100, 12_000),
    ("silent", 1, 1),
    ("unreachable", 1, 1),
    ("throttled", 1, 1),
    ("unavailable", 1, 1),
    ("denied", 1, 1),
    ("blind", 1, 1),
    ("unknown", 1, 1),
    ("no_capacity", 1, 1),
    ("forgets", 1, 1),
    ("stuck", 1, 1),
    // What the plugin's manifest says that an effect may take at most is two minutes.
    ("slow_stop", 10_000, 110_000),
    ("slow_start", 10_000, 50_000),
    ("stale", 1_000, 90_000),
    ("reply_lost", 1, 1),
    ("fails_inside", 1, 1),
    ("garbled", 1, 1),
    ("hibernated", 1, 1),
];

/// The other classes of fault that are drawn here.
const CLASSES: [&str; 2] = ["instances", "instance terminated"];

/// Every class of fault of a cloud.
pub(super) fn classes() -> impl Iterator<Item = String> {
    let faults = FAULTS.iter().map(|(fault, ..)| Machines::Instances.class(fault));
    faults.chain(CLASSES.map(str::to_owned))
}

/// What the machines of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machines {
    /// Servers with a BMC each.
    Bmcs,
    /// Instances of EC2.
    Instances,
}

impl Machines {
    /// Drawn apart from all else, so that the runs of servers stay what they were.
    pub(super) fn of(seed: u64) -> Self {
        let drawn = Rng::named(seed, "machines").below(100);
        if drawn < INSTANCES_PERCENT { Self::Instances } else { Self::Bmcs }
    }

    /// What is drawn with them.
    pub(super) fn classes(self) -> Vec<String> {
        match self {
            Self::Bmcs => Vec::new(),
            Self::Instances => vec!["instances".to_owned()],
        }
    }

    /// The value of the label that says how they are fenced, and the name of the configuration.
    pub(super) fn fence(self) -> &'static str {
        match self {
            Self::Bmcs => "ipmi",
            Self::Instances => "aws",
        }
    }

    /// The file of that configuration, and its text.
    pub(super) fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Bmcs => ("fence-ipmi.yaml", FENCE),
            Self::Instances => ("fence-aws.yaml", FENCE_AWS),
        }
    }

    /// The Secret that it names.
    pub(super) fn secret(self) -> &'static str {
        match self {
            Self::Bmcs => "bmc-credentials",
            Self::Instances => "aws-credentials",
        }
    }

    /// What a scenario says of each.
    pub(super) fn fields(self) -> &'static str {
        match self {
            Self::Bmcs => "",
            Self::Instances => ", cloud: {}",
        }
    }

    /// What can be wrong with what switches them.
    pub(super) fn faults(self) -> &'static [DeviceFault] {
        match self {
            Self::Bmcs => &BMC_FAULTS,
            Self::Instances => &FAULTS,
        }
    }

    /// Of a hundred lost nodes, with so many something is wrong besides: there are fewer runs of
    /// instances, and each of their faults is to be seen.
    pub(super) fn faulty_percent(self) -> u64 {
        match self {
            Self::Bmcs => 50,
            Self::Instances => 80,
        }
    }

    /// A class of fault, such as `bmc stale`.
    pub(super) fn class(self, fault: &str) -> String {
        match self {
            Self::Bmcs => format!("bmc {fault}"),
            Self::Instances => format!("cloud {fault}"),
        }
    }

    fn fault_key(self) -> &'static str {
        match self {
            Self::Bmcs => "bmcFault",
            Self::Instances => "cloudFault",
        }
    }

    /// A fault begins or, with the value 0, ends.
    pub(super) fn fault(self, node: &str, fault: &str, value: u64) -> String {
        format!("{}: {{ node: {node}, fault: {fault}, value: {value} }}", self.fault_key())
    }

    /// Every fault is over.
    pub(super) fn no_fault(self, node: &str) -> String {
        format!("{}: {{ node: {node}, fault: none }}", self.fault_key())
    }

    /// A device that answers, and does not let anybody ask for anything.
    pub(super) fn lets_nobody_in(self) -> &'static str {
        match self {
            Self::Bmcs => "open_status",
            Self::Instances => "throttled",
        }
    }

    /// An off that comes late, by up to 28 s where a BMC does it.
    pub(super) fn late_off(self, ms: u64) -> (&'static str, u64) {
        match self {
            Self::Bmcs => ("off_after", ms),
            Self::Instances => ("slow_stop", ms * 4),
        }
    }

    /// The fact that a command was accepted.
    pub(super) fn said_yes(self) -> &'static str {
        match self {
            Self::Bmcs => "bmcAccepted",
            Self::Instances => "cloudAccepted",
        }
    }

    /// A moment of an incident, as these machines have it.
    pub(super) fn moment(self, fact: &'static str, fields: &'static str) -> Moment {
        match (self, fact) {
            (Self::Instances, "bmcReported") => ("cloudReported", "state: stopped"),
            (_, "bmcAccepted") => (self.said_yes(), fields),
            (Self::Bmcs | Self::Instances, _) => (fact, fields),
        }
    }
}

/// A fact, and its fields.
type Moment = (&'static str, &'static str);

impl Draft {
    /// Now and then the cloud takes a lost instance away for good.
    pub(super) fn terminations(&mut self, seed: u64, lost: &[String]) {
        let mut rng = Rng::named(seed, "terminations");
        let is_drawn = rng.below(100) < TERMINATED_PERCENT && self.machines == Machines::Instances;
        let Some(node) = lost.first().filter(|_| is_drawn) else { return };
        let at = rng.within(50_000, 200_000);
        self.happens(at, &format!("instanceTerminated: {node}"), "instance terminated");
    }
}
