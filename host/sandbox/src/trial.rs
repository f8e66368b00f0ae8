//! The surroundings of a trial instantiation: a network that leads nowhere, a gate that is shut,
//! and a thread of its own, so that whatever a start function does happens to nobody else.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Call, Request};
use crate::cancel::Cancel;
use crate::grants::Grants;
use crate::net::{Fabric, MemoryNet};
use crate::seams::{NotLeader, Seams, SeededEntropy, SendGate, TokioClock};
use crate::types::{Action, ExchangeRecord};

/// Seams that reach nothing.
pub(crate) fn seams() -> Seams {
    Seams {
        net: Arc::new(MemoryNet::new(Arc::new(Nowhere))),
        clock: Arc::new(TokioClock::starting_at(0)),
        entropy: Arc::new(SeededEntropy::new(0)),
        gate: Arc::new(Shut),
        sessions: Arc::default(),
    }
}

/// A call that asks for nothing.
pub(crate) fn call(grants: Grants) -> Call {
    Call {
        request: Request {
            action: Action::Monitor,
            plug: String::new(),
            parameters: BTreeMap::new(),
            operation_id: String::new(),
            attempt: 0,
            deadline: Duration::ZERO,
            until: None,
            resume: None,
            system_uuid: None,
        },
        grants,
        credentials: BTreeMap::new(),
        cancel: Cancel::new(),
        exchange_record: ExchangeRecord::Off,
    }
}

/// Runs it to its end on a thread with a runtime of its own: the caller may be inside another, or
/// inside one whose time stands still.
pub(crate) fn on_a_thread_of_its_own(
    attempt: impl Future<Output = Result<(), String>> + Send,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            runtime.map_err(|error| error.to_string())?.block_on(attempt)
        });
        thread.join().unwrap_or_else(|_| Err("the trial itself failed".to_owned()))
    })
}

struct Nowhere;

impl Fabric for Nowhere {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }
}

struct Shut;

impl SendGate for Shut {
    fn check(&self) -> Result<(), NotLeader> {
        Err(NotLeader)
    }

    fn begin(&self, _: &str) -> Result<(), String> {
        Err("this is a trial".to_owned())
    }
}
