//! `brocade-rest.wasm` as it ships, by hand through `node-remedy fence`, against a stand-in for a switch over
//! TLS, which curl drives too.
//!
//! What is true is read by that client, never by the plugin.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::fos::{self, PASSWORD, READER, USERNAME, curl, port};
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::stand_in::StandIn;
use node_remedy_tests::time::until;

async fn start(name: &str, version: u32) -> Result<(StandIn, FenceCommand)> {
    let switch = fos::start(&fresh_folder(&format!("brocade-rest-{name}"))?, version).await?;
    let against = format!("stand-in for a switch with Fabric OS {version} over TLS");
    let hand = FenceCommand::new("brocade-rest", name, &against)?.auth("login");
    let authority = switch.authority().display().to_string();
    let hand = hand.options(&["--address", &switch.address(), "--tls-ca", &authority]);
    Ok((switch, hand))
}

/// The sessions that were begun and not ended: a switch has few.
fn left(switch: &StandIn) -> Result<usize> {
    let begun = switch.lines(&["POST /rest/login", "200"])?;
    let ended = switch.lines(&["POST /rest/logout"])?;
    Ok(begun.abs_diff(ended))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_cut_and_restored_in_both_versions_and_curl_agrees() -> Result<()> {
    for version in [8, 9] {
        let (switch, hand) = start(&format!("version-{version}"), version).await?;
        let hand = hand.account(USERNAME, PASSWORD)?;
        // The stand-in does for another client what it does for ours.
        let disable = "<fibrechannel><name>0/5</name><persistent-disable>1</persistent-disable></fibrechannel>";
        curl(&switch, Some(disable)).await?;
        until("the link is down", Duration::from_secs(20), async || {
            Ok(port(&switch, "0/5").await.is_ok_and(|power| power == Power::Off).then_some(()))
        })
        .await?;
        hand.expect("status", &["--plug", "0/5"], 2).await?;
        hand.expect("on", &["--plug", "5"], 0).await?;
        assert_eq!(port(&switch, "0/5").await?, Power::On);

        hand.walk("0/3", async || port(&switch, "0/3").await).await?;
        assert_eq!(port(&switch, "0/2").await?, Power::On, "its neighbour was left alone");
        // A switch has few sessions: each call ended its own.
        let (begun, ended) =
            (switch.lines(&["POST /rest/login", "200"])?, switch.lines(&["POST /rest/logout"])?);
        assert!(begun > 5 && begun == ended, "{begun} begun, {ended} ended");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_or_names_no_port_cuts_nothing() -> Result<()> {
    let (switch, hand) = start("refusals", 9).await?;
    let admin = hand.clone().account(USERNAME, PASSWORD)?;
    for (plug, fault, says) in [
        ("0/99", "wrong plug: no such port", "none of the 8 ports of the switch is 0/99"),
        ("port3", "wrong plug: no port", "expected slot/port"),
        ("", "wrong plug: none", "expected slot/port"),
    ] {
        let ended = admin.fault(fault, "off", &["--plug", plug], || left(&switch)).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
    }
    let reader = hand.account(READER, PASSWORD)?;
    reader.expect("status", &["--plug", "0/3"], 0).await?;
    let off = ["--plug", "0/3"];
    let ended = reader.fault("no rights: reads only", "off", &off, || left(&switch)).await?;
    assert!(ended.said.contains("HTTP 403: Permission denied"), "{}", ended.said);
    fs::write(reader.folder().join("password"), "wrong\n")?;
    let fault = "wrong credentials: password";
    let ended = reader.fault(fault, "off", &off, || left(&switch)).await?;
    assert!(ended.said.contains("HTTP 401; check"), "{}", ended.said);
    assert_eq!(port(&switch, "0/3").await?, Power::On);
    Ok(())
}
