//! `explain --why` and `rule`: the pages of the documentation that a word of the program leads to. One source:
//! `docs/runbook` and `docs/guarantees.md` are compiled in.

use std::process::ExitCode;

use anyhow::bail;
use node_remedy_api::document::nearest;
use node_remedy_device_cli::output::{out, outln};

/// Pages of the runbook by the word that they are about, in order.
const RUNBOOK: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/runbook.rs"));
const GUARANTEES: &str = include_str!("../../../docs/guarantees.md");

/// Prints the page of the runbook about a reason, as `UnhealthyShare`.
pub fn why(word: &str) -> anyhow::Result<ExitCode> {
    let page = RUNBOOK.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let Some((_, text)) = page else {
        bail!(unknown("reason", word, RUNBOOK.iter().map(|(name, _)| *name)))
    };
    out!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Prints what a rule or promise says, as `A16` or `S1`.
pub fn rule(name: &str) -> anyhow::Result<ExitCode> {
    let Some((_, says)) = promises().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
        bail!(unknown("rule", name, promises().map(|(known, _)| known)));
    };
    outln!("{}: {says}", name.to_ascii_uppercase());
    Ok(ExitCode::SUCCESS)
}

/// The rows of the page: name and sentence.
fn promises() -> impl Iterator<Item = (&'static str, &'static str)> {
    let row = |line: &'static str| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ");
    let is_name = |name: &str| name.bytes().any(|byte| byte.is_ascii_digit());
    GUARANTEES.lines().filter_map(row).filter(move |(name, _)| is_name(name))
}

fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let hint = nearest(word, known.iter().copied()).map(|near| format!(" Did you mean {near}?"));
    format!("there is no {what} {word:?}.{} Known: {}", hint.unwrap_or_default(), known.join(", "))
}

#[cfg(test)]
mod tests {
    use node_remedy_record::reason::DEVICE_NETWORK_LOST;

    use super::*;

    /// Where the words of refusals and holds are given.
    const REASONS: &str = include_str!("../../record/src/reason.rs");
    /// And those of what an incident is parked for.
    const RECORD: &str = include_str!("../../api/src/nodefence/record.rs");

    #[test]
    fn every_reason_has_its_page_and_every_page_its_word_as_title() {
        let words = REASONS.lines().filter_map(|line| {
            let (_, text) = line.trim().strip_suffix("\",")?.split_once("=> \"")?;
            Some(text)
        });
        let words: Vec<&str> = words.collect();
        assert!(words.contains(&"UnhealthyShare") && words.contains(&"NoSlot"), "{words:?}");
        let parks =
            RECORD.split_once("pub enum ParkCode {").and_then(|(_, all)| all.split_once("\n}"));
        let (parks, _) = parks.expect("the words of what an incident is parked for");
        let parks = parks.lines().filter_map(|line| line.trim().strip_suffix(','));
        let words: Vec<&str> =
            words.into_iter().chain(parks).chain([DEVICE_NETWORK_LOST]).collect();
        assert!(words.contains(&"WrongPlug"), "{words:?}");
        for word in words.iter().filter(|word| **word != "Gate") {
            assert!(RUNBOOK.iter().any(|(name, _)| name == word), "no page docs/runbook/{word}.md");
        }
        for (name, text) in RUNBOOK {
            assert!(text.starts_with(&format!("# {name}\n")), "docs/runbook/{name}.md: its title");
        }
    }

    #[test]
    fn a_rule_is_found_and_a_mistyped_word_is_told_its_neighbour() {
        assert!(promises().any(|(name, says)| name == "A16" && !says.is_empty()));
        let wrong = why("UnhealthyShar").unwrap_err().to_string();
        assert!(wrong.contains("Did you mean UnhealthyShare?"), "{wrong}");
        let wrong = rule("A99").unwrap_err().to_string();
        assert!(wrong.starts_with("there is no rule \"A99\"") && wrong.contains("P8"), "{wrong}");
    }
}
