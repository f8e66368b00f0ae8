//! Why an artefact was not had from a registry.

use node_remedy_api::conditions::{
    REASON_DIGEST_MISMATCH, REASON_REFUSED, REASON_SOURCE_MISSING, REASON_SOURCE_UNAVAILABLE,
};

use crate::refusal::Refusal;

/// Why an artefact was not had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OciError {
    /// It does not answer, not in time, or not as a registry does.
    #[error("failed to ask {server}: {why}")]
    Unavailable {
        /// Who was asked.
        server: String,
        /// What came instead.
        why: String,
    },
    /// It wants to know who asks, or knows it and does not allow it.
    #[error("{server} refuses: {why}")]
    Denied {
        /// Who was asked.
        server: String,
        /// What may help.
        why: String,
    },
    /// There is no such artefact.
    #[error("{server} has no {what}")]
    Missing {
        /// Who was asked.
        server: String,
        /// What for.
        what: String,
    },
    /// It is, or leads, where nothing is fetched from.
    #[error("{server} is not asked: {why}")]
    Forbidden {
        /// Who was not asked.
        server: String,
        /// Why not.
        why: String,
    },
    /// It is not what a plugin comes as.
    #[error("{what}: {why}")]
    Artefact {
        /// The image.
        what: String,
        /// What was found, and what is expected.
        why: String,
    },
    /// Its bytes have another digest than they were asked for by.
    #[error("{what}: found {found}, expected {expected}")]
    Digest {
        /// Of what.
        what: String,
        /// As it is.
        found: String,
        /// As it should be.
        expected: String,
    },
}

impl From<OciError> for Refusal {
    fn from(error: OciError) -> Self {
        let why = error.to_string();
        match error {
            OciError::Unavailable { .. } | OciError::Denied { .. } => {
                Self::passing(REASON_SOURCE_UNAVAILABLE, why)
            }
            // A name may lead elsewhere tomorrow.
            OciError::Forbidden { .. } => Self::passing(REASON_SOURCE_UNAVAILABLE, why),
            // Nobody tells us when it comes.
            OciError::Missing { .. } => Self::passing(REASON_SOURCE_MISSING, why),
            // A tag is moved, a proxy answers with a page of its own: tomorrow it may be right.
            OciError::Artefact { .. } => Self::passing(REASON_REFUSED, why),
            OciError::Digest { .. } => Self::passing(REASON_DIGEST_MISMATCH, why),
        }
    }
}
