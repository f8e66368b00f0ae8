//! The exhaustive walk: every order of events in a small world, with the invariants checked at
//! each step.
//!
//! The world is one node on one or two plugs, with a device that may be dead, refuse, say yes
//! and do nothing, act without an answer or act late; a controller that may die anywhere; a
//! gate that opens and closes; a node that comes back by itself, is switched on by hand or is
//! deleted; a person who aborts, retries and confirms. It is real code on one side only: the
//! automaton. Two worlds that differ only in what time it is are one.
//!
//! Here is the world, and the tests. What can happen in it is in `moves`, what its device does
//! in `device`, what must hold in `invariants`, when two worlds are one in `same`, and the way
//! through all of them in `search`. `walk.txt`, beside this file, is what was reached:
//! `UPDATE_EXPECT=1 cargo test -p node-remedy-decide` writes it anew; read the difference.

mod device;
mod invariants;
mod moves;
mod same;
mod search;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect_file;

use self::search::explore;
use super::fixtures::{bmc_plan, liveness, lost_view, opened, power, stage};
use crate::*;

/// A machine, its device, its Node object and the controller, with what an observer knows.
#[derive(Clone, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
struct World {
    now: u64,
    record: Record,
    todo: Vec<Effect>,
    next_look: Option<Time>,
    node: bool,
    sick: bool,
    boot: u8,
    booting: bool,
    kubelet: bool,
    life: u64,
    quarantined: bool,
    out_of_service: bool,
    pods: bool,
    /// Their deletion was asked for; they go unless they are stuck.
    pods_asked: bool,
    attachment: bool,
    stuck: bool,
    plugs: Vec<bool>,
    dead: bool,
    lying: bool,
    late_off: Option<u64>,
    late_call: Option<Action>,
    other_machine: bool,
    gate_open: bool,
    slot_free: bool,
    faults: u8,
    person: u8,
    ghost: Ghost,
}

/// What the observer outside knows.
#[derive(Clone, Hash, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a small world, each by itself")]
struct Ghost {
    /// A read that began after the last off found the machine really off.
    confirmed: bool,
    /// A person saw it off.
    confirmed_by_person: bool,
    /// A sign of life was seen after that.
    life_seen: bool,
    /// An effect was sent and no read came after it, by plug.
    unread: Vec<Option<(Action, Heard)>>,
    /// How often we took the power away.
    cycles: u8,
    /// Something was released.
    released: bool,
    /// The power is away because of us.
    off_by_us: bool,
    /// Somebody switched it on by hand.
    by_hand: bool,
    /// The boot that a confirming read found ended.
    released_boot: u8,
}

/// Whether the answer to a call was heard.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Heard {
    Yes,
    No,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// The first thing to do is done; a call has this outcome.
    Act(Outcome),
    /// The remedy's plugin is asked, and thinks of this.
    Decide(usize),
    /// Time passes until the incident wants to look again.
    Wait,
    /// The process dies; of a call under way this much had happened.
    Crash(Outcome),
    Boot,
    KubeletBack,
    SwitchOnByHand,
    DeleteNode,
    GateTurns,
    LateOffLands,
    /// What held a pod whose deletion was asked for lets go: its kubelet lives again.
    HoldersLetGo,
    DeviceTurns,
    Abort,
    AbortLeaveOff,
    Retry,
    ConfirmOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Good,
    NoAnswer,
    Refused,
    Late,
    NotSent,
}

struct Setting {
    plan: Plan,
    policy: IncidentPolicy,
}

#[derive(Default)]
struct Seen {
    rules: BTreeSet<Rule>,
    transitions: BTreeMap<(String, String), u64>,
    phases: BTreeSet<String>,
}

fn phase_name(phase: Phase) -> String {
    format!("{phase:?}")
}

impl World {
    fn new(stage: &Setting, faults: u8, person: u8) -> Self {
        let now = 1_000_000;
        let record = opened(&stage.plan, &stage.policy, &lost_view(Time(now)), Time(now));
        Self {
            now,
            record,
            todo: vec![Effect::Look],
            next_look: None,
            node: true,
            sick: true,
            boot: 1,
            booting: false,
            kubelet: false,
            life: 1,
            quarantined: false,
            out_of_service: false,
            pods: true,
            pods_asked: false,
            attachment: true,
            stuck: false,
            plugs: vec![true; stage.plan.methods.len()],
            dead: false,
            lying: false,
            late_off: None,
            late_call: None,
            other_machine: false,
            gate_open: true,
            slot_free: true,
            faults,
            person,
            ghost: Ghost { unread: vec![None; stage.plan.methods.len()], ..Ghost::default() },
        }
    }

    fn on(&self) -> bool {
        self.plugs.iter().any(|plug| *plug)
    }

    fn view(&self) -> View {
        let mut view = lost_view(Time(self.now));
        view.trigger = if self.sick {
            Crossing::Crossed { since: Time(0) }
        } else {
            Crossing::Clear { ready: true, next_look: None }
        };
        if !self.gate_open {
            view.gate.refusals.push(Refusal::NoLease);
        }
        view.node = if self.node { view.node } else { None };
        if let Some(node) = view.node.as_mut() {
            node.liveness = liveness(&format!("boot-{}", self.boot), self.life);
            node.quarantined = self.quarantined;
            node.out_of_service = self.out_of_service;
            node.out_of_service_by_us = self.out_of_service;
        }
        if !self.pods {
            view.pods.retain(|pod| pod.exempt.is_some());
        }
        for pod in view.pods.iter_mut().filter(|pod| self.pods_asked && pod.exempt.is_none()) {
            pod.deletion = Deletion::AtOnce;
        }
        if !self.attachment {
            view.attachments.clear();
        }
        view
    }
}

fn over(phase: Phase) -> bool {
    matches!(phase, Phase::Final(_) | Phase::Parked)
}

/// Short times, so that few looks cover them.
fn short_policy() -> IncidentPolicy {
    IncidentPolicy {
        retries: 1,
        restarts: 1,
        off_timeout: Span::seconds(2),
        on_timeout: Span::seconds(2),
        release_timeout: Span::seconds(6),
        cleanup_timeout: Span::seconds(10),
        recover_timeout: Span::seconds(10),
        gate_timeout: Span::seconds(4),
        device_timeout: Span::seconds(10),
        ..IncidentPolicy::default()
    }
}

#[test]
fn every_order_of_events_around_one_bmc() {
    let once =
        Setting { plan: bmc_plan(), policy: IncidentPolicy { restarts: 0, ..short_policy() } };
    let mut seen = Seen::default();
    explore("two faults", &once, World::new(&once, 2, 0), &mut seen);
    let again = Setting { plan: bmc_plan(), policy: short_policy() };
    explore("one fault, a person", &again, World::new(&again, 1, 1), &mut seen);
    explore("lying", &again, World { lying: true, ..World::new(&again, 1, 1) }, &mut seen);
    let other = World { other_machine: true, ..World::new(&again, 1, 1) };
    explore("another machine", &again, other, &mut seen);
    let off = World { plugs: vec![false], ..World::new(&again, 1, 1) };
    explore("found off", &again, off, &mut seen);
    let stuck = World { stuck: true, ..World::new(&once, 1, 1) };
    explore("held pods", &once, stuck, &mut seen);
    // A transition or a rule that is no longer reached is a change of behaviour: read it.
    let mut reached = String::from("# transitions\n");
    reached.extend(seen.transitions.keys().map(|(from, to)| format!("{from} -> {to}\n")));
    let rules: Vec<&str> = seen.rules.iter().map(|rule| rule.name()).collect();
    reached.extend(["# rules\n".to_string(), rules.join(" "), "\n".to_string()]);
    expect_file!["walk.txt"].assert_eq(&reached);
    assert_eq!(seen.phases.len(), PHASES_REACHED, "{:?}", seen.phases);
}

/// Every phase that an incident can rest in here, and every end that this world can come to.
const PHASES_REACHED: usize = 17;

#[test]
fn every_order_of_events_around_two_feeds() {
    let mut plan = bmc_plan();
    plan.methods = vec![power("pdu-a", Feed::Part), power("pdu-b", Feed::Part)];
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let policy = IncidentPolicy { restarts: 0, ..short_policy() };
    let stage = Setting { plan, policy };
    explore("two feeds", &stage, World::new(&stage, 1, 0), &mut Seen::default());
}

#[test]
fn every_order_of_events_around_one_method_before_the_fence() {
    let remedy_step = |remedy| {
        let (name, period) = (format!("{remedy:?}"), Span::seconds(4));
        RemedyStep { name, remedy, period, clean: false }
    };
    let ladder = vec![remedy_step(Remedy::Method(0)), remedy_step(Remedy::Fence)];
    let policy = IncidentPolicy { restarts: 0, ..short_policy() };
    for power in [Vec::new(), bmc_plan().power] {
        let beside = if power.is_empty() { vec![0] } else { Vec::new() };
        let ladder = if power.is_empty() { vec![ladder[0].clone()] } else { ladder.clone() };
        let plan = Plan { power, beside, ladder, ..bmc_plan() };
        let stage = Setting { plan, policy: policy.clone() };
        explore("one method", &stage, World::new(&stage, 1, 1), &mut Seen::default());
    }
}

#[test]
fn every_order_of_events_around_a_plugin_that_decides_anything() {
    let (name, period) = ("any".to_string(), Span::seconds(4));
    let ladder = vec![RemedyStep { name, remedy: Remedy::Plugin, period, clean: false }];
    let policy = IncidentPolicy { restarts: 0, ..short_policy() };
    let stage = Setting { plan: Plan { ladder, ..bmc_plan() }, policy };
    explore("a plugin", &stage, World::new(&stage, 1, 0), &mut Seen::default());
}
