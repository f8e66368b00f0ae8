//! Tests of `node_remedy_incident::reconcile` in the model cluster or a simulated run.

use std::rc::Rc;

use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::Record;
use node_remedy_incident::reconcile::*;
use node_remedy_model_cluster::interceptor::Open;
use node_remedy_simulate::testing::{example, play_behind};

/// The last record of an incident, and its NodeFence.
fn recorded() -> (NodeFence, Record) {
    let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
    let (_, (nodefence, _, record)) = played.collected.incidents.into_iter().next().unwrap();
    (nodefence, record)
}

#[test]
fn an_older_leader_leaves_a_newer_ones_record_alone() {
    let (nodefence, record) = recorded();
    assert!(is_of_newer_leader(&nodefence, record.epoch - 1));
    assert!(!is_of_newer_leader(&nodefence, record.epoch));
}

#[test]
fn a_call_whose_task_is_over_is_foreign_to_its_own_process() {
    let (_, mut record) = recorded();
    let (process, epoch) = (record.process.clone(), record.epoch);
    assert!(!is_foreign(&record, &process, epoch));
    assert!(is_foreign(&record, "another", epoch));
    assert!(is_foreign(&record, &process, epoch + 1));
    record.operations.last_mut().unwrap().end = None;
    assert!(is_foreign(&record, &process, epoch));
}
