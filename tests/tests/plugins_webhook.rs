//! `webhook.wasm` as it ships, by hand through `node-remedy fence`, against a server in the shapes of two
//! makers of smart plugs and of a controller of one's own.
//!
//! What is true is read by another client, never by the plugin.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::{PASSWORD, USERNAME};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::webhook::{Door, Plugs};
use serde_json::json;

/// As the README has them.
const SHELLY: &[&str] = &[
    "status-path=/rpc/Switch.GetStatus?id={plug}",
    "state-pointer=/output",
    "on-words=true",
    "off-words=false",
    "off-method=GET",
    "off-path=/rpc/Switch.Set?id={plug}&on=false",
    "on-method=GET",
    "on-path=/rpc/Switch.Set?id={plug}&on=true",
];
const TASMOTA: &[&str] = &[
    "status-path=/cm?cmnd=Power",
    "state-pointer=/POWER",
    "on-words=ON",
    "off-words=OFF",
    "off-method=GET",
    "off-path=/cm?cmnd=Power%20Off",
    "on-method=GET",
    "on-path=/cm?cmnd=Power%20On",
];
const HOME_MADE: &[&str] = &[
    "status-path=/outlets/{plug}",
    "on-words=on",
    "off-words=off",
    "off-method=PUT",
    "off-path=/outlets/{plug}",
    "off-body={\"outlet\": \"{plug}\", \"state\": \"{action}\"}",
    "on-method=PUT",
    "on-path=/outlets/{plug}",
    "on-body={\"outlet\": \"{plug}\", \"state\": \"{action}\"}",
];

/// A device, and a file with a password for it.
struct FenceCommand {
    plugs: Plugs,
    folder: PathBuf,
    door: Door,
}

/// What a command came to.
struct Ended {
    code: i32,
    said: String,
}

impl FenceCommand {
    async fn start(name: &str, door: Door, late: Duration) -> Result<Self> {
        let folder = fresh_folder(&format!("plugins-webhook-{name}"))?;
        let plugs = Plugs::start(&folder, door, late).await?;
        fs::write(folder.join("password"), format!("{PASSWORD}\n"))?;
        Ok(Self { plugs, folder, door })
    }

    /// Runs a command to its end. The password is in nothing that it prints.
    async fn fence(&self, action: &str, plug: &str, shape: &[&str]) -> Result<Ended> {
        let mut command = Command::new(Controller::binary());
        command.args(["fence", "webhook", action, "--address", &self.plugs.address()]);
        command.args(["--plug", plug, "--timeout", "20"]);
        let own: &[&str] = match self.door {
            Door::Open => &["scheme=http"],
            Door::PlainBasic => &["scheme=http", "authentication=basic"],
            Door::Basic => &["authentication=basic"],
            Door::Bearer => &["authentication=bearer"],
        };
        for pair in own.iter().chain(shape) {
            command.args(["--set", pair]);
        }
        if self.door != Door::Open {
            command.arg("--tls-ca").arg(self.plugs.authority());
            command.arg("--password-file").arg(self.folder.join("password"));
        }
        if self.door == Door::Basic {
            command.args(["--username", USERNAME]);
        }
        let ended = tokio::task::spawn_blocking(move || command.output()).await?;
        let Output { status, stdout, stderr } =
            ended.context("failed to start node-remedy: cargo build -p node-remedy")?;
        let said = [String::from_utf8(stdout)?, String::from_utf8(stderr)?].concat();
        ensure!(!said.contains(PASSWORD), "the password is in {said}");
        Ok(Ended { code: status.code().context("killed")?, said })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outlets_of_three_kinds_are_switched_and_another_client_agrees() -> Result<()> {
    for (name, door) in [("open", Door::Open), ("basic", Door::Basic), ("bearer", Door::Bearer)] {
        let hand = FenceCommand::start(name, door, Duration::from_millis(700)).await?;
        for (shape, plug, path, on, off) in [
            (SHELLY, "0", "/rpc/Switch.GetStatus?id=0", json!(true), json!(false)),
            (TASMOTA, "", "/cm?cmnd=Power", json!("ON"), json!("OFF")),
            (HOME_MADE, "rack 3", "/outlets/rack%203", json!("on"), json!("off")),
        ] {
            for (action, code, state) in [
                ("status", 0, &on),
                ("off", 0, &off),
                ("status", 2, &off),
                ("on", 0, &on),
                ("reboot", 0, &on),
                ("monitor", 0, &on),
            ] {
                let ended = hand.fence(action, plug, shape).await?;
                assert_eq!(ended.code, code, "{action} {path}: {}", ended.said);
                let read = hand.plugs.read(path).await?;
                let read = ["/output", "/POWER", ""].iter().find_map(|place| read.pointer(place));
                assert_eq!(read, Some(state), "{action} {path}");
            }
        }
        let others = hand.plugs.read("/rpc/Switch.GetStatus?id=1").await?;
        assert_eq!(others["output"], true, "the other outlet was left alone");
        assert_eq!(hand.plugs.read("/outlets/rack%204").await?, json!("on"));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_or_not_known_is_not_off() -> Result<()> {
    let hand = FenceCommand::start("missing", Door::Open, Duration::ZERO).await?;
    let other_word =
        [&HOME_MADE[..1], &["on-words=up", "off-words=down"], &HOME_MADE[3..]].concat();
    for (shape, plug, says) in [
        (SHELLY, "2", "HTTP 500"),
        (SHELLY, "0&on=false", "HTTP 500"),
        (SHELLY, "", "the plug is empty"),
        (HOME_MADE, "rack 5", "HTTP 404; check plug and path"),
        (HOME_MADE, "..", "expected no segment that is . or .."),
        (HOME_MADE, "a/b", "no name in it has a /"),
        (&other_word, "rack 3", "\"on\", which is in neither list of words"),
    ] {
        let ended = hand.fence("status", plug, shape).await?;
        assert_eq!(ended.code, 1, "{plug}: {}", ended.said);
        assert!(ended.said.contains(says), "{plug}: {}", ended.said);
    }
    assert_eq!(hand.plugs.asked("PUT ")?, 0);
    assert_eq!(hand.plugs.asked("GET /rpc/Switch.Set")?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_or_not_proven_is_told() -> Result<()> {
    let hand = FenceCommand::start("login", Door::Bearer, Duration::ZERO).await?;
    fs::write(hand.folder.join("password"), "wrong\n")?;
    let ended = hand.fence("off", "0", SHELLY).await?;
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("HTTP 401; check the credential"), "{}", ended.said);
    fs::write(hand.folder.join("password"), format!("{PASSWORD}\n"))?;
    let other = FenceCommand::start("other", Door::Bearer, Duration::ZERO).await?;
    fs::copy(other.plugs.authority(), hand.plugs.authority())?;
    let ended = hand.fence("off", "0", SHELLY).await?;
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("no trusted authority signed its certificate"), "{}", ended.said);
    assert_eq!(hand.plugs.asked("GET /rpc/Switch.Set")?, 1, "the one that was refused");
    Ok(())
}
