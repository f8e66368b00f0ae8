//! What an error of the system means to a plugin.

use std::io;

use crate::net::NetError;
use crate::trust::TlsRefusal;

pub(crate) fn net_error(error: &io::Error) -> NetError {
    use io::ErrorKind as Kind;
    if let Some(refusal) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return NetError::Tls(TlsRefusal::of(refusal));
    }
    // ErrorKind grows with std: what is not known by name is Other.
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is non-exhaustive")]
    match error.kind() {
        Kind::ConnectionRefused => NetError::Refused,
        Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
            NetError::Unreachable
        }
        Kind::AddrNotAvailable => NetError::Unreachable,
        Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe => NetError::Closed,
        Kind::UnexpectedEof => NetError::Closed,
        Kind::TimedOut => NetError::Timeout,
        _ => NetError::Other,
    }
}
