//! The lost node's scenario with fence methods other than IPMI: other devices, the same machines, the
//! same judge.

use anyhow::{Context, Result};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::ec2::Ec2;
use node_remedy_tests::ipmi::{Power, PowerFile};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::redfish::{Emulator, System, SystemPower};
use node_remedy_tests::remedy::{
    Installation, SECRET, describe, install_secret, is_in_phase, status,
};
use node_remedy_tests::snmp::{Agent, Model, WRITER, Wired};
use node_remedy_tests::user::User;
use node_remedy_tests::{Bmc, Controller};
use serde_json::{Value, json};

use crate::e2e_scenario::Scenario;

/// Redfish over TLS, on one emulator that has every machine of the cluster: each is found by its UUID,
/// and switches 1 to 11 seconds after the yes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_by_redfish() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-redfish", Settings::QUICK).await?;
    let bmcs = scenario.cluster.bmcs.values();
    let systems: Vec<_> = bmcs
        .map(|bmc| System {
            uuid: bmc.guid().as_uuid(),
            power: SystemPower::Chassis(bmc.power_file().path().to_owned()),
        })
        .collect();
    let folder = scenario.cluster.control_plane().folder().join("redfish");
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
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
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

/// Each node is an instance of EC2, which its providerID names: the plug, the region and the identity
/// come from there. The service checks signatures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_by_aws() -> Result<()> {
    let ec2 = Ec2::start(&fresh_folder("e2e-aws-ec2")?).await?;
    let scenario = scenario_on("e2e-aws", &ec2, "fence").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    for instance in ec2.instances() {
        assert_eq!(ec2.power(instance).await?, Power::On, "{instance}");
    }
    controller.terminate().await
}

/// A15: the instances are an autoscaling group, which ends and replaces whatever stops in its service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_of_an_autoscaling_group_is_fenced_and_kept() -> Result<()> {
    let ec2 = Ec2::start_in_group(&fresh_folder("e2e-asg-ec2")?).await?;
    let scenario = scenario_on("e2e-asg", &ec2, "group-fence").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    for instance in ec2.instances() {
        assert_eq!(ec2.power(instance).await?, Power::On, "{instance}");
        assert_eq!(ec2.in_group(instance).await?, "InService desired 3", "{instance}");
    }
    controller.terminate().await
}

/// A15: the group was faster. The instance never runs again, which is proof, and there is nothing to
/// switch on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_whose_group_replaced_it_is_released_and_left() -> Result<()> {
    let ec2 = Ec2::start_in_group(&fresh_folder("e2e-replaced-ec2")?).await?;
    let scenario = scenario_on("e2e-replaced", &ec2, "group-fence").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let instance = lost_instance(&scenario, &ec2)?;
    assert_eq!(ec2.terminate(instance).await?, "terminated");
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let incident = scenario.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(status(&incident, "/finalReason"), "Replaced", "{}", describe(&incident));
    assert_eq!(scenario.asked(&scenario.node)?, (0, 0), "nothing was switched");
    assert_eq!(ec2.state(instance).await?, "terminated");
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert!(!verdict.releases.is_empty(), "node-remedy released the database");
    controller.terminate().await
}

/// Proposal 000: a fencing method can also remove the node through the cloud's API. The end of its instance is
/// the proof, and nothing is switched on again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_removed_through_its_cloud() -> Result<()> {
    let ec2 = Ec2::start(&fresh_folder("e2e-remove-ec2")?).await?;
    let scenario = scenario_on("e2e-remove", &ec2, "remove").await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let lost = lost_instance(&scenario, &ec2)?;
    scenario.lose_node()?;
    scenario.cluster.database_runs(Some(&scenario.node)).await?;
    let incident = scenario.incident("Final", |incident| is_in_phase(incident, "Final")).await?;
    assert_eq!(status(&incident, "/finalReason"), "Replaced", "{}", describe(&incident));
    for instance in ec2.instances() {
        let expected = if instance == lost { "terminated" } else { "running" };
        assert_eq!(ec2.state(instance).await?, expected, "{instance}");
    }
    let verdict = scenario.cluster.observer(User::NodeRemedy).judge()?;
    assert_eq!(verdict.violations, []);
    assert!(!verdict.releases.is_empty(), "node-remedy released the database");
    controller.terminate().await
}

/// The instance that is the node of the scenario.
fn lost_instance<'a>(scenario: &Scenario, ec2: &'a Ec2) -> Result<&'a String> {
    let place = scenario.cluster.bmcs.keys().position(|node| *node == scenario.node);
    place.and_then(|place| ec2.instances().get(place)).context("no instance")
}

/// A cluster on these instances, with node-remedy installed for them and the key of this user.
async fn scenario_on(name: &str, ec2: &Ec2, user: &str) -> Result<Scenario> {
    let provider_ids = ec2.instances().each_ref().map(|instance| ec2.provider_id(instance));
    let mut scenario = Scenario::prepare_in_cloud(name, Settings::QUICK, &provider_ids).await?;
    let files: Vec<_> = scenario.cluster.bmcs.values().map(Bmc::power_file).collect();
    let wired = ec2.instances().iter().map(String::as_str).zip(files.iter().map(PowerFile::path));
    ec2.wire(&wired.collect())?;
    let (id, secret) = ec2.key(user)?;
    let keys = json!({"username": id, "password": secret});
    install_secret(&scenario.cluster, "aws-keys", &keys).await?;
    let parameters = match user {
        "group-fence" => {
            json!({"address": ec2.address(), "autoscaling-address": ec2.address()})
        }
        "remove" => json!({"address": ec2.address(), "off": "terminate"}),
        _ => json!({"address": ec2.address()}),
    };
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "templates": [{
            "name": "ec2", "plugin": "aws", "parameters": parameters,
            "credentials": [{"secret": "aws-keys"}],
        }],
        "methods": [{
            "name": "instance", "template": "ec2", "action": "reboot",
            "plug": "${node.providerID}",
        }],
        "powerManagement": [{"name": "power", "methods": ["instance"]}],
        "grants": [{
            "plugin": "aws", "cidrs": ["127.0.0.1/32"], "ports": [ec2.port()],
            "tls": {"caBundle": std::fs::read_to_string(ec2.authority())?},
        }],
    });
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    Ok(scenario)
}

/// The number in a node's name, counted from one: the outlet or port that it hangs on.
pub(crate) fn place(node: &str) -> Result<u32> {
    let number: u32 = node.rsplit('-').next().context("no number")?.parse()?;
    Ok(number + 1)
}

/// A template of an SNMP method, and the credential that it takes: the community that may write.
fn by_snmp(name: &str, plugin: &str, agent: &Agent) -> Value {
    json!({
        "name": name, "plugin": plugin,
        "parameters": {"address": agent.address(), "version": "2c"},
        "credentials": [{"name": "community", "secret": COMMUNITY, "identityKey": ""}],
    })
}

/// The Secret with the community.
const COMMUNITY: &str = "community";
/// Which outlet or port a node hangs on.
const PLACE: &str = "${node.labels['place']}";

/// Every machine has two feeds, an outlet of the same number on each of two PDUs; whether the configuration answers for
/// the wiring.
pub(crate) async fn two_feeds(scenario: &mut Scenario, is_trusted: bool) -> Result<(Agent, Agent)> {
    let folder = scenario.cluster.control_plane().folder().to_owned();
    let (a, b) = (
        Agent::start(&folder.join("pdu-a"), Model::ApcRpdu2).await?,
        Agent::start(&folder.join("pdu-b"), Model::ApcRpdu2).await?,
    );
    let mut chassis = Vec::new();
    for (node, bmc) in &scenario.cluster.bmcs {
        chassis.push((place(node)?, bmc.power_file()));
        scenario.label(node, "place", &place(node)?.to_string()).await?;
    }
    let feeds: Vec<_> = chassis.iter().map(|(plug, _)| [(&a, *plug), (&b, *plug)]).collect();
    let wired: Vec<_> = chassis
        .iter()
        .zip(&feeds)
        .map(|((plug, file), feeds)| Wired { plug: *plug, chassis: file.path(), feeds })
        .collect();
    a.wire(&wired)?;
    b.wire(&wired)?;
    install_secret(&scenario.cluster, COMMUNITY, &json!({"password": WRITER})).await?;
    let outlet = |name, template| {
        json!({
            "name": name, "template": template, "plug": PLACE, "action": "reboot",
            "trustWiring": is_trusted,
        })
    };
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": [PLACE],
        "templates": [by_snmp("feed-a", "apc-pdu", &a), by_snmp("feed-b", "apc-pdu", &b)],
        "methods": [outlet("outlet-a", "feed-a"), outlet("outlet-b", "feed-b")],
        "powerManagement": [{
            "name": "both-feeds", "run": "all", "mustSuccess": true,
            "methods": ["outlet-a", "outlet-b"],
        }],
        "grants": [{
            "plugin": "apc-pdu", "cidrs": ["127.0.0.1/32"], "ports": [a.port(), b.port()],
            "reveal": ["community"],
        }],
    });
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    Ok((a, b))
}

/// Each machine has two feeds, on two PDUs: it is off only when both outlets are, and was not fenced
/// before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_with_two_feeds_is_fenced_by_two_pdus() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-pdu", Settings::QUICK).await?;
    let (a, b) = two_feeds(&mut scenario, true).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.ends_well().await?;
    for pdu in [&a, &b] {
        assert_eq!(pdu.dark().await?, [0_u32; 0], "every outlet is on again");
        let sets = pdu.sets()?;
        assert_eq!(sets.len(), 2, "one off and one on: {sets:?}");
        let own = format!(".{} = ", place(&scenario.node)?);
        assert!(sets.iter().all(|set| set.contains(&own)), "of this machine alone: {sets:?}");
    }
    controller.terminate().await
}

/// The port of the switch is cut first, and restored before the machine is switched on (A5): a machine
/// without network never becomes Ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_cut_off_by_its_switch_and_fenced_by_ipmi() -> Result<()> {
    let mut scenario = Scenario::prepare("e2e-switch", Settings::QUICK).await?;
    let folder = scenario.cluster.control_plane().folder().to_owned();
    let switch = Agent::start(&folder.join("switch"), Model::Switch).await?;
    for node in scenario.cluster.bmcs.keys() {
        scenario.label(node, "place", &place(node)?.to_string()).await?;
    }
    install_secret(&scenario.cluster, COMMUNITY, &json!({"password": WRITER})).await?;
    let ports: Vec<_> = scenario.cluster.bmcs.values().map(Bmc::port).collect();
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": ["${node.annotations['bmc']}", PLACE],
        "templates": [
            by_snmp("switch", "snmp-switch", &switch),
            {
                "name": "bmc", "plugin": "ipmi", "credentials": [{"secret": SECRET}],
                "parameters": {
                    "address": "${node.annotations['bmc']}", "cipher-suite": "3",
                },
            },
        ],
        "methods": [
            {"name": "cut", "template": "switch", "plug": format!("Gi1/0/{PLACE}"), "action": "off"},
            {"name": "power", "template": "bmc", "action": "reboot"},
        ],
        "isolation": [{"name": "network", "methods": ["cut"]}],
        "powerManagement": [{"name": "power", "methods": ["power"]}],
        "grants": [
            {
                "plugin": "snmp-switch", "cidrs": ["127.0.0.1/32"], "ports": [switch.port()],
                "reveal": ["community"],
            },
            {"plugin": "ipmi", "cidrs": ["127.0.0.1/32"], "ports": ports},
        ],
    });
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    let seen = async {
        scenario.cluster.until_power(&scenario.node, Power::Off).await?;
        scenario.cluster.until_power(&scenario.node, Power::On).await?;
        switch.sets()
    };
    let (when_on, ()) = tokio::try_join!(seen, scenario.ends_well())?;
    let own = format!(".10{:03} = ", place(&scenario.node)?);
    let is_restored = |set: &String| set.ends_with(&format!("{own}1"));
    assert!(
        when_on.last().is_some_and(is_restored),
        "restored before the machine came on: {when_on:?}"
    );
    let sets = switch.sets()?;
    assert_eq!(sets, when_on, "nothing was written after that");
    assert_eq!(sets.iter().filter(|set| is_restored(set)).count(), 1, "restored once: {sets:?}");
    assert!(sets.iter().all(|set| set.contains(&own)), "of this machine alone: {sets:?}");
    assert_eq!(switch.dark().await?, [0_u32; 0]);
    controller.terminate().await
}
