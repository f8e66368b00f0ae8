//! The rules that a line of a timeline can name, each in one sentence.
//!
//! Deliberately only the reader's view: the rules themselves are code elsewhere.

/// A rule of the automaton (A) or of proof and release (P).
pub(crate) struct Rule {
    /// Such as `A1`.
    pub(crate) id: &'static str,
    /// What it asks for.
    pub(crate) meaning: &'static str,
}

/// All of them, in order.
pub(crate) const RULES: [Rule; 27] = [
    rule(
        "A1",
        "What allowed a cut is read again, live, right before it; a node that became well is spared.",
    ),
    rule(
        "A2",
        "Powering on, restoring and untainting are never held back: what we cut, we bring back or say why not.",
    ),
    rule(
        "A3",
        "Power-on covers every plug that may have been sent off, and waits out an off that may still come late.",
    ),
    rule(
        "A4",
        "A machine that somebody else switched off is not switched on behind that person's back.",
    ),
    rule(
        "A5",
        "Network and storage that isolation cut are given back before power-on, once everything reads off again and nothing speaks against that.",
    ),
    rule(
        "A6",
        "Well, with the same boot, after a release: the machine is power-cycled all the same, as pods may be running twice.",
    ),
    rule(
        "A7",
        "A retry goes on at the first thing not yet reached; at most restarts + 1 power cycles per incident.",
    ),
    rule(
        "A8",
        "After power-on the node gets its time to become well: no machine is Ready at once.",
    ),
    rule(
        "A9",
        "If isolation fails, the flow goes on to the power supply, unless isolation was made a must.",
    ),
    rule(
        "A10",
        "A reset without a clear answer is settled by a new boot or by time, and never repeated blindly.",
    ),
    rule(
        "A11",
        "The next remedy starts only when the one before it has ended and the node is still unhealthy; never two at once.",
    ),
    rule(
        "A12",
        "A device that nothing reached costs no retry: it is asked again until it answers or its time is up.",
    ),
    rule(
        "A13",
        "A device that failed to power a machine on cuts no other one until a person has looked.",
    ),
    rule(
        "A14",
        "If the gate closes after isolation, nothing is cut: isolation is undone, or the incident is parked.",
    ),
    rule(
        "A15",
        "A deleted or replaced Node ends release and further cuts; what we switched off is still switched on.",
    ),
    rule(
        "A16",
        "Others may power the machine too: its status is read before every batch of releases.",
    ),
    rule(
        "A17",
        "A person can pause, approve, retry and abort, and is told which point the incident had reached.",
    ),
    rule(
        "A18",
        "The age of a condition counts from its change, by the API server's clock, through False and Unknown alike.",
    ),
    rule(
        "A19",
        "An incident holds a slot of the budget from its opening until the node is on again or was never sent off.",
    ),
    rule(
        "P1",
        "No grade of proof, no release: a success reply is not proof, and unknown is not off.",
    ),
    rule(
        "P2",
        "A proof covers one boot: any newer sign of life ends forced deletion at once, and taints go before power-on.",
    ),
    rule(
        "P3",
        "Deleting a node, its pods or its attachments is a release, and stands behind proof wherever it is configured.",
    ),
    rule(
        "P4",
        "Each release reads its proof and the signs of life again, and takes only the pods listed when the proof was made.",
    ),
    rule(
        "P5",
        "Power-on waits until every released pod and attachment is gone, or its time is up and the record names what holds it.",
    ),
    rule(
        "P6",
        "Disruption budgets bind what still runs; they cannot bind pods that are already dead.",
    ),
    rule("P7", "Taints change by a tested patch, and only our own."),
    rule("P8", "The device must name the same machine as the Node before its power is cut."),
];

const fn rule(id: &'static str, meaning: &'static str) -> Rule {
    Rule { id, meaning }
}

/// A piece of a text that may name rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Names a rule that is in [`RULES`].
    Rule(&'static str),
    /// Anything else.
    Text(&'a str),
}

/// Splits a text such as `A1, P4` into the rules it names and the rest.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(|run| {
            let word = run.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let rest = run.strip_prefix(word).unwrap_or_default();
            let first = match RULES.iter().find(|rule| rule.id == word) {
                Some(rule) => Piece::Rule(rule.id),
                None => Piece::Text(word),
            };
            [first, Piece::Text(rest)]
        })
        .filter(|piece| *piece != Piece::Text(""))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_of_the_design_is_here_once_and_in_order() {
        let expected: Vec<String> =
            (1..=19).map(|n| format!("A{n}")).chain((1..=8).map(|n| format!("P{n}"))).collect();
        assert_eq!(RULES.map(|rule| rule.id).to_vec(), expected);
    }

    #[test]
    fn rules_are_found_as_whole_words_only() {
        use Piece::{Rule, Text};
        assert_eq!(pieces("A1, P4"), [Rule("A1"), Text(","), Text(" "), Rule("P4")]);
        assert_eq!(
            pieces("A111 (A11)"),
            [Text("A111"), Text(" "), Text("("), Rule("A11"), Text(")")]
        );
        assert_eq!(pieces("the gate"), [Text("the"), Text(" "), Text("gate")]);
    }
}
