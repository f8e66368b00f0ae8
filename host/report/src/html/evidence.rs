//! Why it was allowed to act, and why it did not: proofs, refusals, parked incidents.

use super::wire::Bytes;
use super::{citations, wire};
use crate::html::parts::{Context, linked_rules, section};
use crate::markup::Markup;
use crate::{Exchange, Incident, JournalRow, Proof, alike, spell};

/// The card shows this many datagrams, the last ones: three questions, their answers, and the
/// end of a session. The journal has all.
const CARD_EXCHANGES_MAX: usize = 8;

/// More nodes than this are not listed one by one on a card.
const CARD_NODES_MAX: usize = 60;

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    let run = &context.timeline.with;
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
    let refusals = alike::refusals(run);
    let parked = || run.incidents.iter().enumerate().filter(|(_, one)| one.parked.is_some());
    if refusals.is_empty() && parked().next().is_none() {
        return;
    }
    section(out, ("why-not", "Why not"), |out| {
        for (place, incident) in parked() {
            parked_card(out, place, incident);
        }
        for group in &refusals {
            refusal_card(out, context, group);
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
                crate::html::parts::time(out, proof.read_ms);
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
            card_exchanges(out, &format!("#j{place}-{}", row.number), row);
        }
    });
}

fn term(out: &mut Markup, name: &str, inside: impl FnOnce(&mut Markup)) {
    out.leaf("dt", &[], name);
    out.element("dd", &[], inside);
}

fn card_exchanges(out: &mut Markup, href: &str, row: &JournalRow) {
    let shown = telling(&row.exchanges);
    let (count, all) = (shown.len(), row.exchanges.len());
    if !shown.is_empty() {
        wire::table(out, shown, Bytes::Told, |caption| {
            caption.text(&format!("On the wire: the last {count} of {all} datagrams"));
        });
    }
    out.element("p", &[("class", "note")], |out| {
        let text = match all {
            0 => format!("journal row {}", row.number),
            _ => format!("journal row {}, all {all} datagrams", row.number),
        };
        out.leaf("a", &[("href", href)], &text);
    });
}

/// The end of an exchange, from where the session stands: what comes before only opens it.
fn telling(exchanges: &[Exchange]) -> &[Exchange] {
    let opening = exchanges.iter().position(|exchange| exchange.plaintext.is_some());
    let inside = exchanges.get(opening.unwrap_or(0)..).unwrap_or_default();
    let before = inside.len().saturating_sub(CARD_EXCHANGES_MAX);
    inside.get(before..).unwrap_or_default()
}

fn refusal_card(out: &mut Markup, context: &Context<'_>, group: &alike::Refusals<'_>) {
    let together = &group.together;
    let nodes = group.nodes();
    out.element("article", &[("class", "card")], |out| {
        out.leaf("h3", &[], &together.guard);
        out.leaf("p", &[("class", "numbers")], &together.numbers);
        out.element("p", &[], |out| {
            out.leaf("b", &[], &spell::names(&nodes));
            out.text(": ");
            out.text(&spell::refusal_span(together));
            out.text(" · ");
            linked_rules(out, &together.rule);
            out.text(" ");
            citations::write(out, "timeline", &citations::of_refusals(context, group));
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

fn each_node(out: &mut Markup, group: &alike::Refusals<'_>) {
    out.element("table", &[("role", "table")], |table| {
        crate::html::parts::columns(table, &["Node", "First", "Last", "Times", "Why"]);
        table.element("tbody", &[], |body| {
            for refusal in group.members.iter().take(CARD_NODES_MAX) {
                body.element("tr", &[("role", "row")], |row| {
                    crate::html::parts::cell(row, "", |cell| cell.text(&refusal.node));
                    crate::html::parts::cell(row, "when", |cell| {
                        cell.text(&spell::clock(refusal.first_ms));
                    });
                    crate::html::parts::cell(row, "when", |cell| {
                        cell.text(&spell::clock(refusal.last_ms));
                    });
                    crate::html::parts::cell(row, "when", |cell| {
                        cell.text(&refusal.times.to_string());
                    });
                    crate::html::parts::cell(row, "", |cell| cell.text(&refusal.numbers));
                });
            }
        });
    });
    let more = group.members.len().saturating_sub(CARD_NODES_MAX);
    if more > 0 {
        out.leaf("p", &[("class", "note")], &format!("and {more} more"));
    }
}

fn parked_card(out: &mut Markup, place: usize, incident: &Incident) {
    let Some(reason) = &incident.parked else { return };
    let says = |row: &&JournalRow| row.exchanges.iter().any(|one| one.plaintext.is_some());
    let last = incident.journal.iter().rev().find(says);
    out.element("article", &[("class", "card")], |out| {
        out.element("h3", &[], |out| {
            out.text("Parked: ");
            let href = format!("#j{place}");
            out.leaf("a", &[("class", "plain"), ("href", &href)], &incident.name);
        });
        next_step(out, reason);
        if let Some(row) = last {
            out.element("p", &[], |out| {
                out.text("The last word of the device: ");
                out.leaf("b", &[], &row.end);
            });
            card_exchanges(out, &format!("#j{place}-{}", row.number), row);
        }
    });
}

fn next_step(out: &mut Markup, text: &str) {
    out.leaf("p", &[("class", "next")], text);
}
