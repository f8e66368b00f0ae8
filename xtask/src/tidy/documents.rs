//! Documents that name things: links must lead somewhere, and tests that a promise names must be.

use std::collections::BTreeSet;

use crate::source::Source;

const PROPOSALS: &str = "docs/proposals.md";

/// Relative links of a Markdown file that lead nowhere: to no file, or to no heading of a Markdown file. Code is
/// not looked into. `headings` gives the anchors of a Markdown file.
pub(super) fn broken_links(
    source: &Source,
    exists: impl Fn(&str) -> bool,
    anchors: impl Fn(&str) -> Option<BTreeSet<String>>,
) -> Vec<String> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    for (number, line) in text_lines(&source.text) {
        for target in links(line) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            if path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            let file = if path.is_empty() { source.path.clone() } else { join(folder, path) };
            let has_anchor = || anchors(&file).is_none_or(|known| known.contains(anchor));
            if exists(&file) && (anchor.is_empty() || has_anchor()) {
                continue;
            }
            found.push(format!("{}:{number}: leads nowhere: {target}", source.path));
        }
    }
    found
}

/// The anchors of a Markdown file, as GitHub and mdBook make them of its headings.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in text_lines(text) {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else {
            continue;
        };
        let plain = |letter: char| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || matches!(letter, '-' | '_') => {
                letter.to_lowercase().next()
            }
            _ => None,
        };
        let anchor: String = link_texts(heading.trim()).chars().filter_map(plain).collect();
        let mut numbered = anchor.clone();
        for number in 1..=anchors.len() {
            if !anchors.contains(&numbered) {
                break;
            }
            numbered = format!("{anchor}-{number}");
        }
        anchors.insert(numbered);
    }
    anchors
}

/// `[text](target)` as its text.
fn link_texts(heading: &str) -> String {
    let mut rest = heading;
    let mut plain = String::new();
    while let Some((before, target)) = rest.split_once("](") {
        plain.push_str(before);
        rest = target.split_once(')').map_or("", |(_, after)| after);
    }
    plain + rest
}

/// Lines outside of code, with their numbers.
fn text_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number, line))
    })
}

/// The targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// A path from the root, without `..`.
fn join(folder: &str, path: &str) -> String {
    let whole = match path.strip_prefix('/') {
        Some(from_root) => from_root.to_owned(),
        None => format!("{folder}/{path}"),
    };
    let mut parts = Vec::new();
    for part in whole.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Tests that docs/proposals.md names and that are not there. It names them as code,
/// `path/to/file.rs` or `path/to/file.rs::name_of_the_test`.
pub(super) fn unknown_tests(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|source| source.path == PROPOSALS) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        for code in line.split('`').skip(1).step_by(2) {
            let (path, test) = code.split_once("::").unwrap_or((code, ""));
            let is_file = path.strip_suffix(".rs").is_some_and(|stem| stem.contains('/'));
            if !is_file {
                continue;
            }
            let file = sources.iter().find(|source| source.path == path);
            let name = test.rsplit("::").next().unwrap_or_default();
            let is_there = file
                .is_some_and(|file| name.is_empty() || file.text.contains(&format!("fn {name}(")));
            if !is_there {
                found.push(format!("{PROPOSALS}:{}: there is no test {code}", number + 1));
            }
        }
    }
    found
}

/// Pages under `docs/` that the book's summary does not lead to.
pub(super) fn outside_the_book(sources: &[Source]) -> Vec<String> {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let Some(summary) = sources.iter().find(|source| source.path == SUMMARY) else {
        return vec![format!("{SUMMARY}: is missing")];
    };
    let pages =
        sources.iter().filter(|source| source.has_extension("md") && source.path != SUMMARY);
    let pages = pages.filter_map(|page| page.path.strip_prefix("docs/"));
    let missing = pages.filter(|page| !summary.text.contains(&format!("]({page})")));
    missing.map(|page| format!("{SUMMARY}: does not lead to docs/{page}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "# A `b`: c\n[a](there.md) [b](../there.md#part-1) [c](https://example.org/x) [d](#a-b-c)\n\
                    ```\n[e](not-a-link)\n```\n[f](gone.md) and [g](/docs/there.md \"title\") [h](there.md#no)\n";
        let exists = |path: &str| matches!(path, "docs/there.md" | "there.md" | "docs/a.md");
        let there = "## Part\n## [Part](x.md)\n";
        let known = |path: &str| Some(anchors(if path == "docs/a.md" { text } else { there }));
        assert_eq!(
            broken_links(&source("docs/a.md", text), exists, known),
            ["docs/a.md:6: leads nowhere: gone.md", "docs/a.md:6: leads nowhere: there.md#no",]
        );
    }

    #[test]
    fn proposals_name_tests_that_exist() {
        let text = "| off is read | `host/a.rs::tests::off_is_read` |\n\
                    | gone | `host/a.rs::was_renamed` |\n| no file | `host/b.rs` | `plain code` |\n";
        let sources = [
            source(PROPOSALS, text),
            source("host/a.rs", "#[test]\nfn off_is_read() {}\nfn was_renamed_later() {}\n"),
        ];
        assert_eq!(
            unknown_tests(&sources),
            [
                "docs/proposals.md:2: there is no test host/a.rs::was_renamed",
                "docs/proposals.md:3: there is no test host/b.rs",
            ]
        );
    }

    #[test]
    fn a_page_is_in_the_book() {
        let page = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let pages = [
            page("docs/SUMMARY.md", "- [A](a.md)\n"),
            page("docs/a.md", ""),
            page("docs/b/c.md", ""),
            page("README.md", ""),
        ];
        assert_eq!(outside_the_book(&pages), ["docs/SUMMARY.md: does not lead to docs/b/c.md"]);
        assert_eq!(outside_the_book(&[]), ["docs/SUMMARY.md: is missing"]);
    }
}
