//! `gce.wasm` as it ships, by hand through `node-remedy fence`, against a stand-in for Google over TLS
//! whose every answer is as published, and which Google's own client and
//! apache-libcloud drive as well.
//!
//! What is true is read by those clients, never by the plugin.

use std::fs;

use anyhow::{Result, bail};
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::public_cloud::PublicCloud;

const PROJECT: &str = "proving-ground";
const ZONE: &str = "europe-west1-b";

struct Google(PublicCloud);

impl Google {
    /// One, and the method with the key of this account.
    async fn start(name: &str, account: &str) -> Result<(Self, FenceCommand)> {
        let google = PublicCloud::start("gce", &fresh_folder(&format!("gce-{name}"))?).await?;
        let google = Self(google);
        let hand = google.hand(name, &google.0.file(&format!("{account}.json"))?)?;
        Ok((google, hand))
    }

    /// The method with this key file.
    fn hand(&self, name: &str, key_file: &str) -> Result<FenceCommand> {
        let address = self.0.address();
        let hand = FenceCommand::new("gce", name, "stand-in as published over TLS")?;
        let hand = hand.auth("google-service-account").account("unused", key_file)?;
        let token = format!("token-address={address}");
        let hand = hand.options(&["--address", &address, "--set", &token]);
        Ok(hand.options(&["--tls-ca", &self.0.authority()]))
    }

    /// What Google's own client reads, after it did this.
    async fn client(&self, what: &str, instance: &str) -> Result<Power> {
        let key_file = self.0.path("fence.json");
        power(&self.0.client(&[&key_file, PROJECT, ZONE, instance, what]).await?)
    }

    /// What apache-libcloud reads, after it did this.
    async fn libcloud(&self, what: &str, instance: &str) -> Result<Power> {
        let key_file = self.0.path("fence.json");
        power(&self.0.libcloud(&[&key_file, PROJECT, ZONE, instance, what]).await?)
    }

    fn changes(&self) -> Result<usize> {
        self.0.heard("POST /compute")
    }
}

fn power(status: &str) -> Result<Power> {
    match status {
        "RUNNING" => Ok(Power::On),
        "TERMINATED" => Ok(Power::Off),
        other => bail!("a client reads {other:?}"),
    }
}

fn provider_id(instance: &str) -> String {
    format!("gce://{PROJECT}/{ZONE}/{instance}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_switched_off_and_on_and_google_s_client_agrees() -> Result<()> {
    let (google, hand) = Google::start("power", "fence").await?;
    let plug = provider_id("worker-1");
    hand.walk(&plug, async || google.client("get", "worker-1").await).await?;
    assert_eq!(google.client("get", "worker-2").await?, Power::On, "the other was left alone");
    let said = hand.fence("status", &["--plug", &plug]).await?.said;
    assert!(said.contains("instance-id: proving-ground/europe-west1-b/worker-1"), "{said}");

    // The stand-in is what Google's client takes it for, and what that does is seen.
    assert_eq!(google.client("stop", "worker-1").await?, Power::Off);
    hand.expect("status", &["--plug", &plug], 2).await?;
    assert_eq!(google.client("start", "worker-1").await?, Power::On);
    // So does one that is neither Google's nor ours.
    assert_eq!(google.libcloud("stop", "worker-1").await?, Power::Off);
    hand.expect("status", &["--plug", &plug], 2).await?;
    assert_eq!(google.libcloud("start", "worker-1").await?, Power::On);
    assert_eq!(google.libcloud("get", "worker-2").await?, Power::On, "the other was left alone");
    let parameters = ["--set", "project=proving-ground", "--set", "zone=europe-west1-b"];
    hand.expect("status", &[&["--plug", "worker-1"], &parameters[..]].concat(), 0).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_not_there_is_no_other() -> Result<()> {
    let (google, hand) = Google::start("wrong", "fence").await?;
    for (plug, says) in [
        (provider_id("worker-3"), "there is no such instance"),
        ("gce://proving-ground/europe-west1-c/worker-1".to_owned(), "there is no such instance"),
        ("gce://other-ground/europe-west1-b/worker-1".to_owned(), "there is no such instance"),
        ("worker-1".to_owned(), "expected a name with the parameters project and zone"),
        (String::new(), "expected a name with the parameters project and zone"),
    ] {
        let ended = hand.expect("off", &["--plug", &plug], 1).await?;
        assert!(ended.said.contains(says), "{plug}: {}", ended.said);
    }
    assert_eq!(google.changes()?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_not_believed_or_may_not_stops_nothing() -> Result<()> {
    let (google, reader) = Google::start("accounts", "reader").await?;
    let plug = provider_id("worker-1");
    reader.expect("status", &["--plug", &plug], 0).await?;
    let ended = reader.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("check the account's roles"), "{}", ended.said);
    assert_eq!(google.client("get", "worker-1").await?, Power::On);

    // The key of one account does not sign for another.
    let [fence, reader] = ["fence.json", "reader.json"].map(|file| google.0.file(file));
    let mut file: serde_json::Value = serde_json::from_str(&fence?)?;
    let other: serde_json::Value = serde_json::from_str(&reader?)?;
    let tell = |file: &serde_json::Value, key: &str| file.get(key).cloned().unwrap_or_default();
    if let Some(key) = file.get_mut("private_key") {
        *key = tell(&other, "private_key");
    }
    let hand = google.hand("other-key", &file.to_string())?;
    let ended = hand.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("POST /token: HTTP 400"), "{}", ended.said);
    assert!(ended.said.contains("the controller's clock"), "{}", ended.said);

    // Nor is a statement sent to another place than the granted one.
    if let Some(place) = file.get_mut("token_uri") {
        *place = "https://elsewhere.example/token".into();
    }
    fs::write(hand.folder().join("password"), file.to_string())?;
    let ended = hand.expect("off", &["--plug", &plug], 1).await?;
    assert!(ended.said.contains("token_uri is not"), "{}", ended.said);
    Ok(())
}
