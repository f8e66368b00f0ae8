//! `vmware.wasm` as it ships, by hand through `node-remedy fence`, against a stand-in for vCenter over TLS, which
//! apache-libcloud drives too.
//!
//! What is true is read by that client, never by the plugin.

use std::fs;

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::stand_in::StandIn;
use node_remedy_tests::vsphere::{self, PASSWORD, USERNAME, UUID, libcloud};

async fn start(name: &str, username: &str) -> Result<(StandIn, FenceCommand)> {
    let vcenter = vsphere::start(&fresh_folder(&format!("vmware-{name}"))?).await?;
    let hand = FenceCommand::new("vmware", name, "stand-in for vCenter over TLS")?.auth("login");
    let authority = vcenter.authority().display().to_string();
    let hand = hand.account(username, PASSWORD)?;
    let hand = hand.options(&["--address", &vcenter.address(), "--tls-ca", &authority]);
    Ok((vcenter, hand))
}

/// The sessions that were begun and not ended.
fn left(vcenter: &StandIn) -> Result<usize> {
    let begun = vcenter.lines(&["POST /api/session", "201"])?;
    let ended = vcenter.lines(&["DELETE /api/session"])?;
    Ok(begun.abs_diff(ended))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_in_both_forms_and_libcloud_agrees() -> Result<()> {
    let (vcenter, hand) = start("power", USERNAME).await?;
    // The stand-in does for another client what it does for ours.
    assert_eq!(libcloud(&vcenter, "vm-41", "stop_node").await?, Power::Off);
    assert_eq!(libcloud(&vcenter, "vm-41", "start_node").await?, Power::On);
    for form in ["api", "rest"] {
        let form = format!("api={form}");
        let hand = hand.clone().options(&["--set", &form]);
        hand.walk("vm-41", async || libcloud(&vcenter, "vm-41", "").await).await?;
        hand.expect("reset", &["--plug", "node1"], 0).await?;
        let plug = format!("vsphere://{UUID}");
        let status = hand.expect("status", &["--plug", &plug], 0).await?;
        assert!(status.said.contains(&format!("instance-id: {UUID}")), "{}", status.said);
    }
    for other in ["vm-42", "vm-43"] {
        assert_eq!(libcloud(&vcenter, other, "").await?, Power::On);
    }
    // Each call ended its session.
    let (begun, ended) =
        (vcenter.lines(&["POST", "/api/session"])?, vcenter.lines(&["DELETE", "/api/session"])?);
    assert!(begun > 5 && begun == ended, "{begun} begun, {ended} ended");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_named_alone_is_left_alone() -> Result<()> {
    let (vcenter, hand) = start("names", USERNAME).await?;
    for (plug, fault, says) in [
        (
            "twin",
            "wrong plug: two have the name",
            "2 machines have the name \"twin\"; name one by its id: vm-42, vm-43",
        ),
        ("vm-99", "wrong plug: no such id", "there is no machine \"vm-99\""),
        (
            "4213ab00-2222-4333-8444-000000000099",
            "wrong plug: no such UUID",
            "none of the 3 machines that were asked",
        ),
    ] {
        let ended = hand.fault(fault, "off", &["--plug", plug], || left(&vcenter)).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
    }
    assert_eq!(vcenter.lines(&["POST", "/power"])?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_is_told_what_is_missing() -> Result<()> {
    let (vcenter, hand) = start("reader", "reader").await?;
    hand.expect("status", &["--plug", "vm-41"], 0).await?;
    let options = ["--plug", "vm-41", "--timeout", "5"];
    let ended = hand.fault("no rights: reads only", "off", &options, || left(&vcenter)).await?;
    assert!(ended.said.contains("HTTP 403"), "{}", ended.said);
    assert!(ended.said.contains("VirtualMachine.Interact"), "{}", ended.said);
    fs::write(hand.folder().join("password"), "wrong\n")?;
    let fault = "wrong credentials: password";
    let ended = hand.fault(fault, "off", &options, || left(&vcenter)).await?;
    assert!(ended.said.contains("HTTP 401"), "{}", ended.said);
    assert_eq!(libcloud(&vcenter, "vm-41", "").await?, Power::On);

    let (_vcenter, hand) = start("stranger", "stranger").await?;
    let ended = hand.expect("off", &["--plug", "node1"], 1).await?;
    assert!(ended.said.contains("an account without rights"), "{}", ended.said);
    Ok(())
}
