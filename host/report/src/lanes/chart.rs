//! One run's lanes, drawn for one width: rows of names, bars and flags over one axis.

use super::Axis;
use super::frame::Frame;
use super::shapes::{LETTER_WIDTH, label, px, px_letters, rule, upright};
use crate::alike::Turn;
use crate::fold::Row;
use crate::markup::Markup;
use crate::{Lane, Run, fold, spell};

/// Where the flags lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// Nowhere: a picture.
    None,
    /// To the entry's line in the timeline of the page, whose ids begin so.
    Entries(&'static str),
}

/// What to draw.
pub(crate) struct Chart<'a> {
    /// The run.
    pub(crate) run: &'a Run,
    /// Its turning points.
    pub(crate) turns: &'a [Turn<'a>],
    /// The axis of the timeline.
    pub(crate) axis: &'a Axis,
    /// The width.
    pub(crate) frame: Frame,
    /// Where flags lead.
    pub(crate) links: Links,
    /// Begins with `w` for the run with node-remedy and `o` for the one without.
    pub(crate) id: &'a str,
}

/// What was drawn, for whoever puts it into an `svg`.
pub(crate) struct Drawn {
    /// The shapes.
    pub(crate) body: Markup,
    /// The height in pixels.
    pub(crate) height: f64,
}

const ROW_GAP: f64 = 6.0;
const NAME_HEIGHT: f64 = 16.0;
const NAME_LETTERS_MAX: usize = 17;
const TICK_WIDTH: f64 = 62.0;

impl Chart<'_> {
    /// Draws it from y = 0 on.
    pub(crate) fn draw(&self) -> Drawn {
        let lanes = fold::lanes(self.run);
        let mut rows = Markup::default();
        let top = if self.has_proof() { 18.0 } else { 4.0 };
        let mut y = top;
        for (number, (lane, lane_rows)) in lanes.iter().enumerate() {
            if number > 0 {
                self.line(&mut rows, y, "rule");
                y += ROW_GAP;
            }
            y = self.lane(&mut rows, y, *lane, lane_rows);
        }
        let mut body = Markup::default();
        self.ticks(&mut body, top, y);
        body.append(&rows);
        self.proofs(&mut body, top, y);
        Drawn { body, height: y + 20.0 }
    }

    /// Draws it as an `svg` element of its own, with title and description.
    pub(crate) fn svg(&self, markup: &mut Markup, class: &str, title: &str) {
        let drawn = self.draw();
        let (title_id, desc_id) = (format!("{}-t", self.id), format!("{}-d", self.id));
        let labelled = format!("{title_id} {desc_id}");
        let view = format!("0 0 {:.0} {:.0}", self.frame.width(), drawn.height);
        let attributes = [
            ("class", class),
            ("viewBox", view.as_str()),
            ("role", "group"),
            ("aria-labelledby", labelled.as_str()),
        ];
        markup.element("svg", &attributes, |svg| {
            svg.leaf("title", &[("id", &title_id)], title);
            let desc = "Swim-lanes over time: bars are states, numbered flags are turning \
                        points; the list that follows tells the same in words.";
            svg.leaf("desc", &[("id", &desc_id)], desc);
            svg.append(&drawn.body);
        });
    }

    pub(super) fn x(&self, at_ms: u64) -> f64 {
        let (left, right) = (self.frame.left(), self.frame.right());
        left + (right - left) * self.axis.place(at_ms)
    }

    fn has_proof(&self) -> bool {
        self.run.incidents.iter().any(|incident| incident.proof.is_some())
    }

    fn lane(&self, out: &mut Markup, top: f64, lane: Lane, rows: &[Row<'_>]) -> f64 {
        let mut y = top;
        if self.frame.is_narrow() {
            label(out, "lane", self.frame.lane_x(), y + 12.0, spell::lane_heading(lane));
            y += NAME_HEIGHT;
        } else {
            let strip = rows.first().map_or(0.0, |row| self.strip(lane, row));
            label(out, "lane", self.frame.lane_x(), y + strip + 14.0, spell::lane_heading(lane));
        }
        for row in rows {
            y = self.row(out, y, lane, row) + ROW_GAP;
        }
        y
    }

    fn row(&self, out: &mut Markup, top: f64, lane: Lane, row: &Row<'_>) -> f64 {
        let (name, title) = name_of(lane, row);
        let flags = self.flags(lane, row);
        let mut y = top;
        if self.frame.is_narrow() {
            self.name(out, y + 12.0, &name, &title);
            y += NAME_HEIGHT;
        }
        if !flags.is_empty() {
            self.draw_flags(out, y, &flags);
            y += FLAG_STRIP;
        }
        if !self.frame.is_narrow() {
            self.name(out, y + 14.0, &name, &title);
        }
        match row {
            Row::One(subject) => self.one(out, y, subject),
            Row::Bundle(subjects) => self.bundle(out, y, subjects),
            Row::Quiet(quiet) => self.quiet(out, y, quiet),
        }
    }

    fn name(&self, out: &mut Markup, y: f64, name: &str, title: &str) {
        let (x, y) = (px(self.frame.name_x()), px(y));
        out.element("text", &[("x", &x), ("y", &y), ("class", "row soft")], |text| {
            text.leaf("title", &[], title);
            text.text(&shortened(name));
        });
    }

    pub(super) fn proof_places(&self) -> impl Iterator<Item = f64> {
        let proofs = self.run.incidents.iter().filter_map(|incident| incident.proof.as_ref());
        proofs.map(|proof| self.x(proof.read_ms))
    }

    fn ticks(&self, out: &mut Markup, top: f64, bottom: f64) {
        let (left, right) = (self.frame.left(), self.frame.right());
        for time in self.axis.ticks(TICK_WIDTH / (right - left)) {
            let x = self.x(time);
            upright(out, "grid", x, (top, bottom));
            let text = spell::clock(time);
            let width = px_letters(&text);
            let shown_x = (x - width / 2.0).clamp(left, right - width);
            label(out, "tick", shown_x, bottom + 14.0, &text);
        }
    }

    fn proofs(&self, out: &mut Markup, top: f64, bottom: f64) {
        let mut free_from = f64::MIN;
        for proof in self.run.incidents.iter().filter_map(|incident| incident.proof.as_ref()) {
            let x = self.x(proof.read_ms);
            upright(out, "proof", x, (top, bottom));
            let text = format!("proof {}", spell::clock(proof.read_ms));
            let width = px_letters(&text);
            let shown_x = (x - width / 2.0).clamp(self.frame.left(), self.frame.right() - width);
            if shown_x > free_from {
                label(out, "proof-label", shown_x, top - 5.0, &text);
                free_from = shown_x + width + LETTER_WIDTH;
            }
        }
    }

    fn line(&self, out: &mut Markup, y: f64, class: &str) {
        rule(out, self.frame.lane_x(), self.frame.right(), y, class);
    }
}

fn name_of(lane: Lane, row: &Row<'_>) -> (String, String) {
    let together = |names: &[&str]| match names {
        [only] => (String::from(*only), String::from(*only)),
        several => (spell::many(lane, several.len()), several.join(", ")),
    };
    match row {
        Row::One(subject) => together(&[subject.name]),
        Row::Bundle(subjects) => {
            together(&subjects.iter().map(|subject| subject.name).collect::<Vec<_>>())
        }
        Row::Quiet(quiet) => together(&quiet.names),
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_LETTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_LETTERS_MAX - 1).chain(['…']).collect()
}

/// Flags and the space under them.
pub(crate) const FLAG_STRIP: f64 = 21.0;
