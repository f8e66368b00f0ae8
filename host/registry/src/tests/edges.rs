//! Every limit on a registry, from both sides: the most that passes, and the first that does not.

use std::fs;
use std::iter::{once, repeat_n};
use std::time::SystemTime;

use node_remedy_api::conditions::{REASON_UNSIGNED, REASON_WRONG_KEY};
use node_remedy_sandbox::net::{Datagram, HttpConnection, Peer, Stream};
use node_remedy_sandbox::signature::SigningKey;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::*;
use crate::cache::{Cache, CachedImage};
use crate::tests::limits::{
    ACCOUNTS_BYTES_MAX, ADDRESSES_MAX, CONNECT_TIME, EXCHANGE_TIME, MANIFEST_BYTES_MAX,
    OTHER_ANSWER_BYTES_MAX, PAYLOAD_BYTES_MAX, PULL_TIME, REDIRECTS_MAX, REFERRERS_MAX,
    SIGNATURE_CHARACTERS_MAX, SIGNATURES_MAX, TOKEN_ANSWER_BYTES_MAX,
};
use crate::tests::pull::{OVER_COMPONENT, SIGNATURE, SIMPLE_SIGNING};

const SIGNED: Asking<'static> = Asking { signatures: true, ..USUAL };
const PUBLIC: &str = include_str!("../../../sandbox/src/signature/p256.pub");
const PRIVATE: &str = include_str!("../../../sandbox/src/signature/p256.key");
/// The shortest time that a timer tells from none.
const TICK: Duration = Duration::from_millis(1);

/// A network where the first connection takes its time, and most addresses do not answer.
struct Far {
    net: MemoryNet,
    connecting: Duration,
    tried: Mutex<Vec<IpAddr>>,
}

impl Far {
    fn new(web: Web, connecting: Duration) -> Self {
        Self { net: MemoryNet::new(Arc::new(web)), connecting, tried: Mutex::default() }
    }
}

impl NetBackend for Far {
    fn udp(&self, to: SocketAddr) -> BoxFuture<'_, Result<Box<dyn Datagram>, NetError>> {
        self.net.udp(to)
    }

    fn http(&self, to: HttpPeer) -> BoxFuture<'_, Result<Box<dyn HttpConnection>, NetError>> {
        Box::pin(async move {
            let address = to.address.ip();
            let is_first = {
                let mut tried = self.tried.lock().unwrap();
                tried.push(address);
                tried.len() == 1
            };
            sleep(if is_first { self.connecting } else { Duration::ZERO }).await;
            if NAMES.iter().any(|(_, known)| *known == address.to_string()) {
                return self.net.http(to).await;
            }
            Err(NetError::Refused)
        })
    }

    fn tcp(&self, to: Peer) -> BoxFuture<'_, Result<Box<dyn Stream>, NetError>> {
        self.net.tcp(to)
    }
}

/// Every name leads to so many addresses that do not answer, and to the registry's after them.
struct Slowly {
    after: Duration,
    dead: usize,
}

impl Names for Slowly {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let dead = (0..self.dead).map(|number| format!("198.51.100.{number}"));
        let found = dead.chain(once(NAMES[0].1.to_owned()));
        let found = found.map(|address| address.parse().unwrap()).collect();
        Box::pin(async move {
            sleep(self.after).await;
            Ok(found)
        })
    }
}

const AT_ONCE: Slowly = Slowly { after: Duration::ZERO, dead: 0 };

fn path(rest: &str) -> String {
    format!("/v2/fence/tasmota/{rest}")
}

fn digest_of(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}

/// The manifest of [`registry()`].
fn component_manifest() -> Vec<u8> {
    registry().answers[&path("manifests/v1")].body().clone()
}

/// JSON with as many blanks behind it as make it so long.
fn padded(json: &[u8], length: usize) -> Vec<u8> {
    let blanks = length.checked_sub(json.len()).unwrap();
    json.iter().copied().chain(repeat_n(b' ', blanks)).collect()
}

/// A manifest of signatures, and what its layers hold.
#[derive(Default)]
struct Signatures {
    layers: Vec<Value>,
    blobs: Vec<Vec<u8>>,
}

impl Signatures {
    fn and(mut self, kind: &str, bytes: &[u8], text: Option<&str>) -> Self {
        let annotations: BTreeMap<&str, &str> =
            text.map(|text| (SIGNATURE, text)).into_iter().collect();
        self.layers.push(json!({
            "mediaType": kind, "digest": digest_of(bytes), "size": bytes.len(),
            "annotations": annotations,
        }));
        self.blobs.push(bytes.to_vec());
        self
    }

    /// The one that counts.
    fn and_ours(self) -> Self {
        let payload = artifact::payload("r.example.org/a", &digest_of(&component_manifest()));
        let made = SigningKey::from_pem(PRIVATE).unwrap().sign(payload.as_bytes()).unwrap();
        self.and(SIMPLE_SIGNING, payload.as_bytes(), Some(&made))
    }

    /// So many of others, each with this text.
    fn and_others(self, count: usize, text: Option<&str>) -> Self {
        (0..count).fold(self, |all, number| {
            all.and(SIMPLE_SIGNING, format!("payload {number}").as_bytes(), text)
        })
    }

    fn manifest(&self) -> Vec<u8> {
        json!({"schemaVersion": 2, "layers": self.layers}).to_string().into_bytes()
    }

    fn at(&self, web: Web, reference: &str) -> Web {
        let web = web.put(&path(&format!("manifests/{reference}")), &self.manifest());
        self.blobs
            .iter()
            .fold(web, |web, blob| web.put(&path(&format!("blobs/{}", digest_of(blob))), blob))
    }

    /// Under cosign's own tag.
    fn at_tag(&self, web: Web) -> Web {
        let tag = digest_of(&component_manifest()).replacen(':', "-", 1);
        self.at(web, &format!("{tag}.sig"))
    }
}

/// What refers to the manifest, as the registry lists it: manifests of signatures.
fn referring(manifests: &[Vec<u8>]) -> Vec<u8> {
    let manifests = manifests.iter().map(|one| {
        json!({
            "mediaType": manifest::MANIFEST, "digest": digest_of(one), "size": one.len(),
            "artifactType": "application/vnd.dev.cosign.artifact.sig.v1+json",
        })
    });
    let other = json!({
        "mediaType": manifest::MANIFEST, "digest": digest_of(b"other"), "size": 1,
        "artifactType": "other",
    });
    let manifests: Vec<Value> = once(other).chain(manifests).collect();
    json!({"schemaVersion": 2, "manifests": manifests}).to_string().into_bytes()
}

fn referrers() -> String {
    path(&format!("referrers/{}", digest_of(&component_manifest())))
}

#[tokio::test]
async fn a_manifest_has_a_hundred_kib_and_no_byte_more() {
    let with = |length| {
        let manifest = padded(&component_manifest(), length);
        registry().put(&path("manifests/v1"), &manifest)
    };
    let had = pulled(&Arc::new(with(MANIFEST_BYTES_MAX)), &USUAL).await.unwrap();
    assert_eq!((had.manifest.len(), had.component), (100 << 10, COMPONENT.to_vec()));
    let why = refusal(with(MANIFEST_BYTES_MAX + 1), &USUAL).await;
    assert_eq!(why, format!("{REGISTRY}: it answers more than the 102400 bytes that are expected"));
}

#[tokio::test]
async fn a_list_of_referrers_is_as_long_as_a_manifest_at_most() {
    let signatures = Signatures::default().and_ours();
    let with = |length| {
        let list = padded(&referring(&[signatures.manifest()]), length);
        let web = signatures.at(registry(), &digest_of(&signatures.manifest()));
        web.put(&referrers(), &list)
    };
    let had = pulled(&Arc::new(with(MANIFEST_BYTES_MAX)), &SIGNED).await.unwrap();
    assert_eq!(had.signatures.len(), 1);
    let why = refusal(with(MANIFEST_BYTES_MAX + 1), &SIGNED).await;
    assert!(why.contains("it answers more than the 102400 bytes"), "{why}");
}

#[tokio::test]
async fn the_answer_of_a_token_server_has_64_kib_and_no_byte_more() {
    let how = "Bearer realm=\"https://store.example.org/token\"";
    let wants = Some((how, "Bearer abc".to_owned()));
    let with = |length| {
        let answer = padded(br#"{"token": "abc"}"#, length);
        let token = "/token?scope=repository%3Afence%2Ftasmota%3Apull";
        Web { wants: wants.clone(), ..registry() }.put(token, &answer)
    };
    assert!(pulled(&Arc::new(with(TOKEN_ANSWER_BYTES_MAX)), &USUAL).await.is_ok());
    let why = refusal(with(TOKEN_ANSWER_BYTES_MAX + 1), &USUAL).await;
    let at = "store.example.org: it answers more than the 65536 bytes that are expected";
    assert_eq!(why, at);
}

/// The page of a redirect, and of an error, in the place of a layer of a few bytes.
#[tokio::test]
async fn a_page_that_nobody_wants_has_64_kib_and_no_byte_more() {
    let with = |status, length| {
        let page = Response::builder().status(status).header(LOCATION, "/elsewhere");
        let mut web = registry();
        web.answers.insert(blob(), page.body(vec![b' '; length]).unwrap());
        web
    };
    let most = OTHER_ANSWER_BYTES_MAX;
    assert!(pulled(&Arc::new(with(307, most)), &USUAL).await.is_ok());
    assert!(refusal(with(404, most), &USUAL).await.contains("has no layer"));
    for status in [307, 404] {
        let why = refusal(with(status, most + 1), &USUAL).await;
        let says =
            "it answers more than the 65536 bytes that are expected; its manifest says 11 bytes";
        assert!(why.ends_with(says), "{status}: {why}");
    }
}

#[tokio::test]
async fn three_redirects_are_followed_and_a_fourth_is_not() {
    let with = |redirects: usize| {
        let hops = (1..redirects).map(|number| format!("/hop/{number}"));
        let places: Vec<_> =
            once(blob()).chain(hops).chain(once("/elsewhere".to_owned())).collect();
        places.windows(2).fold(registry(), |web, hop| web.redirect(&hop[0], &hop[1]))
    };
    let web = Arc::new(with(REDIRECTS_MAX));
    assert_eq!(pulled(&web, &USUAL).await.unwrap().component, COMPONENT);
    let mut lines = web.asked().into_iter();
    assert!(lines.next_back().unwrap().contains("/elsewhere"));
    assert_eq!(lines.len(), 1 + 3, "the manifest, and who sends on");
    let web = Arc::new(with(REDIRECTS_MAX + 1));
    let why = pulled(&web, &USUAL).await.unwrap_err().to_string();
    assert!(why.contains("found more than 3 redirects"), "{why}");
    let asked = web.asked();
    assert!(!asked.iter().any(|line| line.contains("/elsewhere")), "{asked:?}");
}

#[tokio::test]
async fn the_fourth_address_of_a_name_is_tried_and_the_fifth_is_not() {
    let net = Far::new(registry(), Duration::ZERO);
    let names = Slowly { dead: ADDRESSES_MAX - 1, ..AT_ONCE };
    assert!(pulled_over(&net, &names, &USUAL).await.is_ok());
    let net = Far::new(registry(), Duration::ZERO);
    let names = Slowly { dead: ADDRESSES_MAX, ..AT_ONCE };
    let why = pulled_over(&net, &names, &USUAL).await.unwrap_err().to_string();
    assert!(why.contains("the address refuses"), "{why}");
    assert_eq!(net.tried.lock().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_name_and_a_connection_may_take_ten_seconds_each_and_no_tick_more() {
    let past = CONNECT_TIME + TICK;
    for (resolving, connecting, says) in [
        (CONNECT_TIME, CONNECT_TIME, None),
        (past, Duration::ZERO, Some("failed to resolve its name: it took too long")),
        (Duration::ZERO, past, Some("failed to get through in time")),
    ] {
        let net = Far::new(registry(), connecting);
        let names = Slowly { after: resolving, ..AT_ONCE };
        let why = pulled_over(&net, &names, &USUAL).await.err().map(|error| error.to_string());
        let is_so =
            says.map_or(why.is_none(), |says| why.as_ref().is_some_and(|why| why.contains(says)));
        assert!(is_so, "{resolving:?} {connecting:?}: {why:?}");
    }
}

/// Manifest and layer take half of the time for everything each; a tick before them is too much.
#[tokio::test(start_paused = true)]
async fn an_answer_may_take_half_a_minute_and_everything_a_whole_one() {
    let with = |after| Web { after, ..registry() };
    let began = Instant::now();
    assert!(pulled(&Arc::new(with(EXCHANGE_TIME)), &USUAL).await.is_ok());
    assert_eq!((began.elapsed(), PULL_TIME), (2 * EXCHANGE_TIME, 2 * EXCHANGE_TIME));
    let why = refusal(with(EXCHANGE_TIME + TICK), &USUAL).await;
    assert!(why.contains("failed to get through in time"), "{why}");
    let net = Far::new(with(EXCHANGE_TIME), TICK);
    let why = pulled_over(&net, &AT_ONCE, &USUAL).await.unwrap_err().to_string();
    assert!(why.ends_with("it did not give everything within 60 s"), "{why}");
}

/// One that has no text is looked at, too: its layer is fetched.
#[tokio::test]
async fn the_sixteenth_signature_counts_and_the_seventeenth_is_not_looked_at() {
    let key = PublicKey::from_pem(PUBLIC).unwrap();
    for (text, reason) in [(Some("AAAA"), REASON_WRONG_KEY), (None, REASON_UNSIGNED)] {
        for count in [SIGNATURES_MAX - 1, SIGNATURES_MAX] {
            let others = Signatures::default().and_others(count, text);
            let list = referring(&[others.manifest()]);
            let together = others.at(registry(), &digest_of(&others.manifest()));
            let apart = Signatures::default().and_ours().at_tag(together.put(&referrers(), &list));
            let one = Signatures::default().and_others(count, text).and_ours().at_tag(registry());
            for web in [one, apart] {
                let web = Arc::new(web);
                let had = pulled(&web, &SIGNED).await.unwrap();
                let signer = had.signer("it", std::slice::from_ref(&key));
                let expected = if count == 15 { Ok(key.id()) } else { Err(reason) };
                assert_eq!(signer.map_err(|refusal| refusal.reason), expected, "{count} {text:?}");
                let asked = web.asked();
                let blobs = asked.iter().filter(|line| line.contains("/blobs/")).count();
                assert_eq!(blobs, 1 + 16, "the component, and what is looked at");
            }
        }
    }
}

#[tokio::test]
async fn the_eighth_of_what_refers_to_a_manifest_is_looked_at_and_the_ninth_is_not() {
    let ours = Signatures::default().and_ours();
    let found = [REFERRERS_MAX - 1, REFERRERS_MAX].map(async |count| {
        let others = (0..count).map(|number| {
            json!({"schemaVersion": 2, "layers": [], "annotations": {"number": number.to_string()}})
        });
        let others: Vec<_> = others.map(|one| one.to_string().into_bytes()).collect();
        let web = others.iter().fold(registry(), |web, one| {
            web.put(&path(&format!("manifests/{}", digest_of(one))), one)
        });
        let list = [others, vec![ours.manifest()]].concat();
        let web = ours.at(web, &digest_of(&ours.manifest()));
        let web = Arc::new(web.put(&referrers(), &referring(&list)));
        let had = pulled(&web, &SIGNED).await.unwrap();
        let asked = web.asked();
        let looked_at = asked.iter().filter(|line| line.contains("/manifests/sha256:")).count();
        (had.signatures.len(), looked_at)
    });
    assert_eq!(futures::future::join_all(found).await, [(1, 8), (0, 8)]);
}

#[tokio::test]
async fn a_payload_has_16_kib_and_no_byte_more() {
    let with = |length| {
        let payload = vec![b' '; length];
        Signatures::default().and(SIMPLE_SIGNING, &payload, Some("AAAA")).at_tag(registry())
    };
    let had = pulled(&Arc::new(with(PAYLOAD_BYTES_MAX)), &SIGNED).await.unwrap();
    let lengths = had.signatures.iter().map(|one| one.payload.as_ref().map(Vec::len));
    assert_eq!(lengths.collect::<Vec<_>>(), [Some(16 << 10)]);
    let web = Arc::new(with(PAYLOAD_BYTES_MAX + 1));
    let why = pulled(&web, &SIGNED).await.unwrap_err().to_string();
    assert!(why.ends_with("found a signature of 16385 bytes, expected at most 16384"), "{why}");
    let asked = web.asked();
    assert!(asked.last().unwrap().contains(".sig "), "it is not fetched: {asked:?}");
}

/// Beside a payload, and in the place of one.
#[tokio::test]
async fn the_text_of_a_signature_has_1024_characters_and_not_one_more() {
    for (length, count) in [(SIGNATURE_CHARACTERS_MAX, 2), (SIGNATURE_CHARACTERS_MAX + 1, 0)] {
        let text = "A".repeat(length);
        let both = Signatures::default().and(SIMPLE_SIGNING, b"a payload", Some(&text)).and(
            OVER_COMPONENT,
            text.as_bytes(),
            None,
        );
        let had = pulled(&Arc::new(both.at_tag(registry())), &SIGNED).await.unwrap();
        let texts = had.signatures.into_iter().map(|one| one.signature);
        assert_eq!(texts.collect::<Vec<_>>(), vec![text; count]);
    }
    assert_eq!(SIGNATURE_CHARACTERS_MAX, 1_024);
}

#[test]
fn a_pull_secret_has_a_mib_and_no_byte_more() {
    let registry = REGISTRY.parse().unwrap();
    let secret = format!(r#"{{"auths": {{"{REGISTRY}": {{"auth": "YTpi"}}}}}}"#);
    let account = |length| Account::of(&padded(secret.as_bytes(), length), &registry);
    assert_eq!(account(ACCOUNTS_BYTES_MAX).unwrap().unwrap().username, "a");
    assert_eq!(account(ACCOUNTS_BYTES_MAX + 1).err().unwrap(), "found more than 1048576 bytes");
}

#[test]
fn the_most_that_a_registry_gives_is_read_again_from_the_cache() {
    // What takes the most room in JSON.
    let one = Signature {
        payload: Some(vec![0; PAYLOAD_BYTES_MAX]),
        signature: "\u{1}".repeat(SIGNATURE_CHARACTERS_MAX),
    };
    let artefact = Artefact {
        manifest: padded(&component_manifest(), MANIFEST_BYTES_MAX),
        component: COMPONENT.to_vec(),
        signatures: vec![one; SIGNATURES_MAX],
    };
    let kept = CachedImage { image: format!("{REGISTRY}/fence/tasmota:v1"), artefact };
    let folder = std::env::temp_dir().join(format!("node-remedy-most-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let cache = Cache::open(&folder).unwrap();
    cache.put(&digest(), &kept, SystemTime::UNIX_EPOCH).unwrap();
    let had = cache.get(&digest(), SystemTime::UNIX_EPOCH);
    assert!(had.as_ref() == Some(&kept), "what was kept is not had again");
    fs::remove_dir_all(folder).unwrap();
}
