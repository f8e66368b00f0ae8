//! Tests of `node_remedy_observe::device_quarantine` in the model cluster or a simulated run.

use kube::ResourceExt as _;
use node_remedy_api::annotations::ACK;
use node_remedy_api::nodefence::FailureKind;
use node_remedy_api::plan::{Builtin, Method};
use node_remedy_api::time::Moment;
use node_remedy_decide::{Hold, Span};
use node_remedy_observe::device_quarantine::*;
use node_remedy_record::reason::{Reason, refusal_word};
use node_remedy_simulate::testing::run_of_a_failed_on;
use node_remedy_world::facts::{Power, What};

#[test] // promise: A13
fn a_device_that_failed_to_switch_on_is_closed_until_somebody_acknowledges_it() {
    let played = run_of_a_failed_on();
    let is_cut = |what: &What| matches!(what, What::PowerChanged { power: Power::Off, .. });
    let cuts = played.facts.iter().filter(|fact| is_cut(&fact.what)).count();
    assert_eq!(cuts, 1, "it is not switched off again");
    let refused = played.collected.refused.iter().any(|refused| {
        matches!(&refused.reason, Reason::Hold(Hold::Gate(refusals))
            if refusals.iter().any(|one| refusal_word(one) == "DeviceClosed"))
    });
    assert!(refused, "and that is told");

    let (mut nodefence, ..) = played.collected.incidents.into_values().next().unwrap();
    let plan = nodefence.spec.plan.clone();
    let closed = find(&plan, &failed_in(&nodefence)).unwrap();
    assert_eq!(closed.node, "node-a");
    assert!(is_closing(&nodefence));
    let seen = acknowledgement(&nodefence).unwrap();
    let uid = nodefence.uid().unwrap();
    for (word, is_open) in [("another/9", false), (&*uid, false), (seen.as_str(), true)] {
        nodefence.annotations_mut().insert(ACK.to_owned(), word.to_owned());
        assert_eq!(find(&plan, &failed_in(&nodefence)).is_none(), is_open, "{word}");
    }
    let at = nodefence.status.as_ref().unwrap().on_failed[0].at;
    nodefence.status.as_mut().unwrap().on_failed[0].at = Moment::from_ms(at.ms + 1);
    assert!(is_closing(&nodefence), "what fails later was not acknowledged");

    nodefence.annotations_mut().clear();
    let mut other = plan.clone();
    other.methods.iter_mut().for_each(|method| method.device = "10.9.9.9".to_owned());
    assert_eq!(find(&other, &failed_in(&nodefence)), None, "another device of its kind");
    let failed = failed_in(&nodefence);
    let second = |device: &str, later: Span| {
        let mut second = failed.clone();
        for one in &mut second {
            one.device = device.to_owned();
            one.at = one.at.after(later);
        }
        [failed.clone(), second].concat()
    };
    assert!(find(&other, &second("10.9.9.8", Span::minutes(59))).is_some(), "two in an hour");
    assert_eq!(find(&other, &second("10.9.9.8", Span::minutes(61))), None);
    let same = failed[0].device.clone();
    assert_eq!(find(&other, &second(&same, Span::minutes(1))), None, "one device, twice");
    nodefence.status.as_mut().unwrap().on_failed[0].kind = FailureKind::Denied;
    assert!(find(&other, &failed_in(&nodefence)).is_some(), "the credential is the fleet's");

    // The API server refused it: no device did, and other nodes' NetworkFences are not theirs.
    let as_network_fence = |method: &mut Method| {
        method.plugin = None;
        method.builtin = Some(Builtin::NetworkFence);
    };
    nodefence.spec.plan.methods.iter_mut().for_each(as_network_fence);
    for plan in [&plan, &other, &nodefence.spec.plan] {
        assert_eq!(find(plan, &failed_in(&nodefence)), None, "a 403 closes nothing");
    }
    assert!(!is_closing(&nodefence));
}
