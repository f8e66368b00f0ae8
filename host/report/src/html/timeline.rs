//! Every line of both runs, each with its rule, grade and journal row; those alike share one.

use super::opening::flag;
use crate::alike::{Group, Turn};
use crate::html::parts::{Context, Side, journal_id, linked_rules, section};
use crate::lanes::flag_label;
use crate::markup::Markup;
use crate::{Entry, Run, Weight, alike, spell};

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    section(out, ("timeline", "Timeline"), |out| {
        table(out, context, Side::With, &context.timeline.with);
        if let Some(without) = &context.timeline.without {
            out.element("details", &[("id", "without"), ("class", "fold")], |out| {
                let lines = format!("Without node-remedy: {} lines", without.entries.len());
                out.leaf("summary", &[], &lines);
                table(out, context, Side::Without, without);
            });
        }
    });
}

fn table(out: &mut Markup, context: &Context<'_>, side: Side, run: &Run) {
    let caption = match side {
        Side::With => "With node-remedy",
        Side::Without => "Without node-remedy",
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
        crate::html::parts::columns(table, &["", "Time", "Lane", "About", "What", "By"]);
        table.element("tbody", &[], |body| {
            for group in alike::groups(run, |entry| context.share.shows(entry.weight)) {
                group_row(body, context, side, &group);
            }
        });
    });
}

/// One line of the table: an entry, or what several say alike, with each of them inside.
fn group_row(body: &mut Markup, context: &Context<'_>, side: Side, group: &Group<'_>) {
    let Some(&(place, first)) = group.members.first() else { return };
    let (run, turns) = match (side, &context.timeline.without) {
        (Side::Without, Some(without)) => (without, &context.without),
        (Side::With | Side::Without, _) => (&context.timeline.with, &context.with),
    };
    let subjects = group.members.len();
    let id = context.line_id(side, place).filter(|_| subjects == 1);
    let mut attributes = vec![("class", class(first)), ("role", "row")];
    attributes.extend(id.as_deref().map(|id| ("id", id)));
    body.element("tr", &attributes, |row| {
        crate::html::parts::cell(row, "flags", |cell| {
            if let Some(number) = number_of(turns, place) {
                flag(cell, &flag_label(side.prefix(), number), first.weight);
            }
        });
        crate::html::parts::cell(row, "when", |cell| cell.text(&spell::clock(first.at_ms)));
        crate::html::parts::cell(row, "lane-name", |cell| cell.text(spell::lane(first.lane)));
        crate::html::parts::cell(row, "about", |cell| match subjects {
            1 => cell.text(&first.subject),
            several => cell.text(&spell::many(first.lane, several)),
        });
        crate::html::parts::cell(row, "text", |cell| {
            cell.text(&group.text);
            if subjects > 1 {
                each(cell, context, side, group);
            }
        });
        crate::html::parts::cell(row, "by", |cell| {
            if let Some(rule) = &first.rule {
                linked_rules(cell, rule);
                cell.text(" ");
            }
            if let Some(grade) = &first.grade {
                cell.leaf("span", &[("class", "grade")], grade);
                cell.text(" ");
            }
            if subjects == 1 {
                journal_link(cell, run, first);
            }
        });
    });
}

/// Every entry of a group, folded away.
fn each(cell: &mut Markup, context: &Context<'_>, side: Side, group: &Group<'_>) {
    let names: Vec<&str> = group.members.iter().map(|(_, entry)| entry.subject.as_str()).collect();
    cell.element("details", &[("class", "each")], |out| {
        out.leaf("summary", &[], &spell::names(&names));
        out.element("ul", &[], |list| {
            for &(place, entry) in &group.members {
                let id = context.line_id(side, place).unwrap_or_default();
                list.element("li", &[("id", &id)], |out| {
                    crate::html::parts::time(out, entry.at_ms);
                    out.text(" ");
                    out.leaf("b", &[], &entry.subject);
                    out.text(" ");
                    // The sentence stands above unless it is not quite the same.
                    if entry.text != group.text {
                        out.text(&entry.text);
                        out.text(" ");
                    }
                    journal_link(out, &context.timeline.with, entry);
                });
            }
        });
    });
}

fn journal_link(out: &mut Markup, run: &Run, entry: &Entry) {
    let Some((incident, number)) = &entry.journal else { return };
    let text = format!("{incident} #{number}");
    match journal_id(run, incident, *number) {
        Some(id) => {
            out.leaf("a", &[("class", "row-link"), ("href", &format!("#{id}"))], &text);
        }
        None => out.text(&text),
    }
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
