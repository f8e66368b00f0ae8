//! What one read of a machine's power costs: the plugin in its sandbox beside the same code without
//! one, and whole processes beside each other.
//!
//! All ways take turns against the same BMC in the same run, so that whatever else the machine does
//! falls on all of them. Only the ratios mean anything elsewhere.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_plugin_sdk::testing::TestHost;
use node_remedy_plugin_sdk::{FenceMethod, PlugState, Request};
use node_remedy_sandbox::{Action, Call, Direction, Verdict};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{Kind, PASSWORD, USERNAME};
use node_remedy_tests::process::fresh_folder;
use tokio::time::Instant;

use crate::sandboxed::{Sandboxed, component};

/// Enough for a median that another run repeats.
const ROUNDS: usize = 40;
/// Files in the page cache, code paths warm.
const ROUNDS_BEFORE: usize = 4;
const DEADLINE_MS: u32 = 60_000;

/// A simulator over one cipher suite, which every way is told to use.
struct Device {
    name: &'static str,
    kind: Kind,
    suite: &'static str,
}

const DEVICES: [Device; 3] = [
    Device { name: "bmc17, suite 17", kind: Kind::Bmc17, suite: "17" },
    Device { name: "bmc17, suite 3", kind: Kind::Bmc17, suite: "3" },
    Device { name: "ipmi_sim, suite 3", kind: Kind::IpmiSim, suite: "3" },
];

/// What each way took against one device, in rounds.
#[derive(Default)]
struct Measured {
    sandboxed: Durations,
    native: Durations,
    fence: Durations,
    ipmitool: Durations,
}

#[derive(Default)]
struct Durations(Vec<Duration>);

impl Durations {
    /// Of an even number the lower of the two in the middle: a time that was measured.
    fn median(&self) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }
}

pub(crate) async fn measure() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let sandboxed = Sandboxed::load()?;
    let mut columns = Vec::new();
    for device in &DEVICES {
        let folder = fresh_folder(&format!("bench-plugins-{}", columns.len()))?;
        let bmc = Bmc::start(device.kind, &folder).await?;
        columns.push(measure_device(&sandboxed, &bmc, device.suite, &folder).await?);
        println!("measured {}", device.name);
    }
    print!("{}", Table(&columns));
    let ahead = component().with_extension("cwasm");
    let size = |path: &Path| std::fs::metadata(path).map(|file| file.len());
    println!("ipmi.wasm: {} bytes; compiled ahead: {}", size(&component())?, size(&ahead)?);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let load = load.split(' ').next().unwrap_or_default();
    println!("host and native code: {profile} build; load before: {load}");
    Ok(())
}

async fn measure_device(
    sandboxed: &Sandboxed,
    bmc: &Bmc,
    suite: &'static str,
    folder: &Path,
) -> Result<Measured> {
    let password_file = folder.join("password");
    std::fs::write(&password_file, PASSWORD)?;
    let call = sandboxed.prepare(bmc, Action::Status, suite).await?;
    let mut measured = Measured::default();
    for round in 0..ROUNDS_BEFORE + ROUNDS {
        let in_sandbox = one_call(sandboxed, call.clone()).await?;
        let natively = one_native_call(bmc.address(), suite, u64::try_from(round)?).await?;
        let fence = one_process(fence_command(bmc, suite, &password_file)?).await?;
        let ipmitool = one_process(ipmitool_command(bmc, suite, &password_file)).await?;
        if round >= ROUNDS_BEFORE {
            measured.sandboxed.0.push(in_sandbox);
            measured.native.0.push(natively);
            measured.fence.0.push(fence);
            measured.ipmitool.0.push(ipmitool);
        }
    }
    Ok(measured)
}

async fn one_call(sandboxed: &Sandboxed, call: Call) -> Result<Duration> {
    let began = Instant::now();
    let report = sandboxed.call(call).await;
    let took = began.elapsed();
    let is_on = match report.verdict() {
        Verdict::Outcome(outcome) => outcome.state == node_remedy_sandbox::PlugState::On,
        Verdict::FailedBeforeEffect(_) | Verdict::Indeterminate(_) => false,
    };
    let sent = report.exchanges.iter().filter(|exchange| exchange.direction == Direction::Sent);
    ensure!(is_on, "a measurement of {:?} after {} datagrams", report.result, sent.count());
    Ok(took)
}

/// The plugin's own code with the host that its native tests use: blocking sockets, no sandbox.
async fn one_native_call(address: String, suite: &'static str, seed: u64) -> Result<Duration> {
    let calls = move || {
        let began = Instant::now();
        let host = TestHost::real_time(u64::from(DEADLINE_MS))
            .seed(seed)
            .credential("account", Some(USERNAME), PASSWORD.as_bytes())
            .socket("bmc", &address);
        let mut request = Request::new(node_remedy_plugin_sdk::Action::Status, DEADLINE_MS);
        request.parameters.push(("cipher-suite".to_owned(), suite.to_owned()));
        let result = Ipmi.run(&request, &host);
        let took = began.elapsed();
        let outcome = result.map_err(|failure| anyhow!("natively: {}", failure.detail))?;
        ensure!(outcome.state == PlugState::On, "natively: {outcome:?}");
        Ok(took)
    };
    tokio::task::spawn_blocking(calls).await?
}

/// From its start to its end, with its output read.
async fn one_process(mut command: Command) -> Result<Duration> {
    let runs = move || {
        let began = Instant::now();
        let output = command.output();
        (began.elapsed(), output)
    };
    let (took, output) = tokio::task::spawn_blocking(runs).await?;
    let output = output.context("failed to start a process to measure")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_on = output.status.success() && text.contains("on");
    ensure!(is_on, "a measurement of {text}{}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}

/// The binary beside this one: of the same profile.
fn fence_command(bmc: &Bmc, suite: &str, password_file: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("node-remedy"));
    command.args(["fence", "ipmi", "status", "--address", &bmc.address()]);
    command.args(["--username", USERNAME, "--set", &format!("cipher-suite={suite}")]);
    command.arg("--password-file").arg(password_file);
    Ok(command)
}

fn ipmitool_command(bmc: &Bmc, suite: &str, password_file: &Path) -> Command {
    let mut command = Command::new("ipmitool");
    command.args(["-I", "lanplus", "-H", "127.0.0.1", "-p", &bmc.port().to_string()]);
    command.args(["-U", USERNAME, "-C", suite, "-f"]).arg(password_file);
    command.args(["chassis", "power", "status"]);
    command
}

/// A column for each device.
struct Table<'a>(&'a [Measured]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\n{:<42}", format!("one power status, median of {ROUNDS}"))?;
        for device in &DEVICES {
            write!(out, "{:>20}", device.name)?;
        }
        writeln!(out)?;
        self.row(out, "ipmi.wasm in its sandbox", |of| millis(of.sandboxed.median()))?;
        self.row(out, "the same code, native", |of| millis(of.native.median()))?;
        self.row(out, "node-remedy fence, a whole process", |of| millis(of.fence.median()))?;
        self.row(out, "ipmitool, a whole process", |of| millis(of.ipmitool.median()))?;
        writeln!(out)?;
        self.row(out, "sandbox : native", |of| ratio(&of.sandboxed, &of.native))?;
        self.row(out, "ipmitool : sandbox", |of| ratio(&of.ipmitool, &of.sandboxed))?;
        self.row(out, "ipmitool : node-remedy fence", |of| ratio(&of.ipmitool, &of.fence))?;
        writeln!(out)
    }
}

impl Table<'_> {
    fn row(
        &self,
        out: &mut fmt::Formatter<'_>,
        name: &str,
        cell: impl Fn(&Measured) -> String,
    ) -> fmt::Result {
        write!(out, "{name:<42}")?;
        for column in self.0 {
            write!(out, "{:>20}", cell(column))?;
        }
        writeln!(out)
    }
}

fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

fn ratio(one: &Durations, other: &Durations) -> String {
    format!("{:.2} ×", one.median().as_secs_f64() / other.median().as_secs_f64())
}
