//! Keeps what a run's controller decided and was told, for the timeline.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::{Method, Notice, Operation, Phase, Plan, Record, Rule, Time, Transition};
use node_remedy_record::audit::Audit;
use node_remedy_record::called::Called;
use node_remedy_record::reason::Reason;
use node_remedy_record::sentences;
use node_remedy_report::PluginUsed;
use node_remedy_sandbox::{Exchange, ExchangeRecord};

/// A transition, as far as a timeline needs it.
#[derive(Debug, Clone)]
pub struct Decided {
    /// When.
    pub at: Time,
    /// Of which NodeFence.
    pub nodefence: String,
    /// About which node.
    pub node: String,
    /// What people were told.
    pub notices: Vec<(Notice, String)>,
    /// The rules behind it.
    pub rules: Vec<Rule>,
    /// The phase before it, and after.
    pub phases: (Phase, Phase),
}

/// A device call, as far as a timeline needs it.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// When it ended.
    pub at: Time,
    /// Of which NodeFence.
    pub nodefence: String,
    /// The node.
    pub node: String,
    /// Whether it is about the node's network or storage, and not about its power.
    pub cuts: bool,
    /// The operation's number.
    pub number: u32,
    /// Such as `power status`.
    pub what: String,
    /// A sentence of what happened.
    pub detail: String,
    /// What went over the wire.
    pub exchanges: Vec<Exchange>,
}

/// A decision not to act.
#[derive(Debug, Clone)]
pub struct Refused {
    /// When.
    pub at: Time,
    /// On which node.
    pub node: String,
    /// Why.
    pub reason: Reason,
}

/// Everything collected.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Transitions, in order.
    pub decided: Vec<Decided>,
    /// Calls, in order.
    pub calls: Vec<RecordedCall>,
    /// Decisions not to act, in order.
    pub refused: Vec<Refused>,
    /// Every incident's last record and plan.
    pub incidents: BTreeMap<String, (NodeFence, Plan, Record)>,
    /// Every incident's whole journal; a record forgets what is long over.
    pub journals: BTreeMap<String, BTreeMap<u32, Operation>>,
    /// The plugins that could run.
    pub plugins: Vec<PluginUsed>,
}

/// The audit of a simulated run.
pub struct Collector {
    collected: RefCell<Collected>,
}

impl Collector {
    /// An empty one.
    pub fn new() -> Self {
        Self { collected: RefCell::default() }
    }

    /// Notes which plugins could run.
    pub fn note_plugins(&self, plugins: Vec<PluginUsed>) {
        self.collected.borrow_mut().plugins = plugins;
    }

    /// Everything so far; the collector is empty after.
    pub fn take(&self) -> Collected {
        self.collected.take()
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl Audit for Collector {
    /// A timeline tells of an incident by its first transition.
    fn opened(&self, _nodefence: &NodeFence, _now: Time) {}

    fn decided(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        before: &Record,
        decided: &Transition,
        now: Time,
    ) {
        let mut collected = self.collected.borrow_mut();
        let notices = decided.notices.iter();
        let (name, node) = (nodefence.name_any(), &nodefence.spec.node.name);
        let notices = notices
            .map(|one| (one.clone(), sentences::note(one, plan, &name, node).text))
            .collect();
        collected.decided.push(Decided {
            at: now,
            nodefence: name.clone(),
            node: node.clone(),
            notices,
            rules: decided.rules.clone(),
            phases: (before.phase, decided.record.phase),
        });
        let journal = collected.journals.entry(name.clone()).or_default();
        for operation in &decided.record.operations {
            journal.insert(operation.id.0, operation.clone());
        }
        let latest = (nodefence.clone(), plan.clone(), decided.record.clone());
        collected.incidents.insert(name, latest);
    }

    fn called(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        operation: &Operation,
        called: &Called,
        now: Time,
    ) {
        let exchanges = called.report.as_ref().map(|report| report.exchanges.clone());
        self.collected.borrow_mut().calls.push(RecordedCall {
            at: now,
            nodefence: nodefence.name_any(),
            node: nodefence.spec.node.name.clone(),
            cuts: plan.method(operation.method).is_some_and(Method::cuts),
            number: operation.id.0,
            what: what(plan, operation),
            detail: called.detail.clone(),
            exchanges: exchanges.unwrap_or_default(),
        });
    }

    fn refused(&self, node: &str, reason: &Reason, now: Time) {
        let refused = Refused { at: now, node: node.to_owned(), reason: reason.clone() };
        self.collected.borrow_mut().refused.push(refused);
    }

    fn exchange_record(&self) -> ExchangeRecord {
        ExchangeRecord::On
    }
}

/// Such as `power status`.
pub fn what(plan: &Plan, operation: &Operation) -> String {
    let action = node_remedy_act::calls::word(operation.action);
    format!("{} {action}", sentences::method_name(plan, operation.method))
}
