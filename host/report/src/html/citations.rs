//! The way back up: which lines of the timeline rest on a journal row, a refusal or a rule.

use crate::alike::Refusals;
use crate::html::parts::{Context, Side};
use crate::markup::Markup;
use crate::rules::Piece;
use crate::{Entry, rules, spell};

/// More lines than this are only counted: a rule may stand behind half the run.
const LINES_MAX: usize = 5;

/// A line of the timeline of the run with node-remedy.
pub(super) struct Line {
    id: String,
    at_ms: u64,
}

/// The lines that rest on a journal row.
pub(super) fn of_row(context: &Context<'_>, incident: &str, number: u32) -> Vec<Line> {
    lines(context, |entry| {
        entry.journal.as_ref().is_some_and(|(name, row)| name == incident && *row == number)
    })
}

/// The lines that a rule decided.
pub(super) fn of_rule(context: &Context<'_>, id: &str) -> Vec<Line> {
    lines(context, |entry| {
        let named = entry.rule.as_deref().map(rules::pieces).unwrap_or_default();
        named.iter().any(|piece| matches!(piece, Piece::Rule(other) if *other == id))
    })
}

/// The lines that tell of refusals first.
pub(super) fn of_refusals(context: &Context<'_>, group: &Refusals<'_>) -> Vec<Line> {
    lines(context, |entry| {
        group.members.iter().any(|refusal| {
            (entry.at_ms, &entry.subject) == (refusal.first_ms, &refusal.node)
                && entry.text.contains(&refusal.numbers)
        })
    })
}

fn lines(context: &Context<'_>, is_meant: impl Fn(&Entry) -> bool) -> Vec<Line> {
    let entries = context.timeline.with.entries.iter().enumerate();
    let meant = entries.filter(|(_, entry)| is_meant(entry));
    let line = |(place, entry): (usize, &Entry)| {
        Some(Line { id: context.line_id(Side::With, place)?, at_ms: entry.at_ms })
    };
    meant.filter_map(line).collect()
}

/// The times of the lines, each a link, after `before`; nothing where there are none.
pub(super) fn write(out: &mut Markup, before: &str, lines: &[Line]) {
    if lines.is_empty() {
        return;
    }
    out.element("span", &[("class", "soft-text cited")], |out| {
        out.text(before);
        for (place, line) in lines.iter().take(LINES_MAX).enumerate() {
            out.text(if place == 0 { " " } else { ", " });
            let href = format!("#{}", line.id);
            out.leaf("a", &[("href", &href)], &spell::clock(line.at_ms));
        }
        let more = lines.len().saturating_sub(LINES_MAX);
        if more > 0 {
            out.text(&format!(" and {more} more"));
        }
    });
}
