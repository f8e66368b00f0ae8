//! Bad input, row by row: every error names file, line, column, path, what was found and what is
//! expected.

use expect_test::{Expect, expect};
use node_remedy_api::document::Document;
use node_remedy_api::limits;

use crate::{lines, read};

const POLICY: &str = "\
apiVersion: node-remedy/v1alpha
kind: Configuration
nodeSelector: type=compute
thresholdConfigs:
- nodeConditionType: Ready
  nodeConditionStatus: false
  nodeConditionPeriod: 5s
  remedy1:
  - name: fence
";

const FENCE: &str = include_str!("../../../examples/config/fence-ipmi.yaml");
const NODE: &str = "\
kind: ConfigMap
apiVersion: v1
metadata: {name: fence-config-w1}
data:
  config.properties: |-
    node_name=w1
    power_management=bmc
  fence-method-bmc: |-
    template=fence-method-template-bmc
    ipaddr=192.0.2.11
    action=reboot
---
kind: ConfigMap
apiVersion: v1
metadata: {name: fence-method-template-bmc}
data:
  method_name: fence_ipmilan
  secret: bmc-credentials
";

/// Replaces one text of a valid document by another and reads it: one row of the table.
fn check(valid: &str, from: &str, to: &str, expected: Expect) {
    assert!(valid.contains(from), "{from:?} is not in the document");
    let text = valid.replacen(from, to, 1);
    let configuration = read(&[("f.yaml", &text)]);
    assert!(configuration.problems.has_errors(), "{to:?} is taken for valid");
    assert!(configuration.policies.is_empty() && configuration.fences.is_empty());
    expected.assert_eq(&lines(&configuration.problems));
}

#[test]
fn the_documents_of_these_tables_are_valid_before_they_are_spoilt() {
    for valid in [POLICY, FENCE, NODE] {
        assert_eq!(lines(&read(&[("f.yaml", valid)]).problems), "");
    }
}

#[test]
fn policies() {
    let check = |from: &str, to: &str, expected: Expect| check(POLICY, from, to, expected);
    check(
        "apiVersion: node-remedy/v1alpha\n",
        "",
        expect![[r#"
        f.yaml:1:1: found apiVersion "" and kind "Configuration", expected node-remedy/v1alpha Configuration or node-remedy.io/v1alpha1 RemedyConfiguration
    "#]],
    );
    check(
        "v1alpha",
        "v2",
        expect![[r#"
        f.yaml:1:1: found apiVersion "node-remedy/v2" and kind "Configuration", expected node-remedy/v1alpha Configuration or node-remedy.io/v1alpha1 RemedyConfiguration
    "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configurations",
        expect![[r#"
        f.yaml:2:7: kind: found kind "Configurations", expected Configuration (did you mean that?)
    "#]],
    );
    check(
        "nodeSelector",
        "nodeselector",
        expect![[r#"
        f.yaml:3:1: nodeselector: found an unknown field, expected nodeSelector (did you mean that?)
    "#]],
    );
    check(
        "type=compute",
        "''",
        expect![[r#"
        f.yaml:3:15: nodeSelector: found an empty text, expected text that is not empty
    "#]],
    );
    check(
        "type=compute",
        "a b",
        expect![[r#"
        f.yaml:3:15: nodeSelector: found "a b", expected a label's key such as type or node-remedy.io/fence in place of "a b"
    "#]],
    );
    check(
        "type=compute",
        "[a]",
        expect![[r#"
            f.yaml:3:15: nodeSelector: found a list, expected text
        "#]],
    );
    check(
        "type=compute",
        "{type: compute}",
        expect![[r#"
            f.yaml:3:15: nodeSelector: found a map, expected text
        "#]],
    );
    check(
        "nodeConditionType: Ready",
        "nodeConditionType: ''",
        expect![[r#"
        f.yaml:5:22: thresholdConfigs[0].nodeConditionType: found an empty text, expected text that is not empty
    "#]],
    );
    check(
        "- nodeConditionType: Ready\n ",
        "-",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0]: found neither nodeConditionType nor nodeLeaseAge, expected one
    "#]],
    );
    check(
        "  nodeConditionStatus: false\n",
        "",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0].nodeConditionStatus: found nothing, expected true, false or Unknown
    "#]],
    );
    check(
        "false",
        "true",
        expect![[r#"
        f.yaml:6:24: thresholdConfigs[0].nodeConditionStatus: found true, expected false or Unknown: a node that is Ready is well
    "#]],
    );
    check(
        "false",
        "yes",
        expect![[r#"
        f.yaml:6:24: thresholdConfigs[0].nodeConditionStatus: found "yes", expected true, false, True, False, Unknown
    "#]],
    );
    check(
        "  nodeConditionPeriod: 5s\n",
        "",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0].nodeConditionPeriod: found nothing, expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "5s",
        "5",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found the number 5, expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "5s",
        "-5s",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found "-5s", expected a length of time that is not negative, such as 5s
    "#]],
    );
    check(
        "5s",
        "0s",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found 0s, expected 1s to 31d
    "#]],
    );
    check(
        "5s",
        "400d",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found 400d, expected 1s to 31d
    "#]],
    );
    check(
        "5s",
        "5 minutes",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found "5 minutes", expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "5s",
        "'5s '",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found "5s ", expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "5s",
        "99999999999999999999s",
        expect![[r#"
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found "99999999999999999999s", expected a length of time below 100 years
    "#]],
    );
    check(
        "5s",
        "5s\n  nodeLeaseAge: 20s",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0]: found nodeConditionType and nodeLeaseAge, expected one of them
    "#]],
    );
    check(
        "remedy1",
        "remedy",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0].remedy1: found nothing, expected a list
        f.yaml:8:3: thresholdConfigs[0].remedy: found an unknown field, expected remedy1 (did you mean that?)
    "#]],
    );
    check(
        "remedy1",
        "remedy2",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0].remedy1: found nothing, expected a list
    "#]],
    );
    check(
        "remedy1",
        "remedy6",
        expect![[r#"
        f.yaml:5:3: thresholdConfigs[0].remedy1: found nothing, expected a list
        f.yaml:8:3: thresholdConfigs[0].remedy6: found an unknown field, expected remedy1 (did you mean that?)
    "#]],
    );
    check(
        "  - name: fence\n",
        "    name: fence\n",
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: found a map, expected a list
    "#]],
    );
    check(
        "- name: fence",
        "- name: fense",
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: found the name "fense", expected a defined remedy (did you mean fence?)
    "#]],
    );
    check(
        "- name: fence",
        "- name: xyz",
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: found the name "xyz", expected a remedy under remedyConfigs, or one of fence, storage-fence, recovery
    "#]],
    );
    check(
        "- name: fence",
        "- period: 3m",
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1: found no name, expected - name: REMEDY
    "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n    period: 3m",
        expect![[r#"
        f.yaml:9:5: thresholdConfigs[0].remedy1[0]: found 2 keys, expected at most 1
    "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n  - name: recovery",
        expect![[r#"
        f.yaml:10:11: thresholdConfigs[0].remedy1[1].name: found it a second time, expected it once
    "#]],
    );
    check(
        "- name: fence",
        "- clean-resource: maybe",
        expect![[r#"
        f.yaml:9:21: thresholdConfigs[0].remedy1[0].clean-resource: found "maybe", expected true or false
    "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n  remedy3:\n  - name: fence",
        expect![[r#"
        f.yaml:11:5: thresholdConfigs[0].remedy3: found it without the remedy before it, expected no gap
    "#]],
    );
    check(
        "thresholdConfigs:",
        "thresholdConfigs: []\nx:",
        expect![[r#"
        f.yaml:4:19: thresholdConfigs: found 0 items, expected at least 1
        f.yaml:5:1: x: found an unknown field, expected one of apiVersion, kind, mode, nodeSelector, policies, remedyConfigs, thresholdConfigs
    "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\nkind: Configuration",
        expect![[r#"
        f.yaml:3:1: found the key "kind" twice, first on line 2
    "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\n- nodeConditionType: Ready\n  nodeConditionStatus: Unknown\n  nodeConditionPeriod: 1h\n  remedy1:\n  - name: fence\n",
        expect![[r#"
            f.yaml:10:3: thresholdConfigs[1]: found the same condition and status as in an earlier threshold, expected one threshold for it
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n",
        expect![[r#"
        f.yaml:11:3: remedyConfigs[0]: found none of the ways to remedy, expected exactly one of fence, method, cluster, podTemplate, plugin
    "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n  fence: {}\n  cluster: quarantine\n",
        expect![[r#"
            f.yaml:11:3: remedyConfigs[0]: found several of the ways to remedy, expected exactly one of fence, method, cluster, podTemplate, plugin
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n  cluster: quarantaine\n",
        expect![[r#"
            f.yaml:12:12: remedyConfigs[0].cluster: found "quarantaine", expected mark-unschedulable, mark-schedulable, quarantine, clean-resources (did you mean quarantine?)
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n  fence: {}\n- name: a\n  fence: {}\n",
        expect![[r#"
            f.yaml:13:9: remedyConfigs[1].name: found "a" a second time, expected another name
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n  podTemplate: {spec: {restartPolicy: Always, containers: [{name: x}]}}\n",
        expect![[r#"
            f.yaml:12:16: remedyConfigs[0].podTemplate: found a podTemplate, which is not yet run by this version, expected fence, method or cluster; or set mode: shadow
            f.yaml:12:39: remedyConfigs[0].podTemplate.spec.restartPolicy: found "Always", expected Never: a remedy runs once
            f.yaml:12:60: remedyConfigs[0].podTemplate.spec.containers[0].image: found nothing, expected text
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\nmode: shadwo",
        expect![[r#"
        f.yaml:3:7: mode: found "shadwo", expected enforce, shadow (did you mean shadow?)
    "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {maxUnhealthyPercent: 0}",
        expect![[r#"
            f.yaml:3:33: policies.maxUnhealthyPercent: found 0, expected a number from 1 to 100
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {maxUnhealthyPercent: 30.5}",
        expect![[r#"
            f.yaml:3:33: policies.maxUnhealthyPercent: found 30.5, expected a whole number
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {maxUnhealthyPercent: 30%}",
        expect![[r#"
            f.yaml:3:33: policies.maxUnhealthyPercent: found "30%", expected a whole number
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {maxInflight: 2}",
        expect![[r#"
            f.yaml:3:12: policies.maxInflight: found an unknown field, expected maxInFlight (did you mean that?)
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {grades: [power-off]}",
        expect![[r#"
            f.yaml:3:21: policies.grades[0]: found "power-off", expected power-off-verified, storage-fenced, watchdog-deadline, operator-confirmed, job-succeeded, kdump-seen, partition, new-boot-id
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {releaseTimeout: soon}",
        expect![[r#"
            f.yaml:3:28: policies.releaseTimeout: found "soon", expected a length of time such as 5s, 3m or 1h30m
        "#]],
    );
}

#[test]
fn fence_configurations() {
    let check = |from: &str, to: &str, expected: Expect| check(FENCE, from, to, expected);
    check(
        "nodeSelector: node-remedy.io/fence=ipmi",
        "nodeSelector: ''",
        expect![[r#"
        f.yaml:13:17: spec.nodeSelector: found an empty text, expected text that is not empty
    "#]],
    );
    check(
        "  nodeSelector: node-remedy.io/fence=ipmi\n",
        "",
        expect![[r#"
            f.yaml:13:3: spec.nodeSelector: found nothing, expected text
        "#]],
    );
    check(
        "    plugin: ipmi\n",
        "",
        expect![[r#"
            f.yaml:15:5: spec.templates[0].plugin: found nothing, expected text
        "#]],
    );
    check(
        "template: bmc",
        "template: bcm",
        expect![[r#"
        f.yaml:25:15: spec.methods[0].template: found the template "bcm", expected a defined one (bmc)
    "#]],
    );
    check(
        "template: bmc",
        "template: bmc\n    plugin: ipmi",
        expect![[r#"
        f.yaml:24:5: spec.methods[0]: found none or several of template, plugin and builtin, expected one
    "#]],
    );
    check(
        "template: bmc",
        "builtin: quarantine",
        expect![[r#"
        f.yaml:27:13: spec.methods[0].action: found an action of a built-in method, expected none
    "#]],
    );
    check(
        "    template: bmc\n",
        "",
        expect![[r#"
        f.yaml:24:5: spec.methods[0]: found none or several of template, plugin and builtin, expected one
    "#]],
    );
    check(
        "action: reboot",
        "action: rebot",
        expect![[r#"
        f.yaml:27:13: spec.methods[0].action: found "rebot", expected off, on, reboot, reset, true, false (did you mean reboot?)
    "#]],
    );
    check(
        "    action: reboot\n",
        "",
        expect![[r#"
        f.yaml:24:5: spec.methods[0].action: found nothing, expected off, on, reboot or reset
    "#]],
    );
    check(
        "action: reboot",
        "action: on",
        expect![[r#"
        f.yaml:24:5: spec.methods[0].plug: found power on without its off, expected both or reboot
    "#]],
    );
    check(
        "secret: bmc-credentials",
        "secret: ''",
        expect![[r#"
        f.yaml:22:15: spec.templates[0].credentials[0].secret: found an empty text, expected text that is not empty
    "#]],
    );
    check(
        "- secret: bmc-credentials",
        "- name: account",
        expect![[r#"
            f.yaml:22:7: spec.templates[0].credentials[0].secret: found nothing, expected text
        "#]],
    );
    check(
        "- secret: bmc-credentials",
        "- password: hunter2",
        expect![[r#"
            f.yaml:22:7: spec.templates[0].credentials[0].secret: found nothing, expected text
            f.yaml:22:7: spec.templates[0].credentials[0].password: found an unknown field, expected one of identityKey, name, secret, secretKey
        "#]],
    );
    check(
        "methods: [power]",
        "methods: [powr]",
        expect![[r#"
        f.yaml:33:15: spec.powerManagement[0].methods[0]: found the method "powr", expected a defined one (did you mean power?)
    "#]],
    );
    check(
        "methods: [power]",
        "methods: []",
        expect![[r#"
        f.yaml:33:14: spec.powerManagement[0].methods: found 0 items, expected at least 1
    "#]],
    );
    check(
        "methods: [quarantine]",
        "methods: [power]",
        expect![[r#"
        f.yaml:30:15: spec.isolation[0].methods[0]: found power, which does not only cut, expected action off
    "#]],
    );
    check(
        "methods: [quarantine]",
        "methods: [restart-instance]",
        expect![[r#"
        f.yaml:30:15: spec.isolation[0].methods[0]: found restart-instance, expected it under power management
    "#]],
    );
    check(
        "    methods: [power]",
        "    run: only-one\n    mustSuccess: true\n    methods: [power]",
        expect![[r#"
            f.yaml:34:18: spec.powerManagement[0].mustSuccess: found true in a stage that runs only-one, expected it in one that runs all: only one method has to succeed
        "#]],
    );
    check(
        "    methods: [power]",
        "    run: one\n    methods: [power]",
        expect![[r#"
        f.yaml:33:10: spec.powerManagement[0].run: found "one", expected all, only-one
    "#]],
    );
    check(
        "${node.annotations['node-remedy.io/bmc-address']}",
        "${node.annotation['x']}",
        expect![[r#"
            f.yaml:18:16: spec.templates[0].parameters.address: found ${node.annotation['x']}, expected ${node.name}, ${node.providerID}, ${node.address.InternalIP}, ${node.annotations['…']}, ${node.labels['…']} or ${inventory['…']}
        "#]],
    );
    check(
        "${node.annotations['node-remedy.io/bmc-address']}",
        "${node.name",
        expect![[r#"
        f.yaml:18:16: spec.templates[0].parameters.address: found ${ without }, expected ${node.name}, ${node.providerID}, ${node.address.InternalIP}, ${node.annotations['…']}, ${node.labels['…']} or ${inventory['…']}
    "#]],
    );
    check(
        "${node.annotations['node-remedy.io/bmc-address']}",
        "623",
        expect![[r#"
            f.yaml:18:16: spec.templates[0].parameters.address: found the number 623, expected text: put it in quotes
        "#]],
    );
    check(
        "192.0.2.0/24",
        "192.0.2.0",
        expect![[r#"
        f.yaml:37:13: spec.grants[0].cidrs[0]: found "192.0.2.0", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
    "#]],
    );
    check(
        "192.0.2.0/24",
        "192.0.2.0/33",
        expect![[r#"
        f.yaml:37:13: spec.grants[0].cidrs[0]: found "192.0.2.0/33", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
    "#]],
    );
    check(
        "[623]",
        "[70000]",
        expect![[r#"
        f.yaml:38:13: spec.grants[0].ports[0]: found 70000, expected a number from 0 to 65535
    "#]],
    );
    check(
        "    cidrs: [192.0.2.0/24]\n",
        "",
        expect![[r#"
        f.yaml:36:5: spec.grants[0]: found neither cidrs nor hosts, expected one
    "#]],
    );
    check(
        "  - name: power\n    template",
        "  - name: power\n    plugin: ipmi\n    action: off\n  - name: power\n    template",
        expect![[r#"
            f.yaml:27:11: spec.methods[1].name: found "power" a second time, expected another name
        "#]],
    );
    check(
        "kind: FenceConfiguration",
        "kind: FenceConfiguration\nspec: 1",
        expect![[r#"
        f.yaml:13:1: found the key "spec" twice, first on line 10
    "#]],
    );
}

#[test]
fn config_maps() {
    let check = |from: &str, to: &str, expected: Expect| check(NODE, from, to, expected);
    check(
        "node_name=w1",
        "nodename=w1",
        expect![[r#"
        f.yaml:6:5: data["config.properties"]: found no node_name, expected the node's name
    "#]],
    );
    check(
        "    node_name=w1\n",
        "",
        expect![[r#"
        f.yaml:6:5: data["config.properties"]: found no node_name, expected the node's name
    "#]],
    );
    check(
        "power_management=bmc",
        "power_management=bmcc",
        expect![[r#"
            f.yaml:7:5: data["config.properties"].power_management: found the method "bmcc", expected a defined one (did you mean bmc?)
        "#]],
    );
    check(
        "power_management=bmc",
        "power_managment=bmc",
        expect![[r#"
            f.yaml:7:5: data["config.properties"].power_managment: found an unknown field, expected power_management (did you mean that?)
        "#]],
    );
    check(
        "power_management=bmc",
        "isolation=bmc",
        expect![[r#"
        f.yaml:7:5: data["config.properties"].isolation: found bmc, which does not only cut, expected action off
    "#]],
    );
    check(
        "power_management=bmc",
        "power_management",
        expect![[r#"
            f.yaml:7:5: data["config.properties"]: found "power_management", expected name=value
        "#]],
    );
    check(
        "power_management=bmc",
        "power_management=",
        expect![[r#"
        f.yaml:6:5: data["config.properties"]: found no methods, expected isolation or power management
    "#]],
    );
    check(
        "template=fence-method-template-bmc",
        "template=fence-method-template-bcm",
        expect![[r#"
            f.yaml:9:5: data.fence-method-bmc.template: found the template "fence-method-template-bcm", expected a defined one (did you mean fence-method-template-bmc?)
        "#]],
    );
    check(
        "    template=fence-method-template-bmc\n",
        "",
        expect![[r#"
            f.yaml:9:5: data.fence-method-bmc: found no plugin, expected plugin= in method or template
        "#]],
    );
    check(
        "ipaddr=192.0.2.11",
        "ipadr=192.0.2.11",
        expect![[r#"
        f.yaml:10:5: data.fence-method-bmc.ipadr: found an unknown parameter, expected ipaddr (did you mean that?)
        f.yaml:11:5: data.fence-method-bmc.action: found no address, expected ipaddr= or address=
    "#]],
    );
    check(
        "ipaddr=192.0.2.11",
        "ipaddr=192.0.2.11\n    ipaddr=192.0.2.12",
        expect![[r#"
        f.yaml:11:5: data.fence-method-bmc.ipaddr: found it a second time, expected it once
    "#]],
    );
    check(
        "action=reboot",
        "action=cycle",
        expect![[r#"
            f.yaml:11:5: data.fence-method-bmc.action: found "cycle", expected off, on, reboot or reset
        "#]],
    );
    check(
        "action=reboot",
        "cipher=0",
        expect![[r#"
        f.yaml:11:5: data.fence-method-bmc.cipher: found "0", expected auto, 17, 3
    "#]],
    );
    check(
        "action=reboot",
        "privlvl=root",
        expect![[r#"
        f.yaml:11:5: data.fence-method-bmc.privlvl: found "root", expected user, operator, administrator
    "#]],
    );
    check(
        "action=reboot",
        "lanplus=0",
        expect![[r#"
        f.yaml:11:5: data.fence-method-bmc.lanplus: found "0", expected IPMI 2.0 (lanplus=1): the older protocol proves nothing
    "#]],
    );
    check(
        "action=reboot",
        "passwd_script=/bin/pw",
        expect![[r#"
        f.yaml:11:5: data.fence-method-bmc.passwd_script: found "/bin/pw", expected secret=NAME of a Secret: no script is run
    "#]],
    );
    check(
        "action=reboot",
        "passwd=x",
        expect![[r#"
            f.yaml:18:11: data.secret: found "bmc-credentials", expected a Secret or a literal password, not both
        "#]],
    );
    check(
        "action=reboot",
        "action=on",
        expect![[r#"
        f.yaml:9:5: data.fence-method-bmc: found bmc on without its off, expected both or reboot
    "#]],
    );
    check(
        "secret: bmc-credentials",
        "secret: ''",
        expect![[r#"
            f.yaml:18:11: data.secret: found "", expected the name of a Secret
        "#]],
    );
    check(
        "secret: bmc-credentials",
        "login: admin",
        expect![[r#"
            f.yaml:18:10: data.login: found a user name without a password
        "#]],
    );
    check(
        "fence_ipmilan",
        "fence_xyz",
        expect![[r#"
            f.yaml:17:16: data.method_name: found "fence_xyz", for which there is no plugin yet
        "#]],
    );
    check(
        "  method_name: fence_ipmilan\n",
        "",
        expect![[r#"
            f.yaml:9:5: data.fence-method-bmc: found no plugin, expected plugin= in method or template
        "#]],
    );
    check(
        "config.properties",
        "config.propertys",
        expect![[r#"
        f.yaml:5:3: data: found no config.properties, expected one
        f.yaml:6:5: data["config.propertys"]: found an unknown field, expected config.properties (did you mean that?)
    "#]],
    );
    check(
        "    ipaddr=192.0.2.11\n",
        "",
        expect![[r#"
        f.yaml:10:5: data.fence-method-bmc.action: found no address, expected ipaddr= or address=
    "#]],
    );
}

#[test]
fn texts_that_are_no_yaml() {
    let check = |text: &str, expected: Expect| {
        let reading = Document::read_all("f.yaml", text);
        assert!(reading.value.is_none(), "{text:?} is taken for valid");
        expected.assert_eq(&lines(&reading.problems));
    };
    check(
        "a:\n\t- b\n",
        expect![[r#"
        f.yaml:2:2: found what is not YAML: tabs disallowed within this context (block indentation)
    "#]],
    );
    check(
        "a: [1\n",
        expect![[r#"
        f.yaml:1:4: found what is not YAML: unclosed bracket '['
    "#]],
    );
    check(
        "a: b: c\n",
        expect![[r#"
        f.yaml:1:5: found what is not YAML: mapping values are not allowed in this context
    "#]],
    );
    check(
        "a: \"x\n",
        expect![[r#"
        f.yaml:2:1: found what is not YAML: invalid indentation in multiline quoted scalar
    "#]],
    );
    check(
        "a\0b",
        expect![[r#"
        f.yaml:1:2: found a control character, expected text; is this a YAML file?
    "#]],
    );
    check(
        "\u{1b}[31m",
        expect![[r#"
        f.yaml:1:1: found a control character, expected text; is this a YAML file?
    "#]],
    );
    check(
        "a: *b\n",
        expect![[r#"
        f.yaml:1:4: found what is not YAML: while parsing node, found unknown anchor
    "#]],
    );
    check(
        "a: &b [*b]\n",
        expect![[r#"
        f.yaml:1:8: found an alias to itself, expected a value
    "#]],
    );
    check(
        "a: 1\nb: 2\na: 3\n",
        expect![[r#"
        f.yaml:3:1: found the key "a" twice, first on line 1
    "#]],
    );
    check(
        "? [a]\n: b\n",
        expect![[r#"
        f.yaml:1:3: found a list as a key, expected text
    "#]],
    );
    check(
        "a: !!binary aGk=\n",
        expect![[r#"
        f.yaml:1:13: found a YAML tag, expected a value without one
    "#]],
    );
    check(
        "a: !env X\n",
        expect![[r#"
        f.yaml:1:9: found a YAML tag, expected a value without one
    "#]],
    );
    check(
        "- a\nb: c\n",
        expect![[r#"
        f.yaml:2:1: found what is not YAML: while parsing a block collection, did not find expected '-' indicator
    "#]],
    );
    check(
        "%YAML 9.9\n",
        expect![[r#"
        f.yaml:1:1: found what is not YAML: unsupported YAML major version
    "#]],
    );
}

#[test]
fn a_document_is_bounded() {
    let big = "a".repeat(limits::DOCUMENT_BYTES_MAX + 1);
    let reading = Document::read_all("f.yaml", &big);
    assert_eq!(lines(&reading.problems), "f.yaml: found 1048577 bytes, expected at most 1048576\n");

    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip("abcdefgh".chars()) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(","));
    }
    expect![[r#"
        f.yaml:5:29: found more than 100000 values with aliases expanded, expected a smaller document
    "#]].assert_eq(&lines(&Document::read_all("f.yaml", &bomb).problems));

    let lists = "[".repeat(100) + &"]".repeat(100);
    let maps = "{a: ".repeat(100) + &"}".repeat(100);
    for deep in [lists, maps, "- ".repeat(100)] {
        let problems = Document::read_all("f.yaml", &deep).problems;
        assert!(lines(&problems).contains("more than 64 levels"), "{problems}");
    }

    // Duplicate keys by the thousand are found in one pass, and reported a hundred at most.
    let many: String = (0..60_000).map(|index| format!("k{}: 1\n", index % 30_000)).collect();
    assert_eq!(Document::read_all("f.yaml", &many).problems.iter().count(), limits::PROBLEMS_MAX);
}

#[test]
fn all_errors_of_a_document_are_reported() {
    let text = POLICY
        .replace("nodeSelector: type=compute", "nodeSelectr: type=compute")
        .replace("false", "maybe")
        .replace("5s", "5")
        .replace("name: fence", "nam: fence");
    expect![[r#"
        f.yaml:3:1: nodeSelectr: found an unknown field, expected nodeSelector (did you mean that?)
        f.yaml:6:24: thresholdConfigs[0].nodeConditionStatus: found "maybe", expected true, false, True, False, Unknown
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found the number 5, expected a length of time such as 5s, 3m or 1h30m
        f.yaml:9:5: thresholdConfigs[0].remedy1[0].nam: found an unknown field, expected name (did you mean that?)
    "#]].assert_eq(&lines(&read(&[("f.yaml", &text)]).problems));
}

#[test]
fn a_mistake_in_one_nodes_config_map_stops_no_other_node() {
    let other = NODE.replace("w1", "w2").replace("ipaddr", "ipadr");
    let configuration = read(&[("a.yaml", NODE), ("b.yaml", &other)]);
    assert_eq!(configuration.fences.len(), 1);
    assert_eq!(configuration.fences[0].origin, "ConfigMap/fence-config-w1");
}
