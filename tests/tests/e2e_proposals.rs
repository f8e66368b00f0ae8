//! The ConfigMaps that proposal 000 prints for a bare-metal node, verbatim, against real agents: the ports of its
//! fabric and the outlets of its PDU. Which device each template leads to is ours, as the proposal leaves
//! it open; an FC switch is not simulated, so the ports are those of a switch with IF-MIB.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::controller::NAMESPACE;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::remedy::{Installation, install_secret, is_in_phase, status};
use node_remedy_tests::snmp::{AUTH, Agent, Model, Wired};
use node_remedy_tests::{Controller, controller};
use serde_json::{Value, json};

use crate::e2e_scenario::Scenario;

/// As the proposal prints it, with NODE_NAME filled in.
const FENCE_CONFIG: &str = include_str!("../../host/api/tests/proposals/000-fence-config.yaml");
/// The node that was filled in.
const NODE_NAME: &str = "w1";
/// A user of SNMPv3 who authenticates, and the Secret that has its password.
const USER: &str = "sha1-clear";
const CREDENTIALS: &str = "snmp-credentials";
/// The plugs that it names: of the fabric, and of the PDU.
const PORT: u32 = 2;
const OUTLET: u32 = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bare_metal_node_of_proposal_000_is_fenced_as_its_config_maps_say() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-seed-000", Settings::QUICK).await?;
    let folder = scenario.cluster.control_plane().folder().to_owned();
    let fabric = Agent::start(&folder.join("fabric"), Model::Switch).await?;
    let pdu = Agent::start(&folder.join("pdu"), Model::Eaton).await?;
    install_secret(&scenario.cluster, CREDENTIALS, &json!({"username": USER, "password": AUTH}))
        .await?;
    scenario.install(&Installation::default()).await?;
    let chassis = scenario.cluster.bmc(&scenario.node)?.power_file();
    let feeds = [(&pdu, OUTLET)];
    pdu.wire(&[Wired { plug: OUTLET, chassis: chassis.path(), feeds: &feeds }])?;
    create(&scenario, &config_maps(&scenario.node)?).await?;
    create(
        &scenario,
        &[template("fence-method-template-fc-switch-brocade", "snmp-switch", &fabric)?],
    )
    .await?;
    create(&scenario, &[template("fence-method-template-eaton-pdu", "eaton-pdu", &pdu)?]).await?;
    let shown = controller::ask(&scenario.cluster, &["config", "show", &scenario.node]).await?;
    assert!(shown.contains(&format!("fence-config-{}", scenario.node)), "{shown}");

    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let incident = scenario.incident("over", |incident| is_in_phase(incident, "Final")).await?;
    let calls = status(&incident, "/operations").as_array().cloned().unwrap_or_default();
    let text = |call: &Value, field| call.get(field).and_then(Value::as_str).map(str::to_owned);
    let changes = calls.iter().filter(|call| text(call, "action").as_deref() != Some("status"));
    let changes = changes.filter_map(|call| Some([text(call, "name")?, text(call, "action")?]));
    // isolation=fc-off, power_management=eaton-off eaton-on, recovery=fc-on: what was cut is back
    // before the machine is on, so that nothing is left for recovery.
    assert_eq!(
        changes.collect::<Vec<_>>(),
        [["fc", "off"], ["eaton", "off"], ["fc", "on"], ["eaton", "on"]]
    );
    assert_eq!(fabric.sets()?.len(), 2, "{:?}", fabric.sets()?);
    assert_eq!(fabric.state(PORT).await?, Power::On);
    assert_eq!(pdu.sets()?.len(), 2, "{:?}", pdu.sets()?);
    assert_eq!(pdu.dark().await?, [0_u32; 0]);
    controller.terminate().await
}

/// The objects as the proposal prints them, for this node. The second port of its fabric has another
/// number in IF-MIB.
fn config_maps(node: &str) -> Result<Vec<ConfigMap>> {
    let filled = FENCE_CONFIG.replace(NODE_NAME, node).replace("plug=2", "plug=10002");
    serde_saphyr::from_str(&filled).context("the seed's objects")
}

/// A template that the proposal's methods are instances of.
fn template(name: &str, plugin: &str, agent: &Agent) -> Result<ConfigMap> {
    let port = agent.port().to_string();
    let template = json!({"metadata": {"name": name}, "data": {
        "plugin": plugin, "ipaddr": "127.0.0.1", "ipport": port, "secret": CREDENTIALS,
        "snmp_version": "3", "snmp_sec_level": "authNoPriv",
        // The machine hangs on no other outlet, and on this one for certain.
        "sole_feed": if plugin == "eaton-pdu" { "yes" } else { "no" },
        "trust_wiring": if plugin == "eaton-pdu" { "yes" } else { "no" },
    }});
    Ok(serde_json::from_value(template)?)
}

async fn create(scenario: &Scenario, config_maps: &[ConfigMap]) -> Result<()> {
    let api = Api::<ConfigMap>::namespaced(scenario.cluster.client(), NAMESPACE);
    for one in config_maps {
        api.create(&PostParams::default(), one).await?;
    }
    Ok(())
}
