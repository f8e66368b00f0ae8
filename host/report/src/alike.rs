//! Puts together what is alike: lines that many nodes share, turning points, refusals.
//!
//! Deliberately lossless in what it counts: a group keeps all of its members.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{Entry, Lane, Refusal, Run, Weight};

/// Lines further apart than this are told apart: that it happened again is news.
const GROUP_SPAN_MS: u64 = 60_000;
/// From this many lines on, they share one even where they differ in names and numbers.
const GROUP_MIN: usize = 4;
/// Stands for what differs.
const ELLIPSIS: &str = "…";

/// Lines that say alike of different subjects, within a minute.
pub(crate) struct Group<'a> {
    /// The entries with their places in the run, in order; never empty.
    pub(crate) members: Vec<(usize, &'a Entry)>,
    /// What they say, with `…` for what differs.
    pub(crate) text: String,
}

/// The entries that are `told`, those alike together, in the order of their first.
pub(crate) fn groups(run: &Run, told: impl Fn(&Entry) -> bool) -> Vec<Group<'_>> {
    let names = names(run);
    let mut groups: Vec<Vec<(usize, &Entry)>> = Vec::new();
    let mut latest: BTreeMap<Likeness, usize> = BTreeMap::new();
    for (place, entry) in run.entries.iter().enumerate().filter(|(_, entry)| told(entry)) {
        let likeness = Likeness::of(entry, &names);
        let open = latest.get(&likeness).and_then(|&at| groups.get_mut(at));
        if let Some(members) = open.filter(|members| takes(members, entry)) {
            members.push((place, entry));
        } else {
            latest.insert(likeness, groups.len());
            groups.push(vec![(place, entry)]);
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().flat_map(split).collect();
    groups.sort_by_key(|group| group.members.first().map(|&(place, _)| place));
    groups
}

/// In what lines that share one must agree.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    lane: Lane,
    is_detail: bool,
    symptom: &'static str,
    basis: (Option<String>, Option<String>),
    pattern: String,
}

impl Likeness {
    fn of(entry: &Entry, names: &[&str]) -> Self {
        Self {
            lane: entry.lane,
            is_detail: entry.weight == Weight::Detail,
            symptom: crate::spell::weight(entry.weight),
            basis: (entry.rule.clone(), entry.grade.clone()),
            pattern: pattern(&entry.text, names),
        }
    }
}

fn takes(members: &[(usize, &Entry)], entry: &Entry) -> bool {
    let is_near = members
        .first()
        .is_some_and(|(_, first)| entry.at_ms.saturating_sub(first.at_ms) <= GROUP_SPAN_MS);
    is_near && members.iter().all(|(_, member)| member.subject != entry.subject)
}

/// A few lines that differ are better read one by one; the very same sentence is said once.
fn split(members: Vec<(usize, &Entry)>) -> Vec<Group<'_>> {
    if members.len() >= GROUP_MIN {
        let text = common(members.iter().map(|(_, entry)| entry.text.as_str()));
        return vec![Group { members, text }];
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, entry) in members {
        match groups.iter_mut().find(|group| group.text == entry.text) {
            Some(group) => group.members.push((place, entry)),
            None => groups.push(Group { members: vec![(place, entry)], text: entry.text.clone() }),
        }
    }
    groups
}

/// Names of nodes that cannot be told from words by a digit.
fn names(run: &Run) -> Vec<&str> {
    let nodes = run.intervals.iter().filter(|interval| interval.lane == Lane::Node);
    let mut names: Vec<&str> = nodes.map(|interval| interval.subject.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty() && !has_digit(name));
    names
}

fn pattern(text: &str, names: &[&str]) -> String {
    let words = text.split(' ').map(|word| {
        let varies = has_digit(word) || names.iter().any(|name| word.contains(name));
        if varies { ELLIPSIS } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn has_digit(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit())
}

/// The words that all texts share, with `…` for the others; the last where they are too unlike.
fn common<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let merge = |one: Vec<&'t str>, other: Vec<&'t str>| {
        if one.len() != other.len() {
            return other;
        }
        let pairs = one.into_iter().zip(other);
        pairs.map(|(a, b)| if a == b { a } else { ELLIPSIS }).collect()
    };
    let words = texts.map(|text| text.split(' ').collect::<Vec<_>>()).reduce(merge);
    words.unwrap_or_default().join(" ")
}

/// One turning point of a run: entries worth a mark.
pub(crate) struct Turn<'a> {
    /// Its number in the picture, from 1.
    pub(crate) number: usize,
    /// The entries with their places in the run, in order; never empty.
    pub(crate) members: Vec<(usize, &'a Entry)>,
    /// What they say.
    pub(crate) text: String,
}

/// The `Key` and `Bad` entries, those alike together.
pub(crate) fn turns(run: &Run) -> Vec<Turn<'_>> {
    let groups = groups(run, |entry| is_loud(entry.weight)).into_iter().enumerate();
    let turn = |(place, Group { members, text })| Turn { number: place + 1, members, text };
    groups.map(turn).collect()
}

/// Whether entries of this weight are turning points.
pub(crate) fn is_loud(weight: Weight) -> bool {
    match weight {
        Weight::Key | Weight::Bad => true,
        Weight::Normal | Weight::Detail => false,
    }
}

/// Refusals of several nodes by one guard.
pub(crate) struct Refusals<'a> {
    /// All of them, in order; they agree in guard, rule and next step.
    pub(crate) members: Vec<&'a Refusal>,
    /// As one: its span, its count, and `…` for numbers that differ.
    pub(crate) together: Refusal,
}

impl Refusals<'_> {
    /// The nodes that were not acted on.
    pub(crate) fn nodes(&self) -> Vec<&str> {
        self.members.iter().map(|refusal| refusal.node.as_str()).collect()
    }
}

/// The refusals of a run, those by one guard together, the most frequent first.
pub(crate) fn refusals(run: &Run) -> Vec<Refusals<'_>> {
    let mut groups: Vec<Refusals<'_>> = Vec::new();
    for refusal in &run.refusals {
        let same = |group: &&mut Refusals<'_>| {
            (&group.together.guard, &group.together.rule, &group.together.next)
                == (&refusal.guard, &refusal.rule, &refusal.next)
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                let all = &mut group.together;
                all.first_ms = all.first_ms.min(refusal.first_ms);
                all.last_ms = all.last_ms.max(refusal.last_ms);
                all.times = all.times.saturating_add(refusal.times);
                all.numbers = common([all.numbers.as_str(), &refusal.numbers].into_iter());
                group.members.push(refusal);
            }
            None => groups.push(Refusals { members: vec![refusal], together: refusal.clone() }),
        }
    }
    groups.sort_by_key(|group| Reverse(group.together.times));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_do_not_make_a_line_another_line() {
        let pattern = |text| pattern(text, &["node-c"]);
        assert_eq!(pattern("Running on node-c"), pattern("Running on rack-1"));
        assert_eq!(pattern("retry 1 of 2"), "retry … of …");
        assert_ne!(pattern("Running on node-c"), pattern("Failed on node-c"));
    }

    #[test]
    fn what_differs_is_left_out_of_what_is_common() {
        let texts = ["waits for 11 others", "waits for 12 others", "waits for 11 others"];
        assert_eq!(common(texts.into_iter()), "waits for … others");
        assert_eq!(common(["as it is"].into_iter()), "as it is");
        assert_eq!(common(["one", "as it is"].into_iter()), "as it is");
    }
}
