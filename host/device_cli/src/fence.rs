//! `fence`: one method by hand, in its sandbox, granted exactly the address given.
//!
//! An `off` is believed only when a later read, in a fresh instance, says off. A command
//! whose end is unknown is never sent again: it is read. Only an `on` that never began is.

pub mod agent;
pub mod held;
pub mod outcome;
pub mod session;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use node_remedy_sandbox::{Action, Failure, PlugInfo, PlugState};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::{DeviceArgs, FenceAction, FenceArgs, Output};
use crate::fence::outcome::{Outcome, Sent, word};
use crate::fence::session::DeviceSession;
use crate::output::{complain, outln};

/// Status says off.
const EXIT_OFF: u8 = 2;
/// What the on of a reboot has at least, whatever the off has used up: a machine must not stay
/// off for want of seconds.
const ON_MIN: Duration = Duration::from_secs(10);
/// Between tries of an on that never began.
const ON_EVERY: Duration = Duration::from_secs(1);

/// What a person asks of a plugin.
pub(super) struct FenceRequest<'a> {
    /// The command before the action: `fence ipmi`.
    pub(super) command: &'a str,
    pub(super) action: FenceAction,
    pub(super) device: &'a DeviceArgs,
}

/// Carries one action out with a built-in plugin.
pub async fn fence(args: &FenceArgs) -> anyhow::Result<ExitCode> {
    let FenceArgs { plugin: name, action, device, output } = args;
    let (executor, plugin) = crate::fence::session::load(name)?;
    let mut hand = DeviceSession::set_up(executor, plugin, device).await?;
    let command = &format!("fence {name}");
    let asked = FenceRequest { command, action: *action, device };
    let done = act(&mut hand, &asked).await;
    match output {
        Output::Json => outln!("{}", done.document(*action)),
        Output::Text => done.print(name)?,
    }
    Ok(ExitCode::from(done.code(*action)))
}

/// What a person's command came to.
pub(super) enum Done {
    Listed(Result<Vec<PlugInfo>, Failure>),
    CallRecord(Result<Outcome, Failure>),
}

/// Carries one action out.
pub(super) async fn act(hand: &mut DeviceSession, args: &FenceRequest<'_>) -> Done {
    Done::CallRecord(match args.action {
        FenceAction::Status => hand.read(None).await,
        FenceAction::Monitor => hand.once(Action::Monitor).await,
        FenceAction::List => return Done::Listed(hand.plugs().await),
        FenceAction::Off => hand.switch(Action::Off, PlugState::Off).await.map(Sent::outcome),
        FenceAction::On => hand.switch(Action::On, PlugState::On).await.map(Sent::outcome),
        FenceAction::Reset => reset(hand, args).await,
        FenceAction::Reboot => reboot(hand, args).await,
    })
}

/// A machine that is off is not reset: it would stay off, or come on though nobody said `on`.
async fn reset(hand: &mut DeviceSession, args: &FenceRequest<'_>) -> Result<Outcome, Failure> {
    match hand.read(None).await {
        Ok(read) if read.state == PlugState::Off => Ok(Outcome {
            detail: "nothing was sent: a machine that is off cannot be reset".to_owned(),
            next: Some(format!("to switch it on, run: {}", command(args, "on"))),
            ..read
        }),
        // Where nobody knows, the device decides.
        Ok(_) | Err(_) => hand.switch(Action::Reset, PlugState::On).await.map(Sent::outcome),
    }
}

/// Once an off was sent, an on is, unless the machine reads on all the same.
async fn reboot(hand: &mut DeviceSession, args: &FenceRequest<'_>) -> Result<Outcome, Failure> {
    let command = command(args, "on");
    if let Err(error) = crate::fence::held::hold_interrupts(&command) {
        complain(format_args!("node-remedy: {error:#}; an interrupt may leave the machine off"));
    }
    let off = hand.switch(Action::Off, PlugState::Off).await?;
    if off.reads() == Some(PlugState::On) {
        let next =
            format!("the off may come yet: look at the machine; if it goes off, run: {command}");
        return Ok(Outcome { next: Some(next), ..off.outcome() });
    }
    let was_off = off.is_seen();
    let time = ON_MIN.max(Duration::from_secs(u64::from(args.device.timeout)));
    hand.begin_anew(time);
    let end = Instant::now() + time;
    let on = loop {
        match hand.switch(Action::On, PlugState::On).await {
            Err(_) if Instant::now() + ON_EVERY < end => tokio::time::sleep(ON_EVERY).await,
            on => break on.map(Sent::outcome),
        }
    };
    Ok(after_reboot(was_off, off.outcome(), on, &command))
}

/// What the two halves of a reboot came to, where the first of them was sent.
fn after_reboot(
    was_off: bool,
    off: Outcome,
    on: Result<Outcome, Failure>,
    command: &str,
) -> Outcome {
    let done = if was_off { "switched off" } else { "told to go off" };
    let left =
        format!("the machine was {done} and NOT switched on again: look at it, and run: {command}");
    match on {
        Ok(on) if on.confirmed && was_off => on,
        // It is on, and nobody saw it off.
        Ok(on) if on.confirmed => {
            Outcome { confirmed: false, detail: off.detail, next: off.next, ..on }
        }
        Ok(on) => Outcome { next: Some(left), ..on },
        Err(failure) => Outcome {
            detail: format!("the on was not sent: {}", failure.detail),
            next: Some(left),
            ..off
        },
    }
}

/// The same command with another action.
fn command(args: &FenceRequest<'_>, action: &str) -> String {
    let FenceRequest { command, device, .. } = args;
    let mut words = vec![format!("node-remedy {command} {action}")];
    let path = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
    let (file, ca) = (path(&device.password_file), path(&device.tls.tls_ca));
    let plug = Some(&device.plug).filter(|plug| !plug.is_empty());
    let options = [
        ("--address", device.address.as_ref()),
        ("--plug", plug),
        ("--username", device.username.as_ref()),
        ("--password-file", file.as_ref()),
        ("--tls-ca", ca.as_ref()),
        ("--tls-pin", device.tls.tls_pin.as_ref()),
    ];
    let credentials = device.credential.iter().map(|pair| ("--credential", Some(pair)));
    let set = device.set.iter().map(|pair| ("--set", Some(pair)));
    for (option, value) in options.into_iter().chain(credentials).chain(set) {
        let Some(value) = value else { continue };
        words.push(format!("{option} '{}'", value.replace('\'', "'\\''")));
    }
    if device.tls.tls_insecure {
        words.push("--tls-insecure".to_owned());
    }
    words.join(" ")
}

impl Done {
    /// How the command ends.
    pub(super) fn code(&self, action: FenceAction) -> u8 {
        let outcome = match self {
            Self::Listed(Err(_)) | Self::CallRecord(Err(_)) => return 1,
            Self::Listed(Ok(_)) => return 0,
            Self::CallRecord(Ok(outcome)) => outcome,
        };
        match (action, outcome.state) {
            (FenceAction::Status, PlugState::On) => 0,
            (FenceAction::Status, PlugState::Off) => EXIT_OFF,
            (FenceAction::Status, PlugState::Transitioning | PlugState::Unknown) => 1,
            (FenceAction::Monitor | FenceAction::List, _) => 0,
            (FenceAction::Off | FenceAction::On | FenceAction::Reset | FenceAction::Reboot, _) => {
                u8::from(!outcome.confirmed)
            }
        }
    }

    /// All of it, for programs.
    pub(super) fn document(&self, action: FenceAction) -> Value {
        let code = self.code(action);
        match self {
            Self::Listed(Ok(plugs)) => {
                let plugs = plugs.iter().map(|one| {
                    let identity: BTreeMap<_, _> = one.identity.iter().cloned().collect();
                    json!({
                        "plug": one.plug, "name": one.name, "state": word(one.state),
                        "identity": identity,
                    })
                });
                json!({"plugs": plugs.collect::<Vec<_>>(), "exitCode": code})
            }
            Self::CallRecord(Ok(outcome)) => {
                let identity: BTreeMap<_, _> = outcome.identity.iter().cloned().collect();
                json!({
                    "state": word(outcome.state), "confirmed": outcome.confirmed,
                    "identity": identity, "detail": outcome.detail, "next": outcome.next,
                    "exitCode": code,
                })
            }
            Self::Listed(Err(failure)) | Self::CallRecord(Err(failure)) => {
                let kind = format!("{:?}", failure.kind);
                json!({"failure": kind, "detail": failure.detail, "exitCode": code})
            }
        }
    }

    /// The same for people; `name` is what the plugin goes by.
    pub(super) fn print(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Self::Listed(Ok(plugs)) => {
                for one in plugs {
                    outln!("{:<20} {:<14} {}", one.plug, word(one.state), one.name);
                }
            }
            Self::CallRecord(Ok(outcome)) => {
                outln!("{}", word(outcome.state));
                for (name, value) in &outcome.identity {
                    outln!("  {name}: {value}");
                }
                if !outcome.detail.is_empty() {
                    outln!("  {}", outcome.detail);
                }
                if let Some(next) = &outcome.next {
                    outln!("  {next}");
                }
            }
            Self::Listed(Err(failure)) | Self::CallRecord(Err(failure)) => {
                complain(format_args!("node-remedy: {name} failed: {}", failure.detail));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(action: Action, reads: PlugState) -> Outcome {
        let read = Outcome {
            state: reads,
            identity: Vec::new(),
            detail: String::new(),
            confirmed: false,
            next: None,
        };
        let wanted = if action == Action::Off { PlugState::Off } else { PlugState::On };
        Sent { action, wanted, refusal: None, last: Some(Ok(read)) }.outcome()
    }

    #[test]
    fn a_reboot_says_plainly_where_it_left_the_machine_off() {
        let next = |was_off: bool, off: PlugState, on: PlugState| {
            let off = sent(Action::Off, off);
            let told = after_reboot(was_off, off, Ok(sent(Action::On, on)), "do it");
            (told.confirmed, told.next.unwrap_or_default())
        };
        assert_eq!(next(true, PlugState::Off, PlugState::On), (true, String::new()));
        let (confirmed, said) = next(true, PlugState::Off, PlugState::Off);
        assert!(
            !confirmed && said.contains("was switched off and NOT switched on again"),
            "{said}"
        );
        assert!(said.ends_with("run: do it"), "{said}");
        let (confirmed, said) = next(false, PlugState::Unknown, PlugState::Unknown);
        assert!(!confirmed && said.contains("was told to go off and NOT"), "{said}");
        let (confirmed, said) = next(false, PlugState::Unknown, PlugState::On);
        assert!(!confirmed && said.contains("not confirmed by a later read"), "{said}");
    }
}
