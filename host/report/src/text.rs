//! The timeline on a terminal: the readable timeline and the verdict block.
//!
//! Deliberately asks nobody how wide the terminal is or whether it shows colours: the caller
//! knows, and the same arguments give the same text.

mod span;
mod wrap;

use unicode_width::UnicodeWidthStr as _;

use self::wrap::{elided, padded, wrapped};
use crate::alike::{Group, Refusals};
use crate::text::span::{Paint, Span};
use crate::{Entry, Run, Timeline, Weight, alike, printable, spell};

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With ANSI colours.
    Always,
    /// Plain text.
    Never,
}

/// How much to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Without what has only [`Weight::Detail`].
    Timeline,
    /// Everything.
    Everything,
}

/// What the text is shown on.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// How many columns it has; no line is longer, down to [`COLUMNS_MIN`].
    pub columns: usize,
    /// Whether to colour.
    pub colour: Colour,
}

/// Narrower terminals are treated as this wide: below it not even a name fits.
pub const COLUMNS_MIN: usize = 24;

/// Below this width the sentence gets lines of its own, under time and subject.
const COLUMNS_FOR_ONE_LINE: usize = 72;

/// Lines longer than this are hard to read, however wide the terminal is.
const COLUMNS_MAX: usize = 120;

/// What stands under the verdict.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// Where the report was written.
    pub report: &'a str,
    /// Where the scenario is.
    pub scenario: &'a str,
    /// Commands to try next.
    pub try_next: &'a [&'a str],
}

/// What happened, line by line, then what was not done and why, then the run without
/// node-remedy.
pub fn render(timeline: &Timeline, depth: Depth, terminal: &Terminal) -> String {
    let mut sheet = Sheet::new(*terminal);
    sheet.paragraph(0, &[(Paint::Bold, &timeline.inputs.title)]);
    sheet.blank();
    sheet.run(&timeline.with, depth);
    sheet.refusals(&alike::refusals(&timeline.with));
    if let Some(without) = &timeline.without {
        sheet.blank();
        sheet.without(without);
    }
    sheet.text
}

/// How it ended, where it is written down, and what to try next.
pub fn verdict(timeline: &Timeline, closing: &Closing<'_>, terminal: &Terminal) -> String {
    let outcome = &timeline.with.outcome;
    let mut sheet = Sheet::new(*terminal);
    let (sign, paint) =
        if outcome.as_expected { ("✓ ", Paint::Good) } else { ("✗ ", Paint::Bad) };
    let mut facts = vec![outcome.verdict.as_str()];
    facts.extend(outcome.facts.iter().map(String::as_str));
    sheet.hanging(&[(paint, sign)], &[(Paint::Bold, &facts.join(" · "))]);
    for missed in &outcome.missed {
        sheet.hanging(
            &[(Paint::Plain, "  ")],
            &[(Paint::Bad, &format!("not as expected: {missed}"))],
        );
    }
    sheet.blank();
    sheet.hanging(&[(Paint::Dim, "  report    ")], &[(Paint::Plain, closing.report)]);
    sheet.hanging(&[(Paint::Dim, "  scenario  ")], &[(Paint::Plain, closing.scenario)]);
    let labels = std::iter::once("  try       ").chain(std::iter::repeat("            "));
    for (label, command) in labels.zip(closing.try_next) {
        // On one line however long it is: what a terminal wraps can still be copied.
        sheet.paint(Paint::Dim, label);
        sheet.paint(Paint::Accent, &printable::line(command));
        sheet.blank();
    }
    sheet.text
}

/// One line of the timeline: an entry, or what several say alike.
struct Line<'a> {
    first: &'a Entry,
    subject: String,
    text: String,
    /// Who they are and until when, where it is more than one.
    who: String,
}

impl<'a> Line<'a> {
    fn of(group: &Group<'a>) -> Option<Self> {
        let (&(_, first), (_, last)) = (group.members.first()?, group.members.last()?);
        let count = group.members.len();
        let text = group.text.clone();
        if count == 1 {
            return Some(Line { first, subject: first.subject.clone(), text, who: String::new() });
        }
        let names: Vec<&str> = group.members.iter().map(|(_, e)| e.subject.as_str()).collect();
        let until = if spell::clock(last.at_ms) == spell::clock(first.at_ms) {
            String::new()
        } else {
            format!(", until {}", spell::clock(last.at_ms))
        };
        let who = format!("({}{until})", spell::ends(&names));
        Some(Line { first, subject: spell::many(first.lane, count), text, who })
    }
}

/// The text as it grows, and what it is written on.
struct Sheet {
    text: String,
    columns: usize,
    colour: Colour,
}

impl Sheet {
    fn new(terminal: Terminal) -> Self {
        let columns = terminal.columns.clamp(COLUMNS_MIN, COLUMNS_MAX);
        Sheet { text: String::new(), columns, colour: terminal.colour }
    }

    fn run(&mut self, run: &Run, depth: Depth) {
        let told = |entry: &Entry| depth == Depth::Everything || entry.weight != Weight::Detail;
        let lines: Vec<Line<'_>> = alike::groups(run, told).iter().filter_map(Line::of).collect();
        let width = |text: &str| printable::line(text).width();
        let subject_max = (self.columns / 4).max(COLUMNS_MIN / 2);
        let subjects = lines.iter().map(|line| width(&line.subject));
        let subject = subjects.max().unwrap_or(0).min(subject_max);
        let time = lines.iter().map(|line| spell::clock(line.first.at_ms).len()).max();
        for line in &lines {
            self.line(line, time.unwrap_or_default(), subject);
        }
    }

    fn line(&mut self, line: &Line<'_>, time_width: usize, subject_width: usize) {
        let entry = line.first;
        let (sign, sign_paint, text_paint) = match entry.weight {
            Weight::Key => ("●", Paint::Good, Paint::Bold),
            Weight::Bad => ("✗", Paint::Bad, Paint::Plain),
            Weight::Normal => ("·", Paint::Dim, Paint::Plain),
            Weight::Detail => (" ", Paint::Dim, Paint::Dim),
        };
        let time = format!("{:>time_width$} ", spell::clock(entry.at_ms));
        let sign = format!("{sign} ");
        let lane = format!("{:<10}  ", spell::lane(entry.lane));
        let subject = padded(&elided(&line.subject, subject_width), subject_width);
        let basis: Vec<&str> = entry.rule.iter().chain(&entry.grade).map(String::as_str).collect();
        let basis = if basis.is_empty() {
            String::new()
        } else {
            format!("[{}]", basis.join("\u{a0}·\u{a0}"))
        };
        let sentence = [
            (text_paint, line.text.as_str()),
            (Paint::Dim, line.who.as_str()),
            (Paint::Accent, &basis),
        ];
        let gap = format!("{subject}  ");
        let is_narrow = self.columns < COLUMNS_FOR_ONE_LINE;
        let first = [
            (Paint::Dim, time.as_str()),
            (sign_paint, &sign),
            (Paint::Dim, &lane),
            (Paint::Plain, if is_narrow { &subject } else { &gap }),
        ];
        if is_narrow {
            self.paragraph(0, &first);
            self.paragraph(4, &sentence);
        } else {
            self.hanging(&first, &sentence);
        }
    }

    fn refusals(&mut self, groups: &[Refusals<'_>]) {
        if groups.is_empty() {
            return;
        }
        self.blank();
        self.paragraph(0, &[(Paint::Bold, "Not done, and why")]);
        for group in groups {
            let together = &group.together;
            let nodes = spell::names(&group.nodes());
            self.paragraph(
                2,
                &[
                    (Paint::Bad, &together.guard),
                    (Paint::Plain, &together.numbers),
                    (Paint::Accent, &format!("[{}]", together.rule)),
                ],
            );
            let span = spell::refusal_span(together);
            self.paragraph(4, &[(Paint::Plain, &format!("{nodes}:")), (Paint::Dim, &span)]);
            if let Some(next) = &together.next {
                self.paragraph(4, &[(Paint::Dim, "next:"), (Paint::Accent, next)]);
            }
        }
    }

    fn without(&mut self, run: &Run) {
        let outcome = &run.outcome;
        self.paragraph(
            0,
            &[(Paint::Bold, "Without node-remedy, same seed:"), (Paint::Plain, &outcome.verdict)],
        );
        if !outcome.facts.is_empty() {
            self.paragraph(2, &[(Paint::Dim, &outcome.facts.join(" · "))]);
        }
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Words after an indent, wrapped at the same indent.
    fn paragraph(&mut self, indent: usize, spans: &[Span<'_>]) {
        self.hanging(&[(Paint::Plain, &" ".repeat(indent))], spans);
    }

    /// `first` as it is, then words, wrapped to start under the first of them.
    fn hanging(&mut self, first: &[Span<'_>], spans: &[Span<'_>]) {
        let indent: usize = first.iter().map(|(_, text)| text.width()).sum();
        let room = self.columns.saturating_sub(indent).max(COLUMNS_MIN / 2);
        for &(paint, text) in first {
            self.paint(paint, text);
        }
        for (number, words) in wrapped(spans, room).iter().enumerate() {
            if number > 0 {
                self.blank();
                self.text.push_str(&" ".repeat(indent));
            }
            for (place, &(paint, ref word)) in words.iter().enumerate() {
                if place > 0 {
                    self.text.push(' ');
                }
                self.paint(paint, word);
            }
        }
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        self.blank();
    }

    fn paint(&mut self, paint: Paint, text: &str) {
        let text = &text.replace('\u{a0}', " ");
        if self.colour == Colour::Never || paint == Paint::Plain || text.trim().is_empty() {
            self.text.push_str(text);
        } else {
            self.text.push_str(paint.code());
            self.text.push_str(text);
            self.text.push_str("\u{1b}[0m");
        }
    }
}
