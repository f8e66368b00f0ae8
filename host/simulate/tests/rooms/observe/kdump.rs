//! Dumps as the controller hears them, in runs that are played whole; and what is kept of them.

use std::path::Path;

use node_remedy_decide::{Hold, Notice, Span, Time};
use node_remedy_observe::kdump::*;
use node_remedy_simulate::{Part, Played, play};
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, What};

/// A scenario of `tests/scenarios`, changed as a test needs it.
fn scenario(name: &str, change: impl FnOnce(String) -> String) -> Scenario {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios"));
    let text = change(std::fs::read_to_string(folder.join(name)).unwrap());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    Scenario::parse(name, &text, &read).unwrap()
}

/// Plays it, and holds it to what it says.
fn as_it_says(name: &str) -> Played {
    let scenario = scenario(name, |text| text);
    let played = play(&scenario, Part::With).unwrap();
    for expected in &scenario.expect {
        expected.judge(&played.facts).unwrap_or_else(|unmet| {
            panic!("{name}: expected {expected}, found {} times", unmet.found);
        });
    }
    played
}

fn cuts(played: &Played) -> usize {
    let is_off =
        |fact: &&Fact| matches!(&fact.what, What::BmcAccepted { command, .. } if command == "off");
    played.facts.iter().filter(is_off).count()
}

#[test]
fn a_dump_that_ends_within_the_grace_is_left_to_end() {
    let played = as_it_says("dump-is-waited-for.yaml");
    assert_eq!(cuts(&played), 0);
}

/// After its last message a machine boots, in silence, for longer than a dump counts.
#[test]
fn what_dumped_is_not_cut_in_the_boot_that_follows() {
    let change = |text: String| {
        text.replace("bootTime: 20s", "bootTime: 70s").replace("kdumpGrace: 90s", "kdumpGrace: 4m")
    };
    let played = play(&scenario("dump-is-waited-for.yaml", change), Part::With).unwrap();
    assert_eq!(cuts(&played), 0);
}

#[test]
fn a_dump_is_cut_when_the_grace_is_over_whatever_the_byte_order() {
    let played = as_it_says("dump-is-cut.yaml");
    let (_, (_, _, record)) = played.collected.incidents.iter().next().unwrap();
    assert!(record.dump_held_at.is_some(), "the record says since when");
}

#[test]
fn a_dump_is_not_waited_for_where_no_grace_is_said() {
    let change = |text: String| text.replace("policies: { kdumpGrace: 90s }", "policies: {}");
    let played = play(&scenario("dump-is-waited-for.yaml", change), Part::With).unwrap();
    assert_eq!(cuts(&played), 1);
}

#[test]
fn a_stranger_s_word_is_not_believed() {
    as_it_says("dump-of-a-stranger.yaml");
}

#[test]
fn a_node_whose_network_is_not_granted_is_a_stranger_too() {
    let change = |text: String| {
        let text = text.replace("kdumpGrace: 90s", "kdumpGrace: 90s, retries: 0");
        text.replace("lasts: 70s", "lasts: 70s, from: 10.2.0.1")
    };
    let played = play(&scenario("dump-is-waited-for.yaml", change), Part::With).unwrap();
    assert_eq!(cuts(&played), 1);
}

#[test]
fn who_stands_by_tells_the_leader_and_is_no_proof() {
    as_it_says("dump-heard-by-a-standby.yaml");
}

#[test]
fn a_dump_gives_back_pods_without_volumes_where_the_policy_believes_it() {
    as_it_says("dump-gives-pods-back.yaml");
}

#[test]
fn a_dump_gives_back_everything_where_the_policy_says_all() {
    as_it_says("dump-gives-everything-back.yaml");
}

#[test]
fn people_are_told_once_that_power_waits_and_until_when() {
    let played = as_it_says("dump-is-cut.yaml");
    let notices = played.collected.decided.iter().flat_map(|decided| &decided.notices);
    let is_dump = |notice: &Notice| matches!(notice, Notice::Held { reason: Hold::Dump { .. } });
    let told: Vec<&String> =
        notices.filter(|(notice, _)| is_dump(notice)).map(|(_, text)| text).collect();
    let [text] = told.as_slice() else { panic!("told {} times", told.len()) };
    assert!(text.contains("its power is not cut before 2026-01-01T00:02:"), "{text}");
}

#[test]
fn a_message_counts_for_three_intervals_and_is_told_now_and_then() {
    let dumps = Dumps::default();
    let lasts = Span::seconds(30);
    assert!(dumps.note("a", Time(1_000), lasts));
    assert!(!dumps.note("a", Time(11_000), lasts), "the dump goes on");
    assert!(dumps.to_tell("a", Time(11_000)).is_some());
    assert!(dumps.to_tell("a", Time(12_000)).is_none(), "it was just told");
    assert!(!dumps.note("a", Time(21_000), lasts));
    assert!(dumps.to_tell("a", Time(21_000)).is_some());
    assert!(dumps.note("a", Time(51_000), lasts), "thirty seconds of silence ended it");
    assert!(dumps.note("b", Time(90_000), lasts));
    assert_eq!(dumps.known(), 2, "it may boot");
    assert!(dumps.note("b", Time(81_000).after(BOOTS_FOR), lasts));
    assert_eq!(dumps.known(), 1, "what is long over is forgotten");
}

#[test]
fn what_is_told_is_a_span_of_time_and_nothing_else_is_believed() {
    let told = "2026-01-01T00:00:01.000Z/2026-01-01T00:00:31.000Z from 10.1.0.1, heard by one";
    let (at, until) = read(told).unwrap();
    assert_eq!(until.0 - at.0, 30_000);
    for wrong in ["", "yes", "2026-01-01T00:00:01Z", "a/b", "/"] {
        assert_eq!(read(wrong), None, "{wrong:?}");
    }
}
