//! Small worlds for this crate's own tests: three healthy nodes in virtual time, and a whole
//! night in which a [`Door`] before the API server sees, delays or denies what is asked.

use std::future::Future;
use std::path::Path;
use std::rc::Rc;

use node_remedy_decide::Time;
use node_remedy_world::scenario::START;
use node_remedy_world::{Scenario, World};
use serde_json::Value;

use crate::clock::{Clock, VirtualClock};
use crate::cluster::{At, Cluster, ClusterError, DeleteHow, Listed, Object, Scope, Watch};
use crate::simulate::cluster::ModelCluster;
use crate::simulate::shared::{Shared, drive};
use crate::simulate::{Part, Played, play_through};

const QUIET: &str = "
title: nothing happens
seed: 1
duration: 10m
nodes:
- { name: node, count: 3 }
happenings: []
expect:
- { fact: nodeCreated, times: 3 }
";

/// What a test gets.
pub(crate) struct Bench {
    pub(crate) shared: Shared,
    pub(crate) virtual_clock: VirtualClock,
    pub(crate) clock: Clock,
}

impl Bench {
    /// A client of the world's API server.
    pub(crate) fn client(&self, name: &str) -> ModelCluster {
        ModelCluster::new(self.shared.clone(), self.virtual_clock.clone(), name)
    }
}

/// Runs a test in virtual time, in a world in which nothing happens.
pub(crate) fn in_quiet_world<F: Future<Output = ()>>(test: impl FnOnce(Bench) -> F) {
    let scenario = Scenario::parse("quiet", QUIET, &|file| Err(file.to_owned())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let virtual_clock = VirtualClock::start_at(START);
        let shared = Shared::new(World::new(&scenario), virtual_clock.clone());
        let driven = tokio::task::spawn_local({
            let shared = shared.clone();
            async move { drive(shared).await }
        });
        let clock = Clock::simulated(virtual_clock.clone());
        test(Bench { shared, virtual_clock, clock }).await;
        driven.abort();
    });
}

/// The scenario of a file in `examples/scenarios`, changed as a test needs it.
pub(crate) fn example(file: &str, change: impl FnOnce(String) -> String) -> Scenario {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios"));
    let text = change(std::fs::read_to_string(folder.join(file)).unwrap());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    Scenario::parse(file, &text, &read).unwrap()
}

/// Plays a night with `door` between the controller and the API server.
pub(crate) fn play_behind<D: Door>(scenario: &Scenario, door: &Rc<D>) -> Played {
    let between = |server| Guarded { server, door: door.clone() };
    play_through(scenario, Part::With, between).unwrap()
}

/// Lets everything through.
pub(crate) struct Open;

impl Door for Open {
    async fn admit(&self, _: &Request<'_>) -> Result<(), ClusterError> {
        Ok(())
    }
}

/// A night with a slow BMC that, once it was told `off`, says yes and does nothing: its machine is
/// switched on by hand, and lost again later.
pub(crate) fn night_of_a_failed_on() -> Played {
    let happenings = "happenings:
- { at: 1s, bmcFault: { node: node-a, fault: off_after, value: 20000 } }
- { at: 85s, bmcFault: { node: node-a, fault: stuck } }
- { at: 10m, powerOnByHand: node-a }
- { at: 11m, bmcFault: { node: node-a, fault: none } }
- { at: 25m, kubeletStops: node-a }";
    let change = |text: String| {
        text.replace("duration: 10m", "duration: 30m").replace("happenings:", happenings)
    };
    play_behind(&example("lost-node.yaml", change), &Rc::new(Open))
}

/// A request, as an API server takes it in.
pub(crate) struct Request<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: String,
    /// Such as `pods/status`.
    pub(crate) resource: String,
    pub(crate) namespace: Option<&'a str>,
    /// Requests that create or select name no object.
    pub(crate) name: Option<&'a str>,
    /// What is created or replaced.
    pub(crate) object: Option<Value>,
}

/// What every request of the controller passes, and every answer to it.
pub(crate) trait Door: 'static {
    /// Lets a request through, at once or later, or denies it.
    fn admit(&self, request: &Request<'_>) -> impl Future<Output = Result<(), ClusterError>>;

    /// Lets the answer to what was carried out through, or loses it.
    fn answer(&self, _: &Request<'_>) -> Result<(), ClusterError> {
        Ok(())
    }
}

/// The simulated API server behind a door.
struct Guarded<D> {
    server: ModelCluster,
    door: Rc<D>,
}

impl<D> Clone for Guarded<D> {
    fn clone(&self) -> Self {
        Self { server: self.server.clone(), door: self.door.clone() }
    }
}

impl<D: Door> Guarded<D> {
    async fn pass<T>(
        &self,
        asked: Request<'_>,
        carried_out: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        self.door.admit(&asked).await?;
        let answer = carried_out.await?;
        self.door.answer(&asked)?;
        Ok(answer)
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
        object: Some(serde_json::to_value(object).unwrap()),
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
        object: None,
    }
}

impl<D: Door> Cluster for Guarded<D> {
    async fn list<K: Object>(&self, scope: &Scope) -> Result<Listed<K>, ClusterError> {
        self.pass(select::<K>("list", scope), self.server.list(scope)).await
    }

    async fn watch<K: Object>(&self, scope: &Scope, from: &str) -> Result<Watch<K>, ClusterError> {
        self.pass(select::<K>("watch", scope), self.server.watch(scope, from)).await
    }

    async fn get<K: Object>(&self, at: At<'_>) -> Result<Option<K>, ClusterError> {
        self.pass(one::<K>("get", "", at), self.server.get(at)).await
    }

    async fn create<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        self.pass(whole("create", "", object), self.server.create(object)).await
    }

    async fn replace<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        self.pass(whole("update", "", object), self.server.replace(object)).await
    }

    async fn replace_status<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        self.pass(whole("update", "/status", object), self.server.replace_status(object)).await
    }

    async fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> Result<K, ClusterError> {
        self.pass(one::<K>("patch", "", at), self.server.patch(at, patch)).await
    }

    async fn merge_status<K: Object>(&self, at: At<'_>, patch: &Value) -> Result<K, ClusterError> {
        self.pass(one::<K>("patch", "/status", at), self.server.merge_status(at, patch)).await
    }

    async fn delete<K: Object>(&self, at: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        self.pass(one::<K>("delete", "", at), self.server.delete::<K>(at, how)).await
    }

    async fn server_time(&self) -> Result<Time, ClusterError> {
        self.server.server_time().await
    }
}
