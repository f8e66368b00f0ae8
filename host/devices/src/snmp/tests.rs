//! PDUs and switches by themselves: what is written happens, later, back again, or not at all, and
//! is read as it is unless a fault says otherwise. The other side of the wire is net-snmp's
//! (`tests/net_snmp.rs`) and the plugins'.

use rasn::types::ObjectIdentifier;
use rasn_smi::v2::{ObjectSyntax, SimpleSyntax};
use rasn_snmp::{v2, v2c};

use super::wire::{Kind, Oid};
use super::{Agent, Cause, Change, Config, Model, PlugEvent, PlugReport, Saying};

const COMMUNITY: &str = "private";

fn agent(model: Model) -> Agent {
    Agent::new(Config { model, plugs: 8, community: COMMUNITY.to_owned() })
}

fn oid(text: &str) -> Oid {
    text.split('.').map(|arc| arc.parse().unwrap()).collect()
}

/// Of plug 3: the state, its numbers for on and off, what is written for off, and for on.
fn objects(model: Model) -> (Oid, [i64; 2], (Oid, i64), (Oid, i64)) {
    let (state, numbers, off, on) = match model {
        Model::ApcRpdu2 => (
            "1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.3",
            [2, 1],
            ("1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.3", 2),
            ("1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.3", 1),
        ),
        Model::ApcRpdu => (
            "1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.3",
            [1, 2],
            ("1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3", 2),
            ("1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3", 1),
        ),
        Model::Eaton => (
            "1.3.6.1.4.1.534.6.6.7.6.6.1.2.0.3",
            [1, 0],
            ("1.3.6.1.4.1.534.6.6.7.6.6.1.3.0.3", 0),
            ("1.3.6.1.4.1.534.6.6.7.6.6.1.4.0.3", 0),
        ),
        Model::Switch => (
            "1.3.6.1.2.1.2.2.1.8.10003",
            [1, 2],
            ("1.3.6.1.2.1.2.2.1.7.10003", 2),
            ("1.3.6.1.2.1.2.2.1.7.10003", 1),
        ),
    };
    (oid(state), numbers, (oid(off.0), off.1), (oid(on.0), on.1))
}

fn message(kind: Kind, community: &str, oid: &[u32], number: Option<i64>) -> Vec<u8> {
    let value = number.map_or(v2::VarBindValue::Unspecified, |number| {
        v2::VarBindValue::Value(ObjectSyntax::Simple(SimpleSyntax::Integer(number.into())))
    });
    let name = ObjectIdentifier::new(oid.to_vec()).unwrap();
    let pdu = v2::Pdu {
        request_id: 77,
        error_status: 0,
        error_index: 0,
        variable_bindings: vec![v2::VarBind { name, value }],
    };
    let data = match kind {
        Kind::Get => v2::Pdus::GetRequest(v2::GetRequest(pdu)),
        Kind::GetNext => v2::Pdus::GetNextRequest(v2::GetNextRequest(pdu)),
        Kind::Set => v2::Pdus::SetRequest(v2::SetRequest(pdu)),
    };
    let community = community.as_bytes().to_vec().into();
    rasn::ber::encode(&v2c::Message { version: 1.into(), community, data }).unwrap()
}

/// The error-status, and what stands there if it is a number; none: no answer.
fn ask(
    agent: &mut Agent,
    at: u64,
    kind: Kind,
    oid: &[u32],
    number: Option<i64>,
) -> Option<(u32, Option<i64>)> {
    let replies = agent.datagram(at, &message(kind, COMMUNITY, oid, number));
    let reply = replies.first()?;
    let message: v2c::Message<v2::Pdus> = rasn::ber::decode(&reply.bytes).unwrap();
    let v2::Pdus::Response(v2::Response(pdu)) = message.data else { panic!("no response") };
    let said = match &pdu.variable_bindings[0].value {
        v2::VarBindValue::Value(ObjectSyntax::Simple(SimpleSyntax::Integer(number))) => {
            Some(i64::try_from(number.clone()).unwrap())
        }
        v2::VarBindValue::Value(_)
        | v2::VarBindValue::Unspecified
        | v2::VarBindValue::NoSuchObject
        | v2::VarBindValue::NoSuchInstance
        | v2::VarBindValue::EndOfMibView => None,
    };
    Some((pdu.error_status, said))
}

fn read(agent: &mut Agent, at: u64) -> Option<i64> {
    let (state, ..) = objects(agent.config().model);
    ask(agent, at, Kind::Get, &state, None)?.1
}

fn write(agent: &mut Agent, at: u64, change: Change) -> Option<u32> {
    let (_, _, off, on) = objects(agent.config().model);
    let (oid, number) = if change == Change::Off { off } else { on };
    Some(ask(agent, at, Kind::Set, &oid, Some(number))?.0)
}

fn faulty(model: Model, name: &str, value: u32) -> Agent {
    let mut agent = agent(model);
    agent.set_fault(0, name, value).unwrap();
    agent
}

fn changed(at_ms: u64, on: bool, cause: Cause) -> PlugEvent {
    PlugEvent { at_ms, plug: 3, on, cause }
}

fn commanded() -> Cause {
    Cause::Command { user: String::new() }
}

#[test]
fn each_model_is_switched_and_read_in_its_makers_numbers() {
    for (name, model) in Model::ALL {
        let (_, [on, off], ..) = objects(model);
        let mut agent = agent(model);
        assert_eq!(read(&mut agent, 0), Some(on), "{name}");
        assert_eq!(write(&mut agent, 1_000, Change::Off), Some(0), "{name}");
        assert_eq!(read(&mut agent, 1_100), Some(on), "{name}: a relay takes its time");
        assert_eq!(agent.next_change(), Some(1_400), "{name}");
        assert_eq!(read(&mut agent, 2_000), Some(off), "{name}");
        assert_eq!(
            (agent.is_on(3), agent.is_on(4), agent.is_on(9)),
            (Some(false), Some(true), None)
        );
        assert_eq!(write(&mut agent, 3_000, Change::On), Some(0), "{name}");
        assert_eq!(read(&mut agent, 4_000), Some(on), "{name}");
        let events = [changed(1_400, false, commanded()), changed(3_400, true, commanded())];
        assert_eq!(agent.drain_events(), events, "{name}");
        let said = |what| PlugReport { plug: 3, what };
        let all = [
            said(Saying::Reads { on: true }),
            said(Saying::Yes(Change::Off)),
            said(Saying::Reads { on: true }),
            said(Saying::Reads { on: false }),
            said(Saying::Yes(Change::On)),
            said(Saying::Reads { on: true }),
        ];
        assert_eq!(agent.drain_said(), all, "{name}");
    }
}

#[test]
fn a_table_is_walked_to_its_end_and_what_is_not_there_is_said() {
    let mut agent = agent(Model::ApcRpdu);
    let column = oid("1.3.6.1.4.1.318.1.1.12.3.5.1.1.4");
    let (status, first) = ask(&mut agent, 0, Kind::GetNext, &column, None).unwrap();
    assert_eq!((status, first), (0, Some(1)));
    let last = oid("1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.8");
    assert_eq!(ask(&mut agent, 0, Kind::GetNext, &last, None), Some((0, None)), "end of its MIB");
    let ninth = oid("1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.9");
    assert_eq!(ask(&mut agent, 0, Kind::Get, &ninth, None), Some((0, None)));
    assert_eq!(ask(&mut agent, 0, Kind::Set, &ninth, Some(2)), Some((6, Some(2))), "noAccess");
    let control = oid("1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.3");
    assert_eq!(ask(&mut agent, 0, Kind::Set, &control, Some(9)), Some((10, Some(9))), "wrongValue");
    assert_eq!(agent.is_on(3), Some(true));
    assert_eq!(ask(&mut agent, 0, Kind::Set, &control, Some(3)), Some((0, Some(3))), "reboot");
    agent.tick(10_000);
    let events = [changed(400, false, commanded()), changed(5_400, true, commanded())];
    assert_eq!(agent.drain_events(), events);
}

#[test]
fn whoever_hears_nothing_does_nothing_and_who_was_not_heard_may_have() {
    for name in ["silent", "dead", "no_input", "community"] {
        let mut agent = faulty(Model::Eaton, name, 1);
        assert_eq!(write(&mut agent, 10, Change::Off), None, "{name}");
        agent.set_fault(500, "none", 0).unwrap();
        assert_eq!(agent.is_on(3), Some(true), "{name}");
    }
    let mut agent = agent(Model::Eaton);
    let guess = message(Kind::Set, "public", &objects(Model::Eaton).2.0, Some(0));
    assert_eq!(agent.datagram(0, &guess), [], "another community is answered with silence");
    let mut agent = faulty(Model::Eaton, "drop", 1);
    assert_eq!((write(&mut agent, 0, Change::Off), agent.is_on(3)), (None, Some(true)));
    assert_eq!(write(&mut agent, 500, Change::Off), Some(0), "sent again, it is heard");
    let mut agent = faulty(Model::Eaton, "reply_lost", 1);
    assert_eq!(write(&mut agent, 0, Change::Off), None);
    agent.tick(1_000);
    assert_eq!(agent.is_on(3), Some(false), "what nobody heard the end of has happened");
}

#[test]
fn a_stuck_plug_says_yes_and_moves_nothing() {
    for (name, model) in Model::ALL {
        let mut agent = faulty(model, "stuck", 1);
        let (_, [on, _], ..) = objects(model);
        assert_eq!(write(&mut agent, 0, Change::Off), Some(0), "{name}");
        assert_eq!(read(&mut agent, 60_000), Some(on), "{name}");
        assert_eq!((agent.is_on(3), agent.next_change()), (Some(true), None), "{name}");
        let reads = PlugReport { plug: 3, what: Saying::Reads { on: true } };
        assert_eq!(agent.drain_said().last(), Some(&reads), "{name}: told off is not off");
    }
}

#[test]
fn a_refusal_is_told_with_its_status_and_changes_nothing() {
    let mut agent = faulty(Model::Switch, "set_status", 16);
    assert_eq!(write(&mut agent, 0, Change::Off), Some(16));
    agent.tick(1_000);
    assert_eq!(agent.is_on(3), Some(true));
    let refused = PlugReport { plug: 3, what: Saying::Refused(Change::Off, 16) };
    assert_eq!(agent.drain_said(), [refused]);
}

#[test]
fn an_effect_comes_late_and_turns_back() {
    let mut agent = faulty(Model::ApcRpdu2, "off_after", 20_000);
    agent.set_fault(0, "flip_back", 5_000).unwrap();
    assert_eq!(write(&mut agent, 0, Change::Off), Some(0));
    agent.tick(60_000);
    let events = [changed(20_400, false, commanded()), changed(25_400, true, Cause::FlipBack)];
    assert_eq!(agent.drain_events(), events);
}

#[test]
fn a_dead_controller_forgets_and_its_relays_stay() {
    let mut agent = faulty(Model::Switch, "off_after", 20_000);
    write(&mut agent, 0, Change::Off);
    agent.set_fault(1_000, "dead", 1).unwrap();
    agent.set_fault(2_000, "none", 0).unwrap();
    agent.tick(60_000);
    assert_eq!((agent.is_on(3), agent.drain_events()), (Some(true), vec![]));
    let admin = oid("1.3.6.1.2.1.2.2.1.7.10003");
    assert_eq!(ask(&mut agent, 60_000, Kind::Get, &admin, None), Some((0, Some(1))));
}

#[test]
fn what_loses_its_input_feeds_nothing_and_finds_its_relays_as_they_were() {
    let mut agent =
        Agent::new(Config { model: Model::Eaton, plugs: 3, community: COMMUNITY.to_owned() });
    agent.set_plug(10, 1, false);
    agent.set_fault(20, "no_input", 1).unwrap();
    assert_eq!([1, 2, 3].map(|plug| agent.is_on(plug)), [Some(false); 3]);
    agent.set_fault(30, "no_input", 0).unwrap();
    assert_eq!([1, 2, 3].map(|plug| agent.is_on(plug)), [Some(false), Some(true), Some(true)]);
    let event = |at_ms, plug, on, cause| PlugEvent { at_ms, plug, on, cause };
    let by_itself = |at_ms, plug, on| event(at_ms, plug, on, Cause::FlipBack);
    let events = [
        event(10, 1, false, Cause::Outside),
        by_itself(20, 2, false),
        by_itself(20, 3, false),
        by_itself(30, 2, true),
        by_itself(30, 3, true),
    ];
    assert_eq!(agent.drain_events(), events);
}

#[test]
fn what_is_read_may_be_old_wrong_or_contradict_itself() {
    let mut stale = faulty(Model::ApcRpdu, "stale", 30_000);
    write(&mut stale, 0, Change::Off);
    assert_eq!((read(&mut stale, 10_000), read(&mut stale, 31_000)), (Some(1), Some(2)));
    let mut liar = faulty(Model::ApcRpdu, "says_off", 1);
    assert_eq!((read(&mut liar, 0), liar.is_on(3)), (Some(2), Some(true)));
    let mut torn = faulty(Model::ApcRpdu2, "tables_differ", 1);
    let older = oid("1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.3");
    assert_eq!(read(&mut torn, 0), Some(1), "off, says the newer table");
    assert_eq!(ask(&mut torn, 0, Kind::Get, &older, None), Some((0, Some(1))), "on, the older");
    let mut alone = faulty(Model::Eaton, "tables_differ", 1);
    assert_eq!(read(&mut alone, 0), Some(1), "one table alone contradicts nothing");
}

#[test]
fn arbitrary_datagrams_do_no_harm() {
    let (_, _, (off, number), _) = objects(Model::ApcRpdu2);
    let whole = message(Kind::Set, COMMUNITY, &off, Some(number));
    let mut agent = agent(Model::ApcRpdu2);
    for cut in 0..whole.len() {
        assert_eq!(agent.datagram(0, &whole[..cut]), []);
        let mut bent = whole.clone();
        bent[cut] ^= 0xff;
        agent.datagram(0, &bent);
    }
    assert_eq!(agent.datagram(0, &[0; 1500]), []);
}
