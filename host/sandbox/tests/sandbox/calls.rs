//! What a guest can reach and what it cannot: endpoints, credentials, files, time, randomness,
//! cancellation.

use std::collections::BTreeMap;
use std::time::Duration;

use node_remedy_sandbox::{Action, Ended, FailureKind, Verdict};
use tokio::time::Instant;

use crate::guest::{HOSTILE, World, admin, call, grants};

#[tokio::test(start_paused = true)]
async fn what_is_not_granted_is_not_reached() {
    let rows = [
        ("reach-elsewhere", "refused: NetError { code: 0, name: \"denied\", message: \"\" }"),
        ("login-data", "refused: NetError { code: 0, name: \"denied\", message: \"\" }"),
        ("reach-tcp", "refused: NetError { code: 0, name: \"denied\", message: \"\" }"),
        ("steal-credential", "refused: Refused::NotGranted"),
        ("reveal", "refused: Refused::NotGranted"),
        ("look-around", "files: false, environment: 0"),
    ];
    for (deed, detail) in rows {
        let world = World::new();
        assert_eq!(world.failure(Action::Status, deed).await, detail, "{deed}");
        assert!(world.device.heard().is_empty(), "{deed}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_granted_address_is_the_only_one_dialled() {
    let world = World::new();
    let mut elsewhere = call(Action::Status, "honest");
    // The parameter is what the guest sees; the grant is what the host dials.
    elsewhere.request.parameters = BTreeMap::from([("address".into(), "169.254.169.254".into())]);
    HOSTILE.call(elsewhere, &world.seams).await.result.unwrap();
    let heard = world.device.heard.lock().unwrap();
    assert!(heard.iter().all(|(to, _)| to.to_string() == "10.9.0.7:623"));
}

#[tokio::test(start_paused = true)]
async fn a_grant_without_its_secret_has_no_credential() {
    let world = World::new();
    let mut bare = call(Action::Status, "open-missing");
    bare.credentials.clear();
    let report = HOSTILE.call(bare, &world.seams).await;
    assert_eq!(report.result.unwrap_err().detail, "refused: Refused::NoSuchCredential");
}

#[tokio::test(start_paused = true)]
async fn an_optional_operation_that_was_not_granted_is_refused_at_the_call() {
    let mut manifest = HOSTILE.manifest().clone();
    manifest.asks.credentials.retain(|ask| ask.name == "account");
    manifest.asks.credentials[0].optional = true;
    let mut narrow = admin();
    narrow.operations.clear();
    let mut macless = call(Action::Status, "grind-secret");
    macless.grants = grants(&manifest, "10.9.0.7", &narrow);
    let report = HOSTILE.call(macless, &World::new().seams).await;
    assert_eq!(report.result.unwrap_err().detail, "0 then Err(Refused::NotGranted)");
}

#[tokio::test(start_paused = true)]
async fn keys_work_and_wrong_lengths_do_not() {
    let detail = World::new().failure(Action::Status, "use-keys").await;
    assert_eq!(
        detail,
        "Some(\"operator\") true 12 Err(Refused::BadLength) Err(Refused::BadLength) \
         Ok(32)"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_time_make_the_same_report() {
    let first = World::new().call(Action::Status, "draw").await;
    let second = World::new().call(Action::Status, "draw").await;
    assert_eq!(first, second);
    let detail = first.result.unwrap_err().detail;
    assert!(detail.starts_with("1500 ms of 1500, today 1790000001500, ["), "{detail}");

    // The next call of the same world draws other numbers.
    let world = World::new();
    world.call(Action::Status, "draw").await;
    assert_ne!(world.failure(Action::Status, "draw").await, detail);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_wakes_a_sleeper() {
    let world = World::new();
    let sleeper = call(Action::Status, "sleep");
    let cancel = sleeper.cancel.clone();
    let begun = Instant::now();
    let ask = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.ask();
    };
    let (report, ()) = tokio::join!(HOSTILE.call(sleeper, &world.seams), ask);
    assert_eq!(report.result.unwrap_err().detail, "slept to the end: false, cancelled: true");
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn who_ignores_a_cancel_is_cut_after_the_grace() {
    let world = World::new();
    let stubborn = call(Action::Status, "ignore-cancel");
    let cancel = stubborn.cancel.clone();
    let begun = Instant::now();
    let ask = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.ask();
    };
    let (report, ()) = tokio::join!(HOSTILE.call(stubborn, &world.seams), ask);
    // Its sleeps end at once when cancelled, so it may instead run into the limit on sockets.
    assert!(matches!(report.ended, Ended::Cancelled | Ended::Cut), "{report:?}");
    assert!(begun.elapsed() <= Duration::from_millis(3_500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_the_deadline() {
    let world = World::new();
    let begun = Instant::now();
    let report = world.call(Action::Status, "ignore-cancel").await;
    assert_eq!(report.ended, Ended::Deadline);
    assert_eq!(report.result.unwrap_err().kind, FailureKind::Timeout);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));

    let mut patient = call(Action::Status, "ignore-cancel");
    patient.request.deadline = Duration::from_hours(1);
    let begun = Instant::now();
    HOSTILE.call(patient, &world.seams).await;
    assert!(begun.elapsed() <= Duration::from_mins(1), "the manifest's deadline binds too");
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_comes_back_and_has_a_size() {
    let mut second = call(Action::Status, "checkpoint");
    second.request.resume = Some(b"step 1".to_vec());
    let report = HOSTILE.call(second, &World::new().seams).await;
    assert_eq!(report.checkpoint.as_deref(), Some(b"step 2".as_slice()));
    let detail = report.result.unwrap_err().detail;
    assert_eq!(detail, format!("resumed {:?}, stored Ok(()), large true", Some(b"step 1")));
}

#[tokio::test(start_paused = true)]
async fn parameters_are_checked_and_completed() {
    let world = World::new();
    let detail = world.failure(Action::Status, "parameters").await;
    assert_eq!(detail, "[(\"address\", \"10.9.0.7:623\"), (\"mood\", \"foul\")]");

    let mut unknown = call(Action::Status, "parameters");
    unknown.request.parameters.insert("temper".to_owned(), "bad".to_owned());
    let report = HOSTILE.call(unknown, &world.seams).await;
    assert_eq!(report.ended, Ended::NotStarted);
    assert!(matches!(report.verdict(), Verdict::FailedBeforeEffect(f)
        if f.kind == FailureKind::BadParameters && f.detail.contains("'temper'")));
}

#[tokio::test(start_paused = true)]
async fn an_action_the_manifest_does_not_list_is_never_called() {
    let report = World::new().call(Action::Monitor, "honest").await;
    assert_eq!(report.ended, Ended::NotStarted);
    assert_eq!(report.result.unwrap_err().kind, FailureKind::Unsupported);
}
