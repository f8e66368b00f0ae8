//! The host's side of interface `net`. An endpoint is the name of a grant; the address behind it
//! was decided before the call ([`crate::grants`]) and is the only one dialled. Every send passes
//! the gate first. Not here: how bytes travel ([`backend`]).

use std::time::Duration;

use node_remedy_decide::bug::{Bug, guard};
use wasmtime::component::Resource;

use crate::bindings::node_remedy::fence::net::{
    Host, HostDatagram, HttpRequest, HttpResponse, NetError as Wire,
};
use crate::handles::{ConnectionHandle, DatagramHandle};
use crate::limits::{DATAGRAM_BYTES_MAX, FAREWELL_BYTES_MAX, SOCKETS_MAX, SOCKETS_OPENED_MAX};
use crate::manifest::Protocol;
use crate::net::patience::Unanswered;
use crate::net::socket::{Answer, Socket};
use crate::state::CallState;
use crate::transcript::Doing;
use crate::types::{Cut, Direction};

pub(crate) mod auth;
mod backend;
mod connection;
mod fetch;
pub(crate) mod headers;
mod memory;
mod patience;
mod replay;
pub(crate) mod session;
pub mod session_store;
pub mod socket;
mod sockets;
mod stream_redactor;

pub use backend::{Datagram, HttpConnection, HttpPeer, NetBackend, NetError, Peer, Stream};
pub use memory::{Conversation, Fabric, HttpReply, MemoryNet, StreamEvent};
pub use replay::Replay;
pub use session_store::Sessions;
pub(crate) use socket::Connection;
pub use sockets::Sockets;

impl Host for CallState {
    async fn udp(&mut self, endpoint: String) -> Answer<Resource<DatagramHandle>> {
        self.count_call()?;
        let granted = self.grants.endpoints().get(&endpoint);
        let Some(granted) = granted.filter(|granted| granted.protocol == Protocol::Udp) else {
            self.note_refusal(&endpoint);
            self.transcribe_failed(&endpoint, Doing::Open, Wire::Denied);
            return Ok(Err(Wire::Denied));
        };
        let address = granted.address;
        let Some(id) = self.count_socket()? else { return Ok(Err(Wire::Denied)) };
        match self.seams.net.udp(address).await {
            Ok(datagram) => {
                self.sockets.insert(id, Socket { endpoint, datagram, farewell: None });
                Ok(Ok(self.table.push(DatagramHandle(id))?))
            }
            Err(error) => {
                self.transcribe_failed(&endpoint, Doing::Open, error.into());
                Ok(Err(error.into()))
            }
        }
    }

    async fn fetch(&mut self, endpoint: String, request: HttpRequest) -> Answer<HttpResponse> {
        self.count_call()?;
        self.transcribe_asked(&endpoint, &request);
        let answer = self.fetch_from(&endpoint, request).await?;
        self.transcribe_answered(&endpoint, &answer);
        Ok(answer)
    }

    async fn tcp(&mut self, endpoint: String) -> Answer<Resource<ConnectionHandle>> {
        self.count_call()?;
        self.connect(endpoint).await
    }

    async fn login_data(&mut self, endpoint: String) -> Answer<String> {
        self.count_call()?;
        Unanswered::end(self.login_data_of(&endpoint).await)
    }
}

impl HostDatagram for CallState {
    async fn send(&mut self, handle: Resource<DatagramHandle>, data: Vec<u8>) -> Answer<()> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        if data.len() > DATAGRAM_BYTES_MAX {
            return Ok(Err(Wire::TooLarge));
        }
        let limit = self.grants.budget().datagrams;
        if guard(Bug::DatagramsUncounted, self.spent.datagrams_sent >= limit) {
            let limit = limit.into();
            return Err(Cut::Flood { what: "datagrams", limit }.into());
        }
        if let Err(shut) = self.pass_gate() {
            return Ok(Err(shut));
        }
        self.spent.datagrams_sent += 1;
        let socket = self.sockets.get_mut(&id).ok_or(Cut::Handle)?;
        let sent = socket.datagram.send(&data).await;
        let endpoint = socket.endpoint.clone();
        self.keep_exchange(&endpoint, Direction::Sent, &data);
        self.transcribe_sent(&endpoint, &data);
        let sent = sent.map_err(Wire::from);
        if let Err(error) = sent {
            self.transcribe_failed(&endpoint, Doing::Send, error);
        }
        Ok(sent)
    }

    async fn receive(
        &mut self,
        handle: Resource<DatagramHandle>,
        timeout_ms: u32,
    ) -> Answer<Option<Vec<u8>>> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        let timeout = Duration::from_millis(timeout_ms.into());
        // A wait that is going on ends when the call is cancelled; one that begins later is how a
        // plugin hears that its session is closed.
        let closing = self.cancel.is_asked();
        let cancel = self.cancel.clone();
        let socket = self.sockets.get_mut(&id).ok_or(Cut::Handle)?;
        let received = tokio::select! {
            biased;
            received = socket.datagram.receive(timeout) => received,
            () = cancel.asked(), if !closing => return Ok(Err(Wire::Cancelled)),
        };
        let endpoint = socket.endpoint.clone();
        if let Ok(Some(data)) = &received {
            self.record.heard = self.record.heard.saturating_add(1);
            self.keep_exchange(&endpoint, Direction::Received, data);
            self.transcribe_received(&endpoint, data);
        }
        let received = received.map_err(Wire::from);
        if let Err(error) = &received {
            self.transcribe_failed(&endpoint, Doing::Receive, *error);
        }
        Ok(received)
    }

    async fn farewell(
        &mut self,
        handle: Resource<DatagramHandle>,
        data: Vec<u8>,
    ) -> wasmtime::Result<()> {
        self.count_call()?;
        let id = self.table.get(&handle)?.0;
        if data.len() > FAREWELL_BYTES_MAX {
            let limit = u64::try_from(FAREWELL_BYTES_MAX).unwrap_or(u64::MAX);
            return Err(Cut::Flood { what: "bytes of farewell", limit }.into());
        }
        let socket = self.sockets.get_mut(&id).ok_or(Cut::Handle)?;
        socket.farewell = Some(data).filter(|data| !data.is_empty());
        Ok(())
    }

    async fn drop(&mut self, handle: Resource<DatagramHandle>) -> wasmtime::Result<()> {
        let DatagramHandle(id) = self.table.delete(handle)?;
        if let Some(socket) = self.sockets.remove(&id) {
            self.say_farewell(socket).await;
        }
        Ok(())
    }
}

impl CallState {
    /// Closes what a plugin that is gone left open.
    pub(crate) async fn say_farewells(&mut self) {
        for socket in std::mem::take(&mut self.sockets).into_values() {
            self.say_farewell(socket).await;
        }
        for connection in std::mem::take(&mut self.connections).into_values() {
            self.take_leave(connection).await;
        }
    }

    /// The number of another socket or connection; none where there are enough of them open.
    fn count_socket(&mut self) -> Result<Option<u32>, Cut> {
        if self.spent.sockets_opened >= SOCKETS_OPENED_MAX {
            return Err(Cut::Flood { what: "sockets", limit: SOCKETS_OPENED_MAX.into() });
        }
        if self.sockets.len() + self.connections.len() >= SOCKETS_MAX {
            return Ok(None);
        }
        self.spent.sockets_opened += 1;
        Ok(Some(self.spent.sockets_opened))
    }

    fn pass_gate(&self) -> Result<(), Wire> {
        let is_shut = self.seams.gate.check().is_err();
        if guard(Bug::GateNotAsked, is_shut) { Err(Wire::NotLeader) } else { Ok(()) }
    }

    /// Sends what a plugin left to be sent, if it did not withdraw it. Through the gate like every
    /// send: a process that may no longer act leaves its sessions to expire.
    async fn say_farewell(&mut self, mut socket: Socket) {
        let Some(data) = socket.farewell.take() else { return };
        if self.pass_gate().is_err() || self.spent.datagrams_sent >= self.grants.budget().datagrams
        {
            return;
        }
        self.spent.datagrams_sent += 1;
        // Nobody is left to tell if this fails; the session then expires on the device.
        if socket.datagram.send(&data).await.is_ok() {
            self.keep_exchange(&socket.endpoint, Direction::Farewell, &data);
        }
    }
}

impl From<NetError> for Wire {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Unreachable => Self::Unreachable,
            NetError::Refused => Self::Refused,
            NetError::Closed => Self::Closed,
            NetError::Timeout => Self::Timeout,
            NetError::TooLarge => Self::TooLarge,
            NetError::Tls(_) => Self::Tls,
            NetError::Other => Self::Other,
        }
    }
}
