//! Power by itself. Sessions are tested from the other side of the wire: by `ipmitool`
//! (`tests/ipmitool.rs`) and by the ipmi plugin.

use super::{Cause, Change, PowerEvent};
use crate::bmc::config::Config;
use crate::bmc::state::Bmc;
use crate::power::Supply;

fn commanded() -> Cause {
    Cause::Command { user: "admin".into() }
}

fn event(at_ms: u64, change: Change, cause: Cause) -> PowerEvent {
    PowerEvent { at_ms, change, cause }
}

#[test]
fn a_late_change_happens_when_it_is_due() {
    let mut supply = Supply::new(true);
    supply.schedule(3_000, Change::Off, commanded());
    supply.tick(2_999, None);
    assert!(supply.powered());
    assert_eq!(supply.next_change(), Some(3_000));
    supply.tick(10_000, None);
    assert!(!supply.powered());
    // It is told with the time it happened, not the time somebody looked.
    assert_eq!(supply.drain(), [event(3_000, Change::Off, commanded())]);
    assert_eq!((supply.next_change(), supply.drain()), (None, vec![]));
}

#[test]
fn changes_due_at_once_keep_their_order() {
    let mut supply = Supply::new(true);
    supply.schedule(5, Change::Off, commanded());
    supply.schedule(5, Change::On, commanded());
    supply.tick(5, None);
    let changes: Vec<_> = supply.drain().into_iter().map(|event| event.change).collect();
    assert_eq!(changes, [Change::Off, Change::On]);
}

#[test]
fn what_is_so_already_is_no_event() {
    let mut supply = Supply::new(false);
    supply.schedule(1, Change::Off, commanded());
    supply.schedule(2, Change::Reset, commanded());
    supply.tick(5, None);
    assert_eq!(supply.drain(), []);
}

#[test]
fn a_commanded_change_flips_back_once() {
    let mut supply = Supply::new(true);
    supply.schedule(10, Change::Off, commanded());
    supply.tick(1_000, Some(500));
    assert!(supply.powered());
    let wanted = [event(10, Change::Off, commanded()), event(510, Change::On, Cause::FlipBack)];
    assert_eq!(supply.drain(), wanted);
}

#[test]
fn a_status_that_lags_tells_the_past() {
    let mut supply = Supply::new(true);
    supply.set(100, false, Cause::Outside);
    assert!(supply.seen(150, 100));
    assert!(!supply.seen(250, 100));
    assert!(!supply.seen(150, 0));
}

#[test]
fn a_dead_bmc_forgets_what_it_was_about_to_do() {
    let mut bmc = Bmc::new(Config::default());
    bmc.supply.schedule(1_000, Change::Off, commanded());
    bmc.faults.dead = true;
    bmc.tick(500);
    bmc.faults.dead = false;
    bmc.tick(2_000);
    assert!(bmc.powered());
}

#[test]
fn somebody_at_the_machine_is_told_apart_from_a_command() {
    let mut bmc = Bmc::new(Config::default());
    bmc.set_power(70, false);
    assert_eq!(bmc.drain_power_events(), [event(70, Change::Off, Cause::Outside)]);
}

#[test]
fn time_does_not_run_backwards() {
    let mut bmc = Bmc::new(Config::default());
    bmc.set_power(100, false);
    bmc.set_power(50, true);
    let times: Vec<_> = bmc.drain_power_events().into_iter().map(|event| event.at_ms).collect();
    assert_eq!(times, [100, 100]);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let open = [
        &[6, 0, 0xff, 7, 6, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0][..],
        &[9, 0, 0, 0, 1, 2, 3, 4],
        &[0, 0, 0, 8, 1, 0, 0, 0, 1, 0, 0, 8, 1, 0, 0, 0, 2, 0, 0, 8, 1, 0, 0, 0],
    ]
    .concat();
    let rakp_1 = |sid: &[u8]| {
        let head = [6, 0, 0xff, 7, 6, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 33, 0, 1, 0, 0, 0];
        [&head[..], sid, &[7; 16], &[0x14, 0, 0, 5], b"admin"].concat()
    };
    let answers = |seed| {
        let mut bmc = Bmc::new(Config { seed, ..Config::default() });
        let opened = bmc.datagram(0, 1, &open)[0].bytes.clone();
        let keyed = bmc.datagram(1, 1, &rakp_1(&opened[24..28]))[0].bytes.clone();
        assert_eq!((opened[17], keyed[17]), (0, 0), "a status other than success");
        assert_eq!(bmc.half_open_sessions(), 1);
        (opened, keyed)
    };
    assert_eq!(answers(7), answers(7));
    assert_ne!(answers(7).1, answers(8).1);
}

#[test]
fn arbitrary_datagrams_do_no_harm() {
    let mut bmc = Bmc::new(Config::default());
    let mut random = super::crypto::Random::new(42);
    for length in 0..64 {
        for kind in [0x00, 0x10, 0x12, 0x14, 0xc0] {
            let mut datagram = vec![6, 0, 0xff, 7, 6, kind, 0, 0, 0, 0, 0, 0, 0, 0, length, 0];
            while datagram.len() < 16 + usize::from(length) {
                datagram.extend(random.bytes());
            }
            for cut in 0..datagram.len() {
                bmc.datagram(u64::from(length), 1, &datagram[..cut]);
            }
            bmc.datagram(u64::from(length), 1, &datagram);
        }
    }
    assert!(bmc.powered());
    assert_eq!(bmc.open_sessions(), 0);
}
