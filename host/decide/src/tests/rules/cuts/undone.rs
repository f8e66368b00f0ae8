//! Cuts that somebody else gave back behind a release.

use super::*;

/// A BMC that says yes and cuts nothing, and a cut behind which pods were released meanwhile.
fn released_behind_a_cut(retries: u32) -> Story {
    let policy = RunPolicy { retries, ..RunPolicy::default() };
    let mut story = Story::new(cutting_plan(storage()), policy);
    story.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Off | Action::Reset) => succeeded(plugs[0]),
        _ => honest(operation, plugs),
    });
    story.until(Phase::Releasing).until(Phase::VerifyingOff);
    assert!(story.released() && story.view.pods.iter().all(|pod| pod.exempt.is_some()));
    story
}

/// Cut storage is no proof.
fn proven_by_power() -> RunPolicy {
    RunPolicy { grades: [Grade::PowerOffVerified].into(), ..RunPolicy::default() }
}

/// How often storage was cut.
fn cuts(story: &Story) -> usize {
    story.calls.iter().filter(|call| **call == (1, Action::Off)).count()
}

/// Its power is being read, or asked once more, and that takes minutes.
#[test] // promise: A16
fn a16_a_cut_is_read_while_power_is_tried() {
    for phase in [Phase::VerifyingOff, Phase::Backoff] {
        let mut story = released_behind_a_cut(10);
        story.until(phase);
        story.plugs[1] = PlugState::On;
        story.until_now(Span::seconds(25));
        assert_eq!((story.plugs[1], cuts(&story)), (PlugState::Off, 2), "{phase:?}");
    }
}

/// Another pass has no proof yet, and rests on what was cut in the one before.
#[test] // promise: A16
fn a16_a_cut_of_an_earlier_pass_is_read_for_as_long_as_the_machine_may_run() {
    let mut story = released_behind_a_cut(0);
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::OffNotVerified { tries: 1 }));
    story.event(Event::Command(Command::Retry));
    story.until(Phase::VerifyingOff).until(Phase::Parked);
    assert_eq!((story.record.proof.clone(), cuts(&story)), (None, 1));
    story.plugs[1] = PlugState::On;
    story.until_now(Span::seconds(25));
    assert_eq!((story.plugs[1], cuts(&story)), (PlugState::Off, 2));
    assert!(story.notices.contains(&Notice::CutUndone { method: 1 }));

    // While nobody may cut, it is read as well.
    story.until(Phase::Parked);
    story.view.gate.refusals = vec![storm()];
    story.event(Event::Command(Command::Retry));
    story.until(Phase::Waiting);
    story.plugs[1] = PlugState::On;
    story.until_now(Span::seconds(25));
    assert_eq!((story.plugs[1], cuts(&story)), (PlugState::Off, 3));
}

/// Somebody gives the storage back while the release waits for the quarantine. Nothing runs elsewhere yet: this boot does not
/// have to end.
#[test]
fn a16_a_cut_that_is_undone_before_the_release_ends_no_boot() {
    let mut story = story_of(storage_only());
    while story.record.phase != Phase::Releasing {
        story.node(|node| node.quarantined = false);
        story.go();
    }
    assert!(story.record.proof.is_some() && !story.released());
    story.plugs[1] = PlugState::On;
    story.now = story.now.after(CUT_READ_AGE_MAX).after(Span::seconds(1));
    story.until(Phase::Isolating);
    assert!(story.notices.contains(&Notice::ProofVoided { reads_on: Some(1) }));
    assert_eq!((story.released(), story.record.first_released_at), (false, None));
}

/// A BMC does not answer for a while, and the cut was read before that.
fn read_a_while_ago() -> Story {
    let mut story = story_of(cutting_plan(storage()));
    story.device = Box::new(|operation, plugs| match operation.method {
        0 => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    let now = story.now;
    story.node(|node| node.lease_seen_at = Some(now.after(node.lease_duration)));
    story.until(Phase::AwaitingDevice);
    story.now = story.now.after(CUT_READ_AGE_MAX.times(3));
    story.node(|node| node.lease_seen_at = None);
    story
}

/// Each look takes longer than a read of a cut is young: it is read once more, and then it proves.
#[test]
fn a16_a_slow_api_server_does_not_have_a_cut_read_for_ever() {
    let mut story = read_a_while_ago();
    let reads = story.count(Action::Status);
    while story.record.proof.is_none() {
        story.now = story.now.after(CUT_READ_AGE_MAX).after(Span::seconds(1));
        story.go();
        assert!(story.count(Action::Status) < reads + 4, "read again and again");
    }
}

/// Meanwhile somebody gives the storage back: the read from before is no proof.
#[test] // promise: A16
fn a16_a_cut_is_read_again_before_it_proves() {
    let mut story = read_a_while_ago();
    let read = story.record.last_ended(1, Action::Status).map(|one| one.id);
    story.plugs[1] = PlugState::On;
    story.until_now(Span::seconds(1));
    assert!(story.record.last_ended(1, Action::Status).map(|one| one.id) > read);
    assert_eq!((&story.record.proof, story.released()), (&None, false));
}

/// A machine that was only frozen goes on, and its kubelet says that it has let go of the storage: it is given back,
/// and nobody else is held to have done that.
#[test] // promise: A16
fn a16_what_we_gave_back_ourselves_is_not_cut_again() {
    let mut story = story_of(storage_only());
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    story.node(|node| node.volumes_in_use = vec![in_use.clone()]);
    story.until(Phase::AwaitingWell);
    story.wakes();
    story.node(|node| node.volumes_in_use.clear());
    story.until(Phase::Parked);
    story.until_now(Span::minutes(5));
    assert_eq!(story.parked(), Some(&ParkReason::SameBootAfterRelease));
    assert_eq!((story.plugs[1], story.count(Action::Off)), (PlugState::On, 1));
}

/// Another node fell silent meanwhile and the gate is closed: what speaks against cutting off one more node
/// does not speak for two writers. A person's word does, and is told at once.
#[test] // promise: A16
fn a16_a_cut_that_was_undone_behind_a_release_is_cut_again_whatever_the_gate_says() {
    for said_by_a_person in [false, true] {
        let mut story = story_of(storage_only());
        story.until(Phase::AwaitingWell);
        let refusal = if said_by_a_person { paused_by_alice() } else { storm() };
        story.view.gate.refusals = vec![refusal];
        story.plugs[1] = PlugState::On;
        story.until_now(Span::seconds(30));
        assert_eq!(story.record.phase, Phase::Parked);
        if said_by_a_person {
            assert!(matches!(story.parked(), Some(ParkReason::LeftAlone { .. })));
            assert_eq!((story.plugs[1], story.count(Action::Off)), (PlugState::On, 1));
        } else {
            assert_eq!(story.parked(), Some(&cut_undone(None)));
            assert_eq!((story.plugs[1], story.count(Action::Off)), (PlugState::Off, 2));
        }
    }
}

/// What was released behind it runs elsewhere by now, whoever deletes the Node, claims its machine, has it, or aborts. (Night 269821.)
#[test]
fn a16_a_cut_that_is_made_again_is_not_withdrawn() {
    let changes: [&dyn Fn(&mut Story); 5] = [
        &|story| story.view.node = None,
        &|story| story.node(|node| node.uid = "anew".into()),
        &|story| {
            story.view.gate.refusals =
                vec![Refusal::MachineDisputed { why: "node-b has it".into() }];
        },
        &|story| {
            story.view.gate.refusals = vec![Refusal::HeldByOther { holder: "another".into() }];
        },
        &|story| story.event(Event::Command(Command::Abort)),
    ];
    for (row, change) in changes.into_iter().enumerate() {
        let mut story = story_of(storage_only());
        story.until(Phase::AwaitingWell);
        story.plugs[1] = PlugState::On;
        story.until_call(Action::Off);
        story.todo.clear();
        change(&mut story);
        story.look();
        let is_withdrawn = story.todo.iter().any(|one| matches!(one, Effect::Withdraw(_)));
        assert!(!is_withdrawn, "{row}");
    }
}

/// A person aborts after a cut was undone and made again. What somebody gives back after that word is not what it left
/// as it was; what was open when it was said is.
#[test] // promise: A16
fn a16_a_cut_that_stood_at_an_abort_is_cut_again_when_it_is_undone_once_more() {
    for was_open in [false, true] {
        let mut story = story_of(storage_only());
        story.until(Phase::AwaitingWell);
        story.plugs[1] = PlugState::On;
        story.until_now(Span::seconds(30));
        assert_eq!((story.parked(), cuts(&story)), (Some(&cut_undone(None)), 2));
        if was_open {
            story.plugs[1] = PlugState::On;
            story.until_call(Action::Status);
        }
        story.event(Event::Command(Command::Abort));
        story.until_now(Span::minutes(2));
        assert_eq!(story.parked(), Some(&ParkReason::Aborted), "{was_open}");
        story.plugs[1] = PlugState::On;
        story.until_now(Span::minutes(2));
        let expected = if was_open { (PlugState::On, 2) } else { (PlugState::Off, 3) };
        assert_eq!((story.plugs[1], cuts(&story)), expected, "{was_open}");
    }
}

/// The node is well again when its cut is undone: it is cut again, for its pods run elsewhere. For the same
/// reason this boot has to end, and the power waits for leave as before.
#[test] // promise: A16
fn a16_a_cut_that_was_undone_is_cut_again_under_a_node_that_is_well() {
    let mut story = story_of(cutting_plan(storage()));
    dead_bmc(&mut story);
    story.until(Phase::AwaitingDevice);
    story.wakes();
    story.view.gate.refusals = vec![storm()];
    story.plugs[1] = PlugState::On;
    story.until(Phase::Isolating);
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::GateClosed));
    assert_eq!(story.plugs, vec![PlugState::On, PlugState::Off]);
}

/// Somebody deletes the Node and gives its storage back: whatever runs there would write.
#[test]
fn a16_a_cut_that_was_undone_is_cut_again_although_its_node_is_gone() {
    let mut story = story_of(storage_only());
    story.until(Phase::AwaitingWell);
    story.view.node = None;
    story.until(Phase::Parked);
    assert_eq!(story.parked(), Some(&ParkReason::StillCut));
    story.plugs[1] = PlugState::On;
    story.until_now(Span::minutes(1));
    assert_eq!((story.plugs[1], story.count(Action::Off)), (PlugState::Off, 2));
}

/// A pod was deleted behind a cut whose answer nobody heard. Three reads say nothing, and then the cut reads on: that it stood is
/// not forgotten.
#[test]
fn a16_that_a_cut_stood_outlives_the_reads_that_say_nothing() {
    let mut story = Story::new(storage_only(), proven_by_power());
    story.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => {
            plugs[1] = PlugState::Off;
            End::Indeterminate
        }
        _ => honest(operation, plugs),
    });
    story.until(Phase::AwaitingWell);
    assert!(!story.released());
    story.view.pods.clear();
    for _ in 0..3 {
        story.until_call(Action::Status);
        story.device = Box::new(|_, _| not_attempted(FailureKind::Denied));
        story.go();
    }
    story.device = Box::new(honest);
    story.plugs[1] = PlugState::On;
    story.until_now(Span::minutes(2));
    assert_eq!((story.plugs[1], cuts(&story)), (PlugState::Off, 2));
}

/// The taint cannot be lifted for a while: an admission webhook refuses it.
#[test]
fn a16_a_cut_that_is_undone_while_the_taint_waits_to_be_lifted_is_cut_again() {
    let mut story = story_of(storage_only());
    story.until(Phase::Releasing);
    let refuses = |story: &mut Story, span| {
        let until = story.now.after(span);
        while story.now < until {
            story.node(|node| node.out_of_service_by_us = true);
            story.go();
        }
    };
    refuses(&mut story, Span::seconds(10));
    assert_eq!(story.record.phase, Phase::Untainting);
    story.plugs[1] = PlugState::On;
    refuses(&mut story, Span::seconds(15));
    assert_eq!((story.plugs[1], cuts(&story)), (PlugState::Off, 2));
}

/// What a person aborted switches no power, whatever is undone of its cuts afterwards. A pause leaves both for later.
#[test]
fn a17_a_cut_that_is_undone_after_an_abort_is_cut_again_and_after_a_pause_the_machine_is_fenced() {
    for is_paused in [false, true] {
        let mut story = Story::new(cutting_plan(storage()), proven_by_power());
        dead_bmc(&mut story);
        story.until(Phase::AwaitingDevice);
        assert!(!story.released());
        story.view.pods.clear();
        if is_paused {
            story.view.gate.refusals = vec![paused_by_alice()];
        } else {
            story.event(Event::Command(Command::Abort));
        }
        story.device = Box::new(honest);
        story.until(Phase::Parked);
        let is_left = matches!(story.parked(), Some(ParkReason::LeftAlone { .. }));
        assert_eq!(is_left, is_paused, "{:?}", story.parked());

        story.plugs[1] = PlugState::On;
        story.until_now(Span::minutes(2));
        let cut = if is_paused { PlugState::On } else { PlugState::Off };
        assert_eq!(story.plugs, vec![PlugState::On, cut], "{is_paused}");

        story.view.gate.refusals.clear();
        story.until_now(Span::minutes(30));
        let is_fenced = story.calls.contains(&(0, Action::Off));
        assert_eq!((is_fenced, cuts(&story)), (is_paused, 2), "{:?}", story.parked());
    }
}
