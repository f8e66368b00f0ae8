//! Tests of `node_remedy_observe::incident_rate` in the model cluster or a simulated run.

use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Created;
use kube::ResourceExt as _;
use node_remedy_api::annotations::APPROVE;
use node_remedy_api::nodefence::{FinalReason, NodeFence, Phase};
use node_remedy_api::time::Moment;
use node_remedy_decide::{Ending, IncidentView, Incidents, Time};
use node_remedy_model_cluster::interceptor::Open;
use node_remedy_observe::incident_rate::*;
use node_remedy_runtime::clock::timestamp;
use node_remedy_simulate::testing::{example, play_behind, run_of_a_failed_on};

#[test] // promise: G8, G13
fn what_became_of_an_incident_is_read_from_its_record() {
    let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
    let mut one = played.collected.incidents.into_values().next().unwrap().0;
    one.metadata.creation_timestamp = None;
    let change = |one: &mut NodeFence, phase, reason, at: u64| {
        let status = one.status.as_mut().unwrap();
        (status.phase, status.final_reason) = (phase, reason);
        (status.opened_at, status.entered_at) = (Moment::from_ms(7), Moment::from_ms(at));
    };
    let rows = [
        (Phase::Final, Some(FinalReason::Remedied), Ending::Well(Time(9))),
        (Phase::Final, Some(FinalReason::Recovered), Ending::Well(Time(9))),
        (Phase::Final, Some(FinalReason::RecoveredByHand), Ending::Failed(Time(9))),
        (Phase::Final, Some(FinalReason::Aborted), Ending::Moot),
        (Phase::Final, Some(FinalReason::Replaced), Ending::Moot),
        (Phase::Final, Some(FinalReason::NodeGone), Ending::Moot),
        (Phase::Final, None, Ending::Failed(Time(9))),
        (Phase::Parked, None, Ending::Failed(Time(9))),
        (Phase::AwaitingDevice, None, Ending::Stalled(Time(9))),
        (Phase::AwaitingPower, None, Ending::None),
        (Phase::Recovering, None, Ending::None),
    ];
    for (phase, reason, ending) in rows {
        change(&mut one, phase, reason, 9);
        let name = one.name_any();
        let expected = IncidentView { name, begun_at: Time(7), created_at: Time(0), ending };
        assert_eq!(incident_of(&one), Ok(expected), "{phase:?} {reason:?}");
    }

    one.metadata.creation_timestamp = Some(Created(timestamp(Time(60_000))));
    assert_eq!(incident_of(&one).unwrap().created_at, Time(60_000), "by the API server");
    one.metadata.creation_timestamp = None;

    change(&mut one, Phase::AwaitingDevice, None, 9);
    one.status.as_mut().unwrap().unreachable_at = Some(Moment::from_ms(8));
    assert_eq!(incident_of(&one).unwrap().ending, Ending::Stalled(Time(8)), "silent since");
    change(&mut one, Phase::AwaitingPower, None, 9);
    one.spec.policy.approval = true;
    assert_eq!(incident_of(&one).unwrap().ending, Ending::Stalled(Time(9)), "not approved");
    let uid = one.uid().unwrap();
    one.annotations_mut().insert(APPROVE.to_owned(), uid);
    assert_eq!(incident_of(&one).unwrap().ending, Ending::None, "approved");

    one.status = None;
    let begun = incident_of(&one);
    let name = one.name_any();
    assert_eq!(begun, Err(format!("{name} has no record and no age")));
    one.metadata.creation_timestamp = Some(Created(timestamp(Time(60_000))));
    let begun = incident_of(&one).unwrap();
    assert_eq!(begun.ending, Ending::None, "its record is about to be written");
    one.metadata.creation_timestamp = None;
    let unread = incidents_of([incident_of(&one)].into_iter());
    let why = format!("{} has no record and no age", one.name_any());
    assert_eq!(unread, Incidents::Unread { why });
}

#[test]
fn one_that_was_parked_failed_then_whatever_came_later() {
    let played = run_of_a_failed_on();
    let mut parked = played.collected.incidents.into_values().next().unwrap().0;
    let at = parked.status.as_ref().unwrap().parked.as_ref().unwrap().at;
    let status = parked.status.as_mut().unwrap();
    status.phase = Phase::Final;
    status.final_reason = Some(FinalReason::RecoveredByHand);
    status.entered_at = Moment::from_ms(at.ms + 5_000);
    assert_eq!(incident_of(&parked).unwrap().ending, Ending::Failed(Time(at.ms)));
}
