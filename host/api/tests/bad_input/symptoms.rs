//! Symptoms of thresholds that are wrong in one place.

use expect_test::{Expect, expect};

use super::check;

/// A threshold of several symptoms, and one of every kind.
pub(crate) const SYMPTOMS: &str = "\
apiVersion: node-remedy/v1alpha
kind: Configuration
thresholdConfigs:
- all:
  - nodeConditionType: KernelDeadlock
    nodeConditionStatus: true
    nodeConditionReason: [DockerHung]
  - any:
    - nodeConditionType: Ready
      nodeConditionStatus: true
    - nodeLeaseAge: 40s
  - not: {nodeConditionType: Maintenance, nodeConditionStatus: true}
  period: 5m
  remedy1:
  - name: fence
- nodeEvent: {reason: [KernelOops], type: Warning, source: [kernel-monitor], count: 3, window: 10m}
  remedy1:
  - name: drain
- nodeConditionFlaps: {type: Ready, count: 6, window: 30m}
  remedy1:
  - name: fence
- neverJoined: 20m
  remedy1:
  - name: fence
remedyConfigs:
- name: drain
  cluster: drain
";

#[test]
fn symptoms() {
    let check = |from: &str, to: &str, expected: Expect| check(SYMPTOMS, from, to, expected);
    // Both, and neither.
    check(
        "- all:\n",
        "- any: [{neverJoined: 1h}]\n  all:\n",
        expect![[r#"
        f.yaml:4:3: thresholdConfigs[0]: found all and any, expected one of them
    "#]],
    );
    check(
        "- neverJoined: 20m",
        "- nodeLeaseAge: 20m\n  neverJoined: 20m",
        expect![[r#"
        f.yaml:22:3: thresholdConfigs[3]: found nodeLeaseAge and neverJoined, expected one of them
    "#]],
    );
    check(
        "- neverJoined: 20m\n ",
        "-",
        expect![[r#"
        f.yaml:22:3: thresholdConfigs[3]: found no symptom, expected one of nodeConditionType, nodeLeaseAge, nodeEvent, nodeConditionFlaps, neverJoined, all, any, not
    "#]],
    );
    check(
        "    - nodeLeaseAge: 40s",
        "    - {}",
        expect![[r#"
        f.yaml:11:7: thresholdConfigs[0].all[1].any[1]: found no symptom, expected one of nodeConditionType, nodeLeaseAge, nodeEvent, nodeConditionFlaps, neverJoined, all, any, not
    "#]],
    );
    check(
        "    - nodeLeaseAge: 40s",
        "    - {nodeLeaseAge: 40s, neverJoined: 1h}",
        expect![[r#"
        f.yaml:11:7: thresholdConfigs[0].all[1].any[1]: found nodeLeaseAge and neverJoined, expected one of them
    "#]],
    );
    // Too deep, too many, empty.
    check(
        "    - nodeLeaseAge: 40s",
        "    - any: [{nodeLeaseAge: 40s}]",
        expect![[r#"
        f.yaml:11:7: thresholdConfigs[0].all[1].any[1].any: found an unknown field, expected one of neverJoined, nodeConditionFlaps, nodeConditionReason, nodeConditionStatus, nodeConditionType, nodeEvent, nodeLeaseAge
    "#]],
    );
    check(
        "  - not: {nodeConditionType: Maintenance, nodeConditionStatus: true}\n",
        &"  - nodeLeaseAge: 1m\n".repeat(7),
        expect![[r#"
            f.yaml:5:5: thresholdConfigs[0].all: found 9 items, expected at most 8
        "#]],
    );
    let eight = "[{nodeLeaseAge: 1s}, {nodeLeaseAge: 2s}, {nodeLeaseAge: 3s}, {nodeLeaseAge: 4s}, \
                 {nodeLeaseAge: 5s}, {nodeLeaseAge: 6s}, {nodeLeaseAge: 7s}, {nodeLeaseAge: 8s}]";
    check(
        "- neverJoined: 20m",
        &format!("- period: 1m\n  all: [{{any: {eight}}}, {{any: {eight}}}, {{neverJoined: 1h}}]"),
        expect![[r#"
            f.yaml:22:3: thresholdConfigs[3]: found 17 symptoms, expected at most 16
        "#]],
    );
    check(
        "- neverJoined: 20m",
        "- all: []\n  period: 1m",
        expect![[r#"
        f.yaml:22:8: thresholdConfigs[3].all: found 0 items, expected at least 1
    "#]],
    );
    check(
        "[DockerHung]",
        "[]",
        expect![[r#"
        f.yaml:7:26: thresholdConfigs[0].all[0].nodeConditionReason: found 0 items, expected at least 1
    "#]],
    );
    check(
        "[DockerHung]",
        "DockerHung",
        expect![[r#"
        f.yaml:7:26: thresholdConfigs[0].all[0].nodeConditionReason: found "DockerHung", expected a list
    "#]],
    );
    check(
        "[KernelOops]",
        "[]",
        expect![[r#"
        f.yaml:16:23: thresholdConfigs[1].nodeEvent.reason: found 0 items, expected at least 1
    "#]],
    );
    check(
        "reason: [KernelOops], ",
        "",
        expect![[r#"
        f.yaml:16:14: thresholdConfigs[1].nodeEvent.reason: found nothing, expected a list
    "#]],
    );
    // Numbers and times.
    check(
        "count: 3",
        "count: 0",
        expect![[r#"
        f.yaml:16:85: thresholdConfigs[1].nodeEvent.count: found 0, expected a number from 1 to 100
    "#]],
    );
    check(
        "count: 3",
        "count: 1000",
        expect![[r#"
        f.yaml:16:85: thresholdConfigs[1].nodeEvent.count: found 1000, expected a number from 1 to 100
    "#]],
    );
    check(
        "count: 6",
        "count: 1",
        expect![[r#"
        f.yaml:19:44: thresholdConfigs[2].nodeConditionFlaps.count: found 1, expected a number from 2 to 100
    "#]],
    );
    check(
        "window: 10m",
        "window: 2h",
        expect![[r#"
        f.yaml:16:96: thresholdConfigs[1].nodeEvent.window: found 2h, expected 1s to 1h
    "#]],
    );
    check(
        "window: 10m",
        "window: 0s",
        expect![[r#"
        f.yaml:16:96: thresholdConfigs[1].nodeEvent.window: found 0s, expected 1s to 1h
    "#]],
    );
    check(
        "window: 30m",
        "window: 2d",
        expect![[r#"
        f.yaml:19:55: thresholdConfigs[2].nodeConditionFlaps.window: found 2d, expected 1s to 1d
    "#]],
    );
    check(
        ", window: 30m",
        "",
        expect![[r#"
        f.yaml:19:23: thresholdConfigs[2].nodeConditionFlaps.window: found nothing, expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "neverJoined: 20m",
        "neverJoined: 400d",
        expect![[r#"
        f.yaml:22:16: thresholdConfigs[3].neverJoined: found 400d, expected 1s to 31d
    "#]],
    );
    check(
        "nodeLeaseAge: 40s",
        "nodeLeaseAge: 10ms",
        expect![[r#"
        f.yaml:11:21: thresholdConfigs[0].all[1].any[1].nodeLeaseAge: found 10ms, expected 1s to 31d
    "#]],
    );
    check(
        "period: 5m",
        "period: 0s",
        expect![[r#"
        f.yaml:13:11: thresholdConfigs[0].period: found 0s, expected 1s to 31d
    "#]],
    );
    check(
        "  period: 5m\n",
        "",
        expect![[r#"
        f.yaml:4:3: thresholdConfigs[0].period: found nothing, expected a length of time such as 5s, 3m or 1h30m
    "#]],
    );
    check(
        "  period: 5m\n",
        "  nodeConditionPeriod: 5m\n",
        expect![[r#"
        f.yaml:4:3: thresholdConfigs[0].period: found nothing, expected a length of time such as 5s, 3m or 1h30m
        f.yaml:13:24: thresholdConfigs[0].nodeConditionPeriod: found it without a condition, expected none
    "#]],
    );
    check(
        "- neverJoined: 20m",
        "- neverJoined: 20m\n  period: 5m",
        expect![[r#"
        f.yaml:23:11: thresholdConfigs[3].period: found it without all, any or not, expected none
    "#]],
    );
    // Words.
    check(
        "type: Warning",
        "type: Eror",
        expect![[r#"
        f.yaml:16:43: thresholdConfigs[1].nodeEvent.type: found "Eror", expected Normal, Warning
    "#]],
    );
    check(
        "type: Ready",
        "type: ''",
        expect![[r#"
        f.yaml:19:30: thresholdConfigs[2].nodeConditionFlaps.type: found an empty text, expected text that is not empty
    "#]],
    );
    check(
        "    nodeConditionStatus: true\n",
        "",
        expect![[r#"
        f.yaml:5:5: thresholdConfigs[0].all[0].nodeConditionStatus: found nothing, expected true, false or Unknown
    "#]],
    );
    check(
        "- nodeLeaseAge: 40s",
        "- {nodeLeaseAge: 40s, nodeConditionReason: [a]}",
        expect![[r#"
        f.yaml:11:48: thresholdConfigs[0].all[1].any[1].nodeConditionReason: found it beside nodeLeaseAge, expected nodeLeaseAge alone
    "#]],
    );
    check(
        "- neverJoined: 20m",
        "- neverJoined: 20m\n  nodeConditionStatus: true",
        expect![[r#"
        f.yaml:23:24: thresholdConfigs[3].nodeConditionStatus: found it beside neverJoined, expected neverJoined alone
    "#]],
    );
    check(
        "nodeConditionReason",
        "nodeConditionReasons",
        expect![[r#"
        f.yaml:7:5: thresholdConfigs[0].all[0].nodeConditionReasons: found an unknown field, expected nodeConditionReason (did you mean that?)
    "#]],
    );
    // Twice the same.
    check(
        "neverJoined: 20m",
        "nodeConditionFlaps: {type: Ready, count: 6, window: 30m}",
        expect![[r#"
            f.yaml:22:3: thresholdConfigs[3]: found the same symptom as in an earlier threshold, expected one threshold for it
        "#]],
    );
    check(
        "kind: Configuration",
        "kind: Configuration\npolicies: {conditionStaleAfter: 0s}",
        expect![[r#"
            f.yaml:3:33: policies.conditionStaleAfter: found 0s, expected 1s to 31d
            f.yaml:3:33: policies.conditionStaleAfter: warning: found 0s, and conditions that do not change are reported every 5m: between two reports they are not known
        "#]],
    );
}
