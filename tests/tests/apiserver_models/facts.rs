//! From changes of objects to facts in words that are the same on both sides.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_world::api::object::{
    condition_status, is_terminating, is_true, list, name, namespace, text, uid,
};
use node_remedy_world::api::{ChangeType, Kind};
use serde_json::Value;

use super::trace::Fact;

/// The kinds whose changes are facts.
pub(crate) const KINDS: [Kind; 3] = [Kind::Node, Kind::Pod, Kind::VolumeAttachment];

/// A committed write, as either side saw it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) change: ChangeType,
    pub(crate) object: Value,
    pub(crate) version: u64,
    /// When it was seen, since the side's start.
    pub(crate) at: Duration,
}

/// The names of a script's nodes: what is called a, b, … in its lines.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// The script's own name, with which the names of everything of it begin.
    pub(crate) script: String,
    /// The nodes' names, a first.
    pub(crate) nodes: Vec<String>,
}

impl Names {
    /// Names a, b, … in order.
    pub(crate) fn new(script: &str, nodes: usize) -> Self {
        let letters = ('a'..='z').take(nodes);
        Self {
            script: script.to_owned(),
            nodes: letters.map(|letter| format!("{script}-{letter}")).collect(),
        }
    }

    /// The node of a letter.
    pub(crate) fn node(&self, letter: char) -> Option<&str> {
        let place = ('a'..='z').position(|one| one == letter)?;
        self.nodes.get(place).map(String::as_str)
    }

    /// From now on this node is a.
    pub(crate) fn call_a(&mut self, node: &str) {
        if let Some(place) = self.nodes.iter().position(|one| one == node) {
            self.nodes.swap(0, place);
        }
    }

    /// The letter of a node, where it is one of the script's.
    fn letter(&self, node: &str) -> Option<char> {
        let place = self.nodes.iter().position(|one| one == node)?;
        ('a'..='z').nth(place)
    }

    /// A name without what makes it the script's own.
    pub(crate) fn short<'a>(&self, name: &'a str) -> &'a str {
        let own = name.strip_prefix(self.script.as_str());
        own.and_then(|rest| rest.strip_prefix('-')).unwrap_or(name)
    }
}

/// Turns changes into facts. What it knows is what it was told.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    before: BTreeMap<(Kind, String, String), Value>,
    /// UIDs of the pods that had a name, in order.
    pods: BTreeMap<String, Vec<String>>,
}

impl Reader {
    /// The facts of one change; objects that are not the script's have none.
    pub(crate) fn read(&mut self, names: &Names, change: &Change) -> Vec<Fact> {
        let object = &change.object;
        let key = (change.kind, namespace(object).to_owned(), name(object).to_owned());
        let before = match change.change {
            ChangeType::Deleted => self.before.remove(&key),
            ChangeType::Added | ChangeType::Modified => self.before.insert(key, object.clone()),
        };
        let before = before.unwrap_or(Value::Null);
        let mut said = Said { change, facts: Vec::new() };
        if change.kind == Kind::Node {
            node(&mut said, names, &before);
        } else if change.kind == Kind::VolumeAttachment {
            attachment(&mut said, names, &before);
        } else if change.kind == Kind::Pod && namespace(object) == names.script {
            let known = self.pods.entry(name(object).to_owned()).or_default();
            if !known.iter().any(|one| one == uid(object)) {
                known.push(uid(object).to_owned());
            }
            let incarnation = known.iter().position(|one| one == uid(object));
            let pod = format!("{}#{}", name(object), incarnation.unwrap_or_default() + 1);
            self::pod(&mut said, names, &before, &pod);
        }
        said.facts
    }

    /// The name of the attachment of a volume to a node.
    pub(crate) fn attachment_to(&self, node: &str) -> Option<&str> {
        let attachments = self.before.iter().filter(|(key, _)| key.0 == Kind::VolumeAttachment);
        let mut of_node = attachments.filter(|(_, object)| text(object, "/spec/nodeName") == node);
        of_node.next().map(|(key, _)| key.2.as_str())
    }
}

struct Said<'a> {
    change: &'a Change,
    facts: Vec<Fact>,
}

impl Said<'_> {
    fn say(&mut self, line: String, writes: &[String], reads: &[String]) {
        let (version, at) = (self.change.version, self.change.at);
        let (writes, reads) = (writes.to_vec(), reads.to_vec());
        self.facts.push(Fact { version, at, line, writes, reads });
    }

    fn is(&self, what: ChangeType) -> bool {
        self.change.change == what
    }
}

/// What facts write and depend on, by node letter.
fn ready(node: char) -> String {
    format!("ready of {node}")
}

fn no_schedule(node: char) -> String {
    format!("NoSchedule on {node}")
}

fn no_execute(node: char) -> String {
    format!("NoExecute on {node}")
}

fn pods_on(node: char) -> String {
    format!("pods on {node}")
}

fn volumes_of(node: char) -> String {
    format!("volumes of {node}")
}

fn reports_on(node: char) -> String {
    format!("reports on {node}")
}

/// How many nodes are lost decides whether pods of any are evicted.
fn zone() -> String {
    "zone".to_owned()
}

fn node(said: &mut Said<'_>, names: &Names, before: &Value) {
    let object = &said.change.object;
    let Some(letter) = names.letter(name(object)) else { return };
    if said.is(ChangeType::Deleted) {
        let all = [ready(letter), no_schedule(letter), no_execute(letter), zone()];
        return said.say(format!("node {letter}: gone"), &all, &[]);
    }
    let status = condition_status(object, "Ready");
    if status != condition_status(before, "Ready") {
        let line = format!("node {letter}: Ready {status}");
        said.say(line, &[ready(letter), zone()], &[]);
    }
    let mut taint = |taint: &Value, verb: &str| {
        let (key, effect) = (text(taint, "/key"), text(taint, "/effect"));
        let key = key.strip_prefix("node.kubernetes.io/").unwrap_or(key);
        let line = format!("node {letter}: taint {key} {effect} {verb}");
        if effect == "NoExecute" {
            said.say(line, &[no_execute(letter)], &[ready(letter), zone()]);
        } else {
            said.say(line, &[no_schedule(letter)], &[ready(letter)]);
        }
    };
    let (had, has) = (list(before, "/spec/taints"), list(object, "/spec/taints"));
    let same = |one: &Value, other: &Value| {
        ["/key", "/effect"].iter().all(|field| text(one, field) == text(other, field))
    };
    for one in has.iter().filter(|one| !had.iter().any(|other| same(one, other))) {
        taint(one, "put");
    }
    for one in had.iter().filter(|one| !has.iter().any(|other| same(one, other))) {
        taint(one, "lifted");
    }
    reported(said, names, before, letter);
}

/// What its kubelet may mount, as the attach-detach controller tells it through the Node.
fn reported(said: &mut Said<'_>, names: &Names, before: &Value, node: char) {
    let of = |object: &Value| -> Vec<String> {
        let attached = list(object, "/status/volumesAttached").iter();
        let handles = attached.filter_map(|volume| text(volume, "/name").split('^').nth(1));
        handles.map(|handle| names.short(handle).to_owned()).collect()
    };
    let (had, has) = (of(before), of(&said.change.object));
    let mut say = |volume: &str, what: &str| {
        let line = format!("volume {volume} on {node}: {what}");
        said.say(line, &[reports_on(node)], &[]);
    };
    for volume in has.iter().filter(|volume| !had.contains(volume)) {
        say(volume, "reported");
    }
    for volume in had.iter().filter(|volume| !has.contains(volume)) {
        say(volume, "no longer reported");
    }
}

fn pod(said: &mut Said<'_>, names: &Names, before: &Value, pod: &str) {
    let object = &said.change.object;
    let node = text(object, "/spec/nodeName");
    let letter = names.letter(node).unwrap_or('?');
    // One name, one pod at a time: the order of all that bear it counts.
    let own = vec![format!("pod {}", name(object))];
    let mut placed = own.clone();
    placed.push(pods_on(letter));
    let was_over = is_over(before);
    if said.is(ChangeType::Deleted) {
        let writes = if was_over { &own } else { &placed };
        return said.say(format!("pod {pod}: gone"), writes, &[]);
    }
    if before.is_null() {
        said.say(format!("pod {pod}: created"), &own, &[]);
    }
    if !node.is_empty() && text(before, "/spec/nodeName").is_empty() {
        said.say(format!("pod {pod}: bound to {letter}"), &placed, &[no_schedule(letter)]);
    }
    let phase = text(object, "/status/phase");
    if phase != text(before, "/status/phase") && phase != "Pending" {
        // Only pod GC, for its node's taint, says that one failed.
        let failed = phase == "Failed";
        let (runs, fails) = ([volumes_of(letter), reports_on(letter)], [no_execute(letter)]);
        let reads: &[String] = if failed { &fails } else { &runs };
        let writes = if is_over(object) { &placed } else { &own };
        said.say(format!("pod {pod}: {phase}"), writes, reads);
    }
    let was_ready = condition_status(before, "Ready");
    let is_ready = condition_status(object, "Ready");
    if was_ready == "True" && is_ready != "True" {
        let line = format!("pod {pod}: no longer Ready");
        said.say(line, &[format!("readiness of {pod}")], &[ready(letter)]);
    }
    if is_terminating(object) && !is_terminating(before) {
        said.say(format!("pod {pod}: Terminating"), &own, &[no_execute(letter)]);
    }
}

/// Whether a pod ended: its volumes are let go of from then on, before it is gone or after.
fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
}

fn attachment(said: &mut Said<'_>, names: &Names, before: &Value) {
    let object = &said.change.object;
    let Some(letter) = names.letter(text(object, "/spec/nodeName")) else { return };
    let volume = names.short(text(object, "/spec/source/persistentVolumeName"));
    let writes = [format!("volume {volume}"), volumes_of(letter)];
    let wanted = [pods_on(letter), no_execute(letter)];
    // One may be asked for while its node is still told that an earlier one is gone.
    let settled = [wanted.as_slice(), &[reports_on(letter)]].concat();
    let is_gone = said.is(ChangeType::Deleted);
    let mut say = |what: &str, reads: &[String]| {
        said.say(format!("volume {volume} on {letter}: {what}"), &writes, reads);
    };
    if is_gone {
        return say("gone", &settled);
    }
    if before.is_null() {
        say("asked for", &wanted);
    }
    if is_true(object, "/status/attached") && !is_true(before, "/status/attached") {
        say("attached", &settled);
    }
    if is_terminating(object) && !is_terminating(before) {
        say("to be detached", &settled);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::trace::in_normal_order;
    use super::*;

    /// What these changes say, of a script whose pod db-0 runs on a with its volume.
    fn told(changes: &[(ChangeType, Value)]) -> Vec<String> {
        let names = Names::new("one", 1);
        let mut reader = Reader::default();
        let mut facts = Vec::new();
        let begin = [(ChangeType::Added, pod("Running")), (ChangeType::Added, volume(false))];
        for (version, (change, object)) in (0..).zip(begin.iter().chain(changes)) {
            let is_pod = object.pointer("/status/phase").is_some();
            let kind = if is_pod { Kind::Pod } else { Kind::VolumeAttachment };
            let (change, object) = (*change, object.clone());
            let change = Change { kind, change, object, version, at: Duration::ZERO };
            facts.extend(reader.read(&names, &change));
        }
        in_normal_order(&facts)
    }

    fn pod(phase: &str) -> Value {
        json!({
            "metadata": { "name": "db-0", "namespace": "one", "uid": "1" },
            "spec": { "nodeName": "one-a" },
            "status": { "phase": phase },
        })
    }

    fn volume(is_let_go: bool) -> Value {
        let deleted = is_let_go.then_some("2026-01-01T00:00:00Z");
        json!({
            "metadata": { "name": "csi-1", "deletionTimestamp": deleted },
            "spec": { "nodeName": "one-a", "source": { "persistentVolumeName": "one-data" } },
        })
    }

    #[test]
    fn the_volume_of_a_pod_that_ended_is_let_go_of_before_the_pod_is_gone_or_after() {
        let failed = (ChangeType::Modified, pod("Failed"));
        let gone = (ChangeType::Deleted, pod("Failed"));
        let detached = (ChangeType::Modified, volume(true));
        let usual = told(&[failed.clone(), gone.clone(), detached.clone()]);
        assert_eq!(usual, told(&[failed.clone(), detached.clone(), gone.clone()]));
        assert_ne!(usual, told(&[detached.clone(), failed, gone]));
        // By force, while it is said to run: the volume waits for that.
        let gone = (ChangeType::Deleted, pod("Running"));
        let by_force = told(&[gone.clone(), detached.clone()]);
        assert_ne!(by_force, told(&[detached, gone]));
    }
}
