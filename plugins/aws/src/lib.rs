//! The power of an instance of Amazon EC2, by the EC2 query API (version 2016-11-15).
//!
//! In the order a call runs:
//!
//! * `plug`: which instance is meant, and whether it can be in this region
//! * `query`: how Amazon's query APIs are spoken to, what their answers and refusals say
//! * `ec2`: the instance; `group`: its autoscaling group, where it has one
//! * here: what is asked for, and what is said of what came of it
//!
//! The host signs each request; the secret key stays with it. What was accepted is not yet so: EC2
//! answers from several places that agree late, and an instance takes a minute to stop. The outcome is
//! what was read afterwards.
//!
//! A group of EC2 Auto Scaling ends and replaces an instance of its own that stops, and what was on its
//! local disks is lost. So such an instance is taken out of service first and put back afterwards, unless
//! `allow-replace` says that it may be lost. In between it reads as changing while it runs: whoever
//! died half-way is carried on by the next `off` or `on`.
//!
//! With `off: terminate` an off ends the instance for good, as whoever removes a machine from a cluster
//! wants it. That is asked only where the Node itself names the instance.
//!
//! What this deliberately is not: hibernating, detaching volumes, or finding an instance by its name.

mod ec2;
mod group;
mod plug;
mod query;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::Api;
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Host, Outcome, PlugState, Request, TERMINATED, fence_plugin,
};

use ec2::Instance;
use group::{Member, Place};
use plug::Plug;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aws;

fence_plugin!(Aws);

impl FenceMethod for Aws {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let plug = Plug::parse(&request.plug, request.parameter("region").unwrap_or_default())?;
        let may_be_replaced = request.parameter("allow-replace") == Some("true");
        let terminates = request.parameter("off") == Some("terminate");
        if terminates && !plug.is_of_the_node() {
            return Err(Failure::new(FailureKind::BadParameters, not_named(&request.plug)));
        }
        let asks_group = !may_be_replaced && !terminates;
        let mut machine = Ec2 {
            api: &ec2::api(host, request.deadline_ms),
            groups: Some(group::api(host, request.deadline_ms)).filter(|_| asks_group),
            plug,
            terminates,
            may_be_replaced,
            waits_for_os: request.parameter("skip-os-shutdown") == Some("false"),
            group: None,
            member: None,
            is_terminated: false,
            hibernates: false,
        };
        let mut outcome = carry_out(request, host, &mut machine)?;
        if outcome.state == PlugState::Off && machine.is_terminated {
            outcome.extra.push((TERMINATED.to_owned(), "true".to_owned()));
        }
        Ok(outcome)
    }
}

/// An instance.
struct Ec2<'a, H> {
    api: &'a Api<'a, H>,
    /// None where it may be replaced, or is ended: then its group is not asked.
    groups: Option<Api<'a, H>>,
    plug: Plug,
    /// An off ends it for good.
    terminates: bool,
    may_be_replaced: bool,
    waits_for_os: bool,
    /// The group it is tagged with, as it was read last.
    group: Option<String>,
    /// What its group said of it since.
    member: Option<Member>,
    is_terminated: bool,
    /// Whether it reads stopped and may have kept its memory.
    hibernates: bool,
}

impl<H: Host> Ec2<'_, H> {
    fn action(&self, change: Change) -> &'static str {
        match change {
            Change::Off if self.terminates => "TerminateInstances",
            Change::Off => "StopInstances",
            Change::On => "StartInstances",
            Change::Reset => "RebootInstances",
        }
    }

    /// What its group makes of it, where it has one that matters.
    fn look_at_group(&mut self) -> Result<(), Failure> {
        if let (Some(groups), Some(tagged), None) = (&self.groups, &self.group, &self.member) {
            self.member = Some(group::describe(groups, &self.plug.id, tagged)?);
        }
        Ok(())
    }

    /// Puts an instance that was started back into service, once it runs. One that takes longer than
    /// the call is put back by the next `on`.
    fn come_back(&mut self) -> Result<(), Failure> {
        if self.groups.is_none() || !self.comes_up()? {
            return Ok(());
        }
        self.look_at_group()?;
        match (&self.groups, &self.member) {
            (Some(groups), Some(member)) if member.is_out() => group::rejoin(groups, member),
            (_, _) => Ok(()),
        }
    }

    /// Whether it runs, once it had time to come up.
    fn comes_up(&self) -> Result<bool, Failure> {
        let mut polls = 1;
        loop {
            let instance = ec2::describe(self.api, &self.plug.id)?;
            match instance.power() {
                PlugState::On => return Ok(true),
                PlugState::Off if instance.is_terminated() => return Ok(false),
                // It was asked to start, and that is not told everywhere at once.
                PlugState::Off | PlugState::Transitioning | PlugState::Unknown => {}
            }
            let pause_ms = self.poll_pause_ms(polls);
            if !self.api.has_time_for(pause_ms) || !self.api.host().sleep(pause_ms) {
                return Ok(false);
            }
            polls += 1;
        }
    }
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
        self.group.clone_from(&instance.group);
        (self.member, self.is_terminated) = (None, instance.is_terminated());
        self.hibernates = instance.hibernates();
        let (mut state, mut words) = (instance.power(), format!("state is {}", instance.words()));
        if state == PlugState::On {
            // Off is off, whatever a group says.
            self.look_at_group()?;
            if let Some(member) = self.member.as_ref().filter(|one| one.place != Place::InService) {
                words = format!("{words}, {}", member.words());
                if member.is_out() {
                    state = PlugState::Transitioning;
                }
            }
        }
        Ok(Reading { state, words, identity: instance.identity() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        let own = self.action(change);
        if change == Change::On && self.hibernates {
            let sentence = "the instance may hibernate, and a start would let its old pods go on: start it by \
                            hand if they run nowhere else, or terminate it";
            return Err(Failure::new(FailureKind::Device, sentence));
        }
        if change == Change::Reset || self.is_terminated {
            return Ok(own.to_owned());
        }
        if let (Change::Off, true, false, Some(group)) =
            (change, self.terminates, self.may_be_replaced, &self.group)
        {
            let sentence = format!(
                "the instance is of autoscaling group {group}, which starts another in its place; if \
                 that is meant, set allow-replace to true"
            );
            return Err(Failure::new(FailureKind::BadParameters, sentence));
        }
        match (change, self.look_at_group()) {
            (Change::Off | Change::Reset, looked) => looked?,
            // A machine is better on than off, whatever can be asked of its group; that is asked again
            // when it runs.
            (Change::On, _) => {}
        }
        let Some(member) = &self.member else { return Ok(own.to_owned()) };
        match (change, member.place) {
            (Change::Off, Place::InService | Place::EnteringStandby) => {
                Ok(format!("EnterStandby and {own}"))
            }
            (Change::Off, Place::Pending) => {
                let sentence = format!("it is not in service yet: {}", member.words());
                Err(Failure { retryable: true, ..Failure::new(FailureKind::Busy, sentence) })
            }
            (Change::On, Place::Standby | Place::EnteringStandby) => {
                Ok(format!("{own} and ExitStandby"))
            }
            (Change::Off, Place::Standby | Place::Terminating | Place::Aside)
            | (Change::On, Place::InService | Place::Pending | Place::Terminating | Place::Aside)
            | (Change::Reset, _) => Ok(own.to_owned()),
        }
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let how = match change {
            Change::Off if self.terminates && self.waits_for_os => "",
            Change::Off if self.terminates => "&SkipOsShutdown=true",
            Change::Off if self.waits_for_os => "&Force=true",
            Change::Off => "&Force=true&SkipOsShutdown=true",
            Change::On | Change::Reset => "",
        };
        if let (Change::Off, Some(groups), Some(member)) = (change, &self.groups, &self.member)
            && matches!(member.place, Place::InService | Place::EnteringStandby)
        {
            group::leave(groups, member)?;
        }
        ec2::ask(self.api, self.action(change), &self.plug.id, how)?;
        let may_be_out = self.member.as_ref().is_none_or(Member::is_out);
        if change == Change::On && self.group.is_some() && may_be_out {
            self.come_back()?;
        }
        Ok(())
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

/// Whoever wrote an id down may mean another instance by now; what is ended does not come back.
fn not_named(plug: &str) -> String {
    format!(
        "found plug {plug:?} with off: terminate, expected the node's providerID: an instance is ended \
         only where its Node names it"
    )
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
            (80, "stopped") if self.hibernates() => PlugState::Unknown,
            (80, "stopped") | (48, "terminated") => PlugState::Off,
            (0, "pending") | (32, "shutting-down") | (64, "stopping") => PlugState::Transitioning,
            _ => PlugState::Unknown,
        }
    }
}
