//! A lost node is fenced, released and recovered, end to end, on a real control plane.

use anyhow::Result;
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};

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
