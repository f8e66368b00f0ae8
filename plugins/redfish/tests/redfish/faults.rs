//! What a device does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState, Request};
use serde_json::{Value, json};

use crate::bmc::{Bmc, DEADLINE_MS, ask, ask_for, error};

const SYSTEM: &str = "GET /redfish/v1/Systems/1";
const RESET: &str = "POST /redfish/v1/Systems/1/";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = || Bmc::with_one("On");
    let without = |key: &'static str| {
        one().changed(move |it| {
            it.as_object_mut().unwrap().remove(key);
        })
    };
    let asks_only = || {
        one().changed(|it| {
            it["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] =
                json!(["On", "GracefulShutdown"]);
        })
    };
    let stuck_in = |power| Bmc { is_stuck: true, ..Bmc::with_one(power) };
    let rows: Vec<(&str, Overlay<Bmc>)> = vec![
        ("unreachable, silent", one().silent("GET")),
        ("silent after the root", one().silent(SYSTEM)),
        ("silent to the reset", one().silent("POST")),
        ("wrong credentials", one().instead("GET", 401, &error("The credentials are not valid."))),
        ("no rights", one().instead(RESET, 403, &error("The account lacks privileges."))),
        ("no Redfish", one().instead("GET", 404, "")),
        ("malformed: a web page", one().instead("GET", 200, "<html>Please log in</html>")),
        ("truncated", one().instead(SYSTEM, 200, r#"{"PowerState":"Of"#)),
        ("malformed: a list", one().instead(SYSTEM, 200, "[]")),
        ("leads elsewhere", one().instead("GET", 302, "")),
        ("starting", one().instead("GET", 503, "").header("Retry-After", "7")),
        ("asked too often", one().instead(RESET, 429, "").header("retry-after", "2")),
        ("slow inside", one().instead(SYSTEM, 504, "")),
        ("fails inside", one().instead(RESET, 500, &error("Internal\u{7} service error."))),
        ("refuses", one().instead(RESET, 400, &error("ResetType is not valid."))),
        ("cannot", one().instead(RESET, 501, "")),
        ("busy with a task", one().instead(RESET, 409, &error("A task is running."))),
        ("no systems", Bmc::default().into()),
        ("no list of systems", one().instead("GET /redfish/v1/", 200, "{}")),
        ("a list without end", Bmc { is_endless: true, ..Bmc::with_two() }.into()),
        ("no way to reset", without("Actions").into()),
        ("starting, for an hour", one().instead("GET", 503, "").header("Retry-After", "3600")),
        ("huge: nested deeply", one().instead(SYSTEM, 200, &"[".repeat(100_000))),
        ("off only by asking the system", asks_only().into()),
        ("stuck: PoweringOff", stuck_in("PoweringOff").into()),
        ("stuck", Bmc { is_stuck: true, ..one() }.into()),
        ("late", Bmc { late_ms: 9_000, ..one() }.into()),
        (
            "wrong plug: it is gone",
            one().instead(SYSTEM, 404, &error("There is no such resource.")),
        ),
    ];
    let mut table = FaultTable::new("redfish", DEADLINE_MS);
    fault_table(&mut table, (|| Bmc::with_one("On"), RESET), rows, |bmc| ask(bmc, Action::Off, ""));
    table.row(&ask(one(), Action::Off, "7").fault("wrong plug"));
    table.row(&ask(Bmc::with_two(), Action::Off, "").fault("wrong plug: one of two"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 25000 ms | Unreachable, again: failed to GET /redfish/v1/: the time allowed for it has passed
        silent after the root | 25040 ms | Timeout, again: failed to GET /redfish/v1/Systems/1: the time allowed for it has passed
        silent to the reset | 25060 ms | Timeout, again: failed to POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /redfish/v1/: HTTP 401: The credentials are not valid; check user name and password
        no rights | 65 ms | Denied: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 403: The account lacks privileges; check the role of the account: it must be Operator
        no Redfish | 5 ms | Unsupported: GET /redfish/v1/: HTTP 404; check that Redfish is enabled on the BMC and that the path is right
        malformed: a web page | 5 ms | Protocol: GET /redfish/v1/: found no JSON list or object; is this the address of the BMC?
        truncated | 45 ms | Protocol: GET /redfish/v1/Systems/1: found no JSON list or object; is this the address of the BMC?
        malformed: a list | 45 ms | Protocol: GET /redfish/v1/Systems/1: found no JSON object; is this the address of the BMC?
        leads elsewhere | 5 ms | Protocol: GET /redfish/v1/: HTTP 302; it leads elsewhere; check the address
        starting | 21020 ms | Busy, again in 7000 ms: GET /redfish/v1/: HTTP 503; the BMC is starting, updating or overloaded
        asked too often | 6080 ms | Throttled, again in 2000 ms: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 429; the BMC is asked too often
        slow inside | 45 ms | Timeout, again: GET /redfish/v1/Systems/1: HTTP 504; the BMC is slow
        fails inside | 85 ms | Device, again: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 500: Internal service error; the BMC says that it failed
        refuses | 85 ms | Device: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 400: ResetType is not valid; the BMC refuses it
        cannot | 65 ms | Unsupported: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 501; the BMC cannot do it
        busy with a task | 85 ms | Busy, again: POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset: HTTP 409: A task is running; the BMC is at something else
        no systems | 40 ms | NoSuchPlug: the BMC has no systems
        no list of systems | 5 ms | Unsupported: this Redfish service has no Systems
        a list without end | 340 ms | Protocol: the list of systems has no end after 32 of them
        no way to reset | 60 ms | Unsupported: /redfish/v1/Systems/1 names no way to reset it; the BMC cannot switch power
        starting, for an hour | 5 ms | Busy, again in 3600000 ms: GET /redfish/v1/: HTTP 503; the BMC is starting, updating or overloaded
        huge: nested deeply | 45 ms | Protocol: GET /redfish/v1/Systems/1: found no JSON list or object; is this the address of the BMC?
        off only by asking the system | 60 ms | Unsupported: the BMC takes On, GracefulShutdown, expected ForceOff
        stuck: PoweringOff | 100 ms | Transitioning: ForceOff accepted; PowerState is PoweringOff still
        stuck | 100 ms | Transitioning: ForceOff accepted; PowerState is On still
        late | 100 ms | Transitioning: ForceOff accepted; PowerState is On still
        wrong plug: it is gone | 45 ms | NoSuchPlug: there is no system at /redfish/v1/Systems/1
        flips back at once | 100 ms | Transitioning: ForceOff accepted; PowerState is On still
        unreachable | 0 ms | Unreachable, again: failed to GET /redfish/v1/: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /redfish/v1/: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /redfish/v1/: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /redfish/v1/: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /redfish/v1/: the login failed
        huge | 0 ms | Protocol: failed to GET /redfish/v1/: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /redfish/v1/: this replica may no longer send to devices
        wrong plug | 60 ms | NoSuchPlug: no system has the id or UUID "7"; expected one of 1
        wrong plug: one of two | 40 ms | NoSuchPlug: the BMC has 2 systems and the plug names none; expected one of 1, 2
    "#]]
    .assert_eq(&table);
}

/// What says when to come back is asked again then, and not before.
#[test]
fn a_bmc_that_is_starting_is_given_the_time_it_asks_for() {
    let starting = Bmc::with_one("On").instead("GET", 503, "").header("Retry-After", "7").times(1);
    let ended = ask(starting, Action::Off, "");
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert!((7_000..8_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

/// What was refused was not done: it is asked once more, when the BMC says, and not again.
#[test]
fn a_reset_that_a_bmc_puts_off_is_asked_once_more() {
    let once = || Bmc::with_one("On").instead(RESET, 503, "").header("Retry-After", "3");
    let ended = ask(once().times(1), Action::Off, "");
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert!((3_000..4_000).contains(&ended.took_ms), "{}", ended.took_ms);
    let ended = ask(once(), Action::Off, "");
    assert!(ended.result.unwrap_err().detail.contains("HTTP 503"));
    assert!((3_000..4_000).contains(&ended.took_ms), "{}", ended.took_ms);
    // One that names no time may be doing it.
    let ended = ask(Bmc::with_one("On").instead(RESET, 503, ""), Action::Off, "");
    assert!(ended.result.is_err() && ended.took_ms < 1_000, "{}", ended.took_ms);
}

/// It says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_bmc_is_left_before_the_deadline() {
    let status = Request::new(Action::Status, 10_000);
    for line in ["GET", SYSTEM] {
        let ended = ask_for(Bmc::with_one("On").silent(line), &status, |host| host);
        assert_eq!(ended.took_ms, 9_750);
        assert!(ended.result.unwrap_err().retryable);
    }
}

#[test]
fn a_power_state_that_nobody_knows_is_no_state() {
    for word in ["Paused", "off", ""].map(Value::from).into_iter().chain([Value::Null, 0.into()]) {
        let bmc = Bmc::with_one("On").changed(|it| it["PowerState"] = word.clone());
        let outcome = ask(bmc, Action::Status, "").result.unwrap();
        assert_eq!(outcome.state, PlugState::Unknown, "{word}");
    }
}

/// A BMC that never stops says more than anybody reads.
#[test]
fn a_device_s_own_words_are_cut() {
    let long = error(&"x".repeat(5_000));
    let failure = ask(Bmc::with_one("On").instead(RESET, 403, &long), Action::Off, "").result;
    assert!(failure.unwrap_err().detail.len() < 400);
}
