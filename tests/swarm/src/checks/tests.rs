//! A check that finds nothing proves nothing: each finds what breaks its invariant, and only that.

mod guards;
mod silence;
mod told;

use std::time::Duration;

use PowerCause::{ByHand, Command, Device};
use node_remedy_simulate::CLIENT;
use node_remedy_world::facts::{Fact, Power, PowerCause, What};
use node_remedy_world::scenario::START;
use node_remedy_world::time::after;

use super::check;
use crate::scene::{OUT_OF_SERVICE, PEOPLE, Setting};

const QUARANTINE: &str = "node-remedy.io/quarantine";
const US: &str = "one";

/// Facts by the second at which they happened.
type Timeline = Vec<(u64, What)>;

fn judged(timeline: Timeline, setting: &Setting) -> Vec<&'static str> {
    let fact = |(at, what)| Fact { at: after(START, Duration::from_secs(at)), what };
    let mut facts = vec![fact((0, leads(US)))];
    facts.extend(timeline.into_iter().map(fact));
    check(&facts, setting, |_, _| ()).into_iter().map(|violation| violation.invariant).collect()
}

fn breaks(timeline: Timeline, invariants: &[&str]) {
    let told = format!("{timeline:?}");
    assert_eq!(judged(timeline, &Setting::default()), invariants, "{told}");
}

fn leads(process: &str) -> What {
    What::LeaderChanged { process: process.into() }
}

fn power(power: Power, cause: PowerCause) -> What {
    What::PowerChanged { node: "n".into(), power, cause }
}

fn meant(operation: u64, action: &str) -> What {
    meant_by("power", operation, action)
}

fn meant_by(method: &str, operation: u64, action: &str) -> What {
    let (fence, node, method) = ("n-1".into(), "n".into(), method.into());
    What::IntentRecorded { fence, node, operation, method, action: action.into() }
}

fn plug_said_yes(device: &str, command: &str) -> What {
    let (node, device, by) = ("n".into(), device.into(), US.into());
    What::PlugAccepted { node, device, plug: 3, command: command.into(), by }
}

fn plug(device: &str, power: Power, cause: PowerCause) -> What {
    What::PlugChanged { node: "n".into(), device: device.into(), plug: 3, power, cause }
}

fn said_yes(command: &str, by: &str) -> What {
    What::BmcAccepted { node: "n".into(), command: command.into(), by: by.into() }
}

fn told(power: Power) -> What {
    What::BmcReported { node: "n".into(), power, by: US.into() }
}

fn lost() -> What {
    What::NetworkLost { node: "n".into() }
}

fn tainted(key: &str, by: &str) -> What {
    What::TaintAdded {
        node: "n".into(),
        key: key.into(),
        effect: "NoExecute".into(),
        by: by.into(),
    }
}

fn untainted(key: &str) -> What {
    What::TaintRemoved {
        node: "n".into(),
        key: key.into(),
        effect: "NoExecute".into(),
        by: CLIENT.into(),
    }
}

fn pod_gone() -> What {
    let (pod, uid) = ("default/db-0".into(), "u".into());
    What::PodGone { pod, uid, node: "n".into(), by: CLIENT.into() }
}

fn detach() -> What {
    detach_by(CLIENT)
}

fn detach_by(by: &str) -> What {
    What::DetachRequested { volume: "pv".into(), node: "n".into(), by: by.into() }
}

fn proven() -> What {
    proven_by("power-off-verified")
}

fn proven_by(grade: &str) -> What {
    What::ProofRecorded { fence: "n-1".into(), node: "n".into(), grade: grade.into() }
}

fn state(state: &str) -> What {
    let (fence, node) = ("n-1".into(), "n".into());
    What::FenceState {
        fence,
        node,
        step: "Power-Management".into(),
        state: state.into(),
        reason: String::new(),
    }
}

fn parked(left_off: u64) -> What {
    parked_for("NotHealthy", left_off)
}

fn parked_for(reason: &str, left_off: u64) -> What {
    let (fence, node, reason) = ("n-1".into(), "n".into(), reason.into());
    What::ParkedRecorded { fence, node, reason, left_off }
}

fn started() -> What {
    What::KubeletStarted { node: "n".into(), boot: "2".into() }
}

/// A lost node, in quarantine, cut as it should be.
fn cut() -> Timeline {
    vec![
        (1, lost()),
        (1, tainted(QUARANTINE, CLIENT)),
        (1, state("Running")),
        (1, meant(1, "off")),
        (1, said_yes("off", US)),
        (1, power(Power::Off, Command)),
        (1, told(Power::Off)),
        (1, meant(2, "status")),
    ]
}

/// The same, then this, then the way back.
fn cut_then(then: Timeline) -> Timeline {
    let back = vec![
        (8, meant(8, "status")),
        (8, meant(9, "on")),
        (8, said_yes("on", US)),
        (8, power(Power::On, Command)),
        (9, started()),
        (9, untainted(QUARANTINE)),
        (9, state("Final")),
    ];
    cut().into_iter().chain(then).chain(back).collect()
}

#[test]
fn a_node_that_is_cut_released_and_brought_back_breaks_nothing() {
    breaks(cut_then(vec![(2, proven()), (2, pod_gone()), (3, detach())]), &[]);
    let service = vec![(2, tainted(OUT_OF_SERVICE, CLIENT)), (5, untainted(OUT_OF_SERVICE))];
    breaks(cut_then(service), &[]);
}

#[test]
fn s1_a_job_proves_nothing_of_a_node_that_is_heard() {
    let is_broken = |at| {
        let proven = proven_by("job-succeeded");
        let boots = vec![(1, power(Power::Off, ByHand)), (5, power(Power::On, ByHand))];
        let run = [boots, vec![(6, started()), (at, proven)]].concat();
        judged(run, &Setting::default()).contains(&"S1")
    };
    assert!(!is_broken(8));
    assert!(is_broken(30));
}

/// Nobody is faster than somebody who gives storage back behind a release, but it is cut again.
#[test]
fn what_a_person_gives_back_behind_a_release_is_cut_again() {
    let (volume, pod, other) = ("pv".into(), "default/db-0".into(), "m".into());
    let two = What::TwoWriters { volume, pod, node: "n".into(), other };
    let edited = |by: &str| What::Edited { object: "NetworkFence f".into(), by: by.into() };
    let cut = || What::StorageCut { node: "n".into() };
    let run = |by: &str, again: Option<What>| {
        let made = What::NodeCreated { node: "n".into() };
        let mut timeline = vec![(0, made), (1, lost()), (2, cut()), (3, detach()), (8, edited(by))];
        timeline.push((10, What::StorageBack { node: "n".into() }));
        timeline.push((11, two.clone()));
        timeline.extend(again.map(|cut| (15, cut)));
        judged(timeline, &Setting::default()).iter().filter(|one| **one == "S1").count()
    };
    assert_eq!(run(PEOPLE, Some(cut())), 0);
    assert_eq!(run(PEOPLE, None), 1, "nobody cut it again");
    assert_eq!(run(CLIENT, Some(cut())), 1, "two writers that are ours");
}

#[test] // promise: S1
fn s1_nothing_is_given_away_while_it_may_run() {
    let on_again = |cause, then| cut_then(vec![(2, power(Power::On, cause)), (3, then)]);
    for then in [pod_gone(), detach(), proven()] {
        let found = judged(on_again(Command, then.clone()), &Setting::default());
        assert!(found.contains(&"S1"), "{then:?}: {found:?}");
        // Nobody can see in time what comes on by itself or by hand.
        let found = judged(on_again(Device, then.clone()), &Setting::default());
        assert!(!found.contains(&"S1"), "{then:?}: {found:?}");
    }
    let (volume, pod, uid, boot) = ("pv".into(), "default/db-0".into(), "u".into(), "1".into());
    let writes = What::WriterStarted { volume, pod, uid, node: "n".into(), boot };
    breaks(cut_then(vec![(2, writes), (2, pod_gone())]), &["S1"]);
    let (volume, pod, other) = ("pv".into(), "default/db-0".into(), "m".into());
    let two = What::TwoWriters { volume, pod, node: "n".into(), other };
    breaks(vec![(1, two.clone())], &["S1"]);
    let by_people = What::NodeDeleted { node: "m".into(), by: PEOPLE.into() };
    breaks(vec![(1, by_people), (2, two)], &[]);
    let crash = What::KernelDumpStarted { node: "n".into() };
    for (run, found) in [
        (vec![(1, proven_by("kdump-seen"))], true),
        (vec![(1, crash.clone()), (2, proven_by("kdump-seen")), (2, pod_gone())], false),
        (vec![(1, crash.clone()), (2, proven_by("kdump-seen")), (2, detach())], true),
        (vec![(1, crash), (2, proven_by("power-off-verified"))], true),
    ] {
        let broken = judged(run.clone(), &Setting::default());
        assert_eq!(broken.contains(&"S1"), found, "{run:?}: {broken:?}");
    }
    let all = Setting { dumps_release_all: true, ..Setting::default() };
    let crash = What::KernelDumpStarted { node: "n".into() };
    for (then, found) in [(detach(), false), (tainted(OUT_OF_SERVICE, CLIENT), true)] {
        let run = vec![(1, crash.clone()), (2, proven_by("kdump-seen")), (2, then)];
        let broken = judged(run.clone(), &all);
        assert_eq!(broken.contains(&"S1"), found, "{run:?}: {broken:?}");
    }
}

#[test] // promise: S2
fn s2_one_node_at_a_time() {
    let second = |at| {
        let (node, fence, action) = ("m".to_owned(), "m-1".into(), "off".into());
        let method = String::new();
        vec![
            (at, What::NetworkLost { node: node.clone() }),
            (at, What::IntentRecorded { fence, node: node.clone(), operation: 1, method, action }),
            (at, What::BmcAccepted { node, command: "off".into(), by: US.into() }),
        ]
    };
    breaks(cut_then(second(2)), &["S2"]);
    breaks([cut_then(vec![]), second(9)].concat(), &[]);
    let told = vec![(2, state("Error")), (2, parked(1))];
    breaks([cut(), told, second(3)].concat(), &[]);
}

#[test] // promise: S4
fn s4_only_the_leader_commands_devices() {
    breaks(cut_then(vec![(2, leads("two")), (3, leads(US))]), &[]);
    let probed = vec![(2, leads("two")), (3, told(Power::Off)), (4, leads(US))];
    breaks(cut_then(probed), &[]);
    let commanded = vec![(2, leads("two")), (3, meant(9, "on")), (3, said_yes("on", US))];
    breaks(cut_then([commanded, vec![(4, leads(US))]].concat()), &["S4"]);
}

#[test] // promise: S5
fn s5_what_is_sent_was_meant_and_is_read_before_it_is_sent_again() {
    let lone = vec![(1, lost()), (1, said_yes("off", US)), (1, state("Error"))];
    breaks(lone, &["S5"]);
    breaks(cut_then(vec![(2, said_yes("on", US))]), &["S5"]);
    let again = |is_read: bool| {
        let mut once = cut();
        once.truncate(once.len() - usize::from(!is_read));
        let again = vec![(3, meant(5, "off")), (3, said_yes("off", US))];
        let back = cut_then(vec![]).split_off(cut().len());
        [once, again, vec![(4, meant(6, "status"))], back].concat()
    };
    breaks(again(false), &["S5"]);
    breaks(again(true), &[]);
    // The same datagram twice is one operation.
    breaks(cut_then(vec![(2, meant(2, "on")), (3, said_yes("on", US))]), &[]);
}

#[test] // promise: S6
fn s6_a_machine_is_left_off_only_where_a_person_is_told() {
    breaks(cut(), &["S6"]);
    let told = |left_off| vec![(2, state("Error")), (2, parked(left_off))];
    breaks([cut(), told(1)].concat(), &[]);
    breaks([cut(), told(0)].concat(), &["S6"]);
    breaks([cut(), vec![(2, state("Final"))]].concat(), &["S6", "L4"]);
    breaks(vec![(1, power(Power::Off, ByHand))], &[]);
    let (fence, node) = ("n-1".to_owned(), "n".to_owned());
    let awaited = vec![(3, state("Running")), (4, What::DeviceAwaited { fence, node })];
    breaks([cut(), awaited.clone()].concat(), &["S6"]);
    let fed = [cut(), vec![(2, plug("pdu-a", Power::Off, Device))]].concat();
    breaks(fed.clone(), &["S6"]);
    breaks([fed.clone(), awaited.clone()].concat(), &[]);
    let ours_too = vec![(2, plug("pdu-b", Power::Off, Command))];
    breaks([fed, ours_too, awaited].concat(), &["S6", "S6"]);
}

#[test]
fn s6_storage_is_left_cut_only_while_the_incident_goes_on() {
    let cut = |ends: &str| {
        let node = || "n".to_owned();
        let cut = vec![
            (1, What::NodeCreated { node: node() }),
            (1, state("Running")),
            (1, What::StorageCut { node: node() }),
        ];
        [cut, vec![(2, state(ends))]].concat()
    };
    breaks(cut("Error"), &[]);
    breaks(cut("Running"), &[]);
    breaks(cut("Final"), &["S6"]);
    breaks([cut("Final"), vec![(3, What::StorageBack { node: "n".into() })]].concat(), &[]);
}

/// A machine on two outlets: the one is asked, then the other; each is read before it is asked
/// again, and each has to be on in the end.
#[test] // promise: S6
fn s2_s5_s6_s10_count_outlets_and_ports_one_by_one() {
    let off = |method: &str, operation, device: &str| {
        vec![
            (2, meant_by(method, operation, "off")),
            (2, plug_said_yes(device, "off")),
            (2, plug(device, Power::Off, Command)),
        ]
    };
    let on = |method: &str, operation, device: &str| {
        vec![
            (8, meant_by(method, operation, "status")),
            (8, meant_by(method, operation + 1, "on")),
            (8, plug_said_yes(device, "on")),
            (8, plug(device, Power::On, Command)),
        ]
    };
    let begun = vec![(1, lost()), (1, tainted(QUARANTINE, CLIENT)), (1, state("Running"))];
    let both = || [begun.clone(), off("a", 1, "pdu-a"), off("b", 2, "pdu-b")].concat();
    let over = vec![(9, untainted(QUARANTINE)), (9, state("Final"))];
    let back = || [on("a", 3, "pdu-a"), on("b", 5, "pdu-b"), over.clone()].concat();
    breaks([both(), back()].concat(), &[]);
    breaks([both(), off("a", 3, "pdu-a"), back()].concat(), &["S5"]);
    breaks([both(), on("a", 3, "pdu-a"), over.clone()].concat(), &["S6"]);
    breaks([both(), vec![(3, state("Error")), (3, parked(2))]].concat(), &[]);
    // Of a port nobody says that power was left off: that it is parked is enough.
    let port = || [begun.clone(), off("cut", 1, "leaf")].concat();
    let setting = Setting { switches: ["leaf".to_owned()].into(), ..Setting::default() };
    let parked = [port(), vec![(3, state("Error"))]].concat();
    assert_eq!(judged(parked.clone(), &setting), [""; 0]);
    breaks(parked, &["S6"]);
    assert_eq!(judged([port(), over.clone()].concat(), &setting), ["S6"]);
    // Whoever is asked for a yes is told what is cut until then.
    let asked = Setting { needs_approval: true, ..setting };
    let approved = |until| vec![(3, commanded("approve")), (until, commanded("approve"))];
    assert!(!judged(port(), &asked).contains(&"S6"));
    // After that the gate is waited for, for as long as its timeout.
    assert!(!judged([port(), approved(902)].concat(), &asked).contains(&"S6"));
    assert!(judged([port(), approved(903)].concat(), &asked).contains(&"S6"));
    // Of a port that says it is on nobody can know that it is not, while the incident goes on.
    let says = |power| {
        let (node, device, by) = ("n".into(), "leaf".into(), US.into());
        vec![(3, What::PlugReported { node, device, plug: 3, power, by })]
    };
    let setting = Setting { needs_approval: false, ..asked };
    assert!(!judged([port(), says(Power::On)].concat(), &setting).contains(&"S6"));
    assert!(judged([port(), says(Power::Off)].concat(), &setting).contains(&"S6"));
    assert!(judged([says(Power::On), port()].concat(), &setting).contains(&"S6"));
    assert!(judged([port(), says(Power::On), over.clone()].concat(), &setting).contains(&"S6"));
    breaks([port(), on("cut", 3, "leaf"), over.clone()].concat(), &[]);
    let well = vec![(1, meant(1, "off")), (1, plug_said_yes("pdu-a", "off")), (1, state("Error"))];
    breaks(well, &["S10"]);
    let other = vec![(2, leads("two")), (2, plug_said_yes("pdu-a", "on")), (2, leads(US))];
    let found = judged([both(), other, back()].concat(), &Setting::default());
    assert!(found.contains(&"S4"), "{found:?}");
    let (node, device, by) = ("m".to_owned(), "leaf".to_owned(), US.to_owned());
    let second = vec![
        (3, What::NetworkLost { node: node.clone() }),
        (3, What::PlugAccepted { node, device, plug: 4, command: "off".into(), by }),
    ];
    let found = judged([both(), second, back()].concat(), &Setting::default());
    assert!(found.contains(&"S2"), "{found:?}");
}

#[test] // promise: S7
fn s7_the_bmc_of_another_machine_is_told_nothing() {
    let setting = Setting { impostors: ["n".to_owned()].into(), ..Setting::default() };
    let found = judged(cut_then(vec![]), &setting);
    assert_eq!(found, ["S7", "S7"]);
    // With one identity for two Nodes; and once the other one is gone.
    let twins = || ["n".to_owned(), "m".to_owned()].into();
    let setting = Setting { impostors: twins(), twins: twins(), ..Setting::default() };
    let made = || (0, What::NodeCreated { node: "m".into() });
    let run = |more: Timeline| [vec![made()], more, cut_then(vec![])].concat();
    assert_eq!(judged(run(vec![]), &setting), ["S7", "S7"]);
    let deleted = What::NodeDeleted { node: "m".into(), by: PEOPLE.into() };
    assert_eq!(judged(run(vec![(0, deleted)]), &setting), [""; 0]);
    // Another machine's from some time on, and its own again.
    let changed = |of_another| (0, What::BmcChanged { node: "n".into(), of_another });
    let since = |more: Timeline| judged([more, cut_then(vec![])].concat(), &Setting::default());
    assert_eq!(since(vec![changed(true)]), ["S7", "S7"]);
    assert_eq!(since(vec![changed(true), changed(false)]), [""; 0]);
}

#[test] // promise: S8
fn s8_only_what_was_there_is_released() {
    let gone = |pod: &str| What::PodGone {
        pod: pod.into(),
        uid: "u".into(),
        node: "n".into(),
        by: CLIENT.into(),
    };
    breaks(cut_then(vec![(2, gone("kube-system/agent-n"))]), &["S8"]);
    let (pod, uid) = ("default/db-0".into(), "u".into());
    let bound = What::PodScheduled { pod, uid, node: "n".into() };
    let late =
        |at| [cut_then(vec![(at, bound.clone())]), vec![(20, gone("default/db-0"))]].concat();
    assert!(judged(late(2), &Setting::default()).contains(&"S8"));
    let successor = What::PodGone {
        pod: "default/db-0".into(),
        uid: "v".into(),
        node: "another".into(),
        by: CLIENT.into(),
    };
    assert!(judged(cut_then(vec![(5, successor)]), &Setting::default()).contains(&"S8"));
    // Somebody had switched it off, and a pod came to it before anybody knew.
    let by_hand = vec![
        (1, power(Power::Off, ByHand)),
        (2, bound),
        (3, told(Power::Off)),
        (3, power(Power::On, ByHand)),
        (3, gone("default/db-0")),
    ];
    assert!(!judged(by_hand, &Setting::default()).contains(&"S8"));
}

#[test] // promise: S9
fn s9_marks_are_ours_and_stand_in_time() {
    let open: Timeline = cut_then(vec![(2, pod_gone())])
        .into_iter()
        .filter(|(_, what)| !matches!(what, What::TaintAdded { .. } | What::TaintRemoved { .. }))
        .collect();
    breaks(open, &["S9"]);
    let deleted = |gone| {
        let quarantined =
            vec![(0, What::NodeCreated { node: "n".into() }), (1, tainted(QUARANTINE, CLIENT))];
        let deleted = What::NodeDeleted { node: "n".into(), by: PEOPLE.into() };
        let run = [quarantined, vec![(2, deleted), (gone, pod_gone())]].concat();
        judged(run, &Setting::default()).contains(&"S9")
    };
    assert!(!deleted(3), "the release was under way when the Node was deleted");
    assert!(deleted(8));
    breaks(cut_then(vec![(7, untainted(QUARANTINE)), (7, tainted(QUARANTINE, CLIENT))]), &["S9"]);
    let theirs = "node.kubernetes.io/unreachable";
    breaks(cut_then(vec![(2, tainted(theirs, "other")), (3, untainted(theirs))]), &["S9"]);
    breaks(cut_then(vec![(2, tainted(theirs, CLIENT)), (3, untainted(theirs))]), &["S9"]);
    let boots = [
        cut_then(vec![(2, tainted(OUT_OF_SERVICE, CLIENT))]),
        vec![(10, untainted(OUT_OF_SERVICE))],
    ];
    breaks(boots.concat(), &["S9"]);
    let cordon = What::Cordoned { node: "n".into(), by: PEOPLE.into() };
    let uncordon = What::Uncordoned { node: "n".into(), by: CLIENT.into() };
    breaks(cut_then(vec![(2, cordon), (3, uncordon)]), &["S9"]);
}

#[test]
fn s9_a_node_that_is_well_is_not_out_of_service() {
    let well = || (5, What::NetworkBack { node: "n".into() });
    let is_broken = |by, end| {
        let marks = vec![(2, tainted(QUARANTINE, CLIENT)), (3, tainted(OUT_OF_SERVICE, by))];
        let run = [vec![(1, lost())], marks, vec![well(), (end, leads(US))]].concat();
        judged(run, &Setting::default()).contains(&"S9")
    };
    assert!(!is_broken(CLIENT, 50));
    assert!(is_broken(CLIENT, 90));
    assert!(!is_broken(PEOPLE, 90));
}

#[test] // promise: S2
fn s2_a_node_that_another_remediator_has_is_left_alone() {
    let locked = || What::NodeLocked { node: "n".into(), by: "other".into(), lasts: 60 };
    let off = |at| vec![(at, meant(1, "off")), (at, said_yes("off", US)), (at, state("Error"))];
    let run = |at| [vec![(1, lost()), (20, locked())], off(at)].concat();
    breaks(run(21), &[]);
    breaks(run(40), &["S2"]);
    breaks(run(81), &[]);
}

#[test] // promise: S10
fn s10_nothing_is_begun_where_no_policy_says_so() {
    let says =
        |policy: &str, mode: &str| What::PolicyMode { policy: policy.into(), mode: mode.into() };
    let run = |at, mode| vec![(1, says("p", "enforce")), (5, says("p", mode)), (at, state("New"))];
    breaks(run(10, "shadow"), &[]);
    breaks(run(30, "shadow"), &["S10"]);
    breaks(run(30, ""), &["S10"]);
    breaks([vec![(1, says("q", "enforce"))], run(30, "shadow")].concat(), &[]);
    let known = vec![(2, state("New"))];
    breaks([run(3, "shadow"), known, vec![(30, state("Running"))]].concat(), &[]);
}

fn commanded(command: &str) -> What {
    What::OperatorCommand {
        fence: "n-1".into(),
        node: "n".into(),
        command: command.into(),
        by: "people".into(),
    }
}

#[test] // promise: S10
fn s10_nothing_is_switched_off_before_somebody_who_is_to_be_asked_said_yes() {
    let run = |word| {
        let off = vec![(40, meant(1, "off")), (40, said_yes("off", US)), (41, state("Error"))];
        [vec![(1, lost()), (2, state("New")), (30, commanded(word))], off].concat()
    };
    let asked = Setting { needs_approval: true, ..Setting::default() };
    assert!(!judged(run("approve"), &asked).contains(&"S10"));
    assert!(judged(run("retry"), &asked).contains(&"S10"));
    assert!(!judged(run("retry"), &Setting::default()).contains(&"S10"));
}

#[test] // promise: S10
fn s10_nothing_is_cut_while_somebody_has_paused() {
    let paused = || What::Edited { object: "RemedyPause stop".into(), by: "people".into() };
    let off = |at| vec![(at, meant(1, "off")), (at, said_yes("off", US)), (at, state("Error"))];
    let run = |at| [vec![(1, lost()), (10, paused())], off(at)].concat();
    // Leave that was given right before is used.
    breaks(run(12), &[]);
    breaks(run(30), &["S10"]);
    let ended = [vec![(1, lost()), (10, paused()), (20, paused())], off(30)].concat();
    breaks(ended, &[]);
}

#[test] // promise: S13
fn s13_many_lost_nodes_are_a_network() {
    let names = ["n", "m", "o", "p"];
    let created = names.map(|node| (0, What::NodeCreated { node: node.into() }));
    let lost_too = |at| (at, What::NetworkLost { node: "m".into() });
    let off = vec![(40, meant(1, "off")), (40, said_yes("off", US)), (41, state("Error"))];
    let run = |second| [created.to_vec(), vec![(1, lost()), second], off.clone()].concat();
    breaks(run(lost_too(2)), &["S13"]);
    breaks(run(lost_too(39)), &[]);
}

#[test]
fn s13_nodes_that_are_lost_together_share_something() {
    let names = (0..9).map(|number| format!("n{number}")).chain(["n", "m", "o"].map(String::from));
    let created: Timeline = names.map(|node| (0, What::NodeCreated { node })).collect();
    let lost_too = |at, node: &str| (at, What::NetworkLost { node: node.into() });
    let off = vec![(40, meant(1, "off")), (40, said_yes("off", US)), (41, state("Error"))];
    let run = |third| {
        let others = vec![(5, lost()), (5, lost_too(0, "m").1), third];
        [created.clone(), others, off.clone()].concat()
    };
    breaks(run(lost_too(6, "o")), &["S13"]);
    breaks(run(lost_too(9, "o")), &[]);
}

#[test] // promise: L1, L3, L4, L5
fn l1_l3_l4_l5_a_run_ends_well() {
    let setting = Setting { lost: vec!["n".into()], ..Setting::default() };
    let ready =
        |status: &str| What::NodeReady { node: "n".into(), status: status.into(), by: "k".into() };
    assert_eq!(judged(vec![(1, ready("Unknown"))], &setting), ["L1"]);
    assert_eq!(judged(vec![(1, ready("Unknown")), (2, state("Error"))], &setting), [""; 0]);
    assert_eq!(judged(vec![(1, ready("True"))], &setting), [""; 0]);
    let again =
        |reason| vec![(1, parked_for(reason, 1)), (2, state("Final")), (3, ready("Unknown"))];
    assert_eq!(judged(again("NotHealthy"), &setting), ["L1"]);
    assert_eq!(judged(again("OnFailed"), &setting), [""; 0]);
    breaks(vec![(1, leads(""))], &["L3"]);
    breaks(vec![(1, tainted(QUARANTINE, CLIENT)), (2, state("Final"))], &["L4"]);
    breaks(vec![(1, tainted(QUARANTINE, CLIENT)), (2, state("Running"))], &[]);
    let twice =
        cut_then(cut_then(vec![]).split_off(1).into_iter().map(|(_, what)| (2, what)).collect());
    assert!(judged(twice, &Setting::default()).contains(&"L5"));
    let offs = || (1..4).map(|at| (at, power(Power::Off, Command))).collect::<Timeline>();
    let (fence, node, command, by) = ("m-1".into(), "m".into(), "retry".into(), PEOPLE.into());
    let retry = What::OperatorCommand { fence, node, command, by };
    let again = || [vec![(0, retry.clone())], offs()].concat();
    let miswired = Setting { miswired: [3].into(), ..Setting::default() };
    assert!(judged(offs(), &miswired).contains(&"L5"));
    assert!(judged(again(), &Setting::default()).contains(&"L5"));
    assert!(!judged(again(), &miswired).contains(&"L5"), "by the plug of another node");
}

#[test] // promise: L7
fn l7_sessions_are_closed_and_there_is_one_at_a_time() {
    let setting = Setting { sound_bmcs: ["n".to_owned()].into(), ..Setting::default() };
    let open = |open| What::BmcSessions { node: "n".into(), open };
    let run = |facts: &[(u64, u64)]| facts.iter().map(|(at, count)| (*at, open(*count))).collect();
    assert_eq!(judged(run(&[(1, 1), (2, 0), (3, 1), (4, 0)]), &setting), [""; 0]);
    assert_eq!(judged(run(&[(1, 1), (2, 2), (3, 1), (4, 0)]), &setting), ["L7"]);
    assert_eq!(judged(run(&[(1, 1), (40, 0)]), &setting), ["L7"]);
    assert_eq!(judged(run(&[(1, 1)]), &setting), ["L7"]);
    breaks(run(&[(1, 1), (2, 2)]), &[]);
}
