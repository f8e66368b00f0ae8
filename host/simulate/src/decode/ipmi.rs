//! An IPMI message in words: what is asked, what is answered, and its numbers for whoever looks
//! them up (IPMI 2.0, 13.8 and appendix G).

use std::fmt::Write as _;

/// Set in the network function of an answer.
const ANSWER: u8 = 1;
const OK: u8 = 0x00;

/// The commands that a session of a fence method consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    ChassisStatus,
    ChassisControl,
    DeviceId,
    SystemGuid,
    AuthenticationCapabilities,
    SetPrivilege,
    CloseSession,
    CipherSuites,
    Unknown,
}

/// A request or an answer with its addresses and checksums.
pub(super) fn words(message: &[u8]) -> Option<String> {
    let (function, number) = (message.get(1).copied()? >> 2, message.get(5).copied()?);
    let command = Command::of(function & !ANSWER, number);
    // The last byte is the second checksum.
    let (_, message) = message.split_last()?;
    if function & ANSWER == 0 {
        let asked = asked(command, message.get(6..)?);
        return Some(format!("{asked} · netfn {function:02x} cmd {number:02x}"));
    }
    let (code, data) = (message.get(6).copied()?, message.get(7..)?);
    let told = match code {
        OK => answered(command, data),
        code => format!("{}: refused, {}", command.name(), reason(code)),
    };
    Some(format!("{told} · netfn {function:02x} cmd {number:02x} completion code {code:02x}"))
}

impl Command {
    fn of(function: u8, number: u8) -> Self {
        match (function, number) {
            (0x00, 0x01) => Self::ChassisStatus,
            (0x00, 0x02) => Self::ChassisControl,
            (0x06, 0x01) => Self::DeviceId,
            (0x06, 0x37) => Self::SystemGuid,
            (0x06, 0x38) => Self::AuthenticationCapabilities,
            (0x06, 0x3b) => Self::SetPrivilege,
            (0x06, 0x3c) => Self::CloseSession,
            (0x06, 0x54) => Self::CipherSuites,
            _ => Self::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ChassisStatus => "chassis status",
            Self::ChassisControl => "chassis control",
            Self::DeviceId => "device id",
            Self::SystemGuid => "system GUID",
            Self::AuthenticationCapabilities => "the channel's ways to authenticate",
            Self::SetPrivilege => "privilege",
            Self::CloseSession => "close session",
            Self::CipherSuites => "the channel's cipher suites",
            Self::Unknown => "a command not known here",
        }
    }
}

fn asked(command: Command, data: &[u8]) -> String {
    match command {
        Command::ChassisControl => format!("tells it: {}", control(data)),
        Command::SetPrivilege => format!("asks for the privilege {}", privilege(data)),
        Command::CloseSession => "closes the session".to_owned(),
        Command::ChassisStatus
        | Command::DeviceId
        | Command::SystemGuid
        | Command::AuthenticationCapabilities
        | Command::CipherSuites
        | Command::Unknown => format!("asks for {}", command.name()),
    }
}

fn answered(command: Command, data: &[u8]) -> String {
    let told = match command {
        Command::ChassisStatus => chassis(data),
        Command::ChassisControl => "yes, it will".to_owned(),
        Command::SystemGuid => data.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
        Command::DeviceId => device(data),
        Command::SetPrivilege => privilege(data).to_owned(),
        Command::CloseSession => "closed".to_owned(),
        Command::AuthenticationCapabilities | Command::CipherSuites | Command::Unknown => {
            "answered".to_owned()
        }
    };
    format!("{}: {told}", command.name())
}

/// Get Chassis Status (IPMI 2.0, 28.2): the first byte is the present power state.
fn chassis(data: &[u8]) -> String {
    const FAULTS: [(u8, &str); 4] =
        [(0x02, "overload"), (0x04, "interlock"), (0x08, "power"), (0x10, "power control")];
    let &[state, _, _, ..] = data else { return "cut short".to_owned() };
    let power = if state & 0x01 == 0 { "off" } else { "on" };
    let faults = FAULTS.iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| *name);
    let faults: Vec<&str> = faults.collect();
    let faults = if faults.is_empty() { "none".to_owned() } else { faults.join(" and ") };
    format!("power {power}, fault {faults}")
}

/// Chassis Control (IPMI 2.0, 28.3).
fn control(data: &[u8]) -> &'static str {
    match data.first().map(|byte| byte & 0x0f) {
        Some(0) => "power off",
        Some(1) => "power on",
        Some(2) => "power cycle",
        Some(3) => "hard reset",
        Some(4) => "diagnostic interrupt",
        Some(5) => "soft shutdown",
        Some(_) | None => "something not known here",
    }
}

/// Get Device ID (IPMI 2.0, 20.1).
fn device(data: &[u8]) -> String {
    let &[id, _, major, minor, version, ..] = data else { return "cut short".to_owned() };
    let (major, ipmi) = (major & 0x7f, format!("{}.{}", version & 0x0f, version >> 4));
    format!("{id:02x}, firmware {major}.{minor:02x}, IPMI {ipmi}")
}

/// Privilege levels (IPMI 2.0, table 13-1 and 22.18).
fn privilege(data: &[u8]) -> &'static str {
    match data.first().map(|byte| byte & 0x0f) {
        Some(0) => "as it is",
        Some(1) => "callback",
        Some(2) => "user",
        Some(3) => "operator",
        Some(4) => "administrator",
        Some(_) | None => "not known here",
    }
}

/// Completion codes (IPMI 2.0, table 5-2).
fn reason(code: u8) -> &'static str {
    match code {
        0xc0 => "busy",
        0xc1 => "no such command",
        0xc3 => "it took too long",
        0xc7 => "wrong length",
        0xcc => "a field is wrong",
        0xd4 => "not enough privilege",
        0xd5 => "not in its present state",
        0xff => "no reason given",
        _ => "see the code",
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::ipmi::words;

    /// A message of these parts; decoding does not look at addresses and checksums.
    fn told(function: u8, command: u8, data: &[u8]) -> String {
        let mut message = vec![0x81, function << 2, 0, 0x20, 4, command];
        message.extend(data);
        message.push(0);
        words(&message).unwrap()
    }

    #[test]
    fn questions_say_what_is_asked() {
        let rows = [
            ((0x00, 0x01, vec![]), "asks for chassis status · netfn 00 cmd 01"),
            ((0x00, 0x02, vec![0]), "tells it: power off · netfn 00 cmd 02"),
            ((0x00, 0x02, vec![1]), "tells it: power on · netfn 00 cmd 02"),
            ((0x06, 0x3b, vec![4]), "asks for the privilege administrator · netfn 06 cmd 3b"),
            ((0x06, 0x3c, vec![1, 2, 3, 4]), "closes the session · netfn 06 cmd 3c"),
            ((0x2e, 0x77, vec![]), "asks for a command not known here · netfn 2e cmd 77"),
        ];
        for ((function, command, data), expected) in rows {
            assert_eq!(told(function, command, &data), expected);
        }
    }

    #[test]
    fn answers_say_what_was_found_with_the_completion_code() {
        let end = |code| format!("completion code {code}");
        let rows = [
            ((0x01, 0x01, vec![0, 0x00, 0, 0x40]), "chassis status: power off, fault none", "00"),
            (
                (0x01, 0x01, vec![0, 0x6b, 0, 0x40]),
                "chassis status: power on, fault overload and power",
                "00",
            ),
            ((0x01, 0x01, vec![0, 0x00]), "chassis status: cut short", "00"),
            ((0x01, 0x02, vec![0]), "chassis control: yes, it will", "00"),
            ((0x01, 0x02, vec![0xd4]), "chassis control: refused, not enough privilege", "d4"),
            ((0x07, 0x37, vec![0, 0xab, 0xcd]), "system GUID: abcd", "00"),
            (
                (0x07, 0x01, vec![0, 0x20, 1, 0x81, 0x05, 0x02]),
                "device id: 20, firmware 1.05, IPMI 2.0",
                "00",
            ),
        ];
        for ((function, command, data), expected, code) in rows {
            let told = told(function, command, &data);
            assert!(told.starts_with(&format!("{expected} · netfn 0")), "{told}");
            assert!(told.ends_with(&end(code)), "{told}");
        }
    }

    #[test]
    fn what_is_cut_short_is_not_guessed() {
        assert_eq!(words(&[0x81, 0x04, 0x7b, 0x20, 0x04]), None);
        assert_eq!(words(&[0x81, 0x04, 0x7b, 0x20, 0x04, 0x01, 0x00]), None);
        assert_eq!(words(&[]), None);
    }
}
