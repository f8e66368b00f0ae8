//! What is called: the guest that does on request what a plugin must not, a BMC in memory, and calls of
//! both with everything granted that they ask for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_devices::bmc::{Bmc, Config};
use node_remedy_sandbox::net::{Fabric, MemoryNet};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, Cancel, ExchangeRecord, Grants, NoNames, OpenGate, Plugin, Request,
    Seams, SystemEntropy, TokioClock,
};
use node_remedy_tests::process::repository;

use crate::sandboxed::secret;

/// Where devices in memory are.
const DEVICE: &str = "10.9.0.7:623";
/// An account of the model's.
pub(super) const ACCOUNT: (&str, &str) = ("admin", "secret");

/// Builds the guest whose source stands with the sandbox's tests, and reads its component.
pub(super) fn hostile() -> Result<Vec<u8>> {
    let target = repository().join("target/guests");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2"]);
    build.current_dir(repository().join("host/sandbox/tests/guests/hostile"));
    build.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS");
    let status = build.status().context("failed to start cargo")?;
    ensure!(status.success(), "failed to build the hostile guest: {status}");
    Ok(std::fs::read(target.join("wasm32-wasip2/release/hostile.wasm"))?)
}

/// A BMC that answers at once.
struct AtOnce(Mutex<Bmc>);

impl Fabric for AtOnce {
    fn datagram(&self, _: SocketAddr, port: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let mut bmc = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = bmc.datagram(0, port.into(), data);
        replies.into_iter().map(|reply| (Duration::ZERO, reply.bytes)).collect()
    }
}

/// The world of production, but for its network, in which one BMC answers at once. To be made on the
/// runtime whose time it shows.
pub(super) fn seams() -> Seams {
    Seams {
        net: Arc::new(MemoryNet::new(Arc::new(AtOnce(Mutex::new(Bmc::new(Config::default())))))),
        clock: Arc::new(TokioClock::starting_at(1_790_000_000_000)),
        entropy: Arc::new(SystemEntropy),
        gate: Arc::new(OpenGate),
        sessions: Arc::default(),
    }
}

/// A call at the device in memory, granted it alone; to the hostile guest the plug is its deed.
pub(super) async fn call(plugin: &Plugin, plug: &str, deadline: Duration) -> Result<Call> {
    let manifest = plugin.manifest();
    let written = BTreeMap::from([("address".to_owned(), DEVICE.to_owned())]);
    let parameters = manifest.parameters.fill(&written)?;
    let (endpoints, asks) = (&manifest.asks.endpoints, &manifest.asks.credentials);
    let admin = AdminGrant {
        cidrs: vec!["10.9.0.7/32".parse()?],
        ports: vec![623..=623],
        protocols: endpoints.iter().map(|ask| ask.protocol).collect(),
        operations: asks.iter().flat_map(|ask| ask.operations.iter().copied()).collect(),
        reveal: asks.iter().map(|ask| ask.name.clone()).collect(),
        ..AdminGrant::default()
    };
    let (name, password) = ACCOUNT;
    Ok(Call {
        grants: Grants::decide(manifest, &parameters, &admin, &NoNames).await?,
        request: Request {
            action: Action::Status,
            plug: plug.to_owned(),
            parameters: written,
            operation_id: "bench".to_owned(),
            attempt: 1,
            deadline,
            until: None,
            resume: None,
            system_uuid: None,
        },
        credentials: BTreeMap::from([secret("account", Some(name), password)]),
        cancel: Cancel::new(),
        exchange_record: ExchangeRecord::On,
    })
}
