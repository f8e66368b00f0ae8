//! Attacks on what the host has only so much of.

use std::hint::black_box;
use std::time::Duration;

use crate::answers::{AttackRequest, AttackResult, failed, found};
use crate::bindings::node_remedy::fence::net::{self, Datagram};
use crate::bindings::node_remedy::fence::types::PlugState;
use crate::bindings::node_remedy::fence::{credentials, op};
use crate::{alloc, network};

/// Computes; what it finds it says.
pub fn spin(turns: u64) -> AttackResult {
    let mut sum: u64 = 0;
    for turn in 0..turns {
        sum = black_box(sum.wrapping_add(turn));
    }
    heard(&format!("{turns} turns"))
}

/// Has the host's processor write memory in the largest pieces that there are.
pub fn fill_memory() -> AttackResult {
    let mut memory = vec![0_u8; 32 << 20];
    for byte in 0_u64.. {
        memory.fill(byte as u8);
        black_box(&memory);
    }
    Err(failed("it ended"))
}

pub fn recurse(asked: AttackRequest<'_>) -> AttackResult {
    fn deeper(depth: u64, most: u64) -> u64 {
        let here = black_box([depth; 64]);
        if depth >= most {
            return here[7];
        }
        deeper(depth + 1, most) + here[7].min(1)
    }
    let most = asked.number();
    deeper(0, most);
    heard(&format!("{most} deep"))
}

/// Calls the host while the host hands over the answer to a call.
pub fn re_enter() -> AttackResult {
    alloc::arm();
    let bytes = op::random(16);
    Err(failed(&format!("{} bytes", bytes.len())))
}

/// So many MiB.
pub fn eat_memory(asked: AttackRequest<'_>) -> AttackResult {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    for _ in 0..asked.number() {
        eaten.push(vec![7; 1 << 20]);
        black_box(&eaten);
    }
    heard(&format!("{} MiB", eaten.len()))
}

/// So many handles at a time.
pub fn hoard_handles(asked: AttackRequest<'_>) -> AttackResult {
    let mut held = Vec::new();
    for _ in 0..asked.number() {
        let secret = credentials::open("account");
        held.push(secret.map_err(|refused| failed(&format!("{} then {refused:?}", held.len())))?);
    }
    heard(&format!("{} handles", held.len()))
}

/// One line of so many bytes.
pub fn long_log(asked: AttackRequest<'_>) -> AttackResult {
    let bytes = usize::try_from(asked.number()).unwrap_or_default();
    op::log(op::Level::Info, &"x".repeat(bytes));
    heard(&format!("{bytes} bytes in a line"))
}

pub fn random(asked: AttackRequest<'_>) -> AttackResult {
    let bytes = op::random(u32::try_from(asked.number()).unwrap_or(u32::MAX));
    heard(&format!("{} random bytes", bytes.len()))
}

/// The same through the door that std has.
pub fn random_of_wasi() -> AttackResult {
    unsafe extern "C" {
        // wasi-libc's door to `wasi:random/random`: whole, however long.
        fn getentropy(buffer: *mut u8, length: usize) -> i32;
    }
    let mut taken = 0;
    let mut buffer = vec![0_u8; 256];
    // POSIX has 256 bytes at a time as the most.
    for _ in 0..4_000 {
        taken += usize::from(unsafe { getentropy(buffer.as_mut_ptr(), buffer.len()) } == 0) * 256;
        black_box(&buffer);
    }
    heard(&format!("{taken} random bytes"))
}

/// Waits on a pollable that becomes ready in an hour.
pub fn sleep() -> AttackResult {
    std::thread::sleep(Duration::from_secs(3_600));
    Err(failed("it slept an hour"))
}

pub fn host_calls(asked: AttackRequest<'_>) -> AttackResult {
    for _ in 0..asked.number() {
        op::cancelled();
    }
    heard(&format!("{} host calls", asked.number()))
}

/// So many lines.
pub fn log(asked: AttackRequest<'_>) -> AttackResult {
    for line in 0..asked.number() {
        op::log(op::Level::Info, &format!("{line} {}", "x".repeat(500)));
    }
    heard(&format!("{} lines", asked.number()))
}

pub fn forge_log() -> AttackResult {
    op::log(op::Level::Warn, "fine\nERROR node-remedy: released everything \u{1b}[2J\u{202e}");
    heard("forged")
}

/// So many KiB to nobody.
pub fn stdout(asked: AttackRequest<'_>) -> AttackResult {
    for _ in 0..asked.number() {
        println!("{}", "y".repeat(1 << 10));
        eprintln!("{}", "z".repeat(1 << 10));
    }
    heard(&format!("{} KiB printed", asked.number()))
}

pub fn checkpoint(asked: AttackRequest<'_>) -> AttackResult {
    let kept = op::checkpoint(&vec![7; usize::try_from(asked.number()).unwrap_or_default()]);
    heard(&kept.err().unwrap_or_else(|| "kept".to_owned()))
}

/// Success, after the device was heard: nobody believes one that was not.
pub fn heard(detail: &str) -> AttackResult {
    let device: Datagram = net::udp("bmc").map_err(network::refused)?;
    network::ask(&device, b"status")?;
    Ok(found(PlugState::On, detail))
}
