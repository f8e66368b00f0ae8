//! A node's `ConfigMap`s that are wrong in one place, and that they stop no other node.

use expect_test::{Expect, expect};

use super::check;
use crate::read;

pub(super) const NODE: &str = "\
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
            f.yaml:7:5: data["config.properties"]: found a line without `=`, expected name=value
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
fn a_mistake_in_one_nodes_config_map_stops_no_other_node() {
    let other = NODE.replace("w1", "w2").replace("ipaddr", "ipadr");
    let configuration = read(&[("a.yaml", NODE), ("b.yaml", &other)]);
    assert_eq!(configuration.fences.len(), 1);
    assert_eq!(configuration.fences[0].origin, "ConfigMap/fence-config-w1");
}
