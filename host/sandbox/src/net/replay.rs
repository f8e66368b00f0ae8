//! The network of a transcript: it answers what was answered, after as long as it took, and reaches nothing.
//! Conversations are played endpoint by endpoint, in the order of what was asked. Not here: whether the
//! same was asked; who plays a call keeps its transcript, too, and compares.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use tokio::time::Instant;

use super::{Datagram, HttpConnection, HttpPeer, NetBackend, NetError, Peer, Stream};
use crate::bindings::node_remedy::fence::net::NetError as Wire;
use crate::grants::Grants;
use crate::secret::Secret;
use crate::transcript::{Answered, Doing, Event, Happened, Part, Refusal};
use crate::trust::TlsRefusal;

/// What came so shortly after a plugin stopped waiting is given to it: in a transcript it computes for no
/// time at all, and so stops a little earlier.
const LENIENCE: Duration = Duration::from_millis(25);

/// The network of one call's transcript.
pub struct Replay {
    places: BTreeMap<SocketAddr, Place>,
    credentials: Arc<BTreeMap<String, Secret>>,
}

/// One endpoint's part of it.
type Place = Arc<Mutex<Tape>>;

#[derive(Default)]
struct Tape {
    events: VecDeque<Event>,
    /// The last thing asked: when now, and when then.
    asked: Option<(Instant, u64)>,
}

struct Udp {
    place: Place,
    credentials: Arc<BTreeMap<String, Secret>>,
}

struct Http(Place);

impl Replay {
    /// The network of these events, for a call with these grants ([`Grants::for_replay`]) and secrets.
    pub fn new(events: &[Event], grants: &Grants, credentials: BTreeMap<String, Secret>) -> Self {
        let places = grants.endpoints().iter().map(|(name, endpoint)| {
            let mut own: VecDeque<Event> =
                events.iter().filter(|event| event.endpoint == *name).cloned().collect();
            leave_to_the_host(&mut own);
            let tape = Tape { events: own, asked: None };
            (endpoint.address, Arc::new(Mutex::new(tape)))
        });
        Self { places: places.collect(), credentials: Arc::new(credentials) }
    }

    fn place(&self, to: SocketAddr) -> Result<Place, NetError> {
        self.places.get(&to).cloned().ok_or(NetError::Unreachable)
    }
}

/// What the host itself refused never came to a network, and does not now.
fn leave_to_the_host(events: &mut VecDeque<Event>) {
    let is_denied =
        |event: &Event| matches!(event.what, Happened::Failed(_, Refusal(Wire::Denied)));
    let denied: Vec<_> = events
        .iter()
        .zip(events.iter().skip(1))
        .map(|(event, next)| event.what.is_asked() && is_denied(next))
        .chain([false])
        .collect();
    let mut denied = denied.into_iter();
    events.retain(|event| {
        let was_denied = denied.next().unwrap_or_default();
        !was_denied && !is_denied(event)
    });
}

impl Tape {
    /// Takes up to where the same kind of thing was asked, and remembers the moment.
    fn ask(&mut self) {
        while let Some(event) = self.events.pop_front() {
            if event.what.is_asked() {
                self.asked = Some((Instant::now(), event.at_ms));
                return;
            }
        }
    }

    /// How long until what happened at that moment happens.
    fn due_in(&self, at_ms: u64) -> Duration {
        let now = Instant::now();
        let (then, then_ms) = self.asked.unwrap_or((now, at_ms));
        let due = then + Duration::from_millis(at_ms.saturating_sub(then_ms));
        due.saturating_duration_since(now)
    }

    /// Takes a failure at this, if it is next.
    fn failed(&mut self, doing: Doing) -> Option<NetError> {
        match self.events.front()?.what {
            Happened::Failed(at, refusal) if at == doing => {
                self.events.pop_front();
                Some(refusal.into())
            }
            Happened::Sent(_)
            | Happened::Received(_)
            | Happened::Asked(_)
            | Happened::Answered(_)
            | Happened::Failed(..) => None,
        }
    }
}

fn locked(place: &Place) -> MutexGuard<'_, Tape> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NetBackend for Replay {
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>> {
        let opened = self.place(to).and_then(|place| {
            let failed = locked(&place).failed(Doing::Open);
            let credentials = Arc::clone(&self.credentials);
            failed.map_or(Ok(Box::new(Udp { place, credentials }) as Box<dyn Datagram>), Err)
        });
        Box::pin(async move { opened })
    }

    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>> {
        let connected = self.place(to.address);
        Box::pin(async move { connected.map(|place| Box::new(Http(place)) as Box<_>) })
    }

    fn tcp(&self, _: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>> {
        Box::pin(async { Err(NetError::Refused) })
    }
}

impl Datagram for Udp {
    fn send<'a>(&'a mut self, _: &'a [u8]) -> BoxFuture<'a, Result<(), NetError>> {
        let mut tape = locked(&self.place);
        tape.ask();
        let failed = tape.failed(Doing::Send);
        Box::pin(async move { failed.map_or(Ok(()), Err) })
    }

    fn receive(&mut self, timeout: Duration) -> BoxFuture<'_, Result<Option<Vec<u8>>, NetError>> {
        Box::pin(async move {
            let next = {
                let tape = locked(&self.place);
                let next = tape.events.front().filter(|event| !event.what.is_asked());
                next.map(|event| tape.due_in(event.at_ms))
            };
            let Some(due_in) = next.filter(|due_in| *due_in <= timeout + LENIENCE) else {
                tokio::time::sleep(timeout).await;
                return Ok(None);
            };
            tokio::time::sleep(due_in.min(timeout)).await;
            match locked(&self.place).events.pop_front().map(|event| event.what) {
                Some(Happened::Received(parts)) => Ok(Some(Part::whole(&parts, &self.credentials))),
                Some(Happened::Failed(_, refusal)) => Err(refusal.into()),
                Some(Happened::Sent(_) | Happened::Asked(_) | Happened::Answered(_)) | None => {
                    Ok(None)
                }
            }
        })
    }
}

impl HttpConnection for Http {
    fn exchange_up_to(
        self: Box<Self>,
        _: Request<Vec<u8>>,
        _: usize,
    ) -> BoxFuture<'static, Result<Response<Vec<u8>>, NetError>> {
        Box::pin(async move {
            let next = {
                let mut tape = locked(&self.0);
                tape.ask();
                let is_answer = tape.events.front().is_some_and(|event| !event.what.is_asked());
                let next = if is_answer { tape.events.pop_front() } else { None };
                next.map(|event| (tape.due_in(event.at_ms), event.what))
            };
            let Some((due_in, what)) = next else { return Err(NetError::Refused) };
            tokio::time::sleep(due_in).await;
            match what {
                Happened::Answered(answered) => Ok(response(answered)),
                Happened::Failed(_, refusal) => Err(refusal.into()),
                Happened::Sent(_) | Happened::Received(_) | Happened::Asked(_) => {
                    Err(NetError::Refused)
                }
            }
        })
    }
}

/// The response of a transcript. What fits in no header was in none.
fn response(Answered { status, headers, body }: Answered) -> Response<Vec<u8>> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

impl From<Refusal> for NetError {
    fn from(Refusal(refusal): Refusal) -> Self {
        match refusal {
            Wire::Unreachable => Self::Unreachable,
            Wire::Refused => Self::Refused,
            Wire::Closed => Self::Closed,
            Wire::Timeout => Self::Timeout,
            Wire::TooLarge => Self::TooLarge,
            // Which refusal it was, the plugin was not told.
            Wire::Tls => Self::Tls(TlsRefusal::Handshake),
            Wire::Denied | Wire::Cancelled | Wire::Login | Wire::NotLeader | Wire::Other => {
                Self::Other
            }
        }
    }
}
