//! The example natively: against a relay board in memory, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_example_tasmota::Tasmota;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{
    Action, FailureKind, FenceMethod, HttpRequest, HttpResponse, Outcome, PlugState, Request,
};

const DEADLINE_MS: u32 = 30_000;

/// A board whose relay 2 is on; it answers to nothing else.
fn board() -> impl FnMut(u64, &HttpRequest) -> (u64, HttpResponse) {
    let mut is_on = true;
    move |_, request| {
        let body = match request.path.as_str() {
            "/cm?cmnd=Power2%20Off" => {
                is_on = false;
                r#"{"POWER2":"OFF"}"#
            }
            "/cm?cmnd=Power2%20On" => {
                is_on = true;
                r#"{"POWER2":"ON"}"#
            }
            "/cm?cmnd=Power2" if is_on => r#"{"POWER2":"ON"}"#,
            "/cm?cmnd=Power2" => r#"{"POWER2":"OFF"}"#,
            _ => r#"{"Command":"Unknown"}"#,
        };
        (20, HttpResponse { status: 200, headers: Vec::new(), body: body.into() })
    }
}

fn request(action: Action, plug: &str) -> Request {
    let parameters = vec![("address".to_owned(), "192.0.2.7".to_owned())];
    Request { parameters, plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) }
}

#[test]
fn a_relay_is_read_and_switched() {
    let board = Rc::new(RefCell::new(board()));
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("relay", board);
    let ask = |action| Tasmota.run(&request(action, "2"), &host);
    let state = |outcome: Outcome| outcome.state;
    assert_eq!(ask(Action::Status).map(state), Ok(PlugState::On));
    assert_eq!(ask(Action::Off).map(state), Ok(PlugState::Off));
    assert_eq!(ask(Action::Status).map(state), Ok(PlugState::Off));
    assert_eq!(ask(Action::On).map(state), Ok(PlugState::On));
    let began = host.trace().into_iter().filter(|one| matches!(one, Trace::BeganEffect { .. }));
    assert_eq!(began.count(), 2, "one for each change");
}

/// Unknown is never off.
#[test]
fn an_answer_without_the_relay_is_unknown() {
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("relay", Rc::new(RefCell::new(board())));
    let outcome = Tasmota.run(&request(Action::Status, "3"), &host).unwrap();
    assert_eq!(outcome.state, PlugState::Unknown);
}

#[test]
fn what_is_no_relay_is_no_plug() {
    let host = TestHost::new(u64::from(DEADLINE_MS)).unreachable("relay");
    for plug in ["", "0", "29", "two", "1&cmnd=Reset"] {
        let failure = Tasmota.run(&request(Action::Off, plug), &host).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{plug}");
    }
}
