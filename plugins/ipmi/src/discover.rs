//! Which cipher suites to try, in which order.
//!
//! The BMC is asked for its authentication capabilities (06/38), which every BMC answers, and then for its
//! list (06/54), to which some say nothing: it gets a few round trips, and the wait for both is bounded to a
//! second. One question at a time: some BMCs break down under two. Without a list each suite is simply
//! tried: a BMC that lacks it says so.

use node_remedy_sdk::{Failure, FailureKind, Host};

use crate::codec::message::{self, Command, Response};
use crate::codec::packet::{self, Kind, Packet};
use crate::codec::suites::{Listed, parse_list};
use crate::codec::{Malformed, Suite};
use crate::limits;
use crate::link::Link;

const CAPABILITIES: Command = Command { netfn: 0x06, number: 0x38 };
const SUITES: Command = Command { netfn: 0x06, number: 0x54 };

/// This channel.
const CHANNEL: u8 = 0x0e;
/// In the channel byte: tell about IPMI 2.0 too. In the answer: there is something to tell.
const EXTENDED: u8 = 0x80;
/// In the answer's fourth byte: RMCP+ is spoken.
const SPEAKS_2_0: u8 = 0x02;
/// Administrator: the capabilities asked about.
const ADMINISTRATOR: u8 = 0x04;
/// List by cipher suite, not by algorithm.
const BY_SUITE: u8 = 0x80;
const IPMI_PAYLOAD: u8 = 0x00;
/// Records on a full page.
const PAGE: usize = 16;

/// Numbers of the two questions; the pages of the list count on from the second.
const CAPABILITIES_PAIR: u8 = 1;
const LIST_PAIR: u8 = 2;

/// What is to be tried.
pub(crate) struct Candidates {
    pub(crate) suites: Vec<Suite>,
    /// The BMC named them; otherwise they are guesses.
    pub(crate) listed: bool,
}

/// Asks the BMC.
pub(crate) fn candidates<H: Host>(link: &Link<'_, H>) -> Result<Candidates, Failure> {
    match list(link)? {
        None => Ok(Candidates { suites: Suite::ALL.to_vec(), listed: false }),
        Some(list) => {
            let offered = |suite: &Suite| list.iter().any(|listed| listed.is(*suite));
            let suites: Vec<_> = Suite::ALL.into_iter().filter(offered).collect();
            if suites.is_empty() {
                Err(none_in_common(&list))
            } else {
                Ok(Candidates { suites, listed: true })
            }
        }
    }
}

fn list<H: Host>(link: &Link<'_, H>) -> Result<Option<Vec<Listed>>, Failure> {
    let began_ms = link.now_ms();
    let mut pages = Pages::default();
    for wait_ms in limits::DISCOVER_WAITS_MS {
        let capabilities = [CHANNEL | EXTENDED, ADMINISTRATOR];
        if !link.heard() {
            let ask = message::request(CAPABILITIES, CAPABILITIES_PAIR, &capabilities);
            link.send(&packet::v15(&ask))?;
        }
        let mut until_ms = link.now_ms() + u64::from(wait_ms);
        for _ in 0..limits::DATAGRAMS_PER_WAIT_MAX {
            let Some(arrived) = link.receive(until_ms)? else { break };
            let Ok(response) = sessionless(&arrived) else { continue };
            link.saw_round_trip(began_ms);
            if response.command == CAPABILITIES && response.pair == CAPABILITIES_PAIR {
                check_version(&response)?;
                link.send(&pages.next_request())?;
                until_ms = until_ms.min(link.now_ms() + u64::from(grace_ms(link, began_ms)));
                continue;
            }
            match pages.take(&response) {
                Page::Foreign => {}
                Page::Refused => return Ok(None),
                Page::More => link.send(&pages.next_request())?,
                Page::Last => return Ok(Some(parse_list(&pages.records))),
            }
        }
        if link.heard() {
            // It is there and keeps quiet about its list: trying costs less than waiting.
            return Ok(None);
        }
    }
    Ok(None)
}

fn sessionless(datagram: &[u8]) -> Result<Response<'_>, Malformed> {
    match packet::parse(datagram)? {
        Packet::Plain { kind: Kind::Ipmi, body } => message::response(body),
        Packet::Plain { .. } | Packet::Sealed(_) => Err(Malformed::PayloadKind),
    }
}

fn check_version(response: &Response<'_>) -> Result<(), Failure> {
    match *response.data {
        // Only an answer that tells of its version and leaves 2.0 out is believed to lack it.
        [_, types, _, extended, ..] if response.completion == 0 => {
            if types & EXTENDED != 0 && extended & SPEAKS_2_0 != 0 {
                Ok(())
            } else {
                Err(Failure::new(
                    FailureKind::Unsupported,
                    "the BMC speaks IPMI 1.5 only, which protects nothing: it needs IPMI 2.0",
                ))
            }
        }
        _ => Ok(()),
    }
}

fn grace_ms<H: Host>(link: &Link<'_, H>, began_ms: u64) -> u32 {
    let round_trip_ms = u32::try_from(link.now_ms().saturating_sub(began_ms)).unwrap_or(u32::MAX);
    round_trip_ms
        .saturating_mul(limits::LIST_ROUND_TRIPS)
        .clamp(limits::LIST_GRACE_MIN_MS, limits::LIST_GRACE_MAX_MS)
}

fn none_in_common(list: &[Listed]) -> Failure {
    let numbers: Vec<_> = list.iter().map(|listed| listed.number.to_string()).collect();
    let offered = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
    Failure::new(
        FailureKind::Unsupported,
        format!(
            "the BMC offers of cipher suites only {offered}; 17 or 3 is needed, with authentication, \
             integrity and encryption: enable one of them on the BMC"
        ),
    )
}

/// The list, page by page.
#[derive(Default)]
struct Pages {
    records: Vec<u8>,
    next: u8,
}

enum Page {
    Foreign,
    Refused,
    More,
    Last,
}

impl Pages {
    fn next_request(&self) -> Vec<u8> {
        let data = [CHANNEL, IPMI_PAYLOAD, BY_SUITE | self.next];
        packet::plain(Kind::Ipmi, &message::request(SUITES, LIST_PAIR + self.next, &data))
    }

    fn take(&mut self, response: &Response<'_>) -> Page {
        if response.command != SUITES || response.pair != LIST_PAIR + self.next {
            return Page::Foreign;
        }
        let (0, [_channel, records @ ..]) = (response.completion, response.data) else {
            return Page::Refused;
        };
        self.records.extend(records.iter().take(PAGE));
        self.next += 1;
        if records.len() < PAGE || self.next >= limits::LIST_PAGES_MAX {
            Page::Last
        } else {
            Page::More
        }
    }
}
