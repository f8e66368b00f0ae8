//! Arbitrary orders of events, sensible or not: nothing is ever released without proof, and
//! nothing is sent to a device without an intent.

use alloc::string::ToString;

use super::fixtures::{
    BOOT, bmc_plan, failed, liveness, lost_view, not_attempted, opened, succeeded,
};
use crate::*;

/// A small generator: the same numbers on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const RUNS: u64 = 3_000;
const EVENTS: usize = 60;

#[test]
fn any_order_of_events_releases_nothing_without_proof() {
    assert!(releases_in_any_order(&bmc_plan()) > 50, "the orders are too wild to tell anything");
}

/// The same where a plugin decides anything.
#[test]
fn any_order_of_decisions_releases_nothing_without_proof() {
    let name = "any".to_string();
    let remedy_step =
        RemedyStep { name, remedy: Remedy::Plugin, period: Span::seconds(2), clean: true };
    let plan = Plan { ladder: alloc::vec![remedy_step], ..bmc_plan() };
    assert!(releases_in_any_order(&plan) > 20, "the orders are too wild to tell anything");
}

/// How many releases there were.
fn releases_in_any_order(plan: &Plan) -> u32 {
    let policy = IncidentPolicy { restarts: 1, ..IncidentPolicy::default() };
    let mut released = 0;
    for seed in 1..=RUNS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut now = Time(1_000_000);
        let mut record = opened(plan, &policy, &lost_view(now), now);
        for _ in 0..EVENTS {
            now = now.after(Span::seconds(dice.throw(8)));
            let view = any_view(&mut dice, now);
            let event = any_event(&mut dice, &record, &view);
            let transition = step(plan, &policy, record, event, now);
            record = transition.record;
            for effect in &transition.effects {
                released += check(effect, &record);
            }
        }
    }
    released
}

fn check(effect: &Effect, record: &Record) -> u32 {
    match effect {
        Effect::OutOfService
        | Effect::DeletePods(_)
        | Effect::Evict { at_once: true, .. }
        | Effect::DeleteAttachments(_)
        | Effect::DeleteNode => {
            let proof = record.proof.as_ref().expect("no release without proof");
            assert_eq!(proof.voided_at, None);
            if let Evidence::Reads(reads) = &proof.by {
                for read in reads {
                    let found = record.operations.iter().find(|one| one.id == *read);
                    let state = found.and_then(Operation::state);
                    assert_eq!(state, Some(PlugState::Off), "the proof's read is in the journal");
                }
            }
            1
        }
        Effect::Call(op) => {
            let open = record.operations.iter().find(|one| one.end.is_none());
            assert_eq!(open.map(|one| one.id), Some(*op));
            0
        }
        Effect::Look
        | Effect::TakeSlot
        | Effect::ReturnSlot
        | Effect::HandOver
        | Effect::Withdraw(_)
        | Effect::Quarantine
        | Effect::Unquarantine
        | Effect::Cordon
        | Effect::Uncordon
        | Effect::LiftOutOfService
        | Effect::GracefulDelete(_)
        | Effect::Evict { at_once: false, .. }
        | Effect::StartJob(_)
        | Effect::StopJob(_)
        | Effect::AskRemedy(_)
        | Effect::AnnotateNode { .. } => 0,
    }
}

fn any_view(dice: &mut Dice, now: Time) -> View {
    let mut view = lost_view(now);
    if dice.throw(12) == 0 {
        view.freshness = Freshness::Cached;
    }
    if dice.throw(12) == 0 {
        view.trigger = Crossing::Clear { ready: dice.throw(2) == 0, next_look: None };
    }
    let life = if dice.throw(10) == 0 { dice.throw(4) } else { 1 };
    let boot = if dice.throw(15) == 0 { "boot-2" } else { BOOT };
    let quarantined = dice.throw(8) > 0;
    view.node.iter_mut().for_each(|node| {
        node.liveness = liveness(boot, life);
        node.quarantined = quarantined;
    });
    if dice.throw(20) == 0 {
        view.node = None;
    }
    if dice.throw(10) == 0 {
        view.gate.refusals.push(Refusal::NoLease);
    }
    view.fence_is_due = dice.throw(30) == 0;
    view
}

fn any_choice(dice: &mut Dice) -> Choice {
    let cluster_actions =
        ["cordon", "quarantine", "drain", "release", "delete-node", "no such thing"];
    let at = usize::try_from(dice.throw(6)).expect("few");
    match dice.throw(12) {
        0 | 1 => Choice::Method("bmc".to_string()),
        2 => Choice::Method("no such method".to_string()),
        3 | 4 => Choice::Cluster(cluster_actions[at].to_string()),
        5 => Choice::Wait(Span::seconds(dice.throw(20))),
        6 => Choice::Done,
        7 => Choice::Fail("it has had enough".to_string()),
        _ => Choice::Fence,
    }
}

fn any_event<'a>(dice: &mut Dice, record: &Record, view: &'a View) -> Event<'a> {
    let asked = record.deciding().filter(|one| one.choice.is_none() || dice.throw(20) == 0);
    if let Some(asked) = asked.filter(|_| dice.throw(3) > 0) {
        let (number, choice) = (asked.number, any_choice(dice));
        return Event::Decided { number, answer: Ok(choice) };
    }
    let in_flight = record.in_flight();
    match (dice.throw(20), in_flight) {
        (0, _) => Event::Adopted { epoch: record.epoch + dice.throw(2), process: "p".to_string() },
        (1, _) => Event::Command(match dice.throw(8) {
            0 => Command::Abort,
            1 => Command::AbortLeaveOff,
            2 => Command::ConfirmOff { by: "admin".to_string(), boot_id: BOOT.to_string() },
            _ => Command::Retry,
        }),
        (2, _) => {
            Event::Slot(if dice.throw(2) == 0 { SlotAnswer::Granted } else { SlotAnswer::Refused })
        }
        (3, _) => Event::Ended { op: OpId(1), end: succeeded(PlugState::Off) },
        (_, Some(call)) => {
            let wanted = match call.action {
                Action::On => PlugState::On,
                Action::Off | Action::Status | Action::Reset | Action::Monitor => PlugState::Off,
            };
            let end = match dice.throw(12) {
                0 => End::Indeterminate,
                1 => failed(FailureKind::Device),
                2 => not_attempted(FailureKind::Unreachable),
                3 => succeeded(PlugState::On),
                4 => succeeded(PlugState::Unknown),
                _ => succeeded(wanted),
            };
            Event::Ended { op: call.id, end }
        }
        (_, None) => Event::Looked(view),
    }
}
