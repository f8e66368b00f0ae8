//! Every phase with every event, as one file of rows: what it comes to, and what is done.
//!
//! `UPDATE_EXPECT=1 cargo test -p node-remedy-decide` writes the file anew; read the difference.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect_file;

use super::driver::Driver;
use super::fixtures::{BOOT, bmc_plan, liveness, lost_view, opened, paused_by_alice, succeeded};
use crate::automaton::{Answer, EventKind, answer};
use crate::*;

const PHASES: [Phase; 17] = [
    Phase::Waiting,
    Phase::Isolating,
    Phase::Remedying,
    Phase::AwaitingPower,
    Phase::ReadingIdentity,
    Phase::PoweringOff,
    Phase::VerifyingOff,
    Phase::Releasing,
    Phase::Restoring,
    Phase::Untainting,
    Phase::PoweringOn,
    Phase::AwaitingHealthy,
    Phase::Recovering,
    Phase::AwaitingDevice,
    Phase::Backoff,
    Phase::Parked,
    Phase::Final(FinalReason::Remedied),
];

/// How far the incident of a row has come.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// Nothing was sent.
    Nothing,
    /// An off is sent and proven, and its pods are released.
    Released,
}

fn record(before: Before, phase: Phase) -> Record {
    let now = Time(1_000_000);
    let mut record = match before {
        Before::Nothing => opened(&bmc_plan(), &IncidentPolicy::default(), &lost_view(now), now),
        Before::Released => {
            let mut driver = Driver::new(bmc_plan(), IncidentPolicy::default());
            driver.until(Phase::Untainting);
            driver.record.clone()
        }
    };
    record.phase = phase;
    record.phase_first = record.next_operation;
    record.unreachable = Some(0);
    record.resume = Some(Phase::ReadingIdentity);
    let parked = Parked {
        reason: ParkReason::NotHealthy,
        at: now,
        powered_off_by_us: vec![],
        still_cut: vec![],
    };
    record.parked = (phase == Phase::Parked).then_some(parked);
    record
}

fn views(now: Time) -> Vec<(&'static str, View)> {
    let lost = lost_view(now);
    let clear = Crossing::Clear { ready: true, next_look: None };
    let mut well = View { trigger: clear.clone(), ..lost.clone() };
    well.node.iter_mut().for_each(|node| node.liveness = liveness(BOOT, 9));
    let mut booted = View { trigger: clear, ..lost.clone() };
    booted.node.iter_mut().for_each(|node| node.liveness = liveness("boot-2", 9));
    let mut closed = lost.clone();
    closed.gate.refusals.push(Refusal::InFlight { holders: vec!["node-b-1".into()], max: 1 });
    let mut paused = lost.clone();
    paused.gate.refusals.push(paused_by_alice());
    let gone = View { node: None, ..lost.clone() };
    let mut other = lost.clone();
    other.node.iter_mut().for_each(|node| node.uid = "uid-b".to_string());
    let cached = View { freshness: Freshness::Cached, ..lost.clone() };
    let old = View { taken_at: Time(0), ..lost.clone() };
    vec![
        ("lost", lost),
        ("well, same boot", well),
        ("well, new boot", booted),
        ("gate closed", closed),
        ("paused", paused),
        ("gone", gone),
        ("another uid", other),
        ("a cache's word", cached),
        ("too old", old),
    ]
}

fn row(record: Record, name: &str, event: Event<'_>, now: Time) -> String {
    let from = record.phase;
    let transition = step(&bmc_plan(), &IncidentPolicy::default(), record, event, now);
    let effects: Vec<String> = transition
        .effects
        .iter()
        .map(|effect| {
            let Effect::Call(op) = effect else { return format!("{effect:?}") };
            let call = transition.record.operations.iter().find(|one| one.id == *op);
            format!("{:?}", call.expect("journaled").action).to_lowercase()
        })
        .collect();
    let rules: Vec<&str> = transition.rules.iter().map(|rule| rule.name()).collect();
    let next = transition.next_look.map_or("-".to_string(), |at| at.since(now).to_string());
    format!(
        "{from:?} | {name} | {:?} | {} | {next} | {}\n",
        transition.record.phase,
        effects.join(", "),
        rules.join(" ")
    )
}

#[test]
fn every_phase_with_every_event() {
    let mut rows = String::from("phase | event | phase then | effects | next look | rules\n");
    for before in [Before::Nothing, Before::Released] {
        rows.extend(["# ".to_string(), format!("{before:?}\n")]);
        for phase in PHASES {
            let record = record(before, phase);
            let now = record.entered_at.max(Time(1_000_000)).after(Span::seconds(1));
            for (name, view) in views(now) {
                let name = format!("looked: {name}");
                rows.push_str(&row(record.clone(), &name, Event::Looked(&view), now));
            }
            let mut calling = record.clone();
            let op = calling.intend(0, Action::Status, now);
            let end = succeeded(PlugState::On);
            let ended = Event::Ended { op, end: end.clone() };
            rows.push_str(&row(calling.clone(), "ended: on", ended, now));
            let unknown = Event::Ended { op, end: End::Indeterminate };
            rows.push_str(&row(calling.clone(), "ended: unknown", unknown, now));
            let twice = Event::Ended { op: OpId(0), end };
            rows.push_str(&row(record.clone(), "ended: twice", twice, now));
            for (name, command) in [
                ("retry", Command::Retry),
                ("abort", Command::Abort),
                ("abort, leave off", Command::AbortLeaveOff),
                ("confirm off", Command::ConfirmOff { by: "admin".into(), boot_id: BOOT.into() }),
            ] {
                rows.push_str(&row(record.clone(), name, Event::Command(command), now));
            }
            for answer in [SlotAnswer::Granted, SlotAnswer::Refused] {
                let name = format!("slot {answer:?}").to_lowercase();
                rows.push_str(&row(record.clone(), &name, Event::Slot(answer), now));
            }
            let adopted = |epoch| Event::Adopted { epoch, process: "p2".into() };
            rows.push_str(&row(calling.clone(), "adopted with a call", adopted(2), now));
            rows.push_str(&row(record.clone(), "adopted by an older", adopted(0), now));
        }
    }
    expect_file!["table.txt"].assert_eq(&rows);
}

#[test]
fn what_is_ignored_is_named_with_why() {
    let mut ignored = 0;
    for phase in PHASES {
        for kind in EventKind::ALL {
            if let Answer::Ignore(why) = answer(phase, kind) {
                assert!(why.len() > 10, "{phase:?} {kind:?}: {why}");
                ignored += 1;
            }
        }
    }
    assert_eq!(ignored, 41);
}
