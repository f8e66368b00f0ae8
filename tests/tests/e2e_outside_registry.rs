//! A plugin from an OCI registry fences a node; afterwards the registry may be gone, its tag moved, and the folder
//! of what was fetched changed by somebody.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use node_remedy_swarm::corpus::canary;
use node_remedy_tests::Controller;
use node_remedy_tests::controller::ask;
use node_remedy_tests::process::{free_tcp_ports, fresh_folder, repository};
use node_remedy_tests::registry::{Door, PASSWORD, Registry, USERNAME};
use node_remedy_tests::remedy::{apply_all, custom, grant_more, install_secret_of};
use node_remedy_tests::time::until;
use serde_json::{Value, json};

use crate::e2e_canary::{arguments_of_ours, nothing_in_files_sings, nothing_of_the_cluster_sings};
use crate::e2e_outside::{
    PLUGIN, component, condition, digest, key_pair, on_relays, patched, plugin_command, until_ready,
};
use crate::e2e_scenario::Scenario;

const PULL_SECRET: &str = "registry-account";
/// Back-off included.
const LOADED_WITHIN: Duration = Duration::from_mins(2);

/// The last component that a status remembers.
fn newest(status: &Value) -> Value {
    status["loaded"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default()
}

/// Writes the spec's source.
async fn change(scenario: &Scenario, spec: &Value) -> Result<()> {
    let plugins = custom(&scenario.cluster.client(), "FencePlugin");
    plugins.patch(PLUGIN, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await?;
    Ok(())
}

/// Signed, private, by a tag. The registry is stopped, the controller started anew: the cache serves. What was
/// changed in the cache is not used, and fetched again once the registry is back; by then the tag leads elsewhere,
/// and the manifest that it led to at first is what counts. The pull secret's password is nowhere afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_by_a_plugin_from_a_registry_that_goes_away() -> Result<()> {
    // What is searched for at the end is what is used.
    assert!(canary::sings_not(PASSWORD).is_err());
    let (scenario, board) = on_relays("e2e-registry").await?;
    let client = scenario.cluster.client();
    let folder = fresh_folder("e2e-registry-parts")?;
    let mut registry = Registry::start(&folder, Door::TlsAccount).await?;
    let good = component()?;
    let path = repository().join("target/outside/tasmota.wasm").display().to_string();
    let (ours, _) = key_pair(&folder, "ours", &["-algorithm", "ED25519"])?;
    let password = folder.join("password");
    fs::write(&password, PASSWORD)?;
    let (ca, password) =
        (registry.authority().ca_certificate.display().to_string(), password.display().to_string());
    let image = format!("{}/fence/tasmota:stable", registry.address());
    let login = ["--ca", &ca, "--username", USERNAME, "--password-file", &password];
    let pushed = ["push", &path, &image, "--key", &ours];
    let printed = plugin_command(&[pushed.as_slice(), &login].concat())?;
    let by_digest = printed.lines().next().and_then(|line| line.strip_prefix("# "));
    let (_, manifest) = by_digest.and_then(|line| line.split_once('@')).context("no digest")?;
    let manifest = manifest.to_owned();

    // As it is printed, but by its tag, with the pull secret, a grant, and a mirror that is gone.
    let [nobody] = free_tcp_ports()?;
    let nobody = format!("127.0.0.1:{nobody}");
    let object = printed.replace(
        &format!("image: {}", by_digest.unwrap_or_default()),
        &format!("image: {image}\n      mirror: {nobody}"),
    );
    let object = object.replace("# pullSecret: NAME", &format!("pullSecret: {PULL_SECRET}"));
    let allowed = format!("grants: [{{cidrs: [127.0.0.1/32], ports: [{}]}}]", board.port());
    apply_all(&client, &object.replace("grants: []", &allowed)).await?;
    grant_more(&client, &["--secret", PULL_SECRET]).await?;
    let cache = folder.join("cache").display().to_string();
    let options = ["--plugin-cache", &cache];
    let mut controller = Controller::start_saying(&scenario.cluster, "one", &options)?;
    controller.until_ready().await?;
    // The pull secret may be read, and is not there yet.
    until_ready(&scenario, "False", "SourceMissing").await?;
    let accounts =
        json!({"auths": {registry.address(): {"username": USERNAME, "password": PASSWORD}}});
    install_secret_of(
        &client,
        PULL_SECRET,
        "kubernetes.io/dockerconfigjson",
        &json!({".dockerconfigjson": accounts.to_string()}),
    )
    .await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(said["digest"], digest(&good));
    assert_eq!(condition(&said, "Verified"), "Signed");
    assert_eq!(newest(&said)["manifest"], manifest);
    scenario.lose_node()?;
    scenario.ends_well().await?;

    // The registry is down when the controller starts.
    registry.stop();
    controller.terminate().await?;
    let mut controller = Controller::start_saying(&scenario.cluster, "two", &options)?;
    controller.until_ready().await?;
    until(&format!("{PLUGIN} is loaded from the cache"), LOADED_WITHIN, || {
        let log = fs::read_to_string(controller.log());
        async move { Ok(log?.contains("\"message\":\"loaded\"").then_some(())) }
    })
    .await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(
        (condition(&said, "Verified"), &newest(&said)["manifest"]),
        (json!("Signed"), &json!(manifest))
    );
    controller.terminate().await?;

    // Somebody changes the file.
    let hex = digest(&good).trim_start_matches("sha256:").to_owned();
    let kept = folder.join("cache").join(format!("{hex}.wasm"));
    fs::write(&kept, patched(&good, "cmnd=Power", "cmnd=Pow3r")?)?;
    let mut controller = Controller::start_saying(&scenario.cluster, "three", &options)?;
    controller.until_ready().await?;
    let said = until_ready(&scenario, "False", "SourceUnavailable").await?;
    assert_eq!(said["digest"], "", "what was changed is not run");
    // It comes back, and its tag leads to something else.
    registry.start_again().await?;
    let other = folder.join("other.wasm");
    fs::write(&other, patched(&good, "\"0.1.0\"", "\"6.6.6\"")?)?;
    let other = other.display().to_string();
    plugin_command(&[["push", &other, &image].as_slice(), &login].concat())?;
    let said = until(&format!("{PLUGIN} is fetched again"), LOADED_WITHIN, || async {
        until_ready(&scenario, "True", "Loaded").await.map(Some)
    })
    .await?;
    assert_eq!((&said["version"], &newest(&said)["manifest"]), (&json!("0.1.0"), &json!(manifest)));
    assert!(fs::read(&kept)? == good, "what was changed is replaced");
    // Another spec asks the tag again.
    change(&scenario, &json!({"digest": digest(b"")})).await?;
    let said = until_ready(&scenario, "False", "DigestMismatch").await?;
    assert_eq!(said["digest"], digest(&good), "what was loaded stays in force");
    // A mirror serves for a registry that nobody reaches.
    fs::remove_file(&kept)?;
    let oci = json!({"image": format!("{nobody}/fence/tasmota@{manifest}"), "mirror": registry.address()});
    change(&scenario, &json!({"digest": digest(&good), "source": {"oci": oci}})).await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(condition(&said, "Verified"), "Signed");
    assert_eq!(newest(&said)["source"]["oci"]["mirror"], registry.address());
    for (what, said) in [
        ("metrics", controller.metrics().await?),
        ("snapshot", ask(&scenario.cluster, &["snapshot"]).await?),
        ("arguments", arguments_of_ours()?),
    ] {
        canary::sings_not(&said).context(what)?;
    }
    nothing_of_the_cluster_sings(&scenario.cluster).await?;
    controller.terminate().await?;
    let searched = nothing_in_files_sings(scenario.cluster.control_plane().folder())?;
    assert!(searched.iter().any(|name| name.ends_with("one.log")), "{searched:?}");
    for entry in fs::read_dir(&cache)? {
        canary::sings_not_in(&fs::read(entry?.path())?).context("the cache")?;
    }
    Ok(())
}
