//! `node-remedy fence ipmi …` as a person types it: exit codes, words, and a password that nobody
//! else gets to see.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use expect_test::expect;
use node_remedy_tests::ipmi::{Kind, PASSWORD, Power, PowerChange, PowerEvent, USERNAME};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::time::until;
use node_remedy_tests::{Bmc, Controller};
use serde_json::Value;

use super::identity;

/// Of a command that is told to give up soon. A lying BMC is read until then.
const SOON: &[&str] = &["--timeout", "3"];
/// A program that was started, in the table of processes.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
const JSON: &[&str] = &["--output", "json"];

/// A BMC, and a file with a password for it.
struct FenceCommand {
    bmc: Bmc,
    password: &'static str,
    password_file: PathBuf,
}

/// What a command came to.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn json(&self) -> Result<Value> {
        let document: Value = serde_json::from_str(&self.out)
            .with_context(|| format!("no JSON: {} {}", self.out, self.err))?;
        assert_eq!(
            document.get("exitCode"),
            Some(&self.code.into()),
            "the document says the exit code"
        );
        Ok(document)
    }
}

impl FenceCommand {
    async fn start(name: &str, kind: Kind, password: &'static str) -> Result<Self> {
        let folder = fresh_folder(&format!("plugins-by-hand-{name}"))?;
        let bmc = Bmc::start(kind, &folder).await?;
        let password_file = folder.join("password");
        fs::write(&password_file, format!("{password}\n"))?;
        Ok(Self { bmc, password, password_file })
    }

    fn command(&self, action: &str, options: &[&str]) -> Command {
        let mut command = Command::new(Controller::binary());
        command.args(["fence", "ipmi", action, "--address", &self.bmc.address()]);
        command.args(["--username", USERNAME, "--password-file"]).arg(&self.password_file);
        command.args(options);
        command
    }

    /// Runs a command to its end. The password is in nothing that it prints.
    async fn fence(&self, action: &str, options: &[&str]) -> Result<Ended> {
        let mut command = self.command(action, options);
        let Output { status, stdout, stderr } =
            tokio::task::spawn_blocking(move || command.output())
                .await?
                .context("failed to start node-remedy: cargo build -p node-remedy")?;
        let (out, err) = (String::from_utf8(stdout)?, String::from_utf8(stderr)?);
        for secret in [self.password.to_owned(), hexadecimal(self.password)] {
            ensure!(!out.contains(&secret), "the password is on stdout: {out}");
            ensure!(!err.contains(&secret), "the password is on stderr: {err}");
        }
        Ok(Ended { code: status.code().context("ended by a signal")?, out, err })
    }
}

fn hexadecimal(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Every verb of an honest BMC, with the machine's power as its file tells it.
async fn check_verbs(name: &str, kind: Kind, options: &[&str]) -> Result<()> {
    let hand = FenceCommand::start(name, kind, PASSWORD).await?;
    for (verb, code, power) in [
        ("status", 0, Power::On),
        ("monitor", 0, Power::On),
        ("off", 0, Power::Off),
        ("status", 2, Power::Off),
        ("off", 0, Power::Off),
        ("on", 0, Power::On),
        ("reboot", 0, Power::On),
        ("reset", 0, Power::On),
    ] {
        let ended = hand.fence(verb, options).await?;
        assert_eq!((ended.code, hand.bmc.power()), (code, power), "{verb}: {}", ended.err);
    }
    let cut = |event: &&PowerEvent| (event.what, event.power) == (PowerChange::Became, Power::Off);
    let log = hand.bmc.log()?;
    assert!(log.iter().filter(cut).count() >= 2, "off and reboot each cut the power: {log:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_on_bmc17_by_itself() -> Result<()> {
    check_verbs("bmc17", Kind::Bmc17, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_on_ipmi_sim_over_suite_3() -> Result<()> {
    check_verbs("ipmi-sim", Kind::IpmiSim, &["--set", "cipher-suite=3"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_that_says_yes_and_does_nothing_is_never_believed() -> Result<()> {
    let hand = FenceCommand::start("stuck", Kind::Bmc17, PASSWORD).await?;
    hand.bmc.set_faults("stuck 1\n")?;
    for verb in ["off", "reboot"] {
        let ended = hand.fence(verb, SOON).await?;
        assert_eq!((ended.code, hand.bmc.power()), (1, Power::On), "{verb}: {}", ended.out);
        assert!(!ended.out.starts_with("off"), "{verb}: {}", ended.out);
    }
    assert_eq!((hand.bmc.offs()?, hand.bmc.ons()?), (2, 0), "asked once each, and never on");

    let ended = hand.fence("off", &[SOON, JSON].concat()).await?;
    let document = ended.json()?;
    assert_eq!(ended.code, 1);
    assert_ne!(document["confirmed"], true);
    assert_ne!(document["state"], "off");

    hand.bmc.press_button(Power::Off)?;
    let ended = hand.fence("on", SOON).await?;
    assert_eq!((ended.code, hand.bmc.power()), (1, Power::Off), "an on is confirmed too");
    Ok(())
}

/// The machine's power when the wait is over is not known to be what it will be.
#[tokio::test(flavor = "multi_thread")]
async fn an_off_that_takes_longer_than_the_wait_is_told_as_it_stands() -> Result<()> {
    let hand = FenceCommand::start("slow", Kind::Bmc17, PASSWORD).await?;
    hand.bmc.set_faults("off_after 600000\n")?;
    for (options, says) in [
        (SOON, "the off was accepted; the last read said on"),
        (&["--timeout", "1"], "the off was accepted; nothing was read after it"),
    ] {
        let ended = hand.fence("off", options).await?;
        assert_eq!(ended.code, 1);
        assert!(ended.out.contains(says), "{}", ended.out);
    }
    let ended = hand.fence("reboot", SOON).await?;
    let last = ended.out.lines().last().context("nothing was said")?;
    assert!(last.contains("the off may come yet") && last.contains("fence ipmi on"), "{last}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_off_is_not_reset() -> Result<()> {
    let hand = FenceCommand::start("reset-off", Kind::Bmc17, PASSWORD).await?;
    hand.bmc.press_button(Power::Off)?;
    let ended = hand.fence("reset", &[]).await?;
    assert_eq!((ended.code, hand.bmc.power()), (1, Power::Off));
    assert!(ended.out.contains("a machine that is off cannot be reset"), "{}", ended.out);
    let asked = |event: &PowerEvent| event.what == PowerChange::Asked;
    assert!(!hand.bmc.log()?.iter().any(asked), "nothing was sent");
    Ok(())
}

/// There is no time to see it off, and yet it is not left off.
#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_in_a_hurry_leaves_no_machine_off() -> Result<()> {
    let hand = FenceCommand::start("hurry", Kind::Bmc17, PASSWORD).await?;
    let ended = hand.fence("reboot", &["--timeout", "1"]).await?;
    assert_eq!(hand.bmc.offs()?, hand.bmc.ons()?, "{}{}", ended.out, ended.err);
    assert_eq!((ended.code, hand.bmc.power()), (1, Power::On), "nobody saw it off");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_that_leaves_the_machine_off_says_so_last() -> Result<()> {
    let hand = FenceCommand::start("left-off", Kind::Bmc17, PASSWORD).await?;
    hand.bmc.set_faults("off_after 1000\n")?;
    let mut command = hand.command("reboot", SOON);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    until("the off is asked for", SHOWS_WITHIN, || async {
        Ok(Some(()).filter(|()| hand.bmc.offs().is_ok_and(|offs| offs > 0)))
    })
    .await?;
    hand.bmc.set_faults("silent 1\n")?;
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
    let out = String::from_utf8(ended.stdout)?;
    let last = out.lines().last().context("nothing was said")?;
    assert!(last.contains("NOT switched on again"), "{out}");
    assert!(last.contains("run: node-remedy fence ipmi on --address"), "{out}");
    assert_eq!(ended.status.code(), Some(1));
    Ok(())
}

/// What a status says that fails; an off fails too, and cuts nothing.
async fn failure(hand: &FenceCommand, options: &[&str]) -> Result<String> {
    let off = hand.fence("off", options).await?;
    assert_eq!((off.code, hand.bmc.power(), hand.bmc.offs()?), (1, Power::On, 0));
    let Ended { code, out, err } = hand.fence("status", options).await?;
    Ok(format!("exit {code}\n{out}{err}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_in_a_sentence() -> Result<()> {
    let bmc17 = FenceCommand::start("wrong-bmc17", Kind::Bmc17, "battery-staple").await?;
    let ipmi_sim = FenceCommand::start("wrong-ipmi-sim", Kind::IpmiSim, "battery-staple").await?;
    let told = failure(&bmc17, &[]).await?;
    assert_eq!(told, failure(&ipmi_sim, &[]).await?, "over either suite");
    expect![[r"
        exit 1
        node-remedy: ipmi failed: RAKP 2: the BMC's code does not fit the password: wrong password for user admin
    "]].assert_eq(&told);
    expect![[r#"
        exit 1
        {"detail":"RAKP 2: the BMC's code does not fit the password: wrong password for user admin","exitCode":1,"failure":"Unauthenticated"}
    "#]].assert_eq(&failure(&bmc17, JSON).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_named_before_anything_is_sent() -> Result<()> {
    let mut hand = FenceCommand::start("typos", Kind::Bmc17, PASSWORD).await?;
    let log = hand.bmc.log_file().with_file_name("log");
    let heard_before = fs::read(&log)?;
    let value = failure(&hand, &["--set", "cipher-suite=0"]).await?;
    let name = failure(&hand, &["--set", "chipher-suite=3"]).await?;
    hand.password_file = PathBuf::from("/nonexistent/password");
    let file = failure(&hand, &[]).await?;
    assert_eq!(fs::read(&log)?, heard_before, "the BMC heard of it");
    expect![[r#"
        exit 1
        node-remedy: a parameter of ipmi is wrong; set it with --set KEY=VALUE: failed to accept parameter 'cipher-suite': found "0", expected one of auto, 17, 3
        exit 1
        node-remedy: a parameter of ipmi is wrong; set it with --set KEY=VALUE: failed to accept parameter 'chipher-suite': the plugin knows address, cipher-suite, privilege-level
        exit 1
        node-remedy: failed to read --password-file /nonexistent/password: No such file or directory (os error 2)
    "#]].assert_eq(&[value, name, file].concat());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_as_a_document() -> Result<()> {
    let hand = FenceCommand::start("document", Kind::Bmc17, PASSWORD).await?;
    let document = hand.fence("status", JSON).await?.json()?;
    assert_eq!(document["state"], "on");
    for (name, value) in identity(&hand.bmc) {
        assert_eq!(document["identity"][name], value);
    }
    let off = hand.fence("off", JSON).await?.json()?;
    assert_eq!((&off["state"], &off["confirmed"]), (&"off".into(), &true.into()));
    assert_eq!(hand.fence("status", JSON).await?.code, 2);
    Ok(())
}

/// While it runs, other users of the machine see its arguments.
#[tokio::test(flavor = "multi_thread")]
async fn the_password_is_neither_in_the_arguments_nor_in_the_environment() -> Result<()> {
    let hand = FenceCommand::start("arguments", Kind::Bmc17, "battery-staple").await?;
    // A silent BMC keeps the command waiting.
    hand.bmc.set_faults("silent 1\n")?;
    let mut command = hand.command("status", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id()));
    // The kernel shows them only some time after the program has begun.
    let arguments = until("the arguments show", SHOWS_WITHIN, || async {
        Ok(Some(read("cmdline")?).filter(|arguments| !arguments.is_empty()))
    });
    let (arguments, environment) = (arguments.await, read("environ"));
    child.kill()?;
    child.wait()?;
    let arguments = arguments?;
    assert!(arguments.contains("fence\0ipmi\0status"), "{arguments}");
    assert!(!arguments.contains(hand.password), "{arguments}");
    assert!(!environment?.contains(hand.password));
    Ok(())
}

/// Somebody presses Ctrl-C, or a service manager ends it, with the off on its way.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_reboot_switches_the_machine_on_first() -> Result<()> {
    for signal in ["-INT", "-TERM"] {
        let hand =
            FenceCommand::start(&format!("interrupted{signal}"), Kind::Bmc17, PASSWORD).await?;
        hand.bmc.set_faults("off_after 1500\n")?;
        let mut command = hand.command("reboot", &[]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        until("the off is asked for", SHOWS_WITHIN, || async {
            Ok(Some(()).filter(|()| hand.bmc.offs().is_ok_and(|offs| offs > 0)))
        })
        .await?;
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill {signal}: {sent}");
        let ended = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
        let err = String::from_utf8(ended.stderr)?;
        assert_eq!((ended.status.code(), hand.bmc.power()), (Some(0), Power::On), "{err}");
        assert!(err.contains("is switched on before this ends"), "{err}");
    }
    Ok(())
}
