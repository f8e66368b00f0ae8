//! Watchers of datagrams: who is heard at all, what a watcher is believed, and what one that misbehaves
//! gets for it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use node_remedy_sandbox::{Sight, Unseen, Watch, WatchOutcome, Watcher, limits};
use tokio::time::{Instant, sleep};

use crate::guest::{SANDBOX, WASM, World};

/// The watcher's bytes, built by the cargo that runs this test.
static BUILT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/watcher");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-wasip2"])
        .current_dir(crate_dir)
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(built.success(), "failed to build the watcher");
    std::fs::read(target.join("wasm32-wasip2/release/watcher.wasm")).unwrap()
});

static WATCHER: LazyLock<Arc<Watcher>> = LazyLock::new(|| SANDBOX.load_watcher(&BUILT).unwrap());

const NODE: &str = "10.9.0.7:1024";

struct Post {
    world: World,
    watch: Watch,
}

impl Post {
    fn new() -> Self {
        let known =
            ["10.9.0.7", "::ffff:10.9.0.8"].map(|address| address.parse::<IpAddr>().unwrap());
        Self { world: World::new(), watch: Watch::new(Arc::clone(&WATCHER), known) }
    }

    async fn hear_from(&mut self, from: &str, data: &[u8]) -> WatchOutcome {
        let from: SocketAddr = from.parse().unwrap();
        self.watch.hear(from, data, &self.world.seams).await
    }

    /// From a known sender that waited long enough.
    async fn hear(&mut self, data: &[u8]) -> WatchOutcome {
        sleep(limits::WATCH_EVERY).await;
        self.hear_from(NODE, data).await
    }

    async fn told(&mut self, data: &[u8]) -> String {
        match self.hear(data).await {
            WatchOutcome::Seen(Sight::Sighting(fields)) => fields[0].1.clone(),
            other @ (WatchOutcome::Seen(_) | WatchOutcome::Unseen(_)) => panic!("{other:?}"),
        }
    }

    async fn failure(&mut self, data: &[u8]) -> String {
        match self.hear(data).await {
            WatchOutcome::Unseen(Unseen::Failed(why)) => why,
            other @ (WatchOutcome::Seen(_) | WatchOutcome::Unseen(_)) => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_known_sender_is_seen_and_not_more_often_than_it_may() {
    let mut post = Post::new();
    for stranger in ["10.9.0.9:1024", "127.0.0.1:7410", "[::1]:7410", "[::10.9.0.7]:7410"] {
        let heard = post.hear_from(stranger, b"who").await;
        assert_eq!(heard, WatchOutcome::Unseen(Unseen::UnknownSender), "{stranger}");
    }
    // Whatever port, and an IPv4 address however the socket spells it.
    for (from, peer) in [
        ("10.9.0.7:1", "10.9.0.7"),
        ("10.9.0.8:2", "10.9.0.8"),
        ("[::ffff:10.9.0.7]:3", "10.9.0.7"),
    ] {
        sleep(limits::WATCH_EVERY).await;
        let WatchOutcome::Seen(Sight::Sighting(fields)) = post.hear_from(from, b"who").await else {
            panic!("{from}")
        };
        assert_eq!(fields, [("peer".to_owned(), peer.to_owned())]);
    }
    assert_eq!(post.hear_from(NODE, b"who").await, WatchOutcome::Unseen(Unseen::TooSoon));
    sleep(limits::WATCH_EVERY.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(post.hear_from(NODE, b"who").await, WatchOutcome::Unseen(Unseen::TooSoon));
    let mut long = vec![0; limits::WATCH_BYTES_MAX];
    assert_eq!(post.hear(&long).await, WatchOutcome::Seen(Sight::Ignore), "the longest");
    long.push(0);
    assert_eq!(post.hear(&long).await, WatchOutcome::Unseen(Unseen::TooLarge(long.len())));
    assert_eq!(post.hear(b"nothing").await, WatchOutcome::Seen(Sight::Ignore));
    assert_eq!(post.hear(b"end").await, WatchOutcome::Seen(Sight::Finished(vec![])));
}

#[tokio::test(start_paused = true)]
async fn what_a_watcher_keeps_is_kept_for_each_sender_alone() {
    let mut post = Post::new();
    assert_eq!(post.told(b"count").await, "");
    assert_eq!(post.told(b"count").await, "+");
    let WatchOutcome::Seen(Sight::Sighting(other)) = post.hear_from("10.9.0.8:1", b"count").await
    else {
        panic!("no sighting")
    };
    assert_eq!(other[0].1, "");
    // Who fails leaves what was.
    post.failure(b"trap").await;
    post.failure(b"hoard").await;
    assert_eq!(post.told(b"count").await, "++");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_misbehaves_sees_nothing() {
    let mut post = Post::new();
    for (deed, why) in [
        (b"trap".as_slice(), "unreachable"),
        (b"spin", "fuel"),
        (b"hoard", "5000 bytes of state"),
        (b"sleep", "it took too long"),
    ] {
        let begun = Instant::now();
        let failure = post.failure(deed).await;
        assert!(failure.contains(why), "{failure}");
        assert!(
            begun.elapsed() <= limits::WATCH_EVERY + limits::WATCH_TIME + Duration::from_millis(1)
        );
    }
    assert_eq!(post.told(b"act").await, "false", "there is no effect to begin");
    assert_eq!(post.told(b"forge").await, "fine\\nERROR \\u{1b}[2J");
    let WatchOutcome::Seen(Sight::Sighting(many)) = post.hear(b"many").await else {
        panic!("none")
    };
    assert_eq!(many.len(), limits::FIELDS_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_has_as_long_as_the_limit_and_no_longer() {
    let (mut post, most) = (Post::new(), limits::WATCH_TIME.as_millis());
    assert_eq!(post.told(format!("nap {}", most - 1).as_bytes()).await, "true");
    let failure = post.failure(format!("nap {}", most + 1).as_bytes()).await;
    assert!(failure.contains("it took too long"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn as_many_senders_are_known_as_may_be() {
    let address = |number: usize| IpAddr::from((number as u128 | 0xfd << 120).to_be_bytes());
    let all = (0..=limits::WATCH_SENDERS_MAX).map(address);
    let mut watch = Watch::new(Arc::clone(&WATCHER), all);
    let world = World::new();
    let mut hears = async |number| {
        watch.hear(SocketAddr::new(address(number), 1_024), b"nothing", &world.seams).await
    };
    let last = limits::WATCH_SENDERS_MAX - 1;
    assert_eq!(hears(last).await, WatchOutcome::Seen(Sight::Ignore));
    assert_eq!(hears(last + 1).await, WatchOutcome::Unseen(Unseen::UnknownSender));
}

#[test]
fn a_method_is_no_watcher_and_a_watcher_no_method() {
    let refusal = SANDBOX.load_watcher(&WASM).unwrap_err().to_string();
    assert!(
        refusal.contains("does not export node-remedy:fence/watcher")
            || refusal.contains("imports node-remedy:fence/"),
        "{refusal}"
    );
    let refusal = SANDBOX.load(&BUILT).unwrap_err().to_string();
    assert!(refusal.contains("does not export node-remedy:fence/method@0.1.0"), "{refusal}");
}
