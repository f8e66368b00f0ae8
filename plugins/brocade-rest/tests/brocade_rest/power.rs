//! Reading, cutting and restoring ports.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_brocade_rest::BrocadeRest;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest};

use crate::switch::{DEADLINE_MS, Switch, ask, ask_for};

fn set(leaf: &str, value: &str) -> String {
    format!("<fibrechannel><name>0/1</name><{leaf}>{value}</{leaf}></fibrechannel>")
}

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(BrocadeRest::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "brocade-rest");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["kind"], "storage");
}

#[test]
fn a_port_is_cut_and_restored_by_the_leaves_that_the_switch_has() {
    for (is_old, leaf, off, on) in
        [(true, "enabled-state", "6", "2"), (false, "is-enabled-state", "false", "true")]
    {
        let ended = ask(Switch { is_old, ..Switch::default() }, Action::Off, "0/1");
        assert_eq!(ended.result.unwrap().state, PlugState::Off);
        assert_eq!(
            ended.web.borrow().server.written,
            [set(leaf, off), set("persistent-disable", "1")]
        );

        let cut = || {
            let mut switch = Switch::reading(|port| {
                (port.is_enabled, port.operation, port.physical) = (false, 3, "No_Light");
                port.persistent = Some(true);
            });
            switch.is_old = is_old;
            switch
        };
        let ended = ask(cut(), Action::On, "1");
        assert_eq!(ended.result.unwrap().state, PlugState::On);
        assert_eq!(
            ended.web.borrow().server.written,
            [set("persistent-disable", "0"), set(leaf, on)]
        );
    }
}

#[test]
fn a_cut_lasts_where_it_can_and_is_wanted() {
    let passing = [("persistent", "false")];
    let ended = ask_for(Switch::default(), Action::Off, "0/1", &passing, |host| host);
    assert!(ended.result.unwrap().detail.ends_with("until the switch restarts"));
    let without = Switch::reading(|port| port.persistent = None);
    let ended = ask(without, Action::Off, "0/1");
    assert_eq!(ended.web.borrow().server.written.len(), 1);
    // It is cut all the same where the second step is refused, and the log says what it is worth.
    let passing = Switch { is_passing: true, ..Switch::default() };
    let ended = ask(passing, Action::Off, "0/1");
    let is_told = |one: &Trace| matches!(one, Trace::Logged(line) if line.starts_with("cut until the switch restarts"));
    assert!(ended.trace.iter().any(is_told));
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
}

#[test]
fn what_is_no_port_is_no_plug() {
    for (plug, says) in [
        ("0/9", "none of the 4 ports of the switch is 0/9"),
        ("1/1", "none of the 4 ports of the switch is 1/1"),
        ("", "found the plug \"\", expected slot/port, such as 0/3"),
        ("port1", "found the plug \"port1\", expected slot/port, such as 0/3"),
        ("0/1</name>", "found the plug \"0/1</name>\", expected slot/port, such as 0/3"),
    ] {
        let ended = ask(Switch::default(), Action::Off, plug);
        assert_eq!(ended.writes().len(), 0);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
}

#[test]
fn a_logical_switch_is_asked_by_its_number() {
    let fabric = [("vf-id", "10")];
    let ended = ask_for(Switch::default(), Action::Off, "0/1", &fabric, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    let asked = ended.trace.iter().filter_map(|one| match one {
        Trace::Asked { line, .. } => Some(line.as_str()),
        Trace::Sent { .. }
        | Trace::Received { .. }
        | Trace::Answered { .. }
        | Trace::BeganEffect { .. }
        | Trace::Logged(_)
        | Trace::Farewell => None,
    });
    assert!(asked.clone().count() == 4 && asked.clone().all(|line| line.ends_with("?vf-id=10")));
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let refuse = |host: TestHost| host.refuse_effect("the lease is over");
    let ended = ask_for(Switch::default(), Action::Off, "0/1", &[], refuse);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
    let reset = ask(Switch::default(), Action::Reset, "0/1");
    assert_eq!(reset.writes().len(), 0);
    assert_eq!(reset.result.unwrap_err().kind, FailureKind::Unsupported);
}

#[test]
fn all_plugs_are_listed() {
    let host = TestHost::new(u64::from(DEADLINE_MS));
    let host = host.web("switch", Rc::new(RefCell::new(Switch::default())));
    let request = PlugsRequest { parameters: vec![], deadline_ms: DEADLINE_MS, extra: vec![] };
    let plugs = BrocadeRest.plugs(&request, &host).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.plug.as_str(), one.state)).collect();
    let on = PlugState::On;
    assert_eq!(told, [("0/0", on), ("0/1", on), ("0/2", PlugState::Off), ("0/3", on)]);
}
