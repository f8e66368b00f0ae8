//! What a refusal means, in words that say what to check. One place for every error-status and
//! every report.

use node_remedy_sdk::{Failure, FailureKind, Refused};

use crate::codec::Oid;

/// An error-status of RFC 3416, 3 (SNMPv1 has the first five).
pub(crate) fn error_status(what: &str, status: u32) -> Failure {
    use FailureKind::{Busy, Denied, Device, NoSuchPlug, Protocol, Unsupported};
    let (kind, retryable, name, words) = match status {
        1 => (Protocol, false, "tooBig", "the answer does not fit into a message of the agent"),
        2 => (
            Denied,
            false,
            "noSuchName",
            "there is no such object, or the community may not write it: check the agent's access \
             rules",
        ),
        3 => (Unsupported, false, "badValue", "the agent does not take this value"),
        4 => (Denied, false, "readOnly", "the community may only read: use one that may write"),
        5 => (Device, true, "genErr", "the agent failed and does not say why"),
        6 => (
            Denied,
            false,
            "noAccess",
            "community or user may not do this: check the agent's access rules",
        ),
        7 => (Unsupported, false, "wrongType", "the object is not a number on this device"),
        8 => (Unsupported, false, "wrongLength", "the agent does not take this length"),
        9 => (Protocol, false, "wrongEncoding", "the agent did not understand the value"),
        10 => (Unsupported, false, "wrongValue", "the device cannot do this"),
        11 => (NoSuchPlug, false, "noCreation", "there is no such object, and none can be made"),
        12 => (
            Device,
            false,
            "inconsistentValue",
            "not possible in the device's present state: is it locked, or under another's control?",
        ),
        13 => (Busy, true, "resourceUnavailable", "the agent lacks the means just now"),
        14 => (Device, true, "commitFailed", "the agent tried and failed"),
        15 => (Device, false, "undoFailed", "the agent failed half-way: look at the device"),
        16 => (
            Denied,
            false,
            "authorizationError",
            "community or user may not do this at this security level: check the agent's access \
             rules",
        ),
        17 => (
            Denied,
            false,
            "notWritable",
            "the object cannot be written: is this plug switched at all, and may the user write?",
        ),
        18 => (Device, false, "inconsistentName", "the agent cannot make this object now"),
        _ => (Protocol, false, "unknown", "an error-status that nobody knows"),
    };
    let mut failure = Failure::new(kind, format!("{what}: {name} ({status}): {words}"));
    failure.device_code = Some(status.into());
    if retryable { failure.retryable() } else { failure }
}

/// What a report of SNMPv3 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    UnsupportedSecLevels,
    NotInTimeWindows,
    UnknownUserNames,
    UnknownEngineIds,
    WrongDigests,
    DecryptionErrors,
    UnknownSecurityModels,
    InvalidMessages,
    UnknownPduHandlers,
    UnavailableContexts,
    UnknownContexts,
    Unknown,
}

impl Report {
    /// By the object that it holds (RFC 3412, 5; RFC 3413, 3.2; RFC 3414, 5).
    pub(crate) fn of(oid: Option<&Oid>) -> Self {
        match oid.map(Vec::as_slice) {
            Some([1, 3, 6, 1, 6, 3, 15, 1, 1, counter, 0]) => match counter {
                1 => Self::UnsupportedSecLevels,
                2 => Self::NotInTimeWindows,
                3 => Self::UnknownUserNames,
                4 => Self::UnknownEngineIds,
                5 => Self::WrongDigests,
                6 => Self::DecryptionErrors,
                _ => Self::Unknown,
            },
            Some([1, 3, 6, 1, 6, 3, 11, 2, 1, counter, 0]) => match counter {
                1 => Self::UnknownSecurityModels,
                2 => Self::InvalidMessages,
                3 => Self::UnknownPduHandlers,
                _ => Self::Unknown,
            },
            Some([1, 3, 6, 1, 6, 3, 12, 1, 4, 0]) => Self::UnavailableContexts,
            Some([1, 3, 6, 1, 6, 3, 12, 1, 5, 0]) => Self::UnknownContexts,
            Some(_) | None => Self::Unknown,
        }
    }

    pub(crate) fn into_failure(self, what: &str, user: &str) -> Failure {
        use FailureKind::{BadParameters, Busy, Protocol, Unauthenticated, Unsupported};
        let (kind, name, words) = match self {
            Self::UnsupportedSecLevels => (
                Unauthenticated,
                "unsupportedSecLevels",
                "the agent does not have this security level for the user: check security-level, \
                 and whether the user has both passwords on the device",
            ),
            Self::NotInTimeWindows => (
                Protocol,
                "notInTimeWindows",
                "the agent's clock and the one it told do not agree, again and again: has the \
                 device lost its count of boots?",
            ),
            Self::UnknownUserNames => {
                (Unauthenticated, "unknownUserNames", "the device has no such user: check the name")
            }
            Self::UnknownEngineIds => (
                Protocol,
                "unknownEngineIDs",
                "the agent does not know the engine id that it gave: do two devices share the \
                 address?",
            ),
            Self::WrongDigests => (
                Unauthenticated,
                "wrongDigests",
                "wrong password, or another auth-protocol than the user has on the device",
            ),
            Self::DecryptionErrors => (
                Unauthenticated,
                "decryptionErrors",
                "wrong privacy password, or another privacy-protocol than the user has on the \
                 device",
            ),
            Self::UnknownSecurityModels => {
                (Unsupported, "unknownSecurityModels", "the agent has no user-based security")
            }
            Self::InvalidMessages => {
                (Protocol, "invalidMsgs", "the agent did not understand the message")
            }
            Self::UnknownPduHandlers => {
                (Unsupported, "unknownPDUHandlers", "nobody behind the agent answers for this")
            }
            Self::UnavailableContexts => {
                (Busy, "unavailableContexts", "the agent cannot reach the context now")
            }
            Self::UnknownContexts => (
                BadParameters,
                "unknownContexts",
                "the agent has no such context: check context-name",
            ),
            Self::Unknown => (Protocol, "unknown", "a report that nobody knows"),
        };
        let failure = Failure::new(kind, format!("{what} as user {user:?}: {name}: {words}"));
        let again = matches!(self, Self::NotInTimeWindows | Self::UnavailableContexts);
        if again { failure.retryable() } else { failure }
    }
}

/// The host did not use a credential.
pub(crate) fn not_used(name: &str, refused: &Refused) -> Failure {
    let (kind, what) = match refused {
        Refused::NoSuchCredential => {
            (FailureKind::BadParameters, "configure it in the method's credentials")
        }
        Refused::NotGranted if name == "community" => (
            FailureKind::Denied,
            "SNMP sends a community as it is, so the plugin must see it: add reveal: [community] \
             to the grant",
        ),
        Refused::BadLength => (FailureKind::BadParameters, "is it empty?"),
        Refused::NotGranted | Refused::OverBudget | Refused::Other(_) => {
            (FailureKind::Denied, "look at the grant")
        }
    };
    Failure::new(kind, format!("failed to use the credential {name}: {refused}; {what}"))
}
