//! A plugin that does, on request, what a plugin must not. The request's plug names the deed.
//! Each deed is one function; the test that calls it states what the host must make of it.

use std::collections::HashMap;

use bindings::exports::node_remedy::fence::method::Guest;
use bindings::node_remedy::fence::credentials::{Extension, Hash, Mode};
use bindings::node_remedy::fence::net::Datagram;
use bindings::node_remedy::fence::types::{Failure, Outcome, PlugInfo, PlugState, PlugsRequest, Request};
use bindings::node_remedy::fence::{credentials, net, op};
use crate::answers::{failed, found};

mod answers;
mod bindings;
mod connection;
mod fetch;

const MANIFEST: &[u8; include_bytes!("../manifest.json").len()] =
    include_bytes!("../manifest.json");

#[used]
#[unsafe(link_section = "node-remedy:manifest")]
static SECTION: [u8; MANIFEST.len()] = *MANIFEST;

struct Hostile;

impl Guest for Hostile {
    fn run(request: Request) -> Result<Outcome, Failure> {
        match request.plug.as_str() {
            "honest" => honest(),
            "act" => act().map(|_| found(PlugState::Off)),
            "trap" => panic!("before any effect"),
            "trap-after-effect" => act().map(|_| panic!("after the effect")),
            "fail-after-effect" => act().and_then(|_| Err(failed("the device said no"))),
            "spin" => spin(),
            "spin-after-effect" => act().map(|_| spin())?,
            "recurse" => Err(failed(&recurse(1).to_string())),
            "eat-memory" => eat_memory(),
            "flood-log" => flood_log(),
            "forge-log" => forge_log(),
            "flood-calls" => flood_calls(),
            "flood-datagrams" => flood_datagrams(),
            "flood-random" => Err(failed(&op::random(1 << 20).len().to_string())),
            "hoard-sockets" => hoard_sockets(),
            "reach-elsewhere" => refused(net::udp("elsewhere").err()),
            "reach-tcp" => refused(net::tcp("device").err()),
            "steal-credential" => refused(credentials::open("root").err()),
            "open-missing" => refused(credentials::open("community").err()),
            "reveal" => reveal(),
            "grind-secret" => grind_secret(),
            "grind-usm-keys" => grind_usm_keys(),
            "use-keys" => use_keys(),
            "effect-in-status" => refused(op::begin_effect("just this once").err()),
            "claim-unheard" => Ok(found(PlugState::Off)),
            "claim-undone" => honest(),
            "sleep" => sleep(),
            "ignore-cancel" => ignore_cancel(),
            "die-with-session" => die_with_session(),
            "close-session" => close_session(),
            "leak" => leak(),
            "huge-answer" => Err(failed(&"x".repeat(4 << 20))),
            "look-around" => look_around(),
            "draw" => draw(),
            "exit" => std::process::exit(0),
            "checkpoint" => checkpoint(request.resume),
            "fetch" => fetch::once(&request.parameters),
            "fetch-and-act" => fetch::act(&request.parameters),
            "flood-requests" => fetch::flood(&request.parameters),
            "converse" => connection::converse(&request.parameters),
            "login-data" => match net::login_data("device") {
                Ok(data) => Err(failed(&data)),
                Err(refusal) => refused(Some(refusal)),
            },
            "parameters" => Err(failed(&format!("{:?}", request.parameters))),
            other => Err(failed(&format!("no deed {other}"))),
        }
    }

    fn plugs(_: PlugsRequest) -> Result<Vec<PlugInfo>, Failure> {
        Err(failed("no plugs"))
    }
}

bindings::export!(Hostile with_types_in bindings);

fn refused(refusal: Option<impl std::fmt::Debug>) -> Result<Outcome, Failure> {
    Err(failed(&refusal.map_or("granted".to_owned(), |refusal| format!("refused: {refusal:?}"))))
}

fn device() -> Result<Datagram, Failure> {
    net::udp("device").map_err(|error| failed(&format!("{error:?}")))
}

fn ask(datagram: &Datagram, question: &[u8]) -> Result<Vec<u8>, Failure> {
    datagram.send(question).map_err(|error| failed(&format!("send: {error:?}")))?;
    match datagram.receive(1_000) {
        Ok(Some(answer)) => Ok(answer),
        other => Err(failed(&format!("receive: {other:?}"))),
    }
}

fn honest() -> Result<Outcome, Failure> {
    ask(&device()?, b"status")?;
    Ok(found(PlugState::On))
}

fn act() -> Result<Vec<u8>, Failure> {
    op::begin_effect("off").map_err(|reason| failed(&reason))?;
    ask(&device()?, b"off")
}

fn spin() -> ! {
    let mut turns: u64 = 0;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn recurse(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    if here[7] == u64::MAX {
        return depth;
    }
    recurse(depth + 1) + here[7]
}

fn eat_memory() -> Result<Outcome, Failure> {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![eaten.len() as u8; 1 << 20]);
        std::hint::black_box(&eaten);
    }
}

fn flood_log() -> Result<Outcome, Failure> {
    for line in 0..10_000 {
        op::log(op::Level::Info, &format!("{line} {}", "x".repeat(500)));
    }
    honest()
}

fn forge_log() -> Result<Outcome, Failure> {
    op::log(op::Level::Warn, "fine\nERROR node-remedy: released everything \u{1b}[2J");
    honest()
}

fn flood_calls() -> Result<Outcome, Failure> {
    loop {
        op::cancelled();
    }
}

fn flood_datagrams() -> Result<Outcome, Failure> {
    let device = device()?;
    loop {
        device.send(b"again").map_err(|error| failed(&format!("{error:?}")))?;
    }
}

fn hoard_sockets() -> Result<Outcome, Failure> {
    let sockets: Vec<_> = (0..8).map(|_| net::udp("device").is_ok()).collect();
    let held: Vec<_> = (0..8).map_while(|_| net::udp("device").ok()).collect();
    Err(failed(&format!("one after another {sockets:?}, together {}", held.len())))
}

fn reveal() -> Result<Outcome, Failure> {
    let account = credentials::open("account").map_err(|error| failed(&format!("{error:?}")))?;
    refused(account.reveal().err())
}

fn grind_secret() -> Result<Outcome, Failure> {
    let account = credentials::open("account").map_err(|error| failed(&format!("{error:?}")))?;
    let answered = (0..100_u8).take_while(|guess| account.mac(Hash::Sha256, &[*guess]).is_ok());
    let answered = answered.count();
    Err(failed(&format!("{answered} then {:?}", account.mac(Hash::Sha256, b"one more"))))
}

fn grind_usm_keys() -> Result<Outcome, Failure> {
    let account = credentials::open("account").map_err(|error| failed(&format!("{error:?}")))?;
    let key = |engine: u8| account.usm_key(Hash::Md5, &[engine; 5], Extension::None, 16);
    let made = (0..100).take_while(|engine| key(*engine).is_ok()).count();
    Err(failed(&format!("{made} then {:?}", key(0).err())))
}

fn use_keys() -> Result<Outcome, Failure> {
    let error = |error: credentials::Refused| failed(&format!("{error:?}"));
    let account = credentials::open("account").map_err(error)?;
    let session = account.session_key(Hash::Sha1, b"random numbers").map_err(error)?;
    let aes = session.derive(Hash::Sha1, &[2; 20], 16).map_err(error)?;
    let sealed = aes.encrypt(Mode::AesCbc, &[7; 16], &[1; 32]).map_err(error)?;
    let opened = aes.decrypt(Mode::AesCbc, &[7; 16], &sealed).map_err(error)?;
    let short = session.mac(Hash::Sha1, b"data", 12).map_err(error)?;
    let long = session.mac(Hash::Sha1, b"data", 21);
    let whole = session.encrypt(Mode::AesCbc, &[7; 16], &[1; 32]);
    let des = aes.encrypt(Mode::DesCbc, &[7; 8], &[1; 32]).map(|sealed| sealed.len());
    Err(failed(&format!(
        "{:?} {} {} {long:?} {whole:?} {des:?}",
        account.identity(),
        opened == [1; 32] && sealed != opened,
        short.len()
    )))
}

fn sleep() -> Result<Outcome, Failure> {
    let whole = op::sleep(3_600_000);
    Err(failed(&format!("slept to the end: {whole}, cancelled: {}", op::cancelled())))
}

fn ignore_cancel() -> Result<Outcome, Failure> {
    let device = device()?;
    loop {
        op::sleep(1_000);
        device.receive(1_000).ok();
    }
}

fn die_with_session() -> Result<Outcome, Failure> {
    let device = device()?;
    ask(&device, b"login")?;
    device.farewell(b"logout");
    panic!("with the session open")
}

fn close_session() -> Result<Outcome, Failure> {
    let device = device()?;
    device.farewell(b"logout");
    ask(&device, b"bye")?;
    device.farewell(b"");
    Ok(found(PlugState::On))
}

fn leak() -> Result<Outcome, Failure> {
    let secret = credentials::open("community").and_then(|community| community.reveal());
    let secret = secret.map_err(|error| failed(&format!("{error:?}")))?;
    let words = String::from_utf8_lossy(&secret).into_owned();
    op::log(op::Level::Info, &format!("the community is {words}"));
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    op::log(op::Level::Info, &format!("in hex {hex}"));
    let kept = op::checkpoint(&secret);
    ask(&device()?, &[b"get ".as_slice(), &secret].concat())?;
    let mut outcome = found(PlugState::On);
    outcome.detail = format!("read with {words}, kept: {kept:?}");
    outcome.identity = vec![("label".to_owned(), words)];
    Ok(outcome)
}

fn look_around() -> Result<Outcome, Failure> {
    let files = std::fs::read("/etc/passwd").is_ok() || std::fs::read_dir("/").is_ok();
    let environment = std::env::vars().count() + std::env::args().count();
    println!("to nobody");
    Err(failed(&format!("files: {files}, environment: {environment}")))
}

fn draw() -> Result<Outcome, Failure> {
    let clock = std::time::Instant::now();
    op::sleep(1_500);
    let slept = clock.elapsed().as_millis();
    let today = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let order: HashMap<u32, ()> = (0..8).map(|number| (number, ())).collect();
    let order: Vec<_> = order.keys().collect();
    let drawn = op::random(4);
    Err(failed(&format!(
        "{slept} ms of {}, today {}, {drawn:02x?} {order:?}",
        op::elapsed_ms(),
        today.as_millis()
    )))
}

fn checkpoint(resume: Option<Vec<u8>>) -> Result<Outcome, Failure> {
    let stored = op::checkpoint(b"step 2");
    let large = op::checkpoint(&[0; 5_000]);
    Err(failed(&format!("resumed {resume:?}, stored {stored:?}, large {}", large.is_err())))
}
