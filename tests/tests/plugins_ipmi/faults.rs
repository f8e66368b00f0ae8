//! Every fault of `bmc17.py` against status and off: the kind of failure, its sentence, the machine's
//! power afterwards, and the sessions that are left. The tables are the documentation of each.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use expect_test::{Expect, expect};
use futures::future::try_join_all;
use node_remedy_sandbox::{Action, PlugState, Verdict};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{Kind, Power};
use node_remedy_tests::process::{fresh_folder, repository};

use super::{act, sessions};

/// Late, but before anything is sent again, so that a slow test machine sees the same.
const LATE_MS: u32 = 150;
/// Longer than any call: a power-off that has not come when it is judged.
const NEVER_MS: u32 = 600_000;

const FAULTS: [(&str, u32); 21] = [
    ("drop", 2),
    ("delay", LATE_MS),
    ("dup", 1),
    ("silent", 1),
    ("open_status", 0x01),
    ("open_status", 0x11),
    ("rakp2_status", 0x09),
    ("rakp2_status", 0x0d),
    ("rakp4_status", 0x01),
    ("rakp4_status", 0x0f),
    ("bad_rakp2", 1),
    ("bad_rakp4", 1),
    ("bad_tag", 1),
    ("bad_auth", 1),
    ("wrong_sid", 1),
    ("no_ciphers", 1),
    ("stuck", 1),
    ("cc", 0xc0),
    ("off_after", NEVER_MS),
    ("truncate", 20),
    ("kill_session", 1),
];

/// One call of a BMC with one fault, and what is true afterwards.
struct Row {
    fault: (&'static str, u32),
    /// The state that was read, or the kind of failure.
    word: &'static str,
    detail: String,
    power: Power,
    sessions: u8,
}

impl Row {
    async fn play(bmc: &Bmc, fault: (&'static str, u32), call: (Action, &str)) -> Result<Self> {
        let (action, suite) = call;
        bmc.set_faults(&format!("{} {}\n", fault.0, fault.1))?;
        let report = act(bmc, action, suite).await?;
        let power = bmc.power();
        let (word, detail) = match report.verdict() {
            Verdict::Outcome(outcome) => {
                let is_false = outcome.state == PlugState::Off && power == Power::On;
                assert!(!is_false, "{fault:?}: {action:?} says off, and the machine is on");
                (outcome.state.as_str(), outcome.detail.clone())
            }
            Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
                (failure.kind.as_str(), without_times(&failure.detail))
            }
        };
        Ok(Self { fault, word, detail, power, sessions: sessions::taken(bmc).await? })
    }

    fn line(&self) -> String {
        let power = match self.power {
            Power::On => "on",
            Power::Off => "off",
        };
        let left = match self.sessions {
            0 => String::new(),
            count => format!(" | {count} sessions left"),
        };
        let (name, value) = self.fault;
        let (word, detail) = (self.word, &self.detail);
        format!("{name} {value} | {word} | power {power}{left} | {detail}\n")
    }
}

/// Waits are measured, so they differ from run to run.
fn without_times(detail: &str) -> String {
    let words: Vec<_> = detail.split(' ').collect();
    let is_time = |at: usize| words.get(at + 1) == Some(&"ms");
    let masked = words.iter().enumerate().map(|(at, word)| if is_time(at) { "…" } else { word });
    masked.collect::<Vec<_>>().join(" ")
}

/// All faults at once, each with a BMC of its own: most of the time is spent waiting for answers
/// that never come.
async fn table(action: Action, suite: &str) -> Result<String> {
    let folder = fresh_folder(&format!("plugins-faults-{}-{suite}", action.as_str()))?;
    let starts = (0..FAULTS.len()).map(|number| {
        let folder = folder.join(number.to_string());
        async move { Bmc::start(Kind::Bmc17, &folder).await }
    });
    let bmcs = try_join_all(starts).await?;
    let plays = bmcs.iter().zip(FAULTS).map(|(bmc, fault)| Row::play(bmc, fault, (action, suite)));
    Ok(try_join_all(plays).await?.iter().map(Row::line).collect())
}

/// Left to itself it speaks suite 17; over suite 3 the table is the same but for that number.
async fn check(action: Action, expected: Expect) -> Result<()> {
    let (auto, over_3) = (table(action, "auto"), table(action, "3"));
    let (auto, over_3) = futures::future::try_join(auto, over_3).await?;
    let without_suite = |table: &str| table.replace("suite 17:", "suite 3:");
    assert_eq!(without_suite(&over_3), without_suite(&auto), "over suite 3");
    expected.assert_eq(&auto);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_each_fault_says_when_the_power_is_read() -> Result<()> {
    check(Action::Status, expect![[r"
        drop 2 | on | power on | chassis power is on
        delay 150 | on | power on | chassis power is on
        dup 1 | on | power on | chassis power is on
        silent 1 | unreachable | power on | open session with cipher suite 17: no answer in … ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        open_status 1 | busy | power on | open session with cipher suite 17: the BMC has no session slot free: close others, or wait a minute (0x01)
        open_status 17 | unsupported | power on | open session with cipher suite 3: the BMC does not have this cipher suite enabled (0x11)
        rakp2_status 9 | denied | power on | RAKP 1: the user may not have this role: lower privilege-level, or raise the user's on the BMC (0x09)
        rakp2_status 13 | unauthenticated | power on | RAKP 1: the BMC does not know the user, or has not enabled it for this channel (0x0d)
        rakp4_status 1 | busy | power on | RAKP 3: the BMC has no session slot free: close others, or wait a minute (0x01)
        rakp4_status 15 | unauthenticated | power on | RAKP 3: the BMC says that the password is wrong (0x0f)
        bad_rakp2 1 | unauthenticated | power on | RAKP 2: the BMC's code does not fit the password: wrong password for user admin
        bad_rakp4 1 | unauthenticated | power on | RAKP 4: the session keys differ though the password fits: the BMC may have a key (K_g) of its own: configure the credential kg
        bad_tag 1 | protocol | power on | 4 sessions left | open session with cipher suite 17: dropped 4 answers, the last because it carries a message tag that was never sent
        bad_auth 1 | protocol | power on | get chassis status: dropped 4 answers, the last because its authentication code is wrong
        wrong_sid 1 | protocol | power on | get chassis status: dropped 4 answers, the last because it belongs to another session
        no_ciphers 1 | on | power on | chassis power is on
        stuck 1 | on | power on | chassis power is on
        cc 192 | on | power on | chassis power is on
        off_after 600000 | on | power on | chassis power is on
        truncate 20 | protocol | power on | 4 sessions left | open session with cipher suite 17: dropped 4 answers, the last because its length field does not fit
        kill_session 1 | timeout | power on | get chassis status: no answer in … ms (4 sent), though the BMC had answered before
    "]]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_each_fault_says_when_the_power_is_cut() -> Result<()> {
    check(Action::Off, expect![[r"
        drop 2 | off | power off | power off accepted; chassis power reads off
        delay 150 | off | power off | power off accepted; chassis power reads off
        dup 1 | off | power off | power off accepted; chassis power reads off
        silent 1 | unreachable | power on | open session with cipher suite 17: no answer in … ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        open_status 1 | busy | power on | open session with cipher suite 17: the BMC has no session slot free: close others, or wait a minute (0x01)
        open_status 17 | unsupported | power on | open session with cipher suite 3: the BMC does not have this cipher suite enabled (0x11)
        rakp2_status 9 | denied | power on | RAKP 1: the user may not have this role: lower privilege-level, or raise the user's on the BMC (0x09)
        rakp2_status 13 | unauthenticated | power on | RAKP 1: the BMC does not know the user, or has not enabled it for this channel (0x0d)
        rakp4_status 1 | busy | power on | RAKP 3: the BMC has no session slot free: close others, or wait a minute (0x01)
        rakp4_status 15 | unauthenticated | power on | RAKP 3: the BMC says that the password is wrong (0x0f)
        bad_rakp2 1 | unauthenticated | power on | RAKP 2: the BMC's code does not fit the password: wrong password for user admin
        bad_rakp4 1 | unauthenticated | power on | RAKP 4: the session keys differ though the password fits: the BMC may have a key (K_g) of its own: configure the credential kg
        bad_tag 1 | protocol | power on | 4 sessions left | open session with cipher suite 17: dropped 4 answers, the last because it carries a message tag that was never sent
        bad_auth 1 | protocol | power on | set session privilege level: dropped 4 answers, the last because its authentication code is wrong
        wrong_sid 1 | protocol | power on | set session privilege level: dropped 4 answers, the last because it belongs to another session
        no_ciphers 1 | off | power off | power off accepted; chassis power reads off
        stuck 1 | transitioning | power on | power off accepted; chassis power still reads on
        cc 192 | busy | power on | chassis control: power off: the BMC is busy (0xc0)
        off_after 600000 | transitioning | power on | power off accepted; chassis power still reads on
        truncate 20 | protocol | power on | 4 sessions left | open session with cipher suite 17: dropped 4 answers, the last because its length field does not fit
        kill_session 1 | timeout | power on | set session privilege level: no answer in … ms (4 sent), though the BMC had answered before
    "]]).await
}

/// The simulator's own list of its faults, of which none is forgotten.
#[test]
fn every_fault_that_bmc17_documents_has_a_row() -> Result<()> {
    let source = fs::read_to_string(repository().join("tests/sims/ipmi/bmc17.py"))?;
    let (_, rest) = source.split_once("`name value` lines:\n").context("no list of faults")?;
    let (list, _) = rest.split_once("\nDIR/log").context("no end of the list")?;
    // Two pairs of columns a line, at least two spaces apart: `name value`, what it does.
    let documented: BTreeSet<_> = list
        .split("  ")
        .filter_map(|column| column.trim().split_once(' '))
        .filter(|(_, value)| matches!(*value, "N" | "MS" | "S" | "NN" | "1"))
        .map(|(name, _)| name)
        .collect();
    let covered: BTreeSet<_> = FAULTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(documented.len(), 18, "{documented:?}");
    assert_eq!(covered, documented);
    Ok(())
}
