//! What a switch does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState};

use crate::switch::{DEADLINE_MS, Port, Switch, ask, error};

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = |line: &str, status: u16, body: &str| {
        Overlay::new(Switch::default()).instead(line, status, body)
    };
    let cut = "<Response><fibrechannel><name>0/1</name><enabled-state>6</enabled-state>";
    let nameless =
        "<Response><fibrechannel><enabled-state>6</enabled-state></fibrechannel></Response>";
    let rows: Vec<(&str, Overlay<Switch>)> = vec![
        ("unreachable, silent", Overlay::new(Switch::default()).silent("GET")),
        ("silent to the change", Overlay::new(Switch::default()).silent("PATCH")),
        ("wrong credentials", one("GET", 401, &error("Invalid credentials"))),
        ("no rights", one("PATCH", 403, &error("Permission denied"))),
        ("no REST", one("GET", 404, "<html>")),
        ("malformed: a web page", one("GET", 200, "<html>Web Tools</html>")),
        ("truncated", one("GET", 200, cut)),
        ("cut inside a port", one("GET", 200, &format!("{cut}</Response>"))),
        ("malformed: a port without name", one("GET", 200, nameless)),
        ("wrong plug: no ports", one("GET", 200, "<Response></Response>")),
        ("too many sessions", one("GET", 503, &error("Max limit for REST sessions reached"))),
        ("asked too often", one("GET", 429, &error("Throttled"))),
        ("refuses", one("PATCH", 400, &error("Port is not configurable"))),
        ("fails inside", one("PATCH", 500, &error("Internal error"))),
        ("cannot", one("PATCH", 405, "")),
        ("late", Switch { late_ms: 9_000, ..Switch::default() }.into()),
        ("stuck", Switch { is_stuck: true, ..Switch::default() }.into()),
    ];
    let mut table = FaultTable::new("brocade-rest", DEADLINE_MS);
    fault_table(&mut table, (Switch::default, "PATCH"), rows, |web| ask(web, Action::Off, "0/1"));
    table.row(&ask(Switch::default(), Action::Off, "0/9").fault("wrong plug"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 30000 ms | Unreachable, again: failed to GET /rest/running/brocade-interface/fibrechannel: the time allowed for it has passed
        silent to the change | 30020 ms | Timeout, again: failed to PATCH /rest/running/brocade-interface/fibrechannel: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /rest/running/brocade-interface/fibrechannel: HTTP 401: Invalid credentials; check user name and password
        no rights | 25 ms | Denied: PATCH /rest/running/brocade-interface/fibrechannel: HTTP 403: Permission denied; check the role of the account: switchadmin or admin may switch ports, in this logical switch
        no REST | 5 ms | Unsupported: GET /rest/running/brocade-interface/fibrechannel: HTTP 404; check that the address is the switch's, that it has Fabric OS 8.2 or later, and that REST is on
        malformed: a web page | 5 ms | Protocol: the switch listed no ports; is this the address of a switch?
        truncated | 5 ms | Protocol: the switch listed no ports; is this the address of a switch?
        cut inside a port | 5 ms | Protocol: the list of ports ends inside a port
        malformed: a port without name | 5 ms | Protocol: the switch lists a port without name
        wrong plug: no ports | 5 ms | NoSuchPlug: none of the 0 ports of the switch is 0/1
        too many sessions | 3020 ms | Busy, again: GET /rest/running/brocade-interface/fibrechannel: HTTP 503: Max limit for REST sessions reached; the switch is starting, updating or overloaded
        asked too often | 3020 ms | Throttled, again: GET /rest/running/brocade-interface/fibrechannel: HTTP 429: Throttled; the switch is asked too often
        refuses | 45 ms | Device: PATCH /rest/running/brocade-interface/fibrechannel: HTTP 400: Port is not configurable; the switch refuses it
        fails inside | 45 ms | Device, again: PATCH /rest/running/brocade-interface/fibrechannel: HTTP 500: Internal error; the switch says that it failed
        cannot | 25 ms | Unsupported: PATCH /rest/running/brocade-interface/fibrechannel: HTTP 405; the switch cannot do it
        late | 80 ms | Transitioning: disable accepted; port 0/1 is enabled and online (online) still
        stuck | 80 ms | Transitioning: disable accepted; port 0/1 is enabled and online (online) still
        flips back at once | 80 ms | Transitioning: disable accepted; port 0/1 is enabled and online (online) still
        unreachable | 0 ms | Unreachable, again: failed to GET /rest/running/brocade-interface/fibrechannel: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /rest/running/brocade-interface/fibrechannel: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /rest/running/brocade-interface/fibrechannel: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /rest/running/brocade-interface/fibrechannel: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /rest/running/brocade-interface/fibrechannel: the login failed
        huge | 0 ms | Protocol: failed to GET /rest/running/brocade-interface/fibrechannel: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /rest/running/brocade-interface/fibrechannel: this replica may no longer send to devices
        wrong plug | 20 ms | NoSuchPlug: none of the 4 ports of the switch is 0/9
    "#]].assert_eq(&table);
}

#[test]
fn a_port_is_cut_where_it_is_disabled_and_has_no_traffic() {
    use PlugState::{Off, On, Transitioning, Unknown};
    let down = || Port { is_enabled: false, operation: 3, physical: "No_Light", ..Port::up() };
    for (port, state, says) in [
        (Port::up(), On, "port 0/1 is enabled and online (online)"),
        // The machine behind it is off, and its way to the storage is not cut.
        (
            Port { operation: 3, physical: "No_Light", ..Port::up() },
            On,
            "port 0/1 is enabled and offline (no_light)",
        ),
        (down(), Off, "port 0/1 is disabled and offline (no_light), until the switch restarts"),
        (
            Port { persistent: Some(true), ..down() },
            Off,
            "port 0/1 is disabled and offline (no_light)",
        ),
        // The other side sends light still; what it sends goes nowhere.
        (
            Port { physical: "In_Sync", persistent: None, ..down() },
            Off,
            "port 0/1 is disabled and offline (in_sync)",
        ),
        (
            Port { operation: 2, ..down() },
            Transitioning,
            "port 0/1 is disabled and online (no_light), until the switch restarts",
        ),
        (
            Port { physical: "Online", persistent: None, ..down() },
            Transitioning,
            "port 0/1 is disabled and offline (online)",
        ),
        (
            Port { operation: 5, persistent: None, ..down() },
            Unknown,
            "port 0/1 is disabled and neither online nor offline (no_light)",
        ),
        (
            Port { contradicts: true, ..down() },
            Unknown,
            "port 0/1 is of unclear state and offline (no_light)",
        ),
    ] {
        let switch = Switch::reading(|one| *one = port);
        let outcome = ask(switch, Action::Status, "0/1").result.unwrap();
        assert_eq!((outcome.state, outcome.detail.as_str()), (state, says));
    }
}
