//! Why a grant is refused.

use std::io;

use crate::host_name::HostPortError;

/// Why a method is not granted what it needs.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The address parameter cannot be read.
    #[error("failed to grant endpoint '{ask}': parameter '{parameter}': {source}")]
    Address {
        /// The endpoint's name in the manifest.
        ask: String,
        /// The parameter that holds its address.
        parameter: String,
        /// What is wrong with it.
        #[source]
        source: HostPortError,
    },
    /// The address parameter is not set.
    #[error("failed to grant endpoint '{ask}': parameter '{parameter}', its address, is not set")]
    NoAddress {
        /// The endpoint's name in the manifest.
        ask: String,
        /// The parameter that holds its address.
        parameter: String,
    },
    /// Neither parameter nor manifest names a port.
    #[error("failed to grant endpoint '{ask}': no port in parameter '{parameter}' ({found})")]
    NoPort {
        /// The endpoint's name in the manifest.
        ask: String,
        /// The parameter that holds its address.
        parameter: String,
        /// What it holds.
        found: String,
    },
    /// The host name has no address.
    #[error("failed to grant endpoint '{ask}': failed to resolve {host}: {source}")]
    Name {
        /// The endpoint's name in the manifest.
        ask: String,
        /// The host name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The admin's grant does not cover it.
    #[error("failed to grant {ask}: found {found}, {reason}; add {add}")]
    NotGranted {
        /// What the manifest asks for.
        ask: String,
        /// What the parameters make of it.
        found: String,
        /// Why the grant does not cover it.
        reason: String,
        /// What to add to the grant.
        add: String,
    },
}
