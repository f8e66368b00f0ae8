//! The breaker: rows of incidents, and what the gate says to the next one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::gates::{A, cluster};
use super::orders::Dice;
use crate::*;

/// When it is asked, in seconds: the gate lets one lost node through then.
const NOW_S: u64 = 100_000;
/// Three within ten minutes, and half an hour's rest.
const POLICY: BreakerPolicy =
    BreakerPolicy { incidents_max: 3, window: Span::minutes(10), cool_down: Span::minutes(30) };

fn at(ago_s: u64) -> Time {
    Time(A).after(Span::seconds(NOW_S - ago_s))
}

fn incident(name: &str, ago_s: u64, ending: Ending) -> IncidentView {
    IncidentView { name: name.to_string(), begun_at: at(ago_s), created_at: Time(0), ending }
}

/// Began so long ago, and the node was well a minute later.
fn well(name: &str, ago_s: u64) -> IncidentView {
    incident(name, ago_s, Ending::Well(at(ago_s.saturating_sub(60))))
}

fn verdict(incidents: Incidents) -> Verdict {
    verdict_by(POLICY, incidents)
}

fn verdict_by(breaker: BreakerPolicy, incidents: Incidents) -> Verdict {
    let (mut view, now) = cluster(30, 1, NOW_S);
    view.incidents = incidents;
    gate(&GatePolicy { breaker: Some(breaker), ..GatePolicy::default() }, &view, now)
}

fn says(incidents: &[IncidentView]) -> String {
    let verdict = verdict(Incidents::Known(incidents.to_vec()));
    let lines: Vec<String> = verdict.refusals.iter().map(ToString::to_string).collect();
    let next = verdict.next_look.map(|look| format!("; look again in {}", look.since(at(0))));
    lines.join(" | ") + &next.unwrap_or_default()
}

const TOO_MANY: &str =
    "breaker open: 3 incidents began within 10 min ≥ 3; look for what they share; look again in ";

#[test]
fn so_many_within_the_window_open_it_for_the_cool_down() {
    let three = |newest_s: u64| {
        [well("a-1", newest_s + 500), well("b-1", newest_s + 250), well("c-1", newest_s)]
    };
    let rows: [(&str, &[IncidentView], &str); 7] = [
        ("none", &[], ""),
        ("two", &three(100)[1..], ""),
        ("three", &three(100), &format!("{TOO_MANY}28 min 20 s")),
        ("the window passed, and not the cool-down", &three(1_790), &format!("{TOO_MANY}10 s")),
        ("half-open, and none goes on", &three(1_800), ""),
        ("a day later", &three(86_400), ""),
        ("too slow", &[well("a-1", 700), well("b-1", 150), well("c-1", 100)], ""),
    ];
    for (case, incidents, expected) in rows {
        assert_eq!(says(incidents), expected, "{case}");
    }
    let ahead = Time(at(0).0 + 1);
    let ahead = IncidentView { begun_at: ahead, ..well("c-1", 0) };
    let said = says(&[well("a-1", 200), well("b-1", 100), ahead]);
    assert_eq!(said, format!("{TOO_MANY}30 min"), "a clock was ahead");
    // Who opened them went by a clock that was an hour behind the API server's.
    let behind = three(3_700).map(|one| IncidentView { created_at: at(100), ..one });
    assert_ne!(says(&behind), "", "they began a moment ago");
    let to_come = three(3_700).map(|one| IncidentView { created_at: Time(at(0).0 + 1), ..one });
    assert_eq!(says(&to_come), says(&three(3_700)), "the clock was set back since");
}

#[test]
fn half_open_lets_one_through_until_one_ends_well() {
    let with = |more: &[IncidentView]| {
        let three = [well("a-1", 5_500), well("b-1", 5_250), well("c-1", 5_000)];
        says(&[&three, more].concat())
    };
    let half_open = "breaker half-open: one at a time until one ends well, and these go on: d-1";
    assert_eq!(with(&[incident("d-1", 3_000, Ending::None)]), half_open);
    let earlier = with(&[incident("d-1", 9_000, Ending::None)]);
    assert_eq!(earlier, half_open, "also one from before it opened");
    assert_eq!(with(&[incident("d-1", 3_000, Ending::Moot)]), "", "another may try");

    let failed = with(&[incident("d-1", 3_000, Ending::Failed(at(1_700)))]);
    let said =
        "breaker open: d-1, let through to try it, failed; see to that; look again in 1 min 40 s";
    assert_eq!(failed, said, "for a cool-down from when it failed");
    assert_eq!(with(&[incident("d-1", 3_000, Ending::Failed(at(1_800)))]), "", "half-open again");
    let before = incident("d-1", 9_000, Ending::Failed(at(2_000)));
    assert_eq!(with(&[before]), "", "one that began before it opened is no trial");

    // Closed by the trial's end, and counted from then on.
    let trial = well("d-1", 300);
    let again = |names: &[&str]| {
        let more = names.iter().map(|name| incident(name, 200, Ending::None));
        with(&core::iter::once(trial.clone()).chain(more).collect::<Vec<_>>())
    };
    assert_eq!(again(&["e-1", "f-1"]), "");
    assert!(again(&["e-1", "f-1", "g-1"]).starts_with("breaker open: 3 incidents"));
    // What began before is no backlog, although the window is longer than the cool-down.
    let patient = BreakerPolicy { window: Span::minutes(120), ..POLICY };
    let three = [well("a-1", 5_500), well("b-1", 5_250), well("c-1", 5_000)];
    let more = [trial.clone(), incident("e-1", 200, Ending::None)];
    assert!(verdict_by(patient, Incidents::Known([&three[..], &more].concat())).is_open());
    // One that began before it opened and ended well since closes nothing.
    let late = incident("d-1", 5_100, Ending::Well(at(1_000)));
    let running = incident("e-1", 900, Ending::None);
    assert!(with(&[late, running]).starts_with("breaker half-open"));
}

/// One dead device, or a person on leave, must not keep the whole cluster from being helped.
#[test]
fn one_that_waits_for_a_device_or_a_person_holds_the_others_up_for_a_cool_down() {
    let with = |one: IncidentView| {
        let three = [well("a-1", 5_500), well("b-1", 5_250), well("c-1", 5_000)];
        says(&[&three[..], &[one]].concat())
    };
    let stalled = |begun_s, since_s| incident("d-1", begun_s, Ending::Stalled(at(since_s)));
    let half_open = "breaker half-open: one at a time until one ends well, and these go on: d-1";
    let failed = "breaker open: d-1, let through to try it, failed; see to that";
    let rows = [
        ("one from before, lately", stalled(9_000, 1_700), half_open, "1 min 40 s"),
        ("one from before, for long", stalled(9_000, 1_800), "", ""),
        ("the trial, lately", stalled(3_000, 1_700), half_open, "1 min 40 s"),
        ("the trial, for a cool-down", stalled(3_150, 1_900), failed, "28 min 20 s"),
    ];
    for (case, one, expected, next) in rows {
        let next = if next.is_empty() { String::new() } else { format!("; look again in {next}") };
        assert_eq!(with(one), format!("{expected}{next}"), "{case}");
    }
    let earlier = [well("a-1", 9_500), well("b-1", 9_250), well("c-1", 9_000)];
    let trial = incident("d-1", 7_150, Ending::Stalled(at(7_100)));
    assert_eq!(says(&[&earlier[..], &[trial]].concat()), "", "the next one is let through");
    let came_back = incident("d-1", 3_150, Ending::Well(at(10)));
    assert_eq!(with(came_back), "", "its device came back, and all is well");
}

#[test] // promise: G8
fn what_is_not_known_closes_the_gate_and_what_has_begun_goes_on() {
    let rows = [
        (Incidents::Begun, ""),
        (Incidents::NotAsked, "failed to read how many incidents began: nobody asked for them"),
        (
            Incidents::Unread { why: "403".to_string() },
            "failed to read how many incidents began: 403",
        ),
    ];
    for (incidents, expected) in rows {
        let refusals = verdict(incidents).refusals;
        let said: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(said.join(" | "), expected);
    }
    let (view, now) = cluster(30, 1, NOW_S);
    assert!(gate(&GatePolicy::default(), &view, now).is_open(), "only where it is asked for");
}

/// Whatever happened, and in whatever order it is told: the answer is the same, nothing is let
/// through while anything goes on behind a breaker that is not closed, and it never stays open.
#[test]
fn the_order_in_which_incidents_are_told_is_nothing() {
    let mut refused = 0;
    for seed in 1..=2_000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut incidents: Vec<IncidentView> = Vec::new();
        for number in 0..dice.throw(9) {
            let begun_s = 1 + dice.throw(4_000);
            let ended = at(dice.throw(begun_s));
            let ending = match dice.throw(5) {
                0 => Ending::None,
                4 => Ending::Stalled(ended),
                1 => Ending::Failed(ended),
                2 => Ending::Moot,
                3.. => Ending::Well(ended),
            };
            incidents.push(incident(&format!("node-{number}-1"), begun_s, ending));
        }
        let told = verdict(Incidents::Known(incidents.clone()));
        refused += u32::from(!told.is_open());
        for _ in 0..8 {
            for index in (1..incidents.len()).rev() {
                let sides = u64::try_from(index + 1).expect("few");
                incidents.swap(index, usize::try_from(dice.throw(sides)).expect("few"));
            }
            assert_eq!(verdict(Incidents::Known(incidents.clone())), told, "seed {seed}");
        }
        // A cool-down after the last thing that happened, with nothing going on, one is let through.
        let rested: Vec<IncidentView> = incidents
            .iter()
            .filter(|one| one.ending != Ending::None)
            .map(|one| {
                let earlier = |time: Time| Time(time.0 - POLICY.cool_down.0);
                let ending = match one.ending {
                    Ending::None | Ending::Moot => one.ending,
                    Ending::Stalled(time) => Ending::Stalled(Time(time.0 - 2 * POLICY.cool_down.0)),
                    Ending::Well(time) => Ending::Well(earlier(time)),
                    Ending::Failed(time) => Ending::Failed(earlier(time)),
                };
                IncidentView { begun_at: earlier(one.begun_at), ending, ..one.clone() }
            })
            .collect();
        assert!(verdict(Incidents::Known(rested)).is_open(), "seed {seed}");
    }
    assert!(refused > 500, "only {refused} refusals: the rows are too tame to tell anything");
}
