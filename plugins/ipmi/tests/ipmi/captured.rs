//! Whole exchanges of ipmitool with BMCs, byte for byte. Our codec takes them apart, derives the
//! same keys, finds every code right, and makes each of ipmitool's own packets again.

use expect_test::expect;
use node_remedy_plugin_ipmi::codec::Suite;
use node_remedy_plugin_ipmi::codec::message::{self, Command};
use node_remedy_plugin_ipmi::codec::packet::{self, Kind, Packet, Sealed};
use node_remedy_plugin_ipmi::codec::setup::{self, Exchange, Status};
use node_remedy_plugin_ipmi::codec::suites::parse_list;
use node_remedy_sdk::testing::{TestHost, TestKey, TestSecret};
use node_remedy_sdk::{Cipher, Host, Key, Secret};

const SUITE_17: &str = include_str!("captured/suite-17.hex");
const SUITE_3: &str = include_str!("captured/suite-3.hex");
const SUITE_REFUSED: &str = include_str!("captured/suite-refused.hex");

struct Line {
    to_bmc: bool,
    bytes: Vec<u8>,
}

fn lines(capture: &str) -> Vec<Line> {
    let line = |text: &str| {
        let (direction, digits) = text.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        Line { to_bmc: direction == ">", bytes: (0..digits.len()).step_by(2).map(byte).collect() }
    };
    capture.lines().filter(|text| !text.starts_with('#')).map(line).collect()
}

fn of_kind(lines: &[Line], wanted: Kind) -> &Line {
    let is = |line: &&Line| matches!(packet::parse(&line.bytes), Ok(Packet::Plain { kind, .. }) if kind == wanted);
    lines.iter().find(is).unwrap()
}

fn body(line: &Line) -> &[u8] {
    match packet::parse(&line.bytes).unwrap() {
        Packet::Plain { body, .. } => body,
        Packet::Sealed(_) => panic!("a sealed packet"),
    }
}

fn le(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

fn password() -> TestSecret {
    TestHost::new(1).credential("account", Some("admin"), b"secret").open("account").unwrap()
}

struct Keys {
    suite: Suite,
    integrity: TestKey,
    confidentiality: TestKey,
}

/// Goes through the set-up; every code must be the one that was captured.
fn agree(lines: &[Line], suite: Suite) -> Keys {
    let open = body(of_kind(lines, Kind::OpenRequest));
    let console_sid = le(&open[4..8]);
    let made = packet::plain(Kind::OpenRequest, &setup::open_request(open[0], console_sid, suite));
    assert_eq!(made, of_kind(lines, Kind::OpenRequest).bytes);

    let opened = setup::open_response(body(of_kind(lines, Kind::OpenResponse)), suite).unwrap();
    assert_eq!(opened.console_sid, Some(console_sid));
    let bmc_sid = opened.result.unwrap();

    let rakp_1 = body(of_kind(lines, Kind::Rakp1));
    let exchange = Exchange {
        console_sid,
        bmc_sid,
        console_random: rakp_1[8..24].try_into().unwrap(),
        privilege: rakp_1[24] & 0xf,
        name: b"admin",
    };
    assert_eq!(exchange.rakp_1(rakp_1[0]), rakp_1);

    let rakp_2 = setup::rakp_2(body(of_kind(lines, Kind::Rakp2)), suite).unwrap().result.unwrap();
    let (secret, hash) = (password(), suite.hash());
    assert_eq!(secret.mac(hash, &exchange.rakp_2_input(&rakp_2)).unwrap(), rakp_2.code);

    let rakp_3 = body(of_kind(lines, Kind::Rakp3));
    let code = secret.mac(hash, &exchange.rakp_3_input(&rakp_2.bmc_random)).unwrap();
    assert_eq!(exchange.rakp_3(rakp_3[0], &code), rakp_3);

    let sik = secret.session_key(hash, &exchange.session_key_input(&rakp_2.bmc_random)).unwrap();
    let rakp_4 = setup::rakp_4(body(of_kind(lines, Kind::Rakp4)), suite).unwrap().result.unwrap();
    let length = suite.packet_code_length() as u32;
    assert_eq!(sik.mac(hash, &exchange.rakp_4_input(&rakp_2.guid), length).unwrap(), rakp_4);

    let integrity = sik.derive(hash, &[1; 20], suite.exchange_code_length() as u32).unwrap();
    let confidentiality = sik.derive(hash, &[2; 20], 16).unwrap();
    Keys { suite, integrity, confidentiality }
}

/// Opens a sealed packet, and seals it again to the same bytes.
fn open(keys: &Keys, datagram: &[u8], sealed: &Sealed<'_>) -> Vec<u8> {
    let length = keys.suite.packet_code_length();
    let (covered, code) = sealed.covered_and_code(length).unwrap();
    let mac = |bytes: &[u8]| keys.integrity.mac(keys.suite.hash(), bytes, length as u32).unwrap();
    assert_eq!(mac(covered), code);
    let (iv, blocks) = sealed.body.split_at(16);
    let plain = keys.confidentiality.decrypt(Cipher::AesCbc, iv, blocks).unwrap();
    let message = packet::unpad(&plain).unwrap();

    let padded = packet::pad(message);
    let encrypted = keys.confidentiality.encrypt(Cipher::AesCbc, iv, &padded).unwrap();
    let again = packet::covered(sealed.sid, sealed.seq, &[iv, &encrypted].concat());
    assert_eq!(packet::sealed(&again, &mac(&again)), datagram);
    message.to_vec()
}

/// What was said inside the session, one line a message.
fn said(capture: &str, suite: Suite) -> String {
    let lines = lines(capture);
    let keys = agree(&lines, suite);
    let mut out = String::new();
    for line in &lines {
        let Packet::Sealed(sealed) = packet::parse(&line.bytes).unwrap() else { continue };
        let message = open(&keys, &line.bytes, &sealed);
        let text = if line.to_bmc {
            let command = Command { netfn: message[1] >> 2, number: message[5] };
            let (pair, data) = (message[4] >> 2, &message[6..message.len() - 1]);
            assert_eq!(message::request(command, pair, data), message);
            format!("> {:02x}/{:02x} {data:02x?}\n", command.netfn, command.number)
        } else {
            let response = message::response(&message).unwrap();
            format!("< {:02x} {:02x?}\n", response.completion, response.data)
        };
        out.push_str(&text);
    }
    out
}

#[test]
fn suite_17_as_ipmitool_speaks_it() {
    expect![[r#"
        > 06/3b [04]
        < 00 [04]
        > 2c/3e [00, 02]
        < c1 []
        > 06/01 []
        < 00 [20, 01, 01, 20, 02, 9f, 91, 12, 00, 02, 0f]
        > 2c/00 [00]
        < c1 []
        > 2c/00 [03]
        < c1 []
        > 00/02 [00]
        < 00 []
        > 06/3c [00, 01, 00, 02]
        < 00 []
    "#]]
    .assert_eq(&said(SUITE_17, Suite::Sha256));
}

#[test]
fn suite_3_as_ipmitool_and_ipmi_sim_speak_it() {
    expect![[r#"
        > 06/3b [04]
        < 00 [04]
        > 2c/3e [00, 02]
        < c1 []
        > 06/01 []
        < 00 [01, 00, 01, 02, 02, 9f, 91, 12, 00, 02, 0f, 00, 00, 00, 00]
        > 2c/00 [00]
        < c1 []
        > 2c/00 [03]
        < c1 []
        > 06/37 []
        < 00 [a1, 23, 45, 67, 89, ab, cd, ef, a1, 23, 45, 67, 89, ab, cd, ef]
        > 06/3c [02, 00, 00, 00]
        < 00 []
    "#]]
    .assert_eq(&said(SUITE_3, Suite::Sha1));
}

#[test]
fn the_list_of_suites_as_a_bmc_gives_it() {
    let lines = lines(SUITE_17);
    let answer = lines.iter().find_map(|line| {
        let Ok(Packet::Plain { kind: Kind::Ipmi, body }) = packet::parse(&line.bytes) else {
            return None;
        };
        let response = message::response(body).ok()?;
        (response.command.number == 0x54).then(|| response.data.to_vec())
    });
    let listed = parse_list(&answer.unwrap()[1..]);
    assert_eq!(listed.iter().map(|l| l.number).collect::<Vec<_>>(), [3, 17]);
    assert!(listed[0].is(Suite::Sha1) && listed[1].is(Suite::Sha256));
}

#[test]
fn a_refusal_of_two_bytes_is_a_refusal() {
    let lines = lines(SUITE_REFUSED);
    let answer = setup::open_response(body(&lines[1]), Suite::Sha256).unwrap();
    assert_eq!((answer.console_sid, answer.result), (None, Err(Status(0x04))));
}
