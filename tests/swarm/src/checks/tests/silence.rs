//! S10: how long a node was silent before it was switched off.

use super::*;

#[test]
fn s10_a_node_is_silent_for_as_long_as_its_policy_says_before_it_is_switched_off() {
    let off = |at| vec![(at, meant(1, "off")), (at, said_yes("off", US)), (at, state("Error"))];
    let after_silence_of = |seconds: u64| [vec![(1, lost())], off(1 + seconds)].concat();
    let patient = Setting { silent_for: Some(Duration::from_mins(10)), ..Setting::default() };
    assert!(judged(after_silence_of(90), &patient).contains(&"S10"));
    // Its kubelet is late after a network that was away, and lost again before it was heard.
    let lost_again_after = |seconds: u64| {
        let (back, again) = (700, 700 + seconds);
        let is_back = What::NetworkBack { node: "n".into() };
        let lost_again = vec![(1, lost()), (back, is_back), (again, lost())];
        [lost_again, off(again + 3)].concat()
    };
    assert!(!judged(lost_again_after(7), &patient).contains(&"S10"));
    assert!(judged(lost_again_after(70), &patient).contains(&"S10"));
    assert!(!judged(after_silence_of(600), &patient).contains(&"S10"));
    breaks(after_silence_of(90), &[]);
}
