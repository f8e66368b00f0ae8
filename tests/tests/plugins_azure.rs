//! `azure.wasm` as it ships, by hand through `node-remedy fence`, against a stand-in for Azure over TLS
//! that answers what Microsoft's own client asks, and which that client and apache-libcloud drive as well.
//!
//! What is true is read by that client, never by the plugin.

use anyhow::{Context, Result, bail};
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::public_cloud::PublicCloud;
use serde_json::Value;

const GROUP: &str =
    "/subscriptions/01234567-89ab-cdef-0123-456789abcdef/resourceGroups/proving-ground";
/// How many changes are asked for by `Hand::walk`.
const CHANGES_OF_A_WALK: usize = 5;

struct Cloud(PublicCloud);

impl Cloud {
    /// One, and the method with the secret of this application.
    async fn start(name: &str, application: &str) -> Result<(Self, FenceCommand)> {
        let stand_in =
            PublicCloud::start("azure", &fresh_folder(&format!("azure-{name}"))?).await?;
        let cloud = Self(stand_in);
        let secret = cloud.tells(application, "secret")?;
        let hand = cloud.hand(name, application, &secret)?;
        Ok((cloud, hand))
    }

    /// The method as this application, with this secret.
    fn hand(&self, name: &str, application: &str, secret: &str) -> Result<FenceCommand> {
        self.hand_in(&self.tells(application, "tenant")?, name, application, secret)
    }

    fn hand_in(
        &self,
        tenant: &str,
        name: &str,
        application: &str,
        secret: &str,
    ) -> Result<FenceCommand> {
        let address = self.0.address();
        let hand =
            FenceCommand::new("azure", name, "stand-in as published over TLS")?.auth("login");
        let hand = hand.account(&self.tells(application, "id")?, secret)?;
        let login = format!("login-address={address}");
        let tenant = format!("tenant={tenant}");
        let hand = hand.options(&["--address", &address, "--set", &login, "--set", &tenant]);
        Ok(hand.options(&["--tls-ca", &self.0.authority()]))
    }

    fn tells(&self, application: &str, what: &str) -> Result<String> {
        let file: Value = serde_json::from_str(&self.0.file(&format!("{application}.json"))?)?;
        let told = file.get(what).and_then(Value::as_str).context("the stand-in does not tell")?;
        Ok(told.to_owned())
    }

    /// What Microsoft's own client reads, after it did this.
    async fn client(&self, what: &str, machine: &str) -> Result<Power> {
        match self.0.client(&[&self.0.path("fence.json"), machine, what]).await?.as_str() {
            "PowerState/running" => Ok(Power::On),
            "PowerState/stopped" | "PowerState/deallocated" => Ok(Power::Off),
            other => bail!("the client reads {other:?}"),
        }
    }

    /// What apache-libcloud reads, after it did this.
    async fn libcloud(&self, what: &str, machine: &str) -> Result<Power> {
        let path = format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/{machine}");
        match self.0.libcloud(&[&self.0.path("fence.json"), &path, what]).await?.as_str() {
            "running" => Ok(Power::On),
            "stopped" => Ok(Power::Off),
            other => bail!("libcloud reads {other:?}"),
        }
    }

    fn changes(&self) -> Result<usize> {
        self.0.heard("POST /subscriptions")
    }
}

fn provider_id(machine: &str) -> String {
    format!("azure://{GROUP}/providers/Microsoft.Compute/{machine}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_switched_off_and_on_and_microsoft_s_client_agrees() -> Result<()> {
    let (cloud, hand) = Cloud::start("power", "fence").await?;
    let plug = provider_id("virtualMachines/worker-1");
    hand.walk(&plug, async || cloud.client("view", "worker-1").await).await?;
    assert_eq!(cloud.changes()?, CHANGES_OF_A_WALK, "three offs, two ons");
    let said = hand.fence("status", &["--plug", &plug]).await?.said;
    assert!(
        said.contains("instance-id: /subscriptions/") && said.contains("system-uuid"),
        "{said}"
    );

    // The stand-in is what Microsoft's client takes it for, and what that does is seen.
    assert_eq!(cloud.client("power_off", "worker-1").await?, Power::Off);
    hand.expect("status", &["--plug", &plug], 2).await?;
    assert_eq!(cloud.client("start", "worker-1").await?, Power::On);
    // So does one that is neither Microsoft's nor ours.
    assert_eq!(cloud.libcloud("stop", "worker-1").await?, Power::Off);
    hand.expect("status", &["--plug", &plug], 2).await?;
    assert_eq!(cloud.libcloud("start", "worker-1").await?, Power::On);
    let place = ["--set", "resource-group=proving-ground", "--set"];
    let place = [&place[..], &["subscription=01234567-89ab-cdef-0123-456789abcdef"]].concat();
    let by_name = [&["--plug", "worker-1", "--set", "off-by=deallocate"], &place[..]].concat();
    hand.expect("off", &by_name, 0).await?;
    assert_eq!(cloud.client("view", "worker-1").await?, Power::Off);
    assert_eq!(cloud.client("view", "worker-2").await?, Power::On, "the other was left alone");
    assert_eq!(cloud.client("view", "pool/0").await?, Power::On, "so was that of the scale set");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_of_a_scale_set_is_switched() -> Result<()> {
    let (cloud, hand) = Cloud::start("set", "fence").await?;
    let plug = provider_id("virtualMachineScaleSets/pool/virtualMachines/0");
    hand.walk(&plug, async || cloud.client("view", "pool/0").await).await?;
    assert_eq!(cloud.client("view", "worker-1").await?, Power::On, "the other was left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_not_there_is_no_other() -> Result<()> {
    let (cloud, hand) = Cloud::start("wrong", "fence").await?;
    let elsewhere = provider_id("virtualMachines/worker-1").replace("proving", "other");
    for (plug, says) in [
        (provider_id("virtualMachines/worker-3"), "there is no such machine"),
        (provider_id("virtualMachineScaleSets/pool/virtualMachines/1"), "there is no such machine"),
        (elsewhere, "there is no such machine"),
        ("worker-1".to_owned(), "expected a name with the parameters"),
        (String::new(), "expected a name with the parameters"),
    ] {
        let ended = hand.expect("off", &["--plug", &plug], 1).await?;
        assert!(ended.said.contains(says), "{plug}: {}", ended.said);
    }
    assert_eq!(cloud.changes()?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_that_is_not_believed_or_may_not_stops_nothing() -> Result<()> {
    let (cloud, reader) = Cloud::start("applications", "reader").await?;
    let plug = provider_id("virtualMachines/worker-1");
    reader.expect("status", &["--plug", &plug], 0).await?;
    let ended = reader.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("check the application's role"), "{}", ended.said);
    assert_eq!(cloud.client("view", "worker-1").await?, Power::On);

    let hand = cloud.hand("wrong-secret", "fence", "not-the-secret-of-it")?;
    let ended = hand.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("HTTP 401; check tenant"), "{}", ended.said);
    let secret = cloud.tells("fence", "secret")?;
    let hand = cloud.hand_in("nobody", "wrong-tenant", "fence", &secret)?;
    let ended = hand.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("POST /nobody/oauth2/v2.0/token: HTTP 400"), "{}", ended.said);
    assert!(ended.said.contains("check tenant"), "{}", ended.said);
    assert_eq!(cloud.changes()?, 1, "that of the reader, which was refused");
    Ok(())
}
