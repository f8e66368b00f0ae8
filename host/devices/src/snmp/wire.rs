//! Messages of SNMPv2c as bytes, by `rasn-snmp`: what a manager asks, and what an agent answers.

use rasn::types::{Integer, ObjectIdentifier};
use rasn_smi::v2::{ObjectSyntax, SimpleSyntax};
use rasn_snmp::{v2, v2c};

/// An object identifier, arc by arc.
pub(super) type Oid = Vec<u32>;

/// As it stands in a message of v2c.
const VERSION: i64 = 1;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    GetNext,
    Set,
}

/// What stands at an object, or that nothing does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Integer(i64),
    Text(String),
    /// As in a question.
    Null,
    NoSuchObject,
    NoSuchInstance,
    EndOfMib,
    /// What no object here can hold.
    Other,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) kind: Kind,
    pub(super) community: Vec<u8>,
    pub(super) id: i32,
    pub(super) bindings: Vec<(Oid, Value)>,
}

/// Reads a question; none out of what an agent of v2c drops.
pub(super) fn question(bytes: &[u8]) -> Option<Question> {
    let (message, rest) = rasn::ber::decode_with_remainder::<v2c::Message<v2::Pdus>>(bytes).ok()?;
    if !rest.is_empty() || message.version != Integer::from(VERSION) {
        return None;
    }
    let (kind, pdu) = match message.data {
        v2::Pdus::GetRequest(v2::GetRequest(pdu)) => (Kind::Get, pdu),
        v2::Pdus::GetNextRequest(v2::GetNextRequest(pdu)) => (Kind::GetNext, pdu),
        v2::Pdus::SetRequest(v2::SetRequest(pdu)) => (Kind::Set, pdu),
        v2::Pdus::Response(_)
        | v2::Pdus::GetBulkRequest(_)
        | v2::Pdus::InformRequest(_)
        | v2::Pdus::Trap(_)
        | v2::Pdus::Report(_) => return None,
    };
    let bindings = pdu.variable_bindings.into_iter();
    let bindings = bindings.map(|binding| (binding.name.to_vec(), value(binding.value))).collect();
    Some(Question { kind, community: message.community.to_vec(), id: pdu.request_id, bindings })
}

/// An answer as bytes.
pub(super) fn answer(
    community: &[u8],
    id: i32,
    (status, index): (u32, u32),
    bindings: &[(Oid, Value)],
) -> Option<Vec<u8>> {
    let bindings = bindings.iter().map(|(oid, value)| {
        Some(v2::VarBind { name: ObjectIdentifier::new(oid.clone())?, value: on_wire(value) })
    });
    let pdu = v2::Pdu {
        request_id: id,
        error_status: status,
        error_index: index,
        variable_bindings: bindings.collect::<Option<_>>()?,
    };
    let message = v2c::Message {
        version: VERSION.into(),
        community: community.to_vec().into(),
        data: v2::Pdus::Response(v2::Response(pdu)),
    };
    rasn::ber::encode(&message).ok()
}

fn value(value: v2::VarBindValue) -> Value {
    match value {
        v2::VarBindValue::Value(ObjectSyntax::Simple(SimpleSyntax::Integer(number))) => {
            i64::try_from(number).map_or(Value::Other, Value::Integer)
        }
        v2::VarBindValue::Unspecified => Value::Null,
        v2::VarBindValue::Value(_)
        | v2::VarBindValue::NoSuchObject
        | v2::VarBindValue::NoSuchInstance
        | v2::VarBindValue::EndOfMibView => Value::Other,
    }
}

fn on_wire(value: &Value) -> v2::VarBindValue {
    let simple = |simple| v2::VarBindValue::Value(ObjectSyntax::Simple(simple));
    match value {
        Value::Integer(number) => simple(SimpleSyntax::Integer((*number).into())),
        Value::Text(text) => simple(SimpleSyntax::String(text.as_bytes().to_vec().into())),
        Value::Null | Value::Other => v2::VarBindValue::Unspecified,
        Value::NoSuchObject => v2::VarBindValue::NoSuchObject,
        Value::NoSuchInstance => v2::VarBindValue::NoSuchInstance,
        Value::EndOfMib => v2::VarBindValue::EndOfMibView,
    }
}
