//! The first screen: the verdict and the swim-lanes.

use crate::alike::Turn;
use crate::html::parts::{Context, Side, section};
use crate::lanes::{Axis, Chart, Frame, Links, flag_label};
use crate::markup::Markup;
use crate::{Run, Weight, spell};

pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    let timeline = context.timeline;
    out.element("header", &[], |out| {
        let outcome = &timeline.with.outcome;
        let kicker = format!("{} · seed {}", timeline.inputs.name, timeline.inputs.seed);
        out.leaf("p", &[("class", "kicker")], &kicker);
        out.leaf("h1", &[], &outcome.verdict);
        out.leaf("p", &[("class", "facts")], &outcome.facts.join(" · "));
        out.leaf("p", &[("class", "lead")], &timeline.inputs.title);
        if !outcome.as_expected {
            out.element("div", &[("class", "missed")], |out| {
                out.leaf("p", &[], "This is not what the scenario expected:");
                out.element("ul", &[], |list| {
                    for missed in &outcome.missed {
                        list.leaf("li", &[], missed);
                    }
                });
            });
        }
    });
    section(out, ("lanes", "What happened"), |out| {
        let axis = Axis::of(timeline);
        figure(out, context, Side::With, &timeline.with, &axis);
        if let Some(without) = &timeline.without {
            figure(out, context, Side::Without, without, &axis);
        }
        let note = "Both pictures share one time axis, stretched where much happens. \
                    A pointed end means that the state goes on.";
        out.leaf("p", &[("class", "note")], note);
    });
}

fn figure(out: &mut Markup, context: &Context<'_>, side: Side, run: &Run, axis: &Axis) {
    let (title, turns) = match side {
        Side::With => ("With node-remedy", &context.with),
        Side::Without => ("Without it, same seed", &context.without),
    };
    out.element("figure", &[], |out| {
        out.element("figcaption", &[], |out| {
            out.leaf("strong", &[], title);
            // The verdict of the run with node-remedy is the page's headline already.
            if side == Side::Without {
                out.text(" ");
                let mut told = vec![run.outcome.verdict.as_str()];
                told.extend(run.outcome.facts.iter().map(String::as_str));
                out.text(&told.join(" · "));
            }
        });
        for (frame, class) in [(Frame::Wide, "wide"), (Frame::Narrow, "narrow")] {
            let id = format!("{}-{class}", side.prefix());
            let links = Links::Entries(side.prefix());
            Chart { run, turns, axis, frame, links, id: &id }.svg(out, class, title);
        }
    });
}

/// What the flags mean, those of the run without node-remedy under a heading of their own.
pub(super) fn legends(out: &mut Markup, context: &Context<'_>) {
    section(out, ("turning-points", "Turning points"), |out| {
        legend(out, Side::With, &context.with);
        if !context.without.is_empty() {
            out.leaf("h3", &[], "Without node-remedy");
            legend(out, Side::Without, &context.without);
        }
    });
}

fn legend(out: &mut Markup, side: Side, turns: &[Turn<'_>]) {
    if turns.is_empty() {
        return;
    }
    out.element("ul", &[("class", "legend-list")], |out| {
        for turn in turns {
            let Some((place, first)) = turn.members.first() else { continue };
            out.element("li", &[], |out| {
                let label = flag_label(side.prefix(), turn.number);
                flag(out, &label, first.weight);
                crate::html::parts::time(out, first.at_ms);
                let names: Vec<&str> =
                    turn.members.iter().map(|(_, e)| e.subject.as_str()).collect();
                let href = format!("#{}{place}", side.prefix());
                out.element("a", &[("class", "plain"), ("href", &href)], |out| {
                    out.leaf("b", &[], &spell::names(&names));
                    out.text(" ");
                    out.text(&turn.text);
                });
            });
        }
    });
}

/// The flag of a turning point as in the picture, and in words for those who hear it.
pub(super) fn flag(out: &mut Markup, label: &str, weight: Weight) {
    let class = match weight {
        Weight::Bad => "mark bad-mark",
        Weight::Key | Weight::Normal | Weight::Detail => "mark",
    };
    out.element("span", &[("class", class)], |out| {
        out.leaf("span", &[("class", "heard")], &format!("{} ", spell::weight(weight)));
        out.text(label);
    });
}
