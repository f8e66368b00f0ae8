//! What a cluster does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, FailureKind, PlugState};
use serde_json::json;

use crate::cluster::{Cluster, DEADLINE_MS, ask, error};

const LIST: &str = "GET /api2/json/cluster/resources";
const CURRENT: &str = "GET /api2/json/nodes/pve1/qemu/101/status/current";
const STOP: &str = "POST /api2/json/nodes/pve1/qemu/101/status/stop";
const TASK: &str = "GET /api2/json/nodes/pve1/tasks/";

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let one = |line: &str, status: u16, body: &str| {
        Overlay::new(Cluster::default()).instead(line, status, body)
    };
    let cluster = Cluster::default;
    let quorum = error("cluster not ready - no quorum?");
    let rows: Vec<(&str, Overlay<Cluster>)> = vec![
        ("unreachable, silent", Overlay::new(cluster()).silent("GET")),
        ("silent to the stop", Overlay::new(cluster()).silent(STOP)),
        ("wrong credentials", one(LIST, 401, &error("authentication failure"))),
        (
            "no rights to stop",
            one(STOP, 403, &error("Permission check failed (/vms/101, VM.PowerMgmt)")),
        ),
        ("no rights to see", Cluster { guests: vec![], ..cluster() }.into()),
        ("another server", one(LIST, 404, "<html>")),
        ("malformed: a web page", one(LIST, 200, "<html>Proxmox</html>")),
        ("no list", one(LIST, 200, r#"{"data": null}"#)),
        ("no status", one(CURRENT, 200, r#"{"data": {}}"#)),
        ("truncated", one(CURRENT, 200, r#"{"data": {"status": "stop"#)),
        ("its node is away", one(CURRENT, 595, "")),
        (
            "its configuration is gone",
            one(CURRENT, 500, &error("Configuration file does not exist")),
        ),
        ("no quorum", one(STOP, 500, &quorum)),
        ("locked", Cluster { exit: "VM is locked (backup)", ..cluster() }.into()),
        ("stuck", Cluster { is_stuck: true, ..cluster() }.into()),
        (
            "a task without end",
            Cluster { task_ms: u64::MAX / 2, is_stuck: true, ..cluster() }.into(),
        ),
        ("late", Cluster { task_ms: 90_000, ..cluster() }.into()),
        ("asked too often", one(LIST, 429, "").header("Retry-After", "2")),
        ("starting", one(LIST, 503, "")),
        (
            "paused",
            Cluster { is_stuck: true, ..Cluster::reading(&json!({ "qmpstatus": "paused" })) }
                .into(),
        ),
    ];
    let mut table = FaultTable::new("proxmox", DEADLINE_MS);
    fault_table(&mut table, (Cluster::default, STOP), rows, |web| ask(web, Action::Off, "101"));
    table.row(&ask(cluster(), Action::Off, "199").fault("wrong plug"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 30000 ms | Unreachable, again: failed to GET /api2/json/cluster/resources?type=vm: the time allowed for it has passed
        silent to the stop | 30060 ms | Timeout, again: failed to POST /api2/json/nodes/pve1/qemu/101/status/stop: the time allowed for it has passed
        wrong credentials | 5 ms | Unauthenticated: GET /api2/json/cluster/resources?type=vm: HTTP 401: authentication failure; check user@realm and password; an account with a second factor needs login: token
        no rights to stop | 65 ms | Denied: POST /api2/json/nodes/pve1/qemu/101/status/stop: HTTP 403: Permission check failed (/vms/101, VM.PowerMgmt); check the rights: VM.Audit and VM.PowerMgmt on the guest
        no rights to see | 20 ms | NoSuchPlug: there is no guest "101": the account sees none at all; check that it has VM.Audit
        another server | 5 ms | Unsupported: GET /api2/json/cluster/resources?type=vm: HTTP 404; check that the address is Proxmox VE's API, whose port is 8006
        malformed: a web page | 5 ms | Protocol: GET /api2/json/cluster/resources?type=vm: found no JSON list or object; is this the address of Proxmox?
        no list | 5 ms | Protocol: the list of guests is none; is this the address of Proxmox?
        no status | 45 ms | Protocol: GET /api2/json/nodes/pve1/qemu/101/status/current: the guest has no status
        truncated | 45 ms | Protocol: GET /api2/json/nodes/pve1/qemu/101/status/current: found no JSON list or object; is this the address of Proxmox?
        its node is away | 45 ms | Device, again: GET /api2/json/nodes/pve1/qemu/101/status/current: HTTP 595; Proxmox says that it failed
        its configuration is gone | 65 ms | Device, again: GET /api2/json/nodes/pve1/qemu/101/status/current: HTTP 500: Configuration file does not exist; Proxmox says that it failed
        no quorum | 85 ms | Device, again: POST /api2/json/nodes/pve1/qemu/101/status/stop: HTTP 500: cluster not ready - no quorum?; Proxmox says that it failed
        locked | 2160 ms | Device, again: task UPID:pve1:0:00001B58:6B0302B2:qmstop:101:root@pam: ended with: VM is locked (backup)
        stuck | 2160 ms | Transitioning: stop accepted; status is running still
        a task without end | 54180 ms | Transitioning: stop accepted; status is running still
        late | 54180 ms | Transitioning: stop accepted; status is running still
        asked too often | 6020 ms | Throttled, again in 2000 ms: GET /api2/json/cluster/resources?type=vm: HTTP 429; Proxmox is asked too often
        starting | 3020 ms | Busy, again: GET /api2/json/cluster/resources?type=vm: HTTP 503; Proxmox is starting, updating or overloaded
        paused | 2160 ms | Transitioning: stop accepted; status is running, qmpstatus paused still
        flips back at once | 120 ms | Transitioning: stop accepted; status is running still
        unreachable | 0 ms | Unreachable, again: failed to GET /api2/json/cluster/resources?type=vm: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /api2/json/cluster/resources?type=vm: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /api2/json/cluster/resources?type=vm: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /api2/json/cluster/resources?type=vm: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /api2/json/cluster/resources?type=vm: the login failed
        huge | 0 ms | Protocol: failed to GET /api2/json/cluster/resources?type=vm: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /api2/json/cluster/resources?type=vm: this replica may no longer send to devices
        wrong plug | 20 ms | NoSuchPlug: none of the 3 guests that the account sees is "199"
    "#]].assert_eq(&table);
}

/// The guest says what came of it, where its task says nothing.
#[test]
fn a_task_that_cannot_be_read_is_told_by_its_guest() {
    let cluster = Cluster { task_ms: 0, ..Cluster::default() };
    let web = Overlay::new(cluster).instead(TASK, 403, &error("Permission check failed"));
    let outcome = ask(web, Action::Off, "101").result.unwrap();
    assert_eq!(
        (outcome.state, outcome.detail.as_str()),
        (PlugState::Off, "stop accepted; status is stopped")
    );
}

#[test]
fn what_may_go_on_by_itself_is_not_off() {
    for (words, state, says) in [
        (json!({ "status": "stopped" }), PlugState::Off, "status is stopped"),
        (
            json!({ "status": "stopped", "lock": "suspended" }),
            PlugState::Unknown,
            "status is stopped, lock suspended",
        ),
        (
            json!({ "status": "stopped", "lock": "migrate" }),
            PlugState::Transitioning,
            "status is stopped, lock migrate",
        ),
        (
            json!({ "status": "stopped", "qmpstatus": "paused" }),
            PlugState::Unknown,
            "status is stopped, qmpstatus paused",
        ),
        (json!({ "qmpstatus": "paused" }), PlugState::On, "status is running, qmpstatus paused"),
        (
            json!({ "qmpstatus": "shutdown" }),
            PlugState::On,
            "status is running, qmpstatus shutdown",
        ),
        (json!({ "status": "off" }), PlugState::Unknown, "status is off"),
        (
            json!({ "status": "stopped", "ha": { "managed": 1, "state": "started" } }),
            PlugState::Transitioning,
            "status is stopped, high availability has it started",
        ),
        (
            json!({ "status": "stopped", "ha": { "managed": 1 } }),
            PlugState::Transitioning,
            "status is stopped, high availability has it unknown",
        ),
        (
            json!({ "status": "stopped", "ha": { "managed": 1, "state": "stopped" } }),
            PlugState::Off,
            "status is stopped, high availability has it stopped",
        ),
        (
            json!({ "status": "stopped", "ha": { "managed": 0 } }),
            PlugState::Off,
            "status is stopped",
        ),
    ] {
        let outcome = ask(Cluster::reading(&words), Action::Status, "101").result.unwrap();
        assert_eq!((outcome.state, outcome.detail.as_str()), (state, says));
    }
}

/// Started, it would go on with the pods that it had, which may run elsewhere by now.
#[test]
fn a_guest_that_was_suspended_to_disk_is_not_started() {
    let suspended = json!({ "status": "stopped", "lock": "suspended" });
    let ended = ask(Cluster::reading(&suspended), Action::On, "101");
    assert_eq!(ended.writes().len(), 0);
    let failure = ended.result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Device);
    assert!(failure.detail.contains("its memory is on disk"), "{}", failure.detail);
}
