//! Words that the glossary replaces: none of them stands anywhere, but where the glossary says so.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

const GLOSSARY: &str = "docs/glossary.md";
/// The heading of the table, and what its rows begin with.
const HEADING: &str = "## Words not to use";
/// Words of others, and what was.
const QUOTED: &[&str] =
    &[GLOSSARY, "docs/proposals.md", "CHANGELOG.md", "tests/fixtures/", "target/"];

/// A row: words, what to write in their place, and the files that may keep them.
#[derive(Debug)]
struct Row<'a> {
    words: Vec<&'a str>,
    instead: &'a str,
    except: Vec<&'a str>,
}

/// Each use of a word that the glossary replaces, and each exception of a file that has no such word.
pub(super) fn findings(sources: &[Source]) -> Vec<String> {
    let Some(glossary) = sources.iter().find(|source| source.path == GLOSSARY) else {
        return vec![format!("{GLOSSARY}: is missing")];
    };
    let rows = rows(&glossary.text);
    if rows.is_empty() {
        return vec![format!("{GLOSSARY}: found no row below `{HEADING}`")];
    }
    let by_word: BTreeMap<&str, &Row<'_>> =
        rows.iter().flat_map(|row| row.words.iter().map(move |word| (*word, row))).collect();
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    for source in sources {
        if QUOTED.iter().any(|quoted| source.path.starts_with(quoted)) {
            continue;
        }
        for (number, line) in (1_usize..).zip(source.text.lines()) {
            for part in parts(line) {
                let Some(row) = by_word.get(part.as_str()) else { continue };
                let (path, instead) = (source.path.as_str(), row.instead);
                if row.except.contains(&path) {
                    used.insert((instead, path));
                } else {
                    found.push(format!(
                        "{path}:{number}: found `{part}`, write: {instead} ({GLOSSARY})"
                    ));
                }
            }
        }
    }
    for row in &rows {
        let idle = row.except.iter().filter(|path| !used.contains(&(row.instead, **path)));
        found.extend(idle.map(|path| {
            format!("{GLOSSARY}: {path} is excepted, and has none of: {}", row.words.join(", "))
        }));
    }
    found
}

/// The rows of the table.
fn rows(glossary: &str) -> Vec<Row<'_>> {
    let table = glossary.lines().skip_while(|line| *line != HEADING);
    let rows = table.filter(|line| line.starts_with("| ")).skip(1);
    rows.filter_map(|row| {
        let mut cells = row.trim_start_matches('|').split('|').map(str::trim);
        let (not, instead, except) = (cells.next()?, cells.next()?, cells.next()?);
        let except = except.split('`').skip(1).step_by(2).collect();
        Some(Row { words: not.split(", ").collect(), instead, except })
    })
    .collect()
}

/// The words of a line in lower case: `RemedyStep`, `remedy_step` and `remedy-step` have two.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in line.chars() {
        if c.is_alphabetic() {
            let begins = !before.is_alphabetic() || before.is_lowercase() && c.is_uppercase();
            if begins {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut() {
                part.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Glossary\n| dusk | is no word here |\n\n## Words not to use\n\n\
        | not | but | except in |\n|---|---|---|\n| dusk, dusks | run | `a.rs` (a name) |\n\
        | sprig | remedy step | |\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let glossary = (GLOSSARY, TABLE);
        let files = files.iter().chain([&glossary]);
        let sources: Vec<Source> = files
            .map(|(path, text)| Source { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        findings(&sources)
    }

    #[test]
    fn a_word_is_found_in_prose_and_in_identifiers() {
        let text = "fine\n// a Dusk\nfn of_sprig(SprigItem)\nundusk, unsprig, dusky";
        let expected = [
            "b.rs:2: found `dusk`, write: run (docs/glossary.md)",
            "b.rs:3: found `sprig`, write: remedy step (docs/glossary.md)",
            "b.rs:3: found `sprig`, write: remedy step (docs/glossary.md)",
        ];
        assert_eq!(found(&[("a.rs", "dusk"), ("b.rs", text)]), expected);
    }

    #[test]
    fn what_is_excepted_or_quoted_may_stand() {
        assert_eq!(found(&[("a.rs", "dusks"), ("docs/proposals.md", "sprig")]), [""; 0]);
    }

    #[test]
    fn an_exception_that_nobody_needs_goes() {
        let expected = "docs/glossary.md: a.rs is excepted, and has none of: dusk, dusks";
        assert_eq!(found(&[("a.rs", "a run")]), [expected]);
    }

    #[test]
    fn without_a_table_nothing_passes() {
        assert_eq!(findings(&[]), ["docs/glossary.md: is missing"]);
        let empty = Source { path: GLOSSARY.to_owned(), text: "# Glossary\n".to_owned() };
        let expected = "docs/glossary.md: found no row below `## Words not to use`";
        assert_eq!(findings(&[empty]), [expected]);
    }
}
