//! The power of whatever answers to HTTP, described by parameters in the place of code: which request
//! reads the state, which switches it, and which words mean on and off.
//!
//! In the order a call runs:
//!
//! * `template`: paths and bodies with places for the plug and the action
//! * `plan`: everything that may be sent, written out before the first of it is, and what the answer
//!   will mean
//! * `web`: requests, and what a refusal means, in words
//! * here: what is asked for, and what is said of what came of it
//!
//! What this deliberately is not: a language. There are no conditions, no second requests and no values
//! carried from one answer to the next; a device that needs those gets a plugin of its own.

mod limits;
mod plan;
mod template;
mod web;

use node_remedy_sdk::{
    Action, Failure, FailureKind, FenceMethod, Fields, Host, Level, Outcome, PlugState, Request,
    fence_plugin,
};

use plan::{Plan, PlannedRequest, Read};
use web::Web;

/// The extra field of a request that binds a change to one machine. An outlet knows none, so nothing is
/// changed on such terms.
pub const EXPECT_SYSTEM_UUID: &str = "expect-system-uuid";

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Webhook;

fence_plugin!(Webhook);

impl FenceMethod for Webhook {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let plan = Plan::of(request)?;
        let web = Web::new(host, &plan, request.deadline_ms);
        match &plan.change {
            None => status(request, &web, &plan),
            Some(change) => switch(request, &web, &plan, change),
        }
    }
}

/// What the state reads, once or until it is what the host waits for.
fn status<H: Host>(request: &Request, web: &Web<'_, H>, plan: &Plan) -> Result<Outcome, Failure> {
    let mut read = plan.words.read(&web.ask(&plan.status)?);
    while request.until.is_some_and(|wanted| wanted != read.state) {
        if !web.has_time_for(limits::PAUSE_MS) {
            break;
        }
        if !web.host().sleep(limits::PAUSE_MS) {
            return Err(Failure::new(FailureKind::Cancelled, "cancelled while polling the state"));
        }
        read = plan.words.read(&web.ask(&plan.status)?);
    }
    // A state that cannot be read is no sound path to a proof.
    if request.action == Action::Monitor && read.state == PlugState::Unknown {
        let check = "check state-pointer, on-words and off-words";
        return Err(Failure::new(FailureKind::Protocol, format!("{}; {check}", read.words)));
    }
    Ok(outcome(read.state, read.words))
}

/// Asks for one change and reads what came of it.
fn switch<H: Host>(
    request: &Request,
    web: &Web<'_, H>,
    plan: &Plan,
    change: &PlannedRequest,
) -> Result<Outcome, Failure> {
    if let Some(expected) = request.extra(EXPECT_SYSTEM_UUID) {
        let found = "the device does not say which machine it is: found none";
        let detail = format!("{found}, expected UUID {expected}");
        return Err(Failure::new(FailureKind::NoSuchPlug, detail));
    }
    let what = format!("{} {}", change.method, change.path);
    web.host().begin_effect(&what).map_err(|reason| {
        Failure::new(FailureKind::Cancelled, format!("the host did not let it begin: {reason}"))
    })?;
    web.ask(change)?;
    let read = match web.ask(&plan.status) {
        Ok(body) => plan.words.read(&body),
        Err(failure) => {
            web.host().log(Level::Warn, &failure.detail);
            let words = "the state could not be read afterwards".to_owned();
            Read { state: PlugState::Unknown, words }
        }
    };
    let wanted = match request.action {
        Action::Off => PlugState::Off,
        Action::On | Action::Reset | Action::Status | Action::Monitor => PlugState::On,
    };
    let (state, still) = match read.state {
        PlugState::Unknown => (PlugState::Unknown, ""),
        state if state == wanted => (state, ""),
        PlugState::On | PlugState::Off | PlugState::Transitioning => {
            (PlugState::Transitioning, " still")
        }
    };
    Ok(outcome(state, format!("accepted; {}{still}", read.words)))
}

fn outcome(state: PlugState, detail: String) -> Outcome {
    Outcome { state, identity: Fields::new(), detail, extra: Fields::new() }
}
