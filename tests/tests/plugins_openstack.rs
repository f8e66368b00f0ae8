//! `openstack.wasm` as it ships, by hand through `node-remedy fence`, against real keystone and nova over
//! TLS.
//!
//! What is true is read by another client, never by the plugin.

use std::fs;

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::openstack::{ADMIN, Cloud, PASSWORD, READER};
use node_remedy_tests::process::fresh_folder;

fn hand(name: &str, cloud: &Cloud) -> Result<FenceCommand> {
    let hand = FenceCommand::new("openstack", name, "keystone 30.0.0 and nova 34.0.0 over TLS")?;
    let (auth, compute) =
        (format!("auth-url={}", cloud.auth_url), format!("compute-url={}", cloud.compute_url));
    Ok(hand.options(&["--set", &auth, "--set", &compute, "--tls-ca", &cloud.authority()]))
}

/// One cloud for all of it: it takes half a minute to begin.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_switched_off_and_on_and_the_openstack_client_agrees() -> Result<()> {
    let cloud = Cloud::start(&fresh_folder("openstack-cloud")?).await?;
    let [server, other] = &cloud.servers;
    let project = ["--set", "project=cluster"];
    let admin = hand("admin", &cloud)?.auth("login").account(ADMIN, PASSWORD)?.options(&project);
    admin.walk(server, async || cloud.power(server).await).await?;
    admin.expect("reset", &["--plug", server], 0).await?;

    // By the node's own name for it, and by an application credential.
    let plug = format!("openstack:///{server}");
    let status = admin.fence("status", &["--plug", &plug]).await?;
    assert!(status.said.contains(&format!("instance-id: {server}")), "{}", status.said);
    let [id, secret] = &cloud.credential;
    let credential = hand("credential", &cloud)?.auth("login, application credential");
    let credential = credential
        .account(id, secret)?
        .options(&["--set", "authentication=application-credential"]);
    credential.expect("off", &["--plug", &plug], 0).await?;
    assert_eq!(cloud.power_by_command(server).await?, Power::Off);
    credential.expect("on", &["--plug", &plug], 0).await?;

    who_may_not_switch_switches_nothing(&cloud, server).await?;

    for (plug, says) in [
        ("5ca1ab1e-0000-4000-8000-ffffffffffff", "there is no server 5ca1ab1e-0000"),
        ("node1", "expected a server's id"),
    ] {
        let ended = admin.expect("off", &["--plug", plug], 1).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
    }
    for server in [server, other] {
        assert_eq!(cloud.power(server).await?, Power::On);
    }
    Ok(())
}

async fn who_may_not_switch_switches_nothing(cloud: &Cloud, server: &str) -> Result<()> {
    let reader = hand("reader", cloud)?.auth("login").account(READER, PASSWORD)?;
    let reader = reader.options(&["--set", "project=cluster"]);
    reader.expect("status", &["--plug", server], 0).await?;
    let ended = reader.expect("off", &["--plug", server], 1).await?;
    assert!(ended.said.contains("HTTP 403"), "{}", ended.said);
    assert!(ended.said.contains("check the roles in the project"), "{}", ended.said);

    fs::write(reader.folder().join("password"), "wrong\n")?;
    let ended = reader.expect("off", &["--plug", server], 1).await?;
    assert!(ended.said.contains("HTTP 401"), "{}", ended.said);
    assert!(ended.said.contains("check user, password, project"), "{}", ended.said);
    assert_eq!(cloud.power(server).await?, Power::On);
    Ok(())
}
