//! A report proves what it tells: it carries all that reproduces it, and `simulate --verify` finds
//! whoever changed it.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use node_remedy_report::html;
use node_remedy_tests::Controller;

use crate::sim_run::examples;

/// Runs `node-remedy simulate`.
fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(Controller::binary());
    command.arg("simulate").args(arguments);
    command.output().expect("node-remedy was built")
}

fn report(timeline: &str, to: &str) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sim-report");
    std::fs::create_dir_all(&folder).expect("a folder");
    let page = folder.join(to);
    let scenario = examples().join(format!("scenarios/{timeline}.yaml"));
    let scenario = scenario.to_str().expect("a path");
    let made = simulate(&[scenario, "--report", page.to_str().expect("a path")]);
    assert!(made.stderr.is_empty(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = std::fs::read_to_string(&page).expect("a report");
    (page, text)
}

fn verify(page: &Path) -> Output {
    simulate(&["--verify", page.to_str().expect("a path")])
}

fn check_reproduced(timeline: &str) {
    let (page, text) = report(timeline, &format!("{timeline}.html"));
    assert!(text.len() < html::PAGE_BYTES_MAX, "{} bytes", text.len());
    let verified = verify(&page);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success() && said.starts_with("reproduced"), "{said}");
}

#[test]
fn the_report_of_a_lost_node_is_reproduced() {
    check_reproduced("lost-node");
}

#[test]
fn the_report_of_a_bmc_that_says_yes_is_reproduced() {
    check_reproduced("bmc-says-yes");
}

#[test]
fn the_report_of_a_dark_rack_is_reproduced() {
    check_reproduced("dark-rack");
}

/// The proof is shown as the BMC said it inside the session, with the bytes it was read from.
#[test]
fn the_proof_card_of_a_lost_node_shows_the_decoded_chassis_status() {
    let (_, text) = report("lost-node", "decoded.html");
    let (_, card) = text.split_once("proof-card").expect("a proof card");
    let (card, _) = card.split_once("</article>").expect("the end of the card");
    let (_, answer) = card
        .split_once("chassis status: power off, fault none")
        .expect("the decoded answer of the BMC");
    let (answer, _) = answer.split_once("</tr>").expect("the end of its row");
    for shown in ["netfn 01 cmd 01", "completion code 00", "81 04 7b 20"] {
        assert!(answer.contains(shown), "no {shown} in {answer}");
    }
}

/// A BMC that says yes is shown with every yes, on its own line, and with what it read after.
#[test]
fn the_page_of_a_bmc_that_says_yes_shows_its_answers_and_its_status() {
    let (_, text) = report("bmc-says-yes", "yes.html");
    let (page, _) = text.split_once("<script").expect("a page with data");
    let (_, timeline) = page.split_once("id=\"timeline\"").expect("a timeline");
    let (with, _) = timeline.split_once("id=\"without\"").expect("two runs");
    let yes = with.split("<tr").filter(|row| row.contains("said yes to off and did nothing"));
    let of_device = yes.filter(|row| row.contains(">device<") && row.contains(">BMC of node-a<"));
    assert_eq!(of_device.count(), 3);
    assert!(page.contains("BMC of node-a: on, 0:00.0 to 10:00.0"), "no device lane");
    let (_, why_not) = page.split_once("id=\"why-not\"").expect("why nothing was released");
    let (why_not, _) = why_not.split_once("</section>").expect("its end");
    for shown in ["chassis status: power on, fault none", "said yes 3 times", "rule-P1"] {
        assert!(why_not.contains(shown), "no {shown} in {why_not}");
    }
}

/// Thirty nodes are a headline, a few rows and a few lines.
#[test]
fn the_page_of_a_dark_rack_says_first_that_nothing_was_cut_and_why() {
    let (_, text) = report("dark-rack", "rack.html");
    assert!(text.contains("<h1>nothing was cut: unhealthy 10 of 30 = 33 % ≥ 30 %</h1>"));
    let (page, _) = text.split_once("<script").expect("a page with data");
    assert!(page.contains(">30 devices<") && page.contains(">60 pods, volumes<"));
}

/// What is changed in a report, and to what.
const TAMPERINGS: [(&str, &str, &str); 6] = [
    ("seed", "\"seed\":3", "\"seed\":4"),
    ("verdict", "\"verdict\":\"", "\"verdict\":\"surely "),
    ("entry", "the kubelet stopped", "the kubelet was stopped by hand"),
    ("scenario", "bootTime: 45s", "bootTime: 46s"),
    ("digest", "\"scenario_digest\":\"", "\"scenario_digest\":\"0"),
    ("plugin", "\"digest\":\"", "\"digest\":\"0"),
];

#[test]
fn a_report_that_was_changed_is_refused() {
    let (page, text) = report("lost-node", "tampered.html");
    for (what, from, to) in TAMPERINGS {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{what}: nothing to change");
        std::fs::write(&page, changed).expect("a report");
        let refused = verify(&page);
        let said = String::from_utf8_lossy(&refused.stdout);
        assert!(!refused.status.success(), "{what} was changed, and yet: {said}");
        assert!(!said.starts_with("reproduced") && !said.contains("None"), "{what}: {said}");
    }
}

/// What people read is the page, not the data in it.
#[test]
fn a_page_whose_words_were_changed_around_its_data_is_refused() {
    let (page, text) = report("lost-node", "repainted.html");
    let (before, data) = text.split_once("<script").expect("a page with data");
    let painted = before.replace("the kubelet stopped", "somebody pulled the plug");
    assert_ne!(painted, before);
    std::fs::write(&page, format!("{painted}<script{data}")).expect("a report");
    let refused = verify(&page);
    let said = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success(), "the words were changed, and yet: {said}");
    let line = text.lines().zip(painted.lines()).position(|(a, b)| a != b).expect("a line") + 1;
    let named = format!("the first difference: line {line}, column ");
    assert!(said.contains(&named) && said.contains("somebody pulled the plug"), "{said}");
}

#[test]
fn what_is_no_report_is_refused_in_words() {
    let (page, text) = report("lost-node", "cut.html");
    let half = text.get(..text.len() / 2).expect("half of it");
    for (what, content) in [("half a report", half), ("another page", "<html></html>")] {
        std::fs::write(&page, content).expect("a file");
        let refused = verify(&page);
        assert_eq!(refused.status.code(), Some(1), "{what}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("is not a report of ours"), "{what}: {said}");
    }
}

/// A lost node whose BMC and Secret have a password, and an old ConfigMap with another.
fn with_passwords() -> String {
    let text = std::fs::read_to_string(examples().join("scenarios/lost-node.yaml"));
    let text = text.expect("an example");
    let bmc = "name: node-a, bmc: { user: root, password: hunter2 },";
    let text = text.replacen("name: node-a,", bmc, 1);
    let map = "- object:
    apiVersion: v1
    kind: ConfigMap
    metadata: { name: fence-method-old, namespace: node-remedy }
    data: { old.properties: \"agent_name=fence_ipmilan\\npasswd=letmein\\n\" }
faults:";
    let text = text.replacen("faults:", map, 1);
    let secret = "{ username: root, password: hunter2 }";
    text.replace("../config/", "").replace("{ username: admin, password: simulated }", secret)
}

fn files(folder: &str, scenario: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["remedy.yaml", "fence-ipmi.yaml"] {
        std::fs::copy(examples().join("config").join(file), folder.join(file)).expect("a copy");
    }
    let path = folder.join("scenario.yaml");
    std::fs::write(&path, scenario).expect("a scenario");
    path
}

/// Nothing that simulate writes holds a credential, and yet the BMC takes what the plugin brings,
/// and the report is reproduced.
#[test]
fn no_credential_of_a_scenario_is_in_what_is_written() {
    let scenario = files("sim-redact", &with_passwords());
    let page = scenario.with_file_name("page.html");
    let [scenario, page_name] = [&scenario, &page].map(|path| path.to_str().expect("a path"));
    let played = simulate(&[scenario, "--report", page_name, "--no-baseline"]);
    let json = simulate(&[scenario, "--output", "json", "--no-baseline"]);
    let text = std::fs::read_to_string(&page).expect("a report");
    for written in [&played.stdout, &played.stderr, &json.stdout, text.as_bytes()] {
        let written = String::from_utf8_lossy(written);
        for secret in ["hunter2", "letmein", "aHVudGVyMg"] {
            assert!(!written.contains(secret), "{secret} in {written}");
        }
    }
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(played.status.success(), "{said}");
    assert!(text.contains("were replaced by stand-ins"), "the report does not say so");
    let verified = verify(&page);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success() && said.starts_with("reproduced"), "{said}");
}

/// A password that the Secret has and the BMC has not is refused, under stand-ins as well.
#[test]
fn a_wrong_password_stays_wrong() {
    let wrong = with_passwords().replace("root, password: hunter2 }\n", "root, password: x }\n");
    let scenario = files("sim-wrong-password", &wrong);
    let played = simulate(&[scenario.to_str().expect("a path"), "--no-baseline"]);
    let said = String::from_utf8_lossy(&played.stdout);
    assert_eq!(played.status.code(), Some(1), "{said}");
    assert!(said.contains("password"), "{said}");
}

/// A snapshot of a cluster with an old configuration: the password is gone, the timeline is told.
#[test]
fn no_credential_of_a_snapshot_is_in_what_is_written() {
    let snapshot = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-a" },
          "status": { "conditions": [{ "type": "Ready", "status": "True" }] } },
        { "apiVersion": "v1", "kind": "ConfigMap",
          "metadata": { "name": "fence-method-a", "namespace": "node-remedy", "annotations": {
              "kubectl.kubernetes.io/last-applied-configuration":
                  "{\"data\":{\"passwd\":\"hunter2\"}}" } },
          "data": { "login": "root", "passwd": "hunter2" } },
    ] });
    let path = files("sim-redact-snapshot", &snapshot.to_string());
    let path = path.to_str().expect("a path");
    let played = simulate(&[path, "--lose", "node-a", "--output", "json"]);
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(said.contains("node-a is lost"), "{}", String::from_utf8_lossy(&played.stderr));
    assert!(said.contains("simulated") && !said.contains("hunter2"), "{said}");
}

/// A cluster that has no policy yet: that nothing would be done is said, and is no success.
#[test]
fn a_snapshot_without_a_policy_says_that_nothing_would_be_done() {
    let node = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-a" },
          "status": { "conditions": [{ "type": "Ready", "status": "True" }] } },
    ] });
    let path = files("sim-bare-snapshot", &node.to_string());
    let path = path.to_str().expect("a path");
    let played = simulate(&[path, "--lose", "node-a"]);
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(said.contains("no RemedyConfiguration of the snapshot"), "{said}");
    assert!(said.contains("--lose 'node-a' --seed"), "{said}");
    assert!(!played.status.success());
}

/// Twelve nodes in three racks; what would be done if one rack lost its switch, its power, or one node?
#[test]
fn a_snapshot_says_what_would_be_done_if_a_rack_went_dark() {
    let node = |number: usize| {
        let (name, rack) = (format!("node-{number}"), ["a", "b", "c"].iter().cycle().nth(number));
        serde_json::json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "uid": name, "labels": { "rack": rack },
                "annotations": { "node-remedy.io/bmc-address": format!("10.0.0.{}", 10 + number) } },
            "status": { "nodeInfo": { "systemUUID": format!("5ca1ab1e-0000-4000-8000-0000000000{number:02}") },
                "conditions": [{ "type": "Ready", "status": "True" }] },
        })
    };
    let policy = serde_json::json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "RemedyConfiguration",
        "metadata": { "name": "all" },
        "spec": {
            "mode": "enforce",
            "thresholdConfigs": [{ "nodeLeaseAge": "20s", "remedy1": [{ "name": "fence" }] }],
            "policies": { "maxUnhealthyPercent": 50, "topologies": [{ "key": "rack" }] },
        },
    });
    let fence = serde_json::json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FenceConfiguration",
        "metadata": { "name": "ipmi" },
        "spec": {
            "nodeSelector": "rack",
            "trustedNodeFields": ["${node.annotations['node-remedy.io/bmc-address']}"],
            "methods": [{
                "name": "power", "plugin": "ipmi", "action": "reboot",
                "parameters": { "address": "${node.annotations['node-remedy.io/bmc-address']}" },
                "credentials": [{ "secret": "bmc" }],
            }],
            "powerManagement": [{ "name": "power", "methods": ["power"] }],
            "grants": [{ "plugin": "ipmi", "cidrs": ["10.0.0.0/24"], "ports": [623] }],
        },
    });
    let items: Vec<_> = (0..12).map(node).chain([policy, fence]).collect();
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let path = files("sim-rack-snapshot", &list.to_string());
    let path = path.to_str().expect("a path");
    let told = |how: &[&str]| {
        let played = simulate(&[&[path, "--no-baseline"], how].concat());
        let error = String::from_utf8_lossy(&played.stderr).into_owned();
        format!("{}{error}", String::from_utf8_lossy(&played.stdout))
    };
    for how in ["--lose", "--power-loss"] {
        let said = told(&[how, "rack=b"]);
        assert!(said.contains("nothing was cut: silent at once: 4 ≥ 3 nodes"), "{said}");
        assert!(said.contains("rack=b: unhealthy 4 of 4 = 100 %"), "{said}");
        assert!(said.contains("look at what the silent nodes share"), "{said}");
    }
    let said = told(&["--lose", "node-1"]);
    assert!(said.contains("BMC off 1, on 1"), "{said}");
    let said = told(&["--lose", "rack in b"]);
    assert!(said.contains("expected a node or"), "{said}");
}
