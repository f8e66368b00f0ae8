//! The table against the shipped file, against what must never be in it, and against what a
//! controller really asks for: a lost node is played with an API server that denies the rest.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_simulate::NAMESPACE;
use node_remedy_simulate::testing::{example, play_behind};
use node_remedy_world::facts::{Fact, What};
use serde_json::Value;

use super::*;

fn kept() -> &'static str {
    include_str!("../../../../deploy/rbac.yaml")
}

fn shipped() -> String {
    manifest("node-remedy", &["bmc-credentials".to_owned()], More::default())
}

fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_shipped_roles_are_the_table() {
    assert_eq!(kept(), shipped(), "run `cargo xtask codegen`");
}

#[test]
fn every_object_is_a_role_or_a_binding_to_our_account() {
    let mut roles = 0;
    for object in objects(&shipped()) {
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
    assert_eq!(roles, 9);
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
    assert_eq!(verbs("jobs"), [""; 0], "no pod that mounts a Secret is started");
    assert_eq!(JOBS.place, Own, "Jobs only where the controller lives");
    for read in ["persistentvolumes", "persistentvolumeclaims"] {
        assert_eq!(verbs(read), ["get"], "no storage is ever changed");
    }
    for never in ["pods/exec", "nodes/proxy"] {
        assert_eq!(verbs(never), [""; 0]);
    }
}

#[test]
fn secrets_are_granted_by_name_or_not_at_all() {
    let of = |secrets: &[&str]| {
        let secrets: Vec<String> = secrets.iter().map(|one| (*one).to_owned()).collect();
        let objects = objects(&manifest("here", &secrets, More::default()));
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
        let args = RbacArgs {
            namespace: "node-remedy".to_owned(),
            secrets,
            storage_lease_namespace: None,
            delete_nodes: false,
            jobs: false,
        };
        assert!(rbac(&args).unwrap_err().to_string().contains("--secret"), "{name:?}");
        let args = RbacArgs {
            namespace: name.to_owned(),
            secrets: Vec::new(),
            storage_lease_namespace: None,
            delete_nodes: false,
            jobs: false,
        };
        assert!(rbac(&args).unwrap_err().to_string().contains("--namespace"), "{name:?}");
    }
    assert!(is_name("bmc-1.rack-2", NAME_MAX) && !is_name(&"a".repeat(254), NAME_MAX));
}

/// An API server, asked by an account that has the table's rights and no others.
#[derive(Default)]
struct Table {
    /// What of the table was needed: its line, and the verb.
    used: RefCell<BTreeSet<(usize, String)>>,
    denied: RefCell<BTreeSet<String>>,
}

impl Interceptor for Table {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        let allows = |right: &Right| {
            let place = namespace_of(right.place, NAMESPACE);
            let name = match right.names {
                Any => true,
                Only(name) => request.name == Some(name),
                Secrets => request.name == Some("bmc-credentials"),
            };
            right.group == request.group
                && right.resource == request.resource
                && right.verbs.contains(&request.verb)
                && (place.is_none() || place == request.namespace)
                && name
        };
        if let Some(line) = CONTROLLER.iter().chain([&JOBS]).position(allows) {
            self.used.borrow_mut().insert((line, request.verb.to_owned()));
            return Ok(());
        }
        let place = request.namespace.unwrap_or("the cluster");
        let what = format!("{} {} {:?} in {place}", request.verb, request.resource, request.name);
        self.denied.borrow_mut().insert(what.clone());
        Err(ClusterError::Denied(what))
    }
}

/// What playing under the table came to.
struct SeedRun {
    used: BTreeSet<(usize, String)>,
    denied: BTreeSet<String>,
    facts: Vec<Fact>,
}

/// Plays an example with nothing but the table's rights.
fn play(file: &str) -> SeedRun {
    let table = Rc::new(Table::default());
    let played = play_behind(&example(file, |text| text), &table);
    SeedRun { used: table.used.take(), denied: table.denied.take(), facts: played.facts }
}

#[test]
fn the_table_suffices_and_holds_hardly_more() {
    let lost = play("lost-node.yaml");
    let runs = ["dark-rack.yaml", "repair-first.yaml", "drain-first.yaml"].map(play);
    assert_eq!(lost.denied, BTreeSet::new());
    for run in &runs {
        assert_eq!(run.denied, BTreeSet::new());
    }
    let is_over =
        |fact: &Fact| matches!(&fact.what, What::FenceState { state, .. } if state == "Final");
    assert!(lost.facts.iter().any(is_over), "the incident did not end");

    for (line, right) in CONTROLLER.iter().chain([&JOBS]).enumerate() {
        for verb in right.verbs {
            let needed = (line, (*verb).to_owned());
            let what = format!("{verb} {}", right.resource);
            let is_used =
                lost.used.contains(&needed) || runs.iter().any(|run| run.used.contains(&needed));
            assert!(is_used || RARE.contains(&what.as_str()), "{what}: nothing needs it");
        }
    }
}

/// What none of the runs needs.
const RARE: [&str; 19] = [
    // What deploy/admission.yaml asks for, whoever creates a NodeFence or writes its record.
    "remediate nodefences",
    // Where a plugin comes from outside.
    "patch fenceplugins/status",
    // For a ConfigMap that is not valid.
    "create events",
    // For a person who aborts an incident whose Job goes on.
    "delete jobs",
    // While a threshold counts Events.
    "list events",
    "watch events",
    // After a lost race, and for a slot that a dead leader left.
    "get nodefences",
    // For a person's word.
    "patch nodefences",
    // For an incident that was never begun, or is long over.
    "delete nodefences",
    // For a literal password.
    "get configmaps",
    // Where the ConfigMap for it is there, which machine a Node was when it was first seen.
    "patch configmaps",
    // Where a grade may come that covers some pods, or a pod that stays has a claim.
    "get persistentvolumeclaims",
    "get persistentvolumes",
    // For the method network-fence; `e2e_network_fence.rs` has these rights and no others.
    "list networkfences",
    "create networkfences",
    "patch networkfences",
    "delete networkfences",
    // For a node's lock that stands already, and to give it up.
    "update leases",
    "delete leases",
];

#[test]
fn storage_leases_are_read_in_their_namespace_and_nowhere_else() {
    let plain = objects(&manifest("here", &[], More::default())).len();
    let all = objects(&manifest("here", &[], More { storage: Some("storage"), ..More::default() }));
    assert_eq!(all.len(), plain + 2, "a Role and its binding");
    let within: Vec<&Value> =
        all.iter().filter(|object| object["metadata"]["namespace"] == "storage").collect();
    assert_eq!(within.len(), 2);
    assert_eq!(within[0]["rules"][0]["verbs"], serde_json::json!(["get"]));
    assert_eq!(within[1]["subjects"][0]["namespace"], "here");
}

#[test]
fn jobs_are_started_only_where_that_was_asked_for() {
    let rules = |more| {
        let objects = objects(&manifest("here", &[], more));
        let of = |object: Value| {
            let rules = object["rules"].as_array().cloned().unwrap_or_default();
            let is_there = rules.iter().any(|rule| rule["resources"][0] == "jobs");
            is_there.then(|| object["metadata"]["namespace"].clone())
        };
        objects.into_iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(rules(More::default()), [] as [Value; 0]);
    assert_eq!(rules(More { jobs: true, ..More::default() }), ["here"]);
}

#[test]
fn nodes_are_deleted_only_where_that_was_asked_for() {
    let verbs = |more| {
        let objects = objects(&manifest("here", &[], more));
        let rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten();
        let nodes = rules.filter(|rule| rule["resources"][0] == "nodes");
        nodes.filter_map(|rule| rule["verbs"].as_array()).flatten().cloned().collect::<Vec<_>>()
    };
    assert!(!verbs(More::default()).contains(&"delete".into()));
    assert!(verbs(More { deletes_nodes: true, ..More::default() }).contains(&"delete".into()));
}
