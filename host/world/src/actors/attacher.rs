//! The external attacher of the CSI driver: makes VolumeAttachments true.
//!
//! It asks nobody whether the node is off: what the attach-detach controller wants
//! detached is detached, unless its driver checks whether somebody still writes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::object::{Key, is_terminating, is_true, list, name, text};
use crate::api::{Kind, Part};
use crate::stage::{CSI_DRIVER, Stage};
use crate::time::{Time, after};

const NAME: &str = "csi-attacher";
/// When a driver that refused is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The attacher: what it is at, and when that is done.
#[derive(Debug, Default)]
pub(crate) struct Attacher {
    work: BTreeMap<(String, Task), Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Attach,
    Detach,
}

impl Attacher {
    /// One turn; says when the next piece of work is done.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        let done_at = after(stage.now, stage.timings.attach);
        let wanted: Vec<(String, Task)> = stage
            .api
            .all(Kind::VolumeAttachment)
            .filter_map(|attachment| Some((name(attachment).to_owned(), task(attachment)?)))
            .collect();
        self.work.retain(|work, _| wanted.contains(work));
        for work in wanted {
            self.work.entry(work).or_insert(done_at);
        }
        let due: Vec<(String, Task)> = self
            .work
            .iter()
            .filter(|(_, done)| **done <= stage.now)
            .map(|(work, _)| work.clone())
            .collect();
        for work in due {
            self.work.remove(&work);
            let (attachment, task) = work;
            match task {
                Task::Attach => attach(stage, &attachment),
                Task::Detach if is_written_to(stage, &attachment) => {
                    self.work.insert((attachment, task), after(stage.now, ASK_AGAIN));
                }
                Task::Detach => detach(stage, &attachment),
            }
        }
        self.work.values().min().copied()
    }
}

/// What is left to do for an attachment.
fn task(attachment: &Value) -> Option<Task> {
    let ours = list(attachment, "/metadata/finalizers").iter().any(|one| *one == finalizer());
    match (is_terminating(attachment), is_true(attachment, "/status/attached")) {
        (true, _) => ours.then_some(Task::Detach),
        (false, true) => None,
        (false, false) => Some(Task::Attach),
    }
}

fn attach(stage: &mut Stage<'_>, attachment: &str) {
    let key = Key::cluster(Kind::VolumeAttachment, attachment);
    allow(stage, &key, true);
    let mut client = stage.api.client(NAME);
    let held = json!({ "metadata": { "finalizers": [finalizer()] } });
    let attached = json!({ "status": { "attached": true } });
    // What is gone by now comes up no more; anything else the next turn finds again.
    drop(client.merge_patch(&key, &held, Part::Main));
    drop(client.merge_patch(&key, &attached, Part::Status));
}

/// Lets the object go; finalizers of others are theirs to lift.
fn detach(stage: &mut Stage<'_>, attachment: &str) {
    let key = Key::cluster(Kind::VolumeAttachment, attachment);
    let Some(object) = stage.api.peek(&key) else { return };
    let finalizers = list(object, "/metadata/finalizers").iter();
    let others: Vec<&Value> = finalizers.filter(|one| **one != finalizer()).collect();
    let released = json!({ "metadata": { "finalizers": others } });
    let detached = json!({ "status": { "attached": false } });
    allow(stage, &key, false);
    let mut client = stage.api.client(NAME);
    // What is gone by now comes up no more; anything else the next turn finds again.
    drop(client.merge_patch(&key, &detached, Part::Status));
    drop(client.merge_patch(&key, &released, Part::Main));
}

/// A driver that checks at detach keeps the node from the volume from then on, until it is attached again.
fn allow(stage: &mut Stage<'_>, attachment: &Key, is_attached: bool) {
    if stage.timings.checks_at_detach
        && let Some((volume, node)) = stage.api.peek(attachment).map(place)
    {
        stage.writers.allow(volume, node, is_attached);
    }
}

/// Whether the driver refuses to detach, as somebody still writes from there.
fn is_written_to(stage: &Stage<'_>, attachment: &str) -> bool {
    let object = stage.api.peek(&Key::cluster(Kind::VolumeAttachment, attachment));
    let Some(object) = object.filter(|_| stage.timings.checks_at_detach) else { return false };
    let (volume, node) = place(object);
    stage.writers.of(volume).iter().any(|writer| writer.node == node)
}

/// Which volume an attachment attaches, and where.
fn place(attachment: &Value) -> (&str, &str) {
    (text(attachment, "/spec/source/persistentVolumeName"), text(attachment, "/spec/nodeName"))
}

/// What keeps an attachment until its volume is detached.
pub(crate) fn finalizer() -> Value {
    json!(format!("external-attacher/{}", CSI_DRIVER.replace('.', "-")))
}
