//! Everything that can be told of a world.

use serde::{Deserialize, Serialize};

/// Whether a machine has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// It has.
    On,
    /// It has not.
    Off,
}

/// Who changed a machine's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PowerCause {
    /// A command to what switches it: a BMC, a PDU, a switch, or the cloud whose instance it is.
    Command,
    /// Somebody in the room, or at the cloud's console.
    ByHand,
    /// What switches it, by itself.
    Device,
}

/// What can happen. Serialized with the variant's name as `fact`; pods are
/// `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum What {
    /// The kubelet process ended; the machine and its pods run on.
    KubeletStopped {
        /// On which node.
        node: String,
    },
    /// The kubelet process started.
    KubeletStarted {
        /// On which node.
        node: String,
        /// The boot during which it runs.
        boot: String,
    },
    /// The machine no longer reaches the API server; everything on it runs on.
    NetworkLost {
        /// Which node.
        node: String,
    },
    /// The machine reaches the API server again.
    NetworkBack {
        /// Which node.
        node: String,
    },
    /// The machine's kernel stopped; it has power and may go on at any time.
    MachineHung {
        /// Which node.
        node: String,
    },
    /// The machine goes on where it stopped.
    MachineResumed {
        /// Which node.
        node: String,
    },
    /// The machine's kernel panicked; what ran on it is gone, and a crash kernel writes a dump.
    KernelDumpStarted {
        /// Which node.
        node: String,
    },
    /// The dump is written whole; the machine boots.
    KernelDumpWritten {
        /// Which node.
        node: String,
    },
    /// A machine's power changed.
    PowerChanged {
        /// Which node.
        node: String,
        /// To what.
        power: Power,
        /// By whom.
        cause: PowerCause,
    },
    /// The machine was reset without losing power.
    MachineReset {
        /// Which node.
        node: String,
        /// By whom.
        cause: PowerCause,
    },
    /// The BMC accepted a power command; what it does about it is another matter.
    BmcAccepted {
        /// Which node's BMC.
        node: String,
        /// `off`, `on`, `cycle`, `reset`, `soft-off`, or the command's number.
        command: String,
        /// Whose datagram it was: a process of node-remedy.
        by: String,
    },
    /// The BMC answered a read of its power; what it said may be wrong.
    BmcReported {
        /// Which node's BMC.
        node: String,
        /// What it said.
        power: Power,
        /// Who asked.
        by: String,
    },
    /// At the BMC's address answers another machine's, or its own again.
    BmcChanged {
        /// At which node's address.
        node: String,
        /// Whether it is another machine's.
        of_another: bool,
    },
    /// The BMC refused a power command.
    BmcRefused {
        /// Which node's BMC.
        node: String,
        /// As in `BmcAccepted`.
        command: String,
        /// The completion code.
        code: u8,
        /// Who asked.
        by: String,
    },
    /// A session with the BMC was opened or closed.
    BmcSessions {
        /// Which node's.
        node: String,
        /// How many are open now.
        open: u64,
    },
    /// An outlet or a port went on or off; a machine on other feeds has power all the same.
    PlugChanged {
        /// Whose machine hangs on it; empty if none does.
        node: String,
        /// The PDU or switch.
        device: String,
        /// Which plug of it, from 1.
        plug: u64,
        /// To what; a port that is off carries nothing.
        power: Power,
        /// By whom.
        cause: PowerCause,
    },
    /// A PDU or switch accepted a command; what it does about it is another matter.
    PlugAccepted {
        /// Whose machine hangs on the plug.
        node: String,
        /// The PDU or switch.
        device: String,
        /// Which plug of it.
        plug: u64,
        /// `off`, `on` or `reset`.
        command: String,
        /// Whose datagram it was: a process of node-remedy.
        by: String,
    },
    /// A PDU or switch answered a read of a plug; what it said may be wrong.
    PlugReported {
        /// Whose machine hangs on the plug.
        node: String,
        /// The PDU or switch.
        device: String,
        /// Which plug of it.
        plug: u64,
        /// What it said.
        power: Power,
        /// Who asked.
        by: String,
    },
    /// A PDU or switch refused a command.
    PlugRefused {
        /// Whose machine hangs on the plug.
        node: String,
        /// The PDU or switch.
        device: String,
        /// Which plug of it.
        plug: u64,
        /// As in `PlugAccepted`.
        command: String,
        /// The error-status.
        code: u64,
        /// Who asked.
        by: String,
    },
    /// The cloud accepted a power command for an instance; what it does about it is another matter.
    CloudAccepted {
        /// Which node's instance.
        node: String,
        /// `off`, `on`, `reset`.
        command: String,
        /// Whose request it was: a process of node-remedy.
        by: String,
    },
    /// The cloud answered a read of an instance's state; what it said may be of a while ago.
    CloudReported {
        /// Which node's instance.
        node: String,
        /// `running`, `stopping`, `stopped`, … as EC2 calls it.
        state: String,
        /// Who asked.
        by: String,
    },
    /// The cloud refused a power command, or a read.
    CloudRefused {
        /// Which node's instance.
        node: String,
        /// As in `CloudAccepted`, or `status`.
        command: String,
        /// The code of the refusal, such as `UnauthorizedOperation`.
        reason: String,
        /// Who asked.
        by: String,
    },
    /// The cloud takes an instance away for good.
    InstanceTerminated {
        /// Which node's.
        node: String,
    },
    /// The node's `Ready` condition changed.
    NodeReady {
        /// Which node.
        node: String,
        /// `True`, `False` or `Unknown`.
        status: String,
        /// Who wrote it.
        by: String,
    },
    /// The node was registered.
    NodeCreated {
        /// Which node.
        node: String,
    },
    /// The Node object is gone.
    NodeDeleted {
        /// Which node.
        node: String,
        /// Who deleted it.
        by: String,
    },
    /// A taint appeared.
    TaintAdded {
        /// On which node.
        node: String,
        /// The taint's key.
        key: String,
        /// The taint's effect.
        effect: String,
        /// Who put it there.
        by: String,
    },
    /// A taint went.
    TaintRemoved {
        /// From which node.
        node: String,
        /// The taint's key.
        key: String,
        /// The taint's effect.
        effect: String,
        /// Who removed it.
        by: String,
    },
    /// The node no longer takes new pods.
    Cordoned {
        /// Which node.
        node: String,
        /// Who said so.
        by: String,
    },
    /// The node takes new pods again.
    Uncordoned {
        /// Which node.
        node: String,
        /// Who said so.
        by: String,
    },
    /// A pod object was created.
    PodCreated {
        /// Which pod.
        pod: String,
        /// Its UID.
        uid: String,
    },
    /// A pod was bound to a node.
    PodScheduled {
        /// Which pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// To which node.
        node: String,
    },
    /// A pod's phase changed in the API.
    PodPhase {
        /// Which pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// Where it is bound.
        node: String,
        /// `Running`, `Failed`, …
        phase: String,
        /// Who wrote it.
        by: String,
    },
    /// A pod was marked for deletion and waits, or somebody took the time away that its kubelet had to end it.
    PodTerminating {
        /// Which pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// Where it is bound.
        node: String,
        /// Its kubelet has time to end it, and it is not gone before.
        graceful: bool,
        /// Who deleted it.
        by: String,
    },
    /// A pod object is gone.
    PodGone {
        /// Which pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// Where it was bound.
        node: String,
        /// Whose write removed it.
        by: String,
    },
    /// A volume is attached.
    VolumeAttached {
        /// The PersistentVolume.
        volume: String,
        /// To which node.
        node: String,
    },
    /// A volume is no longer attached.
    VolumeDetached {
        /// The PersistentVolume.
        volume: String,
        /// From which node.
        node: String,
    },
    /// A VolumeAttachment was marked for deletion.
    DetachRequested {
        /// The PersistentVolume.
        volume: String,
        /// From which node.
        node: String,
        /// Who deleted it.
        by: String,
    },
    /// A pod's process began to write to a volume.
    WriterStarted {
        /// The PersistentVolume.
        volume: String,
        /// Whose process.
        pod: String,
        /// The pod's UID.
        uid: String,
        /// On which node.
        node: String,
        /// During which boot.
        boot: String,
    },
    /// A pod's process writes no more to a volume.
    WriterStopped {
        /// The PersistentVolume.
        volume: String,
        /// Whose process.
        pod: String,
        /// The pod's UID.
        uid: String,
        /// On which node.
        node: String,
        /// During which boot.
        boot: String,
    },
    /// The storage keeps a node away: nothing of it writes any more.
    StorageCut {
        /// Which node.
        node: String,
    },
    /// The storage lets a node back.
    StorageBack {
        /// Which node.
        node: String,
    },
    /// A second process writes to a volume while another still does: data is being lost.
    TwoWriters {
        /// The PersistentVolume.
        volume: String,
        /// The one that came second.
        pod: String,
        /// Where the second runs.
        node: String,
        /// Where the one that wrote already runs.
        other: String,
    },
    /// A process of node-remedy sent the same write again and again, without a pause.
    WriteRepeated {
        /// Verb, resource and name.
        write: String,
        /// How often within 10 s.
        times: usize,
    },
    /// A NodeFence was opened or its state changed.
    FenceState {
        /// The NodeFence.
        fence: String,
        /// The node it is about.
        node: String,
        /// `Isolation`, `Power-Management`, `Recovery`.
        step: String,
        /// `New`, `Running`, `Done`, `Final`, `Error`.
        state: String,
        /// Why it is final, such as `Remedied`; empty before.
        reason: String,
    },
    /// A NodeFence's record says of an operation that it is meant to be sent.
    IntentRecorded {
        /// The NodeFence.
        fence: String,
        /// The node it is about.
        node: String,
        /// The operation's number.
        operation: u64,
        /// The method's name.
        method: String,
        /// `off`, `on`, `status`, `reset`.
        action: String,
    },
    /// A NodeFence's record says that its node is proven isolated or off.
    ProofRecorded {
        /// The NodeFence.
        fence: String,
        /// The node it is about.
        node: String,
        /// The proof's grade.
        grade: String,
    },
    /// A NodeFence's record says that its incident waits for a device to answer.
    DeviceAwaited {
        /// The NodeFence.
        fence: String,
        /// The node it is about.
        node: String,
    },
    /// A NodeFence's record says that it is parked for a person.
    ParkedRecorded {
        /// The NodeFence.
        fence: String,
        /// The node it is about.
        node: String,
        /// Why, in the record's word: `OnFailed`, `NotHealthy`, …
        reason: String,
        /// How many of its plugs it says may be left off.
        left_off: u64,
    },
    /// Somebody changed, made or deleted an object.
    Edited {
        /// Its kind and name.
        object: String,
        /// Who.
        by: String,
    },
    /// Another remediator took the lock of a node.
    NodeLocked {
        /// Which node.
        node: String,
        /// Whose name stands in the lock.
        by: String,
        /// For how long, in seconds, unless it is renewed.
        lasts: u64,
    },
    /// Somebody says a word about an incident.
    OperatorCommand {
        /// Which NodeFence.
        fence: String,
        /// Its node.
        node: String,
        /// `approve`, `retry`, `abort`, `abort-leave-off` or `confirm-off`.
        command: String,
        /// Who.
        by: String,
    },
    /// A RemedyConfiguration says another mode.
    PolicyMode {
        /// Which one.
        policy: String,
        /// `enforce` or `shadow`; empty when it is gone.
        mode: String,
    },
    /// Another process of node-remedy holds the Lease of the leader.
    LeaderChanged {
        /// Which; empty when it was given back.
        process: String,
    },
}

impl What {
    /// Whether this is about how node-remedy works and not about the cluster: judges need it, and
    /// whoever reads a timeline is told by the decisions.
    pub fn is_inner(&self) -> bool {
        matches!(
            self,
            Self::BmcReported { .. }
                | Self::PlugReported { .. }
                | Self::BmcSessions { .. }
                | Self::CloudReported { .. }
                | Self::WriteRepeated { .. }
                | Self::IntentRecorded { .. }
                | Self::ProofRecorded { .. }
                | Self::DeviceAwaited { .. }
                | Self::ParkedRecorded { .. }
                | Self::PolicyMode { .. }
                | Self::LeaderChanged { .. }
        )
    }
}
