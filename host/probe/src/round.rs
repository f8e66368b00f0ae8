//! Asks every device whether it answers, before anybody needs it.
//!
//! Every process calls `monitor` of each device that the plans of the nodes name, one after another,
//! and whoever leads tells what came of it. Nothing is decided by it: a device that answered a minute
//! ago may be dead, and an incident finds out itself. A device that an open incident uses is left to the
//! incident; of one that an incident waits for, a process that stands by says whether it reaches it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;
use node_remedy_api::fenceconfiguration::DeviceState;
use node_remedy_api::nodefence::{NodeFence, Phase};
use node_remedy_api::plan::{Grant, Method, NodePlan, PluginKind, is_cloud};
use node_remedy_config::plan::{incident_policy_of, plan_from, snapshot};
use node_remedy_context::context::Context;
use node_remedy_context::device_health::{Answer, Path, Place};
use node_remedy_decide::{End, FailureKind, PlanRefusal, refuse_plan};
use node_remedy_observe::claims::Claims;
use node_remedy_observe::config::{Config, Tables};
use node_remedy_observe::nodefences::REACHED_BY;
use node_remedy_observe::pruned::PrunedNode;
use node_remedy_runtime::clock::timestamp;
use node_remedy_runtime::cluster::annotate::annotation;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};
use node_remedy_store::store::Plugins;
use tokio::time::{Instant, sleep, sleep_until};

use crate::device_network;
use crate::status::tell;

/// Devices that are asked at once; dead ones each take `PROBE_MAX` of `host/act`.
const AT_ONCE_MAX: usize = 32;

/// Between one probe and the next, where there are few.
const GAP_MAX: Duration = Duration::from_millis(200);
/// The same for machines of a cloud: all of them share the account's limit of requests, which an incident
/// may need.
const CLOUD_GAP_MIN: Duration = Duration::from_millis(500);
/// While a round goes on, what it found is told this often.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// How often the devices that incidents wait for are asked by who stands by.
const STAND_IN_EVERY: Duration = Duration::from_secs(15);

/// Nodes whose plans are made without letting anybody else work.
const NODES_AT_ONCE: usize = 100;

/// Probes for as long as this process lives.
pub async fn probe_devices<C: Cluster>(context: Rc<Context<C>>, every: Duration) {
    loop {
        let begun = Instant::now();
        go_round(&context, every).await;
        sleep_until(begun + context.reach.again(every, context.clock.now())).await;
    }
}

/// While another process leads: asks the devices that incidents wait for, and says of those that
/// answer here that they do, so that the leader may let this process lead; so, too, where no device
/// answers the leader.
pub async fn stand_in<C: Cluster>(context: Rc<Context<C>>) {
    loop {
        sleep(STAND_IN_EVERY).await;
        if context.leads() {
            device_network::let_lead(&context).await;
            continue;
        }
        device_network::say_heard(&context).await;
        let waiting: Vec<NodeFence> = {
            let nodefences = context.caches.nodefences.all();
            let open = nodefences
                .values()
                .map(|kept| &kept.0)
                .filter(|one| node_remedy_observe::nodefences::is_open(one));
            open.filter(|one| awaited(one).is_some()).cloned().collect()
        };
        for nodefence in waiting {
            let Some(method) = awaited(&nodefence) else { continue };
            let end = context.calls.probe(method, &nodefence.spec.plan.grants).await;
            if matches!(end, Some(End::Succeeded { .. })) {
                say_reached(&context, &nodefence).await;
            }
        }
    }
}

/// The method whose device an incident waits for.
fn awaited(nodefence: &NodeFence) -> Option<&Method> {
    let status = nodefence.status.as_ref().filter(|one| one.phase == Phase::AwaitingDevice)?;
    let index = usize::try_from(status.unreachable?).ok()?;
    nodefence.spec.plan.methods.get(index)
}

async fn say_reached<C: Cluster>(context: &Context<C>, nodefence: &NodeFence) {
    let word = format!("{} {}", timestamp(context.clock.now()), context.process);
    let said = annotation(nodefence, REACHED_BY, &word);
    let name = nodefence.name_any();
    let written = match serde_json::from_value::<json_patch::Patch>(said) {
        Ok(patch) => {
            context.cluster.patch::<NodeFence>(At::cluster(&name), &patch).await.map(|_| ())
        }
        Err(error) => Err(ClusterError::Invalid(error.to_string())),
    };
    if let Err(error) = written {
        tracing::debug!(%error, name, "failed to say that its device answers here; again soon");
    }
}

/// Asks every device once.
async fn go_round<C: Cluster>(context: &Context<C>, every: Duration) {
    let (paths, methods) = plans(context).await;
    context.paths.answers.borrow_mut().retain(|place, _| methods.contains_key(place));
    let named: BTreeSet<String> = methods.keys().map(|place| place.device.clone()).collect();
    context.reach.keep(|device| named.contains(device));
    let (mut clouds, mut others) = (Devices::new(), Devices::new());
    for (place, (method, grants)) in methods {
        let is_cloud = method.plugin.as_deref().is_some_and(is_cloud);
        let devices = if is_cloud { &mut clouds } else { &mut others };
        devices.entry(place.device.clone()).or_default().push((place, method, grants));
    }
    let gap = |devices: &Devices, min: Duration| {
        let count = u32::try_from(devices.len()).unwrap_or(u32::MAX).max(1);
        GAP_MAX.min(every / 2 / count).max(min)
    };
    let (of_clouds, of_others) = (gap(&clouds, CLOUD_GAP_MIN), gap(&others, Duration::ZERO));
    let asked = async {
        tokio::join!(ask(context, clouds, of_clouds), ask(context, others, of_others));
    };
    let mut asked = std::pin::pin!(asked);
    loop {
        tokio::select! {
            biased;
            () = &mut asked => break,
            () = sleep(TELL_EVERY) => tell(context, &paths).await,
        }
    }
    tell(context, &paths).await;
}

/// Asks these devices, one after another begun, several at once under way.
async fn ask<C: Cluster>(context: &Context<C>, devices: Devices, gap: Duration) {
    let paced = stream::iter(devices).then(|device| async move {
        sleep(gap).await;
        device
    });
    let asked = paced
        .map(|(device, plugs)| ask_device(context, device, plugs))
        .buffer_unordered(AT_ONCE_MAX);
    asked.collect::<()>().await;
}

/// Asks one device for its plugs, one at a time. What says nothing for one of them is not asked for the next.
async fn ask_device<C: Cluster>(
    context: &Context<C>,
    device: String,
    plugs: Vec<(Place, Method, Vec<Grant>)>,
) {
    let (mut silent, mut heard) = (None, None);
    for (place, method, grants) in plugs {
        if is_in_use(context, &place) {
            // An incident that waits for it has asked it.
            if let Some(answer) = awaited_answer(context, &place) {
                context.paths.answers.borrow_mut().insert(place, answer);
            }
            continue;
        }
        let end = match &silent {
            Some(end) => Some(End::clone(end)),
            None => context.calls.probe(&method, &grants).await,
        };
        let Some(end) = end else { continue };
        if is_silence(&end) {
            silent = Some(end.clone());
        }
        // One plug that answers is a way to the device, whatever the others say.
        if !matches!(heard, Some(Ok(()))) {
            heard = node_remedy_context::device_health::answer_of(&end).or(heard);
        }
        if let Some(answer) = answer_of(end) {
            context.paths.answers.borrow_mut().insert(place, answer);
        }
    }
    context.reach.note(&device, heard, context.clock.now());
}

fn is_silence(end: &End) -> bool {
    match end {
        End::Failed(failure) | End::NotAttempted(failure) => {
            matches!(failure.kind, FailureKind::Unreachable | FailureKind::Timeout)
        }
        End::Succeeded { .. } | End::Indeterminate => false,
    }
}

/// By plug, one of the methods that use it.
type Methods = BTreeMap<Place, (Method, Vec<Grant>)>;
/// By device, the plugs that are asked for.
type Devices = BTreeMap<String, Vec<(Place, Method, Vec<Grant>)>>;

/// The path of every node that is to be fenced when its threshold is crossed.
async fn plans<C: Cluster>(context: &Context<C>) -> (Vec<Path>, Methods) {
    let names = context.caches.nodes.keys();
    let (mut paths, mut methods, mut tables) = (Vec::new(), Methods::new(), Tables::new());
    let mut claims = Claims::default();
    for names in names.chunks(NODES_AT_ONCE) {
        let config = context.config.borrow().clone();
        for node in names.iter().filter_map(|name| context.caches.nodes.find(name)) {
            let node = &node;
            let plan = config.plan_with(node, &mut tables);
            claims.add(node, plan.as_ref().ok());
            let untried = plan.as_ref().ok().and_then(|plan| untried(context, &config, node, plan));
            let path = path_if_fenced(&config, node, plan, &mut methods);
            paths.extend(path.map(|path| match untried {
                Some(why) => Path { places: Err(why), ..path },
                None => path,
            }));
        }
        tokio::task::yield_now().await;
    }
    // What a node itself says wrongly is told before what it has in common with another.
    for path in paths.iter_mut().filter(|path| path.places.is_ok()) {
        if let Some(why) = claims.shared(&path.node) {
            path.places = Err(why);
        }
    }
    (paths, methods)
}

/// Why the node would not be fenced although all is there: nobody tried its outlets, or answers for its storage's ports.
fn untried<C: Cluster>(
    context: &Context<C>,
    config: &Config,
    node: &PrunedNode,
    plan: &NodePlan,
) -> Option<String> {
    let find = |plugin: &str| context.calls.facts_of(plugin);
    let may_prove_nothing = |plugin: &str| {
        find(plugin).is_ok_and(|facts| facts.is_outlet() || facts.kind == PluginKind::Storage)
    };
    let mut plugins = plan.methods.iter().filter_map(|method| method.plugin.as_deref());
    if !plugins.any(may_prove_nothing) {
        return None;
    }
    let policy = config.policy_for(node).ok()??;
    let fenced = node.fenced();
    let plan = snapshot(plan, &fenced, &config.wiring_of(&node.name), find).ok()?;
    let refusals = policy.thresholds.iter().filter_map(|threshold| {
        let plan = plan_from(&plan, &fenced, &threshold.ladder).ok()?;
        refuse_plan(&plan, &incident_policy_of(&policy.incident))
    });
    let mut untried = refusals.filter(|why| {
        matches!(why, PlanRefusal::WiringNotVerified | PlanRefusal::StorageNotTrusted)
    });
    untried.next().map(|why| why.to_string())
}

/// The path of a node that is to be fenced, or of one of which nobody knows whether it is: that is told while it
/// is well, and not only once it is lost.
fn path_if_fenced(
    config: &Config,
    node: &PrunedNode,
    plan: Result<NodePlan, String>,
    methods: &mut Methods,
) -> Option<Path> {
    match config.policy_for(node) {
        Err(why) => Some(path_of(config, node, Err(why), methods)),
        Ok(_) => config.fences_node(node).then(|| path_of(config, node, plan, methods)),
    }
}

/// The path of one node; its plugs are added to `methods`.
fn path_of(
    config: &Config,
    node: &PrunedNode,
    plan: Result<NodePlan, String>,
    methods: &mut Methods,
) -> Path {
    let (sources, places) = match plan {
        Ok(plan) => {
            let mut places = BTreeSet::new();
            for method in &plan.methods {
                let Some(place) = place_of(method) else { continue };
                let known = || (method.clone(), plan.grants.clone());
                methods.entry(place.clone()).or_insert_with(known);
                places.insert(place);
            }
            (plan.sources, Ok(places.into_iter().collect()))
        }
        Err(why) => (config.sources_for(node), Err(why)),
    };
    Path { node: node.name.clone(), uid: node.uid.clone(), sources, places }
}

/// What a method speaks to; `None` of what is built in, or only listens.
fn place_of(method: &Method) -> Option<Place> {
    method.plugin.as_deref().filter(|name| !Plugins::is_watcher(name))?;
    Some(Place { device: method.device.clone(), plug: method.plug.clone() })
}

/// Whether an open incident may call this device now, by whatever plugin: it finds out itself, and has its turn.
fn is_in_use<C: Cluster>(context: &Context<C>, place: &Place) -> bool {
    let nodefences = context.caches.nodefences.all();
    let open = nodefences
        .values()
        .map(|kept| &kept.0)
        .filter(|one| node_remedy_observe::nodefences::is_open(one));
    let parked = |one: &&NodeFence| one.status.as_ref().is_some_and(|one| one.parked.is_some());
    let mut methods = open.filter(|one| !parked(one)).flat_map(|one| &one.spec.plan.methods);
    methods.any(|method| is_same_device(&method.device, &place.device))
}

/// What an open incident that waits for this device says of it.
fn awaited_answer<C: Cluster>(context: &Context<C>, place: &Place) -> Option<Answer> {
    let nodefences = context.caches.nodefences.all();
    let mut open = nodefences
        .values()
        .map(|kept| &kept.0)
        .filter(|one| node_remedy_observe::nodefences::is_open(one));
    let waits = |one: &&NodeFence| {
        awaited(one).is_some_and(|method| is_same_device(&method.device, &place.device))
    };
    let name = open.find(waits)?.name_any();
    Some(Answer { state: DeviceState::Inactive, detail: format!("{name} waits for it to answer") })
}

/// A BMC has one address, whichever plugin speaks with it, and few sessions.
fn is_same_device(one: &str, other: &str) -> bool {
    let address = |device: &str| device.split_once('/').map(|(_, address)| address.to_owned());
    one == other || address(one).is_some() && address(one) == address(other)
}

/// What the end of a probe says of the device; nothing where it says nothing of it.
fn answer_of(end: End) -> Option<Answer> {
    let failure = match end {
        End::Succeeded { .. } => {
            return Some(Answer { state: DeviceState::Active, detail: String::new() });
        }
        End::Failed(failure) | End::NotAttempted(failure) => failure,
        End::Indeterminate => return None,
    };
    match failure.kind {
        // Somebody else talks to it, or it was not asked.
        FailureKind::Busy | FailureKind::Throttled | FailureKind::Cancelled => None,
        FailureKind::Unreachable
        | FailureKind::Timeout
        | FailureKind::Unauthenticated
        | FailureKind::Denied
        | FailureKind::Unsupported
        | FailureKind::BadParameters
        | FailureKind::NoSuchPlug
        | FailureKind::Protocol
        | FailureKind::Device
        | FailureKind::NotMade
        | FailureKind::Other => {
            Some(Answer { state: DeviceState::Inactive, detail: failure.detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use node_remedy_observe::caches::{Cached, Caches};

    fn place(device: &str) -> Place {
        Place { device: device.to_owned(), plug: "1".to_owned() }
    }

    #[test]
    fn a_path_is_active_when_all_of_its_devices_are_and_unknown_before_all_were_asked() {
        let active = Answer { state: DeviceState::Active, detail: String::new() };
        let dead = Answer { state: DeviceState::Inactive, detail: "no answer".to_owned() };
        let path = |places| Path {
            node: "node-a".to_owned(),
            uid: "u".to_owned(),
            sources: Vec::new(),
            places,
        };
        let two = path(Ok(vec![place("pdu-a"), place("pdu-b")]));
        let mut answers = BTreeMap::new();
        assert_eq!(two.state(&answers), None);
        answers.insert(place("pdu-a"), active.clone());
        assert_eq!(two.state(&answers), None, "the other one was never asked");
        answers.insert(place("pdu-b"), active.clone());
        assert_eq!(two.state(&answers), Some(active));
        answers.insert(place("pdu-b"), dead);
        let said = Answer { state: DeviceState::Inactive, detail: "pdu-b: no answer".to_owned() };
        assert_eq!(two.state(&answers), Some(said));
        let broken = path(Err("no FenceConfiguration".to_owned())).state(&answers);
        assert_eq!(broken.map(|one| one.state), Some(DeviceState::Inactive));
    }

    /// Neither of two policies for a node is in force there: it is told while the node is well.
    #[test]
    fn a_second_policy_for_a_node_is_told_at_once() {
        let (changes, _changed) = tokio::sync::mpsc::unbounded_channel();
        let caches = Caches::new(&changes);
        let node = json!({"metadata": {"name": "node-a", "uid": "u"}});
        let node = PrunedNode::of(serde_json::from_value(node).unwrap()).unwrap();
        let told = |name: &str| {
            let remedy = json!({"nodeLeaseAge": "60s", "remedy1": [{"name": "fence"}]});
            let policy = json!({
                "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
                "metadata": {"name": name}, "spec": {"thresholdConfigs": [remedy]},
            });
            caches.remedies.apply(name.to_owned(), Cached(serde_json::from_value(policy).unwrap()));
            let config = Config::read(&caches, &Config::default()).0;
            let plan = config.plan_for(&node);
            let path = path_if_fenced(&config, &node, plan, &mut Methods::new());
            path.and_then(|path| path.places.err()).unwrap_or_default()
        };
        assert!(!told("workers").contains("workers"));
        let both = told("theirs");
        assert!(both.contains("workers") && both.contains("theirs"), "{both}");
    }

    #[test]
    fn a_device_is_its_address_whichever_plugin_speaks_with_it() {
        assert!(is_same_device("ipmi/10.0.9.7", "redfish/10.0.9.7"));
        assert!(is_same_device("door", "door") && !is_same_device("door", "window"));
        assert!(!is_same_device("ipmi/10.0.9.7", "ipmi/10.0.9.8"));
    }

    /// Whoever tells of a configuration hears of each node that it is for, also of one without a plan.
    #[test]
    fn a_node_whose_plan_cannot_be_made_is_still_its_configurations() {
        let (changes, _changed) = tokio::sync::mpsc::unbounded_channel();
        let caches = Caches::new(&changes);
        let example = include_str!("../../../examples/config/fence-ipmi.yaml");
        let mut shown: serde_json::Value = serde_saphyr::from_str(example).unwrap();
        let address = "${node.annotations['node-remedy.io/bmc-address']}";
        shown["spec"]["templates"][0]["parameters"]["address"] = json!(address);
        shown["spec"]["trustedNodeFields"] = json!([address]);
        shown["spec"].as_object_mut().unwrap().remove("inventory");
        let mut add = |name: &str| {
            shown["metadata"]["name"] = json!(name);
            let fence = serde_json::from_value(shown.clone()).unwrap();
            caches.fences.apply(name.to_owned(), Cached(fence));
            Config::read(&caches, &Config::default()).0
        };
        let node = |name: &str, annotations: &serde_json::Value| {
            let object = json!({"metadata": {
                "name": name, "uid": "u", "annotations": annotations,
                "labels": {"node-remedy.io/fence": "ipmi"},
            }});
            PrunedNode::of(serde_json::from_value(object).unwrap()).unwrap()
        };
        let whole = node("node-a", &json!({"node-remedy.io/bmc-address": "192.0.2.11"}));
        let bare = node("node-b", &json!({}));
        let mut methods = Methods::new();

        let config = add("ipmi");
        let mut path = |node| path_of(&config, node, config.plan_for(node), &mut methods);
        let (first, second) = (path(&whole), path(&bare));
        assert_eq!(first.sources, ["FenceConfiguration/ipmi"]);
        let device = "ipmi/192.0.2.11".to_owned();
        assert_eq!(first.places, Ok(vec![Place { device, plug: String::new() }]));
        assert_eq!(second.sources, ["FenceConfiguration/ipmi"]);
        let why = second.places.unwrap_err();
        assert!(why.contains("node-b without annotation node-remedy.io/bmc-address"), "{why}");
        assert_eq!(methods.len(), 1);

        // Where two are for it neither is followed, and both are told of.
        let config = add("other");
        let both = path_of(&config, &whole, config.plan_for(&whole), &mut methods);
        assert_eq!(both.sources, ["FenceConfiguration/ipmi", "FenceConfiguration/other"]);
        assert!(both.places.is_err());
    }

    #[test]
    fn a_device_that_is_busy_says_nothing_of_itself() {
        let failed = |kind| {
            let failure = node_remedy_decide::Failure { kind, detail: "x".to_owned() };
            answer_of(End::Failed(failure)).map(|answer| answer.state)
        };
        for kind in [FailureKind::Busy, FailureKind::Throttled, FailureKind::Cancelled] {
            assert_eq!(failed(kind), None, "{kind:?}");
        }
        for kind in [FailureKind::Unreachable, FailureKind::Unauthenticated, FailureKind::Timeout] {
            assert_eq!(failed(kind), Some(DeviceState::Inactive), "{kind:?}");
        }
    }
}
