//! Fence configurations, in all three forms, down to the plan of one node.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;
use litemap::LiteMap;
use node_remedy_api::document::Document;
use node_remedy_api::plan::network_fence::{self, FenceSecret};
use node_remedy_api::plan::{self, FenceSource, Method, NodeFacts, NodePlan};

use crate::{lines, read};

const EXAMPLE: &str = include_str!("../../../examples/config/fence-ipmi.yaml");
const PROPOSAL: &str = include_str!("proposals/000-fence-config.yaml");
const TEMPLATES: &str = include_str!("fixtures/templates.yaml");
const STAGES: &str = include_str!("fixtures/stages.yaml");

fn pairs<M: FromIterator<(String, String)>>(pairs: &[(&str, &str)]) -> M {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn node(name: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        inventory: pairs(&[("bmc-address", "192.0.2.11")]),
        labels: pairs(&[("node-remedy.io/fence", "ipmi")]),
        ..NodeFacts::default()
    }
}

/// A plan in a few lines.
pub(crate) fn sketch(plan: &NodePlan) -> String {
    let mut text = format!("{}\n", plan.sources.join(", "));
    for (index, method) in plan.methods.iter().enumerate() {
        let Method { name, plugin, builtin, plug, device, .. } = method;
        let does = plugin.clone().unwrap_or_else(|| format!("{:?}", builtin.unwrap()));
        text += &format!("{index} {name}: {does} plug={plug:?} device={device:?}");
        for (name, value) in &method.parameters {
            text += &format!(" {name}={value}");
        }
        for (name, credential) in &method.credentials {
            text += &format!(" {name}:{}", serde_json::to_string(credential).unwrap());
        }
        for (flag, set) in [
            ("must-success", method.must_success),
            ("sole-feed", method.sole_feed),
            ("trust-wiring", method.trust_wiring),
            ("reset-only", method.reset_only),
        ] {
            text += &if set { format!(" {flag}") } else { String::new() };
        }
        text += &method.witness.map(|place| format!(" witness={place}")).unwrap_or_default();
        text.push('\n');
    }
    for (step, stages) in [
        ("isolation", &plan.isolation),
        ("power", &plan.power_management),
        ("recovery", &plan.recovery),
    ] {
        for stage in stages {
            text += &format!("{step}: {} {:?} {:?}\n", stage.name, stage.run, stage.methods);
        }
    }
    for grant in &plan.grants {
        text += &format!("grant {}\n", serde_json::to_string(grant).unwrap());
    }
    text
}

pub(crate) fn plan_of(source: &FenceSource, node: &NodeFacts) -> String {
    let reading = source.plan_for(node, &BTreeSet::new());
    let text = lines(&reading.problems);
    reading.value.map_or(text, |plan| sketch(&plan))
}

#[test]
fn the_example_makes_a_plan() {
    let configuration = read(&[("fence-ipmi.yaml", EXAMPLE)]);
    assert_eq!(lines(&configuration.problems), "");
    expect![[r#"
        fence-ipmi.yaml
        0 quarantine: Quarantine plug="" device=""
        1 power: ipmi plug="" device="ipmi/192.0.2.11" address=192.0.2.11 privilege-level=operator default:{"secret":{"name":"bmc-credentials","identityKey":"username","secretKey":"password"}}
        isolation: keep-new-pods-away All [0]
        power: power All [1]
        grant {"plugin":"ipmi","cidrs":["192.0.2.0/24"],"ports":[623]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

#[test]
fn a_node_without_its_row_is_named() {
    let configuration = read(&[("fence-ipmi.yaml", EXAMPLE)]);
    let bare = NodeFacts { inventory: BTreeMap::new(), ..node("w2") };
    expect![[r#"
        fence-ipmi.yaml:21:16: spec.templates[0].parameters.address: found node w2 without column bmc-address in the inventory, expected one
    "#]].assert_eq(&plan_of(&configuration.fences[0], &bare));
}

/// A kubelet can write its own node's annotations, labels and addresses: it would have the device's password
/// sent wherever it likes.
#[test]
fn an_address_is_not_the_nodes_own_word_unless_the_admin_trusts_it_by_name() {
    let own_word = |written: &str, trusted: &str| {
        let text = EXAMPLE
            .replace("${inventory['bmc-address']}", written)
            .replace("  templates:", &format!("  trustedNodeFields: [{trusted}]\n  templates:"));
        lines(&read(&[("f.yaml", &text)]).problems)
    };
    let annotation = "${node.annotations['example.com/bmc']}";
    let quoted = format!("\"{annotation}\"");
    for said in [
        annotation,
        "bmc-${node.labels['rack']}.example.org",
        "${node.address.InternalIP}",
        "${node.providerID}",
        "${node.systemUUID}.example.org",
    ] {
        let refused = own_word(said, "");
        assert!(
            refused.contains(", which the node itself can write, expected text or"),
            "{refused}"
        );
        let field = &said[said.find("${").unwrap()..=said.find('}').unwrap()];
        assert_eq!(own_word(said, &format!("\"{field}\"")), "", "{said}");
        if field != annotation {
            assert_eq!(own_word(said, &quoted), refused, "another field is trusted");
        }
    }
    expect![[r#"
        f.yaml:22:16: spec.templates[0].parameters.address: found ${node.annotations['example.com/bmc']}, which the node itself can write, expected text or ${inventory['…']}, or the same among trustedNodeFields
    "#]].assert_eq(&own_word(annotation, ""));
    assert_eq!(own_word("bmc-${node.name}.example.org", ""), "", "a kubelet is known by its name");
    for no_field in ["${inventory['bmc']}", "192.0.2.1", "${node.name}", "a ${node.providerID}"] {
        let refused = own_word("192.0.2.11", &format!("\"{no_field}\""));
        assert!(refused.contains("expected one field of the node"), "{no_field}: {refused}");
    }
}

/// A parameter may say where a password goes, or what is cut there; what only listens is told neither.
#[test]
fn every_parameter_that_may_say_where_a_method_connects_is_guarded() {
    let refused = |plugin: &str, parameter: &str| {
        let text = EXAMPLE.replace("plugin: ipmi", &format!("plugin: {plugin}")).replace(
            "privilege-level: operator",
            &format!("{parameter}: \"${{node.labels['x']}}\""),
        );
        lines(&read(&[("f.yaml", &text)]).problems).contains("which the node itself can write")
    };
    for (plugin, parameter, expected) in [
        ("ipmi", "privilege-level", true),
        ("snmp-switch", "poe-port", true),
        ("kdump", "interval", false),
        ("azure", "login-address", true),
        ("openstack", "auth-url", true),
        ("webhook", "status-path", true),
        ("brocade", "switch", true),
        ("of-somebody", "place", true),
    ] {
        assert_eq!(refused(plugin, parameter), expected, "{plugin} {parameter}");
    }
}

/// A plug is which machine is cut. What the API server keeps kubelets from writing, or nobody can change, may name it.
#[test]
fn a_plug_is_not_the_nodes_own_word_either() {
    let refused = |plug: &str, trusted: &str| {
        let text = EXAMPLE
            .replacen("  - name: power\n", &format!("  - name: power\n    plug: \"{plug}\"\n"), 1)
            .replace("  templates:", &format!("  trustedNodeFields: [{trusted}]\n  templates:"));
        assert!(text.contains(plug));
        lines(&read(&[("f.yaml", &text)]).problems).contains("which the node itself can write")
    };
    for (plug, expected) in [
        ("${node.labels['outlet']}", true),
        ("Gi1/0/${node.annotations['example.com/port']}", true),
        ("${node.address.InternalIP}", true),
        ("${node.labels['node-restriction.kubernetes.io/outlet']}", false),
        ("${node.labels['pdu.node-restriction.kubernetes.io/outlet']}", false),
        ("${node.labels['my-node-restriction.kubernetes.io/outlet']}", true),
        ("${node.name}-${node.providerID}-${node.systemUUID}", false),
        ("7", false),
    ] {
        assert_eq!(refused(plug, ""), expected, "{plug}");
    }
    for label in ["outlet", "node-restriction.kubernetes.io/outlet"] {
        let label = format!("${{node.labels['{label}']}}");
        assert!(!refused(&label, &format!("\"{label}\"")));
    }
}

/// In a ConfigMap an address is a grant, too, and so opens what no range opens.
#[test]
fn an_address_in_a_config_map_is_written_there() {
    let own = |address: &str| {
        format!(
            "kind: ConfigMap\napiVersion: v1\nmetadata: {{name: fence-config-w1}}\ndata:\n  \
             config.properties: |-\n    node_name=w1\n    power_management=bmc\n  \
             fence-method-bmc: |-\n    agent_name=fence_ipmilan\n    ipaddr={address}\n    secret=bmc\n"
        )
    };
    let problems = |address: &str| lines(&read(&[("own.yaml", &own(address))]).problems);
    assert_eq!(problems("bmc-${node.name}.example.org"), "");
    expect![[r#"
        own.yaml:10:5: data.fence-method-bmc.ipaddr: found ${node.annotations['example.com/bmc']}, which the node itself can write, expected text; only a FenceConfiguration can trust it, with trustedNodeFields and grants
    "#]]
    .assert_eq(&problems("${node.annotations['example.com/bmc']}"));
}

#[test]
fn a_witness_stands_beside_the_stages_and_is_named_by_its_place() {
    const WITNESS: &str = include_str!("../../../examples/config/fence-witness.yaml");
    let configuration = read(&[("fence-witness.yaml", WITNESS)]);
    assert_eq!(lines(&configuration.problems), "");
    expect![[r#"
        fence-witness.yaml
        0 power: ipmi plug="" device="ipmi/192.0.2.11" address=192.0.2.11 privilege-level=operator default:{"secret":{"name":"bmc-credentials","identityKey":"username","secretKey":"password"}} witness=1
        1 hypervisor: proxmox plug="w1" device="proxmox/w1" address=pve.example.com:8006 default:{"secret":{"name":"hypervisor-credentials","identityKey":"username","secretKey":"password"}}
        power: power All [0]
        grant {"plugin":"ipmi","cidrs":["192.0.2.0/24"],"ports":[623]}
        grant {"plugin":"proxmox","hosts":["pve.example.com"],"ports":[8006]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

#[test]
fn a_plug_may_be_the_uuid_that_the_node_reports() {
    const REDFISH: &str = include_str!("../../../examples/config/fence-redfish.yaml");
    let configuration = read(&[("fence-redfish.yaml", REDFISH)]);
    let plan = |system_uuid: &str| {
        let system_uuid = system_uuid.to_owned();
        let facts = NodeFacts { system_uuid, ..node("w1") };
        plan_of(&configuration.fences[0], &facts)
    };
    let uuid = "5ca1ab1e-0000-4000-8000-000000000001";
    assert!(plan(uuid).contains(&format!("plug=\"{uuid}\"")), "{}", plan(uuid));
    assert!(plan("").contains("found node w1 without systemUUID"), "{}", plan(""));
}

#[test]
fn stages_and_methods_of_their_own_are_read() {
    let configuration = read(&[("stages.yaml", STAGES)]);
    expect![[r#"
        stages.yaml:11:11: data.passwd: warning: THE PASSWORD STANDS HERE IN PLAIN TEXT, readable by everyone who may read ConfigMaps; put it into a Secret and write secret=NAME in place of passwd
        stages.yaml:14:15: data.power_wait: warning: has no meaning here and is left out: time-outs and retries are the policy's
    "#]].assert_eq(&lines(&configuration.problems));
    expect![[r#"
        ConfigMap/node-fence-config-w1, ConfigMap/fence-stage-cordon, ConfigMap/fence-stage-power, ConfigMap/fence-stage-back
        0 quarantine: Quarantine plug="" device=""
        1 mark-unschedulable: MarkUnschedulable plug="" device=""
        2 fence_method_w1: ipmi plug="" device="ipmi/192.0.2.11:6230" address=192.0.2.11:6230 cipher-suite=17 privilege-level=operator default:{"configMap":{"name":"fence-method-template-ipmi","identityKey":"login","secretKey":"passwd"}} must-success
        3 mark-schedulable: MarkSchedulable plug="" device=""
        isolation: cordon OnlyOne [0, 1]
        power: power All [2]
        recovery: back All [3]
        grant {"plugin":"ipmi","cidrs":["192.0.2.11/32"],"ports":[6230]}
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w1")));
}

#[test]
fn no_password_reaches_a_plan() {
    for (file, node_name) in [(STAGES, "w1"), (PROPOSAL, "w1")] {
        let configuration = read(&[("a.yaml", file), ("b.yaml", TEMPLATES)]);
        let plan =
            configuration.fences[0].plan_for(&node(node_name), &BTreeSet::new()).value.unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert!(!format!("{configuration:?}").contains("hunter2"), "kept in memory");
        assert!(!lines(&configuration.problems).contains("hunter2"));
    }
}

#[test]
fn expressions_take_from_the_node_and_its_inventory() {
    let text = EXAMPLE
        .replace("${inventory['bmc-address']}", "bmc-${node.name}.example:623")
        .replace("    action: reboot", "    plug: ${inventory['outlet']}\n    action: reboot");
    let configuration = read(&[("f.yaml", &text)]);
    assert_eq!(lines(&configuration.problems), "");
    let table = plan::InventoryTable::parse("nodes", "node,outlet\nw1,A7\n").unwrap();
    let facts = NodeFacts { inventory: table.row("w1"), ..node("w1") };
    let plan = configuration.fences[0].plan_for(&facts, &BTreeSet::new()).value.unwrap();
    let power = plan.methods.iter().find(|method| method.name == "power").unwrap();
    assert_eq!(power.plug, "A7");
    assert_eq!(power.parameters["address"], "bmc-w1.example:623");
    expect![[r#"
        f.yaml:31:11: spec.methods[0].plug: found node w3 without column outlet in the inventory, expected one
    "#]].assert_eq(&plan_of(&configuration.fences[0], &node("w3")));
}

#[test]
fn a_config_map_for_a_node_goes_before_a_selector() {
    let sources = read(&[("a.yaml", EXAMPLE), ("b.yaml", STAGES)]).fences;
    let labels = pairs(&[("node-remedy.io/fence", "ipmi")]);
    let found = |name: &str| {
        plan::for_node(name, &labels, &sources).unwrap().map(|source| source.origin.as_str())
    };
    assert_eq!(found("w1"), Some("ConfigMap/node-fence-config-w1"));
    assert_eq!(found("w2"), Some("a.yaml"));
    assert_eq!(plan::for_node("w2", &LiteMap::new(), &sources).unwrap().map(|_| ()), None);
    let twice = read(&[("a.yaml", EXAMPLE), ("b.yaml", EXAMPLE)]).fences;
    expect!["node w2 is fenced by a.yaml and by b.yaml; change a nodeSelector so that one does"]
        .assert_eq(&plan::for_node("w2", &labels, &twice).unwrap_err().to_string());
}

#[test]
fn a_bare_off_that_kubectl_made_false_still_means_off() {
    let text = EXAMPLE.replace("action: reboot", "action: off");
    let document = Document::read_all("f.yaml", &text).value.unwrap().remove(0);
    let mut object = document.root.to_json();
    let from_file = plan::read(&document);
    object["spec"]["methods"][0]["action"] = false.into();
    let from_object = plan::read(&Document::from_object(&object));
    for reading in [from_file, from_object] {
        assert!(reading.value.is_some(), "{}", reading.problems);
        assert!(lines(&reading.problems).contains("power has no on"), "{}", reading.problems);
    }
}

/// An instance that does not start again keeps no other from being switched off.
#[test]
fn each_instance_of_a_cloud_is_a_device_of_its_own() {
    let aws = include_str!("../../../examples/config/fence-aws.yaml");
    let vmware = include_str!("../../../examples/config/fence-vmware.yaml");
    let device = |example: &str, provider_id: &str| {
        let configuration = read(&[("f.yaml", example)]);
        let node = NodeFacts { provider_id: provider_id.to_owned(), ..node("w1") };
        let plan = configuration.fences[0].plan_for(&node, &BTreeSet::new()).value.unwrap();
        plan.methods.iter().find(|method| method.plugin.is_some()).unwrap().device.clone()
    };
    for address in ["", "\n      address: 192.0.2.1"] {
        let aws = aws.replace("region: eu-west-1", &format!("region: eu-west-1{address}"));
        for instance in ["aws:///eu-west-1a/i-0001", "aws:///eu-west-1a/i-0002"] {
            assert_eq!(device(&aws, instance), format!("aws/{instance}"));
        }
    }
    assert_eq!(device(vmware, "vsphere://1"), "vmware/vsphere://1");
}

/// Whose dumps are heard: the node's own addresses, or the one that is said; each where it is granted.
#[test]
fn what_only_sees_is_a_method_without_an_action() {
    const KDUMP: &str = include_str!("../../../examples/config/fence-kdump.yaml");
    let senders = |text: &str, facts: &NodeFacts| {
        let configuration = read(&[("f.yaml", text)]);
        let source = configuration.fences.first().unwrap_or_else(|| {
            panic!("{}", lines(&configuration.problems));
        });
        let (methods, grants) = source.watches_for(facts);
        let senders = methods.iter().flat_map(|method| method.senders(facts));
        let senders: Vec<String> = senders.map(|sender| sender.to_string()).collect();
        let granted = grants.iter().filter(|grant| grant.plugin == "kdump");
        let granted: Vec<String> = granted.flat_map(|grant| grant.allows.cidrs.clone()).collect();
        format!("{} within {}", senders.join(" "), granted.join(" "))
    };
    let addresses =
        pairs(&[("InternalIP", "10.1.0.7"), ("Hostname", "w1"), ("ExternalIP", "fd00::7")]);
    let facts = NodeFacts { addresses, ..node("w1") };
    assert_eq!(senders(KDUMP, &facts), "fd00::7 10.1.0.7 within 10.1.0.0/16");
    let other = KDUMP.replace("interval: \"10\"", "address: ${node.annotations['crash']}");
    assert_eq!(senders(&other, &facts), " within 10.1.0.0/16", "a node that lacks it is not heard");
    let crash = NodeFacts { annotations: pairs(&[("crash", "10.1.9.9")]), ..facts.clone() };
    assert_eq!(senders(&other, &crash), "10.1.9.9 within 10.1.0.0/16");

    let own = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: fence-config-w1}\ndata:\n  \
               config.properties: |-\n    node_name=w1\n    isolation=crash\n    power_management=bmc\n  \
               fence-method-crash: |-\n    agent_name=fence_kdump\n    ipport=7411\n  \
               fence-method-bmc: |-\n    agent_name=fence_ipmilan\n    ipaddr=192.0.2.11\n    secret=bmc\n";
    assert_eq!(senders(own, &facts), "fd00::7 10.1.0.7 within fd00::7/128 10.1.0.7/32");
    assert!(
        plan_of(&read(&[("f.yaml", own)]).fences[0], &facts)
            .contains("crash: kdump plug=\"\" device=\"kdump\" port=7411")
    );
}

/// In every form, whatever of the address is known only with the node.
#[test]
fn a_port_never_becomes_a_part_of_an_ipv6_address() {
    let own = |ipaddr: &str| {
        format!(
            "kind: ConfigMap\napiVersion: v1\nmetadata: {{name: fence-config-w1}}\ndata:\n  \
             config.properties: |-\n    node_name=w1\n    power_management=bmc\n  \
             fence-method-bmc: |-\n    agent_name=fence_ipmilan\n    ipaddr={ipaddr}\n    \
             ipport=7951\n    secret=bmc\n"
        )
    };
    let written = "address: ${inventory['bmc-address']}";
    let ours = EXAMPLE.replacen(written, &format!("{written}:7951"), 1);
    assert_ne!(ours, EXAMPLE);
    let name = "${node.name}";
    for (text, address, reached) in [
        (own("fd00::5"), "", "[fd00::5]:7951"),
        (own("[fd00::5]"), "", "[fd00::5]:7951"),
        (own("192.0.2.7"), "", "192.0.2.7:7951"),
        (own("192.0.2.7:443"), "", "192.0.2.7:443"),
        (own(name), "fd00::5", "[fd00::5]:7951"),
        (own(name), "[fd00::5]", "[fd00::5]:7951"),
        (own(name), "192.0.2.7", "192.0.2.7:7951"),
        // Refused later, as an address with two ports.
        (own(name), "192.0.2.7:443", "192.0.2.7:443:7951"),
        (own(&format!("{name}.example")), "bmc-7", "bmc-7.example:7951"),
        (own(&format!("fd00::{name}")), "5", "[fd00::5]:7951"),
        (ours.clone(), "fd00::5", "[fd00::5]:7951"),
        (ours.clone(), "fd00:1:2:3:4:5:6", "[fd00:1:2:3:4:5:6]:7951"),
        (ours, "192.0.2.7", "192.0.2.7:7951"),
    ] {
        let configuration = read(&[("f.yaml", &text)]);
        let inventory = pairs(&[("bmc-address", address)]);
        let node = NodeFacts { inventory, ..node(address) };
        let plan = configuration.fences[0].plan_for(&node, &BTreeSet::new()).value.unwrap();
        let power = plan.methods.iter().find(|one| one.plugin.is_some()).unwrap();
        assert_eq!(power.parameters["address"], reached, "{text}");
    }
}

#[test]
fn a_network_fence_is_over_every_internal_ip() {
    const EXAMPLE: &str = include_str!("../../../examples/config/fence-network-fence.yaml");
    let configuration = read(&[("fence-network-fence.yaml", EXAMPLE)]);
    let plan = |ips: &[&str]| {
        let internal_ips = ips.iter().map(|ip| (*ip).to_owned()).collect();
        let facts = NodeFacts { internal_ips, ..node("w1") };
        plan_of(&configuration.fences[0], &facts)
    };
    let both = plan(&["192.0.2.7", "2001:db8::7"]);
    assert!(both.contains(" cidrs=192.0.2.7/32,2001:db8::7/128 "), "{both}");
    assert_eq!(both.matches("storage: NetworkFence").count(), 1, "one, cut and given back: {both}");
    assert!(plan(&[]).contains("a node without InternalIP"), "{}", plan(&[]));
    // A kubelet writes them, and all of them are to be kept away.
    let many = vec!["192.0.2.7"; 33];
    assert!(plan(&many).contains("more than 32 InternalIPs"), "{}", plan(&many));
    assert!(!plan(&many[..32]).contains("InternalIPs"), "{}", plan(&many[..32]));
    assert!(plan(&["w1.example.com"]).contains("expected an address"));
}

/// The class says what the driver and its Secret are.
#[test]
fn a_network_fence_may_name_a_class_instead_of_a_driver() {
    const EXAMPLE: &str = include_str!("../../../examples/config/fence-network-fence.yaml");
    const DRIVER: &str = "      driver: rook-ceph.rbd.csi.ceph.com
      secretName: rook-csi-rbd-provisioner
      secretNamespace: rook-ceph
";
    let read_with = |class: &str| {
        let text = EXAMPLE.replacen(DRIVER, &format!("      networkFenceClass: {class}\n"), 1);
        let configuration = read(&[("fence-network-fence.yaml", &text)]);
        assert_eq!(lines(&configuration.problems), "");
        let internal_ips = vec!["192.0.2.7".to_owned()];
        configuration.fences[0]
            .plan_for(&NodeFacts { internal_ips, ..node("w1") }, &BTreeSet::new())
    };
    let plan = read_with("ceph").value.unwrap();
    let method = plan.methods.iter().find(|one| one.name == "storage").unwrap();
    assert_eq!(method.device, "network-fence/ceph/192.0.2.7/32");
    let spec = network_fence::spec_of(&method.parameters);
    assert_eq!((&*spec.network_fence_class_name, &*spec.driver), ("ceph", ""));
    assert_eq!(spec.secret, FenceSecret::default());
    let refused = lines(&read_with("''").problems);
    assert!(refused.contains("found an empty networkFenceClass, expected one"), "{refused}");
}

/// What no stage names is of a plan only where a remedy names it; elsewhere it may be unfit for the node.
#[test]
fn a_method_that_only_a_remedy_names_is_of_the_plan_where_one_does() {
    const METHODS: &str = "  methods:
  - { name: reset, template: bmc, action: reset }
  - { name: other, template: bmc, action: reset, plug: \"${node.labels['node-restriction.kubernetes.io/no-such']}\" }
  - { name: back, template: bmc, action: on }
";
    let text = EXAMPLE.replace("  methods:\n", METHODS);
    let configuration = read(&[("fence-ipmi.yaml", &text)]);
    assert_eq!(lines(&configuration.problems), "");
    let plan = |named: &[&str]| {
        let named = named.iter().map(|name| (*name).to_owned()).collect();
        let reading = configuration.fences[0].plan_for(&node("w1"), &named);
        let problems = lines(&reading.problems);
        reading.value.map_or(problems, |plan| sketch(&plan))
    };
    assert_eq!(plan(&[]), plan(&["power", "quarantine", "unknown"]));
    expect![[r#"
        fence-ipmi.yaml
        0 quarantine: Quarantine plug="" device=""
        1 power: ipmi plug="" device="ipmi/192.0.2.11" address=192.0.2.11 privilege-level=operator default:{"secret":{"name":"bmc-credentials","identityKey":"username","secretKey":"password"}}
        2 reset: ipmi plug="" device="ipmi/192.0.2.11" address=192.0.2.11 privilege-level=operator default:{"secret":{"name":"bmc-credentials","identityKey":"username","secretKey":"password"}} reset-only
        isolation: keep-new-pods-away All [0]
        power: power All [1]
        grant {"plugin":"ipmi","cidrs":["192.0.2.0/24"],"ports":[623]}
    "#]].assert_eq(&plan(&["reset"]));
    expect![[r#"
        fence-ipmi.yaml:29:56: spec.methods[1].plug: found node w1 without label node-restriction.kubernetes.io/no-such, expected one
    "#]].assert_eq(&plan(&["other"]));
    expect![[r#"
        fence-ipmi.yaml:30:5: spec.methods[2].plug: found back, which only switches on, expected a method that takes something as a remedy
    "#]].assert_eq(&plan(&["back"]));
}
