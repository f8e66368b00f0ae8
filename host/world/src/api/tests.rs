//! The API server's behaviour, one boundary a test.

use json_patch::Patch;
use serde_json::{Value, json};

use super::object::{is_terminating, number, text};
use super::*;

const START: Time = Time(1_767_225_600_000);

fn server() -> ApiServer {
    ApiServer::new(1, START)
}

fn node(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": {} })
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "nodeName": "node-a" },
    })
}

fn patch(operations: Value) -> Patch {
    serde_json::from_value(operations).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> (u16, &'static str) {
    let error = result.unwrap_err();
    (error.code(), error.reason())
}

#[test]
fn create_completes_the_object_and_refuses_a_second() {
    let mut api = server();
    let made = api.client("test").create(Kind::Node, node("node-a")).unwrap();
    assert_eq!(made["kind"], "Node");
    assert_eq!(made["apiVersion"], "v1");
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(text(&made, "/metadata/uid").len(), 36);
    let again = api.client("test").create(Kind::Node, node("node-a"));
    assert_eq!(code(again), (409, "AlreadyExists"));
}

#[test]
fn create_wants_a_name_and_the_right_scope() {
    let mut api = server();
    let mut client = api.client("test");
    assert_eq!(code(client.create(Kind::Node, json!({}))), (422, "Invalid"));
    let unfenced = json!({ "metadata": { "name": "f" }, "spec": { "fenceState": "Unfenced" } });
    assert_eq!(code(client.create(Kind::NetworkFence, unfenced)), (422, "Invalid"));
    let rows = [
        (Kind::Pod, json!({ "metadata": { "name": "a" } })),
        (Kind::Node, json!({ "metadata": { "name": "a", "namespace": "b" } })),
    ];
    for (kind, object) in rows {
        assert_eq!(code(client.create(kind, object)), (400, "BadRequest"));
    }
    let named = client
        .create(Kind::Event, json!({ "metadata": { "generateName": "e-", "namespace": "d" } }));
    assert!(object::name(&named.unwrap()).starts_with("e-"));
}

#[test]
fn an_update_of_an_older_version_or_another_uid_conflicts() {
    let mut api = server();
    let first = api.client("a").create(Kind::Node, node("node-a")).unwrap();
    let mut theirs = Value::clone(&first);
    theirs["spec"]["unschedulable"] = json!(true);
    api.client("b").update(Kind::Node, theirs, Part::Main).unwrap();
    let ours = Value::clone(&first);
    let stale = api.client("a").update(Kind::Node, ours.clone(), Part::Main);
    assert_eq!(code(stale), (409, "Conflict"));
    let mut other = ours;
    object::remove(&mut other["metadata"], "resourceVersion");
    other["metadata"]["uid"] = json!("another");
    assert_eq!(code(api.client("a").update(Kind::Node, other, Part::Main)), (409, "Conflict"));
}

#[test]
fn who_replaces_a_lease_says_which_version() {
    let mut api = server();
    let lease = json!({ "metadata": { "name": "lock", "namespace": "default" } });
    let made = api.client("test").create(Kind::Lease, lease.clone()).unwrap();
    let blindly = api.client("test").update(Kind::Lease, lease, Part::Main);
    assert_eq!(code(blindly), (422, "Invalid"));
    assert!(api.client("test").update(Kind::Lease, Value::clone(&made), Part::Main).is_ok());
}

#[test]
fn status_is_written_apart_from_the_rest() {
    let mut api = server();
    api.client("test").create(Kind::Node, node("node-a")).unwrap();
    let mut both = node("node-a");
    both["spec"]["unschedulable"] = json!(true);
    both["status"] = json!({ "phase": "x" });

    let main = api.client("test").update(Kind::Node, both.clone(), Part::Main).unwrap();
    assert_eq!(main.get("status"), None);
    assert_eq!(main["spec"]["unschedulable"], true);

    both["spec"]["unschedulable"] = json!(false);
    let status = api.client("test").update(Kind::Node, both, Part::Status).unwrap();
    assert_eq!(status["status"]["phase"], "x");
    assert_eq!(status["spec"]["unschedulable"], true);

    let key = Key::cluster(Kind::Node, "node-a");
    let label = json!({ "metadata": { "labels": { "a": "b" } }, "status": { "attached": true } });
    let labelled = api.client("test").merge_patch(&key, &label, Part::Status).unwrap();
    assert_eq!(labelled["metadata"]["labels"]["a"], "b", "what is no spec");
    api.client("test").create(Kind::VolumeAttachment, node("va")).unwrap();
    let key = Key::cluster(Kind::VolumeAttachment, "va");
    let attached = api.client("test").merge_patch(&key, &label, Part::Status).unwrap();
    assert_eq!(attached["metadata"].get("labels"), None);
    assert_eq!(attached["status"]["attached"], true);

    let secret = json!({ "metadata": { "name": "s", "namespace": "d" } });
    api.client("test").create(Kind::Secret, secret.clone()).unwrap();
    let none = api.client("test").update(Kind::Secret, secret, Part::Status);
    assert_eq!(code(none), (404, "NotFound"));
}

#[test]
fn generations_count_changes_of_what_is_wanted() {
    let mut api = server();
    let key = Key::within(Kind::Pod, "default", "db-0");
    let generation = |object: &Value| number(object, "/metadata/generation");
    let made = api.client("test").create(Kind::Pod, pod("db-0")).unwrap();
    assert_eq!(generation(&made), Some(1));
    for (patch, part, expected) in [
        (json!({ "spec": { "activeDeadlineSeconds": 5 } }), Part::Main, 2),
        (json!({ "metadata": { "labels": { "a": "b" } } }), Part::Main, 2),
        (json!({ "status": { "phase": "Running" } }), Part::Status, 2),
    ] {
        let patched = api.client("test").merge_patch(&key, &patch, part).unwrap();
        assert_eq!(generation(&patched), Some(expected), "{patch}");
    }
    let deleted = api.client("test").delete(&key, &DeleteOptions::default()).unwrap();
    assert!(matches!(&deleted, Deleted::Waiting(pod) if generation(pod) == Some(3)));
    let node = api.client("test").create(Kind::Node, node("node-a")).unwrap();
    assert_eq!(generation(&node), None, "nodes have none");
}

#[test]
fn a_write_that_changes_nothing_makes_no_version() {
    let mut api = server();
    let made = api.client("test").create(Kind::Node, node("node-a")).unwrap();
    let same = api.client("test").update(Kind::Node, Value::clone(&made), Part::Main).unwrap();
    assert_eq!(same, made);
    assert_eq!(api.changes(1).unwrap().count(), 1);
}

#[test]
fn json_patch_tests_guard_and_stale_versions_conflict() {
    let mut api = server();
    let key = Key::cluster(Kind::Node, "node-a");
    let made = api.client("test").create(Kind::Node, node("node-a")).unwrap();
    let version = text(&made, "/metadata/resourceVersion").to_owned();
    let cordon = |version: &str| {
        patch(json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": version },
            { "op": "add", "path": "/spec/unschedulable", "value": true },
        ]))
    };
    let failed = api.client("test").json_patch(&key, &cordon("0"), Part::Main);
    assert_eq!(code(failed), (422, "Invalid"));
    let done = api.client("test").json_patch(&key, &cordon(&version), Part::Main).unwrap();
    assert_eq!(done["spec"]["unschedulable"], true);

    let replaced = patch(json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": version },
        { "op": "add", "path": "/spec/unschedulable", "value": false },
    ]));
    let stale = api.client("test").json_patch(&key, &replaced, Part::Main);
    assert_eq!(code(stale), (409, "Conflict"));
    let renamed = patch(json!([{ "op": "replace", "path": "/metadata/name", "value": "b" }]));
    assert_eq!(
        code(api.client("test").json_patch(&key, &renamed, Part::Main)),
        (400, "BadRequest")
    );
    let another = patch(json!([{ "op": "replace", "path": "/metadata/uid", "value": "b" }]));
    let meant_for_another = api.client("test").json_patch(&key, &another, Part::Main);
    assert_eq!(code(meant_for_another), (422, "Invalid"), "a replace with it is a conflict");
    let absent = Key::cluster(Kind::Node, "node-z");
    assert_eq!(
        code(api.client("test").json_patch(&absent, &renamed, Part::Main)),
        (404, "NotFound")
    );
}

#[test]
fn merge_patch_removes_with_null() {
    let mut api = server();
    let key = Key::cluster(Kind::Node, "node-a");
    api.client("test").create(Kind::Node, node("node-a")).unwrap();
    let mut merge = |value| api.client("test").merge_patch(&key, &value, Part::Main).unwrap();
    let set = merge(json!({ "metadata": { "annotations": { "a": "1", "b": "2" } } }));
    assert_eq!(set["metadata"]["annotations"], json!({ "a": "1", "b": "2" }));
    let unset = merge(json!({ "metadata": { "annotations": { "a": null } } }));
    assert_eq!(unset["metadata"]["annotations"], json!({ "b": "2" }));
}

#[test]
fn a_running_pod_waits_for_its_kubelet() {
    let mut api = server();
    let key = Key::within(Kind::Pod, "default", "db-0");
    let made = api.client("test").create(Kind::Pod, pod("db-0")).unwrap();
    let waiting = api.client("test").delete(&key, &DeleteOptions::default()).unwrap();
    let Deleted::Waiting(marked) = waiting else { panic!("gone at once") };
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(number(&marked, "/metadata/deletionGracePeriodSeconds"), Some(30));

    let shorter = DeleteOptions { grace_s: Some(10), ..DeleteOptions::default() };
    api.client("test").delete(&key, &shorter).unwrap();
    let longer = DeleteOptions { grace_s: Some(60), ..DeleteOptions::default() };
    let Deleted::Waiting(marked) = api.client("test").delete(&key, &longer).unwrap() else {
        panic!("gone at once")
    };
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");

    let forced = api.client("test").delete(&key, &DeleteOptions::force(object::uid(&made)));
    assert!(matches!(forced, Ok(Deleted::Gone(_))));
    assert_eq!(code(api.client("test").get(&key)), (404, "NotFound"));
}

#[test]
fn a_pod_that_runs_nowhere_goes_at_once() {
    let mut api = server();
    let mut unbound = pod("unbound");
    unbound["spec"] = json!({});
    for (name, object, phase) in
        [("unbound", unbound, None), ("failed", pod("failed"), Some("Failed"))]
    {
        let key = Key::within(Kind::Pod, "default", name);
        api.client("test").create(Kind::Pod, object).unwrap();
        if let Some(phase) = phase {
            let status = json!({ "status": { "phase": phase } });
            api.client("test").merge_patch(&key, &status, Part::Status).unwrap();
        }
        let deleted = api.client("test").delete(&key, &DeleteOptions::default());
        assert!(matches!(deleted, Ok(Deleted::Gone(_))), "{name}");
    }
}

#[test]
fn a_finalizer_holds_an_object_until_it_is_lifted() {
    let mut api = server();
    let mut attachment = json!({ "metadata": { "name": "va", "finalizers": ["attacher"] } });
    attachment["spec"] = json!({ "nodeName": "node-a" });
    api.client("test").create(Kind::VolumeAttachment, attachment).unwrap();
    let key = Key::cluster(Kind::VolumeAttachment, "va");
    let first = api.client("test").delete(&key, &DeleteOptions::default()).unwrap();
    assert!(matches!(&first, Deleted::Waiting(object) if is_terminating(object)));
    let version = api.version();
    api.client("test").delete(&key, &DeleteOptions::default()).unwrap();
    assert_eq!(api.version(), version, "a second delete changes nothing");
    let more = json!({ "metadata": { "finalizers": ["attacher", "late"] } });
    let refused = api.client("test").merge_patch(&key, &more, Part::Main);
    assert_eq!(code(refused), (422, "Invalid"), "no finalizer is added any more");
    let lift = json!({ "metadata": { "finalizers": null } });
    api.client("attacher").merge_patch(&key, &lift, Part::Main).unwrap();
    assert_eq!(api.peek(&key), None);
}

#[test]
fn a_forced_pod_with_a_finalizer_goes_when_it_is_lifted() {
    let mut api = server();
    let key = Key::within(Kind::Pod, "default", "db-0");
    let mut held = pod("db-0");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let made = api.client("test").create(Kind::Pod, held).unwrap();
    let forced = api.client("test").delete(&key, &DeleteOptions::force(object::uid(&made)));
    assert!(matches!(forced, Ok(Deleted::Waiting(_))));
    let lift = json!({ "metadata": { "finalizers": [] } });
    api.client("test").merge_patch(&key, &lift, Part::Main).unwrap();
    assert_eq!(api.peek(&key), None);
}

#[test]
fn delete_preconditions_protect_the_successor() {
    let mut api = server();
    let key = Key::within(Kind::Pod, "default", "db-0");
    let made = api.client("test").create(Kind::Pod, pod("db-0")).unwrap();
    let version = text(&made, "/metadata/resourceVersion").to_owned();
    let other_uid = DeleteOptions::force("someone-else");
    let other_version =
        DeleteOptions { resource_version: Some("1".to_owned()), ..DeleteOptions::default() };
    for how in [other_uid, other_version] {
        assert_eq!(code(api.client("test").delete(&key, &how)), (409, "Conflict"));
    }
    let exact = DeleteOptions {
        grace_s: Some(0),
        uid: Some(object::uid(&made).to_owned()),
        resource_version: Some(version),
    };
    assert!(matches!(api.client("test").delete(&key, &exact), Ok(Deleted::Gone(_))));
    assert_eq!(code(api.client("test").delete(&key, &exact)), (404, "NotFound"));
}

#[test]
fn a_watch_tells_what_enters_changes_and_leaves_the_selection() {
    let mut api = server();
    let selector = Selector::read(Some("default"), Some("status.phase!=Failed")).unwrap();
    let from = api.client("test").list(Kind::Pod, &selector).unwrap();
    assert_eq!(from.items, []);
    let key = Key::within(Kind::Pod, "default", "db-0");
    api.client("test").create(Kind::Pod, pod("db-0")).unwrap();
    api.client("test").create(Kind::Node, node("node-a")).unwrap();
    for status in [json!({ "podIP": "1" }), json!({ "phase": "Failed" }), json!({ "podIP": "2" })] {
        let status = json!({ "status": status });
        api.client("test").merge_patch(&key, &status, Part::Status).unwrap();
    }
    let seen = api.client("test").watch(Kind::Pod, &selector, from.version).unwrap();
    let changes: Vec<_> = seen.events.iter().map(|event| event.change).collect();
    assert_eq!(changes, [ChangeType::Added, ChangeType::Modified, ChangeType::Deleted]);
    assert_eq!(seen.bookmark, api.version());
    let nothing = api.client("test").watch(Kind::Pod, &selector, seen.bookmark).unwrap();
    assert_eq!(nothing.events, []);
}

#[test]
fn a_watch_from_before_the_compaction_is_gone() {
    let mut api = server();
    let from = api.version();
    api.client("test").create(Kind::Node, node("node-a")).unwrap();
    api.compact();
    let watched = api.client("test").watch(Kind::Node, &Selector::all(), from);
    assert_eq!(code(watched), (410, "Expired"));
    let version = api.version();
    assert!(api.client("test").watch(Kind::Node, &Selector::all(), version).is_ok());
}

#[test]
fn the_history_is_bounded() {
    let mut api = server();
    let from = api.version();
    api.client("test").create(Kind::Node, node("node-a")).unwrap();
    let key = Key::cluster(Kind::Node, "node-a");
    for round in 0..=HISTORY_CHANGES {
        let note = json!({ "metadata": { "annotations": { "round": round.to_string() } } });
        api.client("test").merge_patch(&key, &note, Part::Main).unwrap();
    }
    assert_eq!(
        code(api.client("test").watch(Kind::Node, &Selector::all(), from)),
        (410, "Expired")
    );
    assert_eq!(api.changes(from + 2).unwrap().count(), HISTORY_CHANGES);
}

#[test]
fn selectors_are_read_or_refused() {
    let node_a = pod("db-0");
    let rows = [
        ("spec.nodeName=node-a", true),
        ("spec.nodeName==node-a,metadata.name=db-0", true),
        ("spec.nodeName!=node-a", false),
        ("spec.nodeName=node-b", false),
    ];
    for (fields, takes) in rows {
        let selector = Selector::read(None, Some(fields)).unwrap();
        assert_eq!(selector.takes(&node_a), takes, "{fields}");
    }
    assert_eq!(code(Selector::read(None, Some("spec.nodeName"))), (400, "BadRequest"));
    assert!(!Selector::read(Some("other"), None).unwrap().takes(&node_a));
}

#[test]
fn calls_are_counted_by_client_and_verb() {
    let mut api = server();
    api.client("a").create(Kind::Node, node("node-a")).unwrap();
    assert!(api.client("a").create(Kind::Node, node("node-a")).is_err());
    api.client("b").list(Kind::Node, &Selector::all()).unwrap();
    let counted: Vec<_> =
        api.calls().iter().map(|((name, verb), count)| (name.as_str(), *verb, *count)).collect();
    assert_eq!(counted, [("a", Verb::Create, 2), ("b", Verb::List, 1)]);
}

/// As a real one holds it against the definition of the kind.
#[test] // promise: S22
fn what_one_client_writes_is_held_against_definitions() {
    let mut api = server();
    let pause = |name: &str| json!({ "metadata": { "name": name }, "spec": { "note": name } });
    api.define("test", |kind, part, object| {
        assert_eq!((kind, part), (Kind::RemedyPause, "spec"));
        match object["spec"].as_object_mut().and_then(|spec| spec.remove("note")) {
            Some(note) if note == "long" => Err("spec.note: too long".to_owned()),
            _ => Ok(vec!["spec.note".to_owned()]),
        }
    });
    let made = api.client("test").create(Kind::RemedyPause, pause("a")).unwrap();
    assert_eq!(made["spec"], json!({}));
    assert_eq!(code(api.client("test").create(Kind::RemedyPause, pause("long"))).0, 422);
    let of_people = api.client("people").create(Kind::RemedyPause, pause("long")).unwrap();
    assert_eq!(of_people["spec"], json!({ "note": "long" }));
    let misfits = api.misfits();
    assert_eq!(misfits.len(), 2);
    assert!(misfits[0].ends_with("dropped spec.note") && misfits[1].contains("refused"));
}
