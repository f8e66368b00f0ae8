//! `plugin run --replay`: each call of a transcript again, in virtual time, on what was answered then. What
//! the component asks, begins and says now is compared with what it did then.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use futures::future::BoxFuture;
use node_remedy_sandbox::net::Replay;
use node_remedy_sandbox::transcript::{Happened, RecordedRequest};
use node_remedy_sandbox::{
    Call, Cancel, Entropy, ExchangeRecord, Grants, Names, NoEntropy, OpenGate, Plugin,
    PluginLimits, Seams, Secret, TokioClock, Trust, transcript as kept,
};
use node_remedy_store::store::Plugins;
use serde_json::{Value, json};

use crate::args::Output;
use crate::fence::session::{credentials, exactly_these};
use crate::output::{complain, outln};
use crate::plugin::file::load;
use crate::plugin::run::args::{RunArgs, check_fits};
use crate::plugin::run::transcript::{End, Transcript};
use crate::plugin::run::{told, transcript};

/// The component does otherwise than it did.
const EXIT_DIFFERS: u8 = 2;
/// What stands for a secret that is not given.
const PLACEHOLDER: &[u8] = b"placeholder";

/// The first thing that a component does otherwise.
struct Difference {
    /// Where: `call 1 (off), ask 3`.
    at: String,
    was: Vec<String>,
    is: Vec<String>,
}

/// Plays a transcript.
pub(super) fn replay(plugins: &Plugins, args: &RunArgs, file: &Path) -> anyhow::Result<ExitCode> {
    let transcript = Transcript::read(file)?;
    let (_, plugin) = load(plugins, &args.file, &PluginLimits::most())?;
    let (is, was) = (&plugin.manifest().name, &transcript.plugin.name);
    ensure!(
        is == was,
        "{}: found plugin {was}, expected {is}, which {} is",
        file.display(),
        args.file.display()
    );
    check_fits(plugin.manifest())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .context("failed to start the runtime")?;
    let played = runtime.block_on(play(&plugin, args, &transcript));
    let difference = played.with_context(|| format!("failed to play {}", file.display()))?;
    let calls: Vec<_> = transcript.calls.iter().map(|call| call.action.as_str()).collect();
    match args.output {
        Output::Json => {
            let difference = difference.as_ref().map(Difference::document);
            outln!(
                "{}",
                json!({"same": difference.is_none(), "calls": calls, "difference": difference})
            );
        }
        Output::Text => match &difference {
            None => outln!("the same as in {}: {}", file.display(), calls.join(", ")),
            Some(difference) => difference.complain(file),
        },
    }
    Ok(ExitCode::from(if difference.is_some() { EXIT_DIFFERS } else { 0 }))
}

async fn play(
    plugin: &Arc<Plugin>,
    args: &RunArgs,
    transcript: &Transcript,
) -> anyhow::Result<Option<Difference>> {
    let manifest = plugin.manifest();
    let parameters = manifest.parameters.fill(&transcript.parameters)?;
    let admin = exactly_these(plugin, &parameters, Trust::Insecure, &Somewhere).await?;
    let grants = Grants::decide(manifest, &parameters, &admin, &Somewhere).await?.for_replay();
    let secrets = secrets(plugin, args, transcript)?;
    for (number, call) in (1..).zip(&transcript.calls) {
        let at = format!("call {number} ({})", call.action);
        let events = call.events().with_context(|| at.clone())?;
        let seams = Seams {
            net: Arc::new(Replay::new(&events, &grants, secrets.clone())),
            clock: Arc::new(TokioClock::starting_at(call.started_unix_ms)),
            entropy: Arc::new(Given(call.seed().with_context(|| at.clone())?)),
            gate: Arc::new(OpenGate),
            sessions: Arc::default(),
        };
        let again = Call {
            request: call.request(transcript).with_context(|| at.clone())?,
            grants: grants.clone(),
            credentials: secrets.clone(),
            cancel: Cancel::new(),
            exchange_record: ExchangeRecord::Whole,
        };
        let report = plugin.call(again, &seams).await;
        let difference = asks(&at, &events, &report.transcript.events)
            .or_else(|| ends(&at, &call.ended, &End::of(&report)));
        if difference.is_some() {
            return Ok(difference);
        }
    }
    Ok(None)
}

/// What is given, and placeholders for the rest of what was there then, with the user names of then.
fn secrets(
    plugin: &Plugin,
    args: &RunArgs,
    transcript: &Transcript,
) -> anyhow::Result<BTreeMap<String, Secret>> {
    let given = args.device.password_file.is_some() || !args.device.credential.is_empty();
    let mut secrets = if given { credentials(&args.device, plugin)? } else { BTreeMap::new() };
    for (name, identity) in &transcript.credentials {
        let secret = secrets
            .entry(name.clone())
            .or_insert_with(|| Secret { identity: None, bytes: PLACEHOLDER.to_vec().into() });
        if secret.identity.is_none() {
            secret.identity.clone_from(identity);
        }
    }
    Ok(secrets)
}

/// The first thing that is asked otherwise.
fn asks(at: &str, then: &[kept::Event], now: &[kept::Event]) -> Option<Difference> {
    let asked = |events: &[kept::Event]| -> Vec<_> {
        let asked = events.iter().filter(|event| event.what.is_asked());
        asked.map(|event| (event.endpoint.clone(), event.what.clone(), whole(event))).collect()
    };
    let (then, now) = (asked(then), asked(now));
    let length = then.len().max(now.len());
    let mut places = (0..length).map(|place| (place, then.get(place), now.get(place)));
    let (place, was, is) = places.find(|(_, was, is)| was != is)?;
    let lines = |ask: Option<&(String, Happened, Vec<String>)>| match ask {
        Some((_, _, lines)) => lines.clone(),
        None => vec!["(nothing more)".to_owned()],
    };
    Some(Difference { at: format!("{at}, ask {}", place + 1), was: lines(was), is: lines(is) })
}

fn ends(at: &str, then: &End, now: &End) -> Option<Difference> {
    let (was, is) = (vec![then.shown()], vec![now.shown()]);
    (!then.is_same(now)).then(|| Difference { at: format!("{at}, its end"), was, is })
}

/// What was asked, uncut, in lines.
fn whole(event: &kept::Event) -> Vec<String> {
    let endpoint = &event.endpoint;
    match &event.what {
        Happened::Asked(RecordedRequest { method, path, headers, body }) => {
            let mut lines = vec![format!("{endpoint} <- {method} {path}")];
            lines.extend(headers.iter().map(|(name, value)| format!("  {name}: {value}")));
            let body = String::from_utf8_lossy(body);
            lines.extend(body.lines().map(|line| format!("  {line}")));
            lines
        }
        Happened::Sent(parts) => {
            let parts = parts.iter().map(transcript::shown);
            vec![format!("{endpoint} <- {}", parts.collect::<Vec<_>>().join(" "))]
        }
        Happened::Received(_) | Happened::Answered(_) | Happened::Failed(..) => {
            vec![told::shown(event)]
        }
    }
}

impl Difference {
    fn complain(&self, file: &Path) {
        let Self { at, was, is } = self;
        complain(format_args!(
            "{}: {at}: the component does otherwise than was recorded (-)",
            file.display()
        ));
        for line in was {
            complain(format_args!("- {line}"));
        }
        for line in is {
            complain(format_args!("+ {line}"));
        }
    }

    fn document(&self) -> Value {
        json!({"at": self.at, "recorded": self.was, "now": self.is})
    }
}

/// Every name leads to the same address, to which nobody goes.
struct Somewhere;

impl Names for Somewhere {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::from([192, 0, 2, 1])]) })
    }
}

/// The randomness of then.
struct Given([u8; 32]);

impl Entropy for Given {
    fn seed(&self) -> Result<[u8; 32], NoEntropy> {
        Ok(self.0)
    }
}
