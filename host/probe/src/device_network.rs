//! Whether this process reaches devices at all. While several were asked and none answers, it opens
//! nothing that fences, and lets a process lead that says it hears devices. What is known comes from
//! probing, and from the calls of open incidents; nothing is asked here. What is open already is never held back.

use node_remedy_api::nodefence::RemedyStep;
use node_remedy_api::remedybudget::{DevicesAnswer, NAME, Refused, RemedyBudget};
use node_remedy_api::time::Moment;
use node_remedy_context::context::Context;
use node_remedy_decide::{DeviceNetwork, HAND_OVER_AGAIN, Span, Time};
use node_remedy_record::reason::DEVICE_NETWORK_LOST;
use node_remedy_runtime::cluster::{At, Cluster};
use serde_json::json;

/// What another process says on the budget counts for so long.
const WORD_MAX: Span = Span::seconds(60);

/// What the gate is told before an incident of this ladder is opened: one whose first remedy is a Job, or is done
/// in the cluster, needs no device yet, and later waits at it.
pub fn of_opening<C: Cluster>(context: &Context<C>, ladder: &[RemedyStep]) -> DeviceNetwork {
    if ladder.first().is_none_or(RemedyStep::is_of_plan) {
        context.reach.network(context.clock.now())
    } else {
        DeviceNetwork::default()
    }
}

/// Who stands by and hears devices says so, where the leader refuses for want of them.
pub async fn say_heard<C: Cluster>(context: &Context<C>) {
    if context.reach.network(context.clock.now()).answering == 0 {
        return;
    }
    let Some(budget) = read(context).await else { return };
    let is_for_it = |one: &Refused| one.guard == DEVICE_NETWORK_LOST && is_fresh(context, one.last);
    if !budget.status.unwrap_or_default().refusals.iter().any(is_for_it) {
        return;
    }
    let at = Moment::from_ms(context.clock.now().0);
    let word = DevicesAnswer { process: context.process.clone(), at };
    let patch = json!({"status": {"devicesAnswer": word}});
    if let Err(error) =
        context.cluster.merge_status::<RemedyBudget>(At::cluster(NAME), &patch).await
    {
        tracing::debug!(%error, "failed to say that devices answer here; again soon");
    }
}

/// A leader whom no device answers lets one lead who says that it hears them; not again for a while, as
/// for a single device.
pub async fn let_lead<C: Cluster>(context: &Context<C>) {
    let now = context.clock.now();
    let reach = &context.reach;
    let is_too_soon = |at: Time| now < at.after(HAND_OVER_AGAIN);
    if !reach.network(now).is_lost() || reach.handed_over_at.get().is_some_and(is_too_soon) {
        return;
    }
    let Some(budget) = read(context).await else { return };
    let word = budget.status.and_then(|status| status.devices_answer);
    if word.is_some_and(|word| word.process != context.process && is_fresh(context, word.at)) {
        reach.handed_over_at.set(Some(now));
        context.hand_over.notify_one();
    }
}

async fn read<C: Cluster>(context: &Context<C>) -> Option<RemedyBudget> {
    // Without an answer nothing is handed over; it is asked for again soon.
    context.cluster.get::<RemedyBudget>(At::cluster(NAME)).await.ok().flatten()
}

fn is_fresh<C: Cluster>(context: &Context<C>, at: Moment) -> bool {
    context.clock.now().since(context.clock.when(Time(at.ms))) <= WORD_MAX
}
