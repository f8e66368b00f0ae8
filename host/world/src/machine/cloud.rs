//! A machine that is an instance of EC2: its power follows the instance's state.

use std::time::Duration;

use node_remedy_devices::ec2::{self, Action, Cause, Change, Ec2Request, Instance, Reply, State};

use super::Machine;
use crate::api::object::{Key, condition_status};
use crate::api::{DeleteOptions, Kind};
use crate::facts::{Power, PowerCause, What};
use crate::stage::Stage;
use crate::time::{Time, after};

/// What deletes the Nodes of instances that are gone.
const CLOUD_NODE_LIFECYCLE: &str = "cloud-node-lifecycle-controller";
/// `--node-monitor-period` of the cloud controller manager.
const LOOKS_EVERY: Duration = Duration::from_secs(5);

impl Machine {
    /// Whether there is such a machine now: an instance may be gone for good, or still to come.
    pub(crate) fn is_there(&self) -> bool {
        self.cloud
            .as_ref()
            .is_none_or(|instance| instance.state() != State::Terminated && !instance.is_to_come())
    }

    /// A request about its instance.
    pub(crate) fn cloud_request(
        &mut self,
        stage: &mut Stage<'_>,
        by: &str,
        asked: &Ec2Request,
    ) -> Reply {
        let Some(instance) = &mut self.cloud else { return ec2::no_such_instance() };
        let was_ending = is_ending(instance);
        let reply = instance.answer(stage.now.0, asked);
        let is_ended_now = !was_ending && is_ending(instance);
        for event in instance.drain_events() {
            stage.say(told(&self.spec.name, by, &event));
        }
        if is_ended_now {
            stage.say(What::InstanceTerminated { node: self.spec.name.clone() });
        }
        self.follow_cloud(stage);
        reply
    }

    /// The cloud takes its instance away for good.
    pub(crate) fn terminate(&mut self, stage: &mut Stage<'_>) {
        let Some(instance) = self.cloud.as_mut().filter(|one| one.state() != State::Terminated)
        else {
            return;
        };
        instance.terminate(stage.now.0);
        stage.say(What::InstanceTerminated { node: self.spec.name.clone() });
        self.follow_cloud(stage);
    }

    /// Its autoscaling group launches it, in place of another.
    pub(crate) fn launch(&mut self, now: Time) {
        if let Some(instance) = &mut self.cloud {
            instance.launch(now.0);
        }
    }

    /// Takes over what the cloud did since the last look; says when it will next do something.
    pub(super) fn follow_cloud(&mut self, stage: &mut Stage<'_>) -> Option<Time> {
        let instance = self.cloud.as_mut()?;
        instance.tick(stage.now.0);
        let (changes, next) = (instance.drain_power_events(), instance.next_change().map(Time));
        let is_gone = instance.state() == State::Terminated;
        for event in changes {
            let cause = match event.cause {
                Cause::Command => PowerCause::Command,
                Cause::ByHand => PowerCause::ByHand,
                Cause::Cloud => PowerCause::Device,
            };
            match event.change {
                Change::Off => self.set_power(stage, Power::Off, cause),
                Change::On => self.set_power(stage, Power::On, cause),
                Change::Reset => self.reset(stage, cause),
            }
        }
        if is_gone { self.delete_node(stage) } else { next }
    }

    /// As the cloud controller manager does with the Node of an instance that is gone, once it is not
    /// ready; says when it looks again.
    fn delete_node(&self, stage: &mut Stage<'_>) -> Option<Time> {
        let key = Key::cluster(Kind::Node, &self.spec.name);
        let node = stage.api.peek(&key)?;
        if condition_status(node, "Ready") == "True" {
            return Some(after(stage.now, LOOKS_EVERY));
        }
        // It was there just now.
        drop(stage.api.client(CLOUD_NODE_LIFECYCLE).delete(&key, &DeleteOptions::default()));
        None
    }
}

fn is_ending(instance: &Instance) -> bool {
    matches!(instance.state(), State::ShuttingDown | State::Terminated)
}

fn told(node: &str, by: &str, event: &ec2::Event) -> What {
    let (node, by) = (node.to_owned(), by.to_owned());
    let command = match event.action {
        Action::Describe => "status",
        Action::Stop | Action::Terminate => "off",
        Action::Start => "on",
        Action::Reboot => "reset",
    };
    let command = command.to_owned();
    match event.outcome {
        Ok(Some(state)) => What::CloudReported { node, state: state.name().to_owned(), by },
        Ok(None) => What::CloudAccepted { node, command, by },
        Err(code) => What::CloudRefused { node, command, reason: code.to_owned(), by },
    }
}
