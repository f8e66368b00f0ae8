//! Remedies from outside: what one is shown, what it may decide, and what one that misbehaves gets for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use node_remedy_sandbox::{
    Action, Executor, NodeCondition, NodeFacts, Plugin, Remedied, RemedyDecision, RemedyTried,
    Sandbox, limits,
};
use tokio::time::Instant;

use crate::guest::{SANDBOX, World, call};

/// The remedy's bytes, built by the cargo that runs this test.
static BUILT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/remedy");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2"])
        .current_dir(crate_dir)
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "failed to build the remedy");
    std::fs::read(target.join("wasm32-wasip2/release/remedy.wasm")).unwrap()
});

static REMEDY: LazyLock<Arc<Plugin>> = LazyLock::new(|| SANDBOX.load(&BUILT).unwrap());

/// A node whose label tells the guest what to do.
fn node(deed: &str) -> NodeFacts {
    NodeFacts {
        name: "worker-3".to_owned(),
        labels: vec![("do".to_owned(), deed.to_owned())],
        ready: false,
        conditions: vec![NodeCondition {
            kind: "KernelDeadlock".to_owned(),
            status: "True".to_owned(),
            reason: "TaskHung".to_owned(),
            age_s: 90,
        }],
        boot_id: "boot".to_owned(),
        pods: 7,
        pods_with_volumes: 2,
        peers_unhealthy: 1,
        peers_total: 4,
    }
}

async fn ask(deed: &str) -> Remedied {
    REMEDY.next(&node(deed), &[], &World::new().seams).await
}

#[tokio::test(start_paused = true)]
async fn a_remedy_is_shown_the_node_and_what_was_tried_and_decides() {
    let tried = RemedyTried {
        action: "cluster drain".to_owned(),
        succeeded: false,
        detail: "a budget holds db-0".to_owned(),
        age_s: 30,
    };
    let remedied = REMEDY.next(&node("see"), &[tried], &World::new().seams).await;
    let Ok(RemedyDecision::Fail(seen)) = remedied.decision else { panic!("{remedied:?}") };
    for part in [
        "worker-3",
        "KernelDeadlock",
        "TaskHung",
        "age-s: 90",
        "pods: 7",
        "pods-with-volumes: 2",
        "peers-unhealthy: 1",
        "peers-total: 4",
        "cluster drain",
        "a budget holds db-0",
        "age-s: 30",
    ] {
        assert!(seen.contains(part), "no {part} in {seen}");
    }
    let decisions = [
        ("method", RemedyDecision::Method("bmc".to_owned())),
        ("cluster", RemedyDecision::Cluster("drain".to_owned())),
        ("fence", RemedyDecision::Fence),
        ("wait", RemedyDecision::Wait(60)),
        ("done", RemedyDecision::Done),
    ];
    for (deed, decision) in decisions {
        assert_eq!(ask(deed).await.decision, Ok(decision), "{deed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_remedy_remembers_nothing() {
    for _ in 0..3 {
        assert_eq!(ask("remember").await.decision, Ok(RemedyDecision::Wait(1)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_remedy_that_misbehaves_decides_nothing() {
    for (deed, why) in [
        ("trap", "unreachable"),
        ("spin", "units of fuel"),
        ("sleep", "it took too long"),
        ("act", "it wanted to begin an effect"),
        ("nameless", "found a name of 0 bytes"),
        ("name 254", "found a name of 254 bytes, expected 1 to 253"),
        ("wait 4294967295", "found a wait of 4294967295 s, expected 1 to 14400"),
        ("wait 0", "found a wait of 0 s"),
    ] {
        let begun = Instant::now();
        let failure = ask(deed).await.decision.unwrap_err();
        assert!(failure.contains(why), "{deed}: {failure}");
        assert!(begun.elapsed() <= limits::REMEDY_TIME + Duration::from_millis(1), "{deed}");
    }
    // More than it may have: memory of its own, or room in the host.
    assert!(ask("hoard").await.decision.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_a_remedy_asks_for_may_be_as_much_as_the_limit() {
    let name = limits::REMEDY_NAME_BYTES_MAX;
    let most = limits::REMEDY_WAIT_S_MAX;
    let took = limits::REMEDY_TIME.as_millis();
    for (below, decision, beyond) in [
        (
            format!("name {name}"),
            RemedyDecision::Method("x".repeat(name)),
            format!("name {}", name + 1),
        ),
        (format!("wait {most}"), RemedyDecision::Wait(most), format!("wait {}", most + 1)),
        (format!("nap {}", took - 1), RemedyDecision::Done, format!("nap {took}")),
    ] {
        assert_eq!(ask(&below).await.decision, Ok(decision), "{below}");
        assert!(ask(&beyond).await.decision.is_err(), "{beyond}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_remedy_says_is_cut_and_cleaned() {
    let Ok(RemedyDecision::Fail(text)) = ask("forge").await.decision else { panic!("no text") };
    assert_eq!(text, "fine\\nERROR \\u{1b}[2J");
    let Ok(RemedyDecision::Fail(text)) = ask("talk").await.decision else { panic!("no text") };
    assert!(text.len() <= limits::DETAIL_BYTES_MAX + "…".len(), "{}", text.len());
    let flood = ask("flood").await;
    let kept: usize = flood.log.iter().map(|line| line.message.len()).sum();
    assert!(kept <= limits::LOG_BYTES_MAX, "{kept}");
    assert!(flood.log_dropped > 0 || flood.decision.is_err(), "{:?}", flood.decision);
}

/// Nobody's event loop waits for one that spins.
#[tokio::test]
async fn a_remedy_that_spins_holds_no_thread_but_its_own() {
    let sandbox = Sandbox::new().unwrap();
    let executor = Executor::threads(&sandbox, 1).unwrap();
    let remedy = sandbox.load(&BUILT).unwrap();
    let (spins, decides) = tokio::join!(
        executor.ask(Arc::clone(&remedy), node("spin"), Vec::new(), World::new().seams),
        executor.ask(remedy, node("fence"), Vec::new(), World::new().seams),
    );
    assert!(spins.decision.is_err());
    assert_eq!(decides.decision, Ok(RemedyDecision::Fence));
}

#[tokio::test(start_paused = true)]
async fn a_remedy_is_no_method_and_a_method_no_remedy() {
    let world = World::new();
    let report = REMEDY.call(call(Action::Status, "x"), &world.seams).await;
    assert!(report.result.unwrap_err().detail.contains("cannot do status"));
    let method = &crate::guest::HOSTILE;
    let remedied = method.next(&node("fence"), &[], &world.seams).await;
    assert_eq!(remedied.decision, Err("plugin hostile is no remedy".to_owned()));
    let refusal = SANDBOX.load_watcher(&BUILT).unwrap_err().to_string();
    assert!(refusal.contains("does not export node-remedy:fence/watcher@0.1.0"), "{refusal}");
}

/// Its manifest must say that it is a remedy, and ask for nothing.
#[test]
fn a_component_that_only_decides_says_so_and_can_do_nothing() {
    let (none, on) = ("\"actions\": [],\n  \"idempotentActions\": [],", "\"actions\": [\"on\"],");
    for (from, to, why) in [
        (
            "\"kind\": \"remedy\"",
            "\"kind\":\"watch\"",
            "kind: found watch, expected remedy for a remedy",
        ),
        (none, on, "missing field `idempotentActions`"),
        (none, "\"actions\":[\"on\"],\"idempotentActions\":[],", "actions: found 1, expected none"),
    ] {
        let refusal = SANDBOX.load(&patched(from, to)).unwrap_err().to_string();
        assert!(refusal.contains(why), "{refusal}");
    }
}

/// The component with another text in the place of one wherever it stands, filled up with spaces.
fn patched(from: &str, to: &str) -> Vec<u8> {
    let to = format!("{to:<width$}", width = from.len());
    assert_eq!(from.len(), to.len());
    let is_here = |at: &usize| BUILT[*at..].starts_with(from.as_bytes());
    let places: Vec<usize> = (0..BUILT.len()).filter(is_here).collect();
    assert!(!places.is_empty());
    let mut bytes = BUILT.clone();
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}
