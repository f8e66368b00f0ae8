//! How a call to the API server is refused: HTTP code, machine-readable reason, sentence.
//!
//! Refusals only. A server that is down, slow or overloaded is not modelled yet.

/// A refused call; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 404.
    #[error("{0} not found")]
    NotFound(String),
    /// 409 on create.
    #[error("{0} already exists")]
    AlreadyExists(String),
    /// 409: resourceVersion, UID or a precondition differ.
    #[error("operation cannot be fulfilled on {0}")]
    Conflict(String),
    /// 410: the wanted resourceVersion is no longer in the history.
    #[error("too old resource version: {wanted} (oldest is {oldest})")]
    Expired {
        /// What was asked for.
        wanted: u64,
        /// From where a watch could start.
        oldest: u64,
    },
    /// 422: among others, a failed `test` of a JSON patch.
    #[error("{0}")]
    Invalid(String),
    /// 400: the request itself makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// 429: not now.
    #[error("{0}")]
    TooManyRequests(String),
    /// 500: the server cannot do this.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::NotFound(_) => 404,
            Self::AlreadyExists(_) | Self::Conflict(_) => 409,
            Self::Expired { .. } => 410,
            Self::Invalid(_) => 422,
            Self::BadRequest(_) => 400,
            Self::TooManyRequests(_) => 429,
            Self::Internal(_) => 500,
        }
    }

    /// `reason` of the Status object that a real server sends.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "NotFound",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::Conflict(_) => "Conflict",
            Self::Expired { .. } => "Expired",
            Self::Invalid(_) => "Invalid",
            Self::BadRequest(_) => "BadRequest",
            Self::TooManyRequests(_) => "TooManyRequests",
            // The one that is modelled gives none.
            Self::Internal(_) => "",
        }
    }
}
