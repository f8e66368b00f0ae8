//! Messages as bytes, by `rasn-snmp`: encoded and decoded into types that a match can be made over.
//! What rasn lets pass and SNMP does not is refused here: bytes after the message, long messages,
//! object identifiers without end.

use rasn::types::{Integer, ObjectIdentifier, OctetString};
use rasn_snmp::{v2, v2c, v3};

use crate::limits;

/// An object identifier, arc by arc.
pub type Oid = Vec<u32>;

/// What stands at an object identifier. That nothing stands there is said in three ways, and none
/// of them is a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// INTEGER.
    Integer(i64),
    /// OCTET STRING.
    Text(Vec<u8>),
    /// OBJECT IDENTIFIER.
    Oid(Oid),
    /// Counters, gauges and time ticks.
    Unsigned(u64),
    /// Something else that no fence method asks for: an address, an opaque value.
    Other,
    /// Nothing, as in a question.
    Null,
    /// The agent does not have this object at all (SNMPv1: noSuchName).
    NoSuchObject,
    /// The agent has the object, and not this instance of it.
    NoSuchInstance,
    /// There is nothing behind this object identifier.
    EndOfMib,
}

/// What a message asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// GET.
    Get,
    /// GET-NEXT.
    GetNext,
    /// SET.
    Set,
    /// The answer to one of these.
    Response,
    /// SNMPv3: the message itself was refused.
    Report,
}

/// One question or answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Which.
    pub kind: Kind,
    /// request-id.
    pub id: i32,
    /// error-status; 0 is none.
    pub status: u32,
    /// error-index, from 1; 0 is none.
    pub index: u32,
    /// What it is about.
    pub bindings: Vec<(Oid, Value)>,
}

/// A message of SNMPv1 or v2c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// As it stands in the message: 0 for v1, 1 for v2c.
    pub version: i64,
    /// The community.
    pub community: Vec<u8>,
    /// The question or answer.
    pub pdu: Pdu,
}

/// A message of SNMPv3 with the User-based Security Model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    /// msgID.
    pub id: i32,
    /// msgFlags.
    pub flags: u8,
    /// msgAuthoritativeEngineID.
    pub engine: Vec<u8>,
    /// msgAuthoritativeEngineBoots.
    pub boots: u32,
    /// msgAuthoritativeEngineTime.
    pub time: u32,
    /// msgUserName.
    pub user: Vec<u8>,
    /// msgAuthenticationParameters.
    pub code: Vec<u8>,
    /// msgPrivacyParameters.
    pub salt: Vec<u8>,
    /// msgData.
    pub data: Data,
}

/// What a message of SNMPv3 carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In the clear.
    Scoped(Scoped),
    /// Encrypted.
    Sealed(Vec<u8>),
}

/// A PDU with the context that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoped {
    /// contextEngineID.
    pub engine: Vec<u8>,
    /// contextName.
    pub context: Vec<u8>,
    /// The question or answer.
    pub pdu: Pdu,
}

/// msgFlags: authenticated.
pub const AUTHENTICATED: u8 = 1;
/// msgFlags: encrypted.
pub const ENCRYPTED: u8 = 2;
/// msgFlags: a report is wanted.
pub const REPORTABLE: u8 = 4;

const V3: i64 = 3;
const USM: u32 = 3;

/// Bytes that are not such a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

type Encoded = Result<Vec<u8>, Malformed>;

const NOT_BER: Malformed = Malformed("it is no SNMP message, or a part of one");

fn encode<T: rasn::Encode>(value: &T) -> Encoded {
    rasn::ber::encode(value).map_err(|_| Malformed("it cannot be encoded"))
}

fn decode<T: rasn::Decode>(bytes: &[u8]) -> Result<T, Malformed> {
    if bytes.len() > limits::MESSAGE_BYTES_MAX {
        return Err(Malformed("it is longer than any answer can be"));
    }
    match rasn::ber::decode_with_remainder(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(Malformed("bytes follow after its end")),
        Err(_) => Err(NOT_BER),
    }
}

impl Plain {
    /// As bytes.
    pub fn encode(&self) -> Encoded {
        encode(&v2c::Message {
            version: self.version.into(),
            community: octets(&self.community),
            data: pdu_to_wire(&self.pdu)?,
        })
    }

    /// Out of bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let message: v2c::Message<v2::Pdus> = decode(bytes)?;
        Ok(Self {
            version: number(&message.version)?,
            community: message.community.to_vec(),
            pdu: pdu_from_wire(message.data)?,
        })
    }
}

impl Secured {
    /// As bytes.
    pub fn encode(&self) -> Encoded {
        let security = encode(&v3::USMSecurityParameters {
            authoritative_engine_id: octets(&self.engine),
            authoritative_engine_boots: self.boots.into(),
            authoritative_engine_time: self.time.into(),
            user_name: octets(&self.user),
            authentication_parameters: octets(&self.code),
            privacy_parameters: octets(&self.salt),
        })?;
        encode(&v3::Message {
            version: V3.into(),
            global_data: v3::HeaderData {
                message_id: self.id.into(),
                max_size: limits::MESSAGE_BYTES_MAX.into(),
                flags: octets(&[self.flags]),
                security_model: USM.into(),
            },
            security_parameters: octets(&security),
            scoped_data: match &self.data {
                Data::Scoped(scoped) => v3::ScopedPduData::CleartextPdu(scoped_to_wire(scoped)?),
                Data::Sealed(bytes) => v3::ScopedPduData::EncryptedPdu(octets(bytes)),
            },
        })
    }

    /// Out of bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let message: v3::Message = decode(bytes)?;
        if number(&message.version)? != V3 {
            return Err(Malformed("it is of another version"));
        }
        if number(&message.global_data.security_model)? != i64::from(USM) {
            return Err(Malformed("it has another security model"));
        }
        let [flags] = *message.global_data.flags else {
            return Err(Malformed("its flags are not one byte"));
        };
        let security: v3::USMSecurityParameters = decode(&message.security_parameters)?;
        if security.authoritative_engine_id.len() > limits::ENGINE_ID_BYTES_MAX {
            return Err(Malformed("its engine id is too long"));
        }
        Ok(Self {
            id: number32(&message.global_data.message_id)?,
            flags,
            engine: security.authoritative_engine_id.to_vec(),
            boots: unsigned32(&security.authoritative_engine_boots)?,
            time: unsigned32(&security.authoritative_engine_time)?,
            user: security.user_name.to_vec(),
            code: security.authentication_parameters.to_vec(),
            salt: security.privacy_parameters.to_vec(),
            data: match message.scoped_data {
                v3::ScopedPduData::CleartextPdu(scoped) => Data::Scoped(scoped_from_wire(scoped)?),
                v3::ScopedPduData::EncryptedPdu(bytes) => Data::Sealed(bytes.to_vec()),
            },
        })
    }
}

impl Scoped {
    /// As bytes, which is what is encrypted.
    pub fn encode(&self) -> Encoded {
        encode(&scoped_to_wire(self)?)
    }

    /// Out of decrypted bytes; what a block cipher was padded with may follow.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > limits::MESSAGE_BYTES_MAX {
            return Err(NOT_BER);
        }
        match rasn::ber::decode_with_remainder::<v3::ScopedPdu>(bytes) {
            Ok((scoped, padding)) if padding.len() <= limits::PADDING_MAX => {
                scoped_from_wire(scoped)
            }
            Ok(_) | Err(_) => Err(Malformed("what it decrypts to is no SNMP message")),
        }
    }
}

fn scoped_to_wire(scoped: &Scoped) -> Result<v3::ScopedPdu, Malformed> {
    Ok(v3::ScopedPdu {
        engine_id: octets(&scoped.engine),
        name: octets(&scoped.context),
        data: pdu_to_wire(&scoped.pdu)?,
    })
}

fn scoped_from_wire(scoped: v3::ScopedPdu) -> Result<Scoped, Malformed> {
    Ok(Scoped {
        engine: scoped.engine_id.to_vec(),
        context: scoped.name.to_vec(),
        pdu: pdu_from_wire(scoped.data)?,
    })
}

fn pdu_to_wire(pdu: &Pdu) -> Result<v2::Pdus, Malformed> {
    let bindings = pdu.bindings.iter().map(|(oid, value)| {
        Ok(v2::VarBind { name: oid_to_wire(oid)?, value: value_to_wire(value)? })
    });
    let wire = v2::Pdu {
        request_id: pdu.id,
        error_status: pdu.status,
        error_index: pdu.index,
        variable_bindings: bindings.collect::<Result<_, Malformed>>()?,
    };
    Ok(match pdu.kind {
        Kind::Get => v2::Pdus::GetRequest(v2::GetRequest(wire)),
        Kind::GetNext => v2::Pdus::GetNextRequest(v2::GetNextRequest(wire)),
        Kind::Set => v2::Pdus::SetRequest(v2::SetRequest(wire)),
        Kind::Response => v2::Pdus::Response(v2::Response(wire)),
        Kind::Report => v2::Pdus::Report(v2::Report(wire)),
    })
}

fn pdu_from_wire(pdus: v2::Pdus) -> Result<Pdu, Malformed> {
    let (kind, pdu) = match pdus {
        v2::Pdus::GetRequest(v2::GetRequest(pdu)) => (Kind::Get, pdu),
        v2::Pdus::GetNextRequest(v2::GetNextRequest(pdu)) => (Kind::GetNext, pdu),
        v2::Pdus::SetRequest(v2::SetRequest(pdu)) => (Kind::Set, pdu),
        v2::Pdus::Response(v2::Response(pdu)) => (Kind::Response, pdu),
        v2::Pdus::Report(v2::Report(pdu)) => (Kind::Report, pdu),
        v2::Pdus::GetBulkRequest(_) | v2::Pdus::InformRequest(_) | v2::Pdus::Trap(_) => {
            return Err(Malformed("it is neither question nor answer"));
        }
    };
    let bindings = pdu
        .variable_bindings
        .into_iter()
        .map(|binding| Ok((oid_from_wire(&binding.name)?, value_from_wire(binding.value)?)));
    Ok(Pdu {
        kind,
        id: pdu.request_id,
        status: pdu.error_status,
        index: pdu.error_index,
        bindings: bindings.collect::<Result<_, Malformed>>()?,
    })
}

fn value_to_wire(value: &Value) -> Result<v2::VarBindValue, Malformed> {
    use rasn_smi::v2::{ObjectSyntax, SimpleSyntax};
    let simple = |simple| v2::VarBindValue::Value(ObjectSyntax::Simple(simple));
    Ok(match value {
        Value::Integer(number) => simple(SimpleSyntax::Integer((*number).into())),
        Value::Text(bytes) => simple(SimpleSyntax::String(octets(bytes))),
        Value::Oid(oid) => simple(SimpleSyntax::ObjectId(oid_to_wire(oid)?)),
        Value::Null => v2::VarBindValue::Unspecified,
        Value::NoSuchObject => v2::VarBindValue::NoSuchObject,
        Value::NoSuchInstance => v2::VarBindValue::NoSuchInstance,
        Value::EndOfMib => v2::VarBindValue::EndOfMibView,
        Value::Unsigned(number) => {
            let number = u32::try_from(*number).map_err(|_| Malformed("it cannot be encoded"))?;
            let counter = rasn_smi::v1::Counter(number);
            let wide = rasn_smi::v2::ApplicationSyntax::Counter(counter);
            v2::VarBindValue::Value(ObjectSyntax::ApplicationWide(wide))
        }
        Value::Other => return Err(Malformed("it cannot be encoded")),
    })
}

fn value_from_wire(value: v2::VarBindValue) -> Result<Value, Malformed> {
    use rasn_smi::v2::{ApplicationSyntax, ObjectSyntax, SimpleSyntax};
    let syntax = match value {
        v2::VarBindValue::Value(syntax) => syntax,
        v2::VarBindValue::Unspecified => return Ok(Value::Null),
        v2::VarBindValue::NoSuchObject => return Ok(Value::NoSuchObject),
        v2::VarBindValue::NoSuchInstance => return Ok(Value::NoSuchInstance),
        v2::VarBindValue::EndOfMibView => return Ok(Value::EndOfMib),
    };
    Ok(match syntax {
        ObjectSyntax::Simple(SimpleSyntax::Integer(integer)) => Value::Integer(number(&integer)?),
        ObjectSyntax::Simple(SimpleSyntax::String(bytes)) => Value::Text(bytes.to_vec()),
        ObjectSyntax::Simple(SimpleSyntax::ObjectId(oid)) => Value::Oid(oid_from_wire(&oid)?),
        ObjectSyntax::ApplicationWide(ApplicationSyntax::Counter(counter)) => {
            Value::Unsigned(counter.0.into())
        }
        ObjectSyntax::ApplicationWide(ApplicationSyntax::Ticks(ticks)) => {
            Value::Unsigned(ticks.0.into())
        }
        ObjectSyntax::ApplicationWide(ApplicationSyntax::BigCounter(counter)) => {
            Value::Unsigned(counter.0)
        }
        ObjectSyntax::ApplicationWide(ApplicationSyntax::Unsigned(gauge)) => {
            Value::Unsigned(gauge.0.into())
        }
        ObjectSyntax::ApplicationWide(
            ApplicationSyntax::Address(_) | ApplicationSyntax::Arbitrary(_),
        ) => Value::Other,
    })
}

fn oid_to_wire(oid: &[u32]) -> Result<ObjectIdentifier, Malformed> {
    ObjectIdentifier::new(oid.to_vec()).ok_or(Malformed("it has no such object identifier"))
}

fn oid_from_wire(oid: &ObjectIdentifier) -> Result<Oid, Malformed> {
    if oid.len() > limits::ARCS_MAX {
        return Err(Malformed("it has an object identifier without end"));
    }
    Ok(oid.to_vec())
}

fn octets(bytes: &[u8]) -> OctetString {
    OctetString::from(bytes.to_vec())
}

fn number(integer: &Integer) -> Result<i64, Malformed> {
    i64::try_from(integer.clone()).map_err(|_| Malformed("it holds a number without end"))
}

fn number32(integer: &Integer) -> Result<i32, Malformed> {
    i32::try_from(number(integer)?).map_err(|_| Malformed("its id is out of range"))
}

fn unsigned32(integer: &Integer) -> Result<u32, Malformed> {
    let wide = number(integer)?;
    // INTEGER (0..2147483647) in RFC 3414, 2.4.
    u32::try_from(wide)
        .ok()
        .filter(|small| i32::try_from(*small).is_ok())
        .ok_or(Malformed("its engine's clock is out of range"))
}
