//! What is far too large, or stands for too much, read by `node-remedy check` as a process: each of these once
//! was, or would be, gibibytes. That each is refused with its place is `host/api/tests/bad_input/bounds.rs`'s.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use node_remedy_tests::Controller;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::weigh::{Program, weigh};

/// The largest takes 57 MiB in a debug build, of which 30 are the program itself.
const PEAK_MAX: u64 = 200 * 1024 * 1024;
/// What a document may have.
const MEBIBYTE: usize = 1024 * 1024;

/// Five files: many documents in one long text, aliases to one long text, a bomb of lists, as many methods as a
/// mebibyte holds, and one deep nest.
fn worst() -> Result<[(&'static str, String); 5]> {
    let documents = "---\na: 1\n".repeat(30_000);
    let long = "# ".repeat(MEBIBYTE / 2 - documents.len());
    let aliases = vec!["*a"; 90_000].join(",");
    let text = "y".repeat(300 * 1024);
    let mut bomb = "kind: Configuration\na: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        writeln!(bomb, "{name}: &{name} [{}]", vec![format!("*{before}"); 10].join(","))?;
    }
    let mut methods = "apiVersion: node-remedy.io/v1alpha1\nkind: FenceConfiguration\nmetadata: {name: a}\nspec:\n  methods:\n".to_owned();
    let mut number = 0;
    while methods.len() < MEBIBYTE - 64 {
        writeln!(methods, "  - {{name: m{number}, plugin: ipmi, action: off}}")?;
        number += 1;
    }
    let nest = format!("a: {}{}\n", "[".repeat(MEBIBYTE / 2 - 8), "]".repeat(MEBIBYTE / 2 - 8));
    Ok([
        ("documents", documents + &long),
        ("aliases", format!("a: &a {text}\nb: [{aliases}]\n")),
        ("bomb", bomb),
        ("methods", methods),
        ("nest", nest),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worst_files_are_refused_within_bounded_memory() -> Result<()> {
    let folder = fresh_folder("examples-bounds")?;
    for (name, text) in worst()? {
        let file = folder.join(format!("{name}.yaml"));
        std::fs::write(&file, text)?;
        let shown = file.display().to_string();
        let weighed = weigh(vec![Program::new(Controller::binary(), &["check", &shown])]).await?;
        let ended = weighed.ended.first().context("nothing was weighed")?;
        let said = ended.complained.lines().next().unwrap_or_default();
        assert!(!ended.succeeded && said.starts_with(&shown), "{name}: {said}");
        let mebibytes = ended.peak_bytes / (1024 * 1024);
        eprintln!("{name}: {mebibytes} MiB, {:?}: {said}", ended.wall);
        assert!(ended.peak_bytes < PEAK_MAX, "{name}: {mebibytes} MiB");
    }
    Ok(())
}
