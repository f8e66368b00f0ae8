//! The story on a terminal: the readable timeline and the verdict block.
//!
//! Deliberately asks nobody how wide the terminal is or whether it shows colours: the caller
//! knows, and the same arguments give the same text.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::fold::{self, Refusals};
use crate::{Entry, Run, Story, Weight, printable, spell};

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
    Story,
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
pub fn timeline(story: &Story, depth: Depth, terminal: &Terminal) -> String {
    let mut sheet = Sheet::new(*terminal);
    sheet.paragraph(0, &[(Paint::Bold, &story.inputs.title)]);
    sheet.blank();
    sheet.run(&story.with, depth);
    sheet.refusals(&fold::refusals(&story.with));
    if let Some(without) = &story.without {
        sheet.blank();
        sheet.without(without);
    }
    sheet.text
}

/// How it ended, where it is written down, and what to try next.
pub fn verdict(story: &Story, closing: &Closing<'_>, terminal: &Terminal) -> String {
    let outcome = &story.with.outcome;
    let mut sheet = Sheet::new(*terminal);
    let (sign, paint) =
        if outcome.as_expected { ("✓ ", Paint::Good) } else { ("✗ ", Paint::Bad) };
    let mut facts = vec![outcome.verdict.as_str()];
    facts.extend(outcome.facts.iter().map(String::as_str));
    sheet.hanging(&[(paint, sign)], &[(Paint::Bold, &facts.join(" · "))]);
    for missed in &outcome.missed {
        sheet.hanging(&[(Paint::Plain, "  ")], &[(Paint::Bad, &format!("expected: {missed}"))]);
    }
    sheet.blank();
    sheet.hanging(&[(Paint::Dim, "  report    ")], &[(Paint::Plain, closing.report)]);
    sheet.hanging(&[(Paint::Dim, "  scenario  ")], &[(Paint::Plain, closing.scenario)]);
    let labels = std::iter::once("  try       ").chain(std::iter::repeat("            "));
    for (label, command) in labels.zip(closing.try_next) {
        sheet.hanging(&[(Paint::Dim, label)], &[(Paint::Accent, command)]);
    }
    sheet.text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    Plain,
    Dim,
    Bold,
    /// Rules, grades, commands: what a reader may look up or type.
    Accent,
    Good,
    Bad,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Dim => "\u{1b}[2m",
            Paint::Bold => "\u{1b}[1m",
            Paint::Accent => "\u{1b}[36m",
            Paint::Good => "\u{1b}[1;32m",
            Paint::Bad => "\u{1b}[1;31m",
        }
    }
}

/// Text of one colour.
type Span<'a> = (Paint, &'a str);

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
        let told = |entry: &&Entry| depth == Depth::Everything || entry.weight != Weight::Detail;
        let entries: Vec<&Entry> = run.entries.iter().filter(told).collect();
        let width = |text: &str| printable::line(text).width();
        let subject_max = (self.columns / 4).max(COLUMNS_MIN / 2);
        let subject =
            entries.iter().map(|entry| width(&entry.subject)).max().unwrap_or(0).min(subject_max);
        let time =
            entries.iter().map(|entry| spell::clock(entry.at_ms).len()).max().unwrap_or_default();
        for entry in entries {
            self.entry(entry, time, subject);
        }
    }

    fn entry(&mut self, entry: &Entry, time_width: usize, subject_width: usize) {
        let (sign, sign_paint, text_paint) = match entry.weight {
            Weight::Key => ("●", Paint::Good, Paint::Bold),
            Weight::Bad => ("✗", Paint::Bad, Paint::Plain),
            Weight::Normal => ("·", Paint::Dim, Paint::Plain),
            Weight::Detail => (" ", Paint::Dim, Paint::Dim),
        };
        let time = format!("{:>time_width$} ", spell::clock(entry.at_ms));
        let sign = format!("{sign} ");
        let lane = format!("{:<10}  ", spell::lane(entry.lane));
        let subject = padded(&elided(&entry.subject, subject_width), subject_width);
        let basis: Vec<&str> = entry.rule.iter().chain(&entry.grade).map(String::as_str).collect();
        let basis = if basis.is_empty() {
            String::new()
        } else {
            format!("[{}]", basis.join("\u{a0}·\u{a0}"))
        };
        let sentence = [(text_paint, entry.text.as_str()), (Paint::Accent, &basis)];
        if self.columns < COLUMNS_FOR_ONE_LINE {
            self.paragraph(
                0,
                &[
                    (Paint::Dim, &time),
                    (sign_paint, &sign),
                    (Paint::Dim, &lane),
                    (Paint::Plain, &subject),
                ],
            );
            self.paragraph(4, &sentence);
        } else {
            let subject = format!("{subject}  ");
            let first = [
                (Paint::Dim, time.as_str()),
                (sign_paint, &sign),
                (Paint::Dim, &lane),
                (Paint::Plain, &subject),
            ];
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
            let together = group.together();
            let nodes = spell::names(&group.nodes());
            self.paragraph(
                2,
                &[
                    (Paint::Bad, &together.guard),
                    (Paint::Plain, &together.numbers),
                    (Paint::Accent, &format!("[{}]", together.rule)),
                ],
            );
            let span = spell::refusal_span(&together);
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

/// The words of the spans in lines of at most `room` columns. Words that are longer are cut;
/// what a no-break space joins is one word.
fn wrapped(spans: &[Span<'_>], room: usize) -> Vec<Vec<(Paint, String)>> {
    let mut lines: Vec<Vec<(Paint, String)>> = vec![Vec::new()];
    let mut used = 0;
    for &(paint, text) in spans {
        for word in printable::line(text).split(' ').filter(|word| !word.is_empty()) {
            for piece in cut(word, room) {
                let width = piece.width();
                let is_first = lines.last().is_none_or(Vec::is_empty);
                if !is_first && used + 1 + width > room {
                    lines.push(Vec::new());
                    used = 0;
                } else if !is_first {
                    used += 1;
                }
                used += width;
                if let Some(line) = lines.last_mut() {
                    line.push((paint, piece));
                }
            }
        }
    }
    lines
}

fn cut(word: &str, room: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > room {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// The name, or its two ends with `…` between: pods of one set differ at the end.
fn elided(name: &str, columns: usize) -> String {
    let name = printable::line(name);
    if name.width() <= columns {
        return name.into_owned();
    }
    let room = columns.saturating_sub(1);
    let head = taken(name.chars(), room / 2);
    let tail: String = taken(name.chars().rev(), room - room / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

fn taken(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_of_its_ends() {
        assert_eq!(elided("web-5d9f7c9d4-k2x8q", 11), "web-5…k2x8q");
        assert_eq!(elided("db-0", 11), "db-0");
    }

    #[test]
    fn words_wrap_and_too_long_ones_are_cut() {
        let lines = |text: &str, room| -> Vec<String> {
            let join = |words: Vec<(Paint, String)>| {
                words.into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
            };
            wrapped(&[(Paint::Plain, text)], room).into_iter().map(join).collect()
        };
        assert_eq!(lines("a bc def", 4), ["a bc", "def"]);
        assert_eq!(lines("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(lines("節点が 落ちた", 6), ["節点が", "落ちた"]);
    }
}
