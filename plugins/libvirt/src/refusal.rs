//! What a libvirt daemon's own errors mean (`virErrorNumber`). Not here: errors of the way to it.

use node_remedy_sdk::{Failure, FailureKind};

use crate::limits;
use crate::xdr::Reader;

/// There is no such domain.
pub(crate) const NO_DOMAIN: i64 = 42;
/// The domain is in no state for it: mostly in the one that it shall come to.
const OPERATION_INVALID: i64 = 55;
/// Anything that went wrong inside; some drivers say so of what is so already.
const INTERNAL: i64 = 1;

/// The failure that an answer with an error is.
pub(crate) fn read(what: &str, payload: &[u8]) -> Failure {
    let mut reader = Reader::new(payload);
    let code = reader.signed();
    let (_domain, has_message) = (reader.signed(), reader.number());
    let message = has_message.filter(|has| *has == 1);
    let message = message.and_then(|_| reader.string(limits::MESSAGE_BYTES_MAX));
    let (Some(code), Some(_)) = (code, has_message) else {
        return protocol(what, "an error that says nothing");
    };
    let said = message.map(|said| plain(&said)).unwrap_or_default();
    let code = i64::from(code);
    let (kind, is_retryable, check) = meaning(code, &said);
    let mut failure = Failure::new(
        kind,
        format!("failed to {what}: the libvirt daemon says {said:?} (error {code}); {check}"),
    );
    failure.retryable = is_retryable;
    failure.device_code = Some(code);
    failure
}

/// The daemon does not speak as it should.
pub(crate) fn protocol(what: &str, found: &str) -> Failure {
    let detail = format!("failed to {what}: found {found}; is a libvirt daemon at this address?");
    Failure::new(FailureKind::Protocol, detail)
}

fn meaning(code: i64, said: &str) -> (FailureKind, bool, &'static str) {
    use FailureKind as Kind;
    match code {
        NO_DOMAIN => (Kind::NoSuchPlug, false, "check the plug: name or UUID of a domain"),
        3 | 84 => (Kind::Unsupported, false, "this driver cannot do it"),
        5 | 6 => (Kind::Unsupported, false, "check the parameter uri"),
        8 => (Kind::BadParameters, false, "this driver does not take it so"),
        29 | 88 => (Kind::Denied, false, "check what the daemon lets us do"),
        45 | 79 | 94 => (Kind::Unauthenticated, false, "check how the daemon wants us to log in"),
        39 if said.contains("authentication") => {
            (Kind::Unauthenticated, false, "check how the daemon wants us to log in")
        }
        39 => (Kind::Protocol, false, "its libvirt is another than expected"),
        68 | 87 => (Kind::Busy, true, "something else is done with the domain"),
        OPERATION_INVALID => (Kind::Device, false, "the domain is in no state for it"),
        _ => (Kind::Device, true, "look into the daemon's log"),
    }
}

/// Whether a refusal may say no more than that all is so already.
pub(crate) fn may_be_so_already(refusal: &Failure) -> bool {
    matches!(refusal.device_code, Some(OPERATION_INVALID | INTERNAL))
}

fn plain(said: &str) -> String {
    let letters = said.chars().filter(|letter| !letter.is_control());
    letters.take(limits::SENTENCE_MAX).collect()
}
