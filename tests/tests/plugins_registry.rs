//! Plugins in OCI registries: what `plugin push` brings there the controller's own code fetches, by digest and
//! with its signature, and everything else it refuses. Against docker-registry, and against one of our own that
//! lies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice::from_ref;

use anyhow::{Context, Result, ensure};
use node_remedy_api::conditions::{REASON_SIGNED_ANOTHER, REASON_UNSIGNED, REASON_WRONG_KEY};
use node_remedy_api::fenceplugin::Image;
use node_remedy_registry::artifact::Artefact;
use node_remedy_registry::cache::{Cache, CachedImage};
use node_remedy_registry::client::Client;
use node_remedy_registry::credentials::Account;
use node_remedy_registry::pull;
use node_remedy_registry::pull::PullSpec;
use node_remedy_registry::transport::{Initiator, Transport};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::signature::PublicKey;
use node_remedy_sandbox::{Authorities, SystemNames, Trust};
use node_remedy_tests::Controller;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::registry::{Door, Liar, PASSWORD, Registry, USERNAME};
use serde_json::{Value, json};

use crate::e2e_outside::{component, digest, key_pair, patched, plugin_command};

/// What a plugin's limits allow where its object says nothing.
const COMPONENT_BYTES_MAX: u64 = 8 << 20;
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Where the tag of the registry that lies is asked for.
pub(crate) const TAGGED: &str = "/v2/tasmota/manifests/v1";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// Writes a component to a file that can be pushed.
fn file(folder: &Path, name: &str, bytes: &[u8]) -> Result<String> {
    let path = folder.join(name);
    fs::write(&path, bytes)?;
    Ok(path.display().to_string())
}

/// What `plugin push` says of it.
fn push(arguments: &[&str]) -> Result<Value> {
    let said = plugin_command(&[&["push", "--output", "json"], arguments].concat())?;
    Ok(serde_json::from_str(&said)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// How one is asked, without TLS and account where nothing else is said.
#[derive(Default)]
pub(crate) struct Asking<'a> {
    pub(crate) account: Option<&'a str>,
    pub(crate) authority: Option<&'a str>,
    pub(crate) signatures: bool,
}

/// Fetches an image as the controller does; `component` is the digest that a FencePlugin names.
pub(crate) async fn fetch(image: &str, component: &str, asking: &Asking<'_>) -> Result<Artefact> {
    let image: Image = image.parse()?;
    let trust = asking.authority.map(|pem| Authorities::from_pem(pem.as_bytes())).transpose()?;
    let way = Transport {
        net: &Sockets,
        names: &SystemNames,
        guarded: &[],
        plain_http: trust.is_none(),
        trust: trust.map_or(Trust::SystemAuthorities, Trust::Authorities),
        initiator: Initiator::Object,
    };
    let account = asking.account.map(|password| Account {
        username: USERNAME.to_owned(),
        password: password.to_owned().into(),
    });
    let mut client = Client::new(way, &image.registry, &image.repository, account);
    let signatures = asking.signatures;
    let reference = image.reference();
    let wanted =
        PullSpec { reference, component, component_bytes_max: COMPONENT_BYTES_MAX, signatures };
    Ok(pull(&mut client, wanted).await?.checked(component)?)
}

/// Why it is not had.
pub(crate) async fn refusal(image: &str, component: &str) -> String {
    match fetch(image, component, &Asking::default()).await {
        Ok(_) => "nothing is wrong with it".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn key(pem: &str) -> Result<PublicKey> {
    Ok(PublicKey::from_pem(pem)?)
}

async fn signed(image: &str, component: &str) -> Result<Artefact> {
    fetch(image, component, &Asking { signatures: true, ..Asking::default() }).await
}

fn openssl(arguments: &[&str]) -> Result<()> {
    let output = Command::new("openssl").args(arguments).output()?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Pushed, fetched by tag and by digest; pushed again it is the same; and what is printed can be applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pushed_is_fetched_byte_for_byte() -> Result<()> {
    let folder = fresh_folder("plugins-registry-push")?;
    let registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let (component, wanted) = (file(&folder, "tasmota.wasm", &good)?, digest(&good));
    let image = format!("{}/fence/tasmota:0.1.0", registry.address());
    let said = push(&[&component, &image, "--plain-http"])?;
    assert_eq!((text(&said["digest"]), &said["signedBy"]), (wanted.as_str(), &Value::Null));
    let again = push(&[&component, &image, "--plain-http"])?;
    assert_eq!(said, again);
    for image in [image.as_str(), text(&said["image"])] {
        let had = fetch(image, &wanted, &Asking::default()).await?;
        assert!(had.component == good, "{image}");
        assert_eq!(had.digest(), text(&said["manifest"]));
    }
    // As another client sees it.
    let path = format!("/v2/fence/tasmota/manifests/{}", text(&said["manifest"]));
    let manifest: Value = serde_json::from_slice(&registry.get(&path).await?)?;
    assert_eq!(manifest["layers"][0]["digest"], wanted);
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");

    let printed = plugin_command(&["push", &component, &image, "--plain-http"])?;
    assert!(printed.starts_with(&format!("# {}\n# component {wanted}\n", text(&said["image"]))));
    let file = file(&folder, "plugin.yaml", printed.as_bytes())?;
    let output = Command::new(Controller::binary()).args(["check", &file]).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A registry of one's own: its authority, its account, and neither for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_registry_wants_its_authority_and_its_account() -> Result<()> {
    let folder = fresh_folder("plugins-registry-private")?;
    let registry = Registry::start(&folder, Door::TlsAccount).await?;
    let good = component()?;
    let (path, wanted) = (file(&folder, "tasmota.wasm", &good)?, digest(&good));
    let password = file(&folder, "password", format!("{PASSWORD}\n").as_bytes())?;
    let (ca, pem) = (&registry.authority().ca_certificate, &registry.authority().ca_pem);
    let ca = ca.display().to_string();
    let image = format!("{}/tasmota:0.1.0", registry.address());
    let login = ["--username", USERNAME, "--password-file", &password];
    push(&[[path.as_str(), &image, "--ca", &ca].as_slice(), &login].concat())?;

    let with = |account, authority| Asking { account, authority, ..Asking::default() };
    let had = fetch(&image, &wanted, &with(Some(PASSWORD), Some(pem))).await?;
    assert!(had.component == good);
    let other = node_remedy_tests::pki::Pki::generate(&folder.join("other"))?.ca_pem;
    for (account, authority, says) in [
        (None, pem, "no account is named for it"),
        (Some("wander"), pem, "the account that it is shown may not pull tasmota"),
        (Some(PASSWORD), &other, "no trusted authority signed its certificate"),
    ] {
        let why = fetch(&image, &wanted, &with(account, Some(authority))).await.unwrap_err();
        let why = why.to_string();
        assert!(why.contains(says), "{why}");
        assert!(!why.contains(PASSWORD) && !why.contains("wander"), "{why}");
    }
    let (code, said) = failing(&["push", &path, &image, "--ca", &ca])?;
    assert_eq!(code, Some(1));
    assert!(said.contains("no account is named for it"), "{said}");
    Ok(())
}

/// How a command ends that fails, and what it says.
fn failing(arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = Command::new(Controller::binary()).arg("plugin").args(arguments).output()?;
    Ok((output.status.code(), String::from_utf8(output.stderr)?))
}

/// Somebody pushes another component under the same tag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_tag_gives_nothing_but_the_component_that_was_named() -> Result<()> {
    let folder = fresh_folder("plugins-registry-moved")?;
    let registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let other = patched(&good, "\"0.1.0\"", "\"6.6.6\"")?;
    let image = format!("{}/tasmota:latest", registry.address());
    let before = push(&[&file(&folder, "tasmota.wasm", &good)?, &image, "--plain-http"])?;
    push(&[&file(&folder, "other.wasm", &other)?, &image, "--plain-http"])?;
    let why = refusal(&image, &digest(&good)).await;
    let expected = format!("found {}, expected {}", digest(&other), digest(&good));
    assert!(why.contains(&expected), "{why}");
    let had = fetch(text(&before["image"]), &digest(&good), &Asking::default()).await?;
    assert!(had.component == good, "its manifest is there for whoever knows its digest");
    let why = refusal(text(&before["image"]), &digest(&other)).await;
    assert!(why.contains(&format!("found {}", digest(&good))), "{why}");
    Ok(())
}

/// Signed as cosign does, which OpenSSL confirms; by another key, for another artefact, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_counts_where_cosign_puts_it_and_for_what_it_was_made() -> Result<()> {
    let folder = fresh_folder("plugins-registry-signed")?;
    let registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let other = patched(&good, "\"0.1.0\"", "\"6.6.6\"")?;
    let path = file(&folder, "tasmota.wasm", &good)?;
    let address = registry.address();
    let p256 = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let (ours, our_key) = key_pair(&folder, "ours", &p256)?;
    let (theirs, their_key) = key_pair(&folder, "theirs", &["-algorithm", "ED25519"])?;
    let (our_key, their_key) = (key(&our_key)?, key(&their_key)?);
    let wanted = digest(&good);

    let image = format!("{address}/tasmota:0.1.0");
    push(&[&path, &image, "--plain-http"])?;
    let unsigned = signed(&image, &wanted).await?.signer("it", from_ref(&our_key)).unwrap_err();
    assert_eq!(unsigned.reason, REASON_UNSIGNED);
    let said = push(&[&path, &image, "--plain-http", "--key", &ours])?;
    assert_eq!(text(&said["signedBy"]), our_key.id().to_string());
    let had = signed(&image, &wanted).await?;
    assert_eq!(had.signer("it", &[their_key.clone(), our_key.clone()]), Ok(our_key.id()));
    let wrong = had.signer("it", from_ref(&their_key)).unwrap_err();
    assert_eq!(wrong.reason, REASON_WRONG_KEY);
    // A second one stands beside the first.
    push(&[&path, &image, "--plain-http", "--key", &theirs])?;
    let had = signed(&image, &wanted).await?;
    for key in [&our_key, &their_key] {
        assert_eq!(had.signer("it", from_ref(key)), Ok(key.id()));
    }

    // What `cosign verify --key` looks at, by OpenSSL.
    let tag = text(&said["manifest"]).replacen(':', "-", 1) + ".sig";
    let beside = registry.get(&format!("/v2/tasmota/manifests/{tag}")).await?;
    let manifest: Value = serde_json::from_slice(&beside)?;
    let layer = &manifest["layers"][0];
    assert_eq!(layer["mediaType"], SIMPLE_SIGNING);
    let payload = registry.get(&format!("/v2/tasmota/blobs/{}", text(&layer["digest"]))).await?;
    let said_in: Value = serde_json::from_slice(&payload)?;
    let critical = &said_in["critical"];
    assert_eq!(critical["image"]["docker-manifest-digest"], said["manifest"]);
    assert_eq!(critical["type"], "cosign container image signature");
    let signature = text(&layer["annotations"]["dev.cosignproject.cosign/signature"]);
    let (payload, base64) =
        (file(&folder, "payload", &payload)?, file(&folder, "base64", signature.as_bytes())?);
    let raw = folder.join("raw").display().to_string();
    openssl(&["base64", "-d", "-A", "-in", &base64, "-out", &raw])?;
    let public = format!("{ours}.pub");
    openssl(&["dgst", "-sha256", "-verify", &public, "-signature", &raw, &payload])?;

    // The signature of one artefact beside another.
    let image = format!("{address}/tasmota:other");
    let other_said = push(&[&file(&folder, "other.wasm", &other)?, &image, "--plain-http"])?;
    let tag = text(&other_said["manifest"]).replacen(':', "-", 1) + ".sig";
    registry.put("tasmota", &tag, MANIFEST, &beside).await?;
    let another = signed(&image, &digest(&other)).await?.signer("it", &[our_key]).unwrap_err();
    assert_eq!(another.reason, REASON_SIGNED_ANOTHER);
    let of = format!("is of manifest {}", text(&said["manifest"]));
    assert!(another.why.contains(&of), "{}", another.why);
    Ok(())
}

/// A signature that was made before, over the component itself, goes along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_over_the_component_is_pushed_with_it() -> Result<()> {
    let folder = fresh_folder("plugins-registry-blob")?;
    let registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let path = file(&folder, "tasmota.wasm", &good)?;
    let (ours, our_key) = key_pair(&folder, "ours", &["-algorithm", "ED25519"])?;
    let made = plugin_command(&["sign", &path, "--key", &ours])?;
    let signature = file(&folder, "tasmota.sig", made.as_bytes())?;
    let image = format!("{}/tasmota:0.1.0", registry.address());
    push(&[&path, &image, "--plain-http", "--signature", &signature])?;
    let had = signed(&image, &digest(&good)).await?;
    let our_key = key(&our_key)?;
    assert_eq!(had.signer("it", from_ref(&our_key)), Ok(our_key.id()));
    Ok(())
}

/// What is in a registry and is no plugin: each is told what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_artefacts_are_refused_with_what_they_are() -> Result<()> {
    let folder = fresh_folder("plugins-registry-others")?;
    let registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let image = |tag: &str| format!("{}/tasmota:{tag}", registry.address());
    let said = push(&[&file(&folder, "tasmota.wasm", &good)?, &image("good"), "--plain-http"])?;
    let path = format!("/v2/tasmota/manifests/{}", text(&said["manifest"]));
    let bytes = registry.get(&path).await?;
    let manifest: Value = serde_json::from_slice(&bytes)?;
    let layer = manifest["layers"][0].clone();
    let changed = |pointer: &str, value: Value| {
        let mut changed = manifest.clone();
        if let Some(place) = changed.pointer_mut(pointer) {
            *place = value;
        }
        changed
    };
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{
        "mediaType": MANIFEST, "digest": said["manifest"], "size": bytes.len(),
    }]});
    let tar = "application/vnd.oci.image.layer.v1.tar+gzip";
    let image_config = "application/vnd.oci.image.config.v1+json";
    for (tag, kind, document, says) in [
        (
            "index",
            INDEX,
            index,
            "found a list of 1 manifests, expected the manifest of one component",
        ),
        ("two", MANIFEST, changed("/layers", json!([layer, layer])), "found 2 layers"),
        ("none", MANIFEST, changed("/layers", json!([])), "found 0 layers"),
        ("tar", MANIFEST, changed("/layers/0/mediaType", json!(tar)), "expected application/wasm"),
        (
            "image",
            MANIFEST,
            changed("/config/mediaType", json!(image_config)),
            "expected application/vnd.wasm.config.v0+json",
        ),
    ] {
        registry.put("tasmota", tag, kind, document.to_string().as_bytes()).await?;
        let why = refusal(&image(tag), &digest(&good)).await;
        assert!(why.contains(says) && why.contains(&image(tag)), "{tag}: {why}");
    }
    let why = refusal(&image("missing"), &digest(&good)).await;
    assert_eq!(why, format!("{} has no {}", registry.address(), image("missing")));
    assert!(fetch(&image("good"), &digest(&good), &Asking::default()).await.is_ok());
    Ok(())
}

/// The manifest of a component that is said to have this digest and so many bytes.
pub(crate) fn manifest(component: &str, size: usize) -> String {
    let config = json!({
        "mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2,
    });
    let layer = json!({"mediaType": "application/wasm", "digest": component, "size": size});
    json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string()
}

pub(crate) fn redirect(to: &str) -> String {
    format!("307 Temporary Redirect\r\nLocation: {to}")
}

/// A registry that lies: about a layer's size both ways, its bytes, a manifest's digest; that sends inward, and
/// to somebody who would see a password; that says more than anybody wants to hear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_lies_is_found_out() -> Result<()> {
    let (liar, inside) = (Liar::start().await?, Liar::start().await?);
    let good = component()?;
    let wanted = digest(&good);
    let size = good.len();
    let manifest = |size| manifest(&wanted, size);
    let blob = format!("/v2/tasmota/blobs/{wanted}");
    let image = format!("{}/tasmota:v1", liar.address());
    let honest = manifest(size);
    liar.say(TAGGED, "200 OK", honest.as_bytes());
    liar.say(&blob, "200 OK", &good);
    let had = fetch(&image, &wanted, &Asking::default()).await?;
    assert!(had.component == good, "the same without a lie");

    let mut broken = good.clone();
    *broken.last_mut().context("no bytes")? ^= 1;
    let inward = redirect(&format!("https://{}/secret", inside.address()));
    let name = redirect(&format!(
        "https://localhost:{}/secret",
        inside.address().rsplit(':').next().unwrap_or_default()
    ));
    let circle = redirect(&blob);
    let endless = format!("200 OK\r\nContent-Length: {}", u64::MAX);
    let in_the_clear = redirect(&format!("http://{}/secret", inside.address()));
    for (manifest, head, body, says) in [
        (
            honest.clone(),
            in_the_clear.as_str(),
            b"".as_slice(),
            "plainHttp is for the registry itself",
        ),
        (manifest(size - 1), "200 OK", &good, "it answers more than"),
        (manifest(size + 1), "200 OK", &good, "that its manifest says"),
        (manifest(9 << 20), "200 OK", &good, "and a component has at most 8388608"),
        (honest.clone(), "200 OK", &broken, "the layer of"),
        (honest.clone(), endless.as_str(), &good, "it answers more than"),
        (honest.clone(), inward.as_str(), b"", "a loopback address"),
        (honest.clone(), name.as_str(), b"", "a loopback address"),
        (honest.clone(), circle.as_str(), b"", "found more than 3 redirects"),
        (honest.clone(), "200 OK\r\nContent-Length: 9999999", &good, "the other side closed"),
        (" ".repeat(200_000), "200 OK", &good, "it answers more than the 102400 bytes"),
        ("[".repeat(90_000), "200 OK", &good, "found no manifest in JSON"),
    ] {
        liar.say(TAGGED, "200 OK", manifest.as_bytes());
        liar.say(&blob, head, body);
        let why = refusal(&image, &wanted).await;
        assert!(why.contains(says), "{head}: {why}");
    }
    assert_eq!(inside.asked(), Vec::<String>::new(), "nobody inside was asked");
    // To another path of its own a registry may send.
    liar.say(TAGGED, "200 OK", honest.as_bytes());
    liar.say(&blob, &redirect("/elsewhere"), b"");
    liar.say("/elsewhere", "200 OK", &good);
    assert!(fetch(&image, &wanted, &Asking::default()).await?.component == good);
    // The manifest of another digest.
    let by_digest = format!("{}/tasmota@{}", liar.address(), digest(b"another manifest"));
    let path = format!("/v2/tasmota/manifests/{}", digest(b"another manifest"));
    liar.say(&path, "200 OK", honest.as_bytes());
    let why = refusal(&by_digest, &wanted).await;
    assert!(why.contains(&format!("expected {}", digest(b"another manifest"))), "{why}");
    Ok(())
}

/// A registry that wants a token says where it is had: there the password goes, and nowhere else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_asked_for_once_and_its_server_may_not_be_inside() -> Result<()> {
    let (liar, inside) = (Liar::start().await?, Liar::start().await?);
    let image = format!("{}/tasmota:v1", liar.address());
    let wanted = digest(b"");
    let account = Asking { account: Some(PASSWORD), ..Asking::default() };
    let wants = |address: &str| {
        format!("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"{address}/token\"")
    };
    let own = format!("http://{}", liar.address());
    liar.say("/v2/tasmota/manifests/v1", &wants(&own), b"");
    liar.say("/token?scope=repository%3Atasmota%3Apull", "200 OK", br#"{"token": "abc"}"#);
    let why = fetch(&image, &wanted, &account).await.unwrap_err().to_string();
    assert!(why.contains("the account that it is shown may not pull tasmota"), "{why}");
    let asked = liar.asked();
    let [first, token, second] = asked.as_slice() else { anyhow::bail!("{asked:?}") };
    assert!(!first.contains("uthorization"), "{first}");
    assert!(token.to_lowercase().contains(" authorization: basic"), "{token}");
    assert!(second.to_lowercase().ends_with(" authorization: bearer abc"), "{second}");

    for (scheme, says) in
        [("https", "a loopback address"), ("http", "plainHttp is for the registry itself")]
    {
        let realm = format!("{scheme}://{}", inside.address());
        liar.say("/v2/tasmota/manifests/v1", &wants(&realm), b"");
        let why = fetch(&image, &wanted, &account).await.unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
    assert_eq!(inside.asked(), Vec::<String>::new());
    Ok(())
}

/// What a registry gave is kept with its signature, and both are checked again when it is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_serves_what_a_registry_gave_and_nothing_that_was_changed() -> Result<()> {
    let folder = fresh_folder("plugins-registry-cache")?;
    let mut registry = Registry::start(&folder, Door::Open).await?;
    let good = component()?;
    let (path, wanted) = (file(&folder, "tasmota.wasm", &good)?, digest(&good));
    let (ours, our_key) = key_pair(&folder, "ours", &["-algorithm", "ED25519"])?;
    let our_key = key(&our_key)?;
    let image = format!("{}/tasmota:0.1.0", registry.address());
    push(&[&path, &image, "--plain-http", "--key", &ours])?;
    let (cached, now) = (folder.join("cache"), std::time::UNIX_EPOCH);
    let artefact = signed(&image, &wanted).await?;
    let kept = CachedImage { image: image.clone(), artefact };
    Cache::open(&cached)?.put(&wanted, &kept, now)?;
    registry.stop();
    let why = refusal(&image, &wanted).await;
    assert!(why.contains("failed to ask") && why.contains("the address refuses"), "{why}");

    let cache = Cache::open(&cached)?;
    let had = cache.get(&wanted, now).context("it is kept")?;
    assert_eq!(had.artefact.signer("it", from_ref(&our_key)), Ok(our_key.id()));
    let named = |ending: &str| -> PathBuf {
        cached.join(format!("{}.{ending}", wanted.trim_start_matches("sha256:")))
    };
    let mut changed = good.clone();
    *changed.last_mut().context("no bytes")? ^= 1;
    fs::write(named("wasm"), changed)?;
    assert_eq!(cache.get(&wanted, now), None);
    assert!(!named("wasm").exists(), "what was changed is gone");
    cache.put(&wanted, &kept, now)?;
    let beside = fs::read_to_string(named("json"))?;
    let forged = beside.replacen("\"signature\":\"", "\"signature\":\"AA", 1);
    ensure!(forged != beside, "no signature in {beside}");
    fs::write(named("json"), forged)?;
    let had = cache.get(&wanted, now).context("the component is whole")?;
    let refusal = had.artefact.signer("it", &[our_key]).unwrap_err();
    assert_eq!(refusal.reason, REASON_WRONG_KEY);
    Ok(())
}
