//! The numbered flags of turning points, above the bars of whom they are about.

use super::chart::{Chart, Links};
use super::shapes::{px, shape, weight_class};
use crate::alike::Turn;
use crate::fold::Row;
use crate::lanes::chart::FLAG_STRIP;
use crate::markup::Markup;
use crate::{Lane, Weight, spell};

const FLAG_RADIUS: f64 = 8.0;

/// A turning point in its place.
pub(super) struct Flag<'a> {
    turn: &'a Turn<'a>,
    weight: Weight,
    /// The place of the entry in the run, for the link.
    entry: usize,
    true_x: f64,
    x: f64,
}

/// What stands in a flag: numbers with node-remedy, letters without.
pub(crate) fn flag_label(id: &str, number: usize) -> String {
    let letter = u8::try_from(number).ok().filter(|n| id.starts_with('o') && *n <= 26);
    letter.map_or_else(|| number.to_string(), |n| char::from(b'a' + (n - 1)).to_string())
}

impl Chart<'_> {
    pub(super) fn strip(&self, lane: Lane, row: &Row<'_>) -> f64 {
        if self.flags(lane, row).is_empty() { 0.0 } else { FLAG_STRIP }
    }

    pub(super) fn flags(&self, lane: Lane, row: &Row<'_>) -> Vec<Flag<'_>> {
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

    pub(super) fn draw_flags(&self, out: &mut Markup, top: f64, flags: &[Flag<'_>]) {
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
            let names = flag.turn.members.iter().map(|(_, entry)| entry.subject.as_str());
            let names = spell::names(&names.collect::<Vec<_>>());
            let at = spell::clock(entry.at_ms);
            out.leaf("title", &[], &format!("{at} {names}: {}", flag.turn.text));
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
}
