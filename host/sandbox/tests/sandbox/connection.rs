//! What a guest can do over a stream, against a device in memory: only the granted address, every
//! write through the gate, everything bounded, and no secret seen.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use node_remedy_sandbox::manifest::{Auth, Operation, Protocol};
use node_remedy_sandbox::net::{Conversation, Fabric, MemoryNet, Peer, StreamEvent};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Direction, Effect, Ended, Grants, Manifest, Seams, Trust,
    Verdict, limits,
};
use tokio::time::Instant;

use crate::guest::{DEVICE, Gate, HOSTILE, PASSWORD, World, admin, call, grants};

/// The guest's manifest as if it spoke over streams.
pub(crate) fn manifest(protocol: Protocol) -> Manifest {
    let mut manifest = HOSTILE.manifest().clone();
    let device = &mut manifest.asks.endpoints[0];
    (device.protocol, device.auth) = (protocol, Auth::NONE);
    manifest.asks.credentials[0].operations.insert(Operation::Write);
    manifest
}

/// What an admin would grant it.
pub(crate) fn stream_admin() -> AdminGrant {
    let mut admin = admin();
    admin.protocols = [Protocol::Tcp, Protocol::Tls].into();
    admin.operations.insert(Operation::Write);
    admin
}

/// A call of the guest that converses as the script says.
pub(crate) fn converse(grants: Grants, script: &str) -> Call {
    let mut call = call(Action::Status, "converse");
    call.request.parameters.insert("script".to_owned(), script.to_owned());
    call.grants = grants;
    call
}

fn granted() -> Grants {
    grants(&manifest(Protocol::Tcp), DEVICE, &stream_admin())
}

type Answer = dyn Fn(&[u8]) -> Vec<(Duration, StreamEvent)> + Send + Sync;

/// A device that remembers what it heard, and on how many streams.
#[derive(Clone)]
struct Console {
    answer: Arc<Answer>,
    peers: Arc<Mutex<Vec<Peer>>>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Console {
    fn new(answer: impl Fn(&[u8]) -> Vec<(Duration, StreamEvent)> + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), peers: Arc::default(), heard: Arc::default() }
    }

    /// Says after 5 ms what it heard.
    fn echo() -> Self {
        Self::new(|data| vec![said(5, data)])
    }

    /// Says what it heard in these pieces, so long after each other.
    fn in_pieces(ms: u64, length: usize) -> Self {
        Self::new(move |data| data.chunks(length).zip(1..).map(|(c, n)| said(n * ms, c)).collect())
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn seams(&self) -> Seams {
        Seams { net: Arc::new(MemoryNet::new(Arc::new(self.clone()))), ..World::new().seams }
    }

    async fn run(&self, script: &str) -> CallReport {
        HOSTILE.call(converse(granted(), script), &self.seams()).await
    }

    async fn says(&self, script: &str) -> String {
        self.run(script).await.result.unwrap_err().detail
    }
}

impl Fabric for Console {
    fn datagram(&self, _: std::net::SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }

    fn stream(&self, to: &Peer) -> Option<Box<dyn Conversation>> {
        self.peers.lock().unwrap().push(to.clone());
        Some(Box::new(self.clone()))
    }
}

impl Conversation for Console {
    fn hear(&mut self, data: &[u8]) -> Vec<(Duration, StreamEvent)> {
        if data.is_empty() {
            return Vec::new();
        }
        self.heard.lock().unwrap().push(String::from_utf8_lossy(data).into_owned());
        (self.answer)(data)
    }
}

fn said(ms: u64, bytes: &[u8]) -> (Duration, StreamEvent) {
    (Duration::from_millis(ms), StreamEvent::Bytes(bytes.to_vec()))
}

#[tokio::test(start_paused = true)]
async fn bytes_go_to_the_granted_address_and_come_back() {
    let console = Console::echo();
    let report = console.run("open;write=hello;read=3,1000;read=9,1000;read=9,50;close").await;
    let seen: Vec<_> = report
        .exchanges
        .iter()
        .map(|e| (e.at_ms, e.direction, String::from_utf8_lossy(&e.bytes).into_owned()))
        .collect();
    let hello = || "hello".to_owned();
    assert_eq!(seen, [(0, Direction::Sent, hello()), (5, Direction::Received, hello())]);
    assert_eq!(report.result.unwrap_err().detail, "open | ok | [hel] | [lo] | timeout | closed");
    let peer = Peer { address: DEVICE.parse().unwrap(), host: "10.9.0.7".into(), tls: None };
    assert_eq!(*console.peers.lock().unwrap(), [peer]);

    let tls = grants(&manifest(Protocol::Tls), DEVICE, &stream_admin());
    HOSTILE.call(converse(tls, "open"), &console.seams()).await;
    let peer = console.peers.lock().unwrap().pop().unwrap();
    assert_eq!(peer.tls, Some(Trust::SystemAuthorities));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_stream_or_not_granted_is_not_opened() {
    let console = Console::echo();
    assert_eq!(console.says("open=elsewhere").await, "denied");
    let udp = converse(grants(HOSTILE.manifest(), DEVICE, &admin()), "open");
    let report = HOSTILE.call(udp, &console.seams()).await;
    assert_eq!(report.result.unwrap_err().detail, "denied");
    assert!(console.peers.lock().unwrap().is_empty());

    let mut datagram = converse(granted(), "");
    datagram.request.plug = "honest".to_owned();
    let report = HOSTILE.call(datagram, &console.seams()).await;
    assert!(report.result.unwrap_err().detail.contains("denied"));

    let nobody = World::new();
    let report = HOSTILE.call(converse(granted(), "open"), &nobody.seams).await;
    assert_eq!(report.result.unwrap_err().detail, "refused");
}

#[tokio::test(start_paused = true)]
async fn the_host_puts_a_secret_in_and_nobody_sees_it() {
    let whole = format!("login operator {PASSWORD}\n");
    // An echo in one piece, byte by byte, and with a pause after each: read whole and byte by byte. After a long
    // pause a guest has seen the piece before it.
    let consoles = [
        (Console::echo(), "***"),
        (Console::in_pieces(1, 1), "***"),
        (Console::in_pieces(20, 7), "***"),
        (Console::in_pieces(500, 9), "*"),
    ];
    for (console, hidden) in consoles {
        for read in ["read-all", "read-bytes"] {
            let mut call = converse(granted(), &format!("open;write=login operator $\n;{read}"));
            call.request.deadline = Duration::from_mins(1);
            let report = HOSTILE.call(call, &console.seams()).await;
            assert_eq!(console.heard().pop(), Some(whole.clone()));
            let said = format!("{report:?}");
            assert!(!said.contains(PASSWORD) && !said.contains("horse"), "{said}");
            let came: Vec<_> = report.exchanges.iter().flat_map(|e| e.bytes.clone()).collect();
            let came = String::from_utf8_lossy(&came).into_owned();
            assert!(came.contains("***") && !came.contains("horse"), "{came}");
            let detail = report.result.unwrap_err().detail;
            assert!(detail.contains("open | ok | ") && detail.contains(hidden), "{detail}");
        }
    }
}

/// A device that echoes is asked what a guess looks like beside the secret: by when it comes, and by what comes.
#[tokio::test(start_paused = true)]
async fn an_echoed_guess_is_answered_alike_however_far_it_is_right() {
    let answered = async |guess: &str| {
        let script = format!("open;write=login $\n;read=99,1000;write={guess};read=99,1000");
        let report = Console::echo().run(&script).await;
        let came = report.exchanges.iter().filter(|e| e.direction == Direction::Received);
        let came: Vec<_> = came.map(|e| (e.at_ms, e.bytes.len())).collect();
        (came, report.result.unwrap_err().detail.replace(guess, "GUESS"))
    };
    let alike = answered("wrong-guess-").await;
    assert_eq!(alike.0, [(105, 20), (210, 12)]);
    assert!(alike.1.ends_with("| ok | [GUESS]"), "{}", alike.1);
    for right in [1, 4, 8, PASSWORD.len() - 1] {
        let guess = format!("{:z<12}", PASSWORD.get(..right).unwrap());
        assert_eq!(answered(&guess).await, alike, "{guess}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_goes_only_where_writing_it_is_granted() {
    let console = Console::echo();
    let mut manifest = manifest(Protocol::Tcp);
    manifest.asks.credentials[0].operations.remove(&Operation::Write);
    let unasked = converse(grants(&manifest, DEVICE, &stream_admin()), "open;write=pw $;write=x");
    let report = HOSTILE.call(unasked, &console.seams()).await;
    assert!(report.log[0].message.contains("NotGranted"), "{:?}", report.log);
    assert_eq!(report.result.unwrap_err().detail, "open | denied | ok");
    assert_eq!(console.heard(), ["x"], "half a message is none");

    let often = vec!["write=$"; 65].join(";");
    let detail = console.says(&format!("open;{often}")).await;
    assert!(detail.ends_with("ok | denied"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_opened_or_written_without_the_lease() {
    let gate = Arc::new(Gate::default());
    let (shutting, console) = (gate.clone(), Console::echo());
    let answer = console.answer.clone();
    // The lease is lost while the device hears the first word.
    let console = Console::new(move |data| {
        shutting.lost.store(true, Ordering::Relaxed);
        answer(data)
    });
    let seams = Seams { gate: gate.clone(), ..console.seams() };
    let script = "open;farewell=bye;write=one;read=9,1000;write=two;open";
    let report = HOSTILE.call(converse(granted(), script), &seams).await;
    let detail = report.result.unwrap_err().detail;
    assert_eq!(detail, "open | set | ok | [one] | not-leader | not-leader");
    assert_eq!(console.heard(), ["one"], "nor is a farewell sent");
    assert_eq!(console.peers.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_closes_is_told_from_one_that_breaks_off() {
    let after = |end: StreamEvent| {
        Console::new(move |data| vec![said(5, data), (Duration::from_millis(9), end.clone())])
    };
    let script = "open;write=a;read=9,1000;read=9,1000;read=9,1000;sleep=10;write=b";
    assert_eq!(after(StreamEvent::End).says(script).await, "open | ok | [a] | [] | [] | true | ok");
    assert_eq!(
        after(StreamEvent::Broken).says(script).await,
        "open | ok | [a] | closed | closed | true | closed"
    );
    assert_eq!(Console::echo().says("open;read=0,1000").await, "open | other");
}

#[tokio::test(start_paused = true)]
async fn a_flood_is_cut_both_ways() {
    let endless = Console::new(|_| (0..2_000).map(|_| said(0, &[b'x'; 9_000])).collect());
    for (script, why) in [
        ("open;flood-writes", "1048576 bytes written"),
        ("open;write=go;flood-reads", "4194304 bytes read"),
    ] {
        let report = endless.run(script).await;
        assert_eq!(report.ended, Ended::Cut, "{script}");
        assert!(report.exchanges.iter().all(|one| one.bytes.len() <= 4_096));
        assert!(report.exchanges.iter().map(|one| one.bytes.len()).sum::<usize>() <= 64 << 10);
        let detail = report.result.unwrap_err().detail;
        assert!(detail.contains(why), "{detail}");
    }
    let long = limits::STREAM_WRITE_BYTES_MAX;
    let console = Console::echo();
    let detail = console.says(&format!("open;long={long};long={};read=99999,50", long + 1)).await;
    assert_eq!(detail, "open | ok | too-large | 16384 bytes");
    assert_eq!(console.says("open;open;open").await, "open | open | denied");
    let often = vec!["open;close"; 17].join(";");
    let report = console.run(&often).await;
    assert_eq!(report.ended, Ended::Cut);
    assert!(report.result.unwrap_err().detail.contains("16 sockets"));
}

#[tokio::test(start_paused = true)]
async fn one_read_gives_no_more_than_the_most() {
    let most = limits::STREAM_READ_BYTES_MAX;
    for (length, reads) in [
        (most - 1, "16383 bytes | timeout"),
        (most, "16384 bytes | timeout"),
        (most + 1, "16384 bytes | [x]"),
    ] {
        let script = format!("open;long={length};read=99999,50;read=99999,50");
        assert_eq!(Console::echo().says(&script).await, format!("open | ok | {reads}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_left_open_is_closed_by_the_host() {
    for (script, heard) in [
        ("open;write=login;farewell=logout;trap", &["login", "logout"][..]),
        ("open;write=login;farewell=logout;close", &["login", "logout"]),
        ("open;write=login;farewell=logout;farewell=;trap", &["login"]),
        ("open;write=login;farewell=logout;flood-writes", &["login", "logout"]),
    ] {
        let console = Console::new(|_| Vec::new());
        let report = console.run(script).await;
        let mut told = console.heard();
        told.retain(|word| !word.starts_with("xxx"));
        assert_eq!(told, heard, "{script}");
        let farewells = report.exchanges.iter().filter(|e| e.direction == Direction::Farewell);
        assert_eq!(farewells.count(), heard.len() - 1, "{script}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_timeout_at_the_deadline_and_when_cancelled() {
    let silent = Console::new(|_| Vec::new());
    let begun = Instant::now();
    assert_eq!(silent.says("open;read=9,700").await, "open | timeout");
    assert_eq!(begun.elapsed(), Duration::from_millis(700));

    let begun = Instant::now();
    let report = silent.run("open;farewell=bye;read=9,3600000").await;
    assert_eq!((report.ended, begun.elapsed()), (Ended::Deadline, Duration::from_secs(10)));
    assert_eq!(silent.heard(), ["bye"]);

    let begun = Instant::now();
    let call = converse(granted(), "open;read=9,3600000;write=bye;read=9,100");
    let (cancel, seams) = (call.cancel.clone(), silent.seams());
    let ask = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.ask();
    };
    let (report, ()) = tokio::join!(HOSTILE.call(call, &seams), ask);
    let detail = report.result.unwrap_err().detail;
    assert_eq!(detail, "open | cancelled | ok | timeout", "a session can still be closed");
    assert_eq!(begun.elapsed(), Duration::from_millis(3_100));
}

#[tokio::test(start_paused = true)]
async fn what_ends_after_the_effect_is_indeterminate() {
    let mut off = converse(granted(), "open;begin;write=off;trap");
    off.request.action = Action::Off;
    let report = HOSTILE.call(off, &Console::echo().seams()).await;
    assert_eq!(report.effect, Effect::Begun);
    assert!(matches!(report.verdict(), Verdict::Indeterminate(_)), "{report:?}");
}
