//! `redfish.wasm` as it ships, by hand through `node-remedy fence`, against sushy-emulator over TLS.
//!
//! What is true is read by another client, never by the plugin.

use std::fs;

use anyhow::{Context, Result};
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::{PASSWORD, Power, USERNAME};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::redfish::Emulator;

/// An emulator, and the method that reaches it. Whom it trusts the test says.
async fn start(name: &str) -> Result<(Emulator, FenceCommand)> {
    let emulator = Emulator::start(&fresh_folder(&format!("redfish-{name}"))?).await?;
    let hand = FenceCommand::new("redfish", name, "sushy-emulator over TLS")?.auth("basic");
    let hand = hand.account(USERNAME, PASSWORD)?.options(&["--address", &emulator.address()]);
    Ok((emulator, hand))
}

/// The same, whose authority is trusted.
async fn start_trusted(name: &str) -> Result<(Emulator, FenceCommand)> {
    let (emulator, hand) = start(name).await?;
    let hand = hand.options(&["--tls-ca", &emulator.authority().display().to_string()]);
    Ok((emulator, hand))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_the_emulator_agrees() -> Result<()> {
    let (emulator, hand) = start_trusted("power").await?;
    let [system, other] = emulator.two_systems()?;
    hand.walk(system, async || emulator.power(system).await).await?;
    let status = hand.fence("status", &["--plug", system]).await?;
    assert!(status.said.contains(&format!("system-uuid: {system}")), "{}", status.said);
    assert_eq!(emulator.resets()?, 5, "three offs, two ons");
    assert_eq!(emulator.power(other).await?, Power::Off, "the other machine was left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_machines_none_is_taken_for_the_right_one() -> Result<()> {
    let (emulator, hand) = start_trusted("two").await?;
    let [first, second] = emulator.two_systems()?;
    let stranger = "5ca1ab1e-0000-4000-8000-ffffffffffff";
    for system in ["", stranger, "/redfish/v1/Systems/none"] {
        let ended = hand.expect("off", &["--plug", system], 1).await?;
        if !system.starts_with('/') {
            assert!(ended.said.contains(first) && ended.said.contains(second), "{}", ended.said);
        }
    }
    assert_eq!(emulator.resets()?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_prove_who_it_is_gets_no_password() -> Result<()> {
    let (emulator, hand) = start("tls").await?;
    let plug = ["--plug", emulator.two_systems()?[0]];
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
    let (emulator, hand) = start_trusted("password").await?;
    fs::write(hand.folder().join("password"), "wrong\n")?;
    let ended = hand.expect("off", &["--plug", emulator.two_systems()?[0]], 1).await?;
    assert!(ended.said.contains("HTTP 401"), "{}", ended.said);
    assert!(ended.said.contains("check user name and password"), "{}", ended.said);
    assert_eq!(emulator.resets()?, 0);
    Ok(())
}
