//! The method natively, in virtual time, against a board that is a Rust value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{
    Action, FailureKind, FenceMethod, HttpRequest, HttpResponse, PlugState, Request,
};
use template_http::Method;

const DEADLINE_MS: u32 = 30_000;

/// A board with a relay 2, which is on; it answers in 20 ms.
fn board() -> impl FnMut(u64, &HttpRequest) -> (u64, HttpResponse) {
    let mut is_on = true;
    move |_, request| {
        let (status, body) = match (request.method.as_str(), request.path.as_str()) {
            (_, path) if path != "/relays/2" => (404, r#"{"message": "no such relay"}"#),
            ("PUT", _) => {
                is_on = request.body == br#"{"on":true}"#;
                (200, "{}")
            }
            _ if is_on => (200, r#"{"on": true}"#),
            _ => (200, r#"{"on": false}"#),
        };
        (20, HttpResponse { status, headers: Vec::new(), body: body.into() })
    }
}

fn request(action: Action, plug: &str) -> Request {
    let parameters = vec![("address".to_owned(), "192.0.2.7".to_owned())];
    Request { parameters, plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) }
}

#[test]
fn a_relay_is_read_and_switched() {
    let board = Rc::new(RefCell::new(board()));
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("board", board);
    let ask = |action| Method.run(&request(action, "2"), &host).map(|outcome| outcome.state);
    assert_eq!(ask(Action::Status), Ok(PlugState::On));
    assert_eq!(ask(Action::Off), Ok(PlugState::Off));
    assert_eq!(ask(Action::Status), Ok(PlugState::Off));
    assert_eq!(ask(Action::On), Ok(PlugState::On));
    let began = host.trace().into_iter().filter(|one| matches!(one, Trace::BeganEffect { .. }));
    assert_eq!(began.count(), 2, "one for each change");
}

/// Whatever a board answers: what does not say off is not off.
#[test]
fn an_answer_that_does_not_say_so_is_not_off() {
    let odd = |_: u64, _: &HttpRequest| {
        let body = br#"{"on": "no"}"#.to_vec();
        (20, HttpResponse { status: 200, headers: Vec::new(), body })
    };
    let host = TestHost::new(u64::from(DEADLINE_MS)).web("board", Rc::new(RefCell::new(odd)));
    let outcome = Method.run(&request(Action::Status, "2"), &host).unwrap();
    assert_eq!(outcome.state, PlugState::Unknown);
}

#[test]
fn a_board_that_cannot_be_reached_fails_with_nothing_begun() {
    let host = TestHost::new(u64::from(DEADLINE_MS)).unreachable("board");
    let failure = Method.run(&request(Action::Off, "2"), &host).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let began = |one: &Trace| matches!(one, Trace::BeganEffect { .. });
    assert!(!host.trace().iter().any(began), "nothing was begun");
}

#[test]
fn what_is_no_relay_is_no_plug() {
    let host = TestHost::new(u64::from(DEADLINE_MS)).unreachable("board");
    for plug in ["", "two", "../admin"] {
        let failure = Method.run(&request(Action::Off, plug), &host).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{plug}");
    }
}
