//! `fence`: one method by hand, in its sandbox, granted exactly the address given.
//!
//! An `off` is believed only when a later read, in a fresh instance, says off. A command
//! whose end is unknown is never sent again: it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Cancel, Cidr, ExchangeRecord, Executor, Failure, Grants,
    Names as _, OpenGate, PlugState, Plugin, Request, Sandbox, Seams, Secret, SystemEntropy,
    SystemNames, TokioClock, Verdict,
};
use serde_json::json;
use tokio::time::Instant;

use super::out::{complain, outln};
use super::{FenceAction, FenceArgs, Output};
use crate::clock::Clock;
use crate::plugins::Plugins;

/// Status says off.
const EXIT_OFF: u8 = 2;
/// Between reads that wait for a change to show.
const READ_EVERY: Duration = Duration::from_millis(500);
/// A read that is given less time than this says only that there was none.
const READ_MIN: Duration = Duration::from_secs(1);
/// A password is a line, not a file system.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// What a command came to.
struct Outcome {
    state: PlugState,
    identity: Vec<(String, String)>,
    detail: String,
    confirmed: bool,
}

/// Carries one action out.
pub async fn fence(args: &FenceArgs) -> anyhow::Result<ExitCode> {
    let mut hand = Hand::set_up(args).await?;
    let done = match args.action {
        FenceAction::Status => hand.read(None).await,
        FenceAction::Monitor => hand.once(Action::Monitor).await,
        FenceAction::Off => hand.switch(Action::Off, PlugState::Off).await,
        FenceAction::On => hand.switch(Action::On, PlugState::On).await,
        FenceAction::Reset => hand.switch(Action::Reset, PlugState::On).await,
        FenceAction::Reboot => match hand.switch(Action::Off, PlugState::Off).await {
            Ok(off) if off.confirmed => hand.switch(Action::On, PlugState::On).await,
            other => other,
        },
    };
    print(args, &done)
}

fn print(args: &FenceArgs, done: &Result<Outcome, Failure>) -> anyhow::Result<ExitCode> {
    let code = match done {
        Err(_) => 1,
        Ok(outcome) => match (args.action, outcome.state) {
            (FenceAction::Status, PlugState::On) => 0,
            (FenceAction::Status, PlugState::Off) => EXIT_OFF,
            (FenceAction::Status, PlugState::Transitioning | PlugState::Unknown) => 1,
            (FenceAction::Monitor, _) => 0,
            _ => u8::from(!outcome.confirmed),
        },
    };
    match (args.output, done) {
        (Output::Json, Ok(outcome)) => {
            let identity: BTreeMap<_, _> = outcome.identity.iter().cloned().collect();
            let all = json!({
                "state": word(outcome.state), "confirmed": outcome.confirmed,
                "identity": identity, "detail": outcome.detail, "exitCode": code,
            });
            outln!("{all}");
        }
        (Output::Json, Err(failure)) => {
            let kind = format!("{:?}", failure.kind);
            outln!("{}", json!({"failure": kind, "detail": failure.detail, "exitCode": code}));
        }
        (Output::Text, Ok(outcome)) => {
            outln!("{}", word(outcome.state));
            for (name, value) in &outcome.identity {
                outln!("  {name}: {value}");
            }
            if !outcome.detail.is_empty() {
                outln!("  {}", outcome.detail);
            }
            let changes = !matches!(args.action, FenceAction::Status | FenceAction::Monitor);
            if changes && !outcome.confirmed {
                outln!("  not confirmed by a later read; look at the machine");
            }
        }
        (Output::Text, Err(failure)) => {
            complain(format_args!("node-remedy: {} failed: {}", args.plugin, failure.detail));
        }
    }
    Ok(ExitCode::from(code))
}

fn word(state: PlugState) -> &'static str {
    match state {
        PlugState::On => "on",
        PlugState::Off => "off",
        PlugState::Transitioning => "transitioning",
        PlugState::Unknown => "unknown",
    }
}

/// A plugin, and all it needs for calls by hand.
struct Hand {
    plugin: Arc<Plugin>,
    executor: Executor,
    seams: Seams,
    parameters: BTreeMap<String, String>,
    grants: Grants,
    credentials: BTreeMap<String, Secret>,
    plug: String,
    end: Instant,
    calls: u32,
}

impl Hand {
    async fn set_up(args: &FenceArgs) -> anyhow::Result<Self> {
        let sandbox = Sandbox::new().context("failed to start the sandbox")?;
        let executor = Executor::threads(&sandbox, 1).context("failed to start a thread")?;
        let plugins = Plugins::new(sandbox);
        let plugin = plugins.find(&args.plugin)?;
        let given = parameters(args)?;
        let parameters = plugin.manifest().parameters.fill(&given).with_context(|| {
            format!("a parameter of {} is wrong; set it with --set KEY=VALUE", args.plugin)
        })?;
        let admin = exactly_these(&plugin, &parameters).await?;
        let grants = Grants::decide(plugin.manifest(), &parameters, &admin, &SystemNames).await?;
        let clock = Clock::system();
        Ok(Self {
            credentials: credentials(args, &plugin)?,
            plugin,
            executor,
            seams: Seams {
                net: Arc::new(Sockets),
                clock: Arc::new(TokioClock::starting_at(clock.now().0)),
                entropy: Arc::new(SystemEntropy),
                gate: Arc::new(OpenGate),
            },
            parameters: given,
            grants,
            plug: args.plug.clone(),
            end: Instant::now() + Duration::from_secs(u64::from(args.timeout)),
            calls: 0,
        })
    }

    /// One read; with `until`, polled in place until the plug reads so.
    async fn read(&mut self, until: Option<PlugState>) -> Result<Outcome, Failure> {
        let report = self.call(Action::Status, until).await;
        settle(&report)
    }

    async fn once(&mut self, action: Action) -> Result<Outcome, Failure> {
        let report = self.call(action, None).await;
        settle(&report)
    }

    /// Sends a change once, then reads until it shows or time is up. What the device said
    /// to the command itself is told too: a refusal is the reason why nothing shows.
    async fn switch(&mut self, action: Action, wanted: PlugState) -> Result<Outcome, Failure> {
        let report = self.call(action, None).await;
        let refusal = match report.verdict() {
            Verdict::FailedBeforeEffect(failure) => return Err(failure.clone()),
            Verdict::Indeterminate(failure) => Some(failure.detail.clone()),
            Verdict::Outcome(_) => None,
        };
        let mut last = None;
        while Instant::now() + READ_MIN < self.end {
            let read = self.read(Some(wanted)).await;
            if let Ok(outcome) = &read
                && outcome.state == wanted
            {
                // A machine that reads on was not thereby reset; that it was accepted is all
                // that can be known.
                let confirmed = action != Action::Reset || refusal.is_none();
                return read.map(|outcome| Outcome { confirmed, ..outcome });
            }
            if read.is_ok() || last.is_none() {
                last = Some(read);
            }
            tokio::time::sleep(READ_EVERY).await;
        }
        let told = last.unwrap_or_else(|| settle(&report));
        match (told, refusal) {
            (Ok(outcome), Some(why)) => {
                Ok(Outcome { detail: format!("{}; {why}", outcome.detail), ..outcome })
            }
            (told, _) => told,
        }
    }

    async fn call(&mut self, action: Action, until: Option<PlugState>) -> CallReport {
        self.calls += 1;
        let request = Request {
            action,
            plug: self.plug.clone(),
            parameters: self.parameters.clone(),
            operation_id: format!("by-hand/{}", self.calls),
            attempt: 1,
            deadline: self.end.saturating_duration_since(Instant::now()),
            until,
            resume: None,
        };
        let call = Call {
            request,
            grants: self.grants.clone(),
            credentials: self.credentials.clone(),
            cancel: Cancel::new(),
            exchange_record: ExchangeRecord::Off,
        };
        self.executor.run(self.plugin.clone(), call, self.seams.clone()).await
    }
}

fn settle(report: &CallReport) -> Result<Outcome, Failure> {
    match report.verdict() {
        Verdict::Outcome(outcome) => Ok(Outcome {
            state: outcome.state,
            identity: outcome.identity.clone(),
            detail: outcome.detail.clone(),
            confirmed: false,
        }),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            Err(failure.clone())
        }
    }
}

fn parameters(args: &FenceArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    if let Some(address) = &args.address {
        parameters.insert("address".to_owned(), address.clone());
    }
    for pair in &args.set {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set {pair}: expected KEY=VALUE");
        };
        parameters.insert(key.to_owned(), value.to_owned());
    }
    Ok(parameters)
}

/// A grant of the very addresses that the person typed, and nothing else.
async fn exactly_these(
    plugin: &Plugin,
    parameters: &BTreeMap<String, String>,
) -> anyhow::Result<AdminGrant> {
    let manifest = plugin.manifest();
    let mut admin = AdminGrant {
        ports: vec![1..=u16::MAX],
        protocols: manifest.asks.endpoints.iter().map(|ask| ask.protocol).collect(),
        operations: BTreeSet::new(),
        reveal: true,
        ..AdminGrant::default()
    };
    for ask in &manifest.asks.credentials {
        admin.operations.extend(ask.operations.iter().copied());
    }
    for ask in &manifest.asks.endpoints {
        let Some(written) = parameters.get(&ask.from) else {
            bail!("no {}: pass --{} HOST or --set {}=HOST", ask.from, ask.from, ask.from);
        };
        let host = host_of(written);
        let addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => SystemNames
                .resolve(host)
                .await
                .with_context(|| format!("failed to resolve {host}; is the name right?"))?,
        };
        admin.cidrs.extend(addresses.into_iter().map(Cidr::exactly));
    }
    Ok(admin)
}

/// The host of `host`, `host:port`, `[v6]:port` or an URL.
fn host_of(written: &str) -> &str {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or(rest);
    if let Some(inner) = rest.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    match rest.rsplit_once(':') {
        Some((host, _)) if !host.contains(':') => host,
        _ => rest,
    }
}

fn credentials(args: &FenceArgs, plugin: &Plugin) -> anyhow::Result<BTreeMap<String, Secret>> {
    let Some(file) = &args.password_file else { return Ok(BTreeMap::new()) };
    let Some(ask) = plugin.manifest().asks.credentials.iter().find(|ask| !ask.optional) else {
        bail!("{} takes no password; leave --password-file out", args.plugin);
    };
    let mut bytes = Vec::new();
    // One byte more than may be, and no more: a device without end says that it is empty.
    std::fs::File::open(file)
        .and_then(|opened| opened.take(PASSWORD_BYTES_MAX + 1).read_to_end(&mut bytes))
        .with_context(|| format!("failed to read --password-file {}", file.display()))?;
    if u64::try_from(bytes.len())? > PASSWORD_BYTES_MAX {
        bail!("--password-file {} has more than {PASSWORD_BYTES_MAX} bytes", file.display());
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    let secret = Secret { identity: args.username.clone(), bytes: zeroize::Zeroizing::new(bytes) };
    Ok([(ask.name.clone(), secret)].into())
}
