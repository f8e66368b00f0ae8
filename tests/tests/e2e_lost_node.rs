//! A lost node is fenced, released and recovered, end to end, on a real control plane.

use anyhow::Result;
use kube::api::DynamicObject;
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use serde_json::Value;

use crate::e2e_story::Story;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_released_and_recovered() -> Result<()> {
    let story = Story::begin("e2e-lost-node", &Installation::default()).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;
    story.lose_node()?;
    story.ends_well().await?;
    controller.terminate().await
}

/// Two replicas: the one that leads is stopped as a rollout stops it, in the middle of an off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_moves_in_the_middle_when_the_leader_is_stopped() -> Result<()> {
    let story = Story::begin("e2e-rollout", &Installation::default()).await?;
    let mut leader = Controller::start(&story.cluster, "one")?;
    leader.until_ready().await?;
    let mut standby = Controller::start(&story.cluster, "two")?;
    standby.until_ready().await?;
    story.cluster.bmc(&story.node)?.set_faults("delay 1")?;
    story.lose_node()?;
    let incident = story.incident("being switched off", is_being_switched_off).await?;
    leader.terminate().await?;
    story.cluster.bmc(&story.node)?.set_faults("")?;
    story.ends_well().await?;
    let ended = story.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    let epoch = |incident| status(incident, "/epoch").as_u64();
    assert!(epoch(&ended) > epoch(&incident), "the second replica ended it");
    standby.terminate().await
}

/// The journal says that an off was begun, and nothing of its end.
fn is_being_switched_off(incident: &DynamicObject) -> bool {
    let is_begun = |one: &Value| one["action"] == "off" && one["end"].is_null();
    status(incident, "/operations").as_array().is_some_and(|all| all.iter().any(is_begun))
}

/// Two replicas: the one that leads is killed in the middle, the other ends the story.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_replica_ends_what_the_first_began() -> Result<()> {
    let story = Story::begin("e2e-two-replicas", &Installation::default()).await?;
    let mut leader = Controller::start(&story.cluster, "one")?;
    leader.until_ready().await?;
    // Ready means leading only for the first; the second waits for the Lease.
    let mut standby = Controller::start(&story.cluster, "two")?;
    story.lose_node()?;
    story
        .incident("verifying", |incident| {
            is_in_phase(incident, "VerifyingOff") || status(incident, "/proof").is_object()
        })
        .await?;
    leader.kill9()?;
    story.ends_well().await?;
    assert!(!standby.has_ended()?, "the second replica took over");
    Ok(())
}
