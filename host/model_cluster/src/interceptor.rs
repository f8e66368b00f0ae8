//! What stands between a controller and its API server in a played run: every request passes it,
//! and every answer.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use node_remedy_decide::Time;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow, Object, Scope, Watch};
use serde_json::Value;

/// A request, as an API server takes it in.
pub struct Request<'a> {
    /// As audit logs name it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: &'a str,
    /// The API group; empty for the core.
    pub group: String,
    /// Such as `pods/status`.
    pub resource: String,
    /// None for cluster-scoped kinds and for all namespaces.
    pub namespace: Option<&'a str>,
    /// Requests that create or select name no object.
    pub name: Option<&'a str>,
    /// Makes what is created, replaced or merged into a status: most interceptors do not ask.
    sent: Option<Box<dyn Fn() -> Option<Value> + 'a>>,
}

/// What every request of the controller passes, and every answer to it.
pub trait Interceptor: 'static {
    /// Lets a request through, at once or later, or denies it.
    fn admit(&self, request: &Request<'_>) -> impl Future<Output = Result<(), ClusterError>>;

    /// How long after its client has given up a write is carried out; `None` if it is carried out as ever.
    fn carried_out_late(&self, _: &Request<'_>) -> Option<Duration> {
        None
    }

    /// How often the API server was started anew: what it was to carry out before that, it never does.
    fn starts(&self) -> u64 {
        0
    }

    /// Lets the answer to what was carried out through, or loses it.
    fn answer(&self, _: &Request<'_>) -> impl Future<Output = Result<(), ClusterError>> {
        std::future::ready(Ok(()))
    }

    /// Lets what a watch of this resource tells through, at once or later, or breaks the watch.
    fn told(&self, _resource: &str) -> impl Future<Output = Result<(), ClusterError>> {
        std::future::ready(Ok(()))
    }
}

impl Request<'_> {
    /// What is created, replaced or merged.
    pub fn object(&self) -> Option<Value> {
        self.sent.as_ref().and_then(|make| make())
    }

    /// Whether it changes anything.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

/// Lets everything through.
pub struct Open;

impl Interceptor for Open {
    async fn admit(&self, _: &Request<'_>) -> Result<(), ClusterError> {
        Ok(())
    }
}

/// An interceptor of whatever kind: a controller is compiled once for all of them.
pub trait AnyInterceptor {
    /// [`Interceptor::admit`].
    fn admit<'a>(&'a self, request: &'a Request<'_>) -> Passing<'a>;
    /// [`Interceptor::carried_out_late`].
    fn carried_out_late(&self, request: &Request<'_>) -> Option<Duration>;
    /// [`Interceptor::starts`].
    fn starts(&self) -> u64;
    /// [`Interceptor::answer`].
    fn answer<'a>(&'a self, request: &'a Request<'_>) -> Passing<'a>;
    /// [`Interceptor::told`].
    fn told<'a>(&'a self, resource: &'a str) -> Passing<'a>;
}

/// What comes of something that passes an interceptor.
pub type Passing<'a> = LocalBoxFuture<'a, Result<(), ClusterError>>;

impl<D: Interceptor> AnyInterceptor for D {
    fn admit<'a>(&'a self, request: &'a Request<'_>) -> Passing<'a> {
        Box::pin(Interceptor::admit(self, request))
    }

    fn carried_out_late(&self, request: &Request<'_>) -> Option<Duration> {
        Interceptor::carried_out_late(self, request)
    }

    fn starts(&self) -> u64 {
        Interceptor::starts(self)
    }

    fn answer<'a>(&'a self, request: &'a Request<'_>) -> Passing<'a> {
        Box::pin(Interceptor::answer(self, request))
    }

    fn told<'a>(&'a self, resource: &'a str) -> Passing<'a> {
        Box::pin(Interceptor::told(self, resource))
    }
}

/// A cluster behind an interceptor.
#[derive(Clone)]
pub struct Guarded<C> {
    server: C,
    interceptor: Rc<dyn AnyInterceptor>,
}

impl<C> Guarded<C> {
    /// `server` behind `interceptor`.
    pub fn new(server: C, interceptor: Rc<dyn AnyInterceptor>) -> Self {
        Self { server, interceptor }
    }
}

impl<C: Cluster> Guarded<C> {
    async fn pass<T>(
        &self,
        asked: Request<'_>,
        carried_out: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        self.interceptor.admit(&asked).await?;
        let answer = carried_out.await?;
        self.interceptor.answer(&asked).await?;
        Ok(answer)
    }

    /// The same for a write, which may be carried out when nobody waits for it any more, and when whoever asked
    /// may be dead: `later` does it then.
    async fn write<T>(
        &self,
        asked: Request<'_>,
        carried_out: impl Future<Output = Result<T, ClusterError>>,
        later: impl FnOnce(C) -> LocalBoxFuture<'static, ()>,
    ) -> Result<T, ClusterError> {
        let Some(wait) = self.interceptor.carried_out_late(&asked) else {
            return self.pass(asked, carried_out).await;
        };
        self.interceptor.admit(&asked).await?;
        let (work, interceptor) = (later(self.server.clone()), Rc::clone(&self.interceptor));
        let starts = interceptor.starts();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(wait).await;
            if interceptor.starts() == starts {
                work.await;
            }
        });
        Err(ClusterError::Unavailable("nobody answered in time".to_owned()))
    }
}

/// What came of a write that nobody waits for.
async fn unheard<T>(written: impl Future<Output = Result<T, ClusterError>>) {
    drop(written.await);
}

/// [`At`] of its own.
#[derive(Clone)]
struct Place {
    namespace: Option<String>,
    name: String,
}

impl Place {
    fn of(at: At<'_>) -> Self {
        Self { namespace: at.namespace.map(str::to_owned), name: at.name.to_owned() }
    }

    fn at(&self) -> At<'_> {
        At { namespace: self.namespace.as_deref(), name: &self.name }
    }
}

fn select<'a, K: Object>(verb: &'a str, scope: &'a Scope) -> Request<'a> {
    Request { namespace: scope.namespace.as_deref(), ..request::<K>(verb, "") }
}

fn one<'a, K: Object>(verb: &'a str, part: &str, at: At<'a>) -> Request<'a> {
    Request { namespace: at.namespace, name: Some(at.name), ..request::<K>(verb, part) }
}

fn whole<'a, K: Object>(verb: &'a str, part: &str, object: &'a K) -> Request<'a> {
    let meta = object.meta();
    Request {
        namespace: meta.namespace.as_deref(),
        name: meta.name.as_deref().filter(|_| verb != "create"),
        sent: Some(Box::new(move || serde_json::to_value(object).ok())),
        ..request::<K>(verb, part)
    }
}

fn request<'a, K: Object>(verb: &'a str, part: &str) -> Request<'a> {
    Request {
        verb,
        group: K::group(&()).into_owned(),
        resource: format!("{}{part}", K::plural(&())),
        namespace: None,
        name: None,
        sent: None,
    }
}

impl<C: Cluster> Cluster for Guarded<C> {
    async fn list_each<K: Object>(
        &self,
        scope: &Scope,
        each: impl FnMut(Read<K>),
    ) -> Result<String, ClusterError> {
        let mut all = Vec::new();
        let listed = self.server.list_each(scope, |read| all.push(read));
        let version = self.pass(select::<K>("list", scope), listed).await?;
        all.into_iter().for_each(each);
        Ok(version)
    }

    async fn watch<K: Object>(&self, scope: &Scope, from: &str) -> Result<Watch<K>, ClusterError> {
        let told = self.pass(select::<K>("watch", scope), self.server.watch(scope, from)).await?;
        let interceptor = self.interceptor.clone();
        let passed = told.then(move |change| {
            let interceptor = interceptor.clone();
            async move {
                interceptor.told(&K::plural(&())).await?;
                change
            }
        });
        Ok(passed.boxed_local())
    }

    async fn get<K: Object>(&self, at: At<'_>) -> Result<Option<K>, ClusterError> {
        self.pass(one::<K>("get", "", at), self.server.get(at)).await
    }

    async fn create<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let later = |server: C| {
            let object = object.clone();
            unheard(async move { server.create(&object).await }).boxed_local()
        };
        self.write(whole("create", "", object), self.server.create(object), later).await
    }

    async fn replace<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let later = |server: C| {
            let object = object.clone();
            unheard(async move { server.replace(&object).await }).boxed_local()
        };
        self.write(whole("update", "", object), self.server.replace(object), later).await
    }

    async fn replace_status<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let later = |server: C| {
            let object = object.clone();
            unheard(async move { server.replace_status(&object).await }).boxed_local()
        };
        let request = whole("update", "/status", object);
        self.write(request, self.server.replace_status(object), later).await
    }

    async fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> Result<K, ClusterError> {
        let later = |server: C| {
            let (place, patch) = (Place::of(at), patch.clone());
            unheard(async move { server.patch::<K>(place.at(), &patch).await }).boxed_local()
        };
        self.write(one::<K>("patch", "", at), self.server.patch(at, patch), later).await
    }

    async fn merge_status<K: Object>(&self, at: At<'_>, patch: &Value) -> Result<K, ClusterError> {
        let sent: Box<dyn Fn() -> Option<Value>> = Box::new(|| Some(patch.clone()));
        let request = Request { sent: Some(sent), ..one::<K>("patch", "/status", at) };
        let later = |server: C| {
            let (place, patch) = (Place::of(at), patch.clone());
            unheard(async move { server.merge_status::<K>(place.at(), &patch).await }).boxed_local()
        };
        self.write(request, self.server.merge_status(at, patch), later).await
    }

    async fn delete<K: Object>(&self, at: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let later = |server: C| {
            let (place, how) = (Place::of(at), how.clone());
            unheard(async move { server.delete::<K>(place.at(), &how).await }).boxed_local()
        };
        let request = one::<K>("delete", "", at);
        self.write(request, self.server.delete::<K>(at, how), later).await
    }

    async fn evict(&self, pod: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let later = |server: C| {
            let (place, how) = (Place::of(pod), how.clone());
            unheard(async move { server.evict(place.at(), &how).await }).boxed_local()
        };
        let request = one::<Pod>("create", "/eviction", pod);
        self.write(request, self.server.evict(pod, how), later).await
    }

    async fn server_time(&self) -> Result<Time, ClusterError> {
        self.server.server_time().await
    }
}
