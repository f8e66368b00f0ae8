//! Whether a machine, a plug and an address are one Node's alone.
//!
//! A kubelet writes its Node's systemUUID, addresses and annotations itself. Two Nodes that name one machine
//! cannot both be right, and nothing here can tell which is: neither is cut. Not here: whether a device's own
//! word is the node's, which `decide` says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::plan::network_fence::spec_of;
use node_remedy_api::plan::{Builtin, Method, NodePlan, is_cloud};
use node_remedy_config::plan::identity;
use node_remedy_sandbox::Cidr;
use node_remedy_store::store::Plugins;

use crate::claimants::{Claimants, add};
use crate::pruned::PrunedNode;

/// How a FenceConfiguration is named among the sources of a plan.
const FENCE_SOURCE: &str = "FenceConfiguration/";
/// Of IPMI, of HTTPS and of SNMP.
const USUAL_PORTS: [&str; 3] = [":623", ":443", ":161"];
/// The built-in plugin whose plug may be the same for many machines: its paths and bodies tell them apart.
const TOLD_BY_PARAMETERS: &str = "webhook";

/// What every Node says is its own. Of a large cluster that is much, so little of it is kept twice.
#[derive(Debug, Default)]
pub struct Claims {
    by_node: BTreeMap<Rc<str>, Own>,
    claimants: BTreeMap<Rc<Claim>, Claimants>,
    addresses: BTreeMap<IpAddr, Claimants>,
}

/// What one Node claims.
#[derive(Debug, Default)]
struct Own {
    /// As its kubelet writes it.
    system_uuid: String,
    claims: Box<[Rc<Claim>]>,
    /// What its network-fence keeps away.
    fenced: Vec<Cidr>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// Its UUID, with its bytes in one of the orders that are in use.
    Machine([u8; 16]),
    Instance(String),
    Plug {
        device: String,
        plug: String,
        parameters: BTreeMap<String, String>,
    },
    Network(String),
}

impl Own {
    fn words(&self, claim: &Claim) -> String {
        match claim {
            // As its Node spells it.
            Claim::Machine(_) => format!("systemUUID {}", self.system_uuid),
            Claim::Instance(_) | Claim::Plug { .. } | Claim::Network(_) => words(claim),
        }
    }
}

fn words(claim: &Claim) -> String {
    match claim {
        Claim::Machine(uuid) => format!("systemUUID {}", uuid::Uuid::from_bytes(*uuid)),
        Claim::Instance(id) => format!("providerID {id}"),
        Claim::Plug { device, plug, .. } if plug.is_empty() => format!("device {device}"),
        Claim::Plug { device, plug, .. } => format!("plug {plug} of device {device}"),
        Claim::Network(cidr) => format!("network {cidr}"),
    }
}

fn claimed_by_two(what: &str, node: &str, other: &str) -> String {
    format!(
        "{what} is claimed by node {node} and by node {other}, expected one node of a machine; correct the one that \
         is wrong, or delete it"
    )
}

impl Claims {
    /// Adds a Node, with its plan where it has one.
    pub fn add(&mut self, node: &PrunedNode, plan: Option<&NodePlan>) {
        let methods = plan.into_iter().flat_map(|plan| &plan.methods);
        let targets: Vec<Claim> = methods.flat_map(targets).collect();
        let networks = targets.iter().filter_map(|target| match target {
            Claim::Network(cidr) => Some(cidr),
            Claim::Machine(_) | Claim::Instance(_) | Claim::Plug { .. } => None,
        });
        let fenced = networks.filter_map(|cidr| cidr.parse().ok()).collect();
        let provider_id = node.provider_id.as_deref().unwrap_or_default();
        let machines = identity::machines(&node.system_uuid).into_iter().map(Claim::Machine);
        let claims: BTreeSet<Claim> = machines
            .chain(identity::instance(provider_id).map(Claim::Instance))
            .chain(targets)
            .collect();
        let claims: Box<[Rc<Claim>]> = claims.into_iter().map(Rc::new).collect();
        let name: Rc<str> = node.name.as_str().into();
        for claim in &claims {
            add(&mut self.claimants, claim.clone(), &name);
        }
        for address in node.internal_ips.iter().filter_map(|text| text.parse::<IpAddr>().ok()) {
            add(&mut self.addresses, address, &name);
        }
        let own = Own { system_uuid: node.system_uuid.clone(), claims, fenced };
        self.by_node.insert(name, own);
    }

    /// Why a Node is not cut: another one claims what it claims.
    pub fn shared(&self, node: &str) -> Option<String> {
        let own = self.by_node.get(node)?;
        let of_claims = own.claims.iter().find_map(|claim| {
            let other = self.claimants.get(claim)?.another(node)?;
            Some(claimed_by_two(&own.words(claim), node, other))
        });
        of_claims.or_else(|| {
            self.addresses.iter().find_map(|(address, claimants)| {
                own.fenced.iter().find(|cidr| cidr.holds(*address))?;
                let other = claimants.another(node)?;
                Some(format!(
                    "InternalIP {address} of node {other} is in what the network-fence of node {node} keeps \
                     away, expected addresses of node {node} alone; it is not cut: correct the one that is \
                     wrong, or delete it"
                ))
            })
        })
    }

    /// The other node to which the configuration now gives what a pinned plan cuts.
    pub fn rival(&self, node: &str, plan: &NodePlan) -> Option<String> {
        plan.methods.iter().flat_map(targets).find_map(|target| {
            let other = self.claimants.get(&target)?.another(node)?;
            Some(claimed_by_two(&words(&target), node, other))
        })
    }
}

/// Why the pinned plan may cut another Node: one claims the same machine, instance or address by now. Only what the other
/// Nodes say of themselves counts, not the configuration.
pub fn claimed<'a>(
    plan: &NodePlan,
    node: &PrunedNode,
    others: impl Iterator<Item = &'a PrunedNode>,
) -> Option<String> {
    let mut claims = Claims::default();
    claims.add(node, Some(plan));
    let machines = identity::machines(&node.system_uuid);
    let instance = node.provider_id.as_deref().and_then(identity::instance);
    let fenced = claims.by_node.get(&*node.name).map(|own| own.fenced.clone()).unwrap_or_default();
    let is_rival = |other: &&PrunedNode| {
        let addresses = other.internal_ips.iter().filter_map(|text| text.parse::<IpAddr>().ok());
        let of_others = || identity::machines(&other.system_uuid);
        let provider_id = other.provider_id.as_deref();
        addresses.into_iter().any(|address| fenced.iter().any(|cidr| cidr.holds(address)))
            || !other.system_uuid.is_empty() && of_others().iter().any(|one| machines.contains(one))
            || instance.is_some() && provider_id.and_then(identity::instance) == instance
    };
    for other in others.filter(|other| other.name != node.name).filter(is_rival) {
        claims.add(other, None);
    }
    claims.shared(&node.name)
}

/// Why what a pinned plan cuts may be another machine's, now that its own Node is gone.
pub fn given_to_another<'a>(
    plan: &NodePlan,
    gone: &FencedNode,
    mut nodes: impl Iterator<Item = &'a PrunedNode>,
) -> Option<String> {
    let networks = plan.methods.iter().flat_map(targets).filter_map(|target| match target {
        Claim::Network(cidr) => cidr.parse().ok(),
        Claim::Machine(_) | Claim::Instance(_) | Claim::Plug { .. } => None,
    });
    let fenced: Vec<Cidr> = networks.collect();
    nodes.find_map(|node| {
        if node.name == gone.name {
            return another_machine(gone, node);
        }
        let mut addresses = node.internal_ips.iter().filter_map(|text| text.parse().ok());
        let address: IpAddr = addresses.find(|one| fenced.iter().any(|cidr| cidr.holds(*one)))?;
        Some(format!(
            "node {} has the address {address} by now, which the network-fence of node {} keeps away; node {} is gone",
            node.name, gone.name, gone.name
        ))
    })
}

/// Why a Node of this name is another machine than the one that is gone; `None` where either names no machine.
fn another_machine(gone: &FencedNode, node: &PrunedNode) -> Option<String> {
    let of_gone = identity::machines(&gone.system_uuid);
    let of_node = identity::machines(&node.system_uuid);
    let is_another = !of_gone.is_empty() && !of_node.is_empty() && of_gone.is_disjoint(&of_node);
    is_another.then(|| {
        format!(
            "node {} is another machine by now: systemUUID {} in place of {}",
            gone.name, node.system_uuid, gone.system_uuid
        )
    })
}

/// Why the pinned plan may cut the wrong thing: by now its own FenceConfiguration names another plug, device or network for
/// one of its methods, or what carries the machine's power is another.
///
/// Another way to fence the machine, or one way fewer, corrects nothing. `is_outlet` says whether a method switches power by a
/// plug that knows no machine.
pub fn corrected(
    plan: &NodePlan,
    present: &NodePlan,
    is_outlet: impl Fn(&Method) -> bool,
) -> Option<String> {
    if !is_of_same_fence(plan, present) {
        return None;
    }
    let moved = plan.methods.iter().find_map(|method| moved(method, present));
    let gone = moved.or_else(|| feed_gone(plan, present));
    gone.or_else(|| feed_added(plan, present, is_outlet))
}

/// Whether two plans were made of the same FenceConfiguration. One that is gone, or a plan without one, corrects nothing.
fn is_of_same_fence(plan: &NodePlan, present: &NodePlan) -> bool {
    let fences = |plan: &NodePlan| -> BTreeSet<String> {
        let fences = plan.sources.iter().filter(|source| source.starts_with(FENCE_SOURCE));
        fences.cloned().collect()
    };
    fences(plan) == fences(present)
}

/// A method of the same name and kind cuts something else now.
fn moved(method: &Method, present: &NodePlan) -> Option<String> {
    let same = present.methods.iter().find(|one| {
        one.name == method.name && one.plugin == method.plugin && one.builtin == method.builtin
    })?;
    let (then, now) = (wiring(method), wiring(same));
    let what = |targets: &BTreeSet<Claim>, others: &BTreeSet<Claim>| {
        let target = |one: &Claim| words(one) + &own_parameters(one, others);
        targets.iter().map(target).collect::<Vec<_>>().join(", ")
    };
    (then != now).then(|| {
        format!(
            "method {} of the pinned plan cuts {}, but the configuration now says {}",
            method.name,
            what(&then, &now),
            what(&now, &then)
        )
    })
}

/// The parameters of a target that none of the others has, as words behind its own.
fn own_parameters(target: &Claim, others: &BTreeSet<Claim>) -> String {
    let of = |claim: &Claim| match claim {
        Claim::Plug { parameters, .. } => parameters.clone(),
        Claim::Machine(_) | Claim::Instance(_) | Claim::Network(_) => BTreeMap::new(),
    };
    let known: BTreeSet<(String, String)> = others.iter().flat_map(of).collect();
    let own = of(target).into_iter().filter(|one| !known.contains(one));
    let own: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
    if own.is_empty() { String::new() } else { format!(" with {}", own.join(", ")) }
}

/// Power is switched by a plug that the configuration no longer names at all.
fn feed_gone(plan: &NodePlan, present: &NodePlan) -> Option<String> {
    let named: BTreeSet<Claim> = present.methods.iter().flat_map(wiring).collect();
    let (feed, _) = feeds(plan).into_iter().find(|(feed, _)| !named.contains(feed))?;
    let what = words(&feed);
    Some(format!("the pinned plan switches {what}, but the configuration no longer names it"))
}

/// Power is switched by outlets, verified or not, and there is a further one.
fn feed_added(
    plan: &NodePlan,
    present: &NodePlan,
    is_outlet: impl Fn(&Method) -> bool,
) -> Option<String> {
    if !powers(plan).any(&is_outlet) {
        return None;
    }
    let known = feeds(plan);
    let present = powers(present).filter(|method| is_outlet(method));
    let (feed, is_sole) = feeds_of(present).into_iter().find(|feed| !known.contains(feed))?;
    let sole = if is_sole { "the sole feed" } else { "a feed" };
    let what = words(&feed);
    Some(format!("the configuration now names {what} as {sole}, and the pinned plan does not"))
}

fn powers(plan: &NodePlan) -> impl Iterator<Item = &Method> {
    let places = plan.power_management.iter().flat_map(|stage| &stage.methods);
    places.filter_map(|place| plan.methods.get(usize::try_from(*place).ok()?))
}

/// What carries a machine's power, and whether it alone does.
fn feeds(plan: &NodePlan) -> BTreeSet<(Claim, bool)> {
    feeds_of(powers(plan))
}

fn feeds_of<'m>(methods: impl Iterator<Item = &'m Method>) -> BTreeSet<(Claim, bool)> {
    methods.flat_map(|one| wiring(one).into_iter().map(|feed| (feed, one.sole_feed))).collect()
}

/// What a method cuts, as far as that is wiring: of a cloud without parameters, and of a device whether its usual port is
/// written down or not.
fn wiring(method: &Method) -> BTreeSet<Claim> {
    let mut targets = targets(method);
    for target in &mut targets {
        if let Claim::Plug { device, parameters, .. } = target {
            if let Some(host) = USUAL_PORTS.iter().find_map(|port| device.strip_suffix(port)) {
                *device = host.to_owned();
            }
            if method.plugin.as_deref().is_some_and(is_cloud) {
                parameters.clear();
            }
        }
    }
    targets.into_iter().collect()
}

/// What a method cuts.
fn targets(method: &Method) -> Vec<Claim> {
    let is_fence = method.builtin == Some(Builtin::NetworkFence);
    let cidrs = is_fence.then(|| spec_of(&method.parameters).cidrs);
    cidrs.into_iter().flatten().map(Claim::Network).chain(plug_of(method)).collect()
}

/// The plug of a method that speaks to a device.
fn plug_of(method: &Method) -> Option<Claim> {
    let plugin = method.plugin.as_deref().filter(|name| !Plugins::is_watcher(name))?;
    let by_place = Plugins::is_builtin(plugin) && !is_cloud(plugin) && plugin != TOLD_BY_PARAMETERS;
    // A BMC has one address, whichever plugin speaks with it.
    let device = match method.device.split_once('/') {
        Some((_, address)) if by_place => address.to_owned(),
        Some(_) | None => method.device.clone(),
    };
    let parameters = if by_place { BTreeMap::new() } else { method.parameters.clone() };
    // A cloud finds an instance whatever letters it is written in.
    let in_cloud = Plugins::is_builtin(plugin) && is_cloud(plugin);
    let plug = if in_cloud { method.plug.to_ascii_lowercase() } else { method.plug.clone() };
    Some(Claim::Plug { device, plug, parameters })
}

#[cfg(test)]
mod tests {
    use node_remedy_api::plan::network_fence::CIDRS;
    use serde_json::json;

    use super::*;

    fn node(name: &str, uuid: &str, provider_id: &str, ip: &str) -> PrunedNode {
        let object = json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"providerID": provider_id},
            "status": {
                "nodeInfo": {
                    "systemUUID": uuid, "bootID": "", "machineID": "", "architecture": "",
                    "kernelVersion": "", "osImage": "", "operatingSystem": "", "kubeletVersion": "",
                    "kubeProxyVersion": "", "containerRuntimeVersion": "",
                },
                "addresses": [{"type": "InternalIP", "address": ip}],
            },
        });
        PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
    }

    /// The plan of one method.
    fn plan(plugin: &str, address: &str, plug: &str, more: &[(&str, &str)]) -> NodePlan {
        let pairs = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let builtin = (plugin == "network-fence").then_some("network-fence");
        let method = json!({
            "name": "m", "builtin": builtin, "plugin": builtin.is_none().then_some(plugin),
            "plug": plug, "device": format!("{plugin}/{address}"),
            "parameters": pairs.collect::<BTreeMap<_, _>>(),
        });
        NodePlan { methods: vec![serde_json::from_value(method).unwrap()], ..NodePlan::default() }
    }

    const UUID: &str = "4c4c4544-0051-4810-8031-b8c04f4e3231";
    /// The same, its first groups as SMBIOS stores them.
    const MIXED: &str = "44454C4C-5100-1048-8031-B8C04F4E3231";
    /// The same, reversed as a whole, as IPMI has it.
    const REVERSED: &str = "31324e4f-c0b8-3180-1048-510044454c4c";
    const OTHER: &str = "4c4c4544-0051-4810-8031-b8c04f4e3232";
    const PLACEHOLDER: &str = "03000200-0400-0500-0006-000700080009";

    fn said(
        a: (&PrunedNode, Option<&NodePlan>),
        b: (&PrunedNode, Option<&NodePlan>),
    ) -> [String; 2] {
        let mut claims = Claims::default();
        claims.add(a.0, a.1);
        claims.add(b.0, b.1);
        [a, b].map(|(node, _)| claims.shared(&node.name).unwrap_or_default())
    }

    #[test]
    fn two_nodes_that_claim_one_machine_are_both_told_of_the_other() {
        let a = node("a", UUID, "", "10.1.0.1");
        let [of_a, of_b] = said((&a, None), (&node("b", MIXED, "", "10.1.0.2"), None));
        assert_eq!(
            of_a,
            format!(
                "systemUUID {UUID} is claimed by node a and by node b, expected \
                 one node of a machine; correct the one that is wrong, or delete it"
            )
        );
        assert!(of_b.contains("by node b and by node a"), "{of_b}");
        let [of_a, _] = said((&a, None), (&node("b", REVERSED, "", ""), None));
        assert!(of_a.contains("by node a and by node b"), "a device would take b for a: {of_a}");
        let none = [String::new(), String::new()];
        assert_eq!(said((&a, None), (&node("b", OTHER, "", "10.1.0.1"), None)), none);
        let unnamed = node("a", PLACEHOLDER, "", "");
        assert_eq!(said((&unnamed, None), (&node("b", PLACEHOLDER, "", ""), None)), none);
    }

    #[test]
    fn what_a_plan_cuts_is_asked_of_the_other_nodes_again() {
        let a = node("a", UUID, "", "10.1.0.1");
        let fence = plan("network-fence", "", "", &[(CIDRS, "10.1.0.1/32")]);
        for (other, is_claimed) in [
            (node("b", OTHER, "", "10.1.0.2"), false),
            (node("b", OTHER, "", "10.1.0.1"), true),
            (node("b", MIXED, "", "10.1.0.2"), true),
            (node("a", MIXED, "", "10.1.0.1"), false),
        ] {
            let said = claimed(&fence, &a, [&other].into_iter());
            assert_eq!(said.is_some(), is_claimed, "{said:?}");
        }
    }

    #[test]
    fn a_plan_says_what_the_configuration_corrected() {
        let is_outlet =
            |method: &Method| method.plugin.as_deref().is_some_and(|one| one.ends_with("-pdu"));
        let corrected = |plan: &NodePlan, present: &NodePlan| corrected(plan, present, is_outlet);
        let then = plan("apc-pdu", "192.0.2.4", "2", &[]);
        assert_eq!(corrected(&then, &then), None);
        let said = corrected(&then, &plan("apc-pdu", "192.0.2.4", "3", &[])).unwrap();
        let words = "plug 2 of device 192.0.2.4, but the configuration now says plug 3";
        assert!(said.contains(words), "{said}");
        assert_eq!(corrected(&then, &plan("ipmi", "192.0.2.9", "", &[])), None, "another method");
        let of = |mut plan: NodePlan| {
            plan.power_management = vec![serde_json::from_value(
                json!({"name": "power", "methods": (0..plan.methods.len()).collect::<Vec<_>>()}),
            ).unwrap()];
            plan
        };
        let said = corrected(&of(then.clone()), &of(plan("ipmi", "192.0.2.9", "", &[]))).unwrap();
        assert!(said.contains("no longer names it"), "{said}");
        let mut both = then.clone();
        both.methods.extend(plan("apc-pdu", "192.0.2.5", "2", &[]).methods);
        both.methods[1].name = "second".to_owned();
        let said = corrected(&of(then.clone()), &of(both.clone())).unwrap();
        assert!(said.contains("now names plug 2 of device 192.0.2.5 as a feed"), "{said}");
        // A further outlet is a further feed, of whatever plugin, and whether a BMC stands beside or not; a BMC is none.
        let with = |plan: &NodePlan, plugin: &str| {
            let address = if plugin == "ipmi" { "192.0.2.9" } else { "192.0.2.10" };
            let mut further = self::plan(plugin, address, "2", &[]).methods;
            further[0].name = plugin.to_owned();
            let methods = [plan.methods.clone(), further].concat();
            NodePlan { methods, ..plan.clone() }
        };
        for beside in [then.clone(), with(&then, "ipmi")] {
            for (plugin, is_feed) in [("apc-pdu", true), ("eaton-pdu", true), ("redfish", false)] {
                let said = corrected(&of(beside.clone()), &of(with(&beside, plugin)));
                assert_eq!(said.is_some(), is_feed, "{plugin}: {said:?}");
            }
        }
        assert_eq!(corrected(&both, &then), None, "one way fewer");
        let mut gone = both;
        gone.sources = vec!["FenceConfiguration/other".to_owned()];
        assert_eq!(corrected(&of(then.clone()), &of(gone)), None, "another configuration");
        let ported = plan("apc-pdu", "192.0.2.4:161", "2", &[]);
        assert_eq!(corrected(&then, &ported), None, "its usual port");
        let mut renamed = then.clone();
        renamed.methods[0].name = "other".to_owned();
        assert_eq!(corrected(&then, &renamed), None, "the same outlet by another name");
        let fence = |cidr| plan("network-fence", "", "", &[(CIDRS, cidr)]);
        assert!(corrected(&fence("10.1.0.1/32"), &fence("10.1.0.9/32")).is_some());
    }

    #[test]
    fn an_instance_is_one_nodes_whatever_zone_it_is_said_to_be_in() {
        let id = |name: &str, id: &str| node(name, "", id, "");
        for (one, other, shared) in [
            ("aws:///eu-west-1a/i-0abc", "aws:///eu-west-1b/i-0abc", true),
            ("aws:///eu-west-1a/i-0abc", "aws:///eu-west-1a/i-0abd", false),
            ("kind://docker/kind/w", "kind://docker/kind/w", true),
            (
                "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/w",
                "azure:///subscriptions/S/resourcegroups/RG/providers/Microsoft.Compute/virtualMachines/W",
                true,
            ),
            ("openstack:///abc-1", "openstack:///ABC-1", true),
            (
                "vsphere://00112233-4455-6677-8899-aabbccddeeff",
                "vsphere://33221100-5544-7766-8899-AABBCCDDEEFF",
                true,
            ),
            ("", "", false),
        ] {
            let said = said((&id("a", one), None), (&id("b", other), None));
            assert_eq!(said.map(|text| text.contains("providerID")), [shared; 2], "{one} {other}");
        }
    }

    #[test]
    fn a_plug_is_one_nodes() {
        let (a, b) = (node("a", UUID, "", ""), node("b", OTHER, "", ""));
        let address = "192.0.2.4";
        let body = |body| plan("webhook", address, "", &[("off-path", body)]);
        for (case, one, other, shared) in [
            ("a BMC", plan("ipmi", address, "", &[]), plan("ipmi", address, "", &[]), true),
            (
                "whatever it is asked by, and how",
                plan("ipmi", address, "", &[("privilege-level", "user")]),
                plan("redfish", address, "", &[]),
                true,
            ),
            (
                "an outlet",
                plan("apc-pdu", address, "3", &[]),
                plan("apc-pdu", address, "3", &[]),
                true,
            ),
            (
                "its neighbour",
                plan("apc-pdu", address, "3", &[]),
                plan("apc-pdu", address, "4", &[]),
                false,
            ),
            ("a path of a web server", body("/a/off"), body("/a/off"), true),
            ("another path", body("/a/off"), body("/b/off"), false),
            (
                "what only hears",
                plan("kdump", address, "", &[]),
                plan("kdump", address, "", &[]),
                false,
            ),
        ] {
            let said = said((&a, Some(&one)), (&b, Some(&other)));
            assert_eq!(said.map(|text| text.contains(address)), [shared; 2], "{case}");
        }
    }

    /// Whoever says that it has a neighbour's address would have the neighbour kept away.
    #[test]
    fn what_a_network_fence_keeps_away_is_no_other_nodes_address() {
        let (a, b) = (node("a", UUID, "", "10.1.0.1"), node("b", OTHER, "", "10.1.0.2"));
        let fence = |cidrs| plan("network-fence", "d", "", &[(CIDRS, cidrs)]);
        for (cidrs, shared) in
            [("10.1.0.1/32", false), ("10.1.0.1/32,10.1.0.2/32", true), ("10.1.0.0/24", true)]
        {
            let [of_a, of_b] = said((&a, Some(&fence(cidrs))), (&b, None));
            assert_eq!(of_a.contains("InternalIP 10.1.0.2 of node b"), shared, "{cidrs}: {of_a}");
            assert_eq!(of_b, "", "nothing of it is cut by its own plan");
        }
        let storage = fence("10.9.0.7/32");
        let said = said((&a, Some(&storage)), (&b, Some(&storage)));
        assert!(said.iter().all(|text| text.contains("network 10.9.0.7/32")), "{said:?}");
    }
}
