//! What a daemon does wrong, what is said of it, and how long that takes. None of it reads as off.

use expect_test::expect;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::testing::{TestHost, Trace};
use node_remedy_sdk::{Action, FenceMethod, PlugState, Request};

use crate::daemon::{
    AUTH_LIST, BY_NAME, CLOSE, DEADLINE_MS, DESTROY, Daemon, Fault, OPEN, STATE, ask, ask_for,
    number, string,
};

#[test]
fn each_fault_has_its_kind_and_sentence() {
    use Fault::{Close, Drip, Head, Length, Midway, Payload, Raw, Refuse, Silent, Unasked};
    let with = |call, fault| Daemon::with_two().fault(call, fault);
    let back = |fault| Daemon { fails_read_back: true, ..with(STATE, fault) };
    let greeted = |greeting| Daemon { greeting, ..Daemon::with_two() };
    let login = |logins: &[u32]| Daemon { logins: logins.to_vec(), ..Daemon::with_two() };
    let rows: Vec<(&str, Daemon)> = vec![
        ("unreachable, silent", greeted(Some(Vec::from(b"\x01"))).fault(AUTH_LIST, Silent)),
        ("silent to the destroy", with(DESTROY, Silent)),
        ("closed after TLS", greeted(None)),
        ("another greeting", greeted(Some(vec![0]))),
        ("closed at once", with(AUTH_LIST, Close)),
        ("closed at the destroy", with(DESTROY, Close)),
        ("truncated: broken midway", back(Midway)),
        ("malformed: a web server", with(AUTH_LIST, Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"))),
        ("length 0", with(BY_NAME, Length(0))),
        ("length 27", with(BY_NAME, Length(27))),
        ("huge: length 4 GB", with(BY_NAME, Length(u32::MAX))),
        ("length too great", with(BY_NAME, Length(10_000))),
        ("length too small", with(BY_NAME, Length(36))),
        ("drips", with(BY_NAME, Drip(900))),
        ("another program", with(BY_NAME, Head(0, 0x6b65_6570))),
        ("another version", with(BY_NAME, Head(1, 2))),
        ("another procedure", with(BY_NAME, Head(2, STATE))),
        ("another type", with(BY_NAME, Head(3, 3))),
        ("an old serial", back(Head(4, 1))),
        ("another status", back(Head(5, 2))),
        ("events without end", back(Unasked(17))),
        ("wants sasl", login(&[1])),
        ("wants polkit or more", login(&[2, 9])),
        ("a list of logins that lies", with(AUTH_LIST, Payload(number(1_000_000)))),
        ("no such driver", with(OPEN, Refuse(5, "no connection driver available"))),
        ("wrong credentials: not let in", with(OPEN, Refuse(39, "authentication required"))),
        (
            "wrong plug: another domain",
            with(BY_NAME, Payload([string("node-b"), vec![1; 20]].concat())),
        ),
        ("a long name", with(BY_NAME, Payload([string(&"x".repeat(999)), vec![1; 20]].concat()))),
        ("wrong plug: gone meanwhile", with(DESTROY, Refuse(42, "Domain not found"))),
        ("no rights", with(DESTROY, Refuse(88, "access denied"))),
        ("locked", with(DESTROY, Refuse(68, "cannot acquire state change lock"))),
        ("fails inside", with(DESTROY, Refuse(38, "Failed to terminate\u{7} process 7"))),
        ("fails and says nothing", with(DESTROY, Head(5, 1))),
        ("not running, it says", with(DESTROY, Refuse(55, "domain is not running"))),
        ("state without reason", back(Payload(number(5)))),
        ("state with more", back(Payload(vec![0; 12]))),
        ("stuck", Daemon { is_stuck: true, ..Daemon::with_two() }),
        ("late", Daemon { late_ms: 9_000, ..Daemon::with_two() }),
        ("flips back at once", Daemon { flips_back: true, ..Daemon::with_two() }),
    ];
    let mut table = FaultTable::new("libvirt", DEADLINE_MS);
    for (fault, daemon) in rows {
        table.row(&ask(daemon, Action::Off, "node-a").fault(fault));
    }
    table.row(&ask(Daemon::with_two(), Action::Off, "node-c").fault("wrong plug"));
    let off = Request { plug: "node-a".into(), ..Request::new(Action::Off, DEADLINE_MS) };
    let unreachable = ask_for(Daemon::with_two(), &off, |host| host.unreachable("tls"));
    table.row(&unreachable.fault("unreachable"));
    let table = table.finish(env!("CARGO_TARGET_TMPDIR"));
    expect![[r#"
        unreachable, silent | 20003 ms | Unreachable, again: failed to ask the libvirt daemon how to log in: the time allowed for it has passed; is a libvirt daemon at this address?
        silent to the destroy | 45023 ms | Timeout, again: failed to destroy the domain: the time allowed for it has passed
        closed after TLS | 3 ms | Unauthenticated: failed to be let in: the libvirt daemon closed the connection after TLS was agreed on; it asks for a certificate of ours (tls_no_verify_certificate = 0), which this plugin has none of
        another greeting | 3 ms | Protocol: failed to be let in: found a first byte of 0; is a libvirt daemon at this address?
        closed at once | 8 ms | Other, again: failed to ask the libvirt daemon how to log in: the device closed the connection; is it a libvirt daemon, and is the parameter transport right?
        closed at the destroy | 28 ms | Other, again: failed to destroy the domain: the device closed the connection
        truncated: broken midway | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        malformed: a web server | 8 ms | Protocol: failed to ask the libvirt daemon how to log in: found a message of 1213486160 bytes; is a libvirt daemon at this address?
        length 0 | 18 ms | Protocol: failed to find the domain by its name: found a message of 0 bytes; is a libvirt daemon at this address?
        length 27 | 18 ms | Protocol: failed to find the domain by its name: found a message of 27 bytes; is a libvirt daemon at this address?
        huge: length 4 GB | 18 ms | Protocol: failed to find the domain by its name: found a message of 4294967295 bytes; is a libvirt daemon at this address?
        length too great | 20013 ms | Timeout, again: failed to find the domain by its name: the time allowed for it has passed
        length too small | 18 ms | Protocol: failed to find the domain by its name: found an answer of another shape; is a libvirt daemon at this address?
        drips | 20013 ms | Timeout, again: failed to find the domain by its name: the time allowed for it has passed
        another program | 18 ms | Protocol: failed to find the domain by its name: found program 0x6b656570 version 1, which is not libvirt's; is a libvirt daemon at this address?
        another version | 18 ms | Protocol: failed to find the domain by its name: found program 0x20008086 version 2, which is not libvirt's; is a libvirt daemon at this address?
        another procedure | 18 ms | Protocol: failed to find the domain by its name: found the answer to call 3 of 212, expected 3 of 23; is a libvirt daemon at this address?
        another type | 18 ms | Protocol: failed to find the domain by its name: found a message of type 3; is a libvirt daemon at this address?
        an old serial | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        another status | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        events without end | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        wants sasl | 8 ms | Unsupported: the libvirt daemon wants a login by sasl, which this plugin does not do; set auth_tls or auth_tcp = "none" and let in whom TLS or the network lets in
        wants polkit or more | 8 ms | Unsupported: the libvirt daemon wants a login by polkit or number 9, which this plugin does not do; set auth_tls or auth_tcp = "none" and let in whom TLS or the network lets in
        a list of logins that lies | 8 ms | Protocol: failed to ask the libvirt daemon how to log in: found an answer of another shape; is a libvirt daemon at this address?
        no such driver | 13 ms | Unsupported: failed to open the driver: the libvirt daemon says "no connection driver available" (error 5); check the parameter uri
        wrong credentials: not let in | 13 ms | Unauthenticated: failed to open the driver: the libvirt daemon says "authentication required" (error 39); check how the daemon wants us to log in
        wrong plug: another domain | 18 ms | Protocol: failed to find the domain by its name: found another domain than the one that was asked for; is a libvirt daemon at this address?
        a long name | 18 ms | Protocol: failed to find the domain by its name: found an answer of another shape; is a libvirt daemon at this address?
        wrong plug: gone meanwhile | 28 ms | NoSuchPlug: failed to destroy the domain: the libvirt daemon says "Domain not found" (error 42); check the plug: name or UUID of a domain
        no rights | 28 ms | Denied: failed to destroy the domain: the libvirt daemon says "access denied" (error 88); check what the daemon lets us do
        locked | 28 ms | Busy, again: failed to destroy the domain: the libvirt daemon says "cannot acquire state change lock" (error 68); something else is done with the domain
        fails inside | 28 ms | Device, again: failed to destroy the domain: the libvirt daemon says "Failed to terminate process 7" (error 38); look into the daemon's log
        fails and says nothing | 28 ms | Protocol: failed to destroy the domain: found an error that says nothing; is a libvirt daemon at this address?
        not running, it says | 33 ms | Device: failed to destroy the domain: the libvirt daemon says "domain is not running" (error 55); the domain is in no state for it
        state without reason | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        state with more | 33 ms | Unknown: destroy accepted; the state could not be read afterwards
        stuck | 33 ms | Transitioning: destroy accepted; the domain is running still
        late | 33 ms | Transitioning: destroy accepted; the domain is running still
        flips back at once | 33 ms | Transitioning: destroy accepted; the domain is running still
        wrong plug | 18 ms | NoSuchPlug: failed to find the domain by its name: the libvirt daemon says "Domain not found" (error 42); check the plug: name or UUID of a domain
        unreachable | 0 ms | Unreachable, again: failed to connect to the libvirt daemon: the network says that the device is unreachable
    "#]].assert_eq(&table);
}

/// It says itself that the time is over; the host need not cut it.
#[test]
fn a_silent_daemon_is_left_before_the_deadline() {
    let status = Request { plug: "node-a".into(), ..Request::new(Action::Status, 10_000) };
    for call in [AUTH_LIST, OPEN, BY_NAME, STATE] {
        let daemon = Daemon::with_two().fault(call, Fault::Silent);
        let ended = ask_for(daemon, &status, |host| host);
        assert_eq!(ended.took_ms, 9_750);
        assert!(ended.result.unwrap_err().retryable);
    }
}

/// Every byte of every answer, changed in four ways.
#[test]
fn no_single_wrong_byte_makes_a_machine_that_runs_read_off() {
    use node_remedy_sdk::testing::{Stream, StreamEvent};
    struct Flips {
        daemon: Daemon,
        at: usize,
        with: u8,
        said: usize,
    }
    impl Stream for Flips {
        fn hear(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, StreamEvent)> {
            let mut said = self.daemon.hear(now_ms, peer, data);
            for one in &mut said {
                let StreamEvent::Bytes(bytes) = &mut one.1 else { continue };
                for byte in bytes {
                    if self.said == self.at {
                        *byte ^= self.with;
                    }
                    self.said += 1;
                }
            }
            said
        }
    }
    let request = Request { plug: "node-a".into(), ..Request::new(Action::Status, 5_000) };
    let mut offs = Vec::new();
    for at in 0..220 {
        for with in [1_u8, 4, 0x80, 0xff] {
            let flips = Flips { daemon: Daemon::with_two(), at, with, said: 0 };
            let device = std::rc::Rc::new(std::cell::RefCell::new(flips));
            let host = TestHost::new(5_000).stream("tls", device);
            let result = node_remedy_plugin_libvirt::Libvirt.run(&request, &host);
            if result.is_ok_and(|outcome| outcome.state == PlugState::Off) {
                offs.push((at, with));
            }
        }
    }
    // The state itself: TCP and TLS have sums for that, the protocol has none.
    assert_eq!(offs.len(), 1, "{offs:?}");
}

#[test]
fn a_session_is_closed_however_it_ends() {
    for (call, fault) in [
        (STATE, Fault::Silent),
        (STATE, Fault::Head(4, 9)),
        (BY_NAME, Fault::Refuse(42, "Domain not found")),
        (BY_NAME, Fault::Unasked(0)),
    ] {
        let ended = ask(Daemon::with_two().fault(call, fault), Action::Status, "node-a");
        assert_eq!(ended.daemon.borrow().calls.last(), Some(&CLOSE));
        assert!(ended.trace.contains(&Trace::Farewell));
    }
    let unopened = Daemon::with_two().fault(OPEN, Fault::Refuse(5, "no"));
    let ended = ask(unopened, Action::Status, "node-a");
    assert_eq!(ended.daemon.borrow().calls, [AUTH_LIST, OPEN]);
}

#[test]
fn a_network_that_does_not_lead_there_is_said_to_be_one() {
    let request = Request::new(Action::Status, DEADLINE_MS);
    let host = TestHost::new(1_000).unreachable("tls");
    let failure = node_remedy_plugin_libvirt::Libvirt.run(&request, &host).unwrap_err();
    let says =
        "failed to connect to the libvirt daemon: the network says that the device is unreachable";
    assert_eq!(failure.detail, says);
}
