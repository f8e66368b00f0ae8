//! Why it was allowed to act, and why it did not: proofs, refusals, parked incidents.

use super::{Context, linked_rules, section};
use crate::fold;
use crate::markup::Markup;
use crate::{Direction, Exchange, Incident, JournalRow, Proof, spell};

/// The card shows this many datagrams, the last ones: what comes before only opens the
/// session, and the journal has all.
const CARD_EXCHANGES_MAX: usize = 6;

/// More nodes than this are not listed one by one on a card.
const CARD_NODES_MAX: usize = 60;

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    let run = &context.story.with;
    let proofs: Vec<(usize, &Incident, &Proof)> = run
        .incidents
        .iter()
        .enumerate()
        .filter_map(|(place, incident)| Some((place, incident, incident.proof.as_ref()?)))
        .collect();
    if !proofs.is_empty() {
        section(out, ("proof", "Why it was allowed"), |out| {
            for (place, incident, proof) in proofs {
                proof_card(out, place, incident, proof);
            }
        });
    }
    let refusals = fold::refusals(run);
    let parked: Vec<&Incident> =
        run.incidents.iter().filter(|incident| incident.parked.is_some()).collect();
    if refusals.is_empty() && parked.is_empty() {
        return;
    }
    section(out, ("why-not", "Why not"), |out| {
        for group in &refusals {
            refusal_card(out, group);
        }
        for incident in parked {
            parked_card(out, incident);
        }
    });
}

fn proof_card(out: &mut Markup, place: usize, incident: &Incident, proof: &Proof) {
    let row = incident.journal.iter().find(|row| row.number == proof.journal);
    out.element("article", &[("class", "card proof-card")], |out| {
        out.element("h3", &[], |out| {
            out.text(&incident.node);
            out.text(": ");
            out.leaf("span", &[("class", "grade")], &proof.grade);
        });
        out.element("dl", &[], |out| {
            term(out, "Read", |out| {
                super::time(out, proof.read_ms);
                out.text(" by ");
                out.text(&proof.reader);
            });
            term(out, "Found", |out| {
                out.element("ul", &[], |list| {
                    for fact in &proof.facts {
                        list.leaf("li", &[], fact);
                    }
                });
            });
            term(out, "So", |out| out.text(&proof.because));
            term(out, "Released", |out| out.leaf("b", &[], &proof.released));
        });
        if let Some(row) = row {
            card_exchanges(out, place, row);
        }
    });
}

fn term(out: &mut Markup, name: &str, inside: impl FnOnce(&mut Markup)) {
    out.leaf("dt", &[], name);
    out.element("dd", &[], inside);
}

fn card_exchanges(out: &mut Markup, place: usize, row: &JournalRow) {
    let before = row.exchanges.len().saturating_sub(CARD_EXCHANGES_MAX);
    let shown = row.exchanges.get(before..).unwrap_or_default();
    if !shown.is_empty() {
        exchanges(out, shown, &format!("On the wire, the last {} datagrams", shown.len()));
    }
    out.element("p", &[("class", "note")], |out| {
        let href = format!("#j{place}-{}", row.number);
        let text = match row.exchanges.len() {
            0 => format!("journal row {}", row.number),
            all => format!("journal row {}, all {all} datagrams", row.number),
        };
        out.leaf("a", &[("href", &href)], &text);
    });
}

/// A table of datagrams.
pub(super) fn exchanges(out: &mut Markup, exchanges: &[Exchange], caption: &str) {
    out.element("table", &[("class", "wire"), ("role", "table")], |table| {
        table.leaf("caption", &[], caption);
        super::columns(table, &["Time", "Way", "Meaning and bytes"]);
        table.element("tbody", &[], |body| {
            for exchange in exchanges {
                body.element("tr", &[("role", "row")], |row| {
                    super::cell(row, "when", |cell| cell.text(&spell::clock_ms(exchange.at_ms)));
                    let (sign, way) = match exchange.direction {
                        Direction::Sent => ("→", "sent"),
                        Direction::Received => ("←", "received"),
                    };
                    super::cell(row, "way", |cell| {
                        cell.leaf("span", &[("aria-hidden", "true")], sign);
                        cell.leaf("span", &[("class", "heard")], way);
                    });
                    super::cell(row, "what", |cell| {
                        let meaning = exchange.decoded.as_deref().unwrap_or("not decoded");
                        cell.leaf("span", &[("class", "meaning")], meaning);
                        cell.leaf("code", &[], &exchange.hex);
                    });
                });
            }
        });
    });
}

fn refusal_card(out: &mut Markup, group: &fold::Refusals<'_>) {
    let together = group.together();
    let nodes = group.nodes();
    out.element("article", &[("class", "card")], |out| {
        out.leaf("h3", &[], &together.guard);
        out.leaf("p", &[("class", "numbers")], &together.numbers);
        out.element("p", &[], |out| {
            out.leaf("b", &[], &spell::names(&nodes));
            out.text(": ");
            out.text(&spell::refusal_span(&together));
            out.text(" · ");
            linked_rules(out, &together.rule);
        });
        if let Some(next) = &together.next {
            next_step(out, next);
        }
        if nodes.len() > 1 {
            out.element("details", &[], |out| {
                out.leaf("summary", &[], "Node by node");
                each_node(out, group);
            });
        }
    });
}

fn each_node(out: &mut Markup, group: &fold::Refusals<'_>) {
    out.element("table", &[("role", "table")], |table| {
        super::columns(table, &["Node", "First", "Last", "Times"]);
        table.element("tbody", &[], |body| {
            for refusal in group.members.iter().take(CARD_NODES_MAX) {
                body.element("tr", &[("role", "row")], |row| {
                    super::cell(row, "", |cell| cell.text(&refusal.node));
                    super::cell(row, "when", |cell| cell.text(&spell::clock(refusal.first_ms)));
                    super::cell(row, "when", |cell| cell.text(&spell::clock(refusal.last_ms)));
                    super::cell(row, "when", |cell| cell.text(&refusal.times.to_string()));
                });
            }
        });
    });
    let more = group.members.len().saturating_sub(CARD_NODES_MAX);
    if more > 0 {
        out.leaf("p", &[("class", "note")], &format!("and {more} more"));
    }
}

fn parked_card(out: &mut Markup, incident: &Incident) {
    let Some(reason) = &incident.parked else { return };
    out.element("article", &[("class", "card")], |out| {
        out.element("h3", &[], |out| {
            out.text("Parked: ");
            out.text(&incident.name);
        });
        next_step(out, reason);
    });
}

fn next_step(out: &mut Markup, text: &str) {
    out.leaf("p", &[("class", "next")], text);
}
