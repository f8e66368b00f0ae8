//! Bad input, row by row: every error names file, line, column, path, what was found and what is
//! expected. Each kind of document has its file, headed by the valid one that its rows spoil.

mod bounds;
mod config_maps;
mod contradictions;
mod fence_configurations;
mod policies;
mod symptoms;
mod texts;

use expect_test::Expect;

use self::config_maps::NODE;
use self::fence_configurations::FENCE;
use self::policies::POLICY;
pub(crate) use self::symptoms::SYMPTOMS;
use crate::{lines, read};

/// Replaces one text of a valid document by another and reads it: one row of the table.
fn check(valid: &str, from: &str, to: &str, expected: Expect) {
    assert!(valid.contains(from), "{from:?} is not in the document");
    let text = valid.replacen(from, to, 1);
    let configuration = read(&[("f.yaml", &text)]);
    assert!(configuration.problems.has_errors(), "{to:?} is taken for valid");
    assert!(configuration.policies.is_empty() && configuration.fences.is_empty());
    expected.assert_eq(&lines(&configuration.problems));
}

#[test]
fn the_documents_of_these_tables_are_valid_before_they_are_spoilt() {
    for valid in [POLICY, FENCE, NODE, SYMPTOMS] {
        assert_eq!(lines(&read(&[("f.yaml", valid)]).problems), "");
    }
}
