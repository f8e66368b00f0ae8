//! The BMC is dead for a while, or slow to answer when the controller dies waiting for it.

use std::time::Duration;

use anyhow::Result;
use kube::api::DynamicObject;
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::{Power, PowerChange};
use node_remedy_tests::remedy::{Installation, is_in_phase};
use node_remedy_tests::time::until;
use tokio::time::Instant;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario};

/// Longer than any call, and than any pause between two of them.
const DEAD_FOR: Duration = Duration::from_secs(45);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // promise: L6
async fn a_dead_bmc_is_not_given_up() -> Result<()> {
    let mut scenario = Scenario::begin("e2e-dead-bmc", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.bmc()?.kill()?;
    scenario.lose_node()?;
    let dead_until = Instant::now() + DEAD_FOR;
    let waits = |incident: &DynamicObject| is_in_phase(incident, "AwaitingDevice");
    scenario.incident("waiting for its device", waits).await?;
    tokio::time::sleep_until(dead_until).await;
    scenario.incident("waiting still", waits).await?;
    scenario.bmc()?.revive().await?;
    let back = Instant::now();
    scenario.cluster.until_power(&scenario.node, Power::Off).await?;
    let off = back.elapsed();
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let runs = back.elapsed();
    scenario.ends_well().await?;
    println!(
        "after the BMC's return: off {:.1} s, the database runs {:.1} s, Final {:.1} s",
        off.as_secs_f64(),
        runs.as_secs_f64(),
        back.elapsed().as_secs_f64()
    );
    controller.terminate().await
}

/// Killed after a power command went out and before it was answered.
async fn killed_in_a_call(name: &str, power: Power, faults: &str) -> Result<()> {
    let mut scenario = Scenario::begin(name, &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    if power == Power::Off {
        scenario.bmc()?.set_faults(faults)?;
    }
    scenario.lose_node()?;
    if power == Power::On {
        scenario.cluster.until_power(&scenario.node, Power::Off).await?;
        scenario.bmc()?.set_faults(faults)?;
    }
    let bmc = scenario.cluster.bmc(&scenario.node)?;
    until("the command is with the BMC", INCIDENT_WITHIN, || async {
        let log = bmc.log()?;
        let asked =
            log.iter().any(|event| event.what == PowerChange::Asked && event.power == power);
        Ok(asked.then_some(()))
    })
    .await?;
    controller.kill9()?;
    scenario.bmc()?.set_faults("")?;
    let mut again = Controller::start(&scenario.cluster, "one")?;
    again.until_ready().await?;
    scenario.ends_well().await?;
    again.terminate().await
}

/// The machine goes off after its controller died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_an_off_takes_effect() -> Result<()> {
    killed_in_a_call("e2e-killed-before-off", Power::Off, "hold 3\ndelay 2").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_an_on_is_answered() -> Result<()> {
    killed_in_a_call("e2e-killed-in-on", Power::On, "hold 3").await
}
