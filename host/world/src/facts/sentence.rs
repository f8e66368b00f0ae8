//! Facts as sentences, for timelines; who needs their fields has the fields.

use crate::facts::what::{Power, PowerCause, What};

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::KubeletStopped { node } => write!(f, "{node}: the kubelet stopped"),
            Self::KubeletStarted { node, .. } => write!(f, "{node}: the kubelet started"),
            Self::NetworkLost { node } => write!(f, "{node}: the network is gone"),
            Self::NetworkBack { node } => write!(f, "{node}: the network is back"),
            Self::MachineHung { node } => write!(f, "{node}: the machine hangs"),
            Self::MachineResumed { node } => write!(f, "{node}: the machine goes on"),
            Self::KernelDumpStarted { node } => {
                write!(f, "{node}: the kernel panics and writes a dump")
            }
            Self::KernelDumpWritten { node } => {
                write!(f, "{node}: the dump is written; it boots")
            }
            Self::PowerChanged { node, power, cause } => {
                write!(f, "{node}: power {} {}", power.word(), cause.word())
            }
            Self::MachineReset { node, cause } => write!(f, "{node}: reset {}", cause.word()),
            Self::BmcChanged { node, of_another: true } => {
                write!(f, "{node}: the BMC at its address is another machine's")
            }
            Self::BmcChanged { node, of_another: false } => {
                write!(f, "{node}: the BMC at its address is its own again")
            }
            Self::BmcAccepted { node, command, .. } => {
                write!(f, "{node}: the BMC said yes to {command}")
            }
            Self::BmcReported { node, power, .. } => {
                write!(f, "{node}: the BMC said that it is {}", power.word())
            }
            Self::BmcRefused { node, command, code, .. } => {
                write!(f, "{node}: the BMC refused {command} with {code:02x}")
            }
            Self::BmcSessions { node, open } => {
                write!(f, "{node}: sessions open with its BMC: {open}")
            }
            Self::PlugChanged { node, device, plug, power, cause } => {
                let (whose, power) = (whose(node), power.word());
                write!(f, "{whose}: {device}/{plug} {power} {}", cause.word())
            }
            Self::PlugAccepted { node, device, plug, command, .. } => {
                write!(f, "{}: {device}/{plug} said yes to {command}", whose(node))
            }
            Self::PlugReported { node, device, plug, power, .. } => {
                write!(f, "{}: {device}/{plug} said that it is {}", whose(node), power.word())
            }
            Self::PlugRefused { node, device, plug, command, code, .. } => {
                write!(f, "{}: {device}/{plug} refused {command} with {code}", whose(node))
            }
            Self::CloudAccepted { node, command, .. } => {
                write!(f, "{node}: EC2 said yes to {command}")
            }
            Self::CloudReported { node, state, .. } => {
                write!(f, "{node}: EC2 said that it is {state}")
            }
            Self::CloudRefused { node, command, reason, .. } => {
                write!(f, "{node}: EC2 refused {command} with {reason}")
            }
            Self::InstanceTerminated { node } => write!(f, "{node}: the instance is terminated"),
            Self::NodeReady { node, status, by } => write!(f, "{node}: Ready {status} ({by})"),
            Self::NodeCreated { node } => write!(f, "{node}: registered"),
            Self::NodeDeleted { node, by } => write!(f, "{node}: Node deleted ({by})"),
            Self::TaintAdded { node, key, effect, by } => {
                write!(f, "{node}: tainted {key}:{effect} ({by})")
            }
            Self::TaintRemoved { node, key, effect, by } => {
                write!(f, "{node}: taint {key}:{effect} removed ({by})")
            }
            Self::Cordoned { node, by } => write!(f, "{node}: cordoned ({by})"),
            Self::Uncordoned { node, by } => write!(f, "{node}: uncordoned ({by})"),
            Self::PodCreated { pod, .. } => write!(f, "{pod}: created"),
            Self::PodScheduled { pod, node, .. } => write!(f, "{pod}: bound to {node}"),
            Self::PodPhase { pod, node, phase, .. } => write!(f, "{pod}: {phase} on {node}"),
            Self::PodTerminating { pod, node, by, .. } => {
                write!(f, "{pod}: Terminating on {node} ({by})")
            }
            Self::PodGone { pod, node, by, .. } => write!(f, "{pod}: gone from {node} ({by})"),
            Self::VolumeAttached { volume, node } => write!(f, "{volume}: attached to {node}"),
            Self::VolumeDetached { volume, node } => write!(f, "{volume}: detached from {node}"),
            Self::DetachRequested { volume, node, by } => {
                write!(f, "{volume}: to be detached from {node} ({by})")
            }
            Self::WriterStarted { volume, pod, node, .. } => {
                write!(f, "{volume}: written by {pod} on {node}")
            }
            Self::WriterStopped { volume, pod, node, .. } => {
                write!(f, "{volume}: no longer written by {pod} on {node}")
            }
            Self::StorageCut { node } => write!(f, "{node}: kept away from its storage"),
            Self::StorageBack { node } => write!(f, "{node}: let back to its storage"),
            Self::TwoWriters { volume, pod, node, other } => {
                write!(f, "{volume}: TWO WRITERS, {pod} on {node} beside one on {other}")
            }
            Self::WriteRepeated { write, times } => {
                write!(f, "{write}: sent {times} times within 10 s")
            }
            Self::FenceState { fence, node, step, state, .. } => {
                write!(f, "{fence}: {node} {step} {state}")
            }
            Self::IntentRecorded { fence, node, operation, action, .. } => {
                write!(f, "{fence}: {node} operation {operation} is to be {action}")
            }
            Self::ProofRecorded { fence, node, grade } => {
                write!(f, "{fence}: {node} is proven: {grade}")
            }
            Self::DeviceAwaited { fence, node } => {
                write!(f, "{fence}: {node} waits for its device to answer")
            }
            Self::ParkedRecorded { fence, node, reason, left_off } => {
                write!(f, "{fence}: {node} is parked: {reason}, {left_off} plugs may be left off")
            }
            Self::Edited { object, by } => write!(f, "{object}: edited ({by})"),
            Self::NodeLocked { node, by, lasts } => {
                write!(f, "{node}: {by} has its lock for {lasts} s")
            }
            Self::OperatorCommand { fence, command, by, .. } => {
                write!(f, "{fence}: {command} ({by})")
            }
            Self::PolicyMode { policy, mode } if mode.is_empty() => write!(f, "{policy}: is gone"),
            Self::PolicyMode { policy, mode } => write!(f, "{policy}: says mode {mode}"),
            Self::LeaderChanged { process } if process.is_empty() => {
                write!(f, "node-remedy: nobody leads")
            }
            Self::LeaderChanged { process } => write!(f, "node-remedy: {process} leads"),
        }
    }
}

/// On whose line it is told; of a plug on which nobody hangs, on nobody's.
fn whose(node: &str) -> &str {
    if node.is_empty() { "nobody" } else { node }
}

impl Power {
    fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl PowerCause {
    fn word(self) -> &'static str {
        match self {
            Self::Command => "by a command",
            Self::ByHand => "by hand",
            Self::Device => "by the device itself",
        }
    }
}
