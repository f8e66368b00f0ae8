//! A registry in memory that does what a real one would not, and where requests may go: which addresses, how
//! many redirects, and what proves who asks shown to whom. Each limit from both sides: [`edges`]. Real
//! registries: `tests/tests/plugins_registry.rs`.

pub(crate) mod edges;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use node_remedy_sandbox::net::{Fabric, HttpPeer, HttpReply, MemoryNet, NetBackend, NetError};
use node_remedy_sandbox::signature::PublicKey;
use node_remedy_sandbox::{Cidr, Digest, Names, Trust};
use serde_json::json;

use super::*;
use crate::pull::pull_in_time;

const COMPONENT: &[u8] = b"a component";
const REGISTRY: &str = "registry.example.org";
/// What the names of these tests lead to.
const NAMES: [(&str, &str); 6] = [
    (REGISTRY, "203.0.113.1"),
    ("store.example.org", "203.0.113.2"),
    ("inward.example.org", "127.0.0.1"),
    ("link.example.org", "169.254.169.254"),
    ("both.example.org", "203.0.113.3"),
    ("api.example.org", "10.0.0.1"),
];

struct Names6;

impl Names for Names6 {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let found = NAMES.iter().filter(|(name, _)| *name == host);
        let mut found: Vec<IpAddr> = found.map(|(_, address)| address.parse().unwrap()).collect();
        // One good address makes the other no better.
        if host == "both.example.org" {
            found.push("127.0.0.1".parse().unwrap());
        }
        Box::pin(async move { Ok(found) })
    }
}

/// What is answered to a path at a server, and what was asked.
#[derive(Default)]
struct Web {
    answers: BTreeMap<String, Response<Vec<u8>>>,
    /// Wants this to be shown at the registry, and says so by this.
    wants: Option<(&'static str, String)>,
    asked: Mutex<Vec<String>>,
    /// How long each answer takes.
    after: Duration,
}

impl Web {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn redirect(mut self, path: &str, to: &str) -> Self {
        // As Go's servers send one, with a page for people.
        let page = format!("<a href=\"{to}\">Temporary Redirect</a>.{}", " ".repeat(1_000));
        let answer = Response::builder().status(307).header(LOCATION, to).body(page.into_bytes());
        self.answers.insert(path.to_owned(), answer.unwrap());
        self
    }

    fn put(mut self, path: &str, body: &[u8]) -> Self {
        self.answers.insert(path.to_owned(), Response::new(body.to_vec()));
        self
    }
}

impl Fabric for Web {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }

    fn http(&self, to: &HttpPeer, request: &Request<Vec<u8>>) -> Option<HttpReply> {
        let scheme = if to.tls.is_some() { "https" } else { "http" };
        let shown = request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap());
        let path = request.uri().to_string();
        let line = format!("{scheme}://{} {path} {}", to.address, shown.unwrap_or("-"));
        self.asked.lock().unwrap().push(line);
        let is_registry = to.host == REGISTRY && !path.starts_with("/token");
        let wanted = self.wants.as_ref().filter(|_| is_registry);
        let response = match wanted {
            Some((how, wanted)) if shown != Some(wanted.as_str()) => {
                let answer = Response::builder().status(401).header(WWW_AUTHENTICATE, *how);
                answer.body(Vec::new()).unwrap()
            }
            Some(_) | None => self.answers.get(&path).cloned().unwrap_or_else(|| {
                Response::builder().status(StatusCode::NOT_FOUND).body(Vec::new()).unwrap()
            }),
        };
        Some(HttpReply { after: self.after, result: Ok::<_, NetError>(response) })
    }
}

fn digest() -> String {
    Digest::of(COMPONENT).to_string()
}

fn blob() -> String {
    format!("/v2/fence/tasmota/blobs/{}", digest())
}

/// A registry with the artefact, and nothing wrong with it.
fn registry() -> Web {
    let manifest = json!({
        "schemaVersion": 2,
        "config": {"mediaType": manifest::WASM_CONFIG, "digest": digest(), "size": 2},
        "layers": [{"mediaType": manifest::WASM, "digest": digest(), "size": COMPONENT.len()}],
    });
    let manifest = manifest.to_string();
    Web::default()
        .put("/v2/fence/tasmota/manifests/v1", manifest.as_bytes())
        .put(&blob(), COMPONENT)
        .put("/elsewhere", COMPONENT)
}

struct Asking<'a> {
    registry: &'a str,
    plain_http: bool,
    initiator: Initiator,
    account: bool,
    signatures: bool,
}

const USUAL: Asking<'static> = Asking {
    registry: REGISTRY,
    plain_http: false,
    initiator: Initiator::Object,
    account: true,
    signatures: false,
};

async fn pulled(web: &Arc<Web>, asking: &Asking<'_>) -> Result<Artefact, OciError> {
    pulled_over(&MemoryNet::new(web.clone()), &Names6, asking).await
}

async fn pulled_over(
    net: &dyn NetBackend,
    names: &dyn Names,
    asking: &Asking<'_>,
) -> Result<Artefact, OciError> {
    let guarded = [Cidr::exactly("10.0.0.1".parse().unwrap())];
    let way = Transport {
        net,
        names,
        guarded: &guarded,
        trust: Trust::SystemAuthorities,
        plain_http: asking.plain_http,
        initiator: asking.initiator,
    };
    let password = "canary".to_owned().into();
    let account = asking.account.then(|| Account { username: "me".to_owned(), password });
    let registry = asking.registry.parse().unwrap();
    let mut client = Client::new(way, &registry, "fence/tasmota", account);
    let digest = digest();
    let wanted = PullSpec {
        reference: "v1",
        component: &digest,
        component_bytes_max: 8 << 20,
        signatures: asking.signatures,
    };
    pull_in_time(&mut client, wanted).await?.checked(&digest)
}

async fn refusal(web: Web, asking: &Asking<'_>) -> String {
    pulled(&Arc::new(web), asking).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_layer_is_fetched_from_where_the_registry_sends_and_nothing_is_shown_there() {
    let wants = Some(("Basic realm=\"r\"", "Basic bWU6Y2FuYXJ5".to_owned()));
    for to in ["https://store.example.org/elsewhere", "/elsewhere"] {
        let web = Arc::new(Web { wants: wants.clone(), ..registry() }.redirect(&blob(), to));
        assert_eq!(pulled(&web, &USUAL).await.unwrap().component, COMPONENT);
        let asked = web.asked();
        let (last, before) = asked.split_last().unwrap();
        let shown = if to.starts_with('/') { "Basic bWU6Y2FuYXJ5" } else { "-" };
        assert!(last.ends_with(&format!("/elsewhere {shown}")), "{asked:?}");
        assert!(
            before.iter().all(|line| line.starts_with("https://203.0.113.1:443 ")),
            "{asked:?}"
        );
    }
}

#[tokio::test]
async fn a_redirect_leads_neither_inward_nor_out_of_tls_nor_in_circles() {
    for (to, says) in [
        ("https://127.0.0.1/elsewhere", "a loopback address"),
        ("https://[::1]/elsewhere", "a loopback address"),
        ("https://[::ffff:127.0.0.1]/elsewhere", "a loopback address"),
        ("https://inward.example.org/elsewhere", "a loopback address"),
        ("https://both.example.org/elsewhere", "a loopback address"),
        ("https://link.example.org/elsewhere", "a cloud's metadata service"),
        ("https://169.254.1.1/elsewhere", "a link-local address"),
        ("https://api.example.org/api/v1/secrets", "an address of the API server"),
        ("https://10.0.0.1:6443/api/v1/secrets", "an address of the API server"),
        ("http://store.example.org/elsewhere", "found http://, expected https://"),
        ("ftp://store.example.org/elsewhere", "expected an absolute URL"),
        ("https://me@store.example.org/elsewhere", "expected an absolute URL"),
        ("https://2130706433/elsewhere", "expected an absolute URL"),
        ("//store.example.org/elsewhere", "expected an absolute URL"),
        ("elsewhere", "expected an absolute URL"),
        ("", "expected an absolute URL"),
        (&format!("https://{REGISTRY}{}", blob()), "found more than 3 redirects"),
    ] {
        let why = refusal(registry().redirect(&blob(), to), &USUAL).await;
        assert!(why.contains(says), "{to}: {why}");
    }
    let of_manifest = registry().redirect("/v2/fence/tasmota/manifests/v1", "/elsewhere");
    assert!(refusal(of_manifest, &USUAL).await.contains("found a redirect"));
}

#[tokio::test]
async fn a_registry_inside_is_asked_where_it_is_written_as_its_address() {
    for (name, is_asked_by_object) in [
        ("127.0.0.1:5000", true),
        ("[::1]:5000", true),
        ("10.0.0.1:5000", true),
        ("inward.example.org:5000", false),
        ("api.example.org:5000", false),
    ] {
        for initiator in [Initiator::Object, Initiator::Person] {
            let web = Arc::new(registry());
            let asking = Asking { registry: name, initiator, ..USUAL };
            let had = pulled(&web, &asking).await;
            let is_asked = is_asked_by_object || initiator == Initiator::Person;
            assert_eq!(had.is_ok(), is_asked, "{name} {initiator:?}: {had:?}");
            assert_eq!(web.asked().is_empty(), !is_asked);
            // Written as this address, not as any other port of it.
            let elsewhere = registry().redirect(&blob(), "https://127.0.0.1:6443/elsewhere");
            assert!(pulled(&Arc::new(elsewhere), &asking).await.is_err(), "{name} {initiator:?}");
        }
    }
}

#[tokio::test]
async fn a_token_is_had_where_the_registry_says_and_shown_to_it_alone() {
    let how = "Bearer realm=\"https://store.example.org/token\",service=\"r\"";
    let wants = Some((how, "Bearer abc".to_owned()));
    let token = "/token?scope=repository%3Afence%2Ftasmota%3Apull&service=r";
    let web = Web { wants: wants.clone(), ..registry() }
        .put(token, br#"{"token": "abc"}"#)
        .redirect(&blob(), "https://store.example.org/elsewhere");
    let web = Arc::new(web);
    for account in [true, false] {
        assert!(pulled(&web, &Asking { account, ..USUAL }).await.is_ok());
    }
    let asked = web.asked().join("\n");
    let at_token = format!("https://203.0.113.2:443 {token} Basic bWU6Y2FuYXJ5");
    assert!(asked.contains(&at_token), "{asked}");
    assert_eq!(
        asked.matches("bWU6Y2FuYXJ5").count(),
        1,
        "the password goes to the token server: {asked}"
    );
    assert!(!asked.contains("/elsewhere Bearer"), "{asked}");
    assert!(asked.contains(&format!("{token} -")), "nobody asks without an account: {asked}");

    let inward = "Bearer realm=\"https://inward.example.org/token\"";
    let plain = "Bearer realm=\"http://store.example.org/token\"";
    for (how, says) in [
        (inward, "a loopback address"),
        (plain, "found http://, expected https://"),
        ("Bearer realm=\"/token\"", "expected an URL"),
        ("Negotiate", "by no scheme that is known"),
        ("Basic", "the account that it is shown may not pull fence/tasmota"),
    ] {
        let wants = Some((how, "Bearer abc".to_owned()));
        let why = refusal(Web { wants, ..registry() }, &USUAL).await;
        assert!(why.contains(says), "{how}: {why}");
        assert!(!why.contains("canary"), "{why}");
    }
    let wants = Some(("Basic", "Basic eA==".to_owned()));
    let why = refusal(Web { wants, ..registry() }, &Asking { account: false, ..USUAL }).await;
    assert!(why.contains("no account is named for it"), "{why}");
}

#[tokio::test]
async fn without_tls_nothing_is_asked_unless_it_is_said() {
    let web = Arc::new(registry());
    pulled(&web, &USUAL).await.unwrap();
    assert!(web.asked().iter().all(|line| line.starts_with("https://203.0.113.1:443 ")));
    let web = Arc::new(registry().redirect(&blob(), "/elsewhere"));
    pulled(&web, &Asking { plain_http: true, ..USUAL }).await.unwrap();
    assert!(web.asked().iter().all(|line| line.starts_with("http://")), "{:?}", web.asked());
    // What is on the way to a device of somebody's is not asked for, whoever says so.
    let web = Arc::new(registry().redirect(&blob(), "http://store.example.org/elsewhere"));
    let why = pulled(&web, &Asking { plain_http: true, ..USUAL }).await.unwrap_err().to_string();
    assert!(why.contains("plainHttp is for the registry itself"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_says_nothing_is_not_waited_for() {
    let began = tokio::time::Instant::now();
    let why = refusal(Web { after: Duration::from_hours(1), ..registry() }, &USUAL).await;
    assert!(why.contains("failed to get through in time"), "{why}");
    assert_eq!(began.elapsed(), limits::EXCHANGE_TIME);
}

#[tokio::test]
async fn what_is_longer_or_shorter_than_its_manifest_says_is_refused() {
    for (body, says) in [
        (
            b"a component and more".as_slice(),
            "found 20 bytes, expected the 11 that its manifest says",
        ),
        (b"a compon", "found 8 bytes, expected the 11 that its manifest says"),
        (b"a_component", "the layer of registry.example.org/fence/tasmota:v1: found sha256:"),
    ] {
        let why = refusal(registry().put(&blob(), body), &USUAL).await;
        assert!(why.contains(says), "{why}");
    }
    let long = vec![b' '; limits::MANIFEST_BYTES_MAX + 1];
    let why = refusal(registry().put("/v2/fence/tasmota/manifests/v1", &long), &USUAL).await;
    assert!(why.contains("it answers more than the 102400 bytes"), "{why}");
}

/// cosign's own tag is looked at in any case; beside it what the registry lists as referring to the manifest, or,
/// where it has no such list, what stands under the tag that takes its place.
#[tokio::test]
async fn a_signature_is_found_among_what_refers_to_a_manifest() {
    let path = |rest: &str| format!("/v2/fence/tasmota/{rest}");
    let web = registry();
    let manifest = web.answers[&path("manifests/v1")].body().clone();
    let digest_of = |bytes: &[u8]| Digest::of(bytes).to_string();
    let tag = digest_of(&manifest).replacen(':', "-", 1);
    let payload = b"a payload".as_slice();
    let annotations = json!({"dev.cosignproject.cosign/signature": "c2ln"});
    let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
    let signatures = json!({"schemaVersion": 2, "layers": [{
        "mediaType": kind, "digest": digest_of(payload), "size": payload.len(),
        "annotations": annotations,
    }]});
    let signatures = signatures.to_string();
    let of_signatures = digest_of(signatures.as_bytes());
    let list = json!({"schemaVersion": 2, "manifests": [
        {"mediaType": manifest::MANIFEST, "digest": digest_of(b"other"), "size": 1, "artifactType": "other"},
        {
            "mediaType": manifest::MANIFEST, "digest": of_signatures, "size": signatures.len(),
            "artifactType": "application/vnd.dev.cosign.artifact.sig.v1+json",
        },
    ]});
    let list = list.to_string();
    let found = Signature { payload: Some(payload.to_vec()), signature: "c2ln".to_owned() };
    for place in [format!("referrers/{}", digest_of(&manifest)), format!("manifests/{tag}")] {
        let web = registry()
            .put(&path(&place), list.as_bytes())
            .put(&path(&format!("manifests/{of_signatures}")), signatures.as_bytes())
            .put(&path(&format!("blobs/{}", digest_of(payload))), payload);
        let had = pulled(&Arc::new(web), &Asking { signatures: true, ..USUAL }).await.unwrap();
        assert_eq!(had.signatures, std::slice::from_ref(&found), "{place}");
    }
    let changed = registry()
        .put(&path(&format!("manifests/{tag}.sig")), signatures.as_bytes())
        .put(&path(&format!("blobs/{}", digest_of(payload))), b"b payload");
    let why = refusal(changed, &Asking { signatures: true, ..USUAL }).await;
    assert!(why.contains("a signature in"), "{why}");
}
