//! The cluster seam: everything node-remedy ever says to an API server.
//!
//! Two implementations: [`kube::KubeCluster`] (a real API server) and
//! `ModelCluster` of `host/model_cluster` (the world's). Nothing above this
//! file knows which one it talks to. It deliberately offers no caches, no retries
//! and no interpretation: those are `observe` and `act`.

pub mod annotate;
pub mod kube;
mod object;
pub mod unread;
pub mod whoami;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use futures::stream::LocalBoxStream;
use node_remedy_decide::Time;

pub use crate::cluster::unread::{Read, Unread};
pub use object::Object;

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// `None`: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// A field selector such as `spec.nodeName=node-a`.
    pub fields: Option<String>,
}

impl Scope {
    /// Every object of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of one namespace.
    pub fn within(namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), fields: None }
    }

    /// Narrowed to `field=value`, also, judged by the API server.
    #[must_use]
    pub fn matching(mut self, field: &str, value: &str) -> Self {
        let before = self.fields.take().map(|fields| fields + ",").unwrap_or_default();
        self.fields = Some(format!("{before}{field}={value}"));
        self
    }
}

/// One object by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<'a> {
    /// `None` for cluster-scoped kinds.
    pub namespace: Option<&'a str>,
    /// `metadata.name`.
    pub name: &'a str,
}

impl<'a> At<'a> {
    /// A cluster-scoped object.
    pub fn cluster(name: &'a str) -> Self {
        Self { namespace: None, name }
    }

    /// A namespaced object.
    pub fn within(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace: Some(namespace), name }
    }
}

/// Objects and the resourceVersion from which to watch on.
#[derive(Debug)]
pub struct Listed<K> {
    /// In the order of the server's answer.
    pub items: Vec<K>,
    /// The collection's resourceVersion.
    pub resource_version: String,
}

/// One event of a watch.
#[derive(Debug)]
pub enum Change<K> {
    /// Added or modified.
    Applied(Read<K>),
    /// Deleted; the object's last state.
    Deleted(Read<K>),
    /// Nothing changed up to this resourceVersion.
    Bookmark(String),
}

/// What a delete says to the server. All of it goes into the body: in a DELETE
/// with a body the query's `gracePeriodSeconds` is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteHow {
    /// Seconds; `None` leaves the kind's default, `Some(0)` is a force delete.
    pub grace_s: Option<u32>,
    /// The delete is refused with a conflict if the object has another UID.
    pub uid: Option<String>,
    /// The delete is refused with a conflict if the object was written since.
    pub resource_version: Option<String>,
    /// What it owns goes with it; the default of some kinds is to leave it behind.
    pub with_dependents: bool,
}

/// How a call to the API server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// 409, resourceVersion or precondition: somebody else wrote first.
    #[error("the object changed meanwhile: {0}")]
    Conflict(String),
    /// 409 on create.
    #[error("the object exists already: {0}")]
    AlreadyExists(String),
    /// 404 on a write.
    #[error("the object does not exist: {0}")]
    NotFound(String),
    /// 410: the resourceVersion is too old, list again.
    #[error("the watched resourceVersion is gone")]
    Gone,
    /// 400, 422: the server will never take this request.
    #[error("the API server refused the request as invalid: {0}")]
    Invalid(String),
    /// 401, 403.
    #[error("the API server denied the request: {0}")]
    Denied(String),
    /// 429: back off for at least this long.
    #[error("the API server asks to slow down")]
    Throttled {
        /// From `Retry-After`; one second where it is absent.
        after: Duration,
    },
    /// No answer, 5xx, broken stream: the request may or may not have been carried out.
    #[error("the API server did not answer: {0}")]
    Unavailable(String),
    /// The answer, or an object in it, could not be understood.
    #[error("failed to read the API server's answer: {0}")]
    Unreadable(String),
}

impl ClusterError {
    /// Whether the request may have been carried out all the same.
    pub fn may_have_been_done(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unreadable(_) => true,
            Self::Throttled { .. }
            | Self::Gone
            | Self::Conflict(_)
            | Self::AlreadyExists(_)
            | Self::NotFound(_)
            | Self::Invalid(_)
            | Self::Denied(_) => false,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::Unavailable(_) | Self::Gone => true,
            Self::Conflict(_)
            | Self::AlreadyExists(_)
            | Self::NotFound(_)
            | Self::Invalid(_)
            | Self::Denied(_)
            | Self::Unreadable(_) => false,
        }
    }
}

/// A stream of changes; it ends when the server closes the watch.
pub type Watch<K> = LocalBoxStream<'static, Result<Change<K>, ClusterError>>;

/// What node-remedy asks of an API server. Reads are quorum reads: they carry no
/// resourceVersion, so a stale cache of the server never answers them.
pub trait Cluster: Clone + 'static {
    /// All objects in `scope`, each as it is read, so that never much more than one page of them is in
    /// memory. Answers the collection's resourceVersion.
    fn list_each<K: Object>(
        &self,
        scope: &Scope,
        each: impl FnMut(Read<K>),
    ) -> impl Future<Output = Result<String, ClusterError>>;

    /// All objects in `scope`, for whom a part of them is as good as none: one that cannot be read is
    /// [`ClusterError::Unreadable`].
    fn list<K: Object>(
        &self,
        scope: &Scope,
    ) -> impl Future<Output = Result<Listed<K>, ClusterError>> {
        async move {
            let mut all = Vec::new();
            let resource_version = self.list_each(scope, |read| all.push(read)).await?;
            let unreadable = |read: &Read<K>, why: &Unread| {
                let (kind, key) = (K::kind(&()), crate::cluster::unread::key_of(read));
                ClusterError::Unreadable(format!("{kind} {key}: {}", why.why()))
            };
            if let Some((read, why)) = all.iter().find_map(|one| Some((one, one.as_ref().err()?))) {
                return Err(unreadable(read, why));
            }
            Ok(Listed { items: all.into_iter().flatten().collect(), resource_version })
        }
    }

    /// Changes in `scope` after `resource_version`, with bookmarks.
    fn watch<K: Object>(
        &self,
        scope: &Scope,
        resource_version: &str,
    ) -> impl Future<Output = Result<Watch<K>, ClusterError>>;

    /// One object, or `None` where there is none of that name.
    fn get<K: Object>(&self, at: At<'_>) -> impl Future<Output = Result<Option<K>, ClusterError>>;

    /// Creates `object`; its name must be set.
    fn create<K: Object>(&self, object: &K) -> impl Future<Output = Result<K, ClusterError>>;

    /// Replaces the object, guarded by its resourceVersion.
    fn replace<K: Object>(&self, object: &K) -> impl Future<Output = Result<K, ClusterError>>;

    /// Replaces the object's status, guarded by its resourceVersion.
    fn replace_status<K: Object>(
        &self,
        object: &K,
    ) -> impl Future<Output = Result<K, ClusterError>>;

    /// Applies a JSON patch; a failed `test` is [`ClusterError::Invalid`] or `Conflict`.
    fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> impl Future<Output = Result<K, ClusterError>>;

    /// Merges `patch` into the object's status subresource.
    fn merge_status<K: Object>(
        &self,
        at: At<'_>,
        patch: &serde_json::Value,
    ) -> impl Future<Output = Result<K, ClusterError>>;

    /// Deletes the object; `false` where there was none.
    fn delete<K: Object>(
        &self,
        at: At<'_>,
        how: &DeleteHow,
    ) -> impl Future<Output = Result<bool, ClusterError>>;

    /// Evicts a pod: deletes it where its disruption budgets allow it, and answers
    /// [`ClusterError::Throttled`] where not; `false` where there was none.
    fn evict(
        &self,
        pod: At<'_>,
        how: &DeleteHow,
    ) -> impl Future<Output = Result<bool, ClusterError>>;

    /// The API server's own clock; also the probe that it answers at all.
    fn server_time(&self) -> impl Future<Output = Result<Time, ClusterError>>;
}
