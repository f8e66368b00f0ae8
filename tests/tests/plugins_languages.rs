//! The examples in other languages, as their tool chains make them: through the loading path that a
//! FencePlugin's component goes, against a relay board, and weighed.
//!
//! Where a tool chain cannot be had its component is not there, which a build system does not forgive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use node_remedy_sandbox::{
    Action, CallReport, Effect, FailureKind, PlugState, PluginLimits, Sandbox, Trust, Verdict,
    compile,
};
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::{PASSWORD, USERNAME};
use node_remedy_tests::process::{fresh_folder, repository};
use node_remedy_tests::webhook::{Door, Plugs};
use node_remedy_tests::weigh::{Program, weigh};
use tokio::time::Instant;
use wasmparser::{Parser, Payload};

use crate::plugins_ipmi::sandboxed::{Reach, Sandboxed, secret};

/// What a ConfigMap holds, packed.
const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;
/// Calls that the time of one is the mean of.
const CALLS: u32 = 20;
const TABLE: &str = "target/tmp/languages-table";

/// What a FencePlugin says for Python; the others need nothing said.
fn python_limits() -> PluginLimits {
    PluginLimits { component_bytes: 24 << 20, compile_cpu_s: 120, ..PluginLimits::default() }
}

/// A component, or `None` where its tool chain could not be had.
fn component(plugin: &str) -> Result<Option<(PathBuf, Vec<u8>)>> {
    let path = repository().join("target/outside").join(plugin).with_extension("wasm");
    if path.is_file() {
        let bytes = fs::read(&path)?;
        return Ok(Some((path, bytes)));
    }
    #[expect(clippy::disallowed_methods, reason = "build systems announce themselves so")]
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    ensure!(!is_ci, "{} is not there: cargo xtask plugins --languages", path.display());
    println!("skipped: {plugin} is not built: cargo xtask plugins --languages says why");
    Ok(None)
}

/// What the component itself imports.
fn imports(wasm: &[u8]) -> Result<BTreeSet<String>> {
    let (mut depth, mut imports) = (0, BTreeSet::new());
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let Payload::Version { .. } = payload {
            depth += 1;
        } else if let Payload::End(_) = payload {
            depth -= 1;
        } else if let Payload::ComponentImportSection(section) = payload
            && depth == 1
        {
            for import in section {
                imports.insert(import?.name.name.to_owned());
            }
        }
    }
    Ok(imports)
}

fn gzipped(wasm: &[u8]) -> Result<usize> {
    let mut gzip = Command::new("gzip");
    let mut gzip = gzip.args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = gzip.stdin.take().context("gzip has no input")?;
    let wasm = wasm.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&wasm));
    let output = gzip.wait_with_output()?;
    writer.join().map_err(|_| anyhow::anyhow!("gzip took nothing"))??;
    Ok(output.stdout.len())
}

/// A board with one relay, user name and password.
async fn board(name: &str) -> Result<Plugs> {
    Plugs::start(&fresh_folder(name)?, Door::PlainBasic, Duration::ZERO).await
}

/// What another client reads of its relay.
async fn relay(board: &Plugs) -> Result<Option<String>> {
    let said = board.read("/cm?cmnd=Power").await?;
    Ok(said.get("POWER").and_then(|state| state.as_str()).map(str::to_owned))
}

fn reach(board: &Plugs, plug: &str, password: &str) -> Reach {
    Reach {
        parameters: BTreeMap::from([("address".to_owned(), board.address())]),
        credentials: BTreeMap::from([secret("account", Some(USERNAME), password)]),
        plug: plug.to_owned(),
        trust: Trust::default(),
    }
}

/// Loads it as a FencePlugin's is loaded, switches a relay, and leaves a row of the table.
async fn check(plugin: &str, limits: PluginLimits, wanted: &[&str]) -> Result<()> {
    let Some((path, wasm)) = component(plugin)? else { return Ok(()) };
    let imports = imports(&wasm)?;
    assert_eq!(imports.iter().map(String::as_str).collect::<Vec<_>>(), wanted, "{plugin}");

    let sandbox = Sandbox::new()?;
    let loaded = sandbox.load_external_within(&Controller::binary(), &wasm, &limits)?;
    assert_eq!(loaded.manifest().name, plugin);
    let sandboxed = Sandboxed::holding(&sandbox, loaded)?;
    let board = board(plugin).await?;
    let call = async |action, plug: &str, password: &str| -> Result<CallReport> {
        let call = sandboxed.prepare_for(action, reach(&board, plug, password)).await?;
        Ok(sandboxed.call(call).await)
    };
    for (action, wanted, says, truth) in [
        (Action::Status, PlugState::On, "relay is ON", "ON"),
        (Action::Off, PlugState::Off, "Off accepted; relay is OFF", "OFF"),
        (Action::Status, PlugState::Off, "relay is OFF", "OFF"),
        (Action::On, PlugState::On, "On accepted; relay is ON", "ON"),
        (Action::Monitor, PlugState::On, "relay is ON", "ON"),
    ] {
        let report = call(action, "1", PASSWORD).await?;
        let Verdict::Outcome(outcome) = report.verdict() else { bail!("{plugin}: {report:?}") };
        assert_eq!((outcome.state, outcome.detail.as_str()), (wanted, says), "{plugin} {action:?}");
        // Another client agrees.
        assert_eq!(relay(&board).await?.as_deref(), Some(truth), "{plugin} {action:?}");
        let is_change = matches!(action, Action::Off | Action::On);
        assert_eq!(report.effect == Effect::Begun, is_change, "{plugin} {action:?}");
    }
    for (plug, password, kind) in [
        ("1", "wrong", FailureKind::Unauthenticated),
        ("29", PASSWORD, FailureKind::NoSuchPlug),
        ("one", PASSWORD, FailureKind::NoSuchPlug),
    ] {
        let report = call(Action::Off, plug, password).await?;
        let Verdict::FailedBeforeEffect(failure) = report.verdict() else {
            bail!("{plugin}: {report:?}")
        };
        assert_eq!(failure.kind, kind, "{plugin} {plug}: {}", failure.detail);
    }
    assert_eq!(relay(&board).await?.as_deref(), Some("ON"), "{plugin}: nothing was switched");
    // The board has one relay: what it says of another is not known, and so not off.
    let report = call(Action::Status, "2", PASSWORD).await?;
    let Verdict::Outcome(outcome) = report.verdict() else { bail!("{plugin}: {report:?}") };
    assert_eq!(outcome.state, PlugState::Unknown, "{plugin}");

    // No such plug: an instance, and no network.
    let begun = Instant::now();
    for _ in 0..CALLS {
        call(Action::Status, "none", PASSWORD).await?;
    }
    let a_call = begun.elapsed() / CALLS;
    let program = Controller::binary();
    let path = path.display().to_string();
    let inspect = Program::new(&program, &["plugin", "inspect", &path, "--output", "json"]);
    let weighed = weigh(vec![inspect]).await?;
    let ended = weighed.ended.first().context("nothing was weighed")?;
    ensure!(ended.succeeded, "{}", ended.complained);
    let code = compile::compile_in_child_within(&Controller::binary(), &wasm, &limits)?.len();
    let row = format!(
        "{plugin}\t{}\t{}\t{:.1}\t{}\t{code}\t{}\t{}\n",
        wasm.len(),
        gzipped(&wasm)?,
        ended.cpu.as_secs_f64(),
        ended.peak_bytes >> 20,
        a_call.as_micros(),
        imports.len(),
    );
    print!("{row}");
    fs::create_dir_all(repository().join(TABLE))?;
    fs::write(repository().join(TABLE).join(plugin), row)?;
    Ok(())
}

/// All of the contract, and nothing of WASI.
const CONTRACT: &[&str] = &[
    "node-remedy:fence/credentials@0.1.0",
    "node-remedy:fence/net@0.1.0",
    "node-remedy:fence/op@0.1.0",
    "node-remedy:fence/types@0.1.0",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn javascript_switches_a_relay_and_fits_a_config_map() -> Result<()> {
    check("tasmota-js", PluginLimits::default(), CONTRACT).await?;
    let Some((_, wasm)) = component("tasmota-js")? else { return Ok(()) };
    let packed = gzipped(&wasm)?;
    assert!(packed < CONFIG_MAP_BYTES_MAX, "{packed} bytes");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_switches_a_relay_where_its_plugin_is_allowed_more_bytes() -> Result<()> {
    let Some((_, wasm)) = component("tasmota-py")? else { return Ok(()) };
    let refused = Sandbox::new()?.load_external(&Controller::binary(), &wasm);
    let refused = refused.err().context("it was loaded")?.to_string();
    assert!(refused.contains("8388608 are the most"), "{refused}");
    check("tasmota-py", python_limits(), CONTRACT).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_switches_a_relay_without_anything_of_wasi() -> Result<()> {
    // What it does not call it does not import.
    let wanted = CONTRACT.get(1..).unwrap_or_default();
    check("tasmota-c", PluginLimits::default(), wanted).await
}
