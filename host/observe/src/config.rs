//! The configuration in force: what users wrote, parsed once, per object.
//!
//! An invalid object keeps its last valid version in force and says so; one that was not valid since this process
//! began stops the nodes that it selects. Two objects that select one node stop that node and no other. An incident in
//! flight has its own snapshot and is not reached by anything here.

pub mod invalid;
pub mod readout;
pub mod sources;
pub mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::configuration::{Inside, inside};
use node_remedy_api::document::{Document, Path, Reading, Severity};
use node_remedy_api::nodefence::{DecidingPlugin, RemedyStep};
use node_remedy_api::plan::{FenceSource, Grant, Method, NodeFacts, NodePlan, NodeReading, Nodes};
use node_remedy_api::policy::{GateLimits, IncidentPolicy, Policy, Remedy};
use node_remedy_api::{fenceplugin, plan, policy};
use node_remedy_config::symptoms::{TimedSymptom, is_of_silence};
use node_remedy_config::wiring;
use node_remedy_config::wiring::Wiring;
use node_remedy_decide::Threshold;
use node_remedy_store::store::Plugins;

use crate::caches::Caches;
use crate::claims::Claims;
use crate::config::invalid::Invalid;
use crate::config::written::written;
use crate::pins;
use crate::pruned::PrunedNode;

pub use node_remedy_api::policy::Mode;
pub use readout::{InForce, Readout, in_force, json};
const POLICIES: &str = "RemedyConfiguration";
const FENCES: &str = "FenceConfiguration";

/// Everything in force.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Policies, by the name of their object.
    pub policies: BTreeMap<String, Rc<Policy>>,
    /// `Configuration` documents in ConfigMaps, by `ConfigMap/name[key]`.
    inside: BTreeMap<String, Rc<Vec<Policy>>>,
    fences: BTreeMap<String, Rc<FenceSource>>,
    /// Plugins from outside.
    plugins: BTreeMap<String, Rc<fenceplugin::Source>>,
    /// What is wrong with a node's own ConfigMap that was never valid, by node: nobody knows how
    /// that node is to be fenced, so nothing less specific speaks for it.
    unreadable: BTreeMap<String, String>,
    /// RemedyConfigurations and FenceConfigurations of which no version was valid yet.
    invalid: Vec<Invalid>,
    /// Where inventories and trials of wiring stand: ConfigMap data by name.
    tables: BTreeMap<String, Rc<BTreeMap<String, String>>>,
}

/// Inventories that were read, by ConfigMap and key.
pub type Tables = BTreeMap<(String, String), Result<plan::InventoryTable, String>>;

/// What is in force for one node.
pub struct NodePolicy {
    /// Whether anything is done.
    pub mode: Mode,
    /// What is watched for, each with its first remedy.
    pub thresholds: Vec<NodeThreshold>,
    /// When nothing is cut.
    pub gate: GateLimits,
    /// The numbers of an incident.
    pub incident: IncidentPolicy,
    /// When incidents of the node are too many.
    pub repeat_alarm: Option<policy::RepeatAlarm>,
}

/// What is listened for on behalf of one node.
pub struct NodeWatch {
    /// The node's name.
    pub node: String,
    /// The method that only sees.
    pub method: Method,
    /// Whose datagrams are the node's.
    pub senders: Vec<IpAddr>,
    /// Where they may come from.
    pub grants: Vec<Grant>,
}

/// One threshold of one node.
pub struct NodeThreshold {
    /// What has to be seen, for how long, as it is configured.
    pub wanted: TimedSymptom,
    /// The same as it is judged.
    pub threshold: Threshold,
    /// The first remedy's name.
    pub remedy: String,
    /// All of its remedies.
    pub ladder: Vec<RemedyStep>,
    /// Whether this version runs them, or why not.
    pub is_run: Result<(), String>,
}

impl Config {
    /// Reads all objects; an invalid one leaves `before`'s version of it in force.
    pub fn read(caches: &Caches, before: &Self) -> (Self, Vec<Readout>) {
        let mut config = Self::default();
        let mut readouts = Vec::new();
        for one in written(POLICIES, &caches.remedies) {
            let last = before.policies.get(&one.name).cloned();
            let (read, readout) = one.settle(policy::read, last);
            if read.is_none() {
                config.invalid.push(Invalid::new(&readout, one.selector()));
            }
            readouts.push(readout);
            config.policies.extend(read.map(|policy| (one.name, policy)));
        }
        for one in written(FENCES, &caches.fences) {
            let last = before.fences.get(&one.name).cloned();
            let (read, readout) = one.settle(plan::read, last);
            if read.is_none() {
                config.invalid.push(Invalid::new(&readout, one.selector()));
            }
            readouts.push(readout);
            config.fences.extend(read.map(|source| (one.name, source)));
        }
        for one in written("FencePlugin", &caches.plugins) {
            let last = before.plugins.get(&one.name).cloned();
            let (read, readout) = one.settle(plugin, last);
            readouts.push(readout);
            config.plugins.extend(read.map(|source| (one.name, source)));
        }
        config.read_config_maps(caches, before, &mut readouts);
        (config, readouts)
    }

    /// ConfigMaps of our namespace: the proposals' configurations, and inventories.
    fn read_config_maps(&mut self, caches: &Caches, before: &Self, readouts: &mut Vec<Readout>) {
        let config_maps = caches.config_maps.all();
        let documents: Vec<Document> = config_maps
            .values()
            .map(|kept| Document::from_object(&json("ConfigMap", &kept.0)))
            .collect();
        for NodeReading { origin, node, reading } in plan::read_config_maps(&documents) {
            let last = before.fences.get(&origin).cloned();
            let (value, readout) = settle_config_map(&origin, reading, last);
            if value.is_none() {
                let why = format!("{} is not valid: {}", readout.name, readout.problems);
                self.unreadable.insert(node, why);
            }
            self.fences.extend(value.map(|source| (origin, source)));
            readouts.push(readout);
        }
        for document in &documents {
            let was_read = |origin: &str| before.inside.contains_key(origin);
            for Inside { origin, reading } in inside(document, was_read) {
                let last = before.inside.get(&origin).cloned();
                let (value, readout) = settle_config_map(&origin, reading, last);
                self.inside.extend(value.map(|policies| (origin, policies)));
                readouts.push(readout);
            }
        }
        for kept in config_maps.values() {
            let data = kept.0.data.clone().unwrap_or_default();
            self.tables.insert(kept.0.name_any(), Rc::new(data));
        }
    }

    /// All policies in force, wherever they stand.
    fn policies(&self) -> impl Iterator<Item = &Policy> {
        let inside = self.inside.values().flat_map(|policies| policies.iter());
        self.policies.values().map(|policy| &**policy).chain(inside)
    }

    /// What is in force for `node`; `None` where no policy selects it.
    ///
    /// # Errors
    /// Where several do, or one that is not valid does: a sentence for people.
    pub fn policy_for(&self, node: &PrunedNode) -> Result<Option<NodePolicy>, String> {
        if let Some(why) = crate::config::invalid::that_selects(&self.invalid, POLICIES, node) {
            return Err(why);
        }
        let policy = policy::for_node(&node.name, &node.labels, self.policies());
        Ok(policy.map_err(|twice| twice.to_string())?.map(|policy| self.of_policy(policy)))
    }

    fn of_policy(&self, policy: &Policy) -> NodePolicy {
        let thresholds = policy.thresholds.iter().filter_map(|threshold| {
            let remedy_step = threshold.ladder.first()?;
            // A plugin that is missing keeps nothing else of the ladder from fencing.
            let may_fence =
                threshold.ladder.iter().any(|remedy_step| remedy_step.remedy.is_of_plan());
            let mut needed = threshold.ladder.iter().filter(|_| !may_fence);
            let is_run = needed.try_for_each(|remedy_step| {
                is_run(remedy_step, |name| self.plugins.contains_key(name))
            });
            let wanted = TimedSymptom {
                symptom: threshold.symptom.clone(),
                period: threshold.period,
                stale_after: policy.condition_stale_after,
            };
            Some(NodeThreshold {
                threshold: wanted.threshold(),
                wanted,
                remedy: remedy_step.name.clone(),
                ladder: threshold.ladder.iter().map(remedy_step_of).collect(),
                is_run,
            })
        });
        NodePolicy {
            mode: policy.mode,
            thresholds: thresholds.collect(),
            gate: policy.gate.clone(),
            incident: policy.incident.clone(),
            repeat_alarm: policy.repeat_alarm,
        }
    }

    /// Whether a threshold looks at anything but a node's silence and readiness.
    pub fn has_own_symptoms(&self) -> bool {
        let mut symptoms = self.policies().flat_map(|policy| &policy.thresholds);
        symptoms.any(|threshold| !is_of_silence(&threshold.symptom))
    }

    /// The reasons of Events about nodes that thresholds ask for.
    pub fn event_reasons(&self) -> BTreeSet<String> {
        let symptoms = self.policies().flat_map(|policy| &policy.thresholds);
        symptoms.flat_map(|threshold| threshold.symptom.event_reasons()).collect()
    }

    /// Whether some remedy of the policy for `node` fences it.
    pub fn fences_node(&self, node: &PrunedNode) -> bool {
        let policy = policy::for_node(&node.name, &node.labels, self.policies()).ok().flatten();
        let mut thresholds = policy.into_iter().flat_map(|policy| &policy.thresholds);
        thresholds.any(|threshold| {
            threshold.ladder.iter().any(|remedy_step| remedy_step.remedy.may_be_of_plan())
        })
    }

    /// How `node` is fenced, or why it cannot be. It reads inventories: for a node that is to be
    /// fenced, not for one that was looked at.
    pub fn plan_for(&self, node: &PrunedNode) -> Result<NodePlan, String> {
        self.plan_with(node, &mut Tables::new())
    }

    /// What the plans of these nodes claim.
    pub fn claims<'a>(&self, nodes: impl Iterator<Item = &'a PrunedNode>) -> Claims {
        let (mut claims, mut tables) = (Claims::default(), Tables::new());
        for node in nodes {
            claims.add(node, self.plan_with(node, &mut tables).ok().as_ref());
        }
        claims
    }

    /// Why a Node is not the machine that it was when it was first seen.
    pub fn pin_changed(&self, node: &PrunedNode) -> Option<String> {
        self.tables.get(pins::CONFIG_MAP).and_then(|pins| pins::changed(pins, node))
    }

    /// The same for many nodes: an inventory that was read for one of them is in `tables`.
    pub fn plan_with(&self, node: &PrunedNode, tables: &mut Tables) -> Result<NodePlan, String> {
        if let Some(why) = self.pin_changed(node) {
            return Err(why);
        }
        let sources = self.fences.values().map(|source| &**source);
        let source =
            plan::for_node(&node.name, &node.labels, sources).map_err(|twice| twice.to_string())?;
        let is_own = source.is_some_and(|source| matches!(source.nodes, Nodes::Named(_)));
        if let Some(why) = self.unreadable.get(&node.name).filter(|_| !is_own) {
            return Err(why.clone());
        }
        let invalid = crate::config::invalid::that_selects(&self.invalid, FENCES, node);
        if let Some(why) = invalid.filter(|_| !is_own) {
            return Err(why);
        }
        let mut facts = facts_of(node);
        let Some(source) = source else {
            return plan::default_plan(&facts).ok_or_else(|| {
                format!(
                    "no FenceConfiguration selects node {} and its providerID is of no known \
                     cloud; say how it is fenced, see examples/config",
                    node.name
                )
            });
        };
        if let Some(inventory) = &source.inventory {
            facts.inventory = self.row(inventory, &node.name, tables)?;
        }
        let Reading { value, problems } = source.plan_for(&facts, &self.methods_named_for(node));
        value.ok_or_else(|| problems.to_string()).map(|plan| self.granted(plan))
    }

    /// The plugins from outside that are wanted.
    pub fn plugins(&self) -> Vec<Rc<fenceplugin::Source>> {
        self.plugins.values().cloned().collect()
    }

    /// With what plugins from outside are allowed: it stands in their own objects, and nothing that
    /// anybody else writes adds to it.
    fn granted(&self, mut plan: NodePlan) -> NodePlan {
        let called =
            |name: &str| plan.methods.iter().any(|one| one.plugin.as_deref() == Some(name));
        let called: Vec<_> = self.plugins.values().filter(|source| called(&source.name)).collect();
        plan.grants.retain(|grant| !self.plugins.contains_key(&grant.plugin));
        plan.grants.extend(called.into_iter().flat_map(|source| source.grants()));
        plan
    }

    /// The methods that remedies of the policy for `node` name.
    fn methods_named_for(&self, node: &PrunedNode) -> BTreeSet<String> {
        let policy = policy::for_node(&node.name, &node.labels, self.policies()).ok().flatten();
        policy.map(Policy::methods_named).unwrap_or_default()
    }

    /// What was tried of the node's wiring; what cannot be read verifies nothing.
    pub fn wiring_of(&self, node: &str) -> Wiring {
        let name = wiring::config_map(node);
        let Some(data) = self.tables.get(&name) else { return Wiring::default() };
        Wiring::read(data).unwrap_or_else(|why| {
            tracing::warn!(node, "ConfigMap {name} is no trial of wiring: {why}");
            Wiring::default()
        })
    }

    /// Whether anything is listened for on behalf of any node.
    pub fn listens(&self) -> bool {
        self.fences.values().any(|source| source.watches())
    }

    /// What is listened for on behalf of these nodes. A node that lacks something for it, or that
    /// several configurations are for, is left out: its opening says so.
    pub fn watches<'a>(&self, nodes: impl Iterator<Item = &'a PrunedNode>) -> Vec<NodeWatch> {
        if !self.listens() {
            return Vec::new();
        }
        let mut tables = Tables::new();
        let mut watches = Vec::new();
        for node in nodes {
            let sources = self.fences.values().map(|source| &**source);
            let Ok(Some(source)) = plan::for_node(&node.name, &node.labels, sources) else {
                continue;
            };
            let is_own = matches!(source.nodes, Nodes::Named(_));
            if !source.watches() || (!is_own && self.unreadable.contains_key(&node.name)) {
                continue;
            }
            let mut facts = facts_of(node);
            if let Some(inventory) = &source.inventory {
                let Ok(row) = self.row(inventory, &node.name, &mut tables) else { continue };
                facts.inventory = row;
            }
            let (methods, grants) = source.watches_for(&facts);
            watches.extend(methods.into_iter().map(|method| NodeWatch {
                node: node.name.clone(),
                senders: method.senders(&facts),
                method,
                grants: grants.clone(),
            }));
        }
        watches
    }

    fn row(
        &self,
        inventory: &node_remedy_api::fenceconfiguration::Inventory,
        node: &str,
        tables: &mut Tables,
    ) -> Result<BTreeMap<String, String>, String> {
        let key = (inventory.config_map.clone(), inventory.key.clone());
        let table = tables.entry(key).or_insert_with(|| self.table(inventory));
        table.as_ref().map(|table| table.row(node)).map_err(Clone::clone)
    }

    fn table(
        &self,
        inventory: &node_remedy_api::fenceconfiguration::Inventory,
    ) -> Result<plan::InventoryTable, String> {
        let name = &inventory.config_map;
        let data = self
            .tables
            .get(name)
            .ok_or_else(|| format!("inventory ConfigMap {name} does not exist"))?;
        let text = data
            .get(&inventory.key)
            .ok_or_else(|| format!("inventory ConfigMap {name} has no key {:?}", inventory.key))?;
        plan::InventoryTable::parse(&format!("ConfigMap/{name}"), text)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

/// Whether a remedy is one that can be run, or why not; `is_known` says whether there is a FencePlugin of a
/// name.
///
/// # Errors
/// A sentence where it cannot.
pub fn is_run(
    remedy_step: &policy::RemedyStep,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), String> {
    match &remedy_step.remedy {
        Remedy::Plugin(plugin) if !is_known(plugin) => Err(format!(
            "remedy {}: found no FencePlugin {plugin:?}, expected one of kind remedy",
            remedy_step.name
        )),
        Remedy::Fence
        | Remedy::Isolation
        | Remedy::Method(_)
        | Remedy::Cluster(_)
        | Remedy::PodTemplate(_)
        | Remedy::Plugin(_) => Ok(()),
    }
}

/// A remedy as an incident keeps it.
pub fn remedy_step_of(remedy_step: &policy::RemedyStep) -> RemedyStep {
    let (mut job, mut cluster, mut method, mut plugin) = (None, None, None, None);
    match &remedy_step.remedy {
        Remedy::PodTemplate(template) => job = Some(template.clone()),
        Remedy::Cluster(cluster_action) => cluster = Some(*cluster_action),
        Remedy::Method(name) => method = Some(name.clone()),
        // Which component it is, whoever opens an incident says.
        Remedy::Plugin(name) => {
            plugin = Some(DecidingPlugin { name: name.clone(), digest: String::new() });
        }
        Remedy::Fence | Remedy::Isolation => {}
    }
    let (name, period, clean_resource) =
        (remedy_step.name.clone(), remedy_step.period, remedy_step.clean_resource);
    let isolation_only = remedy_step.remedy == Remedy::Isolation;
    RemedyStep { name, period, clean_resource, job, cluster, method, isolation_only, plugin }
}

/// What a plan may take from a node; its row of the inventory is added by who has one.
pub fn facts_of(node: &PrunedNode) -> NodeFacts {
    NodeFacts {
        name: node.name.clone(),
        labels: node.labels.clone(),
        annotations: node.annotations.clone(),
        addresses: node.addresses.clone(),
        internal_ips: node.internal_ips.clone(),
        provider_id: node.provider_id.clone().unwrap_or_default(),
        system_uuid: node.system_uuid.clone(),
        inventory: BTreeMap::new(),
    }
}

/// A plugin from outside, unless it would stand in the place of one that is built in.
fn plugin(document: &Document) -> Reading<fenceplugin::Source> {
    let mut reading = fenceplugin::read(document);
    if let Some(source) = reading.value.take_if(|source| Plugins::is_builtin(&source.name)) {
        let sentence = format!(
            "found {:?}, which is a built-in plugin, expected a name of its own",
            source.name
        );
        let path = Path::root().field("metadata").field("name");
        reading.problems.push(document.problem(Severity::Error, &path, sentence));
    }
    reading
}

/// What is in force of what stands in a ConfigMap after reading it, and what to say about it.
fn settle_config_map<T>(
    origin: &str,
    reading: Reading<T>,
    last: Option<Rc<T>>,
) -> (Option<Rc<T>>, Readout) {
    let (value, in_force) = in_force(reading.value, last);
    let readout = Readout {
        kind: "ConfigMap",
        name: origin.strip_prefix("ConfigMap/").unwrap_or(origin).to_owned(),
        generation: 0,
        in_force,
        problems: reading.problems.to_string(),
    };
    (value, readout)
}
