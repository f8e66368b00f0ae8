//! The attach-detach controller: a VolumeAttachment for every volume that a pod on a
//! node needs, and none for others.
//!
//! It believes what it did itself until it verifies, once a minute: a VolumeAttachment
//! that somebody else deletes is missed only then, and made again while the pod's
//! object remains. A volume in use is not taken from a node until six minutes after its
//! pod went and the node is not Ready, or at once where the node is out of service. What a
//! Node last said was in use stays so when the Node is deleted, and its pods need their
//! volumes there for as long as they exist.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::taints::{OUT_OF_SERVICE, has_key};
use crate::api::object::{Key, condition_status, is_terminating, is_true, list, name, text};
use crate::api::{ApiServer, DeleteOptions, Kind, Part};
use crate::rng::Rng;
use crate::stage::{CSI_DRIVER, Stage, sooner};
use crate::time::{Time, after, millis};
use crate::volumes::{self, Sharing, Volume};

const NAME: &str = "attachdetach-controller";
/// How long a volume stays with a node that is not Ready and may still have it mounted.
const FORCE_DETACH: Duration = Duration::from_mins(6);
/// How often it verifies that what it attached is still attached.
const VERIFY: Duration = Duration::from_mins(1);

/// The controller, and what it believes.
#[derive(Debug)]
pub(crate) struct AttachDetach {
    /// By volume and node.
    believed: BTreeMap<(String, String), Believed>,
    next_verify: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Believed {
    Attaching,
    Attached {
        /// Since when nobody needs it.
        unneeded: Option<Time>,
        /// Whether the node last said that it has it mounted.
        in_use: bool,
    },
    Detaching,
}

impl AttachDetach {
    /// One that verifies anywhere in its minute, as in a real cluster.
    pub(crate) fn new(seed: u64, now: Time) -> Self {
        let phase = Rng::named(seed, NAME).below(millis(VERIFY));
        let next_verify = after(now, Duration::from_millis(phase));
        Self { believed: BTreeMap::new(), next_verify }
    }

    /// Takes over what is attached before the timeline begins.
    pub(crate) fn adopt(&mut self, api: &ApiServer) {
        for attachment in api.all(Kind::VolumeAttachment) {
            let volume = text(attachment, "/spec/source/persistentVolumeName").to_owned();
            let node = text(attachment, "/spec/nodeName").to_owned();
            self.believed.insert((volume, node), Believed::Attaching);
        }
        self.see_progress(api);
    }

    /// One turn; says when time alone makes the next one necessary.
    pub(crate) fn run(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        if self.next_verify <= stage.now {
            self.next_verify = after(self.next_verify, VERIFY);
            self.verify(stage.api);
        }
        self.see_progress(stage.api);
        let needed = self.needed(stage.api);
        let (detached, forced) = self.give_up(stage, &needed);
        // A kubelet is told first that it may not mount any more.
        self.report(stage);
        for key in detached {
            // Where it is gone already, the next turn sees that.
            drop(stage.api.client(NAME).delete(&key, &DeleteOptions::default()));
        }
        self.attach(stage, &needed);
        sooner(Some(self.next_verify), forced)
    }

    /// The volumes that pods need, where they need them. A node that is deleted keeps its own.
    fn needed(&self, api: &ApiServer) -> Needed {
        let nodes: BTreeSet<&str> = api.all(Kind::Node).map(name).collect();
        let mut needed = Needed::new();
        for pod in api.all(Kind::Pod) {
            let node = text(pod, "/spec/nodeName");
            if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
                continue;
            }
            for Volume { name, sharing, .. } in volumes::of_pod(api, pod) {
                let place = (name, node.to_owned());
                if nodes.contains(node) || self.believed.contains_key(&place) {
                    needed.insert(place, sharing);
                }
            }
        }
        needed
    }

    /// Drops beliefs that are wrong.
    fn verify(&mut self, api: &ApiServer) {
        self.believed.retain(|(volume, node), belief| match belief {
            Believed::Attached { .. } => volumes::is_attached(api, volume, node),
            Believed::Attaching | Believed::Detaching => true,
        });
    }

    /// Follows the attachments that an operation waits for.
    fn see_progress(&mut self, api: &ApiServer) {
        self.believed.retain(|(volume, node), belief| {
            let object = api.peek(&attachment_key(volume, node));
            match belief {
                Believed::Attaching => match object {
                    Some(object) if is_true(object, "/status/attached") => {
                        *belief = Believed::Attached { unneeded: None, in_use: false };
                        true
                    }
                    Some(_) => true,
                    None => false,
                },
                Believed::Detaching => object.is_some(),
                Believed::Attached { .. } => true,
            }
        });
    }

    /// Gives up what nobody needs and nobody has mounted: the attachments that are to go, and when
    /// force will be used.
    fn give_up(&mut self, stage: &Stage<'_>, needed: &Needed) -> (Vec<Key>, Option<Time>) {
        let mut detached = Vec::new();
        let mut next: Option<Time> = None;
        for ((volume, node), belief) in &mut self.believed {
            let Believed::Attached { unneeded, in_use } = belief else { continue };
            let object = stage.api.peek(&Key::cluster(Kind::Node, node));
            if let Some(node) = object {
                *in_use = is_in_use(stage.api, node, volume);
            }
            if needed.contains_key(&(volume.clone(), node.clone())) {
                *unneeded = None;
                continue;
            }
            let since = *unneeded.get_or_insert(stage.now);
            let force_at = after(since, FORCE_DETACH);
            let ready = object.is_some_and(|node| condition_status(node, "Ready") == "True");
            let out = object.is_some_and(|node| has_key(node, OUT_OF_SERVICE));
            let force = !ready && force_at < stage.now;
            if *in_use && !force && !out {
                if force_at >= stage.now {
                    let look = after(force_at, Duration::from_millis(1));
                    next = sooner(next, Some(look));
                }
                continue;
            }
            *belief = Believed::Detaching;
            detached.push(attachment_key(volume, node));
        }
        (detached, next)
    }

    /// Attaches what is needed, as far as no other node has it.
    fn attach(&mut self, stage: &mut Stage<'_>, needed: &Needed) {
        for ((volume, node), sharing) in needed {
            let elsewhere = self.believed.keys().any(|(other, _)| other == volume);
            let here = self.believed.contains_key(&(volume.clone(), node.clone()));
            if here || (elsewhere && *sharing == Sharing::Exclusive) {
                continue;
            }
            let key = attachment_key(volume, node);
            // One that is being deleted has to go before the next can be made.
            if stage.api.peek(&key).is_some_and(is_terminating) {
                continue;
            }
            let attachment = json!({
                "metadata": { "name": key.name },
                "spec": {
                    "attacher": CSI_DRIVER,
                    "nodeName": node,
                    "source": { "persistentVolumeName": volume },
                },
                "status": { "attached": false },
            });
            // One that exists already is the one that is wanted.
            drop(stage.api.client(NAME).create(Kind::VolumeAttachment, attachment));
            self.believed.insert((volume.clone(), node.clone()), Believed::Attaching);
        }
    }

    /// Tells each kubelet, through its Node, what it may mount.
    fn report(&self, stage: &mut Stage<'_>) {
        let mut attached: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for ((volume, node), belief) in &self.believed {
            if let (Believed::Attached { .. }, Some(volume)) =
                (belief, volumes::of_name(stage.api, volume))
            {
                let told = json!({ "name": volume.unique, "devicePath": "" });
                attached.entry(node).or_default().push(told);
            }
        }
        let told = |node: &Value| {
            let attached = attached.get(name(node)).map(Vec::as_slice).unwrap_or_default();
            let differs = list(node, "/status/volumesAttached") != attached;
            differs.then(|| (Key::of(Kind::Node, node), attached.to_vec()))
        };
        let news: Vec<(Key, Vec<Value>)> = stage.api.all(Kind::Node).filter_map(told).collect();
        for (key, attached) in news {
            let status = json!({ "status": { "volumesAttached": attached } });
            // A node that is gone has no kubelet to tell.
            drop(stage.api.client(NAME).merge_patch(&key, &status, Part::Status));
        }
    }
}

/// By volume and node.
type Needed = BTreeMap<(String, String), Sharing>;

/// Whether the node's kubelet says, or last said, that it has the volume mounted.
fn is_in_use(api: &ApiServer, node: &Value, volume: &str) -> bool {
    let Some(volume) = volumes::of_name(api, volume) else { return false };
    list(node, "/status/volumesInUse").iter().any(|used| *used == volume.unique)
}

/// Names are a function of volume and node, so that an attachment is never made twice.
pub(crate) fn attachment_key(volume: &str, node: &str) -> Key {
    let mut stream = Rng::named(0, &format!("{CSI_DRIVER} {volume} {node}"));
    let name = format!("csi-{:016x}{:016x}", stream.draw(), stream.draw());
    Key::cluster(Kind::VolumeAttachment, &name)
}
