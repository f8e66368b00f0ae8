//! A fence method: relays of a board that speaks HTTP, each the feed of one node.
//!
//! `GET /relays/2` answers `{"on": true}`, and `PUT /relays/2` with such a document switches. Replace what
//! speaks to the board by what speaks to your device; the rest can stay.

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::{Api, Body, Manner};
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Fields, Host, Outcome, PlugState, Request, fence_plugin,
};
use serde_json::{Value, json};

/// The fence method. A fresh one is made for each call, so it keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method;

fence_plugin!(Method);

/// How the board is spoken to, and what people are to check where it refuses.
const MANNER: Manner = Manner {
    endpoint: "board",
    device: "the relay board",
    request_ms: 5_000,
    headers: &[],
    unauthenticated: "check user name and password",
    denied: "check what this user may switch",
    missing: "check the address, and that the board has this relay",
};

impl FenceMethod for Method {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let number = request.plug.parse().map_err(|_| {
            let sentence = format!("found plug {:?}, expected the number of a relay", request.plug);
            Failure::new(FailureKind::NoSuchPlug, sentence)
        })?;
        let api = Api::new(host, &MANNER, request.deadline_ms);
        // Reads, calls `begin_effect`, asks once, and reads back: what was asked for is not what is.
        carry_out(request, host, &mut Relay { api, number })
    }
}

/// One relay, for one call.
struct Relay<'a, H> {
    api: Api<'a, H>,
    number: u16,
}

impl<H: Host> Relay<'_, H> {
    fn path(&self) -> String {
        format!("/relays/{}", self.number)
    }
}

impl<H: Host> Machine for Relay<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let answer = self.api.get(&self.path())?;
        // What does not say so clearly is not off.
        let (state, words) = match answer.get("on").and_then(Value::as_bool) {
            Some(true) => (PlugState::On, "the relay is on"),
            Some(false) => (PlugState::Off, "the relay is off"),
            None => (PlugState::Unknown, "the answer does not say what the relay is"),
        };
        Ok(Reading { state, words: words.to_owned(), identity: Fields::new() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        match change {
            Change::Off => Ok("off".to_owned()),
            Change::On => Ok("on".to_owned()),
            Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a relay has no reset")),
        }
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let wanted = json!({ "on": change.leads_to() == PlugState::On });
        self.api.ask("PUT", &self.path(), Body::Json(&wanted)).map(|_| ())
    }
}
