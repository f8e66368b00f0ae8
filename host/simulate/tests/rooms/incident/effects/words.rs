//! Words that people say while a record is written, and records that vanish.

use node_remedy_api::annotations::APPROVE;
use serde_json::json;

use super::*;

/// Somebody takes an approval back in the very moment in which the intent of the first off is written. Watches tell of it later.
struct TakesBack {
    alice: ModelCluster,
    is_taken: Cell<bool>,
}

impl Interceptor for TakesBack {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let intent = request.object().filter(means_off);
        let Some(intent) = intent.filter(|_| !self.is_taken.get()) else { return Ok(()) };
        self.is_taken.set(true);
        let alice = self.alice.clone();
        let taken = async move {
            let name = intent["metadata"]["name"].as_str().unwrap().to_owned();
            let place = format!("/metadata/annotations/{}", APPROVE.replace('/', "~1"));
            let patch = json!([{ "op": "remove", "path": place }]);
            let patch = serde_json::from_value(patch).unwrap();
            alice.patch::<NodeFence>(At::cluster(&name), &patch).await.unwrap();
        };
        tokio::task::spawn_local(taken).await.unwrap();
        Ok(())
    }
}

#[test] // promise: A17
fn an_approval_that_is_taken_back_while_the_intent_is_written_holds_the_off_back() {
    let change = |text: String| {
        let policy = "- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: workers }
    spec:
      thresholdConfigs:
      - nodeLeaseAge: 30s
        remedy1: [{ name: fence }]
      policies: { approval: true }";
        let faults = "faults:
- { at: 140s, apiFault: { fault: watchesLag, resource: nodefences, takes: 3s, lasts: 5m } }
- { at: 150s, operatorCommand: { node: node-a, command: approve } }";
        text.replace("- file: ../config/remedy.yaml", policy).replace("faults:", faults)
    };
    let scenario = example("lost-node.yaml", change);
    let taken = Rc::new(RefCell::new(None));
    let interceptor = |process: Process| {
        let interceptor =
            Rc::new(TakesBack { alice: process.client("alice"), is_taken: Cell::new(false) });
        taken.replace(Some(interceptor.clone()));
        interceptor
    };
    let played = simulate::play_behind(&scenario, Part::With, interceptor).unwrap();
    assert!(taken.take().unwrap().is_taken.get(), "an intent was written");
    assert_eq!(cuts(&played.facts), 0);
}

/// Whatever Events say.
#[derive(Default)]
struct Told(RefCell<Vec<(String, String)>>);

impl Interceptor for Told {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let event = request.object().filter(|_| request.resource == "events");
        if let Some(event) = event.filter(|_| request.verb == "create") {
            let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            let note = if event["note"].is_null() { text("message") } else { text("note") };
            self.0.borrow_mut().push((text("reason"), note));
        }
        Ok(())
    }
}

/// Somebody takes the finalizer off, and deletes the NodeFence of a machine that is off.
#[test]
fn whoever_is_to_switch_on_what_a_vanished_incident_left_off_is_told() {
    let faults = "faults:
- when: { fact: powerChanged, where: { node: node-a, power: \"off\" } }
  after: 100ms
  edit: { kind: NodeFence, name: node-a-1, merge: { metadata: { finalizers: null } } }
- when: { fact: powerChanged, where: { node: node-a, power: \"off\" } }
  after: 200ms
  remove: { kind: NodeFence, name: node-a-1 }";
    let scenario = example("lost-node.yaml", |text| text.replace("faults:", faults));
    let told = Rc::new(Told::default());
    play_behind(&scenario, &told);
    let told = told.0.borrow();
    let vanished = told.iter().find(|(reason, _)| reason == "NodeFenceVanished");
    let (_, text) = vanished.unwrap_or_else(|| panic!("nobody is told: {told:?}"));
    assert!(text.contains("node-a-1") && text.contains("off by us"), "{text}");
}
