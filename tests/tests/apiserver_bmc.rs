//! The simulated BMCs, checked with ipmitool, a client that shares nothing with ours.

use anyhow::{Result, ensure};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{Kind, PASSWORD, Power, PowerChange, USERNAME};
use node_remedy_tests::process::fresh_folder;

/// Runs ipmitool against a BMC and answers its output.
pub(crate) async fn ipmitool(bmc: &Bmc, options: &[&str], command: &[&str]) -> Result<String> {
    let (bmc_port, options, command) =
        (bmc.port().to_string(), to_owned(options), to_owned(command));
    let output = tokio::task::spawn_blocking(move || {
        std::process::Command::new("ipmitool")
            .args(["-I", "lanplus", "-H", "127.0.0.1", "-p", &bmc_port])
            .args(["-U", USERNAME, "-P", PASSWORD])
            .args(options)
            .args(command)
            .output()
    })
    .await??;
    let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    ensure!(output.status.success(), "ipmitool ended with {}: {err}", output.status);
    Ok(String::from_utf8(out)?)
}

fn to_owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Both simulators tell the same timeline in the same words.
async fn check(kind: Kind, suite: &str) -> Result<()> {
    let folder = fresh_folder(&format!("bmc-{kind:?}-{suite}"))?;
    let bmc = Bmc::start(kind, &folder).await?;
    let suite = ["-C", suite];
    let power = |action: &'static str| {
        let bmc = &bmc;
        async move { ipmitool(bmc, &suite, &["chassis", "power", action]).await }
    };
    assert!(power("status").await?.contains("is on"));
    power("off").await?;
    assert!(power("status").await?.contains("is off"));
    assert_eq!(bmc.power(), Power::Off);

    bmc.set_faults("stuck 1\n")?;
    power("on").await?;
    assert!(power("status").await?.contains("is off"), "stuck: it says yes and does nothing");
    bmc.set_faults("")?;
    power("on").await?;
    bmc.press_button(Power::Off)?;

    let log = bmc.log()?;
    let changes: Vec<_> = log
        .iter()
        .filter(|event| event.what != PowerChange::Read)
        .map(|event| (event.what, event.power))
        .collect();
    let asked = |power| (PowerChange::Asked, power);
    let became = |power| (PowerChange::Became, power);
    assert_eq!(
        changes,
        [
            asked(Power::Off),
            became(Power::Off),
            asked(Power::On),
            asked(Power::On),
            became(Power::On),
            became(Power::Off),
        ]
    );
    assert_eq!((bmc.offs()?, bmc.ons()?), (1, 2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_sim_logs_what_clients_asked_and_what_really_changed() -> Result<()> {
    check(Kind::IpmiSim, "3").await
}

#[tokio::test(flavor = "multi_thread")]
async fn bmc17_logs_what_clients_asked_and_what_really_changed() -> Result<()> {
    check(Kind::Bmc17, "17").await
}
