//! Plugins from outside: a component in a ConfigMap, granted by a FencePlugin, fences a node; another one
//! takes its place while an incident runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::controller::NAMESPACE;
use node_remedy_tests::ipmi::{Power, PowerFile};
use node_remedy_tests::process::{fresh_folder, repository};
use node_remedy_tests::remedy::{self, Installation, SECRET, apply_all, custom, describe};
use node_remedy_tests::time::until;
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::{Bmc, Controller};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::e2e_canary::set_password;
use crate::e2e_methods::place;
use crate::e2e_scenario::{Scenario, is_being_switched_off};

/// The example plugin's name, which is the FencePlugin's.
pub(crate) const PLUGIN: &str = "tasmota";
/// Compiled in a child by a debug build, on a busy machine.
pub(crate) const LOADED_WITHIN: Duration = Duration::from_mins(1);

/// What the example is built to: `cargo xtask plugins`.
pub(crate) fn component() -> Result<Vec<u8>> {
    let path = repository().join("target/outside/tasmota.wasm");
    fs::read(&path).with_context(|| format!("failed to read {}", path.display()))
}

/// The same component with other bytes of the same length in the place of some.
pub(crate) fn patched(component: &[u8], from: &str, to: &str) -> Result<Vec<u8>> {
    ensure!(from.len() == to.len(), "{from} and {to} differ in length");
    let mut patched = component.to_vec();
    let places = component.windows(from.len()).enumerate();
    let places = places.filter(|(_, bytes)| *bytes == from.as_bytes()).map(|(place, _)| place);
    let places: Vec<_> = places.collect();
    ensure!(!places.is_empty(), "the component has no {from}");
    for place in places {
        let bytes = patched.get_mut(place..place + to.len()).context("no such place")?;
        bytes.copy_from_slice(to.as_bytes());
    }
    Ok(patched)
}

pub(crate) fn digest(component: &[u8]) -> String {
    let bytes = Sha256::digest(component);
    let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", hex.collect::<String>())
}

/// The ConfigMap and the FencePlugin that are printed for it.
pub(crate) fn printed() -> Result<(String, String)> {
    let file = repository().join("target/outside/tasmota.wasm").display().to_string();
    let printed = plugin_command(&["configmap", "--fence-plugin", &file])?;
    let (map, plugin) = printed.split_once("---\n").context("one document")?;
    Ok((map.to_owned(), plugin.to_owned()))
}

/// As gzip packs it.
fn gzipped(component: &[u8]) -> Result<Vec<u8>> {
    let folder = fresh_folder("e2e-outside-gzip")?;
    let file = folder.join("plugin.wasm");
    fs::write(&file, component)?;
    let output = Command::new("gzip").args(["-9", "-c"]).arg(&file).output()?;
    ensure!(output.status.success(), "gzip: {}", output.status);
    Ok(output.stdout)
}

/// An immutable ConfigMap in the controller's namespace.
async fn keep(scenario: &Scenario, name: &str, files: Vec<(&str, Vec<u8>)>) -> Result<()> {
    let files = files.into_iter().map(|(key, bytes)| (key.to_owned(), ByteString(bytes)));
    let object = ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        binary_data: Some(files.collect::<BTreeMap<_, _>>()),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let maps = Api::<ConfigMap>::namespaced(scenario.cluster.client(), NAMESPACE);
    maps.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// Writes the FencePlugin, or edits it.
async fn name_plugin(
    scenario: &Scenario,
    map: &str,
    key: &str,
    digest: &str,
    port: u16,
) -> Result<()> {
    let object = json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FencePlugin", "metadata": {"name": PLUGIN},
        "spec": {
            "source": {"configMap": {"name": map, "key": key}},
            "digest": digest,
            "grants": [{"cidrs": ["127.0.0.1/32"], "ports": [port]}],
        },
    });
    let plugins = custom(&scenario.cluster.client(), "FencePlugin");
    plugins.patch(PLUGIN, &PatchParams::apply("admin").force(), &Patch::Apply(object)).await?;
    Ok(())
}

/// Waits until its condition `Ready` is so, and gives its status.
pub(crate) async fn until_ready(scenario: &Scenario, status: &str, reason: &str) -> Result<Value> {
    let plugins = custom(&scenario.cluster.client(), "FencePlugin");
    let wanted = (Some(status), Some(reason));
    until(&format!("{PLUGIN} is {reason}"), LOADED_WITHIN, || async {
        let object = plugins.get(PLUGIN).await?;
        let (said, conditions) =
            (remedy::status(&object, "").clone(), remedy::status(&object, "/conditions"));
        let mut conditions = conditions.as_array().into_iter().flatten();
        let ready = conditions.find(|one| one["type"] == "Ready");
        let is = ready.map(|ready| (ready["status"].as_str(), ready["reason"].as_str()));
        Ok((is == Some(wanted)).then_some(said))
    })
    .await
}

/// Every machine hangs on a relay of one board, which the plugin from outside switches.
pub(crate) async fn on_relays(name: &str) -> Result<(Scenario, Plugs)> {
    let mut scenario = Scenario::prepare(name, Settings::QUICK).await?;
    let mut machines = Vec::new();
    for (node, bmc) in &scenario.cluster.bmcs {
        machines.push((place(node)?, bmc));
        scenario.label(node, "place", &place(node)?.to_string()).await?;
    }
    machines.sort_by_key(|(place, _)| *place);
    let machines: Vec<PowerFile> = machines.iter().map(|(_, bmc)| Bmc::power_file(bmc)).collect();
    let folder = scenario.cluster.control_plane().folder().join("relays");
    let board = Plugs::wired(&folder, Door::PlainBasic, &machines).await?;
    let fence = json!({
        "nodeSelector": "kubernetes.io/os=linux",
        "trustedNodeFields": ["${node.labels['place']}"],
        "templates": [{
            "name": "relay", "plugin": PLUGIN, "parameters": {"address": board.address()},
            "credentials": [{"secret": SECRET}],
        }],
        "methods": [{
            "name": "power-cycle", "template": "relay", "action": "reboot", "soleFeed": true,
            "trustWiring": true,
            "plug": "${node.labels['place']}",
        }],
        "powerManagement": [{"name": "power", "methods": ["power-cycle"]}],
    });
    scenario.install(&Installation { fence: Some(fence), ..Installation::default() }).await?;
    Ok((scenario, board))
}

/// The component of a stranger, gzipped in a ConfigMap, by a digest that an admin pinned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_is_fenced_by_a_plugin_from_a_config_map() -> Result<()> {
    let (scenario, board) = on_relays("e2e-outside").await?;
    let component = component()?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    // Named before it is there, and its coming is seen.
    let (map, plugin) = printed()?;
    let allowed = format!(
        "limits: {{memoryBytes: 33554432, concurrentCalls: 4}}\n  \
         grants: [{{cidrs: [127.0.0.1/32], ports: [{}]}}]",
        board.port()
    );
    let client = scenario.cluster.client();
    apply_all(&client, &plugin.replace("grants: []", &allowed)).await?;
    until_ready(&scenario, "False", "SourceMissing").await?;
    apply_all(&client, &map).await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(said["digest"], digest(&component));
    assert_eq!(said["version"], "0.1.0");
    // Of memory and time the manifest asks for less.
    let limits = json!({
        "componentBytes": 8_388_608, "memoryBytes": 16_777_216, "fuel": 10_000_000_000_u64,
        "deadlineSeconds": 30, "concurrentCalls": 4, "compileMemoryBytes": 1_073_741_824,
        "compileCpuSeconds": 20,
    });
    assert_eq!(said["limits"], limits);
    assert_eq!(
        said["asks"],
        json!(["endpoint relay: http from address, port 80", "credential account: write"])
    );
    let granted = format!(
        "to 127.0.0.1/32: endpoint relay: http, port {}, auth basic, GET /cm; credential account: write; \
         a call: 512 HTTP requests, 2048 datagrams, 64 credential operations",
        board.port()
    );
    assert_eq!(said["grants"], json!([granted]));
    scenario.lose_node()?;
    scenario.ends_well().await?;
    let metrics = controller.metrics().await?;
    for action in ["off", "on"] {
        let line = format!(
            "node_remedy_plugin_calls_total{{plugin=\"tasmota\",action=\"{action}\",result=\"ok\"}} 1"
        );
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }
    controller.terminate().await
}

/// Another component takes the plugin's name between off and on, and it can do nothing. The incident ends
/// with the one that it began with, although another process ends it; a wrong digest changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_is_swapped_while_an_incident_runs() -> Result<()> {
    let (scenario, board) = on_relays("e2e-swapped").await?;
    let (good, port) = (component()?, board.port());
    let broken = patched(&patched(&good, "cmnd=Power", "cmnd=Pow3r")?, "\"0.1.0\"", "\"0.2.0\"")?;
    let files = vec![("good.wasm.gz", gzipped(&good)?), ("broken.wasm.gz", gzipped(&broken)?)];
    keep(&scenario, "tasmota", files).await?;
    name_plugin(&scenario, "tasmota", "good.wasm.gz", &digest(&good), port).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    until_ready(&scenario, "True", "Loaded").await?;
    let wrong = digest(b"");
    name_plugin(&scenario, "tasmota", "good.wasm.gz", &wrong, port).await?;
    let said = until_ready(&scenario, "False", "DigestMismatch").await?;
    assert_eq!(said["digest"], digest(&good), "what was loaded stays in force");

    // The machine goes off late, and meanwhile the other component comes.
    let state = scenario.cluster.bmc(&scenario.node)?.power_file().path().to_owned();
    fs::write(state.with_extension("delay"), "8")?;
    scenario.lose_node()?;
    let incident = scenario.incident("being switched off", is_being_switched_off).await?;
    name_plugin(&scenario, "tasmota", "broken.wasm.gz", &digest(&broken), port).await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(said["version"], "0.2.0");
    // Who takes over never knew the first one.
    controller.kill9()?;
    let probes = ["--probe-every=5s"];
    let mut controller = Controller::start_saying(&scenario.cluster, "two", &probes)?;
    let power = scenario.cluster.bmc(&scenario.node)?.power_file().read();
    assert_eq!(power, Power::On, "it is not off yet: {}", describe(&incident));
    fs::remove_file(state.with_extension("delay"))?;
    controller.until_ready().await?;
    scenario.ends_well().await?;
    name_plugin(&scenario, "tasmota", "good.wasm.gz", &digest(&good), port).await?;
    until(&format!("{PLUGIN} is rolled back"), LOADED_WITHIN, || async {
        let said = until_ready(&scenario, "True", "Loaded").await?;
        Ok((said["version"] == "0.1.0").then_some(()))
    })
    .await?;

    // The board takes another password now, as whoever asks it whether it answers is told.
    set_password(&scenario.cluster, "another").await?;
    let plugins = custom(&scenario.cluster.client(), "FencePlugin");
    let failed = until("an error is told", LOADED_WITHIN, || async {
        let object = plugins.get(PLUGIN).await?;
        let errors = remedy::status(&object, "/lastErrors").as_array().cloned();
        Ok(errors.and_then(|errors| errors.last().cloned()))
    })
    .await?;
    assert_eq!(failed["digest"], digest(&good), "{failed}");
    assert_eq!(
        (&failed["action"], &failed["kind"]),
        (&json!("monitor"), &json!("unauthenticated"))
    );
    assert!(failed["message"].as_str().is_some_and(|it| !it.is_empty()), "{failed}");
    controller.terminate().await
}

/// A FencePlugin that wants a signature by one of these keys.
async fn want_signature(scenario: &Scenario, map: &str, policy: &str, keys: &[&str]) -> Result<()> {
    let patch = json!({"spec": {
        "source": {"configMap": {"name": map, "key": "tasmota.wasm.gz"}},
        "verify": {"policy": policy, "keys": keys},
    }});
    let plugins = custom(&scenario.cluster.client(), "FencePlugin");
    plugins.patch(PLUGIN, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// What `node-remedy plugin` prints.
pub(crate) fn plugin_command(arguments: &[&str]) -> Result<String> {
    let output = Command::new(Controller::binary()).arg("plugin").args(arguments).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// A key pair as OpenSSL makes it: the private one's file, and the public one.
pub(crate) fn key_pair(folder: &Path, name: &str, algorithm: &[&str]) -> Result<(String, String)> {
    let (private, public) = (folder.join(name), folder.join(format!("{name}.pub")));
    let (private, public) = (private.display().to_string(), public.display().to_string());
    let genpkey = [&["genpkey", "-out", &private], algorithm].concat();
    let pubout = vec!["pkey", "-in", &private, "-pubout", "-out", &public];
    for arguments in [genpkey, pubout] {
        let output = Command::new("openssl").args(&arguments).output()?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok((private, fs::read_to_string(&public)?))
}

/// Signatures are wanted, and the component is refused, accepted with a warning, accepted, and refused again
/// when the key that signed it is trusted no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_from_outside_is_loaded_only_as_its_signature_allows() -> Result<()> {
    let (scenario, board) = on_relays("e2e-signed").await?;
    let client = scenario.cluster.client();
    let file = repository().join("target/outside/tasmota.wasm").display().to_string();
    let folder = fresh_folder("e2e-signed-keys")?;
    let (ours, our_key) = key_pair(&folder, "ours", &["-algorithm", "ED25519"])?;
    let p256 = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let (_, their_key) = key_pair(&folder, "theirs", &p256)?;
    let signature = folder.join("tasmota.sig").display().to_string();
    fs::write(&signature, plugin_command(&["sign", &file, "--key", &ours])?)?;

    let unsigned =
        plugin_command(&["configmap", &file])?.replacen("name: tasmota-", "name: unsigned-", 1);
    let signed = plugin_command(&["configmap", &file, "--signature", &signature])?;
    let signed = signed.replacen("name: tasmota-", "name: signed-", 1);
    let name = |printed: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix("  name: "));
        line.map(str::to_owned).context("no name")
    };
    let (unsigned_name, signed_name) = (name(&unsigned)?, name(&signed)?);
    apply_all(&client, &unsigned).await?;
    apply_all(&client, &signed).await?;

    name_plugin(&scenario, "none", "tasmota.wasm.gz", &digest(&component()?), board.port()).await?;
    let mut controller = Controller::start(&scenario.cluster, "one")?;
    controller.until_ready().await?;
    let both = [their_key.as_str(), our_key.as_str()];
    want_signature(&scenario, &unsigned_name, "require", &both).await?;
    let said = until_ready(&scenario, "False", "Unsigned").await?;
    assert_eq!(said["digest"], "", "nothing is loaded");
    want_signature(&scenario, &unsigned_name, "warn", &both).await?;
    let said = until_ready(&scenario, "True", "Loaded").await?;
    assert_eq!(
        (&said["verifiedBy"], condition(&said, "Verified")),
        (&json!(""), json!("Unsigned"))
    );
    want_signature(&scenario, &signed_name, "require", &both).await?;
    let said = until(&format!("{PLUGIN} is verified"), LOADED_WITHIN, || async {
        let said = until_ready(&scenario, "True", "Loaded").await?;
        Ok((condition(&said, "Verified") == "Signed").then_some(said))
    })
    .await?;
    let id = said["verifiedBy"].as_str().context("no key")?;
    assert!(id.starts_with("sha256:"), "{id}");
    // The key is trusted no more: nothing begins with what it signed.
    want_signature(&scenario, &signed_name, "require", &[&their_key]).await?;
    let said = until_ready(&scenario, "False", "WrongKey").await?;
    assert_eq!(said["digest"], "", "it is called no more");
    controller.terminate().await
}

/// The reason of a condition.
pub(crate) fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut reasons = conditions.filter(|one| one["type"] == kind).map(|one| one["reason"].clone());
    reasons.next().unwrap_or_default()
}
