//! What is in force for one node, as plain values with their origins. It decides nothing that the
//! controller does not decide by the same functions.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_api::configuration::{Configuration, policy_documents};
use node_remedy_api::document::{Document, Path, Spot, Tree};
use node_remedy_api::nodefence::FencedNode;
use node_remedy_api::plan::{
    FenceSource, Grant, InventoryTable, Method, MethodWritten, NodeFacts, NodePlan, Nodes, Run,
    Stage, Written,
};
use node_remedy_api::policy::{Policy, Remedy, RemedyStep};
use node_remedy_api::{plan, policy};
use node_remedy_config::plan::{incident_policy_of, plan_from, snapshot};
use node_remedy_config::wiring;
use node_remedy_config::wiring::{Wiring, how_bound};
use node_remedy_decide::{
    Access, Backing, Cover, Deletion, Grade, IncidentPolicy, PodView, VolumeView, refuse_plan,
};
use node_remedy_observe::config::{facts_of, is_run, remedy_step_of};
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_sandbox::Names;
use node_remedy_store::describe;
use node_remedy_store::store::Plugins;
use serde::Serialize;
use serde_json::Value;

use crate::plugin_docs;

/// What nobody can say without asking devices and Secrets.
const NOT_LOOKED_AT: &str = "whether devices answer, and whether Secrets exist and hold the right \
                             passwords: node-remedy fence PLUGIN status";

/// What is in force for a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) node: String,
    /// How policy and plan were chosen, in order.
    pub(super) precedence: Vec<String>,
    /// Why it would not be remedied as shown; nothing: it would be.
    pub(super) missing: Vec<String>,
    /// What was found wrong or questionable in everything that was read.
    pub(super) problems: Vec<String>,
    pub(super) policy: Option<ShownPolicy>,
    pub(super) plan: Option<ShownPlan>,
    /// By grade and class of pods: whether they are released.
    pub(super) release: BTreeMap<&'static str, Vec<(&'static str, bool)>>,
    /// What this command does not look at.
    pub(super) not_looked_at: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownPolicy {
    pub(super) origin: String,
    pub(super) mode: Value,
    pub(super) numbers: BTreeMap<String, Sourced>,
    pub(super) thresholds: Vec<ShownThreshold>,
}

/// A value, and where it comes from.
#[derive(Debug, Serialize)]
pub(super) struct Sourced {
    pub(super) value: Value,
    pub(super) from: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownThreshold {
    pub(super) symptom: String,
    pub(super) period: String,
    pub(super) from: String,
    pub(super) ladder: Vec<ShownRemedyStep>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownRemedyStep {
    pub(super) name: String,
    pub(super) remedy: String,
    pub(super) period: String,
    pub(super) clean_resource: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownPlan {
    pub(super) sources: Vec<String>,
    /// By step, in order.
    pub(super) steps: Vec<(&'static str, Vec<ShownStage>)>,
    pub(super) methods: Vec<ShownMethod>,
    pub(super) grants: Vec<Grant>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownStage {
    pub(super) name: String,
    pub(super) run: &'static str,
    pub(super) methods: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownMethod {
    pub(super) name: String,
    /// A plugin, or a built-in method.
    pub(super) does: String,
    pub(super) device: String,
    pub(super) plug: Option<Sourced>,
    pub(super) parameters: BTreeMap<String, Sourced>,
    /// Where secrets stand; never what they are.
    pub(super) credentials: BTreeMap<String, String>,
    pub(super) must_success: bool,
    pub(super) sole_feed: bool,
    pub(super) trust_wiring: bool,
    pub(super) storage_drivers: Vec<String>,
    /// The method that must read the machine as off, too.
    pub(super) witness: Option<Sourced>,
    /// How it is known that the machine behind the plug is the node; nothing of what is built in or
    /// only listens.
    pub(super) bound: Option<String>,
}

impl Shown {
    /// What these documents say of the node.
    pub(super) async fn of(
        node: &PrunedNode,
        documents: &[Document],
        plugins: &Plugins,
        names: &dyn Names,
    ) -> Self {
        plugin_docs::by_documents(plugins, documents);
        let configuration = Configuration::from_documents(documents);
        let problems = configuration.problems.iter().map(ToString::to_string).collect();
        let mut shown = Self {
            node: node.name.clone(),
            precedence: Vec::new(),
            missing: Vec::new(),
            problems,
            policy: None,
            plan: None,
            release: BTreeMap::new(),
            not_looked_at: NOT_LOOKED_AT,
        };
        let policy = shown.take_policy(node, &policy_documents(documents), &configuration);
        let named = policy.as_ref().map(Policy::methods_named).unwrap_or_default();
        let remedy_steps = policy.iter().flat_map(|policy| &policy.thresholds);
        let mut remedy_steps = remedy_steps.flat_map(|threshold| &threshold.ladder);
        if policy.is_some() && !remedy_steps.any(|remedy_step| remedy_step.remedy.may_be_of_plan())
        {
            shown.refuse(policy.as_ref(), &NodePlan::default(), &node.fenced());
            shown.precedence.push("plan: none is needed, no remedy fences".to_owned());
        } else if let Some(plan) = shown.find_plan(node, &configuration, documents, &named) {
            let wiring = shown.wiring(&node.name, documents);
            let plan = shown.take_plan(node, plan, &wiring, plugins, names).await;
            let source = plan::for_node(&node.name, &node.labels, &configuration.fences);
            shown.take_witnesses(&plan, source.ok().flatten(), documents);
            shown.refuse(policy.as_ref(), &plan, &node.fenced());
        }
        shown
    }

    /// What the controller would say to this plan before it opened an incident with it: a plan can be whole, and
    /// a remedy of it still refused.
    fn refuse(&mut self, policy: Option<&Policy>, plan: &NodePlan, node: &FencedNode) {
        let Some(policy) = policy else { return };
        for threshold in &policy.thresholds {
            let ladder: Vec<_> = threshold.ladder.iter().map(remedy_step_of).collect();
            let why = match plan_from(plan, node, &ladder) {
                Ok(plan) => {
                    let refusal = refuse_plan(&plan, &incident_policy_of(&policy.incident));
                    refusal.map(|refusal| refusal.to_string())
                }
                // What is wrong with the plan itself was said when it was read.
                Err(error) => plan_from(plan, node, &[]).is_ok().then(|| error.to_string()),
            };
            self.missing.extend(why.filter(|why| !self.missing.contains(why)));
        }
    }

    /// The policy that is followed for the node, if there is one.
    fn take_policy(
        &mut self,
        node: &PrunedNode,
        documents: &[Document],
        configuration: &Configuration,
    ) -> Option<Policy> {
        // A key of a ConfigMap counts as a whole: what is valid beside what is not is not followed.
        let is_followed = |policy: &Policy| {
            let same =
                |one: &&Policy| **one == Policy { origin: one.origin.clone(), ..policy.clone() };
            configuration.policies.iter().find(same).cloned()
        };
        let read: Vec<(&Document, Policy)> = documents
            .iter()
            .filter_map(|document| Some((document, is_followed(&policy::read(document).value?)?)))
            .collect();
        let policies = read.iter().map(|(_, policy)| policy);
        let chosen = match policy::for_node(&node.name, &node.labels, policies) {
            Ok(chosen) => chosen,
            Err(twice) => {
                self.missing.push(twice.to_string());
                return None;
            }
        };
        let found =
            chosen.and_then(|chosen| read.iter().find(|(_, one)| std::ptr::eq(one, chosen)));
        let Some((document, policy)) = found else {
            let sentence = "no RemedyConfiguration and no Configuration selects the node: nothing is \
                            done about it";
            self.missing.push(sentence.to_owned());
            return None;
        };
        self.precedence.push(format!(
            "policy: {}, whose nodeSelector is the only one that selects \
                                      the node",
            policy.origin
        ));
        let base = base_of(document);
        let numbers = policy.numbers().into_iter().map(|(name, value)| {
            let path = base.field("policies").field(&name);
            let from = match document.at(&path) {
                Some(_) => place(&document.spot(&path)),
                None => "default".to_owned(),
            };
            (name, Sourced { value, from })
        });
        let thresholds = (0_usize..).zip(&policy.thresholds).map(|(index, threshold)| {
            let is_known = |name: &str| configuration.plugins.iter().any(|one| one.name == name);
            for why in threshold
                .ladder
                .iter()
                .filter_map(|remedy_step| is_run(remedy_step, is_known).err())
            {
                self.missing.push(why);
            }
            ShownThreshold {
                symptom: threshold.symptom.to_string(),
                period: threshold.period.to_string(),
                from: place(&document.spot(&base.field("thresholdConfigs").index(index))),
                ladder: threshold.ladder.iter().map(remedy_step).collect(),
            }
        });
        let shown = ShownPolicy {
            origin: policy.origin.clone(),
            mode: serde_json::to_value(policy.mode).unwrap_or_default(),
            numbers: numbers.collect(),
            thresholds: thresholds.collect(),
        };
        self.release = release(&incident_policy_of(&policy.incident));
        self.policy = Some(shown);
        Some(policy.clone())
    }

    /// The node's plan with where its values were written, or nothing where something is missing.
    fn find_plan(
        &mut self,
        node: &PrunedNode,
        configuration: &Configuration,
        documents: &[Document],
        named: &BTreeSet<String>,
    ) -> Option<(NodePlan, Vec<MethodWritten>)> {
        let mut facts = facts_of(node);
        let fences = &configuration.fences;
        let source = match plan::for_node(&node.name, &node.labels, fences) {
            Ok(source) => source,
            Err(twice) => {
                self.missing.push(twice.to_string());
                return None;
            }
        };
        let Some(source) = source else {
            return self.cloud_default(&facts);
        };
        self.precedence.push(chosen_for(source, fences, node));
        if let Some(inventory) = &source.inventory {
            match table(&inventory.config_map, &inventory.key, documents) {
                Ok(table) => facts.inventory = table.row(&node.name),
                Err(why) => self.missing.push(why),
            }
        }
        let reading = source.plan_for(&facts, named);
        let errors = reading.problems.errors().map(ToString::to_string);
        self.missing.extend(errors);
        reading.value.map(|plan| (plan, source.written(named)))
    }

    fn cloud_default(&mut self, facts: &NodeFacts) -> Option<(NodePlan, Vec<MethodWritten>)> {
        let plan = plan::default_plan(facts);
        match plan {
            Some(_) => self.precedence.push(format!(
                "plan: the default for cloud nodes, by spec.providerID {:?}: no ConfigMap names the \
                 node and no FenceConfiguration selects it",
                facts.provider_id
            )),
            None => self.missing.push(
                "no ConfigMap names the node, no FenceConfiguration selects it, and its providerID is \
                 of no known cloud: nobody knows how it is fenced"
                    .to_owned(),
            ),
        }
        plan.map(|plan| (plan, Vec::new()))
    }

    /// What was tried of the node's wiring.
    fn wiring(&mut self, node: &str, documents: &[Document]) -> Wiring {
        let name = wiring::config_map(node);
        let found = documents.iter().find(|document| is_config_map(document, &name));
        let text = found.and_then(|one| one.root.get("data")?.get(wiring::KEY)?.text());
        let data = text.map(|text| BTreeMap::from([(wiring::KEY.to_owned(), text.to_owned())]));
        match (found, data.map(|data| Wiring::read(&data))) {
            (_, Some(Ok(wiring))) => wiring,
            (None, _) => Wiring::default(),
            (Some(_), unread) => {
                let why = unread.and_then(Result::err).unwrap_or_else(|| "no text".to_owned());
                self.problems.push(format!("ConfigMap {name} is no trial of wiring: {why}"));
                Wiring::default()
            }
        }
    }

    /// Answers the plan as an incident would keep it.
    async fn take_plan(
        &mut self,
        node: &PrunedNode,
        (plan, written): (NodePlan, Vec<MethodWritten>),
        wiring: &Wiring,
        plugins: &Plugins,
        names: &dyn Names,
    ) -> NodePlan {
        let find = |plugin: &str| describe::facts_of(plugins, plugin);
        let plan = match snapshot(&plan, &node.fenced(), wiring, find) {
            Ok(completed) => completed,
            Err(error) => {
                self.missing.push(error.to_string());
                plan
            }
        };
        for method in &plan.methods {
            if let Err(why) = describe::ready(plugins, method, &plan.grants, names).await {
                self.missing.push(format!("method {}: {why}", method.name));
            }
        }
        let name = |index: &u32| {
            let index = usize::try_from(*index).ok()?;
            plan.methods.get(index).map(|method| method.name.clone())
        };
        let stages = |stages: &[Stage]| -> Vec<ShownStage> {
            let shown = stages.iter().map(|stage| ShownStage {
                name: stage.name.clone(),
                run: match stage.run {
                    Run::All => "all",
                    Run::OnlyOne => "only-one",
                },
                methods: stage.methods.iter().filter_map(name).collect(),
            });
            shown.collect()
        };
        let none = MethodWritten::default();
        let written = written.iter().chain(std::iter::repeat(&none));
        self.plan = Some(ShownPlan {
            sources: plan.sources.clone(),
            steps: vec![
                ("isolation", stages(&plan.isolation)),
                ("powerManagement", stages(&plan.power_management)),
                ("recovery", stages(&plan.recovery)),
            ],
            methods: plan
                .methods
                .iter()
                .zip(written)
                .map(|(one, written)| {
                    let bound = how_bound(one, wiring, &node.fenced());
                    ShownMethod { bound, ..method(one, written) }
                })
                .collect(),
            grants: plan.grants.clone(),
        });
        plan
    }
}

/// Where the fields of a policy stand: in `spec`, or beside the header of a `Configuration`.
fn base_of(document: &Document) -> Path {
    let kind = document.root.get("kind").and_then(Tree::text);
    if kind == Some("Configuration") { Path::root() } else { Path::root().field("spec") }
}

pub(super) fn place(spot: &Spot) -> String {
    let Spot { origin, place, path } = spot;
    let origin = match place {
        Some(place) => format!("{origin}:{}:{}:", place.line, place.column),
        None => origin.clone(),
    };
    format!("{origin} {path}")
}

fn chosen_for(source: &FenceSource, fences: &[FenceSource], node: &PrunedNode) -> String {
    let origin = &source.origin;
    if matches!(source.nodes, Nodes::Selected(_)) {
        return format!("plan: {origin}, the only one whose nodeSelector selects the node");
    }
    let passed = fences.iter().filter(
        |one| matches!(&one.nodes, Nodes::Selected(selector) if selector.matches(&node.labels)),
    );
    let passed: Vec<&str> = passed.map(|one| one.origin.as_str()).collect();
    let before = if passed.is_empty() {
        String::new()
    } else {
        format!("; it goes before {}", passed.join(", "))
    };
    format!("plan: {origin}, which names the node{before}")
}

fn table(name: &str, key: &str, documents: &[Document]) -> Result<InventoryTable, String> {
    let document = documents.iter().find(|document| is_config_map(document, name));
    let document = document.ok_or_else(|| format!("inventory ConfigMap {name} does not exist"))?;
    let data = document.root.get("data").and_then(|data| data.get(key)).and_then(Tree::text);
    let text = data.ok_or_else(|| format!("inventory ConfigMap {name} has no key {key:?}"))?;
    InventoryTable::parse(&format!("ConfigMap/{name}"), text)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn is_config_map(document: &Document, name: &str) -> bool {
    let text = |tree: Option<&Tree>| tree.and_then(Tree::text).unwrap_or_default().to_owned();
    let metadata = document.metadata();
    text(document.root.get("kind")) == "ConfigMap"
        && text(metadata.and_then(|metadata| metadata.get("name"))) == name
}

fn remedy_step(remedy_step: &RemedyStep) -> ShownRemedyStep {
    let remedy = match &remedy_step.remedy {
        Remedy::Fence => "the plan below".to_owned(),
        Remedy::Isolation => "the plan's isolation".to_owned(),
        Remedy::Method(method) => format!("the method {method}"),
        Remedy::Cluster(cluster_action) => format!("{cluster_action}, in the cluster"),
        Remedy::PodTemplate(job) => format!("a Job, within {}", job.deadline),
        Remedy::Plugin(plugin) => format!("the plugin {plugin}"),
    };
    ShownRemedyStep {
        name: remedy_step.name.clone(),
        remedy,
        period: remedy_step.period.to_string(),
        clean_resource: remedy_step.clean_resource,
    }
}

fn method(method: &Method, written: &MethodWritten) -> ShownMethod {
    let parameters = method.parameters.iter().map(|(name, value)| {
        let hidden = plan::is_hidden(name);
        let value = if hidden { "(not shown)".into() } else { value.as_str().into() };
        (name.clone(), Sourced { value, from: from(written.parameters.get(name)) })
    });
    let credentials = method.credentials.iter();
    ShownMethod {
        name: method.name.clone(),
        does: match (&method.plugin, method.builtin) {
            (Some(plugin), _) => plugin.clone(),
            (None, Some(builtin)) => format!("built in: {}", builtin.word()),
            (None, None) => "nothing".to_owned(),
        },
        device: method.device.clone(),
        plug: (!method.plug.is_empty()).then(|| Sourced {
            value: method.plug.as_str().into(),
            from: from(written.plug.as_ref()),
        }),
        parameters: parameters.collect(),
        credentials: credentials
            .map(|(name, credential)| (name.clone(), describe::place_of(credential)))
            .collect(),
        must_success: method.must_success,
        sole_feed: method.sole_feed,
        trust_wiring: method.trust_wiring,
        storage_drivers: method.storage_drivers.clone(),
        witness: None,
        bound: None,
    }
}

/// Where a value was written; what nobody wrote follows from the instance's name.
fn from(written: Option<&Written>) -> String {
    match written {
        None => "node spec.providerID".to_owned(),
        Some(Written { expression: None, spot, .. }) => place(spot),
        Some(Written { expression: Some(text), spot, .. }) => format!("{text} in {}", place(spot)),
    }
}

/// Which pods each grade releases; DESIGN's table as the policy in force makes it.
fn release(policy: &IncidentPolicy) -> BTreeMap<&'static str, Vec<(&'static str, bool)>> {
    let volume = |driver: &str, access, safe_detach| {
        let (driver, in_use_as) = (driver.to_owned(), String::new());
        let backing = Backing::Persistent { name: String::new(), driver, in_use_as };
        VolumeView { backing, access, safe_detach }
    };
    let pod = |volumes| PodView {
        uid: String::new(),
        name: String::new(),
        exempt: None,
        volumes,
        ready: false,
        deletion: Deletion::NotAsked,
        finalizers: Vec::new(),
    };
    let classes = [
        ("no volume", pod(Vec::new())),
        ("shared volumes", pod(vec![volume("shared", Access::Many, false)])),
        ("own volume", pod(vec![volume("own", Access::One, false)])),
        ("volume that is cut", pod(vec![volume("cut", Access::One, false)])),
        ("safe to detach", pod(vec![volume("safe", Access::One, true)])),
    ];
    let cut = BTreeSet::from(["cut"]);
    let all = [
        Grade::PowerOffVerified,
        Grade::StorageFenced,
        Grade::WatchdogDeadline,
        Grade::OperatorConfirmed,
        Grade::JobSucceeded,
        Grade::KdumpSeen,
        Grade::Partition,
        Grade::NewBootId,
    ];
    let row = |grade: Grade| {
        let cover = Cover { grade, dumps: policy.kdump_releases };
        let is_released = |pod| policy.grades.contains(&grade) && cover.covers_pod(pod, &cut);
        let cells = classes.iter().map(|(class, pod)| (*class, is_released(pod))).collect();
        (grade.word(), cells)
    };
    all.map(row).into()
}
