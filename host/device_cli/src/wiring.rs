//! `verify-wiring`: proves which outlet or port carries a node, one at a time, with consent (rule P8).
//!
//! A device that knows no machine is believed as the configuration says until somebody tried. A trial
//! switches the plug off, looks who falls silent, and switches it on again. What it proves is kept for
//! this Node UID and this plug. It is a person's command: the controller never tries a plug.

pub mod observe;
pub mod plugs;
pub mod preflight;
pub mod record;
pub mod setup;
pub mod trial;

use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use node_remedy_api::plan::NodePlan;
use node_remedy_api::time::{Moment, Span};
use node_remedy_config::wiring::Tried;
use node_remedy_decide as decide;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::cluster::kube::KubeCluster;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::args::{ClusterArgs, Output};
use crate::output::{complain, outln};
use crate::wiring::plugs::{Cuts, Plug};
use crate::wiring::setup::{Bench, Ways};
use crate::wiring::trial::{Ended, Finding, Trial, words};

/// What a plug carries was found out, and it is not this node.
const EXIT_WRONG: u8 = 2;
/// Beside the boot of the machine, a trial takes no longer than this: reads, looks and switching on.
const TRIAL_MAX: Span = Span::from_minutes(20);

/// `verify-wiring`.
#[derive(Debug, Args)]
pub struct WiringArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The node's name
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Only the plug of this method of the node's plan
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Confirm without being asked: the node's name again
    #[arg(long, value_name = "NODE")]
    pub yes: Option<String>,
    /// Go on although pods run on the node that are lost with it
    #[arg(long)]
    pub allow_pods: bool,
    /// How long the machine may take until its node renews its Lease again
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = crate::args::length)]
    pub boot_timeout: Span,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// What came of one plug.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlugFinding {
    method: String,
    device: String,
    plug: String,
    /// `verified`, `feeds-others`, `feeds-nothing`, `carries-nothing` or `not-proven`.
    finding: &'static str,
    /// Nodes that fell silent and should not have.
    others: Vec<String>,
    detail: String,
}

/// Tries the plugs of one node.
pub async fn verify(args: &WiringArgs) -> anyhow::Result<ExitCode> {
    if let Some(yes) = &args.yes {
        ensure!(*yes == args.node, "--yes {yes}: expected the name of the node, {}", args.node);
    }
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let by = node_remedy_runtime::cluster::whoami::user(&cluster).await?;
    let ways = Ways::of_system(&cluster).await?;
    let mut watching = JoinSet::new();
    let namespace = &args.cluster.namespace;
    let mut bench = Bench::set_up(cluster, namespace, ways, stop()?, &mut watching).await?;
    let plan = bench.plan(&bench.node(&args.node)?)?;
    let plugs =
        crate::wiring::plugs::to_try(&plan, args.method.as_deref()).map_err(anyhow::Error::msg)?;
    let (mut told, mut code) = (Vec::new(), 0);
    for plug in &plugs {
        let node = bench.node(&args.node)?;
        refuse(args, &bench, &plan).await?;
        if !consented(args, &bench, &node, plug).await? {
            bail!("not confirmed; nothing was switched");
        }
        let ended = try_one(args, &mut bench, &node, &plan, plug, &by).await?;
        let left_off = ended.left_off.join("; ");
        told.push(tell(plug, &node.name, &ended.finding));
        code = code_of(&ended.finding);
        if !ended.left_off.is_empty() {
            code = 1;
            complain(format_args!(
                "NOT SWITCHED ON AGAIN: {left_off}\nSwitch it on at the device itself, or with: \
                 node-remedy fence PLUGIN on --address HOST --plug PLUG"
            ));
        }
        // Nobody goes on switching by a table that is wrong, or where nothing can be told.
        if code != 0 {
            break;
        }
    }
    print(args, &told, code)?;
    Ok(ExitCode::from(code))
}

/// One trial, while nothing else is cut; what it proved is kept.
async fn try_one<C: Cluster>(
    args: &WiringArgs,
    bench: &mut Bench<C>,
    node: &PrunedNode,
    plan: &NodePlan,
    plug: &Plug,
    by: &str,
) -> anyhow::Result<Ended> {
    let (cluster, namespace) = (bench.cluster.clone(), &args.cluster.namespace);
    let length = TRIAL_MAX.ms.saturating_add(args.boot_timeout.ms);
    let until = Moment::from_ms(bench.now().0.saturating_add(length));
    let reason = format!("wiring of {}: {} is off for a trial", node.name, words(&plug.method));
    let reason: String = reason.chars().take(256).collect();
    let held = crate::wiring::record::pause(&cluster, reason, by, until).await?;
    let ended = async {
        crate::wiring::record::withdraw(&cluster, namespace, &node.name, &plug.method).await?;
        let boots_within = decide::Span(args.boot_timeout.ms);
        let allow_pods = args.allow_pods;
        let mut trial = Trial { bench: &mut *bench, node, plan, plug, allow_pods, boots_within };
        let ended = trial.run().await;
        if ended.finding == Finding::Verified && ended.left_off.is_empty() {
            let at = Moment::from_ms(bench.now().0);
            let tried = Tried::now(&node.fenced(), &plug.method, &plug.others, at, by);
            crate::wiring::record::record(&cluster, namespace, &node.name, &tried).await?;
        }
        anyhow::Ok(ended)
    }
    .await;
    // A machine that is dark by us is not to be fenced for it.
    if ended.as_ref().is_ok_and(|ended| !ended.left_off.is_empty()) {
        match crate::wiring::record::keep_on(&cluster, &held).await {
            Ok(()) => complain(format_args!(
                "nothing is fenced until: node-remedy resume {}",
                crate::wiring::record::PAUSE
            )),
            Err(error) => complain(format_args!(
                "nothing is fenced for {} s from the trial's begin on, and no longer, as the pause cannot be \
                 changed: {error}",
                length / 1_000
            )),
        }
        return ended;
    }
    if let Err(error) = bench.locks.release(&node.name).await {
        complain(format_args!("failed to give the lock of {} up; it expires: {error}", node.name));
    }
    if let Err(error) = crate::wiring::record::resume(&cluster, &held).await {
        complain(format_args!(
            "{error}; end it: node-remedy resume {}",
            crate::wiring::record::PAUSE
        ));
    }
    ended
}

/// Ends the command where the node is not safe to lose.
async fn refuse<C: Cluster>(
    args: &WiringArgs,
    bench: &Bench<C>,
    plan: &NodePlan,
) -> anyhow::Result<()> {
    let looked = bench.look(&args.node, plan, args.allow_pods).await?;
    let against = crate::wiring::preflight::against(&looked);
    if !against.is_empty() {
        bail!("nothing was switched off:\n  {}", against.join("\n  "));
    }
    Ok(())
}

/// Says what will happen, and hears whether it may.
async fn consented<C: Cluster>(
    args: &WiringArgs,
    bench: &Bench<C>,
    node: &PrunedNode,
    plug: &Plug,
) -> anyhow::Result<bool> {
    let what = match plug.cuts {
        Cuts::Power => "loses its power and boots",
        Cuts::Network => "loses its network",
    };
    let others: Vec<String> = plug.others.iter().map(words).collect();
    let before = match others.as_slice() {
        [] => String::new(),
        others => {
            format!("First {} will be switched off, so that it alone is left. ", others.join(", "))
        }
    };
    complain(format_args!(
        "{} will be switched off, and on again. {before}The machine of {} (UUID {}) {what}; if the \
         wiring is wrong, another machine does. Nothing else is fenced meanwhile.",
        words(&plug.method),
        node.name,
        node.system_uuid,
    ));
    if args.yes.is_some() {
        return Ok(true);
    }
    ensure!(
        std::io::stdin().is_terminal(),
        "to confirm without a terminal, add --yes {}",
        args.node
    );
    complain(format_args!("Type the node's name to confirm:"));
    let (typed, answer) = oneshot::channel();
    // Reading cannot be interrupted; the thread ends with the process.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _ = typed.send(read.map(|_| line));
    });
    let mut stop = bench.stop.clone();
    let line = tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => return Ok(false),
        line = answer => line.context("nobody answers")?.context("failed to read the answer")?,
    };
    Ok(line.trim() == node.name)
}

/// Told once somebody wants this to end: SIGINT, SIGTERM, or the terminal is gone.
fn stop() -> anyhow::Result<watch::Receiver<bool>> {
    let (stop, stopped) = watch::channel(false);
    let listen = |kind| signal(kind).context("failed to wait for signals");
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    tokio::task::spawn_local(async move {
        loop {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
            }
            complain(format_args!("ending; what is off is switched on first"));
            if stop.send(true).is_err() {
                return;
            }
        }
    });
    Ok(stopped)
}

fn code_of(finding: &Finding) -> u8 {
    match finding {
        Finding::Verified => 0,
        Finding::FeedsOthers { .. } | Finding::FeedsNothing | Finding::CarriesNothing => EXIT_WRONG,
        Finding::NotProven(_) => 1,
    }
}

fn tell(plug: &Plug, node: &str, finding: &Finding) -> PlugFinding {
    let it = words(&plug.method);
    let (word, others, detail) = match finding {
        Finding::Verified => {
            ("verified", Vec::new(), format!("{it} carries {node}, and no other node"))
        }
        Finding::FeedsOthers { plug, nodes } => {
            let named = nodes.join(", ");
            let detail = format!(
                "wrong plug: {plug} feeds {named}, which fell silent by it; correct the cable or the \
                 configuration"
            );
            ("feeds-others", nodes.clone(), detail)
        }
        Finding::FeedsNothing => {
            let detail = format!(
                "wrong plug: {it} was off and {node} lived on: it does not feed it, or not alone"
            );
            ("feeds-nothing", Vec::new(), detail)
        }
        Finding::CarriesNothing => {
            let detail = format!(
                "{node} fell silent while {it} was still on: it does not carry {node} alone; look at \
                 the cable and the power supply"
            );
            ("carries-nothing", Vec::new(), detail)
        }
        Finding::NotProven(why) => ("not-proven", Vec::new(), format!("{it}: {why}")),
    };
    let method = &plug.method;
    PlugFinding {
        method: method.name.clone(),
        device: method.device.clone(),
        plug: method.plug.clone(),
        finding: word,
        others,
        detail,
    }
}

fn print(args: &WiringArgs, told: &[PlugFinding], code: u8) -> anyhow::Result<()> {
    match args.output {
        Output::Json => {
            let all = serde_json::json!({"node": args.node, "plugs": told, "exitCode": code});
            outln!("{}", serde_json::to_string_pretty(&all)?);
        }
        Output::Text => {
            for one in told {
                outln!("{}: {}", one.finding, one.detail);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
