//! What the method instance is configured with. The host has checked it against the manifest's
//! schema and filled in defaults; it is parsed all the same.

use node_remedy_sdk::{Action, Failure, FailureKind, Request};

use crate::codec::Suite;

/// The privilege a session asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    User,
    Operator,
    Administrator,
}

impl Privilege {
    /// Its number on the wire.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::User => 2,
            Self::Operator => 3,
            Self::Administrator => 4,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }
}

/// Parameters of one call. The address is the host's business: it stands behind the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) privilege: Privilege,
    /// `None`: ask the BMC.
    pub(crate) suite: Option<Suite>,
}

impl Parameters {
    pub(crate) fn read(request: &Request) -> Result<Self, Failure> {
        let privilege = match request.parameter("privilege-level").unwrap_or("administrator") {
            "user" => Privilege::User,
            "operator" => Privilege::Operator,
            "administrator" => Privilege::Administrator,
            other => return Err(bad("privilege-level", other, "user, operator or administrator")),
        };
        let suite = match request.parameter("cipher-suite").unwrap_or("auto") {
            "auto" => None,
            "3" => Some(Suite::Sha1),
            "17" => Some(Suite::Sha256),
            other => return Err(bad("cipher-suite", other, "auto, 17 or 3")),
        };
        if privilege == Privilege::User && request.action != Action::Status {
            return Err(Failure::new(
                FailureKind::BadParameters,
                "privilege-level user can only read the power: set operator or administrator",
            ));
        }
        Ok(Self { privilege, suite })
    }
}

fn bad(name: &str, found: &str, expected: &str) -> Failure {
    let detail = format!("{name}: found {found}, expected {expected}");
    Failure::new(FailureKind::BadParameters, detail)
}
