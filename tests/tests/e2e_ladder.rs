//! A ladder on the real control plane: a repair Job that Kubernetes' own Job controller runs, and the
//! fence where that did not help.

use anyhow::{Context as _, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use node_remedy_tests::controller::NAMESPACE;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::mirror::Mirror;
use node_remedy_tests::observer::Violation;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, remedy};
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// Between two Jobs: long enough to be killed in.
const BETWEEN_JOBS: &str = "6s";
const LAST_WORDS: &str = "ssh: no route to host";

/// Something else, then the fence two seconds after it ended.
fn fence_after(remedy: &Value) -> Installation {
    let mut installation = Installation::default();
    let more = json!({
        "remedy1": [{"name": remedy.get("name")}, {"period": "2s"}],
        "remedy2": [{"name": "fence"}],
    });
    if let (Value::Object(threshold), Value::Object(more)) = (&mut installation.threshold, more) {
        threshold.extend(more);
    }
    installation.remedies = json!([remedy]);
    installation
}

/// A repair before the fence.
fn ladder(command: &[&str]) -> Installation {
    fence_after(&json!({
        "name": "repair",
        "podTemplate": {"spec": {
            "containers": [{"name": "repair", "image": "repair:1", "command": command}],
        }},
    }))
}

async fn jobs(scenario: &Scenario) -> Result<Vec<Job>> {
    let jobs = Api::<Job>::namespaced(scenario.cluster.client(), NAMESPACE);
    Ok(jobs.list(&ListParams::default()).await?.items)
}

/// The pod of the Job, which ran somewhere else, and knew which node it was about.
async fn repaired_from_elsewhere(scenario: &Scenario) -> Result<String> {
    let pods = Api::<Pod>::namespaced(scenario.cluster.client(), NAMESPACE);
    let [pod] = pods
        .list(&ListParams::default())
        .await?
        .items
        .try_into()
        .map_err(|pods| anyhow::anyhow!("expected one pod, found {pods:#?}"))?;
    let spec = pod.spec.clone().context("a pod without spec")?;
    assert_ne!(spec.node_name.as_deref(), Some(scenario.node.as_str()), "never on the node itself");
    let variables = spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    let node = variables.into_iter().find(|one| one.name == "NODE_REMEDY_NODE");
    assert_eq!(node.and_then(|one| one.value.clone()).as_deref(), Some(scenario.node.as_str()));
    let described = pod.annotations().get("node-remedy.io/node").context("no description")?;
    let described: Value = serde_json::from_str(described)?;
    assert_eq!(described.get("condition"), Some(&json!("Ready")));
    Ok(pod.name_any())
}

/// Proposal 000: the repair fails, the next remedy runs. The controller is killed while the Job runs; the
/// next one resumes and does not start it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // promise: A11
async fn a_repair_fails_and_the_fence_has_its_turn() -> Result<()> {
    let scenario = Scenario::begin("e2e-ladder", &ladder(&["false", LAST_WORDS])).await?;
    remedy::grant_more(&scenario.cluster.client(), &["--jobs"]).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let mut incidents = Mirror::start(remedy::custom(&scenario.cluster.client(), "NodeFence"), "");
    incidents.synced().await;
    scenario.lose_node()?;
    let is_remedying = |incident: &DynamicObject| is_in_phase(incident, "Remedying");
    tokio::time::timeout(INCIDENT_WITHIN, async {
        while !incidents.objects().iter().any(is_remedying) {
            incidents.changed().await;
        }
    })
    .await?;
    controller.kill9()?;
    let _again = Controller::start(&scenario.cluster, "one")?;
    scenario.ends_well().await?;

    let [job] = jobs(&scenario).await?.try_into().expect("one Job, whoever looked for it");
    let incident = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&incident, "/jobs"), json!([job.name_any()]));
    assert_eq!(job.metadata.owner_references.context("no owner")?[0].name, incident.name_any());
    let run = status(&incident, "/jobRuns/0");
    assert_eq!(run["end"]["outcome"], "Failed", "{run}");
    assert!(run["end"]["detail"].as_str().is_some_and(|text| text.contains(LAST_WORDS)), "{run}");
    assert_eq!(*status(&incident, "/remedyStep"), 1);
    let pod = repaired_from_elsewhere(&scenario).await?;
    assert_eq!(run["pod"], *pod);
    let node = scenario.cluster.node(&scenario.node).await?;
    assert_eq!(node.annotations().get("node-remedy.io/remediation-podname"), Some(&pod));
    assert!(node.annotations().contains_key("node-remedy.io/remediation-timestamp"));
    Ok(())
}

/// A repair Job that fails, then one that terminates the machine and whose success gives its pods back.
/// The controller is killed after the first has ended and before the second is asked for: each runs
/// once, and nothing goes before the second one's word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_fails_and_terminate_has_its_turn_though_the_controller_is_killed_between()
-> Result<()> {
    let job = |name: &str, command: &[&str]| {
        json!({"name": name, "podTemplate": {"spec": {
            "containers": [{"name": name, "image": format!("{name}:1"), "command": command}],
        }}})
    };
    let threshold = json!({
        "nodeConditionType": "Ready", "nodeConditionStatus": false, "nodeConditionPeriod": "1s",
        "remedy1": [{"name": "repair"}, {"period": BETWEEN_JOBS}],
        "remedy2": [{"name": "terminate"}, {"clean-resource": true}],
    });
    let remedies = json!([job("repair", &["false", LAST_WORDS]), job("terminate", &["true"])]);
    let installation = Installation { threshold, remedies, ..Installation::default() };
    let scenario = Scenario::begin("e2e-terminate", &installation).await?;
    remedy::grant_more(&scenario.cluster.client(), &["--jobs"]).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let mut incidents = Mirror::start(remedy::custom(&scenario.cluster.client(), "NodeFence"), "");
    incidents.synced().await;
    scenario.lose_node()?;
    let has_failed =
        |incident: &DynamicObject| *status(incident, "/jobRuns/0/end/outcome") == "Failed";
    tokio::time::timeout(INCIDENT_WITHIN, async {
        while !incidents.objects().iter().any(has_failed) {
            incidents.changed().await;
        }
    })
    .await?;
    controller.kill9()?;
    let between = scenario.incident("between the two", has_failed).await?;
    assert_eq!(*status(&between, "/jobRuns/1"), Value::Null, "the second is not asked for yet");
    // What the second one does.
    scenario.cluster.bmc(&scenario.node)?.press_button(Power::Off)?;

    let mut controller = Controller::start(&scenario.cluster, "two")?;
    controller.until_ready().await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let is_released = |incident: &DynamicObject| !status(incident, "/released").is_null();
    let incident = scenario.incident("released", is_released).await?;
    assert_eq!(*status(&incident, "/proof/grade"), "job-succeeded", "{incident:#?}");
    assert_eq!(*status(&incident, "/jobRuns/1/end/outcome"), "Succeeded");
    assert_eq!(jobs(&scenario).await?.len(), 2, "each was started once");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "no device was asked for anything");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    // Nobody was to read the machine off: what goes goes on the word of the Job.
    let is_unread = |one: &Violation| matches!(one, Violation::ReleasedWithoutRead(_));
    assert!(verdict.violations.iter().all(is_unread), "{:#?}", verdict.violations);
    assert!(!verdict.releases.is_empty(), "node-remedy released the database");
    controller.terminate().await
}

/// A repair that helps: the node is Ready again before the next remedy has its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repair_helps_and_nothing_is_switched_off() -> Result<()> {
    let mut installation = ladder(&["true"]);
    installation.threshold["remedy1"][1]["period"] = json!("10m");
    let scenario = Scenario::begin("e2e-repair", &installation).await?;
    remedy::grant_more(&scenario.cluster.client(), &["--jobs"]).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let has_ended = |incident: &DynamicObject| {
        status(incident, "/jobRuns/0/end/outcome").as_str() == Some("Succeeded")
    };
    scenario.incident("repaired", has_ended).await?;
    // What the repair did.
    scenario.cluster.machine(&scenario.node)?.start_kubelet();
    let incident = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&incident, "/finalReason"), "Remedied");
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0));
    assert_eq!(*status(&incident, "/released"), Value::Null);
    Ok(())
}

/// A reset that only the remedy names, then the fence: the reset of a machine whose node stays lost proves
/// nothing and releases nothing, and the fence finds the machine as any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_method_has_its_turn_before_the_fence() -> Result<()> {
    let mut installation = fence_after(&json!({"name": "gently", "method": "reset"}));
    installation.policies = json!({"recoverTimeout": "20s"});
    installation.methods = vec![json!({"name": "reset", "template": "bmc", "action": "reset"})];
    let scenario = Scenario::begin("e2e-method", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let incident = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(*status(&incident, "/remedyStep"), 1);
    let calls = status(&incident, "/operations").as_array().cloned().unwrap_or_default();
    let text = |call: &Value, field| call.get(field).and_then(Value::as_str).map(str::to_owned);
    let effects = calls.iter().filter(|call| text(call, "action").as_deref() != Some("status"));
    let effects = effects.filter_map(|call| Some([text(call, "name")?, text(call, "action")?]));
    assert_eq!(
        effects.collect::<Vec<_>>(),
        [["reset", "reset"], ["power-cycle", "off"], ["power-cycle", "on"]]
    );
    Ok(())
}
