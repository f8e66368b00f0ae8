//! The swim-lanes as SVG: what controller, node, device, pods and volumes went through.
//!
//! Bars are states that lasted, numbered flags are turning points, a dashed line is a proof.
//! Deliberately not to scale: see [`axis`].

mod axis;
mod bars;
mod chart;
mod flags;
mod frame;
mod palette;
mod shapes;
mod theme;

pub(crate) use axis::Axis;
pub(crate) use chart::{Chart, Links};
pub(crate) use flags::flag_label;
pub(crate) use frame::Frame;
pub(crate) use palette::{STYLE, variables};

use crate::alike::Turn;
use crate::markup::Markup;
use crate::{Run, Timeline, alike, spell};

pub use theme::Theme;

/// The swim-lanes with and without node-remedy, and what their flags mean: one picture that
/// stands alone.
pub fn lanes_svg(timeline: &Timeline, theme: Theme) -> String {
    let axis = Axis::of(timeline);
    let mut body = Markup::default();
    let mut bottom = part(&mut body, 0.0, "With node-remedy", "w", &timeline.with, &axis);
    if let Some(without) = &timeline.without {
        bottom = part(&mut body, bottom + 14.0, "Without, same seed", "o", without, &axis);
    }
    let width = Frame::Picture.width();
    let view = format!("0 0 {width:.0} {bottom:.0}");
    let mut svg = Markup::default();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("viewBox", view.as_str()),
        ("role", "img"),
        ("aria-labelledby", "t d"),
        ("font-family", "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"),
    ];
    svg.element("svg", &attributes, |svg| {
        svg.leaf("title", &[("id", "t")], &timeline.with.outcome.verdict);
        svg.leaf("desc", &[("id", "d")], &timeline.inputs.title);
        svg.element("style", &[], |style| style.verbatim(&palette::standalone(theme)));
        svg.void("rect", &[("width", "100%"), ("height", "100%"), ("class", "paper")]);
        svg.append(&body);
    });
    svg.finish()
}

/// What the heading of a part takes before its sentence begins.
const HEADING_WIDTH: f64 = 172.0;

/// Where the words of a legend line begin, with a margin at the other end.
const LEGEND_X: f64 = 120.0;

/// A heading, a chart and its legend; returns where the next part may begin.
fn part(body: &mut Markup, top: f64, title: &str, id: &str, run: &Run, axis: &Axis) -> f64 {
    let turns = alike::turns(run);
    let chart =
        Chart { run, turns: &turns, axis, frame: Frame::Picture, links: Links::None, id }.draw();
    let width = Frame::Picture.width();
    let heading_y = format!("{:.0}", top + 24.0);
    body.element("text", &[("x", "16"), ("y", &heading_y), ("class", "heading")], |text| {
        text.leaf("tspan", &[("class", "strong")], title);
        let room = width - HEADING_WIDTH;
        text.leaf(
            "tspan",
            &[("dx", "10")],
            &shapes::fitting(&sentence(run), "", room).unwrap_or_default(),
        );
    });
    let chart_top = top + 34.0;
    let shift = format!("translate(0 {chart_top:.0})");
    body.element("g", &[("transform", &shift)], |body| body.append(&chart.body));
    legend(body, chart_top + chart.height + 6.0, id, &turns)
}

fn sentence(run: &Run) -> String {
    let facts = run.outcome.facts.iter().map(String::as_str);
    std::iter::once(run.outcome.verdict.as_str()).chain(facts).collect::<Vec<_>>().join(" · ")
}

fn legend(body: &mut Markup, top: f64, id: &str, turns: &[Turn<'_>]) -> f64 {
    let mut y = top;
    for turn in turns {
        let Some((_, first)) = turn.members.first() else { continue };
        y += 18.0;
        let at = format!("{y:.0}");
        body.element("text", &[("y", &at), ("class", "legend")], |text| {
            let label = flag_label(id, turn.number);
            text.leaf("tspan", &[("x", "30"), ("class", "strong"), ("text-anchor", "end")], &label);
            text.leaf("tspan", &[("x", "42"), ("class", "soft")], &spell::clock(first.at_ms));
            let names: Vec<&str> = turn.members.iter().map(|(_, e)| e.subject.as_str()).collect();
            let subject = spell::names(&names);
            text.leaf("tspan", &[("x", "96"), ("class", "strong")], &subject);
            let subject_width = shapes::px_letters(&subject);
            let room = Frame::Picture.width() - LEGEND_X - subject_width;
            let told = shapes::fitting(&turn.text, "", room).unwrap_or_default();
            text.leaf("tspan", &[("dx", "6")], &told);
        });
    }
    y + 14.0
}
