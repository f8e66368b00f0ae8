//! The incidents: their journals, and what went over the wire.

use node_remedy_decide::{End, Operation, Time};
use node_remedy_record::sentences::by_name;
use node_remedy_report as report;
use node_remedy_report::{Direction, Incident, JournalRow};
use node_remedy_sandbox as sandbox;

use crate::decode;
use crate::recorder::{RecordedCall, what};
use crate::run::Played;
use crate::timeline::proof;
use crate::timeline::words::{journal, ms, state_word};

pub(super) fn incidents(played: &Played) -> Vec<Incident> {
    let collected = &played.collected;
    let told = collected.incidents.iter().map(|(name, (nodefence, plan, record))| {
        let parked = record.parked.as_ref().map(|parked| parked.reason.to_string());
        let row = |operation: &Operation| {
            let mut calls = collected.calls.iter();
            let call = calls.rfind(|call| call.nodefence == *name && call.number == operation.id.0);
            JournalRow {
                number: operation.id.0,
                intended_ms: ms(operation.intended_at),
                ended_ms: operation.ended_at.map(ms),
                what: what(plan, operation),
                end: end_words(operation.end.as_ref(), call),
                exchanges: call
                    .map(|call| exchanges(operation.intended_at, call))
                    .unwrap_or_default(),
            }
        };
        Incident {
            name: name.clone(),
            node: nodefence.spec.node.name.clone(),
            state: format!("{:?}", record.phase.state()),
            parked: parked.map(|text| by_name(&text, name, &nodefence.spec.node.name)),
            journal: journal(collected, name).map(row).collect(),
            proof: proof::proof(played, name, record),
        }
    });
    told.collect()
}

fn end_words(end: Option<&End>, call: Option<&RecordedCall>) -> String {
    match end {
        None => "not known yet".to_owned(),
        Some(End::Succeeded { state, .. }) => format!("read: {}", state_word(*state)),
        Some(End::Failed(failure)) => format!("failed: {}", failure.detail),
        Some(End::NotAttempted(failure)) => format!("not attempted: {}", failure.detail),
        Some(End::Indeterminate) => {
            format!("indeterminate: {}", call.map_or("nobody knows", |call| &call.detail))
        }
    }
}

fn exchanges(began: Time, call: &RecordedCall) -> Vec<report::Exchange> {
    let told = call.exchanges.iter().map(|exchange| report::Exchange {
        at_ms: ms(began).saturating_add(exchange.at_ms),
        direction: match exchange.direction {
            sandbox::Direction::Sent | sandbox::Direction::Farewell => Direction::Sent,
            sandbox::Direction::Received => Direction::Received,
        },
        hex: hex::encode(&exchange.bytes),
        decoded: decode::words(&exchange.bytes, exchange.plaintext.as_deref()),
        plaintext: exchange.plaintext.as_deref().map(hex::encode),
    });
    told.collect()
}
