//! What is on the wire: forms in, XML out, in the shapes that the EC2 API reference shows.

use super::{Config, State};
use crate::ec2::model::Action;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";
/// Nobody asks for one by its number.
const REQUEST_ID: &str = "59dbff89-35bd-4eac-99ed-be587ed081ee";

/// The value of a field of a form. What is asked for here needs no escapes.
pub(super) fn field<'a>(form: &'a str, name: &str) -> Option<&'a str> {
    form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// The answer to a read. What hibernates is told by the reason alone (EC2 API, `StateReason`).
pub(super) fn described(config: &Config, state: State, hibernates: bool) -> Vec<u8> {
    let Config { id, zone, group, .. } = config;
    let group = group.as_ref().map_or(String::new(), |group| {
        format!("<item><key>aws:autoscaling:groupName</key><value>{group}</value></item>")
    });
    let reason = match (state, hibernates) {
        (State::Stopped, true) => Some("Client.UserInitiatedHibernate"),
        (State::Stopped | State::Stopping | State::Terminated | State::ShuttingDown, _) => {
            Some("Client.UserInitiatedShutdown")
        }
        (State::Pending | State::Running, _) => None,
    };
    let reason = reason
        .map_or(String::new(), |code| format!("<stateReason><code>{code}</code></stateReason>"));
    response(
        Action::Describe,
        &format!(
            "<reservationSet><item><reservationId>r-0a1b2c3d4e5f60718</reservationId>\
             <ownerId>123456789012</ownerId><groupSet/><instancesSet><item>\
             <instanceId>{id}</instanceId>{}{reason}<placement><availabilityZone>{zone}</availabilityZone>\
             </placement><tagSet>{group}</tagSet><hibernationOptions><configured>{hibernates}\
             </configured></hibernationOptions></item></instancesSet></item></reservationSet>",
            worded("instanceState", state),
        ),
    )
}

/// The answer to a change that was accepted.
pub(super) fn accepted(action: Action, id: &str, before: State, now: State) -> Vec<u8> {
    let inside = match action {
        Action::Reboot => "<return>true</return>".to_owned(),
        Action::Describe | Action::Stop | Action::Start | Action::Terminate => format!(
            "<instancesSet><item><instanceId>{id}</instanceId>{}{}</item></instancesSet>",
            worded("currentState", now),
            worded("previousState", before),
        ),
    };
    response(action, &inside)
}

/// The answer to what is refused.
pub(super) fn refusal(code: &str, says: &str) -> Vec<u8> {
    let body = format!(
        "{HEAD}<Response><Errors><Error><Code>{code}</Code><Message>{says}</Message></Error>\
         </Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
    );
    body.into_bytes()
}

fn worded(element: &str, state: State) -> String {
    let (code, name) = (state.code(), state.name());
    format!("<{element}><code>{code}</code><name>{name}</name></{element}>")
}

fn response(action: Action, inside: &str) -> Vec<u8> {
    let name = action.name();
    let body = format!(
        "{HEAD}<{name}Response xmlns=\"{NAMESPACE}\"><requestId>{REQUEST_ID}</requestId>{inside}\
         </{name}Response>"
    );
    body.into_bytes()
}
