//! What is believed of a NetworkFence, and whose it is. How calls go, the runs of
//! `tests/tests/sim_network_fence.rs` play.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use node_remedy_api::plan::network_fence::NetworkFenceStatus;
use node_remedy_runtime::cluster::unread::read;
use serde_json::Value;

use super::*;

fn wanted() -> DesiredFence<'static> {
    let parameters = [("driver", "csi.example.com"), ("cidrs", "192.0.2.7/32,2001:db8::7/128")];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let spec = spec_of(&BTreeMap::from(parameters.map(own)));
    DesiredFence { name: name("node-a-1", "storage"), incident: "node-a-1", spec }
}

/// Ours, just asked for, with this answer.
fn ours(result: &str, message: &str) -> NetworkFence {
    let wanted = wanted();
    let mut fence = NetworkFence::new(&wanted.name, wanted.spec);
    fence.annotations_mut().insert(OF_NODEFENCE.to_owned(), wanted.incident.to_owned());
    fence.metadata.generation = Some(1);
    let (result, message) = (result.to_owned(), message.to_owned());
    fence.status = Some(NetworkFenceStatus { result, message });
    fence
}

fn of_others(driver: &str, cidr: &str) -> NetworkFenceSpec {
    let cidrs = vec![cidr.to_owned()];
    NetworkFenceSpec { driver: driver.to_owned(), cidrs, ..NetworkFenceSpec::default() }
}

/// What a read says of it, where nobody else fences anything.
fn told_by(fence: Option<&NetworkFence>) -> PlugState {
    state(&wanted().stands(fence), &Found { ours: fence.cloned(), others: Vec::new() })
}

const FENCED: &str = "fencing operation successful";

#[test]
fn fenced_is_what_was_answered_for_the_object_as_it_was_made() {
    assert_eq!(told_by(Some(&ours(SUCCEEDED, FENCED))), PlugState::Off);
    assert_eq!(told_by(None), PlugState::On);
    assert_eq!(told_by(Some(&ours("", ""))), PlugState::Transitioning);
    assert_eq!(told_by(Some(&ours("Failed", "no such cluster"))), PlugState::Transitioning);
    let unknown = |change: &dyn Fn(&mut NetworkFence)| {
        let mut fence = ours(SUCCEEDED, FENCED);
        change(&mut fence);
        assert_eq!(told_by(Some(&fence)), PlugState::Unknown, "{fence:?}");
    };
    unknown(&|fence| fence.metadata.generation = Some(3));
    unknown(&|fence| fence.metadata.generation = None);
    unknown(&|fence| {
        fence.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    });
    unknown(&|fence| fence.spec.cidrs.truncate(1));
    unknown(&|fence| fence.spec.driver = "other.example.com".to_owned());
    unknown(&|fence| fence.metadata.annotations = None);
}

#[test]
fn an_answer_to_fenced_is_none_to_unfenced() {
    let unfenced = |result: &str, message: &str| {
        let mut fence = ours(result, message);
        fence.spec.fence_state = FenceState::Unfenced;
        fence.metadata.generation = Some(2);
        told_by(Some(&fence))
    };
    assert_eq!(unfenced(SUCCEEDED, FENCED), PlugState::Transitioning);
    assert_eq!(unfenced("Failed", UNFENCED_MESSAGE), PlugState::Transitioning);
    assert_eq!(unfenced(SUCCEEDED, UNFENCED_MESSAGE), PlugState::On);
}

#[test]
fn an_object_of_somebody_else_over_an_address_makes_it_unknown() {
    let wanted = wanted();
    for (driver, cidr, meets) in [
        ("csi.example.com", "192.0.2.7/32", true),
        ("csi.example.com", "192.0.2.0/24", true),
        ("csi.example.com", "2001:db8::/64", true),
        ("csi.example.com", "192.0.2.8/32", false),
        ("csi.example.com", "what", true),
        ("other.example.com", "192.0.2.7/32", false),
    ] {
        assert_eq!(wanted.meets(&of_others(driver, cidr)), meets, "{driver} {cidr}");
    }
    // Theirs, or ours, is of a class, which may name any driver.
    let of_class = NetworkFenceSpec {
        network_fence_class_name: "ceph".to_owned(),
        ..of_others("", "192.0.2.7/32")
    };
    assert!(wanted.meets(&of_class));
    let classed = DesiredFence { spec: of_class, ..self::wanted() };
    assert!(classed.meets(&of_others("other.example.com", "192.0.2.7/32")));
    assert!(!classed.meets(&of_others("other.example.com", "192.0.2.8/32")));
    let ours = ours(SUCCEEDED, FENCED);
    let other = NetworkFence::new("theirs", of_others("csi.example.com", "192.0.2.7/32"));
    let found = Found { ours: Some(ours.clone()), others: vec![other] };
    assert_eq!(state(&wanted.stands(Some(&ours)), &found), PlugState::Unknown);
}

/// One that a newer csi-addons wrote counts for what of it can be read.
#[test]
fn an_object_that_cannot_be_read_hides_no_other() {
    let spec = |spec: Value| {
        let metadata = json!({ "name": "new" });
        let read: Read<NetworkFence> = read(json!({ "metadata": metadata, "spec": spec }));
        guess(&read.expect_err("no version of today's")).spec
    };
    let (driver, ours, other) =
        ("csi.example.com", json!(["192.0.2.7/32"]), json!(["192.0.2.8/32"]));
    for (written, meets) in [
        (json!({ "driver": driver, "cidrs": ours, "fenceState": "Draining" }), true),
        (json!({ "driver": driver, "cidrs": other, "fenceState": "Draining" }), false),
        (json!({ "driver": "other.example.com", "cidrs": ours, "fenceState": "Draining" }), false),
        (json!({ "driver": { "name": driver }, "cidrs": ours }), true),
        (json!({ "driver": { "name": driver }, "cidrs": other }), false),
        (json!({ "driver": driver, "cidrs": [{ "ip": "192.0.2.8" }] }), true),
        (json!({ "driver": "other.example.com", "cidrs": [{ "ip": "192.0.2.8" }] }), false),
        (json!({ "networkFenceClassName": 7, "driver": driver, "cidrs": other }), false),
        (json!({ "networkFenceClassName": 7, "driver": "other.example.com", "cidrs": ours }), true),
    ] {
        assert_eq!(wanted().meets(&spec(written.clone())), meets, "{written}");
    }
}

#[test]
fn names_tell_incidents_and_methods_apart() {
    let names = [name("node-a-1", "storage"), name("node-a-2", "storage"), name("node-a-1", "s")];
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    assert_eq!(name("node-a-1", "storage"), names[0], "found again");
}
