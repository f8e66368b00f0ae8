//! The tutorial (`docs/tutorial.md`) as a program: each block of shell is run in one folder and in order, and
//! prints the lines that stand behind it, in their order.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use node_remedy_tests::Controller;
use node_remedy_tests::process::repository;

/// A block of shell, and what it prints; lines between them may be anything.
struct Block {
    line: usize,
    shell: String,
    printed: Vec<String>,
}

/// The blocks of a page, in order. What is for people alone is `console`.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        let Some(kind) = fence.strip_prefix("```") else { continue };
        let inside: Vec<String> = lines
            .by_ref()
            .map(|(text, _)| text.to_owned())
            .take_while(|text| text != "```")
            .collect();
        match (kind, blocks.last_mut()) {
            ("sh", _) => {
                blocks.push(Block { line, shell: inside.join("\n"), printed: Vec::new() });
            }
            ("text", Some(block)) if block.printed.is_empty() => block.printed = inside,
            ("console", _) => {}
            (other, _) => {
                panic!("docs/tutorial.md:{line}: a block of {other:?}: nobody would run it")
            }
        }
    }
    blocks
}

/// A folder with `node-remedy` on the path, and another to work in.
fn laptop() -> (PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial");
    let _ = fs::remove_dir_all(&root);
    let (programs, work) = (root.join("bin"), root.join("work"));
    for folder in [&programs, &work] {
        fs::create_dir_all(folder).expect("a folder");
    }
    std::os::unix::fs::symlink(Controller::binary(), programs.join("node-remedy"))
        .expect("node-remedy was built");
    (programs, work)
}

#[test]
fn each_step_of_the_tutorial_prints_what_the_page_says() {
    let page = fs::read_to_string(repository().join("docs/tutorial.md")).expect("the tutorial");
    let (programs, work) = laptop();
    let blocks = blocks(&page);
    assert!(blocks.len() > 5, "{} blocks", blocks.len());
    for Block { line, shell, printed } in blocks {
        let script = format!("exec 2>&1\nPATH=\"$PROGRAMS:$PATH\"\n{shell}");
        let ran = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(&work)
            .env("PROGRAMS", &programs)
            .env("NODE_REMEDY", repository())
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "docs/tutorial.md:{line}: {}\n{said}", ran.status);
        let mut rest = said.as_ref();
        for expected in printed {
            let Some((_, after)) = rest.split_once(expected.as_str()) else {
                panic!(
                    "docs/tutorial.md:{line}: {expected:?} was not printed, or too early:\n{said}"
                );
            };
            rest = after;
        }
    }
}
