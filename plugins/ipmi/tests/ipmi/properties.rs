//! The codec against arbitrary bytes: what is encoded decodes to itself, and nothing panics.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_devices::bmc::{Bmc, Config};
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_plugin_ipmi::codec::message::{self, Command, PAIR_MAX};
use node_remedy_plugin_ipmi::codec::packet::{self, Kind, Packet};
use node_remedy_plugin_ipmi::codec::suites::{Listed, parse_list};
use node_remedy_plugin_ipmi::codec::{Malformed, Suite, setup};
use node_remedy_sdk::testing::Device;
use node_remedy_sdk::{Action, FenceMethod, Host, PlugState};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bmc::{DEADLINE_MS, OnNetwork, host, request};

fn suite() -> impl Strategy<Value = Suite> {
    prop_oneof![Just(Suite::Sha1), Just(Suite::Sha256)]
}

proptest! {
    #[test]
    fn padding_round_trips(message in vec(any::<u8>(), 0..200)) {
        let padded = packet::pad(&message);
        prop_assert_eq!(padded.len() % packet::BLOCK, 0);
        prop_assert_eq!(packet::unpad(&padded), Ok(message.as_slice()));
    }

    #[test]
    fn sealed_packets_round_trip(
        sid in 1_u32.., seq in any::<u32>(), body in vec(any::<u8>(), 0..200), suite in suite(),
    ) {
        let code = vec![0x5a; suite.packet_code_length()];
        let covered = packet::covered(sid, seq, &body);
        let datagram = packet::sealed(&covered, &code);
        let Packet::Sealed(sealed) = packet::parse(&datagram).unwrap() else {
            panic!("not sealed");
        };
        prop_assert_eq!((sealed.sid, sealed.seq, sealed.body), (sid, seq, body.as_slice()));
        let (found, found_code) = sealed.covered_and_code(code.len()).unwrap();
        prop_assert_eq!((found, found_code), (covered.as_slice(), code.as_slice()));
    }

    #[test]
    fn plain_packets_round_trip(body in vec(any::<u8>(), 0..200)) {
        let datagram = packet::plain(Kind::Rakp2, &body);
        let plain = Packet::Plain { kind: Kind::Rakp2, body: &body };
        prop_assert_eq!(packet::parse(&datagram), Ok(plain));
        let datagram = packet::v15(&body);
        let plain = Packet::Plain { kind: Kind::Ipmi, body: &body };
        prop_assert_eq!(packet::parse(&datagram), Ok(plain));
    }

    #[test]
    fn one_changed_byte_of_a_message_is_noticed(
        number in any::<u8>(), pair in 0..=PAIR_MAX, data in vec(any::<u8>(), 0..40),
        at in any::<prop::sample::Index>(), change in 1_u8..,
    ) {
        // A response is a request with its function made odd, and the sum with it.
        let mut bytes = message::request(Command { netfn: 6, number }, pair, &data);
        bytes[1] |= 4;
        bytes[2] = bytes[2].wrapping_sub(4);
        let whole = message::response(&bytes);
        let wanted = if data.is_empty() { Err(Malformed::TooShort) } else { Ok((number, pair, data[0])) };
        let found = whole.map(|r| (r.command.number, r.pair, r.completion));
        prop_assert_eq!(found, wanted);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(message::response(&bytes).is_err());
    }

    #[test]
    fn lists_of_suites_round_trip(numbers in vec(any::<u8>(), 0..12), oem in any::<bool>()) {
        // Records of manufacturers in between are passed over.
        let mut bytes = Vec::new();
        for number in &numbers {
            if oem {
                bytes.extend([0xc1, 0x80, 0x57, 0x01, 0x00, 0x01, 0x41, 0x81]);
            }
            bytes.extend([0xc0, *number, 0x03, 0x44, 0x81]);
        }
        let wanted: Vec<_> = numbers
            .iter()
            .map(|number| Listed { number: *number, algorithms: vec![0x03, 0x44, 0x81] })
            .collect();
        prop_assert_eq!(parse_list(&bytes), wanted);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), suite in suite()) {
        let _ = message::response(&bytes);
        let _ = packet::unpad(&bytes);
        let _ = parse_list(&bytes);
        let _ = setup::open_response(&bytes, suite);
        let _ = setup::rakp_2(&bytes, suite);
        let _ = setup::rakp_4(&bytes, suite);
        for start in [&[][..], &[6, 0, 0xff, 7], &[6, 0, 0xff, 7, 6, 0xc0]] {
            let datagram = [start, &bytes].concat();
            if let Ok(Packet::Sealed(sealed)) = packet::parse(&datagram) {
                let _ = sealed.covered_and_code(suite.packet_code_length());
            }
        }
    }

    #[test]
    fn a_bmc_that_flips_bits_never_makes_a_false_off(
        which in 0_usize..20, at in any::<prop::sample::Index>(), change in 1_u8..,
    ) {
        let mut behind = OnNetwork(Bmc::new(Config::default()));
        let mut count = 0;
        let flipping = move |now_ms: u64, peer: u64, data: &[u8]| {
            let mut replies = behind.datagram(now_ms, peer, data);
            for (_, bytes) in &mut replies {
                if count == which {
                    let at = at.index(bytes.len());
                    bytes[at] ^= change;
                }
                count += 1;
            }
            replies
        };
        let host = host().device("bmc", Rc::new(RefCell::new(flipping)));
        if let Ok(outcome) = Ipmi.run(&request(Action::Status), &host) {
            prop_assert_eq!(outcome.state, PlugState::On);
        }
    }

    #[test]
    fn a_flood_of_noise_neither_panics_nor_outlasts_the_deadline(
        noise in vec(vec(any::<u8>(), 0..80), 1..40),
    ) {
        let flood = move |_: u64, _: u64, _: &[u8]| {
            noise.iter().map(|bytes| (1, [&[6, 0, 0xff, 7][..], bytes].concat())).collect()
        };
        let host = host().device("bmc", Rc::new(RefCell::new(flood)));
        prop_assert!(Ipmi.run(&request(Action::Off), &host).is_err());
        prop_assert!(host.elapsed_ms() <= u64::from(DEADLINE_MS));
    }
}

#[test]
fn a_noisy_neighbour_does_not_disturb() {
    // Before each true answer comes one that anybody on the network could have sent.
    let mut behind = OnNetwork(Bmc::new(Config::default()));
    let forged = packet::sealed(&packet::covered(0xa0a2_a3a4, 1, &[0; 32]), &[0; 16]);
    let noisy = move |now_ms: u64, peer: u64, data: &[u8]| {
        let mut replies = vec![(0, forged.clone()), (0, b"hello".to_vec())];
        replies.extend(behind.datagram(now_ms, peer, data));
        replies
    };
    let host = host().device("bmc", Rc::new(RefCell::new(noisy)));
    assert_eq!(Ipmi.run(&request(Action::Off), &host).unwrap().state, PlugState::Off);
}
