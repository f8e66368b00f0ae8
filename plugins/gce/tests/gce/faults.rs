//! Each fault of Google or of the way there: the sentence it gives, and how long it takes.

use expect_test::expect;
use node_remedy_sdk::testing::faults::{Fault, FaultTable};
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, FailureKind, NetError, PlugState};

use crate::project::{DEADLINE_MS, Project, ask, ask_for, error, request};

const READ: &str = "GET /compute";
const STOP: &str = "POST";

fn running() -> Project {
    Project::with("RUNNING")
}

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let refuses = |line: &str, status, reason: &str, says: &str| {
        running().instead(line, status, &error(reason, says))
    };
    let fails =
        |code: &str| Project { fails: Some(serde_json::json!({ "code": code })), ..running() };
    let rows: Vec<(&str, Overlay<Project>)> = vec![
        ("unreachable, silent", Overlay::new(running()).silent("")),
        ("silent to the stop", Overlay::new(running()).silent(STOP)),
        ("wrong credentials: old token", refuses(READ, 401, "authError", "Invalid Credentials")),
        ("no rights to read", refuses(READ, 403, "forbidden", "Required 'compute.instances.get'.")),
        (
            "no rights to stop",
            refuses(STOP, 403, "forbidden", "Required 'compute.instances.stop'."),
        ),
        ("API not enabled", refuses(READ, 403, "accessNotConfigured", "It is disabled.")),
        ("asked too often", refuses(STOP, 403, "rateLimitExceeded", "Rate Limit Exceeded")),
        ("asked far too often", running().instead(STOP, 429, "").header("Retry-After", "2")),
        ("wrong plug", refuses(READ, 404, "notFound", "It was not found.")),
        ("not now", refuses(STOP, 400, "resourceNotReady", "It is not ready.")),
        ("local SSDs", refuses(STOP, 400, "badRequest", "Local SSDs need discard-local-ssd.")),
        ("fails inside", refuses(STOP, 500, "backendError", "Backend Error")),
        ("overloaded", running().instead(READ, 503, "").header("Retry-After", "3")),
        ("leads elsewhere", running().instead(READ, 302, "")),
        ("malformed: a web page", running().instead(READ, 200, "<html>Please log in</html>")),
        ("truncated", running().instead(READ, 200, r#"{"status": "TERMINA"#)),
        ("malformed: a list", running().instead(READ, 200, r#"["TERMINATED"]"#)),
        ("no status", running().instead(READ, 200, r#"{"name": "worker-1"}"#)),
        ("no operation", running().instead(STOP, 200, "{}")),
        ("an operation elsewhere", running().instead(STOP, 200, r#"{"name": "../../x"}"#)),
        ("stuck", Project { late_ms: u64::MAX / 2, ..running() }.into()),
        ("the operation fails", fails("INTERNAL_ERROR").into()),
        ("the operation has no quota", fails("QUOTA_EXCEEDED").into()),
    ];
    let mut table = FaultTable::new("gce", DEADLINE_MS);
    fault_table(&mut table, (running, STOP), rows, |project| ask(project, Action::Off));
    // Its operation is waited for, and then it is so.
    let late = ask(Project { late_ms: 9_000, ..running() }, Action::Off);
    table.row(&Fault { is_off: true, ..late.fault("late") });
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 15000 ms | Unreachable, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the time allowed for it has passed
        silent to the stop | 15050 ms | Timeout, again: failed to POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: the time allowed for it has passed
        wrong credentials: old token | 5 ms | Unauthenticated: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 401: Invalid Credentials; check that the service account and its key are enabled
        no rights to read | 5 ms | Denied: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 403: Required 'compute.instances.get'; check the account's roles: it needs compute.instances.get, stop, start and reset, and compute.zoneOperations.get
        no rights to stop | 55 ms | Denied: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 403: Required 'compute.instances.stop'; check the account's roles: it needs compute.instances.get, stop, start and reset, and compute.zoneOperations.get
        API not enabled | 5 ms | Denied: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 403: It is disabled; enable the Compute Engine API in the project
        asked too often | 3070 ms | Throttled, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 403: Rate Limit Exceeded; Google is asked too often
        asked far too often | 6070 ms | Throttled, again in 2000 ms: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 429; Google is asked too often
        wrong plug | 5 ms | NoSuchPlug: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 404: It was not found; check project, zone and name: there is no such instance
        not now | 105 ms | Busy, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 400: It is not ready; the instance is in a state in which that cannot be done
        local SSDs | 105 ms | Device: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 400: Local SSDs need discard-local-ssd; Google refuses it
        fails inside | 105 ms | Device, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 500: Backend Error; Google says that it failed
        overloaded | 9020 ms | Busy, again in 3000 ms: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 503; Google is starting, updating or overloaded
        leads elsewhere | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 302; it leads elsewhere; check the address
        malformed: a web page | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON list or object; is this the address of Google?
        truncated | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON list or object; is this the address of Google?
        malformed: a list | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON object; is this the address of Google?
        no status | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no instance p-1/z-1/worker-1; is this Google?
        no operation | 55 ms | Protocol: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: found no operation; is this Google?
        an operation elsewhere | 55 ms | Protocol: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: found no operation; is this Google?
        stuck | 10650 ms | Transitioning: stop accepted; status is RUNNING still
        the operation fails | 100 ms | Device, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: INTERNAL_ERROR: INTERNAL_ERROR; Google took it on and could not do it
        the operation has no quota | 100 ms | Device: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: QUOTA_EXCEEDED: QUOTA_EXCEEDED; the project's quota is used up
        flips back at once | 150 ms | Transitioning: stop accepted; status is RUNNING still
        unreachable | 0 ms | Unreachable, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the login failed; check that the credential is the service account's key file, that Google still knows the key, and the controller's clock
        huge | 0 ms | Protocol: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: this replica may no longer send to devices
        late | 9600 ms | Off: stop accepted; status is TERMINATED
    "#]].assert_eq(&table);
}

/// A login that fails is the host's: all that a plugin hears is that it did.
#[test]
fn where_nobody_can_prove_who_asks_it_is_said_what_to_check() {
    for (error, says) in [(NetError::Login, true), (NetError::Tls, false)] {
        let ended =
            ask_for(running(), &request(Action::Off), |host| host.failing("compute", error));
        let failure = ended.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unauthenticated);
        assert_eq!(failure.detail.contains("the controller's clock"), says, "{}", failure.detail);
    }
}

/// What Google refused because it was asked too often it did not do, and so it is asked again.
#[test]
fn what_is_asked_too_often_is_asked_again_later() {
    let busy = error("rateLimitExceeded", "Rate Limit Exceeded");
    let ended = ask(running().instead(STOP, 403, &busy).times(2), Action::Off);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert!((2_000..3_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

/// It says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_service_is_left_before_the_deadline() {
    let mut status = request(Action::Status);
    status.deadline_ms = 5_000;
    let ended = ask_for(Overlay::new(running()).silent(""), &status, |host| host);
    assert_eq!(ended.took_ms, 4_750);
    assert!(ended.result.unwrap_err().retryable);
}
