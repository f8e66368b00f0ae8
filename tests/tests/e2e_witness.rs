//! An off that counts once another plugin has read it, too: the machines hang on BMCs, and a board of
//! relays tells of each whether it has power.
// promise: P1, each test of this file

use anyhow::Result;
use node_remedy_tests::Controller;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ipmi::PowerFile;
use node_remedy_tests::remedy::{BMC_ANNOTATION, Installation, SECRET, is_in_phase, status};
use node_remedy_tests::user::User;
use node_remedy_tests::webhook::{Door, Plugs};
use serde_json::json;

use crate::e2e_methods::place;
use crate::e2e_scenario::Scenario;

/// What a board is asked before it switches a relay.
const SWITCHES: [&str; 2] = ["GET /cm?cmnd=Power1%20", "GET /cm?cmnd=Power2%20"];

/// Whose power a relay tells of.
#[derive(Clone, Copy)]
enum Wired {
    /// That of its node's machine.
    Rightly,
    /// That of the next node's machine, which runs.
    ToItsNeighbour,
}

/// BMCs switch, and the board is the witness.
async fn witnessed(name: &str, wired: Wired) -> Result<(Scenario, Plugs)> {
    let mut scenario = Scenario::prepare(name, Settings::QUICK).await?;
    let mut machines = Vec::new();
    for (node, bmc) in &scenario.cluster.bmcs {
        machines.push((place(node)?, bmc));
        scenario.label(node, "place", &place(node)?.to_string()).await?;
    }
    machines.sort_by_key(|(place, _)| *place);
    if let Wired::ToItsNeighbour = wired {
        machines.rotate_left(1);
    }
    let ports: Vec<_> = machines.iter().map(|(_, bmc)| bmc.port()).collect();
    let files: Vec<PowerFile> = machines.iter().map(|(_, bmc)| bmc.power_file()).collect();
    let folder = scenario.cluster.control_plane().folder().join("relays");
    let board = Plugs::wired(&folder, Door::PlainBasic, &files).await?;
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": [
            format!("${{node.annotations['{BMC_ANNOTATION}']}}"), "${node.labels['place']}",
        ],
        "methods": [
            {
                "name": "power", "plugin": "ipmi", "action": "reboot", "witness": "board",
                "parameters": {
                    "address": format!("${{node.annotations['{BMC_ANNOTATION}']}}"), "cipher-suite": "3",
                },
                "credentials": [{"secret": SECRET}],
            },
            {
                "name": "board", "plugin": "webhook", "plug": "${node.labels['place']}",
                "parameters": {
                    "address": board.address(), "scheme": "http", "authentication": "basic",
                    "status-path": "/cm?cmnd=Power{plug}",
                    "state-pointer": "/POWER${node.labels['place']}",
                    "on-words": "ON", "off-words": "OFF",
                    "off-path": "/cm?cmnd=Power{plug}%20Off", "off-method": "GET",
                    "on-path": "/cm?cmnd=Power{plug}%20On", "on-method": "GET",
                },
                "credentials": [{"secret": SECRET}],
            },
        ],
        "powerManagement": [{"name": "power", "methods": ["power"]}],
        "grants": [
            {"plugin": "ipmi", "cidrs": ["127.0.0.1/32"], "ports": ports},
            {"plugin": "webhook", "cidrs": ["127.0.0.1/32"], "ports": [board.port()]},
        ],
    });
    let policies = json!({"offTimeout": "5s", "retries": 0, "restarts": 0});
    scenario
        .install(&Installation { fence: Some(fence), policies, ..Installation::default() })
        .await?;
    Ok((scenario, board))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_released_once_another_plugin_reads_it_as_off() -> Result<()> {
    let (scenario, board) = witnessed("e2e-witness", Wired::Rightly).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let incident = scenario.incident("Final", |one| is_in_phase(one, "Final")).await?;
    let reads = status(&incident, "/proof/by/reads").as_array().map(Vec::len);
    assert_eq!(reads, Some(2), "{:#}", status(&incident, "/proof"));
    for line in SWITCHES {
        assert_eq!(board.asked(line)?, 0, "a witness is read, and nothing else");
    }
    controller.terminate().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_released_while_the_witness_reads_on() -> Result<()> {
    let (scenario, _board) = witnessed("e2e-witness-on", Wired::ToItsNeighbour).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let incident = scenario.incident("parked", |one| is_in_phase(one, "Parked")).await?;
    assert_eq!(status(&incident, "/parked/reason"), "WitnessReadsOn");
    assert_eq!(
        scenario.asked(&scenario.node)?,
        (1, 1),
        "what may be another machine's is on again"
    );
    let plugs = status(&incident, "/parked/plugs").as_array().map(Vec::len);
    assert_eq!(plugs, None, "nothing of it is off: {:#}", status(&incident, "/parked"));
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!((verdict.violations, verdict.releases.len()), (vec![], 0));
    controller.terminate().await
}
