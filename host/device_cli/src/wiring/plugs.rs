//! Which plugs of a plan can be tried, and what has to be off beside each so that its trial proves
//! anything. Pure.

use node_remedy_api::plan::{Binding, Feed, Method, MethodFacts, NodePlan, PluginKind, Stage};

/// What a plug cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cuts {
    /// The machine's power: it comes back with another boot.
    Power,
    /// The node's network: it comes back with the same boot.
    Network,
}

/// A plug to try.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plug {
    /// What switches it.
    pub(super) method: Method,
    /// What it cuts.
    pub(super) cuts: Cuts,
    /// Plugs that carry the node as well: off first, so that this one alone is left.
    pub(super) others: Vec<Method>,
}

/// The plugs of a plan, completed with what plugins say, whose devices know no machine; only that of the
/// method `wanted`, if there is one.
///
/// # Errors
/// Where nothing can be tried, and why.
pub(super) fn to_try(plan: &NodePlan, wanted: Option<&str>) -> Result<Vec<Plug>, String> {
    if let Some(name) = wanted {
        let named: Vec<&str> = plan.methods.iter().map(|one| one.name.as_str()).collect();
        let found = plan.methods.iter().find(|one| one.name == name);
        let method = found
            .ok_or_else(|| format!("the plan has no method {name:?}, but: {}", named.join(", ")))?;
        if let Some(why) = why_not(method) {
            return Err(format!("method {name}: {why}"));
        }
    }
    let steps = [(&plan.power_management, Cuts::Power), (&plan.isolation, Cuts::Network)];
    let mut plugs: Vec<Plug> = Vec::new();
    for (stages, cuts) in steps {
        let of_step = methods_of(plan, stages, cuts);
        for method in &of_step {
            let is_wanted = wanted.is_none_or(|name| method.name == name);
            let is_known = plugs.iter().any(|plug| is_same(&plug.method, method));
            if !is_wanted || is_known || why_not(method).is_some() {
                continue;
            }
            let shares = |other: &&Method| !is_same(other, method) && is_part(other);
            let others = of_step.iter().filter(|_| is_part(method)).filter(shares).cloned();
            let others = others.collect();
            plugs.push(Plug { method: method.clone(), cuts, others });
        }
    }
    // What only a remedy names is the machine's only feed.
    for method in &plan.methods {
        let is_wanted = wanted.is_none_or(|name| method.name == name);
        let is_known = plugs.iter().any(|plug| is_same(&plug.method, method));
        let is_power = what_it_cuts(method) == Some(Cuts::Power) && !is_part(method);
        if is_wanted && !is_known && is_power && why_not(method).is_none() {
            plugs.push(Plug { method: method.clone(), cuts: Cuts::Power, others: Vec::new() });
        }
    }
    if plugs.is_empty() {
        let why = "no step of the plan uses a plug whose device knows no machine: there is nothing to \
                   verify; see: node-remedy config show NODE";
        return Err(why.to_owned());
    }
    Ok(plugs)
}

/// The methods of a step that cut this, each plug once.
fn methods_of(plan: &NodePlan, stages: &[Stage], cuts: Cuts) -> Vec<Method> {
    let mut methods: Vec<Method> = Vec::new();
    for index in stages.iter().flat_map(|stage| &stage.methods) {
        let found = usize::try_from(*index).ok().and_then(|index| plan.methods.get(index));
        let Some(method) = found.filter(|one| what_it_cuts(one) == Some(cuts)) else { continue };
        if !methods.iter().any(|one| is_same(one, method)) {
            methods.push(method.clone());
        }
    }
    methods
}

fn what_it_cuts(method: &Method) -> Option<Cuts> {
    match method.facts.as_ref()?.kind {
        PluginKind::Power => Some(Cuts::Power),
        PluginKind::Fabric => Some(Cuts::Network),
        PluginKind::Storage | PluginKind::Watch | PluginKind::Remedy => None,
    }
}

/// Why a method's plug cannot be tried.
fn why_not(method: &Method) -> Option<&'static str> {
    let Some(MethodFacts { kind, binding, .. }) = &method.facts else {
        return Some("it is built in and switches nothing");
    };
    match (kind, binding) {
        (PluginKind::Watch, _) => Some("it only listens"),
        (PluginKind::Remedy, _) => Some("it only decides"),
        (PluginKind::Storage, _) => {
            Some("a node without storage still renews its Lease: nothing is seen of it")
        }
        (_, Binding::Reported) => Some("its device says itself which machine it is"),
        (PluginKind::Power, _) if method.reset_only => Some("its device cannot hold off"),
        (
            PluginKind::Power | PluginKind::Fabric,
            Binding::Verified | Binding::Labelled | Binding::Unverified,
        ) => None,
    }
}

/// Whether other plugs may carry the node as well. One of several ports of a switch always is one.
fn is_part(method: &Method) -> bool {
    method.facts.as_ref().is_some_and(|facts| facts.feed != Some(Feed::Whole))
}

fn is_same(one: &Method, other: &Method) -> bool {
    (&one.plugin, &one.device, &one.plug) == (&other.plugin, &other.device, &other.plug)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn plan(methods: &[Value], isolation: &[u32], power: &[u32]) -> NodePlan {
        let stage = |methods: &[u32]| json!({"name": "s", "run": "all", "methods": methods});
        let plan = json!({
            "methods": methods, "isolation": [stage(isolation)], "powerManagement": [stage(power)],
        });
        serde_json::from_value(plan).unwrap()
    }

    fn method(name: &str, kind: &str, feed: Option<&str>, binding: &str) -> Value {
        json!({
            "name": name, "plugin": "apc-pdu", "device": "pdu", "plug": name,
            "facts": {"digest": "d", "kind": kind, "feed": feed, "binding": binding},
        })
    }

    fn tried(plan: &NodePlan, wanted: Option<&str>) -> Result<Vec<(String, Vec<String>)>, String> {
        let name = |method: &Method| method.name.clone();
        let tried = to_try(plan, wanted)?;
        Ok(tried
            .iter()
            .map(|one| (name(&one.method), one.others.iter().map(name).collect()))
            .collect())
    }

    #[test]
    fn of_several_feeds_all_others_are_off_first_and_a_sole_one_has_none() {
        let part = |name| method(name, "power", Some("part"), "labelled");
        let methods = [
            part("a"),
            part("b"),
            method("sole", "power", Some("whole"), "verified"),
            method("bmc", "power", Some("whole"), "reported"),
            method("port", "fabric", None, "labelled"),
            method("lag", "fabric", None, "labelled"),
        ];
        let plan = plan(&methods, &[4, 5, 4], &[3, 0, 1, 2]);
        let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let all = [
            ("a", words(&["b"])),
            ("b", words(&["a"])),
            ("sole", vec![]),
            ("port", words(&["lag"])),
            ("lag", words(&["port"])),
        ];
        let all: Vec<_> = all.map(|(name, others)| (name.to_owned(), others)).into();
        assert_eq!(tried(&plan, None), Ok(all));
        assert_eq!(tried(&plan, Some("b")), Ok(vec![("b".to_owned(), words(&["a"]))]));
    }

    #[test]
    fn what_cannot_be_tried_says_why() {
        let mut reset = method("reset", "power", Some("whole"), "labelled");
        reset["resetOnly"] = true.into();
        let methods = [
            method("bmc", "power", Some("whole"), "reported"),
            method("zone", "storage", None, "labelled"),
            method("dump", "watch", None, "labelled"),
            reset,
            json!({"name": "cordon", "builtin": "mark-unschedulable", "device": ""}),
        ];
        let plan = plan(&methods, &[1, 2, 4], &[0, 3]);
        for (name, why) in [
            ("bmc", "says itself"),
            ("zone", "still renews its Lease"),
            ("dump", "only listens"),
            ("reset", "cannot hold off"),
            ("cordon", "built in"),
            ("nosuch", "no method"),
        ] {
            let said = tried(&plan, Some(name)).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
        assert!(tried(&plan, None).unwrap_err().contains("nothing to verify"));
    }
}
