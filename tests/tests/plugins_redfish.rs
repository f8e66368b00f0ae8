//! `redfish.wasm` as it ships, by hand through `node-remedy fence`, against sushy-emulator over TLS.
//!
//! What is true is read by another client, never by the plugin.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::{PASSWORD, Power, USERNAME};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::redfish::Emulator;

/// An emulator, and a file with a password for it.
struct Hand {
    emulator: Emulator,
    folder: PathBuf,
}

/// What a command came to.
struct Ended {
    code: i32,
    said: String,
}

impl Hand {
    async fn start(name: &str) -> Result<Self> {
        let folder = fresh_folder(&format!("plugins-redfish-{name}"))?;
        let emulator = Emulator::start(&folder).await?;
        fs::write(folder.join("password"), format!("{PASSWORD}\n"))?;
        Ok(Self { emulator, folder })
    }

    /// Runs a command to its end, with what else it takes. The password is in nothing that it prints.
    async fn fence(&self, action: &str, options: &[&str]) -> Result<Ended> {
        let mut command = Command::new(Controller::binary());
        command.args(["fence", "redfish", action, "--address", &self.emulator.address()]);
        command.args(["--username", USERNAME, "--password-file"]).arg(self.folder.join("password"));
        command.args(options);
        let ended = tokio::task::spawn_blocking(move || command.output()).await?;
        let Output { status, stdout, stderr } =
            ended.context("failed to start node-remedy: cargo build -p node-remedy")?;
        let said = [String::from_utf8(stdout)?, String::from_utf8(stderr)?].concat();
        ensure!(!said.contains(PASSWORD), "the password is in {said}");
        Ok(Ended { code: status.code().context("killed")?, said })
    }

    /// The same, of one system, whose authority is trusted.
    async fn fence_one(&self, action: &str, system: &str) -> Result<Ended> {
        let authority = self.emulator.authority().display().to_string();
        self.fence(action, &["--tls-ca", &authority, "--plug", system]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_the_emulator_agrees() -> Result<()> {
    let hand = Hand::start("power").await?;
    let [system, other] = hand.emulator.systems();
    for (action, code, power) in [
        ("status", 0, Power::On),
        ("off", 0, Power::Off),
        ("status", 2, Power::Off),
        ("off", 0, Power::Off),
        ("on", 0, Power::On),
        ("reboot", 0, Power::On),
        ("monitor", 0, Power::On),
    ] {
        let ended = hand.fence_one(action, system).await?;
        assert_eq!(ended.code, code, "{action}: {}", ended.said);
        assert!(ended.said.contains(&format!("system-uuid: {system}")), "{}", ended.said);
        assert_eq!(hand.emulator.power(system).await?, power, "{action}");
    }
    assert_eq!(hand.emulator.resets()?, 5, "three offs, two ons");
    assert_eq!(hand.emulator.power(other).await?, Power::Off, "the other machine was left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_machines_none_is_taken_for_the_right_one() -> Result<()> {
    let hand = Hand::start("two").await?;
    let [first, second] = hand.emulator.systems();
    let stranger = "5ca1ab1e-0000-4000-8000-ffffffffffff";
    for system in ["", stranger, "/redfish/v1/Systems/none"] {
        let ended = hand.fence_one("off", system).await?;
        assert_eq!(ended.code, 1, "{system}: {}", ended.said);
        if !system.starts_with('/') {
            assert!(ended.said.contains(first) && ended.said.contains(second), "{}", ended.said);
        }
    }
    assert_eq!(hand.emulator.resets()?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_prove_who_it_is_gets_no_password() -> Result<()> {
    let hand = Hand::start("tls").await?;
    let plug = ["--plug", &hand.emulator.systems()[0]];
    let ended = hand.fence("status", &plug).await?;
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("no trusted authority signed its certificate"), "{}", ended.said);

    let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let ended = hand.fence("status", &[&plug[..], &["--tls-pin", other]].concat()).await?;
    assert_eq!(ended.code, 1);
    // Whoever knows by other means that this is the device pins what was found.
    let (_, found) = ended.said.split_once("its key is ").context("no pin")?;
    let (pin, _) = found.split_once(',').context("no pin")?;
    let ended = hand.fence("status", &[&plug[..], &["--tls-pin", pin]].concat()).await?;
    assert_eq!(ended.code, 0, "{}", ended.said);
    let ended = hand.fence("status", &[&plug[..], &["--tls-insecure"]].concat()).await?;
    assert_eq!(ended.code, 0, "{}", ended.said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_as_one() -> Result<()> {
    let hand = Hand::start("password").await?;
    fs::write(hand.folder.join("password"), "wrong\n")?;
    let ended = hand.fence_one("off", &hand.emulator.systems()[0]).await?;
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("HTTP 401"), "{}", ended.said);
    assert!(ended.said.contains("check user name and password"), "{}", ended.said);
    assert_eq!(hand.emulator.resets()?, 0);
    Ok(())
}
