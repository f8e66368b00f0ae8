//! `cargo xtask guarantees`: each promise of `docs/guarantees.md` with the tests that hold it.
//!
//! A test names its promises behind its attribute, `#[test] // promise: S1, A3`; a scenario in its first line,
//! `# promise: S6`; a file all of whose tests hold one, below its head.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

use anyhow::{Result, bail};
use serde_json::json;

use crate::root::root;
use crate::source::Source;

pub(crate) const HELP: &str = "\
Prints each promise of docs/guarantees.md with the tests that hold it. Fails if one has no test, or if
a test names a promise that there is not.

  --output json  one object: promises by name, each with its sentence and its tests
  PROMISE…       only these, as S1 or A16

Examples:
  cargo xtask guarantees
  cargo xtask guarantees S1 A16
  cargo xtask guarantees --output json
";

const PAGE: &str = "docs/guarantees.md";
const TAG: &str = "promise: ";

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let (is_json, names) = match arguments {
        ["--output", "json", names @ ..] => (true, names),
        names => (false, names),
    };
    let sources = Source::all(root())?;
    let matrix = Matrix::read(&sources);
    let mut asked = BTreeSet::new();
    for name in names {
        let known = name.parse().ok().filter(|name| matrix.promises.contains_key(name));
        let Some(known) = known else {
            bail!("{PAGE} has no promise {name}; all of them: cargo xtask guarantees");
        };
        asked.insert(known);
    }
    let asked = matrix.promises.iter().filter(|(name, _)| asked.is_empty() || asked.contains(name));
    if is_json {
        let promises: serde_json::Map<String, serde_json::Value> = asked
            .map(|(name, one)| {
                (name.to_string(), json!({"sentence": one.sentence, "tests": one.tests}))
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&promises)?);
    } else {
        for (name, Promise { sentence, tests }) in asked {
            println!("{name}  {sentence}");
            for test in tests {
                println!("    {test}");
            }
        }
    }
    match matrix.findings().as_slice() {
        [] => Ok(()),
        findings => bail!("{}", findings.join("\n")),
    }
}

/// What the page promises, and what holds it.
pub(crate) struct Matrix {
    promises: BTreeMap<Name, Promise>,
    unknown: Vec<String>,
}

/// `S1`, `A16`: in the order of their letters and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name(char, u8);

struct Promise {
    sentence: String,
    /// `path::name`, or a path alone.
    tests: BTreeSet<String>,
}

impl Matrix {
    pub(crate) fn read(sources: &[Source]) -> Self {
        let page = sources.iter().find(|source| source.path == PAGE);
        let mut promises: BTreeMap<Name, Promise> = page
            .into_iter()
            .flat_map(|page| page.text.lines())
            .filter_map(|line| {
                let (name, sentence) =
                    line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
                let promise = Promise { sentence: sentence.to_owned(), tests: BTreeSet::new() };
                Some((name.parse().ok()?, promise))
            })
            .collect();
        let mut unknown = Vec::new();
        for (line, test, names) in sources.iter().flat_map(tags) {
            for name in names {
                match name.parse().ok().and_then(|name| promises.get_mut(&name)) {
                    Some(promise) => _ = promise.tests.insert(test.clone()),
                    None => unknown.push(format!("{line}: {PAGE} has no promise {name}")),
                }
            }
        }
        Self { promises, unknown }
    }

    /// Promises without a test, and tags that name none.
    pub(crate) fn findings(&self) -> Vec<String> {
        let untested = self.promises.iter().filter(|(_, promise)| promise.tests.is_empty());
        let untested = untested.map(|(name, _)| format!("{PAGE}: no test holds {name}"));
        untested.chain(self.unknown.iter().cloned()).collect()
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let letter = text.chars().next().filter(char::is_ascii_uppercase).ok_or(())?;
        let number = text.get(1..).and_then(|number| number.parse().ok()).ok_or(())?;
        Ok(Self(letter, number))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, self.1)
    }
}

/// Each tag of a file: where it stands, the test that it is of, the promises.
fn tags(source: &Source) -> Vec<(String, String, Vec<String>)> {
    let path = &source.path;
    let (is_rust, is_scenario) = (source.has_extension("rs"), source.has_extension("yaml"));
    let mut found = Vec::new();
    let mut lines = source.text.lines().zip(1..);
    while let Some((text, number)) = lines.next() {
        let Some((before, names)) = text.split_once(TAG) else { continue };
        let at = format!("{path}:{number}");
        let attribute = before.trim().strip_suffix("//").map(str::trim_end);
        let is_attribute = |text: &str| {
            ["#[test", "#[tokio::test"].iter().any(|test| text.starts_with(test))
                && text.ends_with(']')
        };
        let test = match attribute {
            Some("") if is_rust && source.text.contains("#[test") => path.clone(),
            Some(attribute) if is_rust && is_attribute(attribute) => {
                let name = lines.clone().find_map(|(text, _)| function(text));
                format!("{path}::{}", name.unwrap_or_default())
            }
            Some(_) | None if is_scenario && before == "# " && number == 1 => path.clone(),
            Some(_) | None => continue,
        };
        let names = names.split(',').take_while(|name| !name.contains("each test"));
        found.push((at, test, names.map(|name| name.trim().to_owned()).collect()));
    }
    found
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_head = before.split_whitespace().all(|word| word.starts_with("pub") || word == "async");
    is_head.then(|| after.split(['(', '<']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn each_promise_is_found_with_its_tests() {
        let sources = [
            source(
                PAGE,
                "| promise | in one line |\n|---|---|\n| S1 | Nothing goes early. |\n| A2 | On is free. |\n",
            ),
            source(
                "host/a.rs",
                "//! Head.\n// promise: A2, each test of this file\n\n#[test] // promise: S1, A2\n\
                 #[cfg(unix)]\npub async fn it_holds() {}\nlet text = \"promise: S9\";\n",
            ),
            source("tests/seams/a.yaml", "# promise: S1\ntitle: a\n"),
        ];
        let matrix = Matrix::read(&sources);
        let tests = |name: &str| {
            matrix.promises[&name.parse().unwrap()].tests.iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(tests("S1"), ["host/a.rs::it_holds", "tests/seams/a.yaml"]);
        assert_eq!(tests("A2"), ["host/a.rs", "host/a.rs::it_holds"]);
        assert_eq!(matrix.promises[&Name('S', 1)].sentence, "Nothing goes early.");
        assert_eq!(matrix.findings(), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_none_is_found_and_what_is_no_test_holds_nothing() {
        let sources = [
            source(PAGE, "| S1 | Nothing goes early. |\n"),
            source("host/a.rs", "//! Head.\n\n#[test] // promise: S1,s2, S300\nfn a() {}\n"),
            source("host/b.rs", "//! Head.\n\n#[cfg(unix)] // promise: S9\nfn b() {}\n"),
            source("deploy/c.yaml", "kind: A\n# promise: S9\n"),
        ];
        assert_eq!(
            Matrix::read(&sources).findings(),
            [
                "host/a.rs:3: docs/guarantees.md has no promise s2",
                "host/a.rs:3: docs/guarantees.md has no promise S300",
            ]
        );
    }

    #[test]
    fn a_promise_without_a_test_and_a_tag_of_no_promise_are_found() {
        let sources = [
            source(PAGE, "| S1 | Nothing goes early. |\n"),
            source("host/a.rs", "//! Head.\n\n#[test] // promise: S2\nfn a() {}\n"),
        ];
        assert_eq!(
            Matrix::read(&sources).findings(),
            [
                "docs/guarantees.md: no test holds S1",
                "host/a.rs:3: docs/guarantees.md has no promise S2",
            ]
        );
    }
}
