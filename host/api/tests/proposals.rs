//! The documents that the two proposals print, read as they are printed: placeholders are filled in, and
//! only what is no YAML was changed. What their prose says of a value is what it is read as.

use std::collections::BTreeSet;

use expect_test::expect;
use litemap::LiteMap;
use node_remedy_api::configuration::Configuration;
use node_remedy_api::plan::{self, Builtin, NodeFacts};
use node_remedy_api::policy::{GateLimits, IncidentPolicy};

use crate::fences::{node, plan_of, sketch};
use crate::{lines, policies, read};

/// The remedy configuration of proposal 000.
const CONFIGURATION: &str = include_str!("proposals/000-configuration.yaml");
/// Its bare-metal node, whose templates it leaves to its examples.
const BARE_METAL: [(&str, &str); 2] = [
    ("node.yaml", include_str!("proposals/000-fence-config.yaml")),
    ("templates.yaml", include_str!("fixtures/templates.yaml")),
];
/// Its default for a cloud's node.
const CLOUD: (&str, &str) = ("cloud.yaml", include_str!("proposals/000-fence-config-cloud.yaml"));
/// The objects of proposal 001, whose `metadata` is a list of one.
const OBJECTS: [(&str, &str); 6] = [
    ("method.yaml", include_str!("proposals/001-fence-method.yaml")),
    ("template.yaml", include_str!("proposals/001-fence-method-template.yaml")),
    ("node.yaml", include_str!("proposals/001-node-fence-config.yaml")),
    ("power.yaml", include_str!("proposals/001-fence-stage-power.yaml")),
    ("cordon.yaml", include_str!("proposals/001-fence-stage-cordon.yaml")),
    ("keep-away.yaml", include_str!("proposals/001-fence-stage-keep-away.yaml")),
];
const UNCORDON: (&str, &str) =
    ("uncordon.yaml", include_str!("proposals/001-fence-stage-uncordon.yaml"));

fn configuration() -> Configuration {
    read(&[("000.yaml", CONFIGURATION)])
}

/// Proposal 001's objects, with one text replaced in all of them.
fn objects(from: &str, to: &str) -> Configuration {
    let files = OBJECTS.iter().chain([&UNCORDON]);
    let files: Vec<(&str, String)> =
        files.map(|(name, text)| (*name, text.replace(from, to))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    read(&files)
}

#[test]
fn the_configuration_is_read_as_printed() {
    let configuration = configuration();
    expect![[r#"
        Enforce true
        Ready=False,Unknown for 5s
          repair then 3m clean=false: PodTemplate within 30m {"spec":{"containers":[{"command":["binary","clean node command"],"envFrom":[{"secretRef":{"name":"secret-key"}}],"image":"IMAGE:VERSION","name":"repair","volumeMounts":[{"mountPath":"/etc/node-remedy/configmaps/fence-method-config","name":"configmap-fence-method-config","readOnly":true}]}],"restartPolicy":"Never","volumes":[{"configMap":{"name":"fence-method-config"},"name":"configmap-fence-method-config"}]}}
          terminate then 5s clean=true: PodTemplate within 30m {"spec":{"containers":[{"command":["binary","terminate node command"],"image":"IMAGE:VERSION","name":"terminate"}],"restartPolicy":"Never"}}
        DiskPressure=True for 10m
          storage-fence then 10m clean=true: Isolation
    "#]].assert_eq(&policies::sketch(&configuration.policies[0]));
    expect![[r#"
        000.yaml:16:23: thresholdConfigs[0].remedy2[1].clean-resourece: warning: read as clean-resource; write clean-resource
        000.yaml:24:23: thresholdConfigs[1].remedy1[1].clean-resourece: warning: read as clean-resource; write clean-resource
    "#]].assert_eq(&lines(&configuration.problems));
    let policy = &configuration.policies[0];
    let labels = |value: &str| LiteMap::from_iter([("type".to_owned(), value.to_owned())]);
    assert!(policy.selects(&labels("compute")) && !policy.selects(&labels("accelerated")));
}

/// Both proposals: numbers that nobody wrote are the defaults.
#[test]
fn what_the_configuration_does_not_say_is_the_default() {
    let policy = &configuration().policies[0];
    assert_eq!(policy.incident, IncidentPolicy::default());
    assert_eq!(policy.gate, GateLimits::default());
    assert_eq!(policy.gate.max_in_flight, 1, "only one node at a given time");
}

#[test]
fn the_bare_metal_node_is_read_as_printed() {
    let configuration = read(&BARE_METAL);
    assert!(!configuration.problems.has_errors(), "{}", configuration.problems);
    expect![[r#"
        ConfigMap/fence-config-w1
        0 fc: brocade-rest plug="2" device="brocade-rest/192.0.2.40" address=192.0.2.40 default:{"secret":{"name":"switch-credentials","identityKey":"username","secretKey":"password"}}
        1 eaton: eaton-pdu plug="1" device="eaton-pdu/192.0.2.41" address=192.0.2.41 default:{"configMap":{"name":"fence-method-template-eaton-pdu","entry":"template.properties","identityKey":"login","secretKey":"passwd"}}
        isolation: isolation All [0]
        power: power_management All [1]
        recovery: recovery All [0]
        grant {"plugin":"brocade-rest","cidrs":["192.0.2.40/32"]}
        grant {"plugin":"eaton-pdu","cidrs":["192.0.2.41/32"]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

/// A PDU's outlet proves a machine off only where it is all that feeds it; who knows that says so in the
/// template, or in the method.
#[test]
fn an_outlet_of_the_bare_metal_node_is_said_to_be_its_only_feed_and_its_own() {
    let [(node_name, node_text), (templates_name, templates)] = BARE_METAL;
    let agent = "agent_name=fence_eaton_snmp";
    for (said, expected) in
        [("", Some(false)), ("yes", Some(true)), ("no", Some(false)), ("so", None)]
    {
        let line = match said {
            "" => String::new(),
            said => format!("\n      sole_feed={said}\n      trust_wiring={said}"),
        };
        let templates = templates.replace(agent, &format!("{agent}{line}"));
        let configuration = read(&[(node_name, node_text), (templates_name, &templates)]);
        let plan = configuration
            .fences
            .first()
            .map(|fence| fence.plan_for(&node("w1"), &BTreeSet::new()).value);
        let found = plan.flatten().and_then(|plan| {
            let eaton = plan.methods.into_iter().find(|method| method.name == "eaton")?;
            Some((eaton.sole_feed, eaton.trust_wiring))
        });
        let expected = expected.map(|is_said| (is_said, is_said));
        assert_eq!(found, expected, "{said:?}: {}", configuration.problems);
    }
}

#[test]
fn the_cloud_node_is_read_as_printed_and_told_what_its_recovery_leaves() {
    let configuration = read(&[CLOUD]);
    expect![[r#"
        cloud.yaml:10:5: data["config.properties"].recovery: warning: mark-unschedulable in recovery leaves the node cordoned; mark-schedulable is what undoes isolation
    "#]].assert_eq(&lines(&configuration.problems));
    let aws = NodeFacts { provider_id: "aws:///eu-1a/i-0123".to_owned(), ..node("w1") };
    expect![[r#"
        ConfigMap/fence-config-w1
        0 mark-unschedulable: MarkUnschedulable plug="" device=""
        1 restart-instance: aws plug="aws:///eu-1a/i-0123" device="aws/aws:///eu-1a/i-0123" region=eu-1 default:{"secret":{"name":"aws-credentials","identityKey":"username","secretKey":"password"}}
        isolation: isolation All [0]
        power: power_management All [1]
        recovery: recovery All [0]
        grant {"plugin":"aws","hosts":["ec2.eu-1.amazonaws.com","autoscaling.eu-1.amazonaws.com"],"ports":[443]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &aws));
    expect![[r#"
        cloud.yaml:9:5: data["config.properties"].power_management: found node w1 with providerID "", expected one of a known provider
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

/// "Given this configuration is default, it does not have to be specified at all."
#[test]
fn a_cloud_node_needs_no_configuration_and_is_schedulable_again_in_the_end() {
    let aws = NodeFacts { provider_id: "aws:///eu-1a/i-0123".to_owned(), ..node("w1") };
    let plan = plan::default_plan(&aws).unwrap();
    expect![[r#"
        default for cloud nodes
        0 mark-unschedulable: MarkUnschedulable plug="" device=""
        1 restart-instance: aws plug="aws:///eu-1a/i-0123" device="aws/aws:///eu-1a/i-0123" region=eu-1 default:{"secret":{"name":"aws-credentials","identityKey":"username","secretKey":"password"}}
        2 mark-schedulable: MarkSchedulable plug="" device=""
        isolation: isolation All [0]
        power: power-management All [1]
        recovery: recovery All [2]
        grant {"plugin":"aws","hosts":["ec2.eu-1.amazonaws.com","autoscaling.eu-1.amazonaws.com"],"ports":[443]}
    "#]].assert_eq(&sketch(&plan));
    let last = &plan.methods[plan.recovery[0].methods[0] as usize];
    assert_eq!(last.builtin, Some(Builtin::MarkSchedulable));
    assert_eq!(plan::default_plan(&node("w1")), None);
}

/// Of the stages of one step the smaller priority comes first, whatever their numbers; a method's own
/// parameter goes before its template's.
#[test]
fn the_objects_are_read_as_printed() {
    let configuration = objects("", "");
    assert_eq!(lines(&configuration.problems), "");
    expect![[r#"
        ConfigMap/node_fence_config, ConfigMap/fence_stage_keep_away, ConfigMap/fence_stage_cordon, ConfigMap/fence_stage_power, ConfigMap/fence_stage_uncordon
        0 quarantine: Quarantine plug="" device=""
        1 mark-unschedulable: MarkUnschedulable plug="" device=""
        2 fence_method: ipmi plug="" device="ipmi/192.0.2.11:6230" address=192.0.2.11:6230 privilege-level=operator default:{"secret":{"name":"bmc-credentials","identityKey":"username","secretKey":"password"}} must-success
        3 mark-schedulable: MarkSchedulable plug="" device=""
        isolation: keep_away OnlyOne [0, 1]
        isolation: cordon All [1]
        power: power All [2]
        recovery: uncordon All [3]
        grant {"plugin":"ipmi","cidrs":["192.0.2.11/32"],"ports":[6230]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

#[test]
fn what_a_stage_and_a_template_say_is_what_the_plan_does() {
    let stages = |from: &str, to: &str| -> Vec<String> {
        let configuration = objects(from, to);
        let text = plan_of(&configuration.fences[0], &node("w1"));
        text.lines().filter(|line| line.starts_with("isolation")).map(str::to_owned).collect()
    };
    expect![[r#"
        isolation: cordon All [0]
        isolation: keep_away OnlyOne [1, 0]"#]]
    .assert_eq(&stages("priority: 4", "priority: 2").join("\n"));
    expect![[r#"
        isolation: keep_away All [0, 1]
        isolation: cordon All [1]"#]]
    .assert_eq(&stages("only one", "all").join("\n"));
    let power = |from: &str, to: &str| {
        let plan =
            objects(from, to).fences[0].plan_for(&node("w1"), &BTreeSet::new()).value.unwrap();
        plan.methods.into_iter().find(|method| method.plugin.is_some()).unwrap()
    };
    assert!(power("", "").must_success);
    assert!(!power("must_success: yes", "must_success: no").must_success);
    let own = power("", "");
    assert_eq!(own.parameters["address"], "192.0.2.11:6230", "the method's own value wins");
    assert_eq!(own.parameters["privilege-level"], "operator", "the template's default");
    let shared = power("  ipaddr: 192.0.2.11\n", "");
    assert_eq!(shared.parameters["address"], "192.0.2.99:6230");
}

/// "Node without NodeFenceConfig configmap won't be managed".
#[test]
fn a_node_without_its_own_objects_has_no_plan() {
    let fences = objects("", "").fences;
    let found = |name| plan::for_node(name, &LiteMap::new(), &fences).unwrap().is_some();
    assert!(found("w1") && !found("w2"));
}
