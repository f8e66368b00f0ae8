//! The few shapes and labels that a chart is made of, and how much text fits where.

use crate::Weight;
use crate::markup::Markup;

/// An average letter of the state texts; generous, so that none runs out of its bar.
pub(super) const LETTER_WIDTH: f64 = 6.3;
/// Fewer letters of a state than these would puzzle rather than tell.
const STATE_LETTERS_MIN: usize = 7;

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

pub(super) fn weight_class(weight: Weight) -> &'static str {
    match weight {
        Weight::Key => "key",
        Weight::Bad => "bad",
        Weight::Normal | Weight::Detail => "",
    }
}

pub(super) fn px(value: f64) -> String {
    format!("{value:.1}")
}

pub(super) fn px_letters(text: &str) -> f64 {
    LETTER_WIDTH * f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
}

pub(super) fn label(out: &mut Markup, class: &str, x: f64, y: f64, text: &str) {
    out.leaf("text", &[("x", &px(x)), ("y", &px(y)), ("class", class)], text);
}

pub(super) fn rule(out: &mut Markup, x1: f64, x2: f64, y: f64, class: &str) {
    let (x1, x2, y) = (px(x1), px(x2), px(y));
    out.void("line", &[("x1", &x1), ("x2", &x2), ("y1", &y), ("y2", &y), ("class", class)]);
}

pub(super) fn upright(out: &mut Markup, class: &str, x: f64, (top, bottom): (f64, f64)) {
    let (x, y1, y2) = (px(x), px(top), px(bottom));
    out.void("line", &[("x1", &x), ("x2", &x), ("y1", &y1), ("y2", &y2), ("class", class)]);
}

pub(super) fn shape(
    out: &mut Markup,
    class: &str,
    (x, y): (f64, f64),
    (width, height): (f64, f64),
) {
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
