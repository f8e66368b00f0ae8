//! Opens an incident: live facts, the plan for this very node, a slot, the NodeFence.
//!
//! The order matters after a crash: a slot without NodeFence is dropped by the next
//! leader, a NodeFence without record means that nothing was decided, and only a written
//! record lets anything happen.

use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use node_remedy_act::budget::{Room, Taken, slot_of};
use node_remedy_act::node_lock::Lock;
use node_remedy_act::{budget, job};
use node_remedy_api::nodefence::{NodeFence, NodeFenceSpec, RemedyStep};
use node_remedy_api::plan::NodePlan;
use node_remedy_config::plan::{gate_policy_of, incident_policy_of, plan_of, snapshot};
use node_remedy_context::context::Context;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Hold, OpenDecision, Opening, Refusal, Span, Time, crossed, gate};
use node_remedy_observe::claims::Claims;
use node_remedy_observe::config::{Mode, NodePolicy, Tables};
use node_remedy_observe::live::live;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_observe::volumes::Volumes;
use node_remedy_observe::{device_quarantine, incident_rate, vetoes, view};
use node_remedy_probe::device_network;
use node_remedy_record::reason::Reason;
use node_remedy_record::{sentences, status};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};
use node_remedy_runtime::names::stem;

use crate::finalizer::FINALIZER;
use crate::remedy_plugin::remedy_of;
use crate::{finalizer, repeat_alarm};

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
pub const PRUNED: &str = "a NodeFence is not stored as it is written: its definition is older than node-remedy; apply \
                      the definitions of this version: kubectl apply -f deploy/crds";
/// After so long it is tried whether they are.
const TRIED_AGAIN: Span = Span::seconds(60);
/// Numbers of one node's NodeFences tried in a row; each is a lost race.
const NAMES_TRIED: u64 = 5;

/// Opens an incident of `policy`'s threshold `number` on `seen`, if everything allows it.
pub async fn open<C: Cluster>(
    context: &Rc<Context<C>>,
    epoch: u64,
    policy: &NodePolicy,
    number: usize,
    seen: &PrunedNode,
) -> Result<Opened, ClusterError> {
    let is_recent = |at: Time| context.clock.now().since(at) < TRIED_AGAIN;
    if context.pruned_at.get().is_some_and(is_recent) {
        return Ok(not_ready(PRUNED));
    }
    let Some(threshold) = policy.thresholds.get(number) else {
        return Ok(not_ready("the threshold is gone"));
    };
    // Any of them may forbid it: a policy in shadow mode, a device that is closed, a storm.
    let lost = context.caches.not_followed();
    if !lost.is_empty() {
        let why = format!("its watch is broken of {}", lost.join(", "));
        return Ok(Opened::Held(Reason::ApiFailed(why), None));
    }
    let room = Room { limits: &policy.gate, caches: &context.caches };
    if room.is_promised_away(&seen.uid) {
        return Ok(held(Hold::NoSlot, None));
    }
    let fences = threshold.ladder.iter().any(RemedyStep::is_of_plan);
    let planned = threshold.is_run.clone().and_then(|()| {
        if fences { context.config.borrow().plan_for(seen) } else { Ok(NodePlan::default()) }
    });
    let node_plan = match planned {
        Ok(plan) => plan,
        Err(why) => return Ok(not_ready(&why)),
    };
    let (facts, storage, incidents) = futures::try_join!(
        live(&context.cluster, &context.caches, &context.clock, &seen.name),
        async {
            let now = || context.clock.now();
            Ok(context.storage.of_node(&context.cluster, &policy.gate, &seen.name, now).await)
        },
        async { Ok(incident_rate::live(&context.cluster, &policy.gate).await) },
    )?;
    let Some(node) = facts.node.clone().filter(|node| node.uid == seen.uid) else {
        return Ok(held(Hold::TriggerClear, None));
    };
    let now = context.clock.now();
    let (lease, events) = (facts.lease.as_ref(), facts.events.as_deref());
    let node_view = view::node_view(&node, lease, events, &context.caches, &context.clock);
    let crossing = crossed(&node_view, &threshold.threshold, now);
    let ladder = match with_components(context, &threshold.ladder) {
        Ok(ladder) => ladder,
        Err(why) => return Ok(not_ready(&why)),
    };
    let spec = NodeFenceSpec {
        node: node.fenced(),
        trigger: threshold.wanted.trigger(&crossing),
        remedy: threshold.remedy.clone(),
        plan: NodePlan::default(),
        policy: policy.incident.clone(),
        gate: policy.gate.clone(),
        ladder,
    };
    let find = |plugin: &str| context.calls.facts_of(plugin);
    let wiring = context.config.borrow().wiring_of(&seen.name);
    let spec = match snapshot(&node_plan, &spec.node, &wiring, find) {
        Ok(plan) => NodeFenceSpec { plan, ..spec },
        Err(error) => return Ok(not_ready(&error)),
    };
    let plan = match plan_of(&spec) {
        Ok(plan) => plan,
        Err(error) => return Ok(not_ready(&error)),
    };
    if let Some(why) = what_is_missing(context, &spec).await {
        return Ok(not_ready(&why));
    }
    let mut gate_view =
        view::gate_view(&context.caches, &context.clock, &policy.gate, &node.name, None);
    view::note_symptom(&mut gate_view, Some(&node_view), &crossing);
    gate_view.held_by = context.locks.held_by_other(&node.name).await?;
    gate_view.closed_device = device_quarantine::device_of(&spec.plan, &context.caches, None);
    gate_view.vetoes =
        vetoes::of_node(&facts.live, &node, &context.caches.changes, &policy.gate, &context.clock);
    gate_view.storage = storage;
    gate_view.device_network = device_network::of_opening(context, &threshold.ladder);
    gate_view.incidents = incidents;
    let verdict = gate(&gate_policy_of(&policy.gate), &gate_view, now);
    let looked = view::view(&facts, &Volumes::default(), Some(node_view), crossing, verdict);
    let incident_policy = incident_policy_of(&spec.policy);
    let opening = Opening {
        plan: &plan,
        policy: &incident_policy,
        view: &looked,
        epoch,
        process: &context.process,
    };
    let record = match node_remedy_decide::open(&opening, now) {
        OpenDecision::Open(record) => record,
        OpenDecision::Wait { hold, next_look } => return Ok(held(hold, next_look)),
        OpenDecision::Refuse(refusal) => return Ok(not_ready(&refusal)),
    };
    if let Some(why) = shared(context, &node, &node_plan).filter(|_| fences) {
        return Ok(not_ready(&why));
    }
    if guard(Bug::ShadowIgnored, policy.mode == Mode::Shadow) {
        return Ok(Opened::Held(Reason::Shadow { remedy: spec.remedy }, None));
    }
    if let Lock::Theirs { holder } = context.locks.take(&node.name).await? {
        return Ok(held(Hold::Gate(vec![Refusal::HeldByOther { holder }]), None));
    }
    let opened = create(context, epoch, spec, |nodefence| {
        status::write(&record, nodefence, &plan, Some(&facts), now)
    })
    .await;
    if let Ok(Opened::Yes(nodefence)) = &opened {
        context.count_transition(record.phase);
        tell_opened(context, nodefence);
        context.audit.opened(nodefence, context.clock.now());
        repeat_alarm::note(context, policy.repeat_alarm.as_ref(), nodefence);
    } else if context.leads()
        && let Err(error) = context.locks.release(&node.name).await
    {
        tracing::info!(node = node.name, %error, "failed to give a lock up; it will expire");
    }
    opened
}

/// Beside the path: an Event that takes long must not hold up the incident.
fn tell_opened<C: Cluster>(context: &Rc<Context<C>>, nodefence: &NodeFence) {
    let (context, node, note) =
        (context.clone(), nodefence.spec.node.clone(), sentences::opened(nodefence));
    tracing::info!(node = node.name, reason = note.reason, "{}", note.text);
    tokio::task::spawn_local(async move { context.tell(&node, &note).await });
}

async fn create<C: Cluster>(
    context: &Rc<Context<C>>,
    epoch: u64,
    spec: NodeFenceSpec,
    status: impl Fn(&NodeFence) -> node_remedy_api::nodefence::NodeFenceStatus,
) -> Result<Opened, ClusterError> {
    let first = next_number(context, &spec.node.name);
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
        let room = Room { limits: &spec.gate, caches: &context.caches };
        match budget::take(&context.cluster, epoch, &entry, room).await? {
            Taken::Yes => {}
            Taken::Full(_) => {
                // Stamping again drops slots whose NodeFence was never created.
                budget::stamp(&context.cluster, epoch).await?;
                return Ok(held(Hold::NoSlot, None));
            }
            Taken::NewerEpoch(_) => return Ok(held(Hold::NoSlot, None)),
        }
        match context.cluster.create(&nodefence).await {
            Ok(created) if created.spec != nodefence.spec => {
                // What a policy says would be lost with it. Nothing was done yet.
                context.pruned_at.set(Some(context.clock.now()));
                forget(context, &created).await?;
                budget::give_back(&context.cluster, epoch, &entry).await?;
                return Ok(not_ready(PRUNED));
            }
            Ok(mut created) => {
                created.status = Some(status(&created));
                let written = context.cluster.replace_status(&created).await?;
                return Ok(Opened::Yes(Box::new(written)));
            }
            Err(ClusterError::AlreadyExists(_)) => {
                let name = nodefence.metadata.name.as_deref().unwrap_or_default();
                let other = context.cluster.get::<NodeFence>(At::cluster(name)).await?;
                let is_open = |other: &NodeFence| {
                    node_remedy_observe::nodefences::is_open(other)
                        && other.spec.node.uid == spec.node.uid
                };
                if other.as_ref().is_some_and(is_open) {
                    // Ours, whose answer was lost and which no watch has told of yet: the slot is its own.
                    return Ok(held(Hold::NoSlot, None));
                }
                budget::give_back(&context.cluster, epoch, &entry).await?;
            }
            Err(error) => {
                // What was surely not created holds no slot; of what may have been the next stamp knows.
                if !error.may_have_been_done() {
                    budget::give_back(&context.cluster, epoch, &entry).await?;
                }
                return Err(error);
            }
        }
    }
    Err(ClusterError::AlreadyExists(format!("{stem}-{first} and the next ones")))
}

/// Takes a NodeFence away that was just created.
async fn forget<C: Cluster>(context: &Context<C>, created: &NodeFence) -> Result<(), ClusterError> {
    finalizer::let_go(&context.cluster, created).await?;
    let how = DeleteHow { uid: created.uid(), ..DeleteHow::default() };
    context.cluster.delete::<NodeFence>(At::cluster(&created.name_any()), &how).await?;
    Ok(())
}

/// Why nobody can say whose machine would be cut: another Node claims it, or this one says something else now
/// than what its plan was made of.
fn shared<C: Cluster>(context: &Context<C>, node: &PrunedNode, plan: &NodePlan) -> Option<String> {
    let (config, mut tables) = (context.config.borrow(), Tables::new());
    match config.plan_with(node, &mut tables) {
        Ok(now) if now == *plan => {}
        Ok(_) => return Some(format!("node {} was changed just now", node.name)),
        Err(why) => return Some(why),
    }
    let mut claims = Claims::default();
    for other in context.caches.nodes.all().values().filter(|other| other.name != node.name) {
        claims.add(other, config.plan_with(other, &mut tables).ok().as_ref());
    }
    claims.add(node, Some(plan));
    claims.shared(&node.name)
}

/// The ladder with the component that each plugin has now: the incident keeps them. Where another remedy fences, a missing
/// plugin does not stop the incident: it is waited for when it is to be asked, and then its remedy has failed.
pub fn with_components<C: Cluster>(
    context: &Context<C>,
    ladder: &[RemedyStep],
) -> Result<Vec<RemedyStep>, String> {
    let mut ladder = ladder.to_vec();
    let may_fence =
        ladder.iter().any(|remedy_step| remedy_step.is_of_plan() && remedy_step.plugin.is_none());
    for remedy_step in &mut ladder {
        let Some(plugin) = &mut remedy_step.plugin else { continue };
        match remedy_of(&context.calls.plugins, &plugin.name, None) {
            Ok(found) => plugin.digest = found.digest().to_string(),
            Err(_) if may_fence => {}
            Err(why) => return Err(format!("remedy {}: {why}", remedy_step.name)),
        }
    }
    Ok(ladder)
}

/// Why a plan could not be carried out if it were opened.
async fn what_is_missing<C: Cluster>(context: &Context<C>, spec: &NodeFenceSpec) -> Option<String> {
    for method in &spec.plan.methods {
        if (method.plugin.is_some() || method.is_network_fence())
            && let Err(why) = context.calls.ready(method, &spec.plan.grants).await
        {
            return Some(format!("method {}: {why}", method.name));
        }
    }
    spec.ladder.iter().find_map(|remedy_step| account_missing(&context.job_accounts, remedy_step))
}

/// A Job may run as an account that the controller was told of, and as no other.
pub fn account_missing(allowed: &[String], remedy_step: &RemedyStep) -> Option<String> {
    let account = job::account(remedy_step.job.as_ref()?)?;
    let is_allowed = account == "default" || allowed.contains(&account);
    (!is_allowed).then(|| {
        format!(
            "remedy {}: its podTemplate asks for service account {account:?}, and the controller runs \
             Jobs only as default and those of --job-service-account",
            remedy_step.name
        )
    })
}

/// One more than the largest number of the node's NodeFences.
fn next_number<C: Cluster>(context: &Context<C>, node: &str) -> u64 {
    let stem = stem(node);
    let nodefences = context.caches.nodefences.all();
    let numbers = nodefences.values().filter_map(|kept| {
        kept.0.name_any().strip_prefix(&stem)?.strip_prefix('-')?.parse::<u64>().ok()
    });
    numbers.max().unwrap_or_default().saturating_add(1)
}
