//! The path of a plugin author without a cluster: the page's own commands, a new plugin of each kind, and
//! transcripts of real devices that are played again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_tests::ipmi::{Kind, PASSWORD, USERNAME};
use node_remedy_tests::page::{Page, SECTIONS, Walk, build_folder};
use node_remedy_tests::process::{
    Process, Program, free_tcp_ports, free_udp_port, fresh_folder, repository,
};
use node_remedy_tests::time::until;
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::{Bmc, Controller};
use serde_json::Value;

/// A folder outside of this repository, where nothing of its workspace is in force; it goes with this
/// value.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn new(name: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder.canonicalize()?))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What `node-remedy plugin` says in a folder, and how it ends.
fn plugin(folder: &Path, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let mut command = Command::new(Controller::binary());
    let output = command.arg("plugin").args(arguments).current_dir(folder).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(said)?))
}

fn cargo(folder: &Path, arguments: &[&str]) -> Result<()> {
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(repository().join("Cargo.lock"), lock)?;
    }
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(folder);
    command.env("CARGO_TARGET_DIR", build_folder()).env("CARGO_NET_OFFLINE", "true");
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&said));
    Ok(())
}

/// A component that `cargo xtask plugins` built.
fn component(path: &str) -> String {
    repository().join("target").join(path).display().to_string()
}

/// From nothing to a signed ConfigMap, by the page's own commands.
#[test]
fn the_page_of_authors_is_walked_up_to_a_cluster() -> Result<()> {
    let page = Page::read()?;
    assert_eq!(page.sections(), SECTIONS, "each section is walked by this test or e2e_authors");
    let elsewhere = Elsewhere::new("node-remedy-authors")?;
    let [port] = free_tcp_ports()?;
    let wasm = build_folder().join("wasm32-wasip2/release/page_relay.wasm");
    let walk = Walk {
        folder: &elsewhere.0,
        sections: &["Begin", "Try it on a device", "Ship it"],
        variables: &[
            ("NAME", "page-relay".to_owned()),
            ("WASM", wasm.display().to_string()),
            ("PORT", port.to_string()),
            ("PASSWORD", PASSWORD.to_owned()),
        ],
        kubeconfig: None,
    };
    let said = page.walk(&walk)?;
    for wanted in [
        "page-relay 0.1.0: Power by relays that speak HTTP",
        "board <- PUT /relays/2  {\"on\":false}",
        "2 calls are in off.json",
        "the same as in off.json: off, status",
        "signature: by sha256:",
    ] {
        assert!(said.contains(wanted), "no {wanted:?} in:\n{said}");
    }
    let transcript = fs::read_to_string(elsewhere.0.join("page-relay/off.json"))?;
    assert!(!transcript.contains(PASSWORD), "{transcript}");
    Ok(())
}

#[test]
fn a_new_plugin_of_datagrams_builds_and_passes_its_test_at_once() -> Result<()> {
    let elsewhere = Elsewhere::new("node-remedy-new")?;
    let (code, said) = plugin(&elsewhere.0, &["new", "new-lamp", "--kind", "udp"])?;
    assert_eq!(code, Some(0), "{said}");
    let folder = elsewhere.0.join("new-lamp");
    cargo(&folder, &["test", "--quiet"])?;
    cargo(&folder, &["build", "--quiet", "--target", "wasm32-wasip2", "--release"])?;
    let wasm = build_folder().join("wasm32-wasip2/release/new_lamp.wasm");
    let (code, said) = plugin(&folder, &["inspect", &wasm.display().to_string()])?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("new-lamp 0.1.0: Power by relays that speak datagrams"), "{said}");
    Ok(())
}

#[test]
fn a_folder_that_is_there_and_a_name_that_cannot_be_are_refused() -> Result<()> {
    let elsewhere = Elsewhere::new("node-remedy-refused")?;
    fs::create_dir(elsewhere.0.join("mine"))?;
    for (name, says) in [
        ("mine", "failed to make a folder mine, expected none of that name here"),
        ("Mine", "found the name \"Mine\", expected a small letter"),
        ("../mine", "found the name \"../mine\", expected a small letter"),
        ("redfish", "which a built-in plugin has"),
    ] {
        let (code, said) = plugin(&elsewhere.0, &["new", name])?;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(says), "{said}");
    }
    let left: Vec<_> = fs::read_dir(&elsewhere.0)?.collect();
    assert_eq!(left.len(), 1, "nothing was written");
    assert_eq!(fs::read_dir(elsewhere.0.join("mine"))?.count(), 0);
    Ok(())
}

/// A component with other bytes of the same length in the place of some.
fn patched(folder: &Path, name: &str, from: &str, to: &str) -> Result<String> {
    ensure!(from.len() == to.len(), "{from} and {to} differ in length");
    let mut wasm = fs::read(component("outside/template-http.wasm"))?;
    let places = wasm.windows(from.len()).enumerate();
    let places = places.filter(|(_, bytes)| *bytes == from.as_bytes()).map(|(place, _)| place);
    let places: Vec<_> = places.collect();
    ensure!(!places.is_empty(), "the component has no {from}");
    for place in places {
        let bytes = wasm.get_mut(place..place + to.len()).context("no such place")?;
        bytes.copy_from_slice(to.as_bytes());
    }
    let file = folder.join(name);
    fs::write(&file, wasm)?;
    Ok(file.display().to_string())
}

#[test]
fn what_a_component_is_made_of_is_shown_and_what_is_wrong_with_it() -> Result<()> {
    let folder = fresh_folder("plugins-authors-inspect")?;
    let wasm = component("outside/template-http.wasm");
    let (code, said) = plugin(&folder, &["inspect", &wasm])?;
    assert_eq!(code, Some(0), "{said}");
    for wanted in [
        "imports\n",
        "  node-remedy:fence/net@0.1.0\n",
        "exports\n  node-remedy:fence/method@0.1.0\n",
        "  code  ",
        "  node-remedy:manifest  ",
        "bytes gzipped: fits into a ConfigMap, which holds 1048576",
    ] {
        assert!(said.contains(wanted), "no {wanted:?} in:\n{said}");
    }
    let (code, said) = plugin(&folder, &["inspect", &wasm, "--output", "json"])?;
    let told: Value = serde_json::from_str(&said)?;
    assert_eq!((code, &told["fitsConfigMap"]), (Some(0), &Value::Bool(true)));
    let sections = told["madeOf"]["sections"].as_array().context("no sections")?;
    let sum: u64 = sections.iter().filter_map(|one| one["bytes"].as_u64()).sum();
    assert_eq!(Some(sum), told["bytes"].as_u64(), "no byte is forgotten or counted twice");

    for (name, from, to, says) in [
        ("field.wasm", "\"kind\": \"power\"", "\"kind\": \"tower\"", "unknown variant `tower`"),
        ("place.wasm", "\"kind\": \"power\"", "\"kind\": \"tower\"", "at line 6 column"),
        (
            "path.wasm",
            "\"deadlineSeconds\": 30",
            "\"deadlineSeconds\":  0",
            "deadlineSeconds: found 0",
        ),
        (
            "import.wasm",
            "node-remedy:fence/op@0.1.0",
            "node-remedy:fence/up@0.1.0",
            "which this host does not offer",
        ),
    ] {
        let (code, said) = plugin(&folder, &["inspect", &patched(&folder, name, from, to)?])?;
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(says) && said.contains(name), "{name}: {said}");
        assert!(said.contains("sections\n"), "it is shown all the same: {said}");
    }
    let (_, said) = plugin(&folder, &["inspect", "import.wasm"])?;
    assert!(
        said.contains("  node-remedy:fence/up@0.1.0  ✗ this host does not offer it\n"),
        "{said}"
    );
    Ok(())
}

/// The asks of a transcript, as its file has them.
fn asks(file: &Path) -> Result<Vec<Value>> {
    let transcript: Value = serde_json::from_slice(&fs::read(file)?)?;
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned();
    let calls = list(&transcript, "calls").context("no calls")?;
    let events = calls.iter().flat_map(|call| list(call, "events").unwrap_or_default());
    let what = events.filter_map(|event| event.get("what").cloned());
    Ok(what.filter(|what| what.get("asked").is_some() || what.get("sent").is_some()).collect())
}

/// A file with the machine's password in it.
fn password_file(folder: &Path) -> Result<String> {
    let file = folder.join("password");
    fs::write(&file, PASSWORD)?;
    Ok(file.display().to_string())
}

/// What a component says to what was recorded, once it is changed.
fn replayed(folder: &Path, wasm: &str, from: &str, to: &str) -> Result<(Option<i32>, String)> {
    let text = fs::read_to_string(folder.join("off.json"))?;
    ensure!(text.contains(from), "the transcript has no {from}: {text}");
    fs::write(folder.join("other.json"), text.replace(from, to))?;
    plugin(folder, &["run", wasm, "--replay", "other.json"])
}

/// A relay board over HTTP: the transcript stands for it, and tells what is done otherwise.
#[tokio::test]
async fn what_a_device_said_over_http_is_played_again_without_it() -> Result<()> {
    let folder = fresh_folder("plugins-authors-http")?;
    let board = Plugs::start(&folder, Door::PlainBasic, Duration::ZERO).await?;
    let (wasm, password) = (component("outside/template-http.wasm"), password_file(&folder)?);
    let address = board.address();
    let device = [
        "--address",
        &address,
        "--plug",
        "1",
        "--username",
        USERNAME,
        "--password-file",
        &password,
    ];
    let off = [&["run", &wasm, "off"], device.as_slice(), &["--record", "off.json"]].concat();
    let (code, said) = plugin(&folder, &off)?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("off\n"), "{said}");
    assert!(said.contains("effect begun; returned"), "{said}");
    let status = [&["run", &wasm, "status"], device.as_slice(), &["--output", "json"]].concat();
    let (code, said) = plugin(&folder, &status)?;
    let told: Value = serde_json::from_str(&said)?;
    assert_eq!((code, &told["state"]), (Some(2), &Value::from("off")), "{said}");
    assert!(told["calls"][0]["fuel"].as_u64() > Some(0), "{said}");
    drop(board);

    let (code, said) = plugin(&folder, &["run", &wasm, "--replay", "off.json"])?;
    assert_eq!((code, said.trim()), (Some(0), "the same as in off.json: off, status"));
    assert_eq!(
        asks(&folder.join("off.json"))?.len(),
        4,
        "read, switch, read back, and a later read"
    );
    let text = fs::read_to_string(folder.join("off.json"))?;
    for secret in [PASSWORD, "uthorization", "Basic "] {
        assert!(!text.contains(secret), "{text}");
    }
    for (from, to, says) in [
        // Another question.
        ("{\\\"on\\\":false}", "{\\\"on\\\":0}", "call 1 (off), ask 2"),
        ("\"PUT\"", "\"POST\"", "- board <- POST /relays/1"),
        // The same questions, and another end: of its word, and of its commit point.
        ("\"state\": \"off\"", "\"state\": \"on\"", "+ reads off, effect begun"),
        ("\"effectBegun\": true", "\"effectBegun\": false", "call 1 (off), its end"),
    ] {
        let (code, said) = replayed(&folder, &wasm, from, to)?;
        assert_eq!(code, Some(2), "{from} {to}: {said}");
        assert!(said.contains(says), "{from} {to}: {said}");
    }
    for (from, to, says) in [
        (
            "\"transcriptVersion\": 1",
            "\"transcriptVersion\": 2",
            "found transcriptVersion 2, expected 1",
        ),
        (
            "\"name\": \"template-http\"",
            "\"name\": \"other\"",
            "found plugin other, expected template-http",
        ),
        ("\"until\": \"off\"", "\"until\": \"dark\"", "call 2 (status): found until \"dark\""),
        ("\"plug\"", "\"outlet\"", "unknown field `outlet`"),
    ] {
        let (code, said) = replayed(&folder, &wasm, from, to)?;
        assert_eq!(code, Some(1), "{from} {to}: {said}");
        assert!(said.contains(says), "{from} {to}: {said}");
    }
    Ok(())
}

/// A board by datagrams whose questions are signed: with the password they are the same again.
#[tokio::test]
async fn what_a_device_said_by_datagrams_is_played_again_without_it() -> Result<()> {
    let folder = fresh_folder("plugins-authors-udp")?;
    let address = format!("127.0.0.1:{}", free_udp_port()?);
    let script = repository().join("examples/plugins/template-udp/device.py").display().to_string();
    let mut board = Process::start(&Program {
        name: "board",
        path: &repository().join("target/venv/bin/python"),
        arguments: &[script, address.clone(), PASSWORD.to_owned()],
        logs: &folder,
    })?;
    let (wasm, password) = (component("outside/template-udp.wasm"), password_file(&folder)?);
    let device = ["--address", &address, "--plug", "2", "--password-file", &password];
    let status = [&["run", &wasm, "status"], device.as_slice()].concat();
    until("the board answers", Duration::from_mins(1), || {
        let alive = board.check_alive();
        let said = plugin(&folder, &status);
        async move {
            alive?;
            Ok((said?.0 == Some(0)).then_some(()))
        }
    })
    .await?;
    let off = [&["run", &wasm, "off"], device.as_slice(), &["--record", "off.json"]].concat();
    let (code, said) = plugin(&folder, &off)?;
    assert_eq!(code, Some(0), "{said}");
    drop(board);
    let replay = ["run", &wasm, "--replay", "off.json"];
    let with = [replay.as_slice(), &["--password-file", &password]].concat();
    let (code, said) = plugin(&folder, &with)?;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = plugin(&folder, &replay)?;
    assert_eq!(code, Some(2), "another key signs otherwise: {said}");
    let text = fs::read_to_string(folder.join("off.json"))?;
    assert!(!text.contains(PASSWORD), "{text}");
    Ok(())
}

/// A real BMC's session: random numbers, keys and ciphers are the same again.
#[tokio::test]
async fn a_session_with_a_bmc_is_played_again_from_its_transcript() -> Result<()> {
    let folder = fresh_folder("plugins-authors-bmc")?;
    let bmc = Bmc::start(Kind::IpmiSim, &folder).await?;
    let (wasm, password) = (component("plugins/ipmi.wasm"), password_file(&folder)?);
    let address = bmc.address();
    let device = ["--address", &address, "--username", USERNAME, "--password-file", &password];
    let off = [&["run", &wasm, "off"], device.as_slice()].concat();
    let off = [off.as_slice(), &["--parameter", "cipher-suite=3", "--record", "off.json"]].concat();
    let (code, said) = plugin(&folder, &off)?;
    assert_eq!(code, Some(0), "{said}");
    drop(bmc);
    let replay = ["run", &wasm, "--replay", "off.json", "--password-file", &password];
    let (code, said) = plugin(&folder, &replay)?;
    assert_eq!(code, Some(0), "{said}");
    assert!(asks(&folder.join("off.json"))?.len() > 10);
    Ok(())
}

/// A stream's bytes may hold a secret in pieces, which nobody could leave out.
#[test]
fn a_stream_is_not_recorded() -> Result<()> {
    let folder = fresh_folder("plugins-authors-stream")?;
    let wasm = component("plugins/libvirt.wasm");
    let run = ["run", &wasm, "status", "--address", "127.0.0.1", "--record", "status.json"];
    let (code, said) = plugin(&folder, &run)?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--record: found endpoint") && said.contains("a stream by"), "{said}");
    assert!(!folder.join("status.json").exists());
    Ok(())
}
