//! Tests of `node_remedy_controller::refusals` in the model cluster or a simulated run.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_api::limits::REFUSAL_CHARACTERS_MAX;
use node_remedy_api::time::Moment;
use node_remedy_controller::refusals::*;
use node_remedy_decide::{Hold, Time};
use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_record::reason::Reason;
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};
use serde_json::Value;

/// The Events of a run, and what its RemedyBudget said last.
#[derive(Default)]
struct Heard {
    events: RefCell<Vec<String>>,
    refusals: RefCell<Value>,
}

impl Interceptor for Heard {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let object = request.object().unwrap_or_default();
        if request.resource == "events" && request.verb == "create" {
            let text = |field| object[field].as_str().unwrap_or_default().to_owned();
            self.events.borrow_mut().push(format!("{}: {}", text("reason"), text("note")));
        }
        if let Some(refusals) = object.pointer("/status/refusals") {
            self.refusals.replace(refusals.clone());
        }
        Ok(())
    }
}

/// A policy of the name, with these thresholds.
fn policy(name: &str, thresholds: &str) -> String {
    format!(
        "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: RemedyConfiguration, metadata: {{ name: {name} }}, \
         spec: {{ remedyConfigs: [{{ name: away, cluster: cordon }}], thresholdConfigs: [{thresholds}] }} }}"
    )
}

const SILENT: &str = "{ nodeLeaseAge: 20s, remedy1: [{ name: fence }] }";

#[test]
fn a_node_that_two_policies_select_is_left_alone_and_told_of() {
    let both = [policy("one", SILENT), policy("two", SILENT)].join("\n");
    let run =
        example("lost-node.yaml", |text| text.replace("- file: ../config/remedy.yaml", &both));
    let heard = Rc::new(Heard::default());
    let played = play_behind(&run, &heard);
    assert!(played.collected.incidents.is_empty());
    let told = heard.events.borrow().join("\n");
    assert!(told.starts_with("NotReady: ") && told.lines().count() == 1, "{told}");
    assert!(told.contains("one") && told.contains("two"), "{told}");
}

#[test]
fn what_one_remedy_lacks_keeps_no_other_threshold_waiting() {
    let ill = "{ nodeConditionType: Ready, nodeConditionStatus: false, nodeConditionPeriod: 5s, \
               remedy1: [{ name: away }] }";
    let thresholds = format!("{SILENT}, {ill}");
    let run = example("lost-node.yaml", |text| {
        let text = text.replace("- file: ../config/remedy.yaml", &policy("all", &thresholds));
        text.replace("name: bmc-credentials", "name: other-credentials")
    });
    let heard = Rc::new(Heard::default());
    let played = play_behind(&run, &heard);
    let remedies = played.collected.incidents.values().map(|(one, ..)| one.spec.remedy.clone());
    assert_eq!(remedies.collect::<Vec<_>>(), ["away"], "{:?}", heard.events);
    assert!(heard.events.borrow()[0].contains("bmc-credentials"), "{:?}", heard.events);
}

#[test]
fn nothing_is_refused_of_a_node_that_is_gone() {
    for (deletes, lines) in [(false, 1), (true, 0)] {
        let run = example("lost-node.yaml", |text| {
            let text = text.replace("name: bmc-credentials", "name: other-credentials");
            let more = if deletes { "\n- { at: 5m, deleteNode: node-a }" } else { "" };
            text.replace("kubeletStops: node-a }", &format!("kubeletStops: node-a }}{more}"))
        });
        let heard = Rc::new(Heard::default());
        play_behind(&run, &heard);
        let told = heard.refusals.borrow();
        assert_eq!(told.as_array().map(Vec::len), Some(lines), "{:?}", heard.events);
    }
}

/// All lines are written at once: one that is refused would take the others with it.
#[test]
fn a_reason_is_as_long_as_the_api_server_takes_it() {
    let line_of = |what: String| line("n", &Reason::NotReady(what), None, Time(1)).sentence;
    let fits = "ä".repeat(REFUSAL_CHARACTERS_MAX);
    assert_eq!(line_of(fits.clone()), fits);
    let cut = line_of(format!("{fits}ä"));
    assert_eq!(cut.chars().count(), REFUSAL_CHARACTERS_MAX);
    assert!(cut.starts_with("ää") && cut.ends_with("ä…"));
}

#[test]
fn a_reason_is_refused_by_since_it_was_first_said() {
    let missing = Reason::NotReady("no Secret".to_owned());
    let first = line("n", &missing, None, Time(1));
    assert_eq!((first.since, first.last), (Moment::from_ms(1), Moment::from_ms(1)));
    let again = line("n", &missing, Some(&first), Time(9));
    assert_eq!((again.since, again.last), (Moment::from_ms(1), Moment::from_ms(9)));
    let other = line("n", &Reason::Hold(Hold::NoSlot), Some(&again), Time(10));
    assert_eq!((other.guard.as_str(), other.since), ("NoSlot", Moment::from_ms(10)));
}
