//! Version 3: every protocol that a user may have, the agent's clock, and what its reports say.

use std::fmt::Write;

use expect_test::expect;
use node_remedy_plugin_snmp::codec::{ENCRYPTED, Secured};
use node_remedy_plugin_snmp::testing::{Account, Agent, Faults};
use node_remedy_plugin_snmp::{Session, Value};
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Cipher, Extension, Failure, Hash};

use crate::talk::{DEADLINE_MS, STATE, agent, said};

const AUTH: &str = "authpass12";
const PRIVACY: &str = "privpass12";
const AES128: (Cipher, Extension, u32, &str) = (Cipher::AesCfb128, Extension::None, 16, PRIVACY);

fn with(hash: Hash, privacy: Option<(Cipher, Extension, u32, &'static str)>) -> Agent {
    let mut agent = agent();
    agent.put_account("fence", Account { auth: Some((hash, AUTH)), privacy, may_write: true });
    agent.put_account("weak", Account { auth: None, privacy: None, may_write: false });
    agent
}

fn parameters(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn host(agent: Agent, user: &str, password: &str, privacy: &str) -> TestHost {
    TestHost::new(u64::from(DEADLINE_MS))
        .device("agent", agent.shared())
        .credential("account", Some(user), password.as_bytes())
        .credential("privacy", None, privacy.as_bytes())
}

fn write_and_read(host: &TestHost, pairs: &[(&str, &str)]) -> Result<Value, Failure> {
    let session = Session::open(host, &parameters(pairs), DEADLINE_MS)?;
    session.set(&[(STATE.to_vec(), 2)], true)?;
    session.get_one(&STATE)
}

#[test]
fn every_protocol_is_spoken() {
    let hashes = [
        ("md5", Hash::Md5),
        ("sha1", Hash::Sha1),
        ("sha224", Hash::Sha224),
        ("sha256", Hash::Sha256),
        ("sha384", Hash::Sha384),
        ("sha512", Hash::Sha512),
    ];
    let ciphers = [
        ("des", (Cipher::DesCbc, Extension::None, 16, PRIVACY)),
        ("aes128", AES128),
        ("aes256", (Cipher::AesCfb128, Extension::Blumenthal, 32, PRIVACY)),
        ("aes256-cisco", (Cipher::AesCfb128, Extension::Reeder, 32, PRIVACY)),
    ];
    for (auth, hash) in hashes {
        let level = [("security-level", "auth-no-priv"), ("auth-protocol", auth)];
        let clear = host(with(hash, None), "fence", AUTH, PRIVACY);
        assert_eq!(write_and_read(&clear, &level), Ok(Value::Integer(2)), "{auth}");
        for (name, cipher) in ciphers {
            let pairs = [("version", "3"), ("auth-protocol", auth), ("privacy-protocol", name)];
            let sealed = host(with(hash, Some(cipher)), "fence", AUTH, PRIVACY);
            assert_eq!(write_and_read(&sealed, &pairs), Ok(Value::Integer(2)), "{auth} {name}");
            let wire: Vec<u8> = sealed.trace().into_iter().flat_map(bytes).collect();
            let object = [0x2b, 6, 1, 4, 1, 9, 1, 1];
            assert!(!wire.windows(object.len()).any(|some| some == object), "{auth} {name}");
        }
    }
    let open = host(with(Hash::Sha1, None), "weak", "", "");
    let session =
        Session::open(&open, &parameters(&[("security-level", "no-auth-no-priv")]), DEADLINE_MS);
    assert_eq!(session.unwrap().get_one(&STATE), Ok(Value::Integer(1)));
    assert_eq!(open.secret_uses(), 0);
}

fn bytes(trace: Trace) -> Vec<u8> {
    match trace {
        Trace::Sent { bytes, .. } | Trace::Received { bytes, .. } => bytes,
        Trace::Asked { .. }
        | Trace::Answered { .. }
        | Trace::BeganEffect { .. }
        | Trace::Logged(_)
        | Trace::Farewell => Vec::new(),
    }
}

/// The clock that comes with the discovery is anybody's; the one that counts is authenticated.
#[test]
fn a_clock_that_was_told_wrongly_is_set_by_an_authentic_report() {
    let mut agent = with(Hash::Sha256, Some(AES128));
    agent.faults.has_wrong_clock = true;
    let host = host(agent, "fence", AUTH, PRIVACY);
    let read = write_and_read(&host, &[("auth-protocol", "sha256")]);
    assert_eq!(read, Ok(Value::Integer(2)));
    let sent = host.trace().iter().filter(|one| matches!(one, Trace::Sent { .. })).count();
    assert_eq!(sent, 4, "discovery, SET, the same again, GET");
}

/// The fault, the agent; user, password, privacy password; parameters.
type Row = (&'static str, Agent, [&'static str; 3], &'static [(&'static str, &'static str)]);

#[test]
fn each_fault_has_its_kind_and_sentence() {
    let good = || with(Hash::Sha1, Some(AES128));
    let faulty = |faults: Faults| good().faulty(faults);
    let none = Faults::default;
    let reports = |counter| faulty(Faults { reports: Some(counter), ..none() });
    let rows: Vec<Row> = vec![
        ("wrong password", good(), ["fence", "guess-guess", PRIVACY], &[]),
        ("wrong auth-protocol", good(), ["fence", AUTH, PRIVACY], &[("auth-protocol", "sha512")]),
        ("wrong privacy password", good(), ["fence", AUTH, "guess-guess"], &[]),
        (
            "wrong privacy-protocol",
            good(),
            ["fence", AUTH, PRIVACY],
            &[("privacy-protocol", "des")],
        ),
        ("unknown user", good(), ["nobody", AUTH, PRIVACY], &[]),
        ("user without passwords", good(), ["weak", AUTH, PRIVACY], &[]),
        ("level too low", good(), ["fence", AUTH, PRIVACY], &[("security-level", "auth-no-priv")]),
        ("no user name", good(), ["", AUTH, PRIVACY], &[]),
        ("empty password", good(), ["fence", "", PRIVACY], &[]),
        ("clock that never fits", reports(2), ["fence", AUTH, PRIVACY], &[]),
        ("engine that is never known", reports(4), ["fence", AUTH, PRIVACY], &[]),
        ("decryptionErrors", reports(6), ["fence", AUTH, PRIVACY], &[]),
        ("report nobody knows", reports(9), ["fence", AUTH, PRIVACY], &[]),
        (
            "silent later",
            faulty(Faults { falls_silent_after: Some(2), ..none() }),
            ["fence", AUTH, PRIVACY],
            &[],
        ),
        (
            "silent",
            faulty(Faults { falls_silent_after: Some(0), ..none() }),
            ["fence", AUTH, PRIVACY],
            &[],
        ),
        (
            "another's answer",
            faulty(Faults { has_wrong_ids: true, ..none() }),
            ["fence", AUTH, PRIVACY],
            &[],
        ),
        (
            "a bit flips at the end",
            faulty(Faults { mangle: Some(flip_last), ..none() }),
            ["fence", AUTH, PRIVACY],
            &[],
        ),
        ("bad level", good(), ["fence", AUTH, PRIVACY], &[("security-level", "authPriv")]),
    ];
    let mut table = String::new();
    for (fault, agent, [user, password, privacy], pairs) in rows {
        let host = host(agent, user, password, privacy);
        let failure = write_and_read(&host, pairs).unwrap_err();
        let took_ms = host.elapsed().as_millis();
        writeln!(table, "{fault} | {took_ms} ms | {}", said(&failure)).unwrap();
    }
    expect![[r#"
        wrong password | 40 ms | Unauthenticated: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": wrongDigests: wrong password, or another auth-protocol than the user has on the device
        wrong auth-protocol | 40 ms | Unauthenticated: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": wrongDigests: wrong password, or another auth-protocol than the user has on the device
        wrong privacy password | 5020 ms | Timeout, again: SET 1.3.6.1.4.1.9.1.1 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; agents answer a wrong privacy password or privacy-protocol with silence; it may have been carried out: read the status
        wrong privacy-protocol | 5020 ms | Timeout, again: SET 1.3.6.1.4.1.9.1.1 = 2: no answer in 5000 ms (4 sent), though the agent had answered before; agents answer a wrong privacy password or privacy-protocol with silence; it may have been carried out: read the status
        unknown user | 40 ms | Unauthenticated: SET 1.3.6.1.4.1.9.1.1 = 2 as user "nobody": unknownUserNames: the device has no such user: check the name
        user without passwords | 40 ms | Unauthenticated: SET 1.3.6.1.4.1.9.1.1 = 2 as user "weak": unsupportedSecLevels: the agent does not have this security level for the user: check security-level, and whether the user has both passwords on the device
        level too low | 40 ms | Denied: SET 1.3.6.1.4.1.9.1.1 = 2: authorizationError (16): community or user may not do this at this security level: check the agent's access rules
        no user name | 0 ms | BadParameters: the credential account has no user name
        empty password | 20 ms | BadParameters: failed to use the credential account: the data does not fit the operation; is it empty?
        clock that never fits | 40 ms | Protocol, again: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": notInTimeWindows: the agent's clock and the one it told do not agree, again and again: has the device lost its count of boots?
        engine that is never known | 160 ms | Protocol: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": unknownEngineIDs: the agent does not know the engine id that it gave: do two devices share the address?
        decryptionErrors | 40 ms | Unauthenticated: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": decryptionErrors: wrong privacy password, or another privacy-protocol than the user has on the device
        report nobody knows | 40 ms | Protocol: SET 1.3.6.1.4.1.9.1.1 = 2 as user "fence": unknown: a report that nobody knows
        silent later | 5040 ms | Timeout, again: GET 1.3.6.1.4.1.9.1.1: no answer in 5000 ms (4 sent), though the agent had answered before; agents answer a wrong privacy password or privacy-protocol with silence
        silent | 5000 ms | Unreachable, again: SNMPv3 discovery: no answer in 5000 ms (4 sent): check the address, the network, and that the device has SNMP on
        another's answer | 5000 ms | Protocol, again: SNMPv3 discovery: dropped 4 answers, the last because it answers another request
        a bit flips at the end | 5020 ms | Protocol, again: SET 1.3.6.1.4.1.9.1.1 = 2: dropped 4 answers, the last because its authentication code is wrong; it may have been carried out: read the status
        bad level | 0 ms | BadParameters: security-level: found "authPriv", expected no-auth-no-priv, auth-no-priv or auth-priv
    "#]].assert_eq(&table);
}

/// Of what is encrypted: the discovery's answer stays as it is.
fn flip_last(mut message: Vec<u8>) -> Vec<u8> {
    let is_sealed = Secured::decode(&message).is_ok_and(|it| it.flags & ENCRYPTED != 0);
    if let Some(last) = message.last_mut().filter(|_| is_sealed) {
        *last ^= 1;
    }
    message
}
