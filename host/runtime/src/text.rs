//! Text for people: an error with its causes in one line, a text cut to its length.

/// An error and its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        out.push_str(": ");
        out.push_str(&inner.to_string());
        cause = inner.source();
    }
    out
}

/// The text, or its beginning and `…`: at most so many characters.
pub fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}
