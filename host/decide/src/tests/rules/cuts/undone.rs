//! Cuts that somebody else gave back behind a release.

use super::*;

/// A BMC that says yes and cuts nothing, and a cut behind which pods were released meanwhile.
fn released_behind_a_cut(retries: u32) -> Driver {
    let policy = IncidentPolicy { retries, ..IncidentPolicy::default() };
    let mut driver = Driver::new(cutting_plan(storage()), policy);
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (0, Action::Off | Action::Reset) => succeeded(plugs[0]),
        _ => honest(operation, plugs),
    });
    driver.until(Phase::Releasing).until(Phase::VerifyingOff);
    assert!(driver.released() && driver.view.pods.iter().all(|pod| pod.exempt.is_some()));
    driver
}

/// Cut storage is no proof.
fn proven_by_power() -> IncidentPolicy {
    IncidentPolicy { grades: [Grade::PowerOffVerified].into(), ..IncidentPolicy::default() }
}

/// How often storage was cut.
fn cuts(driver: &Driver) -> usize {
    driver.calls.iter().filter(|call| **call == (1, Action::Off)).count()
}

/// Its power is being read, or asked once more, and that takes minutes.
#[test] // promise: A16
fn a16_a_cut_is_read_while_power_is_tried() {
    for phase in [Phase::VerifyingOff, Phase::Backoff] {
        let mut driver = released_behind_a_cut(10);
        driver.until(phase);
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::seconds(25));
        assert_eq!((driver.plugs[1], cuts(&driver)), (PlugState::Off, 2), "{phase:?}");
    }
}

/// Another pass has no proof yet, and rests on what was cut in the one before.
#[test] // promise: A16
fn a16_a_cut_of_an_earlier_pass_is_read_for_as_long_as_the_machine_may_run() {
    let mut driver = released_behind_a_cut(0);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::OffNotVerified { tries: 1 }));
    driver.event(Event::Command(Command::Retry));
    driver.until(Phase::VerifyingOff).until(Phase::Parked);
    assert_eq!((driver.record.proof.clone(), cuts(&driver)), (None, 1));
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::seconds(25));
    assert_eq!((driver.plugs[1], cuts(&driver)), (PlugState::Off, 2));
    assert!(driver.notices.contains(&Notice::CutUndone { method: 1 }));

    // While nobody may cut, it is read as well.
    driver.until(Phase::Parked);
    driver.view.gate.refusals = vec![storm()];
    driver.event(Event::Command(Command::Retry));
    driver.until(Phase::Waiting);
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::seconds(25));
    assert_eq!((driver.plugs[1], cuts(&driver)), (PlugState::Off, 3));
}

/// Somebody gives the storage back while the release waits for the quarantine. Nothing runs elsewhere yet: this boot does not
/// have to end.
#[test]
fn a16_a_cut_that_is_undone_before_the_release_ends_no_boot() {
    let mut driver = driver_of(storage_only());
    while driver.record.phase != Phase::Releasing {
        driver.node(|node| node.quarantined = false);
        driver.go();
    }
    assert!(driver.record.proof.is_some() && !driver.released());
    driver.plugs[1] = PlugState::On;
    driver.now = driver.now.after(CUT_READ_AGE_MAX).after(Span::seconds(1));
    driver.until(Phase::Isolating);
    assert!(driver.notices.contains(&Notice::ProofVoided { reads_on: Some(1) }));
    assert_eq!((driver.released(), driver.record.first_released_at), (false, None));
}

/// A BMC does not answer for a while, and the cut was read before that.
fn read_a_while_ago() -> Driver {
    let mut driver = driver_of(cutting_plan(storage()));
    driver.device = Box::new(|operation, plugs| match operation.method {
        0 => silent(operation, plugs),
        _ => honest(operation, plugs),
    });
    let now = driver.now;
    driver.node(|node| node.lease_seen_at = Some(now.after(node.lease_duration)));
    driver.until(Phase::AwaitingDevice);
    driver.now = driver.now.after(CUT_READ_AGE_MAX.times(3));
    driver.node(|node| node.lease_seen_at = None);
    driver
}

/// Each look takes longer than a read of a cut is young: it is read once more, and then it proves.
#[test]
fn a16_a_slow_api_server_does_not_have_a_cut_read_for_ever() {
    let mut driver = read_a_while_ago();
    let reads = driver.count(Action::Status);
    while driver.record.proof.is_none() {
        driver.now = driver.now.after(CUT_READ_AGE_MAX).after(Span::seconds(1));
        driver.go();
        assert!(driver.count(Action::Status) < reads + 4, "read again and again");
    }
}

/// Meanwhile somebody gives the storage back: the read from before is no proof.
#[test] // promise: A16
fn a16_a_cut_is_read_again_before_it_proves() {
    let mut driver = read_a_while_ago();
    let read = driver.record.last_ended(1, Action::Status).map(|one| one.id);
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::seconds(1));
    assert!(driver.record.last_ended(1, Action::Status).map(|one| one.id) > read);
    assert_eq!((&driver.record.proof, driver.released()), (&None, false));
}

/// A machine that was only frozen goes on, and its kubelet says that it has let go of the storage: it is given back,
/// and nobody else is held to have done that.
#[test] // promise: A16
fn a16_what_we_gave_back_ourselves_is_not_cut_again() {
    let mut driver = driver_of(storage_only());
    let in_use = alloc::format!("kubernetes.io/csi/{DRIVER}^pv-db-0");
    driver.node(|node| node.volumes_in_use = vec![in_use.clone()]);
    driver.until(Phase::AwaitingHealthy);
    driver.wakes();
    driver.node(|node| node.volumes_in_use.clear());
    driver.until(Phase::Parked);
    driver.until_now(Span::minutes(5));
    assert_eq!(driver.parked(), Some(&ParkReason::SameBootAfterRelease));
    assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::On, 1));
}

/// Another node fell silent meanwhile and the gate is closed: what speaks against cutting off one more node
/// does not speak for two writers. A person's word does, and is told at once.
#[test] // promise: A16
fn a16_a_cut_that_was_undone_behind_a_release_is_cut_again_whatever_the_gate_says() {
    for said_by_a_person in [false, true] {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        let refusal = if said_by_a_person { paused_by_alice() } else { storm() };
        driver.view.gate.refusals = vec![refusal];
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::seconds(30));
        assert_eq!(driver.record.phase, Phase::Parked);
        if said_by_a_person {
            assert!(matches!(driver.parked(), Some(ParkReason::LeftAlone { .. })));
            assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::On, 1));
        } else {
            assert_eq!(driver.parked(), Some(&cut_undone(None)));
            assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::Off, 2));
        }
    }
}

/// What was released behind it runs elsewhere by now, whoever deletes the Node, claims its machine, has it, or aborts. (Run 269821.)
#[test]
fn a16_a_cut_that_is_made_again_is_not_withdrawn() {
    let changes: [&dyn Fn(&mut Driver); 5] = [
        &|driver| driver.view.node = None,
        &|driver| driver.node(|node| node.uid = "anew".into()),
        &|driver| {
            driver.view.gate.refusals =
                vec![Refusal::MachineDisputed { why: "node-b has it".into() }];
        },
        &|driver| {
            driver.view.gate.refusals = vec![Refusal::HeldByOther { holder: "another".into() }];
        },
        &|driver| driver.event(Event::Command(Command::Abort)),
    ];
    for (row, change) in changes.into_iter().enumerate() {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        driver.plugs[1] = PlugState::On;
        driver.until_call(Action::Off);
        driver.todo.clear();
        change(&mut driver);
        driver.look();
        let is_withdrawn = driver.todo.iter().any(|one| matches!(one, Effect::Withdraw(_)));
        assert!(!is_withdrawn, "{row}");
    }
}

/// A person aborts after a cut was undone and made again. What somebody gives back after that word is not what it left
/// as it was; what was open when it was said is.
#[test] // promise: A16
fn a16_a_cut_that_stood_at_an_abort_is_cut_again_when_it_is_undone_once_more() {
    for was_open in [false, true] {
        let mut driver = driver_of(storage_only());
        driver.until(Phase::AwaitingHealthy);
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::seconds(30));
        assert_eq!((driver.parked(), cuts(&driver)), (Some(&cut_undone(None)), 2));
        if was_open {
            driver.plugs[1] = PlugState::On;
            driver.until_call(Action::Status);
        }
        driver.event(Event::Command(Command::Abort));
        driver.until_now(Span::minutes(2));
        assert_eq!(driver.parked(), Some(&ParkReason::Aborted), "{was_open}");
        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::minutes(2));
        let expected = if was_open { (PlugState::On, 2) } else { (PlugState::Off, 3) };
        assert_eq!((driver.plugs[1], cuts(&driver)), expected, "{was_open}");
    }
}

/// The node is well again when its cut is undone: it is cut again, for its pods run elsewhere. For the same
/// reason this boot has to end, and the power waits for leave as before.
#[test] // promise: A16
fn a16_a_cut_that_was_undone_is_cut_again_under_a_node_that_is_well() {
    let mut driver = driver_of(cutting_plan(storage()));
    dead_bmc(&mut driver);
    driver.until(Phase::AwaitingDevice);
    driver.wakes();
    driver.view.gate.refusals = vec![storm()];
    driver.plugs[1] = PlugState::On;
    driver.until(Phase::Isolating);
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::GateClosed));
    assert_eq!(driver.plugs, vec![PlugState::On, PlugState::Off]);
}

/// Somebody deletes the Node and gives its storage back: whatever runs there would write.
#[test]
fn a16_a_cut_that_was_undone_is_cut_again_although_its_node_is_gone() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::AwaitingHealthy);
    driver.view.node = None;
    driver.until(Phase::Parked);
    assert_eq!(driver.parked(), Some(&ParkReason::StillCut));
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(1));
    assert_eq!((driver.plugs[1], driver.count(Action::Off)), (PlugState::Off, 2));
}

/// A pod was deleted behind a cut whose answer nobody heard. Three reads say nothing, and then the cut reads on: that it stood is
/// not forgotten.
#[test]
fn a16_that_a_cut_stood_outlives_the_reads_that_say_nothing() {
    let mut driver = Driver::new(storage_only(), proven_by_power());
    driver.device = Box::new(|operation, plugs| match (operation.method, operation.action) {
        (1, Action::Off) => {
            plugs[1] = PlugState::Off;
            End::Indeterminate
        }
        _ => honest(operation, plugs),
    });
    driver.until(Phase::AwaitingHealthy);
    assert!(!driver.released());
    driver.view.pods.clear();
    for _ in 0..3 {
        driver.until_call(Action::Status);
        driver.device = Box::new(|_, _| not_attempted(FailureKind::Denied));
        driver.go();
    }
    driver.device = Box::new(honest);
    driver.plugs[1] = PlugState::On;
    driver.until_now(Span::minutes(2));
    assert_eq!((driver.plugs[1], cuts(&driver)), (PlugState::Off, 2));
}

/// The taint cannot be lifted for a while: an admission webhook refuses it.
#[test]
fn a16_a_cut_that_is_undone_while_the_taint_waits_to_be_lifted_is_cut_again() {
    let mut driver = driver_of(storage_only());
    driver.until(Phase::Releasing);
    let refuses = |driver: &mut Driver, span| {
        let until = driver.now.after(span);
        while driver.now < until {
            driver.node(|node| node.out_of_service_by_us = true);
            driver.go();
        }
    };
    refuses(&mut driver, Span::seconds(10));
    assert_eq!(driver.record.phase, Phase::Untainting);
    driver.plugs[1] = PlugState::On;
    refuses(&mut driver, Span::seconds(15));
    assert_eq!((driver.plugs[1], cuts(&driver)), (PlugState::Off, 2));
}

/// What a person aborted switches no power, whatever is undone of its cuts afterwards. A pause leaves both for later.
#[test]
fn a17_a_cut_that_is_undone_after_an_abort_is_cut_again_and_after_a_pause_the_machine_is_fenced() {
    for is_paused in [false, true] {
        let mut driver = Driver::new(cutting_plan(storage()), proven_by_power());
        dead_bmc(&mut driver);
        driver.until(Phase::AwaitingDevice);
        assert!(!driver.released());
        driver.view.pods.clear();
        if is_paused {
            driver.view.gate.refusals = vec![paused_by_alice()];
        } else {
            driver.event(Event::Command(Command::Abort));
        }
        driver.device = Box::new(honest);
        driver.until(Phase::Parked);
        let is_left = matches!(driver.parked(), Some(ParkReason::LeftAlone { .. }));
        assert_eq!(is_left, is_paused, "{:?}", driver.parked());

        driver.plugs[1] = PlugState::On;
        driver.until_now(Span::minutes(2));
        let cut = if is_paused { PlugState::On } else { PlugState::Off };
        assert_eq!(driver.plugs, vec![PlugState::On, cut], "{is_paused}");

        driver.view.gate.refusals.clear();
        driver.until_now(Span::minutes(30));
        let is_fenced = driver.calls.contains(&(0, Action::Off));
        assert_eq!((is_fenced, cuts(&driver)), (is_paused, 2), "{:?}", driver.parked());
    }
}
