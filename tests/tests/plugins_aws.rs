//! `aws.wasm` as it ships, by hand through `node-remedy fence`, against moto's EC2 and EC2 Auto Scaling over
//! TLS, which checks signatures and policies.
//!
//! What is true is read by boto3, never by the plugin.

use anyhow::Result;
use node_remedy_tests::FenceCommand;
use node_remedy_tests::ec2::Ec2;
use node_remedy_tests::ipmi::Power;
use node_remedy_tests::process::fresh_folder;

/// The method in its region, without a key.
fn hand(name: &str, ec2: &Ec2) -> Result<FenceCommand> {
    let hand =
        FenceCommand::new("aws", name, "moto 5.2 over TLS, signatures checked")?.auth("aws-sigv4");
    let hand = hand.options(&["--address", &ec2.address(), "--set", "region=eu-west-1"]);
    Ok(hand.options(&["--tls-ca", &ec2.authority().display().to_string()]))
}

/// The same, where the instances are a group.
async fn start_in_group(name: &str, user: &str) -> Result<(Ec2, FenceCommand)> {
    let ec2 = Ec2::start_in_group(&fresh_folder(&format!("aws-{name}"))?).await?;
    let (id, secret) = ec2.key(user)?;
    let place = format!("autoscaling-address={}", ec2.address());
    let hand = hand(name, &ec2)?.options(&["--set", &place]).account(id, secret)?;
    Ok((ec2, hand))
}

/// A service, and the method with the key of this user.
async fn start(name: &str, user: &str) -> Result<(Ec2, FenceCommand)> {
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

/// `off: terminate`: once, and only what the node itself names.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_ended_where_the_node_names_it_and_boto3_agrees() -> Result<()> {
    let (ec2, hand) = start("remove", "remove").await?;
    let hand = hand.options(&["--set", "off=terminate"]);
    let [instance, other, _] = ec2.instances();
    let ended = hand.expect("off", &["--plug", instance], 1).await?;
    assert!(ended.said.contains("expected the node's providerID"), "{}", ended.said);
    assert_eq!(ec2.state(instance).await?, "running");
    for _ in 0..2 {
        hand.expect("off", &["--plug", &ec2.provider_id(instance)], 0).await?;
        assert_eq!(ec2.state(instance).await?, "terminated");
    }
    assert_eq!(ec2.power(other).await?, Power::On, "the other instance was left alone");
    Ok(())
}

/// The group of the test ends what stops in service, as Amazon's do.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_a_group_is_out_of_service_while_it_is_off() -> Result<()> {
    let (ec2, hand) = start_in_group("group", "group-fence").await?;
    let [instance, other, third] = ec2.instances();
    let plug = ec2.provider_id(instance);
    let plug = ["--plug", plug.as_str()];
    assert_eq!(ec2.in_group(instance).await?, "InService desired 3");
    hand.expect("off", &plug, 0).await?;
    assert_eq!(ec2.power(instance).await?, Power::Off);
    assert_eq!(ec2.in_group(instance).await?, "Standby desired 2");
    hand.expect("status", &plug, 2).await?;
    // Twice is once, from either side.
    hand.expect("off", &plug, 0).await?;
    assert_eq!(ec2.in_group(instance).await?, "Standby desired 2");
    for _ in 0..2 {
        hand.expect("on", &plug, 0).await?;
        assert_eq!(ec2.power(instance).await?, Power::On);
        assert_eq!(ec2.in_group(instance).await?, "InService desired 3");
    }
    for instance in [other, third] {
        assert_eq!(ec2.in_group(instance).await?, "InService desired 3");
    }

    // And where it may be lost, it is.
    let may_be_lost = [&plug[..], &["--set", "allow-replace=true"]].concat();
    hand.expect("off", &may_be_lost, 0).await?;
    assert_eq!(ec2.state(instance).await?, "terminated");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_change_a_group_stops_nothing_of_it() -> Result<()> {
    let (ec2, blind) = start_in_group("group-keys", "fence").await?;
    let (id, secret) = ec2.key("group-reader")?;
    let place = format!("autoscaling-address={}", ec2.address());
    let reader = hand("group-reader", &ec2)?.options(&["--set", &place]).account(id, secret)?;
    let (id, secret) = ec2.key("group-fence")?;
    let lost = hand("group-ungranted", &ec2)?.account(id, secret)?;
    let [instance, _, _] = ec2.instances();
    for (hand, says) in [
        (&blind, "must allow autoscaling:DescribeAutoScalingInstances"),
        (&reader, "must allow autoscaling:EnterStandby"),
        // Nobody resolves Amazon's name here, and by hand that is what grants it.
        (&lost, "failed to grant endpoint 'autoscaling'"),
    ] {
        let ended = hand.expect("off", &["--plug", instance], 1).await?;
        assert!(ended.said.contains(says), "{}", ended.said);
        assert_eq!(ec2.power(instance).await?, Power::On);
        assert_eq!(ec2.in_group(instance).await?, "InService desired 3");
    }
    Ok(())
}
