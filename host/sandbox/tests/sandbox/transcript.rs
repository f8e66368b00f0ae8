//! The transcript of a call: all that the plugin saw and nothing that is the host's, and enough to make the
//! same call with nobody there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_sandbox::net::{Fabric, MemoryNet, Replay};
use node_remedy_sandbox::transcript::{Event, Happened, Part};
use node_remedy_sandbox::{Action, Call, CallReport, ExchangeRecord, Seams};

use crate::guest::{COMMUNITY, HOSTILE, PASSWORD, World, call};
use crate::login::{Room, session};

fn whole(call: Call) -> Call {
    Call { exchange_record: ExchangeRecord::Whole, ..call }
}

/// The same call on what was said in another one.
async fn again(call: Call, events: &[Event]) -> CallReport {
    let grants = call.grants.clone().for_replay();
    let net = Arc::new(Replay::new(events, &grants, call.credentials.clone()));
    let seams = Seams { net, ..World::new().seams };
    HOSTILE.call(whole(Call { grants, ..call }), &seams).await
}

fn asked(events: &[Event]) -> Vec<&Happened> {
    events.iter().map(|event| &event.what).filter(|what| what.is_asked()).collect()
}

/// Logins, tokens and passwords are the host's: none is in a transcript, and none is needed to play it.
#[tokio::test(start_paused = true)]
async fn a_transcript_holds_no_login_and_plays_without_one() {
    let room = Room::new();
    let there = || Room::call(&session(), &[("look-for", "token-0001")]);
    let report = HOSTILE.call(whole(there()), &room.seams).await;
    let events = &report.transcript.events;
    assert_eq!(events.len(), 2, "what the plugin asked, and its answer: {events:?}");
    let said = format!("{events:?}");
    for secret in [PASSWORD, "token-0001", "SessionService"] {
        assert!(!said.contains(secret), "{said}");
    }
    let played = again(there(), events).await;
    assert_eq!(played.transcript, report.transcript, "to the millisecond");
    assert_eq!(played.result, report.result);
    // Nothing is kept where nothing is wanted.
    let report = HOSTILE.call(there(), &room.seams).await;
    assert!(report.transcript.events.is_empty());
}

/// What the plugin was allowed to see goes over the wire, and stands in the transcript by its name.
#[tokio::test(start_paused = true)]
async fn a_revealed_secret_is_in_a_datagram_by_name() {
    let world = World::new();
    let report = HOSTILE.call(whole(call(Action::Status, "leak")), &world.seams).await;
    assert!(world.device.heard().iter().any(|text| text.contains(COMMUNITY)), "it was sent");
    let events = &report.transcript.events;
    let named = Part::Secret("community".to_owned());
    let by_name =
        |event: &Event| matches!(&event.what, Happened::Sent(parts) if parts.contains(&named));
    assert!(events.iter().any(by_name), "{events:?}");
    let said = format!("{events:?}");
    let bytes = format!("{:?}", COMMUNITY.as_bytes());
    assert!(!said.contains(bytes.trim_matches(['[', ']'])), "{said}");
    let played = again(call(Action::Status, "leak"), events).await;
    assert_eq!(played.transcript, report.transcript);
}

/// A device that loses the first datagram and answers the second after 400 ms.
#[derive(Default)]
struct Lossy(std::sync::atomic::AtomicU32);

impl Fabric for Lossy {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        let heard = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if heard == 0 { Vec::new() } else { vec![(Duration::from_millis(400), b"done".to_vec())] }
    }
}

/// What nobody answered is not answered either when it is played, and what is asked beyond the transcript
/// is asked of nobody.
#[tokio::test(start_paused = true)]
async fn silence_is_played_as_silence_and_a_transcript_has_an_end() {
    let seams =
        Seams { net: Arc::new(MemoryNet::new(Arc::<Lossy>::default())), ..World::new().seams };
    let report = HOSTILE.call(whole(call(Action::Off, "act")), &seams).await;
    let played = again(call(Action::Off, "act"), &report.transcript.events).await;
    assert_eq!(played.transcript, report.transcript);
    assert_eq!(played.result, report.result);

    let world = World::new();
    let report = HOSTILE.call(whole(call(Action::Off, "act")), &world.seams).await;
    let events = &report.transcript.events;
    let played = again(call(Action::Off, "act"), &[]).await;
    assert_eq!(asked(&played.transcript.events).first(), asked(events).first());
    assert_ne!(played.result, report.result, "nobody answered");
}
