//! A plugin that makes, on request, each attack of the corpus (SAFETY.md §2.1). The request's plug names
//! the attack; `tests/tests/plugins_attacks` states what the host must make of it. Some of its names are
//! honest: those are the attacks' twins.

use std::sync::atomic::{AtomicBool, Ordering};

use bindings::exports::node_remedy::fence::method::Guest;
use bindings::node_remedy::fence::types::{Failure, PlugInfo, PlugsRequest, Request};

use crate::answers::{AttackRequest, AttackResult, failed};

mod alloc;
mod answers;
mod bindings;
mod edges;
mod network;
mod oracles;
mod resources;
mod semantics;

const MANIFEST: &[u8; include_bytes!("../manifest.json").len()] =
    include_bytes!("../manifest.json");

#[used]
#[unsafe(link_section = "node-remedy:manifest")]
static SECTION: [u8; MANIFEST.len()] = *MANIFEST;

struct Attacker;

/// Whether the guest has run before in this very instance.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

impl Guest for Attacker {
    fn run(request: Request) -> AttackResult {
        let ran_before = HAS_RUN.swap(true, Ordering::Relaxed);
        let asked = AttackRequest(&request);
        match request.plug.as_str() {
            "fetch" => network::fetch(asked),
            "login-data" => network::login_data(asked),
            "follow" => network::follow(asked),
            "fetch-again-and-again" => network::fetch_again_and_again(asked),
            "many-headers" => network::many_headers(asked),
            "datagram" => network::datagram(),
            "guess-endpoints" => network::guess_endpoints(),
            "hoard-sockets" => network::hoard_sockets(asked),
            "stream" => network::stream(asked),
            "spin" => resources::spin(u64::MAX),
            "spin-for" => resources::spin(asked.number()),
            "fill-memory" => resources::fill_memory(),
            "recurse" => resources::recurse(asked),
            "re-enter" => resources::re_enter(),
            "eat-memory" => resources::eat_memory(asked),
            "hoard-handles" => resources::hoard_handles(asked),
            "long-log" => resources::long_log(asked),
            "random" => resources::random(asked),
            "random-of-wasi" => resources::random_of_wasi(),
            "sleep" => resources::sleep(),
            "host-calls" => resources::host_calls(asked),
            "log" => resources::log(asked),
            "forge-log" => resources::forge_log(),
            "stdout" => resources::stdout(asked),
            "checkpoint" => resources::checkpoint(asked),
            "off" => semantics::off(),
            "off-then-trap" => semantics::off_then_trap(),
            "claim-off" => semantics::claim_off(),
            "ask-and-claim-off" => semantics::ask_and_claim_off(),
            "read-as-off" => semantics::read_as_off(),
            "off-then-on" => semantics::off_then_on(),
            "status" => semantics::status(),
            "status-of-another" => semantics::status_of_another(asked),
            "fickle" => semantics::fickle(),
            "busy-for-ever" => semantics::busy_for_ever(),
            "have-run-before" => semantics::say(&format!("ran before: {ran_before}")),
            "exfiltrate" => semantics::exfiltrate(),
            "guess-names" => semantics::guess_names(),
            "steal-bytes" => semantics::steal_bytes(asked),
            "look-around" => semantics::look_around(),
            "guess-secret" => semantics::guess_secret(asked),
            "guess-by-checkpoint" => oracles::by_checkpoint(asked),
            "guess-by-echo" => oracles::by_echo(asked),
            "sockets-one-by-one" => edges::sockets_one_by_one(asked),
            "datagrams" => edges::datagrams(asked),
            "long-datagram" => edges::long_datagram(asked),
            "farewell" => edges::farewell(asked),
            "write" => edges::write(asked),
            "write-all" => edges::write_all(asked),
            "key-operations" => edges::key_operations(asked),
            "usm-keys" => edges::usm_keys(asked),
            "credential-data" => edges::credential_data(asked),
            "read-all" => edges::read_all(asked),
            "log-lines" => edges::log_lines(asked),
            "detail" => resources::heard(&"x".repeat(edges::size(asked))),
            "fields" => edges::fields(asked),
            other => Err(failed(&format!("no attack {other}"))),
        }
    }

    fn plugs(request: PlugsRequest) -> Result<Vec<PlugInfo>, Failure> {
        edges::plugs(&request)
    }
}

bindings::export!(Attacker with_types_in bindings);
