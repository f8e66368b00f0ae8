//! Each fault of Azure or of the way there: the sentence it gives, and how long it takes.

use expect_test::expect;
use node_remedy_sdk::testing::faults::{Fault, FaultTable};
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, FailureKind, NetError, PlugState};

use crate::group::{DEADLINE_MS, Group, PATH, ask, ask_for, error, request};

const READ: &str = "GET /subscriptions";
const STOP: &str = "POST";

fn running() -> Group {
    Group::with("running")
}

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let refuses = |line: &str, status, code: &str, says: &str| {
        running().instead(line, status, &error(code, says).to_string())
    };
    let login =
        r#"{"error": "invalid_client", "error_description": "AADSTS7000215: Wrong secret."}"#;
    let fails = |code| Group { fails: Some(code), ..running() };
    let rows: Vec<(&str, Overlay<Group>)> = vec![
        ("unreachable, silent", Overlay::new(running()).silent("")),
        ("silent to the off", Overlay::new(running()).silent(STOP)),
        ("wrong credentials: secret", running().instead("", 401, login)),
        (
            "wrong credentials: tenant",
            refuses(READ, 401, "InvalidAuthenticationTokenTenant", "It is wrong."),
        ),
        ("no rights to read", refuses(READ, 403, "AuthorizationFailed", "It may not read.")),
        ("no rights to stop", refuses(STOP, 403, "AuthorizationFailed", "It may not power off.")),
        ("locked", refuses(STOP, 409, "ScopeLocked", "It is locked.")),
        ("by policy", refuses(STOP, 403, "RequestDisallowedByPolicy", "It is disallowed.")),
        ("asked too often", running().instead(STOP, 429, "").header("Retry-After", "4")),
        ("wrong plug", refuses(READ, 404, "ResourceNotFound", "It was not found.")),
        ("wrong plug: group", refuses(READ, 404, "ResourceGroupNotFound", "It was not found.")),
        ("at something else", refuses(STOP, 409, "Conflict", "Another operation is going on.")),
        ("not allowed", refuses(STOP, 409, "OperationNotAllowed", "It is not allowed.")),
        ("older cloud", refuses(READ, 400, "NoRegisteredProviderFound", "Not this version.")),
        ("fails inside", refuses(STOP, 500, "InternalServerError", "It failed.")),
        ("overloaded", running().instead(READ, 503, "").header("Retry-After", "3")),
        ("leads elsewhere", running().instead(READ, 307, "")),
        ("malformed: a web page", running().instead(READ, 200, "<html>Please log in</html>")),
        ("truncated", running().instead(READ, 200, r#"{"id": "/subscriptions"#)),
        ("malformed: a list", running().instead(READ, 200, r#"[{"code": "PowerState/stopped"}]"#)),
        (
            "no id",
            running().instead(READ, 200, r#"{"statuses": [{"code": "PowerState/stopped"}]}"#),
        ),
        ("stuck", Group { late_ms: u64::MAX / 2, ..running() }.into()),
        ("the operation fails", fails("VMAgentStatusCommunicationError").into()),
        ("the operation is locked", fails("ScopeLocked").into()),
    ];
    let mut table = FaultTable::new("azure", DEADLINE_MS);
    fault_table(&mut table, (running, STOP), rows, |group| ask(group, Action::Off));
    // Its operation is waited for, and then it is so.
    let late = ask(Group { late_ms: 9_000, ..running() }, Action::Off);
    table.row(&Fault { is_off: true, ..late.fault("late") });
    let table = table.finish(env!("CARGO_TARGET_TMPDIR")).replace(PATH, "PATH");
    expect![[r#"
        unreachable, silent | 15000 ms | Unreachable, again: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the time allowed for it has passed
        silent to the off | 15050 ms | Timeout, again: failed to POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: the time allowed for it has passed
        wrong credentials: secret | 5 ms | Unauthenticated: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 401: AADSTS7000215: Wrong secret; check tenant, application id and client secret, which ends one day
        wrong credentials: tenant | 5 ms | Unauthenticated: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 401: It is wrong; the subscription belongs to another tenant
        no rights to read | 5 ms | Denied: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 403: It may not read; check the application's role on the machine: it must allow virtualMachines/read, powerOff (or deallocate), start and restart
        no rights to stop | 55 ms | Denied: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 403: It may not power off; check the application's role on the machine: it must allow virtualMachines/read, powerOff (or deallocate), start and restart
        locked | 105 ms | Denied: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 409: It is locked; a lock on the machine or its group forbids it
        by policy | 55 ms | Denied: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 403: It is disallowed; a policy of the subscription forbids it
        asked too often | 12070 ms | Throttled, again in 4000 ms: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 429; Azure is asked too often
        wrong plug | 5 ms | NoSuchPlug: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 404: It was not found; check subscription, resource group and name: there is no such machine
        wrong plug: group | 5 ms | NoSuchPlug: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 404: It was not found; check subscription, resource group and name: there is no such machine
        at something else | 105 ms | Busy, again: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 409: Another operation is going on; Azure is at something else
        not allowed | 105 ms | Device: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 409: It is not allowed; Azure does not allow it: check quota and the machine's state
        older cloud | 5 ms | Unsupported: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 400: Not this version; this cloud does not know the version 2026-04-01 of Microsoft.Compute
        fails inside | 105 ms | Device, again: POST PATH/powerOff?skipShutdown=true&api-version=2026-04-01: HTTP 500: It failed; Azure says that it failed
        overloaded | 9020 ms | Busy, again in 3000 ms: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 503; Azure is starting, updating or overloaded
        leads elsewhere | 5 ms | Protocol: GET PATH?$expand=instanceView&api-version=2026-04-01: HTTP 307; it leads elsewhere; check the address
        malformed: a web page | 5 ms | Protocol: GET PATH?$expand=instanceView&api-version=2026-04-01: found no JSON list or object; is this the address of Azure?
        truncated | 5 ms | Protocol: GET PATH?$expand=instanceView&api-version=2026-04-01: found no JSON list or object; is this the address of Azure?
        malformed: a list | 5 ms | Protocol: GET PATH?$expand=instanceView&api-version=2026-04-01: found no JSON object; is this the address of Azure?
        no id | 5 ms | Protocol: GET PATH: found no such machine; is this Azure?
        stuck | 10400 ms | Transitioning: powerOff accepted; PowerState is running still
        the operation fails | 2150 ms | Device, again: POST PATH/powerOff: VMAgentStatusCommunicationError: It is so; Azure took it on and could not do it
        the operation is locked | 2150 ms | Denied: POST PATH/powerOff: ScopeLocked: It is so; a lock on the machine or its group forbids it
        flips back at once | 2200 ms | Transitioning: powerOff accepted; PowerState is running still
        unreachable | 0 ms | Unreachable, again: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the device refuses the port
        connection closed | 0 ms | Other, again: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the login failed; check tenant, application id and client secret, which ends one day
        huge | 0 ms | Protocol: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to GET PATH?$expand=instanceView&api-version=2026-04-01: this replica may no longer send to devices
        late | 10400 ms | Off: powerOff accepted; PowerState is stopped
    "#]].assert_eq(&table);
}

/// A login that fails is the host's: all that a plugin hears is that it did.
#[test]
fn where_nobody_can_prove_who_asks_it_is_said_what_to_check() {
    for (error, says) in [(NetError::Login, true), (NetError::Tls, false)] {
        let ended =
            ask_for(running(), &request(Action::Off), |host| host.failing("management", error));
        let failure = ended.result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unauthenticated);
        assert_eq!(
            failure.detail.contains("check tenant, application id"),
            says,
            "{}",
            failure.detail
        );
    }
}

/// What Azure refused because it was asked too often it did not do, and so it is asked again.
#[test]
fn what_is_asked_too_often_is_asked_again_when_azure_says() {
    let busy = running().instead(STOP, 429, "").header("Retry-After", "4").times(1);
    let ended = ask(busy, Action::Off);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert!((6_000..7_000).contains(&ended.took_ms), "{}", ended.took_ms);
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
