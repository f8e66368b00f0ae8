//! `proxmox.wasm` as it ships, by hand through `node-remedy fence`, against fakepve over TLS.
//!
//! What is true is read by another client, never by the plugin.

use std::fs;

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::proxmox::{self, PASSWORD, TOKEN, USERNAME, UUID, power, token_front};
use node_remedy_tests::stand_in::StandIn;

async fn start(name: &str) -> Result<(StandIn, FenceCommand)> {
    let cluster = proxmox::start(&fresh_folder(&format!("proxmox-{name}"))?).await?;
    let hand = FenceCommand::new("proxmox", name, "fakepve 0.5.0 over TLS")?.auth("login");
    let authority = cluster.authority().display().to_string();
    let hand = hand.account(USERNAME, PASSWORD)?;
    let hand = hand.options(&["--address", &cluster.address(), "--tls-ca", &authority]);
    Ok((cluster, hand))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_fakepve_agrees() -> Result<()> {
    let (cluster, hand) = start("machine").await?;
    hand.walk("101", async || power(&cluster, ["qemu", "pve1", "101"]).await).await?;
    hand.expect("reset", &["--plug", "node1"], 0).await?;
    let status = hand.fence("status", &["--plug", "node1"]).await?;
    assert!(status.said.contains(&format!("system-uuid: {UUID}")), "{}", status.said);
    assert!(status.said.contains("vmid: 101"), "{}", status.said);
    assert_eq!(power(&cluster, ["qemu", "pve1", "102"]).await?, Power::On);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_on_another_node_is_switched_off_and_on() -> Result<()> {
    let (cluster, hand) = start("container").await?;
    hand.walk("box1", async || power(&cluster, ["lxc", "pve2", "201"]).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_named_alone_is_left_alone() -> Result<()> {
    let (cluster, hand) = start("names").await?;
    for (plug, says) in [
        ("twin", "several guests are \"twin\"; name one by its number"),
        ("104", "none of the 4 guests that the account sees is \"104\""),
        ("", "the plug names no guest"),
    ] {
        let ended = hand.expect("off", &["--plug", plug], 1).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
    }
    for number in ["101", "102", "103"] {
        assert_eq!(power(&cluster, ["qemu", "pve1", number]).await?, Power::On);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_or_token_is_told_as_one() -> Result<()> {
    let (cluster, hand) = start("password").await?;
    fs::write(hand.folder().join("password"), "wrong\n")?;
    let ended = hand.expect("off", &["--plug", "101"], 1).await?;
    assert!(ended.said.contains("HTTP 401"), "{}", ended.said);
    assert!(ended.said.contains("check user@realm and password"), "{}", ended.said);
    let token = ["--plug", "101", "--set", "authentication=token"];
    let ended = hand.clone().auth("header").expect("off", &token, 1).await?;
    assert!(ended.said.contains("check the token, user@realm!name"), "{}", ended.said);
    assert_eq!(power(&cluster, ["qemu", "pve1", "101"]).await?, Power::On);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_token_switches_a_machine() -> Result<()> {
    let (cluster, _) = start("token").await?;
    let front = token_front(&cluster, &fresh_folder("proxmox-token-front")?).await?;
    let [name, secret] = TOKEN;
    let hand =
        FenceCommand::new("proxmox", "token-front", "a front with API tokens before fakepve")?;
    let hand = hand.auth("header").account(name, secret)?;
    let authority = front.authority().display().to_string();
    let hand = hand.options(&["--address", &front.address(), "--tls-ca", &authority]);
    let hand = hand.options(&["--set", "authentication=token"]);
    hand.walk("101", async || power(&cluster, ["qemu", "pve1", "101"]).await).await
}
