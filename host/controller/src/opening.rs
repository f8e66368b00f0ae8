//! Opens an incident: live facts, the plan for this very node, a slot, the NodeFence.
//!
//! The order matters after a crash: a slot without NodeFence is dropped by the next
//! leader, a NodeFence without record means that nothing was decided, and only a written
//! record lets anything happen.

use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use node_remedy_api::nodefence::{NodeFence, NodeFenceSpec, Rung};
use node_remedy_api::plan::NodePlan;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Hold, OpenDecision, Opening, Refusal, Span, Time, crossed, gate};

use crate::act::ask::remedy_of;
use crate::act::budget::{self, Room, Taken};
use crate::act::node_lease::Lock;
use crate::act::{job, network_fence};
use crate::cluster::{At, Cluster, ClusterError, DeleteHow};
use crate::controller::Parts;
use crate::device_network;
use crate::observe::begun;
use crate::observe::claims::Claims;
use crate::observe::closed;
use crate::observe::config::{Mode, NodePolicy, Tables};
use crate::observe::live::live;
use crate::observe::plan::{gate_policy_of, plan_of, run_policy_of, snapshot};
use crate::observe::seen::NodeSeen;
use crate::observe::volumes::Volumes;
use crate::observe::{view, words};
use crate::reconcile::slot_of;
use crate::record::keep::{self, FINALIZER};
use crate::record::{notices, repeats, status};
use crate::refusals::Reason;

/// What came of opening.
pub enum Opened {
    /// The incident; its record is written.
    Yes(Box<NodeFence>),
    /// Not now, and when to look again if that is known.
    Held(Reason, Option<Time>),
}

fn held(hold: Hold, next_look: Option<Time>) -> Opened {
    Opened::Held(Reason::Hold(hold), next_look)
}

fn not_ready(why: &(impl ToString + ?Sized)) -> Opened {
    Opened::Held(Reason::NotReady(why.to_string()), None)
}

/// Why there is no incident where the API server dropped parts of one.
const PRUNED: &str = "a NodeFence is not stored as it is written: its definition is older than node-remedy; apply \
                      the definitions of this version: kubectl apply -f deploy/crds";
/// After so long it is tried whether they are.
const TRIED_AGAIN: Span = Span::seconds(60);
/// Numbers of one node's NodeFences tried in a row; each is a lost race.
const NAMES_TRIED: u64 = 5;
/// Object names are at most 253 long; a number and a dash must fit.
const NODE_NAME_MAX: usize = 230;

/// Opens a run of `policy`'s threshold `number` on `seen`, if everything allows it.
pub async fn open<C: Cluster>(
    parts: &Rc<Parts<C>>,
    epoch: u64,
    policy: &NodePolicy,
    number: usize,
    seen: &NodeSeen,
) -> Result<Opened, ClusterError> {
    let is_recent = |at: Time| parts.clock.now().since(at) < TRIED_AGAIN;
    if parts.pruned_at.get().is_some_and(is_recent) {
        return Ok(not_ready(PRUNED));
    }
    let Some(threshold) = policy.thresholds.get(number) else {
        return Ok(not_ready("the threshold is gone"));
    };
    // Any of them may forbid it: a policy in shadow mode, a device that is closed, a storm.
    let lost = parts.mirror.not_followed();
    if !lost.is_empty() {
        let why = format!("its watch is broken of {}", lost.join(", "));
        return Ok(Opened::Held(Reason::ApiFailed(why), None));
    }
    let room = Room { limits: &policy.gate, mirror: &parts.mirror };
    if room.is_promised_away(&seen.uid) {
        return Ok(held(Hold::NoSlot, None));
    }
    let fences = threshold.ladder.iter().any(Rung::is_of_plan);
    let planned = threshold.is_run.clone().and_then(|()| {
        if fences { parts.config.borrow().plan_for(seen) } else { Ok(NodePlan::default()) }
    });
    let node_plan = match planned {
        Ok(plan) => plan,
        Err(why) => return Ok(not_ready(&why)),
    };
    let (facts, storage, incidents) = futures::try_join!(
        live(&parts.cluster, &parts.mirror, &parts.clock, &seen.name),
        async {
            let now = || parts.clock.now();
            Ok(parts.storage.of_node(&parts.cluster, &policy.gate, &seen.name, now).await)
        },
        async { Ok(begun::live(&parts.cluster, &policy.gate).await) },
    )?;
    let Some(node) = facts.node.clone().filter(|node| node.uid == seen.uid) else {
        return Ok(held(Hold::TriggerClear, None));
    };
    let now = parts.clock.now();
    let (lease, events) = (facts.lease.as_ref(), facts.events.as_deref());
    let node_view = view::node_view(&node, lease, events, &parts.mirror, &parts.clock);
    let crossing = crossed(&node_view, &threshold.threshold, now);
    let ladder = match with_components(parts, &threshold.ladder) {
        Ok(ladder) => ladder,
        Err(why) => return Ok(not_ready(&why)),
    };
    let spec = NodeFenceSpec {
        node: node.fenced(),
        trigger: threshold.wanted.trigger(&crossing),
        remedy: threshold.remedy.clone(),
        plan: NodePlan::default(),
        policy: policy.run.clone(),
        gate: policy.gate.clone(),
        ladder,
    };
    let find = |plugin: &str| parts.calls.facts_of(plugin);
    let wiring = parts.config.borrow().wiring_of(&seen.name);
    let spec = match snapshot(&node_plan, &spec.node, &wiring, find) {
        Ok(plan) => NodeFenceSpec { plan, ..spec },
        Err(error) => return Ok(not_ready(&error)),
    };
    let plan = match plan_of(&spec) {
        Ok(plan) => plan,
        Err(error) => return Ok(not_ready(&error)),
    };
    if let Some(why) = what_is_missing(parts, &spec).await {
        return Ok(not_ready(&why));
    }
    let mut gate_view =
        view::gate_view(&parts.mirror, &parts.clock, &policy.gate, &node.name, None);
    view::note_sign(&mut gate_view, Some(&node_view), &crossing);
    gate_view.held_by = parts.locks.held_by_other(&node.name).await?;
    gate_view.closed_device = closed::device_of(&spec.plan, &parts.mirror, None);
    gate_view.words =
        words::of_node(&facts.said, &node, &parts.mirror.changes, &policy.gate, &parts.clock);
    gate_view.storage = storage;
    gate_view.device_network = device_network::of_opening(parts, &threshold.ladder);
    gate_view.incidents = incidents;
    let verdict = gate(&gate_policy_of(&policy.gate), &gate_view, now);
    let looked = view::view(&facts, &Volumes::default(), Some(node_view), crossing, verdict);
    let run_policy = run_policy_of(&spec.policy);
    let opening =
        Opening { plan: &plan, policy: &run_policy, view: &looked, epoch, process: &parts.process };
    let record = match node_remedy_decide::open(&opening, now) {
        OpenDecision::Open(record) => record,
        OpenDecision::Wait { hold, next_look } => return Ok(held(hold, next_look)),
        OpenDecision::Refuse(refusal) => return Ok(not_ready(&refusal)),
    };
    if let Some(why) = shared(parts, &node, &node_plan).filter(|_| fences) {
        return Ok(not_ready(&why));
    }
    if guard(Bug::ShadowIgnored, policy.mode == Mode::Shadow) {
        return Ok(Opened::Held(Reason::Shadow { remedy: spec.remedy }, None));
    }
    if let Lock::Theirs { holder } = parts.locks.take(&node.name).await? {
        return Ok(held(Hold::Gate(vec![Refusal::HeldByOther { holder }]), None));
    }
    let opened = create(parts, epoch, spec, |nodefence| {
        status::write(&record, nodefence, &plan, Some(&facts), now)
    })
    .await;
    if let Ok(Opened::Yes(nodefence)) = &opened {
        parts.count_transition(record.phase);
        tell_opened(parts, nodefence);
        parts.audit.opened(nodefence, parts.clock.now());
        repeats::note(parts, policy.repeat_alarm.as_ref(), nodefence);
    } else if parts.leads()
        && let Err(error) = parts.locks.release(&node.name).await
    {
        tracing::info!(node = node.name, %error, "failed to give a lock up; it will expire");
    }
    opened
}

/// Beside the path: an Event that takes long must not hold up the incident.
fn tell_opened<C: Cluster>(parts: &Rc<Parts<C>>, nodefence: &NodeFence) {
    let (parts, node, note) =
        (parts.clone(), nodefence.spec.node.clone(), notices::opened(nodefence));
    tracing::info!(node = node.name, reason = note.reason, "{}", note.text);
    tokio::task::spawn_local(async move { parts.tell(&node, &note).await });
}

async fn create<C: Cluster>(
    parts: &Rc<Parts<C>>,
    epoch: u64,
    spec: NodeFenceSpec,
    status: impl Fn(&NodeFence) -> node_remedy_api::nodefence::NodeFenceStatus,
) -> Result<Opened, ClusterError> {
    let first = next_number(parts, &spec.node.name);
    let stem = stem(&spec.node.name);
    for number in first..first.saturating_add(NAMES_TRIED) {
        let nodefence = NodeFence {
            metadata: ObjectMeta {
                name: Some(format!("{stem}-{number}")),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                ..ObjectMeta::default()
            },
            spec: spec.clone(),
            status: None,
        };
        let entry = slot_of(&nodefence);
        let room = Room { limits: &spec.gate, mirror: &parts.mirror };
        match budget::take(&parts.cluster, epoch, &entry, room).await? {
            Taken::Yes => {}
            Taken::Full(_) => {
                // Stamping again drops slots whose NodeFence was never created.
                budget::stamp(&parts.cluster, epoch).await?;
                return Ok(held(Hold::NoSlot, None));
            }
            Taken::NewerEpoch(_) => return Ok(held(Hold::NoSlot, None)),
        }
        match parts.cluster.create(&nodefence).await {
            Ok(created) if created.spec != nodefence.spec => {
                // What a policy says would be lost with it. Nothing was done yet.
                parts.pruned_at.set(Some(parts.clock.now()));
                forget(parts, &created).await?;
                budget::give_back(&parts.cluster, epoch, &entry).await?;
                return Ok(not_ready(PRUNED));
            }
            Ok(mut created) => {
                created.status = Some(status(&created));
                let written = parts.cluster.replace_status(&created).await?;
                return Ok(Opened::Yes(Box::new(written)));
            }
            Err(ClusterError::AlreadyExists(_)) => {
                let name = nodefence.metadata.name.as_deref().unwrap_or_default();
                let other = parts.cluster.get::<NodeFence>(At::cluster(name)).await?;
                let is_open = |other: &NodeFence| {
                    view::is_open(other) && other.spec.node.uid == spec.node.uid
                };
                if other.as_ref().is_some_and(is_open) {
                    // Ours, whose answer was lost and which no watch has told of yet: the slot is its own.
                    return Ok(held(Hold::NoSlot, None));
                }
                budget::give_back(&parts.cluster, epoch, &entry).await?;
            }
            Err(error) => {
                // What was surely not created holds no slot; of what may have been the next stamp knows.
                if !error.may_have_been_done() {
                    budget::give_back(&parts.cluster, epoch, &entry).await?;
                }
                return Err(error);
            }
        }
    }
    Err(ClusterError::AlreadyExists(format!("{stem}-{first} and the next ones")))
}

/// Takes a NodeFence away that was just created.
async fn forget<C: Cluster>(parts: &Parts<C>, created: &NodeFence) -> Result<(), ClusterError> {
    keep::let_go(&parts.cluster, created).await?;
    let how = DeleteHow { uid: created.uid(), ..DeleteHow::default() };
    parts.cluster.delete::<NodeFence>(At::cluster(&created.name_any()), &how).await?;
    Ok(())
}

/// Why nobody can say whose machine would be cut: another Node claims it, or this one says something else now
/// than what its plan was made of.
fn shared<C: Cluster>(parts: &Parts<C>, node: &NodeSeen, plan: &NodePlan) -> Option<String> {
    let (config, mut tables) = (parts.config.borrow(), Tables::new());
    match config.plan_with(node, &mut tables) {
        Ok(now) if now == *plan => {}
        Ok(_) => return Some(format!("node {} was changed just now", node.name)),
        Err(why) => return Some(why),
    }
    let mut claims = Claims::default();
    for other in parts.mirror.nodes.all().values().filter(|other| other.name != node.name) {
        claims.add(other, config.plan_with(other, &mut tables).ok().as_ref());
    }
    claims.add(node, Some(plan));
    claims.shared(&node.name)
}

/// The ladder with the component that each plugin has now: the incident keeps them. Where another remedy fences, a missing
/// plugin does not stop the incident: it is waited for when it is to be asked, and then its remedy has failed.
pub fn with_components<C: Cluster>(parts: &Parts<C>, ladder: &[Rung]) -> Result<Vec<Rung>, String> {
    let mut ladder = ladder.to_vec();
    let may_fence = ladder.iter().any(|rung| rung.is_of_plan() && rung.plugin.is_none());
    for rung in &mut ladder {
        let Some(plugin) = &mut rung.plugin else { continue };
        match remedy_of(&parts.calls.plugins, &plugin.name, None) {
            Ok(found) => plugin.digest = found.digest().to_string(),
            Err(_) if may_fence => {}
            Err(why) => return Err(format!("remedy {}: {why}", rung.name)),
        }
    }
    Ok(ladder)
}

/// Why a plan could not be carried out if it were opened.
async fn what_is_missing<C: Cluster>(parts: &Parts<C>, spec: &NodeFenceSpec) -> Option<String> {
    for method in &spec.plan.methods {
        if (method.plugin.is_some() || network_fence::is(method))
            && let Err(why) = parts.calls.ready(method, &spec.plan.grants).await
        {
            return Some(format!("method {}: {why}", method.name));
        }
    }
    spec.ladder.iter().find_map(|rung| account_missing(&parts.job_accounts, rung))
}

/// A Job may run as an account that the controller was told of, and as no other.
fn account_missing(allowed: &[String], rung: &Rung) -> Option<String> {
    let account = job::account(rung.job.as_ref()?)?;
    let is_allowed = account == "default" || allowed.contains(&account);
    (!is_allowed).then(|| {
        format!(
            "remedy {}: its podTemplate asks for service account {account:?}, and the controller runs \
             Jobs only as default and those of --job-service-account",
            rung.name
        )
    })
}

/// One more than the largest number of the node's NodeFences.
fn next_number<C: Cluster>(parts: &Parts<C>, node: &str) -> u64 {
    let stem = stem(node);
    let nodefences = parts.mirror.nodefences.all();
    let numbers = nodefences.values().filter_map(|kept| {
        kept.0.name_any().strip_prefix(&stem)?.strip_prefix('-')?.parse::<u64>().ok()
    });
    numbers.max().unwrap_or_default().saturating_add(1)
}

/// The node's name, or a hash in its place where it is too long to carry a number.
pub(crate) fn stem(node: &str) -> String {
    if node.len() <= NODE_NAME_MAX {
        return node.to_owned();
    }
    let digest = crate::hex::sha256(node.as_bytes());
    format!("node-{}", digest.get(..32).unwrap_or(&digest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use node_remedy_world::api::Kind;
    use node_remedy_world::facts::What;
    use serde_json::{Value, json};

    use super::*;
    use crate::simulate::{Part, play};
    use crate::testing::{Door, Request, example, play_behind};

    /// A definition that does not know of ladders.
    #[expect(clippy::unnecessary_wraps, reason = "it is asked as any definition is")]
    fn knows_no_ladder(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        let spec = spec.filter(|_| kind == Kind::NodeFence && part == "spec");
        let dropped = spec.and_then(|spec| spec.remove("ladder"));
        Ok(dropped.map(|_| "spec.ladder".to_owned()).into_iter().collect())
    }

    /// A definition that does not know how an incident goes on.
    fn knows_no_off(kind: Kind, part: &str, object: &mut Value) -> Result<Vec<String>, String> {
        let is_record = kind == Kind::NodeFence && part == "status";
        let phase = object.pointer("/status/phase").and_then(Value::as_str);
        match phase.filter(|phase| is_record && *phase == "PoweringOff") {
            Some(phase) => Err(format!("phase: unsupported value {phase}")),
            None => Ok(Vec::new()),
        }
    }

    /// Counts the Events that tell of a record that does not stand.
    #[derive(Default)]
    struct Told(std::cell::Cell<usize>);

    impl Door for Told {
        async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
            let event = request.object().filter(|_| request.resource == "events");
            let is_it = event.is_some_and(|event| event["reason"] == "RecordPruned");
            self.0.set(self.0.get() + usize::from(is_it));
            Ok(())
        }
    }

    #[test]
    fn a_record_that_is_refused_is_told_of_and_not_acted_on() {
        let mut scenario = example("lost-node.yaml", |text| text);
        scenario.duration = Duration::from_mins(4);
        scenario.admit = Some(knows_no_off);
        let told = Rc::new(Told::default());
        let played = play_behind(&scenario, &told);
        let is_off = |what: &What| matches!(what, What::BmcSaidYes { .. });
        assert!(!played.facts.iter().any(|fact| is_off(&fact.what)), "nothing was switched");
        assert_eq!(told.0.get(), 1, "a person is told once");
    }

    #[test]
    fn nothing_is_done_where_a_nodefence_is_not_stored_as_it_was_written() {
        let mut scenario = example("lost-node.yaml", |text| text);
        scenario.duration = Duration::from_mins(4);
        scenario.admit = Some(knows_no_ladder);
        let played = play(&scenario, Part::With).unwrap();
        let is_off = |what: &What| matches!(what, What::BmcSaidYes { .. });
        assert!(!played.facts.iter().any(|fact| is_off(&fact.what)), "nothing was switched");
        let mut refused = played.collected.refused.iter();
        let told = |reason: &Reason| matches!(reason, Reason::NotReady(why) if why == PRUNED);
        assert!(refused.any(|refused| told(&refused.reason)), "{:?}", played.collected.refused);
        let left = played.collected.incidents;
        assert!(left.is_empty(), "{left:?}");
    }

    /// What is missing for a Job of this spec, where the controller was told of one account.
    fn missing(mut spec: serde_json::Value) -> Option<String> {
        spec["containers"] = json!([]);
        let template = json!({"spec": spec}).to_string();
        let job = json!({"podTemplate": template, "deadline": "30m", "backoffLimit": 0});
        let rung = json!({"name": "repair", "period": "3m", "job": job});
        let rung: Rung = serde_json::from_value(rung).unwrap();
        account_missing(&["repairer".to_owned()], &rung)
    }

    #[test]
    fn a_job_runs_as_an_account_that_the_controller_was_told_of_and_as_no_other() {
        let (new, old) = ("serviceAccountName", "serviceAccount");
        for allowed in [
            json!({}),
            json!({new: null}),
            json!({new: "default"}),
            json!({new: "repairer", old: "node-remedy"}),
            json!({old: "repairer"}),
        ] {
            assert_eq!(missing(allowed.clone()), None, "{allowed}");
        }
        for (refused, spec) in [
            ("node-remedy", json!({new: "node-remedy"})),
            ("Repairer", json!({new: "Repairer"})),
            ("repairer ", json!({new: "repairer "})),
            // The API server takes the older name where the newer one is empty.
            ("node-remedy", json!({new: null, old: "node-remedy"})),
            ("node-remedy", json!({new: "", old: "node-remedy"})),
        ] {
            let said = missing(spec).unwrap_or_default();
            assert!(said.contains(&format!("{refused:?}")), "{said}");
            assert!(said.contains("--job-service-account"), "{said}");
        }
    }
}
