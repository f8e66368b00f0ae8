//! Every line of both runs, each with its rule, grade and journal row.

use super::opening::flag;
use super::{Context, Side, journal_id, linked_rules, section};
use crate::fold::Turn;
use crate::lanes::flag_label;
use crate::markup::Markup;
use crate::{Entry, Run, Weight, spell};

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    section(out, ("timeline", "Timeline"), |out| {
        table(out, context, Side::With, &context.story.with);
        if let Some(without) = &context.story.without {
            out.element("details", &[("id", "without"), ("class", "fold")], |out| {
                let lines = format!("Without node-remedy: {} lines", without.entries.len());
                out.leaf("summary", &[], &lines);
                table(out, context, Side::Without, without);
            });
        }
    });
}

fn table(out: &mut Markup, context: &Context<'_>, side: Side, run: &Run) {
    let (caption, turns) = match side {
        Side::With => ("With node-remedy", &context.with),
        Side::Without => ("Without node-remedy", &context.without),
    };
    let shows_detail = context.share.shows(Weight::Detail);
    let details = run.entries.iter().filter(|entry| entry.weight == Weight::Detail).count();
    if shows_detail && details > 0 {
        let id = format!("{}-detail", side.prefix());
        out.void("input", &[("type", "checkbox"), ("class", "detail-switch"), ("id", &id)]);
        out.leaf("label", &[("for", &id)], &format!("Show {details} details too"));
    }
    out.element("table", &[("class", "timeline"), ("role", "table")], |table| {
        table.leaf("caption", &[("class", "heard")], caption);
        super::columns(table, &["", "Time", "Lane", "About", "What", "By"]);
        table.element("tbody", &[], |body| {
            for (place, entry) in run.entries.iter().enumerate() {
                if let Some(id) = context.line_id(side, place) {
                    body.element(
                        "tr",
                        &[("id", &id), ("class", class(entry)), ("role", "row")],
                        |row| {
                            super::cell(row, "flags", |cell| {
                                if let Some(number) = number_of(turns, place) {
                                    flag(cell, &flag_label(side.prefix(), number), entry.weight);
                                }
                            });
                            line(row, run, entry);
                        },
                    );
                }
            }
        });
    });
}

fn line(row: &mut Markup, run: &Run, entry: &Entry) {
    super::cell(row, "when", |cell| cell.text(&spell::clock(entry.at_ms)));
    super::cell(row, "lane-name", |cell| cell.text(spell::lane(entry.lane)));
    super::cell(row, "about", |cell| cell.text(&entry.subject));
    super::cell(row, "text", |cell| cell.text(&entry.text));
    super::cell(row, "by", |cell| {
        if let Some(rule) = &entry.rule {
            linked_rules(cell, rule);
            cell.text(" ");
        }
        if let Some(grade) = &entry.grade {
            cell.leaf("span", &[("class", "grade")], grade);
            cell.text(" ");
        }
        if let Some((incident, number)) = &entry.journal {
            let text = format!("{incident} #{number}");
            match journal_id(run, incident, *number) {
                Some(id) => {
                    cell.leaf("a", &[("class", "row-link"), ("href", &format!("#{id}"))], &text);
                }
                None => cell.text(&text),
            }
        }
    });
}

fn class(entry: &Entry) -> &'static str {
    match entry.weight {
        Weight::Detail => "detail",
        Weight::Normal => "",
        Weight::Key => "key-row",
        Weight::Bad => "bad-row",
    }
}

fn number_of(turns: &[Turn<'_>], place: usize) -> Option<usize> {
    let has = |turn: &&Turn<'_>| turn.members.iter().any(|&(other, _)| other == place);
    turns.iter().find(has).map(|turn| turn.number)
}
