//! Records there and back, broken statuses refused by name, conditions that keep their time.

pub(super) mod decided;

use node_remedy_api::conditions::ConditionStatus;
use node_remedy_api::nodefence as api;
use node_remedy_api::nodefence::{NodeFence, NodeFenceSpec, NodeFenceStatus};
use node_remedy_api::plan::{Builtin, Method, NodePlan};
use node_remedy_api::time::{Moment, Span};
use node_remedy_config::plan::plan_of;
use node_remedy_decide::*;

use crate::status::{park, read, write};

const METHODS: u64 = 4;
const RECORDS: u64 = 3_000;

/// A small generator; the same seed gives the same record.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn number(&mut self) -> u32 {
        u32::try_from(self.roll(1 << 20)).unwrap()
    }

    fn yes(&mut self) -> bool {
        self.roll(2) == 0
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.yes() { Some(make(self)) } else { None }
    }

    fn list<T>(&mut self, max: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.roll(max + 1)).map(|_| make(self)).collect()
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.roll(all.len() as u64)).unwrap()].clone()
    }

    fn text(&mut self) -> String {
        let text = ["", "node-b", "i-0abc; 1", "ü „quoted“\n\"x\"", "off"];
        format!("{}{}", self.of(&text), self.roll(1000))
    }

    fn time(&mut self) -> Time {
        Time(1_700_000_000_000 + self.roll(10_000_000_000))
    }

    fn liveness(&mut self) -> Liveness {
        Liveness {
            boot_id: self.text(),
            lease_renewed: self.maybe(Self::time),
            reported: self.maybe(Self::time),
        }
    }

    fn method(&mut self) -> MethodIndex {
        usize::try_from(self.roll(METHODS)).unwrap()
    }

    fn end_reason(&mut self) -> FinalReason {
        use FinalReason::*;
        self.of(&[
            Remedied,
            Recovered,
            RecoveredByHand,
            Aborted,
            Replaced,
            NodeGone,
            Superseded,
            Unreported,
        ])
    }

    fn phase(&mut self) -> Phase {
        use Phase::*;
        self.of(&[
            Waiting,
            Isolating,
            AwaitingPower,
            ReadingIdentity,
            PoweringOff,
            VerifyingOff,
            Releasing,
            Restoring,
            Untainting,
            PoweringOn,
            AwaitingHealthy,
            Recovering,
            AwaitingDevice,
            Backoff,
            Parked,
        ])
    }

    fn park_reason(&mut self) -> ParkReason {
        let (a, b, tries) = (self.text(), self.text(), self.number());
        self.of(&[
            ParkReason::WrongMachine { expected: a.clone(), found: b.clone() },
            ParkReason::NoIdentity,
            ParkReason::OffNotVerified { tries },
            ParkReason::WitnessReadsOn { method: a.clone(), witness: b.clone() },
            ParkReason::AliveThoughOff,
            ParkReason::WrongPlug { neighbour: a.clone() },
            ParkReason::OnFailed,
            ParkReason::RestoreFailed,
            ParkReason::MethodFailed { method: a.clone(), detail: b.clone() },
            ParkReason::RemediesExhausted { remedy: a.clone(), detail: b.clone() },
            ParkReason::JobStuck { remedy: a.clone(), why: b.clone() },
            ParkReason::PluginFailed { remedy: a.clone(), why: b.clone() },
            ParkReason::LeftAlone { word: a.clone() },
            ParkReason::MachineDisputed { why: a.clone() },
            ParkReason::NotDrained { left: a.clone() },
            ParkReason::DeviceUnreachable,
            ParkReason::StillCut,
            ParkReason::CutUndone { method: a.clone(), failure: None },
            ParkReason::CutUndone { method: a.clone(), failure: Some(b) },
            ParkReason::GateClosed,
            ParkReason::OffBeforeUs,
            ParkReason::NotHealthy,
            ParkReason::NoProofPossible,
            ParkReason::Isolated,
            ParkReason::SameBootAfterRelease,
            ParkReason::Aborted,
            ParkReason::BrokenRecord,
        ])
    }

    fn failure_kind(&mut self) -> FailureKind {
        use FailureKind::*;
        self.of(&[
            Unreachable,
            Timeout,
            Unauthenticated,
            Denied,
            Throttled,
            Unsupported,
            BadParameters,
            NoSuchPlug,
            Busy,
            Protocol,
            Device,
            NotMade,
            Cancelled,
            Other,
        ])
    }

    fn end(&mut self) -> End {
        let failure = Failure { kind: self.failure_kind(), detail: self.text() };
        let state = self.plug_state();
        let identity = self.list(3, |dice| (dice.text(), dice.text()));
        let succeeded = End::Succeeded { state, identity };
        self.of(&[
            succeeded,
            End::Failed(failure.clone()),
            End::NotAttempted(failure),
            End::Indeterminate,
        ])
    }

    fn plug_state(&mut self) -> PlugState {
        use PlugState::*;
        self.of(&[On, Off, Transitioning, Unknown, Terminated])
    }

    fn operation(&mut self, id: u32) -> Operation {
        let end = self.maybe(Self::end);
        let ended_at = end.as_ref().map(|_| self.time());
        Operation {
            id: OpId(id),
            method: self.method(),
            action: self.of(&[
                Action::Status,
                Action::Off,
                Action::On,
                Action::Reset,
                Action::Monitor,
            ]),
            attempt: self.number(),
            epoch: self.roll(1 << 40),
            process: self.text(),
            intended_at: self.time(),
            state_before: self.plug_state(),
            end,
            ended_at,
        }
    }

    fn proof(&mut self, operations: &[Operation]) -> Proof {
        use Grade::*;
        let reads = operations.iter().filter(|one| one.action == Action::Status);
        let by = [
            Evidence::Reads(reads.map(|one| one.id).collect()),
            Evidence::Person(self.text()),
            Evidence::Report(self.text()),
        ];
        Proof {
            grade: self.of(&[
                PowerOffVerified,
                StorageFenced,
                WatchdogDeadline,
                OperatorConfirmed,
                JobSucceeded,
                KdumpSeen,
                Partition,
                NewBootId,
            ]),
            at: self.time(),
            by: self.of(&by),
            liveness: self.liveness(),
            voided_at: self.maybe(Self::time),
        }
    }

    fn released(&mut self) -> Released {
        Released {
            at: self.time(),
            pods: self.list(4, |dice| format!("pod-{}", dice.number())),
            attachments: self.list(4, |dice| format!("va-{}", dice.number())),
            everything: self.yes(),
            left: self.number(),
            progress_at: self.time(),
            sent_at: self.maybe(Self::time),
            sent: self.number(),
            ended_at: self.maybe(Self::time),
        }
    }

    fn jobs(&mut self) -> Vec<JobRun> {
        let mut number = 0;
        self.list(4, |dice| {
            number += 1 + u32::try_from(dice.roll(3)).unwrap();
            let outcomes = [JobOutcome::Succeeded, JobOutcome::Failed, JobOutcome::Lost];
            JobRun {
                number,
                remedy_step: 0,
                attempt: dice.number(),
                intended_at: dice.time(),
                seen_at: dice.maybe(Self::time),
                pod: dice.maybe(Self::text),
                stopping_at: dice.maybe(Self::time),
                end: dice.maybe(|dice| JobEnd {
                    at: dice.time(),
                    outcome: dice.of(&outcomes),
                    detail: dice.text(),
                }),
            }
        })
    }

    fn record(&mut self) -> Record {
        let mut id = 0;
        let operations = self.list(6, |dice| {
            id += 1 + u32::try_from(dice.roll(3)).unwrap();
            dice.operation(id)
        });
        let next = id + 1 + self.number();
        let why = self.end_reason();
        let phase = if self.roll(5) == 0 { Phase::Final(why) } else { self.phase() };
        let parked = Parked {
            reason: self.park_reason(),
            at: self.time(),
            powered_off_by_us: self.list(3, Self::method),
            still_cut: self.list(3, Self::method),
        };
        let goals = [
            Goal::BringBack,
            Goal::Withdraw,
            Goal::Close(self.end_reason()),
            Goal::Park(self.park_reason()),
        ];
        let requests = [
            Request::Retry,
            Request::Abort,
            Request::AbortLeaveOff,
            Request::ConfirmOff { by: self.text(), boot_id: self.text() },
        ];
        Record {
            phase,
            entered_at: self.time(),
            opened_at: self.time(),
            attempt: self.number(),
            phase_first: OpId(u32::try_from(self.roll(u64::from(next))).unwrap()),
            retries: self.number(),
            restarts: self.number(),
            remedy_step: 0,
            jobs: self.jobs(),
            decisions: self.decisions(),
            epoch: self.roll(1 << 40),
            process: self.text(),
            liveness_at_open: self.liveness(),
            baseline: self.maybe(|dice| Baseline { at: dice.time(), liveness: dice.liveness() }),
            next_operation: OpId(next),
            found_off: self.list(3, Self::method),
            identified: self.list(3, Self::method),
            failed: self.list(3, Self::method),
            proof: self.maybe(|dice| dice.proof(&operations)),
            operations,
            released: self.maybe(Self::released),
            first_released_at: self.maybe(Self::time),
            partly_released_at: self.maybe(Self::time),
            cut_off: self.maybe(|dice| CutOff {
                pods: dice.list(3, Self::text),
                attachments: dice.list(3, Self::text),
                untold: dice.yes(),
            }),
            handed_over_at: self.maybe(Self::time),
            marks: Marks { quarantine: self.yes(), cordon: self.yes(), out_of_service: self.yes() },
            slot: self.of(&[Slot::Free, Slot::Held]),
            goal: self.of(&goals),
            resume: self.maybe(Self::phase),
            gate_closed_at: self.maybe(Self::time),
            dump_held_at: self.maybe(Self::time),
            unreachable_at: self.maybe(Self::time),
            unreachable: self.maybe(Self::method),
            on_failed: self.list(3, |dice| OnFailure {
                method: dice.method(),
                at: dice.time(),
                kind: dice.failure_kind(),
            }),
            parked: if phase == Phase::Parked { Some(parked) } else { self.maybe(|_| parked) },
            aborted_at: self.maybe(Self::time),
            request: self.maybe(|dice| dice.of(&requests)),
        }
    }
}

fn nodefence() -> NodeFence {
    let method = |name: &str| Method {
        builtin: Some(Builtin::Quarantine),
        plug: "3".to_owned(),
        device: format!("{name}.example"),
        ..Method::named(name)
    };
    let methods = ["a", "b", "c", "d"].map(method).into();
    let spec = NodeFenceSpec {
        node: api::FencedNode { name: "node-a".into(), uid: "u".into(), ..Default::default() },
        trigger: api::Trigger {
            condition_type: "Ready".into(),
            status: "Unknown".into(),
            since: Moment::from_ms(1),
            period: Span::from_s(1),
            symptom: None,
            condition_stale_after: None,
        },
        remedy: "repair".into(),
        plan: NodePlan { methods, ..NodePlan::default() },
        policy: node_remedy_api::policy::IncidentPolicy::default(),
        gate: node_remedy_api::policy::GateLimits::default(),
        ladder: Vec::new(),
    };
    NodeFence::new("node-a-1", spec)
}

fn written(record: &Record, before: Option<NodeFenceStatus>, now: u64) -> NodeFenceStatus {
    let nodefence = NodeFence { status: before, ..nodefence() };
    write(record, &nodefence, &plan_of(&nodefence.spec).unwrap(), None, Time(now))
}

/// A record with a bit of everything, to be broken.
fn sample() -> NodeFenceStatus {
    let mut dice = Dice(7);
    let mut record = dice.record();
    record.phase = Phase::Releasing;
    record.operations = (1..4).map(|id| dice.operation(id)).collect();
    for operation in &mut record.operations {
        operation.action = Action::Status;
        operation.end = Some(End::Succeeded { state: PlugState::Off, identity: Vec::new() });
        operation.ended_at = Some(Time(5));
    }
    (record.phase_first, record.next_operation) = (OpId(1), OpId(4));
    record.proof = Some(Proof {
        grade: Grade::PowerOffVerified,
        at: Time(6),
        by: Evidence::Reads(vec![OpId(3)]),
        liveness: Liveness::default(),
        voided_at: None,
    });
    record.released = Some(Released { pods: vec!["p".into()], ..dice.released() });
    record.goal = Goal::BringBack;
    record.request = Some(Request::ConfirmOff { by: "ann".into(), boot_id: "b".into() });
    record.decisions = [1, 2].map(crate::status::tests::decided::gave_up).into();
    written(&record, None, 10)
}

#[test]
fn every_record_comes_back_as_it_was_written() {
    let spec = nodefence().spec;
    for seed in 1..=RECORDS {
        let record = Dice(seed * 0x9e37_79b9).record();
        let status = written(&record, None, 10);
        let text = serde_json::to_string(&status).unwrap();
        let stored: NodeFenceStatus = serde_json::from_str(&text).unwrap();
        assert_eq!(read(&spec, &status).as_ref(), Ok(&record), "seed {seed}");
        assert_eq!(read(&spec, &stored).as_ref(), Ok(&record), "seed {seed}, through JSON");
    }
}

#[test]
fn what_is_derived_is_not_read_back() {
    let spec = nodefence().spec;
    let mut status = sample();
    let record = read(&spec, &status).unwrap();
    status.step = api::Step::Recovery;
    status.status = api::State::Final;
    status.conditions.clear();
    status.history.clear();
    status.operations[0].name = "another".into();
    assert_eq!(read(&spec, &status), Ok(record));
}

#[test]
fn a_broken_status_is_refused_by_name_and_parked() {
    type Break = fn(&mut NodeFenceStatus);
    let table: [(&str, Break); 26] = [
        ("decisions[1].number", |s| s.decisions[1].number = 1),
        ("decisions[0].choice", |s| s.decisions[0].choice.as_mut().unwrap().why = None),
        ("finalReason", |s| s.phase = api::Phase::Final),
        ("finalReason", |s| s.final_reason = Some(api::FinalReason::Remedied)),
        ("resume", |s| s.resume = Some(api::Phase::Final)),
        ("parked", |s| (s.phase, s.parked) = (api::Phase::Parked, None)),
        ("phaseFirstOperation", |s| s.phase_first_operation = 5),
        ("foundOff", |s| s.found_off = vec![4]),
        ("identified", |s| s.identified = vec![u32::MAX]),
        ("failed", |s| s.failed = vec![99]),
        ("unreachable", |s| s.unreachable = Some(4)),
        ("operations[1].id", |s| s.operations[1].id = 1),
        ("operations[2].id", |s| s.next_operation = 3),
        ("operations[0].method", |s| s.operations[0].method = 4),
        ("operations[0].endedAt", |s| s.operations[0].ended_at = None),
        ("operations[0].endedAt", |s| s.operations[0].end = None),
        ("operations[0].end", |s| s.operations[0].end.as_mut().unwrap().state = None),
        ("operations[0].end", |s| {
            s.operations[0].end.as_mut().unwrap().kind = api::EndKind::Failed;
        }),
        ("proof.by", |s| s.proof.as_mut().unwrap().by.reads = None),
        ("proof.by", |s| s.proof.as_mut().unwrap().by.person = Some("ann".into())),
        ("proof.by.reads", |s| s.proof.as_mut().unwrap().by.reads = Some(vec![9])),
        ("proof.by.reads", |s| s.operations[2].action = api::Action::Off),
        ("released.pods", |s| s.released.as_mut().unwrap().pods[0].uid.clear()),
        ("goal", |s| s.goal.kind = api::GoalKind::Close),
        ("goal", |s| s.goal.final_reason = Some(api::FinalReason::Remedied)),
        ("request", |s| s.request.as_mut().unwrap().boot_id = None),
    ];
    let spec = nodefence().spec;
    assert!(read(&spec, &sample()).is_ok());
    for (row, (field, break_it)) in table.into_iter().enumerate() {
        let mut status = sample();
        break_it(&mut status);
        let broken = read(&spec, &status).expect_err(field);
        assert_eq!(broken.field, field, "row {row}: {broken}");
        let parked = park(&status, "a-1", &broken, Time(99));
        let why = parked.parked.as_ref().unwrap();
        assert_eq!(parked.phase, api::Phase::Parked, "row {row}");
        assert_eq!(why.why.reason, api::ParkCode::BrokenRecord, "row {row}");
        assert!(why.sentence.contains(field), "row {row}: {}", why.sentence);
        assert!(why.next.ends_with("delete nodefence a-1"), "row {row}: {}", why.next);
        assert_eq!(parked.operations, status.operations, "row {row}: the journal is kept");
        assert_eq!(park(&parked, "a-1", &broken, Time(100)), parked, "row {row}: once is enough");
    }
}

#[test]
fn what_to_do_about_a_parking_names_the_node() {
    let nodefence = nodefence();
    let mut record = read(&nodefence.spec, &sample()).unwrap();
    record.phase = Phase::Parked;
    let reason = ParkReason::OnFailed;
    record.parked =
        Some(Parked { reason, at: Time(8), powered_off_by_us: vec![1], still_cut: vec![] });
    let status = written(&record, None, 10);
    let next = status.parked.clone().unwrap().next;
    let command = format!("node-remedy ack {}", nodefence.spec.node.name);
    assert!(next.ends_with(&command), "{next}");
    let told = status.conditions.iter().any(|one| one.message.ends_with(&command));
    assert!(told, "{:?}", status.conditions);
}

/// Whoever is called at three in the morning has to know what stands before they touch anything.
#[test]
fn a_parking_names_the_plugs_cuts_and_marks_that_stand() {
    let spec = nodefence().spec;
    let mut record = read(&spec, &sample()).unwrap();
    record.phase = Phase::Parked;
    record.marks = Marks { quarantine: true, cordon: true, out_of_service: false };
    let (reason, at) = (ParkReason::RestoreFailed, Time(8));
    record.parked = Some(Parked { reason, at, powered_off_by_us: vec![0], still_cut: vec![1] });
    let status = written(&record, None, 10);
    let parked = status.parked.clone().unwrap();
    let stands = "(off by us, or may still go off: 3 on a.example. cut by us: 3 on b.example. on the Node: quarantine taint, cordon)";
    assert!(parked.sentence.ends_with(stands), "{}", parked.sentence);
    assert!(status.conditions.iter().any(|one| one.message.contains(stands)));
    assert_eq!(read(&spec, &status).unwrap().parked, record.parked);
}

#[test]
fn a_reason_keeps_what_it_speaks_of() {
    let spec = nodefence().spec;
    let mut record = read(&spec, &sample()).unwrap();
    record.phase = Phase::Parked;
    let reason = ParkReason::WrongMachine { expected: "a".into(), found: "b".into() };
    record.parked =
        Some(Parked { reason, at: Time(8), powered_off_by_us: vec![1], still_cut: vec![] });
    let status = written(&record, None, 10);
    let parked = status.parked.clone().unwrap();
    assert_eq!(parked.plugs, ["3 on b.example"]);
    let advice = "kubectl delete nodefence node-a-1: the next incident uses the correction";
    assert!(parked.next.ends_with(advice), "{}", parked.next);
    for break_it in [
        |why: &mut api::ParkReason| why.found = None,
        |why: &mut api::ParkReason| why.tries = Some(1),
        |why: &mut api::ParkReason| why.reason = api::ParkCode::NotHealthy,
        |why: &mut api::ParkReason| why.reason = api::ParkCode::MethodFailed,
    ] {
        let mut status = status.clone();
        break_it(&mut status.parked.as_mut().unwrap().why);
        assert_eq!(read(&spec, &status).expect_err("broken").field, "parked");
    }
}

#[test]
fn what_others_wrote_is_cut_to_what_the_crd_takes() {
    let spec = nodefence().spec;
    let mut record = read(&spec, &sample()).unwrap();
    let long = "é".repeat(5_000);
    let failure = Failure { kind: FailureKind::Other, detail: long.clone() };
    record.operations[0].end = Some(End::Failed(failure));
    record.operations[1].end =
        Some(End::Succeeded { state: PlugState::Off, identity: vec![(long.clone(), long); 40] });
    let status = written(&record, None, 10);
    let ends: Vec<_> = status.operations.iter().filter_map(|one| one.end.as_ref()).collect();
    assert_eq!(ends[0].detail.chars().count(), 4096);
    assert_eq!(ends[1].identity.len(), 16);
    assert_eq!(ends[1].identity[0].name.chars().count(), 64);
    assert_eq!(ends[1].identity[0].value.chars().count(), 1024);
    assert!(read(&spec, &status).is_ok());
}

#[test]
fn conditions_keep_their_time_while_their_status_holds() {
    let spec = nodefence().spec;
    let first = sample();
    let mut record = read(&spec, &first).unwrap();
    let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
    record.proof.as_mut().unwrap().voided_at = Some(Time(20));
    let released = record.released.as_mut().unwrap();
    (released.left, released.ended_at) = (0, Some(Time(20)));
    let second = written(&record, Some(first.clone()), 21);
    record.phase = Phase::Final(FinalReason::Remedied);
    record.entered_at = Time(30);
    let third = written(&record, Some(second.clone()), 31);
    let says = |status: &NodeFenceStatus, kind: &str| {
        let found = status.conditions.iter().find(|one| one.kind == kind).unwrap();
        (found.status, found.reason.clone(), found.last_transition_time.ms)
    };
    assert_eq!(says(&first, "Fenced"), (yes, "PowerOffVerified".into(), 10));
    assert_eq!(says(&second, "Fenced"), (no, "ProofVoided".into(), 21));
    assert_eq!(says(&third, "Fenced"), (no, "ProofVoided".into(), 21));
    assert_eq!(says(&second, "Released"), (yes, "AllGone".into(), 21));
    assert_eq!(says(&third, "Released"), (yes, "AllGone".into(), 21));
    assert_eq!(says(&third, "Parked"), (no, "NotParked".into(), 10));
    assert_eq!(says(&second, "Finished"), (no, "Releasing".into(), 10));
    assert_eq!(says(&third, "Finished"), (yes, "Remedied".into(), 31));
    assert_eq!((first.history.len(), second.history.len(), third.history.len()), (1, 1, 2));
}

#[test]
fn history_is_bounded() {
    let mut record = read(&nodefence().spec, &sample()).unwrap();
    let mut before = None;
    for at in 0..250 {
        record.entered_at = Time(at);
        before = Some(written(&record, before, at));
    }
    let history = before.unwrap().history;
    assert_eq!(history.len(), node_remedy_api::limits::HISTORY_MAX);
    assert_eq!(history.last().unwrap().at.ms, 249);
}

#[test]
fn names_of_released_objects_outlive_the_objects() {
    let spec = nodefence().spec;
    let mut first = sample();
    let record = read(&spec, &first).unwrap();
    let pod = &mut first.released.as_mut().unwrap().pods[0];
    (pod.namespace, pod.name) = ("shop".into(), "db-0".into());
    let second = written(&record, Some(first), 20);
    let pod = &second.released.unwrap().pods[0];
    assert_eq!([&pod.uid, &pod.namespace, &pod.name], ["p", "shop", "db-0"]);
}
