//! "Did you mean": the nearest of the words that were possible. Nothing is corrected silently.

use strsim::levenshtein;

/// The word of `words` nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word may be wrong by a third of its letters; short ones by one.
    let tolerance = (word.chars().count() / 3).max(1);
    words
        .into_iter()
        .map(|candidate| (levenshtein(&plain(word), &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Case and separators are what people mistake most, and mean nothing.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_or_none() {
        let words = ["nodeSelector", "thresholdConfigs", "remedyConfigs", "mode"];
        for (typed, expected) in [
            ("nodeselector", Some("nodeSelector")),
            ("node_selector", Some("nodeSelector")),
            ("tresholdConfig", Some("thresholdConfigs")),
            ("mod", Some("mode")),
            ("policies", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, words), expected, "{typed}");
        }
    }
}
