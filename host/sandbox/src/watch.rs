//! A watcher of datagrams: a component that is shown what a known sender sent and says whether it is
//! a sighting. The host owns the socket, and drops what comes from strangers, too often or too
//! large before the component sees it. Not here: the socket, and what a sighting means.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wasmtime::{Engine, Store};

use crate::bindings::watcher::DatagramWatcherPre;
use crate::bindings::watcher::exports::node_remedy::fence::watcher::Verdict as Wire;
use crate::convert::clean_fields;
use crate::digest::Digest;
use crate::grants::Grants;
use crate::limits::{
    CHECKPOINT_BYTES_MAX, HOSTCALL_BYTES_MAX, WATCH_BYTES_MAX, WATCH_EVERY, WATCH_FUEL,
    WATCH_SENDERS_MAX, WATCH_TIME,
};
use crate::manifest::Manifest;
use crate::seams::Seams;
use crate::state::CallState;
use crate::trial;
use crate::types::Fields;

/// A loaded watcher.
pub struct Watcher {
    engine: Engine,
    pre: DatagramWatcherPre<CallState>,
    manifest: Manifest,
    digest: Digest,
}

/// What a watcher makes of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// It means nothing.
    Ignore,
    /// What is watched for is going on.
    Sighting(Fields),
    /// It has come to its end.
    Finished(Fields),
}

/// What became of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchOutcome {
    /// The watcher saw it.
    Seen(Sight),
    /// It did not, or what it said does not count.
    Unseen(Unseen),
}

/// Why a datagram counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    /// Its sender is none that is watched.
    #[error("failed to know the sender")]
    UnknownSender,
    /// It is longer than any that means something.
    #[error("failed to take a datagram of {0} bytes")]
    TooLarge(usize),
    /// Its sender sent another one just before.
    #[error("failed to look at a datagram so soon after the last")]
    TooSoon,
    /// The watcher failed over it.
    #[error("failed to have the watcher look at it: {0}")]
    Failed(String),
}

/// A watcher with the senders it watches.
pub struct Watch {
    watcher: Arc<Watcher>,
    senders: BTreeMap<IpAddr, Sender>,
}

#[derive(Default)]
struct Sender {
    /// What the watcher knows of it.
    state: Vec<u8>,
    /// When it is looked at again.
    not_before_ms: u64,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("name", &self.manifest.name)
            .field("version", &self.manifest.version)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches these senders and nobody else. Those beyond the limit are not watched.
    pub fn new(watcher: Arc<Watcher>, senders: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut watch = Self { watcher, senders: BTreeMap::new() };
        watch.know(senders);
        watch
    }

    /// Watches these senders from now on. What is known of those that it watched before is kept.
    pub fn know(&mut self, senders: impl IntoIterator<Item = IpAddr>) {
        let mut before = std::mem::take(&mut self.senders);
        let known = senders.into_iter().map(|address| {
            let address = address.to_canonical();
            (address, before.remove(&address).unwrap_or_default())
        });
        self.senders = known.take(WATCH_SENDERS_MAX).collect();
    }

    /// Looks at one datagram.
    pub async fn hear(&mut self, from: SocketAddr, data: &[u8], seams: &Seams) -> WatchOutcome {
        let Some(sender) = self.senders.get_mut(&from.ip().to_canonical()) else {
            return WatchOutcome::Unseen(Unseen::UnknownSender);
        };
        if data.len() > WATCH_BYTES_MAX {
            return WatchOutcome::Unseen(Unseen::TooLarge(data.len()));
        }
        let now_ms = seams.clock.now_ms();
        if now_ms < sender.not_before_ms {
            return WatchOutcome::Unseen(Unseen::TooSoon);
        }
        let every_ms = u64::try_from(WATCH_EVERY.as_millis()).unwrap_or(u64::MAX);
        sender.not_before_ms = now_ms.saturating_add(every_ms);
        match self.watcher.look(from.ip().to_canonical(), data, &sender.state, seams).await {
            Ok((sight, state)) => {
                sender.state = state;
                WatchOutcome::Seen(sight)
            }
            Err(why) => WatchOutcome::Unseen(Unseen::Failed(why)),
        }
    }
}

impl Watcher {
    pub(crate) fn new(
        engine: Engine,
        pre: DatagramWatcherPre<CallState>,
        manifest: Manifest,
        digest: Digest,
    ) -> Self {
        Self { engine, pre, manifest, digest }
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The digest of its component.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Runs it once, in an instance of its own, which knows of earlier ones only what they left.
    async fn look(
        &self,
        from: IpAddr,
        data: &[u8],
        state: &[u8],
        seams: &Seams,
    ) -> Result<(Sight, Vec<u8>), String> {
        let seed = seams.entropy.seed().map_err(|error| error.to_string())?;
        // It has no endpoints, no credentials, and no effect that it could begin.
        let call = CallState::new(trial::call(Grants::default()), seed, seams.clone());
        let mut store = self.store(call).map_err(|error| format!("{error:#}"))?;
        let run = async {
            let watcher = self.pre.instantiate_async(&mut store).await?;
            let exported = watcher.node_remedy_fence_watcher();
            exported.call_on_datagram(&mut store, &from.to_string(), data, state).await
        };
        let ended = tokio::select! {
            biased;
            ended = run => ended,
            () = seams.clock.sleep(WATCH_TIME) => return Err("it took too long".to_owned()),
        };
        let (verdict, state) = ended.map_err(|error| error.root_cause().to_string())?;
        if state.len() > CHECKPOINT_BYTES_MAX {
            return Err(format!("it leaves {} bytes of state", state.len()));
        }
        let secrets = &store.data().secrets;
        let sight = match verdict {
            Wire::Ignore => Sight::Ignore,
            Wire::Sighting(fields) => Sight::Sighting(clean_fields(&fields, secrets)),
            Wire::Finished(fields) => Sight::Finished(clean_fields(&fields, secrets)),
        };
        Ok((sight, state))
    }

    fn store(&self, mut state: CallState) -> wasmtime::Result<Store<CallState>> {
        state.meter.bound_memory(self.manifest.memory_bytes);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.meter);
        store.set_fuel(WATCH_FUEL)?;
        store.set_hostcall_fuel(HOSTCALL_BYTES_MAX);
        // Epochs pass on this engine while calls run; this one is bounded by its fuel.
        store.set_epoch_deadline(u64::MAX / 2);
        Ok(store)
    }
}
