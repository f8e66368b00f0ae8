//! How fast decisions are: `cargo xtask bench decide`. One core, the release build, medians of five.
//!
//! Beside them, in the same run, what an informer does with each node that it is told of: parsing its
//! JSON. No figure is asserted.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a bench prints, measures real time, and goes by the effects of one timeline"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use node_remedy_decide::{
    Action, AttachmentView, Binding, ConditionStatus, ConditionView, Crossing, DeviceNetwork,
    DomainLimit, Dump, Effect, End, Event, Execution, Feed, Freshness, GatePolicy, GateView,
    IncidentPolicy, Incidents, Kind, Liveness, Method, NeededFor, Neighbours, Node, NodeHealth,
    NodeView, OpenDecision, Opening, OperatorVetoes, People, Phase, Plan, PlugState, READY, Record,
    STALE_AFTER, SlotAnswer, Span, Stage, StorageLease, Symptom, Threshold, Time, Verdict, View,
    crossed, gate, open, step,
};
use serde_json::{Value, json};

const NODES: usize = 15_000;
const RUNS: usize = 5;
/// How often the incident is decided through in a run.
const ROUNDS: u32 = 5_000;
/// An incident that takes more does not end.
const DECISIONS_MAX: usize = 500;
/// Now, in the cluster that is passed through.
const NOW: Time = Time(10_000_000);

fn main() {
    let incident = incident();
    let decisions = u32::try_from(incident.len()).unwrap_or(u32::MAX).max(1);
    let (plan, policy) = (plan(), IncidentPolicy::default());
    let whole = median(|| {
        for _ in 0..ROUNDS {
            for Decision { record, what, now } in &incident {
                black_box(step(&plan, &policy, record.clone(), what.event(), *now));
            }
        }
    });
    let each = whole / ROUNDS / decisions;
    let a_second = Duration::from_secs(1).as_nanos() / each.as_nanos().max(1);
    println!(
        "one incident is {decisions} decisions; {a_second} decisions a second, {each:.1?} each"
    );

    let before = resident_kib();
    let (nodes, cluster) = (nodes(), cluster());
    let taken = resident_kib().saturating_sub(before);
    let threshold = Threshold {
        symptom: Symptom::LeaseAge(Span::seconds(40)),
        period: Span::ZERO,
        stale_after: STALE_AFTER,
    };
    let pass = median(|| {
        let lost = nodes.iter().map(|node| crossed(node, &threshold, NOW));
        let lost = lost.filter(|found| matches!(found, Crossing::Crossed { .. })).count();
        assert_eq!(lost, 1, "one node is lost");
        let verdict = gate(&GatePolicy::default(), &cluster, NOW);
        assert!(verdict.is_open(), "{:?}", verdict.refusals);
    });
    println!("{NODES} nodes: {pass:.1?} for every node's threshold and the gate of the lost one");
    println!("{NODES} nodes: {:.1} MiB of views", mib(taken));

    let (limits, dark) = (zone_limits(), dark_zone());
    let refused = median(|| {
        let verdict = gate(&limits, &dark, NOW);
        assert!(!verdict.is_open(), "a zone is dark");
    });
    println!(
        "{NODES} nodes, one of {ZONES} zones dark: {refused:.1?} for the gate of one of its nodes"
    );

    let text = node_json().to_string();
    let parse = median(|| {
        for _ in 0..NODES {
            black_box(serde_json::from_str::<Value>(&text).is_ok());
        }
    });
    println!("{NODES} nodes: {parse:.1?} to parse their JSON ({} bytes each)", text.len());
    println!("a full pass takes {:.1} % of that", pass.as_secs_f64() / parse.as_secs_f64() * 100.0);
}

fn median(mut measured: impl FnMut()) -> Duration {
    let mut runs: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            measured();
            began.elapsed()
        })
        .collect();
    runs.sort();
    runs.get(RUNS / 2).copied().unwrap_or_default()
}

/// Memory that is in use, by `/proc/self/statm`: pages of 4 KiB; 0 where there is none.
fn resident_kib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4
}

fn mib(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) / 1_024.0
}

/// What was decided on.
struct Decision {
    record: Record,
    what: Happened,
    now: Time,
}

enum Happened {
    Looked(Box<View>),
    Ended(u32, End),
    Granted,
}

impl Happened {
    fn event(&self) -> Event<'_> {
        match self {
            Self::Looked(view) => Event::Looked(view),
            Self::Ended(op, end) => {
                Event::Ended { op: node_remedy_decide::OpId(*op), end: end.clone() }
            }
            Self::Granted => Event::Slot(SlotAnswer::Granted),
        }
    }
}

/// Every decision of one incident from its opening to its end: one BMC, one pod with a volume, nothing
/// goes wrong.
fn incident() -> Vec<Decision> {
    let (plan, policy) = (plan(), IncidentPolicy::default());
    let mut view = lost();
    let mut now = view.taken_at;
    let opening = Opening { plan: &plan, policy: &policy, view: &view, epoch: 1, process: "p" };
    let OpenDecision::Open(record) = open(&opening, now) else { return Vec::new() };
    let (mut record, mut power, mut done) = (*record, PlugState::On, Vec::new());
    let mut todo = vec![Effect::Look];
    while !matches!(record.phase, Phase::Final(_)) {
        assert!(done.len() < DECISIONS_MAX, "it does not end: {:?}", record.phase);
        if todo.is_empty() {
            todo.push(Effect::Look);
            now = now.after(Span::seconds(1));
        }
        let what = match todo.remove(0) {
            Effect::Look => {
                view.taken_at = now;
                if record.phase == Phase::AwaitingHealthy {
                    become_well(&mut view, now);
                }
                Some(Happened::Looked(Box::new(view.clone())))
            }
            Effect::TakeSlot => Some(Happened::Granted),
            Effect::Call(op) => {
                let action = record.operations.iter().find(|one| one.id == op);
                match action.map(|one| one.action) {
                    Some(Action::Off) => power = PlugState::Off,
                    Some(Action::On) => power = PlugState::On,
                    Some(Action::Status | Action::Reset | Action::Monitor) | None => {}
                }
                let end = End::Succeeded { state: power, identity: identity() };
                Some(Happened::Ended(op.0, end))
            }
            Effect::DeletePods(_) => {
                view.pods.clear();
                None
            }
            Effect::DeleteAttachments(_) => {
                view.attachments.clear();
                None
            }
            effect => {
                mark(&mut view, &effect);
                None
            }
        };
        let Some(what) = what else { continue };
        let transition = step(&plan, &policy, record.clone(), what.event(), now);
        done.push(Decision { record, what, now });
        record = transition.record;
        for effect in transition.effects {
            if !todo.contains(&effect) {
                todo.push(effect);
            }
        }
    }
    done
}

fn mark(view: &mut View, effect: &Effect) {
    let Some(node) = &mut view.node else { return };
    if *effect == Effect::Quarantine {
        node.quarantined = true;
    } else if *effect == Effect::Unquarantine {
        node.quarantined = false;
    } else if matches!(effect, Effect::OutOfService | Effect::LiftOutOfService) {
        node.out_of_service = *effect == Effect::OutOfService;
        node.out_of_service_by_us = node.out_of_service;
    }
}

fn become_well(view: &mut View, now: Time) {
    view.trigger = Crossing::Clear { ready: true, next_look: None };
    if let Some(node) = &mut view.node {
        node.liveness = liveness("boot-2", now);
    }
}

fn identity() -> Vec<(String, String)> {
    vec![("system-uuid".to_owned(), "4c4c4544-0042".to_owned())]
}

fn plan() -> Plan {
    Plan {
        node: Node { name: "node-0".to_owned(), uid: "uid-0".to_owned() },
        methods: vec![Method {
            name: "bmc".to_owned(),
            kind: Kind::Power(Feed::Whole),
            device: "bmc".to_owned(),
            device_kind: "ipmi".to_owned(),
            plug: String::new(),
            must_success: false,
            late_effect: Span::ZERO,
            binding: Binding::Reported { expected: identity() },
            witness: None,
        }],
        isolation: Vec::new(),
        power: vec![Stage {
            name: "power".to_owned(),
            execution: Execution::All,
            methods: vec![0],
            needed_for: NeededFor::NextStep,
        }],
        recovery: Vec::new(),
        beside: vec![],
        ladder: Vec::new(),
    }
}

fn liveness(boot: &str, at: Time) -> Liveness {
    Liveness { boot_id: boot.to_owned(), lease_renewed: Some(at), reported: Some(at) }
}

fn node(number: usize, lease_seen_at: Time) -> NodeView {
    let condition = |kind: &str, status| ConditionView {
        kind: kind.to_owned(),
        status,
        reason: "Because".to_owned(),
        since: Time(1),
        reported: Some(NOW),
        left: Vec::new(),
    };
    NodeView {
        uid: format!("uid-{number}"),
        liveness: liveness("boot-1", lease_seen_at),
        created_at: Time(0),
        conditions: vec![
            condition("MemoryPressure", ConditionStatus::False),
            condition("DiskPressure", ConditionStatus::False),
            condition("PIDPressure", ConditionStatus::False),
            condition(READY, ConditionStatus::True),
        ],
        boot_heard_at: Time(0),
        events: None,
        changes: None,
        lease_duration: Span::seconds(40),
        lease_seen_at: Some(lease_seen_at),
        answers_since: None,
        heard_since: Some(Time(1)),
        lease_was_renewed: true,
        quarantined: false,
        cordoned: false,
        cordoned_by_us: false,
        out_of_service: false,
        out_of_service_by_us: false,
        volumes_in_use: Vec::new(),
        remediation_pod: None,
    }
}

/// When a node was last heard: the first one a minute ago.
fn heard_at(number: usize) -> Time {
    Time(NOW.0 - if number == 0 { 60_000 } else { 5_000 })
}

fn nodes() -> Vec<NodeView> {
    (0..NODES).map(|number| node(number, heard_at(number))).collect()
}

/// As many as regions of clouds have.
const ZONES: usize = 3;

fn zone_limits() -> GatePolicy {
    let limit = DomainLimit {
        key: "topology.kubernetes.io/zone".to_owned(),
        unhealthy_percent_max: 50,
        in_flight_max: Some(1),
    };
    GatePolicy { domains: vec![limit], ..GatePolicy::default() }
}

/// The same cluster, where every node of the target's zone was heard as long ago as the target.
fn dark_zone() -> GateView {
    let mut view = cluster();
    for (number, node) in view.nodes.iter_mut().enumerate() {
        let zone = number % ZONES;
        node.domains = vec![Some(format!("zone-{zone}"))];
        if zone == 0 {
            (node.ready, node.renewed_at) = (false, Some(heard_at(0)));
        }
    }
    view
}

fn cluster() -> GateView {
    let health = |number| NodeHealth {
        name: format!("node-{number}"),
        ready: number != 0,
        down: false,
        renewed_at: Some(heard_at(number)),
        renewed_between: Some((heard_at(number), heard_at(number))),
        came_back: None,
        lease_duration: Span::seconds(40),
        domains: Vec::new(),
        takes_pods: true,
        control_plane: false,
        etcd: None,
    };
    GateView {
        target: "node-0".to_owned(),
        nodes: (0..NODES).map(health).collect(),
        in_flight: Vec::new(),
        in_flight_on: Vec::new(),
        vetoes: OperatorVetoes::default(),
        storage: StorageLease::NotAsked,
        incidents: Incidents::Begun,
        heard_at: NOW,
        not_followed: None,
        held_by: None,
        closed_device: None,
        disputed: None,
        unverified: None,
        device_network: DeviceNetwork::default(),
        last_incident_ended_at: None,
        symptom_since: None,
        never_joined: false,
    }
}

fn lost() -> View {
    use node_remedy_decide::{Access, Backing, Deletion, PodView, VolumeView};
    let now = Time(100_000);
    View {
        taken_at: now,
        freshness: Freshness::Live,
        node: Some(node(0, Time(0))),
        pods: vec![PodView {
            uid: "db-0".to_owned(),
            name: "db-0".to_owned(),
            exempt: None,
            volumes: vec![VolumeView {
                backing: Backing::Persistent {
                    name: "pv".to_owned(),
                    driver: "csi.example.com".to_owned(),
                    in_use_as: "kubernetes.io/csi/csi.example.com^pv".to_owned(),
                },
                safe_detach: false,
                access: Access::One,
            }],
            ready: false,
            deletion: Deletion::NotAsked,
            finalizers: Vec::new(),
        }],
        attachments: vec![AttachmentView {
            uid: "va".to_owned(),
            name: "va".to_owned(),
            volume: "pv".to_owned(),
            deleting: false,
            finalizers: vec!["external-attacher/csi".to_owned()],
        }],
        trigger: Crossing::Crossed { since: Time(0) },
        gate: Verdict::default(),
        people: People::default(),
        dump: Dump::None,
        is_another_machine: false,
        hosts_us: false,
        neighbours: Neighbours::Heard,
        reached_elsewhere: false,
        fence_is_due: false,
        job: None,
    }
}

/// A node as the API server tells it, without its images.
fn node_json() -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "KubeletHasNoDiskPressure",
            "message": "kubelet has no disk pressure",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let resources = json!({"cpu": "64", "memory": "263851200Ki", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": "node-0", "uid": "4d31e6de-ab92-4b49-aaa7-746e819b6662",
            "resourceVersion": "123456789", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": "node-0", "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "zone-a",
                "rack": "b",
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": "10.244.0.0/24", "providerID": "kind://docker/kind/node-0"},
        "status": {
            "allocatable": resources, "capacity": resources,
            "conditions": [
                condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"), condition("Ready", "True"),
            ],
            "addresses": [
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": "node-0"},
            ],
            "nodeInfo": {
                "bootID": "4d31e6de-ab92-4b49-aaa7-746e819b6662", "machineID": "5ca1ab1e",
                "systemUUID": "5ca1ab1e-0000-4000-8000-007de6000006",
                "kernelVersion": "6.1.0", "osImage": "Debian GNU/Linux 12",
                "kubeletVersion": "v1.36.3", "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    })
}
