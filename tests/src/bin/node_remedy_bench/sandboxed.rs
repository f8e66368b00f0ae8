//! A built component as it ships, called in its sandbox through real sockets, as the controller calls
//! it.
//!
//! Each call is a fresh instance on a plugin thread, granted exactly the device's address. The tests of
//! the plugins level use this file too: what is measured is what is tested.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Cancel, ExchangeRecord, Executor, Grants, HttpGrant,
    NoNames, OpenGate, Plugin, Request, Sandbox, Seams, Secret, SystemEntropy, TokioClock, Trust,
};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{PASSWORD, USERNAME};
use node_remedy_tests::process::repository;
use zeroize::Zeroizing;

/// As many as a small controller has.
const THREADS: usize = 2;
/// No call here comes near it unless its device is silent.
const DEADLINE: Duration = Duration::from_mins(1);

/// A built component.
pub(crate) fn component(method: &str) -> PathBuf {
    repository().join("target/plugins").join(method).with_extension("wasm")
}

/// A plugin, loaded once, with threads of its own.
pub(crate) struct Sandboxed {
    pub(crate) plugin: Arc<Plugin>,
    executor: Executor,
    pub(crate) seams: Seams,
}

/// How a device on loopback is reached, and who asks.
#[derive(Clone)]
pub(crate) struct Reach {
    /// With address and port.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) credentials: BTreeMap<String, Secret>,
    pub(crate) plug: String,
    pub(crate) trust: Trust,
}

impl Reach {
    /// A BMC, over the cipher suite that the parameter names.
    pub(crate) fn bmc(bmc: &Bmc, suite: &str) -> Self {
        Self {
            parameters: BTreeMap::from([
                ("address".to_owned(), bmc.address()),
                ("cipher-suite".to_owned(), suite.to_owned()),
            ]),
            credentials: BTreeMap::from([secret("account", Some(USERNAME), PASSWORD)]),
            plug: String::new(),
            trust: Trust::default(),
        }
    }
}

/// A credential by its name in the manifest.
pub(crate) fn secret(name: &str, identity: Option<&str>, bytes: &str) -> (String, Secret) {
    let bytes = Zeroizing::new(bytes.as_bytes().to_vec());
    (name.to_owned(), Secret { identity: identity.map(str::to_owned), bytes })
}

impl Sandboxed {
    /// Loads the component of a method and compiles it.
    pub(crate) fn load(method: &str) -> Result<Self> {
        let path = component(method);
        let wasm = std::fs::read(&path)
            .with_context(|| format!("failed to read {}: cargo xtask plugins", path.display()))?;
        let sandbox = Sandbox::new()?;
        Self::holding(&sandbox, sandbox.load(&wasm)?)
    }

    /// Holds a component that a sandbox has loaded.
    pub(crate) fn holding(sandbox: &Sandbox, plugin: Arc<Plugin>) -> Result<Self> {
        Ok(Self {
            plugin,
            executor: Executor::threads(sandbox, THREADS)?,
            seams: Seams {
                net: Arc::new(Sockets),
                clock: Arc::new(TokioClock::starting_at(now_ms()?)),
                entropy: Arc::new(SystemEntropy),
                gate: Arc::new(OpenGate),
                sessions: Arc::default(),
            },
        })
    }

    /// What a call needs: an action for a BMC, over the cipher suite that the parameter names.
    pub(crate) async fn prepare(&self, bmc: &Bmc, action: Action, suite: &str) -> Result<Call> {
        self.prepare_for(action, Reach::bmc(bmc, suite)).await
    }

    /// What a call needs: an action for whatever is reached so.
    pub(crate) async fn prepare_for(&self, action: Action, reach: Reach) -> Result<Call> {
        let asks = &self.plugin.manifest().asks;
        let filled = self.plugin.manifest().parameters.fill(&reach.parameters)?;
        // What is optional is not granted: a read of a single machine needs none of it.
        let needed = asks.endpoints.iter().filter(|ask| !ask.optional);
        let written = needed.filter_map(|ask| ask.written(&filled));
        let ports = written.map(|written| port(&written)).collect::<Result<Vec<_>>>()?;
        let admin = AdminGrant {
            cidrs: vec!["127.0.0.1/32".parse()?],
            ports: ports.into_iter().map(|port| port..=port).collect(),
            protocols: asks.endpoints.iter().map(|ask| ask.protocol).collect(),
            operations: asks
                .credentials
                .iter()
                .flat_map(|ask| ask.operations.iter().copied())
                .collect(),
            http: HttpGrant {
                methods: asks.endpoints.iter().flat_map(|ask| ask.methods.clone()).collect(),
                paths: asks.endpoints.iter().flat_map(|ask| ask.paths.clone()).collect(),
            },
            trust: reach.trust,
            exposes: asks.exposes().map(str::to_owned).collect(),
            reveal: asks.credentials.iter().map(|ask| ask.name.clone()).collect(),
            ..AdminGrant::default()
        };
        Ok(Call {
            grants: Grants::decide(self.plugin.manifest(), &filled, &admin, &NoNames).await?,
            request: Request {
                action,
                plug: reach.plug,
                parameters: reach.parameters,
                operation_id: "by-hand".to_owned(),
                attempt: 1,
                deadline: DEADLINE,
                until: None,
                resume: None,
                system_uuid: None,
            },
            credentials: reach.credentials,
            cancel: Cancel::new(),
            exchange_record: ExchangeRecord::On,
        })
    }

    /// Makes a call that was prepared.
    pub(crate) async fn call(&self, call: Call) -> CallReport {
        self.executor.run(Arc::clone(&self.plugin), call, self.seams.clone()).await
    }
}

/// What signatures are dated by, in milliseconds since 1970.
fn now_ms() -> Result<u64> {
    Ok(u64::try_from(jiff::Timestamp::now().as_millisecond())?)
}

/// The port of `HOST:PORT`, or of an URL with one.
fn port(written: &str) -> Result<u16> {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let (_, port) = host.rsplit_once(':').with_context(|| format!("no port in {written}"))?;
    Ok(port.parse()?)
}
