//! What a guest can ask for over HTTP, against a device in memory: what is granted leaves the host
//! as it was written, everything else not at all, and credentials are the host's.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use node_remedy_sandbox::manifest::{Auth, Operation, Protocol};
use node_remedy_sandbox::net::{
    Datagram, Fabric, HttpConnection, HttpPeer, HttpReply, MemoryNet, NetBackend, NetError, Peer,
    Stream,
};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Direction, Effect, Ended, Grants, HttpGrant, HttpMethod,
    Manifest, Seams, SendGate, TokioClock, Trust, Verdict, limits,
};
use tokio::time::Instant;

use crate::guest::{DEVICE, Gate, HOSTILE, PASSWORD, World, admin, call, grants};

const BASIC: &str = "b3BlcmF0b3I6Y29ycmVjdC1ob3JzZQ==";

/// The guest's manifest as if it spoke HTTP.
pub(crate) fn manifest(protocol: Protocol, auth: Auth) -> Manifest {
    let mut manifest = HOSTILE.manifest().clone();
    let device = &mut manifest.asks.endpoints[0];
    device.protocol = protocol;
    device.auth = auth;
    device.methods = [HttpMethod::Get, HttpMethod::Post].into();
    device.paths = vec!["/redfish/v1".parse().unwrap()];
    manifest.asks.credentials[0].operations.insert(Operation::Write);
    manifest
}

/// What an admin would grant it.
pub(crate) fn http_admin() -> AdminGrant {
    let mut admin = admin();
    admin.protocols = [Protocol::Http, Protocol::Https].into();
    admin.operations.insert(Operation::Write);
    admin.http = HttpGrant {
        methods: [HttpMethod::Get, HttpMethod::Post, HttpMethod::Delete].into(),
        paths: vec!["/redfish/v1/Systems".parse().unwrap(), "/".parse().unwrap()],
    };
    admin.exposes = ["/catalog".to_owned()].into();
    admin
}

pub(crate) fn basic() -> Auth {
    Auth::Basic { credential: "account".to_owned() }
}

/// A call of the guest that fetches as these parameters say.
pub(crate) fn fetch(grants: Grants, parameters: &[(&str, &str)]) -> Call {
    let mut call = call(Action::Status, "fetch");
    let own = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    call.request.parameters.extend([("path".to_owned(), "/redfish/v1".to_owned())]);
    call.request.parameters.extend(own);
    call.grants = grants;
    call
}

/// All that the guest asks for, over HTTPS.
fn granted(auth: Auth) -> Grants {
    grants(&manifest(Protocol::Https, auth), DEVICE, &http_admin())
}

fn bearer() -> Auth {
    Auth::Bearer { credential: "account".to_owned() }
}

type Answer = dyn Fn(&Request<Vec<u8>>) -> HttpReply + Send + Sync;

/// A device that answers every request alike, and remembers them.
struct Bmc {
    answer: Box<Answer>,
    heard: Mutex<Vec<(HttpPeer, Request<Vec<u8>>)>>,
}

impl Bmc {
    fn new(answer: impl Fn(&Request<Vec<u8>>) -> HttpReply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), heard: Mutex::default() })
    }

    fn well() -> Arc<Self> {
        Self::new(|_| reply(Response::new(b"{\"PowerState\": \"On\"}".to_vec())))
    }

    fn heard(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

impl Fabric for Bmc {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }

    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        self.heard.lock().unwrap().push((to.clone(), request.clone()));
        Some((self.answer)(request))
    }
}

fn reply(response: Response<Vec<u8>>) -> HttpReply {
    HttpReply { after: Duration::from_millis(20), result: Ok(response) }
}

fn seams(bmc: &Arc<Bmc>) -> Seams {
    Seams { net: Arc::new(MemoryNet::new(bmc.clone())), ..World::new().seams }
}

async fn ask(bmc: &Arc<Bmc>, auth: Auth, parameters: &[(&str, &str)]) -> CallReport {
    HOSTILE.call(fetch(granted(auth), parameters), &seams(bmc)).await
}

fn detail(report: CallReport) -> String {
    report.result.unwrap_err().detail
}

#[tokio::test(start_paused = true)]
async fn what_is_granted_leaves_as_it_was_written() {
    let bmc = Bmc::well();
    let parameters = [
        ("method", "POST"),
        ("path", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset?x=%2e"),
        ("header", "Content-Type=application/json"),
        ("body", "{\"ResetType\": \"ForceOff\"}"),
    ];
    let report = ask(&bmc, Auth::NONE, &parameters).await;
    let (peer, request) = bmc.heard.lock().unwrap().pop().unwrap();
    assert_eq!(peer.address.to_string(), "10.9.0.7:623");
    assert_eq!((peer.host.as_str(), peer.tls), ("10.9.0.7", Some(Trust::SystemAuthorities)));
    assert_eq!(request.uri(), "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset?x=%2e");
    let headers: BTreeMap<_, _> =
        request.headers().iter().map(|(k, v)| (k.as_str(), v.to_str().unwrap())).collect();
    assert_eq!(
        headers,
        BTreeMap::from([("host", "10.9.0.7:623"), ("content-type", "application/json")])
    );
    let exchanged: Vec<_> = report
        .exchanges
        .iter()
        .map(|e| (e.at_ms, e.direction, String::from_utf8_lossy(&e.bytes).into_owned()))
        .collect();
    let sent = "POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset?x=%2e HTTP/1.1\r\n\r\n\
                {\"ResetType\": \"ForceOff\"}";
    let received = "HTTP/1.1 200\r\n\r\n{\"PowerState\": \"On\"}";
    assert_eq!(
        exchanged,
        [(0, Direction::Sent, sent.into()), (20, Direction::Received, received.into())]
    );
    assert_eq!(detail(report), "200  [{\"PowerState\": \"On\"}] found: false");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_granted_never_leaves() {
    let bmc = Bmc::well();
    let (path, own) = (("path", "/redfish/v1"), ("method", "GET"));
    let rows = [
        // Asked for and not granted, granted and not asked for, neither, not a word of HTTP.
        ([("method", "PUT"), path], "method \"PUT\" is not granted"),
        ([("method", "DELETE"), path], "method \"DELETE\" is not granted"),
        ([("method", "TRACE"), path], "method \"TRACE\" is not granted"),
        ([("method", "get"), path], "method \"get\" is not granted"),
        ([own, ("path", "/shell")], "path /shell is not granted"),
        ([own, ("path", "/redfish/v10")], "path /redfish/v10 is not granted"),
        ([own, ("path", "/redfish/v1/../shell")], "expected no segment that is . or .."),
        ([own, ("path", "/redfish/v1/%2e%2e/shell")], "expected no segment that is . or .."),
        ([own, ("path", "http://elsewhere/redfish/v1")], "without scheme and host"),
        ([own, ("path", "//elsewhere/redfish/v1")], "expected no empty segment"),
        ([("header", "Authorization=Basic eDp5"), path], "header authorization is the host's"),
        ([("header", "proxy_authorization=x"), path], "header proxy-authorization is the host's"),
        ([("header", "Cookie=session=1"), path], "header cookie is the host's"),
        ([("header", "Host=elsewhere"), path], "header host is the host's"),
        ([("header", "Transfer-Encoding=chunked"), path], "header transfer-encoding is the host's"),
        ([("header", "X-HTTP-Method-Override=DELETE"), path], "is the host's"),
    ];
    for (parameters, reason) in rows {
        let report = ask(&bmc, basic(), &parameters).await;
        assert!(report.log[0].message.contains(reason), "{parameters:?}: {:?}", report.log);
        assert_eq!(detail(report), "refused: denied", "{parameters:?}");
    }
    let long = "x".repeat(limits::HTTP_REQUEST_BODY_BYTES_MAX + 1);
    let report = ask(&bmc, Auth::NONE, &[path, ("method", "POST"), ("body", &long)]).await;
    assert_eq!(detail(report), "refused: too-large");
    assert_eq!(bmc.heard(), 0, "not a byte left");
}

/// A plan without a grant for what most calls do without is ready; the call that needs it says what is
/// missing.
#[tokio::test(start_paused = true)]
async fn an_optional_endpoint_is_missed_only_by_who_needs_it() {
    let bmc = Bmc::well();
    let mut optional = manifest(Protocol::Https, basic());
    optional.asks.endpoints[0].optional = true;
    let narrow = AdminGrant { cidrs: vec!["10.9.1.0/24".parse().unwrap()], ..http_admin() };
    let nowhere = AdminGrant { cidrs: Vec::new(), ..http_admin() };
    for (address, admin, missing) in [
        (DEVICE, &narrow, "10.9.0.7:623, which no granted range holds; add 10.9.0.7/32"),
        ("bmc.example.org", &nowhere, "add bmc.example.org to grants.hosts"),
        ("bmc.example.org", &narrow, "failed to resolve bmc.example.org"),
    ] {
        let mut call = fetch(grants(&optional, address, admin), &[]);
        assert!(call.grants.endpoints().is_empty());
        let report = HOSTILE.call(call.clone(), &seams(&bmc)).await;
        let said = detail(report);
        assert!(said.starts_with("refused: denied: failed to grant endpoint 'device'"), "{said}");
        assert!(said.contains(missing), "{said}");
        call.request.plug = "honest".to_owned();
        let said = detail(HOSTILE.call(call, &seams(&bmc)).await);
        assert!(said.contains(missing), "{said}");
    }
    let call = fetch(grants(&optional, DEVICE, &http_admin()), &[]);
    assert!(detail(HOSTILE.call(call, &seams(&bmc)).await).starts_with("200"));
    assert_eq!(bmc.heard(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_of_another_protocol_is_no_http_endpoint() {
    let world = World::new();
    assert_eq!(world.failure(Action::Status, "fetch").await, "refused: denied");
    let bmc = Bmc::well();
    let mut datagram = fetch(granted(Auth::NONE), &[]);
    datagram.request.plug = "honest".to_owned();
    let report = HOSTILE.call(datagram, &seams(&bmc)).await;
    assert!(detail(report).contains("denied"));
}

#[tokio::test(start_paused = true)]
async fn the_host_proves_who_asks_and_nobody_sees_how() {
    let rows = [
        (basic(), format!("Basic {BASIC}"), BASIC),
        (bearer(), format!("Bearer {PASSWORD}"), PASSWORD),
    ];
    for (auth, header, token) in rows {
        // A device that echoes what it was sent, in a header and in its body.
        let echo = Bmc::new(|request| {
            let sent = &request.headers()["authorization"];
            let mut response = Response::new([b"you sent ", sent.as_bytes()].concat());
            response.headers_mut().insert("x-sent", sent.clone());
            response.headers_mut().insert("set-cookie", sent.clone());
            response.headers_mut().insert("www-authenticate", sent.clone());
            reply(response)
        });
        let parameters = [("look-for", token)];
        let report = ask(&echo, auth, &parameters).await;
        let sent = echo.heard.lock().unwrap()[0].1.headers()["authorization"].clone();
        assert_eq!(sent, header.as_str());
        assert!(sent.is_sensitive());
        let said = format!("{report:?}");
        assert!(!said.contains(token) && !said.contains(PASSWORD), "{said}");
        for exchange in &report.exchanges {
            let bytes = String::from_utf8_lossy(&exchange.bytes);
            assert!(!bytes.contains(token) && !bytes.contains(PASSWORD), "{bytes}");
        }
        assert_eq!(report.exchanges.len(), 2);
        let seen = detail(report);
        assert!(seen.starts_with("200 x-sent [you sent "), "{seen}");
        assert!(seen.ends_with("*] found: false"), "{seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_cannot_be_used_is_no_reason_to_ask_without() {
    let bmc = Bmc::well();
    let call = fetch(granted(basic()), &[]);

    let mut missing = call.clone();
    missing.credentials.clear();
    let mut unnamed = call.clone();
    unnamed.credentials.get_mut("account").unwrap().identity = Some("a:b".to_owned());
    let mut ungranted = call.clone();
    let mut optional = manifest(Protocol::Https, basic());
    optional.asks.credentials[0].optional = true;
    let mut narrow = http_admin();
    narrow.operations.remove(&Operation::Write);
    ungranted.grants = grants(&optional, DEVICE, &narrow);
    let mut folded = call;
    folded.grants = granted(bearer());
    let bytes = &mut folded.credentials.get_mut("account").unwrap().bytes;
    bytes.extend_from_slice(b"\r\nX-Forged: 1");
    for call in [missing, unnamed, ungranted, folded] {
        assert_eq!(detail(HOSTILE.call(call, &seams(&bmc)).await), "refused: login");
    }
    assert_eq!(bmc.heard(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_handed_over_as_it_is() {
    let bmc = Bmc::new(|_| {
        let response =
            Response::builder().status(307).header("location", "http://169.254.169.254/");
        reply(response.body(Vec::new()).unwrap())
    });
    let report = ask(&bmc, basic(), &[]).await;
    assert_eq!(detail(report), "307 location [] found: false");
    assert_eq!(bmc.heard(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_bounded_and_its_evidence_leaves_room_for_the_next() {
    // What is read no further than its limit, as from a socket, is no evidence.
    for (length, kept, expected) in [
        (limits::HTTP_RESPONSE_BODY_BYTES_MAX, 2, "200  [524288 bytes] found: false"),
        (limits::HTTP_RESPONSE_BODY_BYTES_MAX + 1, 1, "refused: too-large"),
    ] {
        let bmc = Bmc::new(move |_| reply(Response::new(vec![b'x'; length])));
        let report = ask(&bmc, Auth::NONE, &[]).await;
        let long = report.exchanges.iter().map(|one| one.bytes.len()).max();
        assert!(long < Some(limits::EXCHANGE_BODY_BYTES_MAX + 100), "{long:?}");
        assert_eq!((report.exchanges.len(), report.exchanges_dropped), (kept, 0));
        assert_eq!(detail(report), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_kept_as_evidence_up_to_the_limit() {
    let most = limits::EXCHANGE_BODY_BYTES_MAX;
    for (length, expected) in [(most - 1, most - 1), (most, most), (most + 1, most)] {
        let bmc = Bmc::new(move |_| reply(Response::new(vec![b'~'; length])));
        let report = ask(&bmc, Auth::NONE, &[]).await;
        let answer = &report.exchanges.last().unwrap().bytes;
        let kept = answer.len() - answer.iter().position(|byte| *byte == b'~').unwrap();
        assert_eq!(kept, expected, "of {length}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_timeout_at_the_deadline_and_when_cancelled() {
    let slow = || {
        Bmc::new(|_| HttpReply {
            after: Duration::from_hours(1),
            result: Ok(Response::new(Vec::new())),
        })
    };
    let begun = Instant::now();
    let parameters = [("timeout-ms", "700")];
    assert_eq!(detail(ask(&slow(), Auth::NONE, &parameters).await), "refused: timeout");
    assert_eq!(begun.elapsed(), Duration::from_millis(700));

    let begun = Instant::now();
    let parameters = [("timeout-ms", "3600000")];
    let report = ask(&slow(), Auth::NONE, &parameters).await;
    assert_eq!(report.ended, Ended::Deadline);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));

    let begun = Instant::now();
    let call = fetch(granted(Auth::NONE), &parameters);
    let (cancel, bmc) = (call.cancel.clone(), slow());
    let ask = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.ask();
    };
    let seams = seams(&bmc);
    let (report, ()) = tokio::join!(HOSTILE.call(call, &seams), ask);
    assert_eq!(detail(report), "refused: cancelled");
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn no_request_leaves_without_the_lease() {
    let bmc = Bmc::well();
    let gate = Arc::new(Gate::default());
    gate.lost.store(true, Ordering::Relaxed);
    let seams = Seams { gate: gate.clone() as Arc<dyn SendGate>, ..seams(&bmc) };
    let call = fetch(granted(basic()), &[]);
    let report = HOSTILE.call(call.clone(), &seams).await;
    assert!(report.exchanges.is_empty());
    assert_eq!(detail(report), "refused: not-leader");
    assert_eq!(bmc.heard(), 0);

    gate.lost.store(false, Ordering::Relaxed);
    assert!(detail(HOSTILE.call(call, &seams).await).starts_with("200"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_lost_while_connecting_keeps_the_request_back() {
    let bmc = Bmc::well();
    let gate = Arc::new(Gate::default());
    let net = LosesTheLease { inner: MemoryNet::new(bmc.clone()), gate: gate.clone() };
    let seams = Seams {
        net: Arc::new(net),
        clock: Arc::new(TokioClock::starting_at(0)),
        gate: gate.clone(),
        ..World::new().seams
    };
    let call = fetch(granted(basic()), &[]);
    assert_eq!(detail(HOSTILE.call(call, &seams).await), "refused: not-leader");
    assert_eq!(bmc.heard(), 0);
}

/// A network on which connecting takes longer than the lease lasts.
struct LosesTheLease {
    inner: MemoryNet,
    gate: Arc<Gate>,
}

impl NetBackend for LosesTheLease {
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>> {
        self.inner.udp(to)
    }

    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>> {
        self.gate.lost.store(true, Ordering::Relaxed);
        self.inner.http(to)
    }

    fn tcp(&self, to: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>> {
        self.inner.tcp(to)
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted() {
    let bmc = Bmc::well();
    let mut flood = fetch(granted(basic()), &[]);
    flood.request.plug = "flood-requests".to_owned();
    flood.request.deadline = Duration::from_mins(1);
    let report = HOSTILE.call(flood, &seams(&bmc)).await;
    assert_eq!(report.ended, Ended::Cut);
    assert!(detail(report).contains("more than 512 HTTP requests in one call"));
    assert_eq!(bmc.heard(), 512);
}

#[tokio::test(start_paused = true)]
async fn an_effect_over_http_is_an_outcome_once_the_device_answered() {
    let bmc = Bmc::well();
    let mut off = fetch(granted(basic()), &[("method", "POST")]);
    off.request.action = Action::Off;
    off.request.plug = "fetch-and-act".to_owned();
    let report = HOSTILE.call(off.clone(), &seams(&bmc)).await;
    assert!(matches!(report.verdict(), Verdict::Outcome(_)), "{report:?}");

    off.request.parameters.insert("timeout-ms".to_owned(), "1".to_owned());
    let report = HOSTILE.call(off, &seams(&bmc)).await;
    assert_eq!(report.effect, Effect::Begun);
    assert!(matches!(report.verdict(), Verdict::Indeterminate(_)), "{report:?}");
}
