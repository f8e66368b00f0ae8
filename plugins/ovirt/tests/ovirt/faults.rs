//! What an engine does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState};

use crate::engine::{DEADLINE_MS, Engine, ID, OTHER, STRANGER, ask, error};

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
        ("unreachable, silent", Overlay::new(Engine::default()).silent("GET")),
        ("silent to the stop", Overlay::new(Engine::default()).silent(STOP)),
        ("wrong credentials", one(VMS, 401, "")),
        (
            "no rights to stop",
            one(STOP, 403, &says("User is not authorized to perform this action.")),
        ),
        ("another server", one(VMS, 404, "<html>")),
        ("malformed: a web page", one(VMS, 200, "<html>oVirt</html>")),
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
        ("stuck", Engine::stuck("up").into()),
        ("late", Engine { late_ms: 9_000, ..Engine::default() }.into()),
        ("not heard", Engine::stuck("not_responding").into()),
        ("suspended", Engine::stuck("suspended").into()),
    ];
    let mut table = FaultTable::new("ovirt", DEADLINE_MS);
    fault_table(&mut table, (Engine::default, STOP), rows, |web| ask(web, Action::Off, ID));
    table.row(&ask(Engine::default(), Action::Off, STRANGER).fault("wrong plug"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 25000 ms | Unreachable, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the time allowed for it has passed
        silent to the stop | 25020 ms | Timeout, again: failed to POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 401; check user@profile, such as admin@internal, and password
        no rights to stop | 25 ms | Denied: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 403: User is not authorized to perform this action; check the role of the account on the machine: UserRole may stop and start it
        another server | 10 ms | Unsupported: GET /ovirt-engine/api/vms?max=1: HTTP 404; check that the address is the engine's
        malformed: a web page | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of the engine?
        no status | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no status of 11111111-2222-4333-8444-555555555501 in it
        another machine | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no status of 11111111-2222-4333-8444-555555555501 in it
        truncated | 5 ms | Protocol: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of the engine?
        locked | 45 ms | Busy, again: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 409: [Cannot stop VM. Related operation is currently in progress.]; the engine is at something else
        refuses | 45 ms | Device: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 400: [Cannot stop VM.]; the engine refuses it
        fails inside | 45 ms | Device, again: POST /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501/stop: HTTP 500: Internal Engine Error; the engine says that it failed
        starting | 3020 ms | Busy, again: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 503; the engine is starting, updating or overloaded
        asked too often | 6020 ms | Throttled, again in 2000 ms: GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: HTTP 429; the engine is asked too often
        stuck | 60 ms | Transitioning: stop accepted; status is up still
        late | 60 ms | Transitioning: stop accepted; status is up still
        not heard | 60 ms | Unknown: stop accepted; status is not_responding
        suspended | 60 ms | Unknown: stop accepted; status is suspended
        flips back at once | 60 ms | Transitioning: stop accepted; status is up still
        unreachable | 0 ms | Unreachable, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the login failed
        huge | 0 ms | Protocol: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /ovirt-engine/api/vms/11111111-2222-4333-8444-555555555501: this replica may no longer send to devices
        wrong plug | 40 ms | NoSuchPlug: there is no machine 11111111-2222-4333-8444-555555555599 that the account sees
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
