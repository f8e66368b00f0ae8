//! Components of earlier versions of the contract's host, kept as they were built
//! (`tests/fixtures/contract`): each is loaded by this host and switches what it speaks to.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use node_remedy_sandbox::{Action, PlugState, Sandbox, Trust, Verdict};
use node_remedy_tests::ipmi::{Kind, PASSWORD, Power, USERNAME};
use node_remedy_tests::process::{fresh_folder, repository};
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::{Bmc, Controller};

use crate::plugins_ipmi::sandboxed::{Reach, Sandboxed, secret};

/// What each version has.
const KEPT: [(&str, &[&str]); 1] = [("0.1.0", &["ipmi", "tasmota", "webhook"])];

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
