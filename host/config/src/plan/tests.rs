//! Plans of every kind of method, identities in every spelling, and defaults that agree.

use std::collections::BTreeMap;

use node_remedy_api::plan::{Builtin, Method, NeededFor, Run, Stage};
use node_remedy_api::policy::KdumpReleases;
use node_remedy_api::time::Moment;
use node_remedy_decide::{Feed, Kind, Path};

use super::*;
use crate::wiring::Tried;

fn method(name: &str, plugin: &str) -> Method {
    Method {
        name: name.to_owned(),
        plugin: Some(plugin.to_owned()),
        builtin: None,
        plug: String::new(),
        device: format!("{name}.example"),
        parameters: BTreeMap::new(),
        credentials: BTreeMap::new(),
        must_success: false,
        sole_feed: false,
        trust_wiring: false,
        storage_drivers: Vec::new(),
        reset_only: false,
        witness: None,
        facts: None,
    }
}

fn stage(run: Run, methods: &[u32]) -> Stage {
    let needed_for = NeededFor::NextStep;
    Stage { name: "stage".into(), run, needed_for, methods: methods.into() }
}

fn node() -> FencedNode {
    FencedNode {
        name: "node-a".into(),
        uid: "uid-a".into(),
        system_uuid: "EFCDAB89-6745-23A1-EFCD-AB89674523A1".into(),
        ..FencedNode::default()
    }
}

fn find(name: &str) -> Result<PluginFacts, String> {
    let (kind, identity) = match name {
        "ipmi" => (PluginKind::Power, vec!["system-uuid".to_owned()]),
        "pdu" => (PluginKind::Power, vec![]),
        "switch" => (PluginKind::Fabric, vec![]),
        "san" => (PluginKind::Storage, vec![]),
        "kdump" => (PluginKind::Watch, vec![]),
        _ => return Err("no such plugin".into()),
    };
    Ok(PluginFacts { digest: "d".into(), kind, late_effect: Span::from_s(30), identity })
}

fn power(methods: Vec<Method>, stages: Vec<Stage>) -> Result<decide::Plan, PlanError> {
    let plan = NodePlan { methods, power_management: stages, ..NodePlan::default() };
    plan_from(&snapshot(&plan, &node(), &Wiring::default(), find)?, &node(), &[])
}

#[test]
fn kinds_follow_from_plugin_and_configuration() {
    let sole = Method { sole_feed: true, ..method("outlet", "pdu") };
    let reset = Method { reset_only: true, ..method("reset", "ipmi") };
    let builtin =
        Method { plugin: None, builtin: Some(Builtin::MarkUnschedulable), ..method("cordon", "") };
    for (method, kind) in [
        (method("bmc", "ipmi"), Kind::Power(Feed::Whole)),
        (method("outlet", "pdu"), Kind::Power(Feed::Part)),
        (sole, Kind::Power(Feed::Whole)),
        (reset, Kind::ResetOnly),
        (method("port", "switch"), Kind::Fabric(Path::ApiServer)),
        (method("zone", "san"), Kind::Storage { drivers: Vec::new() }),
        (method("crash", "kdump"), Kind::Watch),
        (builtin, Kind::Builtin(decide::Builtin::MarkUnschedulable)),
    ] {
        let name = method.name.clone();
        let plan = power(vec![method], vec![]).unwrap();
        assert_eq!(plan.methods[0].kind, kind, "{name}");
    }
}

#[test]
fn a_plan_keeps_its_order_its_numbers_and_its_node() {
    let methods = vec![method("one", "ipmi"), method("two", "pdu"), method("three", "pdu")];
    let stages = vec![stage(Run::OnlyOne, &[0]), stage(Run::All, &[2, 1])];
    let plan = power(methods, stages).unwrap();
    assert_eq!((plan.node.name.as_str(), plan.node.uid.as_str()), ("node-a", "uid-a"));
    assert_eq!(plan.power_methods().collect::<Vec<_>>(), [0, 2, 1]);
    assert_eq!(plan.power[0].execution, decide::Execution::OnlyOne);
    assert_eq!(plan.methods[0].late_effect, decide::Span::seconds(30));
    assert_eq!(plan.methods[0].device_kind, "ipmi");
    assert!(matches!(plan.methods[0].binding, decide::Binding::Reported { .. }));
    assert_eq!(plan.methods[1].binding, decide::Binding::Unverified);
}

/// An outlet is bound by a trial or by the configuration's word; a witness knows another thing than whose outlet it is.
#[test] // promise: P8
fn an_outlet_that_nobody_answers_for_is_unverified() {
    let outlet = || Method { sole_feed: true, ..method("outlet", "pdu") };
    let trusted = Method { trust_wiring: true, ..outlet() };
    let witnessed = Method { witness: Some(1), ..outlet() };
    let reset = Method { reset_only: true, ..outlet() };
    let storage_drivers = vec!["fc.csi.example.com".to_owned()];
    let san = Method { storage_drivers, ..method("port", "san") };
    for (case, method, expected) in [
        ("the only feed", outlet(), api::Binding::Unverified),
        ("one of several", method("outlet", "pdu"), api::Binding::Unverified),
        ("trusted", trusted, api::Binding::Labelled),
        ("a BMC reads its machine", witnessed, api::Binding::Unverified),
        ("a reset", reset, api::Binding::Unverified),
        ("a port", method("port", "switch"), api::Binding::Labelled),
        ("a port of a SAN that releases nothing", method("port", "san"), api::Binding::Labelled),
        ("one that does", san.clone(), api::Binding::Unverified),
        ("one that is trusted", Method { trust_wiring: true, ..san }, api::Binding::Labelled),
    ] {
        let methods = vec![method, super::tests::method("bmc", "ipmi")];
        let plan = NodePlan { methods, ..NodePlan::default() };
        let plan = snapshot(&plan, &node(), &Wiring::default(), find).unwrap();
        assert_eq!(plan.methods[0].facts.as_ref().unwrap().binding, expected, "{case}");
    }
}

/// A trial makes an outlet verified for the node that it was made for, and changes nothing for a device
/// that names its machine.
#[test]
fn a_plug_that_was_tried_for_this_very_node_is_verified() {
    let methods = [method("bmc", "ipmi"), method("one", "pdu"), method("two", "pdu")];
    let tried = methods.iter().take(2).fold(Wiring::default(), |wiring, method| {
        wiring.with(Tried::now(&node(), method, &[], Moment::from_ms(1), "alice"))
    });
    let plan = NodePlan { methods: methods.into(), ..NodePlan::default() };
    let bindings = |node: &FencedNode| -> Vec<api::Binding> {
        let plan = snapshot(&plan, node, &tried, find).unwrap();
        plan.methods.iter().map(|one| one.facts.as_ref().unwrap().binding).collect()
    };
    let expected = [api::Binding::Reported, api::Binding::Verified, api::Binding::Unverified];
    assert_eq!(bindings(&node()), expected);
    let anew = FencedNode { uid: "uid-b".into(), ..node() };
    let expected = [api::Binding::Reported, api::Binding::Unverified, api::Binding::Unverified];
    assert_eq!(bindings(&anew), expected, "a node made anew");
}

fn remedy(method: &str) -> RemedyStep {
    RemedyStep {
        name: "gently".into(),
        period: Span::from_s(60),
        clean_resource: false,
        job: None,
        cluster: None,
        method: Some(method.into()),
        plugin: None,
        isolation_only: false,
    }
}

#[test]
fn a_remedy_may_be_one_method_whether_a_stage_names_it_or_not() {
    let plan = NodePlan {
        methods: vec![
            method("bmc", "ipmi"),
            Method { reset_only: true, ..method("reset", "ipmi") },
            method("port", "switch"),
            method("crash", "kdump"),
            Method { plugin: None, builtin: Some(Builtin::Quarantine), ..method("quarantine", "") },
            method("back", "switch"),
        ],
        isolation: vec![stage(Run::All, &[4, 2])],
        power_management: vec![stage(Run::All, &[0])],
        recovery: vec![stage(Run::All, &[2, 5])],
        ..NodePlan::default()
    };
    let plan = snapshot(&plan, &node(), &Wiring::default(), find).unwrap();
    let with = |name: &str| plan_from(&plan, &node(), &[remedy(name)]);
    for (name, index, beside) in
        [("bmc", 0, &[][..]), ("reset", 1, &[1]), ("port", 2, &[]), ("port-off", 2, &[])]
    {
        let plan = with(name).unwrap();
        assert_eq!(plan.ladder[0].remedy, decide::Remedy::Method(index), "{name}");
        assert_eq!(plan.beside, beside, "{name}");
    }
    let refused = |name: &str| with(name).unwrap_err().to_string();
    let why = ["crash", "quarantine", "back", "outlet"].map(refused).join("\n");
    expect_test::expect![[r#"
        remedy gently: method "crash" cannot be a remedy: it only sees, and does nothing
        remedy gently: method "quarantine" cannot be a remedy: it is built in; say cluster: and what is to be done
        remedy gently: method "back" cannot be a remedy: only recovery names it: it gives back, and takes nothing
        remedy gently: method "outlet" cannot be a remedy: the node's FenceConfiguration has none of that name under methods; its stages name bmc, reset, port, crash, quarantine, back"#]].assert_eq(&why);
}

#[test]
fn a_plan_that_contradicts_itself_is_refused_by_name() {
    let must = Method { must_success: true, ..method("must", "ipmi") };
    let own = Method { witness: Some(0), ..method("own", "ipmi") };
    let far = Method { witness: Some(7), ..method("far", "ipmi") };
    let both = Method { builtin: Some(Builtin::Quarantine), ..method("both", "ipmi") };
    for (methods, stages, error) in [
        (
            vec![method("a", "ipmi")],
            vec![stage(Run::All, &[0, 1])],
            "powerManagement[0].methods[1]: found method 1, expected one below 1",
        ),
        (
            vec![must],
            vec![stage(Run::OnlyOne, &[0])],
            "stage: method must must succeed, but only one method of the stage runs",
        ),
        (vec![own], vec![], "method own: found itself as witness, expected another method"),
        (vec![far], vec![], "method far: witness: found method 7, expected one below 1"),
        (
            vec![Method { witness: Some(1), ..method("bmc", "ipmi") }, method("again", "ipmi")],
            vec![stage(Run::All, &[0])],
            "method bmc: found again as its witness, expected a method of another plugin that reads the \
             machine's power",
        ),
        (
            vec![Method { witness: Some(1), ..method("bmc", "ipmi") }, method("port", "switch")],
            vec![stage(Run::All, &[0])],
            "method bmc: found port as its witness, expected a method of another plugin that reads the \
             machine's power",
        ),
        (vec![both], vec![], "method both: expected either a plugin or a built-in method"),
        (
            vec![method("a", "nosuch")],
            vec![],
            "method a: plugin \"nosuch\" cannot be used: no such plugin",
        ),
        (
            vec![method("bmc", "ipmi"), method("outlet", "pdu")],
            vec![stage(Run::OnlyOne, &[0, 1])],
            "method outlet: found one outlet that may be one of several, expected soleFeed: true \
             or every outlet of the machine",
        ),
    ] {
        assert_eq!(power(methods, stages).unwrap_err().to_string(), error);
    }
    let bare = NodePlan { methods: vec![method("a", "ipmi")], ..NodePlan::default() };
    assert_eq!(
        plan_from(&bare, &node(), &[]).unwrap_err().to_string(),
        "method a: found no facts, expected it in the incident's snapshot"
    );
}

fn expected(node: &FencedNode, field: &str) -> Vec<String> {
    let all = identity::expected(node, &[field.to_owned()]);
    all.into_iter().map(|field| field.value).collect()
}

#[test]
fn a_uuid_counts_in_three_byte_orders() {
    // What ipmi_sim sends, and what ipmitool prints of it.
    let simulated = expected(&node(), "system-uuid");
    assert!(simulated.contains(&"a123456789abcdefa123456789abcdef".to_owned()), "{simulated:?}");
    let node = FencedNode { system_uuid: "00112233-4455-6677-8899-aabbccddeeff".into(), ..node() };
    assert_eq!(
        expected(&node, "system-uuid"),
        [
            "00112233-4455-6677-8899-aabbccddeeff",
            "00112233445566778899aabbccddeeff",
            "33221100-5544-7766-8899-aabbccddeeff",
            "33221100554477668899aabbccddeeff",
            "ffeeddcc-bbaa-9988-7766-554433221100",
            "ffeeddccbbaa99887766554433221100",
        ]
    );
}

#[test]
fn a_uuid_that_names_no_machine_is_no_identity() {
    for text in [
        "",
        "not a uuid",
        "00112233-4455-6677-8899-aabbccddeef",
        "0011223-34455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeefg",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
    ] {
        let node = FencedNode { system_uuid: text.into(), ..node() };
        assert!(expected(&node, "system-uuid").is_empty(), "{text:?}");
    }
}

#[test]
fn an_instance_is_what_its_provider_calls_it() {
    for (provider_id, id) in [
        ("aws:///eu-west-1a/i-0abc", Some("i-0abc")),
        ("gce://project/zone/name", Some("project/zone/name")),
        (
            "azure:///subscriptions/s/resourceGroups/g/providers/p/virtualMachines/v",
            Some("/subscriptions/s/resourceGroups/g/providers/p/virtualMachines/v"),
        ),
        ("openstack:///uuid", Some("uuid")),
        ("openstack://region/uuid", Some("uuid")),
        ("vsphere://uuid", Some("uuid")),
        ("aws:///eu-west-1a/vm-1", None),
        ("gce://project/name", None),
        ("kind://docker/kind/node", None),
        ("i-0abc", None),
        ("", None),
    ] {
        let node = FencedNode { provider_id: provider_id.into(), ..node() };
        let id: Vec<String> = id.map(ToOwned::to_owned).into_iter().collect();
        assert_eq!(expected(&node, "instance-id"), id, "{provider_id:?}");
    }
}

#[test]
fn defaults_agree_with_the_core() {
    assert_eq!(incident_policy_of(&IncidentPolicy::default()), decide::IncidentPolicy::default());
    assert_eq!(gate_policy_of(&GateLimits::default()), decide::GatePolicy::default());
}

#[test]
fn numbers_keep_their_meaning() {
    let written = IncidentPolicy {
        isolate_after: Span::from_ms(1),
        power_after: Span::from_ms(2),
        kdump_grace: Some(Span::from_ms(3)),
        backoff: Span::from_ms(4),
        off_timeout: Span::from_ms(5),
        on_timeout: Span::from_ms(6),
        release_mode: ReleaseMode::Paced,
        pods_per_minute: 0,
        kdump_releases: KdumpReleases::All,
        power_on_if_found_off: false,
        park_isolated: true,
        approval: true,
        ..IncidentPolicy::default()
    };
    let read = incident_policy_of(&written);
    let spans = [read.isolate_after, read.power_after, read.backoff, read.off_timeout];
    assert_eq!(spans.map(|span| span.0), [1, 2, 4, 5]);
    assert_eq!((read.kdump_grace, read.on_timeout), (Some(decide::Span(3)), decide::Span(6)));
    assert_eq!(read.release, decide::ReleaseMode::Paced { pods_per_minute: 1 });
    assert_eq!(read.kdump_releases, decide::KdumpReleases::All);
    assert_eq!(read.found_off, decide::FoundOff::LeaveOff);
    assert_eq!(read.isolated_for_good, decide::IsolatedForGood::Park);
    assert_eq!(read.approval, decide::Approval::Needed);
}
