//! What of ours stands on a Node, or runs for it, although no incident of it goes on: its NodeFence went past its finalizer, an older
//! state of the cluster was restored, or a standby told of a dump that is over. It is taken off, and told.
//!
//! Nobody counts on such marks, so this looks every few seconds only. Not here: the marks of an incident that goes
//! on, which are its own to put and to lift.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use node_remedy_act::job::is_of;
use node_remedy_act::node::{AUTOSCALERS, NodeChange, change_node};
use node_remedy_api::annotations::{CORDONED_BY, OUT_OF_SERVICE_BY};
use node_remedy_api::nodefence::{JobOutcome, JobRun, NodeFence};
use node_remedy_context::context::Context;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_decide::{Span, Time};
use node_remedy_incident::finalizer;
use node_remedy_incident::job::is_over;
use node_remedy_observe::caches::lease_key;
use node_remedy_observe::kdump;
use node_remedy_observe::kdump::DUMP_TOLD;
use node_remedy_observe::nodefences::is_open;
use node_remedy_observe::pruned::{PrunedNode, QUARANTINE};
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow, Scope};
use node_remedy_runtime::events::Note;

/// A create may be carried out late, and a delete be lost: so long after an incident its Jobs are looked for.
const LATE_JOBS_FOR: Span = Span::minutes(10);

/// So often it is looked for such marks.
pub const EVERY: Span = Span::seconds(10);

/// Takes off what nobody needs any more. `busy` are nodes of which an incident goes on that no watch may have told
/// of yet.
pub async fn sweep<C: Cluster>(context: &Context<C>, busy: &BTreeSet<String>) {
    let nodefences = &context.caches.nodefences;
    if !nodefences.is_followed() {
        return;
    }
    let kept: Vec<NodeFence> = {
        let all = nodefences.all();
        let over = all.values().map(|kept| &kept.0).filter(|one| !is_open(one));
        over.filter(|one| finalizer::is_kept(one)).cloned().collect()
    };
    for nodefence in &kept {
        if let Err(error) = finalizer::let_go(&context.cluster, nodefence).await {
            tracing::info!(%error, "failed to let a NodeFence go that is over; again soon");
        }
    }
    stop_jobs(context).await;
    let suspects: Vec<PrunedNode> = {
        let all = nodefences.all();
        let open: BTreeSet<&str> = all
            .values()
            .filter(|kept| is_open(&kept.0))
            .map(|kept| kept.0.spec.node.name.as_str())
            .collect();
        let nodes = context.caches.nodes.all();
        let idle = nodes
            .values()
            .filter(|node| !busy.contains(&node.name) && !open.contains(node.name.as_str()));
        idle.filter(|node| !marks(context, node).is_empty()).cloned().collect()
    };
    if suspects.is_empty() || is_seeded(Bug::MarksStay) {
        return;
    }
    if let Err(error) = take_off(context, &suspects).await {
        tracing::info!(%error, "failed to take off what nobody needs any more; again soon");
    }
}

/// Stops Jobs that outlived their incident: the delete was lost, or the create was carried out late. Garbage collection
/// deletes those whose NodeFence is gone.
async fn stop_jobs<C: Cluster>(context: &Context<C>) {
    let now = context.clock.now();
    let left: Vec<(NodeFence, String)> = {
        let all = context.caches.nodefences.all();
        let over = all.values().map(|kept| &kept.0).filter(|one| !is_open(one));
        over.flat_map(|one| jobs_left(one, now).map(|job| (one.clone(), job))).collect()
    };
    for (nodefence, name) in left {
        match stop_job(context, &nodefence, &name).await {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(job = name, "stopped a Job whose incident is over");
                let of = nodefence.name_any();
                let text = format!("stopped Job {name}: its incident {of} is over");
                let note = Note { reason: "JobStopped".to_owned(), text, warning: true };
                context.tell(&nodefence.spec.node, &note).await;
            }
            // It keeps no other one running.
            Err(error) => {
                tracing::info!(job = name, %error, "failed to stop a Job whose incident is over; again soon");
            }
        }
    }
}

/// Stops one that still runs; says whether it did.
async fn stop_job<C: Cluster>(
    context: &Context<C>,
    nodefence: &NodeFence,
    name: &str,
) -> Result<bool, ClusterError> {
    let at = At::within(&context.calls.namespace, name);
    let Some(job) = context.cluster.get::<Job>(at).await? else { return Ok(false) };
    let goes_on = job.metadata.deletion_timestamp.is_none() && !is_over(&job);
    let leads = context.lease.remaining_ms() > 0;
    if !goes_on || !leads || !is_of(&job, nodefence) || is_seeded(Bug::JobOutlives) {
        return Ok(false);
    }
    let how = DeleteHow { uid: job.uid(), with_dependents: true, ..DeleteHow::default() };
    context.cluster.delete::<Job>(at, &how).await.map(|_| true)
}

/// Jobs of an incident that is over of which nobody saw how they ended.
fn jobs_left(nodefence: &NodeFence, now: Time) -> impl Iterator<Item = String> {
    let status = nodefence.status.as_ref();
    let status = status.filter(|one| now < Time(one.entered_at.ms).after(LATE_JOBS_FOR));
    let runs = status.into_iter().flat_map(|status| &status.job_runs);
    let is_left =
        |run: &&JobRun| run.end.as_ref().is_none_or(|end| end.outcome == JobOutcome::Lost);
    runs.filter(is_left).map(|run| run.name.clone())
}

/// A mark is put after its NodeFence was written: what is listed after the Nodes were read knows of every mark
/// that was seen.
async fn take_off<C: Cluster>(
    context: &Context<C>,
    suspects: &[PrunedNode],
) -> Result<(), ClusterError> {
    let mut marked = Vec::new();
    for node in suspects {
        let found = context.cluster.get::<Node>(At::cluster(&node.name)).await?;
        marked.extend(found.and_then(PrunedNode::of).filter(|found| found.uid == node.uid));
    }
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut may_be_anybodys = false;
    // One that cannot be read may be open, and where it names no node, of any.
    let keep = |read: Read<NodeFence>| match read {
        Ok(nodefence) if is_open(&nodefence) => open.extend([nodefence.spec.node.name]),
        Ok(_) => {}
        Err(unread) => match unread.text("/spec/node/name") {
            Some(node) => open.extend([node.to_owned()]),
            None => may_be_anybodys = true,
        },
    };
    context.cluster.list_each(&Scope::all(), keep).await?;
    if may_be_anybodys {
        return Ok(());
    }
    for node in marked.iter().filter(|node| !open.contains(&node.name)) {
        let marks = marks(context, node);
        for (change, _) in &marks {
            if context.lease.remaining_ms() == 0 {
                return Ok(());
            }
            change_node(&context.cluster, &node.name, &node.uid, change).await?;
        }
        let what: Vec<&str> = marks.iter().filter_map(|(_, what)| *what).collect();
        if what.is_empty() {
            continue;
        }
        let what = what.join(", ");
        tracing::warn!(
            node = node.name,
            what,
            "took off what an incident left whose NodeFence is gone"
        );
        let text = format!("took off {what}: left by an incident whose NodeFence is gone");
        let note = Note { reason: "MarksSwept".to_owned(), text, warning: true };
        context.tell(&node.fenced(), &note).await;
    }
    Ok(())
}

/// What stands on a node, and what people are told of it. Without an incident nobody proves that its machine is off,
/// so out-of-service goes at once; what keeps pods away, once the node is well.
fn marks<C: Cluster>(
    context: &Context<C>,
    node: &PrunedNode,
) -> Vec<(NodeChange, Option<&'static str>)> {
    let has = |key| node.annotations.contains_key(key);
    let mut marks = Vec::new();
    if has(OUT_OF_SERVICE_BY) {
        marks.push((NodeChange::LiftOutOfService, Some("the out-of-service taint")));
    }
    let lease = context.caches.leases.find(&lease_key(&node.name));
    let is_heard = lease.as_ref().is_some_and(|lease| lease.is_renewed(context.clock.now()));
    // Ready stands for a while after a node has fallen silent.
    if !is_heard || !node.is_ready() || context.caches.unhealthy.contains(&node.name) {
        return marks;
    }
    let holds_autoscalers = AUTOSCALERS.iter().any(|(_, by)| has(by));
    if holds_autoscalers || node.taints.iter().any(|(key, ..)| key == QUARANTINE) {
        marks.push((NodeChange::Unquarantine, Some("the quarantine taint")));
    }
    if has(CORDONED_BY) {
        // Somebody may have uncordoned it meanwhile; a left-over annotation alone is not worth an Event.
        marks.push((NodeChange::Uncordon, node.unschedulable.then_some("the cordon")));
    }
    if kdump::is_told_of_one_that_is_over(node, lease.as_ref(), &context.clock) {
        let (key, value) = (DUMP_TOLD.to_owned(), None);
        marks.push((NodeChange::Annotate { key, value }, None));
    }
    marks
}
