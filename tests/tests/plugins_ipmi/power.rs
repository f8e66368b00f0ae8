//! A machine is read, cut, proven off and powered on again, over each cipher suite of each
//! simulator.

use anyhow::Result;
use node_remedy_sandbox::{Action, Effect, Ended, PlugState, Verdict};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{Kind, Power};
use node_remedy_tests::process::fresh_folder;

use super::{act, identity, outcome, sessions, suite_on_the_wire, wait_for};

/// The parameter `cipher-suite`, and the suite that it must come to.
async fn check(kind: Kind, (parameter, expected): (&str, u8)) -> Result<()> {
    let bmc =
        Bmc::start(kind, &fresh_folder(&format!("plugins-power-{kind:?}-{parameter}"))?).await?;

    for action in [Action::Status, Action::Monitor] {
        let report = act(&bmc, action, parameter).await?;
        assert_eq!(outcome(&report)?.state, PlugState::On);
        assert_eq!(outcome(&report)?.identity, identity(&bmc));
        assert_eq!((report.effect, report.ended), (Effect::NotBegun, Ended::Returned));
        assert_eq!(suite_on_the_wire(&report), Some(expected));
    }
    assert_eq!(
        (bmc.power(), bmc.offs()?, bmc.ons()?),
        (Power::On, 0, 0),
        "reading changes nothing"
    );

    let off = act(&bmc, Action::Off, parameter).await?;
    assert_ne!(outcome(&off)?.state, PlugState::On);
    assert_eq!((off.effect, off.lied), (Effect::Begun, false));
    assert_eq!(suite_on_the_wire(&off), Some(expected));
    let proof = wait_for(&bmc, PlugState::Off, parameter).await?;
    assert_eq!(outcome(&proof)?.state, PlugState::Off);
    assert_eq!(outcome(&proof)?.identity, identity(&bmc));
    assert_eq!((bmc.power(), bmc.offs()?), (Power::Off, 1));

    let on = act(&bmc, Action::On, parameter).await?;
    assert_eq!(on.effect, Effect::Begun);
    assert_eq!(outcome(&wait_for(&bmc, PlugState::On, parameter).await?)?.state, PlugState::On);
    assert_eq!(bmc.power(), Power::On);

    let reset = act(&bmc, Action::Reset, parameter).await?;
    assert_eq!((outcome(&reset)?.state, reset.effect), (PlugState::On, Effect::Begun));
    assert_eq!((bmc.power(), bmc.offs()?), (Power::On, 1), "a reset is no off");
    if kind == Kind::Bmc17 {
        assert_eq!(sessions::taken(&bmc).await?, 0, "every session was closed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bmc17_over_suite_17() -> Result<()> {
    check(Kind::Bmc17, ("17", 17)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bmc17_over_suite_3() -> Result<()> {
    check(Kind::Bmc17, ("3", 3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bmc17_left_to_itself_is_asked_over_suite_17() -> Result<()> {
    check(Kind::Bmc17, ("auto", 17)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_sim_over_suite_3() -> Result<()> {
    check(Kind::IpmiSim, ("3", 3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_sim_which_has_no_suite_17_is_asked_over_suite_3() -> Result<()> {
    check(Kind::IpmiSim, ("auto", 3)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ipmi_sim_is_not_asked_over_a_suite_that_it_lacks() -> Result<()> {
    let bmc = Bmc::start(Kind::IpmiSim, &fresh_folder("plugins-lacks-17")?).await?;
    let off = act(&bmc, Action::Off, "17").await?;
    assert!(matches!(off.verdict(), Verdict::FailedBeforeEffect(_)), "{:?}", off.result);
    assert_eq!((bmc.power(), bmc.offs()?), (Power::On, 0));
    Ok(())
}

/// The BMC says yes at once and the machine goes off later: the command is no proof, the later read
/// is.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_off_is_believed_when_it_is_read() -> Result<()> {
    for (kind, fault) in [(Kind::Bmc17, "off_after 1500"), (Kind::IpmiSim, "delay 1.5")] {
        let bmc = Bmc::start(kind, &fresh_folder(&format!("plugins-late-{kind:?}"))?).await?;
        bmc.set_faults(fault)?;
        let off = act(&bmc, Action::Off, "auto").await?;
        assert_eq!(outcome(&off)?.state, PlugState::Transitioning);
        let proof = wait_for(&bmc, PlugState::Off, "auto").await?;
        assert_eq!((outcome(&proof)?.state, bmc.power()), (PlugState::Off, Power::Off));
        assert_eq!(bmc.offs()?, 1, "waiting is not asking again");
    }
    Ok(())
}
