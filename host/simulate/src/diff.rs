//! Where two texts begin to differ, in words.

use std::fmt;

/// Characters that are shown before the first that differs.
const BEFORE: usize = 40;
/// Characters that are shown from there on.
const AFTER: usize = 60;

/// The first difference.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// From 1 on.
    pub line: usize,
    /// From 1 on, in characters.
    pub column: usize,
    /// What the one says there.
    pub one: String,
    /// What the other says there.
    pub other: String,
}

impl Difference {
    /// The first difference; none where the texts are the same.
    pub fn first(one: &str, other: &str) -> Option<Self> {
        let mut lines = [one.split('\n'), other.split('\n')];
        let mut line = 0;
        loop {
            line += 1;
            let [one, other] = &mut lines;
            let (one, other) = match (one.next(), other.next()) {
                (None, None) => return None,
                (Some(one), Some(other)) if one == other => continue,
                (one, other) => (one.unwrap_or_default(), other.unwrap_or_default()),
            };
            let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
            let column = same.count() + 1;
            let shown = |text: &str| {
                let from = column.saturating_sub(BEFORE + 1);
                let part = text.chars().skip(from).take(column - 1 - from + AFTER);
                // Nobody knows what was written into it; a terminal must not obey.
                part.map(|letter| if letter.is_control() { '�' } else { letter }).collect()
            };
            return Some(Self { line, column, one: shown(one), other: shown(other) });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, one, other } = self;
        write!(f, "line {line}, column {column}\n  report: {one}\n  here:   {other}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found_by_line_and_column() {
        let long = "é".repeat(100);
        let rows = [
            ("a\nb", "a\nb", None),
            ("a\nb\nc", "a\nbx\nc", Some((2, 2, "b", "bx"))),
            ("a", "a\nb", Some((2, 1, "", "b"))),
            ("a\n", "a", Some((2, 1, "", ""))),
            ("", "x", Some((1, 1, "", "x"))),
            ("\u{1b}[2J", "", Some((1, 1, "�[2J", ""))),
        ];
        for (one, other, expected) in rows {
            let found = Difference::first(one, other);
            let found = found.as_ref().map(|it| (it.line, it.column, &*it.one, &*it.other));
            assert_eq!(found, expected, "{one:?} {other:?}");
        }
        let found = Difference::first(&format!("{long}1{long}"), &format!("{long}2{long}"));
        let found = found.expect("a difference");
        assert_eq!((found.column, found.one.chars().count()), (101, BEFORE + AFTER));
    }
}
