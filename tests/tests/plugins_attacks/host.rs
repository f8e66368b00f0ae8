//! The sandbox under attack, set up as production sets it up, and how an attack is made on it: beside a
//! call for another node, watched for its time and its memory, followed by its twin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    Action, AdminGrant, CallReport, Ended, Executor, LoadError, OpenGate, PlugState, Plugin,
    PluginLimits, Sandbox, Seams, SystemEntropy, SystemNames, TokioClock, Verdict,
};
use node_remedy_swarm::corpus::asked::{self, AttackCall};
use node_remedy_swarm::corpus::attacker_file;
use node_remedy_tests::Controller;
use node_remedy_tests::attacks::Row;
use node_remedy_tests::process::repository;
use node_remedy_tests::time::Clock;

use super::canary;
use super::victims::{Server, plain};

/// Past this an attack hangs the host; the longest has a compiler at its limit of wall time.
const HANGS: Duration = Duration::from_mins(1);
/// What an attack may make the host grow by: one guest's memory, what one answer may hold in each of the
/// hands it goes through, and what a component is while it is loaded.
const GROWTH_KIB_MAX: u64 = 160 << 10;
/// Whom the neighbour's plugin switches.
const RELAY: &str = "10.9.7.7:80";

/// The host, with the attacker loaded and a neighbour who is not to notice.
pub(crate) struct Host {
    pub(crate) attacker: Arc<Plugin>,
    sandbox: Sandbox,
    threads: Arc<Threads>,
    neighbour: Arc<Neighbour>,
}

/// The plugins' threads and the world that they see.
struct Threads {
    executor: Executor,
    seams: Seams,
}

/// Another plugin, which reads another node's relay.
struct Neighbour {
    attempt: Try,
    threads: Arc<Threads>,
    relay: Server,
}

/// One call of a plugin as a test wants it.
#[derive(Clone)]
pub(crate) struct Try {
    /// None: the attacker.
    plugin: Option<Arc<Plugin>>,
    asked: AttackCall,
}

/// An attack's row, as far as it is known before.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) number: u8,
    pub(crate) part: &'a str,
    pub(crate) attack: &'a str,
    pub(crate) how: &'a str,
}

/// An attack of a number that is one attack.
pub(crate) fn case<'a>(number: u8, attack: &'a str, how: &'a str) -> Case<'a> {
    Case { number, part: "", attack, how }
}

/// A call of the attacker, under a grant as wide as one can be written.
pub(crate) fn attempt(deed: &str) -> Try {
    let asked = AttackCall {
        deed: deed.to_owned(),
        action: Action::Status,
        parameters: BTreeMap::new(),
        admin: wide(),
        deadline: Duration::from_secs(30),
    };
    Try { plugin: None, asked }
}

impl Try {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.asked.parameters.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn number(self, number: usize) -> Self {
        self.with("number", &number.to_string())
    }

    pub(crate) fn under(mut self, admin: AdminGrant) -> Self {
        self.asked.admin = admin;
        self
    }

    pub(crate) fn asked(mut self, action: Action) -> Self {
        self.asked.action = action;
        self
    }

    pub(crate) fn of(mut self, plugin: &Arc<Plugin>) -> Self {
        self.plugin = Some(Arc::clone(plugin));
        self
    }

    pub(crate) fn within(mut self, deadline: Duration) -> Self {
        self.asked.deadline = deadline;
        self
    }
}

/// Everything that a range can open, and every operation; the API server and this pod are guarded, as the
/// controller has it.
pub(crate) fn wide() -> AdminGrant {
    guarded(asked::wide())
}

/// What an admin grants for a fleet's devices.
pub(crate) fn fleet() -> AdminGrant {
    guarded(asked::fleet())
}

fn guarded(admin: AdminGrant) -> AdminGrant {
    let guarded = ["10.96.0.1", "10.244.0.5"];
    let guarded = guarded.iter().filter_map(|one| one.parse().ok()).collect();
    AdminGrant { guarded, ..admin }
}

impl Host {
    pub(crate) async fn start() -> Result<Self> {
        let sandbox = Sandbox::new()?;
        let compiler = Controller::binary();
        let wasm = std::fs::read(attacker_file())?;
        let attacker = sandbox.load_external(&compiler, &wasm)?;
        let file = repository().join("target/outside/tasmota.wasm");
        let wasm = std::fs::read(&file)
            .with_context(|| format!("no {}: cargo xtask plugins", file.display()))?;
        let neighbour = sandbox.load_external(&compiler, &wasm)?;
        let seams = Seams {
            net: Arc::new(Sockets),
            clock: Arc::new(TokioClock::starting_at(1_790_000_000_000)),
            entropy: Arc::new(SystemEntropy),
            gate: Arc::new(OpenGate),
            sessions: Arc::default(),
        };
        // As many threads as production has: an attack and its neighbour share them.
        let threads = Arc::new(Threads { executor: Executor::threads(&sandbox, 2)?, seams });
        let neighbour = Neighbour {
            attempt: attempt("1").of(&neighbour).with("address", RELAY),
            threads: Arc::clone(&threads),
            relay: Server::start(RELAY, |_| plain(200, "{\"POWER1\":\"ON\"}")).await?,
        };
        Ok(Self { attacker, sandbox, threads, neighbour: Arc::new(neighbour) })
    }

    /// Loads bytes as a component from outside is loaded.
    pub(crate) fn load(&self, wasm: &[u8]) -> Result<Arc<Plugin>, LoadError> {
        self.load_within(wasm, &PluginLimits::default())
    }

    /// The same within limits of its own.
    pub(crate) fn load_within(
        &self,
        wasm: &[u8],
        limits: &PluginLimits,
    ) -> Result<Arc<Plugin>, LoadError> {
        let compiler = Controller::binary();
        tokio::task::block_in_place(|| self.sandbox.load_external_within(&compiler, wasm, limits))
    }

    /// The sentence with which bytes are refused.
    pub(crate) fn refused(&self, wasm: &[u8]) -> Result<String> {
        match self.load(wasm) {
            Ok(plugin) => anyhow::bail!("{} was loaded", plugin.digest()),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// Makes a call as production makes it.
    pub(crate) async fn call(&self, attempt: &Try) -> Result<CallReport> {
        let plugin = attempt.plugin.as_ref().unwrap_or(&self.attacker);
        self.threads.call(Arc::clone(plugin), attempt.asked.clone()).await
    }

    /// A call that must end so, with this in what it came to; gives that.
    pub(crate) async fn must(
        &self,
        attempt: &Try,
        ended: Ended,
        says: &str,
    ) -> Result<(CallReport, String)> {
        let report = self.call(attempt).await?;
        let said = told(&report);
        let is_so = report.ended == ended && said.contains(says);
        ensure!(is_so, "{}: expected {ended:?} with {says:?}, it {said}", attempt.asked.deed);
        Ok((report, said))
    }

    /// The same where only the words matter.
    pub(crate) async fn says(&self, attempt: &Try, ended: Ended, says: &str) -> Result<String> {
        Ok(self.must(attempt, ended, says).await?.1)
    }

    /// The attacker's own device, asked honestly.
    pub(crate) async fn honest(&self, attempt: &Try) -> Result<String> {
        self.says(attempt, Ended::Returned, "outcome").await
    }

    /// Makes an attack, then its twin, and leaves a row.
    pub(crate) async fn attack(
        &self,
        case: Case<'_>,
        attack: impl AsyncFnOnce() -> Result<String>,
        twin: impl AsyncFnOnce() -> Result<String>,
    ) -> Result<()> {
        let Case { number, part, attack: name, how } = case;
        let made = async {
            let before = memory_kib("VmRSS")?;
            forget_peak()?;
            let clock = Clock::start();
            let attack = tokio::time::timeout(HANGS, attack());
            // The neighbour's task begins first: it is under way when the attack comes.
            let undisturbed = tokio::spawn(Arc::clone(&self.neighbour).ask());
            let (verdict, undisturbed) = tokio::join!(attack, undisturbed);
            let verdict = verdict.context("it hangs the host")??;
            undisturbed?.context("the neighbour was disturbed")?;
            let seconds = Duration::from_millis(clock.now_ms()).as_secs_f64();
            let grew_kib = memory_kib("VmHWM")?.saturating_sub(before);
            ensure!(grew_kib <= GROWTH_KIB_MAX, "the host grew by {grew_kib} KiB");
            let well = Arc::clone(&self.neighbour).ask().await;
            well.context("the host is not well afterwards")?;
            let twin = twin().await.context("its twin")?;
            canary::note(&verdict);
            let (verdict, twin) = (short(&verdict), short(&twin));
            let row = Row { number, part, attack: name, how, verdict, twin, seconds, grew_kib };
            row.leave()
        };
        made.await.with_context(|| format!("attack {number}{part}, {name}"))
    }
}

impl Threads {
    async fn call(&self, plugin: Arc<Plugin>, asked: AttackCall) -> Result<CallReport> {
        let call = asked.call(&plugin, &SystemNames).await?;
        let report = self.executor.run(plugin, call, self.seams.clone()).await;
        canary::note(&format!("{report:?}"));
        Ok(report)
    }
}

impl Neighbour {
    /// Reads the relay, whatever goes on beside it.
    async fn ask(self: Arc<Self>) -> Result<()> {
        let before = self.relay.connections();
        let plugin = self.attempt.plugin.clone().context("no plugin")?;
        let report = self.threads.call(plugin, self.attempt.asked.clone()).await?;
        let is_read = matches!(&report.result, Ok(outcome) if outcome.state == PlugState::On);
        ensure!(is_read && self.relay.connections() > before, "it {}", told(&report));
        Ok(())
    }
}

/// What may be concluded of a call, and in what words.
pub(crate) fn told(report: &CallReport) -> String {
    let ended = match report.ended {
        Ended::NotStarted => "was not started",
        Ended::Returned => "returned",
        Ended::Trapped => "trapped",
        Ended::Cut => "was cut",
        Ended::Deadline => "was cut at its deadline",
        Ended::Cancelled => "was cancelled",
    };
    match report.verdict() {
        Verdict::Outcome(outcome) => {
            format!("outcome {}: {}", outcome.state.as_str(), outcome.detail)
        }
        Verdict::FailedBeforeEffect(failure) => {
            format!("{ended}, nothing done: {}", failure.detail)
        }
        Verdict::Indeterminate(failure) => format!("{ended}, indeterminate: {}", failure.detail),
    }
}

/// Of a grant's refusal the part that says why.
fn short(said: &str) -> &str {
    let said = said.split("; add ").next().unwrap_or(said);
    let is_refusal = said.starts_with("returned, nothing done: refused: denied: ");
    let found = said.rfind("found ").filter(|_| is_refusal);
    found.and_then(|at| said.get(at..)).unwrap_or(said)
}

/// A line of what the kernel says of this process.
fn memory_kib(line: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let found = status.lines().find_map(|each| each.strip_prefix(line)?.strip_prefix(':'));
    let number = found.and_then(|found| found.trim().strip_suffix(" kB"));
    number.with_context(|| format!("the kernel tells no {line}"))?.parse().context("no number")
}

/// Has the kernel count the peak of memory from here on (proc(5), `clear_refs`).
fn forget_peak() -> Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("failed to reset the peak of memory")
}
