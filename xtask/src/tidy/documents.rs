//! Documents that name things: links must lead somewhere, and tests that a promise names must be.

use crate::source::Source;

const PROPOSALS: &str = "docs/proposals.md";

/// Relative links of a Markdown file that lead nowhere. Code is not looked into.
pub(super) fn broken_links(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found = Vec::new();
    let mut is_code = false;
    for (number, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for target in links(line) {
            let path = target.split('#').next().unwrap_or_default();
            let leads_out = path.contains("://") || path.starts_with("mailto:");
            if path.is_empty() || leads_out || exists(&join(folder, path)) {
                continue;
            }
            found.push(format!("{}:{}: leads nowhere: {target}", source.path, number + 1));
        }
    }
    found
}

/// The targets of `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

fn join(folder: &str, path: &str) -> String {
    match path.strip_prefix('/') {
        Some(from_root) => from_root.to_owned(),
        None if folder.is_empty() => path.to_owned(),
        None => format!("{folder}/{path}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "[a](there.md) [b](../there.md#part) [c](https://example.org/x) [d](#part)\n\
                    ```\n[e](not-a-link)\n```\n[f](gone.md) and [g](/docs/there.md \"title\")\n";
        let exists = |path: &str| matches!(path, "docs/there.md" | "docs/../there.md");
        assert_eq!(
            broken_links(&source("docs/a.md", text), exists),
            ["docs/a.md:5: leads nowhere: gone.md"]
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
}
