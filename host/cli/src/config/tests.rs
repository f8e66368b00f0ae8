//! What is shown of a node, from files as people write them.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
#![expect(clippy::needless_pass_by_value, reason = "a row reads better with its expectation in it")]
#![expect(clippy::format_collect, reason = "tests build small texts")]

use expect_test::{Expect, expect};
use node_remedy_api::plan::{self, NodeFacts};
use node_remedy_api::time::Moment;
use node_remedy_sandbox::NoNames;

use super::*;
use node_remedy_config::wiring::{Tried, Wiring};

const REMEDY: &str = include_str!("../../../../examples/config/remedy.yaml");
const PDU: &str = include_str!("../../../../examples/config/fence-apc-pdu.yaml");
const IPMI: &str = include_str!("../../../../examples/config/fence-ipmi.yaml");
const WITNESS: &str = include_str!("../../../../examples/config/fence-witness.yaml");
const SWITCH: &str = include_str!("../../../../examples/config/fence-snmp-switch.yaml");
/// A node of the examples, and the table of where its devices are.
const NODE: &str = "kind: Node
apiVersion: v1
metadata:
  name: w1
  labels: {node-remedy.io/fence: ipmi}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: machines}
data:
  nodes.csv: |
    node,bmc-address
    w1,192.0.2.11
";
/// The node's own way to be fenced, with a password in plain text.
const OWN: &str = "kind: ConfigMap
apiVersion: v1
metadata: {name: fence-config-w1}
data:
  config.properties: |-
    node_name=w1
    power_management=bmc
  fence-method-bmc: |-
    template=fence-method-template-ipmi
    ipaddr=192.0.2.12
---
kind: ConfigMap
apiVersion: v1
metadata: {name: fence-method-template-ipmi}
data:
  agent_name: fence_ipmilan
  login: admin
  passwd: hunter2
  privlvl: OPERATOR
";

fn shown(files: &[(&str, &str)]) -> Shown {
    shown_of(NODE, files)
}

fn shown_of(node_text: &str, files: &[(&str, &str)]) -> Shown {
    let (mut node, mut documents) = (None, Vec::new());
    for (name, text) in files.iter().chain([&("node.yaml", node_text)]) {
        let read = Document::read_all(name, text).value.unwrap();
        for document in read.into_iter().flat_map(Document::items) {
            if is_named(&document, "w1") {
                node = Some(node_of(&document).unwrap());
            } else {
                documents.push(document);
            }
        }
    }
    let plugins = Plugins::new(Sandbox::new().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(Shown::of(&node.unwrap(), &documents, &plugins, &NoNames))
}

fn check(files: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&shown(files).to_string());
}

fn missing(files: &[(&str, &str)], expected: Expect) {
    let shown = shown(files);
    let lines: String = shown.missing.iter().map(|line| format!("{line}\n")).collect();
    expected.assert_eq(&lines);
}

#[test]
fn every_value_is_shown_with_where_it_comes_from() {
    let remedy = format!("{REMEDY}    backoff: 9s\n    grades: [power-off-verified, kdump-seen]\n");
    check(
        &[("remedy.yaml", &remedy), ("fence.yaml", IPMI)],
        expect![[r#"
            w1: nothing is missing
            chosen by
              policy: remedy.yaml, whose nodeSelector is the only one that selects the node
              plan: fence.yaml, the only one whose nodeSelector selects the node
            policy remedy.yaml, mode enforce
              approval             false      default
              backoff              9s         remedy.yaml:31:14: spec.policies.backoff
              breaker              {"coolDown":"30m","maxIncidents":5,"window":"1h"} default
              cleanupTimeout       10m        default
              conditionStaleAfter  15m        default
              coolDown             10m        default
              cordonedByOthers     maintenance default
              deviceTimeout        1d         default
              gateTimeout          15m        default
              grades               power-off-verified kdump-seen remedy.yaml:32:13: spec.policies.grades
              identity             require    default
              isolateAfter         0s         default
              kdumpReleases        withoutVolumes default
              maxInFlight          1          remedy.yaml:30:18: spec.policies.maxInFlight
              maxSilentAtOnce      3          default
              maxUnhealthyPercent  30         remedy.yaml:29:26: spec.policies.maxUnhealthyPercent
              offTimeout           30s        default
              onTimeout            1m         default
              parkIsolated         false      default
              pdbPatience          10m        default
              podsPerMinute        60         default
              powerAfter           0s         default
              powerOnIfFoundOff    true       default
              recoverTimeout       15m        default
              releaseMode          prompt     default
              releaseTimeout       2m         default
              restarts             0          default
              retries              2          default
              safeDetachDrivers    none       default
            thresholds
              Ready=False,Unknown for 5s  remedy.yaml:15:5: spec.thresholdConfigs[0]
                remedy1 fence: the plan below, then 5s
              Lease older than 20s  remedy.yaml:24:5: spec.thresholdConfigs[1]
                remedy1 fence: the plan below, then 20s
            plan fence.yaml
              isolation: keep-new-pods-away: all of quarantine
              powerManagement: power: all of power
              method quarantine: built in: quarantine
              method power: ipmi, device ipmi/192.0.2.11
                address = 192.0.2.11  ${inventory['bmc-address']} in fence.yaml:21:16: spec.templates[0].parameters.address
                privilege-level = operator  fence.yaml:22:24: spec.templates[0].parameters.privilege-level
                credential default: Secret bmc-credentials (keys username, password)
                bound by the identity that the device reports
              grant {"plugin":"ipmi","cidrs":["192.0.2.0/24"],"ports":[623]}
            released, by proof and by the pod's volumes
                                 no volume          shared volumes     own volume         volume that is cut safe to detach
              job-succeeded      -                  -                  -                  -                  -
              kdump-seen         yes                yes                -                  -                  -
              new-boot-id        -                  -                  -                  -                  -
              operator-confirmed -                  -                  -                  -                  -
              partition          -                  -                  -                  -                  -
              power-off-verified yes                yes                yes                yes                yes
              storage-fenced     -                  -                  -                  -                  -
              watchdog-deadline  -                  -                  -                  -                  -
              Never: pods of DaemonSets, of files on the node, and that tolerate the out-of-service taint.
            problems of what was read
              remedy.yaml:32:13: spec.policies.grades: warning: found kdump-seen without kdumpGrace: power is cut in the middle of the dump
            not looked at
              whether devices answer, and whether Secrets exist and hold the right passwords: node-remedy fence PLUGIN status
        "#]],
    );
}

/// Without `grades` all that are proof release; what storage was cut for releases what it cut.
#[test]
fn by_default_every_proof_releases_what_it_covers() {
    let shown = shown(&[("remedy.yaml", REMEDY), ("fence.yaml", IPMI)]);
    assert!(!REMEDY.contains("grades:"));
    let classes: Vec<&str> =
        shown.release["power-off-verified"].iter().map(|(class, _)| *class).collect();
    let all = ["no volume", "shared volumes", "own volume", "volume that is cut", "safe to detach"];
    assert_eq!(classes, all);
    let released = |grade: &str| -> Vec<&str> {
        let cells = shown.release[grade].iter();
        cells.filter(|(_, is_released)| *is_released).map(|(class, _)| *class).collect()
    };
    let rows: [(&str, &[&str]); 8] = [
        ("power-off-verified", &all),
        ("storage-fenced", &["volume that is cut"]),
        ("watchdog-deadline", &all),
        ("operator-confirmed", &all),
        ("job-succeeded", &all),
        ("kdump-seen", &[]),
        ("partition", &[]),
        ("new-boot-id", &[]),
    ];
    assert_eq!(shown.release.len(), rows.len());
    for (grade, classes) in rows {
        assert_eq!(released(grade), classes, "{grade}");
    }
}

#[test]
fn a_witness_and_an_alarm_are_shown_with_where_they_were_written() {
    let node = NODE.replace("fence: ipmi", "fence: witnessed");
    let remedy = REMEDY.replace("node-remedy.io/fence=ipmi", "node-remedy.io/fence=witnessed");
    let remedy = format!("{remedy}    repeatAlarm: {{count: 3, window: 1d}}\n");
    // Another one in the same file, for other nodes, which names the same.
    let other = WITNESS.replace("=witnessed", "=other").replace("name: witnessed", "name: other");
    let fence = format!("{WITNESS}---\n{other}");
    let shown = shown_of(&node, &[("remedy.yaml", &remedy), ("fence.yaml", &fence)]);
    let text = shown.to_string();
    let line =
        |part: &str| text.lines().find(|line| line.contains(part)).unwrap().trim().to_owned();
    let alarm = r#"{"count":3,"window":"1d"} remedy.yaml:31:18: spec.policies.repeatAlarm"#;
    assert_eq!(line("repeatAlarm "), format!("repeatAlarm          {alarm}"));
    let witness = "witness: hypervisor  fence.yaml:30:14: spec.methods[0].witness";
    assert_eq!(line("witness:"), witness);
    let methods = &shown.plan.as_ref().unwrap().methods;
    let witnesses: Vec<Option<&str>> =
        methods.iter().map(|one| one.witness.as_ref().and_then(|one| one.value.as_str())).collect();
    assert_eq!(witnesses, [Some("hypervisor"), None], "nobody watches the witness");

    // Under names of their own, and joined: the witness stands at the second.
    let action = "    action: reboot\n    witness: hypervisor\n";
    let on = "  - name: power-on\n    plugin: ipmi\n    parameters:\n      address: \
               ${inventory['bmc-address']}\n      privilege-level: operator\n    \
               credentials:\n    - secret: bmc-credentials\n    action: \"on\"\n  - name: power-off\n";
    let split = WITNESS
        .replace(action, "    action: \"off\"\n    witness: hypervisor\n")
        .replace("  - name: power\n    plugin", &format!("{on}    plugin"))
        .replace("methods: [power]", "methods: [power-off, power-on]");
    let shown = shown_of(&node, &[("remedy.yaml", &remedy), ("fence.yaml", &split)]);
    let power = &shown.plan.as_ref().unwrap().methods[0];
    assert_eq!(power.name, "power", "{:?}", shown.missing);
    let from = &power.witness.as_ref().unwrap().from;
    assert!(from.ends_with(": spec.methods[1].witness"), "{from}");
}

/// A template's value is told from a method's own, and no password is shown in either form.
#[test]
fn a_config_map_that_names_the_node_goes_before_a_selector() {
    let files = [("remedy.yaml", REMEDY), ("fence.yaml", IPMI), ("own.yaml", OWN)];
    let shown = shown(&files);
    let text = shown.to_string();
    let json = serde_json::to_string(&shown).unwrap();
    assert!(!text.contains("hunter2") && !json.contains("hunter2"));
    let plan = text.split("plan ConfigMap").nth(1).unwrap().split("released").next().unwrap();
    expect![[r#"
        /fence-config-w1
          powerManagement: power_management: all of bmc
          method bmc: ipmi, device ipmi/192.0.2.12
            address = 192.0.2.12  own.yaml:10:5: data.fence-method-bmc.ipaddr
            privilege-level = operator  own.yaml:19:12: data.privlvl
            credential default: IN PLAIN TEXT in ConfigMap fence-method-template-ipmi
            bound by the identity that the device reports
          grant {"plugin":"ipmi","cidrs":["192.0.2.12/32"]}
    "#]]
    .assert_eq(plan);
    expect![[r#"
        policy: remedy.yaml, whose nodeSelector is the only one that selects the node
        plan: ConfigMap/fence-config-w1, which names the node; it goes before fence.yaml"#]]
    .assert_eq(&shown.precedence.join("\n"));
}

/// Of two outlets one was tried, for this very Node; of a Node made anew none was.
#[test]
fn each_plug_is_shown_with_what_binds_it_to_the_node() {
    let labels = "labels: {node-remedy.io/fence: ipmi}";
    let outlets = "uid: uid-a\n  labels: {node-remedy.io/fence: apc-pdu}";
    let node = NODE.replace(labels, outlets);
    let node = &*node.replace("bmc-address\n    w1,192.0.2.11", "outlet-a,outlet-b\n    w1,3,4");
    let facts = NodeFacts {
        name: "w1".to_owned(),
        inventory: [("a", "3"), ("b", "4")]
            .map(|(feed, plug)| (format!("outlet-{feed}"), plug.to_owned()))
            .into(),
        ..NodeFacts::default()
    };
    let documents = Document::read_all("pdu.yaml", PDU).value.unwrap();
    let plan = plan::read(&documents[0])
        .value
        .unwrap()
        .plan_for(&facts, &std::collections::BTreeSet::new())
        .value
        .unwrap();
    let outlet = plan.methods.iter().find(|method| method.name == "outlet-a").unwrap();
    let node_a =
        node_remedy_api::nodefence::FencedNode { uid: "uid-a".to_owned(), ..Default::default() };
    let tried = Tried::now(&node_a, outlet, &[], Moment::from_ms(0), "alice");
    let data = Wiring::default().with(tried).data();
    let kept = serde_json::json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data,
        "metadata": {"name": "wiring-w1", "namespace": "node-remedy"}});
    let bound = |node: &str, kept: &str| -> Vec<String> {
        let files = [("remedy.yaml", REMEDY), ("pdu.yaml", PDU), ("kept.yaml", kept)];
        let shown = shown_of(node, &files);
        assert_eq!(
            shown.problems.iter().any(|one| one.contains("no trial of wiring")),
            kept == BROKEN
        );
        let methods = shown.plan.unwrap().methods;
        methods.into_iter().filter_map(|method| method.bound).collect()
    };
    let untried = "nothing: its wiring was never verified, so it is not switched; run node-remedy verify-wiring, or set \
                   trustWiring: true";
    let verified = "its wiring, verified at 1970-01-01T00:00:00.000Z by alice";
    assert_eq!(bound(node, &kept.to_string()), [verified, untried]);
    let anew = node.replace("uid-a", "uid-b");
    assert_eq!(bound(&anew, &kept.to_string()), [untried, untried]);
    assert_eq!(bound(node, BROKEN), [untried, untried]);
}

const BROKEN: &str = "kind: ConfigMap
apiVersion: v1
metadata: {name: wiring-w1}
data: {wiring.json: '{}'}
";

#[test]
fn inventories_and_config_maps_with_policies_are_origins_too() {
    let document: String = REMEDY_DOCUMENT.lines().map(|line| format!("    {line}\n")).collect();
    let inside = format!(
        "kind: ConfigMap\napiVersion: v1\nmetadata: {{name: remedies}}\ndata:\n  all.yaml: |\n{document}"
    );
    let table = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: nodes}\ndata: {table: \"node,bmc\\nw1,192.0.2.13\\n\"}\n";
    let fence = IPMI
        .replace("${inventory['bmc-address']}", "${inventory['bmc']}")
        .replace("{configMap: machines, key: nodes.csv}", "{configMap: nodes, key: table}");
    let shown = shown(&[("remedies.yaml", &inside), ("fence.yaml", &fence), ("nodes.yaml", table)]);
    assert_eq!(shown.missing, [""; 0]);
    let text = shown.to_string();
    let line =
        |part: &str| text.lines().find(|line| line.contains(part)).unwrap().trim().to_owned();
    expect!["backoff              9s         remedies.yaml: ConfigMap/remedies[all.yaml]:8:12: policies.backoff"].assert_eq(&line("backoff"));
    expect!["address = 192.0.2.13  ${inventory['bmc']} in fence.yaml:21:16: spec.templates[0].parameters.address"].assert_eq(&line("address ="));
}

/// The proposal's document, as short as it can be.
const REMEDY_DOCUMENT: &str = "apiVersion: node-remedy/v1alpha
kind: Configuration
thresholdConfigs:
- nodeLeaseAge: 20s
  remedy1:
  - name: fence
policies:
  backoff: 9s
";

#[test]
fn what_is_missing_is_named() {
    missing(
        &[("fence.yaml", IPMI)],
        expect![[r#"
        no RemedyConfiguration and no Configuration selects the node: nothing is done about it
    "#]],
    );
    missing(
        &[("remedy.yaml", REMEDY)],
        expect![[r#"
        no ConfigMap names the node, no FenceConfiguration selects it, and its providerID is of no known cloud: nobody knows how it is fenced
    "#]],
    );
    let other = REMEDY.replace("name: bare-metal", "name: other");
    missing(
        &[("a.yaml", REMEDY), ("b.yaml", &other), ("fence.yaml", IPMI)],
        expect![[r#"
        node w1 is selected by a.yaml and by b.yaml; change a nodeSelector so that one does
    "#]],
    );
    let ungranted = IPMI.replace("192.0.2.0/24", "198.51.100.0/24");
    missing(
        &[("remedy.yaml", REMEDY), ("fence.yaml", &ungranted)],
        expect![[r#"
        method power: failed to grant endpoint 'bmc' (parameter 'address'): found 192.0.2.11:623, which no granted range holds; add 192.0.2.11/32 to grants.cidrs
    "#]],
    );
    let unannotated = IPMI.replace("bmc-address", "other-address");
    missing(
        &[("remedy.yaml", REMEDY), ("fence.yaml", &unannotated)],
        expect![[r#"
        fence.yaml:21:16: spec.templates[0].parameters.address: found node w1 without column other-address in the inventory, expected one
    "#]],
    );
    let plugin = REMEDY.replacen("name: fence", "name: own", 1).replacen(
        "mode: enforce\n",
        "mode: shadow\n  remedyConfigs: [{ name: own, plugin: own }]\n",
        1,
    );
    missing(
        &[("remedy.yaml", &plugin), ("fence.yaml", IPMI)],
        expect![[r#"
            remedy own: found no FencePlugin "own", expected one of kind remedy
        "#]],
    );
}

/// The controller opens no incident of these, and says the same.
#[test]
fn a_plan_that_would_be_refused_is_said_to_be() {
    let labels = "labels: {node-remedy.io/fence: snmp-switch}";
    let node = NODE.replace("labels: {node-remedy.io/fence: ipmi}", labels).replace(
        "bmc-address\n    w1,192.0.2.11",
        "bmc-address,switch-port\n    w1,192.0.2.13,Gi1",
    );
    let remedy = REMEDY.replace("node-remedy.io/fence=ipmi", "node-remedy.io/fence=snmp-switch");
    let power = "  powerManagement:\n  - name: power\n    methods: [power]\n";
    let port_alone = SWITCH.replace(power, "");
    assert_ne!(port_alone, SWITCH);
    let isolated = "  policies: {parkIsolated: true}\n";
    let policies = remedy.find("  policies:").unwrap();
    let parks = format!("{}{isolated}", &remedy[..policies]);
    let storage_fence = remedy.replace("name: fence", "name: storage-fence");
    let isolation = port_alone.find("  isolation:").unwrap();
    let grants = port_alone.find("  grants:").unwrap();
    let power_alone = format!("{}{power}{}", &SWITCH[..isolation], &port_alone[grants..]);
    let itself = "the plan cuts the node's way to the API server and has no power method, so the node could \
                  never come back; add one, or set parkIsolated: true";
    let rows = [
        ("whole", &remedy, SWITCH, ""),
        ("the port alone", &remedy, &port_alone, itself),
        ("the port alone, by intent", &parks, &port_alone, ""),
        ("isolation of a plan with power", &storage_fence, SWITCH, itself),
        (
            "no isolation",
            &storage_fence,
            &power_alone,
            "the plan neither isolates nor switches off",
        ),
        ("power alone", &remedy, &power_alone, ""),
    ];
    for (case, remedy, fence, expected) in rows {
        let shown = shown_of(&node, &[("remedy.yaml", remedy), ("fence.yaml", fence)]);
        assert_eq!(shown.missing.join("; "), expected, "{case}");
    }
}

#[test]
fn a_ladder_of_jobs_needs_no_plan() {
    let job = "apiVersion: node-remedy/v1alpha\nkind: Configuration\nthresholdConfigs:\n- nodeLeaseAge: 20s\n  \
               remedy1: [{name: mend}]\nremedyConfigs:\n- name: mend\n  podTemplate: {spec: {containers: [{name: a, image: b}]}}\n";
    let shown = shown(&[("remedy.yaml", job)]);
    assert_eq!(shown.missing, [""; 0]);
    assert_eq!(shown.precedence[1], "plan: none is needed, no remedy fences");
}

/// A plugin from outside is known by what the controller that loaded it wrote into its FencePlugin.
#[test]
fn a_plugin_from_outside_is_judged_by_what_its_status_says_of_it() {
    let sandbox = Sandbox::new().unwrap();
    let (manifest, digest) = Plugins::new(sandbox).about("ipmi").unwrap();
    let text = manifest.text().replace("\"ipmi\"", "\"my-bmc\"");
    let plugin = |status: &str| {
        format!(
            "apiVersion: node-remedy.io/v1alpha1\nkind: FencePlugin\nmetadata: {{name: my-bmc}}\nspec:\n  \
             digest: {digest}\n  source: {{configMap: {{name: my-bmc, key: my-bmc.wasm}}}}\nstatus: {status}\n"
        )
    };
    let fence = IPMI.replace("plugin: ipmi", "plugin: my-bmc");
    let said = |fence: &str, status: &str| {
        let files = [("remedy.yaml", REMEDY), ("fence.yaml", fence), ("p.yaml", &plugin(status))];
        shown(&files).missing.join("; ")
    };
    let loaded = serde_json::json!({"digest": digest.to_string(), "pluginManifest": text});
    let loaded = loaded.to_string();
    assert_eq!(said(&fence, &loaded), "");
    let wrong = fence.replace("operator\n", "emperor\n");
    assert!(said(&wrong, &loaded).contains("emperor"), "{}", said(&wrong, &loaded));
    let not_yet = said(&fence, "{}");
    assert!(
        not_yet.contains("FencePlugin my-bmc is not loaded: no controller has loaded it"),
        "{not_yet}"
    );
    let unread = said(&fence, "{digest: none, pluginManifest: '{}'}");
    assert!(unread.contains("failed to read the manifest"), "{unread}");
}
