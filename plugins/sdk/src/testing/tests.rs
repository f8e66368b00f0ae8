//! The host in memory keeps its promises: time, deadline, farewell, and published test vectors for
//! what it does with keys.

use std::cell::RefCell;
use std::rc::Rc;

use super::{StreamEvent, TestHost};
use crate::testing::device::{Device, Trace};
use crate::{
    Cipher, Connection, Datagram, Extension, Hash, Host, HttpRequest, HttpResponse, Key, NetError,
    Part, Refused, Secret,
};

/// Answers each datagram three times: itself after 30 ms and 10 ms, and nothing recognisable at once.
fn echo() -> Rc<RefCell<impl Device>> {
    Rc::new(RefCell::new(|_: u64, _: u64, data: &[u8]| {
        vec![(30, data.to_vec()), (10, [data, b"!"].concat()), (0, b"now".to_vec())]
    }))
}

#[test]
fn answers_arrive_in_the_order_of_time_and_waiting_costs_it() {
    let host = TestHost::new(1_000).device("d", echo());
    let datagram = host.udp("d").unwrap();
    datagram.send(b"hi").unwrap();
    let next = |timeout_ms| datagram.receive(timeout_ms).unwrap();
    assert_eq!((next(5), host.elapsed_ms()), (Some(b"now".to_vec()), 0));
    assert_eq!((next(5), host.elapsed_ms()), (None, 5));
    assert_eq!((next(100), host.elapsed_ms()), (Some(b"hi!".to_vec()), 10));
    assert_eq!((next(100), host.elapsed_ms()), (Some(b"hi".to_vec()), 30));
    assert_eq!((next(100), host.elapsed_ms()), (None, 130));
}

#[test]
fn the_deadline_cuts_every_wait() {
    let host = TestHost::new(50).device("d", echo());
    let datagram = host.udp("d").unwrap();
    assert_eq!(datagram.receive(100), Err(NetError::Timeout));
    assert_eq!(host.elapsed_ms(), 50);
    assert_eq!(datagram.send(b"late"), Err(NetError::Timeout));
    assert!(!host.sleep(1));
    assert!(host.cancelled());
}

#[test]
fn cancelling_is_told_apart_from_the_deadline() {
    let host = TestHost::new(100).cancel_at(20).device("d", echo());
    let datagram = host.udp("d").unwrap();
    assert!(host.sleep(10));
    assert_eq!(datagram.receive(100), Err(NetError::Cancelled));
    assert_eq!(host.elapsed_ms(), 20);
}

#[test]
fn a_farewell_is_sent_at_the_end_unless_withdrawn() {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let ear = Rc::clone(&heard);
    let device = move |_: u64, _: u64, data: &[u8]| {
        ear.borrow_mut().push(data.to_vec());
        Vec::new()
    };
    let host = TestHost::new(100).device("d", Rc::new(RefCell::new(device)));
    let datagram = host.udp("d").unwrap();
    datagram.farewell(b"first");
    datagram.farewell(b"bye");
    drop(datagram);
    assert_eq!(*heard.borrow(), [b"bye"]);
    let datagram = host.udp("d").unwrap();
    datagram.farewell(b"bye");
    datagram.farewell(b"");
    drop(datagram);
    assert_eq!(heard.borrow().len(), 1);
    assert_eq!(host.trace(), [Trace::Farewell]);
}

#[test]
fn what_was_not_set_up_is_denied() {
    let host = TestHost::new(100);
    assert_eq!(host.udp("d").err(), Some(NetError::Denied));
    assert_eq!(host.open("account").err(), Some(Refused::NoSuchCredential));
}

fn key(bytes: &[u8]) -> super::TestSecret {
    TestHost::new(1).credential("k", None, bytes).open("k").unwrap()
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn hmac_gives_the_published_codes() {
    // RFC 2202 and RFC 4231, both test case 2.
    let data = b"what do ya want for nothing?";
    let sha1 = key(b"Jefe").mac(Hash::Sha1, data).unwrap();
    assert_eq!(sha1, hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"));
    let sha256 = key(b"Jefe").mac(Hash::Sha256, data).unwrap();
    let wanted = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(sha256, hex(wanted));
    let md5 = key(b"Jefe").mac(Hash::Md5, data).unwrap();
    assert_eq!(md5, hex("750c783e6ab0b503eaa86e310a5db738"));
}

#[test]
fn aes_gives_the_published_block() {
    // NIST SP 800-38A, F.2.1, first block. The key is what a derivation would have left.
    let host = TestHost::new(1).credential("k", None, b"");
    let secret = host.open("k").unwrap();
    let mut aes = secret.session_key(Hash::Sha1, b"").unwrap().derive(Hash::Sha1, b"", 16).unwrap();
    aes.bytes = hex("2b7e151628aed2a6abf7158809cf4f3c");
    let iv = hex("000102030405060708090a0b0c0d0e0f");
    let plain = hex("6bc1bee22e409f96e93d7e117393172a");
    let blocks = aes.encrypt(Cipher::AesCbc, &iv, &plain).unwrap();
    assert_eq!(blocks, hex("7649abac8119b246cee98e9b12e9197d"));
    assert_eq!(aes.decrypt(Cipher::AesCbc, &iv, &blocks), Ok(plain));
    assert_eq!(aes.encrypt(Cipher::AesCbc, &iv, b"short"), Err(Refused::BadLength));
}

#[test]
fn snmp_keys_are_the_published_ones() {
    // RFC 3414, A.3; draft-reeder-snmpv3-usm-3desede-00, B.1.
    let engine = hex("000000000000000000000002");
    let made = |hash, extension, length| {
        key(b"maplesyrup").usm_key(hash, &engine, extension, length).map(|key| key.bytes)
    };
    let md5 = "526f5eed9fcce26f8964c2930787d82b79eff44a90650ee0a3a40abfac5acc12";
    assert_eq!(made(Hash::Md5, Extension::None, 16), Ok(hex(&md5[..32])));
    assert_eq!(made(Hash::Md5, Extension::Reeder, 32), Ok(hex(md5)));
    let sha1 = "6695febc9288e36282235fc7151f128497b38f3f";
    assert_eq!(made(Hash::Sha1, Extension::Blumenthal, 20), Ok(hex(sha1)));
    assert_eq!(made(Hash::Sha1, Extension::None, 21), Err(Refused::BadLength));
}

#[test]
fn snmp_s_ciphers_give_the_published_texts() {
    let mut of = key(b"maplesyrup").usm_key(Hash::Sha1, b"engine", Extension::None, 16).unwrap();
    // NIST SP 800-38A, F.3.13, and FIPS 81, table C1.
    of.bytes = hex("2b7e151628aed2a6abf7158809cf4f3c");
    let iv = hex("000102030405060708090a0b0c0d0e0f");
    let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45");
    let cipher = hex("3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f");
    assert_eq!(of.encrypt(Cipher::AesCfb128, &iv, &plain), Ok(cipher.clone()));
    assert_eq!(of.decrypt(Cipher::AesCfb128, &iv, &cipher), Ok(plain));
    of.bytes = hex("0123456789abcdef0000000000000000");
    let (salt, plain) = (hex("1234567890abcdef"), b"Now is the time for all ");
    let cipher = hex("e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6");
    assert_eq!(of.encrypt(Cipher::DesCbc, &salt, plain), Ok(cipher.clone()));
    assert_eq!(of.decrypt(Cipher::DesCbc, &salt, &cipher), Ok(plain.to_vec()));
}

#[test]
fn the_bytes_of_a_secret_need_a_grant() {
    let host = TestHost::new(1).credential("community", None, b"public");
    assert_eq!(host.open("community").unwrap().reveal(), Err(Refused::NotGranted));
    let host = host.revealing("community");
    assert_eq!(host.open("community").unwrap().reveal(), Ok(b"public".to_vec()));
}

#[test]
fn a_web_server_takes_time_and_no_more_than_there_is() {
    let web = |takes_ms: u64| {
        let answer = move |_: u64, request: &HttpRequest| {
            let body = request.path.clone().into_bytes();
            (takes_ms, HttpResponse { status: 200, headers: Vec::new(), body })
        };
        Rc::new(RefCell::new(answer))
    };
    let get = |timeout_ms| HttpRequest {
        method: "GET".into(),
        path: "/a".into(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout_ms,
    };
    let host = TestHost::new(1_000).web("bmc", web(300));
    assert_eq!(host.fetch("bmc", &get(500)).unwrap().body, b"/a");
    assert_eq!(host.fetch("bmc", &get(200)), Err(NetError::Timeout));
    assert_eq!(host.elapsed_ms(), 500);
    assert_eq!(host.fetch("elsewhere", &get(200)), Err(NetError::Denied));
    let asked = Trace::Asked { at_ms: 0, line: "GET /a".into(), body: Vec::new() };
    assert_eq!(host.trace()[..2], [asked, Trace::Answered { at_ms: 300, status: 200 }]);

    let host = TestHost::new(1_000).web("bmc", web(300)).cancel_at(100);
    assert_eq!(host.fetch("bmc", &get(500)), Err(NetError::Cancelled));
    let host = TestHost::new(100).web("bmc", web(300));
    assert_eq!(host.fetch("bmc", &get(500)), Err(NetError::Timeout));
    assert_eq!(host.elapsed_ms(), 100);
}

/// Greets, echoes in two pieces, and closes at `bye`.
fn parrot() -> Rc<RefCell<impl super::Stream>> {
    Rc::new(RefCell::new(|_: u64, _: u64, data: &[u8]| match data {
        b"" => vec![(5, StreamEvent::Bytes(b"hello".to_vec()))],
        b"bye" => vec![(1, StreamEvent::End)],
        b"break" => vec![(1, StreamEvent::Broken)],
        data => {
            vec![(10, StreamEvent::Bytes(data.to_vec())), (0, StreamEvent::Bytes(b"!".to_vec()))]
        }
    }))
}

#[test]
fn a_stream_comes_in_order_in_pieces_and_ends() {
    let host = TestHost::new(1_000).stream("s", parrot());
    let stream = host.tcp("s").unwrap();
    let next = |max, timeout_ms| (stream.read(max, timeout_ms), host.elapsed_ms());
    assert_eq!(next(3, 4), (Err(NetError::Timeout), 4));
    assert_eq!(next(3, 4), (Ok(b"hel".to_vec()), 5));
    assert_eq!(next(9, 4), (Ok(b"lo".to_vec()), 5));
    stream.write(&[Part::Bytes(b"a"), Part::Bytes(b"b")]).unwrap();
    assert_eq!(next(9, 100), (Ok(b"ab".to_vec()), 15));
    assert_eq!(next(9, 100), (Ok(b"!".to_vec()), 15));
    stream.write(&[Part::Bytes(b"bye")]).unwrap();
    assert_eq!(next(9, 100), (Ok(Vec::new()), 16));
    assert_eq!(next(9, 100), (Ok(Vec::new()), 16));
    assert_eq!(next(0, 100), (Err(NetError::Other), 16));
    assert_eq!(host.tcp("elsewhere").err(), Some(NetError::Denied));
    assert_eq!(host.udp("s").err(), Some(NetError::Denied));
    let host = TestHost::new(1_000).unreachable("s");
    assert_eq!(host.tcp("s").err(), Some(NetError::Unreachable));
}

#[test]
fn a_stream_that_breaks_takes_no_more_and_hears_no_farewell() {
    let host = TestHost::new(50).stream("s", parrot());
    let stream = host.tcp("s").unwrap();
    stream.farewell(b"bye");
    stream.write(&[Part::Bytes(b"break")]).unwrap();
    assert_eq!(stream.read(9, 100), Ok(b"hello".to_vec()));
    assert_eq!(stream.read(9, 100), Err(NetError::Closed));
    assert_eq!(stream.write(&[Part::Bytes(b"x")]), Err(NetError::Closed));
    drop(stream);
    let stream = host.tcp("s").unwrap();
    stream.farewell(b"bye");
    assert_eq!(stream.read(9, 100), Ok(b"hello".to_vec()));
    assert_eq!(stream.read(9, 100), Err(NetError::Timeout));
    assert_eq!(host.elapsed_ms(), 50, "the deadline cuts every wait");
    drop(stream);
    let farewells = host.trace().iter().filter(|one| **one == Trace::Farewell).count();
    assert_eq!(farewells, 1);
}

#[test]
fn a_secret_is_put_on_a_stream_and_not_seen_again() {
    let host = TestHost::new(100).stream("s", parrot()).credential("c", None, b"hunter2!");
    let (secret, stream) = (host.open("c").unwrap(), host.tcp("s").unwrap());
    stream.write(&[Part::Bytes(b"pw "), Part::Secret(&secret)]).unwrap();
    assert_eq!(stream.read(99, 50), Ok(b"hello".to_vec()));
    assert_eq!(stream.read(99, 50), Ok(b"pw ********".to_vec()));
    assert_eq!(host.secret_uses(), 1);
    assert!(!format!("{:?}", host.trace()).contains(&format!("{:?}", b"hunter2!")));
}

#[test]
fn a_real_socket_is_read_with_patience() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4];
        stream.read_exact(&mut asked).unwrap();
        stream.write_all(b"pong").unwrap();
        asked
    });
    let host = TestHost::real_time(10_000).tcp_socket("s", &address);
    let stream = host.tcp("s").unwrap();
    assert_eq!(stream.read(9, 1), Err(NetError::Timeout));
    stream.write(&[Part::Bytes(b"ping")]).unwrap();
    assert_eq!(stream.read(9, 5_000), Ok(b"pong".to_vec()));
    assert_eq!(stream.read(9, 5_000), Ok(Vec::new()));
    assert_eq!(&server.join().unwrap(), b"ping");
    let host = TestHost::real_time(10_000).tcp_socket("s", &address);
    assert_eq!(host.tcp("s").err(), Some(NetError::Refused));
}
