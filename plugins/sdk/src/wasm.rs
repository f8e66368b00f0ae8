//! The component side: [`Host`] over the imports, the export over [`FenceMethod`]. Nothing but
//! translation happens here. Public only for the macro.

use std::marker::PhantomData;

use bindings::exports::node_remedy::fence::method::Guest;
use bindings::node_remedy::fence::{credentials, net, op, types};

use crate::{
    Action, Cipher, Connection, Datagram, Extension, Failure, FailureKind, FenceMethod, Hash, Host,
    HttpRequest, HttpResponse, Key, Level, NetError, Outcome, Part, PlugInfo, PlugState,
    PlugsRequest, Refused, Request, Secret,
};

/// What wit-bindgen makes of the contract.
#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::allow_attributes_without_reason,
    reason = "generated; the contract itself is documented in wit/fence.wit"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "fence-method",
        pub_export_macro: true,
    });
}

/// The bytes of a manifest, as a section wants them.
#[expect(clippy::indexing_slicing, reason = "runs at compile time, where a panic is a build error")]
pub const fn section<const N: usize>(manifest: &str) -> [u8; N] {
    let bytes = manifest.as_bytes();
    let mut section = [0; N];
    let mut i = 0;
    while i < N {
        section[i] = bytes[i];
        i += 1;
    }
    section
}

/// The export of one method.
pub struct Exported<M>(PhantomData<M>);

impl<M: FenceMethod> Guest for Exported<M> {
    fn run(request: types::Request) -> Result<types::Outcome, types::Failure> {
        let request = Request {
            action: match request.action {
                types::Action::Status => Action::Status,
                types::Action::Off => Action::Off,
                types::Action::On => Action::On,
                types::Action::Reset => Action::Reset,
                types::Action::Monitor => Action::Monitor,
            },
            plug: request.plug,
            parameters: request.parameters,
            operation_id: request.operation_id,
            attempt: request.attempt,
            deadline_ms: request.deadline_ms,
            until: request.until.map(|state| match state {
                types::PlugState::On => PlugState::On,
                types::PlugState::Off => PlugState::Off,
                types::PlugState::Transitioning => PlugState::Transitioning,
                types::PlugState::Unknown => PlugState::Unknown,
            }),
            resume: request.resume,
            extra: request.extra,
        };
        let Outcome { state, identity, detail, extra } =
            M::default().run(&request, &Imports).map_err(failure)?;
        Ok(types::Outcome { state: plug_state(state), identity, detail, extra })
    }

    fn plugs(request: types::PlugsRequest) -> Result<Vec<types::PlugInfo>, types::Failure> {
        let types::PlugsRequest { parameters, deadline_ms, extra } = request;
        let request = PlugsRequest { parameters, deadline_ms, extra };
        let plugs = M::default().plugs(&request, &Imports).map_err(failure)?;
        Ok(plugs
            .into_iter()
            .map(|PlugInfo { plug, name, state, identity }| types::PlugInfo {
                plug,
                name,
                state: plug_state(state),
                identity,
            })
            .collect())
    }
}

fn plug_state(state: PlugState) -> types::PlugState {
    match state {
        PlugState::On => types::PlugState::On,
        PlugState::Off => types::PlugState::Off,
        PlugState::Transitioning => types::PlugState::Transitioning,
        PlugState::Unknown => types::PlugState::Unknown,
    }
}

fn failure(failure: Failure) -> types::Failure {
    types::Failure {
        kind: match failure.kind {
            FailureKind::Unreachable => types::FailureKind::Unreachable,
            FailureKind::Timeout => types::FailureKind::Timeout,
            FailureKind::Unauthenticated => types::FailureKind::Unauthenticated,
            FailureKind::Denied => types::FailureKind::Denied,
            FailureKind::Throttled => types::FailureKind::Throttled,
            FailureKind::Unsupported => types::FailureKind::Unsupported,
            FailureKind::BadParameters => types::FailureKind::BadParameters,
            FailureKind::NoSuchPlug => types::FailureKind::NoSuchPlug,
            FailureKind::Busy => types::FailureKind::Busy,
            FailureKind::Protocol => types::FailureKind::Protocol,
            FailureKind::Device => types::FailureKind::Device,
            FailureKind::Cancelled => types::FailureKind::Cancelled,
            FailureKind::Other => types::FailureKind::Other,
        },
        retryable: failure.retryable,
        retry_after_ms: failure.retry_after_ms,
        device_code: failure.device_code,
        detail: failure.detail,
        extra: failure.extra,
    }
}

struct Imports;

impl Host for Imports {
    type Secret = credentials::Secret;
    type Key = credentials::Key;
    type Datagram = net::Datagram;
    type Connection = net::Connection;

    fn udp(&self, endpoint: &str) -> Result<net::Datagram, NetError> {
        net::udp(endpoint).map_err(net_error)
    }

    fn fetch(&self, endpoint: &str, request: &HttpRequest) -> Result<HttpResponse, NetError> {
        let request = net::HttpRequest {
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            timeout_ms: request.timeout_ms,
        };
        let net::HttpResponse { status, headers, body } =
            net::fetch(endpoint, &request).map_err(net_error)?;
        Ok(HttpResponse { status, headers, body })
    }

    fn login_data(&self, endpoint: &str) -> Result<String, NetError> {
        net::login_data(endpoint).map_err(net_error)
    }

    fn tcp(&self, endpoint: &str) -> Result<net::Connection, NetError> {
        net::tcp(endpoint).map_err(net_error)
    }

    fn open(&self, credential: &str) -> Result<credentials::Secret, Refused> {
        credentials::open(credential).map_err(refused)
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => op::Level::Debug,
            Level::Info => op::Level::Info,
            Level::Warn => op::Level::Warn,
        };
        op::log(level, message);
    }

    fn begin_effect(&self, note: &str) -> Result<(), String> {
        op::begin_effect(note)
    }

    fn checkpoint(&self, state: &[u8]) -> Result<(), String> {
        op::checkpoint(state)
    }

    fn cancelled(&self) -> bool {
        op::cancelled()
    }

    fn sleep(&self, ms: u32) -> bool {
        op::sleep(ms)
    }

    fn elapsed_ms(&self) -> u64 {
        op::elapsed_ms()
    }

    fn random(&self, length: u32) -> Vec<u8> {
        op::random(length)
    }
}

impl Secret for credentials::Secret {
    type Key = credentials::Key;

    fn identity(&self) -> Option<String> {
        credentials::Secret::identity(self)
    }

    fn mac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, Refused> {
        credentials::Secret::mac(self, hash_of(hash), data).map_err(refused)
    }

    fn session_key(&self, hash: Hash, data: &[u8]) -> Result<credentials::Key, Refused> {
        credentials::Secret::session_key(self, hash_of(hash), data).map_err(refused)
    }

    fn usm_key(
        &self,
        hash: Hash,
        engine_id: &[u8],
        extension: Extension,
        length: u32,
    ) -> Result<credentials::Key, Refused> {
        let (hash, extension) = (hash_of(hash), extension_of(extension));
        credentials::Secret::usm_key(self, hash, engine_id, extension, length).map_err(refused)
    }

    fn reveal(&self) -> Result<Vec<u8>, Refused> {
        credentials::Secret::reveal(self).map_err(refused)
    }
}

impl Key for credentials::Key {
    fn mac(&self, hash: Hash, data: &[u8], length: u32) -> Result<Vec<u8>, Refused> {
        credentials::Key::mac(self, hash_of(hash), data, length).map_err(refused)
    }

    fn derive(&self, hash: Hash, data: &[u8], length: u32) -> Result<Self, Refused> {
        credentials::Key::derive(self, hash_of(hash), data, length).map_err(refused)
    }

    fn encrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        credentials::Key::encrypt(self, mode_of(cipher), iv, data).map_err(refused)
    }

    fn decrypt(&self, cipher: Cipher, iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Refused> {
        credentials::Key::decrypt(self, mode_of(cipher), iv, data).map_err(refused)
    }
}

impl Datagram for net::Datagram {
    fn send(&self, data: &[u8]) -> Result<(), NetError> {
        net::Datagram::send(self, data).map_err(net_error)
    }

    fn receive(&self, timeout_ms: u32) -> Result<Option<Vec<u8>>, NetError> {
        net::Datagram::receive(self, timeout_ms).map_err(net_error)
    }

    fn farewell(&self, data: &[u8]) {
        net::Datagram::farewell(self, data);
    }
}

impl Connection for net::Connection {
    type Secret = credentials::Secret;

    fn write(&self, parts: &[Part<'_, credentials::Secret>]) -> Result<(), NetError> {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| match part {
                Part::Bytes(bytes) => net::Part::Bytes(bytes.to_vec()),
                Part::Secret(secret) => net::Part::Secret(secret),
            })
            .collect();
        net::Connection::write(self, &parts).map_err(net_error)
    }

    fn read(&self, max: u32, timeout_ms: u32) -> Result<Vec<u8>, NetError> {
        net::Connection::read(self, max, timeout_ms).map_err(net_error)
    }

    fn farewell(&self, data: &[u8]) {
        net::Connection::farewell(self, data);
    }
}

fn hash_of(hash: Hash) -> credentials::Hash {
    match hash {
        Hash::Md5 => credentials::Hash::Md5,
        Hash::Sha1 => credentials::Hash::Sha1,
        Hash::Sha224 => credentials::Hash::Sha224,
        Hash::Sha256 => credentials::Hash::Sha256,
        Hash::Sha384 => credentials::Hash::Sha384,
        Hash::Sha512 => credentials::Hash::Sha512,
    }
}

fn extension_of(extension: Extension) -> credentials::Extension {
    match extension {
        Extension::None => credentials::Extension::None,
        Extension::Blumenthal => credentials::Extension::Blumenthal,
        Extension::Reeder => credentials::Extension::Reeder,
    }
}

fn mode_of(cipher: Cipher) -> credentials::Mode {
    match cipher {
        Cipher::AesCbc => credentials::Mode::AesCbc,
        Cipher::AesCfb128 => credentials::Mode::AesCfb128,
        Cipher::DesCbc => credentials::Mode::DesCbc,
    }
}

fn refused(reason: credentials::Refused) -> Refused {
    match reason {
        credentials::Refused::NotGranted => Refused::NotGranted,
        credentials::Refused::NoSuchCredential => Refused::NoSuchCredential,
        credentials::Refused::OverBudget => Refused::OverBudget,
        credentials::Refused::BadLength => Refused::BadLength,
        credentials::Refused::Other(reason) => Refused::Other(reason),
    }
}

fn net_error(error: net::NetError) -> NetError {
    match error {
        net::NetError::Denied => NetError::Denied,
        net::NetError::Unreachable => NetError::Unreachable,
        net::NetError::Refused => NetError::Refused,
        net::NetError::Closed => NetError::Closed,
        net::NetError::Timeout => NetError::Timeout,
        net::NetError::TooLarge => NetError::TooLarge,
        net::NetError::Cancelled => NetError::Cancelled,
        net::NetError::Tls => NetError::Tls,
        net::NetError::Login => NetError::Login,
        net::NetError::NotLeader => NetError::NotLeader,
        net::NetError::Other => NetError::Other,
    }
}
