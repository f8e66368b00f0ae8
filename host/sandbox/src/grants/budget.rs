//! How much of the network and of its credentials one call may use, where an admin allows less than the host.

use crate::limits::{DATAGRAMS_SENT_MAX, HTTP_REQUESTS_MAX, SECRET_OPERATIONS_MAX};

/// What one call may use. By default what the host allows any call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// HTTP requests, logins included; the logout that ends a session is not counted against it.
    pub http_requests: u32,
    /// Datagrams sent.
    pub datagrams: u32,
    /// Operations with a secret itself.
    pub credential_operations: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            http_requests: HTTP_REQUESTS_MAX,
            datagrams: DATAGRAMS_SENT_MAX,
            credential_operations: SECRET_OPERATIONS_MAX,
        }
    }
}

impl Budget {
    /// No more than the host allows, whatever is written.
    pub(super) fn bounded(self) -> Self {
        let most = Self::default();
        Self {
            http_requests: self.http_requests.min(most.http_requests),
            datagrams: self.datagrams.min(most.datagrams),
            credential_operations: self.credential_operations.min(most.credential_operations),
        }
    }
}
