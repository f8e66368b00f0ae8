//! How long an answer is waited for.

use std::future::Future;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::bindings::node_remedy::fence::net::NetError as Wire;
use crate::cancel::Cancel;
use crate::limits::LOGOUT_TIME;
use crate::net::NetError;
use crate::seams::Clock;
use crate::types::Cut;

/// Why a request has no answer.
pub(crate) enum Unanswered {
    /// The plugin is told so.
    Told(Wire),
    /// The plugin is stopped.
    Cut(Cut),
}

impl From<Wire> for Unanswered {
    fn from(told: Wire) -> Self {
        Self::Told(told)
    }
}

impl Unanswered {
    /// What becomes of the host call that wanted the answer.
    pub(crate) fn end<T>(result: Result<T, Self>) -> wasmtime::Result<Result<T, Wire>> {
        match result {
            Ok(answer) => Ok(Ok(answer)),
            Err(Self::Told(told)) => Ok(Err(told)),
            Err(Self::Cut(cut)) => Err(cut.into()),
        }
    }
}

/// How long a request may be waited for, over all its parts.
pub(crate) struct Patience {
    pub(crate) timeout: BoxFuture<'static, ()>,
    pub(crate) cancel: Cancel,
    /// A wait that is going on ends when the call is cancelled; one that begins later is how a
    /// plugin closes its session.
    closing: bool,
}

impl Patience {
    pub(crate) fn new(clock: &dyn Clock, timeout_ms: u32, cancel: &Cancel) -> Self {
        Self {
            timeout: clock.sleep(Duration::from_millis(timeout_ms.into())),
            cancel: cancel.clone(),
            closing: cancel.is_asked(),
        }
    }

    /// As long as the call lasts.
    pub(crate) fn whole_call(cancel: &Cancel) -> Self {
        let closing = cancel.is_asked();
        Self { timeout: Box::pin(std::future::pending()), cancel: cancel.clone(), closing }
    }

    /// For a request that ends something, when the plugin is gone.
    pub(crate) fn for_a_farewell(clock: &dyn Clock, cancel: &Cancel) -> Self {
        Self { timeout: clock.sleep(LOGOUT_TIME), cancel: cancel.clone(), closing: true }
    }

    pub(crate) async fn wait<T>(
        &mut self,
        work: impl Future<Output = Result<T, NetError>>,
    ) -> Result<T, Wire> {
        tokio::select! {
            biased;
            done = work => done.map_err(Wire::from),
            () = &mut self.timeout => Err(Wire::Timeout),
            () = self.cancel.asked(), if !self.closing => Err(Wire::Cancelled),
        }
    }
}
