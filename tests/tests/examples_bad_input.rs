//! The examples, each spoilt in one place, as `node-remedy check` and `simulate` refuse them: by
//! file, line and column, with what was found and what is expected.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "a row reads better with its expectation in it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use node_remedy_tests::Controller;

use crate::sim_run::examples;

const REMEDY: &str = "config/remedy.yaml";
const FENCE: &str = "config/fence-ipmi.yaml";
const SCENARIO: &str = "scenarios/lost-node.yaml";

/// What a command said about a spoilt example, and its exit code.
fn refusal(command: &str, name: &str, text: &str) -> String {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad-input").join(name);
    // As in the examples, so that a scenario finds the configuration that it names.
    let folder = root.join("scenarios");
    for folder in [&folder, &root.join("config")] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    for file in [REMEDY, FENCE] {
        std::fs::copy(examples().join(file), root.join(file)).expect("a copy");
    }
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
    check(
        "unknown",
        REMEDY,
        ("  mode:", "  modes:"),
        expect![[r#"
        bad.yaml:9:3: spec.modes: found an unknown field, expected mode (did you mean that?)
        exit 1
    "#]],
    );
    check(
        "type",
        REMEDY,
        ("maxInFlight: 1 ", "maxInFlight: one "),
        expect![[r#"
            bad.yaml:30:18: spec.policies.maxInFlight: found "one", expected a whole number
            exit 1
        "#]],
    );
    check(
        "selector",
        REMEDY,
        ("node-remedy.io/fence=ipmi", "''"),
        expect![[r#"
        bad.yaml:11:17: spec.nodeSelector: found an empty text, expected text that is not empty
        exit 1
    "#]],
    );
    check(
        "negative",
        REMEDY,
        ("Period: 5s", "Period: -5s"),
        expect![[r#"
        bad.yaml:17:26: spec.thresholdConfigs[0].nodeConditionPeriod: found "-5s", expected a length of time that is not negative, such as 5s
        exit 1
    "#]],
    );
    check(
        "absurd",
        REMEDY,
        ("LeaseAge: 20s", "LeaseAge: 100000h"),
        expect![[r#"
            bad.yaml:24:19: spec.thresholdConfigs[1].nodeLeaseAge: found "100000h", expected a length of time of at most 9999d, 99999h, 9999999m, 999999999s or 9999999999ms
            exit 1
        "#]],
    );
    check(
        "percent",
        REMEDY,
        ("Percent: 30 ", "Percent: 130 "),
        expect![[r#"
            bad.yaml:29:26: spec.policies.maxUnhealthyPercent: found 130, expected a number from 1 to 100
            exit 1
        "#]],
    );
    check(
        "remedy",
        REMEDY,
        ("- name: fence", "- nome: fence"),
        expect![[r#"
        bad.yaml:19:7: spec.thresholdConfigs[0].remedy1[0].nome: found an unknown field, expected name (did you mean that?)
        exit 1
    "#]],
    );
    check(
        "version",
        REMEDY,
        ("io/v1alpha1", "io/v1alpha2"),
        expect![[r#"
        bad.yaml:2:1: found apiVersion "node-remedy.io/v1alpha2" and kind "RemedyConfiguration", expected node-remedy/v1alpha Configuration or node-remedy.io/v1alpha1 RemedyConfiguration
        exit 1
    "#]],
    );
}

#[test]
fn fences() {
    check(
        "template",
        FENCE,
        ("template: bmc", "template: bcm"),
        expect![[r#"
            bad.yaml:29:15: spec.methods[0].template: found the template "bcm", expected a defined one (bmc)
            exit 1
        "#]],
    );
    check(
        "method",
        FENCE,
        ("[power]", "[powre]"),
        expect![[r#"
            bad.yaml:37:15: spec.powerManagement[0].methods[0]: found the method "powre", expected a defined one (power, mark-unschedulable, mark-schedulable, quarantine, clean-resources, delete-node, restart-instance)
            exit 1
        "#]],
    );
    check(
        "action",
        FENCE,
        ("action: reboot", "action: explode"),
        expect![[r#"
            bad.yaml:31:13: spec.methods[0].action: found "explode", expected off, on, reboot, reset, true, false
            exit 1
        "#]],
    );
    check(
        "cidr",
        FENCE,
        ("192.0.2.0/24", "192.0.2.0"),
        expect![[r#"
            bad.yaml:41:13: spec.grants[0].cidrs[0]: found "192.0.2.0", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
            exit 1
        "#]],
    );
    check(
        "port",
        FENCE,
        ("[623]", "[70000]"),
        expect![[r#"
            bad.yaml:42:13: spec.grants[0].ports[0]: found 70000, expected a number from 0 to 65535
            exit 1
        "#]],
    );
    check(
        "secret",
        FENCE,
        ("- secret: bmc-credentials", "- secret: ''"),
        expect![[r#"
            bad.yaml:26:15: spec.templates[0].credentials[0].secret: found an empty text, expected text that is not empty
            exit 1
        "#]],
    );
}

#[test]
fn what_is_not_yaml() {
    expect![[r#"
        bad.yaml:1:4: found what is not YAML: unclosed bracket '['
        exit 1
    "#]]
    .assert_eq(&refusal("check", "bracket", "a: [1\n"));
    expect![[r#"
        bad.yaml:1:7: found what is not YAML: while scanning a plain scalar, found a tab
        exit 1
    "#]]
    .assert_eq(&refusal("check", "tab", "kind: Configuration\n\tspec: 1\n"));
}

#[test]
fn scenarios() {
    let check = |name: &str, change: (&str, &str), expected: Expect| {
        expected.assert_eq(&refusal("simulate", name, &spoilt(SCENARIO, change)));
    };
    check(
        "s-unknown",
        ("seed: 3", "sead: 3"),
        expect![[r#"
            node-remedy: bad.yaml:5:1: unknown field `sead`, expected one of title, seed, duration, untilCalm, shuffle, cluster, nodes, pdus, switches, controllers, secondInstallation, workloads, configuration, faults, expect, expectWithout
            exit 1
        "#]],
    );
    check(
        "s-type",
        ("seed: 3", "seed: three"),
        expect![[r#"
        node-remedy: bad.yaml:5:7: found "three", expected u64
        exit 1
    "#]],
    );
    check(
        "s-duration",
        ("duration: 10m", "duration: -10m"),
        expect![[r#"
        node-remedy: bad.yaml:6:11: duration: found "-10m", expected a duration such as 90s, 1m30s or 250ms, up to a week
        exit 1
    "#]],
    );
    check(
        "s-file",
        ("../config/remedy.yaml", "../config/remady.yaml"),
        expect![[r#"
        node-remedy: bad.yaml:19:9: configuration.file: failed to read ../config/remady.yaml: No such file or directory (os error 2)
        exit 1
    "#]],
    );
}

/// A word mistyped must not make a configuration disappear.
#[test]
fn a_kind_that_nobody_knows_is_refused() {
    let text = spoilt(REMEDY, ("kind: RemedyConfiguration", "kind: RemedyConfiguratoin"));
    let said = refusal("check", "kind", &text);
    assert!(said.starts_with("bad.yaml:3:7: ") && said.ends_with("exit 1\n"), "{said}");
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
    let one = std::fs::read_to_string(examples().join(REMEDY)).expect("an example");
    let said = refusal("check", "twice", &format!("{one}---\n{one}"));
    assert!(said.contains("bad.yaml:") && said.ends_with("exit 1\n"), "{said}");
}

/// What can be known when the configuration is read is not found out when a machine is lost.
#[test]
fn a_plugin_that_is_not_built_in_is_refused() {
    let said = refusal("check", "plugin", &spoilt(FENCE, ("plugin: ipmi", "plugin: ipmy")));
    assert!(said.starts_with("bad.yaml:19:13: ") && said.ends_with("exit 1\n"), "{said}");
}

#[test]
fn a_method_without_a_grant_is_refused() {
    let grant = ("  grants:\n  - plugin: ipmi", "  grants:\n  - plugin: apc");
    let said = refusal("check", "no-grant", &spoilt(FENCE, grant));
    assert!(said.contains("bad.yaml:") && said.ends_with("exit 1\n"), "{said}");
}

/// A file that cannot be read is a problem like any other, for people and for programs.
#[test]
fn what_cannot_be_read_is_a_problem_of_its_file() {
    let valid = examples().join(REMEDY);
    let check = |arguments: &[&str]| {
        let mut command = Command::new(Controller::binary());
        let ran = command.arg("check").arg(&valid).args(arguments).output();
        let ran = ran.expect("node-remedy was built");
        let [out, err] = [ran.stdout, ran.stderr].map(|said| String::from_utf8_lossy(&said).into());
        (ran.status.code(), out, err)
    };
    let endless = "/dev/zero: failed to read it: found a device, expected a file, or - for stdin";
    let missing = "missing.yaml: failed to read it: No such file or directory (os error 2)";
    for (file, says) in [("/dev/zero", endless), ("missing.yaml", missing)] {
        let (code, out, err): (_, String, String) = check(&[file]);
        assert_eq!((code, out.as_str()), (Some(1), "1 documents, 1 errors, 0 warnings\n"));
        assert_eq!(err, format!("{says}\n"));
        let (code, out, err) = check(&[file, "--output", "json"]);
        let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let expected = serde_json::json!({ "documents": 1, "errors": 1, "problems": [says] });
        assert_eq!((code, told, err.as_str()), (Some(1), expected, ""));
    }
}

#[test]
fn a_scenario_or_report_without_end_is_refused() {
    for arguments in [&["/dev/zero"][..], &["--verify", "/dev/zero"], &["/dev/zero", "--lose", "a"]]
    {
        let ran = Command::new(Controller::binary()).arg("simulate").args(arguments).output();
        let ran = ran.expect("node-remedy was built");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(
            said.contains("failed to read /dev/zero: found a device, expected a file"),
            "{said}"
        );
        assert_eq!(ran.status.code(), Some(1));
    }
}
