//! What a plugin asked of the network in one call and what it was answered, whole, as the plugin saw it:
//! what the host adds to prove who asks is not in it, and where a secret stood in a datagram stands its
//! credential's name. Enough to play the call again with no device ([`crate::net::Replay`]). Not here:
//! evidence for people, which is short ([`crate::exchange`]), and streams.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bindings::node_remedy::fence::net::NetError;
use crate::limits::TRANSCRIPT_BYTES_MAX;
use crate::secret::Secret;
use crate::types::Fields;
use crate::words::{SECRET_BYTES_MIN, find};

/// One thing that happened between a plugin and an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, counted from the call's start.
    pub at_ms: u64,
    /// The plugin's name for the other side.
    pub endpoint: String,
    /// What.
    pub what: Happened,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// The plugin sent a datagram.
    Sent(Vec<Part>),
    /// It received one.
    Received(Vec<Part>),
    /// It asked over HTTP.
    Asked(RecordedRequest),
    /// It was answered.
    Answered(Answered),
    /// It was not served.
    Failed(Doing, Refusal),
}

/// A piece of a datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The secret of this credential, which the plugin was allowed to see.
    Secret(String),
}

/// An HTTP request as the plugin wrote it, known secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The plugin's own headers.
    pub headers: Fields,
    /// The body.
    pub body: Vec<u8>,
}

/// An HTTP response as the plugin saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status code.
    pub status: u16,
    /// The headers, without the host's own.
    pub headers: Fields,
    /// The body.
    pub body: Vec<u8>,
}

/// What the plugin was doing when it was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Opening a conversation.
    Open,
    /// Sending a datagram.
    Send,
    /// Waiting for one.
    Receive,
    /// Asking over HTTP.
    Fetch,
}

/// Why it was not served: the contract's `net-error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(pub(crate) NetError);

/// What is kept of one call, up to the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Events beyond what is kept.
    pub dropped: u32,
    bytes: usize,
}

impl Transcript {
    pub(crate) fn keep(&mut self, event: Event) {
        let bytes = event.what.bytes();
        if self.bytes + bytes > TRANSCRIPT_BYTES_MAX {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.bytes += bytes;
        self.events.push(event);
    }
}

impl Happened {
    /// Whether it is the plugin's doing, and not the device's.
    pub fn is_asked(&self) -> bool {
        match self {
            Self::Sent(_) | Self::Asked(_) => true,
            Self::Received(_) | Self::Answered(_) | Self::Failed(..) => false,
        }
    }

    /// About what it takes to keep it.
    fn bytes(&self) -> usize {
        /// An event without anything in it.
        const FRAME: usize = 64;
        let fields = |fields: &Fields| -> usize {
            fields.iter().map(|(name, value)| name.len() + value.len()).sum()
        };
        FRAME
            + match self {
                Self::Sent(parts) | Self::Received(parts) => parts.iter().map(Part::bytes).sum(),
                Self::Asked(asked) => asked.path.len() + fields(&asked.headers) + asked.body.len(),
                Self::Answered(answered) => fields(&answered.headers) + answered.body.len(),
                Self::Failed(..) => 0,
            }
    }
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Secret(name) => name.len(),
        }
    }

    /// A datagram with every secret's name in its place.
    pub fn of(data: &[u8], credentials: &BTreeMap<String, Arc<Secret>>) -> Vec<Self> {
        let is_long =
            |(_, secret): &(&String, &Arc<Secret>)| secret.bytes.len() >= SECRET_BYTES_MIN;
        let first = credentials.iter().filter(is_long).filter_map(|(name, secret)| {
            find(data, &secret.bytes).map(|at| (at, secret.bytes.len(), name))
        });
        // The longest first where two begin alike.
        let first = first.min_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)));
        let Some((at, length, name)) = first else {
            return if data.is_empty() { Vec::new() } else { vec![Self::Bytes(data.to_vec())] };
        };
        let (before, rest) = data.split_at_checked(at).unwrap_or((data, &[]));
        let mut parts = Self::of(before, &BTreeMap::new());
        parts.push(Self::Secret(name.clone()));
        parts.extend(Self::of(rest.get(length..).unwrap_or_default(), credentials));
        parts
    }

    /// The datagram again, with these secrets.
    pub(crate) fn whole(parts: &[Self], credentials: &BTreeMap<String, Secret>) -> Vec<u8> {
        let bytes = parts.iter().map(|part| match part {
            Self::Bytes(bytes) => bytes.as_slice(),
            Self::Secret(name) => credentials.get(name).map_or(&[][..], |secret| &secret.bytes),
        });
        bytes.collect::<Vec<_>>().concat()
    }
}

impl Refusal {
    /// The contract's words for all of them.
    const WORDS: [(NetError, &'static str); 11] = [
        (NetError::Denied, "denied"),
        (NetError::Unreachable, "unreachable"),
        (NetError::Refused, "refused"),
        (NetError::Closed, "closed"),
        (NetError::Timeout, "timeout"),
        (NetError::TooLarge, "too-large"),
        (NetError::Cancelled, "cancelled"),
        (NetError::Tls, "tls"),
        (NetError::Login, "login"),
        (NetError::NotLeader, "not-leader"),
        (NetError::Other, "other"),
    ];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(error, _)| *error == self.0);
        found.map_or("other", |(_, word)| word)
    }

    /// The refusal of this word.
    pub fn parse(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(error, _)| Self(*error))
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn secrets(all: &[(&str, &str)]) -> BTreeMap<String, Secret> {
        let secret = |bytes: &str| Secret {
            identity: None,
            bytes: Zeroizing::new(bytes.as_bytes().to_vec()),
        };
        all.iter().map(|(name, bytes)| ((*name).to_owned(), secret(bytes))).collect()
    }

    /// A community string goes over the wire, and not into a file.
    #[test]
    fn a_secret_in_a_datagram_is_kept_by_name_and_comes_back() {
        let ours =
            secrets(&[("community", "hush-hush"), ("short", "ab"), ("longer", "hush-hush-hush")]);
        let arcs: BTreeMap<_, _> =
            ours.iter().map(|(name, one)| (name.clone(), Arc::new(one.clone()))).collect();
        let data = b"v2c hush-hush get ab, hush-hush-hush end hush-hush";
        let parts = Part::of(data, &arcs);
        let bytes = |bytes: &[u8]| Part::Bytes(bytes.to_vec());
        let named = |name: &str| Part::Secret(name.to_owned());
        let wanted = [
            bytes(b"v2c "),
            named("community"),
            bytes(b" get ab, "),
            named("longer"),
            bytes(b" end "),
            named("community"),
        ];
        assert_eq!(parts, wanted);
        assert_eq!(Part::whole(&parts, &ours), data);
        let others = secrets(&[("community", "placeholder"), ("longer", "x")]);
        assert_eq!(Part::whole(&parts, &others), b"v2c placeholder get ab, x end placeholder");
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let event = |bytes: usize| Event {
            at_ms: 0,
            endpoint: "bmc".to_owned(),
            what: Happened::Sent(vec![Part::Bytes(vec![0; bytes])]),
        };
        let mut transcript = Transcript::default();
        transcript.keep(event(TRANSCRIPT_BYTES_MAX - 63));
        assert_eq!((transcript.events.len(), transcript.dropped), (0, 1), "its frame is beyond");
        transcript.keep(event(TRANSCRIPT_BYTES_MAX - 64));
        transcript.keep(event(0));
        assert_eq!((transcript.events.len(), transcript.dropped), (1, 2));
    }

    #[test]
    fn every_refusal_has_a_word_of_its_own() {
        for (_, word) in Refusal::WORDS {
            assert_eq!(Refusal::parse(word).map(Refusal::as_str), Some(word));
        }
        assert_eq!(Refusal::parse("broken"), None);
    }
}
