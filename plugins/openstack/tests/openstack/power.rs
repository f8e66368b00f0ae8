//! Reading and switching power, and finding whose it is.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_openstack::OpenStack;
use node_remedy_sdk::power::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, PlugsRequest, Request};
use serde_json::json;

use crate::nova::{DEADLINE_MS, ID, Nova, OTHER, STRANGER, ask, ask_for, catalogue, parameters};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(OpenStack::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "openstack");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_server_is_found_by_its_id_or_the_node_s_provider_id() {
    for plug in
        [OTHER.to_owned(), format!("openstack:///{OTHER}"), format!("openstack://north/{OTHER}")]
    {
        let outcome = ask(Nova::default(), Action::Status, &plug).result.unwrap();
        assert_eq!(outcome.state, PlugState::Off, "{plug}");
        // Bare metal has a UUID of its own, and its Node names the server.
        let fields: &[&str] =
            if plug == OTHER { &["instance-id", "system-uuid"] } else { &["instance-id"] };
        let named: Vec<_> =
            fields.iter().map(|name| ((*name).to_owned(), OTHER.to_owned())).collect();
        assert_eq!(outcome.identity, named);
    }
}

#[test]
fn what_is_no_id_of_a_server_is_no_plug() {
    for (plug, says) in [
        ("node1", r#"found the plug "node1", expected a server's id or openstack:///ID"#),
        ("", r#"found the plug "", expected a server's id or openstack:///ID"#),
        ("../flavors", r#"found the plug "../flavors", expected a server's id or openstack:///ID"#),
        (STRANGER, "there is no server 11111111-2222-4333-8444-555555555599 in the project"),
    ] {
        let ended = ask(Nova::default(), Action::Off, plug);
        assert_eq!(ended.writes().len(), 0);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::NoSuchPlug, says));
    }
}

#[test]
fn power_is_switched_and_read_back() {
    for (action, plug, asked, state) in [
        (Action::Off, ID, json!({ "os-stop": null }), PlugState::Off),
        (Action::On, OTHER, json!({ "os-start": null }), PlugState::On),
        (Action::Reset, ID, json!({ "reboot": { "type": "HARD" } }), PlugState::On),
    ] {
        let ended = ask(Nova::default(), action, plug);
        assert_eq!(ended.result.as_ref().unwrap().state, state, "{asked}");
        assert_eq!(ended.web.borrow().server.actions, [(plug.to_owned(), asked)]);
    }
    // Nova would start it.
    let reset = ask(Nova::default(), Action::Reset, OTHER);
    assert_eq!(reset.writes().len(), 0);
    assert!(reset.result.is_err());
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    for nova in
        [Nova { late_ms: 9_000, ..Nova::default() }, Nova { is_dead: true, ..Nova::default() }]
    {
        let outcome = ask(nova, Action::Off, ID).result.unwrap();
        assert_eq!(outcome.state, PlugState::Transitioning);
        let says = "os-stop accepted; vm_state is active, task powering-off, power running still";
        assert_eq!(outcome.detail, says);
    }
}

#[test]
fn a_conflict_over_what_is_so_already_is_no_failure() {
    for (action, plug, says) in [
        (Action::Off, OTHER, "os-stop not needed; vm_state is stopped, task none, power shut down"),
        (Action::On, ID, "os-start not needed; vm_state is active, task none, power running"),
    ] {
        assert_eq!(ask(Nova::default(), action, plug).result.unwrap().detail, says);
    }
}

#[test]
fn it_is_said_where_the_catalogue_has_compute_elsewhere() {
    for (url, says) in [
        ("https://cloud:8774/v2.1", None),
        ("https://cloud:8774/v2.1/0123", None),
        (
            "https://south:8774/v2.1",
            Some(
                "compute-url is https://cloud:8774/v2.1, and the catalogue has compute at https://south:8774/v2.1 (north)",
            ),
        ),
    ] {
        let shows = |host: TestHost| host.login_data("compute", &catalogue(url));
        let ended = ask_for(Nova::default(), Action::Status, ID, |request| request, shows);
        let logged: Vec<_> = ended
            .trace
            .iter()
            .filter_map(
                |one| if let Trace::Logged(line) = one { Some(line.as_str()) } else { None },
            )
            .collect();
        assert_eq!(logged, says.into_iter().collect::<Vec<_>>());
        let ended = ask_for(Nova::default(), Action::Off, STRANGER, |request| request, shows);
        let detail = ended.result.unwrap_err().detail;
        assert_eq!(detail.contains("south"), says.is_some(), "{detail}");
    }
}

#[test]
fn parameters_that_lead_nowhere_are_told_before_anything_is_sent() {
    for (name, value, says) in [
        (
            "auth-url",
            "https://cloud/v2.0",
            "auth-url has the path \"/v2.0\", expected /v3 or /identity/v3",
        ),
        (
            "compute-url",
            "https://cloud:8774/",
            "compute-url has the path \"\", expected one that begins with /v2.1 or /compute/v2.1",
        ),
        ("project", "", "project is not set; a password needs one"),
    ] {
        let set = |mut request: Request| {
            request.parameters.retain(|(one, _)| one != name);
            if !value.is_empty() {
                request.parameters.push((name.to_owned(), value.to_owned()));
            }
            request
        };
        let ended = ask_for(Nova::default(), Action::Off, ID, set, |host| host);
        assert_eq!(ended.trace, []);
        let failure = ended.result.unwrap_err();
        assert_eq!((failure.kind, failure.detail.as_str()), (FailureKind::BadParameters, says));
    }
}

#[test]
fn another_machine_than_the_expected_one_is_left_alone() {
    let expect = |mut request: Request| {
        request.extra.push((EXPECT_SYSTEM_UUID.to_owned(), OTHER.to_owned()));
        request
    };
    let ended = ask_for(Nova::default(), Action::Off, ID, expect, |host| host);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}

#[test]
fn nothing_is_sent_that_the_host_does_not_let_begin() {
    let refuse = |host: TestHost| host.refuse_effect("the lease is over");
    let ended = ask_for(Nova::default(), Action::Off, ID, |request| request, refuse);
    assert_eq!(ended.writes().len(), 0);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
}

#[test]
fn each_way_to_log_in_has_its_endpoint_and_all_plugs_are_listed() {
    for (auth_url, login, endpoint) in [
        ("https://cloud:5000/v3", "password", "compute"),
        ("https://cloud/identity", "password", "compute-below"),
        ("https://cloud:5000", "application-credential", "compute-credential"),
        ("https://cloud/identity/v3/", "application-credential", "compute-credential-below"),
    ] {
        let mut parameters = parameters();
        parameters[0].1 = auth_url.to_owned();
        parameters[2].1 = login.to_owned();
        let nova = Nova { listed: 250, ..Nova::default() };
        let host = TestHost::new(u64::from(DEADLINE_MS));
        let host = host.web(endpoint, Rc::new(RefCell::new(nova)));
        let request = PlugsRequest { parameters, deadline_ms: DEADLINE_MS, extra: vec![] };
        assert_eq!(OpenStack.plugs(&request, &host).unwrap().len(), 250);
    }
}
