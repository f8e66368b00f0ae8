//! Reading and switching outlets, and what is refused before anything is sent.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_webhook::{EXPECT_SYSTEM_UUID, Webhook};
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, Request};

use crate::device::{DEADLINE_MS, Device, HOME_MADE, SHELLY, TASMOTA, ask, ask_for, request};

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Webhook::MANIFEST).unwrap();
    assert_eq!(manifest["name"], "webhook");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn outlets_of_three_kinds_are_switched_and_read_back() {
    for (parameters, plug) in [(SHELLY, "0"), (TASMOTA, ""), (HOME_MADE, "rack-3")] {
        let ended = ask(Device::on(plug), Action::Off, plug, parameters);
        assert_eq!(ended.result.as_ref().unwrap().state, PlugState::Off, "{parameters:?}");
        assert!(!ended.device.borrow().is_on);
        assert_eq!(ended.device.borrow().heard.len(), 2, "one change, one read");
        let begun = ended.trace.iter().position(|one| matches!(one, Trace::BeganEffect { .. }));
        let asked = ended.trace.iter().position(|one| matches!(one, Trace::Asked { .. }));
        assert!(begun.unwrap() < asked.unwrap());

        let off = || Device { is_on: false, ..Device::on(plug) };
        let ended = ask(off(), Action::Status, plug, parameters);
        assert_eq!(ended.result.unwrap().state, PlugState::Off, "{parameters:?}");
        let ended = ask(off(), Action::On, plug, parameters);
        assert_eq!(ended.result.unwrap().state, PlugState::On, "{parameters:?}");
        assert!(ask(off(), Action::Monitor, plug, parameters).result.is_ok());
    }
    let ended = ask(Device::on("rack-3"), Action::Off, "rack-3", HOME_MADE);
    let body = r#"{"outlet": "rack-3", "state": "off"}"#;
    let (line, content_type, sent) = ended.device.borrow().heard[0].clone();
    assert_eq!((line.as_str(), sent.as_str()), ("PUT /outlets/rack-3", body));
    assert_eq!(content_type, "application/json");
}

#[test]
fn a_reset_is_only_what_is_described() {
    let ended = ask(Device::on("r"), Action::Reset, "r", HOME_MADE);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert_eq!(ended.device.borrow().heard[0].0, "POST /outlets/r/cycle");
    let failure = ask(Device::on("0"), Action::Reset, "0", SHELLY).result.unwrap_err();
    assert_eq!(failure.detail, "reset-path is not set: there is no way to reset");
}

/// Where an answer is, what is listed, and what that reads.
#[test]
fn a_word_in_neither_list_is_never_off() {
    use PlugState::{Off, On, Unknown};
    let off_words = "false,0,OFF,powered down";
    let rows: &[(&str, &str, PlugState)] = &[
        ("/a", r#"{"a": false}"#, Off),
        ("/a", r#"{"a": "false"}"#, Off),
        ("/a", r#"{"a": 0}"#, Off),
        ("/a", r#"{"a": "powered down"}"#, Off),
        ("/a/1/b", r#"{"a": [1, {"b": "OFF"}]}"#, Off),
        ("/a~1b", r#"{"a/b": "OFF"}"#, Off),
        ("", "OFF\r\n", Off),
        ("", "\"OFF\"", Off),
        ("", "false", Off),
        ("/a", r#"{"a": true}"#, On),
        ("/a", r#"{"a": 0.0}"#, Unknown),
        ("/a", r#"{"a": -0}"#, Unknown),
        ("/a", r#"{"a": "off"}"#, Unknown),
        ("/a", r#"{"a": "OFF "}"#, Unknown),
        ("/a", r#"{"a": ""}"#, Unknown),
        ("/a", r#"{"a": null}"#, Unknown),
        ("/a", r#"{"a": {}}"#, Unknown),
        ("/a", r#"{"b": false}"#, Unknown),
        ("/a", "OFF", Unknown),
        ("/a", "", Unknown),
        ("", "", Unknown),
        ("", "OFF OFF", Unknown),
        ("", "{\"a\": false}", Unknown),
        ("/0", "[false", Unknown),
    ];
    for (pointer, answer, expected) in rows {
        let parameters = [
            ("status-path", "/s"),
            ("state-pointer", *pointer),
            ("on-words", "true,ON"),
            ("off-words", off_words),
        ];
        let device = Device::on("x").instead("GET /s", 200, answer.as_bytes());
        let outcome = ask(device, Action::Status, "", &parameters).result.unwrap();
        assert_eq!(outcome.state, *expected, "{pointer} {answer}: {}", outcome.detail);
    }
}

#[test]
fn an_off_that_was_accepted_is_not_yet_off() {
    let late = || Device { late_ms: 4_000, ..Device::on("0") };
    let outcome = ask(late(), Action::Off, "0", SHELLY).result.unwrap();
    assert_eq!(outcome.state, PlugState::Transitioning);
    assert_eq!(outcome.detail, r#"accepted; /output says "true" still"#);

    // As the host goes on: it reads until the plug is off.
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("https", Rc::new(RefCell::new(late())));
    Webhook.run(&request(Action::Off, "0", SHELLY), &host).unwrap();
    let until = Some(PlugState::Off);
    let read = Request { until, ..request(Action::Status, "0", SHELLY) };
    assert_eq!(Webhook.run(&read, &host).unwrap().state, PlugState::Off);
    assert!((4_000..6_000).contains(&host.elapsed().as_millis()), "{:?}", host.elapsed());

    let stuck = Device { is_stuck: true, ..Device::on("0") };
    let read = Request { deadline_ms: 10_000, ..read };
    let ended = ask_for(stuck, &read, |host| host);
    assert_eq!(ended.result.unwrap().state, PlugState::On);
    assert!((8_000..10_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

#[test]
fn scheme_and_auth_choose_the_endpoint() {
    for scheme in ["http", "https"] {
        for auth in ["none", "basic", "bearer"] {
            let endpoint = match auth {
                "none" => scheme.to_owned(),
                auth => format!("{scheme}-{auth}"),
            };
            let device = Rc::new(RefCell::new(Device::on("0")));
            let host = TestHost::new(1_000).web(&endpoint, device);
            let chosen = [SHELLY, &[("scheme", scheme), ("authentication", auth)]].concat();
            let read = request(Action::Status, "0", &chosen);
            assert_eq!(Webhook.run(&read, &host).unwrap().state, PlugState::On, "{endpoint}");
            let asks: serde_json::Value = serde_json::from_str(Webhook::MANIFEST).unwrap();
            let asks = asks["asks"]["endpoints"].as_array().unwrap();
            let ask = asks.iter().find(|ask| ask["name"] == endpoint.as_str()).unwrap();
            assert_eq!((&ask["protocol"], &ask["auth"]["scheme"]), (&scheme.into(), &auth.into()));
        }
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_sent() {
    let rows: &[(&str, &str, &str)] = &[
        ("scheme", "ftp", "scheme: found \"ftp\", expected one of https, http"),
        (
            "authentication",
            "digest",
            "authentication: found \"digest\", expected one of none, basic, bearer",
        ),
        ("content-type", "text/xml", "content-type \"text/xml\" is none"),
        ("state-pointer", "output", "expected a JSON pointer such as /output"),
        ("on-words", "true,false", "\"false\" is in on-words and in off-words"),
        ("off-words", "", "off-words: expected words"),
        ("off-words", "false,,", "off-words: expected words"),
        ("off-path", "rpc", "expected a path that begins with /"),
        ("off-path", "/rpc/{id}", "expected no places but {plug} and {action}"),
        ("off-path", "/rpc/../{plug}", "expected no segment that is . or .."),
        ("off-body", "x", "off-body: a GET has no body"),
        ("status-path", "", "expected a path that begins with /"),
    ];
    for (key, value, says) in rows {
        let mut parameters = SHELLY.to_vec();
        parameters.retain(|(name, _)| name != key);
        parameters.push((key, value));
        let ended = ask(Device::on("0"), Action::Off, "0", &parameters);
        let failure = ended.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::BadParameters, "{key}");
        assert!(failure.detail.contains(says), "{key}: {}", failure.detail);
        assert!(ended.trace.is_empty(), "{key}");
    }
    // No outlet is not all outlets.
    let ended = ask(Device::on(""), Action::Off, "", SHELLY);
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    assert!(ended.trace.is_empty());
}

#[test]
fn a_plug_never_becomes_another_request() {
    for (plug, line) in [
        ("0&on=true", "GET /rpc/Switch.Set?id=0%26on%3Dtrue&on=false"),
        ("0#", "GET /rpc/Switch.Set?id=0%23&on=false"),
        ("{action}", "GET /rpc/Switch.Set?id=%7Baction%7D&on=false"),
        ("0 HTTP/1.1\r\nX: y", "GET /rpc/Switch.Set?id=0%20HTTP%2F1.1%0D%0AX%3A%20y&on=false"),
    ] {
        let ended = ask(Device::on("0"), Action::Off, plug, SHELLY);
        assert_eq!(ended.device.borrow().heard[0].0, line);
        assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
    }
    let quoted = r#"x", "state": "on", "y": ""#;
    let ended = ask(Device::on("x"), Action::Off, quoted, HOME_MADE);
    let body: serde_json::Value = serde_json::from_str(&ended.device.borrow().heard[0].2).unwrap();
    assert_eq!((&body["outlet"], &body["state"]), (&quoted.into(), &"off".into()));
}

#[test]
fn nothing_is_changed_on_terms_that_cannot_be_kept() {
    let off = request(Action::Off, "0", SHELLY);
    let ended = ask_for(Device::on("0"), &off, |host| host.refuse_effect("the lease is over"));
    assert!(ended.device.borrow().heard.is_empty());
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::Cancelled);
    let extra = vec![(EXPECT_SYSTEM_UUID.to_owned(), "4c4c4544-0034".to_owned())];
    let ended = ask_for(Device::on("0"), &Request { extra, ..off }, |host| host);
    assert!(ended.device.borrow().heard.is_empty());
    assert_eq!(ended.result.unwrap_err().kind, FailureKind::NoSuchPlug);
}
