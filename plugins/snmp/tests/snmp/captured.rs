//! What net-snmp's tools and agent said to each other, byte for byte (`captured.txt`).

use node_remedy_plugin_snmp::Value;
use node_remedy_plugin_snmp::codec::{Data, Kind, Plain, REPORTABLE, Scoped, Secured};
use node_remedy_sdk::testing::{TestHost, TestKey};
use node_remedy_sdk::{Cipher, Extension, Hash, Host, Key, Secret};

const CAPTURED: &str = include_str!("captured.txt");
const OUTLET: [u32; 15] = [1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 5, 1, 1, 4];
const CONTROL: [u32; 15] = [1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 3, 1, 1, 4];

/// The datagrams of the commands that hold all of these words.
fn of(words: &[&str]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut is_it = false;
    for line in CAPTURED.lines() {
        if let Some(command) = line.strip_prefix("# ") {
            is_it = words.iter().all(|word| command.contains(word));
        } else if is_it {
            found.push(unhex(line[2..].trim()));
        }
    }
    assert!(!found.is_empty(), "{words:?}");
    found
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn row(column: &[u32], outlet: u32) -> Vec<u32> {
    [column, &[outlet]].concat()
}

#[test]
fn everything_that_was_captured_is_understood_and_said_the_same_again() {
    let mut read = 0;
    for line in CAPTURED.lines().filter(|line| line.starts_with(['<', '>'])) {
        let bytes = unhex(line[2..].trim());
        read += 1;
        if let Ok(message) = Plain::decode(&bytes) {
            assert_eq!(message.encode(), Ok(bytes));
            continue;
        }
        let message = Secured::decode(&bytes).unwrap();
        if let Data::Scoped(scoped) = &message.data {
            assert_eq!(Scoped::decode(&scoped.encode().unwrap()), Ok(scoped.clone()));
        }
        // It says another msgMaxSize than we do.
        assert_eq!(Secured::decode(&message.encode().unwrap()), Ok(message));
    }
    assert_eq!(read, 56);
}

#[test]
fn version_1_says_what_is_not_there_by_an_error() {
    let [_, answer] = &of(&["-v1 -c public", ".4.1"])[..2] else { panic!() };
    let message = Plain::decode(answer).unwrap();
    assert_eq!((message.version, message.community.as_slice()), (0, b"public".as_slice()));
    assert_eq!((message.pdu.kind, message.pdu.status), (Kind::Response, 0));
    assert_eq!(message.pdu.bindings, [(row(&OUTLET, 1), Value::Integer(1))]);
    let [_, answer] = &of(&["-v1", ".4.99"])[..] else { panic!() };
    let pdu = Plain::decode(answer).unwrap().pdu;
    assert_eq!((pdu.status, pdu.index), (2, 1));
    assert_eq!(pdu.bindings, [(row(&OUTLET, 99), Value::Null)]);
    let [question, answer] = &of(&["snmpset -v1 -c private"])[..] else { panic!() };
    let question = Plain::decode(question).unwrap().pdu;
    assert_eq!(
        (question.kind, &question.bindings[..]),
        (Kind::Set, &[(row(&CONTROL, 1), Value::Integer(2))][..])
    );
    assert_eq!(Plain::decode(answer).unwrap().pdu.status, 0);
}

#[test]
fn version_2c_says_it_by_an_exception_and_refusals_by_their_number() {
    let [_, answer] = &of(&["-v2c", ".4.1 ", ".2.1"])[..] else { panic!() };
    let bindings = Plain::decode(answer).unwrap().pdu.bindings;
    assert_eq!(bindings[0].1, Value::Integer(2));
    assert_eq!(bindings[1].1, Value::Text(b"node1".to_vec()));
    let [_, answer] = &of(&["-v2c", ".4.99"])[..] else { panic!() };
    let pdu = Plain::decode(answer).unwrap().pdu;
    assert_eq!((pdu.status, pdu.bindings), (0, vec![(row(&OUTLET, 99), Value::NoSuchInstance)]));
    let status = |words: &[&str]| Plain::decode(&of(words)[1]).unwrap().pdu.status;
    assert_eq!(status(&["snmpset -v2c -c public"]), 6);
    assert_eq!(status(&["snmpset -v2c -c private", "i 9"]), 10);
    assert_eq!(status(&["snmpset -v2c -c private", "i 1"]), 0);
}

#[test]
fn version_3_discovers_and_reports() {
    let exchange = of(&["-u v3ro"]);
    let discovery = Secured::decode(&exchange[0]).unwrap();
    assert_eq!((discovery.flags, discovery.engine.len()), (REPORTABLE, 0));
    let report = Secured::decode(&exchange[1]).unwrap();
    assert_eq!((report.engine.len(), report.boots), (17, 1));
    let counters = |datagram: &[u8]| match Secured::decode(datagram).unwrap().data {
        Data::Scoped(scoped) => (scoped.pdu.kind, scoped.pdu.bindings[0].0[9..].to_vec()),
        Data::Sealed(_) => panic!("sealed"),
    };
    assert_eq!(counters(&exchange[1]), (Kind::Report, vec![4, 0]));
    assert_eq!(counters(&of(&["wrongpass12"])[3]), (Kind::Report, vec![5, 0]));
    assert_eq!(counters(&of(&["-u nobody"])[3]), (Kind::Report, vec![3, 0]));
    let Data::Scoped(scoped) = Secured::decode(&of(&["snmpset", "authNoPriv"])[3]).unwrap().data
    else {
        panic!("sealed")
    };
    assert_eq!(scoped.pdu.status, 16, "authorizationError");
}

fn key(hash: Hash, password: &str, engine: &[u8], extension: Extension, length: u32) -> TestKey {
    let host = TestHost::new(1).credential("it", None, password.as_bytes());
    host.open("it").unwrap().usm_key(hash, engine, extension, length).unwrap()
}

/// Codes and ciphertexts that net-snmp made are those that our keys make.
#[test]
fn net_snmps_users_are_understood_with_their_passwords() {
    let none = Extension::None;
    let rows = [
        ("v3md5", Hash::Md5, 16, 12, Cipher::DesCbc, none, 16),
        ("v3sha", Hash::Sha1, 20, 12, Cipher::AesCfb128, none, 16),
        ("v3s256", Hash::Sha256, 32, 24, Cipher::AesCfb128, none, 16),
        ("v3s512", Hash::Sha512, 64, 48, Cipher::AesCfb128, Extension::Blumenthal, 32),
    ];
    for (user, hash, length, code_length, cipher, extension, key_length) in rows {
        let exchange = of(&[&format!("-u {user} -l authPriv"), "authpass12"]);
        for datagram in &exchange[2..4] {
            let message = Secured::decode(datagram).unwrap();
            assert_eq!(message.user, user.as_bytes());
            assert_eq!(message.code.len(), code_length);
            let at = datagram.windows(code_length).position(|some| some == message.code).unwrap();
            let mut covered = datagram.clone();
            covered[at..at + code_length].fill(0);
            let auth = key(hash, "authpass12", &message.engine, none, length);
            let code = auth.mac(hash, &covered, u32::try_from(code_length).unwrap());
            assert_eq!(code.unwrap(), message.code, "{user}");

            let Data::Sealed(sealed) = &message.data else { panic!("{user}: in the clear") };
            let iv = match cipher {
                Cipher::DesCbc => message.salt.clone(),
                Cipher::AesCbc | Cipher::AesCfb128 => {
                    [&message.boots.to_be_bytes(), &message.time.to_be_bytes(), &message.salt[..]]
                        .concat()
                }
            };
            let privacy = key(hash, "privpass12", &message.engine, extension, key_length);
            let scoped = Scoped::decode(&privacy.decrypt(cipher, &iv, sealed).unwrap()).unwrap();
            assert_eq!(scoped.engine, message.engine);
            let (oid, value) = &scoped.pdu.bindings[0];
            assert!(oid.starts_with(&[1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3]), "{user}: {oid:?}");
            let is_answer = scoped.pdu.kind == Kind::Response;
            assert_eq!(is_answer, datagram == &exchange[3], "{user}");
            assert!(!is_answer || matches!(value, Value::Integer(1 | 2)), "{user}: {value:?}");
        }
    }
}
