//! Reading and switching power, and finding whose it is.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_vmware::VMware;
use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::vcenter::{DEADLINE_MS, UUID, VCenter, ask, ask_for, machine};

fn old(is_old: bool) -> VCenter {
    VCenter { is_old, ..VCenter::default() }
}

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(VMware::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "vmware");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_machine_is_found_by_id_name_or_uuid_in_both_forms() {
    let instance = UUID.replace("4213", "5013");
    for is_old in [false, true] {
        for plug in
            ["vm-41", "node1", UUID, &format!("vsphere://{}", UUID.to_uppercase()), &instance]
        {
            let outcome = ask(old(is_old), Action::Status, plug).result.unwrap();
            assert_eq!(outcome.state, PlugState::On, "{plug}");
            let named =
                ["instance-id", "system-uuid"].map(|name| (name.to_owned(), UUID.to_owned()));
            assert_eq!(outcome.identity, named);
        }
    }
    // A name may look like an id, and hold what a query is made of.
    let mut vcenter = VCenter::default();
    vcenter.machines[0].name = "vm-7".to_owned();
    assert_eq!(ask(vcenter, Action::Status, "vm-7").result.unwrap().state, PlugState::On);
    let ended = ask(VCenter::default(), Action::Status, "a&names=node1");
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}

#[test]
fn of_several_machines_none_is_taken_for_the_right_one() {
    let mut twins = VCenter::default();
    twins.machines[1] = machine(41, "node1", "POWERED_OFF");
    twins.machines[1].id = "vm-42".to_owned();
    let none = VCenter { machines: Vec::new(), ..VCenter::default() };
    let seen =
        "vCenter shows none to an account without rights: check that it may read the machine";
    let missing = format!("there is no machine \"node1\"; {seen}");
    let no_uuid = format!("no machine has the UUID {UUID}; {seen}");
    let (twin_name, twin_uuid) = (
        "2 machines have the name \"node1\"; name one by its id: vm-41, vm-42",
        format!("several machines have the UUID {UUID}: vm-41, vm-42"),
    );
    let twins = || VCenter { machines: twins.machines.clone(), ..VCenter::default() };
    let none = || VCenter { machines: none.machines.clone(), ..VCenter::default() };
    let stranger = UUID.replace("4213", "9999");
    let not_asked = format!("none of the 2 machines that were asked has the UUID {stranger}");
    for (vcenter, plug, says) in [
        (twins(), "node1", twin_name),
        (twins(), UUID, &*twin_uuid),
        (none(), "node1", &*missing),
        (none(), UUID, &*no_uuid),
        (VCenter::default(), &*stranger, &*not_asked),
        (VCenter::default(), "", "the plug names no machine: expected its id, name or UUID"),
    ] {
        let ended = ask(vcenter, Action::Off, plug);
        assert_eq!(ended.writes().len(), 0);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
}

#[test]
fn among_too_many_machines_a_name_finds_the_uuid() {
    let full = || VCenter { is_full: true, ..VCenter::default() };
    let failure = ask(full(), Action::Status, UUID).result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadParameters);
    assert!(failure.detail.contains("Too many virtual machines"), "{}", failure.detail);
    assert!(failure.detail.ends_with("set the parameter name"), "{}", failure.detail);
    let many = (1..=450).map(|number| machine(number, "many", "POWERED_ON")).collect();
    let many = VCenter { machines: many, ..VCenter::default() };
    let failure = ask(many, Action::Status, UUID).result.unwrap_err();
    assert!(failure.detail.starts_with("there are 450 machines"), "{}", failure.detail);
    let name = [("name", "node1")];
    let ended = ask_for(full(), Action::Status, UUID, &name, |request| request, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!(ended.trace.len() <= 4, "{:?}", ended.trace);
}

#[test]
fn power_is_switched_and_read_back_in_both_forms() {
    for is_old in [false, true] {
        for (action, plug, asked, state) in [
            (Action::Off, "vm-41", "stop vm-41", PlugState::Off),
            (Action::On, "vm-42", "start vm-42", PlugState::On),
            (Action::Reset, "vm-41", "reset vm-41", PlugState::On),
        ] {
            let ended = ask(old(is_old), action, plug);
            assert_eq!(ended.result.as_ref().unwrap().state, state, "{asked}");
            assert_eq!(ended.web.borrow().server.asked, [asked]);
            let is_effect = |one: &Trace| matches!(one, Trace::BeganEffect { .. });
            let is_post =
                |one: &Trace| matches!(one, Trace::Asked { line, .. } if line.starts_with("POST"));
            assert!(ended.trace.iter().position(is_effect) < ended.trace.iter().position(is_post));
        }
    }
}

#[test]
fn what_is_so_already_needs_nothing() {
    for is_old in [false, true] {
        for (action, plug, says) in [
            (Action::Off, "vm-42", "stop not needed; power_state is POWERED_OFF"),
            (Action::On, "vm-41", "start not needed; power_state is POWERED_ON"),
        ] {
            assert_eq!(ask(old(is_old), action, plug).result.unwrap().detail, says);
        }
    }
    let suspended = VCenter::reading("SUSPENDED");
    assert_eq!(ask(suspended, Action::Off, "vm-41").result.unwrap().state, PlugState::Off);
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let expect = |mut request: Request| {
        request.extra.push((EXPECT_SYSTEM_UUID.to_owned(), UUID.replace("4213", "5013")));
        request
    };
    let ended = ask_for(VCenter::default(), Action::Off, "node1", &[], expect, |host| host);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let refuse = |host: TestHost| host.refuse_effect("the lease is over");
    let ended = ask_for(VCenter::default(), Action::Off, "vm-41", &[], |request| request, refuse);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn all_plugs_are_listed() {
    let host = TestHost::new(u64::from(DEADLINE_MS));
    let host = host.web("api", Rc::new(RefCell::new(VCenter::default())));
    let request = PlugsRequest { parameters: vec![], deadline_ms: DEADLINE_MS, extra: vec![] };
    let plugs = VMware.plugs(&request, &host).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.plug.as_str(), one.state)).collect();
    assert_eq!(told, [("vm-41", PlugState::On), ("vm-42", PlugState::Off)]);
}
