//! The two traits a plugin is written against: [`FenceMethod`], which it implements, and [`Host`],
//! which it is given. `Host` has two implementations: the component's imports, and the in-memory
//! host of native tests.

use std::fmt;

use crate::{Failure, FailureKind, Outcome, PlugInfo, PlugsRequest, Request};

/// One fence method. A fresh value is made for each call, so it keeps nothing between calls.
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Action, Failure, FenceMethod, Host, Level, Outcome, PlugState, Request};
///
/// #[derive(Default)]
/// struct Blind;
///
/// impl FenceMethod for Blind {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "blind" }"#;
///
///     fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
///         host.log(Level::Info, &format!("asked about {:?}", request.plug));
///         // What is not known is not off.
///         Ok(Outcome::new(PlugState::Unknown))
///     }
/// }
///
/// let outcome = Blind.run(&Request::new(Action::Status, 30_000), &TestHost::new(30_000));
/// assert_eq!(outcome.map(|outcome| outcome.state), Ok(PlugState::Unknown));
/// ```
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
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Failure, FailureKind, Host};
///
/// /// What comes before the first message that may change the device.
/// fn commit(host: &impl Host) -> Result<(), Failure> {
///     host.begin_effect("off").map_err(|reason| {
///         Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
///     })
/// }
///
/// assert!(commit(&TestHost::new(30_000)).is_ok());
/// assert!(commit(&TestHost::new(30_000).refuse_effect("the lease is lost")).is_err());
/// ```
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
    /// Stores what a later attempt at this operation may resume from. No secrets: what holds one is not stored, and
    /// nobody is told.
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
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Hash, Host, Key, Refused, Secret};
///
/// fn sign(host: &impl Host, question: &[u8]) -> Result<Vec<u8>, Refused> {
///     let account = host.open("account")?;
///     account.session_key(Hash::Sha256, b"salt")?.mac(Hash::Sha256, question, 16)
/// }
///
/// let host = TestHost::new(30_000).credential("account", Some("admin"), b"secret");
/// assert_eq!(sign(&host, b"off").map(|code| code.len()), Ok(16));
/// assert_eq!(host.open("account")?.identity().as_deref(), Some("admin"));
/// assert_eq!(host.open("account")?.reveal(), Err(Refused::NotGranted));
/// # Ok::<(), Refused>(())
/// ```
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
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Cipher, Hash, Host, Key, Refused, Secret};
///
/// let host = TestHost::new(30_000).credential("account", None, b"secret");
/// let session = host.open("account")?.session_key(Hash::Sha256, b"salt")?;
/// let cipher = session.derive(Hash::Sha256, b"encryption", 16)?;
/// let sealed = cipher.encrypt(Cipher::AesCbc, &[0; 16], b"exactly a block!")?;
/// assert_ne!(sealed, b"exactly a block!");
/// assert_eq!(cipher.decrypt(Cipher::AesCbc, &[0; 16], &sealed)?, b"exactly a block!");
/// # Ok::<(), Refused>(())
/// ```
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
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Datagram, Host, NetError};
///
/// let echo = |_: u64, _: u64, data: &[u8]| vec![(20, data.to_vec())];
/// let host = TestHost::new(30_000).device("lamp", Rc::new(RefCell::new(echo)));
/// let lamp = host.udp("lamp")?;
/// lamp.send(b"status")?;
/// assert_eq!(lamp.receive(10)?, None, "it takes 20 ms");
/// assert_eq!(lamp.receive(500)?.as_deref(), Some(b"status".as_slice()));
/// # Ok::<(), NetError>(())
/// ```
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
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use node_remedy_sdk::testing::{StreamEvent, TestHost};
/// use node_remedy_sdk::{Connection, Host, NetError, Part};
///
/// let shell = |_: u64, _: u64, data: &[u8]| match data {
///     b"login secret\n" => vec![(20, StreamEvent::Bytes(b"welcome".to_vec()))],
///     _ => Vec::new(),
/// };
/// let host = TestHost::new(30_000)
///     .stream("shell", Rc::new(RefCell::new(shell)))
///     .credential("account", None, b"secret");
/// let shell = host.tcp("shell")?;
/// let password = host.open("account").map_err(|_| NetError::Denied)?;
/// shell.write(&[Part::Bytes(b"login "), Part::Secret(&password), Part::Bytes(b"\n")])?;
/// assert_eq!(shell.read(100, 500)?, b"welcome");
/// # Ok::<(), NetError>(())
/// ```
pub trait Connection {
    /// What [`Part::Secret`] names.
    type Secret;
    /// Sends all parts as one piece.
    fn write(&self, parts: &[Part<'_, Self::Secret>]) -> Result<(), NetError>;
    /// Waits for some bytes, at most `max`; none at all where the device closed. Where the time has
    /// passed, [`NetError::Timeout`]. Secrets in them are redacted with `*`.
    fn read(&self, max: u32, timeout_ms: u32) -> Result<Vec<u8>, NetError>;
    /// What the host sends when this connection ends, for whatever reason, unless it was withdrawn
    /// by an empty farewell.
    fn farewell(&self, data: &[u8]);
}

/// A piece of what goes over a [`Connection`].
///
/// ```
/// use node_remedy_sdk::Part;
///
/// /// The words of a login, with the secret as a handle.
/// fn login<S>(password: &S) -> [Part<'_, S>; 2] {
///     [Part::Bytes(b"login "), Part::Secret(password)]
/// }
///
/// let stands_for_a_handle = ();
/// assert_eq!(login(&stands_for_a_handle).len(), 2);
/// ```
#[derive(Debug)]
pub enum Part<'a, S> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A secret's bytes, which the host puts in; the credential must be asked for with `write`.
    Secret(&'a S),
}

/// Hash functions of [`Secret`] and [`Key`].
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Hash, Host, Refused, Secret};
///
/// let host = TestHost::new(30_000).credential("account", None, b"secret");
/// let account = host.open("account")?;
/// assert_eq!(account.mac(Hash::Sha1, b"question")?.len(), 20);
/// assert_eq!(account.mac(Hash::Sha512, b"question")?.len(), 64);
/// # Ok::<(), Refused>(())
/// ```
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
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Extension, Hash, Host, Refused, Secret};
///
/// let host = TestHost::new(30_000).credential("privacy", None, b"maplesyrup");
/// let privacy = host.open("privacy")?;
/// let engine = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
/// // AES-256 wants 32 bytes, of which SHA-1 makes 20.
/// assert!(privacy.usm_key(Hash::Sha1, &engine, Extension::Blumenthal, 32).is_ok());
/// assert!(privacy.usm_key(Hash::Sha1, &engine, Extension::None, 32).is_err());
/// # Ok::<(), Refused>(())
/// ```
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
///
/// ```
/// use node_remedy_sdk::Cipher;
///
/// /// The cipher of a cipher suite's number (IPMI v2.0, 22.15.2).
/// fn of(suite: u8) -> Option<Cipher> {
///     matches!(suite, 3 | 17).then_some(Cipher::AesCbc)
/// }
///
/// assert_eq!(of(17), Some(Cipher::AesCbc));
/// assert_eq!(of(0), None);
/// ```
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
///
/// ```
/// use node_remedy_sdk::testing::{TestHost, Trace};
/// use node_remedy_sdk::{Host, Level};
///
/// let host = TestHost::new(30_000);
/// host.log(Level::Warn, "the board is slow today");
/// assert_eq!(host.trace(), [Trace::Logged("the board is slow today".to_owned())]);
/// ```
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
///
/// ```
/// use node_remedy_sdk::HttpRequest;
///
/// let request = HttpRequest {
///     method: "PUT".to_owned(),
///     path: "/relays/2".to_owned(),
///     headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
///     body: br#"{"on": false}"#.to_vec(),
///     timeout_ms: 5_000,
/// };
/// assert!(request.path.starts_with('/'));
/// ```
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
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Host, HttpRequest, HttpResponse, NetError};
///
/// let missing = HttpResponse { status: 404, headers: Vec::new(), body: Vec::new() };
/// let answer = missing.clone();
/// let board = move |_: u64, _: &HttpRequest| (20, answer.clone());
/// let host = TestHost::new(30_000).web("board", Rc::new(RefCell::new(board)));
/// let request = HttpRequest {
///     method: "GET".to_owned(),
///     path: "/".to_owned(),
///     headers: Vec::new(),
///     body: Vec::new(),
///     timeout_ms: 5_000,
/// };
/// assert_eq!(host.fetch("board", &request)?, missing, "a refusal is an answer");
/// # Ok::<(), NetError>(())
/// ```
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
///
/// ```
/// use node_remedy_sdk::{FailureKind, NetError};
///
/// let failure = NetError::Refused.into_failure("ask the board");
/// assert_eq!(failure.kind, FailureKind::Unreachable);
/// assert!(failure.retryable);
/// assert_eq!(failure.detail, "failed to ask the board: the device refuses the port");
/// ```
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
///
/// ```
/// use node_remedy_sdk::testing::TestHost;
/// use node_remedy_sdk::{Host, Refused};
///
/// let refused = TestHost::new(30_000).open("account").err();
/// assert_eq!(refused, Some(Refused::NoSuchCredential));
/// assert_eq!(Refused::BadLength.to_string(), "the data does not fit the operation");
/// ```
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
