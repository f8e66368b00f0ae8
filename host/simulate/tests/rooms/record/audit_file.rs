//! Tests of `node_remedy_record::audit_file` in the model cluster or a simulated run.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use node_remedy_api::nodefence::{DecidingPlugin, RemedyStep};
use node_remedy_api::time::Moment;
use node_remedy_decide::{
    Boundary, Choice, Effect, Hold, Notice, ParkReason, Phase, Record, Time, Transition,
};
use node_remedy_model_cluster::interceptor::Open;
use node_remedy_record::audit::Audit;
use node_remedy_record::audit_file::*;
use node_remedy_record::hash_chain::{Chain, verify};
use node_remedy_record::reason::Reason;
use node_remedy_record::sentences;
use node_remedy_simulate::testing::{example, play_audited, play_behind};
use node_remedy_world::Scenario;
use serde_json::{Value, json};

/// A file in a folder of its own, which goes with the test.
struct Written(PathBuf);

impl Written {
    fn of(test: &str) -> (Self, PathBuf) {
        let name = format!("node-remedy-audit-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.jsonl");
        (Self(folder), path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of a file that is whole.
fn lines(path: &Path) -> Vec<Value> {
    let lines: Vec<Value> = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let verified = verify(&[path.to_owned()]).unwrap().lines;
    assert_eq!(verified, u64::try_from(lines.len()).unwrap());
    lines
}

/// What a run leaves in the file.
fn run(test: &str, scenario: &Scenario) -> Vec<Value> {
    let (_written, path) = Written::of(test);
    let audit: Rc<dyn Audit> = Rc::new(FileAudit::open(&path, Time(0)).unwrap());
    play_audited(scenario, &audit);
    lines(&path)
}

fn missing(what: &str) -> Reason {
    Reason::NotReady(what.to_owned())
}

#[test]
fn a_refusal_is_written_once_and_a_lost_file_is_begun_anew() {
    let (_written, path) = Written::of("once");
    let audit = FileAudit::open(&path, Time(0)).unwrap();
    for (node, reason) in [
        ("a", missing("no grant")),
        ("a", missing("no Secret")),
        ("b", missing("no grant")),
        ("a", Reason::ApiFailed("late".to_owned())),
    ] {
        audit.refused(node, &reason, Time(1));
    }
    assert_eq!(lines(&path).len(), 4, "the beginning and three refusals");
    *audit.chain.borrow_mut() = None;
    audit.refused("c", &missing("no grant"), Time(2));
    assert_eq!(lines(&path).len(), 6);
}

#[test]
fn a_node_that_was_well_meanwhile_is_refused_anew() {
    let comes_back = "kubeletStops: node-a }
- { at: 150s, nodeComesBack: node-a }
- { at: 300s, kubeletStops: node-a }";
    // Not by the Lease: the gate would wait for other nodes' first, and by another guard.
    let ill = "- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: ill }
    spec:
      thresholdConfigs:
      - { nodeConditionType: Ready, nodeConditionStatus: false, nodeConditionPeriod: 5s, remedy1: [{ name: fence }] }";
    let scenario = example("lost-node.yaml", |text| {
        let text = text.replace("- file: ../config/remedy.yaml", ill);
        let text = text.replace("name: bmc-credentials", "name: misspelt");
        text.replace("kubeletStops: node-a }", comes_back)
    });
    let mut refused = run("well", &scenario);
    refused.retain(|line| line["kind"] == "refused");
    let guards: Vec<&Value> = refused.iter().map(|line| &line["guard"]).collect();
    assert_eq!(guards, ["NotReady", "NotReady"], "{refused:?}");
}

#[test]
fn an_incident_is_written_from_its_opening_to_its_end_with_what_people_are_told() {
    let lines = run("whole", &example("lost-node.yaml", |text| text));
    let opened = &lines[1];
    assert_eq!(opened["kind"], "opened", "{opened}");
    assert_eq!(opened["nodefence"], "node-a-1");
    assert_eq!((&opened["node"], &opened["remedy"]), (&json!("node-a"), &json!("fence")));
    assert_eq!(opened["trigger"], "Lease is Expired");
    let of_kind = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(of_kind("opened"), 1);
    assert_eq!(of_kind("begin") + of_kind("transition") + of_kind("call") + 1, lines.len());
    let told = |text: &str| {
        let says = |line: &&Value| line["notices"].to_string().contains(text);
        lines.iter().filter(says).count()
    };
    assert_eq!(told("isolation begins"), 1);
    assert_eq!(told("proof: "), 1);
    assert_eq!(lines[lines.len() - 1]["notices"], json!(["the incident is over: Remedied"]));
}

#[test]
fn a_step_is_written_with_why_and_by_whose_component_and_what_is_waited_for_once() {
    let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
    let mut incidents = played.collected.incidents.into_values();
    let (mut nodefence, plan, record) = incidents.next().unwrap();
    let plugin = DecidingPlugin { name: "p".to_owned(), digest: "sha256:one".to_owned() };
    let remedy_step: RemedyStep =
        serde_json::from_value(json!({"name": "p", "period": "1s"})).unwrap();
    let next = DecidingPlugin { digest: "sha256:two".to_owned(), ..plugin.clone() };
    nodefence.spec.ladder = [plugin, next]
        .map(|plugin| RemedyStep { plugin: Some(plugin), ..remedy_step.clone() })
        .to_vec();
    let (_written, path) = Written::of("step");
    let audit = FileAudit::open(&path, Time(0)).unwrap();
    let before = Record { phase: Phase::Remedying, remedy_step: 0, ..record };
    let step = |remedy_step: usize, phase: Phase, effects: Vec<Effect>, notices: Vec<Notice>| {
        let record = Record { remedy_step, phase, ..before.clone() };
        let decided = Transition { record, effects, next_look: None, notices, rules: Vec::new() };
        audit.decided(&nodefence, &plan, &before, &decided, Time(1));
    };
    let asks = || vec![Effect::AskRemedy(1)];
    let chose = |choice| Notice::Decided { remedy: "p".to_owned(), choice };
    let held = || vec![Notice::Held { reason: Hold::NoSlot }];
    step(0, Phase::Remedying, asks(), vec![]);
    step(0, Phase::Remedying, vec![], vec![chose(Choice::Done)]);
    step(1, Phase::Remedying, asks(), vec![chose(Choice::Fail("no".to_owned()))]);
    step(0, Phase::Remedying, vec![], vec![]);
    step(0, Phase::Remedying, vec![], held());
    step(0, Phase::Remedying, vec![], held());
    let parked = Notice::Parked(ParkReason::OnFailed);
    step(
        0,
        Phase::Parked,
        vec![],
        vec![Notice::AbortTaken { boundary: Boundary::BeforeOff }, parked.clone()],
    );
    let parked = sentences::note(&parked, &plan, "node-a-1", "node-a").text;
    let written: Vec<Value> =
        lines(&path).iter().skip(1).map(|line| json!([line["notices"], line["digest"]])).collect();
    assert_eq!(
        written,
        [
            json!([null, "sha256:one"]),
            json!([["remedy p: its plugin decided: done"], "sha256:one"]),
            json!([["remedy p: its plugin gives up: no"], "sha256:one sha256:two"]),
            json!([[sentences::hold(&Hold::NoSlot)], null]),
            json!([[Boundary::BeforeOff.to_string(), parked], null]),
        ]
    );
}

#[test]
fn a_file_of_an_older_version_goes_on() {
    let (_written, path) = Written::of("older");
    let mut older = Chain::open(&path, Moment::from_ms(0)).unwrap();
    let line = json!({
        "kind": "transition", "nodefence": "a-1", "node": "a", "epoch": 1, "from": "Waiting",
        "to": "Isolating", "effects": ["Quarantine"], "rules": "A1",
    });
    older.add(&line, Moment::from_ms(0)).unwrap();
    let audit = FileAudit::open(&path, Time(1)).unwrap();
    audit.refused("a", &missing("no grant"), Time(1));
    assert_eq!(lines(&path).len(), 4);
}
