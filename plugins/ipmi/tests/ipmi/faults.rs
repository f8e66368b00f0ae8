//! Every fault of the model against status, off and on: what the call says, how long it takes, and
//! what it leaves behind. The table is the documentation of each failure.

use std::cell::RefCell;
use std::rc::Rc;

use expect_test::expect;
use node_remedy_devices::bmc::{Config, Faults};
use node_remedy_plugin_ipmi::EXPECT_SYSTEM_UUID;
use node_remedy_sdk::testing::Device;
use node_remedy_sdk::testing::faults::{Fault, FaultTable, Sessions};
use node_remedy_sdk::{Action, FailureKind, PlugState, Request};

use crate::bmc::{DEADLINE_MS, Ended, OnNetwork, bmc, call, call_over, host, request};

const FAULTS: [(&str, u32); 27] = [
    ("none", 1),
    ("drop", 2),
    ("drop", 3),
    ("delay", 700),
    ("dup", 1),
    ("silent", 1),
    ("dead", 1),
    ("open_status", 0x01),
    ("open_status", 0x11),
    ("rakp2_status", 0x09),
    ("rakp2_status", 0x0d),
    ("rakp4_status", 0x01),
    ("rakp4_status", 0x0f),
    ("bad_rakp2", 1),
    ("bad_rakp4", 1),
    ("bad_auth", 1),
    ("bad_tag", 1),
    ("wrong_sid", 1),
    ("no_ciphers", 1),
    ("mute_ciphers", 1),
    ("only_suite_zero", 1),
    ("truncate", 20),
    ("kill_session", 1),
    ("stuck", 1),
    ("cc", 0xc0),
    ("off_after", 3_000),
    ("reply_lost", 1),
];

/// Their names in the table of all methods, in the same order.
const NAMES: [&str; 27] = [
    "none",
    "lost: every second answer",
    "lost: every third answer",
    "slow",
    "answers twice",
    "unreachable, silent",
    "unreachable, dead",
    "too many sessions",
    "wrong cipher suite",
    "no rights: role",
    "wrong credentials: user",
    "too many sessions, said later",
    "wrong credentials: password, says the BMC",
    "wrong credentials: password, says its code",
    "wrong credentials: key of the BMC",
    "malformed: wrong code of a message",
    "malformed: a tag never sent",
    "malformed: another session's",
    "no list of cipher suites",
    "silent to the list of cipher suites",
    "no cipher suite but 0",
    "truncated",
    "session dies",
    "stuck",
    "busy",
    "late",
    "lost: the answer to the off",
];

fn faulty(fault: (&str, u32), action: Action) -> Ended {
    let mut bmc = bmc(Config::default());
    bmc.faults.set(fault.0, fault.1).unwrap();
    call(bmc, &request(action))
}

fn row(fault: (&str, u32), action: Action) -> String {
    let ended = faulty(fault, action);
    let (name, value) = fault;
    let seconds = ended.took_ms as f64 / 1000.0;
    let power = if ended.bmc.borrow().0.powered() { "on" } else { "off" };
    let (word, detail) = (ended.word(), ended.detail());
    format!("{name} {value} | {action:?} | {word} | {seconds:.1} s | power {power} | {detail}\n")
}

#[test]
fn what_each_fault_says_when_the_power_is_read() {
    let table: String = FAULTS.iter().map(|fault| row(*fault, Action::Status)).collect();
    expect![[r#"
        none 1 | Status | on | 0.0 s | power on | chassis power is on
        drop 2 | Status | on | 1.0 s | power on | chassis power is on
        drop 3 | Status | on | 1.5 s | power on | chassis power is on
        delay 700 | Status | on | 5.4 s | power on | chassis power is on
        dup 1 | Status | on | 0.0 s | power on | chassis power is on
        silent 1 | Status | Unreachable | 6.0 s | power on | open session with cipher suite 17: no answer in 5000 ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        dead 1 | Status | Unreachable | 6.0 s | power on | open session with cipher suite 17: no answer in 5000 ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        open_status 1 | Status | Busy | 0.0 s | power on | open session with cipher suite 17: the BMC has no session slot free: close others, or wait a minute (0x01)
        open_status 17 | Status | Unsupported | 0.0 s | power on | open session with cipher suite 3: the BMC does not have this cipher suite enabled (0x11)
        rakp2_status 9 | Status | Denied | 0.0 s | power on | RAKP 1: the user may not have this role: lower privilege-level, or raise the user's on the BMC (0x09)
        rakp2_status 13 | Status | Unauthenticated | 0.0 s | power on | RAKP 1: the BMC does not know the user, or has not enabled it for this channel (0x0d)
        rakp4_status 1 | Status | Busy | 0.0 s | power on | RAKP 3: the BMC has no session slot free: close others, or wait a minute (0x01)
        rakp4_status 15 | Status | Unauthenticated | 0.0 s | power on | RAKP 3: the BMC says that the password is wrong (0x0f)
        bad_rakp2 1 | Status | Unauthenticated | 0.0 s | power on | RAKP 2: the BMC's code does not fit the password: wrong password for user admin
        bad_rakp4 1 | Status | Unauthenticated | 0.0 s | power on | RAKP 4: the session keys differ though the password fits: the BMC may have a key (K_g) of its own: configure the credential kg
        bad_auth 1 | Status | Protocol | 5.2 s | power on | get chassis status: dropped 4 answers, the last because its authentication code is wrong
        bad_tag 1 | Status | Protocol | 5.0 s | power on | open session with cipher suite 17: dropped 4 answers, the last because it carries a message tag that was never sent
        wrong_sid 1 | Status | Protocol | 5.2 s | power on | get chassis status: dropped 4 answers, the last because it belongs to another session
        no_ciphers 1 | Status | on | 0.0 s | power on | chassis power is on
        mute_ciphers 1 | Status | on | 0.0 s | power on | chassis power is on
        only_suite_zero 1 | Status | Unsupported | 0.0 s | power on | the BMC offers of cipher suites only 0; 17 or 3 is needed, with authentication, integrity and encryption: enable one of them on the BMC
        truncate 20 | Status | Protocol | 5.4 s | power on | open session with cipher suite 17: dropped 4 answers, the last because its length field does not fit
        kill_session 1 | Status | Timeout | 5.2 s | power on | get chassis status: no answer in 5000 ms (4 sent), though the BMC had answered before
        stuck 1 | Status | on | 0.0 s | power on | chassis power is on
        cc 192 | Status | on | 0.0 s | power on | chassis power is on
        off_after 3000 | Status | on | 0.0 s | power on | chassis power is on
        reply_lost 1 | Status | on | 0.0 s | power on | chassis power is on
    "#]].assert_eq(&table);
}

#[test]
fn what_each_fault_says_when_the_power_is_cut() {
    let table: String = FAULTS.iter().map(|fault| row(*fault, Action::Off)).collect();
    expect![[r#"
        none 1 | Off | off | 0.0 s | power off | power off accepted; chassis power reads off
        drop 2 | Off | off | 1.0 s | power off | power off accepted; chassis power reads off
        drop 3 | Off | off | 1.5 s | power off | power off accepted; chassis power reads off
        delay 700 | Off | off | 6.1 s | power off | power off accepted; chassis power reads off
        dup 1 | Off | off | 0.0 s | power off | power off accepted; chassis power reads off
        silent 1 | Off | Unreachable | 6.0 s | power on | open session with cipher suite 17: no answer in 5000 ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        dead 1 | Off | Unreachable | 6.0 s | power on | open session with cipher suite 17: no answer in 5000 ms (4 sent): check the address, the network, and that the BMC has IPMI over LAN enabled
        open_status 1 | Off | Busy | 0.0 s | power on | open session with cipher suite 17: the BMC has no session slot free: close others, or wait a minute (0x01)
        open_status 17 | Off | Unsupported | 0.0 s | power on | open session with cipher suite 3: the BMC does not have this cipher suite enabled (0x11)
        rakp2_status 9 | Off | Denied | 0.0 s | power on | RAKP 1: the user may not have this role: lower privilege-level, or raise the user's on the BMC (0x09)
        rakp2_status 13 | Off | Unauthenticated | 0.0 s | power on | RAKP 1: the BMC does not know the user, or has not enabled it for this channel (0x0d)
        rakp4_status 1 | Off | Busy | 0.0 s | power on | RAKP 3: the BMC has no session slot free: close others, or wait a minute (0x01)
        rakp4_status 15 | Off | Unauthenticated | 0.0 s | power on | RAKP 3: the BMC says that the password is wrong (0x0f)
        bad_rakp2 1 | Off | Unauthenticated | 0.0 s | power on | RAKP 2: the BMC's code does not fit the password: wrong password for user admin
        bad_rakp4 1 | Off | Unauthenticated | 0.0 s | power on | RAKP 4: the session keys differ though the password fits: the BMC may have a key (K_g) of its own: configure the credential kg
        bad_auth 1 | Off | Protocol | 5.2 s | power on | set session privilege level: dropped 4 answers, the last because its authentication code is wrong
        bad_tag 1 | Off | Protocol | 5.0 s | power on | open session with cipher suite 17: dropped 4 answers, the last because it carries a message tag that was never sent
        wrong_sid 1 | Off | Protocol | 5.2 s | power on | set session privilege level: dropped 4 answers, the last because it belongs to another session
        no_ciphers 1 | Off | off | 0.0 s | power off | power off accepted; chassis power reads off
        mute_ciphers 1 | Off | off | 0.0 s | power off | power off accepted; chassis power reads off
        only_suite_zero 1 | Off | Unsupported | 0.0 s | power on | the BMC offers of cipher suites only 0; 17 or 3 is needed, with authentication, integrity and encryption: enable one of them on the BMC
        truncate 20 | Off | Protocol | 5.4 s | power on | open session with cipher suite 17: dropped 4 answers, the last because its length field does not fit
        kill_session 1 | Off | Timeout | 5.2 s | power on | set session privilege level: no answer in 5000 ms (4 sent), though the BMC had answered before
        stuck 1 | Off | transitioning | 0.0 s | power on | power off accepted; chassis power still reads on
        cc 192 | Off | Busy | 0.0 s | power on | chassis control: power off: the BMC is busy (0xc0)
        off_after 3000 | Off | transitioning | 0.0 s | power on | power off accepted; chassis power still reads on
        reply_lost 1 | Off | Timeout | 5.0 s | power off | chassis control: power off: no answer in 5000 ms (4 sent), though the BMC had answered before; it may have been carried out: read the status
    "#]].assert_eq(&table);
}

#[test]
fn every_fault_has_a_row() {
    // Faults that are about what happens after the call, one after the other, or about the machine that
    // the call expects, have tests of their own.
    let alone = ["flip_back", "stale", "lose_rakp4", "strict_rakp3", "another_guid"];
    for name in Faults::names() {
        let covered = FAULTS.iter().any(|(row, _)| *row == name) || alone.contains(&name);
        assert!(covered, "no row for {name}");
    }
}

#[test] // promise: L7
fn no_fault_leaves_a_session_open_or_makes_a_false_off() {
    for fault in FAULTS {
        for action in [Action::Status, Action::Monitor, Action::Off, Action::On, Action::Reset] {
            let ended = faulty(fault, action);
            assert_eq!(ended.open_sessions(), 0, "{fault:?} {action:?} left a session open");
            let powered = ended.bmc.borrow().0.powered();
            if let Ok(outcome) = &ended.result {
                let false_off = powered && outcome.state == PlugState::Off;
                assert!(!false_off, "{fault:?} {action:?} says off, and it is on");
            }
            assert!(ended.took_ms <= 12_000, "{fault:?} {action:?} took {} ms", ended.took_ms);
        }
    }
}

/// The same faults, and those of no BMC in particular, as all methods' table has them.
#[test]
fn each_fault_is_held_against_what_holds_of_every_method() {
    let mut table = FaultTable::new("ipmi", DEADLINE_MS);
    for (fault, name) in FAULTS.into_iter().zip(NAMES).skip(1) {
        table.row(&as_row(&faulty(fault, Action::Off), name, Action::Off));
    }
    let mangled: [(&str, Mangle); 2] = [
        ("malformed: no IPMI", |_| b"HTTP/1.1 400 Bad Request".to_vec()),
        ("huge", |mut it| {
            it.resize(60_000, 0);
            it
        }),
    ];
    for (name, mangle) in mangled {
        let network = |bmc| host().device("bmc", Rc::new(RefCell::new(Mangled { bmc, mangle })));
        let ended = call_over(network, bmc(Config::default()), &request(Action::Off));
        table.row(&as_row(&ended, name, Action::Off));
    }
    let network = |_| host().unreachable("bmc");
    let unreachable = call_over(network, bmc(Config::default()), &request(Action::Off));
    table.row(&as_row(&unreachable, "unreachable", Action::Off));
    let extra = vec![(EXPECT_SYSTEM_UUID.to_owned(), "0123456789abcdef".repeat(2))];
    let other = call(bmc(Config::default()), &Request { extra, ..request(Action::Off) });
    table.row(&as_row(&other, "wrong plug: another machine's BMC", Action::Off));
    let mut lagging = bmc(Config::default());
    lagging.faults.set("stale", 5_000).unwrap();
    let ended = call(lagging, &request(Action::Off));
    table.row(&as_row(&ended, "stale: what it says lags behind", Action::Off));
    let mut flipping = bmc(Config::default());
    flipping.faults.set("flip_back", 10_000).unwrap();
    let mut flipped = call(flipping, &request(Action::Off)).bmc.borrow().0.clone();
    flipped.tick(30_000);
    let ended = call(flipped, &request(Action::Status));
    table.row(&as_row(&ended, "flips back, read later", Action::Status));
    table.finish(env!("CARGO_TARGET_TMPDIR"));
}

type Mangle = fn(Vec<u8>) -> Vec<u8>;

/// What becomes of a BMC's answers on the way.
struct Mangled {
    bmc: Rc<RefCell<OnNetwork>>,
    mangle: Mangle,
}

impl Device for Mangled {
    fn datagram(&mut self, now_ms: u64, peer: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let answers = self.bmc.borrow_mut().datagram(now_ms, peer, data);
        answers.into_iter().map(|(delay_ms, bytes)| (delay_ms, (self.mangle)(bytes))).collect()
    }
}

fn as_row<'a>(ended: &'a Ended, name: &'a str, action: Action) -> Fault<'a> {
    let sessions = Sessions::Left(ended.open_sessions());
    let is_off = !ended.bmc.borrow().0.powered();
    let (result, took_ms) = (&ended.result, u128::from(ended.took_ms));
    Fault { name, action, result, took_ms, sessions, is_off }
}

#[test]
fn a_status_that_lags_is_reported_as_read() {
    let mut lagging = bmc(Config::default());
    lagging.faults.set("stale", 5_000).unwrap();
    let ended = call(lagging, &request(Action::Off));
    // The machine is off and the BMC still says on: never the other way round.
    assert_eq!(ended.word(), "transitioning");
    assert!(!ended.bmc.borrow().0.powered());
}

#[test]
fn power_that_flips_back_is_seen_by_the_next_status() {
    let mut flipping = bmc(Config::default());
    flipping.faults.set("flip_back", 10_000).unwrap();
    let ended = call(flipping, &request(Action::Off));
    assert_eq!(ended.word(), "off");
    let mut flipped = ended.bmc.borrow().0.clone();
    flipped.tick(30_000);
    let later = call(flipped, &request(Action::Status));
    assert_eq!(later.word(), "on");
}

#[test]
fn silence_is_told_apart_from_answers_that_cannot_be_believed() {
    let kind = |fault| faulty(fault, Action::Status).failed().kind;
    assert_eq!(kind(("silent", 1)), FailureKind::Unreachable);
    assert_eq!(kind(("kill_session", 1)), FailureKind::Timeout);
    assert_eq!(kind(("bad_auth", 1)), FailureKind::Protocol);
}

/// A BMC may take each word of a session once: what was lost is said in a new one, and the old one is closed.
#[test]
fn a_lost_end_of_the_set_up_costs_a_new_session_and_leaves_none_behind() {
    for lost in [1, 2] {
        for action in [Action::Status, Action::Off] {
            let mut bmc = bmc(Config::default());
            bmc.faults.set("lose_rakp4", lost).unwrap();
            bmc.faults.set("strict_rakp3", 1).unwrap();
            let ended = call(bmc, &request(action));
            let wanted = if action == Action::Off { "off" } else { "on" };
            assert_eq!(ended.word(), wanted, "{lost}: {}", ended.detail());
            assert_eq!(ended.open_sessions(), 0, "{lost}: a slot is left taken");
            let most_ms = u64::from(lost) * 1_600 + 500;
            assert!(ended.took_ms < most_ms, "{lost}: {} ms", ended.took_ms);
        }
    }
    // One that never says it is given up after the last session, within the usual patience.
    let mut bmc = bmc(Config::default());
    bmc.faults.set("lose_rakp4", 100).unwrap();
    bmc.faults.set("strict_rakp3", 1).unwrap();
    let ended = call(bmc, &request(Action::Status));
    assert_eq!(ended.failed().kind, FailureKind::Timeout);
    assert!(ended.took_ms < 9_000, "{} ms", ended.took_ms);
}
