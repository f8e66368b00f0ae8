//! Tests of `node_remedy_incident::repeat_alarm` in the model cluster or a simulated run.

use std::cell::Cell;
use std::rc::Rc;

use node_remedy_api::time::Moment;
use node_remedy_incident::repeat_alarm::*;
use node_remedy_model_cluster::interceptor::{Interceptor, Open, Request};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};

/// Warnings of repeated incidents.
#[derive(Default)]
struct Warned(Cell<u32>);

impl Interceptor for Warned {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.resource == "events" && request.verb == "create" {
            let event = request.object().unwrap_or_default();
            let is_it = event["reason"] == "RepeatedIncidents" && event["type"] == "Warning";
            self.0.set(self.0.get() + u32::from(is_it));
        }
        Ok(())
    }
}

/// A node is lost at one minute and at twenty-five.
#[test]
fn a_node_that_is_lost_again_is_warned_of_where_the_policy_says_how_often() {
    for (alarm, warnings) in [
        ("{ count: 2, window: 1h }", 1),
        ("{ count: 2, window: 15m }", 0),
        ("{ count: 3, window: 1h }", 0),
    ] {
        let policy = format!(
            "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: RemedyConfiguration, \
             metadata: {{ name: all }}, spec: {{ thresholdConfigs: [{{ nodeLeaseAge: 20s, \
             remedy1: [{{ name: fence }}] }}], policies: {{ repeatAlarm: {alarm} }} }} }}"
        );
        let again = "faults:\n- { at: 25m, kubeletStops: node-a }";
        let run = example("lost-node.yaml", |text| {
            let text = text.replace("- file: ../config/remedy.yaml", &policy);
            text.replace("duration: 10m", "duration: 30m").replace("faults:", again)
        });
        let warned = Rc::new(Warned::default());
        let played = play_behind(&run, &warned);
        assert_eq!((warned.0.get(), played.collected.incidents.len()), (warnings, 2), "{alarm}");
    }
}

#[test]
fn only_incidents_of_the_node_within_the_time_count() {
    let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
    let opened = played.collected.incidents.into_values().next().unwrap().0;
    let other = |name: &str, node: &str, at: u64| {
        let mut one = opened.clone();
        one.metadata.name = Some(name.to_owned());
        one.spec.node.name = node.to_owned();
        one.status.as_mut().unwrap().opened_at = Moment::from_ms(at);
        one
    };
    let node = opened.spec.node.name.clone();
    let all = [
        opened.clone(),
        other("before", &node, 99),
        other("within", &node, 100),
        other("elsewhere", "another", 200),
    ];
    assert_eq!(incidents_since(all.iter(), &opened, 100), 2);
}
