//! The seams between policies, by the whole program: the scenarios of `tests/scenarios` that are about one,
//! with the order of what was asked of devices, and the reason that was given. That they also hold at
//! every crash point is the crash level's; those of `tests/seams` have faults at fixed times, which a
//! fault's delay would pass. The level `bugs` checks first that each of them ends as it says.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_decide::{Action, End, Operation};
use node_remedy_simulate::{Part, Played, play};
use node_remedy_swarm::judge::{judge, timeline};
use node_remedy_swarm::scene::Setting;
use node_remedy_tests::process::repository;

use crate::sim_run::parse;

/// A scenario, played: it ends as it says, and no promise is broken on the way.
fn run(name: &str, setting: &Setting) -> Played {
    let folders = ["tests/scenarios", "tests/seams"];
    let mut paths = folders.map(|folder| repository().join(folder)).into_iter();
    let path = paths.find_map(|folder| {
        let path = folder.join(format!("{name}.yaml"));
        path.is_file().then_some(path)
    });
    let path = path.expect("a scenario of that name");
    let scenario = parse(&std::fs::read_to_string(path).expect("a scenario"));
    let played = play(&scenario, Part::With).expect("a run");
    let unmet = scenario.expect.iter().filter(|one| one.judge(&played.facts).is_err());
    let unmet: Vec<String> = unmet.map(ToString::to_string).collect();
    assert_eq!(unmet, [""; 0], "{}", timeline(&played.facts));
    assert_eq!(judge(&played.facts, setting).broken, [], "{}", timeline(&played.facts));
    played
}

/// Everything that was said of why nothing is done about a node.
fn reasons(played: &Played, node: &str) -> Vec<String> {
    let of_node = played.collected.refused.iter().filter(|one| one.node == node);
    of_node.map(|one| one.reason.to_string()).collect()
}

/// What was asked of devices in the one incident, reads left out, in the order of its numbers.
fn asked(played: &Played) -> Vec<Operation> {
    let mut journals = played.collected.journals.values();
    let journal = journals.next().expect("an incident");
    assert_eq!(journals.count(), 0, "one incident");
    journal.values().filter(|one| one.action != Action::Status).cloned().collect()
}

#[test]
fn a_storm_between_off_and_on_leaves_no_machine_off_and_cuts_no_other() {
    let played = run("storm-between-off-and-on", &Setting::default());
    for node in ["node-d", "node-e"] {
        let said = reasons(&played, node).concat();
        assert!(said.contains("unhealthy 2 of 5 = 40 % ≥ 30 %"), "{node}: {said}");
    }
}

#[test]
fn a_machine_that_two_nodes_claim_is_cut_for_neither() {
    let played = run("two-nodes-claim-one-machine", &Setting::default());
    let said = reasons(&played, "node-a").concat();
    assert!(said.contains("is claimed by node node-a and by node cp-1"), "{said}");
}

#[test]
fn a_silent_node_whose_kubelet_answers_is_told_of() {
    let played = run("network-away-for-a-while", &Setting::default());
    let said = reasons(&played, "node-a").concat();
    assert!(said.contains("its kubelet accepts connections at 10.1.0.1:10250"), "{said}");
}

#[test]
fn a_node_that_takes_the_name_of_a_scrapped_one_is_told_why_it_has_no_incident() {
    let played = run("scrapped-machine-is-let-go", &Setting::default());
    let said = reasons(&played, "node-a").concat();
    let way_out = "if that machine was scrapped: node-remedy abort --leave-off node-a-1";
    assert!(said.contains("of an earlier Node of this name") && said.contains(way_out), "{said}");
}

#[test]
fn an_address_that_another_node_has_by_now_is_told_of() {
    let played = run("address-claimed-while-it-waits", &Setting::default());
    let decided = format!("{:?}", played.collected.decided);
    assert!(decided.contains("InternalIP 10.1.0.1 of node node-x is in what the network-fence"));
}

#[test]
fn after_an_on_that_was_refused_no_machine_of_the_kind_is_switched_off() {
    let played = run("on-refused", &Setting::default());
    let said = reasons(&played, "node-b").concat();
    assert!(said.contains("failed to switch node-a on"), "{said}");
}

#[test]
fn a_node_that_heals_by_itself_gets_its_storage_back_and_keeps_its_pods() {
    let played = run("fabric-heals", &Setting::default());
    let asked: Vec<Action> = asked(&played).iter().map(|one| one.action).collect();
    assert_eq!(asked, [Action::Off, Action::On]);
}

#[test]
fn a_machine_that_boots_from_the_storage_network_has_it_back_before_it_is_switched_on() {
    let played = run("san-before-on", &Setting::default());
    let asked = asked(&played);
    let [cut, off, back, on] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((cut.method, off.method), (back.method, on.method));
    assert_ne!(cut.method, off.method);
    let actions = [cut, off, back, on].map(|one| one.action);
    assert_eq!(actions, [Action::Off, Action::Off, Action::On, Action::On]);
    assert!(matches!(back.end, Some(End::Succeeded { .. })), "{back:?}");
    assert!(back.ended_at.expect("an end") <= on.intended_at, "{back:?} {on:?}");
}

#[test]
fn a_repair_job_that_fails_is_followed_by_one_that_terminates_and_gives_pods_back() {
    let played = run("job-after-job", &Setting::default());
    let (.., record) = played.collected.incidents.values().next().expect("an incident");
    assert_eq!(record.jobs.len(), 2, "each is started once");
    assert!(record.operations.is_empty(), "no device was asked for anything");
}

#[test]
fn a_node_that_is_lost_in_a_pause_window_is_cut_when_it_ends() {
    let played = run("pause-window", &Setting::default());
    let said = reasons(&played, "node-a").concat();
    assert!(said.contains("paused by the window 0 1 * * *: backups"), "{said}");
}

#[test]
fn an_object_that_cannot_be_read_hides_no_other_and_keeps_nobody_from_leading() {
    for name in [
        "set-to-shadow-before-the-loss",
        "unread-policy-hides-no-shadow",
        "unread-policy-and-both-restart",
        "unread-nodefence-and-a-restart",
        "unread-pause-and-a-restart",
    ] {
        run(name, &Setting::default());
    }
}

/// Twelve of seventy-two are a sixth of the cluster, which its share alone would let be cut.
#[test]
fn a_switch_under_a_part_of_a_large_cluster_costs_no_machine() {
    let played = run("switch-of-a-large-cluster", &Setting::default());
    assert_eq!(played.collected.incidents.len(), 0);
    let said = reasons(&played, "rack-b-03").concat();
    assert!(said.contains("silent at once: 12 ≥ 3 nodes, within 12 s of each other"), "{said}");
}

/// A Secret that cannot be read is no refusal of the device: its `on` is waited for.
#[test] // promise: A12
fn a_secret_that_cannot_be_read_for_a_while_leaves_no_machine_off() {
    let played = run("secret-unreadable-before-on", &Setting::default());
    let (.., record) = played.collected.incidents.values().next().expect("an incident");
    assert!(record.on_failed.is_empty(), "no device is closed for it");
}
