//! The audit as a file that nobody can change unnoticed, beside the log.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_api::time::Moment;
use node_remedy_decide::{Operation, Plan, Record, Time, Transition};
use node_remedy_sandbox::ExchangeRecord;
use serde::Serialize;

use super::audit::{Audit, LogAudit};
use super::chain::Chain;
use super::{notices, status};
use crate::act::calls::Called;
use crate::refusals::Reason;

/// Into the log, and into a file whose lines are a chain.
pub struct FileAudit {
    log: LogAudit,
    path: PathBuf,
    /// `None` after a failed write: the next line opens it anew and tells of the gap.
    chain: RefCell<Option<Chain>>,
    /// The guard that was told last of each node: it refuses at every look.
    refused: RefCell<BTreeMap<String, &'static str>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Entry<'a> {
    Transition {
        nodefence: String,
        node: &'a str,
        epoch: u64,
        from: String,
        to: String,
        effects: Vec<String>,
        rules: String,
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
        })
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
    fn decided(
        &self,
        nodefence: &NodeFence,
        plan: &Plan,
        before: &Record,
        decided: &Transition,
        now: Time,
    ) {
        self.log.decided(nodefence, plan, before, decided, now);
        if before.phase == decided.record.phase && decided.effects.is_empty() {
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
            method: notices::method_name(plan, operation.method),
            digest: status::component(nodefence, operation.method),
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

    fn exchange_record(&self) -> ExchangeRecord {
        self.log.exchange_record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::chain::verify;

    #[test]
    fn a_refusal_is_written_once_and_a_lost_file_is_begun_anew() {
        let folder = std::env::temp_dir().join(format!("node-remedy-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("audit.jsonl");
        let audit = FileAudit::open(&path, Time(0)).unwrap();
        let missing = |what: &str| Reason::NotReady(what.to_owned());
        for (node, reason) in [
            ("a", missing("no grant")),
            ("a", missing("no Secret")),
            ("b", missing("no grant")),
            ("a", Reason::ApiFailed("late".to_owned())),
        ] {
            audit.refused(node, &reason, Time(1));
        }
        assert_eq!(
            verify(std::slice::from_ref(&path)).unwrap().lines,
            4,
            "the beginning and three refusals"
        );
        *audit.chain.borrow_mut() = None;
        audit.refused("c", &missing("no grant"), Time(2));
        assert_eq!(verify(&[path]).unwrap().lines, 6);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
