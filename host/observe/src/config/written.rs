//! Objects that configure, as the API server has them: what their type was read from, or, where it could
//! not be, what is there all the same. Either is read in one way.

use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::document::{Document, Path, Reading, Severity};
use node_remedy_runtime::cluster::Object;
use serde_json::Value;

use crate::caches::Cached;
use crate::config::readout::{Readout, in_force, json};
use crate::store::Store;

/// One of them.
pub(super) struct Written {
    kind: &'static str,
    /// Its name.
    pub(super) name: String,
    object: Value,
    /// Why its type could not be read.
    unread: Option<String>,
}

/// All of a kind: those that can be read first, each part in the order of names.
pub(super) fn written<K: Object>(kind: &'static str, store: &Store<Cached<K>>) -> Vec<Written> {
    let (all, unread) = (store.all(), store.unread());
    let read = all.values().map(|kept| Written {
        kind,
        name: kept.0.name_any(),
        object: json(kind, &kept.0),
        unread: None,
    });
    let unread = unread.iter().map(|(name, one)| Written {
        kind,
        name: name.clone(),
        object: json(kind, one.object()),
        unread: Some(one.why().to_owned()),
    });
    read.chain(unread).collect()
}

impl Written {
    /// Its label selector, whatever stands there.
    pub(super) fn selector(&self) -> Option<&Value> {
        self.object.pointer("/spec/nodeSelector")
    }

    /// What is in force of it after reading it, and what to say about it.
    pub(super) fn settle<T>(
        &self,
        read: impl FnOnce(&Document) -> Reading<T>,
        last: Option<Rc<T>>,
    ) -> (Option<Rc<T>>, Readout) {
        let document = Document::from_object(&self.object);
        let Reading { mut value, mut problems } = read(&document);
        if let Some(why) = &self.unread {
            value = None;
            // Where nothing else is wrong with it, it says itself what a type does not take.
            if !problems.has_errors() {
                let sentence = format!("found what this version cannot read: {why}");
                problems.push(document.problem(Severity::Error, &Path::root(), sentence));
            }
        }
        let generation = self.object.pointer("/metadata/generation").and_then(Value::as_i64);
        let (value, in_force) = in_force(value, last);
        let readout = Readout {
            kind: self.kind,
            name: self.name.clone(),
            generation: generation.unwrap_or_default(),
            in_force,
            problems: problems.to_string(),
        };
        (value, readout)
    }
}
