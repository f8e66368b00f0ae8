//! Policies: the proposal's document exactly as it is printed, the example that users start from,
//! and the same as an object of the API server.

use expect_test::expect;
use litemap::LiteMap;
use node_remedy_api::configuration::Configuration;
use node_remedy_api::document::Document;
use node_remedy_api::policy::{self, Mode, Policy, Remedy, RemedyStep, Symptom};
use node_remedy_api::remedyconfiguration::SymptomConfig;

use crate::{lines, read};

const PROPOSAL: &str = include_str!("proposals/000-configuration.yaml");
const EXAMPLE: &str = include_str!("../../../examples/config/remedy.yaml");

/// A policy in a few lines.
pub(crate) fn sketch(policy: &Policy) -> String {
    let mut text = format!("{:?} {:?}\n", policy.mode, policy.selector.is_some());
    for threshold in &policy.thresholds {
        text += &format!("{} for {}\n", threshold.symptom, threshold.period);
        for remedy_step in &threshold.ladder {
            let RemedyStep { name, remedy, period, clean_resource } = remedy_step;
            let remedy = match remedy {
                Remedy::PodTemplate(job) => {
                    format!("PodTemplate within {} {}", job.deadline, job.pod_template)
                }
                other => format!("{other:?}"),
            };
            text += &format!("  {name} then {period} clean={clean_resource}: {remedy}\n");
        }
    }
    text
}

#[test]
fn a_remedy_may_be_a_plugin_by_its_name() {
    let with = |remedies: &str, remedy_step: &str| {
        let text = format!(
            "apiVersion: node-remedy.io/v1alpha1\nkind: RemedyConfiguration\nmetadata: {{ name: own }}\n\
             spec:\n  thresholdConfigs:\n  - nodeConditionType: Ready\n    nodeConditionStatus: false\n    \
             nodeConditionPeriod: 1m\n    remedy1: [{{ name: own }}{remedy_step}]\n    remedy2: [{{ name: fence \
             }}]\n  remedyConfigs:\n  - {{ name: own, {remedies} }}\n"
        );
        read(&[("own.yaml", &text)])
    };
    let configuration = with("plugin: polite", "");
    assert_eq!(lines(&configuration.problems), "");
    let ladder = &configuration.policies[0].thresholds[0].ladder;
    assert_eq!(ladder[0].remedy, Remedy::Plugin("polite".to_owned()));
    assert!(!ladder[0].remedy.is_of_plan() && ladder[0].remedy.may_be_of_plan());
    for (remedies, remedy_step, expected) in [
        (
            "plugin: Polite",
            "",
            expect![[r#"
                own.yaml:12:26: spec.remedyConfigs[0].plugin: found "Polite", expected the name of a FencePlugin of kind remedy: 1 to 40 of a-z, 0-9 and -
            "#]],
        ),
        (
            "plugin: polite, fence: {}",
            "",
            expect![[r#"
                own.yaml:10:14: spec.thresholdConfigs[0].remedy2: found "fence" after "own", expected one fence in a ladder, before it at most its methods, each once, and then storage-fence: steps that follow one another are stages of the FenceConfiguration
                own.yaml:12:5: spec.remedyConfigs[0]: found several of the ways to remedy, expected exactly one of fence, method, cluster, podTemplate, plugin
            "#]],
        ),
        (
            "plugin: polite, deadline: 1m",
            "",
            expect![[r#"
                own.yaml:12:44: spec.remedyConfigs[0].deadline: found it without podTemplate, expected it beside one
            "#]],
        ),
        (
            "plugin: polite",
            ", { clean-resource: true }",
            expect![[r#"
                own.yaml:9:14: spec.thresholdConfigs[0].remedy1: warning: found clean-resource at the plugin polite, which decides and whose word releases nothing
            "#]],
        ),
    ] {
        expected.assert_eq(&lines(&with(remedies, remedy_step).problems));
    }
}

/// What is written of a symptom is read as the very same one, whichever it is.
#[test]
fn a_symptom_of_every_kind_comes_back_from_its_record() {
    let configuration = read(&[("symptoms.yaml", crate::bad_input::SYMPTOMS)]);
    let policy = &configuration.policies[0];
    expect![[r#"
        Enforce false
        KernelDeadlock=True (DockerHung) and (Ready=True or Lease older than 40s) and not (Maintenance=True) for 5m
          fence then 5m clean=false: Fence
        3 Warning Events KernelOops of kernel-monitor in 10m for 0s
          drain then 10m clean=false: Cluster(Drain)
        Ready changed 6 times in 30m for 0s
          fence then 30m clean=false: Fence
        never joined in 20m for 0s
          fence then 20m clean=false: Fence
    "#]].assert_eq(&sketch(policy));
    for threshold in &policy.thresholds {
        let written = serde_json::to_value(threshold.symptom.written()).unwrap();
        let read = Symptom::of_record(&serde_json::from_value(written).unwrap());
        assert_eq!(read.as_ref(), Some(&threshold.symptom));
    }
    assert_eq!(Symptom::of_record(&SymptomConfig::default()), None);
}

#[test]
fn the_example_is_valid_and_enforced() {
    let configuration = read(&[("remedy.yaml", EXAMPLE)]);
    assert_eq!(lines(&configuration.problems), "");
    expect![[r#"
        Enforce true
        Ready=False,Unknown for 5s
          fence then 5s clean=false: Fence
        Lease older than 20s for 0s
          fence then 20s clean=false: Fence
    "#]]
    .assert_eq(&sketch(&configuration.policies[0]));
    assert_eq!(configuration.policies[0].mode, Mode::Enforce);
    assert_eq!(configuration.policies[0].name, "bare-metal");
    assert_eq!(configuration.policies[0].gate.max_unhealthy_percent, 30);
}

#[test]
fn an_object_of_the_api_server_is_read_alike_and_named_by_kind_and_name() {
    let file = Document::read_all("remedy.yaml", EXAMPLE).value.unwrap().remove(0);
    let mut object = file.root.to_json();
    let from_file = policy::read(&file).value.unwrap();
    let from_object = policy::read(&Document::from_object(&object)).value.unwrap();
    assert_eq!(Policy { origin: from_file.origin.clone(), ..from_object }, from_file);

    object["spec"]["thresholdConfigs"][1]["nodeLeaseAge"] = "-3s".into();
    let refused = policy::read(&Document::from_object(&object));
    assert!(refused.value.is_none());
    expect![[r#"
        RemedyConfiguration/bare-metal: spec.thresholdConfigs[1].nodeLeaseAge: found "-3s", expected a length of time that is not negative, such as 5s
    "#]].assert_eq(&lines(&refused.problems));
}

#[test]
fn a_config_map_may_hold_the_document() {
    let document: String = PROPOSAL.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: remedies}}\ndata:\n  config.yaml: |\n\
         {document}    mode: shadow\n"
    );
    let configuration = read(&[("cm.yaml", &text)]);
    assert_eq!(configuration.policies.len(), 1, "{}", configuration.problems);
    assert_eq!(configuration.policies[0].thresholds.len(), 2);
}

#[test]
fn two_policies_for_one_node_are_refused_by_name() {
    let other = EXAMPLE.replace("name: bare-metal", "name: other");
    let Configuration { policies, .. } = read(&[("a.yaml", EXAMPLE), ("b.yaml", &other)]);
    let labels = LiteMap::from_iter([("node-remedy.io/fence".to_owned(), "ipmi".to_owned())]);
    let refusal = policy::for_node("w1", &labels, &policies).unwrap_err();
    expect!["node w1 is selected by a.yaml and by b.yaml; change a nodeSelector so that one does"]
        .assert_eq(&refusal.to_string());
    assert_eq!(policy::for_node("w1", &LiteMap::new(), &policies), Ok(None));
    let one = policy::for_node("w1", &labels, &policies[..1]).unwrap().unwrap();
    assert_eq!(one.origin, "a.yaml");
}
