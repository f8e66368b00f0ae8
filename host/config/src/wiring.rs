//! Which plugs of a node somebody tried: what `verify-wiring` found, as it is kept and believed (rule P8).
//!
//! It stands in a ConfigMap of the controller's own namespace, beside what says how nodes are fenced:
//! who may write there is believed already. Not on the Node, whose annotations its own kubelet may
//! write. A record speaks of one Node UID and one plug, whole; anything else is not verified. Nothing
//! here tries a plug.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::plan;
use node_remedy_api::plan::{Binding, Method, NodePlan, PluginKind};
use node_remedy_api::time::Moment;
use node_remedy_runtime::digest::sha256;
use node_remedy_runtime::names::stem;
use serde::{Deserialize, Serialize};

/// The ConfigMap's key.
pub const KEY: &str = "wiring.json";
/// What binds an outlet that is not switched.
const UNVERIFIED: &str = "nothing: its wiring was never verified, so it is not switched; run node-remedy verify-wiring, or \
                          set trustWiring: true";
/// The same of one that was tried, where a feed that was off beside it is gone from the plan.
const FEED_GONE: &str = "nothing: its wiring was verified while the plan switched another feed beside it, so it is not switched; \
                         run node-remedy verify-wiring again";
/// The same of what cuts storage: no trial could show whose storage it cuts.
const NOT_TRUSTED: &str =
    "the configuration alone, so what it cuts releases nothing; set trustWiring: true to trust it";
/// Plugs that are kept of a node, newest last: more than any plan has.
const PLUGS_MAX: usize = 64;

/// A plug that was tried: switched off, it took this very node and no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tried {
    /// The Node's UID; a node made anew may be another machine.
    #[serde(rename = "nodeUID")]
    pub node_uid: String,
    /// What the Node calls its machine: it may be replaced under the same Node.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,
    /// The plugin that switched it.
    pub plugin: String,
    /// The device.
    pub device: String,
    /// The outlet or port.
    pub plug: String,
    /// sha256 over plugin, device, plug and parameters: another community, bank or unit may be another
    /// plug.
    pub digest: String,
    /// The digests of the plugs that were off beside it. It was proven with these alone: a plan that no longer switches
    /// one of them leaves the machine on.
    pub beside: Vec<String>,
    /// When.
    pub verified_at: Moment,
    /// Who tried it.
    pub by: String,
}

impl Tried {
    /// The record of a plug that was just found to be this node's.
    pub fn now(
        node: &FencedNode,
        method: &Method,
        beside: &[Method],
        verified_at: Moment,
        by: &str,
    ) -> Self {
        Self {
            node_uid: node.uid.clone(),
            system_uuid: node.system_uuid.clone(),
            plugin: method.plugin.clone().unwrap_or_default(),
            device: method.device.clone(),
            plug: method.plug.clone(),
            digest: digest(method),
            beside: beside.iter().map(digest).collect(),
            verified_at,
            by: by.to_owned(),
        }
    }

    /// Whether it speaks of this plug of this node.
    fn is_of(&self, node: &FencedNode, method: &Method) -> bool {
        let is_node = !node.uid.is_empty() && self.node_uid == node.uid;
        let is_machine = self.system_uuid.eq_ignore_ascii_case(&node.system_uuid);
        is_node && is_machine && self.is_plug(method)
    }

    /// Whether a plan still switches all that was off beside it.
    fn is_whole(&self, plan: &NodePlan) -> bool {
        let stages = plan.power_management.iter().chain(&plan.isolation);
        let places = stages.flat_map(|stage| &stage.methods);
        let methods = places.filter_map(|place| plan.methods.get(usize::try_from(*place).ok()?));
        let switched: BTreeSet<String> = methods.map(digest).collect();
        self.beside.iter().all(|digest| switched.contains(digest))
    }

    fn is_plug(&self, method: &Method) -> bool {
        Some(&self.plugin) == method.plugin.as_ref()
            && self.device == method.device
            && self.plug == method.plug
            && self.digest == digest(method)
    }
}

/// What was tried of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    plugs: Vec<Tried>,
}

impl Wiring {
    /// Reads the ConfigMap's data.
    ///
    /// # Errors
    /// Where it is none that `verify-wiring` writes: then nothing is verified.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Self, String> {
        let text = data.get(KEY).ok_or_else(|| format!("no key {KEY:?}"))?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// The ConfigMap's data.
    pub fn data(&self) -> BTreeMap<String, String> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        BTreeMap::from([(KEY.to_owned(), text)])
    }

    /// The trial of this plug, if it was for this very node and for what this plan still switches.
    pub fn of(&self, node: &FencedNode, method: &Method, plan: &NodePlan) -> Option<&Tried> {
        self.plugs.iter().find(|tried| tried.is_of(node, method) && tried.is_whole(plan))
    }

    /// Without what was said of this plug, of whatever node.
    #[must_use]
    pub fn without(mut self, device: &str, plug: &str) -> Self {
        self.plugs.retain(|tried| tried.device != device || tried.plug != plug);
        self
    }

    /// With this trial, in place of what was said of its plug before.
    #[must_use]
    pub fn with(self, tried: Tried) -> Self {
        let mut wiring = self.without(&tried.device, &tried.plug);
        wiring.plugs.push(tried);
        let surplus = wiring.plugs.len().saturating_sub(PLUGS_MAX);
        wiring.plugs.drain(..surplus);
        wiring
    }
}

/// How the machine behind a method's plug is known to be the node, for people; `method` with what plugin
/// and node say of it. `None` where there is no plug.
pub fn how_bound(method: &Method, wiring: &Wiring, node: &FencedNode) -> Option<String> {
    let facts = method.facts.as_ref().filter(|facts| facts.kind != PluginKind::Watch)?;
    let tried = wiring.plugs.iter().find(|tried| tried.is_of(node, method));
    Some(match (facts.binding, tried) {
        (Binding::Reported, _) => "the identity that the device reports".to_owned(),
        (Binding::Verified, Some(tried)) => {
            format!("its wiring, verified at {} by {}", tried.verified_at, tried.by)
        }
        (Binding::Verified, None) => "its wiring, verified before".to_owned(),
        (Binding::Labelled, _) => {
            "the configuration alone; its wiring was never verified".to_owned()
        }
        (Binding::Unverified, None) if facts.kind == PluginKind::Storage => NOT_TRUSTED.to_owned(),
        (Binding::Unverified, None) => UNVERIFIED.to_owned(),
        (Binding::Unverified, Some(_)) => FEED_GONE.to_owned(),
    })
}

/// The ConfigMap that keeps the wiring of a node.
pub fn config_map(node: &str) -> String {
    format!("wiring-{}", stem(node))
}

/// What a method switches, in one word. Passwords tell no plug from another, and are left out.
fn digest(method: &Method) -> String {
    let parameters: BTreeMap<&String, &String> =
        method.parameters.iter().filter(|(name, _)| !plan::is_hidden(name)).collect();
    let all = serde_json::json!([method.plugin, method.device, method.plug, parameters]);
    sha256(all.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method() -> Method {
        let method = serde_json::json!({
            "name": "outlet", "plugin": "apc-pdu", "device": "apc-pdu/10.0.9.3", "plug": "7",
            "parameters": {"address": "10.0.9.3", "version": "2c", "password": "old"},
        });
        serde_json::from_value(method).unwrap()
    }

    fn node(uid: &str, system_uuid: &str) -> FencedNode {
        let (uid, system_uuid) = (uid.to_owned(), system_uuid.to_owned());
        FencedNode { uid, system_uuid, ..FencedNode::default() }
    }

    fn node_a() -> FencedNode {
        node("uid-a", "machine-a")
    }

    fn tried() -> Tried {
        Tried::now(&node_a(), &method(), &[], Moment::from_ms(1_000), "alice")
    }

    fn of<'w>(wiring: &'w Wiring, node: &FencedNode, method: &Method) -> Option<&'w Tried> {
        wiring.of(node, method, &NodePlan::default())
    }

    #[test]
    fn a_trial_is_believed_of_this_node_and_this_plug_alone() {
        let wiring = Wiring::default().with(tried());
        let wiring = Wiring::read(&wiring.data()).unwrap();
        assert_eq!(of(&wiring, &node_a(), &method()), Some(&tried()));
        let changed = |change: fn(&mut Method)| {
            let mut method = method();
            change(&mut method);
            method
        };
        let same = [
            ("its name", changed(|one| one.name = "power".to_owned())),
            (
                "a new password",
                changed(|one| {
                    one.parameters.insert("password".to_owned(), "new".to_owned());
                }),
            ),
        ];
        for (what, method) in same {
            assert!(of(&wiring, &node_a(), &method).is_some(), "{what}");
        }
        let others = [
            ("another plug", changed(|one| one.plug = "8".to_owned())),
            ("another device", changed(|one| one.device = "apc-pdu/10.0.9.4".to_owned())),
            ("another plugin", changed(|one| one.plugin = Some("eaton-pdu".to_owned()))),
            ("nobody's plugin", changed(|one| one.plugin = None)),
            (
                "another parameter",
                changed(|one| {
                    one.parameters.insert("unit".to_owned(), "2".to_owned());
                }),
            ),
        ];
        for (what, method) in others {
            assert_eq!(of(&wiring, &node_a(), &method), None, "{what}");
        }
        for (uid, machine) in [("uid-b", "machine-a"), ("", "machine-a"), ("uid-a", "machine-b")] {
            assert_eq!(of(&wiring, &node(uid, machine), &method()), None, "{uid:?} {machine}");
        }
    }

    /// Whoever changed the fields by hand did not try the plug.
    #[test]
    fn what_does_not_fit_its_digest_or_cannot_be_read_verifies_nothing() {
        let edited = Tried { plug: "8".to_owned(), ..tried() };
        let wiring = Wiring { plugs: vec![edited] };
        let eighth = Method { plug: "8".to_owned(), ..method() };
        assert_eq!(of(&wiring, &node_a(), &eighth), None);
        let data = |text: &str| BTreeMap::from([(KEY.to_owned(), text.to_owned())]);
        for text in ["", "{}", "[]", "{\"plugs\": [{}]}", "{\"plugs\": [], \"more\": 1}"] {
            assert!(Wiring::read(&data(text)).is_err(), "{text}");
        }
        assert!(Wiring::read(&BTreeMap::new()).is_err());
    }

    /// What was off in the trial has to go off in the fence as well.
    #[test] // promise: P8
    fn a_trial_is_believed_while_the_plan_switches_all_that_was_off_beside_it() {
        let second = Method { plug: "8".to_owned(), ..method() };
        let of_two = Tried::now(
            &node_a(),
            &method(),
            std::slice::from_ref(&second),
            Moment::from_ms(1),
            "alice",
        );
        let wiring = Wiring::default().with(of_two);
        let stage = |methods: Vec<u32>| {
            let stage = serde_json::json!({"name": "feeds", "run": "all", "methods": methods});
            vec![serde_json::from_value(stage).unwrap()]
        };
        let methods = vec![method(), second];
        let whole =
            NodePlan { methods, power_management: stage(vec![0, 1]), ..NodePlan::default() };
        assert!(wiring.of(&node_a(), &method(), &whole).is_some());
        let in_no_stage = NodePlan { power_management: stage(vec![0]), ..whole.clone() };
        let gone = NodePlan { methods: vec![method()], ..in_no_stage.clone() };
        for plan in [in_no_stage, gone] {
            assert_eq!(wiring.of(&node_a(), &method(), &plan), None);
        }
    }

    #[test]
    fn a_later_trial_replaces_an_earlier_one_of_the_same_plug() {
        let other = Method { plug: "8".to_owned(), ..method() };
        let of_other = Tried::now(&node_a(), &other, &[], Moment::from_ms(1_000), "alice");
        let later = Tried { verified_at: Moment::from_ms(2_000), ..tried() };
        let wiring = Wiring::default().with(tried()).with(of_other).with(later.clone());
        assert_eq!(of(&wiring, &node_a(), &method()), Some(&later));
        assert_eq!(wiring.plugs.len(), 2);
        let wiring = wiring.without("apc-pdu/10.0.9.3", "7");
        assert_eq!(of(&wiring, &node_a(), &method()), None);
        assert!(of(&wiring, &node_a(), &other).is_some());
    }
}
