//! Each fault of EC2 or of the way there: the sentence it gives, and how long it takes.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::web::{Overlay, fault_table};
use node_remedy_sdk::{Action, PlugState};

use crate::account::{
    A, Account, B, DEADLINE_MS, RUNNING, STOPPED, ask, described, error, placed, request, response,
};

const READ: &str = "DescribeInstances";
const STOP: &str = "StopInstances";

fn running() -> Account {
    Account::with(RUNNING)
}

const LOOK: &str = "DescribeAutoScalingInstances";
const LEAVE: &str = "EnterStandby";

fn in_service() -> Account {
    Account::in_group(RUNNING, "InService")
}

/// EC2 Auto Scaling refuses an action.
fn refused(action: &str, status: u16, code: &str, says: &str) -> Overlay<Account> {
    in_service().instead(action, status, &error(code, says))
}

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let refuses = |action: &str, status, code: &str, says: &str| {
        running().instead(action, status, &error(code, says))
    };
    let deep = format!("{}{}", "<a>".repeat(20_000), "</a>".repeat(20_000));
    let stateless = described(A, STOPPED, "").replace("instanceState", "state");
    let bomb = "<!DOCTYPE x [<!ENTITY a \"&b;&b;\"><!ENTITY b \"off\">]><x>&a;</x>";
    let rows: Vec<(&str, Overlay<Account>)> = vec![
        ("unreachable, silent", running().silent("")),
        ("silent to the stop", running().silent(STOP)),
        (
            "wrong credentials: key",
            refuses(READ, 401, "AuthFailure", "AWS was not able to validate it"),
        ),
        (
            "wrong credentials: signature",
            refuses(READ, 403, "SignatureDoesNotMatch", "Check your key."),
        ),
        ("wrong credentials: clock", refuses(READ, 400, "RequestExpired", "Request has expired.")),
        (
            "wrong credentials: old token",
            refuses(READ, 400, "ExpiredToken", "The token is expired."),
        ),
        (
            "no rights to read",
            refuses(READ, 403, "UnauthorizedOperation", "You are not authorized."),
        ),
        (
            "no rights to stop",
            refuses(STOP, 403, "UnauthorizedOperation", "You are not authorized."),
        ),
        ("protected", refuses(STOP, 400, "OperationNotPermitted", "Modify its disableApiStop.")),
        ("not this region", refuses(READ, 401, "OptInRequired", "You are not subscribed.")),
        ("wrong plug", refuses(READ, 400, "InvalidInstanceID.NotFound", "It is not there.")),
        ("asked too often", refuses(STOP, 503, "RequestLimitExceeded", "Request limit exceeded.")),
        ("not now", refuses(STOP, 400, "IncorrectInstanceState", "It is not in a state for it.")),
        ("one-time spot", refuses(STOP, 400, "UnsupportedOperation", "A one-time request.")),
        ("spot", refuses(STOP, 400, "IncorrectSpotInstanceRequestState", "It is pending.")),
        ("older service", refuses(STOP, 400, "UnknownParameter", "SkipOsShutdown")),
        ("a word nobody knows", refuses(STOP, 400, "SomethingNew", "It is new.")),
        ("fails inside", refuses(STOP, 500, "InternalError", "An internal error has occurred.")),
        ("overloaded", refuses(READ, 503, "Unavailable", "Overloaded.").header("Retry-After", "3")),
        ("leads elsewhere", running().instead(READ, 301, "")),
        ("malformed: a web page", running().instead(READ, 200, "<html>Please log in</html>")),
        ("truncated", running().instead(READ, 200, &described(A, STOPPED, "")[..300])),
        ("malformed: empty", running().instead(READ, 200, "")),
        ("of another request", running().instead(READ, 200, &response(STOP, ""))),
        (
            "wrong plug: an empty answer",
            running().instead(READ, 200, &response(READ, "<reservationSet/>")),
        ),
        ("no state", running().instead(READ, 200, &stateless)),
        ("entities", running().instead(READ, 200, bomb)),
        ("huge: nested deeply", running().instead(READ, 200, &response(READ, &deep))),
        ("off in a comment", running().instead(READ, 200, "<!--<name>stopped</name>-->")),
        ("stuck", Account { late_ms: u64::MAX / 2, ..running() }.into()),
        ("late", Account { late_ms: 9_000, ..running() }.into()),
        ("no answer to a stop", running().instead(STOP, 200, "")),
        ("group: silent", in_service().silent(LOOK)),
        ("group: silent to the standby", in_service().silent(LEAVE)),
        ("group: wrong key", refused(LOOK, 403, "InvalidClientTokenId", "It is invalid.")),
        ("group: may not look", refused(LOOK, 403, "AccessDenied", "You are not authorized.")),
        ("group: may not", refused(LEAVE, 403, "AccessDenied", "You are not authorized.")),
        ("group: too small", refused(LEAVE, 400, "ValidationError", "It would violate MinSize.")),
        ("group: changes", refused(LEAVE, 500, "ResourceContention", "It has a pending update.")),
        ("group: asked too often", refused(LEAVE, 400, "Throttling", "Rate exceeded.")),
        ("group: fails inside", refused(LEAVE, 500, "InternalFailure", "It has failed.")),
        ("group: a web page", in_service().instead(LOOK, 200, "<html>Please log in</html>")),
        ("group: not its member", in_service().instead(LOOK, 200, &placed(&[(B, "Standby")]))),
        ("group: a new state", in_service().instead(LOOK, 200, &placed(&[(A, "Resting")]))),
        ("group: no answer", in_service().instead(LEAVE, 200, "")),
    ];
    let mut table = FaultTable::new("aws", DEADLINE_MS);
    fault_table(&mut table, (running, "POST / Action=StopInstances"), rows, |account| {
        ask(account, Action::Off, A)
    });
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 10000 ms | Unreachable, again: failed to DescribeInstances: the time allowed for it has passed
        silent to the stop | 10050 ms | Timeout, again: failed to StopInstances: the time allowed for it has passed
        wrong credentials: key | 5 ms | Unauthenticated: DescribeInstances: HTTP 401: AWS was not able to validate it; check access key id, secret key and, for temporary keys, the session token
        wrong credentials: signature | 5 ms | Unauthenticated: DescribeInstances: HTTP 403: Check your key; check the secret key, the parameter region and the controller's clock
        wrong credentials: clock | 5 ms | Unauthenticated: DescribeInstances: HTTP 400: Request has expired; check the controller's clock: it must agree with Amazon's to five minutes
        wrong credentials: old token | 5 ms | Unauthenticated: DescribeInstances: HTTP 400: The token is expired; the session token is over; renew the keys
        no rights to read | 5 ms | Denied: DescribeInstances: HTTP 403: You are not authorized; the key's policies must allow ec2:DescribeInstances, ec2:StopInstances, ec2:StartInstances and ec2:RebootInstances for this instance
        no rights to stop | 55 ms | Denied: StopInstances: HTTP 403: You are not authorized; the key's policies must allow ec2:DescribeInstances, ec2:StopInstances, ec2:StartInstances and ec2:RebootInstances for this instance
        protected | 55 ms | Denied: StopInstances: HTTP 400: Modify its disableApiStop; check whether the instance is protected against stopping
        not this region | 5 ms | Denied: DescribeInstances: HTTP 401: You are not subscribed; check the account: it may not use this region or service
        wrong plug | 4015 ms | NoSuchPlug: DescribeInstances: HTTP 400: It is not there; check instance id, region and account: EC2 knows no such instance there
        asked too often | 3070 ms | Throttled, again: StopInstances: HTTP 503: Request limit exceeded; EC2 is asked too often
        not now | 105 ms | Busy, again: StopInstances: HTTP 400: It is not in a state for it; the instance is in a state in which that cannot be done
        one-time spot | 55 ms | Unsupported: StopInstances: HTTP 400: A one-time request; EC2 cannot do that with this instance: those with an instance store as root, and those of one-time Spot requests, cannot be stopped
        spot | 55 ms | Unsupported, again: StopInstances: HTTP 400: It is pending; its Spot request does not allow that now; only those of persistent requests are stopped
        older service | 55 ms | Unsupported: StopInstances: HTTP 400: SkipOsShutdown; this service does not know the request; where it refuses SkipOsShutdown, set skip-os-shutdown to false
        a word nobody knows | 55 ms | Device: StopInstances: HTTP 400: It is new; EC2 refuses it
        fails inside | 55 ms | Device, again: StopInstances: HTTP 500: An internal error has occurred; EC2 says that it failed
        overloaded | 3010 ms | Busy, again in 3000 ms: DescribeInstances: HTTP 503: Overloaded; EC2 is starting, updating or overloaded
        leads elsewhere | 5 ms | Protocol: DescribeInstances: HTTP 301; it leads elsewhere; check the address
        malformed: a web page | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        truncated | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        malformed: empty | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        of another request | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        wrong plug: an empty answer | 5 ms | NoSuchPlug: DescribeInstances: there is no instance i-0aaaaaaaaaaaaaaa1 in this region and account
        no state | 5 ms | Protocol: DescribeInstances: instance i-0aaaaaaaaaaaaaaa1 has no state; is this EC2?
        entities | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        huge: nested deeply | 5 ms | NoSuchPlug: DescribeInstances: there is no instance i-0aaaaaaaaaaaaaaa1 in this region and account
        off in a comment | 5 ms | Protocol: DescribeInstances: found no DescribeInstancesResponse; is this the address of EC2?
        stuck | 150 ms | Transitioning: StopInstances accepted; state is running (16) still
        late | 150 ms | Transitioning: StopInstances accepted; state is running (16) still
        no answer to a stop | 55 ms | Protocol: StopInstances: found no StopInstancesResponse; is this the address of EC2?
        group: silent | 10050 ms | Unreachable, again: failed to DescribeAutoScalingInstances: the time allowed for it has passed
        group: silent to the standby | 10100 ms | Timeout, again: failed to EnterStandby: the time allowed for it has passed
        group: wrong key | 55 ms | Unauthenticated: DescribeAutoScalingInstances: HTTP 403: It is invalid; check access key id, secret key and, for temporary keys, the session token
        group: may not look | 55 ms | Denied: DescribeAutoScalingInstances: HTTP 403: You are not authorized; unless allow-replace is true, the key's policies must allow autoscaling:DescribeAutoScalingInstances
        group: may not | 105 ms | Denied: EnterStandby: HTTP 403: You are not authorized; unless allow-replace is true, the key's policies must allow autoscaling:EnterStandby
        group: too small | 105 ms | Device, again: EnterStandby: HTTP 400: It would violate MinSize; check whether the group's minimum leaves room for one instance less, or set allow-replace to true
        group: changes | 105 ms | Busy, again: EnterStandby: HTTP 500: It has a pending update; the group is being changed
        group: asked too often | 3120 ms | Throttled, again: EnterStandby: HTTP 400: Rate exceeded; EC2 Auto Scaling is asked too often
        group: fails inside | 105 ms | Device, again: EnterStandby: HTTP 500: It has failed; EC2 Auto Scaling says that it failed
        group: a web page | 55 ms | Protocol: DescribeAutoScalingInstances: found no DescribeAutoScalingInstancesResponse; is this the address of EC2 Auto Scaling?
        group: not its member | 55 ms | Busy, again: DescribeAutoScalingInstances: instance i-0aaaaaaaaaaaaaaa1 is tagged with group workers & more and its state there is not told; if it stays so, set allow-replace to true
        group: a new state | 55 ms | Protocol: DescribeAutoScalingInstances: found state "Resting", which this version does not know
        group: no answer | 105 ms | Protocol: EnterStandby: found no EnterStandbyResponse; is this the address of EC2 Auto Scaling?
        flips back at once | 150 ms | Transitioning: StopInstances accepted; state is running (16) still
        unreachable | 0 ms | Unreachable, again: failed to DescribeInstances: the network says that the device is unreachable
        unreachable, port closed | 0 ms | Unreachable, again: failed to DescribeInstances: the device refuses the port
        connection closed | 0 ms | Other, again: failed to DescribeInstances: the device closed the connection
        wrong certificate | 0 ms | Unauthenticated: failed to DescribeInstances: TLS failed
        wrong credentials at the login | 0 ms | Unauthenticated: failed to DescribeInstances: the login failed
        huge | 0 ms | Protocol: failed to DescribeInstances: the message is larger than the host allows
        the lease is lost | 0 ms | Cancelled, again: failed to DescribeInstances: this replica may no longer send to devices
    "#]].assert_eq(&table);
}

/// What EC2 refused because it was asked too often it did not do, and so it is asked again.
#[test]
fn what_is_asked_too_often_is_asked_again_later() {
    let busy = error("RequestLimitExceeded", "Request limit exceeded.");
    let account = running().instead("StopInstances", 503, &busy).times(2);
    let ended = ask(account, Action::Off, A);
    assert_eq!(ended.result.unwrap().state, PlugState::Off);
    assert!((2_000..3_000).contains(&ended.took_ms), "{}", ended.took_ms);
}

/// A stop that failed inside may have been carried out: it is not sent twice.
#[test]
fn what_may_have_been_done_is_not_sent_again() {
    let account = running().instead("StopInstances", 500, &error("InternalError", "No."));
    let ended = ask(account, Action::Off, A);
    assert!(ended.result.unwrap_err().retryable);
    let stops = ended.trace.iter().filter(|one| format!("{one:?}").contains("POST"));
    assert_eq!(stops.count(), 2, "a read and a stop");
}

/// The service says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_service_is_left_before_the_deadline() {
    let mut status = request(Action::Status, A);
    status.deadline_ms = 5_000;
    let ended = crate::account::ask_for(running().silent(""), &status, |host| host);
    assert_eq!(ended.took_ms, 4_750);
    assert!(ended.result.unwrap_err().retryable);
}
