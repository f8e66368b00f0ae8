//! A watcher that does what the datagram names, also what a watcher must not.

use exports::node_remedy::fence::watcher::{Guest, Verdict};
use node_remedy::fence::op;

wit_bindgen::generate!({ path: "../../../../../wit", world: "datagram-watcher", generate_all });

const MANIFEST: &[u8; include_bytes!("../manifest.json").len()] =
    include_bytes!("../manifest.json");

#[used]
#[unsafe(link_section = "node-remedy:manifest")]
static SECTION: [u8; MANIFEST.len()] = *MANIFEST;

struct Watcher;

impl Guest for Watcher {
    fn on_datagram(peer: String, data: Vec<u8>, state: Vec<u8>) -> (Verdict, Vec<u8>) {
        let seen = String::from_utf8_lossy(&state).into_owned();
        let told = |name: &str, value: String| Verdict::Sighting(vec![(name.into(), value)]);
        match data.as_slice() {
            b"who" => (told("peer", peer), state),
            b"count" => (told("before", seen.clone()), format!("{seen}+").into_bytes()),
            b"end" => (Verdict::Finished(vec![]), vec![]),
            b"nothing" => (Verdict::Ignore, state),
            b"trap" => panic!("as it was told"),
            b"spin" => loop {
                std::hint::black_box(&seen);
            },
            b"sleep" => (told("slept", op::sleep(60_000).to_string()), state),
            nap if nap.starts_with(b"nap ") => {
                let ms = str::from_utf8(&nap[4..]).ok().and_then(|ms| ms.trim().parse().ok());
                (told("slept", op::sleep(ms.unwrap_or_default()).to_string()), state)
            }
            b"hoard" => (Verdict::Ignore, vec![0; 5_000]),
            b"act" => (told("began", op::begin_effect("just once").is_ok().to_string()), state),
            b"forge" => (told("word", "fine\nERROR \u{1b}[2J".into()), state),
            b"many" => (Verdict::Sighting(vec![("a".into(), "b".into()); 1_000]), state),
            _ => (Verdict::Ignore, vec![]),
        }
    }
}

export!(Watcher);
