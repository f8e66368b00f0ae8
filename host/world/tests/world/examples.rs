//! The scenarios in `examples/scenarios`: each is read with the files that it names, and
//! its control run, without node-remedy, is what it says.

use std::path::PathBuf;

use node_remedy_world::Scenario;

use crate::stage::{run, timeline};

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let scenario = Scenario::read(&folder.join(name)).map_err(|errors| errors.to_string());
    let scenario = scenario.expect("a good scenario");
    assert!(!scenario.expect_without.is_empty());
    let world = run(&scenario);
    let judged = scenario.expect_without.iter().map(|one| one.judge(world.facts()));
    let unmet: Vec<String> =
        judged.filter_map(Result::err).map(|unmet| unmet.to_string()).collect();
    assert!(unmet.is_empty(), "{unmet:#?}\n{}", timeline(&world));
}

#[test]
fn lost_node() {
    check("lost-node.yaml");
}

#[test]
fn bmc_says_yes() {
    check("bmc-says-yes.yaml");
}

#[test]
fn dark_rack() {
    check("dark-rack.yaml");
}
