//! Runs in which a plugin decides what is tried: the very component that a cluster would load.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

use node_remedy_report::Timeline;
use node_remedy_simulate::{Comparison, Source, component, tell};
use node_remedy_world::Scenario;

use crate::sim_run::examples;

/// The example's own run, changed as a test needs it.
fn run(comparison: Comparison, change: impl FnOnce(String) -> String) -> Timeline {
    run_with("", comparison, change)
}

/// The same with something more in the plugin's own object.
fn run_with(more: &str, comparison: Comparison, change: impl FnOnce(String) -> String) -> Timeline {
    let folder = examples().join("plugins/polite");
    let text = std::fs::read_to_string(folder.join("scenario.yaml")).expect("an example");
    let text = change(text);
    let load = |file: &str| {
        let path = folder.join(file);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        match component::name_in(file) {
            Some(name) => {
                let bytes = std::fs::read(&path).map_err(failed)?;
                component::documents(name, &bytes).map(|text| text + more).map_err(failed)
            }
            None => std::fs::read_to_string(&path).map_err(failed),
        }
    };
    let scenario = Scenario::parse("polite.yaml", &text, &load);
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source { name: "polite".to_owned(), text };
    tell(&scenario, &source, comparison).expect("a timeline that can be told")
}

const NONE: [String; 0] = [];

/// Everything that was told, in one text.
fn told(timeline: &Timeline) -> String {
    serde_json::to_string(timeline).expect("a timeline as JSON")
}

#[test]
fn the_example_drains_asks_a_method_and_fences() {
    let timeline = run(Comparison::Without, |text| text);
    assert_eq!(timeline.with.outcome.missed, NONE);
    assert_eq!(
        timeline.without.as_ref().map(|run| run.outcome.missed.clone()),
        Some(NONE.to_vec())
    );
    let told = told(&timeline);
    for decided in ["decided: cluster drain", "decided: method power", "decided: fence"] {
        assert!(told.contains(decided), "nobody was told {decided}");
    }
}

/// The same run is the same run, whatever decides in it.
#[test]
fn a_run_with_a_plugin_is_told_twice_alike() {
    let [one, other] = [(); 2].map(|()| told(&run(Comparison::Nothing, |text| text)));
    assert_eq!(one, other);
}

/// What it decides means nothing, so the ladder goes on: nothing is cut before the fence's own turn.
#[test]
fn an_unknown_method_ends_the_remedy_step_and_the_fence_has_its_turn() {
    let timeline = run(Comparison::Nothing, |text| {
        text.replace("method: power }", "method: steam-valve }").replace(
            "power: off, cause: command }, times: 2 }",
            "power: off, cause: command }, times: 1 }",
        )
    });
    assert_eq!(timeline.with.outcome.missed, NONE);
    let told = told(&timeline);
    assert!(told.contains("its plugin chose method steam-valve"), "nobody was told");
    assert!(told.contains("there are: power"), "nobody was told");
}

/// A plugin that nobody loaded is waited for, and keeps the fence behind it from its turn no longer than that.
#[test]
fn a_plugin_that_is_not_loaded_does_not_keep_the_fence_from_its_turn() {
    let timeline = run(Comparison::Nothing, |text| {
        let (before, _) = text.split_once("expect:").expect("expectations");
        let before = before.replace("plugin: polite }", "plugin: absent }");
        let is_ill = |line: &&str| !line.contains("reason: Fine");
        let ill: String = before.split_inclusive('\n').filter(is_ill).collect();
        format!(
            "{ill}expect:\n- {{ fact: powerChanged, where: {{ node: node-a, power: off, cause: command }}, times: 1, \
             after: 11m }}\n"
        )
    });
    assert_eq!(timeline.with.outcome.missed, NONE);
    let said = told(&timeline);
    assert!(said.contains("no plugin named \\\"absent\\\""), "nobody was told");
}

/// A plugin that switches power decides nothing, and one that decides switches nothing.
#[test]
fn a_fence_plugin_is_no_remedy_and_a_remedy_no_method() {
    let nothing_is_done = |text: String| {
        let (before, _) = text.split_once("expect:").expect("expectations");
        format!(
            "{before}expect:\n- {{ fact: powerChanged, times: 0 }}\n- {{ fact: cordoned, times: 0 }}\n"
        )
    };
    let as_remedy = run(Comparison::Nothing, |text| {
        nothing_is_done(text)
            .replace("polite.wasm", "tasmota.wasm")
            .replace("plugin: polite", "plugin: tasmota")
    });
    assert_eq!(as_remedy.with.outcome.missed, NONE);
    let said = told(&as_remedy);
    assert!(said.contains("is of kind power, expected one of kind remedy"), "nobody was told");

    let as_method = run(Comparison::Nothing, |text| {
        let fence = "- object:\n    apiVersion: node-remedy.io/v1alpha1\n    kind: FenceConfiguration\n    \
                     metadata: { name: ipmi }\n    spec:\n      nodeSelector: node-remedy.io/fence=ipmi\n      \
                     methods: [{ name: power, plugin: polite, action: reboot }]\n      powerManagement: [{ \
                     name: power, methods: [power] }]\n";
        nothing_is_done(text).replace("- file: ../../config/fence-ipmi.yaml\n", fence)
    });
    assert_eq!(as_method.with.outcome.missed, NONE);
    let said = told(&as_method);
    assert!(said.contains("it is a remedy, which decides and does nothing"), "nobody was told");
}

/// A remedy is granted nothing: who grants it something means another plugin.
#[test]
fn a_remedy_with_grants_is_not_loaded() {
    let grants = "  grants: [{ cidrs: [192.0.2.0/24] }]\n";
    let timeline = run_with(grants, Comparison::Nothing, |text| {
        let (before, _) = text.split_once("expect:").expect("expectations");
        format!(
            "{before}expect:\n- {{ fact: cordoned, times: 0 }}\n- {{ fact: powerChanged, times: 0 }}\n"
        )
    });
    assert_eq!(timeline.with.outcome.missed, NONE);
    let said = told(&timeline);
    assert!(said.contains("found 1 grants, expected none"), "nobody was told");
}
