//! One node with a BMC, and short ways to say what happens to it.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::*;

pub(crate) const BOOT: &str = "boot-1";
pub(crate) const UUID: &str = "4c4c4544-0042";

/// A plan with one BMC.
pub(crate) fn bmc_plan() -> Plan {
    Plan {
        node: Node { name: "node-a".to_string(), uid: "uid-a".to_string() },
        methods: vec![power("bmc", Feed::Whole)],
        isolation: Vec::new(),
        power: vec![stage(Execution::All, &[0])],
        recovery: Vec::new(),
        beside: vec![],
        ladder: Vec::new(),
    }
}

pub(crate) fn power(name: &str, feed: Feed) -> Method {
    Method {
        name: name.to_string(),
        kind: Kind::Power(feed),
        device: name.to_string(),
        device_kind: "ipmi".to_string(),
        plug: String::new(),
        must_success: false,
        late_effect: Span::ZERO,
        binding: Binding::Reported {
            expected: vec![("system-uuid".to_string(), UUID.to_string())],
        },
        witness: None,
    }
}

pub(crate) fn stage(execution: Execution, methods: &[MethodIndex]) -> Stage {
    Stage {
        name: "stage".to_string(),
        execution,
        methods: methods.to_vec(),
        needed_for: NeededFor::NextStep,
    }
}

/// A live view of the lost node with one pod and its volume.
pub(crate) fn lost_view(now: Time) -> View {
    View {
        taken_at: now,
        freshness: Freshness::Live,
        node: Some(NodeView {
            uid: "uid-a".to_string(),
            liveness: liveness(BOOT, 1),
            created_at: Time(0),
            conditions: Vec::new(),
            boot_heard_at: Time(0),
            events: None,
            changes: None,
            lease_duration: Span::seconds(40),
            lease_seen_at: Some(Time(0)),
            answers_since: None,
            heard_since: Some(Time(0)),
            lease_was_renewed: true,
            quarantined: false,
            cordoned: false,
            cordoned_by_us: false,
            out_of_service: false,
            out_of_service_by_us: false,
            volumes_in_use: Vec::new(),
            remediation_pod: None,
        }),
        pods: vec![pod("db-0", None), pod("ds-1", Some(Exempt::DaemonSet))],
        attachments: vec![AttachmentView {
            uid: "va-1".to_string(),
            name: "va-1".to_string(),
            volume: "pv-db-0".to_string(),
            deleting: false,
            finalizers: vec!["external-attacher/csi".to_string()],
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

/// A pause that nobody has ended yet.
pub(crate) fn paused_by_alice() -> Refusal {
    let (reason, by) = ("new switches".to_string(), "alice".to_string());
    Refusal::Paused(Pause { reason, by, until: None })
}

pub(crate) fn storm() -> Refusal {
    Refusal::UnhealthyShare {
        unhealthy: 4,
        total: 10,
        percent: 40,
        percent_max: 30,
        examples: vec!["node-b".to_string()],
    }
}

pub(crate) fn liveness(boot: &str, life: u64) -> Liveness {
    Liveness {
        boot_id: boot.to_string(),
        lease_renewed: Some(Time(life)),
        reported: Some(Time(life)),
    }
}

pub(crate) fn pod(name: &str, exempt: Option<Exempt>) -> PodView {
    PodView {
        uid: name.to_string(),
        name: name.to_string(),
        exempt,
        volumes: exempt
            .is_none()
            .then(|| VolumeView {
                backing: persistent(&alloc::format!("pv-{name}")),
                safe_detach: false,
                access: Access::One,
            })
            .into_iter()
            .collect(),
        ready: false,
        deletion: Deletion::NotAsked,
        finalizers: Vec::new(),
    }
}

/// The driver of all volumes.
pub(crate) const DRIVER: &str = "csi.example.com";

/// A PersistentVolume of that driver.
pub(crate) fn persistent(name: &str) -> Backing {
    Backing::Persistent {
        name: name.to_string(),
        driver: DRIVER.to_string(),
        in_use_as: alloc::format!("kubernetes.io/csi/{DRIVER}^{name}"),
    }
}

/// A method that cuts the storage of all volumes.
pub(crate) fn storage() -> Kind {
    Kind::Storage { drivers: alloc::vec![DRIVER.to_string()] }
}

/// A record as `open` makes it.
pub(crate) fn opened(plan: &Plan, policy: &IncidentPolicy, view: &View, now: Time) -> Record {
    let opening = Opening { plan, policy, view, epoch: 1, process: "p1" };
    match open(&opening, now) {
        OpenDecision::Open(record) => *record,
        other @ (OpenDecision::Wait { .. } | OpenDecision::Refuse(_)) => {
            panic!("not opened: {other:?}")
        }
    }
}

pub(crate) fn succeeded(state: PlugState) -> End {
    End::Succeeded { state, identity: vec![("system-uuid".to_string(), UUID.to_string())] }
}

pub(crate) fn failed(kind: FailureKind) -> End {
    End::Failed(Failure { kind, detail: "detail".to_string() })
}

pub(crate) fn not_attempted(kind: FailureKind) -> End {
    End::NotAttempted(Failure { kind, detail: "detail".to_string() })
}
