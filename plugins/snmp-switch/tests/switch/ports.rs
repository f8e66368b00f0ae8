//! Finding, reading and cutting ports.

use node_remedy_plugin_snmp::testing::{Agent, Faults};
use node_remedy_plugin_snmp_switch::SnmpSwitch;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};

use crate::device::{
    DEADLINE_MS, admin, alias, ask, ask_for, descr, index, name, oper, poe, switch,
};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(SnmpSwitch::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "snmp-switch");
    assert_eq!(manifest["kind"], "fabric");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_port_goes_by_name_alias_description_or_index() {
    for plug in ["Gi1/0/3", "node3", "GigabitEthernet1/0/3", "index:10003", "10003"] {
        for version in ["1", "2c"] {
            let off = Request {
                plug: plug.to_owned(),
                parameters: vec![("version".to_owned(), version.to_owned())],
                ..Request::new(Action::Off, DEADLINE_MS)
            };
            let ended = ask_for(switch(Some(0)), off, |host| host);
            let outcome = ended.result.unwrap();
            assert_eq!(outcome.state, PlugState::Off, "{plug}");
            assert_eq!(outcome.detail, "off accepted; port Gi1/0/3 reads admin down, oper down");
            assert_eq!(outcome.identity, [("label".to_owned(), "node3".to_owned())]);
            assert_eq!(ended.switch.borrow().written, [(admin(3), 2)]);
            let begun = ended.trace.iter().filter(|one| matches!(one, Trace::BeganEffect { .. }));
            assert_eq!(begun.count(), 1);
        }
    }
    let mut cut = switch(Some(0));
    cut.put_number(&admin(3), 2);
    cut.put_number(&oper(3), 2);
    assert_eq!(ask(cut, Action::On, "Gi1/0/3").result.unwrap().state, PlugState::On);
}

/// fence_ifmib says "already off" here: a port that nobody has is no port that is cut.
#[test]
fn a_port_that_does_not_exist_is_never_off() {
    for action in [Action::Status, Action::Off, Action::On, Action::Monitor] {
        for plug in ["99", "Gi1/0/9", "index:3", "index:", "index:Gi1/0/3", "", "gi1/0/3", "Vl1"] {
            let ended = ask(switch(Some(0)), action, plug);
            assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug, "{plug}");
            assert_eq!(ended.switch.borrow().written, []);
        }
    }
    let failure = ask(Agent::new(), Action::Off, "index:3").result.unwrap_err();
    assert_eq!(failure.detail, "the switch has no port with index 3");
}

#[test]
fn of_several_ports_none_is_taken_for_the_right_one() {
    let row = |change: fn(&mut Agent)| {
        let mut switch = switch(Some(0));
        change(&mut switch);
        switch
    };
    let rows: [(&str, Agent, &str); 4] = [
        (
            "node3",
            row(|it| it.put_text(&alias(5), "node3")),
            "\"node3\" is several ports: index:10003 by its ifAlias, index:10005 by its ifAlias; write which",
        ),
        (
            "Gi1/0/3",
            row(|it| it.put_text(&descr(7), "Gi1/0/3")),
            "\"Gi1/0/3\" is several ports: index:10003 by its ifName, index:10007 by its ifDescr; write which",
        ),
        (
            "10003",
            row(|it| it.put_text(&name(1), "10003")),
            "\"10003\" is several ports: index:10001 by its ifName, index:10003 by its index; write which",
        ),
        (
            "10003",
            row(|it| it.put_text(&alias(8), "10003")),
            "\"10003\" is several ports: index:10008 by its ifAlias, index:10003 by its index; write which",
        ),
    ];
    for (plug, switch, says) in rows {
        let ended = ask(switch, Action::Off, plug);
        assert_eq!(ended.result.unwrap_err().detail, says);
        assert_eq!(ended.switch.borrow().written, []);
    }
    // A name that is the number of the very port is no second one.
    let mut named = switch(Some(0));
    named.put_text(&name(3), &index(3).to_string());
    assert_eq!(ask(named, Action::Off, "10003").result.unwrap().state, PlugState::Off);
}

#[test]
fn a_port_is_cut_when_it_is_told_to_be_down_and_is_no_longer_up() {
    for (told, is, state) in [
        (1, 1, PlugState::On),
        (1, 2, PlugState::On),
        (2, 2, PlugState::Off),
        (2, 6, PlugState::Off),
        (2, 7, PlugState::Off),
        (2, 1, PlugState::Transitioning),
        (2, 3, PlugState::Transitioning),
        (2, 4, PlugState::Transitioning),
        (2, 5, PlugState::Transitioning),
        (3, 3, PlugState::Transitioning),
        (0, 2, PlugState::Unknown),
        (4, 2, PlugState::Unknown),
    ] {
        let mut switch = switch(Some(0));
        switch.put_number(&admin(3), told);
        switch.put_number(&oper(3), is);
        let outcome = ask(switch, Action::Status, "node3").result.unwrap();
        assert_eq!(outcome.state, state, "{}", outcome.detail);
    }
}

/// A link needs some tenths of a second to fall, and no second call is made for that.
#[test]
fn a_port_whose_link_falls_within_a_second_is_off_in_the_same_call() {
    for (falls_ms, state) in [(400, PlugState::Off), (2_000, PlugState::Transitioning)] {
        let ended = ask(switch(Some(falls_ms)), Action::Off, "node3");
        assert_eq!(ended.result.unwrap().state, state, "{falls_ms}");
        assert_eq!(ended.switch.borrow().written.len(), 1, "{falls_ms}");
    }
}

#[test]
fn a_port_that_stays_up_is_not_off() {
    let outcome = ask(switch(None), Action::Off, "node3").result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "off accepted; port Gi1/0/3 reads admin down, oper up still");

    let late = switch(Some(3_000));
    let host = TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", late.shared())
        .credential("community", None, b"private")
        .revealing("community");
    let request = |action| Request {
        plug: "node3".to_owned(),
        parameters: vec![("version".to_owned(), "2c".to_owned())],
        ..Request::new(action, DEADLINE_MS)
    };
    assert_eq!(
        SnmpSwitch.run(&request(Action::Off), &host).unwrap().state,
        PlugState::Transitioning
    );
    let read = Request { until: Some(PlugState::Off), ..request(Action::Status) };
    assert_eq!(SnmpSwitch.run(&read, &host).unwrap().state, PlugState::Off);
}

#[test]
fn a_port_s_power_is_cut_with_it_and_read_back_as_well() {
    let with_power = |action, poe: &str| Request {
        plug: "node3".to_owned(),
        parameters: vec![("poe-port".to_owned(), poe.to_owned())],
        ..Request::new(action, DEADLINE_MS)
    };
    let ended = ask_for(switch(Some(0)), with_power(Action::Off, "1.3"), |host| host);
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.state, PlugState::Off);
    assert!(outcome.detail.ends_with("admin down, oper down, power disabled, none given"));
    assert_eq!(ended.switch.borrow().written, [(admin(3), 2), (poe(3, 3), 2)]);

    // Down, and power still flows.
    let mut fed = switch(Some(0));
    fed.put_number(&admin(3), 2);
    fed.put_number(&oper(3), 2);
    let outcome = ask_for(fed, with_power(Action::Status, "1.3"), |host| host).result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning, "{}", outcome.detail);

    for (written, kind) in [
        ("1.9", FailureKind::NoSuchPlug),
        ("3", FailureKind::BadParameters),
        ("1.3.4", FailureKind::BadParameters),
        ("a.b", FailureKind::BadParameters),
    ] {
        let ended = ask_for(switch(Some(0)), with_power(Action::Off, written), |host| host);
        assert_eq!(ended.result.unwrap_err().kind, kind, "{written}");
        assert_eq!(ended.switch.borrow().written, []);
    }
}

#[test]
fn a_port_has_no_reset() {
    let failure = ask(switch(Some(0)), Action::Reset, "node3").result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unsupported);
}

#[test]
fn the_ports_are_listed_by_an_index_that_can_be_written_back() {
    let host = TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", switch(Some(0)).faulty(Faults::default()).shared())
        .credential("community", None, b"public")
        .revealing("community");
    let parameters = vec![("version".to_owned(), "2c".to_owned())];
    let request = PlugsRequest { parameters, deadline_ms: DEADLINE_MS, extra: Vec::new() };
    let plugs = SnmpSwitch.plugs(&request, &host).unwrap();
    assert_eq!(plugs.len(), 8);
    let first = &plugs[0];
    assert_eq!((first.plug.as_str(), first.name.as_str()), ("index:10001", "Gi1/0/1"));
    assert_eq!(first.identity, [("label".to_owned(), "node1".to_owned())]);
    assert!(plugs.iter().all(|one| one.state == PlugState::On));
    assert_eq!(
        ask(switch(Some(0)), Action::Status, &first.plug).result.unwrap().state,
        PlugState::On
    );
}
