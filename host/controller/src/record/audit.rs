//! One line per transition and device call, for whoever must know later.
//!
//! Production writes them to the log; the simulator also collects them into its story.
//! Nothing here is ever read back to decide.

use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::{Operation, Plan, Record, Time, Transition};
use node_remedy_sandbox::ExchangeRecord;

use super::{notices, status};
use crate::act::calls::Called;
use crate::refusals::Reason;
use kube::ResourceExt as _;

/// Someone who is told everything.
pub trait Audit {
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
    /// A run was not opened.
    fn refused(&self, node: &str, reason: &Reason, now: Time);
    /// Whether calls keep what goes over the wire, for this audit to read.
    fn exchange_record(&self) -> ExchangeRecord;
}

/// Into the log, target `audit`.
pub struct LogAudit;

impl Audit for LogAudit {
    fn decided(
        &self,
        nodefence: &NodeFence,
        _plan: &Plan,
        before: &Record,
        decided: &Transition,
        _now: Time,
    ) {
        if before.phase == decided.record.phase && decided.effects.is_empty() {
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
            method = notices::method_name(plan, operation.method),
            digest = status::component(nodefence, operation.method),
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
