//! What an engine does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_plugin_sdk::testing::web::{Overlay, fault_table};
use node_remedy_plugin_sdk::{Action, PlugState};

use crate::engine::{Engine, ID, OTHER, ask, error};

const VMS: &str = "GET /ovirt-engine/api/vms";
const READ: &str = "GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501";
const STOP: &str = "POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = |line: &str, status: u16, body: &str| {
        Overlay::new(Engine::default()).instead(line, status, body)
    };
    let says = |detail: &str| error(detail).to_string();
    let other = format!(r#"{{"id": "{OTHER}", "status": "down"}}"#);
    let rows: Vec<(&str, Overlay<Engine>)> = vec![
        ("silent", Overlay::new(Engine::default()).silent("GET")),
        ("silent to the stop", Overlay::new(Engine::default()).silent(STOP)),
        ("wrong password", one(VMS, 401, "")),
        ("may not stop", one(STOP, 403, &says("User is not authorized to perform this action."))),
        ("another server", one(VMS, 404, "<html>")),
        ("a web page", one(VMS, 200, "<html>oVirt</html>")),
        ("no status", one(READ, 200, &format!(r#"{{"id": "{ID}"}}"#))),
        ("another machine", one(READ, 200, &other)),
        ("truncated", one(READ, 200, r#"{"status": "do"#)),
        (
            "locked",
            one(STOP, 409, &says("[Cannot stop VM. Related operation is currently in progress.]")),
        ),
        ("refuses", one(STOP, 400, &says("[Cannot stop VM.]"))),
        ("fails inside", one(STOP, 500, &says("Internal Engine Error"))),
        ("starting", one(VMS, 503, "")),
        ("asked too often", one(VMS, 429, "").header("Retry-After", "2")),
        ("stopped for nothing", Engine::stuck("up").into()),
        ("not heard", Engine::stuck("not_responding").into()),
        ("suspended", Engine::stuck("suspended").into()),
    ];
    let table = fault_table(rows, |web| ask(web, Action::Off, ID));
    expect![[r#"
        silent | 25000 ms | Unreachable, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the time allowed for it has passed
        silent to the stop | 25020 ms | Timeout, again: failed to POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: the time allowed for it has passed
        wrong password | 5 ms | Unauthenticated: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 401; check user@profile, such as admin@internal, and password
        may not stop | 25 ms | Denied: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 403: User is not authorized to perform this action; check the role of the account on the machine: UserRole may stop and start it
        another server | 10 ms | Unsupported: GET /ovirt-engine/api/vms?max=1: HTTP 404; check that the address is the engine's
        a web page | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of the engine?
        no status | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no status of 11111111-2222-4333-8444-555555555501 in it
        another machine | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no status of 11111111-2222-4333-8444-555555555501 in it
        truncated | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of the engine?
        locked | 45 ms | Busy, again: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 409: [Cannot stop VM. Related operation is currently in progress.]; the engine is at something else
        refuses | 45 ms | Device: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 400: [Cannot stop VM.]; the engine refuses it
        fails inside | 45 ms | Device, again: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 500: Internal Engine Error; the engine says that it failed
        starting | 3020 ms | Busy, again: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 503; the engine is starting, updating or overloaded
        asked too often | 6020 ms | Throttled, again in 2000 ms: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 429; the engine is asked too often
        stopped for nothing | 60 ms | Transitioning: stop accepted; status is up still
        not heard | 60 ms | Unknown: stop accepted; status is not_responding
        suspended | 60 ms | Unknown: stop accepted; status is suspended
    "#]].assert_eq(&table);
}

#[test]
fn only_down_is_off() {
    use PlugState::{Off, On, Transitioning, Unknown};
    for (status, state) in [
        ("down", Off),
        ("up", On),
        ("paused", On),
        ("powering_down", On),
        ("migrating", On),
        ("reboot_in_progress", On),
        ("powering_up", Transitioning),
        ("wait_for_launch", Transitioning),
        ("saving_state", Transitioning),
        ("restoring_state", Transitioning),
        ("image_locked", Transitioning),
        ("suspended", Unknown),
        ("not_responding", Unknown),
        ("unassigned", Unknown),
        ("unknown", Unknown),
        ("Down", Unknown),
    ] {
        let outcome = ask(Engine::stuck(status), Action::Status, ID).result.unwrap();
        let says = format!("status is {status}");
        assert_eq!((outcome.state, outcome.detail), (state, says));
    }
}
