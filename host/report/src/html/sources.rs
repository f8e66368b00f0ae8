//! What the page rests on: the journal with its datagrams, the rules, and all that is needed
//! to play the scenario again.

use std::collections::BTreeSet;

use super::citations::Line;
use super::wire::Bytes;
use super::{citations, wire};
use crate::html::parts::{Context, Share, section};
use crate::markup::Markup;
use crate::rules::{Piece, RULES, Rule};
use crate::{Incident, Inputs, JournalRow, Run, rules, spell};

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    let run = &context.timeline.with;
    if !run.incidents.is_empty() {
        section(out, ("journal", "Journal"), |out| {
            let note = "Each operation was written down before it was begun.";
            out.leaf("p", &[("class", "note")], note);
            for (place, incident) in run.incidents.iter().enumerate() {
                journal(out, context, place, incident);
            }
        });
    }
    section(out, ("rules", "Rules"), |out| write_rules(out, context));
    section(out, ("again", "Play it again"), |out| {
        inputs(out, &context.timeline.inputs);
        if let Some(left_out) = context.share.left_out() {
            let note = format!("To stay below 500 kB this page leaves out {left_out}.");
            out.leaf("p", &[("class", "note")], &note);
        }
    });
}

fn journal(out: &mut Markup, context: &Context<'_>, place: usize, incident: &Incident) {
    out.element("h3", &[("id", &format!("j{place}"))], |out| {
        out.text(&incident.name);
        out.text(" ");
        out.leaf("span", &[("class", "state-name")], &incident.state);
    });
    let proving = incident.proof.as_ref().map(|proof| proof.journal);
    for row in &incident.journal {
        let is_proving = proving == Some(row.number);
        let shows_exchanges = context.share == Share::Everything || is_proving;
        let id = format!("j{place}-{}", row.number);
        let lines = citations::of_row(context, &incident.name, row.number);
        if row.exchanges.is_empty() || !shows_exchanges {
            out.element("div", &[("class", "op"), ("id", &id)], |out| summary(out, row, &lines));
            continue;
        }
        out.element("details", &[("class", "op"), ("id", &id)], |out| {
            out.element("summary", &[], |out| summary(out, row, &lines));
            wire::table(out, &row.exchanges, Bytes::All, |caption| {
                caption.text("On the wire. ");
                citations::write(caption, "In the timeline at", &lines);
            });
        });
    }
}

fn summary(out: &mut Markup, row: &JournalRow, lines: &[Line]) {
    out.leaf("span", &[("class", "op-number")], &format!("#{}", row.number));
    out.leaf("span", &[("class", "time")], &spell::clock_ms(row.intended_ms));
    out.leaf("b", &[], &row.what);
    out.leaf("span", &[("class", "op-end")], &row.end);
    let took = row.ended_ms.map_or_else(
        || String::from("end not known"),
        |ended| format!("took {}", spell::span(ended.saturating_sub(row.intended_ms))),
    );
    out.leaf("span", &[("class", "soft-text")], &took);
    if !row.exchanges.is_empty() {
        let datagrams = format!("{} datagrams", row.exchanges.len());
        out.leaf("span", &[("class", "soft-text")], &datagrams);
    }
    citations::write(out, "timeline", lines);
}

/// The rules that the page names somewhere.
fn cited(context: &Context<'_>) -> BTreeSet<&'static str> {
    let of_run = |run: &'_ Run| -> Vec<&'static str> {
        let by_entries = run.entries.iter().filter_map(|entry| entry.rule.as_deref());
        let by_refusals = run.refusals.iter().map(|refusal| refusal.rule.as_str());
        let named = by_entries.chain(by_refusals).flat_map(rules::pieces);
        named
            .filter_map(|piece| match piece {
                Piece::Rule(id) => Some(id),
                Piece::Text(_) => None,
            })
            .collect()
    };
    let runs = std::iter::once(&context.timeline.with).chain(&context.timeline.without);
    runs.flat_map(of_run).collect()
}

fn write_rules(out: &mut Markup, context: &Context<'_>) {
    let cited = cited(context);
    let (named, others): (Vec<&Rule>, Vec<&Rule>) =
        RULES.iter().partition(|rule| cited.contains(rule.id));
    list(out, context, &named);
    out.element("details", &[("class", "fold")], |out| {
        out.leaf("summary", &[], &format!("{} more that this run did not need", others.len()));
        list(out, context, &others);
    });
}

fn list(out: &mut Markup, context: &Context<'_>, rules: &[&Rule]) {
    if rules.is_empty() {
        return;
    }
    out.element("dl", &[("class", "rules")], |out| {
        for rule in rules {
            out.leaf("dt", &[("id", &format!("rule-{}", rule.id))], rule.id);
            out.element("dd", &[], |out| {
                out.text(rule.meaning);
                out.text(" ");
                citations::write(out, "Cited at", &citations::of_rule(context, rule.id));
            });
        }
    });
}

fn inputs(out: &mut Markup, inputs: &Inputs) {
    out.element("p", &[], |out| {
        out.leaf("code", &[], "node-remedy simulate --verify REPORT");
        out.text(" plays the scenario again from what this page carries, and compares.");
    });
    out.element("table", &[("class", "inputs"), ("role", "table")], |table| {
        crate::html::parts::columns(table, &["What", "Version or value", "sha256"]);
        table.element("tbody", &[], |body| {
            fact(body, "node-remedy", &inputs.version, "");
            for plugin in &inputs.plugins {
                fact(body, &format!("plugin {}", plugin.name), &plugin.version, &plugin.digest);
            }
            fact(body, "seed", &inputs.seed.to_string(), "");
            fact(body, "starts", &date(inputs.start_unix_ms), "");
            fact(body, "scenario", &inputs.name, &inputs.scenario_digest);
        });
    });
    out.element("details", &[("class", "fold")], |out| {
        out.leaf("summary", &[], "The scenario, with its configuration");
        out.element("pre", &[("tabindex", "0")], |pre| pre.block(&inputs.scenario));
    });
}

fn fact(body: &mut Markup, name: &str, value: &str, digest: &str) {
    body.element("tr", &[("role", "row")], |row| {
        row.leaf("th", &[("scope", "row"), ("role", "rowheader")], name);
        crate::html::parts::cell(row, "", |cell| cell.text(value));
        crate::html::parts::cell(row, "digest", |cell| cell.text(digest));
    });
}

fn date(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().map(jiff::Timestamp::from_millisecond);
    match time {
        Some(Ok(time)) => time.to_string(),
        Some(Err(_)) | None => format!("{unix_ms} ms since 1970"),
    }
}
