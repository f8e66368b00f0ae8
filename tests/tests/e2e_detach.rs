//! Grade `partition` on a real control plane: a silent node gives back, before it is off, what its CSI
//! driver checks at detach. The tests' own driver does not check; a finalizer of this test does in its place.

use anyhow::{Context, Result};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use node_remedy_tests::Controller;
use node_remedy_tests::observer::Violation;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::storage::DRIVER;
use node_remedy_tests::user::User;
use serde_json::{Value, json};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// What keeps the volume on its node as long as somebody writes to it.
const STILL_WRITTEN: &str = "example.com/still-written";

fn is_proven(grade: &str) -> impl Fn(&DynamicObject) -> bool {
    move |incident| status(incident, "/proof/grade") == grade
}

fn attachments(scenario: &Scenario) -> Api<VolumeAttachment> {
    Api::all(scenario.cluster.client())
}

async fn attachment(scenario: &Scenario) -> Result<VolumeAttachment> {
    let mut all = attachments(scenario).list(&ListParams::default()).await?.items;
    all.retain(|one| one.spec.node_name == scenario.node);
    all.pop().context("no attachment on the lost node")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_node_gives_its_database_back_and_its_volume_when_nobody_writes() -> Result<()> {
    let policies = json!({
        "grades": ["power-off-verified", "partition"],
        "safeDetachDrivers": [DRIVER],
        // Longer than the kubelet's Lease lasts here.
        "powerAfter": "8s",
    });
    let scenario =
        Scenario::begin("e2e-detach", &Installation { policies, ..Installation::default() })
            .await?;
    let held = attachment(&scenario).await?;
    let mut finalizers = held.finalizers().to_vec();
    finalizers.push(STILL_WRITTEN.to_owned());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    attachments(&scenario).patch(&held.name_any(), &PatchParams::default(), &patch).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;

    let given = scenario.incident("proven: partition", is_proven("partition")).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "before anything was cut");
    assert_eq!(status(&given, "/proof/voidedAt"), &Value::Null);
    scenario.incident("proven off", is_proven("power-off-verified")).await?;
    let waiting = attachment(&scenario).await?;
    assert!(waiting.metadata.deletion_timestamp.is_some(), "asked for while it was on");
    assert!(waiting.finalizers().iter().any(|one| one == STILL_WRITTEN), "and not taken by force");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    // The machine is off: what it ran writes no more.
    lift(&scenario, &waiting).await?;

    scenario.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    assert_eq!(scenario.asked(&scenario.node)?, (1, 1), "one off and one on");
    let early: Vec<&str> = verdict
        .violations
        .iter()
        .filter_map(|one| {
            let Violation::ReleasedWhileOn(release) = one else { return None };
            Some(release.what.as_str())
        })
        .collect();
    assert!(
        early.iter().any(|what| what.starts_with("pods "))
            && early.iter().any(|what| what.starts_with("volumeattachments ")),
        "both went before the machine was off: {verdict:#?}"
    );
    assert!(!early.iter().any(|what| what.starts_with("nodes ")), "no taint before: {early:?}");
    let last = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert!(
        !last.violations.iter().any(|one| matches!(one, Violation::TwoWriters { .. })),
        "{:#?}",
        last.violations
    );
    assert_eq!(last.refused, [""; 0], "node-remedy asked for nothing it may not have");
    controller.terminate().await
}

/// The driver finds that nobody writes any more.
async fn lift(scenario: &Scenario, held: &VolumeAttachment) -> Result<()> {
    node_remedy_tests::time::until("the volume is let go", INCIDENT_WITHIN, || async {
        let Some(now) = attachments(scenario).get_opt(&held.name_any()).await? else {
            return Ok(Some(()));
        };
        let left: Vec<&String> =
            now.finalizers().iter().filter(|one| *one != STILL_WRITTEN).collect();
        let patch = json!({"metadata": {
            "resourceVersion": now.resource_version(), "finalizers": left,
        }});
        let patched = attachments(scenario)
            .patch(&now.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
        Ok(patched.is_ok().then_some(()))
    })
    .await
}
