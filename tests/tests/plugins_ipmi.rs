//! `ipmi.wasm` as it ships against real BMC simulators: in its sandbox over real sockets, and by
//! hand through `node-remedy fence`.
//!
//! What is true is read from the BMC's own files and by [`sessions`], never from the plugin.

mod by_hand;
mod faults;
mod power;
#[path = "../src/bin/node_remedy_bench/sandboxed.rs"]
pub(crate) mod sandboxed;
mod sessions;

use std::sync::LazyLock;

use anyhow::{Result, anyhow, bail, ensure};
use node_remedy_sandbox::{
    Action, Call, CallReport, Direction, Fields, Outcome, PlugState, Verdict,
};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::PASSWORD;

use sandboxed::Sandboxed;

/// Compiled once for all tests of this process.
static IPMI: LazyLock<Result<Sandboxed>> = LazyLock::new(|| Sandboxed::load("ipmi"));

fn ipmi() -> Result<&'static Sandboxed> {
    IPMI.as_ref().map_err(|failure| anyhow!("{failure:#}"))
}

/// What a plugin must report of the machine behind this BMC.
fn identity(bmc: &Bmc) -> Fields {
    vec![("system-uuid".to_owned(), bmc.guid().as_uuid().replace('-', ""))]
}

/// One action in a fresh instance.
async fn act(bmc: &Bmc, action: Action, suite: &str) -> Result<CallReport> {
    call(ipmi()?.prepare(bmc, action, suite).await?).await
}

/// A status that polls in place until the power reads so.
async fn wait_for(bmc: &Bmc, wanted: PlugState, suite: &str) -> Result<CallReport> {
    let mut until = ipmi()?.prepare(bmc, Action::Status, suite).await?;
    until.request.until = Some(wanted);
    call(until).await
}

/// Whatever comes of it, the password is not in what is left.
async fn call(call: Call) -> Result<CallReport> {
    let report = ipmi()?.call(call).await;
    let password = PASSWORD.as_bytes();
    for exchange in &report.exchanges {
        let is_told = exchange.bytes.windows(password.len()).any(|bytes| bytes == password);
        ensure!(!is_told, "the password went over the wire: {exchange:?}");
    }
    let words = format!("{:?} {:?}", report.result, report.log);
    ensure!(!words.contains(PASSWORD), "the password is in {words}");
    Ok(report)
}

/// The outcome of a call that must have one.
fn outcome(report: &CallReport) -> Result<&Outcome> {
    match report.verdict() {
        Verdict::Outcome(outcome) => Ok(outcome),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            bail!("{} failed: {failure:?}", report.action.as_str())
        }
    }
}

/// The cipher suite of the last session that was asked for, read from the datagrams.
fn suite_on_the_wire(report: &CallReport) -> Option<u8> {
    const OPEN_SESSION: u8 = 0x10;
    let opened = report.exchanges.iter().rev().find(|exchange| {
        exchange.direction == Direction::Sent && exchange.bytes.get(5) == Some(&OPEN_SESSION)
    })?;
    let algorithm = |at: usize| opened.bytes.get(16 + at).copied();
    match (algorithm(12)?, algorithm(20)?, algorithm(28)?) {
        (3, 4, 1) => Some(17),
        (1, 1, 1) => Some(3),
        _ => None,
    }
}
