//! One call of the plugin against a BMC model, and what there is to see afterwards.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_devices::bmc::{Bmc, Config};
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sdk::testing::{Device, TestHost, Trace};
use node_remedy_sdk::{Action, Failure, FenceMethod, Host, Outcome, Request};

/// A deadline no call here comes near, unless it is the thing tested.
pub(crate) const DEADLINE_MS: u32 = 60_000;

/// A BMC behind the in-memory network, with 1 ms each way.
pub(crate) struct OnNetwork(pub(crate) Bmc);

impl Device for OnNetwork {
    fn datagram(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let replies = self.0.datagram(now_ms, peer, data);
        replies.into_iter().map(|reply| (2 + reply.delay_ms, reply.bytes)).collect()
    }
}

/// A call that ended.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u64,
    pub(crate) trace: Vec<Trace>,
    pub(crate) secret_uses: u32,
    pub(crate) bmc: Rc<RefCell<OnNetwork>>,
}

impl Ended {
    pub(crate) fn open_sessions(&self) -> usize {
        self.bmc.borrow().0.open_sessions()
    }

    /// As one word: the state that was read, or the kind of failure.
    pub(crate) fn word(&self) -> String {
        match &self.result {
            Ok(outcome) => outcome.state.word().to_owned(),
            Err(failure) => format!("{:?}", failure.kind),
        }
    }

    pub(crate) fn detail(&self) -> &str {
        match &self.result {
            Ok(outcome) => &outcome.detail,
            Err(failure) => &failure.detail,
        }
    }

    pub(crate) fn ok(self) -> Outcome {
        self.result.unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    pub(crate) fn failed(&self) -> &Failure {
        self.result.as_ref().expect_err("the call should have failed")
    }
}

pub(crate) fn request(action: Action) -> Request {
    Request::new(action, DEADLINE_MS)
}

pub(crate) fn with(mut request: Request, name: &str, value: &str) -> Request {
    request.parameters.push((name.into(), value.into()));
    request
}

/// The host every test starts from: the administrator of [`Config::default`].
pub(crate) fn host() -> TestHost {
    TestHost::new(u64::from(DEADLINE_MS)).credential("account", Some("admin"), b"secret")
}

pub(crate) fn bmc(config: Config) -> Bmc {
    Bmc::new(config)
}

/// Runs a request against a BMC.
pub(crate) fn call(bmc: Bmc, request: &Request) -> Ended {
    call_from(host(), bmc, request)
}

/// Runs a request against a BMC, from a host with other credentials or manners.
pub(crate) fn call_from(host: TestHost, bmc: Bmc, request: &Request) -> Ended {
    call_over(|bmc| host.device("bmc", bmc), bmc, request)
}

/// Runs a request over a network of the test's own.
pub(crate) fn call_over(
    network: impl FnOnce(Rc<RefCell<OnNetwork>>) -> TestHost,
    bmc: Bmc,
    request: &Request,
) -> Ended {
    let bmc = Rc::new(RefCell::new(OnNetwork(bmc)));
    let host = network(bmc.clone());
    let result = Ipmi.run(request, &host);
    Ended {
        result,
        took_ms: host.elapsed_ms(),
        trace: host.trace(),
        secret_uses: host.secret_uses(),
        bmc,
    }
}
