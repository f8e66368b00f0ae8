//! Sessions that the host begins, keeps, renews and ends for a guest, against a server in memory
//! that knows who is logged in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, header};
use node_remedy_sandbox::manifest::{Auth, Operation, Protocol};
use node_remedy_sandbox::net::{Fabric, HttpPeer, HttpReply, MemoryNet};
use node_remedy_sandbox::{
    Action, AdminGrant, Budget, Call, CallReport, Direction, Ended, GrantError, Grants, HttpGrant,
    HttpMethod, Manifest, NoNames, Seams, limits,
};
use serde_json::{Value, json};

use crate::fetch::{basic, fetch, http_admin, manifest};
use crate::guest::{DEVICE, HOSTILE, PASSWORD, World, grants};

/// Sessions as Redfish has them.
pub(crate) fn session() -> Value {
    json!({
        "scheme": "login", "credential": "account",
        "request": {
            "method": "POST", "path": "/redfish/v1/SessionService/Sessions",
            "json": {"UserName": "{identity}", "Password": "{secret}"},
        },
        "token": {"header": "X-Auth-Token"},
        "send": {"header": "X-Auth-Token"},
        "logout": {"method": "DELETE", "path": "{location}"},
        "exposes": ["/catalog"],
    })
}

/// Tickets as Proxmox has them, kept beyond the call.
fn ticket() -> Value {
    json!({
        "scheme": "login", "credential": "account",
        "request": {
            "method": "POST", "path": "/redfish/v1/ticket",
            "form": {"username": "{identity}", "password": "{secret}"},
        },
        "token": {"json": "/data/ticket"},
        "csrf": {"from": {"json": "/data/csrf"}, "header": "X-Csrf"},
        "send": {"cookie": "Auth"},
        "keepSeconds": 600,
    })
}

fn auth(scheme: &Value) -> Auth {
    serde_json::from_value(scheme.clone()).unwrap()
}

/// A server that gives out numbered tokens and answers only who shows one that it knows.
#[derive(Default)]
struct Server {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    given: u32,
    known: BTreeSet<String>,
    heard: Vec<String>,
    /// Statuses that the next logins get.
    refusals: Vec<u16>,
    /// Answers to logins without a token in them.
    is_mute: bool,
    /// Tokens are filled up to so many bytes.
    token_bytes: usize,
    /// Forgets each session before it is used.
    is_forgetful: bool,
}

impl Server {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().heard)
    }

    fn answer(&self, request: &Request<Vec<u8>>) -> Response<Vec<u8>> {
        let mut state = self.state.lock().unwrap();
        let body = String::from_utf8_lossy(request.body()).into_owned();
        let line = format!("{} {}", request.method(), request.uri());
        state.heard.push(line.clone());
        let built = Response::builder();
        let path = request.uri().path();
        if path.ends_with("/Sessions") || path.ends_with("/ticket") {
            assert!(body.contains("operator") && body.contains("correct"), "{body}");
            if let Some(status) = state.refusals.pop() {
                return built.status(status).body(b"no".to_vec()).unwrap();
            }
            if state.is_mute {
                return built.status(201).body(b"{}".to_vec()).unwrap();
            }
            state.given += 1;
            let token = format!("{:x<1$}", format!("token-{:04}", state.given), state.token_bytes);
            state.known.insert(token.clone());
            let answer = json!({
                "data": {"ticket": token, "csrf": "csrf-0001"}, "catalog": ["nova", token],
            });
            let location = format!("https://{DEVICE}:623/redfish/v1/Sessions/{}", state.given);
            return built
                .status(201)
                .header("X-Auth-Token", &token)
                .header("Location", location)
                .body(answer.to_string().into_bytes())
                .unwrap();
        }
        if state.is_forgetful {
            state.known.clear();
        }
        let text = |name: &str| Some(request.headers().get(name)?.to_str().unwrap().to_owned());
        let cookie = text("cookie").and_then(|one| Some(one.strip_prefix("Auth=")?.to_owned()));
        let shown = text("x-auth-token").or(cookie);
        if !shown.as_ref().is_some_and(|token| state.known.contains(token)) {
            return built.status(401).body(Vec::new()).unwrap();
        }
        if request.method() == Method::DELETE {
            state.known.remove(&shown.unwrap());
            return built.status(204).body(Vec::new()).unwrap();
        }
        let csrf = text("x-csrf").unwrap_or_default();
        let said = format!("you sent {} {csrf} {body}", shown.unwrap());
        built.header("x-sent", said.clone()).body(said.into_bytes()).unwrap()
    }
}

impl Fabric for Server {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }

    fn http(&self, _: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        let result = Ok(self.answer(request));
        Some(HttpReply { after: Duration::from_millis(20), result })
    }
}

pub(crate) struct Room {
    server: Arc<Server>,
    world: World,
    pub(crate) seams: Seams,
}

impl Room {
    pub(crate) fn new() -> Self {
        let (server, world) = (Arc::<Server>::default(), World::new());
        let net = Arc::new(MemoryNet::new(server.clone()));
        let seams = Seams { net, ..world.seams.clone() };
        Self { server, world, seams }
    }

    pub(crate) fn call(scheme: &Value, parameters: &[(&str, &str)]) -> Call {
        let mut manifest = manifest(Protocol::Https, auth(scheme));
        manifest.asks.endpoints[0].methods.insert(HttpMethod::Delete);
        fetch(grants(&manifest, DEVICE, &http_admin()), parameters)
    }

    async fn ask(&self, scheme: &Value, parameters: &[(&str, &str)]) -> CallReport {
        HOSTILE.call(Self::call(scheme, parameters), &self.seams).await
    }

    fn alive(&self) -> usize {
        self.server.state.lock().unwrap().known.len()
    }
}

fn detail(report: &CallReport) -> &str {
    &report.result.as_ref().unwrap_err().detail
}

#[tokio::test(start_paused = true)]
async fn a_token_may_be_as_long_as_the_limit_and_no_longer() {
    let most = limits::TOKEN_BYTES_MAX;
    for (length, is_taken) in [(most, true), (most + 1, false)] {
        let room = Room::new();
        room.server.state.lock().unwrap().token_bytes = length;
        let report = room.ask(&session(), &[]).await;
        let is_missed = detail(&report).contains("the answer holds no token");
        assert_eq!(is_missed, !is_taken, "{length}: {}", detail(&report));
        assert_eq!(room.server.heard().contains(&ASK.to_owned()), is_taken, "{length}");
    }
}

const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";
const TICKET: &str = "POST /redfish/v1/ticket";
const ASK: &str = "GET /redfish/v1";

#[tokio::test(start_paused = true)]
async fn a_session_is_begun_used_and_ended_and_nobody_sees_its_token() {
    let room = Room::new();
    let report = room.ask(&session(), &[("look-for", "token-0001")]).await;
    assert_eq!(room.server.heard(), [LOGIN, ASK, "DELETE /redfish/v1/Sessions/1"]);
    assert_eq!(room.alive(), 0);
    let seen = "200 x-sent [you sent **********  ] found: false";
    assert_eq!(detail(&report), seen);
    let said = format!("{report:?}");
    let kept: Vec<_> =
        report.exchanges.iter().map(|one| String::from_utf8_lossy(&one.bytes)).collect();
    for secret in [PASSWORD, "token-0001"] {
        assert!(!said.contains(secret) && !kept.concat().contains(secret), "{kept:?}");
    }
    let directions: Vec<_> = report.exchanges.iter().map(|one| one.direction).collect();
    let (sent, received) = (Direction::Sent, Direction::Received);
    assert_eq!(directions, [sent, received, sent, received, Direction::Farewell, received]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_cut_leaves_no_session_behind() {
    let room = Room::new();
    let mut flood = Room::call(&session(), &[]);
    flood.request.plug = "flood-requests".to_owned();
    flood.request.deadline = Duration::from_mins(1);
    let report = HOSTILE.call(flood, &room.seams).await;
    assert_eq!(report.ended, Ended::Cut);
    assert_eq!(room.alive(), 0);

    let mut late = Room::call(&session(), &[]);
    late.request.plug = "flood-requests".to_owned();
    late.request.deadline = Duration::from_millis(90);
    let report = HOSTILE.call(late, &room.seams).await;
    assert_eq!((report.ended, room.alive()), (Ended::Deadline, 0));
}

#[tokio::test(start_paused = true)]
async fn logins_count_among_the_requests_of_the_budget_and_a_logout_does_not() {
    let leave = "DELETE /redfish/v1/Sessions/1";
    let (plain, session, ticket) = (basic(), auth(&session()), auth(&ticket()));
    let rows: [(&Auth, &str, &[&str], u32); 4] = [
        (&plain, "fetch", &[ASK], 1),
        (&session, "fetch", &[LOGIN, ASK, leave], 2),
        (&session, "login-data", &[LOGIN, leave], 1),
        // Its session is forgotten by the server, and begun anew.
        (&ticket, "fetch", &[ASK, TICKET, ASK], 3),
    ];
    for (auth, deed, whole, exact) in rows {
        for http_requests in 0..=exact {
            let room = Room::new();
            let called = |http_requests| {
                let budget = Budget { http_requests, ..Budget::default() };
                let mut manifest = manifest(Protocol::Https, auth.clone());
                manifest.asks.endpoints[0].methods.insert(HttpMethod::Delete);
                let admin = AdminGrant { budget, ..http_admin() };
                let mut call = fetch(grants(&manifest, DEVICE, &admin), &[]);
                call.request.plug = deed.to_owned();
                call
            };
            if *auth == ticket {
                HOSTILE.call(called(2), &room.seams).await;
                room.server.state.lock().unwrap().known.clear();
                room.server.heard();
            }
            let report = HOSTILE.call(called(http_requests), &room.seams).await;
            let heard = room.server.heard();
            let case = format!("{deed} within {http_requests}: {heard:?}, {report:?}");
            if http_requests == exact {
                assert_eq!((report.ended, &*heard), (Ended::Returned, &*strings(whole)), "{case}");
                continue;
            }
            let says = format!("more than {http_requests} HTTP requests");
            assert!(report.ended == Ended::Cut && detail(&report).contains(&says), "{case}");
            let (asked, left): (Vec<_>, Vec<_>) =
                heard.into_iter().partition(|line| !line.starts_with("DELETE"));
            assert_eq!(asked, whole[..usize::try_from(http_requests).unwrap()], "{case}");
            // What was begun is ended, though the budget is spent.
            let is_left = whole.contains(&leave) && http_requests > 0;
            assert_eq!(left, if is_left { vec![leave] } else { Vec::new() }, "{case}");
        }
    }
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_has_no_end_is_kept_for_the_next_call_until_it_is_old() {
    let room = Room::new();
    let write = [("method", "POST"), ("body", "x"), ("look-for", "csrf-0001")];
    let report = room.ask(&ticket(), &write).await;
    assert_eq!(detail(&report), "200 x-sent [you sent ********** ********* x] found: false");
    room.ask(&ticket(), &[]).await;
    assert_eq!(room.server.heard(), [TICKET, "POST /redfish/v1", ASK]);
    tokio::time::sleep(Duration::from_mins(10)).await;
    room.ask(&ticket(), &[]).await;
    assert_eq!(room.server.heard(), [TICKET, ASK]);
    // Somebody else is somebody else.
    let mut other = Room::call(&ticket(), &[]);
    other.credentials.get_mut("account").unwrap().bytes.extend_from_slice(b"2");
    HOSTILE.call(other, &room.seams).await;
    assert_eq!(room.server.heard(), [TICKET, ASK]);
    // Reads carry no CSRF value.
    assert!(detail(&room.ask(&ticket(), &[]).await).contains("[you sent **********  ]"));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_forgotten_is_begun_anew_once() {
    let room = Room::new();
    room.ask(&ticket(), &[]).await;
    room.server.state.lock().unwrap().known.clear();
    let report = room.ask(&ticket(), &[]).await;
    assert!(detail(&report).starts_with("200"), "{report:?}");
    assert_eq!(room.server.heard(), [TICKET, ASK, ASK, TICKET, ASK]);
    assert_eq!(room.alive(), 1);
}

/// Each of its tokens would be looked for in all that follows.
#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let room = Room::new();
    room.server.state.lock().unwrap().is_forgetful = true;
    let mut flood = Room::call(&session(), &[]);
    flood.request.plug = "flood-requests".to_owned();
    flood.request.deadline = Duration::from_mins(1);
    let report = HOSTILE.call(flood, &room.seams).await;
    let heard = room.server.heard();
    let logins = heard.iter().filter(|line| *line == LOGIN).count();
    assert_eq!(u32::try_from(logins), Ok(limits::LOGINS_MAX), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_plugins_to_read_and_anything_else_is_no_session() {
    let room = Room::new();
    for status in [401, 403, 429, 503] {
        room.server.state.lock().unwrap().refusals.push(status);
        let report = room.ask(&session(), &[]).await;
        // Its body is not: it may repeat what was sent.
        assert_eq!(detail(&report), format!("{status}  [] found: false"));
    }
    room.server.state.lock().unwrap().refusals.push(404);
    let report = room.ask(&session(), &[]).await;
    assert_eq!(detail(&report), format!("refused: login: login at device: {LOGIN}: HTTP 404"));
    room.server.state.lock().unwrap().is_mute = true;
    let report = room.ask(&session(), &[]).await;
    assert!(detail(&report).ends_with("the answer holds no token"), "{report:?}");
    assert_eq!(room.server.heard(), [LOGIN; 6], "nothing was asked without a session");
}

#[tokio::test(start_paused = true)]
async fn no_login_leaves_without_the_lease() {
    let room = Room::new();
    room.world.gate.lost.store(true, Ordering::Relaxed);
    assert_eq!(detail(&room.ask(&session(), &[]).await), "refused: not-leader");
    assert!(room.server.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_the_answer_to_a_login_a_plugin_sees_what_its_manifest_names() {
    let room = Room::new();
    let mut call = Room::call(&session(), &[]);
    call.request.plug = "login-data".to_owned();
    let report = HOSTILE.call(call, &room.seams).await;
    assert_eq!(detail(&report), r#"{"/catalog":["nova","**********"]}"#);
    assert_eq!(room.alive(), 0);
}

/// The guest's manifest as if it logged in elsewhere.
fn elsewhere(scheme: &Value) -> Manifest {
    let mut manifest = manifest(Protocol::Https, auth(scheme));
    let mut other = manifest.asks.endpoints[0].clone();
    other.name = "identity".into();
    other.auth = Auth::NONE;
    manifest.asks.endpoints.push(other);
    manifest
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_to_log_in_at_is_the_hosts_alone() {
    let mut scheme = session();
    scheme["at"] = json!("identity");
    let mut manifest = elsewhere(&scheme);
    manifest.asks.endpoints[1].methods.insert(HttpMethod::Delete);
    let room = Room::new();
    let decided = grants(&manifest, DEVICE, &http_admin());
    HOSTILE.call(fetch(decided, &[]), &room.seams).await;
    assert_eq!(room.server.heard(), [LOGIN, ASK, "DELETE /redfish/v1/Sessions/1"]);

    // The same endpoints, and the guest asks at the other one.
    manifest.asks.endpoints[0].name = "api".to_owned();
    manifest.asks.endpoints[1].name = "device".to_owned();
    scheme["at"] = json!("device");
    manifest.asks.endpoints[0].auth = auth(&scheme);
    let decided = grants(&manifest, DEVICE, &http_admin());
    let report = HOSTILE.call(fetch(decided, &[]), &room.seams).await;
    assert_eq!(detail(&report), "refused: denied");
    assert!(room.server.heard().is_empty());
}

#[test]
fn a_login_that_is_not_granted_is_known_before_any_call() {
    let decide = |admin: &AdminGrant| {
        let manifest = manifest(Protocol::Https, auth(&session()));
        let parameters = BTreeMap::from([("address".to_owned(), DEVICE.to_owned())]);
        let decided = Grants::decide(&manifest, &parameters, admin, &NoNames);
        futures::executor::block_on(decided).map_err(|error: GrantError| error.to_string())
    };
    let narrow = HttpGrant {
        methods: [HttpMethod::Get, HttpMethod::Post].into(),
        paths: vec!["/redfish/v1/Systems".parse().unwrap()],
    };
    let refusal = decide(&AdminGrant { http: narrow, ..http_admin() }).unwrap_err();
    let expected = "path /redfish/v1/SessionService/Sessions, which is not granted; add \
                    /redfish/v1/SessionService/Sessions to grants.paths";
    assert!(refusal.contains(expected), "{refusal}");
    assert!(decide(&http_admin()).is_ok());
    // What is shown of its answer may be the token that really counts.
    let refusal = decide(&AdminGrant { exposes: BTreeSet::new(), ..http_admin() }).unwrap_err();
    let expected = "found \"/catalog\" of the answer to a login, which is not granted and may be a token; add \
                    \"/catalog\" to grants.exposes";
    assert!(refusal.contains(expected), "{refusal}");
}

/// A session ends by a request that the host makes after the call, beyond the budget and whatever the action.
#[test]
fn a_logout_that_ends_more_than_its_session_is_asked_and_granted_like_any_request() {
    let with = |method: &str, logout: &Value, more: &[HttpMethod]| {
        let mut scheme = session();
        scheme["request"]["method"] = json!(method);
        scheme["logout"] = logout.clone();
        let mut manifest = manifest(Protocol::Https, auth(&scheme));
        manifest.asks.endpoints[0].methods = [HttpMethod::Get, HttpMethod::Post].into();
        manifest.asks.endpoints[0].methods.extend(more);
        manifest.asks.endpoints[0].paths.push("/machines".parse().unwrap());
        manifest
    };
    let decide = |manifest: &Manifest, methods: &[HttpMethod]| {
        let http = HttpGrant { methods: methods.iter().copied().collect(), ..http_admin().http };
        let admin = AdminGrant { http, ..http_admin() };
        let parameters = BTreeMap::from([("address".to_owned(), DEVICE.to_owned())]);
        let decided = Grants::decide(manifest, &parameters, &admin, &NoNames);
        futures::executor::block_on(decided).map(drop).map_err(|error| error.to_string())
    };
    let (reading, all) = (
        [HttpMethod::Get, HttpMethod::Post],
        [HttpMethod::Get, HttpMethod::Post, HttpMethod::Delete],
    );
    let machine = json!({"method": "DELETE", "path": "/machines/1"});
    let here = json!({"method": "DELETE", "path": "/redfish/v1/SessionService/Sessions"});
    let there = json!({"method": "DELETE", "path": "{location}"});
    for own in [&here, &there] {
        decide(&with("POST", own, &[]), &reading).unwrap();
    }
    // A GET began no session, so that nothing is its own.
    for (method, logout) in [("POST", &machine), ("GET", &here), ("GET", &there)] {
        let refusal = decide(&with(method, logout, &[]), &all).unwrap_err();
        assert!(refusal.contains("method DELETE, which is not granted"), "{method}: {refusal}");
        decide(&with(method, logout, &[HttpMethod::Delete]), &all).unwrap();
        let refusal = decide(&with(method, logout, &[HttpMethod::Delete]), &reading).unwrap_err();
        assert!(refusal.contains("add DELETE to grants.methods"), "{method}: {refusal}");
    }
}

/// The request that a scheme makes of one of the guest's.
async fn signed(scheme: &Value, identity: &str, secret: &str) -> Request<Vec<u8>> {
    struct Keeps(Mutex<Vec<Request<Vec<u8>>>>);
    impl Fabric for Keeps {
        fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
            Vec::new()
        }
        fn http(&self, _: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
            self.0.lock().unwrap().push(request.clone());
            Some(HttpReply { after: Duration::ZERO, result: Ok(Response::new(Vec::new())) })
        }
    }
    let keeps = Arc::new(Keeps(Mutex::default()));
    let seams = Seams { net: Arc::new(MemoryNet::new(keeps.clone())), ..World::new().seams };
    let mut manifest = manifest(Protocol::Https, auth(scheme));
    manifest.asks.credentials[1].operations = [Operation::Write].into();
    let decided = grants(&manifest, DEVICE, &http_admin());
    let mut call = fetch(decided, &[("method", "POST"), ("body", "Action=StopInstances")]);
    let account = call.credentials.get_mut("account").unwrap();
    account.identity = Some(identity.to_owned());
    account.bytes = zeroize::Zeroizing::new(secret.as_bytes().to_vec());
    let report = HOSTILE.call(call, &seams).await;
    assert!(detail(&report).starts_with("200"), "{report:?}");
    keeps.0.lock().unwrap().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_header_is_made_of_user_name_and_secret() {
    let scheme = json!({
        "scheme": "header", "credential": "account", "name": "Authorization",
        "value": "PVEAPIToken={identity}={secret}",
    });
    let request = signed(&scheme, "root@pam!fence", "5ca1ab1e").await;
    let sent = &request.headers()[header::AUTHORIZATION];
    assert_eq!(sent, "PVEAPIToken=root@pam!fence=5ca1ab1e");
    assert!(sent.is_sensitive());
}

#[tokio::test(start_paused = true)]
async fn a_request_is_signed_with_its_body_its_time_and_its_region() {
    let scheme = |region: &str| {
        json!({
            "scheme": "aws-sigv4", "credential": "account", "token": "community",
            "service": "ec2", "region": region,
        })
    };
    let request = signed(&scheme("eu-west-3"), "AKIDEXAMPLE", "secret-key").await;
    let text = |name: &str| request.headers()[name].to_str().unwrap();
    // 2026-09-21T14:13:20Z is when the world begins.
    assert_eq!(text("x-amz-date"), "20260921T141320Z");
    assert!(request.headers().contains_key("x-amz-security-token"));
    let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260921/eu-west-3/ec2/aws4_request, ";
    assert!(text("authorization").starts_with(scope), "{}", text("authorization"));
    let other = signed(&scheme("eu-west-1"), "AKIDEXAMPLE", "secret-key").await;
    assert_ne!(text("authorization"), other.headers()["authorization"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_file_that_names_another_token_server_is_not_used() {
    let scheme = json!({
        "scheme": "google-service-account", "credential": "account", "at": "identity",
        "scope": "https://www.googleapis.com/auth/compute",
    });
    let mut admin = http_admin();
    admin.http.paths.push("/token".parse().unwrap());
    let mut manifest = elsewhere(&scheme);
    manifest.asks.endpoints[1].paths = vec!["/token".parse().unwrap()];
    for (bytes, reason) in [
        ("garbage!", "no key file of a Google service account"),
        (
            "https://elsewhere/token",
            "token_uri is not https://10.9.0.7:623/token, which is granted",
        ),
        ("https://10.9.0.7:623/token", "the key file holds no RSA key"),
    ] {
        let room = Room::new();
        let mut call = fetch(grants(&manifest, DEVICE, &admin), &[]);
        let file = json!({"client_email": "a@b", "private_key": "x", "token_uri": bytes});
        let file = if bytes.contains("://") { file.to_string() } else { bytes.to_owned() };
        let account = call.credentials.get_mut("account").unwrap();
        account.bytes = zeroize::Zeroizing::new(file.into_bytes());
        let report = HOSTILE.call(call, &room.seams).await;
        assert!(detail(&report).contains(reason), "{report:?}");
        assert!(room.server.heard().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn actions_wait_for_nobodys_session() {
    let room = Room::new();
    let mut off = Room::call(&session(), &[("method", "POST")]);
    off.request.action = Action::Off;
    off.request.plug = "fetch-and-act".to_owned();
    let report = HOSTILE.call(off, &room.seams).await;
    assert!(report.result.is_ok(), "{report:?}");
    assert_eq!(room.alive(), 0);
}
