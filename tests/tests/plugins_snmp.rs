//! `apc-pdu.wasm`, `eaton-pdu.wasm` and `snmp-switch.wasm` as they ship, by hand through `node-remedy
//! fence`, against net-snmp's agent with the tables of each device.
//!
//! What is true is read by net-snmp's `snmpget`, never by the plugin.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_tests::Controller;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::snmp::{AUTH, Agent, LOOKER, Model, PRIVACY, READER, USERS, WRITER};
use node_remedy_tests::time::until;
use tokio::time::Instant;

/// An agent, and files with secrets for it.
struct FenceCommand {
    agent: Agent,
    model: Model,
    folder: PathBuf,
}

/// What a command came to.
struct Ended {
    code: i32,
    said: String,
    took: Duration,
}

impl FenceCommand {
    async fn start(name: &str, model: Model) -> Result<Self> {
        let folder = fresh_folder(&format!("plugins-snmp-{name}"))?;
        let agent = Agent::start(&folder, model).await?;
        for secret in [AUTH, PRIVACY, READER, WRITER, "wrong-secret"] {
            fs::write(folder.join(secret), format!("{secret}\n"))?;
        }
        Ok(Self { agent, model, folder })
    }

    /// Runs a command to its end. No secret is in anything that it prints.
    async fn fence(&self, action: &str, plug: &str, options: &[String]) -> Result<Ended> {
        let mut command = Command::new(Controller::binary());
        command.args(["fence", self.model.plugin(), action, "--plug", plug]);
        command.args(["--address", &self.agent.address()]).args(options);
        command.current_dir(&self.folder);
        let began = Instant::now();
        let ended = tokio::task::spawn_blocking(move || command.output()).await?;
        let took = began.elapsed();
        let Output { status, stdout, stderr } =
            ended.context("failed to start node-remedy: cargo build -p node-remedy")?;
        let said = [String::from_utf8(stdout)?, String::from_utf8(stderr)?].concat();
        for secret in [AUTH, PRIVACY, WRITER] {
            ensure!(!said.contains(secret), "{secret} is in {said}");
        }
        Ok(Ended { code: status.code().context("killed")?, said, took })
    }

    /// These plugs are off, no others: a link needs a moment to come up again.
    async fn comes_to(&self, dark: &[u32]) -> Result<()> {
        until("the plugs are so", Duration::from_secs(10), || async {
            Ok((self.agent.dark().await? == dark).then_some(()))
        })
        .await
    }

    /// The same, as the community that may write.
    async fn fence_plainly(&self, version: &str, action: &str, plug: &str) -> Result<Ended> {
        self.fence(action, plug, &community(version, WRITER)).await
    }
}

fn community(version: &str, file: &str) -> Vec<String> {
    ["--set".to_owned(), format!("version={version}"), "--credential".to_owned()]
        .into_iter()
        .chain([format!("community={file}")])
        .collect()
}

/// A user with the passwords in these files.
fn user(name: &str, auth: &str, privacy: &str, parameters: &[&str]) -> Vec<String> {
    let mut words = vec!["--username", name, "--password-file", auth, "--credential"];
    let privacy = format!("privacy={privacy}");
    words.push(&privacy);
    for parameter in parameters {
        words.extend(["--set", parameter]);
    }
    words.into_iter().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_device_is_switched_off_and_on_and_snmpget_agrees() -> Result<()> {
    for model in Model::ALL {
        let hand = FenceCommand::start(model.word(), model).await?;
        for (action, code, dark) in [
            ("status", 0, vec![]),
            ("off", 0, vec![3]),
            ("status", 2, vec![3]),
            ("off", 0, vec![3]),
            ("on", 0, vec![]),
            ("monitor", 0, vec![]),
        ] {
            let ended = hand.fence_plainly("2c", action, model.third()).await?;
            assert_eq!(ended.code, code, "{model:?} {action}: {}", ended.said);
            hand.comes_to(&dark).await.with_context(|| format!("{model:?} {action}"))?;
        }
        assert_eq!(hand.agent.sets()?.len(), 3, "{model:?}: two offs, one on");
        if model.plugin() != "snmp-switch" {
            let ended = hand.fence_plainly("2c", "reboot", model.third()).await?;
            assert_eq!(ended.code, 0, "{model:?}: {}", ended.said);
            hand.comes_to(&[]).await.with_context(|| format!("{model:?} reboot"))?;
            assert_eq!(hand.agent.sets()?.len(), 5, "{model:?}: one more off, one more on");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_and_protocol_is_spoken() -> Result<()> {
    let hand = FenceCommand::start("versions", Model::ApcRpdu2).await?;
    let mut rows: Vec<(&str, Vec<String>)> =
        vec![("v1", community("1", WRITER)), ("v2c", community("2c", WRITER))];
    rows.extend(USERS.iter().map(|one| (one.name, user(one.name, AUTH, PRIVACY, one.parameters))));
    for (name, options) in rows {
        for (action, dark) in [("off", vec![3]), ("on", vec![])] {
            let ended = hand.fence(action, "node3", &options).await?;
            assert_eq!(ended.code, 0, "{name}: {}", ended.said);
            assert!(ended.said.contains("label: node3"), "{name}: {}", ended.said);
            assert_eq!(hand.agent.dark().await?, dark, "{name}");
        }
    }
    let looks = ["--username", LOOKER, "--set", "security-level=no-auth-no-priv"];
    let ended = hand.fence("status", "3", &looks.map(str::to_owned)).await?;
    assert_eq!(ended.code, 0, "{}", ended.said);
    let sets = hand.agent.sets()?.len();
    let brief = [&looks[..], &["--timeout", "5"]].concat();
    let brief: Vec<_> = brief.into_iter().map(str::to_owned).collect();
    let ended = hand.fence("off", "3", &brief).await?;
    assert_eq!((ended.code, hand.agent.sets()?.len()), (1, sets), "{}", ended.said);
    Ok(())
}

/// fence_apc_snmp and fence_ifmib say "already off", and exit 0.
#[tokio::test(flavor = "multi_thread")]
async fn a_plug_that_does_not_exist_is_never_off() -> Result<()> {
    for model in Model::ALL {
        let hand = FenceCommand::start(&format!("absent-{}", model.word()), model).await?;
        for version in ["1", "2c"] {
            for action in ["off", "status"] {
                let ended = hand.fence_plainly(version, action, "99").await?;
                assert_eq!(ended.code, 1, "{model:?} v{version}: {}", ended.said);
                assert!(ended.said.contains("has no "), "{}", ended.said);
            }
        }
        let users = user("sha1-aes128", AUTH, PRIVACY, &[]);
        let ended = hand.fence("off", "99", &users).await?;
        assert_eq!(ended.code, 1, "{model:?}: {}", ended.said);
        assert_eq!((hand.agent.sets()?, hand.agent.dark().await?), (vec![], vec![]), "{model:?}");
    }
    Ok(())
}

/// A PDU's method against a switch, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn another_make_s_device_is_not_switched() -> Result<()> {
    for (made, taken_for) in [(Model::Eaton, Model::ApcRpdu), (Model::Switch, Model::EatonManaged)]
    {
        let mut hand = FenceCommand::start(&format!("other-{}", made.word()), made).await?;
        hand.model = taken_for;
        let ended = hand.fence_plainly("2c", "off", "3").await?;
        assert_eq!(ended.code, 1, "{}", ended.said);
        assert!(ended.said.contains("has none of the tables of outlets"), "{}", ended.said);
        assert_eq!(hand.agent.sets()?, Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_says_what_to_check_and_soon() -> Result<()> {
    let hand = FenceCommand::start("refusals", Model::ApcRpdu).await?;
    let good = "sha256-aes256";
    let right = ["auth-protocol=sha256", "privacy-protocol=aes256"];
    let rows: Vec<(&str, Vec<String>, &str)> = vec![
        (
            "wrong community",
            community("2c", "wrong-secret"),
            "agents answer a wrong one with silence",
        ),
        ("reads only, v1", community("1", READER), "noSuchName (2)"),
        ("reads only, v2c", community("2c", READER), "noAccess (6)"),
        (
            "wrong password",
            user(good, "wrong-secret", PRIVACY, &right),
            "wrongDigests: wrong password",
        ),
        (
            "wrong auth-protocol",
            user(good, AUTH, PRIVACY, &["privacy-protocol=aes256"]),
            "wrongDigests",
        ),
        (
            "wrong privacy password",
            user(good, AUTH, "wrong-secret", &right),
            "wrong privacy password or privacy-protocol",
        ),
        ("unknown user", user("nobody", AUTH, PRIVACY, &[]), "unknownUserNames"),
        (
            "level too low",
            user("sha1-aes128", AUTH, PRIVACY, &["security-level=auth-no-priv"]),
            "authorizationError (16)",
        ),
        ("level too high", user("sha1-clear", AUTH, PRIVACY, &[]), "unsupportedSecLevels"),
    ];
    for (fault, options, says) in rows {
        // A refused SET is read after, as everything that was begun: to the end of the time given.
        let brief = ["--timeout".to_owned(), "12".to_owned()];
        let ended = hand.fence("off", "3", &[options, brief.to_vec()].concat()).await?;
        assert_eq!(ended.code, 1, "{fault}: {}", ended.said);
        assert!(ended.said.contains(says), "{fault}: {}", ended.said);
        assert!(ended.took < Duration::from_secs(20), "{fault}: {:?}", ended.took);
        assert_eq!((hand.agent.sets()?, hand.agent.dark().await?), (vec![], vec![]), "{fault}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_says_yes_and_does_nothing_is_never_believed() -> Result<()> {
    for model in [Model::ApcRpdu2, Model::Eaton, Model::Switch] {
        let hand = FenceCommand::start(&format!("stuck-{}", model.word()), model).await?;
        hand.agent.fail("stuck")?;
        let brief = ["--timeout".to_owned(), "8".to_owned()];
        let options = [community("2c", WRITER), brief.to_vec()].concat();
        let ended = hand.fence("off", model.third(), &options).await?;
        assert_eq!(ended.code, 1, "{model:?}: {}", ended.said);
        assert!(ended.said.contains("not confirmed by a later read"), "{}", ended.said);
        assert_eq!(hand.agent.sets()?.len(), 1, "{model:?}: told once");

        hand.agent.fail("late=3")?;
        let ended = hand.fence_plainly("2c", "off", model.third()).await?;
        assert_eq!(ended.code, 0, "{model:?}: {}", ended.said);
        assert_eq!(hand.agent.dark().await?, [3], "{model:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_s_power_is_cut_with_it() -> Result<()> {
    let hand = FenceCommand::start("poe", Model::Switch).await?;
    let power = ["--set".to_owned(), "poe-port=1.3".to_owned()];
    let options = [community("2c", WRITER), power.to_vec()].concat();
    for (action, values) in [("off", 2), ("on", 1)] {
        let ended = hand.fence(action, "node3", &options).await?;
        assert_eq!(ended.code, 0, "{action}: {}", ended.said);
        let sets = hand.agent.sets()?;
        let both = [
            format!(".1.3.6.1.2.1.2.2.1.7.10003 = {values}"),
            format!(".1.3.6.1.2.1.105.1.1.1.3.1.3 = {values}"),
        ];
        assert!(both.iter().all(|set| sets.contains(set)), "{action}: {sets:?}");
    }
    Ok(())
}

/// A secret is a file, under a name that the method knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_further_secret_is_given_by_its_name() -> Result<()> {
    let hand = FenceCommand::start("secrets", Model::ApcRpdu).await?;
    let with = |pair: &str| vec!["--credential".to_owned(), pair.to_owned()];
    for (options, says) in [
        (with("community"), "expected NAME=FILE"),
        (with("comunity=x"), "but: account, privacy, community"),
        (with("community=absent"), "failed to read --credential community absent"),
        ([community("2c", READER), community("2c", READER)].concat(), "given already"),
        (community("3", READER), "credential account: no such credential is configured"),
        (user("sha1-aes128", AUTH, PRIVACY, &["version=2c"]), "credential community"),
    ] {
        let ended = hand.fence("status", "3", &options).await?;
        assert_ne!(ended.code, 0, "{}", ended.said);
        assert!(ended.said.contains(says), "{says}: {}", ended.said);
    }
    Ok(())
}
