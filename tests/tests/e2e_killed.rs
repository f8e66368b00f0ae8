//! The controller is killed the moment its record names a phase, and started again: whatever was
//! under way is verified, not repeated. The BMC counts one off and one on.

use anyhow::Result;
use kube::api::DynamicObject;
use node_remedy_tests::mirror::Mirror;
use node_remedy_tests::remedy::{self, Installation, is_in_phase, status};
use node_remedy_tests::{Controller, time};

use crate::e2e_story::{INCIDENT_WITHIN, Story};

/// The record passed through the phase, even if it had left it when the watch told.
fn has_reached(incident: &DynamicObject, phase: &str) -> bool {
    let history = status(incident, "/history").as_array();
    is_in_phase(incident, phase)
        || history.is_some_and(|list| {
            list.iter()
                .any(|transition| transition.get("phase").is_some_and(|entered| entered == phase))
        })
}

async fn killed_at(phase: &str) -> Result<()> {
    let name = format!("e2e-killed-{}", phase.to_lowercase());
    let story = Story::begin(&name, &Installation::default()).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;
    let mut incidents = Mirror::start(remedy::custom(&story.cluster.client(), "NodeFence"), "");
    incidents.synced().await;
    story.lose_node()?;
    tokio::time::timeout(INCIDENT_WITHIN, async {
        while !incidents.objects().iter().any(|incident| has_reached(incident, phase)) {
            incidents.changed().await;
        }
    })
    .await?;
    controller.kill9()?;
    let mut again = Controller::start(&story.cluster, "one")?;
    story.ends_well().await?;
    time::until("the second process is alive", INCIDENT_WITHIN, || {
        let ended = again.has_ended();
        async move { Ok((!ended?).then_some(())) }
    })
    .await
}

macro_rules! killed_at {
    ($($test:ident: $phase:literal,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> Result<()> {
                killed_at($phase).await
            }
        )*
    };
}

killed_at! {
    while_waiting: "Waiting",
    while_reading_the_identity: "ReadingIdentity",
    while_powering_off: "PoweringOff",
    while_verifying_off: "VerifyingOff",
    while_releasing: "Releasing",
    while_untainting: "Untainting",
    while_powering_on: "PoweringOn",
    while_awaiting_well: "AwaitingWell",
    while_recovering: "Recovering",
}
