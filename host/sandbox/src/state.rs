//! What the host knows of one call while it runs: the data of its store. Each host interface adds
//! its own functions to it in a file of its own ([`crate::op`], [`crate::credentials`],
//! [`crate::net`]); here is what they share: budgets, the record, the way to be cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use node_remedy_decide::bug::{Bug, guard};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::call::Call;
use crate::cancel::Cancel;
use crate::exchange::Exchanges;
use crate::grants::Grants;
use crate::limits::{HOST_CALLS_MAX, MEMORY_BYTES_MOST, RESOURCES_MAX, STDERR_BYTES_MAX};
use crate::meter::Meter;
use crate::net::session_store::Entered;
use crate::net::socket::Socket;
use crate::net::{Connection, auth};
use crate::randomness::Randomness;
use crate::seams::Seams;
use crate::secret::Secret;
use crate::stderr;
use crate::stderr::Stderr;
use crate::transcript::Transcript;
use crate::trust::TlsRefusal;
use crate::types::{Action, Cut, Direction, Effect, Exchange, LogLevel, LogLine};
use crate::words::Secrets;

/// The host's side of one call.
pub(crate) struct CallState {
    pub(crate) action: Action,
    pub(crate) operation_id: String,
    /// The digest of the component that is called.
    pub(crate) component: String,
    pub(crate) grants: Grants,
    pub(crate) credentials: BTreeMap<String, Arc<Secret>>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) seams: Seams,
    pub(crate) cancel: Cancel,
    pub(crate) random: Randomness,
    pub(crate) secrets: Secrets,
    pub(crate) meter: Meter,
    pub(crate) table: ResourceTable,
    pub(crate) spent: Spent,
    pub(crate) record: Record,
    pub(crate) sockets: BTreeMap<u32, Socket>,
    /// The sessions it is in, by endpoint.
    pub(crate) entered: BTreeMap<String, Entered>,
    pub(crate) connections: BTreeMap<u32, Connection>,
    started_ms: u64,
    wasi: WasiCtx,
    stderr: Stderr,
}

/// What a call has used of its budgets.
#[derive(Default)]
pub(crate) struct Spent {
    pub(crate) host_calls: u32,
    pub(crate) secret_operations: u32,
    pub(crate) key_operations: u32,
    pub(crate) usm_keys: u32,
    pub(crate) sockets_opened: u32,
    pub(crate) datagrams_sent: u32,
    pub(crate) stream_bytes_written: usize,
    pub(crate) stream_bytes_read: usize,
    pub(crate) http_requests: u32,
    pub(crate) logins: u32,
}

/// What a call leaves behind.
pub(crate) struct Record {
    pub(crate) effect: Effect,
    pub(crate) lie: Option<&'static str>,
    /// Messages that came from a device.
    pub(crate) heard: u32,
    /// Why TLS failed last; the plugin is told only that it did.
    pub(crate) tls_refusal: Option<TlsRefusal>,
    /// Why there was no session, where the plugin is told only that there was none.
    pub(crate) login_refusal: Option<String>,
    /// Why the last endpoint asked for was not granted; the plugin is told only that.
    pub(crate) grant_refusal: Option<String>,
    pub(crate) checkpoint: Option<Vec<u8>>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) log_bytes: usize,
    pub(crate) log_dropped: u32,
    pub(crate) exchanges: Exchanges,
    pub(crate) transcript: Transcript,
}

impl CallState {
    pub(crate) fn new(call: Call, seed: [u8; 32], seams: Seams) -> Self {
        let Call { request, grants, credentials, cancel, exchange_record } = call;
        let started_ms = seams.clock.now_ms();
        let known = credentials.values().map(|secret| secret.bytes.as_slice());
        let tokens = auth::tokens(&grants, &credentials);
        let stderr = Stderr::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES_MAX);
        Self {
            action: request.action,
            operation_id: request.operation_id,
            component: String::new(),
            secrets: Secrets::new(known.chain(tokens.iter().map(|token| token.as_slice()))),
            credentials: credentials.into_iter().map(|(k, v)| (k, Arc::new(v))).collect(),
            wasi: crate::wasi_context::context(&seams, seed, stderr.clone()),
            stderr,
            random: Randomness::new(seed, 0),
            meter: Meter::new(MEMORY_BYTES_MOST),
            spent: Spent::default(),
            record: Record::new(Exchanges::new(exchange_record)),
            sockets: BTreeMap::new(),
            entered: BTreeMap::new(),
            parameters: request.parameters,
            connections: BTreeMap::new(),
            started_ms,
            grants,
            cancel,
            seams,
            table,
        }
    }

    /// Takes what the guest wrote to standard error into its log.
    pub(crate) fn keep_stderr(&mut self) {
        let mut bytes = self.stderr.bytes();
        if bytes.len() >= STDERR_BYTES_MAX {
            // What was dropped may have been the rest of a secret.
            bytes.truncate(bytes.len() - self.secrets.begun_in(&bytes));
        }
        // As a whole first: a secret may have several lines.
        for line in stderr::lines(&self.secrets.redact(&bytes)) {
            self.keep_log(LogLevel::Warn, &line);
        }
    }

    /// Counts a host call; every function of every interface begins with it.
    pub(crate) fn count_call(&mut self) -> Result<(), Cut> {
        self.spent.host_calls = self.spent.host_calls.saturating_add(1);
        if self.spent.host_calls > HOST_CALLS_MAX {
            return Err(Cut::Flood { what: "host calls", limit: HOST_CALLS_MAX.into() });
        }
        Ok(())
    }

    /// Milliseconds since the call began.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.seams.clock.now_ms().saturating_sub(self.started_ms)
    }

    /// What went over the wire, as it may be kept.
    pub(crate) fn as_evidence(&self, bytes: &[u8]) -> Vec<u8> {
        if guard(Bug::EvidenceUnredacted, true) {
            self.secrets.redact(bytes)
        } else {
            bytes.to_vec()
        }
    }

    /// Keeps what went over the wire, as evidence.
    pub(crate) fn keep_exchange(&mut self, endpoint: &str, direction: Direction, bytes: &[u8]) {
        if self.record.exchanges.are_kept() {
            let exchange = Exchange {
                at_ms: self.elapsed_ms(),
                endpoint: endpoint.to_owned(),
                direction,
                bytes: self.as_evidence(bytes),
                plaintext: None,
            };
            self.record.exchanges.keep(exchange);
        }
    }

    /// Keeps what the host encrypted in the plugin's place.
    pub(crate) fn keep_encrypted(&mut self, plaintext: &[u8], ciphertext: &[u8]) {
        if self.record.exchanges.are_kept() {
            self.record.exchanges.encrypted(self.as_evidence(plaintext), ciphertext);
        }
    }

    /// Keeps what the host decrypted in the plugin's place.
    pub(crate) fn keep_decrypted(&mut self, ciphertext: &[u8], plaintext: &[u8]) {
        if self.record.exchanges.are_kept() {
            self.record.exchanges.decrypted(ciphertext, self.as_evidence(plaintext));
        }
    }
}

impl Record {
    fn new(exchanges: Exchanges) -> Self {
        Self {
            effect: Effect::NotBegun,
            lie: None,
            heard: 0,
            tls_refusal: None,
            login_refusal: None,
            grant_refusal: None,
            checkpoint: None,
            log: Vec::new(),
            log_bytes: 0,
            log_dropped: 0,
            exchanges,
            transcript: Transcript::default(),
        }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime_wasi::p2::OutputStream as _;
    use zeroize::Zeroizing;

    use super::*;
    use crate::trial;
    use crate::types::ExchangeRecord;

    #[test]
    fn a_secret_of_two_lines_is_redacted_of_standard_error() {
        let secret = Secret { identity: None, bytes: Zeroizing::new(b"correct\nhorse".to_vec()) };
        let call = Call {
            credentials: BTreeMap::from([("key".to_owned(), secret)]),
            ..trial::call(Grants::default())
        };
        let mut state = CallState::new(call, [0; 32], trial::seams());
        state.stderr.write(b"panicked at correct\nhorse".as_slice().into()).unwrap();
        state.keep_stderr();
        let kept: Vec<_> = state.record.log.into_iter().map(|line| line.message).collect();
        assert_eq!(kept, ["panicked at *************"]);
    }

    #[test]
    fn a_secret_that_standard_error_has_no_room_for_is_not_begun() {
        let secret = Secret { identity: None, bytes: Zeroizing::new(b"correct-horse".to_vec()) };
        let call = Call {
            credentials: BTreeMap::from([("key".to_owned(), secret)]),
            ..trial::call(Grants::default())
        };
        let mut state = CallState::new(call, [0; 32], trial::seams());
        let before = "x".repeat(STDERR_BYTES_MAX - 9);
        state.stderr.write(format!("{before}\ncorrect-horse").into()).unwrap();
        state.keep_stderr();
        assert_eq!(state.record.log.len(), 1, "{:?}", state.record.log);
    }

    /// A command that sets a password carries it inside of the session.
    #[test]
    fn a_password_inside_a_session_is_redacted_both_ways() {
        let secret = Secret { identity: None, bytes: Zeroizing::new(b"correct-horse".to_vec()) };
        let call = Call {
            credentials: BTreeMap::from([("account".to_owned(), secret)]),
            exchange_record: ExchangeRecord::On,
            ..trial::call(Grants::default())
        };
        let mut state = CallState::new(call, [0; 32], trial::seams());
        state.keep_encrypted(b"set correct-horse", b"SEALED-1");
        state.keep_exchange("bmc", Direction::Sent, b"SEALED-1");
        state.keep_exchange("bmc", Direction::Received, b"SEALED-2");
        state.keep_decrypted(b"SEALED-2", b"was correct-horse");
        let (kept, _) = state.record.exchanges.into_kept();
        let plaintexts: Vec<_> = kept.into_iter().map(|one| one.plaintext).collect();
        let redacted = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(plaintexts, [redacted("set *************"), redacted("was *************")]);
    }
}
