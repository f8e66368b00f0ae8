//! What a run is: a function of its seed, with everything drawn that can be.

use super::*;

#[test]
fn a_run_is_a_function_of_its_seed_and_can_be_played() {
    for seed in 0..500 {
        let run = SeedRun::of(seed, LASTS);
        assert_eq!(run.text, SeedRun::of(seed, LASTS).text);
        run.scenario().unwrap();
    }
    assert_ne!(SeedRun::of(1, LASTS).text, SeedRun::of(2, LASTS).text);
}

#[test]
fn a_run_has_as_many_nodes_as_asked_for() {
    let nodes = |seed, range: RangeInclusive<u64>| {
        let run = SeedRun::with_nodes(seed, LASTS, Some(&range));
        run.scenario().unwrap().nodes.len()
    };
    let drawn: BTreeSet<usize> = (0..200).map(|seed| nodes(seed, 3..=9)).collect();
    assert_eq!(drawn, (3..=9).collect());
    assert_eq!((0..20).map(|seed| nodes(seed, 4..=4)).max(), Some(4));
}

#[test]
fn every_class_of_fault_is_drawn() {
    let drawn: std::collections::BTreeSet<String> =
        (0..2_000).flat_map(|seed| SeedRun::of(seed, LASTS).drawn).collect();
    let all: std::collections::BTreeSet<String> = classes().into_iter().collect();
    assert_eq!(drawn, all);
}
