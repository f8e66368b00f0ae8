//! Whatever arrives: no panic, no more work than its bytes are worth, and what was said is what is
//! read.

use node_remedy_plugin_snmp::Value;
use node_remedy_plugin_snmp::codec::{Data, Kind, Pdu, Plain, Scoped, Secured};
use proptest::collection::vec;
use proptest::prelude::*;

fn oid() -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 0..20).prop_map(|rest| [vec![1, 3], rest].concat())
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        vec(any::<u8>(), 0..64).prop_map(Value::Text),
        oid().prop_map(Value::Oid),
        any::<u32>().prop_map(|number| Value::Unsigned(number.into())),
        Just(Value::Null),
        Just(Value::NoSuchObject),
        Just(Value::NoSuchInstance),
        Just(Value::EndOfMib),
    ]
}

fn pdu() -> impl Strategy<Value = Pdu> {
    let kind = prop_oneof![
        Just(Kind::Get),
        Just(Kind::GetNext),
        Just(Kind::Set),
        Just(Kind::Response),
        Just(Kind::Report)
    ];
    (kind, any::<i32>(), 0..20_u32, 0..9_u32, vec((oid(), value()), 0..6))
        .prop_map(|(kind, id, status, index, bindings)| Pdu { kind, id, status, index, bindings })
}

fn secured() -> impl Strategy<Value = Secured> {
    let bytes = |most| vec(any::<u8>(), 0..most);
    let data = prop_oneof![
        (bytes(32), bytes(32), pdu()).prop_map(|(engine, context, pdu)| Data::Scoped(Scoped {
            engine,
            context,
            pdu
        })),
        bytes(200).prop_map(Data::Sealed),
    ];
    let clock = 0..=i32::MAX.unsigned_abs();
    (any::<i32>(), 0..8_u8, bytes(32), clock.clone(), clock, bytes(32), bytes(48), bytes(8), data)
        .prop_map(|(id, flags, engine, boots, time, user, code, salt, data)| Secured {
            id,
            flags,
            engine,
            boots,
            time,
            user,
            code,
            salt,
            data,
        })
}

proptest! {
    #[test]
    fn what_was_said_is_what_is_read(version in 0..2_i64, community in vec(any::<u8>(), 0..40), pdu in pdu()) {
        let message = Plain { version, community, pdu };
        prop_assert_eq!(Plain::decode(&message.encode().unwrap()), Ok(message));
    }

    #[test]
    fn what_a_user_said_is_what_is_read(message in secured()) {
        prop_assert_eq!(Secured::decode(&message.encode().unwrap()), Ok(message.clone()));
        if let Data::Scoped(scoped) = message.data {
            let whole = scoped.encode().unwrap();
            // Up to the end of its last block, or a block more, as pysnmp does.
            for block in [8, 16] {
                for length in [whole.len().next_multiple_of(block), whole.len() / block * block + block] {
                    let mut padded = whole.clone();
                    padded.resize(length, 0);
                    prop_assert_eq!(Scoped::decode(&padded), Ok(scoped.clone()));
                }
            }
            let mut more = whole;
            more.resize(more.len() + 17, 0);
            prop_assert!(Scoped::decode(&more).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        let _ = (Plain::decode(&bytes), Secured::decode(&bytes), Scoped::decode(&bytes));
    }

    #[test]
    fn flipped_bytes_never_panic(message in secured(), flips in vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = message.encode().unwrap();
        for (at, to) in flips {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        let _ = (Plain::decode(&bytes), Secured::decode(&bytes));
    }

    #[test]
    fn a_part_of_a_message_is_none_and_neither_is_more(pdu in pdu(), cut in any::<usize>(), more in 1..9_usize) {
        let whole = Plain { version: 1, community: b"public".to_vec(), pdu }.encode().unwrap();
        prop_assert!(Plain::decode(&whole[..cut % whole.len()]).is_err());
        let longer = [whole, vec![0; more]].concat();
        prop_assert!(Plain::decode(&longer).is_err());
    }
}

/// Lengths that lie: four gigabytes announced in seven bytes, sequences in sequences.
#[test]
fn announced_lengths_cost_nothing() {
    for bytes in [
        vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2],
        vec![0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        vec![0x30, 0xff],
        [0x30, 0x80].repeat(4_000),
        vec![0x30; 8_000],
        vec![0; 16 << 10],
    ] {
        assert!(Plain::decode(&bytes).is_err());
        assert!(Secured::decode(&bytes).is_err());
        assert!(Scoped::decode(&bytes).is_err());
    }
}
