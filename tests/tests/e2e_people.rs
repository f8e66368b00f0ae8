//! What people say to an incident, on a real control plane: approve, and abort in the middle.

use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use node_remedy_tests::control_plane::User;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::time::until;
use node_remedy_tests::{Controller, controller};
use serde_json::json;

use crate::e2e_story::{INCIDENT_WITHIN, Story, is_being_switched_off};

/// Nothing is switched off before somebody approved it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incident_that_needs_approval_waits_for_it() -> Result<()> {
    let policies = json!({"approval": true});
    let installation = Installation { policies, ..Installation::default() };
    let story = Story::begin("e2e-approve", &installation).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;
    story.lose_node()?;
    let waits = |incident: &_| is_in_phase(incident, "AwaitingPower");
    let incident = story.incident("waiting for approval", waits).await?;
    told(&story, "Held", "waits for a person's approval").await?;
    assert_eq!(story.asked(&story.node)?, (0, 0), "nobody approved it");
    controller::ask(&story.cluster, &["approve", &incident.name_any()]).await?;
    story.ends_well().await?;
    controller.terminate().await
}

/// An off was sent and the machine takes its time: the machine is switched on again, nothing is
/// released, and it is said at which boundary the abort took effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_after_the_off_switches_on_and_releases_nothing() -> Result<()> {
    let mut story = Story::begin("e2e-abort", &Installation::default()).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;
    story.bmc()?.set_faults("delay 20")?;
    story.lose_node()?;
    let incident = story.incident("being switched off", is_being_switched_off).await?;
    controller::ask(&story.cluster, &["abort", &incident.name_any()]).await?;
    let parked = story.incident("parked", |incident| is_in_phase(incident, "Parked")).await?;
    assert_eq!(status(&parked, "/parked/reason"), "Aborted");
    told(&story, "Aborted", "an off was sent: the machine is switched on, then parked").await?;
    story.cluster.until_power(&story.node, Power::On).await?;
    assert_eq!(story.asked(&story.node)?, (1, 1));
    let verdict = story.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.releases, []);
    let said = controller::ask(&story.cluster, &["explain", &story.node]).await?;
    assert!(said.contains("a person stopped the run after an off was sent"), "{said}");
    controller.terminate().await
}

/// Waits until an Event of this reason about the lost node says this.
async fn told(story: &Story, reason: &str, says: &str) -> Result<()> {
    let events = Api::<Event>::all(story.cluster.client());
    let found = until(&format!("an Event {reason}: {says}"), INCIDENT_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let is_it = |event: &&Event| {
            let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
            event.reason.as_deref() == Some(reason)
                && about == Some(story.node.as_str())
                && event.note.as_deref().is_some_and(|note| note.contains(says))
        };
        Ok(all.iter().find(is_it).map(|_| ()))
    })
    .await;
    found.context("nobody was told")
}
