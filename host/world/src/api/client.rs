//! The API server as one client talks to it: the verbs, and the one door they pass.

use std::sync::Arc;

use serde_json::Value;

use super::deletion::DeleteOptions;
use super::error::ApiError;
use super::history::Watched;
use super::kind::Kind;
use super::object::Key;
use super::selector::Selector;
use super::{ApiServer, object};
use crate::api::verb::{Deleted, Listed, Part, Verb};

/// The server as one client sees it.
#[derive(Debug)]
pub struct Client<'a> {
    api: &'a mut ApiServer,
    name: &'a str,
}

impl<'a> Client<'a> {
    pub(super) fn new(api: &'a mut ApiServer, name: &'a str) -> Self {
        Self { api, name }
    }

    /// The object, or 404.
    pub fn get(&mut self, key: &Key) -> Result<Arc<Value>, ApiError> {
        self.enter(Verb::Get, |api, _| api.find(key))
    }

    /// The objects of a kind that `selector` takes.
    pub fn list(&mut self, kind: Kind, selector: &Selector) -> Result<Listed, ApiError> {
        self.enter(Verb::List, |api, _| {
            let items = api.shared(kind).filter(|object| selector.takes(object));
            Ok(Listed { items: items.cloned().collect(), version: api.version })
        })
    }

    /// Everything that happened to the selection after `version`, up to now. Asking
    /// again from the bookmark continues the watch without gap or repetition.
    pub fn watch(
        &mut self,
        kind: Kind,
        selector: &Selector,
        version: u64,
    ) -> Result<Watched, ApiError> {
        self.enter(Verb::Watch, |api, _| {
            let events = api.history.watch(kind, selector, version)?;
            Ok(Watched { events, bookmark: api.version })
        })
    }

    /// Makes an object.
    pub fn create(&mut self, kind: Kind, object: Value) -> Result<Arc<Value>, ApiError> {
        self.enter(Verb::Create, |api, by| api.create(by, kind, object))
    }

    /// Replaces one part of an object; a resourceVersion or UID in it is a precondition.
    pub fn update(
        &mut self,
        kind: Kind,
        object: Value,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        self.enter(Verb::Update, |api, by| api.update(by, kind, object, part))
    }

    /// Applies a JSON patch (RFC 6902); a failed `test` is [`ApiError::Invalid`].
    pub fn json_patch(
        &mut self,
        key: &Key,
        patch: &json_patch::Patch,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        self.enter(Verb::Patch, |api, by| {
            let old = api.find(key)?;
            let mut patched = Value::clone(&old);
            json_patch::patch(&mut patched, patch)
                .map_err(|error| ApiError::Invalid(format!("{key}: {error}")))?;
            api.update(by, key.kind, same_object(key, &old, patched)?, part)
        })
    }

    /// Applies a JSON merge patch (RFC 7386).
    pub fn merge_patch(
        &mut self,
        key: &Key,
        patch: &Value,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        self.enter(Verb::Patch, |api, by| {
            let old = api.find(key)?;
            let mut patched = Value::clone(&old);
            json_patch::merge(&mut patched, patch);
            api.update(by, key.kind, same_object(key, &old, patched)?, part)
        })
    }

    /// Deletes an object.
    pub fn delete(&mut self, key: &Key, how: &DeleteOptions) -> Result<Deleted, ApiError> {
        self.enter(Verb::Delete, |api, by| api.delete(by, key.clone(), how))
    }

    /// Evicts a pod, where no disruption budget forbids it.
    pub fn evict(&mut self, key: &Key, how: &DeleteOptions) -> Result<Deleted, ApiError> {
        self.enter(Verb::Create, |api, by| api.evict(by, key.clone(), how))
    }

    /// The one door between a client and the server: a call is counted, carried out and
    /// answered here. A fault before `carry_out` is a refusal, one after it a lost reply.
    fn enter<T>(
        &mut self,
        verb: Verb,
        carry_out: impl FnOnce(&mut ApiServer, &str) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        *self.api.calls.entry((self.name.to_owned(), verb)).or_default() += 1;
        carry_out(self.api, self.name)
    }
}

/// A patch may not rename what it patches, nor be meant for another object of that name.
fn same_object(key: &Key, old: &Value, patched: Value) -> Result<Value, ApiError> {
    if object::name(&patched) != key.name || object::namespace(&patched) != key.namespace {
        return Err(ApiError::BadRequest(format!(
            "{key}: the name of an object cannot be changed"
        )));
    }
    if object::uid(&patched) != object::uid(old) {
        return Err(ApiError::Invalid(format!("{key}: metadata.uid: field is immutable")));
    }
    Ok(patched)
}

impl ApiServer {
    /// The server as `name` talks to it.
    pub fn client<'a>(&'a mut self, name: &'a str) -> Client<'a> {
        Client::new(self, name)
    }
}
