//! What a device does wrong, what is said of it, and how long that takes. None of it reads as off.

use std::fmt::Write;

use expect_test::expect;
use node_remedy_plugin_sdk::{Action, PlugState, Request};

use crate::device::{Device, SHELLY, ask, ask_for, request};

const STATUS: &str = "GET /rpc/Switch.GetStatus";
const SET: &str = "GET /rpc/Switch.Set";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = || Device::on("0");
    let rows: Vec<(&str, Device)> = vec![
        ("silent", one().silent("GET")),
        ("silent to the read", one().silent(STATUS)),
        ("no login", one().instead("GET", 401, b"")),
        ("no rights", one().instead("GET", 403, b"")),
        ("no such outlet", one().instead(SET, 404, b"")),
        ("another method", one().instead(SET, 405, b"")),
        ("leads elsewhere", one().instead("GET", 302, b"")),
        ("busy", one().instead(SET, 503, b"").header("Retry-After", "7")),
        ("asked too often", one().instead(SET, 429, b"").header("retry-after", "2")),
        ("slow inside", one().instead(SET, 504, b"")),
        ("fails inside", one().instead(SET, 500, br#"{"code":-103,"message":"Invalid argument"}"#)),
        ("cannot", one().instead(SET, 501, b"")),
        ("a teapot", one().instead(SET, 418, b"")),
        ("a web page", one().instead(STATUS, 200, b"<html>off</html>")),
        ("truncated", one().instead(STATUS, 200, br#"{"output":fal"#)),
        ("empty", one().instead(STATUS, 200, b"")),
        ("no place", one().instead(STATUS, 200, br#"{"outputs":[false]}"#)),
        ("null", one().instead(STATUS, 200, br#"{"output":null}"#)),
        ("a list", one().instead(STATUS, 200, br#"{"output":[false]}"#)),
        ("another word", one().instead(STATUS, 200, br#"{"output":"False"}"#)),
        ("a number", one().instead(STATUS, 200, br#"{"output":0}"#)),
        (
            "a long word",
            one().instead(
                STATUS,
                200,
                &[br#"{"output":""#.to_vec(), vec![b'x'; 9_000], br#""}"#.to_vec()].concat(),
            ),
        ),
        ("no text", one().instead(STATUS, 200, b"\xff\xfe")),
        ("says yes and does nothing", Device { is_stuck: true, ..one() }),
    ];
    let mut table = String::new();
    for (fault, device) in rows {
        let ended = ask(device, Action::Off, "0", SHELLY);
        let said = match &ended.result {
            Ok(outcome) => {
                assert_ne!(outcome.state, PlugState::Off, "{fault}");
                format!("{:?}: {}", outcome.state, outcome.detail)
            }
            Err(failure) => {
                let again = if failure.retryable { ", again" } else { "" };
                let after =
                    failure.retry_after_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
                format!("{:?}{again}{after}: {}", failure.kind, failure.detail)
            }
        };
        writeln!(table, "{fault} | {} ms | {said}", ended.took_ms).unwrap();
    }
    expect![[r#"
        silent | 10000 ms | Unreachable, again: failed to GET /rpc/Switch.Set?id=0&on=false: the time allowed for it has passed
        silent to the read | 10020 ms | Unknown: accepted; the state could not be read afterwards
        no login | 5 ms | Unauthenticated: GET /rpc/Switch.Set?id=0&on=false: HTTP 401; check the credential and the parameter auth
        no rights | 5 ms | Denied: GET /rpc/Switch.Set?id=0&on=false: HTTP 403; check what the account may do
        no such outlet | 5 ms | NoSuchPlug: GET /rpc/Switch.Set?id=0&on=false: HTTP 404; check plug and path
        another method | 5 ms | BadParameters: GET /rpc/Switch.Set?id=0&on=false: HTTP 405; check the method
        leads elsewhere | 5 ms | Protocol: GET /rpc/Switch.Set?id=0&on=false: HTTP 302; it leads elsewhere; check address and scheme
        busy | 5 ms | Busy, again in 7000 ms: GET /rpc/Switch.Set?id=0&on=false: HTTP 503; the device is at something else
        asked too often | 5 ms | Throttled, again in 2000 ms: GET /rpc/Switch.Set?id=0&on=false: HTTP 429; the device is asked too often
        slow inside | 5 ms | Timeout, again: GET /rpc/Switch.Set?id=0&on=false: HTTP 504; the device is slow
        fails inside | 5 ms | Device, again: GET /rpc/Switch.Set?id=0&on=false: HTTP 500; the device says that it failed
        cannot | 5 ms | Unsupported: GET /rpc/Switch.Set?id=0&on=false: HTTP 501; the device cannot do it
        a teapot | 5 ms | Device: GET /rpc/Switch.Set?id=0&on=false: HTTP 418; the device refuses it
        a web page | 25 ms | Unknown: accepted; the answer is no JSON
        truncated | 25 ms | Unknown: accepted; the answer is no JSON
        empty | 25 ms | Unknown: accepted; the answer is no JSON
        no place | 25 ms | Unknown: accepted; the answer has no /output
        null | 25 ms | Unknown: accepted; /output is no text, number, true or false
        a list | 25 ms | Unknown: accepted; /output is no text, number, true or false
        another word | 25 ms | Unknown: accepted; /output says "False", which is in neither list of words
        a number | 25 ms | Unknown: accepted; /output says "0", which is in neither list of words
        a long word | 25 ms | Unknown: accepted; /output says "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", which is in neither list of words
        no text | 25 ms | Unknown: accepted; the answer is no JSON
        says yes and does nothing | 40 ms | Transitioning: accepted; /output says "true" still
    "#]].assert_eq(&table);
}

/// It says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_device_is_left_before_the_deadline() {
    let status = Request { deadline_ms: 5_000, ..request(Action::Status, "0", SHELLY) };
    let ended = ask_for(Device::on("0").silent("GET"), &status, |host| host);
    assert_eq!(ended.took_ms, 4_750);
    assert!(ended.result.unwrap_err().retryable);
}

/// A path that cannot be read is none that can prove anything, and that is said before it matters.
#[test]
fn monitor_fails_where_no_state_can_be_read() {
    let device = Device::on("0").instead(STATUS, 200, br#"{"outputs":[false]}"#);
    let failure = ask(device, Action::Monitor, "0", SHELLY).result.unwrap_err();
    let says = "the answer has no /output; check state-pointer, on-words and off-words";
    assert_eq!(failure.detail, says);
}
