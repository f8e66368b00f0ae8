//! A fence method from outside: relays with the firmware Tasmota, each the only feed of a node.
//!
//! `GET /cm?cmnd=Power2` reads relay 2 and `GET /cm?cmnd=Power2%20Off` switches it; both answer with its
//! state, `{"POWER2": "OFF"}` (Tasmota's documentation, "Commands", with web requests). The host adds user
//! name and password.

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::{Api, Manner};
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Fields, Host, Outcome, PlugState, Request, fence_plugin,
};
use serde_json::Value;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tasmota;

fence_plugin!(Tasmota);

const MANNER: Manner = Manner {
    endpoint: "relay",
    device: "the relay board",
    request_ms: 5_000,
    headers: &[],
    unauthenticated: "check user name and password",
    denied: "check user name and password",
    missing: "check that the address is that of a relay board with Tasmota",
};

/// Boards have no more relays.
const RELAYS_MAX: u8 = 28;

impl FenceMethod for Tasmota {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let number = request.plug.parse().ok().filter(|number| (1..=RELAYS_MAX).contains(number));
        let number = number.ok_or_else(|| {
            let sentence =
                format!("found plug {:?}, expected a relay, 1 to {RELAYS_MAX}", request.plug);
            Failure::new(FailureKind::NoSuchPlug, sentence)
        })?;
        let api = Api::new(host, &MANNER, request.deadline_ms);
        carry_out(request, host, &mut Relay { api, number })
    }
}

struct Relay<'a, H> {
    api: Api<'a, H>,
    number: u8,
}

impl<H: Host> Relay<'_, H> {
    /// Sends a command; the answer to every command about power is the state.
    fn command(&self, word: &str) -> Result<Value, Failure> {
        self.api.get(&format!("/cm?cmnd=Power{}{word}", self.number))
    }
}

impl<H: Host> Machine for Relay<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let answer = self.command("")?;
        // A board with one relay calls it POWER.
        let numbered = answer.get(format!("POWER{}", self.number));
        let said = numbered.or_else(|| answer.get("POWER").filter(|_| self.number == 1));
        let (state, words) = match said.and_then(Value::as_str) {
            Some("ON") => (PlugState::On, "relay is ON"),
            Some("OFF") => (PlugState::Off, "relay is OFF"),
            Some(_) | None => (PlugState::Unknown, "the answer does not say what the relay is"),
        };
        Ok(Reading { state, words: words.to_owned(), identity: Fields::new() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        match change {
            Change::Off => Ok("Off".to_owned()),
            Change::On => Ok("On".to_owned()),
            Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a relay has no reset")),
        }
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let word = self.word(change)?;
        self.command(&format!("%20{word}")).map(|_| ())
    }
}
