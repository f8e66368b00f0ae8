//! The way between node-remedy and the API server is bad while a node is lost: it answers with
//! errors, loses replies, is slow, is down. The scenario ends as it always does, and nothing is done
//! twice.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use kube::api::ListParams;
use node_remedy_tests::faulty_api::{EVERYTHING, Fault, Rule, Times};
use node_remedy_tests::ipmi::{Power, PowerChange};
use node_remedy_tests::remedy::{Installation, is_in_phase};
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Controller, FaultyApi, remedy};
use serde_json::json;

use crate::e2e_scenario::{INCIDENT_WITHIN, Scenario, is_being_switched_off};

const STATUS_OF_NODEFENCE: &str = "/nodefences/";
/// How long the server is down: the leader's lease has run out long before.
const DOWN_FOR: Duration = Duration::from_secs(20);

/// How long it stands still for everybody: more than twice the threshold, and longer than a leader's Lease.
const STILL_FOR: Duration = Duration::from_secs(25);

/// A node is lost while these rules hold.
struct Row {
    what: &'static str,
    rules: &'static [Rule],
    /// The phase in which they end; none: they hold to the end.
    until: Option<&'static str>,
}

const fn percent(percent: u64, seed: u64) -> Times {
    Times::Percent { percent, seed }
}

const fn first_reply_lost(methods: &'static [Method], path: &'static str) -> Rule {
    let times = Times::First(1);
    Rule { methods, path, times, fault: Fault::ReplyLost, ..EVERYTHING }
}

const ROWS: &[Row] = &[
    Row {
        what: "half of all record writes lose the race",
        rules: &[Rule {
            methods: &[Method::PUT],
            path: STATUS_OF_NODEFENCE,
            times: percent(50, 1),
            fault: Fault::Answer(409),
            ..EVERYTHING
        }],
        until: None,
    },
    Row {
        what: "three of ten requests are asked to come again",
        rules: &[Rule { times: percent(30, 2), fault: Fault::Answer(429), ..EVERYTHING }],
        until: None,
    },
    Row {
        what: "two of ten reads fail in one of two ways",
        rules: &[
            Rule {
                methods: &[Method::GET],
                times: percent(10, 3),
                fault: Fault::Answer(500),
                ..EVERYTHING
            },
            Rule {
                methods: &[Method::GET],
                times: percent(11, 4),
                fault: Fault::Answer(503),
                ..EVERYTHING
            },
        ],
        until: None,
    },
    Row {
        what: "the reply to the off's intent is lost",
        rules: &[Rule {
            body: "\"action\":\"off\"",
            ..first_reply_lost(&[Method::PUT], STATUS_OF_NODEFENCE)
        }],
        until: None,
    },
    Row {
        what: "the reply to the pod's delete is lost",
        rules: &[first_reply_lost(&[Method::DELETE], "/pods/")],
        until: None,
    },
    Row {
        what: "the first reply to every other kind of write is lost",
        rules: &[
            first_reply_lost(&[Method::PUT], "/remedybudgets/"),
            first_reply_lost(&[Method::POST], "/nodefences"),
            first_reply_lost(&[Method::PUT], STATUS_OF_NODEFENCE),
            first_reply_lost(&[Method::PATCH], "/nodes/"),
        ],
        until: None,
    },
    Row {
        what: "the slot cannot be given back at first, and another node needs it next",
        rules: &[Rule {
            methods: &[Method::PUT],
            path: "/remedybudgets/",
            body: "\"inFlight\":[]",
            times: Times::First(3),
            fault: Fault::Answer(500),
        }],
        until: None,
    },
    Row {
        // A look and a write together take longer than evidence for an off keeps.
        what: "every reply takes three seconds until the machine is to be switched off",
        rules: &[Rule { fault: Fault::Slow(Duration::from_secs(3)), ..EVERYTHING }],
        until: Some("PoweringOff"),
    },
];

/// A scenario whose controller reaches the API server through a proxy.
async fn begin(name: &str) -> Result<(Scenario, FaultyApi, Controller)> {
    // More nodes are lost here within minutes than by default are fenced in an hour.
    let breaker = json!({"maxIncidents": 100, "window": "1h", "coolDown": "1m"});
    let policies = json!({"coolDown": "0s", "breaker": breaker});
    let scenario =
        Scenario::begin(name, &Installation { policies, ..Installation::default() }).await?;
    let api = FaultyApi::start(scenario.cluster.control_plane(), User::NodeRemedy).await?;
    let mut controller = Controller::start_with(&scenario.cluster, "one", api.kubeconfig())?;
    controller.until_ready().await?;
    Ok((scenario, api, controller))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_fail_get_lost_or_are_late() -> Result<()> {
    let (mut scenario, api, controller) = begin("e2e-api-answers").await?;
    for Row { what, rules, until } in ROWS {
        scenario.again().await?;
        let began = tokio::time::Instant::now();
        api.set(rules);
        scenario.lose_node()?;
        let phase = until.unwrap_or("Final");
        scenario.incident(phase, |incident| is_in_phase(incident, phase)).await.context(*what)?;
        let struck = api.struck();
        api.set(&[]);
        scenario.ends_well().await.context(*what)?;
        assert!(!struck.contains(&0), "{what}: a fault never came: {struck:?}");
        println!("{what}: {struck:?} times, {:.1} s", began.elapsed().as_secs_f64());
    }
    controller.terminate().await
}

/// The BMC falls silent after the intent was recorded and before a command reached it; then the
/// server goes down; the BMC comes back to a controller that may not lead any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_before_the_off() -> Result<()> {
    let (mut scenario, api, controller) = begin("e2e-api-down-before").await?;
    let intent = Rule {
        methods: &[Method::PUT],
        path: STATUS_OF_NODEFENCE,
        body: "\"action\":\"off\"",
        times: Times::First(1),
        fault: Fault::Slow(Duration::from_secs(1)),
    };
    api.set(&[intent]);
    scenario.lose_node()?;
    until("the intent is on its way", INCIDENT_WITHIN, || async {
        Ok((api.struck() == [1]).then_some(()))
    })
    .await?;
    scenario.bmc()?.kill()?;
    scenario.incident("to be switched off", is_being_switched_off).await?;
    api.go_down();
    let up_again = tokio::time::Instant::now() + DOWN_FOR;
    until("the lease has run out", DOWN_FOR, || async {
        let metrics = controller.metrics().await?;
        Ok(metrics.contains("node_remedy_leader 0").then_some(()))
    })
    .await?;
    scenario.bmc()?.revive().await?;
    tokio::time::sleep_until(up_again).await;
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "nobody leads");
    api.come_up();
    scenario.ends_well().await?;
    controller.terminate().await
}

/// The machine goes off while nobody can be told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_between_off_and_release() -> Result<()> {
    let (mut scenario, api, controller) = begin("e2e-api-down-between").await?;
    scenario.bmc()?.set_faults("delay 2")?;
    scenario.lose_node()?;
    let bmc = scenario.cluster.bmc(&scenario.node)?;
    until("the machine is asked off", INCIDENT_WITHIN, || async {
        let log = bmc.log()?;
        let asked = log.iter().any(|event| event.what == PowerChange::Asked);
        Ok(asked.then_some(()))
    })
    .await?;
    api.go_down();
    let up_again = tokio::time::Instant::now() + DOWN_FOR;
    scenario.cluster.until_power(&scenario.node, Power::Off).await?;
    scenario.bmc()?.set_faults("")?;
    tokio::time::sleep_until(up_again).await;
    assert_eq!(scenario.cluster.observer(User::NodeRemedy).judge()?.releases, []);
    api.come_up();
    scenario.ends_well().await?;
    controller.terminate().await
}

/// The API server stands still for everybody, for longer than the threshold: when it goes on, every
/// Lease is old at once, and nobody is cut for it. A node that is lost later is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_every_lease_is_old_at_once_nobody_is_cut() -> Result<()> {
    let threshold = json!({"nodeLeaseAge": "10s"});
    let installation = Installation { threshold, ..Installation::default() };
    let mut scenario = Scenario::begin("e2e-api-outage", &installation).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let control_plane = scenario.cluster.control_plane();
    control_plane.hang_api_server()?;
    tokio::time::sleep(STILL_FOR).await;
    control_plane.let_api_server_go_on()?;
    for node in scenario.cluster.machines.keys() {
        scenario.cluster.until_ready(node, "True").await?;
    }
    until("one leads again", INCIDENT_WITHIN, || async {
        let metrics = controller.metrics().await?;
        Ok(metrics.contains("node_remedy_leader 1").then_some(()))
    })
    .await?;
    scenario.cluster.database_runs(None).await?;
    for (name, bmc) in &scenario.cluster.bmcs {
        assert_eq!((bmc.offs()?, bmc.ons()?), (0, 0), "{name} was left alone");
    }
    scenario.again().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let incidents = remedy::custom(&scenario.cluster.client(), "NodeFence");
    let incidents = incidents.list(&ListParams::default()).await?.items;
    assert_eq!(incidents.len(), 1, "the outage was no incident: {incidents:#?}");
    controller.terminate().await
}
