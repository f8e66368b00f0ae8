//! What one call costs: a guest that does nothing, and a whole session with a BMC in memory, in the
//! sandbox and natively.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use node_remedy_devices::bmc::{Bmc, Config};
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sandbox::{CallReport, Executor, Plugin, Sandbox};
use node_remedy_sdk::testing::{Device, TestHost};
use node_remedy_sdk::{Action, FenceMethod, PlugState, Request};
use node_remedy_tests::weigh::median;
use tokio::time::Instant;

use super::guests::{ACCOUNT, call, hostile, seams};
use super::{micros, times};
use crate::methods::ways::must_report_on;
use crate::sandboxed::component;

const RUNS: usize = 2_000;
const RUNS_BEFORE: usize = 200;
const DEADLINE: Duration = Duration::from_secs(10);

pub(super) async fn measure() -> Result<()> {
    let sandbox = Sandbox::new()?;
    let idle = sandbox.load(&hostile()?)?;
    let ipmi = sandbox.load(&std::fs::read(component("ipmi"))?)?;
    let threads = Executor::threads(&sandbox, 2)?;
    let native = natively()?;
    println!("one call, of {RUNS} after {RUNS_BEFORE}; a fresh instance each");
    println!("  {:<58}{:>12}{:>12}", "", "", ": native");
    // The guest's own answer is refused, because it claims what it has not heard; it costs the same.
    let nothing = timed(&idle, "claim-unheard", &Executor::Inline, |_| Ok(())).await?;
    println!("  {:<58}{:>12}{:>12}", "a guest that does nothing", micros(nothing), "–");
    for (name, executor) in [
        ("ipmi status, a whole session, on this thread", &Executor::Inline),
        ("ipmi status, a whole session, on a plugin thread", &threads),
    ] {
        let took = timed(&ipmi, "", executor, must_report_on).await?;
        println!("  {name:<58}{:>12}{:>12}", micros(took), times(took, native));
    }
    println!("  {:<58}{:>12}{:>12}\n", "the same code native", micros(native), "1");
    Ok(())
}

async fn timed(
    plugin: &Arc<Plugin>,
    plug: &str,
    executor: &Executor,
    check: impl Fn(&CallReport) -> Result<()>,
) -> Result<Duration> {
    let (call, seams) = (call(plugin, plug, DEADLINE).await?, seams());
    let mut took = Vec::new();
    for run in 0..RUNS_BEFORE + RUNS {
        let (plugin, call) = (Arc::clone(plugin), call.clone());
        let began = Instant::now();
        let report = executor.run(plugin, call, seams.clone()).await;
        if run >= RUNS_BEFORE {
            took.push(began.elapsed());
        }
        check(&report)?;
    }
    median(took).context("nothing was measured")
}

/// The plugin's code with the host of its native tests, whose time is virtual, at the same model.
fn natively() -> Result<Duration> {
    let mut bmc = Bmc::new(Config::default());
    let device: Rc<RefCell<dyn Device>> =
        Rc::new(RefCell::new(move |_: u64, peer: u64, data: &[u8]| {
            let replies = bmc.datagram(0, peer, data);
            replies.into_iter().map(|reply| (0, reply.bytes)).collect()
        }));
    let (name, password) = ACCOUNT;
    let mut request = Request::new(Action::Status, 60_000);
    let written = [("cipher-suite", "auto"), ("privilege-level", "administrator")];
    let written = written.map(|(name, value)| (name.to_owned(), value.to_owned()));
    request.parameters.extend(written);
    let mut took = Vec::new();
    for (run, seed) in (0..RUNS_BEFORE + RUNS).zip(1..) {
        let host = TestHost::new(60_000).seed(seed).device("bmc", Rc::clone(&device));
        let host = host.credential("account", Some(name), password.as_bytes());
        let began = Instant::now();
        let outcome = Ipmi.run(&request, &host).map_err(|failure| anyhow!("{failure:?}"))?;
        if run >= RUNS_BEFORE {
            took.push(began.elapsed());
        }
        ensure!(outcome.state == PlugState::On, "expected on, it reported {outcome:?}");
    }
    median(took).context("nothing was measured")
}
