//! The healthy path, and what is refused before or beside it.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_devices::bmc::{Bmc, Cause, Change, Config, Suite};
use node_remedy_plugin_ipmi::{EXPECT_SYSTEM_UUID, Ipmi};
use node_remedy_sdk::testing::{Device, TestHost, Trace};
use node_remedy_sdk::{Action, FailureKind, FenceMethod, Host, PlugState, Request};

use crate::bmc::{DEADLINE_MS, Ended, OnNetwork, bmc, call, call_from, host, request, with};

const GUID: &str = "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf";

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[test]
fn status_reads_power_and_identity() {
    let outcome = call(bmc(Config::default()), &request(Action::Status)).ok();
    assert_eq!(outcome.state, PlugState::On);
    assert_eq!(field(&outcome.identity, "system-uuid"), Some(GUID));
    assert_eq!(field(&outcome.extra, "cipher-suite"), Some("17"));
    assert_eq!(field(&outcome.extra, "bmc-manufacturer-id"), Some("4753"));
    assert_eq!(field(&outcome.extra, "bmc-ipmi-version"), Some("2.0"));
}

#[test]
fn off_and_on_switch_and_read_back() {
    let ended = call(bmc(Config::default()), &request(Action::Off));
    assert_eq!(ended.word(), "off");
    let mut bmc = ended.bmc.borrow().0.clone();
    let changes = bmc.drain_power_events();
    let by = Cause::Command { user: "admin".into() };
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].change, &changes[0].cause), (Change::Off, &by));

    let ended = call(bmc, &request(Action::On));
    assert_eq!(ended.word(), "on");
    assert_eq!(ended.bmc.borrow_mut().0.drain_power_events()[0].change, Change::On);
}

#[test]
fn reset_is_sent_once_and_not_repeated() {
    let ended = call(bmc(Config::default()), &request(Action::Reset));
    assert_eq!(ended.word(), "on");
    assert_eq!(ended.bmc.borrow_mut().0.drain_power_events()[0].change, Change::Reset);

    let mut lossy = bmc(Config::default());
    lossy.faults.set("reply_lost", 1).unwrap();
    let ended = call(lossy, &request(Action::Reset));
    assert_eq!(ended.failed().kind, FailureKind::Timeout);
    assert_eq!(ended.bmc.borrow_mut().0.drain_power_events().len(), 1);
}

#[test]
fn reset_of_a_machine_that_is_off_is_a_failure() {
    let config = Config { powered: false, ..Config::default() };
    let ended = call(bmc(config), &request(Action::Reset));
    assert_eq!(ended.failed().kind, FailureKind::Device);
    assert_eq!(ended.failed().device_code, Some(0xd5));
}

#[test]
fn the_effect_begins_right_before_the_control_and_only_then() {
    for action in [Action::Status, Action::Monitor] {
        let trace = call(bmc(Config::default()), &request(action)).trace;
        assert!(!trace.iter().any(|t| matches!(t, Trace::BeganEffect { .. })), "{action:?}");
    }
    let ended = call(bmc(Config::default()), &request(Action::Off));
    let began = ended.trace.iter().position(|t| matches!(t, Trace::BeganEffect { .. })).unwrap();
    let Trace::Sent { at_ms, .. } = &ended.trace[began + 1] else {
        panic!("the next thing after the commit point is not a datagram");
    };
    // The model's own log says what that datagram was.
    let commands = ended.bmc.borrow_mut().0.drain_commands();
    let sent_then = commands.iter().find(|command| command.at_ms == *at_ms).unwrap();
    assert_eq!((sent_then.netfn, sent_then.command), (0, 2));
    assert_eq!(commands.iter().filter(|c| (c.netfn, c.command) == (0, 2)).count(), 1);
}

#[test]
fn a_refused_commit_point_touches_nothing() {
    let host = host().refuse_effect("the lease has expired");
    let ended = call_from(host, bmc(Config::default()), &request(Action::Off));
    assert_eq!(ended.failed().kind, FailureKind::Cancelled);
    assert!(ended.detail().contains("the lease has expired"), "{}", ended.detail());
    assert!(ended.bmc.borrow().0.powered());
    assert_eq!(ended.open_sessions(), 0);
}

#[test]
fn the_password_is_told_apart_from_the_user_and_the_role() {
    let try_as = |name: &str, password: &[u8], level: &str| {
        let host =
            TestHost::new(u64::from(DEADLINE_MS)).credential("account", Some(name), password);
        let request = with(request(Action::Status), "privilege-level", level);
        call_from(host, bmc(Config::default()), &request)
    };
    let wrong = try_as("admin", b"guess", "administrator");
    assert_eq!(wrong.failed().kind, FailureKind::Unauthenticated);
    assert!(wrong.detail().contains("wrong password for user admin"), "{}", wrong.detail());
    // The BMC was told, and has its slot back.
    assert_eq!(wrong.bmc.borrow().0.half_open_sessions(), 0);

    let nobody = try_as("nobody", b"secret", "administrator");
    assert_eq!(nobody.failed().kind, FailureKind::Unauthenticated);
    assert!(nobody.detail().contains("does not know the user"), "{}", nobody.detail());

    let too_high = try_as("viewer", b"viewpw", "administrator");
    assert_eq!(too_high.failed().kind, FailureKind::Denied);
    assert!(too_high.detail().contains("lower privilege-level"), "{}", too_high.detail());

    assert_eq!(try_as("viewer", b"viewpw", "user").word(), "on");
}

#[test]
fn a_full_bmc_is_busy() {
    let config = Config { session_slots: 0, ..Config::default() };
    let ended = call(bmc(config), &request(Action::Status));
    assert_eq!(ended.failed().kind, FailureKind::Busy);
    assert!(ended.failed().retryable);
    assert!(ended.detail().contains("no session slot"), "{}", ended.detail());
}

#[test]
fn a_key_of_the_bmc_is_used_and_its_absence_explained() {
    let config = Config { kg: Some(b"twenty bytes of key!".to_vec()), ..Config::default() };
    let with_kg = host().credential("kg", None, b"twenty bytes of key!");
    assert_eq!(call_from(with_kg, bmc(config.clone()), &request(Action::Status)).word(), "on");

    let without = call(bmc(config.clone()), &request(Action::Status));
    assert_eq!(without.failed().kind, FailureKind::Unauthenticated);
    assert!(without.detail().contains("configure the credential kg"), "{}", without.detail());

    let wrong = host().credential("kg", None, b"another key entirely");
    let wrong = call_from(wrong, bmc(config), &request(Action::Status));
    assert!(wrong.detail().contains("kg is not the BMC's key"), "{}", wrong.detail());
}

#[test]
fn suites_are_chosen_from_what_both_have() {
    let suite = |suites: &[Suite], asked: &str| {
        let config = Config { suites: suites.to_vec(), ..Config::default() };
        let ended = call(bmc(config), &with(request(Action::Status), "cipher-suite", asked));
        match &ended.result {
            Ok(outcome) => field(&outcome.extra, "cipher-suite").unwrap().to_owned(),
            Err(failure) => format!("{:?}", failure.kind),
        }
    };
    let (old, new) = (Suite::Sha1, Suite::Sha256);
    assert_eq!(suite(&[old, new], "auto"), "17");
    assert_eq!(suite(&[old], "auto"), "3");
    assert_eq!(suite(&[new], "auto"), "17");
    assert_eq!(suite(&[old, new], "3"), "3");
    assert_eq!(suite(&[old], "17"), "Unsupported");
    assert_eq!(suite(&[], "auto"), "Unsupported");
}

#[test]
fn a_bmc_that_is_mute_about_its_list_costs_little() {
    let mut mute = bmc(Config { suites: vec![Suite::Sha1], ..Config::default() });
    mute.faults.set("mute_ciphers", 1).unwrap();
    let ended = call(mute, &request(Action::Status));
    assert_eq!(ended.word(), "on");
    assert!(ended.took_ms < 100, "took {} ms", ended.took_ms);
}

#[test]
fn a_machine_that_is_not_the_expected_one_is_not_touched() {
    let expecting = |guid: &str| {
        let mut request = request(Action::Off);
        request.extra.push((EXPECT_SYSTEM_UUID.into(), guid.into()));
        request
    };
    let wrong = call(bmc(Config::default()), &expecting("00112233445566778899aabbccddeeff"));
    assert_eq!(wrong.failed().kind, FailureKind::NoSuchPlug);
    assert!(wrong.bmc.borrow().0.powered());
    assert!(!wrong.trace.iter().any(|t| matches!(t, Trace::BeganEffect { .. })));
    assert_eq!(wrong.open_sessions(), 0);

    let nameless = Config { guid: [0; 16], ..Config::default() };
    assert_eq!(call(bmc(nameless), &expecting(GUID)).failed().kind, FailureKind::NoSuchPlug);
    let mut moved = bmc(Config::default());
    moved.faults.set("another_guid", 1).unwrap();
    assert_eq!(call(moved, &expecting(GUID)).failed().kind, FailureKind::NoSuchPlug);
    assert_eq!(call(bmc(Config::default()), &expecting(GUID)).word(), "off");
}

#[test]
fn a_bmc_without_a_guid_reports_no_identity() {
    let config = Config { guid: [0; 16], ..Config::default() };
    assert_eq!(call(bmc(config), &request(Action::Status)).ok().identity, []);
}

#[test]
fn status_waits_in_one_session_until_the_power_is_what_is_wanted() {
    let mut slow = bmc(Config::default());
    slow.faults.set("off_after", 6_000).unwrap();
    let ended = call(slow, &request(Action::Off));
    assert_eq!(ended.word(), "transitioning");
    let slow = ended.bmc.borrow().0.clone();

    let mut wait = request(Action::Status);
    wait.until = Some(PlugState::Off);
    let ended = call(slow, &wait);
    assert_eq!(ended.word(), "off");
    assert!((5_500..7_500).contains(&ended.took_ms), "took {} ms", ended.took_ms);
    assert_eq!(ended.open_sessions(), 0);
}

#[test]
fn waiting_ends_before_the_deadline_with_what_was_read() {
    let mut wait = request(Action::Status);
    wait.deadline_ms = 10_000;
    wait.until = Some(PlugState::Off);
    let host = TestHost::new(10_000).credential("account", Some("admin"), b"secret");
    let ended = call_from(host, bmc(Config::default()), &wait);
    assert_eq!(ended.word(), "on");
    assert!((8_000..10_000).contains(&ended.took_ms), "took {} ms", ended.took_ms);
    assert_eq!(ended.open_sessions(), 0);
}

#[test]
fn a_cancelled_call_leaves_no_session() {
    let mut wait = request(Action::Status);
    wait.until = Some(PlugState::Off);
    let ended = call_from(host().cancel_at(1_500), bmc(Config::default()), &wait);
    assert_eq!(ended.failed().kind, FailureKind::Cancelled);
    assert_eq!(ended.open_sessions(), 0);
    assert!(ended.trace.contains(&Trace::Farewell));
}

#[test]
fn a_cut_at_any_moment_leaves_no_session() {
    // 2 ms a round trip: this walks through every point of an off, and a little beyond.
    for cut_ms in 0..40 {
        let host = host().cancel_at(cut_ms);
        let ended = call_from(host, bmc(Config::default()), &request(Action::Off));
        assert_eq!(ended.open_sessions(), 0, "cut at {cut_ms} ms: {}", ended.detail());
        if ended.trace.iter().all(|t| !matches!(t, Trace::BeganEffect { .. })) {
            assert!(ended.bmc.borrow().0.powered(), "cut at {cut_ms} ms");
        }
    }
}

#[test]
fn a_short_deadline_is_kept() {
    let mut bmc = bmc(Config::default());
    bmc.faults.set("silent", 1).unwrap();
    let mut request = request(Action::Status);
    request.deadline_ms = 3_000;
    let ended = call(bmc, &request);
    assert_eq!(ended.failed().kind, FailureKind::Unreachable);
    assert!(ended.took_ms <= 3_000, "took {} ms", ended.took_ms);

    let mut mute = Bmc::new(Config::default());
    mute.faults.set("kill_session", 1).unwrap();
    let ended = call(mute, &request);
    assert_eq!(ended.failed().kind, FailureKind::Timeout);
    assert!(ended.detail().contains("deadline"), "{}", ended.detail());
    assert!(ended.took_ms <= 3_000, "took {} ms", ended.took_ms);
}

#[test]
fn parameters_are_parsed_and_the_wrong_ones_named() {
    let refused = |request| {
        let ended = call(bmc(Config::default()), &request);
        assert_eq!(ended.failed().kind, FailureKind::BadParameters);
        assert!(ended.trace.is_empty(), "something was sent");
        ended.detail().to_owned()
    };
    let suite_0 = refused(with(request(Action::Status), "cipher-suite", "0"));
    assert_eq!(suite_0, "cipher-suite: found 0, expected auto, 17 or 3");
    let level = refused(with(request(Action::Status), "privilege-level", "root"));
    assert_eq!(level, "privilege-level: found root, expected user, operator or administrator");
    for action in [Action::Off, Action::On, Action::Reset, Action::Monitor] {
        let user = refused(with(request(action), "privilege-level", "user"));
        assert!(user.contains("can only read"), "{user}");
    }
}

#[test]
fn credentials_that_are_missing_are_named() {
    let none = TestHost::new(u64::from(DEADLINE_MS));
    let none = call_from(none, bmc(Config::default()), &request(Action::Status));
    assert_eq!(none.failed().kind, FailureKind::BadParameters);
    assert!(none.detail().contains("credential account"), "{}", none.detail());

    let nameless = TestHost::new(u64::from(DEADLINE_MS)).credential("account", None, b"secret");
    let nameless = call_from(nameless, bmc(Config::default()), &request(Action::Status));
    assert!(
        nameless.detail().contains("no user name of at most 16 bytes"),
        "{}",
        nameless.detail()
    );
}

#[test]
fn a_network_that_says_unreachable_is_believed_at_once() {
    let host = host().unreachable("bmc");
    let failure = Ipmi.run(&request(Action::Status), &host).unwrap_err();
    assert_eq!((failure.kind, host.elapsed_ms()), (FailureKind::Unreachable, 0));
}

#[test]
fn every_loss_of_one_datagram_is_survived() {
    // The n-th datagram to the BMC is lost; the call still ends well, and only once.
    for lost in 0..14 {
        let ended = lose_nth(lost);
        assert_eq!(ended.word(), "off", "datagram {lost} lost: {}", ended.detail());
        assert_eq!(ended.open_sessions(), 0, "datagram {lost} lost");
    }
}

fn lose_nth(lost: u32) -> Ended {
    let bmc = Rc::new(RefCell::new(OnNetwork(bmc(Config::default()))));
    let behind = Rc::clone(&bmc);
    let mut count = 0;
    let lossy = move |now_ms: u64, peer: u64, data: &[u8]| {
        count += 1;
        if count == lost + 1 {
            Vec::new()
        } else {
            behind.borrow_mut().datagram(now_ms, peer, data)
        }
    };
    let host = host().device("bmc", Rc::new(RefCell::new(lossy)));
    let result = Ipmi.run(&request(Action::Off), &host);
    let (took_ms, trace, secret_uses) = (host.elapsed_ms(), host.trace(), host.secret_uses());
    drop(host);
    Ended { result, took_ms, trace, secret_uses, bmc }
}

#[test]
fn secrets_are_used_sparingly() {
    let status = call(bmc(Config::default()), &request(Action::Status));
    assert!(status.secret_uses <= 40, "{} uses", status.secret_uses);
}

#[test]
fn algorithms_that_were_not_proposed_are_refused() {
    // Authentication, integrity and confidentiality stand here in the open session response.
    const ALGORITHMS_AT: [usize; 3] = [16 + 16, 16 + 24, 16 + 32];
    const OPEN_RESPONSE: u8 = 0x11;
    for at in ALGORITHMS_AT {
        let mut behind = OnNetwork(bmc(Config::default()));
        let weakened = move |now_ms: u64, peer: u64, data: &[u8]| {
            let mut replies = behind.datagram(now_ms, peer, data);
            for (_, bytes) in replies.iter_mut().filter(|(_, bytes)| bytes[5] == OPEN_RESPONSE) {
                assert_ne!(bytes[at], 0);
                bytes[at] = 0;
            }
            replies
        };
        let host = host().device("bmc", Rc::new(RefCell::new(weakened)));
        let failure = Ipmi.run(&request(Action::Off), &host).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol);
        assert!(failure.detail.contains("algorithms"), "{}", failure.detail);
    }
}

#[test]
fn a_replayed_answer_is_never_taken_for_a_new_one() {
    // Somebody on the network repeats every answer there ever was before each new one. Answers are
    // paired by six bits, so from the 64th question on an old one would fit; its number does not.
    const OFF_AT_MS: u64 = 70_000;
    const CALL_MS: u32 = 110_000;
    let mut behind = OnNetwork(bmc(Config::default()));
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let replaying = move |now_ms: u64, peer: u64, data: &[u8]| {
        if now_ms >= OFF_AT_MS && behind.0.powered() {
            behind.0.set_power(now_ms, false);
        }
        let new = behind.datagram(now_ms, peer, data);
        let mut replies: Vec<_> = heard.iter().map(|bytes| (1, bytes.clone())).collect();
        heard.extend(new.iter().map(|(_, bytes)| bytes.clone()));
        replies.extend(new);
        replies
    };
    let mut wait = Request::new(Action::Status, CALL_MS);
    wait.until = Some(PlugState::Off);
    let host = TestHost::new(u64::from(CALL_MS)).credential("account", Some("admin"), b"secret");
    let host = host.device("bmc", Rc::new(RefCell::new(replaying)));
    assert_eq!(Ipmi.run(&wait, &host).unwrap().state, PlugState::Off);
    assert!(host.elapsed_ms() < OFF_AT_MS + 3_000, "took {} ms", host.elapsed_ms());
}

/// Two questions under way at once break some BMCs. The farewell is no question.
#[test]
fn nothing_is_asked_before_the_answer_to_what_was_asked() {
    for action in [Action::Status, Action::Monitor, Action::Off] {
        let trace = call(bmc(Config::default()), &request(action)).trace;
        let mut under_way = 0;
        for one in &trace {
            if let Trace::Sent { .. } = one {
                under_way += 1;
            } else if let Trace::Received { .. } = one {
                under_way = 0;
            }
            assert!(under_way <= 1, "{action:?}: {trace:?}");
        }
    }
}
