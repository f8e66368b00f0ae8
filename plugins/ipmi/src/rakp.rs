//! Agreeing on a session: who we are, who the BMC is, and keys that nobody else has.
//!
//! ```text
//!  open session ─▶ RAKP 1/2: the BMC proves that it knows the password
//!               ─▶ RAKP 3/4: we do, and both have the same keys ─▶ Session
//! ```
//!
//! Keys are handles: every code is made by the host.

use node_remedy_sdk::{Failure, FailureKind, Host, Key, Refused, Secret};

use crate::codec::Suite;
use crate::codec::packet::{self, Kind, Packet};
use crate::codec::setup::{self, Answer, Exchange, Rakp2, Status};
use crate::discover::{self, Candidates};
use crate::failures;
use crate::limits;
use crate::link::{Answered, Link, Lost, Patience, Rejected, Wrong};
use crate::parameters::{Parameters, Privilege};
use crate::session::{Session, not_used, random, same};

/// RAKP status "invalid integrity check value": how either side says that it does not believe.
const BAD_CODE: u8 = 0x0f;

/// Opens a session with the best suite that both sides have.
pub(crate) fn establish<'l, H: Host>(
    link: &'l Link<'_, H>,
    parameters: Parameters,
) -> Result<Session<'l, H>, Failure> {
    let secrets = Secrets::open(link.host())?;
    let candidates = match parameters.suite {
        Some(suite) => Candidates { suites: vec![suite], listed: true },
        None => discover::candidates(link)?,
    };
    let mut refusal = None;
    for suite in candidates.suites {
        match open_again(link, &secrets, parameters.privilege, suite) {
            Ok(session) => return Ok(session),
            Err(NotOpened::SuiteRefused(failure)) => refusal = Some(failure),
            // Some BMCs say nothing to a suite they lack; a listed one is no guess.
            Err(NotOpened::Silent(failure)) if !candidates.listed && link.heard() => {
                refusal = Some(failure);
            }
            Err(
                NotOpened::Silent(failure)
                | NotOpened::OutOfStep(failure)
                | NotOpened::Failed(failure),
            ) => return Err(failure),
        }
    }
    Err(refusal.unwrap_or_else(|| Failure::new(FailureKind::Other, "no cipher suite to try")))
}

/// What the host holds for us.
struct Secrets<S> {
    account: S,
    kg: Option<S>,
    name: String,
}

impl<S: Secret> Secrets<S> {
    fn open<H: Host<Secret = S>>(host: &H) -> Result<Self, Failure> {
        let account = host.open("account").map_err(|refused| not_opened("account", &refused))?;
        let kg = match host.open("kg") {
            Ok(kg) => Some(kg),
            Err(Refused::NoSuchCredential) => None,
            Err(refused) => return Err(not_opened("kg", &refused)),
        };
        // The empty name is a user of IPMI, too.
        let Some(name) = account.identity().filter(|name| name.len() <= limits::USER_NAME_MAX)
        else {
            return Err(Failure::new(
                FailureKind::BadParameters,
                format!(
                    "the credential has no user name of at most {} bytes, which is all that IPMI takes",
                    limits::USER_NAME_MAX
                ),
            ));
        };
        Ok(Self { account, kg, name })
    }
}

fn not_opened(credential: &str, refused: &Refused) -> Failure {
    let kind = match refused {
        Refused::NoSuchCredential => FailureKind::BadParameters,
        Refused::NotGranted | Refused::OverBudget | Refused::BadLength | Refused::Other(_) => {
            FailureKind::Denied
        }
    };
    Failure::new(kind, format!("failed to open the credential {credential}: {refused}"))
}

enum NotOpened {
    /// Another suite may do.
    SuiteRefused(Failure),
    /// Another suite may do, if this one was a guess.
    Silent(Failure),
    /// A new session may do: this one may stand on the BMC's side, or it took another of our words for the
    /// first.
    OutOfStep(Failure),
    Failed(Failure),
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Opens a session, and a new one where both sides are out of step.
fn open_again<'l, H: Host>(
    link: &'l Link<'_, H>,
    secrets: &Secrets<H::Secret>,
    privilege: Privilege,
    suite: Suite,
) -> Result<Session<'l, H>, NotOpened> {
    for _ in 1..limits::SESSIONS_MAX {
        match open(link, secrets, privilege, suite, Patience::Brief) {
            Err(NotOpened::OutOfStep(_)) if link.has_time_for(0) => {}
            settled => return settled,
        }
    }
    open(link, secrets, privilege, suite, Patience::Full)
}

fn open<'l, H: Host>(
    link: &'l Link<'_, H>,
    secrets: &Secrets<H::Secret>,
    privilege: Privilege,
    suite: Suite,
    patience: Patience,
) -> Result<Session<'l, H>, NotOpened> {
    let host = link.host();
    let console_sid = random_sid(host);
    let bmc_sid = ask_for_slot(link, console_sid, suite)?;
    let exchange = Exchange {
        console_sid,
        bmc_sid,
        console_random: random(host),
        privilege: privilege.number(),
        name: secrets.name.as_bytes(),
    };
    let agreed = rakp_1(link, secrets, suite, &exchange, patience)?;

    let input = exchange.session_key_input(&agreed.bmc_random);
    let sik_from = secrets.kg.as_ref().unwrap_or(&secrets.account);
    let sik = sik_from.session_key(suite.hash(), &input).map_err(not_used)?;
    let session = Session::new(link, suite, &exchange, agreed.guid, &sik)?;
    // From RAKP 3 on the BMC may hold a session, whether we hear of it or not.
    session.renew_farewell()?;
    let opened = rakp_3(link, secrets, &session, &exchange, &agreed, &sik, patience);
    if let Err(NotOpened::OutOfStep(_)) = opened {
        session.give_up()?;
    }
    opened?;
    Ok(session)
}

/// Open session: the BMC's number for it.
fn ask_for_slot<H: Host>(
    link: &Link<'_, H>,
    console_sid: u32,
    suite: Suite,
) -> Result<u32, NotOpened> {
    let what = format!("open session with cipher suite {}", suite.number());
    let tag = link.next_tag();
    let answer = link.exchange(
        Patience::Full,
        || Ok(packet::plain(Kind::OpenRequest, &setup::open_request(tag, console_sid, suite))),
        |datagram| {
            let body = payload(datagram, Kind::OpenResponse)?;
            own(setup::open_response(body, suite)?, tag, console_sid)
        },
    );
    match answer {
        Ok(Answered { value: Ok(0), .. }) => {
            Err(Failure::new(FailureKind::Protocol, format!("{what}: the BMC gave session 0"))
                .into())
        }
        Ok(Answered { value: Ok(bmc_sid), .. }) => Ok(bmc_sid),
        Ok(Answered { value: Err(Status(status)), .. }) => {
            let failure = failures::rakp_status(&what, status);
            Err(if failures::is_about_the_suite(status) {
                NotOpened::SuiteRefused(failure)
            } else {
                NotOpened::Failed(failure)
            })
        }
        Err(Lost::Silence(silence)) if silence.is_complete() => {
            Err(NotOpened::Silent(silence.into_failure(&what)))
        }
        Err(Lost::Silence(silence)) => Err(silence.into_failure(&what).into()),
        Err(Lost::Failed(failure)) => Err(failure.into()),
    }
}

/// What RAKP 2 told, believed.
struct Agreed {
    bmc_random: [u8; 16],
    guid: [u8; 16],
    /// How often RAKP 1 was sent.
    sends: u32,
}

fn rakp_1<H: Host>(
    link: &Link<'_, H>,
    secrets: &Secrets<H::Secret>,
    suite: Suite,
    exchange: &Exchange<'_>,
    patience: Patience,
) -> Result<Agreed, NotOpened> {
    const WHAT: &str = "RAKP 1";
    let tag = link.next_tag();
    let answered = link
        .exchange(
            patience,
            || Ok(packet::plain(Kind::Rakp1, &exchange.rakp_1(tag))),
            |datagram| {
                let body = payload(datagram, Kind::Rakp2)?;
                let answer = setup::rakp_2(body, suite)?;
                let kept =
                    |rakp_2: Rakp2<'_>| (rakp_2.bmc_random, rakp_2.guid, rakp_2.code.to_vec());
                let (tag_found, console_sid) = (answer.tag, answer.console_sid);
                let result = answer.result.map(kept);
                own(Answer { tag: tag_found, console_sid, result }, tag, exchange.console_sid)
            },
        )
        .map_err(|lost| out_of_step(lost, WHAT))?;
    let (bmc_random, guid, code) = answered.value.map_err(|Status(status)| {
        let failure = failures::rakp_status(WHAT, status);
        // A BMC may refuse the same word that it took before.
        if answered.sends > 1 { NotOpened::OutOfStep(failure) } else { failure.into() }
    })?;
    let input = exchange.rakp_2_input(&Rakp2 { bmc_random, guid, code: &code });
    let wanted = secrets.account.mac(suite.hash(), &input).map_err(not_used)?;
    if !same(&wanted, &code) {
        // Said aloud, so that the BMC frees its slot at once. Nothing waits for an answer.
        let refusal = exchange.rakp_3_refusal(link.next_tag(), BAD_CODE);
        link.send(&packet::plain(Kind::Rakp3, &refusal))?;
        return Err(failures::wrong_password(&secrets.name).into());
    }
    Ok(Agreed { bmc_random, guid, sends: answered.sends })
}

fn rakp_3<H: Host>(
    link: &Link<'_, H>,
    secrets: &Secrets<H::Secret>,
    session: &Session<'_, H>,
    exchange: &Exchange<'_>,
    agreed: &Agreed,
    sik: &H::Key,
    patience: Patience,
) -> Result<(), NotOpened> {
    const WHAT: &str = "RAKP 3";
    let suite = session.suite();
    let tag = link.next_tag();
    let input = exchange.rakp_3_input(&agreed.bmc_random);
    let code = secrets.account.mac(suite.hash(), &input).map_err(not_used)?;
    let answered = link
        .exchange(
            patience,
            || Ok(packet::plain(Kind::Rakp3, &exchange.rakp_3(tag, &code))),
            |datagram| {
                let body = payload(datagram, Kind::Rakp4)?;
                let Answer { tag: tag_found, console_sid, result } = setup::rakp_4(body, suite)?;
                let result = result.map(<[u8]>::to_vec);
                own(Answer { tag: tag_found, console_sid, result }, tag, exchange.console_sid)
            },
        )
        .map_err(|lost| out_of_step(lost, WHAT))?;
    let found = match answered.value {
        Ok(found) => found,
        Err(Status(status)) => {
            session.withdraw_farewell();
            // A BMC that got RAKP 1 twice may have checked against its second answer, not the one
            // we saw first: that is no word on the password.
            let failure = failures::rakp_status(WHAT, status);
            return Err(match (agreed.sends, answered.sends) {
                (1, 1) => failure.into(),
                (1, _) => NotOpened::OutOfStep(failure),
                _ if status == BAD_CODE => NotOpened::OutOfStep(failures::out_of_step()),
                _ => NotOpened::OutOfStep(failure),
            });
        }
    };
    let input = exchange.rakp_4_input(&agreed.guid);
    let length = u32::try_from(suite.packet_code_length()).unwrap_or(u32::MAX);
    let wanted = sik.mac(suite.hash(), &input, length).map_err(not_used)?;
    if same(&wanted, &found) {
        Ok(())
    } else {
        Err(failures::wrong_kg(secrets.kg.is_some()).into())
    }
}

/// Silence of a BMC that was heard before.
fn out_of_step(lost: Lost, what: &str) -> NotOpened {
    match lost {
        Lost::Silence(silence) => NotOpened::OutOfStep(silence.into_failure(what)),
        Lost::Failed(failure) => failure.into(),
    }
}

/// The payload of a datagram that must be of this kind.
fn payload(datagram: &[u8], wanted: Kind) -> Result<&[u8], Rejected> {
    match packet::parse(datagram)? {
        Packet::Plain { kind, body } if kind == wanted => Ok(body),
        // What the questions before this one were answered with.
        Packet::Plain {
            kind: Kind::Ipmi | Kind::OpenResponse | Kind::Rakp2 | Kind::Rakp4, ..
        }
        | Packet::Sealed(_) => Err(Rejected::Late),
        Packet::Plain { .. } => Err(Rejected::Wrong(Wrong::Kind)),
    }
}

/// The content of an answer if it is to our question.
fn own<T>(answer: Answer<T>, tag: u8, console_sid: u32) -> Result<Result<T, Status>, Rejected> {
    if answer.tag < tag {
        return Err(Rejected::Late);
    }
    if answer.tag != tag {
        return Err(Rejected::Wrong(Wrong::Tag));
    }
    // A refusal may leave our number out, or set it to zero.
    let named = match answer.result {
        Ok(_) => answer.console_sid,
        Err(_) => answer.console_sid.filter(|sid| *sid != 0),
    };
    if named.is_some_and(|sid| sid != console_sid) {
        return Err(Rejected::Wrong(Wrong::Session));
    }
    Ok(answer.result)
}

/// Never 0, which means "no session".
fn random_sid<H: Host>(host: &H) -> u32 {
    let [a, b, c, d, ..] = random(host);
    u32::from_le_bytes([a, b, c, d]).max(1)
}
