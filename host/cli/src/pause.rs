//! `pause` and `resume`: nothing is cut while a RemedyPause exists that is for the node.
//!
//! The controller reads pauses live right before it cuts anything; nothing that brings a machine
//! back asks for them.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use node_remedy_api::remedypause::{RemedyPause, RemedyPauseSpec};
use node_remedy_api::selector::Selector;
use node_remedy_api::time::{Moment, Span};
use node_remedy_device_cli::args::{ClusterArgs, length};
use node_remedy_device_cli::output::outln;
use node_remedy_observe::vetoes;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::whoami::user;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};

/// `pause`.
#[derive(Debug, Args)]
pub struct PauseArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Why, for those who wonder later
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Only these nodes, such as type=compute; without it every node
    #[arg(long, value_name = "SELECTOR", value_parser = selector)]
    pub nodes: Option<String>,
    /// End by itself after this time, such as 2h; without it `node-remedy resume` ends it
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    pub lasts: Option<Span>,
}

/// `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The pause, as `node-remedy status` prints it
    #[arg(value_name = "PAUSE", required_unless_present = "all")]
    pub pause: Option<String>,
    /// End every pause
    #[arg(long, conflicts_with = "pause")]
    pub all: bool,
}

fn selector(text: &str) -> Result<String, String> {
    Selector::parse(text).map(|_| text.to_owned()).map_err(|error| format!("expected {error}"))
}

/// Nothing more is cut from now on; what is off is still switched on.
pub async fn pause(args: &PauseArgs) -> anyhow::Result<ExitCode> {
    ensure!(!args.reason.trim().is_empty(), "--reason: expected why, such as \"new switches\"");
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let by = user(&cluster).await?;
    let until = args.lasts.map(|lasts| Moment::from_ms(now_ms().saturating_add(lasts.ms)));
    let spec = RemedyPauseSpec {
        node_selector: args.nodes.clone(),
        reason: args.reason.clone(),
        by,
        until,
    };
    let metadata = ObjectMeta { generate_name: Some("pause-".to_owned()), ..ObjectMeta::default() };
    let made = cluster.create(&RemedyPause { metadata, spec }).await.context(
        "failed to pause; are the CRDs installed, and may you create RemedyPauses? \
         try: kubectl auth can-i create remedypauses",
    )?;
    let name = made.name_any();
    let nodes = args.nodes.as_deref().map_or("every node".to_owned(), |one| format!("nodes {one}"));
    outln!("{name}: {nodes} paused; what is off already is still switched on");
    match until {
        Some(until) => outln!("It ends at {until}, or with: node-remedy resume {name}"),
        None => outln!("To end it: node-remedy resume {name}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends one pause, or all.
pub async fn resume(args: &ResumeArgs) -> anyhow::Result<ExitCode> {
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let pauses = pauses(&cluster).await?;
    let (ended, left): (Vec<_>, Vec<_>) = pauses
        .iter()
        .partition(|one| args.all || args.pause.as_deref() == Some(one.name_any().as_str()));
    if ended.is_empty() {
        let Some(name) = &args.pause else { bail!("nothing is paused") };
        bail!("no pause is named {name}; see: node-remedy status");
    }
    for pause in ended {
        let (name, how) =
            (pause.name_any(), DeleteHow { uid: pause.uid(), ..DeleteHow::default() });
        match cluster.delete::<RemedyPause>(At::cluster(&name), &how).await {
            // Somebody else ended it meanwhile.
            Ok(_) | Err(ClusterError::NotFound(_)) => outln!("{name}: ended"),
            Err(error) => {
                return Err(error).with_context(|| format!("failed to end pause {name}"));
            }
        }
    }
    for pause in left.into_iter().filter(|one| is_in_force(one, Moment::from_ms(now_ms()))) {
        outln!("still paused: {}", line(pause));
    }
    Ok(ExitCode::SUCCESS)
}

/// What `status` says of pauses; nothing where none is in force.
pub async fn told(cluster: &KubeCluster) -> anyhow::Result<String> {
    let now = Moment::from_ms(now_ms());
    let mut out = String::new();
    for pause in pauses(cluster).await?.iter().filter(|one| is_in_force(one, now)) {
        let _ = writeln!(out, "paused: {}", line(pause));
    }
    Ok(out)
}

fn line(pause: &RemedyPause) -> String {
    let spec = &pause.spec;
    let nodes = spec.node_selector.as_deref().unwrap_or("every node");
    let until = spec.until.map_or("resumed".to_owned(), |until| until.to_string());
    format!("{}: {nodes} by {}, until {until}: {}", pause.name_any(), spec.by, spec.reason)
}

fn is_in_force(pause: &RemedyPause, now: Moment) -> bool {
    pause.spec.until.is_none_or(|until| now < until)
}

async fn pauses(cluster: &KubeCluster) -> anyhow::Result<Vec<RemedyPause>> {
    vetoes::pauses(cluster).await.context(
        "failed to list RemedyPauses; are the CRDs installed? try: kubectl apply -f deploy/crds",
    )
}

/// Milliseconds since 1970, by the clock of who types.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_told_until_it_has_ended() {
        let spec = |until| RemedyPauseSpec {
            node_selector: Some("type=compute".to_owned()),
            reason: "new switches".to_owned(),
            by: "alice".to_owned(),
            until,
        };
        let pause = |until| RemedyPause::new("pause-1", spec(until));
        assert_eq!(
            line(&pause(None)),
            "pause-1: type=compute by alice, until resumed: new switches"
        );
        let until = Moment::from_ms(1_000);
        assert!(line(&pause(Some(until))).contains("until 1970-01-01T00:00:01.000Z"));
        for (now, until, stands) in [(0, None, true), (999, Some(until), true)] {
            assert_eq!(is_in_force(&pause(until), Moment::from_ms(now)), stands);
        }
        assert!(!is_in_force(&pause(Some(until)), until));
    }

    #[test]
    fn lengths_and_selectors_are_checked_before_anything_is_asked() {
        assert_eq!(length("2h"), Ok(Span::from_minutes(120)));
        for wrong in ["2", "0s", "1000d", "soon"] {
            assert!(length(wrong).unwrap_err().starts_with("expected"), "{wrong}");
        }
        assert!(selector("type in").unwrap_err().starts_with("expected"));
    }
}
