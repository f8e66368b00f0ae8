//! The timelines of `examples/scenarios`, as people see them in the demo: what they show is what
//! they say, and they are a function of scenario and seed alone.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use node_remedy_report::{Timeline, Weight, html};
use node_remedy_simulate::{Comparison, Part, Source, play, tell};
use node_remedy_world::Scenario;
use node_remedy_world::facts::{Fact, Power, PowerCause, What};
use node_remedy_world::scenario::START;
use node_remedy_world::time::between;

use crate::sim_run::{LOST, example, examples, parse};
use node_remedy_swarm::judge::{judge, timeline as log_of};
use node_remedy_swarm::scene::Setting;

/// Every timeline; a file without a test is found by name.
const EXAMPLES: [&str; 6] = [
    "bmc-says-yes",
    "dark-rack",
    "drain-first",
    "lost-node",
    "rack-loses-its-switch",
    "repair-first",
];
/// Timelines with a node that is ill and not lost.
const ILL: [(&str, &str); 1] = [("drain-first", "node-a")];
/// Other seeds under which a timeline must end as it does under its own.
const OTHER_SEEDS: [u64; 2] = [4, 11];

fn tell_it(name: &str, scenario: &Scenario, text: String) -> Timeline {
    let source = Source { name: name.to_owned(), text };
    tell(scenario, &source, Comparison::Without).expect("a timeline that can be told")
}

fn fixture(name: &str) -> Timeline {
    let (text, scenario) = example(name);
    tell_it(name, &scenario, text)
}

/// Both runs end as the scenario says, and no promise is broken on the way.
fn check(name: &str) {
    let timeline = fixture(name);
    let missed = |run: &node_remedy_report::Run| run.outcome.missed.join("\n");
    assert!(timeline.with.outcome.as_expected, "with node-remedy:\n{}", missed(&timeline.with));
    let without = timeline.without.expect("the same run without node-remedy");
    assert!(without.outcome.as_expected, "without node-remedy:\n{}", missed(&without));
    let facts = play(&example(name).1, Part::With).expect("a run").facts;
    let ill =
        ILL.iter().filter(|(timeline, _)| *timeline == name).map(|(_, node)| (*node).to_owned());
    let setting = Setting { ill: ill.collect(), ..Setting::default() };
    assert_eq!(judge(&facts, &setting).broken, [], "{}", log_of(&facts));
}

#[test]
fn a_lost_node_is_as_its_scenario_says() {
    check("lost-node");
}

#[test]
fn a_bmc_that_says_yes_is_as_its_scenario_says() {
    check("bmc-says-yes");
}

#[test]
fn a_dark_rack_is_as_its_scenario_says() {
    check("dark-rack");
}

#[test]
fn a_rack_that_loses_its_switch_is_as_its_scenario_says() {
    check("rack-loses-its-switch");
}

#[test]
fn a_repair_before_the_fence_is_as_its_scenario_says() {
    check("repair-first");
}

#[test]
fn a_drain_before_the_fence_is_as_its_scenario_says() {
    check("drain-first");
    let outcome = fixture("drain-first").with.outcome;
    let told = [vec![outcome.verdict], outcome.facts].concat();
    let of = |pod: &str| {
        told.iter().find(|fact| fact.starts_with(pod)).expect("a fact that names the pod")
    };
    assert!(!of("web-0").contains("proof"), "it was drained before the proof: {told:?}");
    assert!(of("db-0").ends_with(" s after proof"), "{told:?}");
}

#[test]
fn every_scenario_is_one_of_these_timelines() {
    let folder = std::fs::read_dir(examples().join("scenarios")).expect("a folder");
    let mut names: Vec<String> = folder
        .map(|file| file.expect("a file").path())
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, EXAMPLES);
}

#[test]
fn the_same_seed_is_the_same_page_byte_for_byte_on_any_thread() {
    for name in EXAMPLES {
        let here = html::page(&fixture(name)).expect("a page");
        let there = std::thread::spawn(|| html::page(&fixture(name)).expect("a page"));
        assert!(here == there.join().expect("a timeline"), "{name} differs on another thread");
        assert!(here.len() < html::PAGE_BYTES_MAX, "{name}: {} bytes", here.len());
    }
}

/// Another seed is another run, and the same verdict.
#[test]
fn another_seed_gives_another_timeline_and_the_same_verdict() {
    for name in EXAMPLES {
        let (text, mut scenario) = example(name);
        let own = tell_it(name, &scenario, text.clone());
        for seed in OTHER_SEEDS {
            // The seed also places what happens `within` a while, when the file is read.
            scenario = parse(&text.replace("\nseed: 3\n", &format!("\nseed: {seed}\n")));
            assert_eq!(scenario.seed, seed);
            let other = tell_it(name, &scenario, text.clone());
            let missed = &other.with.outcome.missed;
            assert!(other.with.outcome.as_expected, "{name}, seed {seed}: {missed:#?}");
            assert_ne!(other.with.entries, own.with.entries, "{name}, seed {seed}");
            assert_eq!(verdict(&other), verdict(&own), "{name}, seed {seed}");
        }
    }
}

/// The verdict's facts without what chance may change: seconds, moments, and which living node took over.
fn verdict(timeline: &Timeline) -> Vec<String> {
    let outcome = &timeline.with.outcome;
    let facts = [&outcome.verdict].into_iter().chain(&outcome.facts);
    facts.map(|fact| without_chance(fact)).collect()
}

fn without_chance(fact: &str) -> String {
    let words: Vec<&str> = fact.split(' ').collect();
    let by_chance = |place: usize, word: &str| {
        words.get(place + 1).is_some_and(|next| next.trim_end_matches(',') == "s")
            || is_moment(word.trim_end_matches(','))
            || ["node-b", "node-c"].contains(&word)
    };
    let kept = words.iter().enumerate();
    let kept = kept.map(|(place, word)| if by_chance(place, word) { "…" } else { word });
    kept.collect::<Vec<_>>().join(" ")
}

/// Minutes and seconds, such as `2:20`.
fn is_moment(word: &str) -> bool {
    word.split_once(':').is_some_and(|(minutes, seconds)| {
        minutes.parse::<u32>().is_ok() && seconds.len() == 2 && seconds.parse::<u32>().is_ok()
    })
}

/// Seconds from the start to the first fact that `is` about.
fn first(facts: &[Fact], is: impl Fn(&What) -> bool) -> Option<f64> {
    let fact = facts.iter().find(|fact| is(&fact.what))?;
    Some(between(START, fact.at).as_secs_f64())
}

fn is_power(what: &What, wanted: Power) -> bool {
    matches!(what, What::PowerChanged { node, power, cause: PowerCause::Command }
        if node == LOST && *power == wanted)
}

/// When the lost node is Ready again; it was before it was lost.
fn well_again(facts: &[Fact]) -> Option<f64> {
    let on = first(facts, |what| is_power(what, Power::On))?;
    let facts: Vec<Fact> =
        facts.iter().filter(|fact| between(START, fact.at).as_secs_f64() > on).cloned().collect();
    let ready = |what: &What| matches!(what, What::NodeReady { node, status, .. } if node == LOST && status == "True");
    first(&facts, ready)
}

fn lost_node(change: impl FnOnce(&str) -> String) -> Vec<Fact> {
    let (text, _) = example("lost-node");
    let changed = change(&text);
    assert_ne!(changed, text, "the change found nothing to change");
    play(&parse(&changed), Part::With).expect("a run").facts
}

fn unchanged() -> Vec<Fact> {
    play(&example("lost-node").1, Part::With).expect("a run").facts
}

#[test]
fn a_slower_boot_moves_what_follows_the_boot_and_nothing_before() {
    let (fast, slow) =
        (unchanged(), lost_node(|text| text.replace("bootTime: 45s", "bootTime: 2m")));
    let well = |facts: &[Fact]| well_again(facts).expect("it is well again");
    let later = well(&slow) - well(&fast);
    assert!((later - 75.0).abs() < 1.0, "{later} s later for 75 s more to boot");
    let on = |facts: &[Fact]| first(facts, |what| is_power(what, Power::On)).expect("on");
    let before = |facts: &[Fact]| {
        let until = on(facts);
        let facts = facts.iter().filter(|fact| between(START, fact.at).as_secs_f64() <= until);
        facts.cloned().collect::<Vec<_>>()
    };
    assert_eq!(before(&slow), before(&fast));
}

#[test]
fn a_wrong_password_in_the_secret_cuts_nothing_and_says_so() {
    let (text, _) = example("lost-node");
    let wrong = text.replace("password: simulated", "password: mistyped");
    assert_ne!(wrong, text);
    let played = play(&parse(&wrong), Part::With).expect("a run");
    let judgement = judge(&played.facts, &Setting::default());
    assert_eq!(judgement.broken, []);
    assert_eq!(judgement.commanded, []);
    assert_eq!(judgement.released, 0);
    assert_eq!(judgement.incidents["node-a-1"], "Error", "{}", log_of(&played.facts));
    let calls = &played.collected.calls;
    let said: Vec<&str> = calls.iter().map(|call| call.detail.as_str()).collect();
    assert!(!said.is_empty() && said.iter().all(|what| what.contains("password")), "{said:#?}");
    let never = calls.iter().all(|call| {
        call.exchanges
            .iter()
            .all(|exchange| !exchange.bytes.windows(8).any(|bytes| bytes == b"mistyped"))
    });
    assert!(never, "the password went over the wire");
}

#[test]
fn another_seed_moves_the_loss_of_the_lease_and_nothing_else_of_the_timeline() {
    let own = unchanged();
    let off = |facts: &[Fact]| first(facts, |what| is_power(what, Power::Off)).expect("off");
    let moved: Vec<f64> = (10..14)
        .map(|seed| {
            let facts = lost_node(|text| text.replace("seed: 3", &format!("seed: {seed}")));
            let judgement = judge(&facts, &Setting::default());
            assert_eq!(judgement.broken, []);
            assert_eq!(judgement.times(Power::Off), 1);
            off(&facts)
        })
        .collect();
    assert!(moved.iter().any(|at| (at - off(&own)).abs() > 0.5), "{moved:?} beside {}", off(&own));
    // 20 s of silence, of which up to 10.4 s had passed, and the wait for others' silence.
    let (least, most) = (Duration::from_secs(69), Duration::from_secs(85));
    let range = least.as_secs_f64()..most.as_secs_f64();
    assert!(moved.iter().all(|at| range.contains(at)), "{moved:?}");
}

/// Nobody approves: the timeline says once what it waits for and what to type, and not at each look.
#[test]
fn what_waits_for_a_person_stands_once_in_the_timeline() {
    let (scenario, _) = example("lost-node");
    let approval = scenario.replace("- file: ../config/remedy.yaml", APPROVAL);
    assert_ne!(approval, scenario);
    let expect = approval.find("\n# With node-remedy.").expect("expectations");
    let text = format!(
        "{}expect:\n- {{ fact: powerChanged, times: 0 }}\n",
        approval.get(..expect).expect("text")
    );
    let source = Source { name: "approval".to_owned(), text: text.clone() };
    let timeline =
        tell(&parse(&text), &source, Comparison::Nothing).expect("a timeline that can be told");
    assert_eq!(timeline.with.outcome.missed, [""; 0]);
    let told = timeline.with.entries.iter().filter(|entry| entry.text.contains("approve node-a-1"));
    let loud = told.clone().filter(|entry| entry.weight == Weight::Bad);
    assert!(told.count() > 1 && loud.count() == 1);
}

const APPROVAL: &str = "- object:
    apiVersion: node-remedy.io/v1alpha1
    kind: RemedyConfiguration
    metadata: { name: asks }
    spec:
      thresholdConfigs: [{ nodeLeaseAge: 20s, remedy1: [{ name: fence }] }]
      policies: { approval: true }";
