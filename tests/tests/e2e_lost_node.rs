//! A lost node is fenced, released and recovered, end to end, on a real control plane.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, is_in_phase, status};
use node_remedy_tests::time::until;

use crate::e2e_scenario::{Scenario, is_being_switched_off};

/// A lock is given up right after the record's last write.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_released_and_recovered() -> Result<()> {
    let scenario = Scenario::begin("e2e-lost-node", &Installation::default()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    people_were_told(&scenario, &controller).await?;
    let locks = Api::<Lease>::namespaced(scenario.cluster.client(), "medik8s-leases");
    until("the node's lock is given up", GIVEN_UP_WITHIN, || async {
        let left = locks.list(&ListParams::default()).await?.items;
        Ok(left.is_empty().then_some(()))
    })
    .await?;
    controller.terminate().await
}

/// Events on the node tell the scenario in order, and the metrics count it.
async fn people_were_told(scenario: &Scenario, controller: &Controller) -> Result<()> {
    let events = Api::<Event>::namespaced(scenario.cluster.client(), "default");
    // The last one is written after the record that it tells of.
    let told = until("the end is told", GIVEN_UP_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?.into_iter();
        let is_ours = |event: &Event| {
            event.reporting_controller.as_deref() == Some("node-remedy.io/controller")
        };
        let ours = all.filter(is_ours);
        let mut told: Vec<_> = ours
            .map(|event| (event.event_time.map(|at| at.0), event.reason.unwrap_or_default()))
            .collect();
        told.sort();
        let told: Vec<String> = told.into_iter().map(|(_, reason)| reason).collect();
        Ok(told.iter().any(|reason| reason == "Final").then_some(told))
    })
    .await?;
    let expected = [
        "Opened",
        "Identified",
        "PoweringOff",
        "VerifyingOff",
        "Proven",
        "Released",
        "PoweringOn",
        "AwaitingHealthy",
        "Recovering",
        "Final",
    ];
    let heard: Vec<_> = told.iter().filter(|reason| expected.contains(&reason.as_str())).collect();
    assert_eq!(heard, expected, "of {told:?}");

    // Its NodeFence is let go of after it is Final.
    let metrics = until("no incident is open", GIVEN_UP_WITHIN, || async {
        let metrics = controller.metrics().await?;
        Ok(metrics.contains("node_remedy_incidents_open 0").then_some(metrics))
    })
    .await?;
    let problem = format!("problems_total{{node=\"{}\",condition=\"Ready\"}} 1", scenario.node);
    assert!(metrics.contains(&format!("node_remedy_{problem}")), "no {problem} in {metrics}");
    for line in [
        "node_remedy_leader 1",
        "node_remedy_pod_incidents_total{pods=\"default/db-0\"} 1",
        "node_remedy_phase_seconds_count{phase=\"VerifyingOff\"} 1",
        "node_remedy_phase_seconds_count{phase=\"AwaitingHealthy\"} 1",
        "node_remedy_transitions_total{state=\"New\"} 1",
        "node_remedy_transitions_total{state=\"Final\"} 1",
        "node_remedy_plugin_calls_total{plugin=\"ipmi\",action=\"off\",result=\"ok\"} 1",
        "node_remedy_plugin_calls_total{plugin=\"ipmi\",action=\"on\",result=\"ok\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    Ok(())
}

/// Two replicas: the one that leads is stopped as a rollout stops it, in the middle of an off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_moves_in_the_middle_when_the_leader_is_stopped() -> Result<()> {
    let scenario = Scenario::begin("e2e-rollout", &Installation::default()).await?;
    let mut leader = Controller::start(&scenario.cluster, "one")?;
    leader.until_ready().await?;
    let mut standby = Controller::start(&scenario.cluster, "two")?;
    standby.until_ready().await?;
    scenario.cluster.bmc(&scenario.node)?.set_faults("delay 6")?;
    scenario.lose_node()?;
    let incident = scenario.incident("being switched off", is_being_switched_off).await?;
    leader.terminate().await?;
    scenario.cluster.bmc(&scenario.node)?.set_faults("")?;
    scenario.ends_well().await?;
    let ended = scenario.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    let epoch = |incident| status(incident, "/epoch").as_u64();
    assert!(epoch(&ended) > epoch(&incident), "the second replica ended it");
    standby.terminate().await
}

/// Two replicas: the one that leads is killed in the middle, the other ends the scenario.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_replica_ends_what_the_first_began() -> Result<()> {
    let scenario = Scenario::begin("e2e-two-replicas", &Installation::default()).await?;
    let mut leader = Controller::start(&scenario.cluster, "one")?;
    leader.until_ready().await?;
    // Ready means leading only for the first; the second waits for the Lease.
    let mut standby = Controller::start(&scenario.cluster, "two")?;
    scenario.lose_node()?;
    scenario
        .incident("verifying", |incident| {
            is_in_phase(incident, "VerifyingOff") || status(incident, "/proof").is_object()
        })
        .await?;
    leader.kill9()?;
    scenario.ends_well().await?;
    assert!(!standby.has_ended()?, "the second replica took over");
    Ok(())
}
