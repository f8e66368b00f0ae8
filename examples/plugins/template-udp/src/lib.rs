//! A fence method: relays of a board that speaks datagrams, each the feed of one node.
//!
//! `1 get 2 CODE` is answered `1 2 on`; `2 off 2 CODE` switches and is answered alike. The first number is the
//! question's own, and CODE its HMAC-SHA-256 with the board's password, in hexadecimal. Replace what speaks to
//! the board by what speaks to your device; the rest can stay.

use std::cell::Cell;
use std::fmt::Write as _;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::{
    Datagram, Failure, FailureKind, FenceMethod, Fields, Hash, Host, Outcome, PlugState, Request,
    Secret, fence_plugin,
};

/// The fence method. A fresh one is made for each call, so it keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method;

fence_plugin!(Method);

/// How long one answer is waited for.
const ANSWER_MS: u32 = 1_000;
/// How often a question is sent: datagrams get lost.
const TRIES: u32 = 4;

impl FenceMethod for Method {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let number = request.plug.parse().map_err(|_| {
            let sentence = format!("found plug {:?}, expected the number of a relay", request.plug);
            Failure::new(FailureKind::NoSuchPlug, sentence)
        })?;
        let board = host.udp("board").map_err(|error| error.into_failure("open a socket"))?;
        // A handle: the bytes of the password stay with the host.
        let password = host.open("account").map_err(|refused| {
            Failure::new(FailureKind::BadParameters, format!("failed to use account: {refused}"))
        })?;
        let mut relay = Relay { board, password, number, asked: Cell::new(0) };
        // Reads, calls `begin_effect`, asks once, and reads back: what was asked for is not what is.
        carry_out(request, host, &mut relay)
    }
}

/// One relay, for one call.
struct Relay<D, S> {
    board: D,
    password: S,
    number: u16,
    /// Questions so far.
    asked: Cell<u32>,
}

impl<D: Datagram, S: Secret> Relay<D, S> {
    /// Asks until something answers that very question.
    fn question(&self, verb: &str) -> Result<PlugState, Failure> {
        let id = self.asked.get() + 1;
        self.asked.set(id);
        let question = format!("{id} {verb} {}", self.number);
        let code = self.password.mac(Hash::Sha256, question.as_bytes()).map_err(|refused| {
            Failure::new(FailureKind::Denied, format!("failed to sign the question: {refused}"))
        })?;
        let mut datagram = format!("{question} ");
        for byte in code {
            // Writing to a String does not fail.
            let _ = write!(datagram, "{byte:02x}");
        }
        let failed = |error: node_remedy_sdk::NetError| error.into_failure("ask the board");
        for _ in 0..TRIES {
            self.board.send(datagram.as_bytes()).map_err(failed)?;
            while let Some(answer) = self.board.receive(ANSWER_MS).map_err(failed)? {
                // What answers another question came late, or from somebody else.
                if let Some(state) = self.read_answer(id, &answer) {
                    return Ok(state);
                }
            }
        }
        let sentence = "the board does not answer; check address and password";
        Err(Failure::new(FailureKind::Unreachable, sentence).retryable())
    }

    fn read_answer(&self, id: u32, answer: &[u8]) -> Option<PlugState> {
        let rest =
            std::str::from_utf8(answer).ok()?.strip_prefix(&format!("{id} {} ", self.number))?;
        Some(match rest {
            "on" => PlugState::On,
            "off" => PlugState::Off,
            // What does not say so clearly is not off.
            _ => PlugState::Unknown,
        })
    }
}

impl<D: Datagram, S: Secret> Machine for Relay<D, S> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let state = self.question("get")?;
        let words = format!("the relay is {}", state.word());
        Ok(Reading { state, words, identity: Fields::new() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        match change {
            Change::Off => Ok("off".to_owned()),
            Change::On => Ok("on".to_owned()),
            Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a relay has no reset")),
        }
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let word = self.word(change)?;
        self.question(&word).map(|_| ())
    }
}
