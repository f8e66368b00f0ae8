//! What a refusal means, in words that say what to check. One place for every status and code.

use node_remedy_sdk::{Failure, FailureKind};

use crate::parameters::Privilege;

/// A status of open session, RAKP 2 or RAKP 4.
pub(crate) fn rakp_status(what: &str, status: u8) -> Failure {
    use FailureKind::{Busy, Denied, Protocol, Unauthenticated, Unsupported};
    let (kind, retryable, words) = match status {
        0x01 => (Busy, true, "the BMC has no session slot free: close others, or wait a minute"),
        0x02 => (Protocol, true, "the BMC does not know the session it gave"),
        0x03 => (Protocol, false, "invalid payload type"),
        0x04 => (Unsupported, false, "the BMC lacks the authentication algorithm"),
        0x05 => (Unsupported, false, "the BMC lacks the integrity algorithm"),
        0x06 => (Unsupported, false, "no matching authentication payload"),
        0x07 => (Unsupported, false, "no matching integrity payload"),
        0x08 => (Protocol, true, "the session is no longer active"),
        0x09 => (
            Denied,
            false,
            "the user may not have this role: lower privilege-level, or raise the user's on the BMC",
        ),
        0x0a => (
            Denied,
            false,
            "the user may not ask for this privilege level: lower privilege-level, or raise the user's on the BMC",
        ),
        0x0b => (Busy, true, "the BMC has no session slot free at this privilege level"),
        0x0c => (Unauthenticated, false, "the user name has a length the BMC does not take"),
        0x0d => (
            Unauthenticated,
            false,
            "the BMC does not know the user, or has not enabled it for this channel",
        ),
        0x0e => (Unauthenticated, false, "the BMC does not accept the GUID"),
        0x0f => (Unauthenticated, false, "the BMC says that the password is wrong"),
        0x10 => (Unsupported, false, "the BMC lacks the encryption algorithm"),
        0x11 => (Unsupported, false, "the BMC does not have this cipher suite enabled"),
        0x12 => (Protocol, false, "the BMC found an illegal parameter"),
        _ => (Protocol, false, "an unknown status"),
    };
    failure(what, status, (kind, retryable, words))
}

/// Is this a refusal of the cipher suite, so that another may do?
pub(crate) fn is_about_the_suite(status: u8) -> bool {
    matches!(status, 0x04..=0x07 | 0x10 | 0x11 | 0x12)
}

/// A completion code of a command.
pub(crate) fn completion(what: &str, completion: u8) -> Failure {
    use FailureKind::{Busy, Denied, Device, Protocol, Unsupported};
    let (kind, retryable, words) = match completion {
        0xc0 => (Busy, true, "the BMC is busy"),
        0xc1 => (Unsupported, false, "the BMC does not know this command"),
        0xc2 => (Unsupported, false, "the BMC does not know this command for this logical unit"),
        0xc3 => (Device, true, "the BMC timed out while it carried it out"),
        0xc4 => (Busy, true, "the BMC is out of space"),
        0xc5 => (Device, true, "the reservation was cancelled"),
        0xc6 => (Protocol, false, "the BMC says that the request was cut short"),
        0xc7 => (Protocol, false, "the BMC says that the request has the wrong length"),
        0xc8 => (Protocol, false, "the BMC says that a field is too long"),
        0xc9 => (Protocol, false, "the BMC says that a parameter is out of range"),
        0xca => (Device, false, "the BMC cannot return that much data"),
        0xcb => (Unsupported, false, "what was asked for is not there"),
        0xcc => (Unsupported, false, "the BMC says that a field of the request is invalid"),
        0xcd => (Unsupported, false, "the command is illegal for this record"),
        0xce => (Device, true, "the BMC could not give an answer"),
        0xcf => (Device, true, "the BMC takes it for a duplicate of an earlier request"),
        0xd0 => (Busy, true, "the BMC is updating its sensor records"),
        0xd1 => (Busy, true, "the BMC is in firmware update mode"),
        0xd2 => (Busy, true, "the BMC is starting"),
        0xd3 => (Device, true, "the destination is unavailable"),
        0xd4 => (Denied, false, "the user's privilege is too low for it: operator is needed"),
        0xd5 => (Device, false, "not possible in the present state"),
        0xd6 => (Unsupported, false, "it is disabled on this BMC"),
        0xff => (Device, true, "unspecified error"),
        0x01..=0x7e => (Device, false, "a code of the manufacturer's own"),
        0x80..=0xbe => (Device, false, "a code that belongs to this command"),
        _ => (Protocol, false, "a reserved completion code"),
    };
    failure(what, completion, (kind, retryable, words))
}

/// A refused privilege level.
pub(crate) fn privilege_refused(privilege: Privilege, code: u8) -> Failure {
    let what = format!("set session privilege level {}", privilege.name());
    let words = match code {
        0x80 => "the BMC does not have this level for the user",
        0x81 => {
            "it exceeds the limit of the user or of the channel: lower privilege-level, or raise the limit"
        }
        _ => return completion(&what, code),
    };
    failure(&what, code, (FailureKind::Denied, false, words))
}

/// RAKP 2's code is not what the password makes it.
pub(crate) fn wrong_password(user: &str) -> Failure {
    Failure::new(
        FailureKind::Unauthenticated,
        format!("RAKP 2: the BMC's code does not fit the password: wrong password for user {user}"),
    )
}

/// RAKP 4's code is not what K_g, or without one the password, makes it. The password fitted before.
pub(crate) fn wrong_kg(configured: bool) -> Failure {
    let words = if configured {
        "the credential kg is not the BMC's key"
    } else {
        "the BMC may have a key (K_g) of its own: configure the credential kg"
    };
    Failure::new(
        FailureKind::Unauthenticated,
        format!("RAKP 4: the session keys differ though the password fits: {words}"),
    )
}

/// RAKP 1 was repeated and the BMC went on from another of its answers.
pub(crate) fn out_of_step() -> Failure {
    Failure::new(
        FailureKind::Protocol,
        "RAKP 3: refused after RAKP 1 had to be repeated: the BMC is slow, or packets were lost",
    )
    .retryable()
}

fn failure(what: &str, code: u8, (kind, retryable, words): (FailureKind, bool, &str)) -> Failure {
    let failure = Failure::new(kind, format!("{what}: {words} (0x{code:02x})")).code(code);
    if retryable { failure.retryable() } else { failure }
}
