//! The table against the shipped file, against what must never be in it, and against what a
//! controller really asks for: a lost node is played with an API server that denies the rest.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use node_remedy_decide::Time;
use node_remedy_sandbox::net::MemoryNet;
use node_remedy_sandbox::{Executor, NoNames, Sandbox, SeededEntropy, TokioClock};
use node_remedy_world::facts::{Fact, What};
use node_remedy_world::scenario::START;
use node_remedy_world::{Scenario, World};
use serde_json::Value;
use tokio::task::JoinSet;

use super::*;
use crate::admin::Readiness;
use crate::clock::{Clock, VirtualClock};
use crate::cluster::{At, Cluster, ClusterError, DeleteHow, Listed, Object, Scope, Watch};
use crate::controller::{Controller, Seams, Settings};
use crate::plugins::Plugins;
use crate::record::audit::LogAudit;
use crate::record::metrics::Metrics;
use crate::simulate::cluster::ModelCluster;
use crate::simulate::shared::{Shared, drive};
use crate::simulate::{CLIENT, NAMESPACE};

fn kept() -> &'static str {
    include_str!("../../../../../deploy/rbac.yaml")
}

fn example() -> String {
    manifest("node-remedy", &["bmc-credentials".to_owned()])
}

fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_shipped_roles_are_the_table() {
    assert_eq!(kept(), example(), "run `cargo xtask codegen`");
}

#[test]
fn every_object_is_a_role_or_a_binding_to_our_account() {
    let mut roles = 0;
    for object in objects(&example()) {
        match object["kind"].as_str().unwrap() {
            "ClusterRole" => {
                serde_json::from_value::<ClusterRole>(object).unwrap();
                roles += 1;
            }
            "Role" => {
                serde_json::from_value::<Role>(object).unwrap();
                roles += 1;
            }
            "ClusterRoleBinding" | "RoleBinding" => {
                let account = &object["subjects"][0];
                assert_eq!(account["kind"], "ServiceAccount", "{object}");
                assert_eq!(account["name"], ACCOUNT, "{object}");
                assert_eq!(object["roleRef"]["name"], ACCOUNT, "{object}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(roles, 6);
}

#[test]
fn no_right_can_become_more_than_it_says() {
    for right in CONTROLLER.iter().chain(&PERSON) {
        let what = format!("{}/{}", right.group, right.resource);
        assert!(!what.contains('*') && !right.verbs.contains(&"*"), "{what}");
        assert_ne!(right.group, "rbac.authorization.k8s.io");
        assert_ne!(right.group, "admissionregistration.k8s.io");
        for verb in ["impersonate", "escalate", "bind", "deletecollection", "proxy"] {
            assert!(!right.verbs.contains(&verb), "{verb} {what}");
        }
    }
    let verbs = |resource: &str| -> Vec<&str> {
        let of = CONTROLLER.iter().filter(|right| right.resource == resource);
        of.flat_map(|right| right.verbs.iter().copied()).collect()
    };
    assert_eq!(verbs("secrets"), ["get"]);
    assert_eq!(verbs("nodes"), ["get", "list", "watch", "patch"], "no node is deleted");
    for never in ["pods/exec", "pods/eviction", "nodes/proxy", "persistentvolumes", "jobs"] {
        assert_eq!(verbs(never), [""; 0]);
    }
}

#[test]
fn secrets_are_granted_by_name_or_not_at_all() {
    let of = |secrets: &[&str]| {
        let secrets: Vec<String> = secrets.iter().map(|one| (*one).to_owned()).collect();
        let objects = objects(&manifest("here", &secrets));
        let rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten();
        rules.filter(|rule| rule["resources"][0] == "secrets").cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), [] as [Value; 0]);
    let [rule] = of(&["bmc-a", "true", "1.5"]).try_into().unwrap();
    assert_eq!(rule["resourceNames"], serde_json::json!(["bmc-a", "true", "1.5"]));
    assert_eq!(rule["verbs"], serde_json::json!(["get"]));
}

#[test]
fn what_is_no_name_is_refused_before_it_is_yaml() {
    for name in ["", "-", "a]", "a, b", "a\nrules:", "A", "a..b", "*", "a-", "ä"] {
        let secrets = vec![name.to_owned()];
        let args = RbacArgs { namespace: "node-remedy".to_owned(), secrets };
        assert!(rbac(&args).unwrap_err().to_string().contains("--secret"), "{name:?}");
        let args = RbacArgs { namespace: name.to_owned(), secrets: Vec::new() };
        assert!(rbac(&args).unwrap_err().to_string().contains("--namespace"), "{name:?}");
    }
    assert!(is_name("bmc-1.rack-2", NAME_MAX) && !is_name(&"a".repeat(254), NAME_MAX));
}

/// The simulated API server, asked by an account that has the table's rights and no others.
#[derive(Clone)]
struct Guarded {
    server: ModelCluster,
    /// What of the table was needed: its line, and the verb.
    used: Rc<RefCell<BTreeSet<(usize, String)>>>,
    denied: Rc<RefCell<BTreeSet<String>>>,
}

/// What a request is about.
struct Asked<'a> {
    verb: &'a str,
    subresource: &'a str,
    namespace: Option<&'a str>,
    /// Requests that create or select name no object.
    name: Option<&'a str>,
}

impl Guarded {
    fn check<K: Object>(&self, asked: &Asked<'_>) -> Result<(), ClusterError> {
        let resource = format!("{}{}", K::plural(&()), asked.subresource);
        let allows = |right: &Right| {
            let place = namespace_of(right.place, NAMESPACE);
            let name = match right.names {
                Any => true,
                Only(name) => asked.name == Some(name),
                Secrets => asked.name == Some("bmc-credentials"),
            };
            right.group == K::group(&())
                && right.resource == resource
                && right.verbs.contains(&asked.verb)
                && (place.is_none() || place == asked.namespace)
                && name
        };
        if let Some(line) = CONTROLLER.iter().position(allows) {
            self.used.borrow_mut().insert((line, asked.verb.to_owned()));
            return Ok(());
        }
        let place = asked.namespace.unwrap_or("the cluster");
        let what = format!("{} {resource} {:?} in {place}", asked.verb, asked.name);
        self.denied.borrow_mut().insert(what.clone());
        Err(ClusterError::Denied(what))
    }

    fn select<K: Object>(&self, verb: &str, scope: &Scope) -> Result<(), ClusterError> {
        let namespace = scope.namespace.as_deref();
        self.check::<K>(&Asked { verb, subresource: "", namespace, name: None })
    }

    fn one<K: Object>(&self, verb: &str, part: &str, at: At<'_>) -> Result<(), ClusterError> {
        let (namespace, name) = (at.namespace, Some(at.name));
        self.check::<K>(&Asked { verb, subresource: part, namespace, name })
    }
}

fn at<K: Object>(object: &K) -> At<'_> {
    let meta = object.meta();
    At { namespace: meta.namespace.as_deref(), name: meta.name.as_deref().unwrap_or_default() }
}

impl Cluster for Guarded {
    async fn list<K: Object>(&self, scope: &Scope) -> Result<Listed<K>, ClusterError> {
        self.select::<K>("list", scope)?;
        self.server.list(scope).await
    }

    async fn watch<K: Object>(&self, scope: &Scope, from: &str) -> Result<Watch<K>, ClusterError> {
        self.select::<K>("watch", scope)?;
        self.server.watch(scope, from).await
    }

    async fn get<K: Object>(&self, at: At<'_>) -> Result<Option<K>, ClusterError> {
        self.one::<K>("get", "", at)?;
        self.server.get(at).await
    }

    async fn create<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let namespace = object.meta().namespace.as_deref();
        self.check::<K>(&Asked { verb: "create", subresource: "", namespace, name: None })?;
        self.server.create(object).await
    }

    async fn replace<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        self.one::<K>("update", "", at(object))?;
        self.server.replace(object).await
    }

    async fn replace_status<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        self.one::<K>("update", "/status", at(object))?;
        self.server.replace_status(object).await
    }

    async fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> Result<K, ClusterError> {
        self.one::<K>("patch", "", at)?;
        self.server.patch(at, patch).await
    }

    async fn merge_status<K: Object>(&self, at: At<'_>, patch: &Value) -> Result<K, ClusterError> {
        self.one::<K>("patch", "/status", at)?;
        self.server.merge_status(at, patch).await
    }

    async fn delete<K: Object>(&self, at: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        self.one::<K>("delete", "", at)?;
        self.server.delete::<K>(at, how).await
    }

    async fn server_time(&self) -> Result<Time, ClusterError> {
        self.server.server_time().await
    }
}

/// What playing under the table came to.
struct Played {
    used: BTreeSet<(usize, String)>,
    denied: BTreeSet<String>,
    facts: Vec<Fact>,
}

/// Plays an example with nothing but the table's rights.
fn play(example: &str) -> Played {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios"));
    let scenario = Scenario::read(&examples.join(example)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let clock = VirtualClock::start_at(START);
        let shared = Shared::new(World::new(&scenario), clock.clone());
        let server = ModelCluster::new(shared.clone(), clock.clone(), CLIENT);
        let cluster = Guarded { server, used: Rc::default(), denied: Rc::default() };
        let seams = Seams {
            cluster: cluster.clone(),
            clock: Clock::simulated(clock),
            executor: Executor::Inline,
            net: Arc::new(MemoryNet::new(Arc::new(shared.clone()))),
            call_clock: Arc::new(TokioClock::starting_at(START.0)),
            entropy: Arc::new(SeededEntropy::new(scenario.seed)),
            names: Arc::new(NoNames),
            audit: Rc::new(LogAudit),
        };
        let settings = Settings {
            namespace: NAMESPACE.to_owned(),
            process: CLIENT.to_owned(),
            host_node: None,
        };
        let plugins = Plugins::new(Sandbox::new().unwrap());
        let metrics = Rc::new(Metrics::new());
        let controller = Controller::new(seams, settings, plugins, metrics, Readiness::new());
        let mut tasks = JoinSet::new();
        let driven = shared.clone();
        tasks.spawn_local(async move {
            drive(driven).await;
        });
        tasks.spawn_local(controller.run(std::future::pending()));
        tokio::time::sleep(scenario.duration).await;
        drop(tasks);
        let facts = shared.with(|world| world.facts().to_vec());
        Played { used: cluster.used.take(), denied: cluster.denied.take(), facts }
    })
}

#[test]
fn the_table_suffices_and_holds_hardly_more() {
    let lost = play("lost-node.yaml");
    let dark = play("dark-rack.yaml");
    assert_eq!(lost.denied, BTreeSet::new());
    assert_eq!(dark.denied, BTreeSet::new());
    let is_over =
        |fact: &Fact| matches!(&fact.what, What::FenceState { state, .. } if state == "Final");
    assert!(lost.facts.iter().any(is_over), "the incident did not end");

    for (line, right) in CONTROLLER.iter().enumerate() {
        for verb in right.verbs {
            let needed = (line, (*verb).to_owned());
            let what = format!("{verb} {}", right.resource);
            let is_used = lost.used.contains(&needed) || dark.used.contains(&needed);
            assert!(is_used || RARE.contains(&what.as_str()), "{what}: nothing needs it");
        }
    }
}

/// What neither of the two nights needs.
const RARE: [&str; 6] = [
    // After a lost race, and for a slot that a dead leader left.
    "get nodefences",
    // For a person's word.
    "patch nodefences",
    // For an incident that was never begun, or is long over.
    "delete nodefences",
    // For a literal password.
    "get configmaps",
    // For a node's lock that stands already, and to give it up.
    "update leases",
    "delete leases",
];
