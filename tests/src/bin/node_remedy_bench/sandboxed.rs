//! `ipmi.wasm` as it ships, called in its sandbox through real sockets, as the controller calls it.
//!
//! Each call is a fresh instance on a plugin thread, granted exactly one BMC's address. The tests of
//! the plugins level use this file too: what is measured is what is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use node_remedy_sandbox::manifest::{Operation, Protocol};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{
    Action, AdminGrant, Call, CallReport, Cancel, ExchangeRecord, Executor, Grants, NoNames,
    OpenGate, Plugin, Request, Sandbox, Seams, Secret, SystemEntropy, TokioClock,
};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{PASSWORD, USERNAME};
use node_remedy_tests::process::repository;
use zeroize::Zeroizing;

/// As many as a small controller has.
const THREADS: usize = 2;
/// No call here comes near it unless its BMC is silent.
const DEADLINE: Duration = Duration::from_mins(1);

/// The built component.
pub(crate) fn component() -> PathBuf {
    repository().join("target/plugins/ipmi.wasm")
}

/// The plugin, loaded once, with threads of its own.
pub(crate) struct Sandboxed {
    plugin: Arc<Plugin>,
    executor: Executor,
    seams: Seams,
}

impl Sandboxed {
    /// Loads the component and compiles it.
    pub(crate) fn load() -> Result<Self> {
        let path = component();
        let wasm = std::fs::read(&path)
            .with_context(|| format!("failed to read {}: cargo xtask plugins", path.display()))?;
        let sandbox = Sandbox::new()?;
        Ok(Self {
            plugin: sandbox.load(&wasm)?,
            executor: Executor::threads(&sandbox, THREADS)?,
            seams: Seams {
                net: Arc::new(Sockets),
                clock: Arc::new(TokioClock::starting_at(0)),
                entropy: Arc::new(SystemEntropy),
                gate: Arc::new(OpenGate),
                sessions: Arc::default(),
            },
        })
    }

    /// What a call needs: an action for a BMC, over the cipher suite that the parameter names.
    pub(crate) async fn prepare(&self, bmc: &Bmc, action: Action, suite: &str) -> Result<Call> {
        let parameters = BTreeMap::from([
            ("address".to_owned(), bmc.address()),
            ("cipher-suite".to_owned(), suite.to_owned()),
        ]);
        let admin = AdminGrant {
            cidrs: vec!["127.0.0.1/32".parse()?],
            ports: vec![bmc.port()..=bmc.port()],
            protocols: BTreeSet::from([Protocol::Udp]),
            operations: BTreeSet::from([Operation::Mac, Operation::SessionKey]),
            ..AdminGrant::default()
        };
        let account = Secret {
            identity: Some(USERNAME.to_owned()),
            bytes: Zeroizing::new(PASSWORD.as_bytes().to_vec()),
        };
        Ok(Call {
            grants: Grants::decide(self.plugin.manifest(), &parameters, &admin, &NoNames).await?,
            request: Request {
                action,
                plug: String::new(),
                parameters,
                operation_id: "by-hand".to_owned(),
                attempt: 1,
                deadline: DEADLINE,
                until: None,
                resume: None,
            },
            credentials: BTreeMap::from([("account".to_owned(), account)]),
            cancel: Cancel::new(),
            exchange_record: ExchangeRecord::On,
        })
    }

    /// Makes a call that was prepared.
    pub(crate) async fn call(&self, call: Call) -> CallReport {
        self.executor.run(Arc::clone(&self.plugin), call, self.seams.clone()).await
    }
}
