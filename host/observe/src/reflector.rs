//! Keeps a store equal to what the API server has: list, then watch, for ever.
//!
//! A 410, and a watch that is frozen, lists again; any other failure backs off and resumes from
//! the last resourceVersion. An object that cannot be read is kept apart, and what comes after it is
//! followed. Nothing here decides, and nothing is ever dropped silently.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use node_remedy_decide::bug::{Bug, is_seeded};
use node_remedy_runtime::cluster::unread::{Read, Unread, key_of, version_of};
use node_remedy_runtime::cluster::{Change, Cluster, ClusterError, Object, Scope};

use crate::store::Store;

/// The first wait after a failure.
const BACKOFF_MIN: Duration = Duration::from_millis(200);
/// Long enough to spare a struggling server, short enough to stay within freshness.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// A watch that is silent for so long is frozen: where nothing changes the API server sends a bookmark a minute.
const SILENT_MAX: Duration = Duration::from_secs(150);

/// A server that closes watches at once must not be asked in a tight loop.
const REWATCH_PAUSE: Duration = Duration::from_millis(20);

/// Called on every answer of the server, so that freshness can be judged.
pub type OnAnswer = Rc<dyn Fn()>;

/// Mirrors the objects of `K` in `scope` into `store`, each pruned by `see`.
pub async fn reflect<C, K, V, S>(
    cluster: C,
    scope: Scope,
    store: Rc<Store<V>>,
    see: S,
    on_answer: OnAnswer,
) -> Infallible
where
    C: Cluster,
    K: Object,
    V: PartialEq,
    S: Fn(K, Option<&V>) -> Option<V>,
{
    let mut backoff = BACKOFF_MIN;
    loop {
        let from = match list(&cluster, &scope, &store, &see).await {
            Ok(from) => from,
            Err(error) => {
                store.set_followed(false);
                pause(&error, &mut backoff, &K::plural(&())).await;
                continue;
            }
        };
        on_answer();
        backoff = BACKOFF_MIN;
        follow(&cluster, &scope, &store, &see, &on_answer, from).await;
    }
}

async fn list<C, K, V, S>(
    cluster: &C,
    scope: &Scope,
    store: &Store<V>,
    see: &S,
) -> Result<String, ClusterError>
where
    C: Cluster,
    K: Object,
    V: PartialEq,
    S: Fn(K, Option<&V>) -> Option<V>,
{
    let (mut objects, mut unread) = (Vec::new(), BTreeMap::new());
    let keep = |read: Read<K>| {
        let key = key_of(&read);
        match read {
            Ok(object) => {
                let seen = see(object, store.all().get(&*key));
                objects.extend(seen.map(|seen| (key.into(), seen)));
            }
            Err(one) => {
                warn_of::<K>(&key, &one);
                unread.insert(key, one);
            }
        }
    };
    let version = cluster.list_each(scope, keep).await?;
    store.replace(objects, unread);
    Ok(version)
}

/// Watches until the resourceVersion is gone.
async fn follow<C, K, V, S>(
    cluster: &C,
    scope: &Scope,
    store: &Store<V>,
    see: &S,
    on_answer: &OnAnswer,
    mut from: String,
) where
    C: Cluster,
    K: Object,
    V: PartialEq,
    S: Fn(K, Option<&V>) -> Option<V>,
{
    let mut backoff = BACKOFF_MIN;
    loop {
        let mut watch = match cluster.watch::<K>(scope, &from).await {
            Ok(watch) => watch,
            Err(ClusterError::Gone) => return,
            Err(error) => {
                store.set_followed(false);
                pause(&error, &mut backoff, &K::plural(&())).await;
                continue;
            }
        };
        store.set_followed(true);
        loop {
            let silent_max =
                if is_seeded(Bug::SilentWatchFollowed) { Duration::MAX } else { SILENT_MAX };
            let Ok(next) = tokio::time::timeout(silent_max, watch.next()).await else {
                store.set_followed(false);
                let silent_s = SILENT_MAX.as_secs();
                tracing::warn!(
                    kind = &*K::plural(&()),
                    silent_s,
                    "a watch is frozen; listing again"
                );
                return;
            };
            let Some(change) = next else { break };
            let version = match change {
                Ok(Change::Applied(read)) => {
                    let (version, key) = (version_of(&read), key_of(&read));
                    put(store, see, key, read);
                    version
                }
                Ok(Change::Deleted(read)) => {
                    store.remove(&key_of(&read));
                    version_of(&read)
                }
                Ok(Change::Bookmark(version)) => Some(version),
                Err(ClusterError::Gone) => return,
                Err(_) if is_seeded(Bug::WatchNotResumed) => std::future::pending().await,
                Err(error) => {
                    store.set_followed(false);
                    pause(&error, &mut backoff, &K::plural(&())).await;
                    break;
                }
            };
            on_answer();
            backoff = BACKOFF_MIN;
            from = version.unwrap_or(from);
        }
        tokio::time::sleep(REWATCH_PAUSE).await;
    }
}

fn put<K, V, S>(store: &Store<V>, see: &S, key: String, read: Read<K>)
where
    K: Object,
    V: PartialEq,
    S: Fn(K, Option<&V>) -> Option<V>,
{
    let object = match read {
        Ok(object) => object,
        Err(one) => {
            warn_of::<K>(&key, &one);
            return store.apply_unread(key, one);
        }
    };
    let seen = see(object, store.all().get(&*key));
    match seen {
        Some(seen) => store.apply(key, seen),
        None => store.remove(&key),
    }
}

fn warn_of<K: Object>(key: &str, unread: &Unread) {
    tracing::warn!(kind = &*K::kind(&()), key, why = unread.why(), "failed to read an object");
}

async fn pause(error: &ClusterError, backoff: &mut Duration, kind: &str) {
    let wait = match error {
        ClusterError::Throttled { after } => (*after).max(*backoff),
        ClusterError::Conflict(_)
        | ClusterError::AlreadyExists(_)
        | ClusterError::NotFound(_)
        | ClusterError::Gone
        | ClusterError::Invalid(_)
        | ClusterError::Denied(_)
        | ClusterError::Unavailable(_)
        | ClusterError::Unreadable(_) => *backoff,
    };
    tracing::warn!(kind, %error, wait_ms = wait.as_millis(), "failed to watch; trying again");
    tokio::time::sleep(wait).await;
    *backoff = (*backoff * 2).min(BACKOFF_MAX);
}
