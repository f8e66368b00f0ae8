//! Makes text from devices and clusters safe to show: nothing in it can move a cursor, change
//! a colour or turn the direction of what follows. Escaping for HTML is not done here.

use std::borrow::Cow;

/// Stands for what was taken out, so that its place stays visible.
const REPLACEMENT: char = '\u{fffd}';

/// The text without control and direction characters; line ends become spaces.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    clean(text, Lines::Joined)
}

/// The text without control and direction characters; line ends and tabs stay.
pub(crate) fn block(text: &str) -> Cow<'_, str> {
    clean(text, Lines::Kept)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    Joined,
    Kept,
}

fn clean(text: &str, lines: Lines) -> Cow<'_, str> {
    let is_line_end = |c| matches!(c, '\n' | '\t');
    let stays = |c: char| (lines == Lines::Kept && is_line_end(c)) || !is_unsafe(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        c if stays(c) => c,
        '\n' | '\t' => ' ',
        _ => REPLACEMENT,
    };
    Cow::Owned(text.chars().map(shown).collect())
}

fn is_unsafe(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || turns_direction || ends_line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_cannot_steer_the_terminal() {
        assert_eq!(line("ok\u{1b}[2J\u{9b}1m\r"), "ok\u{fffd}[2J\u{fffd}1m\u{fffd}");
        assert_eq!(line("two\nlines\tand \u{202e}back"), "two lines and \u{fffd}back");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a:\n\tb\u{7}"), "a:\n\tb\u{fffd}");
        assert!(matches!(block("a:\n  b"), Cow::Borrowed(_)));
    }
}
