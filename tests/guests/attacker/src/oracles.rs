//! Attacks on secrets by how the host behaves: a guess is put where the host looks for secrets, and what it answers,
//! or when, is compared with what it makes of a wrong one.

use crate::answers::{AttackRequest, AttackResult, failed};
use crate::bindings::node_remedy::fence::net::{self, Part};
use crate::bindings::node_remedy::fence::{credentials, op};
use crate::{network, resources};

/// Slower than any answer of a device on this machine, faster than the host gives up waiting for an echo's end.
const WAITED_MS: u64 = 50;

/// A wrong guess and the right one, each so many times; the right one stands in the parameter with its bits turned
/// over.
pub fn by_checkpoint(asked: AttackRequest<'_>) -> AttackResult {
    let right = turned_back(asked.get("sought"));
    let mut wrong = right.clone();
    wrong.reverse();
    let mut told = 0;
    for _ in 0..asked.number() {
        told += u64::from(op::checkpoint(&wrong) != op::checkpoint(&right));
    }
    resources::heard(&format!("{told} of {} guesses told apart", asked.number()))
}

/// Has the host write the secret to a device that echoes, and then guesses how it begins: one guess after the other,
/// between commas. Told apart they are by what comes back, and by when.
pub fn by_echo(asked: AttackRequest<'_>) -> AttackResult {
    let account =
        credentials::open("account").map_err(|refused| failed(&format!("{refused:?}")))?;
    let line = net::tcp("line").map_err(network::refused)?;
    line.write(&[Part::Secret(&account), Part::Bytes(b"\n".to_vec())]).map_err(network::refused)?;
    let mut come = Vec::new();
    while !come.ends_with(b"\n") {
        come.extend(line.read(1_000, 5_000).map_err(network::refused)?);
    }
    let mut answers = Vec::new();
    for guess in asked.get("body").split(',') {
        let begun = op::elapsed_ms();
        line.write(&[Part::Bytes(guess.as_bytes().to_vec())]).map_err(network::refused)?;
        let mut echoed = Vec::new();
        while echoed.len() < guess.len() {
            echoed.extend(line.read(1_000, 5_000).map_err(network::refused)?);
        }
        let has_waited = op::elapsed_ms() - begun >= WAITED_MS;
        answers.push((has_waited, echoed == guess.as_bytes()));
    }
    answers.dedup();
    let hidden = come.iter().all(|byte| matches!(byte, b'*' | b'\n'));
    resources::heard(&format!("hidden {hidden}, {} kinds of answers", answers.len()))
}

fn turned_back(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap_or_default() ^ 0xff).collect()
}
