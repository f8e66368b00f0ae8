//! `status`: whether everything is all right, and if not, what needs a person.

use std::fmt::Write as _;
use std::process::ExitCode;

use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use node_remedy_api::conditions::{ACCEPTED, Condition, ConditionStatus, READY};
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::nodefence::{ChoiceKind, ClusterAction, NodeFence, Phase, State};
use node_remedy_api::remedybudget;
use node_remedy_api::remedybudget::RemedyBudget;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::time::Moment;
use node_remedy_decide::Span;
use node_remedy_device_cli::args::Output;
use node_remedy_device_cli::output::{out, outln};
use node_remedy_device_cli::unread;
use node_remedy_observe::nodefences::is_approved;
use node_remedy_runtime::clock::time_of;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, Object, Scope};
use node_remedy_runtime::leader_election::{LEASE_NAME, LEASE_NAMESPACE, holder};
use serde_json::json;

use crate::args::StatusArgs;
use crate::operator::{connect, incidents, reason, word};
use crate::{binding, fence_paths, pause};

/// Something needs a person.
const EXIT_NOT_WELL: u8 = 2;
/// A leader renews every two seconds; the rest is for clocks that differ.
const LEADER_SILENT_MAX: Span = Span::minutes(1);
/// Refused nodes that are named.
const REFUSED_MAX: usize = 20;

/// `status`: what needs a person, what is paused, and one line per incident.
pub async fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.cluster).await?;
    let mut incidents = incidents(&cluster).await?;
    if !args.all {
        incidents.retain(|one| one.status.as_ref().is_none_or(|it| it.status != State::Final));
    }
    let mut wrong = leader(&cluster, &args.cluster.namespace).await;
    wrong += &unread::told(&cluster).await?;
    wrong += &refused_configurations(&cluster).await?;
    wrong += &fence_paths::told(&cluster).await?;
    wrong += &refused_nodes(&cluster).await?;
    let now = Moment::from_ms(pause::now_ms());
    wrong += &waiting(&incidents, now);
    if args.output == Output::Json {
        let needs: Vec<&str> = wrong.lines().collect();
        let all = json!({"needsYou": needs, "incidents": incidents});
        outln!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(code(!wrong.is_empty()));
    }
    match wrong.lines().count() {
        0 => outln!("nothing needs you"),
        1 => out!("this needs you:\n{wrong}"),
        count => out!("{count} things need you:\n{wrong}"),
    }
    out!("{}", pause::told(&cluster).await?);
    out!("{}", binding::told(&cluster, &args.cluster.namespace).await);
    if incidents.is_empty() {
        outln!("no incidents");
    } else {
        out!("{}", table(&incidents, now));
    }
    Ok(code(!wrong.is_empty()))
}

fn code(is_wrong: bool) -> ExitCode {
    if is_wrong { ExitCode::from(EXIT_NOT_WELL) } else { ExitCode::SUCCESS }
}

/// Empty if there is a live leader. The clock is the API server's; this machine's may be wrong.
async fn leader<C: Cluster>(cluster: &C, namespace: &str) -> String {
    let lease = cluster.get::<Lease>(At::within(LEASE_NAMESPACE, LEASE_NAME)).await;
    let (lease, now) = match (lease, cluster.server_time().await) {
        (Ok(lease), Ok(now)) => (lease, now),
        (Err(error), _) | (_, Err(error)) => {
            return format!(
                "failed to read the leader's Lease or the API server's time: {error}\n"
            );
        }
    };
    let hint = format!("no node is fenced; see: kubectl -n {namespace} get pods");
    let Some(lease) = lease.filter(|lease| holder(lease).is_some()) else {
        return format!("nobody leads: {hint}\n");
    };
    let renewed = lease.spec.and_then(|spec| spec.renew_time);
    let renewed = renewed.map(|at| time_of(&at.0)).unwrap_or_default();
    let (silent, ahead) = (now.since(renewed), renewed.since(now));
    if ahead > LEADER_SILENT_MAX {
        return format!(
            "the leader's Lease was renewed {ahead} ahead of the API server's clock, so nobody can tell \
             whether it lives: compare the clocks, and see: kubectl -n {namespace} get pods\n"
        );
    }
    if silent <= LEADER_SILENT_MAX {
        return String::new();
    }
    format!("the leader has been silent for {silent}: {hint}\n")
}

/// A line for each configuration and plugin that is not in force as it stands.
async fn refused_configurations<C: Cluster>(cluster: &C) -> Result<String, ClusterError> {
    let mut out = refused(cluster, ACCEPTED, |one: &RemedyConfiguration| {
        one.status.as_ref().map(|status| status.conditions.as_slice())
    })
    .await?;
    out += &refused(cluster, ACCEPTED, |one: &FenceConfiguration| {
        one.status.as_ref().map(|status| status.conditions.as_slice())
    })
    .await?;
    let plugins = refused(cluster, READY, |one: &FencePlugin| {
        one.status.as_ref().map(|status| status.conditions.as_slice())
    });
    match plugins.await {
        Ok(plugins) => out += &plugins,
        // Who uses no plugins from outside need not be allowed to see them.
        Err(ClusterError::Denied(_) | ClusterError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(out)
}

async fn refused<C: Cluster, K: Object>(
    cluster: &C,
    kind: &str,
    conditions: impl Fn(&K) -> Option<&[Condition]>,
) -> Result<String, ClusterError> {
    let mut out = String::new();
    let keep = |read: Read<K>| {
        let Ok(object) = read else { return };
        let mut all = conditions(&object).unwrap_or_default().iter();
        let is_it = |one: &&Condition| one.kind == kind && one.status == ConditionStatus::False;
        if let Some(Condition { reason, message, .. }) = all.find(is_it) {
            let (name, message) = (object.name_any(), message.replace('\n', "; "));
            let _ = writeln!(out, "{} {name} is refused ({reason}): {message}", K::kind(&()));
        }
    };
    cluster.list_each(&Scope::all(), keep).await?;
    Ok(out)
}

/// A line for each node that is not acted on though its threshold is crossed.
async fn refused_nodes<C: Cluster>(cluster: &C) -> Result<String, ClusterError> {
    let budget = cluster.get::<RemedyBudget>(At::cluster(remedybudget::NAME)).await?;
    let refusals = budget.and_then(|one| one.status).map(|status| status.refusals);
    let refusals = refusals.unwrap_or_default();
    let mut out = String::new();
    for one in refusals.iter().take(REFUSED_MAX) {
        let (node, guard, since) = (&one.node, &one.guard, one.since);
        let _ = writeln!(out, "{node} is not acted on since {since} ({guard}): {}", one.sentence);
    }
    if let Some(more) = refusals.len().checked_sub(REFUSED_MAX).filter(|more| *more > 0) {
        let _ = writeln!(out, "nor are {more} more nodes");
    }
    Ok(out)
}

fn phase(incident: &NodeFence) -> Option<Phase> {
    incident.status.as_ref().map(|status| status.phase)
}

/// Whether somebody has to do something before it goes on.
fn waits_for_a_person(incident: &NodeFence, now: Moment) -> bool {
    let is_parked = matches!(phase(incident), Some(Phase::Parked | Phase::AwaitingDevice));
    is_parked || waits_for_approval(incident) || waits_for_proof(incident, now)
}

/// Whether its last remedy asks no device, and nothing proved within the remedy's period that the machine is off: a
/// kernel dump or another grade may still, and else a person can.
fn waits_for_proof(incident: &NodeFence, now: Moment) -> bool {
    let Some(status) = &incident.status else { return false };
    let at = usize::try_from(status.remedy_step).unwrap_or(usize::MAX);
    let ladder = &incident.spec.ladder;
    let (Some(step), true) = (ladder.get(at), at.saturating_add(1) >= ladder.len()) else {
        return false;
    };
    let decided = status.decisions.iter().rfind(|one| one.remedy_step == status.remedy_step);
    let chosen = decided.filter(|one| one.ended_at.is_none()).and_then(|one| one.choice.as_ref());
    let chosen = chosen.filter(|choice| choice.kind == ChoiceKind::Cluster);
    let action = step.cluster.map(|action| action.to_string());
    let action = action.or_else(|| chosen.and_then(|choice| choice.name.clone()));
    let asks_no_device = action.is_some_and(|action| {
        [ClusterAction::Release, ClusterAction::DeleteNode]
            .iter()
            .any(|one| one.to_string() == action)
    });
    let is_overdue = now.ms >= status.entered_at.ms.saturating_add(step.period.ms);
    status.phase == Phase::Remedying && asks_no_device && is_overdue && status.proof.is_none()
}

/// Whether its power-off waits for `node-remedy approve`.
fn waits_for_approval(incident: &NodeFence) -> bool {
    let is_needed = incident.spec.policy.approval && !is_approved(incident);
    is_needed && phase(incident) == Some(Phase::AwaitingPower)
}

/// A line for each incident that waits for a person or for a device.
fn waiting(incidents: &[NodeFence], now: Moment) -> String {
    let mut out = String::new();
    for incident in incidents.iter().filter(|one| waits_for_a_person(one, now)) {
        let (name, node) = (incident.name_any(), &incident.spec.node.name);
        let what = match phase(incident) {
            Some(Phase::AwaitingDevice) => "waits for a device that does not answer".to_owned(),
            Some(Phase::AwaitingPower) => format!("waits for: node-remedy approve {name}"),
            Some(Phase::Remedying) => {
                format!("waits for a proof; if its machine is off: node-remedy confirm-off {name}")
            }
            Some(_) | None => "waits for a person".to_owned(),
        };
        let _ = writeln!(
            out,
            "{name} of {node} {what} ({}); see: node-remedy explain {node}",
            why(incident, now)
        );
    }
    out
}

/// One word.
fn why(incident: &NodeFence, now: Moment) -> String {
    let parked = incident.status.as_ref().and_then(|status| status.parked.as_ref());
    match (phase(incident), parked) {
        (_, Some(parked)) => reason(&parked.why),
        (Some(Phase::AwaitingDevice), None) => "DeviceUnreachable".to_owned(),
        (Some(Phase::AwaitingPower), None) if waits_for_approval(incident) => "Approval".to_owned(),
        (Some(Phase::Remedying), None) if waits_for_proof(incident, now) => "Proof".to_owned(),
        (_, None) => "-".to_owned(),
    }
}

fn table(incidents: &[NodeFence], now: Moment) -> String {
    let mut out = format!(
        "{:<28} {:<20} {:<17} {:<8} {:<20} {}\n",
        "NODEFENCE", "NODE", "STEP", "STATUS", "PROOF", "WHY"
    );
    for incident in incidents {
        let name = incident.name_any();
        let node = &incident.spec.node.name;
        let Some(status) = &incident.status else {
            let _ = writeln!(out, "{name:<28} {node:<20} {:<17} {:<8}", "-", "New");
            continue;
        };
        let proof = status.proof.as_ref().map_or("-".to_owned(), |proof| word(&proof.grade));
        let waits = status.phase == Phase::AwaitingDevice;
        let state = if waits { "Waiting".to_owned() } else { word(&status.status) };
        let (step, why) = (word(&status.step), why(incident, now));
        let _ = writeln!(out, "{name:<28} {node:<20} {step:<17} {state:<8} {proof:<20} {why}");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;
    use node_remedy_api::annotations::APPROVE;
    use node_remedy_api::nodefence::{Choice, Decided, RemedyStep};
    use node_remedy_model_cluster::interceptor::Open;
    use node_remedy_runtime::clock::timestamp;
    use node_remedy_runtime::leader_election::{Leadership, LeaseGate};
    use node_remedy_simulate::testing::{example, in_quiet_world, play_behind};

    #[test]
    fn that_nobody_leads_is_told() {
        in_quiet_world(|bench| async move {
            let client = bench.client("test");
            let told = async || leader(&client, "fencing").await;
            let nobody = told().await;
            assert!(nobody.starts_with("nobody leads"), "{nobody}");
            assert!(nobody.contains("kubectl -n fencing get pods"), "{nobody}");
            let gate = LeaseGate::new(bench.clock.boot_clock());
            let (namespace, name) = ("node-remedy".to_owned(), "a".to_owned());
            let clock = bench.clock.clone();
            let mut first = Leadership::new(bench.client("a"), clock, namespace, name, gate);
            first.acquire(|| async { Ok(0) }).await;
            assert_eq!(told().await, "");
            tokio::time::sleep(Duration::from_secs(90)).await;
            let silent = told().await;
            assert!(silent.starts_with("the leader has been silent for 1 min 30 s"), "{silent}");

            let at = At::within(LEASE_NAMESPACE, LEASE_NAME);
            let mut lease = client.get::<Lease>(at).await.unwrap().unwrap();
            let ahead = client.server_time().await.unwrap().after(Span::minutes(5));
            let spec = lease.spec.as_mut().unwrap();
            spec.renew_time = Some(MicroTime(timestamp(ahead)));
            client.replace(&lease).await.unwrap();
            let told = told().await;
            assert!(told.contains("ahead of the API server's clock"), "{told}");
        });
    }

    #[test]
    fn who_waits_for_a_device_or_a_person_is_told() {
        let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
        let now = Moment::from_ms(pause::now_ms());
        let mut one = played.collected.incidents.into_values().next().unwrap().0;
        assert_eq!(waiting(std::slice::from_ref(&one), now), "");
        one.status.as_mut().unwrap().phase = Phase::AwaitingDevice;
        let told = waiting(std::slice::from_ref(&one), now);
        assert!(told.contains("waits for a device that does not answer"), "{told}");
        let row = table(std::slice::from_ref(&one), now);
        assert!(row.contains("Waiting") && row.contains("DeviceUnreachable"), "{row}");

        one.status.as_mut().unwrap().phase = Phase::AwaitingPower;
        assert_eq!(waiting(std::slice::from_ref(&one), now), "", "its turn comes by itself");
        one.spec.policy.approval = true;
        let told = waiting(std::slice::from_ref(&one), now);
        assert!(told.contains("waits for: node-remedy approve"), "{told}");
        let uid = one.metadata.uid.clone().unwrap();
        one.annotations_mut().insert(APPROVE.to_owned(), uid);
        assert_eq!(waiting(std::slice::from_ref(&one), now), "", "it is approved");

        let release = RemedyStep {
            name: "release".to_owned(),
            period: node_remedy_api::time::Span::default(),
            clean_resource: false,
            job: None,
            cluster: Some(ClusterAction::Release),
            method: None,
            isolation_only: false,
            plugin: None,
        };
        let fence = RemedyStep { name: "fence".to_owned(), cluster: None, ..release.clone() };
        let status = one.status.as_mut().unwrap();
        (status.phase, status.proof, status.remedy_step) = (Phase::Remedying, None, 0);
        status.entered_at = now;
        one.spec.ladder = vec![release.clone(), fence.clone()];
        assert_eq!(waiting(std::slice::from_ref(&one), now), "", "the next remedy has its turn");
        let minute = node_remedy_api::time::Span::from_ms(60_000);
        one.spec.ladder = vec![RemedyStep { period: minute, ..release.clone() }];
        assert_eq!(
            waiting(std::slice::from_ref(&one), now),
            "",
            "a kernel dump may still prove it"
        );
        one.spec.ladder = vec![fence];
        assert_eq!(waiting(std::slice::from_ref(&one), now), "", "its devices are asked");
        let chosen = Choice {
            kind: ChoiceKind::Cluster,
            name: Some("delete-node".to_owned()),
            wait: None,
            why: None,
        };
        one.status.as_mut().unwrap().decisions = vec![Decided {
            number: 1,
            remedy_step: 0,
            asked_at: now,
            choice: Some(chosen),
            chosen_at: Some(now),
            followed_at: Some(now),
            failed: None,
            ended_at: None,
        }];
        let told = waiting(std::slice::from_ref(&one), now);
        assert!(told.contains("node-remedy confirm-off"), "what a plugin chose: {told}");
        one.status.as_mut().unwrap().decisions.clear();
        one.spec.ladder = vec![release];
        let told = waiting(std::slice::from_ref(&one), now);
        assert!(told.contains("node-remedy confirm-off"), "{told}");
        assert!(table(std::slice::from_ref(&one), now).contains("Proof"), "{told}");
    }
}
