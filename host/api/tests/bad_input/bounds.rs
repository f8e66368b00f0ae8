//! What is far too large, goes in circles or hides: an error with its place. Each is read in no time;
//! what is not bounded here would not end.

use expect_test::{Expect, expect};
use node_remedy_api::document::Document;
use node_remedy_api::{limits, plan};
use serde_json::json;

use super::{FENCE, NODE, POLICY};
use crate::{lines, read};

/// The first problem of a text, which is refused.
fn first(text: &str, expected: Expect) {
    let configuration = read(&[("f.yaml", text)]);
    assert!(configuration.problems.has_errors());
    assert!(configuration.policies.is_empty() && configuration.fences.is_empty());
    assert!(configuration.problems.iter().count() <= limits::PROBLEMS_MAX);
    expected.assert_eq(lines(&configuration.problems).lines().next().unwrap_or_default());
}

/// A FenceConfiguration with so many methods; a mebibyte holds fewer than 10⁵ of them.
fn methods(count: usize) -> String {
    let method = |number| format!("  - {{name: m{number}, plugin: ipmi, action: off}}\n");
    let methods: String = (0..count).map(method).collect();
    FENCE.replacen("  methods:\n", &format!("  methods:\n{methods}"), 1)
}

#[test]
fn what_is_far_too_large_is_refused_at_once() {
    assert!(FENCE.contains("  methods:\n"), "the document has methods");
    first(&methods(100_000), expect!["f.yaml: found 4590303 bytes, expected at most 1048576"]);
    first(
        &methods(15_000),
        expect![
            "f.yaml:14308:6: found more than 100000 values with aliases expanded, expected a smaller document"
        ],
    );
    let lines: String = (0..60_000).map(|number| format!("    m{number}=x\n")).collect();
    let grown = NODE.replacen("    node_name=", &format!("{lines}    node_name="), 1);
    assert!(grown.len() > NODE.len());
    first(
        &grown,
        expect![[
            r#"f.yaml:6:5: data["config.properties"].m0: found an unknown field, expected one of node_name, isolation, power_management, recovery"#
        ]],
    );
    let thresholds = "- nodeLeaseAge: 20s\n  remedy1: [{name: fence}]\n".repeat(15_000);
    let flat = format!(
        "apiVersion: node-remedy/v1alpha\nkind: Configuration\nthresholdConfigs:\n{thresholds}"
    );
    first(
        &flat,
        expect![
            "f.yaml:25002:3: found more than 100000 values with aliases expanded, expected a smaller document"
        ],
    );
}

/// Each document keeps the lines that its places are in: the same ones, or a mebibyte would become gibibytes.
#[test]
fn very_many_documents_share_their_text() {
    let text = "---\na: 1\n".repeat(30_000);
    let long = "# ".repeat(limits::DOCUMENT_BYTES_MAX / 2 - text.len());
    let documents = Document::read_all("f.yaml", &format!("{text}{long}")).value;
    assert_eq!(documents.expect("documents").len(), 30_000);
    first(
        &text,
        expect![[
            r#"f.yaml:2:1: kind: found kind "", expected Configuration, RemedyConfiguration, FenceConfiguration, FencePlugin, ConfigMap"#
        ]],
    );
    let listed = "- {kind: Configuration, apiVersion: x}\n".repeat(15_000);
    first(
        &format!("kind: List\nitems:\n{listed}"),
        expect![[
            r#"f.yaml:3:3: found apiVersion "x" and kind "Configuration", expected node-remedy/v1alpha Configuration or node-remedy.io/v1alpha1 RemedyConfiguration"#
        ]],
    );
}

/// Few values, and each of them long.
#[test]
fn a_bomb_of_one_long_text_is_refused() {
    let long = "y".repeat(300 * 1024);
    let aliases = vec!["*a"; 90_000].join(",");
    first(
        &format!("a: &a {long}\nb: [{aliases}]\n"),
        expect![
            "f.yaml:2:14: found aliases that stand for more than 1048576 bytes, expected a smaller document"
        ],
    );
    first(
        &format!("a: &a\n  ? {long}\n  : 1\nb: [{aliases}]\n"),
        expect![
            "f.yaml:4:14: found aliases that stand for more than 1048576 bytes, expected a smaller document"
        ],
    );
}

/// As the API server would give it, were its own limits away: an object has no lines.
#[test]
fn an_object_of_a_mebibyte_is_refused_by_its_path() {
    let methods: Vec<_> = (0..20_000)
        .map(|number| json!({"name": format!("m{number}"), "plugin": "ipmi", "action": "off"}))
        .collect();
    let object = json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FenceConfiguration",
        "metadata": {"name": "large"},
        "spec": {"nodeSelector": "a=b", "methods": methods},
    });
    let reading = plan::read(&Document::from_object(&object));
    assert!(reading.value.is_none());
    expect!["FenceConfiguration/large: spec.methods: found 20000 items, expected at most 256"]
        .assert_eq(lines(&reading.problems).lines().next().unwrap_or_default());
}

/// A bomb inside of a ConfigMap is one, too, and takes no other key with it.
#[test]
fn a_bomb_in_a_config_map_is_named_by_its_key() {
    let mut bomb = "    kind: Configuration\n    a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g"].iter().zip("abcdef".chars()) {
        bomb += &format!("    {name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(","));
    }
    let sound: String =
        "apiVersion: node-remedy/v1alpha\nkind: Configuration\nthresholdConfigs:\n- nodeLeaseAge: 20s\n  remedy1: [{name: fence}]\n"
            .lines()
            .map(|line| format!("    {line}\n"))
            .collect();
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  bomb: |\n{bomb}  sound: |\n{sound}"
    );
    let configuration = read(&[("f.yaml", &text)]);
    assert_eq!(configuration.policies.len(), 1);
    expect![[r#"
        f.yaml: ConfigMap/c[bomb]:6:29: found more than 100000 values with aliases expanded, expected a smaller document
    "#]].assert_eq(&lines(&configuration.problems));
}

/// Templates are one step deep, so that none can lead back to itself.
#[test]
fn templates_do_not_go_in_circles() {
    let template = |name: &str, other: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fence-method-template-{name}}}\ndata:\n  \
             template: {other}\n  agent_name: fence_ipmilan\n  ipaddr: 192.0.2.1\n"
        )
    };
    let node = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fence-config-w1}\ndata:\n  \
                config.properties: |-\n    node_name=w1\n    power_management=bmc\n  \
                fence-method-bmc: |-\n    template=a\n";
    first(
        &format!("{node}{}{}", template("a", "b"), template("b", "a")),
        expect![
            "f.yaml:15:13: data.template: found a template in a template, expected parameters: templates are one step deep"
        ],
    );
}

/// Editors of another world begin a file with a mark that nobody sees.
#[test]
fn a_byte_order_mark_changes_nothing() {
    for valid in [POLICY, FENCE, NODE] {
        let marked = read(&[("f.yaml", &format!("\u{feff}{valid}"))]);
        assert_eq!(lines(&marked.problems), "");
        assert_eq!(marked.policies.len() + marked.fences.len(), 1);
        let windows = read(&[("f.yaml", &valid.replace('\n', "\r\n"))]);
        assert_eq!(lines(&windows.problems), "");
        assert_eq!(windows.policies.len() + windows.fences.len(), 1);
    }
    let spoilt = format!("\u{feff}{}", POLICY.replacen("kind: ", "kind: X", 1));
    first(
        &spoilt,
        expect![[
            r#"f.yaml:2:7: kind: found kind "XConfiguration", expected Configuration (did you mean that?)"#
        ]],
    );
}
