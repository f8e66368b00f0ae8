//! The lost node's story with fence methods other than IPMI: other devices, the same machines, the
//! same judge.

use anyhow::Result;
use node_remedy_tests::Controller;
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::redfish::{Emulator, System, SystemPower};
use node_remedy_tests::remedy::{Installation, SECRET};
use serde_json::json;

use crate::e2e_story::Story;

/// Redfish over TLS, on one emulator that has every machine of the cluster: each is found by its UUID,
/// and switches 1 to 11 seconds after the yes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_by_redfish() -> Result<()> {
    let mut story = Story::prepare("e2e-redfish", Settings::QUICK).await?;
    let bmcs = story.cluster.bmcs.values();
    let systems: Vec<_> = bmcs
        .map(|bmc| System {
            uuid: bmc.guid().as_uuid(),
            power: SystemPower::Chassis(bmc.power_file().path().to_owned()),
        })
        .collect();
    let folder = story.cluster.control_plane().folder().join("redfish");
    let emulator = Emulator::start_with(&folder, &systems).await?;
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "templates": [{
            "name": "bmc",
            "plugin": "redfish",
            "parameters": {"address": emulator.address()},
            "credentials": [{"secret": SECRET}],
        }],
        "methods": [{
            "name": "power-cycle", "template": "bmc", "action": "reboot",
            "plug": "${node.systemUUID}",
        }],
        "powerManagement": [{"name": "power", "methods": ["power-cycle"]}],
        "grants": [{
            "plugin": "redfish", "cidrs": ["127.0.0.1/32"], "ports": [emulator.port()],
            "tls": {"caBundle": std::fs::read_to_string(emulator.authority())?},
        }],
    });
    story.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    let mut controller = Controller::start(&story.cluster, "one")?;
    controller.until_ready().await?;
    story.lose_node()?;
    story.ends_well().await?;
    let metrics = controller.metrics().await?;
    for action in ["off", "on"] {
        let line = format!(
            "node_remedy_plugin_calls_total{{plugin=\"redfish\",action=\"{action}\",result=\"ok\"}} 1"
        );
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    assert_eq!(emulator.resets()?, 2, "one off and one on");
    controller.terminate().await
}
