//! What the tests share: the hostile component, built once; a network that counts; a call with
//! everything granted that the guest's manifest asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use node_remedy_sandbox::limits::FUEL_PER_CALL_MOST;
use node_remedy_sandbox::manifest::{Manifest, Operation, Protocol};
use node_remedy_sandbox::net::{Fabric, MemoryNet};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Cancel, ExchangeRecord, Grants, NoNames, NotLeader,
    Plugin, PluginLimits, Request, Sandbox, Seams, Secret, SeededEntropy, SendGate, TokioClock,
};
use zeroize::Zeroizing;

/// The secret of the guest's account. It must never be seen again.
pub(crate) const PASSWORD: &str = "correct-horse";
/// The secret it may be allowed to read.
pub(crate) const COMMUNITY: &str = "battery-staple";
/// Where the guest's device is.
pub(crate) const DEVICE: &str = "10.9.0.7:623";

pub(crate) static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new().unwrap());

/// The hostile component's bytes, built by the cargo that runs this test.
pub(crate) static WASM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/hostile");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2"])
        .current_dir(crate_dir)
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "failed to build the hostile guest");
    std::fs::read(target.join("wasm32-wasip2/release/hostile.wasm")).unwrap()
});

pub(crate) static HOSTILE: LazyLock<Arc<Plugin>> = LazyLock::new(|| SANDBOX.load(&WASM).unwrap());

/// The same with fuel that outlasts every deadline here, however fast the machine is.
pub(crate) static TIRELESS: LazyLock<Arc<Plugin>> = LazyLock::new(|| {
    let limits = PluginLimits { fuel: FUEL_PER_CALL_MOST, ..PluginLimits::default() };
    SANDBOX.load_within(&WASM, &limits).unwrap()
});

/// A device that answers everything after 5 ms, and remembers what it was sent.
#[derive(Default)]
pub(crate) struct Device {
    pub(crate) heard: Mutex<Vec<(SocketAddr, Vec<u8>)>>,
}

impl Device {
    /// What it was sent, as text.
    pub(crate) fn heard(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect()
    }
}

impl Fabric for Device {
    fn datagram(&self, to: SocketAddr, _: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        self.heard.lock().unwrap().push((to, data.to_vec()));
        vec![(Duration::from_millis(5), b"done".to_vec())]
    }
}

/// A gate that a test can shut.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) lost: AtomicBool,
    pub(crate) unrecorded: AtomicBool,
    pub(crate) begun: Mutex<Vec<String>>,
}

impl SendGate for Gate {
    fn check(&self) -> Result<(), NotLeader> {
        if self.lost.load(Ordering::Relaxed) { Err(NotLeader) } else { Ok(()) }
    }

    fn begin(&self, operation_id: &str) -> Result<(), String> {
        if self.unrecorded.load(Ordering::Relaxed) {
            return Err("the intent is not recorded".to_owned());
        }
        self.begun.lock().unwrap().push(operation_id.to_owned());
        Ok(())
    }
}

/// A world with one device in it.
pub(crate) struct World {
    pub(crate) device: Arc<Device>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) seams: Seams,
}

impl World {
    pub(crate) fn new() -> Self {
        let device = Arc::new(Device::default());
        let gate = Arc::new(Gate::default());
        let seams = Seams {
            net: Arc::new(MemoryNet::new(device.clone())),
            clock: Arc::new(TokioClock::starting_at(1_790_000_000_000)),
            entropy: Arc::new(SeededEntropy::new(7)),
            gate: gate.clone(),
            sessions: Arc::default(),
        };
        Self { device, gate, seams }
    }

    /// Has the guest do a deed.
    pub(crate) async fn call(&self, action: Action, deed: &str) -> CallReport {
        HOSTILE.call(call(action, deed), &self.seams).await
    }

    /// Has the guest do a deed and gives the sentence of its failure.
    pub(crate) async fn failure(&self, action: Action, deed: &str) -> String {
        self.call(action, deed).await.result.unwrap_err().detail
    }
}

/// What an admin would grant the guest.
pub(crate) fn admin() -> AdminGrant {
    AdminGrant {
        cidrs: vec!["10.9.0.0/16".parse().unwrap()],
        ports: vec![623..=623],
        protocols: BTreeSet::from([Protocol::Udp]),
        operations: BTreeSet::from([Operation::Mac, Operation::SessionKey, Operation::UsmKey]),
        reveal: BTreeSet::from(["community".to_owned()]),
        ..AdminGrant::default()
    }
}

pub(crate) fn grants(manifest: &Manifest, address: &str, admin: &AdminGrant) -> Grants {
    let parameters = BTreeMap::from([("address".to_owned(), address.to_owned())]);
    let decided = Grants::decide(manifest, &parameters, admin, &NoNames);
    futures::executor::block_on(decided).unwrap()
}

/// A call of the hostile guest.
pub(crate) fn call(action: Action, deed: &str) -> Call {
    let secret = |identity: Option<&str>, bytes: &str| Secret {
        identity: identity.map(str::to_owned),
        bytes: Zeroizing::new(bytes.as_bytes().to_vec()),
    };
    Call {
        request: Request {
            action,
            plug: deed.to_owned(),
            parameters: BTreeMap::from([("address".to_owned(), DEVICE.to_owned())]),
            operation_id: "op-1".to_owned(),
            attempt: 1,
            deadline: Duration::from_secs(10),
            until: None,
            resume: None,
            system_uuid: None,
        },
        grants: grants(HOSTILE.manifest(), DEVICE, &admin()),
        credentials: BTreeMap::from([
            ("account".to_owned(), secret(Some("operator"), PASSWORD)),
            ("community".to_owned(), secret(None, COMMUNITY)),
        ]),
        cancel: Cancel::new(),
        exchange_record: ExchangeRecord::On,
    }
}
