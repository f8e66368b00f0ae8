//! P8: whose machine a device switches.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::driver;
use crate::tests::driver::{Driver, honest};
use crate::tests::fixtures::{UUID, bmc_plan, not_attempted, paused_by_alice};
use crate::*;

#[test] // promise: P8
fn p8_the_machine_behind_the_device_is_the_node() {
    let mut wrong = driver();
    wrong.device = Box::new(|_, _| End::Succeeded {
        state: PlugState::On,
        identity: vec![("system-uuid".to_string(), "another".to_string())],
    });
    wrong.until(Phase::Parked);
    assert!(matches!(wrong.parked(), Some(ParkReason::WrongMachine { .. })));
    assert_eq!((wrong.count(Action::Off), wrong.released()), (0, false));

    let mut mute = driver();
    mute.device = Box::new(|_, _| End::Succeeded { state: PlugState::On, identity: vec![] });
    mute.until(Phase::Parked);
    assert_eq!(mute.parked(), Some(&ParkReason::NoIdentity));

    let mut plan = bmc_plan();
    plan.methods[0].binding = Binding::Labelled;
    let mut labelled = Driver::new(plan.clone(), IncidentPolicy::default());
    labelled.until_call(Action::Off);
    let cut_at = labelled.now;
    labelled.until(Phase::Releasing);
    assert!(labelled.now.since(cut_at) >= Span::seconds(20), "two Lease intervals");

    let mut awaited = Driver::new(plan.clone(), IncidentPolicy::default());
    awaited.until(Phase::VerifyingOff);
    awaited.view.neighbours = Neighbours::Awaited;
    let since = awaited.now;
    while awaited.now.since(since) < Span::minutes(2) {
        awaited.go();
    }
    assert_eq!(awaited.record.phase, Phase::VerifyingOff, "nothing is proven while one is awaited");
    awaited.view.neighbours = Neighbours::Heard;
    awaited.until(Phase::Releasing);

    let mut crossed_wires = Driver::new(plan, IncidentPolicy::default());
    crossed_wires.until(Phase::VerifyingOff);
    crossed_wires.view.neighbours = Neighbours::Silent("node-b".to_string());
    crossed_wires.until(Phase::Parked);
    assert!(matches!(crossed_wires.parked(), Some(ParkReason::WrongPlug { .. })));
    assert_eq!(crossed_wires.count(Action::On), 1, "the neighbour is switched on again");
    crossed_wires.event(Event::Command(Command::Retry));
    crossed_wires.until_now(Span::minutes(5));
    assert_eq!(crossed_wires.record.phase, Phase::Parked);
    assert_eq!(crossed_wires.count(Action::Off), 1, "it is not cut once more");
    assert!(!crossed_wires.released() && crossed_wires.hit(Rule::P8));
}

/// A device that says so of its machine, and is honest else.
fn named(
    fields: &'static [(&'static str, &'static str)],
) -> impl Fn(&Operation, &mut [PlugState]) -> End {
    move |operation, plugs| match honest(operation, plugs) {
        End::Succeeded { state, .. } => {
            let own = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
            let identity: Vec<(String, String)> = fields.iter().map(own).collect();
            End::Succeeded { state, identity }
        }
        other @ (End::Failed(_) | End::NotAttempted(_) | End::Indeterminate) => other,
    }
}

/// A name that was asked for comes back whatever it names now; the UUID of the firmware does not.
#[test] // promise: P8
fn p8_a_device_that_contradicts_one_thing_is_not_believed_for_another() {
    let mut plan = bmc_plan();
    let expected = [("instance-id", "worker-1"), ("system-uuid", "4c4c4544")];
    plan.methods[0].binding = Binding::Reported {
        expected: expected.map(|(name, value)| (name.to_string(), value.to_string())).to_vec(),
    };
    let told = |fields| {
        let mut driver = Driver::new(plan.clone(), IncidentPolicy::default());
        driver.device = Box::new(named(fields));
        let is_other =
            |one: &Notice| matches!(one, Notice::Parked(ParkReason::WrongMachine { .. }));
        for _ in 0..40 {
            driver.go();
        }
        (driver.notices.iter().any(is_other), driver.count(Action::Off))
    };
    assert_eq!(told(&[("instance-id", "worker-1"), ("system-uuid", "4C4C4544")]), (false, 1));
    assert_eq!(told(&[("instance-id", "worker-1")]), (false, 1));
    assert_eq!(told(&[("instance-id", "worker-1"), ("system-uuid", "another")]), (true, 0));
    assert_eq!(told(&[("system-uuid", "4c4c4544"), ("instance-id", "worker-2")]), (true, 0));
}

/// Nobody but the provider knows the number of an instance; that it became another one between two reads says enough.
#[test] // promise: P8
fn p8_an_instance_that_was_made_anew_under_its_name_is_another_machine() {
    let mut driver = driver();
    driver.device = Box::new(named(&[("system-uuid", UUID), ("numeric-id", "1")]));
    driver.until_call(Action::Off);
    driver.device = Box::new(named(&[("system-uuid", UUID), ("numeric-id", "2")]));
    driver.until(Phase::Parked);
    assert!(
        matches!(driver.parked(), Some(ParkReason::WrongMachine { .. })),
        "{:?}",
        driver.parked()
    );
    assert!(!driver.released());
}

/// What keeps an incident from its off once the machine has said which one it is.
enum Pause {
    /// The gate closes.
    Gate,
    /// The slot is another incident's.
    Slot,
    /// The off is held back: the API server is slow.
    HeldBack,
    /// The device refuses the off for now.
    Refused,
    /// A person takes the yes back, and gives it again.
    Approval,
    /// Another leader takes over.
    Leader,
}

/// A number of a guest, an address or an outlet may be another machine's by the time that the pause is over.
#[test] // promise: P8
fn p8_a_machine_says_again_which_one_it_is_after_a_pause() {
    let pauses =
        [Pause::Gate, Pause::Slot, Pause::HeldBack, Pause::Refused, Pause::Approval, Pause::Leader];
    for pause in pauses {
        let needs_a_yes = matches!(pause, Pause::Approval);
        let approval =
            if needs_a_yes { Approval::Needed } else { IncidentPolicy::default().approval };
        let mut driver =
            Driver::new(bmc_plan(), IncidentPolicy { approval, ..IncidentPolicy::default() });
        driver.view.people.approved = needs_a_yes;
        let is_late = matches!(pause, Pause::HeldBack | Pause::Refused);
        if is_late {
            driver.until_call(Action::Off)
        } else {
            driver.until(Phase::PoweringOff)
        };
        let paused_at = driver.now;
        let read = driver.count(Action::Status);
        match pause {
            Pause::Gate => driver.view.gate.refusals.push(paused_by_alice()),
            Pause::Slot => driver.record.slot = Slot::Free,
            Pause::HeldBack => {
                driver.device = Box::new(|_, _| not_attempted(FailureKind::Cancelled));
            }
            Pause::Refused => driver.device = Box::new(|_, _| not_attempted(FailureKind::Busy)),
            Pause::Approval => driver.view.people.approved = false,
            Pause::Leader => {
                let epoch = driver.record.epoch + 1;
                driver.event(Event::Adopted { epoch, process: "other".to_string() });
            }
        }
        driver.go();
        driver.device = Box::new(named(&[("system-uuid", "another")]));
        driver.view.gate.refusals.clear();
        driver.view.people.approved = true;
        driver.until(Phase::Parked);
        assert!(
            matches!(driver.parked(), Some(ParkReason::WrongMachine { .. })),
            "{:?}",
            driver.parked()
        );
        assert_eq!(driver.plugs[0], PlugState::On, "after {:?}", driver.now.since(paused_at));
        assert!(driver.count(Action::Status) > read);
    }
}
