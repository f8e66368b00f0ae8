//! Policies that are wrong in one place, and one that is wrong in four.

use expect_test::{Expect, expect};

use super::check;
use crate::{lines, read};

pub(super) const POLICY: &str = "\
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
            f.yaml:5:3: thresholdConfigs[0]: found no symptom, expected one of nodeConditionType, nodeLeaseAge, nodeEvent, nodeConditionFlaps, neverJoined, all, any, not
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
        f.yaml:7:24: thresholdConfigs[0].nodeConditionPeriod: found "99999999999999999999s", expected a length of time of at most 9999d, 99999h, 9999999m, 999999999s or 9999999999ms
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
        f.yaml:8:3: thresholdConfigs[0].remedy6: found remedy6, expected at most remedy5
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
            f.yaml:9:5: thresholdConfigs[0].remedy1: found the name "xyz", expected a remedy under remedyConfigs, or one of fence, storage-fence
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
        "- name: recovery",
        expect![[r#"
            f.yaml:9:5: thresholdConfigs[0].remedy1: found the name "recovery", expected a remedy: recovery is the step that every fence ends with
        "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n  recovery:\n  - name: recovery\n  - name: fence\n  - period: 3m",
        expect![[r#"
            f.yaml:12:5: thresholdConfigs[0].recovery[1]: found the name "fence", expected - name: recovery, which is the step that every fence ends with: what it does stands under recovery of the FenceConfiguration
            f.yaml:13:5: thresholdConfigs[0].recovery[2]: found no name, expected - name: recovery, which is the step that every fence ends with: what it does stands under recovery of the FenceConfiguration
        "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n  recovery:\n  - name: recovery\nremedyConfigs:\n- { name: recovery, fence: {} }",
        expect![[r#"
            f.yaml:11:5: thresholdConfigs[0].recovery[0]: found a remedy of remedyConfigs, expected - name: recovery, which is the step that every fence ends with: what it does stands under recovery of the FenceConfiguration
        "#]],
    );
    check(
        "- name: fence",
        "- name: fence\n  - name: recovery",
        expect![[r#"
            f.yaml:9:5: thresholdConfigs[0].remedy1: found the name "recovery", expected a remedy: recovery is the step that every fence ends with
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
            f.yaml:10:3: thresholdConfigs[1]: found the same symptom as in an earlier threshold, expected one threshold for it
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
            f.yaml:12:12: remedyConfigs[0].cluster: found "quarantaine", expected cordon, quarantine, drain, release, delete-node (did you mean quarantine?)
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
        "- name: fence\nremedyConfigs:\n- name: a\n  podTemplate: {spec: {restartPolicy: Always, nodeName: a, containers: [{name: x}]}}\n  deadline: 0s\n",
        expect![[r#"
            f.yaml:12:39: remedyConfigs[0].podTemplate.spec.restartPolicy: found "Always", expected Never: a remedy runs once
            f.yaml:12:57: remedyConfigs[0].podTemplate.spec.nodeName: found it, expected none: the scheduler chooses, and never the node itself
            f.yaml:12:73: remedyConfigs[0].podTemplate.spec.containers[0].image: found nothing, expected text
            f.yaml:13:13: remedyConfigs[0].deadline: found 0s, expected 1s to 31d
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\nremedyConfigs:\n- name: a\n  fence: {}\n  deadline: 5m\n  backoffLimit: 11\n",
        expect![[r#"
            f.yaml:14:17: remedyConfigs[0].backoffLimit: found 11, expected a number from 0 to 10
        "#]],
    );
    check(
        "- name: fence\n",
        "- name: fence\n  remedy2:\n  - name: storage-fence\n",
        expect![[r#"
            f.yaml:11:5: thresholdConfigs[0].remedy2: found "storage-fence" after "fence", expected one fence in a ladder, before it at most its methods, each once, and then storage-fence: steps that follow one another are stages of the FenceConfiguration
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
        "kind: Configuration\npolicies: {grades: [partition]}",
        expect![[r#"
            f.yaml:3:20: policies.grades: warning: found no power-off-verified: a machine that is proven off releases nothing
            f.yaml:3:20: policies.grades: found partition, expected safeDetachDrivers beside it
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {safeDetachDrivers: [csi.example.com]}",
        expect![[r#"
            f.yaml:3:31: policies.safeDetachDrivers: found drivers, expected partition among grades, which they are for
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {pauseWindows: [{cron: 0 8 * *, duration: 30s, timeZone: Mars, reason: r}]}",
        expect![[r#"
            f.yaml:3:34: policies.pauseWindows[0].cron: found "0 8 * *", expected minute, hour, day of month, month, day of week, such as 0 8 * * 1-5: 4 fields, and 5 make a crontab
            f.yaml:3:53: policies.pauseWindows[0].duration: found 30s, expected 1m to 7d
            f.yaml:3:68: policies.pauseWindows[0].timeZone: found "Mars", expected a time zone's name such as Europe/Berlin or UTC
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {pauseWindows: [{cron: 0 8 * * 1-5, reason: r}], cordonedByOthers: yes}",
        expect![[r#"
            f.yaml:3:27: policies.pauseWindows[0].duration: found nothing, expected a length of time such as 5s, 3m or 1h30m
            f.yaml:3:78: policies.cordonedByOthers: found "yes", expected maintenance, ignore
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {repeatAlarm: {count: 3, window: 30d}}",
        expect![[r#"
            f.yaml:3:44: policies.repeatAlarm.window: found 30d, expected 1m to 14d
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {repeatAlarm: {count: 1, window: 1d}}",
        expect![[r#"
            f.yaml:3:33: policies.repeatAlarm.count: found 1, expected a number from 2 to 10
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {breaker: {maxIncidents: 0, window: 1h, coolDown: 1h}}",
        expect![[r#"
            f.yaml:3:36: policies.breaker.maxIncidents: found 0, expected a number from 1 to 1000
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {breaker: {maxIncidents: 3, window: 30d, coolDown: 1s}}",
        expect![[r#"
            f.yaml:3:47: policies.breaker.window: found 30d, expected 1m to 7d
            f.yaml:3:62: policies.breaker.coolDown: found 1s, expected 1m to 7d
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {breaker: {maxIncidents: 3}}",
        expect![[r#"
            f.yaml:3:21: policies.breaker.coolDown: found nothing, expected a length of time such as 5s, 3m or 1h30m
            f.yaml:3:21: policies.breaker.window: found nothing, expected a length of time such as 5s, 3m or 1h30m
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {minSchedulablePercent: 101}",
        expect![[r#"
            f.yaml:3:35: policies.minSchedulablePercent: found 101, expected a number from 1 to 99
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

/// Methods one by one, then isolation, then the fence, and nothing of it twice.
#[test]
fn a_ladder_goes_from_less_to_more() {
    let mut problems = String::new();
    for ladder in [
        "[{ name: fence }], remedy2: [{ name: off }]",
        "[{ name: storage-fence }], remedy2: [{ name: reset }]",
        "[{ name: reset }], remedy2: [{ name: again }]",
        "[{ name: reset }], remedy2: [{ name: off }], remedy3: [{ name: storage-fence }], remedy4: [{ name: fence }]",
    ] {
        let methods = "remedyConfigs: [{ name: reset, method: reset }, { name: again, method: reset }, \
                       { name: off, method: off }]\n";
        let text = format!(
            "apiVersion: node-remedy/v1alpha\nkind: Configuration\n{methods}thresholdConfigs:\n\
             - {{ nodeLeaseAge: 20s, remedy1: {ladder} }}\n"
        );
        problems += &lines(&read(&[("f.yaml", &text)]).problems);
        problems.push('\n');
    }
    expect![[r#"
        f.yaml:5:61: thresholdConfigs[0].remedy2: found "off" after "fence", expected one fence in a ladder, before it at most its methods, each once, and then storage-fence: steps that follow one another are stages of the FenceConfiguration

        f.yaml:5:69: thresholdConfigs[0].remedy2: found "reset" after "storage-fence", expected one fence in a ladder, before it at most its methods, each once, and then storage-fence: steps that follow one another are stages of the FenceConfiguration

        f.yaml:5:61: thresholdConfigs[0].remedy2: found "again" after "reset", expected one fence in a ladder, before it at most its methods, each once, and then storage-fence: steps that follow one another are stages of the FenceConfiguration


    "#]].assert_eq(&problems);
}
