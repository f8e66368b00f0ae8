//! The two traits a plugin is written against: [`FenceMethod`], which it implements, and [`Host`],
//! which it is given. `Host` has two implementations: the component's imports, and the in-memory
//! host of native tests.

use std::fmt;

use crate::{Failure, FailureKind, Outcome, PlugInfo, PlugsRequest, Request};

/// One fence method. A fresh value is made for each call, so it keeps nothing between calls.
pub trait FenceMethod: Default {
    /// The manifest, as JSON.
    const MANIFEST: &'static str;

    /// Carries out one request.
    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure>;

    /// Lists the plugs of the device. Methods whose device is the node itself keep this default.
    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let _ = (request, host);
        Err(Failure::new(FailureKind::Unsupported, "this device has no list of plugs"))
    }
}

/// Everything a plugin can reach. Endpoints and credentials are names of the manifest's asks.
pub trait Host {
    /// A secret in the host's keeping.
    type Secret: Secret<Key = Self::Key>;
    /// A key derived from one.
    type Key: Key;
    /// A UDP conversation with one endpoint.
    type Datagram: Datagram;
    /// A stream to one endpoint.
    type Connection: Connection<Secret = Self::Secret>;

    /// Opens a UDP conversation.
    fn udp(&self, endpoint: &str) -> Result<Self::Datagram, NetError>;
    /// One HTTP exchange; the host adds the endpoint's authentication and follows no redirects.
    fn fetch(&self, endpoint: &str, request: &HttpRequest) -> Result<HttpResponse, NetError>;
    /// What the endpoint's login shows of its answer: a JSON object of the pointers that the manifest
    /// names.
    fn login_data(&self, endpoint: &str) -> Result<String, NetError>;
    /// Opens a stream, inside TLS where the endpoint's protocol is `tls`; the host ends that.
    fn tcp(&self, endpoint: &str) -> Result<Self::Connection, NetError>;
    /// Opens a credential.
    fn open(&self, credential: &str) -> Result<Self::Secret, Refused>;

    /// One line for the log.
    fn log(&self, level: Level, message: &str);
    /// The commit point: succeeds only while the intent is recorded and the lease holds. The error
    /// is the host's reason.
    fn begin_effect(&self, note: &str) -> Result<(), String>;
    /// Stores what a later attempt at this operation may resume from. No secrets.
    fn checkpoint(&self, state: &[u8]) -> Result<(), String>;
    /// Has the call been cancelled?
    fn cancelled(&self) -> bool;
    /// Waits; false if cancelled meanwhile.
    fn sleep(&self, ms: u32) -> bool;
    /// Milliseconds since the call began.
    fn elapsed_ms(&self) -> u64;
    /// Random bytes.
    fn random(&self, length: u32) -> Vec<u8>;
}

/// Operations with a secret, never its bytes (but see [`Secret::reveal`]).
pub trait Secret {
    /// What [`Secret::session_key`] makes.
    type Key: Key;
    /// The user name that goes with it.
    fn identity(&self) -> Option<String>;
    /// HMAC with the secret as key.
    fn mac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, Refused>;
    /// The same HMAC, kept by the host as a key.
    fn session_key(&self, hash: Hash, data: &[u8]) -> Result<Self::Key, Refused>;
    /// The SNMPv3 key that the secret as a password makes for one engine (RFC 3414, 2.6), extended
    /// where it is too short and cut to `length` bytes.
    fn usm_key(
        &self,
        hash: Hash,
        engine_id: &[u8],
        extension: Extension,
        length: u32,
    ) -> Result<Self::Key, Refused>;
    /// The bytes themselves; only where an admin granted it.
    fn reveal(&self) -> Result<Vec<u8>, Refused>;
}

/// Operations with a key that the host keeps.
pub trait Key: Sized {
    /// HMAC, cut to `length` bytes.
    fn mac(&self, hash: Hash, data: &[u8], length: u32) -> Result<Vec<u8>, Refused>;
    /// HMAC, cut to `length` bytes and kept by the host as another key.
    fn derive(&self, hash: Hash, data: &[u8], length: u32) -> Result<Self, Refused>;
    /// Encrypts; where the cipher wants whole blocks, padding is the caller's. With
    /// [`Cipher::DesCbc`] and an SNMPv3 key of 16 bytes, `iv` is the salt (RFC 3414, 8.1.1.1).
    fn encrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused>;
    /// Decrypts what [`Key::encrypt`] made.
    fn decrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused>;
}

/// A UDP conversation with one endpoint. Dropping it ends it.
pub trait Datagram {
    /// Sends one datagram.
    fn send(&self, data: &[u8]) -> Result<(), NetError>;
    /// Waits for one; `None` when the time has passed.
    fn receive(&self, timeout_ms: u32) -> Result<Option<Vec<u8>>, NetError>;
    /// What the host sends if this conversation ends, for whatever reason, before it was withdrawn
    /// by an empty farewell.
    fn farewell(&self, data: &[u8]);
}

/// A stream to one endpoint. Dropping it closes it.
pub trait Connection {
    /// What [`Part::Secret`] names.
    type Secret;
    /// Sends all parts as one piece.
    fn write(&self, parts: &[Part<'_, Self::Secret>]) -> Result<(), NetError>;
    /// Waits for some bytes, at most `max`; none at all where the device closed. Where the time has
    /// passed, [`NetError::Timeout`]. Secrets in them are blotted out with `*`.
    fn read(&self, max: u32, timeout_ms: u32) -> Result<Vec<u8>, NetError>;
    /// What the host sends when this connection ends, for whatever reason, unless it was withdrawn
    /// by an empty farewell.
    fn farewell(&self, data: &[u8]);
}

/// A piece of what goes over a [`Connection`].
#[derive(Debug)]
pub enum Part<'a, S> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A secret's bytes, which the host puts in; the credential must be asked for with `write`.
    Secret(&'a S),
}

/// Hash functions of [`Secret`] and [`Key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// How [`Secret::usm_key`] makes a key longer than the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Not at all: a key that would be too short is refused.
    None,
    /// Blumenthal's, which net-snmp and most devices have.
    Blumenthal,
    /// Reeder's, which Cisco has.
    Reeder,
}

/// Ciphers of [`Key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES in cipher block chaining.
    AesCbc,
    /// AES in 128-bit cipher feedback.
    AesCfb128,
    /// DES in cipher block chaining.
    DesCbc,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the author of the plugin.
    Debug,
    /// For the operator.
    Info,
    /// For the operator, soon.
    Warn,
}

/// An HTTP request, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, beginning with `/`; the authority is the endpoint's.
    pub path: String,
    /// Without authentication, cookies and what frames the body: the host refuses those.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long to wait for the whole answer.
    pub timeout_ms: u32,
}

/// An HTTP response, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Headers as they came, without cookies and challenges: those are the host's.
    pub headers: Vec<(String, String)>,
    /// The body, capped by the host.
    pub body: Vec<u8>,
}

/// Why the network did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetError {
    /// Not granted.
    Denied,
    /// No way to the device.
    Unreachable,
    /// The device refuses the port.
    Refused,
    /// The device closed the connection.
    Closed,
    /// No answer in time.
    Timeout,
    /// More bytes than allowed.
    TooLarge,
    /// The call was cancelled.
    Cancelled,
    /// TLS failed.
    Tls,
    /// The endpoint's login failed.
    Login,
    /// This replica may no longer send to devices.
    NotLeader,
    /// Anything else.
    Other,
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "the host did not grant it",
            Self::Unreachable => "the network says that the device is unreachable",
            Self::Refused => "the device refuses the port",
            Self::Closed => "the device closed the connection",
            Self::Timeout => "the time allowed for it has passed",
            Self::TooLarge => "the message is larger than the host allows",
            Self::Cancelled => "the call was cancelled",
            Self::Tls => "TLS failed",
            Self::Login => "the login failed",
            Self::NotLeader => "this replica may no longer send to devices",
            Self::Other => "the network failed",
        })
    }
}

impl NetError {
    /// The failure this is where nothing more is known; `what` says what could not be done.
    pub fn into_failure(self, what: &str) -> Failure {
        let (kind, retryable) = match self {
            Self::Denied => (FailureKind::Denied, false),
            Self::Unreachable | Self::Refused => (FailureKind::Unreachable, true),
            Self::Closed | Self::Other => (FailureKind::Other, true),
            Self::Timeout => (FailureKind::Timeout, true),
            Self::TooLarge => (FailureKind::Protocol, false),
            Self::Cancelled | Self::NotLeader => (FailureKind::Cancelled, true),
            Self::Tls | Self::Login => (FailureKind::Unauthenticated, false),
        };
        let failure = Failure::new(kind, format!("failed to {what}: {self}"));
        if retryable { failure.retryable() } else { failure }
    }
}

/// Why the host did not use a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The operation was not asked for, or not granted.
    NotGranted,
    /// No such credential is configured.
    NoSuchCredential,
    /// Too many operations in one call.
    OverBudget,
    /// The data does not fit the operation.
    BadLength,
    /// The host's own words.
    Other(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotGranted => "the operation was not granted",
            Self::NoSuchCredential => "no such credential is configured",
            Self::OverBudget => "the call's budget of operations is spent",
            Self::BadLength => "the data does not fit the operation",
            Self::Other(reason) => reason,
        })
    }
}
