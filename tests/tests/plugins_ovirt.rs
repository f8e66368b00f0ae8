//! `ovirt.wasm` as it ships, by hand through `node-remedy fence`, against a stand-in for an oVirt engine over
//! TLS, which oVirt's own SDK drives too.
//!
//! What is true is read by that client, never by the plugin.

use std::fs;

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::ovirt::{self, ID, PASSWORD, READER, USERNAME, sdk};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::stand_in::StandIn;

async fn start(name: &str) -> Result<(StandIn, FenceCommand)> {
    let engine = ovirt::start(&fresh_folder(&format!("ovirt-{name}"))?).await?;
    let hand = FenceCommand::new("ovirt", name, "stand-in for an engine over TLS")?.auth("login");
    let authority = engine.authority().display().to_string();
    let hand = hand.options(&["--address", &engine.address(), "--tls-ca", &authority]);
    Ok((engine, hand))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_ovirts_sdk_agrees() -> Result<()> {
    let (engine, hand) = start("power").await?;
    let hand = hand.account(USERNAME, PASSWORD)?;
    // The stand-in does for another client what it does for ours.
    assert_eq!(sdk(&engine, "node1", "stop").await?, Power::Off);
    assert_eq!(sdk(&engine, "node1", "start").await?, Power::On);
    hand.walk("node1", async || sdk(&engine, "node1", "").await).await?;
    hand.expect("reset", &["--plug", ID], 0).await?;
    let status = hand.expect("status", &["--plug", ID], 0).await?;
    assert!(status.said.contains(&format!("system-uuid: {ID}")), "{}", status.said);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_or_names_nobody_switches_nothing() -> Result<()> {
    let (engine, hand) = start("refusals").await?;
    let admin = hand.clone().account(USERNAME, PASSWORD)?;
    for (plug, says) in [
        ("twin", "several machines have the name \"twin\""),
        ("NODE1", "there is no machine \"NODE1\""),
        ("0e100000-0000-4000-8000-000000000099", "there is no machine 0e100000"),
    ] {
        let ended = admin.expect("off", &["--plug", plug], 1).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
    }
    let reader = hand.account(READER, PASSWORD)?;
    reader.expect("status", &["--plug", "node1"], 0).await?;
    let ended = reader.expect("off", &["--plug", "node1"], 1).await?;
    assert!(ended.said.contains("HTTP 403"), "{}", ended.said);
    assert!(ended.said.contains("check the role of the account"), "{}", ended.said);
    fs::write(reader.folder().join("password"), "wrong\n")?;
    let ended = reader.expect("off", &["--plug", "node1"], 1).await?;
    assert!(ended.said.contains("login failed"), "{}", ended.said);
    assert_eq!(sdk(&engine, "node1", "").await?, Power::On);
    assert_eq!(engine.lines(&["POST", "/stop", "200"])?, 0);
    Ok(())
}
