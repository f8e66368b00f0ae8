//! Components of earlier versions of the contract's host, kept as they were built
//! (`tests/fixtures/contract`): each is loaded by this host and switches what it speaks to, or decides.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use node_remedy_sandbox::{
    Action, Authorities, NodeFacts, PlugState, RemedyDecision, RemedyTried, Sandbox, Trust, Verdict,
};
use node_remedy_tests::ipmi::{Kind, PASSWORD, Power, USERNAME};
use node_remedy_tests::libvirt::{self, Hypervisor};
use node_remedy_tests::process::{fresh_folder, repository};
use node_remedy_tests::snmp::{AUTH, Agent, Model, PRIVACY, WRITER};
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::{Bmc, Controller};

use crate::plugins_ipmi::sandboxed::{Reach, Sandboxed, secret};

/// What each version has.
const KEPT: [(&str, &[&str]); 1] =
    [("0.1.0", &["apc-pdu", "ipmi", "libvirt", "polite", "tasmota", "webhook"])];

/// Loads one as a component from outside is loaded.
fn load(version: &str, method: &str) -> Result<Sandboxed> {
    let path = repository().join("tests/fixtures/contract").join(version).join(method);
    let path = path.with_extension("wasm");
    let wasm = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let sandbox = Sandbox::new()?;
    let plugin = sandbox.load_external(&Controller::binary(), &wasm);
    Sandboxed::holding(&sandbox, plugin.with_context(|| format!("{version}: {method}"))?)
}

async fn call(plugin: &Sandboxed, action: Action, reach: &Reach) -> Result<PlugState> {
    let call = plugin.prepare_for(action, reach.clone()).await?;
    let report = plugin.call(call).await;
    let Verdict::Outcome(outcome) = report.verdict() else { bail!("{action:?}: {report:?}") };
    Ok(outcome.state)
}

#[test]
fn every_component_that_is_kept_is_called_by_a_test() -> Result<()> {
    let folder = repository().join("tests/fixtures/contract");
    let mut kept = Vec::new();
    for version in fs::read_dir(folder)? {
        let version = version?.path();
        if version.is_dir() {
            let files = fs::read_dir(&version)?.collect::<std::io::Result<Vec<_>>>()?;
            kept.extend(files.iter().map(fs::DirEntry::path));
        }
    }
    let folder = repository().join("tests/fixtures/contract");
    let mut wanted: Vec<_> = KEPT
        .iter()
        .flat_map(|(version, methods)| methods.iter().map(move |method| (version, method)))
        .map(|(version, method)| folder.join(version).join(method).with_extension("wasm"))
        .collect();
    kept.sort();
    wanted.sort();
    assert_eq!(kept, wanted);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_ipmi_switches_a_bmc() -> Result<()> {
    for (version, _) in KEPT {
        let plugin = load(version, "ipmi")?;
        let bmc = Bmc::start(Kind::Bmc17, &fresh_folder("plugins-contract-ipmi")?).await?;
        let reach = Reach::bmc(&bmc, "17");
        assert_eq!(call(&plugin, Action::Status, &reach).await?, PlugState::On, "{version}");
        call(&plugin, Action::Off, &reach).await?;
        assert_eq!(bmc.power(), Power::Off, "{version}");
        assert_eq!(call(&plugin, Action::Status, &reach).await?, PlugState::Off, "{version}");
        call(&plugin, Action::On, &reach).await?;
        assert_eq!(bmc.power(), Power::On, "{version}");
    }
    Ok(())
}

/// One relay, by the plugin for it and by the one that is told what to ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_methods_of_http_switch_a_relay() -> Result<()> {
    let told = [
        ("scheme", "http"),
        ("authentication", "basic"),
        ("status-path", "/cm?cmnd=Power"),
        ("state-pointer", "/POWER"),
        ("on-words", "ON"),
        ("off-words", "OFF"),
        ("off-method", "GET"),
        ("off-path", "/cm?cmnd=Power%20Off"),
        ("on-method", "GET"),
        ("on-path", "/cm?cmnd=Power%20On"),
    ];
    for (version, _) in KEPT {
        for (method, plug, told) in [("tasmota", "1", [].as_slice()), ("webhook", "", &told)] {
            let plugin = load(version, method)?;
            let folder = fresh_folder(&format!("plugins-contract-{method}"))?;
            let board = Plugs::start(&folder, Door::PlainBasic, Duration::ZERO).await?;
            let address = [("address".to_owned(), board.address())];
            let told = told.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
            let reach = Reach {
                parameters: address.into_iter().chain(told).collect(),
                credentials: BTreeMap::from([secret("account", Some(USERNAME), PASSWORD)]),
                plug: plug.to_owned(),
                trust: Trust::default(),
            };
            for (action, state, truth) in [
                (Action::Status, PlugState::On, "ON"),
                (Action::Off, PlugState::Off, "OFF"),
                (Action::Status, PlugState::Off, "OFF"),
                (Action::On, PlugState::On, "ON"),
            ] {
                let said = call(&plugin, action, &reach).await?;
                assert_eq!(said, state, "{version}: {method} {action:?}");
                assert_eq!(board.read("/cm?cmnd=Power").await?["POWER"], truth, "{method}");
            }
        }
    }
    Ok(())
}

/// Streams, plain and in TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_libvirt_switches_a_machine_over_a_stream() -> Result<()> {
    for (version, _) in KEPT {
        let plugin = load(version, "libvirt")?;
        let folder = fresh_folder("plugins-contract-libvirt")?;
        let hypervisor = Hypervisor::start(&folder, libvirt::Door::Open).await?;
        let authority = Authorities::from_pem(&fs::read(hypervisor.authority())?)?;
        let [name, _] = Hypervisor::MACHINES;
        for (transport, address, trust) in [
            ("tls", hypervisor.tls(), Trust::Authorities(authority)),
            ("tcp", hypervisor.tcp(), Trust::default()),
        ] {
            let parameters =
                [("address", address.as_str()), ("transport", transport), ("uri", libvirt::URI)];
            let reach = Reach {
                parameters: parameters.map(|(name, value)| (name.into(), value.into())).into(),
                credentials: BTreeMap::new(),
                plug: name.to_owned(),
                trust,
            };
            for (action, state, power) in [
                (Action::Status, PlugState::On, Power::On),
                (Action::Off, PlugState::Off, Power::Off),
                (Action::On, PlugState::On, Power::On),
            ] {
                let said = call(&plugin, action, &reach).await?;
                assert_eq!(said, state, "{version}: {transport} {action:?}");
                assert_eq!(hypervisor.power(name).await?, power, "{transport} {action:?}");
            }
        }
    }
    Ok(())
}

/// By a user whose keys the host makes (`usm-key`), and by a community that the plugin is shown (`reveal`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_pdu_is_switched_by_a_user_and_by_a_community() -> Result<()> {
    for (version, _) in KEPT {
        let plugin = load(version, "apc-pdu")?;
        let folder = fresh_folder("plugins-contract-apc-pdu")?;
        let agent = Agent::start(&folder, Model::ApcRpdu2).await?;
        let user = [secret("account", Some("sha1-aes128"), AUTH), secret("privacy", None, PRIVACY)];
        for (snmp, credentials) in [
            ("3", BTreeMap::from(user)),
            ("2c", BTreeMap::from([secret("community", None, WRITER)])),
        ] {
            let parameters = [("address".to_owned(), agent.address())];
            let reach = Reach {
                parameters: parameters
                    .into_iter()
                    .chain([("version".into(), snmp.into())])
                    .collect(),
                credentials,
                plug: Model::ApcRpdu2.third().to_owned(),
                trust: Trust::default(),
            };
            for (action, state, dark) in [
                (Action::Status, PlugState::On, [].as_slice()),
                (Action::Off, PlugState::Off, &[3]),
                (Action::On, PlugState::On, &[]),
            ] {
                let said = call(&plugin, action, &reach).await?;
                assert_eq!(said, state, "{version}: version {snmp} {action:?}");
                assert_eq!(agent.dark().await?, dark, "version {snmp} {action:?}");
            }
        }
    }
    Ok(())
}

/// The world of remedies: everything that one is shown, and each decision of this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_remedy_decides() -> Result<()> {
    let node = NodeFacts {
        name: "worker-3".to_owned(),
        labels: vec![("polite.example.com/method".to_owned(), "bmc".to_owned())],
        ready: true,
        conditions: Vec::new(),
        boot_id: "boot".to_owned(),
        pods: 7,
        pods_with_volumes: 2,
        peers_unhealthy: 0,
        peers_total: 4,
    };
    let drain = RemedyDecision::Cluster("drain".to_owned());
    let tried = |action: &str, detail: &str| RemedyTried {
        action: action.to_owned(),
        succeeded: false,
        detail: detail.to_owned(),
        age_s: 30,
    };
    let all = [tried("cluster drain", ""), tried("method bmc", ""), tried("fence", "no way")];
    let ill = NodeFacts { peers_unhealthy: 2, ..node.clone() };
    for (version, _) in KEPT {
        let remedy = load(version, "polite")?;
        for (seen, tried, wanted) in [
            (&ill, [].as_slice(), RemedyDecision::Wait(120)),
            (&node, &[], drain.clone()),
            (&node, &all[..1], RemedyDecision::Method("bmc".to_owned())),
            (&node, &all[..2], RemedyDecision::Fence),
            (&node, &all, RemedyDecision::Fail("no way".to_owned())),
        ] {
            let remedied = remedy.plugin.next(seen, tried, &remedy.seams).await;
            assert_eq!(remedied.decision, Ok(wanted), "{version}: {tried:?}");
        }
    }
    Ok(())
}
