//! The checks of guards that only some policies set.

use node_remedy_world::facts::ETCD;

use super::*;
use crate::guards::Guards;

fn names(all: &[&str]) -> std::collections::BTreeSet<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn guarded(guards: Guards) -> Setting {
    Setting { guards, ..Setting::default() }
}

/// Eight nodes, of which `n` is lost from second 1 on, and what is besides.
fn eight(besides: Vec<(u64, What)>) -> Timeline {
    let created = ["n", "m", "o", "p", "q", "r", "s", "t"]
        .map(|node| (0, What::NodeCreated { node: node.into() }));
    [created.to_vec(), vec![(1, lost())], besides].concat()
}

fn off(at: u64) -> Timeline {
    vec![(at, meant(1, "off")), (at, said_yes("off", US)), (at + 1, state("Error"))]
}

fn lost_too(at: u64, node: &str) -> Timeline {
    vec![(at, What::NetworkLost { node: node.into() })]
}

#[test] // promise: S10
fn s10_a_node_that_is_well_again_is_left_alone() {
    let back = || What::NetworkBack { node: "n".into() };
    let off = |at| vec![(at, meant(1, "off")), (at, said_yes("off", US))];
    let well_for = |seconds: u64| [vec![(1, lost()), (5, back())], off(5 + seconds)].concat();
    breaks(well_for(1), &[]);
    breaks(well_for(8), &["S10"]);
    breaks(off(1), &["S10"]);
    // Behind a cut its pods were released: they run elsewhere, so this boot has to end.
    let cut = || (2, What::StorageCut { node: "n".into() });
    let is_broken = |released: Timeline| {
        let begun = vec![(1, lost()), (1, state("Running")), cut()];
        let run = [begun, released, vec![(5, back())], off(13)].concat();
        judged(run, &Setting::default()).contains(&"S10")
    };
    assert!(is_broken(vec![]));
    assert!(!is_broken(vec![(3, detach())]));
    // So where a release had begun and others took them.
    assert!(is_broken(vec![(4, detach_by(PEOPLE))]));
    assert!(!is_broken(vec![(3, proven_by("storage-fenced")), (4, detach_by(PEOPLE))]));
    // So does one where a person undid the cut before the pods went.
    let undone = |by: &str| {
        let edited = What::Edited { object: "NetworkFence f".into(), by: by.into() };
        let back = What::StorageBack { node: "n".into() };
        vec![(3, edited), (3, back), (4, detach_by(PEOPLE)), (4, cut().1)]
    };
    assert!(!is_broken(undone(PEOPLE)));
    assert!(is_broken(undone(CLIENT)));
    // Nobody fences it.
    breaks(vec![cut()], &["S10"]);
}

#[test] // promise: S10
fn s10_after_an_abort_nothing_is_switched_off() {
    let said = |word| (20, commanded(word));
    let setting = Setting::default();
    let run =
        |told: Timeline| judged(eight([vec![(2, state("New"))], told, off(40)].concat()), &setting);
    for word in ["abort", "abort-leave-off"] {
        assert_eq!(run(vec![said(word)]), ["S10"], "{word}");
        assert_eq!(run(vec![(38, commanded(word))]), [""; 0], "leave that was given is used");
        assert_eq!(run(vec![said(word), (30, commanded("retry"))]), [""; 0]);
        let etcd = What::Edited { object: ETCD.to_owned(), by: String::new() };
        assert_eq!(run(vec![said(word), (30, etcd)]), [""; 0], "the word is gone");
    }
    assert_eq!(run(vec![said("retry")]), [""; 0]);
}

#[test] // promise: S10
fn s10_a_node_that_somebody_wants_left_alone_is() {
    let node = "n".to_owned();
    let by = || PEOPLE.to_owned();
    let edited = |object: &str| What::Edited { object: object.to_owned(), by: by() };
    let said = [
        (edited("NodeMaintenance of-n"), edited("NodeMaintenance of-n")),
        (edited("Node n"), edited("Node n")),
        (
            What::Cordoned { node: node.clone(), by: by() },
            What::Uncordoned { node: node.clone(), by: by() },
        ),
    ];
    let setting = guarded(Guards { excluded: names(&["n"]), ..Guards::default() });
    for (begins, ends) in said {
        let run = |told: Timeline| judged(eight([told, off(40)].concat()), &setting);
        assert_eq!(run(vec![(20, begins.clone())]), ["S10"], "{begins}");
        assert_eq!(run(vec![(37, begins.clone())]), [""; 0], "leave that was given is used");
        assert_eq!(run(vec![(20, begins.clone()), (30, ends)]), [""; 0], "{begins}");
    }
    let others = [edited("NodeMaintenance of-m"), edited("Node m")];
    let others = others.map(|what| (20, what)).to_vec();
    assert_eq!(judged(eight([others, off(40)].concat()), &setting), [""; 0]);
    let ours = vec![(20, What::Cordoned { node, by: CLIENT.to_owned() })];
    assert_eq!(judged(eight([ours, off(40)].concat()), &setting), [""; 0], "we drained it");
}

#[test] // promise: S17
fn s17_a_node_that_used_its_storage_a_while_ago_is_left_alone() {
    let age_max = Some(Duration::from_secs(40));
    let setting = guarded(Guards { storage_age_max: age_max, ..Guards::default() });
    let renewed = |at, node: &str| {
        (at, What::Edited { object: format!("Lease {node}"), by: PEOPLE.to_owned() })
    };
    let run = |renewals: Timeline| judged(eight([renewals, off(90)].concat()), &setting);
    assert_eq!(run(vec![renewed(60, "n")]), ["S17"]);
    assert_eq!(run(vec![renewed(53, "n")]), [""; 0], "by a clock that is a tenth too fast");
    assert_eq!(run(vec![renewed(86, "n")]), [""; 0], "not known yet");
    assert_eq!(run(vec![renewed(60, "n"), renewed(86, "n")]), ["S17"], "the one before is");
    assert_eq!(run(vec![renewed(60, "m")]), [""; 0]);
}

#[test] // promise: S18
fn s18_from_so_many_on_nothing_is_begun_for_the_cool_down_and_then_one() {
    use crate::guards::Breaker;
    let breaker = Breaker { incidents_max: 2, cool_down: Duration::from_secs(100) };
    let setting = guarded(Guards { breaker: Some(breaker), ..Guards::default() });
    let is = |at, node: &str, state: &str| {
        let (fence, node) = (format!("{node}-1"), node.to_owned());
        let (step, reason) = ("Isolation".into(), String::new());
        (at, What::FenceState { fence, node, step, state: state.into(), reason })
    };
    let run = |third: Timeline| {
        let two = vec![is(10, "n", "New"), is(10, "n", "Running"), is(20, "m", "New")];
        judged([two, third].concat(), &setting)
    };
    assert_eq!(run(vec![is(60, "o", "New")]), ["S18"]);
    assert_eq!(run(vec![is(140, "o", "New")]), ["S18"], "the others go on");
    let over = || vec![is(30, "n", "Final"), is(40, "m", "Error")];
    assert_eq!(run([over(), vec![is(140, "o", "New")]].concat()), [""; 0]);
    assert_eq!(run([over(), vec![is(105, "o", "New")]].concat()), ["S18"]);
    assert_eq!(run([over(), vec![is(106, "o", "New")]].concat()), [""; 0], "a clock set ahead");
    let stopped = || {
        let (fence, node, reason) = ("m-1".into(), "m".into(), "MethodFailed".into());
        let parked = What::ParkedRecorded { fence, node, reason, left_off: 0 };
        vec![is(30, "n", "Final"), (40, parked), is(40, "m", "Done")]
    };
    assert_eq!(run([stopped(), vec![is(140, "o", "New")]].concat()), [""; 0]);
    for state in ["New", "Running"] {
        let goes_on = vec![is(45, "m", state), is(140, "o", "New")];
        assert_eq!(run([stopped(), goes_on].concat()), ["S18"]);
    }
    let another = |at, fence: &str, state: &str, reason: &str| {
        let (fence, node, step) = (fence.to_owned(), "m".to_owned(), "Isolation".to_owned());
        let (state, reason) = (state.to_owned(), reason.to_owned());
        (at, What::FenceState { fence, node, step, state, reason })
    };
    let again =
        |at, reason| vec![another(30, "m-1", "Final", reason), another(at, "m-2", "New", "")];
    assert_eq!(run(again(31, "Superseded")), [""; 0], "the same");
    assert_eq!(run(again(32, "Superseded")), ["S18"]);
    assert_eq!(run(again(31, "Remedied")), ["S18"], "another one");
    let two = vec![is(10, "n", "New"), is(20, "m", "New")];
    let third = |at, set_at| {
        let set_at = after(START, Duration::from_secs(set_at));
        let skips = vec![(set_at, Duration::from_secs(30))];
        let set = Setting { skips, ..setting.clone() };
        judged([two.clone(), over(), vec![is(at, "o", "New")]].concat(), &set)
    };
    assert_eq!(third(75, 50), ["S18"]);
    assert_eq!(third(76, 50), [""; 0], "and a process that starts after that");
    assert_eq!(third(76, 15), ["S18"], "the breaker opened later");
}

#[test] // promise: S19
fn s19_a_node_is_cut_only_while_enough_others_take_its_pods() {
    let setting = guarded(Guards { schedulable_percent_min: Some(75), ..Guards::default() });
    let cordoned =
        |at, node: &str| (at, What::Cordoned { node: node.into(), by: PEOPLE.to_owned() });
    let run = |besides: Timeline| judged(eight([besides, off(40)].concat()), &setting);
    assert_eq!(run(vec![cordoned(20, "m")]), [""; 0], "six of eight");
    assert_eq!(run(vec![cordoned(20, "m"), cordoned(20, "o")]), ["S19"]);
    assert_eq!(run(vec![cordoned(20, "m"), cordoned(37, "o")]), [""; 0], "not known yet");
    assert_eq!(run([lost_too(2, "p"), vec![cordoned(20, "m")]].concat()), ["S19"]);
    let both = vec![cordoned(20, "m"), cordoned(20, "n")];
    let found = run(both);
    assert!(!found.contains(&"S19"), "it is the one that is cut: {found:?}");
}

fn taken(at: u64, ordinal: u64) -> (u64, What) {
    let (pod, uid) = (format!("default/db-{ordinal}"), format!("u{ordinal}"));
    let (node, by) = ("n".to_owned(), CLIENT.to_owned());
    (at, What::PodTerminating { pod, uid, node, graceful: true, by })
}

fn runs(ordinal: u64, node: &str) -> (u64, What) {
    let (pod, uid) = (format!("default/db-{ordinal}"), format!("u{ordinal}"));
    (
        0,
        What::PodPhase {
            pod,
            uid,
            node: node.into(),
            phase: "Running".into(),
            by: "kubelet".into(),
        },
    )
}

#[test] // promise: S20
fn s20_no_pod_that_serves_is_taken_against_its_budget() {
    let setting = guarded(Guards { available_min: Some(2), ..Guards::default() });
    let ready = |at, node: &str, status: &str| {
        (at, What::NodeReady { node: node.into(), status: status.into(), by: "k".into() })
    };
    let run = |besides: Timeline| {
        let three = vec![runs(0, "n"), runs(1, "m"), runs(2, "o")];
        judged([three, besides].concat(), &setting)
    };
    assert_eq!(run(vec![taken(40, 0)]), [""; 0], "two are left");
    assert_eq!(run(vec![ready(20, "m", "Unknown"), taken(40, 0)]), ["S20"]);
    assert_eq!(run(vec![ready(38, "m", "Unknown"), taken(40, 0)]), [""; 0], "told a moment later");
    let back = vec![ready(20, "m", "Unknown"), ready(30, "m", "True"), taken(40, 0)];
    assert_eq!(run(back), [""; 0]);
    let silent = vec![ready(20, "n", "Unknown"), ready(20, "m", "Unknown"), taken(40, 0)];
    assert_eq!(run(silent), [""; 0], "it serves nobody");
    let cut = cut_then(vec![ready(2, "m", "Unknown"), taken(8, 0)]);
    assert_eq!(run(cut), ["S20"], "nothing was proven");
    let proven = cut_then(vec![ready(2, "m", "Unknown"), (3, proven()), taken(8, 0)]);
    assert_eq!(run(proven), [""; 0]);
}

#[test] // promise: S20
fn s20_pods_go_no_faster_than_the_policy_says() {
    let pods_per_minute = [("n".to_owned(), 6)].into();
    let setting = guarded(Guards { pods_per_minute, ..Guards::default() });
    let run = |second: u64| {
        let then = vec![(2, proven()), taken(3, 0), taken(second, 1)];
        let found = judged(cut_then(then), &setting);
        found.contains(&"S20")
    };
    assert!(run(4), "the second one is due after ten seconds");
    assert!(!run(10), "by a fast clock");
    assert!(!run(12));
}

#[test] // promise: S21
fn s21_a_job_runs_elsewhere_once_alone_and_not_after_its_incident() {
    let pod = |number: u64| format!("node-remedy/n-1-job-{number}-0");
    let uid = |number: u64| format!("j{number}");
    let created = |at, number| (at, What::PodCreated { pod: pod(number), uid: uid(number) });
    let on = |node: &str| (3, What::PodScheduled { pod: pod(1), uid: uid(1), node: node.into() });
    let ended = |at, phase: &str| {
        let (node, phase) = ("m".into(), phase.into());
        (at, What::PodPhase { pod: pod(1), uid: uid(1), node, phase, by: "kubelet".into() })
    };
    let deleted = |at| (at, What::Edited { object: "Job n-1-job-1".into(), by: PEOPLE.into() });
    let terminating = (
        5,
        What::PodTerminating {
            pod: pod(1),
            uid: uid(1),
            node: "m".into(),
            graceful: true,
            by: "job-controller".into(),
        },
    );
    let run = |besides: Timeline| {
        judged([vec![(1, state("New")), created(2, 1)], besides].concat(), &Setting::default())
    };
    let over = || (9, state("Final"));
    let later = || (30, lost());
    assert_eq!(run(vec![on("m"), ended(8, "Succeeded"), over()]), [""; 0]);
    assert_eq!(run(vec![on("n"), ended(8, "Succeeded"), over()]), ["S21"]);
    assert_eq!(run(vec![on("m"), over(), later()]), ["S21"], "it goes on");
    assert_eq!(run(vec![on("m"), created(3, 2), later()]), ["S21"], "they are two");
    assert_eq!(run(vec![on("m"), created(3, 2), terminating.clone(), later()]), [""; 0]);
    assert_eq!(run(vec![on("m"), over(), (11, terminating.1.clone()), later()]), [""; 0]);
    assert_eq!(run(vec![on("m"), ended(4, "Failed"), created(7, 2)]), [""; 0]);
    assert_eq!(run(vec![ended(8, "Failed"), over(), created(10, 2)]), [""; 0], "made late");
    assert_eq!(run(vec![ended(8, "Failed"), over(), created(10, 2), later()]), ["S21"]);
    let gone = |at| vec![deleted(at), (at, terminating.1.clone())];
    let again = |at, number: u64, undisturbed| {
        let setting = guarded(Guards { undisturbed, ..Guards::default() });
        let begun = vec![(1, state("New")), created(2, 1)];
        judged([begun, gone(at), vec![created(at + 3, number)]].concat(), &setting)
    };
    assert_eq!(again(20, 2, true), [""; 0]);
    assert_eq!(again(20, 1, true), ["S21"]);
    assert_eq!(again(4, 1, true), [""; 0], "nobody has seen it yet");
    assert_eq!(again(20, 1, false), [""; 0], "who started it may have died");
}

#[test] // promise: S2, S13
fn s2_s13_a_zone_has_limits_of_its_own() {
    let zones = |of_n: &[&str], in_flight_max| {
        let zone = |name: &&str| ((*name).to_owned(), "east".to_owned());
        let others = ["q", "r", "s", "t"].map(|name| (name.to_owned(), "west".to_owned()));
        guarded(Guards {
            zones: of_n.iter().map(zone).chain(others).collect(),
            zone_percent_max: 50,
            zone_in_flight_max: in_flight_max,
            ..Guards::default()
        })
    };
    let east = zones(&["n", "m", "o", "p"], None);
    let of =
        |besides: Timeline, setting: &Setting| judged(eight([besides, off(40)].concat()), setting);
    assert_eq!(of(vec![], &east), [""; 0]);
    assert_eq!(of(lost_too(2, "m"), &east), ["S13"]);
    assert_eq!(of(lost_too(39, "m"), &east), [""; 0], "nobody knows yet");
    assert_eq!(of(lost_too(2, "q"), &east), [""; 0], "two of eight are no storm");
    let three = zones(&["n", "m", "o"], None);
    assert_eq!(of(lost_too(2, "p"), &three), ["S13"], "it may be of this zone");
    assert_eq!(of(vec![], &zones(&["m"], None)), ["S13"], "nobody knows its zone");

    let second = |node: &str| {
        let node = node.to_owned();
        vec![
            (40, What::NetworkLost { node: node.clone() }),
            (
                40,
                What::IntentRecorded {
                    fence: format!("{node}-1"),
                    node: node.clone(),
                    operation: 1,
                    method: String::new(),
                    action: "off".into(),
                },
            ),
            (40, What::BmcAccepted { node, command: "off".into(), by: US.into() }),
        ]
    };
    let in_hands = |node: &str, max| {
        let mut setting = Setting { in_flight_max: 2, ..zones(&["n", "m", "o", "p"], max) };
        setting.guards.zone_percent_max = 90;
        judged(eight([second(node), off(40)].concat()), &setting)
    };
    assert_eq!(in_hands("m", Some(1)), ["S2"]);
    assert_eq!(in_hands("m", None), [""; 0]);
    assert_eq!(in_hands("q", Some(1)), [""; 0], "of another zone");
}

#[test] // promise: S3
fn s3_a_control_plane_node_is_cut_only_while_the_others_are_a_majority() {
    let judged = |members: &[&str], besides: Timeline| {
        let setting = guarded(Guards { control_plane: names(members), ..Guards::default() });
        judged(eight([besides, off(40)].concat()), &setting)
    };
    let three = ["n", "m", "o"];
    assert_eq!(judged(&three, vec![]), [""; 0]);
    assert_eq!(judged(&three, lost_too(2, "m")), ["S3"]);
    assert_eq!(judged(&three, lost_too(39, "m")), [""; 0], "nobody knows yet");
    assert_eq!(judged(&three, lost_too(2, "p")), [""; 0], "of no concern");
    assert_eq!(judged(&["m", "o", "p"], lost_too(2, "m")), [""; 0], "not of it");
    assert_eq!(judged(&["n", "m"], vec![]), ["S3"]);
    assert_eq!(judged(&["n"], vec![]), ["S3"]);
}

/// A node that came back a moment ago may not have been heard yet; one that was never lost is no partition.
#[test]
fn a_partition_ends_once_the_node_may_have_been_heard() {
    let node = || "n".to_owned();
    let proven =
        || What::ProofRecorded { fence: "n-1".into(), node: node(), grade: "partition".into() };
    let setting = Setting { drivers_check: true, ..Setting::default() };
    let is_broken = |timeline: Timeline| judged(timeline, &setting).contains(&"S1");
    let lost = |back_at: u64, proven_at: u64| {
        let (lost, back) = (What::NetworkLost { node: node() }, What::NetworkBack { node: node() });
        {
            let mut timeline = vec![(1, lost), (back_at, back), (proven_at, proven())];
            timeline.sort_by_key(|(at, _)| *at);
            timeline
        }
    };
    assert!(!is_broken(lost(300, 200)) && !is_broken(lost(300, 301)));
    assert!(is_broken(lost(300, 320)) && is_broken(vec![(1, proven())]));
    // What was decided on then is carried out.
    let released = judged([lost(300, 301), vec![(302, pod_gone())]].concat(), &setting);
    assert!(!released.contains(&"S1") && !released.contains(&"S8"), "{released:?}");
}
