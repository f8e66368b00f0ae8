//! A local copy of some objects of the API server, kept current by list and watch.
//!
//! Small on purpose, and not the controller's: what the kubelets see must not depend on the code
//! under test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::time::Task;

/// A failed list or watch begins again after this long: an API server in trouble is not helped by
/// haste.
const BEGIN_AGAIN_AFTER: Duration = Duration::from_millis(250);

type Objects<K> = Arc<Mutex<BTreeMap<String, K>>>;

/// The copy. It ends with its owner.
#[derive(Debug)]
pub struct Mirror<K> {
    objects: Objects<K>,
    changes: watch::Receiver<u64>,
    _task: Task,
}

impl<K> Mirror<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Begins to copy what `api` has under `fields` (a field selector; empty for all).
    #[must_use]
    pub fn start(api: Api<K>, fields: &str) -> Self {
        let objects = Objects::<K>::default();
        let (announce, changes) = watch::channel(0);
        let copier = Copier { api, fields: fields.to_owned(), objects: objects.clone(), announce };
        Self { objects, changes, _task: Task::spawn(copier.run()) }
    }

    /// Waits for the first complete list.
    pub async fn synced(&mut self) {
        // The sender lives in this mirror's task, so waiting ends only with success.
        let _ = self.changes.wait_for(|changes| *changes > 0).await;
    }

    /// Waits for the next change.
    pub async fn changed(&mut self) {
        let _ = self.changes.changed().await;
    }

    /// All objects, by namespace and name.
    #[must_use]
    pub fn objects(&self) -> Vec<K> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

struct Copier<K> {
    api: Api<K>,
    fields: String,
    objects: Objects<K>,
    announce: watch::Sender<u64>,
}

impl<K> Copier<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    async fn run(self) {
        loop {
            // Whatever ended it (a closed connection, 410, an API server that starts), the cure is
            // the same: list again.
            let _ = self.list_and_watch().await;
            tokio::time::sleep(BEGIN_AGAIN_AFTER).await;
        }
    }

    async fn list_and_watch(&self) -> kube::Result<()> {
        let list = self.api.list(&ListParams::default().fields(&self.fields)).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        self.change(|objects| {
            *objects = list.items.into_iter().map(|object| (key(&object), object)).collect();
        });
        let parameters = WatchParams::default().fields(&self.fields);
        let mut events = self.api.watch(&parameters, &version).await?.boxed();
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.change(|objects| {
                        objects.insert(key(&object), object);
                    });
                }
                WatchEvent::Deleted(object) => self.change(|objects| {
                    objects.remove(&key(&object));
                }),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
        }
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, K>)) {
        change(&mut self.objects.lock().unwrap_or_else(PoisonError::into_inner));
        self.announce.send_modify(|changes| *changes += 1);
    }
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
