//! Fits words into columns: wrapped, cut or elided by the width that a terminal gives them.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printable;
use crate::text::span::{Paint, Span};

/// The words of the spans in lines of at most `room` columns. Words that are longer are cut;
/// what a no-break space joins is one word.
pub(super) fn wrapped(spans: &[Span<'_>], room: usize) -> Vec<Vec<(Paint, String)>> {
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
pub(super) fn elided(name: &str, columns: usize) -> String {
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

pub(super) fn padded(text: &str, columns: usize) -> String {
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
