//! The audit as a file that nobody can change unnoticed, beside the log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::time::Moment;
use node_remedy_config::symptoms;
use node_remedy_decide::{Notice, Operation, Phase, Plan, Record, Time, Transition};
use node_remedy_sandbox::ExchangeRecord;
use serde::Serialize;

use crate::audit::{Audit, LogAudit, deciders, is_worth_a_line};
use crate::called::Called;
use crate::hash_chain::Chain;
use crate::reason::Reason;
use crate::repeat_filter::Holds;
use crate::sentences;

/// Into the log, and into a file whose lines are a chain.
pub struct FileAudit {
    log: LogAudit,
    path: PathBuf,
    /// `None` after a failed write: the next line opens it anew and tells of the gap.
    pub chain: RefCell<Option<Chain>>,
    /// The guard that was told last of each node: it refuses at every look.
    refused: RefCell<BTreeMap<String, &'static str>>,
    /// What each node's incident waits for and was told: it waits at every look.
    holds: RefCell<BTreeMap<String, Holds>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Entry<'a> {
    Opened {
        nodefence: String,
        node: &'a str,
        trigger: String,
        since: Moment,
        remedy: &'a str,
    },
    Transition {
        nodefence: String,
        node: &'a str,
        epoch: u64,
        from: String,
        to: String,
        effects: Vec<String>,
        rules: String,
        /// What people were told of it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
        /// sha256 of the component that was asked for a decision, or made one.
        #[serde(skip_serializing_if = "String::is_empty")]
        digest: String,
    },
    Call {
        nodefence: String,
        node: &'a str,
        epoch: u64,
        operation: u32,
        method: String,
        /// sha256 of the component that was called; empty for what is built in.
        digest: &'a str,
        action: String,
        attempt: u32,
        end: String,
        detail: &'a str,
    },
    Refused {
        node: &'a str,
        guard: &'static str,
        why: String,
    },
}

impl FileAudit {
    /// Goes on with the file at `path`, or begins it.
    ///
    /// # Errors
    /// Where it cannot be read or written.
    pub fn open(path: &Path, now: Time) -> anyhow::Result<Self> {
        let chain = Chain::open(path, Moment::from_ms(now.0))?;
        Ok(Self {
            log: LogAudit,
            path: path.to_owned(),
            chain: RefCell::new(Some(chain)),
            refused: RefCell::default(),
            holds: RefCell::default(),
        })
    }

    /// What people are told of a step; what goes on to be waited for is told once.
    fn sentences(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        decided: &Transition,
        now: Time,
    ) -> Vec<String> {
        let (name, node) = (nodefence.name_any(), nodefence.spec.node.name.as_str());
        let mut holds = self.holds.borrow_mut();
        let phase = decided.record.phase;
        let mut is_news = |notice: &Notice| {
            let Notice::Held { reason } = notice else { return true };
            holds.entry(node.to_owned()).or_default().is_news(phase, reason, now)
        };
        let told = decided.notices.iter().filter(|notice| is_news(notice));
        let told = told.map(|notice| sentences::note(notice, plan, &name, node).text).collect();
        if matches!(phase, Phase::Final(_)) {
            holds.remove(node);
        }
        told
    }

    fn add(&self, entry: &Entry<'_>, now: Time) {
        let at = Moment::from_ms(now.0);
        let mut chain = self.chain.borrow_mut();
        let opened = match chain.take() {
            Some(open) => Ok(open),
            None => Chain::open(&self.path, at),
        };
        let written = opened.and_then(|mut open| open.add(entry, at).map(|()| open));
        match written {
            Ok(open) => *chain = Some(open),
            Err(error) => tracing::error!("a line of the audit is in the log only: {error:#}"),
        }
    }
}

impl Audit for FileAudit {
    fn opened(&self, nodefence: &NodeFence, now: Time) {
        self.log.opened(nodefence, now);
        let (spec, nodefence) = (&nodefence.spec, nodefence.name_any());
        let entry = Entry::Opened {
            nodefence,
            node: &spec.node.name,
            trigger: symptoms::words(&spec.trigger),
            since: spec.trigger.since,
            remedy: &spec.remedy,
        };
        self.add(&entry, now);
    }

    fn decided(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        before: &Record,
        decided: &Transition,
        now: Time,
    ) {
        self.log.decided(nodefence, plan, before, decided, now);
        let notices = self.sentences(nodefence, plan, decided, now);
        if notices.is_empty() && !is_worth_a_line(before, decided) {
            return;
        }
        let node = nodefence.spec.node.name.as_str();
        self.refused.borrow_mut().remove(node);
        let rules: Vec<String> = decided.rules.iter().map(|rule| format!("{rule:?}")).collect();
        let entry = Entry::Transition {
            nodefence: nodefence.name_any(),
            node,
            epoch: decided.record.epoch,
            from: format!("{:?}", before.phase),
            to: format!("{:?}", decided.record.phase),
            effects: decided.effects.iter().map(|effect| format!("{effect:?}")).collect(),
            rules: rules.join(" "),
            notices,
            digest: deciders(nodefence, before, decided),
        };
        self.add(&entry, now);
    }

    fn called(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        operation: &Operation,
        called: &Called,
        now: Time,
    ) {
        self.log.called(nodefence, plan, operation, called, now);
        let entry = Entry::Call {
            nodefence: nodefence.name_any(),
            node: &nodefence.spec.node.name,
            epoch: operation.epoch,
            operation: operation.id.0,
            method: sentences::method_name(plan, operation.method),
            digest: crate::status::write::component(nodefence, operation.method),
            action: format!("{:?}", operation.action),
            attempt: operation.attempt,
            end: format!("{:?}", called.end),
            detail: &called.detail,
        };
        self.add(&entry, now);
    }

    fn refused(&self, node: &str, reason: &Reason, now: Time) {
        self.log.refused(node, reason, now);
        let guard = reason.guard();
        if self.refused.borrow_mut().insert(node.to_owned(), guard) != Some(guard) {
            self.add(&Entry::Refused { node, guard, why: reason.to_string() }, now);
        }
    }

    fn well(&self, node: &str) {
        self.refused.borrow_mut().remove(node);
    }

    fn exchange_record(&self) -> ExchangeRecord {
        self.log.exchange_record()
    }
}
