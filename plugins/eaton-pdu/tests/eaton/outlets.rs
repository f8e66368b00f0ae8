//! Finding, reading and switching outlets, in each of the tables.

use node_remedy_plugin_eaton_pdu::EatonPdu;
use node_remedy_plugin_snmp::testing::Faults;
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest};
use proptest::prelude::*;

use crate::pdu::{DEADLINE_MS, MODELS, Model, all_outlets, ask};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(EatonPdu::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "eaton-pdu");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_table_is_read_and_switched_by_its_own_numbers() {
    for model in MODELS {
        let [on, off] = model.states();
        let ended = ask(model.pdu(), Action::Off, "3");
        assert_eq!(ended.result.unwrap().state, PlugState::Off, "{model:?}");
        assert_eq!(ended.pdu.borrow().written.len(), 1);
        let truth =
            |outlet| ended.pdu.borrow_mut().truth(DEADLINE_MS.into(), &model.status(outlet));
        assert_eq!(truth(3), Some(off), "{model:?}");
        for outlet in [1, 2, 4, 5, 6, 7, 8] {
            assert_eq!(truth(outlet), Some(on), "{model:?} {outlet}");
        }
        let mut dark = model.pdu();
        dark.put_number(&model.status(3), off);
        assert_eq!(ask(dark, Action::Status, "3").result.unwrap().state, PlugState::Off);
        let mut dark = model.pdu();
        dark.put_number(&model.status(8), off);
        assert_eq!(ask(dark, Action::On, "8").result.unwrap().state, PlugState::On, "{model:?}");
        let reset = ask(model.pdu(), Action::Reset, "1");
        assert_eq!(reset.result.unwrap().state, PlugState::Transitioning, "{model:?}");
        assert_eq!(reset.pdu.borrow().written.len(), 1);
        assert!(ask(model.pdu(), Action::Monitor, "1").result.is_ok(), "{model:?}");
    }
}

#[test]
fn outlets_have_names_and_units() {
    let label = |model: Model, plug: &str| {
        let outcome = ask(model.pdu(), Action::Status, plug).result.unwrap();
        outcome.identity.into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(label(Model::Epdu, "3"), ["node3-0"]);
    assert_eq!(label(Model::Epdu, "2.1"), ["node1-2"]);
    assert_eq!(label(Model::Epdu, "node2-2"), ["node2-2"]);
    assert_eq!(label(Model::Managed, "8"), ["node8"]);
    assert_eq!(label(Model::Managed, "node1"), ["node1"]);
    assert_eq!(label(Model::Switched, "8"), [""; 0]);
}

#[test]
fn an_outlet_that_does_not_exist_is_never_off() {
    for model in MODELS {
        for action in [Action::Status, Action::Off, Action::On, Action::Reset, Action::Monitor] {
            for plug in ["0", "9", "3.1", "4294967295", "4294967296", "all", "", "03"] {
                let ended = ask(model.pdu(), action, plug);
                let failure = ended.result.unwrap_err();
                assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{model:?} {plug}");
                assert_eq!(ended.pdu.borrow().written, []);
            }
        }
    }
}

#[test]
fn a_pending_outlet_is_neither_on_nor_off() {
    for (number, state) in [
        (0, PlugState::Off),
        (1, PlugState::On),
        (2, PlugState::Transitioning),
        (3, PlugState::Transitioning),
        (4, PlugState::Unknown),
        (-1, PlugState::Unknown),
    ] {
        let mut pdu = Model::Epdu.pdu();
        pdu.put_number(&Model::Epdu.status(3), number);
        assert_eq!(ask(pdu, Action::Status, "3").result.unwrap().state, state, "{number}");
    }
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    for model in MODELS {
        let late = model.pdu().faulty(Faults { late_ms: 4_000, ..Faults::default() });
        let outcome = ask(late, Action::Off, "3").result.unwrap();
        assert_eq!(outcome.state, PlugState::Transitioning, "{}", outcome.detail);
    }
}

#[test]
fn the_outlets_are_listed_as_they_are_printed() {
    for (model, count, last) in
        [(Model::Epdu, 10, "2.2"), (Model::Managed, 8, "8"), (Model::Switched, 8, "8")]
    {
        let host = TestHost::new(u64::from(DEADLINE_MS))
            .device("agent", model.pdu().shared())
            .credential("community", None, b"public")
            .revealing("community");
        let parameters = vec![("version".to_owned(), "2c".to_owned())];
        let request = PlugsRequest { parameters, deadline_ms: DEADLINE_MS, extra: Vec::new() };
        let plugs = EatonPdu.plugs(&request, &host).unwrap();
        assert_eq!((plugs.len(), plugs[0].plug.as_str()), (count, "1"), "{model:?}");
        assert_eq!(plugs.last().unwrap().plug, last, "{model:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever the plug is called: one outlet, or none.
    #[test]
    fn no_plug_switches_all_outlets(plug in "[0-9.]{0,11}|[a-z0-9. -]{0,12}") {
        let ended = ask(Model::Switched.pdu(), Action::Off, &plug);
        let written = ended.pdu.borrow().written.clone();
        prop_assert!(written.iter().all(|(oid, _)| *oid != all_outlets()), "{plug}");
        let dark = (1..=8).filter(|outlet| {
            let status = Model::Switched.status(*outlet);
            ended.pdu.borrow_mut().truth(DEADLINE_MS.into(), &status) == Some(2)
        });
        prop_assert!(dark.count() <= 1, "{plug}");
    }
}
