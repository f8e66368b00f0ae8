//! What a cloud does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState};

use crate::nova::{DEADLINE_MS, ID, Nova, OTHER, STRANGER, ask, refusal};

const READ: &str = "GET /v2.1/servers/11111111-2222-4333-8444-555555555501";
const STOP: &str = "POST /v2.1/servers/11111111-2222-4333-8444-555555555501/action";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = |line: &str, status: u16, body: &str| {
        Overlay::new(Nova::default()).instead(line, status, body)
    };
    let says = |name: &str, message: &str| refusal(name, message).to_string();
    let locked = says("conflictingRequest", "Instance is locked");
    let other = format!(r#"{{"server": {{"id": "{OTHER}", "OS-EXT-STS:vm_state": "stopped"}}}}"#);
    let rows: Vec<(&str, Overlay<Nova>)> = vec![
        ("unreachable, silent", Overlay::new(Nova::default()).silent("GET")),
        ("silent to the stop", Overlay::new(Nova::default()).silent(STOP)),
        (
            "wrong credentials",
            one("GET", 401, &says("error", "The request you have made requires authentication.")),
        ),
        (
            "no rights to stop",
            one(STOP, 403, &says("forbidden", "Policy doesn't allow os-stop to be performed.")),
        ),
        ("another path", one("GET", 404, "<html>")),
        ("malformed: a web page", one("GET", 200, "<html>Horizon</html>")),
        ("another server", one(READ, 200, &other)),
        ("truncated", one(READ, 200, r#"{"server": {"id": "#)),
        ("locked", one(STOP, 409, &locked)),
        ("asked too often", one("GET", 413, &says("overLimit", "This request was rate-limited."))),
        ("asked much too often", one("GET", 429, "").header("Retry-After", "5")),
        ("starting", one("GET", 503, "")),
        ("fails inside", one(STOP, 500, &says("computeFault", "Unexpected API Error."))),
        ("the gateway is slow", one(READ, 504, "")),
        ("stuck: its host is dead", Nova { is_dead: true, ..Nova::default() }.into()),
        ("late", Nova { late_ms: 9_000, ..Nova::default() }.into()),
        ("in error", Nova { is_dead: true, ..Nova::reading("error", None, 4) }.into()),
        ("suspended", Nova { is_dead: true, ..Nova::reading("suspended", None, 4) }.into()),
    ];
    let mut table = FaultTable::new("openstack", DEADLINE_MS);
    fault_table(&mut table, (Nova::default, STOP), rows, |web| ask(web, Action::Off, ID));
    table.row(&ask(Nova::default(), Action::Off, STRANGER).fault("wrong plug"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 25000 ms | Unreachable, again: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the time allowed for it has passed
        silent to the stop | 25020 ms | Timeout, again: failed to POST /v2.1/servers/11111111-2222-4333-8444-555555555501/action: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 401: The request you have made requires authentication; check user, password, project and domains, or the application credential
        no rights to stop | 25 ms | Denied: POST /v2.1/servers/11111111-2222-4333-8444-555555555501/action: HTTP 403: Policy doesn't allow os-stop to be performed; check the roles in the project: member, or a role that may stop and start servers
        another path | 5 ms | Unsupported: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 404; check that compute-url is Nova's endpoint as the catalogue has it
        malformed: a web page | 5 ms | Protocol: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of OpenStack?
        another server | 5 ms | Protocol: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: found no server 11111111-2222-4333-8444-555555555501 in it
        truncated | 5 ms | Protocol: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: found no JSON list or object; is this the address of OpenStack?
        locked | 45 ms | Busy, again: POST /v2.1/servers/11111111-2222-4333-8444-555555555501/action: HTTP 409: Instance is locked; OpenStack is at something else
        asked too often | 5 ms | Device: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 413: This request was rate-limited; OpenStack refuses it
        asked much too often | 15020 ms | Throttled, again in 5000 ms: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 429; OpenStack is asked too often
        starting | 3020 ms | Busy, again: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 503; OpenStack is starting, updating or overloaded
        fails inside | 45 ms | Device, again: POST /v2.1/servers/11111111-2222-4333-8444-555555555501/action: HTTP 500: Unexpected API Error; OpenStack says that it failed
        the gateway is slow | 5 ms | Timeout, again: GET /v2.1/servers/11111111-2222-4333-8444-555555555501: HTTP 504; OpenStack is slow
        stuck: its host is dead | 60 ms | Transitioning: os-stop accepted; vm_state is active, task powering-off, power running still
        late | 60 ms | Transitioning: os-stop accepted; vm_state is active, task powering-off, power running still
        in error | 60 ms | Transitioning: os-stop accepted; vm_state is error, task powering-off, power shut down still
        suspended | 60 ms | Transitioning: os-stop accepted; vm_state is suspended, task powering-off, power shut down still
        flips back at once | 60 ms | Transitioning: os-stop accepted; vm_state is active, task none, power running still
        unreachable | 0 ms | Unreachable, again: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the login failed
        huge | 0 ms | Protocol: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /v2.1/servers/11111111-2222-4333-8444-555555555501: this replica may no longer send to devices
        wrong plug | 20 ms | NoSuchPlug: there is no server 11111111-2222-4333-8444-555555555599 in the project
    "#]].assert_eq(&table);
}

#[test]
fn three_states_make_one_and_only_one_of_them_is_off() {
    use PlugState::{Off, On, Transitioning, Unknown};
    for (vm_state, task, power, state, says) in [
        ("stopped", None, 4, Off, "vm_state is stopped, task none, power shut down"),
        (
            "active",
            Some("powering-off"),
            1,
            Transitioning,
            "vm_state is active, task powering-off, power running",
        ),
        (
            "stopped",
            Some("powering-on"),
            4,
            Transitioning,
            "vm_state is stopped, task powering-on, power shut down",
        ),
        (
            "active",
            Some("image_snapshot"),
            1,
            On,
            "vm_state is active, task image_snapshot, power running",
        ),
        (
            "stopped",
            Some("image_snapshot"),
            4,
            Transitioning,
            "vm_state is stopped, task image_snapshot, power shut down",
        ),
        ("stopped", None, 1, On, "vm_state is stopped, task none, power running"),
        ("stopped", None, 0, Unknown, "vm_state is stopped, task none, power no state"),
        ("active", None, 4, Unknown, "vm_state is active, task none, power shut down"),
        ("paused", None, 3, On, "vm_state is paused, task none, power paused"),
        ("suspended", None, 4, Unknown, "vm_state is suspended, task none, power shut down"),
        (
            "shelved_offloaded",
            None,
            4,
            Unknown,
            "vm_state is shelved_offloaded, task none, power shut down",
        ),
        ("error", None, 4, Unknown, "vm_state is error, task none, power shut down"),
    ] {
        let outcome = ask(Nova::reading(vm_state, task, power), Action::Status, ID).result.unwrap();
        assert_eq!((outcome.state, outcome.detail.as_str()), (state, says));
    }
    let nothing = Overlay::new(Nova::default()).instead(
        READ,
        200,
        &format!(r#"{{"server": {{"id": "{ID}"}}}}"#),
    );
    assert_eq!(ask(nothing, Action::Status, ID).result.unwrap().state, Unknown);
    assert!(ask(Nova::default(), Action::Status, STRANGER).result.is_err());
}
