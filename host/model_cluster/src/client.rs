//! The cluster seam over the world's API server.
//!
//! Objects cross as JSON, exactly as they would on the wire, so that a field a model
//! forgets is missing here too. Every request takes [`ROUND_TRIP`] of virtual time.

use std::rc::Rc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use node_remedy_decide::Time;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{
    At, Change, Cluster, ClusterError, DeleteHow, Object, Scope, Watch, unread,
};
use node_remedy_world::api::{
    ApiError, ChangeType, DeleteOptions, Deleted, Key, Kind, Part, Selector, WatchEvent,
};
use serde_json::Value;

use crate::driver::Shared;

/// A request to an API server on the same network.
pub const ROUND_TRIP: Duration = Duration::from_millis(4);
/// As an API server does for a watcher that has nothing to hear.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

/// The world's API server, as the client `name`.
#[derive(Clone)]
pub struct ModelCluster {
    shared: Shared,
    name: Rc<str>,
}

impl ModelCluster {
    /// A client of that name.
    pub fn new(shared: Shared, name: &str) -> Self {
        Self { shared, name: Rc::from(name) }
    }

    async fn ask<T>(
        &self,
        act: impl FnOnce(&mut node_remedy_world::api::Client<'_>) -> Result<T, ApiError>,
    ) -> Result<T, ClusterError> {
        tokio::time::sleep(ROUND_TRIP / 2).await;
        let answer = self.shared.with(|world| act(&mut world.api().client(&self.name)));
        tokio::time::sleep(ROUND_TRIP / 2).await;
        answer.map_err(|error| classify(&error))
    }
}

fn classify(error: &ApiError) -> ClusterError {
    let text = error.to_string();
    match error {
        ApiError::NotFound(_) => ClusterError::NotFound(text),
        ApiError::AlreadyExists(_) => ClusterError::AlreadyExists(text),
        ApiError::Conflict(_) => ClusterError::Conflict(text),
        ApiError::Expired { .. } => ClusterError::Gone,
        ApiError::Invalid(_) | ApiError::BadRequest(_) => ClusterError::Invalid(text),
        ApiError::TooManyRequests(_) => {
            ClusterError::Throttled { after: std::time::Duration::from_secs(1) }
        }
        ApiError::Internal(_) => ClusterError::Unavailable(text),
    }
}

fn options(how: &DeleteHow) -> DeleteOptions {
    let grace_s = how.grace_s.map(u64::from);
    DeleteOptions { grace_s, uid: how.uid.clone(), resource_version: how.resource_version.clone() }
}

fn was_there(answer: Result<Deleted, ClusterError>) -> Result<bool, ClusterError> {
    match answer {
        Ok(Deleted::Gone(_) | Deleted::Waiting(_)) => Ok(true),
        Err(ClusterError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn kind_of<K: Object>() -> Result<Kind, ClusterError> {
    let (group, plural) = (K::group(&()), K::plural(&()));
    Kind::of_plural(&group, &plural)
        .ok_or_else(|| ClusterError::Invalid(format!("the world knows no {plural}.{group}")))
}

fn key_of<K: Object>(at: At<'_>) -> Result<Key, ClusterError> {
    let kind = kind_of::<K>()?;
    Ok(match at.namespace {
        Some(namespace) => Key::within(kind, namespace, at.name),
        None => Key::cluster(kind, at.name),
    })
}

fn selector(scope: &Scope) -> Result<Selector, ClusterError> {
    Selector::read(scope.namespace.as_deref(), scope.fields.as_deref())
        .map_err(|error| classify(&error))
}

fn typed<K: Object>(object: &Value) -> Result<K, ClusterError> {
    K::deserialize(object).map_err(|error| ClusterError::Unreadable(error.to_string()))
}

fn plain<K: Object>(object: &K) -> Result<Value, ClusterError> {
    serde_json::to_value(object).map_err(|error| ClusterError::Invalid(error.to_string()))
}

fn change<K: Object>(event: &WatchEvent) -> Change<K> {
    let object = unread::read(Value::clone(&event.object));
    match event.change {
        ChangeType::Added | ChangeType::Modified => Change::Applied(object),
        ChangeType::Deleted => Change::Deleted(object),
    }
}

impl Cluster for ModelCluster {
    async fn list_each<K: Object>(
        &self,
        scope: &Scope,
        each: impl FnMut(Read<K>),
    ) -> Result<String, ClusterError> {
        let (kind, selector) = (kind_of::<K>()?, selector(scope)?);
        let listed = self.ask(|client| client.list(kind, &selector)).await?;
        let objects = listed.items.iter().map(|object| Value::clone(object));
        objects.map(unread::read).for_each(each);
        Ok(listed.version.to_string())
    }

    async fn watch<K: Object>(
        &self,
        scope: &Scope,
        resource_version: &str,
    ) -> Result<Watch<K>, ClusterError> {
        let (kind, selector) = (kind_of::<K>()?, selector(scope)?);
        let from: u64 = resource_version
            .parse()
            .map_err(|_| ClusterError::Invalid(format!("resourceVersion {resource_version}")))?;
        let mut changes = self.shared.changes(kind, scope.namespace.as_deref());
        let first = {
            changes.mark_unchanged();
            self.ask(|client| client.watch(kind, &selector, from)).await?
        };
        let client = self.clone();
        let batches = stream::unfold(
            (changes, first.bookmark, Some(first.events)),
            move |(mut changes, from, waiting)| {
                let (client, selector) = (client.clone(), selector.clone());
                async move {
                    if let Some(events) = waiting {
                        return Some((Ok((events, from)), (changes, from, None)));
                    }
                    // Where nothing changes there is a bookmark now and then.
                    let changed = tokio::time::timeout(BOOKMARK_EVERY, changes.changed()).await;
                    if let Ok(changed) = changed {
                        changed.ok()?;
                    }
                    tokio::time::sleep(ROUND_TRIP / 2).await;
                    changes.mark_unchanged();
                    let seen = client.shared.with_quietly(|world| {
                        world.api().client(&client.name).watch(kind, &selector, from)
                    });
                    Some(match seen {
                        Ok(seen) => {
                            let next = seen.bookmark;
                            (Ok((seen.events, next)), (changes, next, None))
                        }
                        Err(error) => (Err(classify(&error)), (changes, from, None)),
                    })
                }
            },
        );
        let changes = batches.flat_map(|batch| {
            let changes: Vec<Result<Change<K>, ClusterError>> = match batch {
                Ok((events, version)) => events
                    .iter()
                    .map(|event| Ok(change(event)))
                    .chain([Ok(Change::Bookmark(version.to_string()))])
                    .collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(changes)
        });
        Ok(changes.boxed_local())
    }

    async fn get<K: Object>(&self, at: At<'_>) -> Result<Option<K>, ClusterError> {
        let key = key_of::<K>(at)?;
        match self.ask(|client| client.get(&key)).await {
            Ok(object) => typed(&object).map(Some),
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let (kind, object) = (kind_of::<K>()?, plain(object)?);
        let created = self.ask(|client| client.create(kind, object)).await?;
        typed(&created)
    }

    async fn replace<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let (kind, object) = (kind_of::<K>()?, plain(object)?);
        let replaced = self.ask(|client| client.update(kind, object, Part::Main)).await?;
        typed(&replaced)
    }

    async fn replace_status<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let (kind, object) = (kind_of::<K>()?, plain(object)?);
        let replaced = self.ask(|client| client.update(kind, object, Part::Status)).await?;
        typed(&replaced)
    }

    async fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> Result<K, ClusterError> {
        let key = key_of::<K>(at)?;
        let patched = self.ask(|client| client.json_patch(&key, patch, Part::Main)).await?;
        typed(&patched)
    }

    async fn merge_status<K: Object>(&self, at: At<'_>, patch: &Value) -> Result<K, ClusterError> {
        let key = key_of::<K>(at)?;
        let patched = self.ask(|client| client.merge_patch(&key, patch, Part::Status)).await?;
        typed(&patched)
    }

    async fn delete<K: Object>(&self, at: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let (key, how) = (key_of::<K>(at)?, options(how));
        was_there(self.ask(|client| client.delete(&key, &how)).await)
    }

    async fn evict(&self, pod: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let (key, how) = (key_of::<Pod>(pod)?, options(how));
        was_there(self.ask(|client| client.evict(&key, &how)).await)
    }

    async fn server_time(&self) -> Result<Time, ClusterError> {
        tokio::time::sleep(ROUND_TRIP).await;
        Ok(self.shared.with(|world| world.api().shows()))
    }
}
