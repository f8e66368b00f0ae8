//! `aws.wasm` as it ships, by hand through `node-remedy fence`, against moto's EC2 over TLS, which
//! checks signatures and policies.
//!
//! What is true is read by boto3, never by the plugin.

use anyhow::Result;
use node_remedy_tests::Hand;
use node_remedy_tests::ec2::Ec2;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;

/// The method in its region, without a key.
fn hand(name: &str, ec2: &Ec2) -> Result<Hand> {
    let hand = Hand::new("aws", name, "moto 5.2 over TLS, signatures checked")?.auth("aws-sigv4");
    let hand = hand.options(&["--address", &ec2.address(), "--set", "region=eu-west-1"]);
    Ok(hand.options(&["--tls-ca", &ec2.authority().display().to_string()]))
}

/// A service, and the method with the key of this user.
async fn start(name: &str, user: &str) -> Result<(Ec2, Hand)> {
    let ec2 = Ec2::start(&fresh_folder(&format!("aws-{name}"))?).await?;
    let (id, secret) = ec2.key(user)?;
    let hand = hand(name, &ec2)?.account(id, secret)?;
    Ok((ec2, hand))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_switched_off_and_on_and_boto3_agrees() -> Result<()> {
    let (ec2, hand) = start("power", "fence").await?;
    let [instance, other, _] = ec2.instances();
    hand.walk(instance, async || ec2.power(instance).await).await?;
    let ended = hand.expect("off", &["--plug", &ec2.provider_id(instance)], 0).await?;
    assert!(ended.said.contains("off"), "{}", ended.said);
    assert_eq!(ec2.power(instance).await?, Power::Off);
    let ended = hand.fence("status", &["--plug", instance]).await?;
    assert!(ended.said.contains(&format!("instance-id: {instance}")), "{}", ended.said);
    assert_eq!(ec2.power(other).await?, Power::On, "the other instance was left alone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_not_there_is_no_other() -> Result<()> {
    let (ec2, hand) = start("wrong", "fence").await?;
    let [instance, other, _] = ec2.instances();
    let ended = hand.expect("off", &["--plug", "i-0123456789abcdef0"], 1).await?;
    assert!(ended.said.contains("EC2 knows no such instance there"), "{}", ended.said);
    for (plug, says) in [
        (format!("aws:///eu-west-1z/{instance}"), "expected eu-west-1z"),
        (format!("aws:///us-east-1a/{instance}"), "is not in region eu-west-1"),
        (String::new(), "expected an instance id"),
    ] {
        let ended = hand.expect("off", &["--plug", &plug], 1).await?;
        assert!(ended.said.contains(says), "{plug}: {}", ended.said);
    }
    for instance in [instance, other] {
        assert_eq!(ec2.power(instance).await?, Power::On);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_wrong_or_may_not_stops_nothing() -> Result<()> {
    let (ec2, reader) = start("keys", "reader").await?;
    let [instance, _, _] = ec2.instances();
    let off = ["--plug", instance.as_str()];
    reader.expect("status", &off, 0).await?;
    let ended = reader.expect("off", &["--plug", instance], 1).await?;
    assert!(ended.said.contains("ec2:StopInstances"), "{}", ended.said);

    let (id, secret) = ec2.key("fence")?;
    let wrong = format!("{}x", secret.get(1..).unwrap_or_default());
    for (id, secret) in [(id, wrong.as_str()), ("AKIAAAAAAAAAAAAAAAAA", secret)] {
        let hand = hand("wrong-key", &ec2)?.account(id, secret)?;
        let ended = hand.expect("off", &off, 1).await?;
        assert!(ended.said.contains("check access key id, secret key"), "{}", ended.said);
    }
    assert_eq!(ec2.power(instance).await?, Power::On);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_gone_is_off_only_where_the_node_names_it() -> Result<()> {
    let (ec2, hand) = start("gone", "fence").await?;
    let [instance, other, _] = ec2.instances();
    assert_eq!(ec2.terminate(instance).await?, "terminated");
    let ended = hand.expect("status", &["--plug", instance], 1).await?;
    assert!(ended.said.contains("never runs again"), "{}", ended.said);
    let provider_id = ec2.provider_id(instance);
    hand.expect("status", &["--plug", &provider_id], 2).await?;
    hand.expect("off", &["--plug", &provider_id], 0).await?;
    assert_eq!(ec2.power(other).await?, Power::On);
    Ok(())
}
