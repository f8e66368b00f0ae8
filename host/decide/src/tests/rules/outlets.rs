//! Rule P8 for outlets, which know no machine: who tried them, and who answers for them.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use crate::tests::fixtures::{BOOT, bmc_plan, failed, power, signs, stage};
use crate::tests::story::{Story, honest};
use crate::*;

/// A plug that was tried needs no wait for its neighbours, and is believed no further than any other.
#[test]
fn p8_a_plug_that_was_tried_needs_no_wait_and_is_believed_no_further() {
    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Verified;
    let mut tried = Story::new(plan.clone(), RunPolicy::default());
    tried.view.neighbours = Neighbours::Awaited;
    tried.until_call(Action::Off);
    let cut_at = tried.now;
    tried.until(Phase::Releasing);
    assert!(tried.now.since(cut_at) < Span::seconds(20), "no two Lease intervals");

    let mut alive = Story::new(plan.clone(), RunPolicy::default());
    alive.until(Phase::VerifyingOff);
    for life in 10..200 {
        alive.view.node.iter_mut().for_each(|node| node.signs = signs(BOOT, life));
        if alive.record.phase != Phase::Parked {
            alive.go();
        }
    }
    assert_eq!(alive.parked(), Some(&ParkReason::AliveThoughOff));
    assert_eq!((alive.count(Action::On), alive.released()), (1, false));

    // Of two feeds one was tried: the other one is still doubted.
    plan.methods[0].kind = Kind::Power(Feed::Part);
    let mut second = plan.methods[0].clone();
    second.binding = Binding::Labelled;
    plan.methods.push(second);
    plan.power = vec![stage(Execution::All, &[0, 1])];
    let mut half = Story::new(plan, RunPolicy::default());
    half.until(Phase::VerifyingOff);
    half.view.neighbours = Neighbours::Silent("node-b".to_string());
    half.until(Phase::Parked);
    assert!(matches!(half.parked(), Some(ParkReason::WrongPlug { .. })));
}

/// Outlets that nobody tried and nobody answers for are not even read: a BMC beside them proves alone, and without one the
/// plan is refused.
#[test]
fn p8_an_outlet_that_nobody_tried_is_neither_switched_nor_believed() {
    let mut plan = bmc_plan();
    plan.methods.extend(["pdu-a", "pdu-b"].map(|name| power(name, Feed::Part)));
    for outlet in &mut plan.methods[1..] {
        outlet.binding = Binding::Unverified;
    }
    plan.power = vec![stage(Execution::OnlyOne, &[0]), stage(Execution::All, &[1, 2])];
    let mut beside = Story::new(plan.clone(), RunPolicy::default());
    beside.until_released();
    assert_eq!(beside.plugs, [PlugState::Off, PlugState::On, PlugState::On]);
    assert!(beside.record.operations.iter().all(|one| one.method == 0));

    let mut dead =
        Story::new(plan.clone(), RunPolicy { retries: 0, restarts: 0, ..RunPolicy::default() });
    dead.device = Box::new(|operation, plugs| match operation.method {
        0 => failed(FailureKind::Denied),
        _ => honest(operation, plugs),
    });
    dead.until(Phase::Parked);
    assert!(!dead.released() && dead.hit(Rule::P8));
    assert_eq!(dead.plugs[1..], [PlugState::On; 2]);

    let refused = |plan: &Plan| refuse_plan(plan, &RunPolicy::default());
    assert_eq!(refused(&plan), None);
    plan.methods[2].must_success = true;
    assert_eq!(refused(&plan), Some(PlanRefusal::WiringNotVerified), "it would fail");
    plan.power.remove(0);
    assert_eq!(refused(&plan), Some(PlanRefusal::WiringNotVerified));
    plan.methods[1].binding = Binding::Verified;
    assert_eq!(refused(&plan), Some(PlanRefusal::WiringNotVerified), "one of two");
    plan.methods[2].binding = Binding::Labelled;
    assert_eq!(refused(&plan), None);
    plan.methods[0].binding = Binding::Unverified;
    plan.power = vec![stage(Execution::All, &[0])];
    assert_eq!(refused(&plan), Some(PlanRefusal::WiringNotVerified), "the only feed");
}
