//! A remedy that is one method of the plan: that and nothing else is cut, proof and the way back are
//! those of the whole plan, and a remedy that cannot help does not keep the next one waiting.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::cutting_plan;
use crate::tests::driver::{Driver, honest, silent};
use crate::tests::fixtures::{BOOT, bmc_plan, not_attempted, power, stage, succeeded};
use crate::*;

const PERIOD: Span = Span::minutes(3);
const BMC: MethodIndex = 0;
/// What only a remedy names.
const BESIDE: MethodIndex = 1;

fn remedy_step(name: &str, remedy: Remedy) -> RemedyStep {
    RemedyStep { name: name.to_string(), remedy, period: PERIOD, clean: false }
}

fn method(index: MethodIndex) -> RemedyStep {
    remedy_step("method", Remedy::Method(index))
}

fn fence() -> RemedyStep {
    remedy_step("fence", Remedy::Fence)
}

/// A BMC that a stage names, and a method of this kind that none does.
fn plan_with(kind: Kind, ladder: Vec<RemedyStep>) -> Plan {
    let mut plan = bmc_plan();
    plan.methods.push(Method { kind, ..power("beside", Feed::Whole) });
    Plan { beside: vec![BESIDE], ladder, ..plan }
}

fn driver(plan: Plan) -> Driver {
    Driver::new(plan, IncidentPolicy::default())
}

fn cut(driver: &Driver) -> Vec<(MethodIndex, Action)> {
    let cuts = |call: &&(MethodIndex, Action)| matches!(call.1, Action::Off | Action::Reset);
    driver.calls.iter().filter(cuts).copied().collect()
}

#[test]
fn one_method_of_power_is_switched_and_proves_like_the_whole_plan() {
    let plan = cutting_plan(Kind::Fabric(Path::ApiServer));
    let mut driver = driver(Plan { ladder: vec![method(BMC)], ..plan });
    driver.until(Phase::AwaitingHealthy);
    assert!(driver.released());
    assert_eq!(
        driver.record.proof.as_ref().map(|proof| proof.grade),
        Some(Grade::PowerOffVerified)
    );
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(cut(&driver), [(BMC, Action::Off)], "isolation is no part of it");
    assert_eq!(driver.plugs, vec![PlugState::On; 2]);
}

/// A machine that somebody switched off: a reset cannot help, and it is switched on again. Its BMC still tells the
/// off of before, by whichever method it is asked: that is no proof.
#[test]
fn a_machine_that_one_method_switched_on_is_not_found_off_by_another() {
    let mut driver = driver(plan_with(Kind::ResetOnly, vec![method(BESIDE), fence()]));
    driver.plugs = vec![PlugState::Off; 2];
    driver.device = Box::new(|operation, plugs| match operation.action {
        // Asked off it tells the truth at last.
        Action::Off => honest(operation, plugs),
        Action::Status | Action::On | Action::Reset | Action::Monitor => succeeded(PlugState::Off),
    });
    driver.until(Phase::Releasing);
    let ons = driver.calls.iter().position(|(_, action)| *action == Action::On);
    let offs = driver.calls.iter().position(|(_, action)| *action == Action::Off);
    assert!(ons.is_some() && ons < offs, "{:?}", driver.calls);
}

#[test]
fn a_reset_that_does_not_help_gives_way_to_the_fence() {
    let mut driver = driver(plan_with(Kind::ResetOnly, vec![method(BESIDE), fence()]));
    driver.until(Phase::AwaitingHealthy);
    assert!(
        cut(&driver) == [(BESIDE, Action::Reset)] && !driver.released(),
        "a reset proves nothing"
    );
    let since = driver.now;
    driver.until(Phase::PoweringOn);
    assert!(driver.now.since(since) >= driver.policy.recover_timeout, "a boot takes its time");
    assert_eq!(cut(&driver), [(BESIDE, Action::Reset), (BMC, Action::Off)]);
    driver.until(Phase::AwaitingHealthy).boots().until(Phase::Final(FinalReason::Remedied));
}

#[test]
fn a_reset_that_helps_is_the_end_of_it() {
    let mut driver = driver(plan_with(Kind::ResetOnly, vec![method(BESIDE), fence()]));
    driver.until(Phase::AwaitingHealthy).boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(cut(&driver), [(BESIDE, Action::Reset)]);
    assert!(!driver.released());
}

/// A device may take its time, and a node that woke up meanwhile is not in use before the reset came, or cannot come any more.
#[test]
fn a3_a_reset_that_may_still_come_keeps_the_node_from_use() {
    let late = Span::seconds(120);
    let ended_after = |boot: &str| {
        let mut plan = plan_with(Kind::ResetOnly, vec![method(BESIDE)]);
        plan.methods[BESIDE].late_effect = late;
        let mut driver = driver(plan);
        driver.until(Phase::AwaitingHealthy);
        let since = driver.now;
        driver.live(boot, 9).until(Phase::Final(FinalReason::Remedied));
        driver.now.since(since)
    };
    assert!(ended_after(BOOT) >= Span::seconds(110));
    assert!(ended_after("boot-2") < Span::seconds(60));
}

#[test]
fn one_method_that_cuts_is_given_back_once_the_node_is_well() {
    let mut driver = driver(plan_with(Kind::Fabric(Path::Other), vec![method(BESIDE)]));
    driver.until(Phase::AwaitingHealthy);
    assert_eq!((driver.plugs[BESIDE], driver.plugs[BMC]), (PlugState::Off, PlugState::On));
    driver.wakes().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(cut(&driver), [(BESIDE, Action::Off)]);
    assert_eq!(driver.plugs[BESIDE], PlugState::On);
}

/// What a remedy alone switched off is ours to switch on, whatever happens to the incident.
#[test]
fn one_method_beside_the_stages_is_on_again_after_an_abort() {
    let mut driver = driver(plan_with(Kind::Power(Feed::Whole), vec![method(BESIDE)]));
    driver.until_call(Action::Off).event(Event::Command(Command::Abort));
    driver.until(Phase::Parked);
    assert_eq!(cut(&driver), [(BESIDE, Action::Off)]);
    assert_eq!(driver.plugs[BESIDE], PlugState::On);
}

#[test]
fn one_method_that_fails_gives_way_at_once() {
    for (kind, action) in [
        (Kind::ResetOnly, Action::Reset),
        (Kind::Fabric(Path::Other), Action::Off),
        (Kind::Power(Feed::Whole), Action::Off),
    ] {
        let mut driver = driver(plan_with(kind, vec![method(BESIDE), fence()]));
        driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
            (BESIDE, Action::Off | Action::Reset) => not_attempted(FailureKind::Denied),
            (_, _) => honest(operation, plugs),
        });
        driver.until(Phase::VerifyingOff).until(Phase::AwaitingHealthy);
        assert!(driver.hit(Rule::A11), "{action:?}");
        assert_eq!(cut(&driver).last(), Some(&(BMC, Action::Off)), "{action:?}");
        let told = |notice: &Notice| matches!(notice, Notice::RemedyFailed(ParkReason::MethodFailed { method, .. }) if method == "beside");
        assert!(driver.notices.iter().any(told), "{:?}", driver.notices);
    }
}

#[test]
fn one_method_that_fails_and_is_the_last_remedy_is_told_to_a_person() {
    let mut driver = driver(plan_with(Kind::ResetOnly, vec![method(BESIDE)]));
    driver.device = Box::new(|operation, plugs| match operation.action {
        Action::Reset => not_attempted(FailureKind::Denied),
        Action::Off | Action::On | Action::Status | Action::Monitor => honest(operation, plugs),
    });
    driver.until(Phase::Parked);
    let (method, detail) = ("beside".to_string(), "detail".to_string());
    assert_eq!(driver.parked(), Some(&ParkReason::MethodFailed { method, detail }));
    assert!(!driver.released());
}

/// It switches nothing on; and it is tried once, however often the fence may be.
#[test]
fn a_reset_of_a_machine_that_is_off_gives_way_at_once() {
    let plan = plan_with(Kind::ResetOnly, vec![method(BESIDE), fence()]);
    let mut driver = Driver::new(plan, IncidentPolicy { restarts: 3, ..IncidentPolicy::default() });
    driver.plugs = vec![PlugState::Off; 2];
    driver.until(Phase::VerifyingOff);
    assert_eq!(cut(&driver), [(BMC, Action::Off)], "it was switched on again before that");
    let (method, detail) = ("beside".to_string(), "the machine is off".to_string());
    let told = Notice::RemedyFailed(ParkReason::MethodFailed { method, detail });
    assert!(driver.notices.contains(&told), "{:?}", driver.notices);
    driver.until(Phase::AwaitingHealthy).boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(driver.record.found_off, [BESIDE]);
}

/// A day is for devices that nothing else stands in for.
#[test]
fn one_method_of_a_silent_device_gives_way_after_its_period() {
    let mut driver = driver(plan_with(Kind::ResetOnly, vec![method(BESIDE), fence()]));
    driver.device = Box::new(|operation, plugs| match operation.method {
        BESIDE => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingDevice);
    let since = driver.now;
    driver.until(Phase::VerifyingOff);
    let waited = driver.now.since(since);
    assert!(waited >= PERIOD.times(2), "once for the device, once for the node");
    assert!(waited < PERIOD.times(3), "nothing was sent, so nothing boots: {waited:?}");
    assert_eq!(cut(&driver), [(BMC, Action::Off)]);
}

#[test]
fn a_method_that_cannot_be_a_remedy_is_refused() {
    let refusal = |plan: &Plan| refuse_plan(plan, &IncidentPolicy::default());
    let outlet = plan_with(Kind::Power(Feed::Part), vec![method(BESIDE)]);
    assert_eq!(refusal(&outlet), Some(PlanRefusal::LoneOutlet));
    let watch = plan_with(Kind::Watch, vec![method(BESIDE)]);
    assert_eq!(refusal(&watch), Some(PlanRefusal::NothingToDo));
    let cuts = plan_with(Kind::Fabric(Path::ApiServer), vec![method(BESIDE)]);
    assert_eq!(refusal(&cuts), Some(PlanRefusal::CutsItselfOff));
    let then_fence = Plan { ladder: vec![method(BESIDE), fence()], ..cuts.clone() };
    assert_eq!(refusal(&then_fence), None);
    let then_reset = Plan { power: vec![], ..then_fence };
    assert_eq!(refusal(&then_reset), Some(PlanRefusal::CutsItselfOff));
    let whole = Plan { isolation: vec![stage(Execution::All, &[BESIDE])], ..cuts };
    assert_eq!(refusal(&Plan { ladder: vec![method(BMC)], ..whole }), None);
}

/// An outlet takes a BMC's power with the machine's: what was cut before is given back on the outlet's word.
#[test]
fn a_bmc_without_power_is_not_waited_for_on_the_way_back() {
    let mut plan = cutting_plan(Kind::Fabric(Path::Other));
    let (port, outlet) = (1, 2);
    plan.methods.push(power("outlet", Feed::Whole));
    plan.beside = vec![outlet];
    plan.ladder = vec![method(port), method(outlet), fence()];
    let mut driver = driver(plan);
    driver.device = Box::new(move |operation, plugs| match operation.method {
        BMC if plugs[outlet] == PlugState::Off => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    driver.until_released().until(Phase::AwaitingHealthy);
    assert_eq!(driver.plugs, vec![PlugState::On; 3]);
    assert!(!driver.hit(Rule::A12));
    driver.boots().until(Phase::Final(FinalReason::Remedied));
    assert_eq!(cut(&driver), [(port, Action::Off), (outlet, Action::Off)]);
}
