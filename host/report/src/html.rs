//! The report: one self-contained HTML page, from the verdict down to the datagram.
//!
//! It loads nothing, runs no script, and is readable on a telephone, in the dark and on
//! paper. Every line leads to its journal row, each row to what went over the wire, each rule
//! to its meaning. The story itself is embedded, so that the page can be checked by playing
//! it again. Deliberately not a console: it shows a finished run and cannot do anything.

mod citations;
mod embedded;
mod evidence;
mod opening;
mod sources;
mod timeline;
mod wire;

pub use embedded::{READ_BYTES_MAX, ReadError, read_back};

use crate::alike::{self, Turn};
use crate::lanes::{self, Theme};
use crate::markup::Markup;
use crate::rules::{self, Piece};
use crate::{Run, Story, Weight, spell};

/// A page is smaller than this: small enough for any mail, ticket or chat.
pub const PAGE_BYTES_MAX: usize = 500_000;

const STYLE: &str = include_str!("report.css");

/// The story does not fit on a page, however much is left out.
#[derive(Debug, thiserror::Error)]
#[error("failed to fit the story on one page: {bytes} bytes, at most {PAGE_BYTES_MAX} allowed")]
pub struct TooLarge {
    /// How large the shortest page would be.
    pub bytes: usize,
}

/// The whole page. The same story gives the same bytes.
///
/// A story too long for [`PAGE_BYTES_MAX`] is shortened in steps, and the page says what it
/// leaves out; the proof with its datagrams always stays.
pub fn page(story: &Story) -> Result<String, TooLarge> {
    let mut bytes = 0;
    for share in Share::ALL {
        let html = write(story, share);
        if html.len() < PAGE_BYTES_MAX {
            return Ok(html);
        }
        bytes = html.len();
    }
    Err(TooLarge { bytes })
}

/// How much of a long story is on the page. Each includes less than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    Everything,
    /// Datagrams are shown only where they prove something.
    ProvingExchanges,
    /// And entries of weight `Detail` are not shown.
    NoDetail,
    /// And the embedded story is as short as what is shown.
    ShortStory,
}

impl Share {
    const ALL: [Share; 4] =
        [Share::Everything, Share::ProvingExchanges, Share::NoDetail, Share::ShortStory];

    fn shows(self, weight: Weight) -> bool {
        self <= Share::ProvingExchanges || weight != Weight::Detail
    }

    fn left_out(self) -> Option<&'static str> {
        match self {
            Share::Everything => None,
            Share::ProvingExchanges => Some(
                "the datagrams of all operations that prove nothing; the embedded story has them",
            ),
            Share::NoDetail => Some(
                "the details of the log, and the datagrams of all operations that prove nothing; \
                 the embedded story has them",
            ),
            Share::ShortStory => Some(
                "the details of the log, and the datagrams of all operations that prove nothing; \
                 playing the scenario again gives them",
            ),
        }
    }
}

/// What every part of the page needs.
struct Context<'a> {
    story: &'a Story,
    with: Vec<Turn<'a>>,
    without: Vec<Turn<'a>>,
    share: Share,
}

impl Context<'_> {
    /// The id of an entry's line in the timeline, if it stands there.
    fn line_id(&self, side: Side, place: usize) -> Option<String> {
        let run = match side {
            Side::With => &self.story.with,
            Side::Without => self.story.without.as_ref()?,
        };
        let is_told = self.share.shows(run.entries.get(place)?.weight);
        is_told.then(|| format!("{}{place}", side.prefix()))
    }
}

/// Which of the two runs a part is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    With,
    Without,
}

impl Side {
    /// What the ids of its entries begin with, and how its flags are counted.
    fn prefix(self) -> &'static str {
        match self {
            Side::With => "w",
            Side::Without => "o",
        }
    }
}

fn write(story: &Story, share: Share) -> String {
    let context = Context {
        story,
        with: alike::turns(&story.with),
        without: story.without.as_ref().map(alike::turns).unwrap_or_default(),
        share,
    };
    let mut page = Markup::default();
    page.verbatim("<!doctype html>\n");
    page.element("html", &[("lang", "en")], |page| {
        page.element("head", &[], |head| write_head(head, story));
        page.element("body", &[], |body| {
            opening::write(body, &context);
            body.element("main", &[], |main| {
                main.element("div", &[("class", "beside")], |main| {
                    main.element("div", &[], |left| opening::legends(left, &context));
                    main.element("div", &[], |right| evidence::write(right, &context));
                });
                timeline::write(main, &context);
                sources::write(main, &context);
            });
            embedded::write(body, &context);
        });
    });
    page.finish()
}

fn write_head(head: &mut Markup, story: &Story) {
    head.void("meta", &[("charset", "utf-8")]);
    let viewport = "width=device-width, initial-scale=1";
    head.void("meta", &[("name", "viewport"), ("content", viewport)]);
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    head.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", policy)]);
    head.leaf("title", &[], &format!("{}: {}", story.inputs.name, story.with.outcome.verdict));
    head.element("style", &[], |style| {
        let (light, dark) = (lanes::variables(Theme::Light), lanes::variables(Theme::Dark));
        style.verbatim(&format!(
            ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        ));
        style.verbatim(lanes::STYLE);
        style.verbatim(STYLE);
    });
}

/// A section with its heading.
fn section(out: &mut Markup, (id, heading): (&str, &str), inside: impl FnOnce(&mut Markup)) {
    let heading_id = format!("{id}-h");
    out.element("section", &[("id", id), ("aria-labelledby", &heading_id)], |out| {
        out.leaf("h2", &[("id", &heading_id)], heading);
        inside(out);
    });
}

/// A text in which each rule leads to its meaning.
fn linked_rules(out: &mut Markup, text: &str) {
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
fn journal_id(run: &Run, incident: &str, number: u32) -> Option<String> {
    let place = run.incidents.iter().position(|other| other.name == incident)?;
    let rows = &run.incidents.get(place)?.journal;
    rows.iter().any(|row| row.number == number).then(|| format!("j{place}-{number}"))
}

/// A table header row.
fn columns(out: &mut Markup, names: &[&str]) {
    out.element("thead", &[], |head| {
        head.element("tr", &[("role", "row")], |row| {
            for name in names {
                row.leaf("th", &[("scope", "col"), ("role", "columnheader")], name);
            }
        });
    });
}

/// A cell that names its column itself, for narrow screens where the header row is gone.
fn cell(out: &mut Markup, class: &str, inside: impl FnOnce(&mut Markup)) {
    out.element("td", &[("role", "cell"), ("class", class)], inside);
}

/// A point in time, for a cell or a line.
fn time(out: &mut Markup, at_ms: u64) {
    out.leaf("span", &[("class", "time")], &spell::clock(at_ms));
}
