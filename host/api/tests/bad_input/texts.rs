//! What is no document at all: texts that are not YAML, and documents beyond every bound.

use expect_test::{Expect, expect};

use node_remedy_api::document::Document;
use node_remedy_api::limits;

use crate::lines;

#[test]
fn texts_that_are_no_yaml() {
    let check = |text: &str, expected: Expect| {
        let reading = Document::read_all("f.yaml", text);
        assert!(reading.value.is_none(), "{text:?} is taken for valid");
        expected.assert_eq(&lines(&reading.problems));
    };
    check(
        "a:\n\t- b\n",
        expect![[r#"
        f.yaml:2:2: found what is not YAML: tabs disallowed within this context (block indentation)
    "#]],
    );
    check(
        "a: [1\n",
        expect![[r#"
        f.yaml:1:4: found what is not YAML: unclosed bracket '['
    "#]],
    );
    check(
        "a: b: c\n",
        expect![[r#"
        f.yaml:1:5: found what is not YAML: mapping values are not allowed in this context
    "#]],
    );
    check(
        "a: \"x\n",
        expect![[r#"
        f.yaml:2:1: found what is not YAML: invalid indentation in multiline quoted scalar
    "#]],
    );
    check(
        "a\0b",
        expect![[r#"
        f.yaml:1:2: found a control character, expected text; is this a YAML file?
    "#]],
    );
    check(
        "\u{1b}[31m",
        expect![[r#"
        f.yaml:1:1: found a control character, expected text; is this a YAML file?
    "#]],
    );
    check(
        "a: *b\n",
        expect![[r#"
        f.yaml:1:4: found what is not YAML: while parsing node, found unknown anchor
    "#]],
    );
    check(
        "a: &b [*b]\n",
        expect![[r#"
        f.yaml:1:8: found an alias to itself, expected a value
    "#]],
    );
    check(
        "a: 1\nb: 2\na: 3\n",
        expect![[r#"
        f.yaml:3:1: found the key "a" twice, first on line 1
    "#]],
    );
    check(
        "? [a]\n: b\n",
        expect![[r#"
        f.yaml:1:3: found a list as a key, expected text
    "#]],
    );
    check(
        "a: !!binary aGk=\n",
        expect![[r#"
        f.yaml:1:13: found a YAML tag, expected a value without one
    "#]],
    );
    check(
        "a: !env X\n",
        expect![[r#"
        f.yaml:1:9: found a YAML tag, expected a value without one
    "#]],
    );
    check(
        "- a\nb: c\n",
        expect![[r#"
        f.yaml:2:1: found what is not YAML: while parsing a block collection, did not find expected '-' indicator
    "#]],
    );
    check(
        "%YAML 9.9\n",
        expect![[r#"
        f.yaml:1:1: found what is not YAML: unsupported YAML major version
    "#]],
    );
}

#[test]
fn a_document_is_bounded() {
    let big = "a".repeat(limits::DOCUMENT_BYTES_MAX + 1);
    let reading = Document::read_all("f.yaml", &big);
    assert_eq!(lines(&reading.problems), "f.yaml: found 1048577 bytes, expected at most 1048576\n");

    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip("abcdefgh".chars()) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 10].join(","));
    }
    expect![[r#"
        f.yaml:5:29: found more than 100000 values with aliases expanded, expected a smaller document
    "#]].assert_eq(&lines(&Document::read_all("f.yaml", &bomb).problems));

    let lists = "[".repeat(100) + &"]".repeat(100);
    let maps = "{a: ".repeat(100) + &"}".repeat(100);
    for deep in [lists, maps, "- ".repeat(100)] {
        let problems = Document::read_all("f.yaml", &deep).problems;
        assert!(lines(&problems).contains("more than 64 levels"), "{problems}");
    }

    // Duplicate keys by the thousand are found in one pass, and reported a hundred at most.
    let many: String = (0..60_000).map(|index| format!("k{}: 1\n", index % 30_000)).collect();
    assert_eq!(Document::read_all("f.yaml", &many).problems.iter().count(), limits::PROBLEMS_MAX);
}
