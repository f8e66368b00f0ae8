//! One call's conversation with one agent: GET, GET-NEXT and SET, over each version.

use std::cell::Cell;
use std::fmt::Write as _;

use node_remedy_sdk::{Failure, FailureKind, Fields, Host, Secret};

use crate::codec::{Kind, Oid, Pdu, Plain, Secured, Value};
use crate::failures::{Report, error_status, not_used};
use crate::limits;
use crate::link::{Hint, Link, Patience, Rejected};
use crate::parameters::{Parameters, Version};
use crate::user::{Opened, User};

/// A conversation.
pub struct Session<'h, H: Host> {
    link: Link<'h, H>,
    speaks: Speaks<H>,
    first_id: i32,
    next_id: Cell<i32>,
}

enum Speaks<H: Host> {
    Community { version: i64, community: Vec<u8> },
    User(User<H>),
}

impl<'h, H: Host> Session<'h, H> {
    /// Begins one, as the parameters say. Nothing is sent yet.
    pub fn open(host: &'h H, parameters: &Fields, deadline_ms: u32) -> Result<Self, Failure> {
        let parameters = Parameters::read(parameters)?;
        let speaks = match parameters.version {
            Version::V1 => Speaks::Community { version: 0, community: community(host)? },
            Version::V2c => Speaks::Community { version: 1, community: community(host)? },
            Version::V3 => Speaks::User(User::open(host, parameters)?),
        };
        // Unforeseeable, so that nobody who cannot listen can answer in the agent's place.
        let drawn = host.random(4).iter().fold(0, |id: u32, byte| id << 8 | u32::from(*byte));
        let first_id = i32::try_from(drawn >> 2).unwrap_or(1).saturating_add(1);
        let link = Link::open(host, deadline_ms)?;
        Ok(Self { link, speaks, first_id, next_id: Cell::new(first_id) })
    }

    /// The host that it goes through.
    pub fn host(&self) -> &'h H {
        self.link.host()
    }

    /// Does the deadline leave room for this pause and one more question?
    pub fn has_time_for(&self, pause_ms: u32) -> bool {
        self.link.has_time_for(pause_ms)
    }

    /// What stands at each of these. What does not exist is a value of its own kind.
    pub fn get(&self, oids: &[Oid]) -> Result<Vec<Value>, Failure> {
        let what = about("GET", oids.first().map_or(&[], Vec::as_slice));
        let asked = oids.iter().map(|oid| (oid.clone(), Value::Null)).collect();
        let answer = self.ask(&what, Patience::Full, Kind::Get, asked)?;
        if self.is_v1() && answer.status == NO_SUCH_NAME {
            // SNMPv1 has no word for one of several that is missing.
            return match oids {
                [_] => Ok(vec![Value::NoSuchObject]),
                several => several.iter().map(|oid| self.get_one(oid)).collect(),
            };
        }
        let bindings = no_error(&what, answer)?;
        if bindings.len() != oids.len()
            || bindings.iter().zip(oids).any(|((oid, _), asked)| oid != asked)
        {
            return Err(protocol(
                &what,
                "the agent answered about other objects than it was asked",
            ));
        }
        Ok(bindings.into_iter().map(|(_, value)| value).collect())
    }

    /// What stands at this one.
    pub fn get_one(&self, oid: &[u32]) -> Result<Value, Failure> {
        let values = self.get(&[oid.to_vec()])?;
        values.into_iter().next().ok_or_else(|| protocol(&about("GET", oid), "an empty answer"))
    }

    /// What comes after this one; `None` at the end.
    pub fn get_next(&self, oid: &[u32]) -> Result<Option<(Oid, Value)>, Failure> {
        let what = about("GETNEXT", oid);
        let asked = vec![(oid.to_vec(), Value::Null)];
        let answer = self.ask(&what, Patience::Full, Kind::GetNext, asked)?;
        if self.is_v1() && answer.status == NO_SUCH_NAME {
            return Ok(None);
        }
        let [(next, value)] = <[_; 1]>::try_from(no_error(&what, answer)?)
            .map_err(|_| protocol(&what, "the agent answered about several objects"))?;
        if value == Value::EndOfMib {
            return Ok(None);
        }
        if next.as_slice() <= oid {
            return Err(protocol(&what, "the agent goes back instead of on"));
        }
        Ok(Some((next, value)))
    }

    /// The rows of a column, by index.
    pub fn walk(&self, column: &[u32]) -> Result<Vec<(Oid, Value)>, Failure> {
        let (mut rows, mut at) = (Vec::new(), column.to_vec());
        while let Some((oid, value)) = self.get_next(&at)? {
            let Some(index) = oid.strip_prefix(column) else { break };
            rows.push((index.to_vec(), value));
            if rows.len() > limits::ROWS_MAX {
                return Err(protocol(&about("GETNEXT", column), "the table has no end"));
            }
            at = oid;
        }
        Ok(rows)
    }

    /// Writes these, all or none. `is_lasting` says that being asked twice is being asked once.
    pub fn set(&self, objects: &[(Oid, i64)], is_lasting: bool) -> Result<(), Failure> {
        let what = match objects.first() {
            Some((oid, value)) => format!("{} = {value}", about("SET", oid)),
            None => return Ok(()),
        };
        let bindings: Vec<_> =
            objects.iter().map(|(oid, value)| (oid.clone(), Value::Integer(*value))).collect();
        let patience = if is_lasting { Patience::Full } else { Patience::Once };
        let answer = self.ask(&what, patience, Kind::Set, bindings)?;
        no_error(&what, answer).map(|_| ())
    }

    fn is_v1(&self) -> bool {
        matches!(self.speaks, Speaks::Community { version: 0, .. })
    }

    fn ask(
        &self,
        what: &str,
        patience: Patience,
        kind: Kind,
        bindings: Vec<(Oid, Value)>,
    ) -> Result<Pdu, Failure> {
        match &self.speaks {
            Speaks::Community { version, community } => {
                let (version, community) = (*version, community.clone());
                let pdu = self.question(kind, bindings);
                let id = pdu.id;
                let message = Plain { version, community, pdu }.encode();
                let message = message.map_err(|error| protocol(what, error.0))?;
                let at_first = ", and the community: agents answer a wrong one with silence";
                let hint = Hint { at_first, later: "" };
                let answer = self.link.exchange(what, hint, patience, &message, |datagram| {
                    let answer = Plain::decode(datagram)?;
                    if answer.version != version {
                        return Err(Rejected::Wrong("it is of another version"));
                    }
                    if answer.pdu.kind != Kind::Response {
                        return Err(Rejected::Wrong("it is no response"));
                    }
                    self.is_for(id, answer.pdu.id)?;
                    Ok(answer.pdu)
                });
                answer.map_err(unanswered(kind))
            }
            Speaks::User(user) => self.ask_as(user, what, patience, kind, &bindings),
        }
    }

    /// An agent may say first that its engine or its clock is another one. What it reports so was
    /// not carried out, and is asked again.
    fn ask_as(
        &self,
        user: &User<H>,
        what: &str,
        patience: Patience,
        kind: Kind,
        bindings: &[(Oid, Value)],
    ) -> Result<Pdu, Failure> {
        let host = self.host();
        let mut report = Report::UnknownEngineIds;
        for _ in 0..=limits::RESYNCS_MAX {
            if !user.has_engine() {
                self.discover(user)?;
            }
            let pdu = self.question(kind, bindings.to_vec());
            let message = user.seal(host, &pdu)?;
            let later = if user.is_encrypted() {
                "; agents answer a wrong privacy password or privacy-protocol with silence"
            } else {
                ""
            };
            let hint = Hint { at_first: "", later };
            let opened = self.link.exchange(what, hint, patience, &message, |datagram| {
                let is_ours = |id| self.is_for(pdu.id, id);
                let opened = user.open_message(datagram, host.elapsed_ms(), is_ours)?;
                if opened.pdu.kind == Kind::Response {
                    self.is_for(pdu.id, opened.pdu.id)?;
                }
                Ok(opened)
            });
            let opened = opened.map_err(unanswered(kind))?;
            let Opened { pdu, is_authentic, engine, boots, time } = opened;
            if pdu.kind == Kind::Response {
                return Ok(pdu);
            }
            report = Report::of(pdu.bindings.first().map(|(oid, _)| oid));
            match report {
                // Whoever is on the wire can say that without a key; a clock needs one.
                Report::UnknownEngineIds => user.forget(),
                Report::NotInTimeWindows if is_authentic => {
                    user.adopt(&engine, boots, time, host.elapsed_ms())?;
                }
                Report::UnsupportedSecLevels
                | Report::NotInTimeWindows
                | Report::UnknownUserNames
                | Report::WrongDigests
                | Report::DecryptionErrors
                | Report::UnknownSecurityModels
                | Report::InvalidMessages
                | Report::UnknownPduHandlers
                | Report::UnavailableContexts
                | Report::UnknownContexts
                | Report::Unknown => break,
            }
        }
        Err(report.into_failure(what, user.name()))
    }

    /// Asks the agent for its engine id; boots and time come with it, and are only a first guess.
    fn discover(&self, user: &User<H>) -> Result<(), Failure> {
        const WHAT: &str = "SNMPv3 discovery";
        let id = self.next();
        let message = User::<H>::discovery(id).encode().map_err(|error| protocol(WHAT, error.0))?;
        let found =
            self.link.exchange(WHAT, Hint::default(), Patience::Full, &message, |datagram| {
                let answer = Secured::decode(datagram)?;
                self.is_for(id, answer.id)?;
                if answer.engine.is_empty() {
                    return Err(Rejected::Wrong("it holds no engine id"));
                }
                Ok(answer)
            })?;
        user.adopt(&found.engine, found.boots, found.time, self.host().elapsed_ms())
    }

    fn question(&self, kind: Kind, bindings: Vec<(Oid, Value)>) -> Pdu {
        Pdu { kind, id: self.next(), status: 0, index: 0, bindings }
    }

    /// A number that no earlier message of this call carries.
    fn next(&self) -> i32 {
        let id = self.next_id.get();
        self.next_id.set(id.saturating_add(1));
        id
    }

    fn is_for(&self, asked: i32, answered: i32) -> Result<(), Rejected> {
        if answered == asked {
            Ok(())
        } else if (self.first_id..asked).contains(&answered) {
            Err(Rejected::Late)
        } else {
            Err(Rejected::Wrong("it answers another request"))
        }
    }
}

/// SNMPv1's one word for what is not there (RFC 1157, 4.1.2).
const NO_SUCH_NAME: u32 = 2;

fn community<H: Host>(host: &H) -> Result<Vec<u8>, Failure> {
    let bytes = host.open("community").and_then(|secret| secret.reveal());
    let bytes = bytes.map_err(|refused| not_used("community", &refused))?;
    if bytes.is_empty() {
        let detail = "the credential community is empty";
        return Err(Failure::new(FailureKind::BadParameters, detail));
    }
    Ok(bytes)
}

/// A write that nobody answered is not one that nobody heard.
fn unanswered(kind: Kind) -> impl Fn(Failure) -> Failure {
    move |mut failure| {
        if kind == Kind::Set && failure.retryable {
            failure.detail.push_str("; it may have been carried out: read the status");
        }
        failure
    }
}

/// An answer's bindings, where it is none that says no.
fn no_error(what: &str, answer: Pdu) -> Result<Vec<(Oid, Value)>, Failure> {
    if answer.status == 0 { Ok(answer.bindings) } else { Err(error_status(what, answer.status)) }
}

fn protocol(what: &str, why: &str) -> Failure {
    Failure::new(FailureKind::Protocol, format!("{what}: {why}"))
}

fn about(verb: &str, oid: &[u32]) -> String {
    let mut text = verb.to_owned();
    for (place, arc) in oid.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(text, "{}{arc}", if place == 0 { ' ' } else { '.' });
    }
    text
}
