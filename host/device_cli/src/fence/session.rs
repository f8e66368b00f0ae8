//! A plugin in its sandbox, and the calls that a person makes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use node_remedy_act::calls::kind_of;
use node_remedy_runtime::clock::Clock;
use node_remedy_sandbox::manifest::Ability;
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    Action, AdminGrant, Authorities, Call, CallReport, Cancel, Cidr, Entropy, ExchangeRecord,
    Executor, Failure, Grants, HostPort, HttpGrant, Names, OpenGate, PlugInfo, PlugState, Plugin,
    Request, Sandbox, Seams, Secret, SystemEntropy, SystemNames, TokioClock, Trust, Verdict,
};
use node_remedy_store::store::Plugins;
use tokio::time::Instant;

use crate::args::{DeviceArgs, TlsArgs};
use crate::fence::outcome::{Outcome, Refusal, Sent};

/// Between reads that wait for a change to show.
const READ_EVERY: Duration = Duration::from_millis(500);
/// A read that is given less time than this says only that there was none.
const READ_MIN: Duration = Duration::from_secs(1);
/// How long the plug is read after a clear refusal.
const REFUSED_READ: Duration = Duration::from_secs(5);
/// A password is a line, not a file system.
pub(super) const PASSWORD_BYTES_MAX: u64 = 4096;
/// The authorities of a system take some 250 kB.
pub(super) const BUNDLE_BYTES_MAX: u64 = 1 << 20;

/// A plugin, and all it needs for calls by hand.
pub(crate) struct DeviceSession {
    plugin: Arc<Plugin>,
    executor: Executor,
    seams: Seams,
    parameters: BTreeMap<String, String>,
    grants: Grants,
    credentials: BTreeMap<String, Secret>,
    plug: String,
    end: Instant,
    calls: u32,
    /// What each call was and came to, where that is to be kept.
    told: Option<Vec<CallRecord>>,
}

/// One call, as it was asked for and as it ended.
pub(crate) struct CallRecord {
    /// When, in milliseconds since 1970.
    pub(crate) started_unix_ms: u64,
    pub(crate) request: Request,
    pub(crate) report: CallReport,
}

/// How a device is reached.
pub(super) struct Reach {
    /// The plugin's parameters, without defaults.
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) credentials: BTreeMap<String, Secret>,
    pub(super) plug: String,
    pub(super) trust: Trust,
    pub(super) timeout: Duration,
}

impl DeviceSession {
    /// Grants a plugin what the person typed.
    pub(crate) async fn set_up(
        executor: Executor,
        plugin: Arc<Plugin>,
        args: &DeviceArgs,
    ) -> anyhow::Result<Self> {
        let reach = Reach {
            parameters: parameters(args)?,
            credentials: credentials(args, &plugin)?,
            plug: args.plug.clone(),
            trust: trust(&args.tls)?,
            timeout: Duration::from_secs(u64::from(args.timeout)),
        };
        Self::open(executor, plugin, reach).await
    }

    /// Grants a plugin just what it takes to reach the device.
    pub(super) async fn open(
        executor: Executor,
        plugin: Arc<Plugin>,
        reach: Reach,
    ) -> anyhow::Result<Self> {
        let given = reach.parameters;
        let name = &plugin.manifest().name;
        let parameters = plugin.manifest().parameters.fill(&given).with_context(|| {
            format!("a parameter of {name} is wrong; set it with --set KEY=VALUE")
        })?;
        let admin = exactly_these(&plugin, &parameters, reach.trust, &SystemNames).await?;
        let grants = Grants::decide(plugin.manifest(), &parameters, &admin, &SystemNames).await?;
        let clock = Clock::system();
        Ok(Self {
            credentials: reach.credentials,
            plugin,
            executor,
            seams: Seams {
                net: Arc::new(Sockets),
                clock: Arc::new(TokioClock::starting_at(clock.now().0)),
                entropy: Arc::new(SystemEntropy),
                gate: Arc::new(OpenGate),
                sessions: Arc::default(),
            },
            parameters: given,
            grants,
            plug: reach.plug,
            end: Instant::now() + reach.timeout,
            calls: 0,
            told: None,
        })
    }

    /// Keeps what each call is and comes to from here on, and draws randomness from there.
    pub(crate) fn tell_all(&mut self, entropy: Arc<dyn Entropy>) {
        self.seams.entropy = entropy;
        self.told = Some(Vec::new());
    }

    /// What was kept.
    pub(crate) fn told(&self) -> &[CallRecord] {
        self.told.as_deref().unwrap_or_default()
    }

    /// The secrets that calls are given.
    pub(crate) fn credentials(&self) -> &BTreeMap<String, Secret> {
        &self.credentials
    }

    /// The parameters that were given, without defaults.
    pub(crate) fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Whoever comes from here on has so long, whatever was used up before.
    pub(super) fn begin_anew(&mut self, time: Duration) {
        self.end = Instant::now() + time;
    }

    /// One read; with `until`, polled in place until the plug reads so.
    pub(super) async fn read(&mut self, until: Option<PlugState>) -> Result<Outcome, Failure> {
        settle(&self.call(Action::Status, until).await)
    }

    /// One call that changes nothing.
    pub(super) async fn once(&mut self, action: Action) -> Result<Outcome, Failure> {
        settle(&self.call(action, None).await)
    }

    /// Whether the device lets itself be spoken to, whatever its plugs are. As agents do, what has several
    /// is asked for all of them where none is named: cluster managers start an agent so.
    pub(super) async fn monitor(&mut self) -> Result<(), Failure> {
        if self.plug.is_empty() && self.plugin.manifest().actions.contains(&Ability::Plugs) {
            return self.plugs().await.map(drop);
        }
        self.once(Action::Monitor).await.map(drop)
    }

    /// The plugs of the device.
    pub(super) async fn plugs(&mut self) -> Result<Vec<PlugInfo>, Failure> {
        let report = self.call(Action::Plugs, None).await;
        settle(&report).map(|_| report.plugs)
    }

    /// Sends a change once, then reads until it shows or time is up. What the device said
    /// to the command itself is kept too: a refusal is the reason why nothing shows.
    pub(super) async fn switch(
        &mut self,
        action: Action,
        wanted: PlugState,
    ) -> Result<Sent, Failure> {
        let report = self.call(action, None).await;
        let refusal = match report.verdict() {
            Verdict::FailedBeforeEffect(failure) => return Err(failure.clone()),
            Verdict::Indeterminate(failure) => {
                let is_definite = is_refused(failure);
                // It has hardly been done: that is looked at, and not for long.
                if is_definite {
                    self.end = self.end.min(Instant::now() + REFUSED_READ);
                }
                Some(Refusal { why: failure.detail.clone(), is_definite })
            }
            Verdict::Outcome(_) => None,
        };
        let mut sent = Sent { action, wanted, refusal, last: None };
        while Instant::now() + READ_MIN < self.end {
            let read = self.read(Some(wanted)).await;
            if read.is_ok() || sent.last.is_none() {
                sent.last = Some(read);
            }
            if sent.is_seen() {
                break;
            }
            tokio::time::sleep(READ_EVERY).await;
        }
        Ok(sent)
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
            system_uuid: None,
        };
        let exchange_record = match self.told {
            Some(_) => ExchangeRecord::Whole,
            None => ExchangeRecord::Off,
        };
        let call = Call {
            request: request.clone(),
            grants: self.grants.clone(),
            credentials: self.credentials.clone(),
            cancel: Cancel::new(),
            exchange_record,
        };
        let started_unix_ms = self.seams.clock.unix_ms();
        let report = self.executor.run(self.plugin.clone(), call, self.seams.clone()).await;
        if let Some(told) = &mut self.told {
            told.push(CallRecord { started_unix_ms, request, report: report.clone() });
        }
        report
    }
}

/// A built-in plugin, and a thread for its calls.
pub(super) fn load(name: &str) -> anyhow::Result<(Executor, Arc<Plugin>)> {
    let sandbox = Sandbox::new().context("failed to start the sandbox")?;
    let executor = Executor::threads(&sandbox, 1).context("failed to start a thread")?;
    Ok((executor, Plugins::new(sandbox).find(name, None)?))
}

/// Whether a device, or the host before it, said no: who may not or cannot, and what a status of HTTP refuses.
fn is_refused(failure: &Failure) -> bool {
    kind_of(failure.kind).is_refusal()
        || matches!(failure.device_code, Some(400..=407 | 409..=499 | 503))
}

fn settle(report: &CallReport) -> Result<Outcome, Failure> {
    match report.verdict() {
        Verdict::Outcome(outcome) => Ok(Outcome {
            state: outcome.state,
            identity: outcome.identity.clone(),
            detail: outcome.detail.clone(),
            confirmed: false,
            next: None,
        }),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            Err(failure.clone())
        }
    }
}

fn parameters(args: &DeviceArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    if let Some(address) = &args.address {
        parameters.insert("address".to_owned(), address.clone());
    }
    for pair in &args.set {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set {pair}: expected KEY=VALUE");
        };
        if parameters.insert(key.to_owned(), value.to_owned()).is_some() {
            bail!("--set {key}: {key} was given already");
        }
    }
    Ok(parameters)
}

/// Whom a device must prove to be.
fn trust(args: &TlsArgs) -> anyhow::Result<Trust> {
    if let Some(file) = &args.tls_ca {
        let pem = read_short("--tls-ca", file, BUNDLE_BYTES_MAX)?;
        let authorities =
            Authorities::from_pem(&pem).with_context(|| format!("--tls-ca {}", file.display()))?;
        return Ok(Trust::Authorities(authorities));
    }
    if let Some(pin) = &args.tls_pin {
        return Ok(Trust::Pins([pin.parse().context("--tls-pin")?].into()));
    }
    Ok(if args.tls_insecure { Trust::Insecure } else { Trust::SystemAuthorities })
}

/// A grant of the very addresses that the person typed, and nothing else.
pub(crate) async fn exactly_these(
    plugin: &Plugin,
    parameters: &BTreeMap<String, String>,
    trust: Trust,
    names: &dyn Names,
) -> anyhow::Result<AdminGrant> {
    let manifest = plugin.manifest();
    let mut admin = AdminGrant {
        ports: vec![1..=u16::MAX],
        protocols: manifest.asks.endpoints.iter().map(|ask| ask.protocol).collect(),
        operations: BTreeSet::new(),
        reveal: manifest.asks.credentials.iter().map(|ask| ask.name.clone()).collect(),
        exposes: manifest.asks.exposes().map(str::to_owned).collect(),
        trust,
        http: HttpGrant {
            methods: manifest.asks.endpoints.iter().flat_map(|ask| ask.methods.clone()).collect(),
            paths: manifest.asks.endpoints.iter().flat_map(|ask| ask.paths.clone()).collect(),
        },
        ..AdminGrant::default()
    };
    for ask in &manifest.asks.credentials {
        admin.operations.extend(ask.operations.iter().copied());
    }
    for ask in &manifest.asks.endpoints {
        let Some(written) = ask.written(parameters) else {
            if ask.optional {
                continue;
            }
            bail!("no {}: pass --{} HOST or --set {}=HOST", ask.from, ask.from, ask.from);
        };
        let host = HostPort::parse(&written, ask.protocol)
            .with_context(|| format!("failed to read {}", ask.from))?
            .host;
        let addresses = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => match names.resolve(&host).await {
                // It is left out, and the call says so that needs it.
                Err(_) if ask.optional => Vec::new(),
                resolved => resolved
                    .with_context(|| format!("failed to resolve {host}; is the name right?"))?,
            },
        };
        admin.cidrs.extend(addresses.into_iter().map(Cidr::exactly));
    }
    Ok(admin)
}

/// The bytes of the file that an option names, if they are no more than that.
pub(super) fn read_short(option: &str, file: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than may be, and no more: a device without end says that it is empty.
    std::fs::File::open(file)
        .and_then(|opened| opened.take(bytes_max + 1).read_to_end(&mut bytes))
        .with_context(|| format!("failed to read {option} {}", file.display()))?;
    if u64::try_from(bytes.len())? > bytes_max {
        bail!("{option} {} has more than {bytes_max} bytes", file.display());
    }
    Ok(bytes)
}

/// What the options give. User name and password are the first credential that is not optional, or
/// the first of all where all are.
pub(crate) fn credentials(
    args: &DeviceArgs,
    plugin: &Plugin,
) -> anyhow::Result<BTreeMap<String, Secret>> {
    let its = &plugin.manifest().name;
    let asks = &plugin.manifest().asks.credentials;
    let first = asks.iter().find(|ask| !ask.optional).or_else(|| asks.first());
    let mut secrets = BTreeMap::new();
    for pair in &args.credential {
        let Some((name, file)) = pair.split_once('=') else {
            bail!("--credential {pair}: expected NAME=FILE");
        };
        if !asks.iter().any(|ask| ask.name == name) {
            let known: Vec<_> = asks.iter().map(|ask| ask.name.as_str()).collect();
            let known = known.join(", ");
            bail!("--credential {name}: {its} takes none of this name, but: {known}");
        }
        let is_first = first.is_some_and(|ask| ask.name == name);
        let identity = args.username.clone().filter(|_| is_first);
        let secret = password(&format!("--credential {name}"), Path::new(file), identity)?;
        if secrets.insert(name.to_owned(), secret).is_some() {
            bail!("--credential {name}: given twice");
        }
    }
    match (first, &args.password_file) {
        (None, None) => {}
        (None, Some(_)) => bail!("{its} takes no password; leave --password-file out"),
        (Some(ask), Some(file)) => {
            let secret = password("--password-file", file, args.username.clone())?;
            if secrets.insert(ask.name.clone(), secret).is_some() {
                bail!("--password-file: {} was given by --credential already", ask.name);
            }
        }
        (Some(ask), None) if secrets.contains_key(&ask.name) => {}
        (Some(ask), None) if !ask.optional => {
            bail!("{its} needs a password: pass --password-file FILE")
        }
        // A user who needs no password is one all the same.
        (Some(ask), None) => {
            if let Some(name) = &args.username {
                let secret = Secret { identity: Some(name.clone()), bytes: Vec::new().into() };
                secrets.insert(ask.name.clone(), secret);
            }
        }
    }
    Ok(secrets)
}

/// The secret in a file; its last newline is not part of it.
fn password(option: &str, file: &Path, identity: Option<String>) -> anyhow::Result<Secret> {
    let mut bytes = read_short(option, file, PASSWORD_BYTES_MAX)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Secret { identity, bytes: zeroize::Zeroizing::new(bytes) })
}
