//! `libvirt.wasm` as it ships, by hand through `node-remedy fence`, against the real libvirt daemon with
//! its test driver, over TCP and TLS.
//!
//! What is true is read by virsh, never by the plugin.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::libvirt::{Door, Hypervisor, URI};
use node_remedy_tests::process::fresh_folder;

/// What a command came to.
struct Ended {
    code: i32,
    said: String,
}

async fn start(name: &str, door: Door) -> Result<(Hypervisor, PathBuf)> {
    let folder = fresh_folder(&format!("plugins-libvirt-{name}"))?;
    Ok((Hypervisor::start(&folder, door).await?, folder))
}

/// Runs a command to its end.
async fn fence(action: &str, options: &[&str]) -> Result<Ended> {
    let mut command = Command::new(Controller::binary());
    command.args(["fence", "libvirt", action, "--set", &format!("uri={URI}")]).args(options);
    let ended = tokio::task::spawn_blocking(move || command.output()).await?;
    let Output { status, stdout, stderr } =
        ended.context("failed to start node-remedy: cargo build -p node-remedy")?;
    let said = [String::from_utf8(stdout)?, String::from_utf8(stderr)?].concat();
    Ok(Ended { code: status.code().context("killed")?, said })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_virsh_agrees() -> Result<()> {
    let (hypervisor, _folder) = start("power", Door::Open).await?;
    let authority = hypervisor.authority().display().to_string();
    let (tcp, tls) = (hypervisor.tcp(), hypervisor.tls());
    let plain = ["--address", &tcp, "--set", "transport=tcp"];
    let sealed = ["--address", &tls, "--tls-ca", &authority];
    let [name, other] = Hypervisor::MACHINES;
    let [uuid, _] = hypervisor.uuids();
    for (way, plug) in [(plain, name), (sealed, uuid)] {
        for (action, code, power) in [
            ("status", 0, Power::On),
            ("off", 0, Power::Off),
            ("status", 2, Power::Off),
            ("off", 0, Power::Off),
            ("on", 0, Power::On),
            ("on", 0, Power::On),
            ("reboot", 0, Power::On),
            ("monitor", 0, Power::On),
        ] {
            let ended = fence(action, &[&way[..], &["--plug", plug]].concat()).await?;
            assert_eq!(ended.code, code, "{action} {plug}: {}", ended.said);
            assert!(ended.said.contains(&format!("system-uuid: {uuid}")), "{}", ended.said);
            assert_eq!(hypervisor.power(name).await?, power, "{action} {plug}");
        }
    }
    // A reset leaves a machine on, and one that was off stays off.
    let ended = fence("reset", &[&plain[..], &["--plug", name]].concat()).await?;
    assert_eq!((ended.code, hypervisor.power(name).await?), (0, Power::On), "{}", ended.said);
    assert_eq!(hypervisor.power(other).await?, Power::Off, "the other machine was left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_does_not_exist_is_not_off() -> Result<()> {
    let (hypervisor, _folder) = start("missing", Door::Open).await?;
    let tcp = hypervisor.tcp();
    for plug in ["", "node", "node-c", "5ca1ab1e-0000-4000-8000-ffffffffffff"] {
        for action in ["status", "off"] {
            let way = ["--address", &tcp, "--set", "transport=tcp", "--plug", plug];
            let ended = fence(action, &way).await?;
            assert_eq!(ended.code, 1, "{action} {plug}: {}", ended.said);
            assert!(ended.said.contains("name or UUID"), "{}", ended.said);
        }
    }
    assert_eq!(hypervisor.power(Hypervisor::MACHINES[0]).await?, Power::On);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_only_stands_still_is_not_off() -> Result<()> {
    let (hypervisor, _folder) = start("paused", Door::Open).await?;
    let [name, _] = Hypervisor::MACHINES;
    hypervisor.virsh(&["suspend", name]).await?;
    let tcp = hypervisor.tcp();
    let way = ["--address", &tcp, "--set", "transport=tcp", "--plug", name];
    let ended = fence("status", &way).await?;
    assert_eq!(ended.code, 1, "{}", ended.said);
    assert!(ended.said.contains("paused, which is not off"), "{}", ended.said);
    let ended = fence("off", &way).await?;
    assert_eq!((ended.code, hypervisor.power(name).await?), (0, Power::Off), "{}", ended.said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_was_saved_is_not_gone_on_with() -> Result<()> {
    let (hypervisor, _folder) = start("saved", Door::Open).await?;
    let [name, _] = Hypervisor::MACHINES;
    hypervisor.virsh(&["managedsave", name]).await?;
    let tcp = hypervisor.tcp();
    let way = ["--address", &tcp, "--set", "transport=tcp", "--plug", name];
    let ended = fence("status", &way).await?;
    assert_eq!(ended.code, 1, "{}", ended.said);
    assert!(ended.said.contains("memory was saved, which is not off"), "{}", ended.said);
    let ended = fence("on", &[&way[..], &["--timeout", "5"]].concat()).await?;
    // This driver takes no flags when it starts a machine, and so nothing is started, rather than the
    // old memory.
    assert_eq!(ended.code, 1, "{}", ended.said);
    assert!(ended.said.contains("unsupported flags (0x8)"), "{}", ended.said);
    assert_eq!(hypervisor.power(name).await?, Power::Off);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_proves_nothing_is_not_spoken_to_and_who_wants_more_is_named() -> Result<()> {
    let (hypervisor, _folder) = start("trust", Door::Open).await?;
    let (tls, [name, _]) = (hypervisor.tls(), Hypervisor::MACHINES);
    let ended = fence("off", &["--address", &tls, "--plug", name]).await?;
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("no trusted authority signed its certificate"), "{}", ended.said);
    assert_eq!(hypervisor.power(name).await?, Power::On);

    let (closed, _folder) = start("closed", Door::Closed).await?;
    let (tcp, tls) = (closed.tcp(), closed.tls());
    let plain = ["--address", &tcp, "--set", "transport=tcp", "--plug", name];
    for (way, says) in [
        (&plain[..], "wants a login by sasl, which this plugin does not do"),
        (&["--address", &tls, "--plug", name, "--tls-insecure"], "a certificate of ours"),
        (
            &["--address", &tcp, "--plug", name, "--tls-insecure"],
            "is the parameter transport right?",
        ),
        (
            &["--address", &tls, "--plug", name, "--set", "transport=tcp"],
            "is the parameter transport",
        ),
    ] {
        let ended = fence("status", way).await?;
        assert_eq!(ended.code, 1);
        assert!(ended.said.contains(says), "{says}: {}", ended.said);
    }
    Ok(())
}
