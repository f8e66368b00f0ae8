//! What the world is in the words of `decide`, and what `decide` says in the world's.

use node_remedy_decide::{
    Access, AttachmentView, Backing, Binding, Crossing, Deletion, Dump, Effect, End, Execution,
    Failure, FailureKind, Feed, Freshness, IncidentPolicy, Kind, Liveness, Method, NeededFor,
    Neighbours, Node, NodeView, People, Plan, PlugState, PodView, Span, Stage, Time, Verdict, View,
    VolumeView,
};

use crate::book::Sight;
use crate::invariants::Broken;
use crate::same::{BOOT, LIFE, NOW};
use crate::world::{CallOutcome, Setting, TASKS_MAX, Task, Todo};

/// What the device calls the machine, and the node itself.
const IDENTITY: (&str, &str) = ("system-uuid", "4c4c4544-0042");
/// The node's UID.
const NODE_UID: &str = "uid-a";

/// One node behind one BMC.
pub(crate) fn plan() -> Plan {
    let (field, value) = IDENTITY;
    let bmc = Method {
        name: "bmc".to_owned(),
        kind: Kind::Power(Feed::Whole),
        device: "bmc".to_owned(),
        device_kind: "ipmi".to_owned(),
        plug: String::new(),
        must_success: false,
        late_effect: Span::ZERO,
        binding: Binding::Reported { expected: vec![(field.to_owned(), value.to_owned())] },
        witness: None,
    };
    let stage = Stage {
        name: "power".to_owned(),
        execution: Execution::All,
        methods: vec![0],
        needed_for: NeededFor::NextStep,
    };
    Plan {
        node: Node { name: "node-a".to_owned(), uid: NODE_UID.to_owned() },
        methods: vec![bmc],
        isolation: Vec::new(),
        power: vec![stage],
        recovery: Vec::new(),
        beside: vec![],
        ladder: Vec::new(),
    }
}

/// Short times, so that few looks cover them; those of the lease and of foreign calls are real.
pub(crate) fn policy(setting: &Setting) -> IncidentPolicy {
    IncidentPolicy {
        retries: setting.retries,
        restarts: setting.restarts,
        off_timeout: Span::seconds(2),
        on_timeout: Span::seconds(2),
        release_timeout: Span::seconds(4),
        cleanup_timeout: Span::seconds(10),
        recover_timeout: Span::seconds(5),
        gate_timeout: Span::seconds(4),
        device_timeout: Span::seconds(10),
        ..IncidentPolicy::default()
    }
}

pub(crate) fn liveness() -> Liveness {
    Liveness { boot_id: BOOT.to_string(), lease_renewed: Some(LIFE), reported: Some(LIFE) }
}

pub(crate) fn view(sight: Sight, liveness: &Liveness) -> View {
    let volume = VolumeView {
        backing: Backing::Persistent {
            name: "pv-db-0".to_owned(),
            driver: "csi.example.com".to_owned(),
            in_use_as: "kubernetes.io/csi/csi.example.com^pv-db-0".to_owned(),
        },
        safe_detach: false,
        access: Access::One,
    };
    let pod = PodView {
        uid: "db-0".to_owned(),
        name: "default/db-0".to_owned(),
        exempt: None,
        volumes: vec![volume],
        ready: false,
        deletion: Deletion::NotAsked,
        finalizers: Vec::new(),
    };
    let attachment = AttachmentView {
        uid: "va-1".to_owned(),
        name: "va-1".to_owned(),
        volume: "pv-db-0".to_owned(),
        deleting: false,
        finalizers: Vec::new(),
    };
    let node = NodeView {
        uid: NODE_UID.to_owned(),
        liveness: liveness.clone(),
        created_at: Time(0),
        conditions: Vec::new(),
        boot_heard_at: Time(0),
        events: None,
        changes: None,
        lease_duration: Span::seconds(40),
        lease_seen_at: None,
        answers_since: None,
        heard_since: None,
        lease_was_renewed: false,
        quarantined: sight.quarantined,
        cordoned: false,
        cordoned_by_us: false,
        out_of_service: sight.out_of_service,
        out_of_service_by_us: sight.out_of_service,
        volumes_in_use: Vec::new(),
        remediation_pod: None,
    };
    View {
        taken_at: NOW,
        freshness: if sight.is_live { Freshness::Live } else { Freshness::Cached },
        node: Some(node),
        pods: sight.pod.then_some(pod).into_iter().collect(),
        attachments: sight.attached.then_some(attachment).into_iter().collect(),
        trigger: if sight.ill {
            Crossing::Crossed { since: Time(0) }
        } else {
            Crossing::Clear { ready: true, next_look: None }
        },
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

pub(crate) fn end_of(heard: CallOutcome) -> End {
    let answered = |state| {
        let (field, value) = IDENTITY;
        End::Succeeded { state, identity: vec![(field.to_owned(), value.to_owned())] }
    };
    let not_sent = |kind| End::NotAttempted(Failure { kind, detail: String::new() });
    match heard {
        CallOutcome::On => answered(PlugState::On),
        CallOutcome::Off => answered(PlugState::Off),
        CallOutcome::HeldBack => not_sent(FailureKind::Cancelled),
        CallOutcome::NotLeader => not_sent(FailureKind::Other),
        CallOutcome::Unreachable => not_sent(FailureKind::Unreachable),
        CallOutcome::Nothing => End::Indeterminate,
    }
}

/// What is to be done, in the controller's order: what gives something away first.
pub(crate) fn todo_of(effects: &[Effect]) -> Result<Todo, Broken> {
    let mut tasks = Vec::with_capacity(TASKS_MAX);
    for effect in effects {
        match effect {
            Effect::TakeSlot => tasks.push(Task::TakeSlot),
            Effect::Call(_) => tasks.push(Task::Call),
            Effect::Quarantine => tasks.push(Task::Quarantine),
            Effect::Unquarantine => tasks.push(Task::Unquarantine),
            Effect::OutOfService => tasks.push(Task::OutOfService),
            Effect::LiftOutOfService => tasks.push(Task::LiftOutOfService),
            Effect::DeletePods(_) => tasks.push(Task::DeletePods),
            Effect::GracefulDelete(_) => tasks.push(Task::GracefulDelete),
            Effect::DeleteAttachments(_) => tasks.push(Task::DeleteAttachments),
            // One node: the budget has a slot for it whether it gives one back or not.
            // And here every call has begun as soon as it is made.
            Effect::Look | Effect::ReturnSlot | Effect::Withdraw(_) => {}
            Effect::HandOver
            | Effect::Cordon
            | Effect::Uncordon
            | Effect::DeleteNode
            | Effect::Evict { .. }
            | Effect::StartJob(_)
            | Effect::StopJob(_)
            | Effect::AskRemedy(_)
            | Effect::AnnotateNode { .. } => {
                return Err(Broken::model("an effect that this world has no use for"));
            }
        }
    }
    tasks.sort_by_key(|task| !task.gives_away());
    let looks = effects.contains(&Effect::Look);
    Todo::of(&tasks, looks).ok_or(Broken::model("more to do at once than there is room for"))
}

impl Task {
    /// Whether it lets somebody else have what the node had.
    pub const fn gives_away(self) -> bool {
        matches!(self, Self::OutOfService | Self::DeletePods | Self::DeleteAttachments)
    }

    /// Whether it writes to the cluster.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::TakeSlot | Self::Call)
    }
}
