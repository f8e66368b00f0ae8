//! What a call costs: `cargo run --release --example call_cost -- ipmi.wasm`. Loads the plugin in
//! its three ways and asks a model of a BMC for its power state, in virtual time, so that only
//! computing is measured. A look at the order of magnitude, not a benchmark.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use node_remedy_devices::bmc::{Bmc, Config, Privilege, User};
use node_remedy_sandbox::manifest::{Operation, Protocol};
use node_remedy_sandbox::net::{Fabric, MemoryNet};
use node_remedy_sandbox::{
    Action, AdminGrant, Call, Cancel, ExchangeRecord, Grants, NoNames, OpenGate, Request, Sandbox,
    Seams, Secret, SeededEntropy, TokioClock, compile,
};
use zeroize::Zeroizing;

const CALLS: u32 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: call_cost PLUGIN.wasm")?;
    let wasm: &'static [u8] = std::fs::read(path)?.leak();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(measure(wasm))
}

async fn measure(wasm: &'static [u8]) -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::new()?;
    let (loaded, compiling) = timed(|| sandbox.load(wasm));
    loaded?;
    let code: &'static [u8] = compile::pack(&compile::compile(wasm)?)?.leak();
    let (plugin, loading) = timed(|| sandbox.load_builtin(wasm, code));
    let plugin = plugin?;
    println!("{} bytes of wasm, {} of code", wasm.len(), code.len());
    println!("load, compiling   {compiling:>12.1?}");
    println!("load, precompiled {loading:>12.1?}");

    let parameters = BTreeMap::from([("address".to_owned(), "10.9.0.7".to_owned())]);
    let admin = AdminGrant {
        cidrs: vec!["10.9.0.0/16".parse()?],
        ports: vec![623..=623],
        protocols: BTreeSet::from([Protocol::Udp]),
        operations: BTreeSet::from([Operation::Mac, Operation::SessionKey]),
        ..AdminGrant::default()
    };
    let secret = Secret {
        identity: Some("fence".to_owned()),
        bytes: Zeroizing::new(b"a password".to_vec()),
    };
    let call = Call {
        request: Request {
            action: Action::Status,
            plug: String::new(),
            parameters: parameters.clone(),
            operation_id: "measure".to_owned(),
            attempt: 1,
            deadline: Duration::from_mins(1),
            until: None,
            resume: None,
            system_uuid: None,
        },
        grants: Grants::decide(plugin.manifest(), &parameters, &admin, &NoNames).await?,
        credentials: BTreeMap::from([("account".to_owned(), secret)]),
        cancel: Cancel::new(),
        exchange_record: ExchangeRecord::Off,
    };
    let seams = Seams {
        net: Arc::new(MemoryNet::new(Arc::new(Rack::new()))),
        clock: Arc::new(TokioClock::starting_at(0)),
        entropy: Arc::new(SeededEntropy::new(7)),
        gate: Arc::new(OpenGate),
        sessions: Arc::default(),
    };
    let counted = Call { exchange_record: ExchangeRecord::On, ..call.clone() };
    let first = plugin.call(counted, &seams).await;
    println!("{:?}, {} datagrams, {} fuel", first.result, first.exchanges.len(), first.fuel);

    // Without grants the plugin gives up at its first request: store, instance and little else.
    let bare = Call { grants: Grants::default(), ..call.clone() };
    for (what, call) in [("call", call), ("call without grants", bare)] {
        let begun = now();
        for _ in 0..CALLS {
            plugin.call(call.clone(), &seams).await;
        }
        println!("{what:<22} {:>8.1?}", begun.elapsed() / CALLS);
    }
    Ok(())
}

/// A network with one BMC that answers at once.
struct Rack(Mutex<Bmc>);

impl Rack {
    fn new() -> Self {
        let fence = User {
            name: "fence".to_owned(),
            password: b"a password".to_vec(),
            privilege: Privilege::Administrator,
        };
        Self(Mutex::new(Bmc::new(Config { users: vec![fence], ..Config::default() })))
    }
}

impl Fabric for Rack {
    fn datagram(&self, _: SocketAddr, port: u16, data: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let Ok(mut bmc) = self.0.lock() else { return Vec::new() };
        let replies = bmc.datagram(0, port.into(), data);
        replies.into_iter().map(|reply| (Duration::ZERO, reply.bytes)).collect()
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = now();
    let done = work();
    (done, begun.elapsed())
}

#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
