//! One line per incident opened, transition, device call and refusal, for whoever must know later.
//!
//! Production writes them to the log; the simulator also collects them into its timeline.
//! Nothing here is ever read back to decide.

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_config::symptoms;
use node_remedy_decide::{Effect, Notice, Operation, Plan, Record, Time, Transition};
use node_remedy_sandbox::ExchangeRecord;

use crate::called::Called;
use crate::reason::Reason;
use crate::sentences;

/// Someone who is told everything.
pub trait Audit {
    /// An incident was opened; its record is written.
    fn opened(&self, nodefence: &NodeFence, now: Time);
    /// A transition was recorded.
    fn decided(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        before: &Record,
        decided: &Transition,
        now: Time,
    );
    /// A device call ended.
    fn called(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        operation: &Operation,
        called: &Called,
        now: Time,
    );
    /// An incident was not opened.
    fn refused(&self, node: &str, reason: &Reason, now: Time);
    /// Nothing is refused about this node, now or any more.
    fn well(&self, _node: &str) {}
    /// Whether calls keep what goes over the wire, for this audit to read.
    fn exchange_record(&self) -> ExchangeRecord;
}

/// Whether anything came of a step but to wait on.
pub fn is_worth_a_line(before: &Record, decided: &Transition) -> bool {
    let is_news = |notice: &Notice| !matches!(notice, Notice::Held { .. });
    before.phase != decided.record.phase
        || !decided.effects.is_empty()
        || decided.notices.iter().any(is_news)
}

/// sha256 of the component whose decision was asked for or recorded; empty where there was none. A step
/// that takes one remedy's last word and asks the next has both.
pub fn deciders(nodefence: &NodeFence, before: &Record, decided: &Transition) -> String {
    let has_decided = decided.notices.iter().any(|one| matches!(one, Notice::Decided { .. }));
    let is_asked = decided.effects.iter().any(|one| matches!(one, Effect::AskRemedy(_)));
    let mut remedy_steps = Vec::new();
    remedy_steps.extend(has_decided.then_some(before.remedy_step));
    remedy_steps.extend(is_asked.then_some(decided.record.remedy_step));
    remedy_steps.dedup();
    let plugins = remedy_steps
        .iter()
        .filter_map(|remedy_step| nodefence.spec.ladder.get(*remedy_step)?.plugin.as_ref());
    plugins.map(|plugin| plugin.digest.as_str()).collect::<Vec<_>>().join(" ")
}

/// Into the log, target `audit`.
pub struct LogAudit;

impl Audit for LogAudit {
    fn opened(&self, nodefence: &NodeFence, _now: Time) {
        tracing::info!(
            target: "audit",
            nodefence = nodefence.name_any(),
            node = nodefence.spec.node.name,
            trigger = symptoms::words(&nodefence.spec.trigger),
            remedy = nodefence.spec.remedy,
            "opened"
        );
    }

    fn decided(
        &self,
        nodefence: &NodeFence,
        _plan: &Plan,
        before: &Record,
        decided: &Transition,
        _now: Time,
    ) {
        if !is_worth_a_line(before, decided) {
            return;
        }
        let rules: Vec<String> = decided.rules.iter().map(|rule| format!("{rule:?}")).collect();
        tracing::info!(
            target: "audit",
            nodefence = nodefence.name_any(),
            node = nodefence.spec.node.name,
            epoch = decided.record.epoch,
            from = ?before.phase,
            to = ?decided.record.phase,
            effects = ?decided.effects,
            rules = rules.join(" "),
            digest = deciders(nodefence, before, decided),
            "transition"
        );
    }

    fn called(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        operation: &Operation,
        called: &Called,
        _now: Time,
    ) {
        tracing::info!(
            target: "audit",
            nodefence = nodefence.name_any(),
            node = nodefence.spec.node.name,
            epoch = operation.epoch,
            operation = operation.id.0,
            method = sentences::method_name(plan, operation.method),
            digest = crate::status::write::component(nodefence, operation.method),
            action = ?operation.action,
            attempt = operation.attempt,
            end = ?called.end,
            detail = called.detail,
            "device call"
        );
    }

    fn refused(&self, node: &str, reason: &Reason, _now: Time) {
        tracing::info!(target: "audit", node, guard = reason.guard(), why = %reason, "not acted");
    }

    fn exchange_record(&self) -> ExchangeRecord {
        ExchangeRecord::Off
    }
}
