//! Each fault of Google or of the way there: the sentence it gives, and how long it takes.

use expect_test::expect;
use node_remedy_plugin_sdk::testing::web::{Overlay, fault_table};
use node_remedy_plugin_sdk::{Action, FailureKind, NetError, PlugState};

use crate::project::{Project, ask, ask_for, error, request};

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
        ("silent", Overlay::new(running()).silent("")),
        ("silent to the stop", Overlay::new(running()).silent(STOP)),
        ("old token", refuses(READ, 401, "authError", "Invalid Credentials")),
        ("may not read", refuses(READ, 403, "forbidden", "Required 'compute.instances.get'.")),
        ("may not stop", refuses(STOP, 403, "forbidden", "Required 'compute.instances.stop'.")),
        ("API not enabled", refuses(READ, 403, "accessNotConfigured", "It is disabled.")),
        ("asked too often", refuses(STOP, 403, "rateLimitExceeded", "Rate Limit Exceeded")),
        ("asked far too often", running().instead(STOP, 429, "").header("Retry-After", "2")),
        ("no such instance", refuses(READ, 404, "notFound", "It was not found.")),
        ("not now", refuses(STOP, 400, "resourceNotReady", "It is not ready.")),
        ("local SSDs", refuses(STOP, 400, "badRequest", "Local SSDs need discard-local-ssd.")),
        ("fails inside", refuses(STOP, 500, "backendError", "Backend Error")),
        ("overloaded", running().instead(READ, 503, "").header("Retry-After", "3")),
        ("leads elsewhere", running().instead(READ, 302, "")),
        ("a web page", running().instead(READ, 200, "<html>Please log in</html>")),
        ("truncated", running().instead(READ, 200, r#"{"status": "TERMINA"#)),
        ("a list", running().instead(READ, 200, r#"["TERMINATED"]"#)),
        ("no status", running().instead(READ, 200, r#"{"name": "worker-1"}"#)),
        ("no operation", running().instead(STOP, 200, "{}")),
        ("an operation elsewhere", running().instead(STOP, 200, r#"{"name": "../../x"}"#)),
        ("the operation fails", fails("INTERNAL_ERROR").into()),
        ("the operation has no quota", fails("QUOTA_EXCEEDED").into()),
    ];
    let table = fault_table(rows, |project| ask(project, Action::Off));
    expect![[r#"
        silent | 15000 ms | Unreachable, again: failed to GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: the time allowed for it has passed
        silent to the stop | 15050 ms | Timeout, again: failed to POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: the time allowed for it has passed
        old token | 5 ms | Unauthenticated: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 401: Invalid Credentials; check that the service account and its key are enabled
        may not read | 5 ms | Denied: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 403: Required 'compute.instances.get'; check the account's roles: it needs compute.instances.get, stop, start and reset, and compute.zoneOperations.get
        may not stop | 55 ms | Denied: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 403: Required 'compute.instances.stop'; check the account's roles: it needs compute.instances.get, stop, start and reset, and compute.zoneOperations.get
        API not enabled | 5 ms | Denied: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 403: It is disabled; enable the Compute Engine API in the project
        asked too often | 3070 ms | Throttled, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 403: Rate Limit Exceeded; Google is asked too often
        asked far too often | 6070 ms | Throttled, again in 2000 ms: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 429; Google is asked too often
        no such instance | 5 ms | NoSuchPlug: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 404: It was not found; check project, zone and name: there is no such instance
        not now | 105 ms | Busy, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 400: It is not ready; the instance is in a state in which that cannot be done
        local SSDs | 105 ms | Device: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 400: Local SSDs need discard-local-ssd; Google refuses it
        fails inside | 105 ms | Device, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: HTTP 500: Backend Error; Google says that it failed
        overloaded | 9020 ms | Busy, again in 3000 ms: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 503; Google is starting, updating or overloaded
        leads elsewhere | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: HTTP 302; it leads elsewhere; check the address
        a web page | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON list or object; is this the address of Google?
        truncated | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON list or object; is this the address of Google?
        a list | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no JSON object; is this the address of Google?
        no status | 5 ms | Protocol: GET /compute/v1/projects/p-1/zones/z-1/instances/worker-1: found no instance p-1/z-1/worker-1; is this Google?
        no operation | 55 ms | Protocol: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: found no operation; is this Google?
        an operation elsewhere | 55 ms | Protocol: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: found no operation; is this Google?
        the operation fails | 100 ms | Device, again: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: INTERNAL_ERROR: INTERNAL_ERROR; Google took it on and could not do it
        the operation has no quota | 100 ms | Device: POST /compute/v1/projects/p-1/zones/z-1/instances/worker-1/stop?noGracefulShutdown=true: QUOTA_EXCEEDED: QUOTA_EXCEEDED; the project's quota is used up
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
