//! A table of outlets that is wrong: the machine that goes dark is not the one that was lost.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use node_remedy_simulate::{Comparison, Source, tell};

use crate::sim_run::parse;

const CROSSED: &str = include_str!("sim_wiring/crossed-outlets.yaml");

/// What of the scenario's expectations did not come true.
fn missed(text: &str) -> Vec<String> {
    let source = Source { name: "crossed-outlets".to_owned(), text: text.to_owned() };
    let timeline =
        tell(&parse(text), &source, Comparison::Nothing).expect("a timeline that can be told");
    timeline.with.outcome.missed
}

#[test] // promise: P8
fn a_neighbour_that_falls_silent_says_that_the_outlet_is_its_own() {
    assert_eq!(missed(CROSSED), Vec::<String>::new());
}

/// Whoever starts after the off has never heard the neighbour, and must not take what it finds for life.
#[test] // promise: P8
fn a_process_that_starts_after_the_off_finds_it_out_too() {
    let killed = "- { at: 80s, controllerKilled: { controller: 1, lasts: 5s } }\n\nexpect:\n";
    assert_eq!(missed(&CROSSED.replace("\nexpect:\n", killed)), Vec::<String>::new());
}

#[test]
fn with_the_right_table_the_same_node_is_remedied() {
    let (happens, _) = CROSSED.split_once("\nexpect:\n").expect("what it expects");
    let happens = happens.replace("outlet: \"2\"", "outlet: \"0\"");
    let happens = happens.replace("outlet: \"1\"", "outlet: \"2\"").replace("\"0\"", "\"1\"");
    let expected = "
expect:
- { fact: powerChanged, where: { node: node-b }, times: 0 }
- { fact: powerChanged, where: { node: node-a, power: \"off\" }, times: 1 }
- { fact: proofRecorded, where: { node: node-a, grade: power-off-verified }, times: 1 }
- { fact: podGone, where: { node: node-a, by: node-remedy }, times: 1 }
";
    assert_eq!(missed(&format!("{happens}\n{expected}")), Vec::<String>::new());
}
