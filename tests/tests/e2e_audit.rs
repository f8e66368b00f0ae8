//! The audit log of a process that is killed between off and on and started again: whole as it was written,
//! and one changed byte is found.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use node_remedy_tests::Controller;
use node_remedy_tests::remedy::{Installation, status};
use serde_json::Value;

use crate::e2e_scenario::Scenario;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_log_goes_on_after_a_kill_and_shows_a_changed_byte() -> Result<()> {
    let scenario = Scenario::begin("e2e-audit", &Installation::default()).await?;
    let file = scenario.cluster.control_plane().folder().join("audit-of-node-remedy.jsonl");
    let option = format!("--audit-log={}", file.display());
    let mut controller = Controller::start_saying(&scenario.cluster, "one", &[&option])?;
    controller.until_ready().await?;
    scenario.lose_node()?;
    scenario.incident("proven off", |incident| status(incident, "/proof").is_object()).await?;
    controller.kill9()?;
    let before = std::fs::read_to_string(&file)?.lines().count();
    assert!(before > 0, "it was written down before it was done");
    let mut again = Controller::start_saying(&scenario.cluster, "one", &[&option])?;
    again.until_ready().await?;
    scenario.ends_well().await?;
    again.terminate().await?;

    // Which component was called is told by the plan, by the record and by the audit.
    let incident = scenario.incident("there", |_| true).await?;
    let digest = incident.data.pointer("/spec/plan/methods/0/facts/digest").cloned();
    let is_sha256 = |text: &str| text.starts_with("sha256:") && text.len() == 71;
    assert!(digest.as_ref().and_then(Value::as_str).is_some_and(is_sha256), "{digest:?}");
    let told = |entries: &[Value]| -> BTreeSet<Option<String>> {
        entries.iter().map(|one| Some(one.get("digest")?.as_str()?.to_owned())).collect()
    };
    let only = BTreeSet::from([digest.as_ref().and_then(Value::as_str).map(str::to_owned)]);
    let operations = status(&incident, "/operations").as_array().cloned().unwrap_or_default();
    assert_eq!(told(&operations), only);
    let lines = std::fs::read_to_string(&file)?;
    let mut calls = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    calls.retain(|line| line.get("kind").and_then(Value::as_str) == Some("call"));
    assert_eq!(told(&calls), only);

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
