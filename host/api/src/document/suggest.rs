//! "Did you mean": the nearest of the words that were possible. Nothing is corrected silently.

/// The word of `words` nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word may be wrong by a third of its letters; short ones by one.
    let tolerance = (word.chars().count() / 3).max(1);
    words
        .into_iter()
        .map(|candidate| (distance(&plain(word), &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Case and separators are what people mistake most, and mean nothing.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Levenshtein's distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = i.saturating_add(1);
        next.push(left);
        for ((to, diagonal), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let change = diagonal.saturating_add(usize::from(from != *to));
            left = change.min(above.saturating_add(1)).min(left.saturating_add(1));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
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
