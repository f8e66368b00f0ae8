//! A guest's `connection`: a stream to one granted address, with TLS where the grant has it. A
//! secret that the guest names is put in here, and what comes back after that is seen through a [`StreamRedactor`]. Not
//! here: how bytes travel ([`super::backend`]).

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;
use zeroize::Zeroizing;

use super::stream_redactor::StreamRedactor;
use super::{NetError, Peer, Stream, Wire};
use crate::bindings::node_remedy::fence::net::{HostConnection, Part};
use crate::handles::ConnectionHandle;
use crate::limits::{
    CONNECT_TIME, EXCHANGE_BODY_BYTES_MAX, FAREWELL_BYTES_MAX, FAREWELL_TIME,
    STREAM_BYTES_READ_MAX, STREAM_BYTES_WRITTEN_MAX, STREAM_READ_BYTES_MAX, STREAM_WRITE_BYTES_MAX,
    STREAM_WRITE_TIME,
};
use crate::manifest::{Operation, Protocol};
use crate::net::patience::Patience;
use crate::net::socket::{Answer, Came, Connection, Message};
use crate::seams::Clock;
use crate::state::CallState;
use crate::types::{Cut, Direction, LogLevel};

impl HostConnection for CallState {
    async fn write(&mut self, handle: Resource<ConnectionHandle>, parts: Vec<Part>) -> Answer<()> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        if let Err(shut) = self.pass_gate() {
            return Ok(Err(shut));
        }
        let message = match self.message(parts)? {
            Ok(message) => message,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.spent.stream_bytes_written += message.bytes.len();
        if self.spent.stream_bytes_written > STREAM_BYTES_WRITTEN_MAX {
            return Err(flood("bytes written", STREAM_BYTES_WRITTEN_MAX).into());
        }
        let mut patience = self.patience(STREAM_WRITE_TIME);
        let connection = self.connections.get_mut(&id).ok_or(Cut::Handle)?;
        if !connection.is_whole {
            return Ok(Err(Wire::Closed));
        }
        // Before it is written: an echo may come at once.
        message.secrets.iter().for_each(|secret| connection.stream_redactor.hide(&secret.bytes));
        connection.is_whole = false;
        let written = patience.wait(connection.stream.write(&message.bytes)).await;
        connection.is_whole = written.is_ok();
        let endpoint = connection.endpoint.clone();
        self.keep_stream(&endpoint, Direction::Sent, &message.shown);
        Ok(written)
    }

    async fn read(
        &mut self,
        handle: Resource<ConnectionHandle>,
        max: u32,
        timeout_ms: u32,
    ) -> Answer<Vec<u8>> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        // Nothing read would mean that the other side closed.
        let max = match usize::try_from(max) {
            Ok(0) | Err(_) => return Ok(Err(Wire::Other)),
            Ok(max) => max.min(STREAM_READ_BYTES_MAX),
        };
        let mut patience = self.patience(Duration::from_millis(timeout_ms.into()));
        loop {
            let connection = self.connections.get_mut(&id).ok_or(Cut::Handle)?;
            let now = connection.unread.len().min(max);
            if now > 0 || connection.has_ended {
                return Ok(Ok(connection.unread.drain(..now).collect()));
            }
            let came = patience.wait(connection.wait(&*self.seams.clock)).await;
            match came {
                Ok(came) => self.keep_what_came(id, &came)?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    async fn farewell(
        &mut self,
        handle: Resource<ConnectionHandle>,
        data: Vec<u8>,
    ) -> wasmtime::Result<()> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        if data.len() > FAREWELL_BYTES_MAX {
            return Err(flood("bytes of farewell", FAREWELL_BYTES_MAX).into());
        }
        let connection = self.connections.get_mut(&id).ok_or(Cut::Handle)?;
        connection.farewell = Some(data).filter(|data| !data.is_empty());
        Ok(())
    }

    async fn drop(&mut self, handle: Resource<ConnectionHandle>) -> wasmtime::Result<()> {
        let ConnectionHandle(id) = self.table.delete(handle)?;
        if let Some(connection) = self.connections.remove(&id) {
            self.take_leave(connection).await;
        }
        Ok(())
    }
}

impl CallState {
    /// Connects to an endpoint of protocol tcp or tls.
    pub(super) async fn connect(&mut self, endpoint: String) -> Answer<Resource<ConnectionHandle>> {
        let Some(peer) = self.stream_peer(&endpoint) else {
            self.note_refusal(&endpoint);
            return Ok(Err(Wire::Denied));
        };
        let Some(id) = self.count_socket()? else { return Ok(Err(Wire::Denied)) };
        if let Err(shut) = self.pass_gate() {
            return Ok(Err(shut));
        }
        let net = Arc::clone(&self.seams.net);
        let mut patience = self.patience(CONNECT_TIME);
        let connecting = async {
            let connected = net.tcp(peer).await;
            self.record.tls_refusal = match &connected {
                Err(NetError::Tls(refusal)) => Some(*refusal),
                Err(_) | Ok(_) => None,
            };
            connected
        };
        match patience.wait(connecting).await {
            Ok(stream) => {
                self.connections.insert(id, Connection::new(endpoint, stream));
                Ok(Ok(self.table.push(ConnectionHandle(id))?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Keeps why an optional endpoint was left out, for the failure that comes of it.
    pub(super) fn note_refusal(&mut self, endpoint: &str) {
        self.record.grant_refusal = self.grants.refused(endpoint).map(str::to_owned);
    }

    fn stream_peer(&self, endpoint: &str) -> Option<Peer> {
        let granted = self.grants.endpoints().get(endpoint)?;
        let tls = match granted.protocol {
            Protocol::Tcp => None,
            // A grant of TLS that says nothing of trust is none.
            Protocol::Tls => Some(granted.tls.clone()?),
            Protocol::Udp | Protocol::Http | Protocol::Https => return None,
        };
        Some(Peer { address: granted.address, host: granted.host.clone(), tls })
    }

    /// Puts secrets where the guest names them, if it may.
    fn message(&mut self, parts: Vec<Part>) -> Answer<Message> {
        // Never grown, for that would leave copies of a secret behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(STREAM_WRITE_BYTES_MAX));
        let (mut shown, mut secrets) = (Vec::new(), Vec::new());
        for part in parts {
            let (part, is_secret) = match part {
                Part::Bytes(part) => (Zeroizing::new(part), false),
                Part::Secret(handle) => match self.use_secret(&handle, Operation::Write, &[])? {
                    Ok(secret) => {
                        let bytes = secret.bytes.clone();
                        secrets.push(secret);
                        (bytes, true)
                    }
                    Err(refused) => {
                        let why = format!("write refused: a secret: {refused:?}");
                        self.keep_log(LogLevel::Debug, &why);
                        return Ok(Err(Wire::Denied));
                    }
                },
            };
            if bytes.len() + part.len() > STREAM_WRITE_BYTES_MAX {
                return Ok(Err(Wire::TooLarge));
            }
            bytes.extend_from_slice(&part);
            if is_secret {
                shown.resize(bytes.len(), b'*');
            } else {
                shown.extend_from_slice(&part);
            }
        }
        Ok(Ok(Message { bytes, shown, secrets }))
    }

    fn keep_what_came(&mut self, id: u32, came: &Came) -> Result<(), Cut> {
        let now_ms = self.seams.clock.now_ms();
        let connection = self.connections.get_mut(&id).ok_or(Cut::Handle)?;
        let (seen, is_settled) = match came {
            Came::Bytes(bytes) if bytes.is_empty() => {
                connection.has_ended = true;
                (connection.stream_redactor.settle(), true)
            }
            Came::Bytes(bytes) => {
                self.record.heard = self.record.heard.saturating_add(1);
                self.spent.stream_bytes_read += bytes.len();
                if self.spent.stream_bytes_read > STREAM_BYTES_READ_MAX {
                    return Err(flood("bytes read", STREAM_BYTES_READ_MAX));
                }
                (connection.stream_redactor.lift(bytes, now_ms), false)
            }
            Came::Pause => (connection.stream_redactor.settle(), true),
        };
        connection.unread.extend_from_slice(&seen);
        let shown = if is_settled { connection.stream_redactor.for_people(seen) } else { seen };
        let endpoint = connection.endpoint.clone();
        self.keep_stream(&endpoint, Direction::Received, &shown);
        Ok(())
    }

    /// Keeps the beginning of what went over the wire at once, so that a long transfer leaves room
    /// for what follows.
    fn keep_stream(&mut self, endpoint: &str, direction: Direction, bytes: &[u8]) {
        // Redacted before it is cut, for the cut may go through a secret.
        let bytes = self.as_evidence(bytes);
        let bytes = bytes.get(..EXCHANGE_BODY_BYTES_MAX).unwrap_or(&bytes);
        if !bytes.is_empty() {
            self.keep_exchange(endpoint, direction, bytes);
        }
    }

    /// Sends what a plugin left to be sent, if it did not withdraw it; through the gate like every
    /// write.
    pub(super) async fn take_leave(&mut self, mut connection: Connection) {
        let Some(data) = connection.farewell.take() else { return };
        if !connection.is_whole || self.pass_gate().is_err() {
            return;
        }
        let written = tokio::select! {
            biased;
            written = connection.stream.write(&data) => written.is_ok(),
            () = self.seams.clock.sleep(FAREWELL_TIME) => false,
        };
        // Nobody is left to tell if this fails; a closed stream ends a session, too.
        if written {
            self.keep_stream(&connection.endpoint, Direction::Farewell, &data);
        }
    }

    fn patience(&self, time: Duration) -> Patience {
        let timeout_ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        Patience::new(&*self.seams.clock, timeout_ms, &self.cancel)
    }
}

impl Connection {
    fn new(endpoint: String, stream: Box<dyn Stream>) -> Self {
        Self {
            endpoint,
            stream,
            farewell: None,
            is_whole: true,
            has_ended: false,
            stream_redactor: StreamRedactor::default(),
            unread: Vec::new(),
        }
    }

    async fn wait(&mut self, clock: &dyn Clock) -> Result<Came, NetError> {
        // More than the guest asks for: an echo shall not come in the pieces of its choice.
        let read = self.stream.read(STREAM_READ_BYTES_MAX);
        let Some(kept_ms) = self.stream_redactor.keeps_for_ms(clock.now_ms()) else {
            return read.await.map(Came::Bytes);
        };
        tokio::select! {
            biased;
            read = read => read.map(Came::Bytes),
            () = clock.sleep(Duration::from_millis(kept_ms)) => Ok(Came::Pause),
        }
    }
}

fn flood(what: &'static str, limit: usize) -> Cut {
    Cut::Flood { what, limit: u64::try_from(limit).unwrap_or(u64::MAX) }
}
