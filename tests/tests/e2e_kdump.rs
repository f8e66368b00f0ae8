//! A node's kernel crashes and a crash kernel writes its memory down, as the real `fence_kdump_send`
//! says it: the machine's power is not cut before the grace is over.

use std::net::{Ipv4Addr, UdpSocket};

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::api::DynamicObject;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::controller::ask;
use node_remedy_tests::process::{Process, Program};
use node_remedy_tests::remedy::{Installation, SECRET, is_in_phase, status};
use node_remedy_tests::{Bmc, Controller};
use serde_json::json;

use crate::e2e_scenario::{Scenario, is_being_switched_off};
use crate::plugins_kdump::sender;

/// A dump is not waited for any longer.
const GRACE_S: i64 = 12;
/// Says from which address a node's crash kernel sends.
const DUMPS_FROM: &str = "dumps-from";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_is_not_cut_while_a_machine_dumps_until_the_grace_is_over() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-kdump", Settings::QUICK).await?;
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let bmcs: Vec<_> = scenario.cluster.bmcs.values().map(Bmc::port).collect();
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": ["${node.annotations['bmc']}"],
        "methods": [
            {
                "name": "crash-dump", "plugin": "kdump",
                "parameters": {
                    "port": port.to_string(), "interval": "1",
                    "address": format!("${{node.labels['{DUMPS_FROM}']}}"),
                },
            },
            {
                "name": "power", "plugin": "ipmi", "action": "reboot",
                "parameters": {"address": "${node.annotations['bmc']}", "cipher-suite": "3"},
                "credentials": [{"secret": SECRET}],
            },
        ],
        "isolation": [{"name": "see", "methods": ["crash-dump"]}],
        "powerManagement": [{"name": "power", "methods": ["power"]}],
        "grants": [
            {"plugin": "ipmi", "cidrs": ["127.0.0.1/32"], "ports": bmcs},
            {"plugin": "kdump", "cidrs": ["127.0.0.1/32"]},
        ],
    });
    let policies = json!({"kdumpGrace": format!("{GRACE_S}s")});
    scenario
        .install(&Installation { fence: Some(fence), policies, ..Installation::default() })
        .await?;
    scenario.label(&scenario.node, DUMPS_FROM, "127.0.0.1").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;

    scenario.lose_node()?;
    let arguments = ["-f", "ipv4", "-i", "1", "-p", &port.to_string(), "127.0.0.1"];
    let crash_kernel = Process::start(&Program {
        name: "fence_kdump_send",
        path: &sender()?,
        arguments: &arguments.map(str::to_owned),
        logs: scenario.cluster.control_plane().folder(),
    })?;
    let waits = |incident: &DynamicObject| {
        is_in_phase(incident, "AwaitingPower") && !status(incident, "/dumpHeldAt").is_null()
    };
    let waiting = scenario.incident("waiting for a dump", waits).await?;
    let said = ask(&scenario.cluster, &["explain", &scenario.node]).await?;
    assert!(
        said.contains("kernel dump: the power-off waits for it, and for the boot after it, since"),
        "{said}"
    );
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "nothing is switched off meanwhile");

    let cut = scenario.incident("being switched off", is_being_switched_off).await?;
    let held_at: Timestamp = text(&waiting, "/dumpHeldAt")?.parse()?;
    let operations = status(&cut, "/operations").as_array().context("a journal")?;
    let off = operations.iter().find(|one| one["action"] == "off").context("an off")?;
    let off_at: Timestamp = off["intendedAt"].as_str().context("a time")?.parse()?;
    let waited = off_at.as_millisecond() - held_at.as_millisecond();
    assert!(waited >= GRACE_S * 1_000, "{waited} ms, while the messages went on");
    // The crash kernel has lost its power.
    drop(crash_kernel);
    scenario.ends_well().await?;

    let metrics = controller.metrics().await?;
    let heard = "node_remedy_dump_datagrams_total{result=\"sighting\"}";
    assert!(metrics.contains(heard), "no {heard} in {metrics}");
    controller.terminate().await
}

fn text<'a>(incident: &'a DynamicObject, pointer: &str) -> Result<&'a str> {
    status(incident, pointer).as_str().with_context(|| format!("no {pointer}"))
}
