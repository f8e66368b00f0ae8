//! Which nodes answer although their Leases are silent.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use node_remedy_decide::{Span, Time};
use tokio::sync::mpsc;

use crate::store::Changed;

/// An answer counts for so long: until a few more were asked for.
const ANSWER_MAX: Span = Span::seconds(10);

/// What was heard of a kubelet's port in one silence of its node.
struct PortAnswers {
    /// When it first took a connection. One that answers now and then gets no more time than one that always does.
    first: Time,
    /// When it last did; `None` where it did not since.
    last: Option<Time>,
}

/// What was heard of each kubelet's port, while its node is silent.
pub struct Answers {
    known: RefCell<BTreeMap<String, PortAnswers>>,
    changes: mpsc::UnboundedSender<Changed>,
}

impl Answers {
    pub(super) fn new(changes: &mpsc::UnboundedSender<Changed>) -> Self {
        Self { known: RefCell::default(), changes: changes.clone() }
    }

    /// Forgets all nodes but these, which are silent now.
    pub fn keep(&self, silent: &BTreeSet<&str>) {
        self.known.borrow_mut().retain(|node, _| silent.contains(node.as_str()));
    }

    /// Takes note that a node's kubelet took a connection, or did not.
    pub fn note(&self, node: &str, answers: bool, now: Time) {
        let before = self.since(node, now);
        let last = answers.then_some(now);
        if let Some(heard) = self.known.borrow_mut().get_mut(node) {
            heard.last = last;
        } else if answers {
            self.known.borrow_mut().insert(node.to_owned(), PortAnswers { first: now, last });
        }
        if before.is_some() != answers {
            let key: Rc<str> = node.into();
            let change = Changed { kind: "Answer", node: Some(key.clone()), key };
            // Nobody listens where the process ends.
            drop(self.changes.send(change));
        }
    }

    /// Since when a silent node answers, if it does: since its first answer in this silence.
    pub fn since(&self, node: &str, now: Time) -> Option<Time> {
        let known = self.known.borrow();
        let heard = known.get(node)?;
        let is_young = |last: Time| now.since(last) <= ANSWER_MAX;
        heard.last.is_some_and(is_young).then_some(heard.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_until_it_ends_or_grows_old() {
        let (changes, mut told) = mpsc::unbounded_channel();
        let answers = Answers::new(&changes);
        answers.note("a", true, Time(1_000));
        answers.note("a", true, Time(4_000));
        assert_eq!(answers.since("a", Time(5_000)), Some(Time(1_000)));
        assert_eq!(answers.since("b", Time(5_000)), None);
        assert_eq!(answers.since("a", Time(15_000)), None, "nobody asked for long");
        answers.note("a", false, Time(6_000));
        assert_eq!(answers.since("a", Time(6_000)), None);
        answers.note("a", true, Time(7_000));
        assert_eq!(answers.since("a", Time(7_000)), Some(Time(1_000)), "no time anew");
        answers.keep(&BTreeSet::from(["b"]));
        assert_eq!(answers.since("a", Time(8_000)), None, "it renews again");
        let mut times = 0;
        while told.try_recv().is_ok() {
            times += 1;
        }
        assert_eq!(times, 3, "whoever waits for it looks again");
    }
}
