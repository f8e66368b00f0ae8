//! The bars: states that lasted, one by one, as a bundle of thin lines, or as one for all.

use super::chart::Chart;
use super::shapes::{fitting, label, px_letters, rule, shape, weight_class};
use crate::fold::{Quiet, Subject};
use crate::markup::Markup;
use crate::{Interval, Weight, spell};

const BAR_HEIGHT: f64 = 20.0;
const THIN_HEIGHT: f64 = 5.0;
const THIN_STEP: f64 = 6.0;

impl Chart<'_> {
    pub(super) fn one(&self, out: &mut Markup, top: f64, subject: &Subject<'_>) -> f64 {
        let mut y = top;
        for track in &subject.tracks {
            for interval in track {
                self.bar(out, y, BAR_HEIGHT, interval);
                self.state(out, y, interval, &interval.state);
            }
            y += BAR_HEIGHT + 2.0;
        }
        if subject.tracks.is_empty() { self.nothing(out, top) } else { y }
    }

    /// A line for those who have flags and no states.
    fn nothing(&self, out: &mut Markup, top: f64) -> f64 {
        rule(out, self.frame.left(), self.frame.right(), top + BAR_HEIGHT / 2.0, "rule");
        top + BAR_HEIGHT
    }

    pub(super) fn bundle(&self, out: &mut Markup, top: f64, subjects: &[Subject<'_>]) -> f64 {
        if subjects.iter().all(|subject| subject.tracks.is_empty()) {
            return self.nothing(out, top);
        }
        let mut y = top;
        for subject in subjects {
            for interval in subject.tracks.iter().flatten() {
                self.bar(out, y, THIN_HEIGHT, interval);
            }
            y += THIN_STEP;
        }
        let middle = f64::midpoint(top, y) + 4.0;
        let example = subjects.get(subjects.len() / 2);
        for interval in example.iter().filter_map(|subject| subject.tracks.first()).flatten() {
            let (x1, x2) = (self.x(interval.from_ms), self.x(interval.to_ms));
            // No length here: it differs from line to line.
            if let Some(text) = fitting(&interval.state, "", x2 - x1 - 24.0) {
                let class = format!("state halo {}", weight_class(interval.weight));
                label(out, &class, x1 + 16.0, middle, &text);
            }
        }
        y.max(top + BAR_HEIGHT)
    }

    pub(super) fn quiet(&self, out: &mut Markup, top: f64, quiet: &Quiet<'_>) -> f64 {
        self.bar(out, top, BAR_HEIGHT, quiet.interval);
        self.state(out, top, quiet.interval, quiet.state);
        top + BAR_HEIGHT
    }

    fn bar(&self, out: &mut Markup, y: f64, height: f64, interval: &Interval) {
        let (x1, x2) = (self.x(interval.from_ms), self.x(interval.to_ms));
        let width = (x2 - x1 - 1.0).max(1.0);
        let goes_on = interval.to_ms >= self.run.end_ms;
        let weight = weight_class(interval.weight);
        let class = format!("bar {weight}");
        let edge = format!("edge {weight}");
        let (from, to) = (spell::clock(interval.from_ms), spell::clock(interval.to_ms));
        let lasted = spell::span(interval.to_ms.saturating_sub(interval.from_ms));
        let title = format!("{}: {}, {from} to {to} ({lasted})", interval.subject, interval.state);
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
            if interval.weight != Weight::Normal && interval.weight != Weight::Detail {
                shape(out, &edge, (x1, y), (width.min(3.0), height));
            }
        });
    }

    fn state(&self, out: &mut Markup, y: f64, interval: &Interval, state: &str) {
        let (x1, x2) = (self.x(interval.from_ms), self.x(interval.to_ms));
        let lasted = spell::span(interval.to_ms.saturating_sub(interval.from_ms));
        // What the run's own start or end cuts off has no length worth telling.
        let is_whole = interval.from_ms > 0 && interval.to_ms < self.run.end_ms;
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
}
