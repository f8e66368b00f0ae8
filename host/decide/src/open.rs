//! Whether an incident may be opened, and the record it begins with.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bug::{Bug, guard};
use crate::{
    Crossing, Freshness, Goal, Grade, Hold, IncidentPolicy, IsolatedForGood, Marks, OpId, Phase,
    Plan, Record, Remedy, Slot, Time, View,
};

/// What an incident is opened from.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// What it will do.
    pub plan: &'a Plan,
    /// The numbers in force.
    pub policy: &'a IncidentPolicy,
    /// A live view of the node.
    pub view: &'a View,
    /// The fencing token of whoever opens it.
    pub epoch: u64,
    /// Its process.
    pub process: &'a str,
}

/// Whether an incident may be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenDecision {
    /// Take a slot of the budget by compare-and-swap, then create the `NodeFence` with this.
    Open(Box<Record>),
    /// Not now.
    Wait {
        /// Why.
        hold: Hold,
        /// When that may change by itself.
        next_look: Option<Time>,
    },
    /// Never, with this plan.
    Refuse(PlanRefusal),
}

/// Why a plan is not run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanRefusal {
    /// It cuts the way to the API server and has no power method to bring the node back.
    CutsItselfOff,
    /// It switches power only by reset, or not at all, and isolates nothing.
    NothingToDo,
    /// A remedy is one of several outlets, which off alone leave the machine on.
    LoneOutlet,
    /// Nobody tried the outlets by which a remedy would switch the machine off, and nobody answers for them.
    WiringNotVerified,
    /// It switches nothing off, and nobody answers for what cuts storage.
    StorageNotTrusted,
}

impl core::fmt::Display for PlanRefusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::CutsItselfOff => {
                "the plan cuts the node's way to the API server and has no power method, so the \
                 node could never come back; add one, or set parkIsolated: true"
            }
            Self::NothingToDo => "the plan neither isolates nor switches off",
            Self::LoneOutlet => {
                "a remedy is a method that switches one of several outlets, and off alone it leaves \
                 the machine on; make the remedy fence, or say soleFeed: true if it is the only one"
            }
            Self::WiringNotVerified => {
                "the wiring of its outlets was never verified, so they are not switched; run node-remedy \
                 verify-wiring NODE, or set trustWiring: true in each method (plugins from outside, and methods whose \
                 action is reset, always need trustWiring)"
            }
            Self::StorageNotTrusted => {
                "it only cuts storage, and only the configuration says that these ports are this machine's, so nothing \
                 would be released; set trustWiring: true in each method with storageDrivers"
            }
        })
    }
}

/// Decides whether to open an incident: threshold, then gate. The slot is the caller's to take.
pub fn open(opening: &Opening<'_>, now: Time) -> OpenDecision {
    let Opening { plan, policy, view, epoch, process } = *opening;
    if let Some(refusal) = refuse_plan(plan, policy) {
        return OpenDecision::Refuse(refusal);
    }
    let wait = |hold, next_look| OpenDecision::Wait { hold, next_look };
    if view.freshness == Freshness::Cached || !view.taken_at.is_within(crate::VIEW_AGE_MAX, now) {
        return wait(Hold::StaleView, Some(now));
    }
    let Some(node) = view.node.as_ref().filter(|node| node.uid == plan.node.uid) else {
        return wait(Hold::TriggerClear, None);
    };
    match view.trigger {
        Crossing::Clear { next_look, .. } => return wait(Hold::TriggerClear, next_look),
        Crossing::Unclear => return wait(Hold::TriggerClear, None),
        Crossing::Ripening { crosses_at, .. } => {
            return wait(Hold::NotYet { until: crosses_at }, Some(crosses_at));
        }
        Crossing::Crossed { .. } => {}
    }
    if !view.gate.refusals.is_empty() {
        return wait(Hold::Gate(view.gate.refusals.clone()), view.gate.next_look);
    }
    OpenDecision::Open(Box::new(Record {
        phase: Phase::Waiting,
        entered_at: now,
        opened_at: now,
        attempt: 1,
        phase_first: OpId(1),
        retries: 0,
        restarts: 0,
        remedy_step: 0,
        jobs: Vec::new(),
        decisions: Vec::new(),
        epoch,
        process: String::from(process),
        liveness_at_open: node.liveness.clone(),
        baseline: None,
        operations: Vec::new(),
        next_operation: OpId(1),
        found_off: Vec::new(),
        identified: Vec::new(),
        failed: Vec::new(),
        proof: None,
        released: None,
        first_released_at: None,
        partly_released_at: None,
        cut_off: None,
        handed_over_at: None,
        marks: Marks::default(),
        slot: Slot::Held,
        goal: Goal::BringBack,
        resume: None,
        gate_closed_at: None,
        dump_held_at: None,
        unreachable_at: None,
        unreachable: None,
        on_failed: Vec::new(),
        parked: None,
        aborted_at: None,
        request: None,
    }))
}

/// What is wrong with a plan as such.
pub fn refuse_plan(plan: &Plan, policy: &IncidentPolicy) -> Option<PlanRefusal> {
    if !plan.fences() {
        return None;
    }
    if plan.lone_outlet().is_some() {
        return Some(PlanRefusal::LoneOutlet);
    }
    if guard(Bug::UnverifiedPlugTrusted, plan.lacks_outlets()) {
        return Some(PlanRefusal::WiringNotVerified);
    }
    let releases_by = |grade| policy.grades.contains(&grade);
    // A silence and a crash dump need no cut to release something.
    if releases_by(Grade::StorageFenced)
        && ![Grade::Partition, Grade::KdumpSeen].into_iter().any(releases_by)
        && plan.lacks_trusted_storage()
    {
        return Some(PlanRefusal::StorageNotTrusted);
    }
    let cuts_itself_off = |takes_off: fn(&Plan, Remedy) -> bool| {
        let is_left = |is_cut_off, remedy| {
            (is_cut_off || plan.cuts_api_path(remedy)) && !takes_off(plan, remedy)
        };
        plan.remedies().fold(false, is_left)
    };
    if policy.isolated_for_good == IsolatedForGood::Refuse {
        if cuts_itself_off(Plan::takes_off) {
            return Some(PlanRefusal::CutsItselfOff);
        }
        if cuts_itself_off(Plan::surely_takes_off) {
            return Some(PlanRefusal::WiringNotVerified);
        }
    }
    let does = |remedy| {
        let (isolation, power) = (plan.isolation_of(remedy), plan.power_of(remedy));
        !isolation.is_empty() || !power.is_empty()
    };
    let mut of_plan = plan.remedies().filter(|remedy| remedy.is_of_plan());
    (!of_plan.any(does)).then_some(PlanRefusal::NothingToDo)
}
