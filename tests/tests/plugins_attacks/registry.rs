//! Attack 61 as far as it comes from a registry: one that lies about what it holds, that sends its guest
//! inward, and that says more than anybody wants to hear. Its rows a to d, the same component in a ConfigMap,
//! are in `artefact`.

use anyhow::{Context as _, Result, ensure};
use node_remedy_sandbox::signature::PublicKey;
use node_remedy_tests::registry::Liar;
use serde_json::json;

use super::alone::alone;
use super::canary;
use super::host::{Case, Host};
use super::victims::Device;
use crate::e2e_outside::{component, digest, key_pair, patched};
use crate::plugins_registry::{Asking, INDEX, TAGGED, fetch, manifest, redirect, refusal};
use node_remedy_tests::process::fresh_folder;

/// What somebody tries, and what is said of it.
struct Lie {
    part: &'static str,
    attack: &'static str,
    how: &'static str,
    /// Of the tag.
    manifest: String,
    /// The first line of the answer for the layer, and its body.
    head: String,
    body: Vec<u8>,
    says: String,
}

#[test]
fn a_registry_gives_nothing_but_what_was_named() -> Result<()> {
    alone("registry::a_registry_gives_nothing_but_what_was_named", async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        let (liar, inside) = (Liar::start().await?, Liar::start().await?);
        let good = component()?;
        for lie in lies(&good, &inside)? {
            lied(&host, &liar, &good, &lie).await?;
        }
        token_server_inside(&host, &liar, &inside).await?;
        unsigned(&host, &liar, &good).await?;
        ensure!(inside.asked().is_empty(), "somebody inside was asked: {:?}", inside.asked());
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

fn lies(good: &[u8], inside: &Liar) -> Result<Vec<Lie>> {
    let (wanted, size) = (digest(good), good.len());
    let honest = manifest(&wanted, size);
    let other = patched(good, "\"0.1.0\"", "\"6.6.6\"")?;
    let mut flipped = good.to_vec();
    *flipped.last_mut().context("no bytes")? ^= 1;
    let lie = |part, attack, how, manifest: &str, says: &str| Lie {
        part,
        attack,
        how,
        manifest: manifest.to_owned(),
        head: "200 OK".to_owned(),
        body: good.to_vec(),
        says: says.to_owned(),
    };
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"mediaType": INDEX, "digest": digest(b"itself"), "size": 300},
    ]});
    let tar = honest.replace("application/wasm", "application/vnd.oci.image.layer.v1.tar+gzip");
    let by_name = inside.address().replace("127.0.0.1", "localhost");
    Ok(vec![
        Lie {
            body: flipped,
            ..lie(
                "e",
                "digest mismatch",
                "a layer with one bit turned over",
                &honest,
                "the layer of",
            )
        },
        Lie {
            body: other.clone(),
            ..lie(
                "f",
                "moved tag",
                "another component under the tag, everything else in order",
                &manifest(&digest(&other), other.len()),
                &format!("found {}, expected {wanted}", digest(&other)),
            )
        },
        lie(
            "g",
            "size lie",
            "a byte more than the manifest says",
            &manifest(&wanted, size - 1),
            "it answers more than",
        ),
        lie(
            "h",
            "size lie",
            "9 MiB, as the manifest says",
            &manifest(&wanted, 9 << 20),
            "a component has at most",
        ),
        Lie {
            head: format!("200 OK\r\nContent-Length: {}", u64::MAX),
            ..lie("i", "size lie", "an answer of 2^64 - 1 bytes", &honest, "it answers more than")
        },
        lie(
            "j",
            "media type",
            "a tar archive where a component belongs",
            &tar,
            "expected application/wasm",
        ),
        lie(
            "k",
            "index recursion",
            "an index that lists an index",
            &index.to_string(),
            "expected the manifest of one component",
        ),
        lie(
            "l",
            "deep JSON",
            "a manifest of 90,000 brackets",
            &"[".repeat(90_000),
            "found no manifest in JSON",
        ),
        Lie {
            head: redirect(&format!("https://{}/secret", inside.address())),
            body: Vec::new(),
            ..lie(
                "m",
                "redirect inward",
                "307 to a loopback address",
                &honest,
                "a loopback address",
            )
        },
        Lie {
            head: redirect(&format!("https://{by_name}/secret")),
            body: Vec::new(),
            ..lie(
                "n",
                "redirect inward",
                "307 to a name that leads there",
                &honest,
                "a loopback address",
            )
        },
        Lie {
            head: redirect(&format!("/v2/tasmota/blobs/{wanted}")),
            body: Vec::new(),
            ..lie("o", "redirects without end", "307 to itself", &honest, "more than 3 redirects")
        },
    ])
}

/// Says it, and then the truth.
async fn lied(host: &Host, liar: &Liar, good: &[u8], lie: &Lie) -> Result<()> {
    let wanted = digest(good);
    let blob = |of: &str| format!("/v2/tasmota/blobs/{of}");
    let attack = format!("OCI, registry: {}", lie.attack);
    host.attack(
        Case { number: 61, part: lie.part, attack: &attack, how: lie.how },
        async || {
            liar.say(TAGGED, "200 OK", lie.manifest.as_bytes());
            liar.say(&blob(&wanted), &lie.head, &lie.body);
            liar.say(&blob(&digest(&lie.body)), &lie.head, &lie.body);
            let why = refusal(&image(liar), &wanted).await;
            ensure!(why.contains(&lie.says), "expected {:?}, found {why}", lie.says);
            Ok(why)
        },
        async || honest(liar, good).await,
    )
    .await
}

/// The same registry without a lie.
async fn honest(liar: &Liar, good: &[u8]) -> Result<String> {
    let wanted = digest(good);
    liar.say(TAGGED, "200 OK", manifest(&wanted, good.len()).as_bytes());
    liar.say(&format!("/v2/tasmota/blobs/{wanted}"), "200 OK", good);
    let had = fetch(&image(liar), &wanted, &Asking::default()).await?;
    ensure!(had.component == good, "another component");
    Ok("fetched, byte for byte".to_owned())
}

fn image(liar: &Liar) -> String {
    format!("{}/tasmota:v1", liar.address())
}

async fn token_server_inside(host: &Host, liar: &Liar, inside: &Liar) -> Result<()> {
    let wants = |address: &str| {
        format!("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"{address}/token\"")
    };
    let account = Asking { account: Some(canary::ACCOUNT), ..Asking::default() };
    let wanted = digest(b"");
    let ask = async |realm: &str| {
        liar.say(TAGGED, &wants(realm), b"");
        let asked = fetch(&image(liar), &wanted, &account).await;
        asked.err().map(|error| error.to_string()).context("it was fetched")
    };
    let how = "401 that has the password shown to somebody on loopback";
    host.attack(
        Case { number: 61, part: "p", attack: "OCI, registry: token server inward", how },
        async || {
            let why = ask(&format!("https://{}", inside.address())).await?;
            ensure!(why.contains("a loopback address"), "{why}");
            Ok(why)
        },
        async || {
            liar.say("/token?scope=repository%3Atasmota%3Apull", "200 OK", br#"{"token": "abc"}"#);
            let why = ask(&format!("http://{}", liar.address())).await?;
            let asked = liar.asked();
            let is_token_asked = asked.iter().any(|line| line.contains("/token"));
            ensure!(is_token_asked && why.contains("may not pull"), "{why}: {asked:?}");
            Ok("its own token server is asked".to_owned())
        },
    )
    .await
}

async fn unsigned(host: &Host, liar: &Liar, good: &[u8]) -> Result<()> {
    let folder = fresh_folder("plugins-attacks-registry")?;
    let (_, public) = key_pair(&folder, "ours", &["-algorithm", "ED25519"])?;
    let key = [PublicKey::from_pem(&public)?];
    let signer = async || -> Result<String> {
        let asking = Asking { signatures: true, ..Asking::default() };
        let had = fetch(&image(liar), &digest(good), &asking).await?;
        had.signer("it", &key)
            .map(|id| id.to_string())
            .map_err(|refusal| anyhow::anyhow!(refusal.why))
    };
    host.attack(
        Case {
            number: 61,
            part: "q",
            attack: "OCI, registry: unsigned",
            how: "the right component, and a registry that has no signature of it",
        },
        async || {
            honest(liar, good).await?;
            let why = signer().await.err().context("somebody signed it")?.to_string();
            ensure!(why.contains("signature"), "{why}");
            Ok(why)
        },
        async || honest(liar, good).await,
    )
    .await
}
