//! One run's lanes, drawn for one width.

use super::Axis;
use crate::fold::{self, Quiet, Row, Subject, Turn};
use crate::markup::Markup;
use crate::{Lane, Run, Stretch, Weight, spell};

/// For what width a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Names beside the bars, for a page on a screen.
    Wide,
    /// Names above the bars, for a telephone.
    Narrow,
    /// Names beside the bars, for a picture that stands alone.
    Picture,
}

impl Frame {
    /// The width in pixels.
    pub(crate) fn width(self) -> f64 {
        match self {
            Frame::Wide => 1160.0,
            Frame::Narrow => 350.0,
            Frame::Picture => 1000.0,
        }
    }

    /// Where the bars begin: right of the names, or under them.
    fn left(self) -> f64 {
        match self {
            Frame::Wide => 242.0,
            Frame::Narrow => 2.0,
            Frame::Picture => 246.0,
        }
    }

    fn right(self) -> f64 {
        match self {
            Frame::Wide | Frame::Picture => self.width() - 16.0,
            Frame::Narrow => self.width() - 4.0,
        }
    }

    fn lane_x(self) -> f64 {
        match self {
            Frame::Picture => 16.0,
            Frame::Wide | Frame::Narrow => 0.0,
        }
    }

    fn name_x(self) -> f64 {
        match self {
            Frame::Wide => 118.0,
            Frame::Narrow => 2.0,
            Frame::Picture => 130.0,
        }
    }

    fn is_narrow(self) -> bool {
        self == Frame::Narrow
    }
}

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
    /// The axis of the story.
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

/// What stands in a flag: numbers with node-remedy, letters without.
pub(crate) fn flag_label(id: &str, number: usize) -> String {
    let letter = u8::try_from(number).ok().filter(|n| id.starts_with('o') && *n <= 26);
    letter.map_or_else(|| number.to_string(), |n| char::from(b'a' + (n - 1)).to_string())
}

const BAR_HEIGHT: f64 = 20.0;
const THIN_HEIGHT: f64 = 5.0;
const THIN_STEP: f64 = 6.0;
const FLAG_RADIUS: f64 = 8.0;
/// Flags and the space under them.
const FLAG_STRIP: f64 = 21.0;
const ROW_GAP: f64 = 6.0;
const NAME_HEIGHT: f64 = 16.0;
/// An average letter of the state texts; generous, so that none runs out of its bar.
const LETTER_WIDTH: f64 = 6.3;
/// Fewer letters of a state than these would puzzle rather than tell.
const STATE_LETTERS_MIN: usize = 7;
const NAME_LETTERS_MAX: usize = 17;
const TICK_WIDTH: f64 = 62.0;

struct Flag<'a> {
    turn: &'a Turn<'a>,
    weight: Weight,
    /// The place of the entry in the run, for the link.
    entry: usize,
    true_x: f64,
    x: f64,
}

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

    fn x(&self, at_ms: u64) -> f64 {
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

    fn strip(&self, lane: Lane, row: &Row<'_>) -> f64 {
        if self.flags(lane, row).is_empty() { 0.0 } else { FLAG_STRIP }
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

    fn one(&self, out: &mut Markup, top: f64, subject: &Subject<'_>) -> f64 {
        let mut y = top;
        for track in &subject.tracks {
            for stretch in track {
                self.bar(out, y, BAR_HEIGHT, stretch);
                self.state(out, y, stretch, &stretch.state);
            }
            y += BAR_HEIGHT + 2.0;
        }
        if subject.tracks.is_empty() {
            let (x1, x2) = (self.frame.left(), self.frame.right());
            rule(out, x1, x2, y + BAR_HEIGHT / 2.0, "rule");
            y += BAR_HEIGHT;
        }
        y
    }

    fn bundle(&self, out: &mut Markup, top: f64, subjects: &[Subject<'_>]) -> f64 {
        let mut y = top;
        for subject in subjects {
            for stretch in subject.tracks.iter().flatten() {
                self.bar(out, y, THIN_HEIGHT, stretch);
            }
            y += THIN_STEP;
        }
        let middle = f64::midpoint(top, y) + 4.0;
        let example = subjects.get(subjects.len() / 2);
        for stretch in example.iter().filter_map(|subject| subject.tracks.first()).flatten() {
            let (x1, x2) = (self.x(stretch.from_ms), self.x(stretch.to_ms));
            // No length here: it differs from line to line.
            if let Some(text) = fitting(&stretch.state, "", x2 - x1 - 24.0) {
                let class = format!("state halo {}", weight_class(stretch.weight));
                label(out, &class, x1 + 16.0, middle, &text);
            }
        }
        y.max(top + BAR_HEIGHT)
    }

    fn quiet(&self, out: &mut Markup, top: f64, quiet: &Quiet<'_>) -> f64 {
        self.bar(out, top, BAR_HEIGHT, quiet.stretch);
        self.state(out, top, quiet.stretch, quiet.state);
        top + BAR_HEIGHT
    }

    fn bar(&self, out: &mut Markup, y: f64, height: f64, stretch: &Stretch) {
        let (x1, x2) = (self.x(stretch.from_ms), self.x(stretch.to_ms));
        let width = (x2 - x1 - 1.0).max(1.0);
        let goes_on = stretch.to_ms >= self.run.end_ms;
        let weight = weight_class(stretch.weight);
        let class = format!("bar {weight}");
        let edge = format!("edge {weight}");
        let (from, to) = (spell::clock(stretch.from_ms), spell::clock(stretch.to_ms));
        let lasted = spell::span(stretch.to_ms.saturating_sub(stretch.from_ms));
        let title = format!("{}: {}, {from} to {to} ({lasted})", stretch.subject, stretch.state);
        out.element("g", &[], |out| {
            out.leaf("title", &[], &title);
            if goes_on {
                let tip = (height / 2.0).min(7.0);
                let bottom = y + height;
                let path = format!(
                    "M{x1:.1} {y:.1}H{:.1}L{:.1} {:.1}L{:.1} {bottom:.1}H{x1:.1}Z",
                    x2 - tip,
                    x2,
                    y + height / 2.0,
                    x2 - tip,
                );
                out.void("path", &[("d", &path), ("class", &class)]);
            } else {
                shape(out, &class, (x1, y), (width, height));
            }
            // A darker edge tells the kind of a state without its colour.
            if stretch.weight != Weight::Normal && stretch.weight != Weight::Detail {
                shape(out, &edge, (x1, y), (width.min(3.0), height));
            }
        });
    }

    fn state(&self, out: &mut Markup, y: f64, stretch: &Stretch, state: &str) {
        let (x1, x2) = (self.x(stretch.from_ms), self.x(stretch.to_ms));
        let lasted = spell::span(stretch.to_ms.saturating_sub(stretch.from_ms));
        // What the run's own start or end cuts off has no length worth telling.
        let is_whole = stretch.from_ms > 0 && stretch.to_ms < self.run.end_ms;
        let lasted = if is_whole { lasted.as_str() } else { "" };
        let Some(text) = fitting(state, lasted, x2 - x1 - 12.0) else { return };
        let width = px_letters(&text);
        let crossed =
            |x: f64| self.proof_places().find(|&line| line > x - 4.0 && line < x + width + 4.0);
        let beside = |line: f64| {
            let x = line + 6.0;
            (x + width + 4.0 <= x2 && crossed(x).is_none()).then_some(x)
        };
        let start = x1 + 7.0;
        let x = crossed(start).and_then(beside).unwrap_or(start);
        label(out, "state", x, y + 14.0, &text);
    }

    fn proof_places(&self) -> impl Iterator<Item = f64> {
        let proofs = self.run.incidents.iter().filter_map(|incident| incident.proof.as_ref());
        proofs.map(|proof| self.x(proof.read_ms))
    }

    fn flags(&self, lane: Lane, row: &Row<'_>) -> Vec<Flag<'_>> {
        let is_here = |name: &str| match row {
            Row::One(subject) => subject.name == name,
            Row::Bundle(subjects) => subjects.iter().any(|subject| subject.name == name),
            Row::Quiet(_) => false,
        };
        let mut flags: Vec<Flag<'_>> = self
            .turns
            .iter()
            .filter_map(|turn| {
                let mut members = turn.members.iter();
                let &(entry, first) =
                    members.find(|(_, e)| e.lane == lane && is_here(&e.subject))?;
                let x = self.x(first.at_ms);
                Some(Flag { turn, weight: first.weight, entry, true_x: x, x })
            })
            .collect();
        flags.sort_by(|a, b| a.true_x.total_cmp(&b.true_x));
        self.spread(&mut flags);
        flags
    }

    /// Moves flags apart so that each can be read; their leaders keep to the true time.
    fn spread(&self, flags: &mut [Flag<'_>]) {
        let apart = 2.0 * FLAG_RADIUS + 2.0;
        let mut least = self.frame.left() + FLAG_RADIUS;
        for flag in flags.iter_mut() {
            flag.x = flag.x.max(least);
            least = flag.x + apart;
        }
        let mut most = self.frame.right() - FLAG_RADIUS;
        for flag in flags.iter_mut().rev() {
            flag.x = flag.x.min(most);
            most = flag.x - apart;
        }
    }

    fn draw_flags(&self, out: &mut Markup, top: f64, flags: &[Flag<'_>]) {
        let centre = top + FLAG_RADIUS;
        for flag in flags {
            let leader = format!(
                "M{:.1} {:.1}L{:.1} {:.1}",
                flag.x,
                centre + FLAG_RADIUS,
                flag.true_x,
                top + FLAG_STRIP
            );
            out.void("path", &[("d", &leader), ("class", "leader")]);
            match self.links {
                Links::None => self.draw_flag(out, centre, flag),
                Links::Entries(prefix) => {
                    let href = format!("#{prefix}{}", flag.entry);
                    out.element("a", &[("href", &href)], |out| self.draw_flag(out, centre, flag));
                }
            }
        }
    }

    fn draw_flag(&self, out: &mut Markup, centre: f64, flag: &Flag<'_>) {
        let weight = weight_class(flag.weight);
        let (x, y, r) = (px(flag.x), px(centre), px(FLAG_RADIUS));
        if let Some((_, entry)) = flag.turn.members.first() {
            let at = spell::clock(entry.at_ms);
            out.leaf("title", &[], &format!("{at} {}: {}", entry.subject, entry.text));
        }
        let class = format!("flag {weight}");
        if flag.weight == Weight::Bad {
            // Bad news is square: shape and number carry it where colour cannot.
            let corner = (flag.x - FLAG_RADIUS, centre - FLAG_RADIUS);
            shape(out, &class, corner, (2.0 * FLAG_RADIUS, 2.0 * FLAG_RADIUS));
        } else {
            out.void("circle", &[("cx", &x), ("cy", &y), ("r", &r), ("class", &class)]);
        }
        let class = format!("flag-text {weight}");
        let baseline = px(centre + 3.5);
        let number = flag_label(self.id, flag.turn.number);
        out.leaf("text", &[("x", &x), ("y", &baseline), ("class", &class)], &number);
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

/// As much of state and length as there is room for; nothing where it would not be a word.
pub(super) fn fitting(state: &str, lasted: &str, room: f64) -> Option<String> {
    let long = if lasted.is_empty() { String::from(state) } else { format!("{state} · {lasted}") };
    if px_letters(&long) <= room {
        return Some(long);
    }
    if px_letters(state) <= room {
        return Some(state.to_owned());
    }
    let letters = state.chars().count();
    let kept =
        (1..letters).rev().find(|&kept| px_letters(state) * part(kept + 1, letters) <= room)?;
    (kept >= STATE_LETTERS_MIN).then(|| state.chars().take(kept).chain(['…']).collect())
}

fn part(of: usize, all: usize) -> f64 {
    let number = |n| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    number(of) / number(all)
}

fn weight_class(weight: Weight) -> &'static str {
    match weight {
        Weight::Key => "key",
        Weight::Bad => "bad",
        Weight::Normal | Weight::Detail => "",
    }
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

pub(super) fn px_letters(text: &str) -> f64 {
    LETTER_WIDTH * f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

fn label(out: &mut Markup, class: &str, x: f64, y: f64, text: &str) {
    out.leaf("text", &[("x", &px(x)), ("y", &px(y)), ("class", class)], text);
}

fn rule(out: &mut Markup, x1: f64, x2: f64, y: f64, class: &str) {
    let (x1, x2, y) = (px(x1), px(x2), px(y));
    out.void("line", &[("x1", &x1), ("x2", &x2), ("y1", &y), ("y2", &y), ("class", class)]);
}

fn upright(out: &mut Markup, class: &str, x: f64, (top, bottom): (f64, f64)) {
    let (x, y1, y2) = (px(x), px(top), px(bottom));
    out.void("line", &[("x1", &x), ("x2", &x), ("y1", &y1), ("y2", &y2), ("class", class)]);
}

fn shape(out: &mut Markup, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let (x, y, width, height) = (px(x), px(y), px(width), px(height));
    let attributes = [
        ("x", x.as_str()),
        ("y", &y),
        ("width", &width),
        ("height", &height),
        ("rx", "2"),
        ("class", class),
    ];
    out.void("rect", &attributes);
}
