//! Waiting for leave: before isolation, and between isolation and power.

use crate::run::{Flow, Run};
use crate::{Approval, Hold, LOOK_EVERY, Phase, Rule};

use super::leave::leave_to_cut;

/// New: nothing was done yet in this pass.
pub(crate) fn waiting(run: &mut Run<'_>) -> Flow {
    let until = run.record.entered_at.after(run.policy.isolate_after);
    if let Err(flow) = leave_to_cut(run) {
        return flow;
    }
    if run.now < until {
        run.look_at(until);
        return run.hold(Hold::NotYet { until });
    }
    // The boot that this pass is about: a restart is about the boot that is ill now.
    if let Some(node) = run.seen().and_then(|view| run.node(view)) {
        if run.is_new_boot(&node.signs) {
            // The boot that was released from has ended, as it had to.
            run.record.first_released_at = None;
        }
        run.record.signs_at_open = node.signs.clone();
    }
    Flow::Go(Phase::Isolating)
}

/// Isolated; power is not touched yet.
pub(crate) fn awaiting_power(run: &mut Run<'_>) -> Flow {
    let until = run.record.entered_at.after(run.policy.power_after);
    let Some(view) = run.look() else { return Flow::Stay };
    if lacks_approval(run) {
        run.rule(Rule::A17);
        run.look_in(LOOK_EVERY);
        if view.trigger_clear() || run.node(view).is_none() {
            return leave_to_cut(run).err().unwrap_or(Flow::Stay);
        }
        return run.hold(Hold::Approval);
    }
    if let Err(flow) = leave_to_cut(run) {
        return flow;
    }
    if run.now < until {
        run.look_at(until);
        return run.hold(Hold::NotYet { until });
    }
    if let Some(grace) = run.policy.kdump_grace.filter(|_| view.dumping) {
        let until = until.after(grace);
        if run.now < until {
            run.look_in(LOOK_EVERY);
            return run.hold(Hold::Dump { until });
        }
    }
    Flow::Go(Phase::ReadingIdentity)
}

/// Whether a person's yes is still to come, as far as this step can see.
pub(crate) fn lacks_approval(run: &Run<'_>) -> bool {
    let approved = run.seen().is_some_and(|view| view.people.approved);
    run.policy.approval == Approval::Needed && run.seen().is_some() && !approved
}
