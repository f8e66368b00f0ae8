//! Slots that were taken for a NodeFence that never came to be: given back at once where the API server surely
//! made none, found and dropped where nobody knows.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::testing::{example, play_behind};
use serde_json::Value;

use crate::incident::effects::{budget_of, cuts};

/// An API server that makes no NodeFence for one node, and the holders of each budget as it was written.
struct MakesNone {
    node: &'static str,
    answer: ClusterError,
    holders: RefCell<Vec<Vec<String>>>,
}

impl MakesNone {
    fn of(node: &'static str, answer: ClusterError) -> Rc<Self> {
        Rc::new(Self { node, answer, holders: RefCell::default() })
    }

    /// Whether somebody held a slot for the node, and whether somebody does at the end.
    fn held(&self) -> (bool, bool) {
        let holders = self.holders.borrow();
        let is_its = |all: &Vec<String>| all.iter().any(|one| one.starts_with(self.node));
        (holders.iter().any(is_its), holders.last().is_some_and(is_its))
    }
}

impl Interceptor for MakesNone {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let is_created = request.verb == "create" && request.resource == "nodefences";
        let is_its = |object: &Value| object["spec"]["node"]["name"] == self.node;
        if is_created && request.object().as_ref().is_some_and(is_its) {
            return Err(self.answer.clone());
        }
        Ok(())
    }

    async fn answer(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if let Some(budget) = budget_of(request) {
            let held = budget["spec"]["inFlight"].as_array().cloned().unwrap_or_default();
            let names = held.iter().filter_map(|one| one["nodeFence"].as_str().map(str::to_owned));
            self.holders.borrow_mut().push(names.collect());
        }
        Ok(())
    }
}

#[test] // promise: A19
fn a_slot_for_a_nodefence_that_was_denied_is_given_back() {
    let denies = MakesNone::of("node-a", ClusterError::Denied("a test".to_owned()));
    let played = play_behind(&example("lost-node.yaml", |text| text), &denies);
    assert_eq!(cuts(&played.facts), 0);
    assert_eq!(denies.held(), (true, false), "{:?}", denies.holders.borrow());
}

/// a-1 waits for a person and holds no slot; one is taken for a-2, whose NodeFence is not made, and which
/// is well again when a-1 wants one.
const SCENARIO: &str = "title: a slot that nobody holds
seed: 7
duration: 12m
nodes:
- { name: a, count: 9, bootTime: 20s, labels: { node-remedy.io/fence: ipmi } }
configuration:
- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: all }
    spec:
      thresholdConfigs:
      - nodeConditionType: KernelDeadlock
        nodeConditionStatus: true
        nodeConditionPeriod: 30s
        remedy1: [{ name: fence }]
      policies: { maxInFlight: 1, approval: true }
- file: ../config/fence-ipmi.yaml
- object:
    apiVersion: v1
    kind: Secret
    metadata: { name: bmc-credentials, namespace: node-remedy }
    stringData: { username: admin, password: simulated }
faults:
- { at: 60s, nodeCondition: { node: a-1, type: KernelDeadlock, status: \"True\", reason: Task } }
- { at: 3m, nodeCondition: { node: a-2, type: KernelDeadlock, status: \"True\", reason: Task } }
- { at: 5m, nodeCondition: { node: a-2, type: KernelDeadlock, status: \"False\", reason: Fine } }
- { at: 7m, operatorCommand: { node: a-1, command: approve } }
expect:
- { fact: nodeCreated, times: 9 }
";

#[test] // promise: A19
fn an_incident_that_is_refused_its_slot_by_nobody_gets_it() {
    let silent = MakesNone::of("a-2", ClusterError::Unavailable("a test".to_owned()));
    let played = play_behind(&example("lost-node.yaml", |_| SCENARIO.to_owned()), &silent);
    assert_eq!(silent.held(), (true, false), "{:?}", silent.holders.borrow());
    assert_eq!(cuts(&played.facts), 1, "of a-1");
}
