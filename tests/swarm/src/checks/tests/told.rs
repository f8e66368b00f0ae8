//! What people are told, and how soon something comes of an off.

use super::*;

#[test] // promise: S23
fn s23_a_person_is_told_what_is_true() {
    let is_wrong = |reason: &str, timeline: Timeline| {
        let run = [timeline, vec![(200, parked_for(reason, 0))]].concat();
        judged(run, &Setting::default()).contains(&"S23")
    };
    let begun = || vec![(0, What::NodeCreated { node: "n".into() }), (2, state("Running"))];
    let then = |timeline: Timeline| [begun(), timeline].concat();
    let back = |by: &str| {
        let edited = What::Edited { object: "NetworkFence f".into(), by: by.into() };
        let (cut, back) =
            (What::StorageCut { node: "n".into() }, What::StorageBack { node: "n".into() });
        then(vec![(3, cut.clone()), (8, edited), (9, back), (11, cut)])
    };
    assert!(is_wrong("CutUndone", back(CLIENT)));
    assert!(!is_wrong("CutUndone", back(PEOPLE)));
    let ready = || What::NodeReady { node: "n".into(), status: "True".into(), by: "k".into() };
    let well_again =
        |at| then(vec![(3, lost()), (at, What::NetworkBack { node: "n".into() }), (at, ready())]);
    assert!(is_wrong("NotHealthy", well_again(100)));
    assert!(!is_wrong("NotHealthy", well_again(190)));
    assert!(is_wrong("AliveThoughOff", [vec![(1, lost())], begun()].concat()));
    assert!(!is_wrong("AliveThoughOff", well_again(100)));
    let off = |cause| then(vec![(3, power(Power::Off, cause)), (4, power(Power::On, cause))]);
    assert!(is_wrong("OffBeforeUs", off(Command)));
    let read = vec![(3, power(Power::Off, Command)), (4, told(Power::Off))];
    assert!(is_wrong("OffBeforeUs", then(read)));
    assert!(!is_wrong("OffBeforeUs", off(ByHand)));
    let asked = || [off(Command), vec![(5, meant(3, "on"))]].concat();
    assert!(is_wrong("OnFailed", asked()));
    assert!(!is_wrong("OnFailed", [asked(), vec![(6, meant(4, "status"))]].concat()), "read since");
    assert!(!is_wrong("OnFailed", then(vec![(3, power(Power::Off, Command))])));
}

#[test]
fn l1_the_incident_of_a_machine_that_was_taken_away_ends() {
    let goes_on = |last: &str, setting: &Setting| {
        let deleted = What::NodeDeleted { node: "n".into(), by: "cloud".into() };
        let away = vec![
            (5, What::InstanceTerminated { node: "n".into() }),
            (6, deleted),
            (7, state(last)),
        ];
        judged([cut(), away].concat(), setting).contains(&"L1")
    };
    assert!(goes_on("Running", &Setting::default()));
    assert!(!goes_on("Final", &Setting::default()));
    assert!(!goes_on("Running", &Setting { has_people: true, ..Setting::default() }));
}

#[test] // promise: L8
fn l8_something_comes_of_an_off_in_time() {
    let setting =
        || Setting { is_sound: true, sound_bmcs: ["n".to_owned()].into(), ..Setting::default() };
    let is_late = |setting: &Setting, then: Timeline| {
        let run = [cut(), then, vec![(60, told(Power::Off))]].concat();
        judged(run, setting).contains(&"L8")
    };
    assert!(is_late(&setting(), vec![]));
    assert!(is_late(&setting(), vec![(50, proven())]));
    for what in [proven(), parked(1), power(Power::On, Command)] {
        assert!(!is_late(&setting(), vec![(20, what.clone())]), "{what}");
    }
    assert!(!is_late(&Setting { is_sound: false, ..setting() }, vec![]));
    let edited = What::Edited { object: "NetworkFence f".into(), by: PEOPLE.into() };
    let given_back = |then: Timeline| {
        let made = (0, What::NodeCreated { node: "n".into() });
        let timeline =
            vec![made, (1, lost()), (2, What::StorageCut { node: "n".into() }), (3, detach())];
        let back = vec![(8, edited.clone()), (9, What::StorageBack { node: "n".into() })];
        judged([timeline, back, then, vec![(60, leads(US))]].concat(), &setting()).contains(&"L8")
    };
    assert!(given_back(vec![]));
    assert!(!given_back(vec![(30, What::StorageCut { node: "n".into() })]));
    let by_an_outlet = |mut run: Timeline| {
        run.insert(0, (0, plug("pdu", Power::Off, Command)));
        judged([run, vec![(60, told(Power::Off))]].concat(), &setting()).contains(&"L8")
    };
    assert!(!by_an_outlet(cut()));
}

#[test] // promise: L1, L3, L4, L5
fn l1_what_nothing_holds_up_is_well_in_the_end() {
    let one = || ["n".to_owned()].into();
    let free = Setting { unhindered: one(), ..Setting::default() };
    let ready =
        |status: &str| What::NodeReady { node: "n".into(), status: status.into(), by: "k".into() };
    let ends = |status, word| vec![(1, state("New")), (2, ready(status)), (3, state(word))];
    assert_eq!(judged(ends("Unknown", "Error"), &Setting::default()), [""; 0], "it was told");
    assert_eq!(judged(ends("Unknown", "Error"), &free), ["L1"]);
    assert_eq!(judged(ends("True", "Error"), &free), ["L1"], "its incident goes on");
    assert_eq!(judged(ends("True", "Final"), &free), [""; 0]);
    let faulty = Setting { has_faults: true, ..free.clone() };
    assert_eq!(judged(ends("True", "Error"), &faulty), [""; 0], "some device cannot give back");
    assert_eq!(judged(ends("True", "Running"), &faulty), ["L1"]);
    assert_eq!(judged([ends("True", "Final"), vec![(4, lost())]].concat(), &free), ["L1"]);
    let deleted = Setting { deleted: ["n-1".to_owned()].into(), ..Setting::default() };
    assert_eq!(judged(ends("True", "Error"), &deleted), ["L1"]);
    assert_eq!(judged(ends("True", "Final"), &deleted), [""; 0]);
    let faulty = Setting { has_faults: true, ..deleted };
    assert_eq!(judged(ends("True", "Error"), &faulty), [""; 0]);
}
