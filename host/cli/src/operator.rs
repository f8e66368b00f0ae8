//! What people say: `retry`, `abort`, `approve`, `ack`, `confirm-off`.
//!
//! A word to a running incident is an annotation on its NodeFence; the leader reads it,
//! decides, and takes the annotation away. Whoever may patch NodeFences may say it; with the
//! policies of `node-remedy admission` each word needs a right of its own.

use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use json_patch::Patch;
use kube::ResourceExt as _;
use node_remedy_api::annotations::{ABORT, ACK, APPROVE, CONFIRM_OFF, RETRY};
use node_remedy_api::nodefence::{NodeFence, ParkReason, Phase, State};
use node_remedy_device_cli::args::ClusterArgs;
use node_remedy_device_cli::output::outln;
use node_remedy_observe::device_quarantine;
use node_remedy_runtime::cluster::annotate::annotation;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster as _, ClusterError, Scope};

use crate::args::{AbortArgs, AckArgs, ConfirmArgs, PersonArgs};

/// A word is said again so often when the record is written in between.
const SAY_TRIES: usize = 10;
pub(super) async fn connect(args: &ClusterArgs) -> anyhow::Result<KubeCluster> {
    KubeCluster::connect(args.kubeconfig.as_deref()).await
}

pub(super) async fn incidents(cluster: &KubeCluster) -> anyhow::Result<Vec<NodeFence>> {
    let mut all = Vec::new();
    // Of the others `unread` tells.
    let keep = |read: Read<NodeFence>| all.extend(read);
    cluster.list_each(&Scope::all(), keep).await.map_err(not_listed)?;
    Ok(all)
}

/// A whole kind that does not exist was never installed; other failures have other reasons.
fn not_listed(error: ClusterError) -> anyhow::Error {
    let is_missing = matches!(error, ClusterError::NotFound(_));
    let hint = "; are the CRDs installed? try: kubectl apply -f deploy/crds";
    let hint = if is_missing { hint } else { "" };
    anyhow::Error::new(error).context(format!("failed to list NodeFences{hint}"))
}

/// The word that an enum is written as in objects.
pub(super) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => "?".to_owned(),
    }
}

/// The one word of a parking.
pub(super) fn reason(why: &ParkReason) -> String {
    let value = serde_json::to_value(why).unwrap_or_default();
    let word = value.get("reason").and_then(serde_json::Value::as_str);
    word.unwrap_or("Parked").to_owned()
}

/// `retry`: lets a parked incident try again.
pub async fn retry(args: &PersonArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.cluster).await?;
    let incident = waits(&cluster, &args.nodefence, &[Phase::AwaitingDevice]).await?;
    let uid = incident.uid().unwrap_or_default();
    say(&cluster, &args.nodefence, RETRY, &uid).await?;
    outln!(
        "{} is asked to try again; watch it with: node-remedy explain {}",
        args.nodefence,
        incident.spec.node.name
    );
    Ok(ExitCode::SUCCESS)
}

/// `abort`: stops an incident; after an off the machine is powered on first.
pub async fn abort(args: &AbortArgs) -> anyhow::Result<ExitCode> {
    let name = &args.person.nodefence;
    let cluster = connect(&args.person.cluster).await?;
    let incident = open(&cluster, name).await?;
    let uid = incident.uid().unwrap_or_default();
    let word = if args.leave_off { format!("{uid}/leave-off") } else { uid };
    say(&cluster, name, ABORT, &word).await?;
    let node = &incident.spec.node.name;
    if args.leave_off {
        outln!(
            "{name} is asked to stop and to leave the machine as it is; what came of it: node-remedy explain \
             {node}. {}",
            why_ignored(node)
        );
    } else {
        outln!(
            "{name} is asked to stop; what came of it: node-remedy explain {node}. If the machine was told to go \
             off, or pods were released, it is switched on first and the incident parks. Otherwise it ends, and where \
             the condition still holds the next one begins after {}: to keep it away, node-remedy pause \
             --nodes kubernetes.io/hostname={node} --reason WHY",
            incident.spec.gate.cool_down
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// `approve`: allows the first off of an incident that waits for a person.
pub async fn approve(args: &PersonArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.cluster).await?;
    let incident = open(&cluster, &args.nodefence).await?;
    say(&cluster, &args.nodefence, APPROVE, &incident.uid().unwrap_or_default()).await?;
    outln!(
        "{} may power off {}; watch it with: node-remedy explain {}",
        args.nodefence,
        incident.spec.node.name,
        incident.spec.node.name
    );
    Ok(ExitCode::SUCCESS)
}

/// `ack`: lets machines be switched off again through the devices that failed to switch a node's
/// machine on.
pub async fn ack(args: &AckArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.cluster).await?;
    let mut incidents = incidents(&cluster).await?;
    incidents.retain(|one| one.spec.node.name == args.node && device_quarantine::is_closing(one));
    if incidents.is_empty() {
        bail!("no device of {} is closed; see: node-remedy explain {}", args.node, args.node);
    }
    for incident in &incidents {
        let name = incident.name_any();
        let word =
            device_quarantine::acknowledgement(incident).context("the incident has no UID")?;
        say(&cluster, &name, ACK, &word).await?;
        outln!("{name}: its devices may switch machines off again");
    }
    Ok(ExitCode::SUCCESS)
}

/// `confirm-off`: a person's word that the machine is off.
pub async fn confirm_off(args: &ConfirmArgs) -> anyhow::Result<ExitCode> {
    let name = &args.person.nodefence;
    let cluster = connect(&args.person.cluster).await?;
    let incident =
        waits(&cluster, name, &[Phase::AwaitingDevice, Phase::Remedying, Phase::Releasing]).await?;
    let node = &incident.spec.node;
    if !args.yes && !asked(&node.name, &node.system_uuid)? {
        bail!("not confirmed; nothing was changed");
    }
    let by = node_remedy_runtime::cluster::whoami::user(&cluster).await?;
    let word = format!("{}/{}/{by}", incident.uid().unwrap_or_default(), boot_of(&incident));
    say(&cluster, name, CONFIRM_OFF, &word).await?;
    outln!(
        "your word is written down, and the leader checks it. Watch: node-remedy explain {}. {}",
        node.name,
        why_ignored(&node.name)
    );
    Ok(ExitCode::SUCCESS)
}

/// Where the leader says why it did not take a word. The Node may be gone, so that it cannot be described.
fn why_ignored(node: &str) -> String {
    format!(
        "If nothing comes of it, an Event Ignored says why: kubectl -n default get events --field-selector \
         involvedObject.name={node}"
    )
}

/// The boot that the incident is about now: after a restart it is a later one than at its opening.
fn boot_of(incident: &NodeFence) -> &str {
    let status = incident.status.as_ref();
    status.map_or(&incident.spec.node.boot_id, |status| &status.liveness_at_open.boot_id)
}

fn asked(node: &str, machine: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("to confirm without a terminal, add --yes");
    }
    outln!(
        "The machine of node {node} ({machine}) must be off, and stay off until its pods run \
         elsewhere.\nA machine that still runs will corrupt their volumes. Type the node's name \
         to confirm:"
    );
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed).context("failed to read the answer")?;
    Ok(typed.trim() == node)
}

/// An incident that goes on.
async fn open(cluster: &KubeCluster, name: &str) -> anyhow::Result<NodeFence> {
    let found = cluster.get::<NodeFence>(At::cluster(name)).await?;
    let Some(incident) = found else {
        bail!("no NodeFence is named {name}; see: node-remedy status");
    };
    if incident.status.as_ref().is_some_and(|status| status.status == State::Final) {
        bail!("{name} is over; see: node-remedy explain {}", incident.spec.node.name);
    }
    Ok(incident)
}

/// An incident that waits for a person, or is in a phase in which it may: for a device that may never answer, for
/// somebody's word behind which a remedy gives pods back, or more of them than so far.
async fn waits(cluster: &KubeCluster, name: &str, phases: &[Phase]) -> anyhow::Result<NodeFence> {
    let incident = open(cluster, name).await?;
    let state = incident.status.as_ref().map(|status| status.status);
    let waits = incident
        .status
        .as_ref()
        .is_some_and(|status| status.parked.is_some() || phases.contains(&status.phase));
    if !waits {
        let state = state.as_ref().map_or("New".to_owned(), word::<State>);
        bail!(
            "{name} is not parked but {state}; see: node-remedy explain {}",
            incident.spec.node.name
        );
    }
    Ok(incident)
}

/// Annotates a NodeFence with a word.
async fn say(cluster: &KubeCluster, name: &str, key: &str, value: &str) -> anyhow::Result<()> {
    for tries_left in (0..SAY_TRIES).rev() {
        let incident = cluster.get::<NodeFence>(At::cluster(name)).await?;
        let Some(incident) = incident else { bail!("NodeFence {name} is gone") };
        let said: Patch = serde_json::from_value(annotation(&incident, key, value))?;
        match cluster.patch::<NodeFence>(At::cluster(name), &said).await {
            Ok(_) => return Ok(()),
            // The record was written meanwhile, as it is all the time.
            Err(ClusterError::Invalid(_) | ClusterError::Conflict(_)) if tries_left > 0 => {}
            Err(error) => {
                let what = format!("failed to annotate NodeFence {name}; type the command again");
                return Err(error).context(what);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use node_remedy_model_cluster::interceptor::Open;
    use node_remedy_simulate::testing::{example, play_behind};

    #[test]
    fn a_person_confirms_the_boot_that_the_incident_is_about_now() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let mut one = played.collected.incidents.into_values().next().unwrap().0;
        let first = one.spec.node.boot_id.clone();
        assert_eq!(boot_of(&one), first);
        one.status.as_mut().unwrap().liveness_at_open.boot_id = "after-a-restart".to_owned();
        assert_eq!(boot_of(&one), "after-a-restart");
        one.status = None;
        assert_eq!(boot_of(&one), first);
    }

    #[test]
    fn only_a_missing_kind_is_answered_with_how_to_install_it() {
        let said = "the words of the API server".to_owned();
        let rows = [
            (ClusterError::NotFound(said.clone()), true),
            (ClusterError::Denied(said.clone()), false),
            (ClusterError::Unavailable(said.clone()), false),
            (ClusterError::Unreadable(said.clone()), false),
        ];
        for (error, is_hinted) in rows {
            let text = format!("{:#}", not_listed(error));
            assert!(text.starts_with("failed to list NodeFences") && text.contains(&said));
            assert_eq!(text.contains("deploy/crds"), is_hinted, "{text}");
        }
    }
}
