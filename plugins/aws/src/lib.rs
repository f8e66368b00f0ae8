//! The power of an instance of Amazon EC2, by the EC2 query API (version 2016-11-15).
//!
//! In the order a call runs:
//!
//! * `plug`: which instance is meant, and whether it can be in this region
//! * `ec2`: how it is spoken to, what its answers and refusals say
//! * here: what is asked for, and what is said of what came of it
//!
//! The host signs each request; the secret key stays with it. What was accepted is not yet so: EC2
//! answers from several places that agree late, and an instance takes a minute to stop. The outcome is
//! what was read afterwards.
//!
//! What this deliberately is not: terminating, hibernating, detaching volumes, or finding an instance
//! by its name.

mod ec2;
mod plug;

use node_remedy_plugin_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_plugin_sdk::web::Api;
use node_remedy_plugin_sdk::{
    Failure, FailureKind, FenceMethod, Host, Outcome, PlugState, Request, fence_plugin,
};

use ec2::Instance;
use plug::Plug;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aws;

fence_plugin!(Aws);

impl FenceMethod for Aws {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let plug = Plug::parse(&request.plug, request.parameter("region").unwrap_or_default())?;
        let api = ec2::api(host, request.deadline_ms);
        let waits_for_os = request.parameter("skip-os-shutdown") == Some("false");
        carry_out(request, host, &mut Ec2 { api: &api, plug, waits_for_os })
    }
}

/// An instance.
struct Ec2<'a, H> {
    api: &'a Api<'a, H>,
    plug: Plug,
    waits_for_os: bool,
}

impl<H: Host> Machine for Ec2<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let Plug { id, zone, .. } = &self.plug;
        let instance = ec2::describe(self.api, id)?;
        if let (Some(zone), Some(found)) = (zone, &instance.zone)
            && zone != found
        {
            let sentence = format!("instance {id} is in zone {found}, expected {zone}");
            return Err(Failure::new(FailureKind::NoSuchPlug, sentence));
        }
        if instance.is_terminated() && !self.plug.is_of_the_node() {
            return Err(Failure::new(FailureKind::NoSuchPlug, terminated(id)));
        }
        Ok(Reading {
            state: instance.power(),
            words: format!("state is {}", instance.words()),
            identity: instance.identity(),
        })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        Ok(action(change).to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let how = match change {
            Change::Off if self.waits_for_os => "&Force=true",
            Change::Off => "&Force=true&SkipOsShutdown=true",
            Change::On | Change::Reset => "",
        };
        ec2::ask(self.api, action(change), &self.plug.id, how).map(|_| ())
    }

    /// The only refusal that speaks of a state.
    fn may_be_so_already(&self, refusal: &Failure) -> bool {
        refusal.kind == FailureKind::Busy && refusal.device_code == Some(400)
    }

    /// EC2 counts requests, and an instance takes its time.
    fn poll_pause_ms(&self, polls: u32) -> u32 {
        if polls <= 4 { 2_000 } else { 5_000 }
    }
}

fn action(change: Change) -> &'static str {
    match change {
        Change::Off => "StopInstances",
        Change::On => "StartInstances",
        Change::Reset => "RebootInstances",
    }
}

/// An instance never runs again once it is terminated. But an id that somebody wrote down says
/// nothing of the instance that took its place under the same name.
fn terminated(id: &str) -> String {
    format!(
        "instance {id} is terminated and never runs again; is it still this node's? Where the plug is \
         the node's providerID, this reads as off"
    )
}

impl Instance {
    /// What its power reads. The low byte of the code counts (EC2 API, `InstanceState`); a code and a
    /// name that disagree are no state.
    fn power(&self) -> PlugState {
        match (self.code & 0xff, self.name.as_str()) {
            (16, "running") => PlugState::On,
            (80, "stopped") | (48, "terminated") => PlugState::Off,
            (0, "pending") | (32, "shutting-down") | (64, "stopping") => PlugState::Transitioning,
            _ => PlugState::Unknown,
        }
    }
}
