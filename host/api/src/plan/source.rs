//! A fence configuration that has been read: what is common to `FenceConfiguration` and to the
//! ConfigMaps of the two proposals. From it a plan is made for one node at a time.

use litemap::LiteMap;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::expression::{Expression, NodeFacts};
use super::plugins::{ActionSet, only_watches, plugin_of_provider, told_by_plug};
use super::{Allows, Grant, cloud, network_fence};
use crate::document::{Problem, Problems, Reading, Spot};
use crate::fenceconfiguration::Inventory;
use crate::limits;
use crate::plan::device::{device, only};
use crate::plan::model::{Builtin, Credential, Method, NeededFor, NodePlan, Run, Stage};
use crate::selector::Selector;

/// How some nodes, or one, are fenced.
#[derive(Clone, Debug)]
pub struct FenceSource {
    /// `Kind/name`, or the file.
    pub origin: String,
    /// Which nodes.
    pub nodes: Nodes,
    /// Where the table of the nodes stands, if there is one.
    pub inventory: Option<Inventory>,
    pub(super) sources: Vec<String>,
    pub(super) methods: Vec<Draft>,
    /// Methods that no stage names: a plan has those of them that a remedy names, or as its witness
    /// another method.
    pub(super) beside: Vec<Draft>,
    pub(super) isolation: Vec<StageDraft>,
    pub(super) power_management: Vec<StageDraft>,
    pub(super) recovery: Vec<StageDraft>,
    pub(super) grants: Grants,
}

/// Where the plugins of a configuration may connect.
#[derive(Clone, Debug)]
pub(super) enum Grants {
    /// Where the admin says.
    Given(Vec<Grant>),
    /// Exactly to the addresses that the methods name: the proposals' ConfigMaps in our own
    /// namespace are the admin's word themselves.
    AddressesOfMethods,
}

/// Which nodes a configuration is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Those with these labels.
    Selected(Selector),
    /// The one of this name; it goes before any selector.
    Named(String),
}

/// A configured method before anything is known of the node.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) does: Does,
    pub(super) asked: ActionSet,
    pub(super) plug: Expression,
    pub(super) parameters: BTreeMap<String, Expression>,
    pub(super) credentials: BTreeMap<String, Credential>,
    pub(super) must_success: bool,
    pub(super) sole_feed: bool,
    pub(super) trust_wiring: bool,
    pub(super) storage_drivers: Vec<String>,
    /// The name of the method that must read the machine as off, too.
    pub(super) witness: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Plugin(String),
    Builtin(Builtin),
    /// The plugin of the node's provider.
    Instance,
}

/// A stage with its methods as places in the list of drafts.
#[derive(Clone, Debug)]
pub(super) struct StageDraft {
    pub(super) name: String,
    pub(super) run: Run,
    pub(super) methods: Vec<usize>,
}

/// Two configurations that are for one node: neither is followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node} is fenced by {first} and by {second}; change a nodeSelector so that one does")]
pub struct FencedTwice {
    /// The node.
    pub node: String,
    /// One configuration.
    pub first: String,
    /// The other.
    pub second: String,
}

/// The one configuration for a node: one that names it before one that selects it.
pub fn for_node<'a>(
    node: &str,
    labels: &LiteMap<String, String>,
    sources: impl IntoIterator<Item = &'a FenceSource>,
) -> Result<Option<&'a FenceSource>, FencedTwice> {
    let (mut named, mut selecting) = (Vec::new(), Vec::new());
    for source in sources {
        match &source.nodes {
            Nodes::Named(name) if name == node => named.push(source),
            Nodes::Selected(selector) if selector.matches(labels) => selecting.push(source),
            Nodes::Named(_) | Nodes::Selected(_) => {}
        }
    }
    let candidates = if named.is_empty() { selecting } else { named };
    match candidates.as_slice() {
        [] => Ok(None),
        [source] => Ok(Some(source)),
        [first, second, ..] => Err(FencedTwice {
            node: node.to_owned(),
            first: first.origin.clone(),
            second: second.origin.clone(),
        }),
    }
}

impl FenceSource {
    /// The plan of one node, or everything that the node lacks for it; with the methods that remedies name.
    pub fn plan_for(&self, node: &NodeFacts, named: &BTreeSet<String>) -> Reading<NodePlan> {
        let mut problems = Problems::none();
        let drafts: Vec<&Draft> = self.drafts(named).collect();
        let place = |name: &String| {
            let place = drafts.iter().position(|draft| draft.name == *name);
            place.and_then(|place| u32::try_from(place).ok())
        };
        let methods = drafts.iter().map(|draft| Method {
            witness: draft.witness.as_ref().and_then(place),
            ..draft.method(node, &mut problems)
        });
        let methods: Vec<Method> = methods.collect();
        let beside = self.beside.iter().filter(|draft| named.contains(&draft.name));
        beside.filter_map(Draft::gives_only).for_each(|problem| problems.push(problem));
        let grants = self.grants_of(&methods, node);
        let stages = |drafts: &[StageDraft]| drafts.iter().map(StageDraft::stage).collect();
        let plan = NodePlan {
            sources: self.sources.clone(),
            methods,
            isolation: stages(&self.isolation),
            power_management: stages(&self.power_management),
            recovery: stages(&self.recovery),
            grants,
        };
        problems.with(Some(plan))
    }

    /// The methods of a plan, in its order.
    pub(super) fn drafts<'a>(
        &'a self,
        named: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = &'a Draft> + 'a {
        let remedies = self.beside.iter().filter(|draft| named.contains(&draft.name));
        let called = |witness: &Draft| {
            let mut known = self.methods.iter().chain(remedies.clone());
            known.any(|draft| draft.witness.as_ref() == Some(&witness.name))
        };
        // What cuts one way to a driver's storage counts, though nothing names it: the machine writes by that way.
        let counts = |draft: &Draft| called(draft) || !draft.storage_drivers.is_empty();
        let others: Vec<&Draft> = self
            .beside
            .iter()
            .filter(|draft| !named.contains(&draft.name) && counts(draft))
            .collect();
        self.methods.iter().chain(remedies).chain(others)
    }

    /// Whether anything is listened for on behalf of its nodes.
    pub fn watches(&self) -> bool {
        self.methods.iter().any(Draft::only_watches)
    }

    /// What is listened for on behalf of one node, with the grants; each method that the node lacks
    /// something for is left out.
    pub fn watches_for(&self, node: &NodeFacts) -> (Vec<Method>, Vec<Grant>) {
        let watches = self.methods.iter().filter(|draft| draft.only_watches());
        let methods = watches.filter_map(|draft| {
            let mut problems = Problems::none();
            let method = draft.method(node, &mut problems);
            (!problems.has_errors()).then_some(method)
        });
        let methods: Vec<Method> = methods.collect();
        let grants = self.grants_of(&methods, node);
        (methods, grants)
    }

    fn grants_of(&self, methods: &[Method], node: &NodeFacts) -> Vec<Grant> {
        match &self.grants {
            Grants::Given(grants) => grants.clone(),
            Grants::AddressesOfMethods => {
                methods.iter().flat_map(|method| exact_grants(method, node)).collect()
            }
        }
    }

    /// Adds a method, or joins it to the one that is the other half of its pair. Returns its place.
    pub(super) fn add(&mut self, draft: Draft) -> usize {
        let same = self.methods.iter().position(|other| other.same_plug(&draft));
        if let Some((place, other)) =
            same.and_then(|place| Some((place, self.methods.get_mut(place)?)))
        {
            other.join(&draft);
            return place;
        }
        self.methods.push(draft);
        self.methods.len().saturating_sub(1)
    }

    /// What only shows when all stages are known.
    pub(super) fn check(&self, spot: &Spot, problems: &mut Problems) {
        if self.methods.len() > limits::PLAN_METHODS_MAX {
            let (found, max) = (self.methods.len(), limits::PLAN_METHODS_MAX);
            problems.push(spot.error(format!("found {found} methods, expected at most {max}")));
        }
        for stage in self.isolation.iter().filter(|stage| stage.run == Run::OnlyOne) {
            let drafts = stage.methods.iter().filter_map(|index| self.methods.get(*index));
            for draft in drafts.filter(|draft| draft.only_watches()) {
                problems.push(draft.plug.spot.error(format!(
                    "found {}, which only sees, in a stage of which only one method has to succeed, \
                     expected it in a stage of its own",
                    draft.name
                )));
            }
        }
        for stage in &self.power_management {
            for draft in stage.methods.iter().filter_map(|index| self.methods.get(*index)) {
                let Does::Plugin(_) = draft.does else { continue };
                let spot = &draft.plug.spot;
                match draft.asked {
                    ActionSet { off: false, on: true, reset: false } => problems.push(spot.error(
                        format!("found {} on without its off, expected both or reboot", draft.name),
                    )),
                    ActionSet { off: true, on: false, .. } => problems.push(spot.warning(format!(
                        "{} has no on; the same plug is switched on after release all the same",
                        draft.name
                    ))),
                    ActionSet { .. } => {}
                }
            }
        }
    }
}

impl Draft {
    fn only_watches(&self) -> bool {
        match &self.does {
            Does::Plugin(plugin) => only_watches(plugin),
            Does::Builtin(_) | Does::Instance => false,
        }
    }

    /// What is wrong with it as a remedy, where it only gives back.
    fn gives_only(&self) -> Option<Problem> {
        let Does::Plugin(_) = self.does else { return None };
        let ActionSet { off, on, reset } = self.asked;
        let does = if on { "switches on" } else { "reads" };
        let sentence = format!(
            "found {}, which only {does}, expected a method that takes something as a remedy",
            self.name
        );
        (!off && !reset && !self.only_watches()).then(|| self.plug.spot.error(sentence))
    }

    /// Whether the two ask for something of one and the same plug.
    fn same_plug(&self, other: &Self) -> bool {
        self.does == other.does
            && self.plug.same_as(&other.plug)
            && self.credentials == other.credentials
            && (self.witness.is_none() || other.witness.is_none() || self.witness == other.witness)
            && self.parameters.len() == other.parameters.len()
            && self.parameters.iter().zip(&other.parameters).all(
                |((name, value), (other_name, other_value))| {
                    name == other_name && value.same_as(other_value)
                },
            )
    }

    fn join(&mut self, other: &Self) {
        self.asked = self.asked.or(other.asked);
        self.must_success |= other.must_success;
        self.sole_feed |= other.sole_feed;
        self.trust_wiring |= other.trust_wiring;
        self.storage_drivers.extend(other.storage_drivers.iter().cloned());
        self.witness = self.witness.take().or_else(|| other.witness.clone());
        self.storage_drivers.sort();
        self.storage_drivers.dedup();
        let stem = |name: &str| {
            name.strip_suffix("-off").or_else(|| name.strip_suffix("-on")).map(str::to_owned)
        };
        if let (Some(stem), Some(other)) = (stem(&self.name), stem(&other.name))
            && stem == other
        {
            self.name = stem;
        }
    }

    fn method(&self, node: &NodeFacts, problems: &mut Problems) -> Method {
        let mut evaluate = |expression: &Expression| {
            expression.evaluate(node).unwrap_or_else(|problem| {
                problems.push(problem);
                String::new()
            })
        };
        let mut parameters: BTreeMap<String, String> = self
            .parameters
            .iter()
            .map(|(name, expression)| (name.clone(), evaluate(expression)))
            .collect();
        let mut plug = evaluate(&self.plug);
        let plugin = match &self.does {
            Does::Builtin(_) => None,
            Does::Plugin(plugin) => Some(plugin.clone()),
            Does::Instance => {
                plug.clone_from(&node.provider_id);
                let plugin = plugin_of_provider(&node.provider_id);
                if plugin.is_none() {
                    let sentence = format!(
                        "found node {} with providerID {:?}, expected one of a known provider",
                        node.name, node.provider_id
                    );
                    problems.push(self.plug.spot.error(sentence));
                }
                plugin.map(str::to_owned)
            }
        };
        if let Some((name, value)) =
            plugin.as_deref().and_then(|plugin| told_by_plug(plugin, &plug))
        {
            parameters.entry(name.to_owned()).or_insert(value);
        }
        let device = if self.does == Does::Builtin(Builtin::NetworkFence) {
            let complete = network_fence::complete(&mut parameters, node);
            complete.unwrap_or_else(|sentence| {
                problems.push(self.plug.spot.error(format!("{}: {sentence}", self.name)));
                String::new()
            })
        } else {
            device(plugin.as_deref(), &plug, &parameters)
        };
        let credentials = match plugin.as_deref() {
            Some(plugin) if self.does == Does::Instance && self.credentials.is_empty() => {
                cloud::credentials(plugin)
            }
            Some(_) | None => self.credentials.clone(),
        };
        Method {
            device,
            builtin: match self.does {
                Does::Builtin(builtin) => Some(builtin),
                Does::Plugin(_) | Does::Instance => None,
            },
            plugin,
            plug,
            parameters,
            credentials,
            must_success: self.must_success,
            sole_feed: self.sole_feed,
            trust_wiring: self.trust_wiring,
            storage_drivers: self.storage_drivers.clone(),
            reset_only: self.asked.reset && !self.asked.off,
            ..Method::named(&self.name)
        }
    }
}

/// Grants for the addresses that a method names; one that only sees hears the node itself.
fn exact_grants(method: &Method, node: &NodeFacts) -> Vec<Grant> {
    let Some(plugin) = method.plugin.clone().filter(|plugin| only_watches(plugin)) else {
        return exact_grant(method).into_iter().collect();
    };
    let senders = method.senders(node);
    let cidrs: Vec<String> = senders.iter().map(|sender| only(*sender)).collect();
    if cidrs.is_empty() {
        return Vec::new();
    }
    vec![Grant { plugin, allows: Allows { cidrs, ..Allows::default() } }]
}

/// A grant for the one address that a method names, or for its cloud's own.
fn exact_grant(method: &Method) -> Option<Grant> {
    let Some(address) = method.parameters.get("address") else { return cloud::grant(method) };
    let plugin = method.plugin.clone()?;
    let (host, port) = split_port(address);
    let (cidrs, hosts) = match host.parse::<IpAddr>() {
        Ok(ip) => (vec![only(ip)], Vec::new()),
        Err(_) => (Vec::new(), vec![host.to_owned()]),
    };
    let ports = port.into_iter().collect();
    Some(Grant { plugin, allows: Allows { cidrs, hosts, ports, ..Allows::default() } })
}

/// `host`, `host:port`, `[IPv6]:port` or a bare IPv6 address.
fn split_port(address: &str) -> (&str, Option<u16>) {
    if let Some((host, port)) = address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, port.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, port.parse().ok()),
        Some(_) | None => (address, None),
    }
}

impl StageDraft {
    fn stage(&self) -> Stage {
        Stage {
            name: self.name.clone(),
            run: self.run,
            needed_for: NeededFor::NextStep,
            methods: self.methods.iter().filter_map(|place| u32::try_from(*place).ok()).collect(),
        }
    }
}

impl Method {
    /// Whether it is the builtin one that asks for NetworkFences.
    pub fn is_network_fence(&self) -> bool {
        self.builtin == Some(Builtin::NetworkFence)
    }

    /// For a method that only sees: whose datagrams are the node's, by the parameter `address` or, where
    /// it says none, by the node's own addresses.
    pub fn senders(&self, node: &NodeFacts) -> Vec<IpAddr> {
        let addresses = |text: &String| text.parse::<IpAddr>().ok();
        match self.parameters.get("address") {
            Some(address) => addresses(address).into_iter().collect(),
            None => node.addresses.values().filter_map(addresses).collect(),
        }
    }

    /// One that does nothing yet.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            plugin: None,
            builtin: None,
            plug: String::new(),
            device: String::new(),
            parameters: BTreeMap::new(),
            credentials: BTreeMap::new(),
            must_success: false,
            sole_feed: false,
            trust_wiring: false,
            storage_drivers: Vec::new(),
            reset_only: false,
            witness: None,
            facts: None,
        }
    }
}

impl Builtin {
    /// Those that stages may name without a method.
    pub const READY_MADE: [Self; 5] = [
        Self::MarkUnschedulable,
        Self::MarkSchedulable,
        Self::Quarantine,
        Self::CleanResources,
        Self::DeleteNode,
    ];

    /// Its name in configurations.
    pub const fn word(self) -> &'static str {
        match self {
            Self::MarkUnschedulable => "mark-unschedulable",
            Self::MarkSchedulable => "mark-schedulable",
            Self::Quarantine => "quarantine",
            Self::CleanResources => "clean-resources",
            Self::DeleteNode => "delete-node",
            Self::NetworkFence => "network-fence",
        }
    }

    /// The built-in method of this name that needs no definition.
    pub fn of(name: &str) -> Option<Self> {
        Self::READY_MADE.into_iter().find(|builtin| builtin.word() == name)
    }
}
