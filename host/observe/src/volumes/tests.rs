//! What is made of claims that were read, or were not.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;

fn pod(volumes: &serde_json::Value) -> PrunedPod {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "db-0", "namespace": "shop", "uid": "u1" },
        "spec": { "nodeName": "node-a", "containers": [], "volumes": volumes },
    }))
    .unwrap();
    PrunedPod::of(pod).unwrap()
}

fn attachment(volume: &str, driver: &str) -> PrunedAttachment {
    PrunedAttachment {
        uid: "a1".into(),
        name: "a1".into(),
        node: "node-a".into(),
        driver: driver.into(),
        volume: volume.into(),
        deleting: false,
        finalizers: Vec::new(),
    }
}

fn known(volume: Volume) -> Volumes {
    let volumes = Volumes::new(["csi.example.com".to_owned()]);
    volumes.known.borrow_mut().insert(("u1".to_owned(), "data".to_owned()), volume);
    volumes
}

fn volume(driver: &str, exclusive: bool) -> Volume {
    let backing = Backing::Persistent {
        name: "pv-1".to_owned(),
        driver: driver.to_owned(),
        in_use_as: format!("kubernetes.io/csi/{driver}^1"),
    };
    Volume { backing, access: Access::One, exclusive }
}

#[test]
fn what_lies_elsewhere_is_told_from_what_is_the_nodes() {
    let pod = pod(&json!([
        { "name": "scratch", "emptyDir": {} },
        { "name": "host", "hostPath": { "path": "/var" } },
        { "name": "settings", "configMap": { "name": "one" } },
        { "name": "token", "projected": { "sources": [] } },
        { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
        { "name": "cache", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } },
        { "name": "export", "nfs": { "server": "192.0.2.9", "path": "/" } },
        { "name": "inline", "csi": { "driver": "csi.example.com" } },
        { "name": "of-a-later-version" },
    ]));
    let claim = |name: &str| Mounted::Claim(name.to_owned());
    let expected =
        [claim("data"), claim("db-0-cache"), Mounted::Inline, Mounted::Inline, Mounted::Inline];
    assert_eq!(pod.volumes, expected);
}

#[test]
fn a_claim_that_was_not_read_is_unknown() {
    let pod = pod(&json!([]));
    let volumes = Volumes::new(["csi.example.com".to_owned()]);
    let unread = volumes.view(&pod, &Mounted::Claim("data".to_owned()), []);
    assert_eq!((unread.backing, unread.safe_detach), (Backing::Unknown, false));
    let inline = volumes.view(&pod, &Mounted::Inline, []);
    assert_eq!((inline.backing, inline.access), (Backing::Inline, Access::One));
}

#[test]
fn a_driver_checks_what_is_attached_and_one_node_writes_to() {
    let claim = Mounted::Claim("data".to_owned());
    let here = [attachment("pv-1", "csi.example.com")];
    let cases = [
        ("csi.example.com", true, &here[..], true),
        // It was never attached, so nothing is detached.
        ("csi.example.com", true, &[], false),
        ("csi.example.com", false, &here[..], false),
        ("other.example.com", true, &here[..], false),
        ("other.example.com", true, &[attachment("pv-1", "other.example.com")], false),
        ("csi.example.com", true, &[attachment("pv-2", "csi.example.com")], false),
        // An in-tree volume has no driver that a policy could name.
        ("", true, &[attachment("pv-1", "kubernetes.io/aws-ebs")], false),
    ];
    for (driver, exclusive, attached, expected) in cases {
        let seen = known(volume(driver, exclusive)).view(&pod(&json!([])), &claim, attached);
        assert_eq!(seen.safe_detach, expected, "{driver} {exclusive} {attached:?}");
    }
}

#[test]
fn volumes_are_read_where_a_grade_may_come_that_covers_some() {
    let plan = Plan {
        node: node_remedy_decide::Node { name: "node-a".into(), uid: "n1".into() },
        methods: Vec::new(),
        isolation: Vec::new(),
        power: Vec::new(),
        recovery: Vec::new(),
        beside: Vec::new(),
        ladder: Vec::new(),
    };
    let plain = pod(&json!([]));
    let daemon = PrunedPod { of_daemon_set: true, ..plain.clone() };
    let mut policy = IncidentPolicy::default();
    let wanted = |policy: &IncidentPolicy| {
        [&plain, &daemon].map(|pod| crate::volumes::wanted(pod, &plan, policy))
    };
    assert_eq!(wanted(&policy), [false, true]);
    policy.grades.insert(Grade::Partition);
    assert_eq!(wanted(&policy), [true, true]);
}
