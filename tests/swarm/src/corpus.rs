//! The sandbox's own promises, held against a plugin that breaks them where it can: whom it may reach and what
//! it may have done with credentials (S14), what nobody may read (S15), and that it sends nothing while the
//! gate is shut (S4).
//!
//! One attack after another, each by itself, in a network that notes whom it reached. The whole corpus on real
//! parts is `tests/tests/plugins_attacks`; here is what a seeded bug must show in.

pub mod asked;
pub mod canary;

mod attempts;
mod network;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::BoxFuture;
use node_remedy_sandbox::net::MemoryNet;
use node_remedy_sandbox::{
    CallReport, Names, NotLeader, OpenGate, PlugState, Plugin, Sandbox, Seams, SeededEntropy,
    SendGate, TokioClock, Verdict,
};

use self::asked::AttackCall;
use self::attempts::{Attempt, all};
use self::network::Network;
use crate::checks::Violation;

const ATTACKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guests/attacker");
const GUESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests");

/// The attacker's component, once it is built.
pub fn attacker_file() -> PathBuf {
    PathBuf::from(GUESTS).join("wasm32-wasip2/release/attacker.wasm")
}

/// Builds the attacker by the cargo that runs this.
pub fn build_attacker() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2"])
        .current_dir(ATTACKER)
        .env("CARGO_TARGET_DIR", GUESTS)
        .env_remove("RUSTFLAGS")
        .status()
        .context("failed to start cargo for the attacker")?;
    ensure!(built.success(), "failed to build the attacker: {built}");
    Ok(attacker_file())
}

/// Makes every attack and its honest twin; gives the promises that were broken. A twin that fails is an error.
pub fn broken() -> anyhow::Result<Vec<Violation>> {
    let file = build_attacker()?;
    let wasm =
        std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let attacker = Sandbox::new()?.load(&wasm)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("failed to start the corpus's runtime")?;
    let mut broken = Vec::new();
    for attempt in all() {
        let made = runtime.block_on(make(&attacker, &attempt));
        broken.extend(made.with_context(|| format!("attempt {:?}", attempt.name))?);
    }
    Ok(broken)
}

async fn make(attacker: &Arc<Plugin>, attempt: &Attempt) -> anyhow::Result<Vec<Violation>> {
    let network = Arc::new(Network::default());
    let report = call(attacker, attempt, &network).await?;
    let said = match report.verdict() {
        Verdict::Outcome(outcome) => outcome.detail.clone(),
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            failure.detail.clone()
        }
    };
    let of = |invariant, why: String| Violation {
        invariant,
        at: None,
        sentence: format!("{}: {why}", attempt.name),
    };
    let sent = sent_while_shut(attempt, &network).map(|why| of("S4", why));
    let reached = reached_too_far(attempt, &network, &report).map(|why| of("S14", why));
    let seen = seen_a_secret(&report, &said).map(|why| of("S15", why));
    let betrayed = attempt.betrays.filter(|(_, by_saying)| said.contains(by_saying));
    let betrayed = betrayed.map(|(invariant, _)| of(invariant, format!("it says {said:?}")));
    let broken: Vec<_> = [sent, reached, seen, betrayed].into_iter().flatten().collect();
    if let Some(honestly) = attempt.says.filter(|_| broken.is_empty()) {
        ensure!(said.contains(honestly), "expected {honestly:?}, found {said:?}");
    }
    Ok(broken)
}

/// S4.
fn sent_while_shut(attempt: &Attempt, network: &Network) -> Option<String> {
    let reached = network.reached();
    let first = reached.first().filter(|_| attempt.is_shut)?;
    Some(format!("it reached {first} though nothing may be sent"))
}

/// S14.
fn reached_too_far(attempt: &Attempt, network: &Network, report: &CallReport) -> Option<String> {
    let reached = network.reached();
    if let Some(far) = reached.iter().find(|one| !attempt.may_reach.contains(&one.as_str())) {
        return Some(format!("it reached {far}"));
    }
    if reached.len() > attempt.may_send {
        return Some(format!("{} messages of it arrived", reached.len()));
    }
    let is_off = matches!(report.verdict(), Verdict::Outcome(one) if one.state == PlugState::Off);
    (is_off && reached.is_empty()).then(|| "its off is believed though it asked nobody".to_owned())
}

/// S15.
fn seen_a_secret(report: &CallReport, said: &str) -> Option<String> {
    let evidence = report.exchanges.iter().flat_map(|exchange| {
        [Some(&exchange.bytes), exchange.plaintext.as_ref()].into_iter().flatten()
    });
    let mut kept = evidence.chain(&report.checkpoint);
    let sung = kept
        .find_map(|bytes| canary::sings_not_in(bytes).err())
        .or_else(|| canary::sings_not(&format!("{report:?}")).err());
    if let Some(sung) = sung {
        return Some(sung.to_string());
    }
    let has_copies = said.contains(" copies in ") && !said.contains(" 0 copies in ");
    has_copies.then(|| format!("a secret is in the plugin's memory: {said}"))
}

/// The gate of a process that does not lead.
struct ShutGate;

impl SendGate for ShutGate {
    fn check(&self) -> Result<(), NotLeader> {
        Err(NotLeader)
    }

    fn begin(&self, _: &str) -> Result<(), String> {
        Err(NotLeader.to_string())
    }
}

/// Answers every name with an address that [`asked::fleet`] grants, and one that it does not.
struct TwoAddresses;

impl Names for TwoAddresses {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let addresses = [[10, 9, 0, 7], [10, 10, 0, 7]].map(IpAddr::from);
        Box::pin(async move { Ok(addresses.to_vec()) })
    }
}

async fn call(
    attacker: &Arc<Plugin>,
    attempt: &Attempt,
    network: &Arc<Network>,
) -> anyhow::Result<CallReport> {
    let parameters = attempt.parameters.iter();
    let asked = AttackCall {
        deed: attempt.deed.to_owned(),
        action: attempt.action,
        parameters: parameters.map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        admin: attempt.admin.clone(),
        deadline: Duration::from_secs(30),
    };
    let call = asked.call(attacker, &TwoAddresses).await?;
    let gate: Arc<dyn SendGate> =
        if attempt.is_shut { Arc::new(ShutGate) } else { Arc::new(OpenGate) };
    let seams = Seams {
        net: Arc::new(MemoryNet::new(Arc::clone(network) as _)),
        clock: Arc::new(TokioClock::starting_at(1_790_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        gate,
        sessions: Arc::default(),
    };
    Ok(attacker.call(call, &seams).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // promise: S14, S15
    fn the_sandbox_breaks_none_of_its_promises() {
        assert_eq!(broken().unwrap(), []);
    }
}
