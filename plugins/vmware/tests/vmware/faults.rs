//! What a vCenter does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState};
use serde_json::{Value, json};

use crate::vcenter::{DEADLINE_MS, VCenter, ask, error};

const READ: &str = "GET /api/vcenter/vm/vm-41";
const HOSTS: &str = "GET /api/vcenter/host";
const STOP: &str = "POST /api/vcenter/vm/vm-41/power?action=stop";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = |line: &str, status: u16, body: &str| {
        Overlay::new(VCenter::default()).instead(line, status, body)
    };
    let says = |kind: &str, message: &str| error(kind, message).to_string();
    let off = || Overlay::new(VCenter::reading("POWERED_OFF"));
    let off_stuck = |line: &str, status: u16, body: &str| off().instead(line, status, body);
    let rows: Vec<(&str, Overlay<VCenter>)> = vec![
        ("unreachable, silent", Overlay::new(VCenter::default()).silent("GET")),
        ("silent to the stop", Overlay::new(VCenter::default()).silent(STOP)),
        (
            "wrong credentials",
            one("GET", 401, &says("UNAUTHENTICATED", "Authentication required.")),
        ),
        (
            "no rights to stop",
            one(
                STOP,
                403,
                &says("UNAUTHORIZED", "Permission to perform this operation was denied."),
            ),
        ),
        ("the old form only", one("GET", 404, "")),
        ("malformed: a web page", one("GET", 200, "<html>vSphere Client</html>")),
        ("says nothing of power", one(READ, 200, r#"{"identity": {}}"#)),
        ("truncated", one(READ, 200, r#"{"power_state": "POWERED_O"#)),
        (
            "wrong plug",
            one(
                READ,
                404,
                &says("NOT_FOUND", "Virtual machine with identifier 'vm-41' does not exist."),
            ),
        ),
        (
            "refuses",
            one(STOP, 400, &says("NOT_ALLOWED_IN_CURRENT_STATE", "The operation is not allowed.")),
        ),
        (
            "busy with a task",
            one(STOP, 503, &says("RESOURCE_BUSY", "Another task is already in progress.")),
        ),
        ("fails inside", one(READ, 500, &says("ERROR", "Internal error."))),
        ("its services start", one("GET", 503, "")),
        ("asked too often", one("GET", 429, "").header("Retry-After", "2")),
        ("stuck", VCenter { is_stuck: true, ..VCenter::default() }.into()),
        ("late", VCenter { late_ms: 9_000, ..VCenter::default() }.into()),
        (
            "off on a host that is away",
            VCenter { away: Some("host-9"), ..VCenter::reading("POWERED_OFF") }.into(),
        ),
        (
            "off, and the hosts cannot be read",
            off_stuck(HOSTS, 500, &says("ERROR", "Internal error.")),
        ),
        ("suspended", VCenter { is_stuck: true, ..VCenter::reading("SUSPENDED") }.into()),
    ];
    let mut table = FaultTable::new("vmware", DEADLINE_MS);
    fault_table(&mut table, (VCenter::default, STOP), rows, |web| ask(web, Action::Off, "vm-41"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 25000 ms | Unreachable, again: failed to GET /api/vcenter/vm/vm-41: the time allowed for it has passed
        silent to the stop | 25020 ms | Timeout, again: failed to POST /api/vcenter/vm/vm-41/power?action=stop: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /api/vcenter/vm/vm-41: HTTP 401: Authentication required; check user@domain and password
        no rights to stop | 25 ms | Denied: POST /api/vcenter/vm/vm-41/power?action=stop: HTTP 403: Permission to perform this operation was denied; check the role of the account: System.Read, VirtualMachine.Interact.PowerOn, PowerOff, Reset
        the old form only | 5 ms | Unsupported: GET /api/vcenter/vm/vm-41: HTTP 404; check that the address is vCenter's; before 7.0 U2 it needs api: rest
        malformed: a web page | 5 ms | Protocol: GET /api/vcenter/vm/vm-41: found no JSON list or object; is this the address of vCenter?
        says nothing of power | 5 ms | Protocol: vCenter says nothing of the power of vm-41
        truncated | 5 ms | Protocol: GET /api/vcenter/vm/vm-41: found no JSON list or object; is this the address of vCenter?
        wrong plug | 25 ms | NoSuchPlug: there is no machine "vm-41"; vCenter shows none to an account without rights: check that it may read the machine
        refuses | 45 ms | Device: POST /api/vcenter/vm/vm-41/power?action=stop: HTTP 400: The operation is not allowed; vCenter refuses it
        busy with a task | 25 ms | Busy, again: POST /api/vcenter/vm/vm-41/power?action=stop: HTTP 503: Another task is already in progress; vCenter is starting, updating or overloaded
        fails inside | 5 ms | Device, again: GET /api/vcenter/vm/vm-41: HTTP 500: Internal error; vCenter says that it failed
        its services start | 3020 ms | Busy, again: GET /api/vcenter/vm/vm-41: HTTP 503; vCenter is starting, updating or overloaded
        asked too often | 6020 ms | Throttled, again in 2000 ms: GET /api/vcenter/vm/vm-41: HTTP 429; vCenter is asked too often
        stuck | 60 ms | Transitioning: stop accepted; power_state is POWERED_ON still
        late | 60 ms | Transitioning: stop accepted; power_state is POWERED_ON still
        off on a host that is away | 140 ms | Device: POST /api/vcenter/vm/vm-41/power?action=stop: HTTP 400: The virtual machine is so already; vCenter refuses it
        off, and the hosts cannot be read | 70 ms | Device: POST /api/vcenter/vm/vm-41/power?action=stop: HTTP 400: The virtual machine is so already; vCenter refuses it
        suspended | 60 ms | Unknown: stop accepted; power_state is SUSPENDED
        flips back at once | 60 ms | Transitioning: stop accepted; power_state is POWERED_ON still
        unreachable | 0 ms | Unreachable, again: failed to GET /api/vcenter/vm/vm-41: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /api/vcenter/vm/vm-41: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /api/vcenter/vm/vm-41: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /api/vcenter/vm/vm-41: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /api/vcenter/vm/vm-41: the login failed
        huge | 0 ms | Protocol: failed to GET /api/vcenter/vm/vm-41: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /api/vcenter/vm/vm-41: this replica may no longer send to devices
    "#]].assert_eq(&table);
}

#[test]
fn a_machine_is_off_only_where_vcenter_hears_its_host() {
    for (away, power, state, says) in [
        (None, "POWERED_OFF", PlugState::Off, "power_state is POWERED_OFF"),
        (Some("host-10"), "POWERED_OFF", PlugState::Off, "power_state is POWERED_OFF"),
        (
            Some("host-9"),
            "POWERED_OFF",
            PlugState::Unknown,
            "power_state is POWERED_OFF, but it is on no host that vCenter hears; if it is, give the account System.Read on the hosts",
        ),
        (None, "SUSPENDED", PlugState::Unknown, "power_state is SUSPENDED"),
        (None, "POWERED_ON", PlugState::On, "power_state is POWERED_ON"),
        (None, "off", PlugState::Unknown, "power_state is off"),
    ] {
        for is_old in [false, true] {
            let vcenter = VCenter { is_old, away, ..VCenter::reading(power) };
            let outcome = ask(vcenter, Action::Status, "vm-41").result.unwrap();
            assert_eq!((outcome.state, outcome.detail.as_str()), (state, says));
        }
    }
    // Nor where the account is not told: a host that is away may have started it since.
    for (status, body, says) in [
        (403, error("UNAUTHORIZED", "Denied."), "may not be seen"),
        (200, json!([]), "no host is seen"),
        (200, json!([{ "host": "host-10", "connection_state": "CONNECTED" }]), "on no host"),
    ] {
        let blind = Overlay::new(VCenter::reading("POWERED_OFF"));
        let outcome = ask(blind.instead(HOSTS, status, &body.to_string()), Action::Status, "vm-41");
        let outcome = outcome.result.unwrap();
        assert_eq!(outcome.state, PlugState::Unknown);
        assert!(outcome.detail.contains(says), "{}", outcome.detail);
        assert!(outcome.detail.ends_with("give the account System.Read on the hosts"));
    }
    // Many hosts are named in several questions; the one that it is on comes last.
    let host =
        |number| json!({ "host": format!("host-{number}"), "connection_state": "CONNECTED" });
    let many: Vec<_> = (100..219).chain([9]).map(host).collect();
    let large = Overlay::new(VCenter::reading("POWERED_OFF"));
    let large = large.instead(HOSTS, 200, &Value::from(many).to_string());
    assert_eq!(ask(large, Action::Status, "vm-41").result.unwrap().state, PlugState::Off);
}
