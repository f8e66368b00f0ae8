//! The first real plugin, byte for byte as it ships, against the model of a BMC in virtual time.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use node_remedy_devices::bmc::{Bmc, Config, Privilege, User};
use node_remedy_sandbox::net::{Fabric, MemoryNet, Sockets};
use node_remedy_sandbox::{
    Action, Call, CallReport, Cancel, Direction, Effect, ExchangeRecord, Executor, OpenGate,
    PlugState, Plugin, Request, Seams, Secret, SeededEntropy, SystemEntropy, TokioClock, Verdict,
};
use sha2::Sha256;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::guest::{DEVICE, Gate, PASSWORD, SANDBOX, admin, grants};

static WASM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "node-remedy-plugin-ipmi", "--lib"])
        .args(["--profile", "plugin", "--target", "wasm32-wasip2"])
        .current_dir(workspace)
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "failed to build the ipmi plugin");
    std::fs::read(target.join("wasm32-wasip2/plugin/node_remedy_plugin_ipmi.wasm")).unwrap()
});

static IPMI: LazyLock<Arc<Plugin>> = LazyLock::new(|| SANDBOX.load(&WASM).unwrap());

/// The one BMC of a network, and when its network came up.
struct Rack {
    bmc: Mutex<Bmc>,
    since: Instant,
}

impl Rack {
    fn new() -> Arc<Self> {
        Arc::new(Self { bmc: Mutex::new(Bmc::new(config())), since: Instant::now() })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap()
    }
}

impl Fabric for Rack {
    fn datagram(&self, _: SocketAddr, port: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let mut bmc = self.bmc.lock().unwrap();
        let replies = bmc.datagram(self.now_ms(), port.into(), data);
        replies.into_iter().map(|r| (Duration::from_millis(r.delay_ms), r.bytes)).collect()
    }
}

fn config() -> Config {
    let fence = User {
        name: "fence".to_owned(),
        password: PASSWORD.as_bytes().to_vec(),
        privilege: Privilege::Administrator,
    };
    Config { users: vec![fence], ..Config::default() }
}

fn seams(rack: &Arc<Rack>) -> Seams {
    Seams {
        net: Arc::new(MemoryNet::new(rack.clone())),
        clock: Arc::new(TokioClock::starting_at(1_790_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(7)),
        gate: Arc::new(Gate::default()),
        sessions: Arc::default(),
    }
}

fn call(action: Action, until: Option<PlugState>, password: &str) -> Call {
    Call {
        request: Request {
            action,
            plug: String::new(),
            parameters: BTreeMap::from([("address".to_owned(), DEVICE.to_owned())]),
            operation_id: "op-1".to_owned(),
            attempt: 1,
            deadline: Duration::from_mins(1),
            until,
            resume: None,
            system_uuid: None,
        },
        grants: grants(IPMI.manifest(), DEVICE, &admin()),
        credentials: BTreeMap::from([(
            "account".to_owned(),
            Secret {
                identity: Some("fence".to_owned()),
                bytes: Zeroizing::new(password.as_bytes().to_vec()),
            },
        )]),
        cancel: Cancel::new(),
        exchange_record: ExchangeRecord::On,
    }
}

async fn run(rack: &Arc<Rack>, action: Action, until: Option<PlugState>) -> CallReport {
    let report = IPMI.call(call(action, until, PASSWORD), &seams(rack)).await;
    assert_eq!(rack.bmc.lock().unwrap().open_sessions(), 0, "every session is closed");
    report
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_powered_off_verified_off_and_powered_on() {
    let rack = Rack::new();
    let state = |report: &CallReport| match report.verdict() {
        Verdict::Outcome(outcome) => outcome.state,
        Verdict::FailedBeforeEffect(failure) | Verdict::Indeterminate(failure) => {
            panic!("{failure:?}")
        }
    };
    assert_eq!(state(&run(&rack, Action::Status, None).await), PlugState::On);

    let off = run(&rack, Action::Off, None).await;
    assert!(matches!(off.verdict(), Verdict::Outcome(_)), "{off:?}");
    assert_eq!(off.effect, Effect::Begun);
    let proof = run(&rack, Action::Status, Some(PlugState::Off)).await;
    assert_eq!(state(&proof), PlugState::Off);
    assert_eq!(proof.effect, Effect::NotBegun);
    assert!(!rack.bmc.lock().unwrap().powered());

    assert_eq!(run(&rack, Action::On, None).await.effect, Effect::Begun);
    assert_eq!(state(&run(&rack, Action::Status, Some(PlugState::On)).await), PlugState::On);
    assert!(rack.bmc.lock().unwrap().powered());
}

#[tokio::test(start_paused = true)]
async fn the_same_call_in_virtual_time_makes_the_same_report() {
    let first = run(&Rack::new(), Action::Off, None).await;
    let second = run(&Rack::new(), Action::Off, None).await;
    assert!(!first.exchanges.is_empty());
    assert_eq!(first, second);
}

/// Get Chassis Status as the console asks it and as the BMC answers, up to their numbers: addresses,
/// network function, command, completion code, power.
const ASKED_POWER: [(usize, u8); 3] = [(1, 0x00 << 2), (3, 0x81), (5, 0x01)];
const READ_ON: [(usize, u8); 4] = [(1, 0x01 << 2), (5, 0x01), (6, 0x00), (7, 0x01)];

#[tokio::test(start_paused = true)]
async fn what_was_said_inside_a_session_is_kept_and_neither_password_nor_keys() {
    let report = run(&Rack::new(), Action::Status, None).await;
    let said = |direction, wanted: &[(usize, u8)]| {
        let mut of_way = report.exchanges.iter().filter(|one| one.direction == direction);
        of_way.any(|one| {
            one.plaintext
                .as_ref()
                .is_some_and(|plain| wanted.iter().all(|&(at, byte)| plain.get(at) == Some(&byte)))
        })
    };
    assert!(said(Direction::Sent, &ASKED_POWER), "{report:#?}");
    assert!(said(Direction::Received, &READ_ON), "{report:#?}");

    let (sik, k1, k2) = keys(&report);
    let secrets = [("password", PASSWORD.as_bytes()), ("SIK", &sik), ("K1", &k1), ("K2", &k2)];
    for exchange in &report.exchanges {
        for bytes in std::iter::once(&exchange.bytes).chain(&exchange.plaintext) {
            for (name, secret) in secrets {
                let is_told =
                    bytes.windows(16.min(secret.len())).any(|some| secret.starts_with(some));
                assert!(!is_told, "the {name} stands in {exchange:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_keeps_no_exchange_does_the_same_without_one() {
    let kept = run(&Rack::new(), Action::Off, None).await;
    let call = Call { exchange_record: ExchangeRecord::Off, ..call(Action::Off, None, PASSWORD) };
    let report = IPMI.call(call, &seams(&Rack::new())).await;
    assert_eq!((report.exchanges.as_slice(), report.exchanges_dropped), (&[][..], 0));
    assert!(!kept.exchanges.is_empty());
    assert_eq!(report, CallReport { exchanges: Vec::new(), ..kept });
}

/// The keys of a session that followed RAKP (IPMI 2.0, 13.31 and 13.32), by someone who knows the
/// password. The BMC's offer makes it cipher suite 17: HMAC-SHA256.
fn keys(report: &CallReport) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    const BODY: usize = 16;
    let body = |kind: u8| {
        let found = report.exchanges.iter().find(|one| one.bytes.get(5) == Some(&kind));
        &found.unwrap().bytes[BODY..]
    };
    let hmac = |key: &[u8], parts: &[&[u8]]| {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
        let mac = parts.iter().fold(mac, Mac::chain_update);
        mac.finalize().into_bytes().to_vec()
    };
    let (rakp_1, rakp_2) = (body(0x12), body(0x13));
    let (console_random, bmc_random) = (&rakp_1[8..24], &rakp_2[8..24]);
    let (role, name_length) = (&rakp_1[24..25], &rakp_1[27..28]);
    let name = &rakp_1[28..28 + usize::from(name_length[0])];
    let parts = [console_random, bmc_random, role, name_length, name];
    let sik = hmac(PASSWORD.as_bytes(), &parts);
    let (k1, k2) = (hmac(&sik, &[&[1; 20]]), hmac(&sik, &[&[2; 20]]));
    // Whoever made these keys wrongly would look for the wrong ones: RAKP 4 is proof of the first.
    let (sid, guid) = (&rakp_1[4..8], &rakp_2[24..40]);
    let proof = hmac(&sik, &[console_random, sid, guid]);
    assert_eq!(body(0x15)[8..24], proof[..16], "not the keys of this session");
    (sik, k1, k2)
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_fails_before_any_effect() {
    let rack = Rack::new();
    let report = IPMI.call(call(Action::Off, None, "wrong-horse"), &seams(&rack)).await;
    assert!(matches!(report.verdict(), Verdict::FailedBeforeEffect(_)), "{report:?}");
    assert!(rack.bmc.lock().unwrap().powered());
}

/// The same model behind a real socket, for as long as it is held.
struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Bmc>>,
}

impl Served {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut bmc = Bmc::new(config());
            let begun = Instant::now();
            let mut buffer = [0; 1024];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                let now_ms = u64::try_from(begun.elapsed().as_millis()).unwrap();
                for reply in bmc.datagram(now_ms, from.port().into(), &buffer[..length]) {
                    socket.send_to(&reply.bytes, from).unwrap();
                }
            }
            bmc
        });
        Self { address, stop, thread: Some(thread) }
    }

    fn end(mut self) -> Bmc {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[tokio::test]
async fn the_same_component_works_through_real_sockets_on_its_own_thread() {
    let served = Served::new();
    let address = served.address.to_string();
    let mut lab = admin();
    lab.cidrs = vec!["127.0.0.1/32".parse().unwrap()];
    lab.ports = vec![served.address.port()..=served.address.port()];
    let seams = Seams {
        net: Arc::new(Sockets),
        clock: Arc::new(TokioClock::starting_at(0)),
        entropy: Arc::new(SystemEntropy),
        gate: Arc::new(OpenGate),
        sessions: Arc::default(),
    };
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    for action in [Action::Status, Action::Off] {
        let mut call = call(action, None, PASSWORD);
        call.request.parameters.insert("address".to_owned(), address.clone());
        call.grants = grants(IPMI.manifest(), &address, &lab);
        let report = executor.run(Arc::clone(&IPMI), call, seams.clone()).await;
        assert!(matches!(report.verdict(), Verdict::Outcome(_)), "{action:?}: {report:?}");
    }
    let bmc = served.end();
    assert_eq!((bmc.powered(), bmc.open_sessions()), (false, 0));
}
