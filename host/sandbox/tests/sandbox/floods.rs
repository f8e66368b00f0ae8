//! Guests that take without end: time, memory, the host's ear, the device's. Each is stopped at
//! its limit, and the report says which.

use node_remedy_sandbox::{Action, AdminGrant, Budget, Call, Ended, Verdict, limits};

use crate::guest::{COMMUNITY, DEVICE, HOSTILE, PASSWORD, World, admin, call, grants};

#[tokio::test(start_paused = true)]
async fn each_flood_is_cut_at_its_own_limit() {
    let rows = [
        ("spin", "units of fuel"),
        ("eat-memory", "bytes of memory; 33554432 is the most"),
        ("flood-calls", "host calls"),
        ("flood-datagrams", "2048 datagrams"),
        ("flood-random", "4096 random bytes"),
    ];
    for (deed, why) in rows {
        let world = World::new();
        let report = world.call(Action::Status, deed).await;
        assert_eq!(report.ended, Ended::Cut, "{deed}: {report:?}");
        let Verdict::FailedBeforeEffect(failure) = report.verdict() else {
            panic!("{deed}: {:?}", report.verdict());
        };
        assert!(failure.detail.contains(why), "{deed}: {}", failure.detail);
    }
}

#[tokio::test(start_paused = true)]
async fn recursion_and_huge_answers_trap() {
    for deed in ["recurse", "huge-answer", "exit"] {
        let report = World::new().call(Action::Status, deed).await;
        assert_eq!(report.ended, Ended::Trapped, "{deed}: {:?}", report.result);
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_is_sent_no_more_than_the_budget() {
    let world = World::new();
    let report = world.call(Action::Status, "flood-datagrams").await;
    let sent = world.device.heard().len();
    assert_eq!(sent, usize::try_from(limits::DATAGRAMS_SENT_MAX).unwrap());
    assert_eq!(report.exchanges.len() + usize::try_from(report.exchanges_dropped).unwrap(), sent);
    assert_eq!(report.exchanges.len(), limits::EXCHANGES_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_flooded_log_is_cut_and_the_call_goes_on() {
    let report = World::new().call(Action::Status, "flood-log").await;
    assert!(report.result.is_ok());
    let kept: usize = report.log.iter().map(|line| line.message.len()).sum();
    assert!(kept <= limits::LOG_BYTES_MAX && !report.log.is_empty());
    assert_eq!(report.log.len() + usize::try_from(report.log_dropped).unwrap(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_forged_log_line_stays_one_line() {
    let report = World::new().call(Action::Status, "forge-log").await;
    assert_eq!(report.log[0].message, "fine\\nERROR node-remedy: released everything \\u{1b}[2J");
}

#[tokio::test(start_paused = true)]
async fn sockets_are_few() {
    let detail = World::new().failure(Action::Status, "hoard-sockets").await;
    assert!(detail.ends_with("together 2"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_cannot_be_ground_down() {
    let detail = World::new().failure(Action::Status, "grind-secret").await;
    assert_eq!(detail, "64 then Err(Refused::OverBudget)");
}

#[tokio::test(start_paused = true)]
async fn a_call_uses_no_more_than_its_grant_s_budget() {
    let of = async |deed: &str, budget: Budget| {
        let admin = AdminGrant { budget, ..admin() };
        let call = Call {
            grants: grants(HOSTILE.manifest(), DEVICE, &admin),
            ..call(Action::Status, deed)
        };
        HOSTILE.call(call, &World::new().seams).await.result.unwrap_err().detail
    };
    let operations = |credential_operations| Budget { credential_operations, ..Budget::default() };
    assert_eq!(of("grind-secret", operations(5)).await, "5 then Err(Refused::OverBudget)");
    let more = of("grind-secret", operations(u32::MAX)).await;
    assert_eq!(more, "64 then Err(Refused::OverBudget)", "never more than any call may");
    let detail = of("flood-datagrams", Budget { datagrams: 3, ..Budget::default() }).await;
    assert!(detail.contains("more than 3 datagrams"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_dear_to_make_are_few() {
    let detail = World::new().failure(Action::Status, "grind-usm-keys").await;
    assert_eq!(detail, "8 then Some(Refused::OverBudget)");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_read_is_not_repeated() {
    let world = World::new();
    let report = world.call(Action::Status, "leak").await;
    let outcome = report.result.as_ref().unwrap();
    // Who is told that it was not kept could guess at secrets that it may not read.
    assert_eq!(outcome.detail, "read with [secret], kept: Ok(())");
    assert_eq!(report.checkpoint, None);
    assert_eq!(report.log[0].message, "the community is [secret]");
    assert_eq!(report.log[1].message, "in hex [secret]");
    // The device got it, as granted; the evidence of the exchange did not.
    assert_eq!(world.device.heard(), [format!("get {COMMUNITY}")]);
    let everything = format!("{report:?}");
    assert!(!everything.contains(COMMUNITY) && !everything.contains(PASSWORD));
    let bytes: Vec<u8> = report.exchanges.iter().flat_map(|e| e.bytes.clone()).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains(COMMUNITY));
}
