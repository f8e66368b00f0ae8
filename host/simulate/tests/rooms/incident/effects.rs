//! What the controller asks of devices and of the API server in a whole run, and when.

mod jobs;

mod slots;

mod guards;

mod words;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::annotations::ABORT;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::{Action, End, FinalReason, Operation, ParkReason, Phase, VIEW_AGE_MAX};
use node_remedy_model_cluster::client::{ModelCluster, ROUND_TRIP};
use node_remedy_model_cluster::interceptor::{Interceptor, Open, Request};
use node_remedy_observe::pruned::OUT_OF_SERVICE;
use node_remedy_runtime::cluster::annotate::annotation;
use node_remedy_runtime::cluster::{At, Cluster as _, ClusterError};
use node_remedy_simulate as simulate;
use node_remedy_simulate::testing::{example, play_behind, run_of_a_failed_on};
use node_remedy_simulate::{Part, Process};
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, Power, What};
use serde_json::Value;
use tokio::time::Instant;

/// An API server that takes its time with the first record that says: off is meant.
struct SlowIntent {
    takes: Duration,
    is_written: Cell<bool>,
}

impl SlowIntent {
    fn taking(takes: Duration) -> Rc<Self> {
        Rc::new(Self { takes, is_written: Cell::new(false) })
    }
}

impl Interceptor for SlowIntent {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.object().as_ref().is_some_and(means_off) && !self.is_written.replace(true) {
            tokio::time::sleep(self.takes).await;
        }
        Ok(())
    }
}

fn means_off(object: &Value) -> bool {
    let is_begun = |one: &Value| one["action"] == "off" && one["end"].is_null();
    object["status"]["operations"].as_array().is_some_and(|all| all.iter().any(is_begun))
}

/// How often the machine's power was cut.
fn cuts(facts: &[Fact]) -> usize {
    let is_cut = |fact: &&Fact| matches!(&fact.what, What::PowerChanged { power: Power::Off, .. });
    facts.iter().filter(is_cut).count()
}

fn is_held_back(operation: &Operation) -> bool {
    operation.action == Action::Off && operation.end.as_ref().is_some_and(End::is_held_back)
}

#[test] // promise: A1
fn a_node_that_came_back_while_the_intent_was_written_is_not_cut() {
    let comes_back =
        |text: String| text.replace("faults:", "faults:\n- { at: 100s, nodeComesBack: node-a }");
    let slow = SlowIntent::taking(Duration::from_mins(1));
    let played = play_behind(&example("lost-node.yaml", comes_back), &slow);
    assert!(slow.is_written.get(), "an off was meant");
    assert_eq!(cuts(&played.facts), 0);
    let mut ends = played.collected.incidents.values().map(|(_, _, record)| record.phase);
    assert_eq!(ends.next(), Some(Phase::Final(FinalReason::Recovered)));
}

#[test] // promise: A1
fn an_off_is_withdrawn_from_a_slow_session_when_its_node_is_back() {
    for comes_back in [true, false] {
        let run = |text: String| {
            let back = "- { when: { fact: intentRecorded, where: { node: node-a, action: 'off' } }, \
                        after: 300ms, nodeComesBack: node-a }\n";
            let slow = "- { at: 1s, bmcFault: { node: node-a, fault: delay, value: 800 } }\n";
            let happens = format!("faults:\n{slow}{}", if comes_back { back } else { "" });
            text.replace("faults:\n", &happens)
        };
        let played = play_behind(&example("lost-node.yaml", run), &Rc::new(Open));
        assert_eq!(cuts(&played.facts), usize::from(!comes_back));
        let mut journals = played.collected.journals.values();
        let offs = journals.next().unwrap().values().filter(|one| one.action == Action::Off);
        let held_back: Vec<bool> = offs.map(is_held_back).collect();
        assert_eq!(held_back, [comes_back], "held back by the host, and so no try");
    }
}

#[test]
fn an_off_that_was_held_back_is_decided_on_anew_and_costs_no_retry() {
    for (takes, held_back) in [(Duration::from_secs(6), 1), (Duration::from_secs(3), 0)] {
        let slow = SlowIntent::taking(takes);
        let played = play_behind(&example("lost-node.yaml", |text| text), &slow);
        assert_eq!(cuts(&played.facts), 1, "{takes:?}");
        let mut journals = played.collected.journals.values();
        let offs = journals.next().unwrap().values().filter(|one| one.action == Action::Off);
        let offs: Vec<&Operation> = offs.collect();
        assert_eq!(offs.iter().filter(|one| is_held_back(one)).count(), held_back, "{offs:?}");
        assert!(offs.iter().all(|one| one.attempt == 1), "{offs:?}");
    }
}

/// An API server that always takes too long with records that say: off is meant.
#[derive(Default)]
struct AlwaysSlow {
    /// Why Events were written.
    told: RefCell<Vec<String>>,
}

impl Interceptor for AlwaysSlow {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let Some(object) = &request.object() else { return Ok(()) };
        if request.resource == "events" && request.verb == "create" {
            self.told.borrow_mut().extend(object["reason"].as_str().map(str::to_owned));
        }
        if means_off(object) {
            tokio::time::sleep(Duration::from_millis(VIEW_AGE_MAX.0 + 1_000)).await;
        }
        Ok(())
    }
}

#[test] // promise: A1
fn an_api_server_that_is_always_too_slow_cuts_nothing_and_is_spoken_of() {
    let slow = Rc::new(AlwaysSlow::default());
    let played = play_behind(&example("lost-node.yaml", |text| text), &slow);
    assert_eq!(cuts(&played.facts), 0);
    let told = slow.told.borrow();
    let times = |reason: &str| told.iter().filter(|one| *one == reason).count();
    assert_eq!(times("PoweringOff"), 1, "nothing was sent: {told:?}");
    assert!((7..10).contains(&times("StaleView")), "once a minute: {told:?}");
}

/// An API server that fails one kind of request once a machine was switched off.
struct FailsAfterOff {
    verb: &'static str,
    resource: &'static str,
    is_off: Cell<bool>,
    /// Why Events were written.
    told: RefCell<Vec<String>>,
}

impl Interceptor for FailsAfterOff {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if (request.verb, &*request.resource) == (self.verb, self.resource) && self.is_off.get() {
            return Err(ClusterError::Unavailable("etcdserver: request timed out".to_owned()));
        }
        let Some(object) = &request.object() else { return Ok(()) };
        if request.resource == "events" && request.verb == "create" {
            self.told.borrow_mut().extend(object["reason"].as_str().map(str::to_owned));
        }
        self.is_off.set(self.is_off.get() || means_off(object));
        Ok(())
    }
}

#[test]
fn an_incident_that_stands_still_because_a_request_fails_is_spoken_of() {
    for (verb, resource) in [("list", "pods"), ("update", "nodefences/status")] {
        let fails = Rc::new(FailsAfterOff {
            verb,
            resource,
            is_off: Cell::new(false),
            told: RefCell::default(),
        });
        play_behind(&example("lost-node.yaml", |text| text), &fails);
        let told = fails.told.borrow();
        let times = told.iter().filter(|one| *one == "RequestsFailing").count();
        assert_eq!(times, 1, "{resource}: once in half an hour: {told:?}");
    }
}

/// An API server that fails one write of the budget, or carries it out and loses the answer.
struct FailsWrite {
    /// The write, from 0.
    failed: usize,
    is_carried_out: bool,
    written: Cell<usize>,
    /// Who holds slots, as last written.
    holders: RefCell<Value>,
}

impl FailsWrite {
    fn once(&self) -> Result<(), ClusterError> {
        if self.written.replace(self.written.get() + 1) == self.failed {
            return Err(ClusterError::Unavailable("it fails once".to_owned()));
        }
        Ok(())
    }
}

fn budget_of(request: &Request<'_>) -> Option<Value> {
    request.object().filter(|_| request.resource == "remedybudgets")
}

impl Interceptor for FailsWrite {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let fails = !self.is_carried_out && budget_of(request).is_some();
        if fails { self.once() } else { Ok(()) }
    }

    async fn answer(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let Some(budget) = budget_of(request) else { return Ok(()) };
        self.holders.replace(budget["spec"]["inFlight"].clone());
        if self.is_carried_out { self.once() } else { Ok(()) }
    }
}

#[test]
fn a_slot_is_neither_lost_nor_kept_where_the_budget_cannot_be_written_once() {
    for is_carried_out in [false, true] {
        let (mut failed, mut writes) = (0, usize::MAX);
        while failed < writes {
            let fails = Rc::new(FailsWrite {
                failed,
                is_carried_out,
                written: Cell::new(0),
                holders: RefCell::new(Value::Null),
            });
            let played = play_behind(&example("lost-node.yaml", |text| text), &fails);
            assert_eq!(cuts(&played.facts), 1, "write {failed}, {is_carried_out}");
            let holders = fails.holders.borrow();
            let held = holders.as_array().map_or(0, Vec::len);
            assert_eq!(held, 0, "write {failed}, {is_carried_out}: {holders}");
            writes = fails.written.get();
            failed += 1;
        }
        assert!(failed >= 3, "made, taken, given back: {failed}");
    }
}

/// An API server on which every request takes its time, and which notes each.
#[derive(Default)]
struct Log {
    takes: Duration,
    asked: RefCell<Vec<CallRequest>>,
}

/// A request, and when it was asked.
#[derive(Debug)]
struct CallRequest {
    at: Instant,
    what: String,
    has_proof: bool,
}

impl Interceptor for Log {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if !matches!(request.verb, "list" | "watch" | "get") {
            let object = request.object();
            self.asked.borrow_mut().push(CallRequest {
                at: Instant::now(),
                what: format!("{} {}", request.verb, request.resource),
                has_proof: object.is_some_and(|object| object["status"]["proof"].is_object()),
            });
        }
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

impl Log {
    fn of(scenario: &Scenario, takes: Duration) -> Rc<Self> {
        let log = Rc::new(Self { takes, asked: RefCell::default() });
        play_behind(scenario, &log);
        log
    }

    /// What was written, how often; leases are renewed for as long as a run is long.
    fn writes(&self) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for asked in self.asked.borrow().iter().filter(|asked| !asked.what.ends_with("leases")) {
            *writes.entry(asked.what.clone()).or_default() += 1;
        }
        writes
    }

    /// From the record that has the proof to the first delete of an attachment, which is the last
    /// kind of thing to be given away.
    fn release_took(&self) -> Duration {
        let asked = self.asked.borrow();
        let proven = asked.iter().find(|asked| asked.has_proof).unwrap();
        let released = asked.iter().find(|asked| asked.what == "delete volumeattachments").unwrap();
        released.at - proven.at
    }
}

/// An API server that is slow with pods, and remembers when it was asked for what.
#[derive(Default)]
struct SlowWithPods {
    /// When the node's pods were read last.
    looked: Cell<Option<Instant>>,
    /// How old that was at each delete.
    ages: RefCell<Vec<Duration>>,
}

impl Interceptor for SlowWithPods {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        match (request.verb, request.resource.as_str()) {
            ("list", "pods") => self.looked.set(Some(Instant::now())),
            ("delete", "pods") => {
                let age = self.looked.get().map(|at| at.elapsed());
                self.ages.borrow_mut().extend(age);
                tokio::time::sleep(SLOW).await;
            }
            ("patch", "pods/status") => tokio::time::sleep(SLOW).await,
            _ => {}
        }
        Ok(())
    }
}

/// Two of these, a mark and a delete, are more than what evidence may be old.
const SLOW: Duration = Duration::from_secs(3);

#[test] // promise: A16
fn a_long_release_stops_when_its_evidence_has_grown_old() {
    // A StatefulSet makes its pods one after the other, about one in a second.
    let many = |text: String| {
        let text = text.replace("replicas: 2", "replicas: 90").replace("at: 60s", "at: 3m");
        text.replace("duration: 10m", "duration: 20m")
    };
    let slow = Rc::new(SlowWithPods::default());
    let played = play_behind(&example("lost-node.yaml", many), &slow);
    let ages = slow.ages.borrow();
    assert!(ages.len() > 16, "more than go out at once: {}", ages.len());
    let bound = Duration::from_millis(VIEW_AGE_MAX.0);
    assert!(ages.iter().all(|age| *age <= bound), "{ages:?}");
    let (.., record) = &played.collected.incidents["node-a-1"];
    assert!(matches!(record.phase, Phase::Final(_)), "{:?}", record.phase);
}

#[test]
fn an_incident_asks_for_each_thing_once() {
    let log = Log::of(&example("lost-node.yaml", |text| text), Duration::ZERO);
    let writes = log.writes();
    let count = |what: &str| writes.get(what).copied().unwrap_or_default();
    assert_eq!(count("delete pods"), 1, "{writes:?}");
    assert_eq!(count("patch pods/status"), 1, "{writes:?}");
    assert_eq!(count("delete volumeattachments"), 1, "{writes:?}");
    assert_eq!(count("patch nodes"), 4, "quarantine, out of service, and back: {writes:?}");
    assert!(count("update nodefences/status") <= RECORDS_MAX, "{writes:?}");
}

/// Whoever counts a set's or a Job's pods is to see that this one does not run on.
#[test]
fn a_pod_is_marked_as_failed_before_it_is_gone() {
    let run = example("lost-node.yaml", |text| text);
    let played = simulate::play(&run, Part::With).unwrap();
    let lost = "default/db-0";
    let ends = played.facts.iter().filter_map(|fact| {
        if let What::PodPhase { pod, phase, .. } = &fact.what {
            return (pod == lost && phase == "Failed").then_some("failed");
        }
        let What::PodGone { pod, .. } = &fact.what else { return None };
        (pod == lost).then_some("gone")
    });
    assert_eq!(ends.collect::<Vec<_>>(), ["failed", "gone"]);
}

/// A webhook that lets nobody write the status of pods.
struct ForbidsMarks {
    forbidden: Cell<usize>,
}

impl Interceptor for ForbidsMarks {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.verb != "patch" || request.resource != "pods/status" {
            return Ok(());
        }
        self.forbidden.set(self.forbidden.get() + 1);
        Err(ClusterError::Denied("admission webhook: no".to_owned()))
    }
}

#[test]
fn a_pod_that_may_not_be_marked_is_deleted_all_the_same() {
    let interceptor = Rc::new(ForbidsMarks { forbidden: Cell::new(0) });
    let played = play_behind(&example("lost-node.yaml", |text| text), &interceptor);
    let is_gone =
        |fact: &Fact| matches!(&fact.what, What::PodGone { pod, .. } if pod == "default/db-0");
    assert!(played.facts.iter().any(is_gone));
    assert!(interceptor.forbidden.get() > 0);
}

/// Records written in an incident in which nothing goes wrong.
const RECORDS_MAX: usize = 16;

#[test]
fn a_release_waits_for_few_answers_of_the_api_server() {
    let takes = Duration::from_millis(10);
    let log = Log::of(&example("lost-node.yaml", |text| text), takes);
    let took = log.release_took();
    // The record, the pod's mark, its delete, a look and a record: five answers.
    let answers = (takes + ROUND_TRIP) * 5;
    assert!(took <= answers + takes, "{took:?} are more than {answers:?}");
}

/// Its controller makes no further pod while the one on the lost node is Terminating.
#[test]
fn a_stateful_set_grows_once_what_it_lost_is_released() {
    let run = example("lost-node.yaml", |text| {
        let grows = "faults:\n- { at: 3m, edit: { kind: StatefulSet, namespace: default, \
                     name: db, merge: { spec: { replicas: 3 } } } }";
        text.replace("volumes: true", "volumes: false").replace("faults:", grows)
    });
    for (part, runs) in [(Part::With, true), (Part::Without, false)] {
        let played = simulate::play(&run, part).unwrap();
        let is_third = |fact: &Fact| matches!(&fact.what, What::PodPhase { pod, phase, .. } if pod == "default/db-2" && phase == "Running");
        assert_eq!(played.facts.iter().any(is_third), runs, "{part:?}");
    }
}

/// Its members go one after the other, the last one first, and none behind one that stays Terminating.
#[test]
fn a_stateful_set_shrinks_once_what_it_lost_is_released() {
    // Before what it lost is released, and long after.
    for at in ["65s", "3m"] {
        let run = example("lost-node.yaml", |text| {
            let shrinks = format!(
                "faults:\n- {{ at: {at}, edit: {{ kind: StatefulSet, namespace: default, \
                 name: db, merge: {{ spec: {{ replicas: 1 }} }} }} }}"
            );
            let text = text.replace("replicas: 2", "replicas: 3");
            text.replace("kubeletStops: node-a", "kubeletStops: node-c")
                .replace("faults:", &shrinks)
        });
        let all = ["default/db-0", "default/db-1", "default/db-2"].as_slice();
        for (part, left) in [(Part::With, &all[..1]), (Part::Without, all)] {
            let played = simulate::play(&run, part).unwrap();
            let members: Vec<&str> = pods(&played.facts).into_values().collect();
            assert_eq!(members, left, "{part:?} at {at}");
        }
    }
}

/// The pods that there are in the end, by name and UID.
fn pods(facts: &[Fact]) -> BTreeMap<(&str, &str), &str> {
    let mut pods = BTreeMap::new();
    for fact in facts {
        if let What::PodCreated { pod, uid } = &fact.what {
            pods.insert((pod.as_str(), uid.as_str()), pod.as_str());
        }
        if let What::PodGone { pod, uid, .. } = &fact.what {
            pods.remove(&(pod.as_str(), uid.as_str()));
        }
    }
    pods
}

#[test]
fn a_parked_node_that_was_switched_on_by_hand_is_recovered_though_its_lease_wakes_the_incident() {
    let played = run_of_a_failed_on();
    let (.., record) = &played.collected.incidents["node-a-1"];
    assert_eq!(record.phase, Phase::Final(FinalReason::RecoveredByHand));
}

#[test]
fn a_leader_that_stood_still_declares_nobody_out_of_service() {
    // Between reading the node and writing it, and for longer than its Lease lasts.
    for ms in 2..=4 {
        let stands_still = |text: String| {
            let when = "when: { fact: proofRecorded, where: { node: node-a } }";
            let fault = format!(
                "faults:\n- {{ {when}, after: {ms}ms, controllerPaused: {{ lasts: 30s }} }}"
            );
            text.replace("\nfaults:", &format!("\ncontrollers: 2\n{fault}"))
        };
        let played = play_behind(&example("lost-node.yaml", stands_still), &Rc::new(Open));
        let declared = |fact: &&Fact| matches!(&fact.what, What::TaintAdded { key, .. } if key == OUT_OF_SERVICE);
        assert_eq!(played.facts.iter().filter(declared).count(), 1, "{ms} ms after the proof");
    }
}

#[test]
fn a_process_that_stood_still_anywhere_in_a_release_looks_again_before_it_goes_on() {
    // Its BMC switches the machine on again meanwhile.
    for ms in 1..=8 {
        let stands_still = |text: String| {
            let when = "when: { fact: proofRecorded, where: { node: node-a } }";
            let faults = format!(
                "faults:\n\
                 - {{ {when}, after: {ms}ms, controllerPaused: {{ lasts: 24s }} }}\n\
                 - {{ at: 1s, bmcFault: {{ node: node-a, fault: flip_back, value: 6500 }} }}"
            );
            text.replace("\nfaults:", &format!("\n{faults}"))
        };
        let played = play_behind(&example("lost-node.yaml", stands_still), &Rc::new(Open));
        let mut runs = true;
        for fact in &played.facts {
            if let What::PowerChanged { power, .. } = &fact.what {
                runs = *power == Power::On;
            }
            let declared =
                matches!(&fact.what, What::TaintAdded { key, .. } if key == OUT_OF_SERVICE);
            assert!(!declared || !runs, "{ms} ms after the proof");
        }
    }
}

/// Somebody aborts in the very moment in which the record of an off's end is written.
struct AbortsMeanwhile {
    alice: ModelCluster,
    is_said: Cell<bool>,
}

impl Interceptor for AbortsMeanwhile {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let Some(object) = request.object().filter(|_| request.resource == "nodefences/status")
        else {
            return Ok(());
        };
        let has_ended = |one: &Value| one["action"] == "off" && !one["end"].is_null();
        let operations = object["status"]["operations"].as_array();
        if operations.is_some_and(|all| all.iter().any(has_ended)) && !self.is_said.replace(true) {
            // As a task of its own: a whole run's stack is deep already.
            let says = say_abort(self.alice.clone(), object);
            tokio::task::spawn_local(says).await.unwrap();
        }
        Ok(())
    }
}

async fn say_abort(alice: ModelCluster, nodefence: Value) {
    let nodefence: NodeFence = serde_json::from_value(nodefence).unwrap();
    let (name, uid) = (nodefence.name_any(), nodefence.uid().unwrap());
    let word = serde_json::from_value(annotation(&nodefence, ABORT, &uid)).unwrap();
    alice.patch::<NodeFence>(At::cluster(&name), &word).await.unwrap();
}

#[test]
fn a_word_that_comes_while_the_record_is_written_is_heard_before_it_is_taken_away() {
    let scenario = example("lost-node.yaml", |text| text);
    let interceptor = |process: Process| {
        Rc::new(AbortsMeanwhile { alice: process.client("alice"), is_said: Cell::new(false) })
    };
    let played = simulate::play_behind(&scenario, Part::With, interceptor).unwrap();
    let (nodefence, _, record) = played.collected.incidents.values().next().unwrap();
    assert_eq!(record.parked.as_ref().map(|one| &one.reason), Some(&ParkReason::Aborted));
    assert!(!nodefence.annotations().contains_key(ABORT), "it is heard once");
}

/// The same, and how often a NodeFence is patched.
struct CountsPatches(AbortsMeanwhile, Cell<u32>);

impl Interceptor for CountsPatches {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let is_patch = request.verb == "patch" && request.resource == "nodefences";
        self.1.set(self.1.get() + u32::from(is_patch));
        self.0.admit(request).await
    }
}

/// The API server refuses to take away what is gone, and whoever watches over rights asks why.
#[test]
fn a_word_is_taken_away_once_however_late_its_watch_tells() {
    let late = "faults:\n- { at: 70s, apiFault: { fault: watchesLag, takes: 1s, lasts: 5m } }";
    let scenario = example("lost-node.yaml", |text| text.replace("faults:", late));
    let counted = Rc::new(RefCell::new(None));
    let interceptor = |process: Process| {
        let aborts = AbortsMeanwhile { alice: process.client("alice"), is_said: Cell::new(false) };
        let interceptor = Rc::new(CountsPatches(aborts, Cell::new(0)));
        counted.replace(Some(interceptor.clone()));
        interceptor
    };
    let played = simulate::play_behind(&scenario, Part::With, interceptor).unwrap();
    let (nodefence, ..) = played.collected.incidents.values().next().unwrap();
    assert!(!nodefence.annotations().contains_key(ABORT), "{:?}", nodefence.annotations());
    let patches = counted.take().map(|interceptor| interceptor.1.get());
    assert_eq!(patches, Some(2), "the word's, and the finalizer's at the end");
}
