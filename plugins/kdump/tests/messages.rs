//! The kdump watcher, natively: which bytes are a message, and what is kept between two.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use node_remedy_plugin_kdump::Kdump;
use node_remedy_sdk::testing::faults::FaultTable;
use node_remedy_sdk::{DatagramWatcher, Sight};

/// As `fence_kdump_send` of Debian 12 was seen to send it.
const LITTLE: [u8; 8] = [0x40, 0x2a, 0x30, 0x1b, 1, 0, 0, 0];
const BIG: [u8; 8] = [0x1b, 0x30, 0x2a, 0x40, 0, 0, 0, 1];

fn look(data: &[u8], state: &[u8]) -> (Sight, Vec<u8>) {
    Kdump.on_datagram("192.0.2.7", data, state)
}

#[test]
fn the_manifest_names_this_very_version() {
    let manifest: serde_json::Value = serde_json::from_str(Kdump::MANIFEST).unwrap();
    assert_eq!((&manifest["name"], &manifest["kind"]), (&"kdump".into(), &"watch".into()));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_message_is_one_in_either_byte_order() {
    for (data, order) in [(LITTLE, "little-endian"), (BIG, "big-endian")] {
        let (first, state) = look(&data, b"");
        let fields = |count: &str| {
            let pairs = [("dump", "in-progress"), ("messages", count), ("byte-order", order)];
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
        };
        assert_eq!(first, Sight::Sighting(fields("1")));
        let (second, state) = look(&data, &state);
        assert_eq!(second, Sight::Sighting(fields("2")));
        assert_eq!(state, [0, 0, 0, 2]);
    }
}

#[test]
fn whatever_else_comes_is_ignored_and_forgotten() {
    let state = [0, 0, 0, 7];
    let versions = [[0x40, 0x2a, 0x30, 0x1b, 2, 0, 0, 0], [0x40, 0x2a, 0x30, 0x1b, 0, 0, 0, 1]];
    let mixed = [0x1b, 0x30, 0x2a, 0x40, 1, 0, 0, 0];
    let mut others: Vec<Vec<u8>> =
        vec![b"".to_vec(), b"hello, w".to_vec(), vec![0; 8], vec![0xff; 8]];
    others.extend(versions.map(|data| data.to_vec()));
    others.push(mixed.to_vec());
    others.extend((0..8).map(|length| LITTLE[..length].to_vec()));
    others.push([LITTLE.as_slice(), &[0]].concat());
    for at in 0..8 {
        for bit in 0..8 {
            let mut wrong = LITTLE;
            wrong[at] ^= 1 << bit;
            others.push(wrong.to_vec());
        }
    }
    for data in others {
        assert_eq!(look(&data, &state), (Sight::Ignore, state.to_vec()), "{data:?}");
    }
    let (sight, _) = look(&LITTLE, b"not ours");
    assert!(matches!(sight, Sight::Sighting(fields) if fields[1].1 == "1"));
}

/// What may come from a known sender, as the table of all methods' faults has it.
#[test]
fn each_fault_of_a_sender_is_ignored() {
    let mut table = FaultTable::new("kdump", 0);
    let huge = [LITTLE.as_slice(), &vec![0; 60_000]].concat();
    for (name, data) in [
        ("malformed: another protocol", b"<13>Oct 1 boot".as_slice()),
        ("malformed: mixed byte orders", &[0x1b, 0x30, 0x2a, 0x40, 1, 0, 0, 0]),
        ("malformed: version 2", &[0x40, 0x2a, 0x30, 0x1b, 2, 0, 0, 0]),
        ("malformed: empty", b""),
        ("truncated", &LITTLE[..7]),
        ("huge", &huge),
    ] {
        assert_eq!(look(data, b""), (Sight::Ignore, Vec::new()), "{name}");
        table.heard(name, "Ignored", "no sighting, and nothing kept; no power-off waits for it");
    }
    assert!(matches!(look(&LITTLE, b"not ours").0, Sight::Sighting(_)));
    table.heard("what it kept is not its own", "Sighting", "counts from 1 again");
    for name in [
        "unreachable",
        "wrong credentials",
        "no rights",
        "wrong plug",
        "stuck",
        "late",
        "flips back",
    ] {
        table.never(name, "it listens: it asks nothing, has no account and switches nothing");
    }
    table.finish(env!("CARGO_TARGET_TMPDIR"));
}
