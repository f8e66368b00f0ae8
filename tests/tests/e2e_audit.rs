//! The audit log of a process that is killed between off and on and started again: whole as it was written,
//! and one changed byte is found.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, status};

use crate::e2e_story::Story;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_log_goes_on_after_a_kill_and_shows_a_changed_byte() -> Result<()> {
    let story = Story::begin("e2e-audit", &Installation::default()).await?;
    let file = story.cluster.control_plane().folder().join("audit-of-node-remedy.jsonl");
    let option = format!("--audit-log={}", file.display());
    let mut controller = Controller::start_saying(&story.cluster, "one", &[&option])?;
    controller.until_ready().await?;
    story.lose_node()?;
    story.incident("proven off", |incident| status(incident, "/proof").is_object()).await?;
    controller.kill9()?;
    let before = std::fs::read_to_string(&file)?.lines().count();
    assert!(before > 0, "it was written down before it was done");
    let mut again = Controller::start_saying(&story.cluster, "one", &[&option])?;
    again.until_ready().await?;
    story.ends_well().await?;
    again.terminate().await?;

    let whole = verify(&file)?;
    let said = String::from_utf8(whole.stdout)?;
    assert!(whole.status.success() && said.starts_with("whole: "), "{said}");
    let text = std::fs::read(&file)?;
    let lines = text.split(|byte| *byte == b'\n').count() - 1;
    assert!(lines > before && said.contains(&format!("whole: {lines} lines")), "{said}");

    // One byte of a line in the middle: a letter of the node's name.
    let place = text.len() / 2;
    let at = text.iter().skip(place).position(u8::is_ascii_lowercase).map(|more| place + more);
    let mut changed = text.clone();
    if let Some(byte) = at.and_then(|at| changed.get_mut(at)) {
        *byte = byte.to_ascii_uppercase();
    }
    assert_ne!(changed, text);
    std::fs::write(&file, &changed)?;
    let broken = verify(&file)?;
    let said = String::from_utf8(broken.stderr)?;
    assert_eq!(broken.status.code(), Some(1), "{said}");
    let above = changed.iter().take(at.unwrap_or_default()).filter(|byte| **byte == b'\n').count();
    // Either does not follow from the one before: it, or the one after it.
    let places = [1, 2].map(|more| format!("{}:{}: ", file.display(), above + more));
    assert!(places.iter().any(|place| said.contains(place)), "{places:?}: {said}");
    Ok(())
}

/// `node-remedy audit verify FILE`.
fn verify(file: &Path) -> Result<Output> {
    Ok(Command::new(Controller::binary()).args(["audit", "verify"]).arg(file).output()?)
}
