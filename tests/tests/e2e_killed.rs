//! The controller is killed the moment its record names a phase, and started again, in each phase of an incident: whatever
//! was under way is verified, not repeated. The BMC counts one off and one on.

use anyhow::{Context as _, Result};
use kube::api::DynamicObject;
use node_remedy_tests::mirror::Mirror;
use node_remedy_tests::remedy::{self, Installation, is_in_phase, status};
use node_remedy_tests::{Controller, time};

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// The record passed through the phase, even if it had left it when the watch told.
fn has_reached(incident: &DynamicObject, phase: &str) -> bool {
    let history = status(incident, "/history").as_array();
    is_in_phase(incident, phase)
        || history.is_some_and(|list| {
            list.iter()
                .any(|transition| transition.get("phase").is_some_and(|entered| entered == phase))
        })
}

/// One incident, whose controller is killed in each of these phases.
async fn killed_in_each(name: &str, phases: &[&str]) -> Result<()> {
    let scenario = Scenario::begin(name, &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let mut incidents = Mirror::start(remedy::custom(&scenario.cluster.client(), "NodeFence"), "");
    incidents.synced().await;
    scenario.lose_node()?;
    for phase in phases {
        let reached = async {
            while !incidents.objects().iter().any(|incident| has_reached(incident, phase)) {
                incidents.changed().await;
            }
        };
        let waited = tokio::time::timeout(INCIDENT_WITHIN, reached).await;
        waited.with_context(|| format!("no incident is {phase}"))?;
        controller.kill9()?;
        controller = Controller::start(&scenario.cluster, "one")?;
    }
    scenario.ends_well().await?;
    time::until("the last process is alive", INCIDENT_WITHIN, || {
        let ended = controller.has_ended();
        async move { Ok((!ended?).then_some(())) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_each_step() -> Result<()> {
    let phases = ["Waiting", "PoweringOff", "Releasing", "PoweringOn", "Recovering"];
    killed_in_each("e2e-killed-before", &phases).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_what_comes_of_it_is_read() -> Result<()> {
    let phases = ["ReadingIdentity", "VerifyingOff", "Untainting", "AwaitingHealthy"];
    killed_in_each("e2e-killed-after", &phases).await
}
