//! The examples, each spoilt in one place, as `node-remedy check` and `simulate` refuse them: by
//! file, line and column, with what was found and what is expected.

use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use node_remedy_tests::Controller;

use crate::sim_night::examples;

const REMEDY: &str = "config/remedy.yaml";
const FENCE: &str = "config/fence-ipmi.yaml";
const SCENARIO: &str = "scenarios/lost-node.yaml";

/// What a command said about a spoilt example, and its exit code.
fn refusal(command: &str, name: &str, text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad-input").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("bad.yaml"), text).expect("a file");
    let ran = Command::new(Controller::binary())
        .args([command, "bad.yaml"])
        .current_dir(&folder)
        .output()
        .expect("node-remedy was built");
    let said = String::from_utf8_lossy(&ran.stderr);
    format!("{said}exit {}\n", ran.status.code().expect("an end by itself"))
}

fn spoilt(example: &str, (from, to): (&str, &str)) -> String {
    let path: PathBuf = examples().join(example);
    let text = std::fs::read_to_string(path).expect("an example");
    assert!(text.contains(from), "{example} has no {from:?}");
    text.replacen(from, to, 1)
}

/// One row: a name, an example, a text in it and what it is replaced by.
fn check(name: &str, example: &str, change: (&str, &str), expected: Expect) {
    expected.assert_eq(&refusal("check", name, &spoilt(example, change)));
}

#[test]
fn configurations() {
    check("unknown", REMEDY, ("  mode:", "  modes:"), expect![[""]]);
    check("type", REMEDY, ("maxInFlight: 1 ", "maxInFlight: one "), expect![[""]]);
    check("selector", REMEDY, ("node-remedy.io/fence=ipmi", "''"), expect![[""]]);
    check("negative", REMEDY, ("Period: 5s", "Period: -5s"), expect![[""]]);
    check("absurd", REMEDY, ("LeaseAge: 20s", "LeaseAge: 100000h"), expect![[""]]);
    check("percent", REMEDY, ("Percent: 30 ", "Percent: 130 "), expect![[""]]);
    check("remedy", REMEDY, ("- name: fence", "- nome: fence"), expect![[""]]);
    check("version", REMEDY, ("io/v1alpha1", "io/v1alpha2"), expect![[""]]);
}

#[test]
fn fences() {
    check("template", FENCE, ("template: bmc", "template: bcm"), expect![[""]]);
    check("method", FENCE, ("[power]", "[powre]"), expect![[""]]);
    check("action", FENCE, ("action: reboot", "action: explode"), expect![[""]]);
    check("plugin", FENCE, ("plugin: ipmi", "plugin: ipmy"), expect![[""]]);
    check("cidr", FENCE, ("192.0.2.0/24", "192.0.2.0"), expect![[""]]);
    check("port", FENCE, ("[623]", "[70000]"), expect![[""]]);
    check("secret", FENCE, ("- secret: bmc-credentials", "- secret: ''"), expect![[""]]);
    check(
        "no-grant",
        FENCE,
        ("  grants:\n  - plugin: ipmi", "  grants:\n  - plugin: apc"),
        expect![[""]],
    );
}

#[test]
fn what_is_not_yaml() {
    expect![[""]].assert_eq(&refusal("check", "bracket", "a: [1\n"));
    expect![[""]].assert_eq(&refusal("check", "tab", "kind: Configuration\n\tspec: 1\n"));
}

#[test]
fn scenarios() {
    let check = |name: &str, change: (&str, &str), expected: Expect| {
        expected.assert_eq(&refusal("simulate", name, &spoilt(SCENARIO, change)));
    };
    check("s-unknown", ("seed: 3", "sead: 3"), expect![[""]]);
    check("s-type", ("seed: 3", "seed: three"), expect![[""]]);
    check("s-duration", ("duration: 10m", "duration: -10m"), expect![[""]]);
    check("s-file", ("../config/remedy.yaml", "../config/remady.yaml"), expect![[""]]);
}

/// A word mistyped must not make a configuration disappear.
#[test]
fn a_kind_that_nobody_knows_is_refused() {
    let text = spoilt(REMEDY, ("kind: RemedyConfiguration", "kind: RemedyConfiguratoin"));
    let said = refusal("check", "kind", &text);
    assert!(said.starts_with("bad.yaml:2:7: ") && said.ends_with("exit 1\n"), "{said}");
}

#[test]
fn a_file_that_configures_nothing_is_refused() {
    for (name, text) in [("empty", ""), ("comment", "# later\n")] {
        let said = refusal("check", name, text);
        assert!(said.contains("bad.yaml") && said.ends_with("exit 1\n"), "{name}: {said}");
    }
}

/// Two configurations for one node: nobody could say which is in force.
#[test]
fn the_same_configuration_twice_is_refused() {
    let one = spoilt(REMEDY, ("kind: RemedyConfiguration", "kind: RemedyConfiguration"));
    let said = refusal("check", "twice", &format!("{one}---\n{one}"));
    assert!(said.contains("bad.yaml:") && said.ends_with("exit 1\n"), "{said}");
}
