//! Fence configurations that are wrong in one place. The document they start from is the shipped
//! example, so lines are counted in that file.

use expect_test::{Expect, expect};

use super::check;

pub(super) const FENCE: &str = include_str!("../../../../examples/config/fence-ipmi.yaml");

const NETWORK_FENCE: &str = include_str!("../../../../examples/config/fence-network-fence.yaml");

const WITNESS: &str = include_str!("../../../../examples/config/fence-witness.yaml");

const KDUMP: &str = include_str!("../../../../examples/config/fence-kdump.yaml");

#[test]
fn what_only_sees_is_asked_for_nothing() {
    let check = |from: &str, to: &str, expected: Expect| check(KDUMP, from, to, expected);
    check(
        "    plugin: kdump\n",
        "    plugin: kdump\n    action: off\n",
        expect![[r#"
            f.yaml:22:13: spec.methods[0].action: found an action of kdump, which only sees, expected none
        "#]],
    );
    check(
        "methods: [power]",
        "methods: [power, crash-dump]",
        expect![[r#"
            f.yaml:40:22: spec.powerManagement[0].methods[1]: found crash-dump, which only sees, expected it under isolation
        "#]],
    );
    check(
        "methods: [crash-dump]",
        "run: only-one\n    methods: [crash-dump, quarantine]",
        expect![[r#"
            f.yaml:20:5: spec.methods[0].plug: found crash-dump, which only sees, in a stage of which only one method has to succeed, expected it in a stage of its own
        "#]],
    );
}

#[test]
fn a_witness_is_another_plugin_s_and_does_nothing() {
    let check = |from: &str, to: &str, expected: Expect| check(WITNESS, from, to, expected);
    let by = "witness: hypervisor";
    check(
        by,
        "witness: hyperviser",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found the method "hyperviser", expected a defined one (did you mean hypervisor?)
            f.yaml:32:5: spec.methods[1].action: found nothing, expected off, on, reboot or reset; or that it is another method's witness
        "#]],
    );
    check(
        by,
        "witness: power",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found power, of the plugin ipmi, too, expected a method without an action, of another plugin that reads the machine's power
            f.yaml:32:5: spec.methods[1].action: found nothing, expected off, on, reboot or reset; or that it is another method's witness
        "#]],
    );
    check(
        by,
        "witness: quarantine",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found the method "quarantine", expected a defined one (hypervisor, power)
            f.yaml:32:5: spec.methods[1].action: found nothing, expected off, on, reboot or reset; or that it is another method's witness
        "#]],
    );
    check(
        "plugin: proxmox",
        "plugin: ipmi",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found hypervisor, of the plugin ipmi, too, expected a method without an action, of another plugin that reads the machine's power
        "#]],
    );
    check(
        "plugin: proxmox",
        "plugin: kdump",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found hypervisor, which reads no power, expected a method without an action, of another plugin that reads the machine's power
        "#]],
    );
    check(
        "    plug: ${node.name}\n",
        "    plug: ${node.name}\n    action: reboot\n",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found hypervisor, which has an action, expected a method without an action, of another plugin that reads the machine's power
        "#]],
    );
    check(
        "action: reboot",
        "action: reset",
        expect![[r#"
            f.yaml:30:14: spec.methods[0].witness: found hypervisor for a method that switches nothing off, expected action off or reboot
        "#]],
    );
    check(
        "methods: [power]",
        "methods: [power, hypervisor]",
        expect![[r#"
            f.yaml:41:22: spec.powerManagement[0].methods[1]: found hypervisor, which has no action, expected it as a witness alone
        "#]],
    );
    check(
        "    witness: hypervisor\n",
        "",
        expect![[r#"
            f.yaml:31:5: spec.methods[1].action: found nothing, expected off, on, reboot or reset; or that it is another method's witness
        "#]],
    );
}

#[test]
fn a_network_fence_needs_its_driver_and_cuts_no_power() {
    let check = |from: &str, to: &str, expected: Expect| check(NETWORK_FENCE, from, to, expected);
    check(
        "      driver: rook-ceph.rbd.csi.ceph.com\n",
        "",
        expect![[r#"
            f.yaml:22:7: spec.methods[0].parameters: found no driver, expected one for a network-fence
        "#]],
    );
    check(
        "      driver: rook-ceph.rbd.csi.ceph.com\n",
        "      networkFenceClass: ceph\n",
        expect![[r#"
            f.yaml:22:7: spec.methods[0].parameters: found secretName beside networkFenceClass, expected one of them
            f.yaml:22:7: spec.methods[0].parameters: found secretNamespace beside networkFenceClass, expected one of them
        "#]],
    );
    check(
        "methods: [power]",
        "methods: [power, storage]",
        expect![[r#"
            f.yaml:47:22: spec.powerManagement[0].methods[1]: found storage, which cuts no power, expected it under isolation
        "#]],
    );
    check(
        "methods: [quarantine]",
        "methods: [network-fence]",
        expect![[r#"
            f.yaml:42:15: spec.isolation[0].methods[0]: found the method "network-fence", expected a defined one (power, storage, mark-unschedulable, mark-schedulable, quarantine, clean-resources, delete-node, restart-instance)
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
            f.yaml:14:17: spec.nodeSelector: found an empty text, expected text that is not empty
        "#]],
    );
    check(
        "  nodeSelector: node-remedy.io/fence=ipmi\n",
        "",
        expect![[r#"
            f.yaml:15:3: spec.nodeSelector: found nothing, expected text
        "#]],
    );
    check(
        "    plugin: ipmi\n",
        "",
        expect![[r#"
            f.yaml:18:5: spec.templates[0].plugin: found nothing, expected text
        "#]],
    );
    check(
        "template: bmc",
        "template: bcm",
        expect![[r#"
            f.yaml:29:15: spec.methods[0].template: found the template "bcm", expected a defined one (bmc)
        "#]],
    );
    check(
        "template: bmc",
        "template: bmc\n    plugin: ipmi",
        expect![[r#"
            f.yaml:28:5: spec.methods[0]: found none or several of template, plugin and builtin, expected one
        "#]],
    );
    check(
        "template: bmc",
        "builtin: quarantine",
        expect![[r#"
            f.yaml:31:13: spec.methods[0].action: found an action of a built-in method, expected none
        "#]],
    );
    check(
        "    template: bmc\n",
        "",
        expect![[r#"
            f.yaml:28:5: spec.methods[0]: found none or several of template, plugin and builtin, expected one
        "#]],
    );
    check(
        "action: reboot",
        "action: rebot",
        expect![[r#"
            f.yaml:31:13: spec.methods[0].action: found "rebot", expected off, on, reboot, reset, true, false (did you mean reboot?)
        "#]],
    );
    check(
        "    action: reboot\n",
        "",
        expect![[r#"
            f.yaml:28:5: spec.methods[0].action: found nothing, expected off, on, reboot or reset; or that it is another method's witness
            f.yaml:36:15: spec.powerManagement[0].methods[0]: found power, which has no action, expected it as a witness alone
        "#]],
    );
    check(
        "action: reboot",
        "action: on",
        expect![[r#"
            f.yaml:28:5: spec.methods[0].plug: found power on without its off, expected both or reboot
        "#]],
    );
    check(
        "secret: bmc-credentials",
        "secret: ''",
        expect![[r#"
            f.yaml:26:15: spec.templates[0].credentials[0].secret: found an empty text, expected text that is not empty
        "#]],
    );
    check(
        "- secret: bmc-credentials",
        "- name: account",
        expect![[r#"
            f.yaml:26:7: spec.templates[0].credentials[0].secret: found nothing, expected text
        "#]],
    );
    check(
        "- secret: bmc-credentials",
        "- password: hunter2",
        expect![[r#"
            f.yaml:26:7: spec.templates[0].credentials[0].secret: found nothing, expected text
            f.yaml:26:7: spec.templates[0].credentials[0].password: found an unknown field, expected one of identityKey, name, secret, secretKey
        "#]],
    );
    check(
        "methods: [power]",
        "methods: [powr]",
        expect![[r#"
            f.yaml:37:15: spec.powerManagement[0].methods[0]: found the method "powr", expected a defined one (did you mean power?)
        "#]],
    );
    check(
        "methods: [power]",
        "methods: []",
        expect![[r#"
            f.yaml:37:14: spec.powerManagement[0].methods: found 0 items, expected at least 1
        "#]],
    );
    check(
        "methods: [quarantine]",
        "methods: [power]",
        expect![[r#"
            f.yaml:34:15: spec.isolation[0].methods[0]: found power, which does not only cut, expected action off
        "#]],
    );
    check(
        "methods: [quarantine]",
        "methods: [restart-instance]",
        expect![[r#"
            f.yaml:34:15: spec.isolation[0].methods[0]: found restart-instance, expected it under power management
        "#]],
    );
    check(
        "    methods: [power]",
        "    run: only-one\n    mustSuccess: true\n    methods: [power]",
        expect![[r#"
            f.yaml:38:18: spec.powerManagement[0].mustSuccess: found true in a stage that runs only-one, expected it in one that runs all: only one method has to succeed
        "#]],
    );
    check(
        "    methods: [power]",
        "    run: one\n    methods: [power]",
        expect![[r#"
            f.yaml:37:10: spec.powerManagement[0].run: found "one", expected all, only-one
        "#]],
    );
    check(
        "${inventory['bmc-address']}",
        "${node.annotation['x']}",
        expect![[r#"
            f.yaml:21:16: spec.templates[0].parameters.address: found ${node.annotation['x']}, expected ${node.name}, ${node.providerID}, ${node.systemUUID}, ${node.address.InternalIP}, ${node.annotations['…']}, ${node.labels['…']} or ${inventory['…']}
        "#]],
    );
    check(
        "${inventory['bmc-address']}",
        "${node.name",
        expect![[r#"
            f.yaml:21:16: spec.templates[0].parameters.address: found ${ without }, expected ${node.name}, ${node.providerID}, ${node.systemUUID}, ${node.address.InternalIP}, ${node.annotations['…']}, ${node.labels['…']} or ${inventory['…']}
        "#]],
    );
    check(
        "${inventory['bmc-address']}",
        "623",
        expect![[r#"
            f.yaml:21:16: spec.templates[0].parameters.address: found the number 623, expected text: put it in quotes
        "#]],
    );
    check(
        "192.0.2.0/24",
        "192.0.2.0",
        expect![[r#"
            f.yaml:41:13: spec.grants[0].cidrs[0]: found "192.0.2.0", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
        "#]],
    );
    check(
        "192.0.2.0/24",
        "192.0.2.0/33",
        expect![[r#"
            f.yaml:41:13: spec.grants[0].cidrs[0]: found "192.0.2.0/33", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
        "#]],
    );
    check(
        "[623]",
        "[70000]",
        expect![[r#"
            f.yaml:42:13: spec.grants[0].ports[0]: found 70000, expected a number from 0 to 65535
        "#]],
    );
    check(
        "[623]",
        "[443]\n    methods: [GET, get]",
        expect![[r#"
            f.yaml:43:20: spec.grants[0].methods[1]: found "get", expected one of GET, HEAD, POST, PUT, PATCH, DELETE
        "#]],
    );
    check(
        "[623]",
        "[443]\n    paths: [redfish/v1]",
        expect![[r#"
            f.yaml:43:13: spec.grants[0].paths[0]: found "redfish/v1", expected a path such as /redfish/v1
        "#]],
    );
    check(
        "[623]",
        "[443]\n    auth: [basic, digest]",
        expect![[r#"
            f.yaml:43:19: spec.grants[0].auth[1]: found "digest", expected one of none, basic, bearer, header, aws-sigv4, google-service-account, login
        "#]],
    );
    check(
        "[623]",
        "[443]\n    tls: { pins: ['sha256//AAAA'], insecure: true }",
        expect![[r#"
            f.yaml:43:10: spec.grants[0].tls: found 2 of caBundle, pins and insecure, expected one
            f.yaml:43:19: spec.grants[0].tls.pins[0]: found "sha256//AAAA", expected sha256// and 32 bytes in base64
        "#]],
    );
    check(
        "[623]",
        "[443]\n    tls: {}",
        expect![[r#"
            f.yaml:43:10: spec.grants[0].tls: found 0 of caBundle, pins and insecure, expected one
        "#]],
    );
    check(
        "    cidrs: [192.0.2.0/24]\n",
        "",
        expect![[r#"
            f.yaml:40:5: spec.grants[0]: found neither cidrs nor hosts, expected one
        "#]],
    );
    check(
        "  - name: power\n    template",
        "  - name: power\n    plugin: ipmi\n    action: off\n  - name: power\n    template",
        expect![[r#"
            f.yaml:31:11: spec.methods[1].name: found "power" a second time, expected another name
        "#]],
    );
    check(
        "kind: FenceConfiguration",
        "kind: FenceConfiguration\nspec: 1",
        expect![[r#"
            f.yaml:14:1: found the key "spec" twice, first on line 11
        "#]],
    );
}
