//! The method natively, in virtual time, against a board that is a Rust value.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, PlugState, Request};
use template_udp::Method;

const DEADLINE_MS: u32 = 30_000;

/// A board with a relay 2, which is on. It loses the first datagram of all, and answers in 20 ms.
fn board() -> impl FnMut(u64, u64, &[u8]) -> Vec<(u64, Vec<u8>)> {
    let (mut is_on, mut heard) = (true, 0);
    move |_, _, data| {
        heard += 1;
        let text = std::str::from_utf8(data).unwrap();
        let words: Vec<_> = text.split(' ').collect();
        let [id, verb, "2", _code] = words.as_slice() else { return Vec::new() };
        if heard == 1 {
            return Vec::new();
        }
        match *verb {
            "off" => is_on = false,
            "on" => is_on = true,
            _ => {}
        }
        let state = if is_on { "on" } else { "off" };
        // An answer to another question first.
        vec![(10, b"999 2 off".to_vec()), (20, format!("{id} 2 {state}").into_bytes())]
    }
}

fn host() -> TestHost {
    let host = TestHost::new(u64::from(DEADLINE_MS));
    host.device("board", Rc::new(RefCell::new(board()))).credential("account", None, b"secret")
}

fn request(action: Action, plug: &str) -> Request {
    let parameters = vec![("address".to_owned(), "192.0.2.7".to_owned())];
    Request { parameters, plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) }
}

#[test]
fn a_relay_is_read_and_switched() {
    let host = host();
    let ask = |action| Method.run(&request(action, "2"), &host).map(|outcome| outcome.state);
    assert_eq!(ask(Action::Status), Ok(PlugState::On), "though a datagram was lost");
    assert_eq!(ask(Action::Off), Ok(PlugState::Off));
    assert_eq!(ask(Action::Status), Ok(PlugState::Off));
    assert_eq!(ask(Action::On), Ok(PlugState::On));
    let began = host.trace().into_iter().filter(|one| matches!(one, Trace::BeganEffect { .. }));
    assert_eq!(began.count(), 2, "one for each change");
}

#[test]
fn a_board_that_is_silent_fails_with_nothing_begun() {
    let host = host();
    let failure = Method.run(&request(Action::Off, "3"), &host).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    let began = |one: &Trace| matches!(one, Trace::BeganEffect { .. });
    assert!(!host.trace().iter().any(began), "nothing was begun");
}

#[test]
fn what_is_no_relay_is_no_plug() {
    for plug in ["", "two"] {
        let failure = Method.run(&request(Action::Off, plug), &host()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NoSuchPlug, "{plug}");
    }
}
