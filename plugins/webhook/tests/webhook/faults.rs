//! What a device does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
use node_remedy_sdk::testing::web::FAILING;
use node_remedy_sdk::{Action, Request};

use crate::device::{DEADLINE_MS, Device, Ended, SHELLY, ask, ask_for, request};

const STATUS: &str = "GET /rpc/Switch.GetStatus";
const SET: &str = "GET /rpc/Switch.Set";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = || Device::on("0");
    let rows: Vec<(&str, Device)> = vec![
        ("unreachable, silent", one().silent("GET")),
        ("silent to the read", one().silent(STATUS)),
        ("wrong credentials", one().instead("GET", 401, b"")),
        ("no rights", one().instead("GET", 403, b"")),
        ("wrong plug", one().instead(SET, 404, b"")),
        ("another method", one().instead(SET, 405, b"")),
        ("leads elsewhere", one().instead("GET", 302, b"")),
        ("busy", one().instead(SET, 503, b"").header("Retry-After", "7")),
        ("asked too often", one().instead(SET, 429, b"").header("retry-after", "2")),
        ("slow inside", one().instead(SET, 504, b"")),
        ("fails inside", one().instead(SET, 500, br#"{"code":-103,"message":"Invalid argument"}"#)),
        ("cannot", one().instead(SET, 501, b"")),
        ("a teapot", one().instead(SET, 418, b"")),
        ("malformed: a web page", one().instead(STATUS, 200, b"<html>off</html>")),
        ("truncated", one().instead(STATUS, 200, br#"{"output":fal"#)),
        ("malformed: empty", one().instead(STATUS, 200, b"")),
        ("no place", one().instead(STATUS, 200, br#"{"outputs":[false]}"#)),
        ("null", one().instead(STATUS, 200, br#"{"output":null}"#)),
        ("a list", one().instead(STATUS, 200, br#"{"output":[false]}"#)),
        ("another word", one().instead(STATUS, 200, br#"{"output":"False"}"#)),
        ("a number", one().instead(STATUS, 200, br#"{"output":0}"#)),
        (
            "huge: a long word",
            one().instead(
                STATUS,
                200,
                &[br#"{"output":""#.to_vec(), vec![b'x'; 9_000], br#""}"#.to_vec()].concat(),
            ),
        ),
        ("malformed: no text", one().instead(STATUS, 200, b"\xff\xfe")),
        ("stuck", Device { is_stuck: true, ..one() }),
        ("late", Device { late_ms: 9_000, ..one() }),
        ("flips back at once", Device { flips_back: true, ..one() }),
    ];
    let mut table = FaultTable::new("webhook", DEADLINE_MS);
    let mut row = |name: &str, ended: &Ended| {
        let Ended { result, took_ms, .. } = ended;
        let (action, took_ms, sessions) = (Action::Off, *took_ms, Sessions::OfTheHost);
        table.row(&Fault { name, action, result, took_ms, sessions, is_off: false });
    };
    for (name, device) in rows {
        row(name, &ask(device, Action::Off, "0", SHELLY));
    }
    for (name, error) in FAILING {
        let off = request(Action::Off, "0", SHELLY);
        row(name, &ask_for(one(), &off, |host| host.failing("https", error)));
    }
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 10000 ms | Unreachable, again: failed to GET /rpc/Switch.Set?id=0&on=false: the time allowed for it has passed
        silent to the read | 10020 ms | Unknown: accepted; the state could not be read afterwards
        wrong credentials | 5 ms | Unauthenticated: GET /rpc/Switch.Set?id=0&on=false: HTTP 401; check the credential and the parameter auth
        no rights | 5 ms | Denied: GET /rpc/Switch.Set?id=0&on=false: HTTP 403; check what the account may do
        wrong plug | 5 ms | NoSuchPlug: GET /rpc/Switch.Set?id=0&on=false: HTTP 404; check plug and path
        another method | 5 ms | BadParameters: GET /rpc/Switch.Set?id=0&on=false: HTTP 405; check the method
        leads elsewhere | 5 ms | Protocol: GET /rpc/Switch.Set?id=0&on=false: HTTP 302; it leads elsewhere; check address and scheme
        busy | 5 ms | Busy, again in 7000 ms: GET /rpc/Switch.Set?id=0&on=false: HTTP 503; the device is at something else
        asked too often | 5 ms | Throttled, again in 2000 ms: GET /rpc/Switch.Set?id=0&on=false: HTTP 429; the device is asked too often
        slow inside | 5 ms | Timeout, again: GET /rpc/Switch.Set?id=0&on=false: HTTP 504; the device is slow
        fails inside | 5 ms | Device, again: GET /rpc/Switch.Set?id=0&on=false: HTTP 500; the device says that it failed
        cannot | 5 ms | Unsupported: GET /rpc/Switch.Set?id=0&on=false: HTTP 501; the device cannot do it
        a teapot | 5 ms | Device: GET /rpc/Switch.Set?id=0&on=false: HTTP 418; the device refuses it
        malformed: a web page | 25 ms | Unknown: accepted; the answer is no JSON
        truncated | 25 ms | Unknown: accepted; the answer is no JSON
        malformed: empty | 25 ms | Unknown: accepted; the answer is no JSON
        no place | 25 ms | Unknown: accepted; the answer has no /output
        null | 25 ms | Unknown: accepted; /output is no text, number, true or false
        a list | 25 ms | Unknown: accepted; /output is no text, number, true or false
        another word | 25 ms | Unknown: accepted; /output says "False", which is in neither list of words
        a number | 25 ms | Unknown: accepted; /output says "0", which is in neither list of words
        huge: a long word | 25 ms | Unknown: accepted; /output says "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", which is in neither list of words
        malformed: no text | 25 ms | Unknown: accepted; the answer is no JSON
        stuck | 40 ms | Transitioning: accepted; /output says "true" still
        late | 40 ms | Transitioning: accepted; /output says "true" still
        flips back at once | 40 ms | Transitioning: accepted; /output says "true" still
        unreachable | 0 ms | Unreachable, again: failed to GET /rpc/Switch.Set?id=0&on=false: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /rpc/Switch.Set?id=0&on=false: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /rpc/Switch.Set?id=0&on=false: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /rpc/Switch.Set?id=0&on=false: TLS failed; check the parameter scheme, and tls in spec.grants
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /rpc/Switch.Set?id=0&on=false: the login failed; check the credential account and the parameter auth
        huge | 0 ms | Protocol: failed to GET /rpc/Switch.Set?id=0&on=false: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /rpc/Switch.Set?id=0&on=false: this replica may no longer send to devices
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
