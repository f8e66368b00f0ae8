//! The model of the API server: objects, resourceVersions, subresources, deletion, watches.
//!
//! Follows the real one where somebody can tell the difference: conflicts, status kept
//! apart, finalizers, grace periods, preconditions, a bounded history. One client's writes are held against
//! the definitions of custom resources, if somebody brings them. No authentication, no validation of built-in
//! kinds, no server-side apply, no label selectors. Its store is never
//! behind itself: every read is a quorum read.
//!
//! Every call of every client passes through one door, [`Client::enter`]; whatever is to
//! go wrong between a client and the server goes wrong there.

mod admission;
mod client;
mod deletion;
mod error;
mod eviction;
mod history;
mod kind;
pub mod object;
mod selector;
#[cfg(test)]
mod tests;
mod verb;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use self::history::History;
use crate::rng::Rng;
use crate::time::{Time, seconds_stamp};

pub use self::admission::{DEFAULT_GRACE_S, DEFAULT_TOLERATION_S};
pub use self::client::Client;
pub use self::deletion::DeleteOptions;
pub use self::error::ApiError;
pub use self::history::{Change, ChangeType, HISTORY_CHANGES, WatchEvent, Watched};
pub use self::kind::{Kind, NODE_REMEDY};
pub use self::object::Key;
pub use self::selector::Selector;
pub use verb::{Deleted, Listed, Part, Verb};

/// What the definitions of custom resources do with the part of an object that is written, `spec` or `status`:
/// they drop fields, and name them, or say why it is refused.
pub type Admit = fn(Kind, &str, &mut Value) -> Result<Vec<String>, String>;

/// One client's writes are held against definitions.
#[derive(Debug)]
struct Defined {
    client: String,
    admit: Admit,
    /// What was dropped, and what was refused.
    misfits: Vec<String>,
}

/// The API server and its store.
#[derive(Debug)]
pub struct ApiServer {
    defined: Option<Defined>,
    objects: BTreeMap<Key, Arc<Value>>,
    /// A copy of all objects that somebody keeps.
    saved: Option<BTreeMap<Key, Arc<Value>>>,
    /// How often its process was started anew.
    starts: u64,
    history: History,
    version: u64,
    /// The last version at which an object of this kind changed.
    changed: BTreeMap<Kind, u64>,
    now: Time,
    /// What its machine's clock is ahead of the true time.
    ahead_ms: i64,
    uids: Rng,
    calls: BTreeMap<(String, Verb), u64>,
    /// Changes that the world's actors have not been told yet; only a world drains it.
    outbox: Option<Vec<Change>>,
}

impl ApiServer {
    /// An empty server whose UIDs follow from `seed`.
    pub fn new(seed: u64, now: Time) -> Self {
        Self {
            defined: None,
            objects: BTreeMap::new(),
            saved: None,
            starts: 0,
            history: History::default(),
            version: 1,
            changed: BTreeMap::new(),
            now,
            ahead_ms: 0,
            uids: Rng::named(seed, "uids"),
            calls: BTreeMap::new(),
            outbox: None,
        }
    }

    /// From now on keeps what happens for [`Self::take_changes`].
    pub(crate) fn keep_changes(&mut self) {
        self.outbox = Some(Vec::new());
    }

    /// What happened since the last time.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.outbox.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether there is anything to take.
    pub(crate) fn has_changes(&self) -> bool {
        self.outbox.as_ref().is_some_and(|changes| !changes.is_empty())
    }

    /// The true time, which stamps what nobody compares with another clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What the clock of the control plane's machine shows.
    pub fn shows(&self) -> Time {
        Time(self.now.0.saturating_add_signed(self.ahead_ms))
    }

    /// Sets that clock ahead, or back.
    pub(crate) fn set_clock(&mut self, by_ms: i64) {
        self.ahead_ms = self.ahead_ms.saturating_add(by_ms);
    }

    /// The resourceVersion of the latest write.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The last version at which an object of `kind` changed; 0 if none ever did.
    pub fn changed(&self, kind: Kind) -> u64 {
        self.changed.get(&kind).copied().unwrap_or_default()
    }

    /// How often each client called, by verb.
    pub fn calls(&self) -> &BTreeMap<(String, Verb), u64> {
        &self.calls
    }

    /// Forgets all history: watchers that are not up to date get 410.
    pub fn compact(&mut self) {
        self.history.forget(self.version);
    }

    /// The changes after `version`, for those who need to know who wrote.
    pub fn changes(&self, version: u64) -> Result<impl Iterator<Item = &Change>, ApiError> {
        self.history.since(version)
    }

    /// An object as it stands, not as a client's call.
    pub fn peek(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key).map(AsRef::as_ref)
    }

    /// All objects of a kind as they stand, by namespace and name, not as a client's call.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.shared(kind).map(AsRef::as_ref)
    }

    /// Puts an object there as it is, status, UID and all: it was there before the timeline.
    pub(crate) fn restore(&mut self, by: &str, kind: Kind, mut object: Value) {
        let key = Key::of(kind, &object);
        if object::uid(&object).is_empty() {
            let uid = json!(self.uids.uuid());
            object::set(object::part(&mut object, "metadata"), "uid", uid);
        }
        self.commit(by, key, object, None);
    }

    /// Keeps a copy of everything, as `etcdctl snapshot save` does.
    pub(crate) fn save(&mut self) {
        self.saved = Some(self.objects.clone());
    }

    /// Makes everything what it was when it was saved; false where nothing was. As Kubernetes' documentation asks for
    /// ("Operating etcd clusters for Kubernetes", `etcdutl snapshot restore --bump-revision --mark-compacted`), versions
    /// go on from where they were and no watch survives it. Its process was stopped before and started after that, so
    /// what it had not carried out by then it never does.
    pub(crate) fn set_back(&mut self, by: &str) -> bool {
        let Some(saved) = self.saved.clone() else { return false };
        let is_new = |key: &&Key| !saved.contains_key(*key);
        let new: Vec<Key> = self.objects.keys().filter(is_new).cloned().collect();
        for key in new {
            if let Some(last) = self.objects.get(&key).cloned() {
                self.erase(by, key, &last, Value::clone(&last));
            }
        }
        for (key, object) in saved {
            let now = self.objects.get(&key).cloned();
            if now.as_ref() != Some(&object) {
                self.commit(by, key, Value::clone(&object), now);
            }
        }
        self.compact();
        self.starts = self.starts.saturating_add(1);
        true
    }

    /// How often its process was started anew.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    fn shared(&self, kind: Kind) -> impl Iterator<Item = &Arc<Value>> {
        let first = Key::cluster(kind, "");
        self.objects.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, o)| o)
    }

    /// Holds what this client writes against definitions from now on.
    pub fn define(&mut self, client: &str, admit: Admit) {
        self.defined = Some(Defined { client: client.to_owned(), admit, misfits: Vec::new() });
    }

    /// What of that client's writes was dropped or refused.
    pub fn misfits(&self) -> Vec<String> {
        self.defined.as_ref().map(|defined| defined.misfits.clone()).unwrap_or_default()
    }

    /// Drops what is not defined from what a client writes.
    fn admit_defined(
        &mut self,
        by: &str,
        key: &Key,
        part: Part,
        object: &mut Value,
    ) -> Result<(), ApiError> {
        let Some(defined) = self.defined.as_mut().filter(|one| one.client == by) else {
            return Ok(());
        };
        let part = if part == Part::Status { "status" } else { "spec" };
        match (defined.admit)(key.kind, part, object) {
            Ok(dropped) => {
                defined
                    .misfits
                    .extend(dropped.iter().map(|field| format!("{key}: dropped {field}")));
                Ok(())
            }
            Err(refused) => {
                defined.misfits.push(format!("{key}: refused: {refused}"));
                Err(ApiError::Invalid(format!("{key}: {refused}")))
            }
        }
    }

    fn find(&self, key: &Key) -> Result<Arc<Value>, ApiError> {
        self.objects.get(key).cloned().ok_or_else(|| ApiError::NotFound(key.to_string()))
    }

    fn create(&mut self, by: &str, kind: Kind, mut object: Value) -> Result<Arc<Value>, ApiError> {
        if object::name(&object).is_empty() {
            let prefix = object::text(&object, "/metadata/generateName");
            if prefix.is_empty() {
                return Err(ApiError::Invalid(format!("{}: name is required", kind.plural())));
            }
            let name = format!("{prefix}{:05x}", self.uids.below(1 << 20));
            object::set(object::part(&mut object, "metadata"), "name", json!(name));
        }
        // Its CRD requires them (kubernetes-csi-addons, v1alpha1).
        if kind == Kind::NetworkFence && object.pointer("/spec/cidrs").is_none() {
            return Err(ApiError::Invalid("NetworkFence: spec.cidrs is required".to_owned()));
        }
        if kind.is_namespaced() == object::namespace(&object).is_empty() {
            let what = if kind.is_namespaced() { "required" } else { "not allowed" };
            return Err(ApiError::BadRequest(format!("{}: namespace is {what}", kind.plural())));
        }
        let key = Key::of(kind, &object);
        if self.objects.contains_key(&key) {
            return Err(ApiError::AlreadyExists(key.to_string()));
        }
        object::set(&mut object, "apiVersion", json!(kind.api_version()));
        object::set(&mut object, "kind", json!(kind.name()));
        let metadata = object::part(&mut object, "metadata");
        object::set(metadata, "uid", json!(self.uids.uuid()));
        object::set(metadata, "creationTimestamp", json!(seconds_stamp(self.shows())));
        object::remove(metadata, "generation");
        if kind.counts_generations() {
            object::set(metadata, "generation", json!(1));
        }
        object::remove(metadata, "deletionTimestamp");
        object::remove(metadata, "deletionGracePeriodSeconds");
        // A kubelet registers its node together with its first status.
        if kind.has_status() && kind != Kind::Node {
            object::remove(&mut object, "status");
        }
        admission::admit(kind, &mut object);
        self.admit_defined(by, &key, Part::Main, &mut object)?;
        if let Some(rule) = admission::refusal(kind, None, &object) {
            return Err(ApiError::Invalid(format!("{key}: {rule}")));
        }
        Ok(self.commit(by, key, object, None))
    }

    fn update(
        &mut self,
        by: &str,
        kind: Kind,
        object: Value,
        part: Part,
    ) -> Result<Arc<Value>, ApiError> {
        let key = Key::of(kind, &object);
        let old = self.find(&key)?;
        for field in ["/metadata/resourceVersion", "/metadata/uid"] {
            let said = object::text(&object, field);
            if !said.is_empty() && said != object::text(&old, field) {
                return Err(ApiError::Conflict(format!(
                    "{key}: the object has been modified; please apply your changes to the \
                     latest version ({field})"
                )));
            }
        }
        if !kind.is_replaced_blindly()
            && object::text(&object, "/metadata/resourceVersion").is_empty()
        {
            return Err(ApiError::Invalid(format!(
                "{key}: metadata.resourceVersion must be specified for an update"
            )));
        }
        if added_while_terminating(&old, &object) {
            return Err(ApiError::Invalid(format!(
                "{key}: no new finalizers can be added if the object is being deleted"
            )));
        }
        if part == Part::Status && !kind.has_status() {
            return Err(ApiError::NotFound(format!("{key}: subresource status")));
        }
        let mut new = merged(kind, &old, object, part);
        self.admit_defined(by, &key, part, &mut new)?;
        if let Some(rule) = admission::refusal(kind, Some(&old), &new) {
            return Err(ApiError::Invalid(format!("{key}: {rule}")));
        }
        Ok(self.settle(by, key, &old, new))
    }

    /// Commits what an object is to become, unless that is what it is already.
    fn settle(&mut self, by: &str, key: Key, old: &Arc<Value>, mut new: Value) -> Arc<Value> {
        if new == **old {
            return Arc::clone(old);
        }
        if deletion::is_finished(key.kind, &new) {
            return self.erase(by, key, old, new);
        }
        if spec_differs(old, &new) {
            object::count_generation(&mut new);
        }
        self.commit(by, key, new, Some(Arc::clone(old)))
    }

    fn delete(&mut self, by: &str, key: Key, how: &DeleteOptions) -> Result<Deleted, ApiError> {
        let old = self.find(&key)?;
        deletion::check(&key, &old, how)?;
        match deletion::judge(key.kind, &old, how, self.now) {
            deletion::Verdict::Gone => {
                let last = Value::clone(&old);
                Ok(Deleted::Gone(self.erase(by, key, &old, last)))
            }
            deletion::Verdict::MarkedThenGone(marked) => {
                let marked = self.commit(by, key.clone(), marked, Some(old));
                let last = Value::clone(&marked);
                Ok(Deleted::Gone(self.erase(by, key, &marked, last)))
            }
            deletion::Verdict::Marked(marked) => {
                Ok(Deleted::Waiting(self.settle(by, key, &old, marked)))
            }
        }
    }

    fn commit(
        &mut self,
        by: &str,
        key: Key,
        object: Value,
        before: Option<Arc<Value>>,
    ) -> Arc<Value> {
        let object = self.stamp(object);
        self.objects.insert(key.clone(), Arc::clone(&object));
        let change = if before.is_some() { ChangeType::Modified } else { ChangeType::Added };
        self.note(by, change, key, Arc::clone(&object), before);
        object
    }

    fn erase(&mut self, by: &str, key: Key, old: &Arc<Value>, last: Value) -> Arc<Value> {
        let last = self.stamp(last);
        self.objects.remove(&key);
        self.note(by, ChangeType::Deleted, key, Arc::clone(&last), Some(Arc::clone(old)));
        last
    }

    fn stamp(&mut self, mut object: Value) -> Arc<Value> {
        self.version += 1;
        let version = json!(self.version.to_string());
        object::set(object::part(&mut object, "metadata"), "resourceVersion", version);
        Arc::new(object)
    }

    fn note(
        &mut self,
        by: &str,
        change: ChangeType,
        key: Key,
        object: Arc<Value>,
        before: Option<Arc<Value>>,
    ) {
        let by = Arc::from(by);
        let (version, at) = (self.version, self.now);
        self.changed.insert(key.kind, version);
        let change = Change { version, at, by, change, key, object, before };
        if let Some(outbox) = &mut self.outbox {
            outbox.push(change.clone());
        }
        self.history.push(change);
    }
}

/// Metadata that only the server writes.
const SERVER_METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
];

/// What `old` becomes when a client writes `object` over one part of it.
fn merged(kind: Kind, old: &Value, object: Value, part: Part) -> Value {
    match part {
        Part::Status => {
            let mut new = old.clone();
            // Built-in kinds but this one take labels, annotations and finalizers here, too.
            if kind.group() != NODE_REMEDY && kind != Kind::VolumeAttachment {
                let metadata = object.get("metadata").cloned().unwrap_or_default();
                object::set(&mut new, "metadata", metadata);
                let metadata = object::part(&mut new, "metadata");
                carry_over(metadata, old.get("metadata"), &SERVER_METADATA);
                carry_over(metadata, old.get("metadata"), &["ownerReferences"]);
            }
            match object.get("status") {
                Some(status) => object::set(&mut new, "status", status.clone()),
                None => object::remove(&mut new, "status"),
            }
            new
        }
        Part::Main => {
            let mut new = object;
            carry_over(object::part(&mut new, "metadata"), old.get("metadata"), &SERVER_METADATA);
            carry_over(&mut new, Some(old), &["apiVersion", "kind"]);
            if kind.has_status() {
                carry_over(&mut new, Some(old), &["status"]);
            }
            new
        }
    }
}

/// Whether a write puts a finalizer on an object that is being deleted.
fn added_while_terminating(old: &Value, new: &Value) -> bool {
    let had = object::list(old, "/metadata/finalizers");
    let mut has = object::list(new, "/metadata/finalizers").iter();
    object::is_terminating(old) && has.any(|finalizer| !had.contains(finalizer))
}

/// Makes `fields` of `new` what they are in `old`, absent ones included.
fn carry_over(new: &mut Value, old: Option<&Value>, fields: &[&str]) {
    for field in fields {
        match old.and_then(|old| old.get(field)) {
            Some(value) => object::set(new, field, value.clone()),
            None => object::remove(new, field),
        }
    }
}

/// Whether anything but metadata and status differs.
fn spec_differs(old: &Value, new: &Value) -> bool {
    fn spec(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let fields = object.as_object().into_iter().flatten();
        fields.filter(|(field, _)| !matches!(field.as_str(), "metadata" | "status"))
    }
    !spec(old).eq(spec(new))
}
