//! What an incident will do, on its way from the configuration to `decide`.
//!
//! [`snapshot`] completes a compiled plan with what plugins and node say, once, when an incident
//! is opened; [`plan_of`] reads that snapshot for as long as the incident lasts. Beside it the
//! numbers in force. Nothing here calls a plugin or judges whether a plan is wise; a
//! snapshot that contradicts itself is refused by name and place.

pub mod identity;

use std::collections::BTreeSet;

use node_remedy_api::nodefence::{FencedNode, NodeFenceSpec, RemedyStep};
use node_remedy_api::plan as api;
use node_remedy_api::plan::{MethodFacts, NodePlan, PluginKind};
use node_remedy_api::policy::{
    Breaker, CordonedByOthers, GateLimits, IncidentPolicy, ReleaseMode, TopologyLimit,
};
use node_remedy_api::time::Span;
use node_remedy_decide as decide;
use node_remedy_decide::ForeignCordon;

use crate::enums::Twin as _;
use crate::wiring::Wiring;

/// Of a plugin that is a remedy.
const ONLY_DECIDES: &str =
    "it is a remedy, which decides and does nothing; name it under remedyConfigs";

/// What a plugin says of itself, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFacts {
    /// sha256 of the component.
    pub digest: String,
    /// What its success proves.
    pub kind: PluginKind,
    /// How long after a lost call its effect may still come.
    pub late_effect: Span,
    /// Identity fields that its `status` reports.
    pub identity: Vec<String>,
}

impl PluginFacts {
    /// Whether its devices say which machine a plug is.
    pub fn names_machine(&self) -> bool {
        self.identity.iter().any(|field| crate::plan::identity::is_known(field))
    }

    /// Whether it switches power by plugs that know no machine.
    pub fn is_outlet(&self) -> bool {
        self.kind == PluginKind::Power && !self.names_machine()
    }
}

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A place in the list of methods that does not exist.
    #[error("{place}: found method {found}, expected one below {methods}")]
    NoSuchMethod {
        /// Where it is named.
        place: String,
        /// What is named.
        found: u32,
        /// How many there are.
        methods: usize,
    },
    /// Done by a plugin and built in, or neither.
    #[error("method {method}: expected either a plugin or a built-in method")]
    PluginOrBuiltin {
        /// Which.
        method: String,
    },
    /// The plugin cannot be had.
    #[error("method {method}: plugin {plugin:?} cannot be used: {why}")]
    Plugin {
        /// Which method.
        method: String,
        /// Which plugin.
        plugin: String,
        /// Why.
        why: String,
    },
    /// The snapshot lacks what only plugin and node know.
    #[error("method {method}: found no {field}, expected it in the incident's snapshot")]
    Incomplete {
        /// Which method.
        method: String,
        /// What is missing.
        field: &'static str,
    },
    /// A remedy names a method that cannot be one.
    #[error("remedy {remedy}: method {method:?} cannot be a remedy: {why}")]
    NoRemedy {
        /// Which remedy.
        remedy: String,
        /// The method as it is named there.
        method: String,
        /// Why.
        why: String,
    },
    /// What does not cut storage cuts no driver's.
    #[error("method {method}: found storageDrivers, expected them with a method that cuts storage")]
    NotStorage {
        /// Which.
        method: String,
    },
    /// What proves an off by other eyes must be another plugin's, and see power.
    #[error(
        "method {method}: found {witness} as its witness, expected a method of another plugin that reads \
         the machine's power"
    )]
    NoWitness {
        /// Whose.
        method: String,
        /// What was named.
        witness: String,
    },
    /// Its own witness is no second pair of eyes.
    #[error("method {method}: found itself as witness, expected another method")]
    OwnWitness {
        /// Which.
        method: String,
    },
    /// The first that succeeds is enough, and yet this one must.
    #[error("{stage}: method {method} must succeed, but only one method of the stage runs")]
    MustSucceedAlone {
        /// Which stage.
        stage: String,
        /// Which method.
        method: String,
    },
    /// One outlet that may not be the machine's only one would read as the whole machine.
    #[error(
        "method {method}: found one outlet that may be one of several, expected soleFeed: true \
         or every outlet of the machine"
    )]
    LoneOutlet {
        /// Which.
        method: String,
    },
}

/// Completes a compiled plan with what plugins and node say, and with what was tried of its wiring;
/// `find` knows the plugins.
pub fn snapshot(
    plan: &NodePlan,
    node: &FencedNode,
    wiring: &Wiring,
    mut find: impl FnMut(&str) -> Result<PluginFacts, String>,
) -> Result<NodePlan, PlanError> {
    let mut completed = plan.clone();
    for method in &mut completed.methods {
        let Some(name) = &method.plugin else {
            method.facts = None;
            continue;
        };
        let plugin = find(name).map_err(|why| PlanError::Plugin {
            method: method.name.clone(),
            plugin: name.clone(),
            why,
        })?;
        let is_verified = wiring.of(node, method, plan).is_some();
        method.facts = Some(facts_of(method, plugin, node, is_verified));
    }
    plan_from(&completed, node, &[]).map(|_| completed)
}

/// The plan of an incident.
pub fn plan_of(spec: &NodeFenceSpec) -> Result<decide::Plan, PlanError> {
    plan_from(&spec.plan, &spec.node, &spec.ladder)
}

/// The numbers of an incident.
pub fn incident_policy_of(policy: &IncidentPolicy) -> decide::IncidentPolicy {
    use decide::{Approval, FoundOff, IsolatedForGood};
    decide::IncidentPolicy {
        isolate_after: policy.isolate_after.twin(),
        power_after: policy.power_after.twin(),
        kdump_grace: policy.kdump_grace.map(Span::twin),
        retries: policy.retries,
        restarts: policy.restarts,
        backoff: policy.backoff.twin(),
        off_timeout: policy.off_timeout.twin(),
        on_timeout: policy.on_timeout.twin(),
        release_timeout: policy.release_timeout.twin(),
        cleanup_timeout: policy.cleanup_timeout.twin(),
        recover_timeout: policy.recover_timeout.twin(),
        gate_timeout: policy.gate_timeout.twin(),
        device_timeout: policy.device_timeout.twin(),
        release: match policy.release_mode {
            ReleaseMode::Prompt => decide::ReleaseMode::Prompt,
            // None a minute would hold pods for ever.
            ReleaseMode::Paced => {
                decide::ReleaseMode::Paced { pods_per_minute: policy.pods_per_minute.max(1) }
            }
        },
        grades: policy.grades.iter().map(|grade| grade.twin()).collect(),
        kdump_releases: policy.kdump_releases.twin(),
        identity: policy.identity.twin(),
        found_off: if policy.power_on_if_found_off {
            FoundOff::PowerOn
        } else {
            FoundOff::LeaveOff
        },
        isolated_for_good: if policy.park_isolated {
            IsolatedForGood::Park
        } else {
            IsolatedForGood::Refuse
        },
        approval: if policy.approval { Approval::Needed } else { Approval::NotNeeded },
        pdb_patience: policy.pdb_patience.twin(),
    }
}

/// The gate's limits.
pub fn gate_policy_of(limits: &GateLimits) -> decide::GatePolicy {
    decide::GatePolicy {
        unhealthy_percent_max: limits.max_unhealthy_percent,
        unhealthy_max: limits.max_unhealthy_count,
        silent_at_once_max: limits.max_silent_at_once,
        in_flight_max: limits.max_in_flight,
        cool_down: limits.cool_down.twin(),
        foreign_cordon: foreign_cordon(limits),
        storage_lease_age_max: limits.storage_leases.as_ref().map(|one| one.max_age.twin()),
        schedulable_percent_min: limits.min_schedulable_percent,
        breaker: limits.breaker.as_ref().map(breaker_of),
        domains: limits.topologies.iter().map(domain_limit_of).collect(),
    }
}

fn breaker_of(breaker: &Breaker) -> decide::BreakerPolicy {
    decide::BreakerPolicy {
        incidents_max: breaker.max_incidents,
        window: breaker.window.twin(),
        cool_down: breaker.cool_down.twin(),
    }
}

fn domain_limit_of(limit: &TopologyLimit) -> decide::DomainLimit {
    decide::DomainLimit {
        key: limit.key.clone(),
        unhealthy_percent_max: limit.max_unhealthy_percent,
        in_flight_max: limit.max_in_flight,
    }
}

fn facts_of(
    method: &api::Method,
    plugin: PluginFacts,
    node: &FencedNode,
    is_verified: bool,
) -> MethodFacts {
    // Only what power is switched by is compared with the node.
    let reports_machine = plugin.names_machine() && plugin.kind != PluginKind::Storage;
    let (power, fabric) = match plugin.kind {
        PluginKind::Power => (true, false),
        PluginKind::Fabric => (false, true),
        PluginKind::Storage | PluginKind::Watch | PluginKind::Remedy => (false, false),
    };
    let may_prove = power || !method.storage_drivers.is_empty();
    // A device that names the machine powers all of it; an outlet does only if somebody says so.
    let feed = if reports_machine || method.sole_feed { api::Feed::Whole } else { api::Feed::Part };
    MethodFacts {
        digest: plugin.digest,
        kind: plugin.kind,
        feed: power.then_some(feed),
        // Nobody said that the way to the API server is another one.
        cuts_api_server: fabric,
        late_effect: plugin.late_effect,
        // An outlet or a port may be another machine's, which may live on by a second one, so that nothing would tell
        // (rule P8).
        binding: match (reports_machine, is_verified) {
            (true, _) => api::Binding::Reported,
            (false, true) => api::Binding::Verified,
            (false, false) if may_prove && !method.trust_wiring => api::Binding::Unverified,
            (false, false) => api::Binding::Labelled,
        },
        expected: crate::plan::identity::expected(node, &plugin.identity),
    }
}

/// A snapshot as `decide` takes it, with the remedies that it serves.
pub fn plan_from(
    plan: &NodePlan,
    node: &FencedNode,
    ladder: &[RemedyStep],
) -> Result<decide::Plan, PlanError> {
    let methods = plan.methods.iter().enumerate();
    let ladder: Vec<decide::RemedyStep> = ladder
        .iter()
        .map(|remedy_step| remedy_step_of(remedy_step, plan))
        .collect::<Result<_, _>>()?;
    let plan = decide::Plan {
        node: decide::Node { name: node.name.clone(), uid: node.uid.clone() },
        methods: methods
            .map(|(own, one)| {
                check_witness(one, own, &plan.methods)?;
                method_of(one, own, &plan.methods)
            })
            .collect::<Result<_, _>>()?,
        isolation: stages_of("isolation", &plan.isolation, plan)?,
        power: stages_of("powerManagement", &plan.power_management, plan)?,
        recovery: stages_of("recovery", &plan.recovery, plan)?,
        beside: beside(plan, &ladder),
        ladder,
    };
    refuse_lone_outlet(&plan)?;
    Ok(plan)
}

/// The methods that only a remedy names.
fn beside(plan: &NodePlan, ladder: &[decide::RemedyStep]) -> Vec<decide::MethodIndex> {
    let named = ladder.iter().filter_map(|remedy_step| match remedy_step.remedy {
        decide::Remedy::Method(index) => Some(index),
        decide::Remedy::Fence
        | decide::Remedy::Isolation
        | decide::Remedy::Job { .. }
        | decide::Remedy::Cluster(_)
        | decide::Remedy::Plugin => None,
    });
    let cuts = [&plan.isolation, &plan.power_management];
    let named = named.filter(|index| !cuts.iter().any(|stages| names(stages, *index)));
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

fn names(stages: &[api::Stage], index: decide::MethodIndex) -> bool {
    let mut methods = stages.iter().flat_map(|stage| &stage.methods);
    methods.any(|named| usize::try_from(*named) == Ok(index))
}

fn remedy_step_of(
    remedy_step: &RemedyStep,
    plan: &NodePlan,
) -> Result<decide::RemedyStep, PlanError> {
    let remedy = match (&remedy_step.job, remedy_step.cluster, &remedy_step.method) {
        (None, None, None) if remedy_step.plugin.is_some() => decide::Remedy::Plugin,
        (Some(job), _, _) => decide::Remedy::Job { deadline: job.deadline.twin() },
        (None, Some(cluster_action), _) => decide::Remedy::Cluster(cluster_action.twin()),
        (None, None, Some(method)) => {
            decide::Remedy::Method(method_named(method, remedy_step, plan)?)
        }
        (None, None, None) if remedy_step.isolation_only => decide::Remedy::Isolation,
        (None, None, None) => decide::Remedy::Fence,
    };
    let (name, clean) = (remedy_step.name.clone(), remedy_step.clean_resource);
    Ok(decide::RemedyStep { name, remedy, period: remedy_step.period.twin(), clean })
}

/// The method that a remedy names. Of a pair such as `port-off` and `port-on` the plan has one method,
/// under the stem of both names, and either name means it.
fn method_named(
    name: &str,
    remedy_step: &RemedyStep,
    plan: &NodePlan,
) -> Result<decide::MethodIndex, PlanError> {
    let stem = name.strip_suffix("-off").or_else(|| name.strip_suffix("-on"));
    let place = |wanted: &str| plan.methods.iter().position(|method| method.name == wanted);
    let index = place(name).or_else(|| place(stem?));
    let not_one = |why| PlanError::NoRemedy {
        remedy: remedy_step.name.clone(),
        method: name.to_owned(),
        why,
    };
    let Some((index, method)) = index.and_then(|index| Some((index, plan.methods.get(index)?)))
    else {
        let known = plan.methods.iter().map(|method| method.name.as_str()).collect::<Vec<_>>();
        return Err(not_one(format!(
            "the node's FenceConfiguration has none of that name under methods; its stages name {}",
            known.join(", ")
        )));
    };
    let why = match (method.builtin, method.facts.as_ref().map(|facts| facts.kind)) {
        (Some(builtin), _) if builtin != api::Builtin::NetworkFence => {
            "it is built in; say cluster: and what is to be done"
        }
        (_, Some(PluginKind::Watch)) => "it only sees, and does nothing",
        (_, Some(PluginKind::Remedy)) => ONLY_DECIDES,
        (_, _)
            if plan
                .methods
                .iter()
                .any(|one| one.witness.map(usize::try_from) == Some(Ok(index))) =>
        {
            "it is another method's witness: it reads, and does nothing"
        }
        (_, _)
            if names(&plan.recovery, index)
                && !names(&plan.isolation, index)
                && !names(&plan.power_management, index) =>
        {
            "only recovery names it: it gives back, and takes nothing"
        }
        (Some(_) | None, Some(_) | None) => return Ok(index),
    };
    Err(not_one(why.to_owned()))
}

/// The method that must read off, too; another plugin's, and one that reads power.
fn check_witness(
    method: &api::Method,
    own: usize,
    methods: &[api::Method],
) -> Result<(), PlanError> {
    let Some(witness) = witness_of(method, methods.len())? else { return Ok(()) };
    let name = || method.name.clone();
    if witness == own {
        return Err(PlanError::OwnWitness { method: name() });
    }
    let Some(witness) = methods.get(witness) else { return Ok(()) };
    let reads = |method: &api::Method| method.facts.as_ref().map(|facts| facts.kind);
    if witness.plugin == method.plugin || reads(witness) != Some(PluginKind::Power) {
        return Err(PlanError::NoWitness { method: name(), witness: witness.name.clone() });
    }
    Ok(())
}

fn witness_of(
    method: &api::Method,
    count: usize,
) -> Result<Option<decide::MethodIndex>, PlanError> {
    let place = |found| method_index(found, count, || format!("method {}: witness", method.name));
    method.witness.map(place).transpose()
}

fn method_of(
    method: &api::Method,
    own: usize,
    methods: &[api::Method],
) -> Result<decide::Method, PlanError> {
    let name = || method.name.clone();
    let is_witness =
        methods.iter().any(|other| other.witness.map(usize::try_from) == Some(Ok(own)));
    let (kind, device_kind) = match (&method.plugin, method.builtin) {
        (Some(plugin), None) if is_witness => (decide::Kind::Watch, plugin.clone()),
        (Some(plugin), None) => (kind_of(method, plugin, facts(method)?)?, plugin.clone()),
        (None, Some(builtin)) => kind_of_builtin(method, builtin),
        (Some(_), Some(_)) | (None, None) => {
            return Err(PlanError::PluginOrBuiltin { method: name() });
        }
    };
    Ok(decide::Method {
        name: name(),
        kind,
        device: method.device.clone(),
        device_kind,
        plug: method.plug.clone(),
        must_success: method.must_success,
        late_effect: late_effect(method),
        binding: method.facts.as_ref().map_or(decide::Binding::Labelled, binding_of),
        witness: witness_of(method, methods.len())?,
    })
}

/// How long after a lost call its effect may still come.
fn late_effect(method: &api::Method) -> decide::Span {
    if method.builtin == Some(api::Builtin::NetworkFence) {
        return decide::WRITE_LATE_MAX;
    }
    method.facts.as_ref().map_or(Span::default(), |one| one.late_effect).twin()
}

/// A NetworkFence is a storage method to `decide`; only how it is called differs.
fn kind_of_builtin(method: &api::Method, builtin: api::Builtin) -> (decide::Kind, String) {
    use decide::Builtin;
    let builtin = match builtin {
        api::Builtin::MarkUnschedulable => Builtin::MarkUnschedulable,
        api::Builtin::MarkSchedulable => Builtin::MarkSchedulable,
        api::Builtin::Quarantine => Builtin::Quarantine,
        api::Builtin::CleanResources => Builtin::CleanResources,
        api::Builtin::DeleteNode => Builtin::DeleteNode,
        api::Builtin::NetworkFence => {
            let drivers = method.storage_drivers.clone();
            return (decide::Kind::Storage { drivers }, builtin.word().to_owned());
        }
    };
    (decide::Kind::Builtin(builtin), String::new())
}

fn facts(method: &api::Method) -> Result<&MethodFacts, PlanError> {
    let missing = || PlanError::Incomplete { method: method.name.clone(), field: "facts" };
    method.facts.as_ref().ok_or_else(missing)
}

fn kind_of(
    method: &api::Method,
    device_kind: &str,
    facts: &MethodFacts,
) -> Result<decide::Kind, PlanError> {
    if facts.kind != PluginKind::Storage && !method.storage_drivers.is_empty() {
        return Err(PlanError::NotStorage { method: method.name.clone() });
    }
    Ok(match facts.kind {
        PluginKind::Power if method.reset_only => decide::Kind::ResetOnly,
        PluginKind::Power => {
            let name = || method.name.clone();
            let missing = || PlanError::Incomplete { method: name(), field: "facts.feed" };
            decide::Kind::Power(facts.feed.ok_or_else(missing)?.twin())
        }
        PluginKind::Fabric if facts.cuts_api_server => {
            decide::Kind::Fabric(decide::Path::ApiServer)
        }
        PluginKind::Fabric => decide::Kind::Fabric(decide::Path::Other),
        PluginKind::Storage => decide::Kind::Storage { drivers: method.storage_drivers.clone() },
        PluginKind::Watch => decide::Kind::Watch,
        PluginKind::Remedy => {
            let (method, why) = (method.name.clone(), ONLY_DECIDES.to_owned());
            let plugin = device_kind.to_owned();
            return Err(PlanError::Plugin { method, plugin, why });
        }
    })
}

fn binding_of(facts: &MethodFacts) -> decide::Binding {
    let pair = |field: &node_remedy_api::nodefence::IdentityField| {
        (field.name.clone(), field.value.clone())
    };
    match facts.binding {
        api::Binding::Reported => {
            decide::Binding::Reported { expected: facts.expected.iter().map(pair).collect() }
        }
        api::Binding::Verified | api::Binding::Labelled => decide::Binding::Labelled,
        api::Binding::Unverified => decide::Binding::Unverified,
    }
}

fn stages_of(
    step: &str,
    stages: &[api::Stage],
    plan: &NodePlan,
) -> Result<Vec<decide::Stage>, PlanError> {
    let numbered = stages.iter().enumerate();
    numbered.map(|(at, stage)| stage_of(&format!("{step}[{at}]"), stage, plan)).collect()
}

fn stage_of(place: &str, stage: &api::Stage, plan: &NodePlan) -> Result<decide::Stage, PlanError> {
    let mut methods = Vec::new();
    for (at, found) in stage.methods.iter().enumerate() {
        let at = || format!("{place}.methods[{at}]");
        let index = method_index(*found, plan.methods.len(), at)?;
        let alone = stage.run == api::Run::OnlyOne;
        if let Some(method) = plan.methods.get(index).filter(|one| alone && one.must_success) {
            let (stage, method) = (stage.name.clone(), method.name.clone());
            return Err(PlanError::MustSucceedAlone { stage, method });
        }
        methods.push(index);
    }
    Ok(decide::Stage {
        name: stage.name.clone(),
        execution: stage.run.twin(),
        methods,
        needed_for: stage.needed_for.twin(),
    })
}

fn method_index(
    found: u32,
    methods: usize,
    place: impl FnOnce() -> String,
) -> Result<decide::MethodIndex, PlanError> {
    let index = usize::try_from(found).ok().filter(|index| *index < methods);
    index.ok_or_else(|| PlanError::NoSuchMethod { place: place(), found, methods })
}

/// A machine is off when all its parts are; of one part alone nobody knows what the rest is.
fn refuse_lone_outlet(plan: &decide::Plan) -> Result<(), PlanError> {
    let mut parts = plan.power_methods().filter_map(|index| {
        plan.method(index).filter(|one| one.kind == decide::Kind::Power(decide::Feed::Part))
    });
    match (parts.next(), parts.next()) {
        (Some(lone), None) => Err(PlanError::LoneOutlet { method: lone.name.clone() }),
        (Some(_) | None, Some(_)) | (None, None) => Ok(()),
    }
}

/// What the policy makes of a cordon that is not ours.
pub fn foreign_cordon(limits: &GateLimits) -> ForeignCordon {
    match limits.cordoned_by_others {
        CordonedByOthers::Maintenance => ForeignCordon::Maintenance,
        CordonedByOthers::Ignore => ForeignCordon::Ignore,
    }
}

#[cfg(test)]
mod tests;
