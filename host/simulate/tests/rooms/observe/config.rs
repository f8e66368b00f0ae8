//! What is in force after objects and ConfigMaps were written, broken and taken away.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_model_cluster::interceptor::{Interceptor, Request};
use node_remedy_observe::caches::{Cached, Caches};
use node_remedy_observe::config::*;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::cluster::{ClusterError, unread};
use serde_json::{Value, json};
use tokio::sync::mpsc;

fn remedy(period: &str) -> Cached<node_remedy_api::remedyconfiguration::RemedyConfiguration> {
    let object = json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "RemedyConfiguration",
        "metadata": {"name": "all", "resourceVersion": period, "generation": 1},
        "spec": {"thresholdConfigs": [{"nodeLeaseAge": period, "remedy1": [{"name": "fence"}]}]},
    });
    Cached(serde_json::from_value(object).unwrap())
}

fn in_force(readouts: &[Readout]) -> Vec<InForce> {
    readouts.iter().map(|readout| readout.in_force).collect()
}

#[test]
fn the_last_valid_version_stays_in_force() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    caches.remedies.apply("all".to_owned(), remedy("20s"));
    let (first, said) = Config::read(&caches, &Config::default());
    assert_eq!(in_force(&said), [InForce::This]);
    let mut broken = remedy("30s");
    broken.0.spec.node_selector = Some("a=b=c".to_owned());
    caches.remedies.apply("all".to_owned(), broken);
    let (second, said) = Config::read(&caches, &first);
    assert_eq!(in_force(&said), [InForce::LastValid]);
    assert!(said[0].problems.contains("nodeSelector"), "{}", said[0].problems);
    assert_eq!(first.policies, second.policies);
    let (third, said) = Config::read(&caches, &Config::default());
    assert_eq!(in_force(&said), [InForce::Nothing]);
    assert!(third.policies.is_empty());
    caches.remedies.apply("all".to_owned(), remedy("40s"));
    let (fourth, said) = Config::read(&caches, &second);
    assert_eq!(in_force(&said), [InForce::This]);
    assert_ne!(fourth.policies, second.policies);
}

fn fence_config_map(text: &str) -> Cached<k8s_openapi::api::core::v1::ConfigMap> {
    let object = json!({
        "metadata": {"name": "fence-config-node-a", "resourceVersion": text},
        "data": {
            "config.properties": format!("node_name=node-a\npower_management=bmc\n{text}"),
            "fence-method-bmc": "agent_name=fence_ipmilan\nipaddr=192.0.2.11\nlogin=a\npasswd=b\n",
        },
    });
    Cached(serde_json::from_value(object).unwrap())
}

#[test]
fn a_nodes_own_config_map_that_is_broken_lets_nothing_else_speak_for_it() {
    let node = |name: &str| {
        let labels = json!({"node-remedy.io/fence": "ipmi"});
        let object = json!({"metadata": {"name": name, "uid": "u", "labels": labels}});
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    };
    let origin = "ConfigMap/fence-config-node-a";
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    let shown = node_remedy_simulate::testing::example("lost-node.yaml", |text| text).configuration;
    let mut selecting = shown.into_iter().map(|document| document.object);
    let mut selecting = selecting.find(|one| one["kind"] == "FenceConfiguration").unwrap();
    selecting["spec"]["templates"][0]["parameters"]["address"] = json!("192.0.2.99");
    selecting["spec"].as_object_mut().unwrap().remove("inventory");
    let selecting = serde_json::from_value(selecting).unwrap();
    caches.fences.apply("ipmi".to_owned(), Cached(selecting));
    let sources = |config: &Config, name: &str| config.plan_for(&node(name)).map(|p| p.sources);

    caches.config_maps.apply("own".to_owned(), fence_config_map(""));
    let (valid, _) = Config::read(&caches, &Config::default());
    assert_eq!(sources(&valid, "node-a"), Ok(vec![origin.to_owned()]));

    caches.config_maps.apply("own".to_owned(), fence_config_map("isolatoin=x\n"));
    let (edited, said) = Config::read(&caches, &valid);
    assert_eq!(said[1].in_force, InForce::LastValid);
    assert_eq!(sources(&edited, "node-a"), Ok(vec![origin.to_owned()]));

    let (begun, said) = Config::read(&caches, &Config::default());
    assert_eq!((said[1].in_force, &*said[1].name), (InForce::Nothing, "fence-config-node-a"));
    let refused = sources(&begun, "node-a").unwrap_err();
    assert!(refused.contains("isolatoin"), "{refused}");
    assert_eq!(sources(&begun, "node-b"), Ok(vec!["FenceConfiguration/ipmi".to_owned()]));
}

/// The BMCs' addresses stand in a column of a table of the nodes.
#[test]
fn a_nodes_row_of_the_inventory_says_where_its_device_is() {
    let node = |name: &str| {
        let labels = json!({"node-remedy.io/fence": "ipmi"});
        let object = json!({"metadata": {"name": name, "uid": "u", "labels": labels}});
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    };
    let shown = node_remedy_simulate::testing::example("lost-node.yaml", |text| text).configuration;
    let mut shown = shown.into_iter().map(|document| document.object);
    let shown = shown.find(|one| one["kind"] == "FenceConfiguration").unwrap();
    let read = |column: &str, table: Option<(&str, &str)>| {
        let (changes, _changed) = mpsc::unbounded_channel();
        let caches = Caches::new(&changes);
        let mut fence = shown.clone();
        fence["spec"]["inventory"] = json!({"configMap": "racks", "key": "nodes.csv"});
        let taken = format!("${{inventory['{column}']}}");
        fence["spec"]["templates"][0]["parameters"]["address"] = json!(taken);
        caches.fences.apply("ipmi".to_owned(), Cached(serde_json::from_value(fence).unwrap()));
        if let Some((key, text)) = table {
            let object = json!({"metadata": {"name": "racks"}, "data": {key: text}});
            let config_map = serde_json::from_value(object).unwrap();
            caches.config_maps.apply("racks".to_owned(), Cached(config_map));
        }
        Config::read(&caches, &Config::default()).0
    };
    let address = |config: &Config, name: &str, tables: &mut Tables| {
        let plan = config.plan_with(&node(name), tables)?;
        let mut methods = plan.methods.iter();
        let method = methods.find(|method| method.plugin.as_deref() == Some("ipmi")).unwrap();
        Ok::<String, String>(method.parameters["address"].clone())
    };
    let refused = |column: &str, table, name: &str| {
        address(&read(column, table), name, &mut Tables::new()).unwrap_err()
    };
    let rows = "node,bmc,rack\nnode-a,192.0.2.21,r1\nnode-b,192.0.2.22,r1\n";
    let table = Some(("nodes.csv", rows));

    // What was read for one node serves the next, and each gets its own row.
    let (config, mut tables) = (read("bmc", table), Tables::new());
    assert_eq!(address(&config, "node-a", &mut tables), Ok("192.0.2.21".to_owned()));
    assert_eq!(address(&config, "node-b", &mut tables), Ok("192.0.2.22".to_owned()));
    assert_eq!(tables.len(), 1);

    let no_row = "found node node-c without column bmc in the inventory, expected one";
    let said = refused("bmc", table, "node-c");
    assert!(said.ends_with(no_row), "{said}");
    let no_column = "found node node-a without column ilo in the inventory, expected one";
    let said = refused("ilo", table, "node-a");
    assert!(said.ends_with(no_column), "{said}");

    // Of two rows nobody knows which is right, for no node of the table.
    let twice = format!("{rows}node-a,192.0.2.29,r2\n");
    let second = "ConfigMap/racks:4: found node node-a a second time, expected one line";
    for name in ["node-a", "node-b"] {
        assert_eq!(refused("bmc", Some(("nodes.csv", &twice)), name), second);
    }
    assert_eq!(refused("bmc", None, "node-a"), "inventory ConfigMap racks does not exist");
    let no_key = "inventory ConfigMap racks has no key \"nodes.csv\"";
    assert_eq!(refused("bmc", Some(("other.csv", rows)), "node-a"), no_key);
}

const SELECTS_A: &str = "apiVersion: node-remedy/v1alpha\nkind: Configuration\n\
    nodeSelector: type=a\nthresholdConfigs:\n- nodeLeaseAge: 20s\n  remedy1:\n  - name: fence\n";

/// A ConfigMap with one `Configuration` under the key `remedy.yaml`.
fn remedy_config_map(text: &str) -> Cached<k8s_openapi::api::core::v1::ConfigMap> {
    let object = json!({
        "metadata": {"name": "remedies", "resourceVersion": text},
        "data": {"remedy.yaml": text},
    });
    Cached(serde_json::from_value(object).unwrap())
}

fn labelled(kind: &str) -> PrunedNode {
    let labels = json!({"type": kind});
    let object = json!({"metadata": {"name": kind, "uid": "u", "labels": labels}});
    PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
}

#[test]
fn a_configuration_in_a_config_map_is_followed_and_its_last_valid_version_kept() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    let read = |text: &str, before: &Config| {
        caches.config_maps.apply("own".to_owned(), remedy_config_map(text));
        let (config, mut said) = Config::read(&caches, before);
        (config, said.pop())
    };
    let is_followed = |config: &Config| config.policy_for(&labelled("a")).unwrap().is_some();
    let (valid, said) = read(SELECTS_A, &Config::default());
    let said = said.unwrap();
    assert_eq!((&*said.name, said.in_force), ("remedies[remedy.yaml]", InForce::This));
    assert!(is_followed(&valid) && valid.policy_for(&labelled("b")).unwrap().is_none());

    for (from, to, found) in [
        ("nodeLeaseAge", "nodeLeaseAeg", "nodeLeaseAge (did you mean that?)"),
        ("kind: Configuration", "kind: Configuraton", "\"Configuraton\""),
        ("node-remedy/v1alpha\nkind: Configuration", "v1\nkind: Secret", "\"Secret\""),
        ("thresholdConfigs:", "thresholdConfigs", "not YAML"),
    ] {
        let (edited, said) = read(&SELECTS_A.replace(from, to), &valid);
        let said = said.unwrap();
        assert_eq!(said.in_force, InForce::LastValid, "{to}");
        assert!(said.problems.contains(found), "{}", said.problems);
        assert!(said.problems.starts_with("ConfigMap/remedies[remedy.yaml]:"));
        assert!(is_followed(&edited), "{to}");
    }

    let (begun, said) = read(&SELECTS_A.replace("remedy1", "remedy9"), &Config::default());
    assert_eq!(said.unwrap().in_force, InForce::Nothing);
    assert!(!is_followed(&begun));
    let (emptied, said) = read("", &valid);
    assert_eq!((is_followed(&emptied), said), (false, None), "nobody configures any more");
    caches.config_maps.remove("own");
    assert!(!is_followed(&Config::read(&caches, &valid).0));
}

#[test]
fn two_that_select_one_node_stop_it_wherever_they_stand() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    let both = format!("{SELECTS_A}---\n{}", SELECTS_A.replace("type=a", "type in (b, c)"));
    caches.config_maps.apply("own".to_owned(), remedy_config_map(&both));
    let mut object = remedy("20s");
    object.0.spec.node_selector = Some("type in (a, b)".to_owned());
    let is_followed = |kind| {
        let config = Config::read(&caches, &Config::default()).0;
        config.policy_for(&labelled(kind)).map(|policy| policy.is_some())
    };
    let (yes, no) = (Ok(true), Ok(false));
    assert_eq!(
        ["a", "b", "c", "d"].map(is_followed),
        [yes.clone(), yes.clone(), yes.clone(), no.clone()]
    );
    caches.remedies.apply("all".to_owned(), object);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(is_followed);
    assert_eq!((c, d), (yes, no));
    for twice in [a, b] {
        let why = twice.unwrap_err();
        assert!(why.contains("all") && why.contains("remedies[remedy.yaml]"), "{why}");
    }
}

/// Nobody knows what it wants: what else is for its nodes may be what it was to take the place of.
#[test]
fn what_was_never_valid_stops_the_nodes_that_it_selects() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    let config = || Config::read(&caches, &Config::default()).0;
    let policy = |kind| config().policy_for(&labelled(kind)).map(|policy| policy.is_some());
    caches.remedies.apply("all".to_owned(), remedy("20s"));
    assert_eq!(policy("a"), Ok(true));
    let mut broken = remedy("30s");
    broken.0.spec.threshold_configs.clear();
    (broken.0.metadata.name, broken.0.spec.node_selector) =
        (Some("broken".to_owned()), Some("type=a".to_owned()));
    caches.remedies.apply("broken".to_owned(), broken.clone());
    let why = policy("a").unwrap_err();
    assert!(why.contains("RemedyConfiguration broken, which selects this node, is not"), "{why}");
    assert_eq!(policy("b"), Ok(true));
    // Nobody knows whom it means, so it may be anybody.
    broken.0.spec.node_selector = Some("a=b=c".to_owned());
    caches.remedies.apply("broken".to_owned(), broken);
    for kind in ["a", "b"] {
        let why = policy(kind).unwrap_err();
        assert!(why.contains("RemedyConfiguration broken, which may select this node"), "{why}");
    }

    // A node of a cloud is fenced by default, but not where something else may be meant for it.
    let cloud = |kind: &str| {
        let provider_id = Some("aws:///eu-central-1a/i-0123456789abcdef0".to_owned());
        PrunedNode { provider_id, ..labelled(kind) }
    };
    let plan = |kind| config().plan_for(&cloud(kind)).map(|plan| plan.sources);
    assert!(plan("a").is_ok());
    let fence = |selector: &str| {
        let object = json!({
            "metadata": {"name": "own"},
            "spec": {"nodeSelector": selector, "powerManagement": [{"name": "power", "methods": ["none"]}]},
        });
        Cached(serde_json::from_value(object).unwrap())
    };
    caches.fences.apply("own".to_owned(), fence("type=a"));
    let why = plan("a").unwrap_err();
    assert!(why.contains("FenceConfiguration own, which selects this node, is not"), "{why}");
    assert!(plan("b").is_ok());
    caches.fences.apply("own".to_owned(), fence("a=b=c"));
    let why = plan("b").unwrap_err();
    assert!(why.contains("FenceConfiguration own, which may select this node, is not"), "{why}");
}

/// An older definition let it in, or a newer version wrote it: its nodes are left alone, and it says so
/// itself. What was valid before stays in force.
#[test]
fn what_cannot_be_read_is_invalid_for_the_nodes_that_it_selects() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    caches.remedies.apply("all".to_owned(), remedy("20s"));
    let (first, _) = Config::read(&caches, &Config::default());
    let unread = |name: &str, spec: &Value| {
        let object = json!({"metadata": {"name": name, "generation": 7}, "spec": spec});
        let read =
            unread::read::<node_remedy_api::remedyconfiguration::RemedyConfiguration>(object);
        caches.remedies.apply_unread(name.to_owned(), read.unwrap_err());
    };
    let threshold = json!({"nodeLeaseAge": "30m1h", "remedy1": [{"name": "fence"}]});
    unread("other", &json!({"nodeSelector": "type=a", "thresholdConfigs": [threshold]}));
    let (config, said) = Config::read(&caches, &Config::default());
    assert_eq!(in_force(&said), [InForce::This, InForce::Nothing]);
    assert_eq!((said[1].generation, &*said[1].name), (7, "other"));
    assert!(said[1].problems.contains("nodeLeaseAge: found \"30m1h\""), "{}", said[1].problems);
    let why = config.policy_for(&labelled("a")).err().unwrap();
    assert!(why.contains("RemedyConfiguration other, which selects this node"), "{why}");
    assert!(config.policy_for(&labelled("b")).unwrap().is_some());

    unread("other", &json!({"nodeSelector": 7, "thresholdConfigs": [threshold]}));
    let (config, _) = Config::read(&caches, &Config::default());
    let why = config.policy_for(&labelled("b")).err().unwrap();
    assert!(why.contains("RemedyConfiguration other, which may select this node"), "{why}");

    caches.remedies.remove("other");
    unread("all", &json!({"thresholdConfigs": [threshold]}));
    let (last, said) = Config::read(&caches, &first);
    assert_eq!(in_force(&said), [InForce::LastValid]);
    assert_eq!(last.policies, first.policies);
    assert!(last.policy_for(&labelled("b")).unwrap().is_some());
}

/// The Events in our own namespace.
#[derive(Default)]
struct OnAnswer(RefCell<Vec<String>>);

impl Interceptor for OnAnswer {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.resource == "events" && request.namespace == Some("node-remedy") {
            let event = request.object().unwrap_or_default();
            let text = |pointer| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let said = format!("{} about {}", text("/reason"), text("/regarding/name"));
            self.0.borrow_mut().push(said);
        }
        Ok(())
    }
}

/// The policy is in a ConfigMap, and somebody breaks it before a node is lost.
#[test]
fn a_lost_node_is_remedied_by_a_configuration_in_a_config_map() {
    let spoilt = "apiVersion: node-remedy/v1alpha\\nkind: Configuration\\nremedies: []\\n";
    let object = SELECTS_A.replace("nodeSelector: type=a\n", "").replace('\n', "\\n");
    let config_map = format!(
        "- object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: remedies, namespace: \
         node-remedy}}, data: {{remedy.yaml: \"{object}\"}}}}"
    );
    let edit = format!(
        "faults:\n- {{ at: 30s, edit: {{ kind: ConfigMap, namespace: node-remedy, name: \
         remedies, merge: {{ data: {{ remedy.yaml: \"{spoilt}\" }} }} }} }}"
    );
    let run = node_remedy_simulate::testing::example("lost-node.yaml", |text| {
        let text = text.replace("- file: ../config/remedy.yaml", &config_map);
        text.replace("faults:", &edit)
    });
    let heard = Rc::new(OnAnswer::default());
    let played = node_remedy_simulate::testing::play_behind(&run, &heard);
    for expected in &run.expect {
        expected.judge(&played.facts).unwrap_or_else(|unmet| {
            panic!("expected {expected}, found {} times", unmet.found);
        });
    }
    assert_eq!(*heard.0.borrow(), ["LastValidInForce about remedies"]);
}

/// A FencePlugin of this name, which may connect to this network.
fn fence_plugin(name: &str, network: &str) -> Cached<node_remedy_api::fenceplugin::FencePlugin> {
    let object = json!({
        "metadata": {"name": name, "resourceVersion": network, "generation": 1},
        "spec": {
            "source": {"configMap": {"name": name, "key": "plugin.wasm"}},
            "digest": format!("sha256:{}", "0".repeat(64)),
            "grants": [{"cidrs": [network]}],
        },
    });
    Cached(serde_json::from_value(object).unwrap())
}

/// A FenceConfiguration for every node, with a method of plugin `lamp` and a grant for it.
fn lamps() -> Cached<node_remedy_api::fenceconfiguration::FenceConfiguration> {
    let object = json!({
        "metadata": {"name": "lamps", "resourceVersion": "1", "generation": 1},
        "spec": {
            "nodeSelector": "type=a",
            "methods": [{"name": "power", "plugin": "lamp", "action": "reboot"}],
            "powerManagement": [{"name": "power", "methods": ["power"]}],
            "grants": [{"plugin": "lamp", "cidrs": ["0.0.0.0/0"], "reveal": ["account"]}],
        },
    });
    Cached(serde_json::from_value(object).unwrap())
}

#[test]
fn a_plugin_from_outside_is_granted_by_its_own_object_alone() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    caches.fences.apply("lamps".to_owned(), lamps());
    caches.plugins.apply("lamp".to_owned(), fence_plugin("lamp", "192.0.2.0/24"));
    caches.plugins.apply("other".to_owned(), fence_plugin("other", "198.51.100.0/24"));
    let (config, said) = Config::read(&caches, &Config::default());
    assert_eq!(in_force(&said), [InForce::This; 3]);
    let plan = config.plan_for(&labelled("a")).unwrap();
    let granted: Vec<_> = plan.grants.iter().map(|one| (&*one.plugin, &one.allows.cidrs)).collect();
    assert_eq!(granted, [("lamp", &vec!["192.0.2.0/24".to_owned()])]);
}

#[test]
fn nobody_takes_the_name_of_a_plugin_that_is_built_in() {
    let (changes, _changed) = mpsc::unbounded_channel();
    let caches = Caches::new(&changes);
    caches.plugins.apply("ipmi".to_owned(), fence_plugin("ipmi", "192.0.2.0/24"));
    let (config, said) = Config::read(&caches, &Config::default());
    assert_eq!(in_force(&said), [InForce::Nothing]);
    assert!(said[0].problems.contains("which is a built-in plugin"), "{}", said[0].problems);
    assert_eq!(config.plugins(), []);
}
