//! An instance by itself. What is on the wire is tested from the other side, too: by the aws plugin
//! in a played run (`host/simulate`).

use expect_test::expect;

use super::account::unix_ms;
use super::signature::Signed;
use super::{Account, Cause, Change, Config, Faults, Instance, PowerEvent, State};
use crate::ec2::exchange::{Answer, Request};
use crate::ec2::model::Action;

const ID: &str = "i-0123456789abcdef0";
/// 2026-01-01T00:00:00Z.
const T: u64 = 1_767_225_600_000;

fn config() -> Config {
    Config {
        id: ID.into(),
        zone: "eu-west-1a".into(),
        group: None,
        stop_ms: 8_000,
        start_ms: 6_000,
    }
}

fn account() -> Account {
    Account { key_id: "admin".into(), secret: "simulated".into() }
}

fn form(action: Action) -> String {
    let how = if action == Action::Stop { "&Force=true&SkipOsShutdown=true" } else { "" };
    format!("Action={}&InstanceId.1={ID}{how}&Version=2016-11-15", action.name())
}

/// Headers as a signer writes them.
fn signed(form: &str, key: (&str, &str), stamp: &str, region: &str) -> Vec<(String, String)> {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let authorization = |signature: &str| {
        let (id, day) = (key.0, &stamp[..8]);
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{day}/{region}/ec2/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, Signature={signature}"
        )
    };
    let mut headers = vec![
        header("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
        header("host", "ec2.eu-west-1.amazonaws.com"),
        header("x-amz-date", stamp),
        header("authorization", &authorization("0")),
    ];
    let unsigned = headers.clone();
    let request = post(form, &unsigned);
    let signature = Signed::read(&request).unwrap().with(key.1, &request).unwrap();
    headers[3].1 = authorization(&signature);
    headers
}

fn post<'a>(form: &'a str, headers: &'a [(String, String)]) -> Request<'a> {
    Request { method: "POST", target: "/", headers, body: form.as_bytes() }
}

/// Status and body, or why there is none.
fn ask(instance: &mut Instance, at_ms: u64, action: Action) -> String {
    let form = form(action);
    let stamp = format!("20260101T00{:02}{:02}Z", at_ms / 60_000, at_ms / 1_000 % 60);
    let headers = signed(&form, ("admin", "simulated"), &stamp, "eu-west-1");
    said(&instance.request(T + at_ms, &account(), &post(&form, &headers)).answer)
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Response { status, body } => {
            let body = String::from_utf8(body.clone()).unwrap();
            let between = |from: &str, to: &str| {
                let (_, rest) = body.split_once(from)?;
                Some(rest.split_once(to)?.0.to_owned())
            };
            let told = between("<name>", "</name>").or_else(|| between("<Code>", "</Code>"));
            let told = told.or_else(|| between("<return>", "</return>"));
            format!("{status} {}", told.unwrap_or(body))
        }
        Answer::Silence => "silence".into(),
        Answer::Closed => "closed".into(),
        Answer::Unreachable => "unreachable".into(),
    }
}

fn running() -> Instance {
    Instance::running(config())
}

fn event(at_ms: u64, change: Change, cause: Cause) -> PowerEvent {
    PowerEvent { at_ms: T + at_ms, change, cause }
}

#[test]
fn a_stop_takes_its_time_and_the_machine_runs_meanwhile() {
    let mut one = running();
    assert_eq!(ask(&mut one, 1_000, Action::Stop), "200 stopping");
    assert_eq!(one.next_change(), Some(T + 9_000));
    assert_eq!(ask(&mut one, 8_000, Action::Describe), "200 stopping");
    assert_eq!(one.drain_power_events(), []);
    assert_eq!(ask(&mut one, 9_000, Action::Describe), "200 stopped");
    assert_eq!(one.drain_power_events(), [event(9_000, Change::Off, Cause::Command)]);
    assert_eq!(ask(&mut one, 10_000, Action::Start), "200 pending");
    assert_eq!(one.drain_power_events(), []);
    assert_eq!(ask(&mut one, 20_000, Action::Describe), "200 running");
    assert_eq!(one.drain_power_events(), [event(16_000, Change::On, Cause::Command)]);
    assert_eq!(ask(&mut one, 21_000, Action::Reboot), "200 true");
    assert_eq!(one.drain_power_events(), [event(21_000, Change::Reset, Cause::Command)]);
}

/// Brings an instance that runs into another state, by ten seconds from the start.
type Lead = fn(&mut Instance);

/// Which change is allowed in which state.
#[test]
fn a_state_allows_what_it_allows() {
    let states: [(&str, Lead); 6] = [
        ("pending", |one| {
            one.switch_by_hand(T, false);
            one.switch_by_hand(T + 9_000, true);
        }),
        ("running", |_| ()),
        ("shutting-down", |one| one.terminate(T + 9_000)),
        ("terminated", |one| one.terminate(T)),
        ("stopping", |one| one.switch_by_hand(T + 9_000, false)),
        ("stopped", |one| one.switch_by_hand(T, false)),
    ];
    let mut table = String::new();
    for (name, lead) in states {
        table.push_str(name);
        for action in [Action::Stop, Action::Start, Action::Reboot, Action::Terminate] {
            let mut one = running();
            lead(&mut one);
            assert_eq!(ask(&mut one, 10_000, Action::Describe), format!("200 {name}"));
            table.push_str(" | ");
            table.push_str(&ask(&mut one, 10_000, action));
        }
        table.push('\n');
    }
    expect![[r"
        pending | 400 IncorrectInstanceState | 200 pending | 400 IncorrectInstanceState | 200 terminated
        running | 200 stopping | 200 running | 200 true | 200 shutting-down
        shutting-down | 400 IncorrectInstanceState | 400 IncorrectInstanceState | 400 IncorrectInstanceState | 200 shutting-down
        terminated | 400 IncorrectInstanceState | 400 IncorrectInstanceState | 400 IncorrectInstanceState | 200 terminated
        stopping | 200 stopping | 400 IncorrectInstanceState | 400 IncorrectInstanceState | 200 shutting-down
        stopped | 200 stopped | 200 pending | 400 IncorrectInstanceState | 200 terminated
    "]]
    .assert_eq(&table);
}

#[test]
fn what_is_terminated_never_runs_again_and_is_forgotten() {
    let mut one = running();
    one.terminate(T);
    assert_eq!(one.state(), State::ShuttingDown);
    one.tick(T + 5_000);
    assert_eq!(one.drain_power_events(), [event(5_000, Change::Off, Cause::Cloud)]);
    one.switch_by_hand(T + 6_000, true);
    assert_eq!((one.state(), one.next_change()), (State::Terminated, None));
    let late = T + 3_700_000;
    let form = form(Action::Describe);
    let headers = signed(&form, ("admin", "simulated"), "20260101T010140Z", "eu-west-1");
    let reply = one.request(late, &account(), &post(&form, &headers));
    assert_eq!(said(&reply.answer), "400 InvalidInstanceID.NotFound");
}

/// Each fault: what is told to a read, a stop and a read much later, and whether it was stopped.
#[test]
fn each_fault_bends_what_it_says() {
    let mut table = String::new();
    for name in Faults::names() {
        let value = match name {
            "slow_stop" | "slow_start" | "stale" => 50_000,
            "truncate" => 40,
            _ => 1,
        };
        let mut one = running();
        one.set_fault(T, name, value).unwrap();
        let asked = [
            ask(&mut one, 1_000, Action::Describe),
            ask(&mut one, 2_000, Action::Stop),
            ask(&mut one, 30_000, Action::Describe),
        ];
        let asked = asked.map(|said| said.replace('\n', " ")).join(" | ");
        table = format!("{table}{name}: {asked} | {}\n", one.state().name());
    }
    expect![[r#"
        silent: silence | silence | silence | running
        unreachable: unreachable | unreachable | unreachable | running
        delay: 200 running | 200 stopping | 200 stopped | stopped
        throttled: 503 RequestLimitExceeded | 503 RequestLimitExceeded | 503 RequestLimitExceeded | running
        unavailable: 503 Unavailable | 503 Unavailable | 503 Unavailable | running
        denied: 200 running | 403 UnauthorizedOperation | 200 running | running
        blind: 403 UnauthorizedOperation | 200 stopping | 403 UnauthorizedOperation | stopped
        unknown: 400 InvalidInstanceID.NotFound | 400 InvalidInstanceID.NotFound | 400 InvalidInstanceID.NotFound | running
        no_capacity: 200 running | 200 stopping | 200 stopped | stopped
        forgets: 200 running | 200 stopping | 200 running | running
        stuck: 200 running | 200 stopping | 200 stopping | stopping
        slow_stop: 200 running | 200 stopping | 200 stopping | stopping
        slow_start: 200 running | 200 stopping | 200 stopped | stopped
        stale: 200 running | 200 stopping | 200 running | stopped
        reply_lost: 200 running | closed | 200 stopped | stopped
        fails_inside: 200 running | 500 InternalError | 200 stopped | stopped
        garbled: 200 <html><body>Please log in</body></html> | 200 <html><body>Please log in</body></html> | 200 <html><body>Please log in</body></html> | stopped
        hibernated: 200 stopped | 200 stopped | 200 stopped | running
        truncate: 200 <?xml version="1.0" encoding="UTF-8"?> < | 200 <?xml version="1.0" encoding="UTF-8"?> < | 200 <?xml version="1.0" encoding="UTF-8"?> < | stopped
        none: 200 running | 200 stopping | 200 stopped | stopped
    "#]].assert_eq(&table);
}

/// Its memory is kept, so its power never went, and a start lets it go on where it was.
#[test]
fn one_that_hibernates_goes_on_when_it_is_started() {
    let mut one = running();
    one.set_fault(T, "hibernated", 1).unwrap();
    assert_eq!(ask(&mut one, 1_000, Action::Start), "200 running");
    assert_eq!(ask(&mut one, 2_000, Action::Describe), "200 running");
    assert_eq!(one.drain_power_events(), []);
}

#[test]
fn one_that_is_stuck_goes_on_when_it_no_longer_is() {
    let mut one = running();
    one.faults.stuck = true;
    assert_eq!(ask(&mut one, 0, Action::Stop), "200 stopping");
    one.tick(T + 500_000);
    assert_eq!((one.state(), one.next_change()), (State::Stopping, None));
    one.set_fault(T + 600_000, "stuck", 0).unwrap();
    one.tick(T + 600_001);
    assert_eq!(one.drain_power_events(), [event(600_000, Change::Off, Cause::Command)]);
}

#[test]
fn who_may_not_ask_is_told_why() {
    let form = form(Action::Describe);
    let now = "20260101T000000Z";
    let refused = |headers: &[(String, String)]| {
        said(&running().request(T, &account(), &post(&form, headers)).answer)
    };
    let with = |key, stamp, region| refused(&signed(&form, key, stamp, region));
    let key = ("admin", "simulated");
    assert_eq!(with(key, now, "eu-west-1"), "200 running");
    assert_eq!(with(("fence", "simulated"), now, "eu-west-1"), "401 AuthFailure");
    assert_eq!(with(("admin", "guessed"), now, "eu-west-1"), "403 SignatureDoesNotMatch");
    assert_eq!(with(key, "20260101T000501Z", "eu-west-1"), "400 RequestExpired");
    assert_eq!(with(key, now, "us-east-1"), "401 AuthFailure");
    assert_eq!(
        refused(&signed(&form, key, now, "eu-west-1")[..3]),
        "400 MissingAuthenticationToken"
    );
    // What was signed is another request.
    let other = signed(&form.replace("Describe", "Stop"), key, now, "eu-west-1");
    assert_eq!(refused(&other), "403 SignatureDoesNotMatch");
}

#[test]
fn what_is_no_request_of_a_fence_method_is_refused() {
    let refused = |form: &str| {
        let headers = signed(form, ("admin", "simulated"), "20260101T000000Z", "eu-west-1");
        said(&running().request(T, &account(), &post(form, &headers)).answer)
    };
    for (form, says) in [
        ("", "400 InvalidAction"),
        ("Action=HibernateInstances&InstanceId.1=i-0123456789abcdef0", "400 InvalidAction"),
        ("Action=DescribeInstances", "400 MissingParameter"),
        ("Action=DescribeInstances&InstanceId.1=i-0", "400 InvalidInstanceID.NotFound"),
        ("Action=StopInstances&InstanceId.1=i-0123456789abcdef0", "400 UnsupportedOperation"),
    ] {
        assert_eq!(refused(form), says, "{form:?}");
    }
}

/// The example of "Create a signed AWS API request" (IAM User Guide).
#[test]
fn a_signature_is_as_published() {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = [
        header("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
        header("host", "iam.amazonaws.com"),
        header("x-amz-date", "20150830T123600Z"),
        header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
    ];
    let target = "/?Action=ListUsers&Version=2010-05-08";
    let request = Request { method: "GET", target, headers: &headers, body: b"" };
    let signed = Signed::read(&request).unwrap();
    assert!(signed.is_by("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", &request));
    assert!(!signed.is_by("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEZ", &request));
    assert_eq!(unix_ms(signed.stamp), Some(1_440_938_160_000));
    assert_eq!(unix_ms("19700101T000000Z"), Some(0));
    assert_eq!(unix_ms("20240229T235959Z"), Some(1_709_251_199_000));
    assert_eq!(unix_ms("today"), None);
}
