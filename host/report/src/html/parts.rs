//! What every part of the page is written with: its context, cells, columns and sections.

use crate::alike::Turn;
use crate::markup::Markup;
use crate::rules::Piece;
use crate::{Run, Timeline, Weight, rules, spell};

/// A page is smaller than this: small enough for any mail, ticket or chat.
pub const PAGE_BYTES_MAX: usize = 500_000;

/// How much of a long timeline is on the page. Each includes less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    Everything,
    /// Datagrams are shown only where they prove something.
    ProvingExchanges,
    /// And entries of weight `Detail` are not shown.
    NoDetail,
    /// And the embedded timeline is as short as what is shown.
    ShortTimeline,
}

impl Share {
    pub(crate) const ALL: [Share; 4] =
        [Share::Everything, Share::ProvingExchanges, Share::NoDetail, Share::ShortTimeline];

    pub(crate) fn shows(self, weight: Weight) -> bool {
        self <= Share::ProvingExchanges || weight != Weight::Detail
    }

    pub(crate) fn left_out(self) -> Option<&'static str> {
        match self {
            Share::Everything => None,
            Share::ProvingExchanges => Some(
                "the datagrams of all operations that prove nothing; the embedded timeline has them",
            ),
            Share::NoDetail => Some(
                "the details of the log, and the datagrams of all operations that prove nothing; \
                 the embedded timeline has them",
            ),
            Share::ShortTimeline => Some(
                "the details of the log, and the datagrams of all operations that prove nothing; \
                 playing the scenario again gives them",
            ),
        }
    }
}

/// What every part of the page needs.
pub(crate) struct Context<'a> {
    pub(crate) timeline: &'a Timeline,
    pub(crate) with: Vec<Turn<'a>>,
    pub(crate) without: Vec<Turn<'a>>,
    pub(crate) share: Share,
}

impl Context<'_> {
    /// The id of an entry's line in the timeline, if it stands there.
    pub(crate) fn line_id(&self, side: Side, place: usize) -> Option<String> {
        let run = match side {
            Side::With => &self.timeline.with,
            Side::Without => self.timeline.without.as_ref()?,
        };
        let is_told = self.share.shows(run.entries.get(place)?.weight);
        is_told.then(|| format!("{}{place}", side.prefix()))
    }
}

/// Which of the two runs a part is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    With,
    Without,
}

impl Side {
    /// What the ids of its entries begin with, and how its flags are counted.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Side::With => "w",
            Side::Without => "o",
        }
    }
}

/// A section with its heading.
pub(crate) fn section(
    out: &mut Markup,
    (id, heading): (&str, &str),
    inside: impl FnOnce(&mut Markup),
) {
    let heading_id = format!("{id}-h");
    out.element("section", &[("id", id), ("aria-labelledby", &heading_id)], |out| {
        out.leaf("h2", &[("id", &heading_id)], heading);
        inside(out);
    });
}

/// A text in which each rule leads to its meaning.
pub(crate) fn linked_rules(out: &mut Markup, text: &str) {
    for piece in rules::pieces(text) {
        match piece {
            Piece::Rule(id) => {
                let href = format!("#rule-{id}");
                out.leaf("a", &[("class", "rule-id"), ("href", &href)], id);
            }
            Piece::Text(text) => out.text(text),
        }
    }
}

/// The id of a journal row on the page, if that row exists.
pub(crate) fn journal_id(run: &Run, incident: &str, number: u32) -> Option<String> {
    let place = run.incidents.iter().position(|other| other.name == incident)?;
    let rows = &run.incidents.get(place)?.journal;
    rows.iter().any(|row| row.number == number).then(|| format!("j{place}-{number}"))
}

/// A table header row.
pub(crate) fn columns(out: &mut Markup, names: &[&str]) {
    out.element("thead", &[], |head| {
        head.element("tr", &[("role", "row")], |row| {
            for name in names {
                row.leaf("th", &[("scope", "col"), ("role", "columnheader")], name);
            }
        });
    });
}

/// A cell that names its column itself, for narrow screens where the header row is gone.
pub(crate) fn cell(out: &mut Markup, class: &str, inside: impl FnOnce(&mut Markup)) {
    out.element("td", &[("role", "cell"), ("class", class)], inside);
}

/// A point in time, for a cell or a line.
pub(crate) fn time(out: &mut Markup, at_ms: u64) {
    out.leaf("span", &[("class", "time")], &spell::clock(at_ms));
}
