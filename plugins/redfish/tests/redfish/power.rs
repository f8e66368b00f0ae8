//! Reading and switching power, and finding whose it is.

use node_remedy_plugin_redfish::Redfish;
use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

use crate::bmc::{Bmc, DEADLINE_MS, UUID_A, UUID_B, ask, ask_for};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Redfish::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "redfish");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_system_is_found_by_id_uuid_or_path_on_any_page() {
    for page in [0, 1] {
        for plug in ["2", UUID_B, &UUID_B.to_lowercase().replace('-', ""), "/redfish/v1/Systems/2"]
        {
            let outcome =
                ask(Bmc { page, ..Bmc::with_two() }, Action::Status, plug).result.unwrap();
            assert_eq!(outcome.state, PlugState::Off, "{plug}");
            let uuid = ("system-uuid".to_owned(), UUID_B.to_owned());
            assert_eq!(outcome.identity, [uuid, ("serial".to_owned(), "SN2".to_owned())]);
        }
    }
    let only = ask(Bmc::with_one("On"), Action::Status, "").result.unwrap();
    assert_eq!((only.state, only.detail.as_str()), (PlugState::On, "PowerState is On"));
}

#[test]
fn of_several_systems_none_is_taken_for_the_right_one() {
    for (plug, says) in [
        ("", "the BMC has 2 systems and the plug names none; expected one of 1, 2"),
        ("3", r#"no system has the id or UUID "3"; expected one of 1, 2"#),
        ("/redfish/v1/Systems/3", "there is no system at /redfish/v1/Systems/3"),
    ] {
        let failure = ask(Bmc::with_two(), Action::Off, plug).result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
    let mut twins = Bmc::with_two();
    twins.machines[1].resource["UUID"] = UUID_A.into();
    let failure = ask(twins, Action::Off, UUID_A).result.unwrap_err();
    assert!(failure.detail.starts_with("2 systems have the UUID"), "{}", failure.detail);
    let failure = ask(
        Bmc::with_one("On").changed(|it| it["@odata.type"] = "#Chassis.v1_0_0.Chassis".into()),
        Action::Off,
        "",
    );
    assert_eq!(failure.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}

/// OpenBMC says `Off` of a host of which it knows nothing, and its chassis says that there is power (openbmc/openbmc#2224). An
/// enclosure of another make is on while its machine is off.
#[test]
fn an_openbmc_is_off_only_where_its_chassis_is() {
    let links = |manager: &str| {
        json!({
            "Chassis": [{ "@odata.id": "/redfish/v1/Chassis/board" }],
            "ManagedBy": [{ "@odata.id": format!("/redfish/v1/Managers/{manager}") }]
        })
    };
    for (manager, chassis, reads) in [
        ("bmc", r#"{ "PowerState": "Off" }"#, PlugState::Off),
        ("bmc", "{}", PlugState::Off),
        ("bmc", r#"{ "PowerState": "On" }"#, PlugState::Unknown),
        ("BMC_0", r#"{ "PowerState": "PoweringOff" }"#, PlugState::Unknown),
        ("1", r#"{ "PowerState": "On" }"#, PlugState::Off),
    ] {
        let bmc = Bmc::with_one("Off").changed(|it| it["Links"] = links(manager));
        let bmc = bmc.instead("GET /redfish/v1/Chassis/board", 200, chassis);
        let outcome = ask(bmc, Action::Status, "").result.unwrap();
        assert_eq!(outcome.state, reads, "{manager}: {chassis}: {}", outcome.detail);
    }
    let on = Bmc::with_one("On").changed(|it| it["Links"] = links("bmc"));
    assert_eq!(ask(on, Action::Status, "").result.unwrap().state, PlugState::On);
    let unread = Bmc::with_one("Off").changed(|it| it["Links"] = links("bmc"));
    let unread = unread.instead("GET /redfish/v1/Chassis/board", 500, "{}");
    assert!(ask(unread, Action::Status, "").result.is_err(), "nobody knows");
}

#[test]
fn power_is_switched_by_the_words_that_the_bmc_takes() {
    for (action, plug, word, state) in [
        (Action::Off, "1", "ForceOff", PlugState::Off),
        (Action::On, "2", "On", PlugState::On),
        (Action::Reset, "1", "ForceRestart", PlugState::On),
    ] {
        let ended = ask(Bmc::with_two(), action, plug);
        assert_eq!(ended.result.as_ref().unwrap().state, state, "{word}");
        assert_eq!(ended.web.borrow().server.resets, [(plug.to_owned(), word.to_owned())]);
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let posted = ended
            .trace
            .iter()
            .position(|one| matches!(one, Trace::Asked { line, .. } if line.starts_with("POST")));
        assert!(begun.unwrap() < posted.unwrap());
    }
    // Told by the action's own resource, or not at all.
    let info = "@Redfish.ActionInfo";
    for told in [true, false] {
        let bmc = Bmc::with_one("On").changed(|it| {
            let reset = &mut it["Actions"]["#ComputerSystem.Reset"];
            reset.as_object_mut().unwrap().remove("ResetType@Redfish.AllowableValues");
            if told {
                reset[info] = "/redfish/v1/Systems/1/ResetActionInfo".into();
            }
        });
        assert_eq!(ask(bmc, Action::Off, "").result.unwrap().state, PlugState::Off);
    }
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let ended = ask(Bmc { late_ms: 9_000, ..Bmc::with_one("On") }, Action::Off, "");
    let outcome = ended.result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, "ForceOff accepted; PowerState is On still");

    // As the host goes on: it reads until the plug is off.
    let bmc = Rc::new(RefCell::new(Bmc { late_ms: 9_000, ..Bmc::with_one("On") }));
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("bmc", bmc);
    Redfish.run(&Request::new(Action::Off, DEADLINE_MS), &host).unwrap();
    let until = Some(PlugState::Off);
    let read = Request { until, ..Request::new(Action::Status, DEADLINE_MS) };
    assert_eq!(Redfish.run(&read, &host).unwrap().state, PlugState::Off);
    assert!((9_000..12_000).contains(&host.elapsed().as_millis()), "{:?}", host.elapsed());
}

#[test]
fn a_stuck_bmc_is_read_until_the_deadline_and_never_said_to_be_off() {
    let stuck = || Bmc { is_stuck: true, ..Bmc::with_one("On") };
    assert_eq!(ask(stuck(), Action::Off, "").result.unwrap().state, PlugState::Transitioning);
    let until = Some(PlugState::Off);
    let read = Request { until, ..Request::new(Action::Status, 20_000) };
    let ended = ask_for(stuck(), &read, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!((15_000..20_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn what_is_so_already_needs_nothing_where_a_bmc_says_so() {
    let strict = |power| Bmc { is_strict: true, ..Bmc::with_one(power) };
    for (action, power, says) in [
        (Action::Off, "Off", "ForceOff not needed; PowerState is Off"),
        (Action::On, "On", "On not needed; PowerState is On"),
    ] {
        let outcome = ask(strict(power), action, "").result.unwrap();
        assert_eq!(outcome.detail, says);
    }
    // A machine that was not reset was not reset.
    assert!(ask(strict("On"), Action::Reset, "").result.is_err());
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let off = |expected: &str| Request {
        extra: vec![(EXPECT_SYSTEM_UUID.to_owned(), expected.to_owned())],
        ..Request::new(Action::Off, DEADLINE_MS)
    };
    let ended = ask_for(Bmc::with_one("On"), &off(&UUID_A.to_lowercase()), |host| host);
    assert_eq!(ended.result.as_ref().unwrap().state, PlugState::Off);
    let nameless = Bmc::with_one("On").changed(|it| it["UUID"] = "0000-00".into());
    for (bmc, expected) in [(Bmc::with_one("On"), UUID_B), (nameless, UUID_A)] {
        let ended = ask_for(bmc, &off(expected), |host| host);
        assert_eq!(ended.writes().len(), 0);
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    }
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let off = Request::new(Action::Off, DEADLINE_MS);
    let ended = ask_for(Bmc::with_one("On"), &off, |host| host.refuse_effect("the lease is over"));
    assert_eq!(ended.writes().len(), 0);
    let failure = ended.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Cancelled);
    assert!(failure.detail.ends_with("the lease is over"), "{}", failure.detail);
}

#[test]
fn monitor_asks_for_what_power_will_need() {
    assert!(ask(Bmc::with_one("On"), Action::Monitor, "").result.is_ok());
    let words = "ResetType@Redfish.AllowableValues";
    let weak = Bmc::with_one("On").changed(|it| {
        it["Actions"]["#ComputerSystem.Reset"][words] = ["On", "GracefulShutdown"].into();
    });
    let ended = ask(weak, Action::Monitor, "");
    assert_eq!(ended.writes().len(), 0);
    let failure = ended.result.unwrap_err();
    assert_eq!(failure.detail, "the BMC takes On, GracefulShutdown, expected ForceOff");
}

#[test]
fn all_plugs_are_listed() {
    let bmc = Rc::new(RefCell::new(Bmc { page: 1, ..Bmc::with_two() }));
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("bmc", bmc);
    let request = PlugsRequest { parameters: vec![], deadline_ms: DEADLINE_MS, extra: vec![] };
    let plugs = Redfish.plugs(&request, &host).unwrap();
    let told: Vec<_> = plugs.iter().map(|one| (one.plug.as_str(), one.state)).collect();
    assert_eq!(told, [("1", PlugState::On), ("2", PlugState::Off)]);
    assert_eq!(plugs[0].name, "Machine 1");
}
