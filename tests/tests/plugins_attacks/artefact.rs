//! Attacks 56–63: bytes that say they are a plugin. What is no component is refused by name; what costs a
//! compiler too much ends in the child that compiles, at its limits; who signed it is checked with
//! `node-remedy plugin verify`. The rows of 61 that need a registry stand beside its tests.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use node_remedy_sandbox::limits::{
    COMPILE_ADDRESS_SPACE_BYTES, COMPONENT_BYTES_MAX, COMPONENT_BYTES_MOST, FUNCTION_BYTES_MAX,
    FUNCTIONS_MAX, NESTED_MAX, TRIAL_FUEL,
};
use node_remedy_sandbox::{Digest, Ended, compile};
use node_remedy_tests::Controller;
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::time::{Clock, Task};
use serde_json::{Value, json};

use super::alone::alone;
use super::canary;
use super::host::{Case, Host, attempt, case, fleet};
use super::modules::{HONEST, Module, attacker, lookalike, with_components, with_section};
use super::victims::Device;

/// The package that this host speaks in one version.
const CONTRACT: &str = "node-remedy:fence";
/// How often the compiling child is looked at. Its peak is the kernel's own count, so that only what it
/// grows by in the last moment of its life is missed.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[test]
fn nothing_is_loaded_that_is_not_a_plugin() -> Result<()> {
    alone("artefact::nothing_is_loaded_that_is_not_a_plugin", async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        many_and_large(&host).await?;
        nested(&host).await?;
        no_component(&host).await?;
        imports(&host).await?;
        signatures(&host).await?;
        start_functions(&host).await?;
        padding(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

#[test]
fn a_compile_bomb_ends_within_the_limits_of_its_child() -> Result<()> {
    alone("artefact::a_compile_bomb_ends_within_the_limits_of_its_child", async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        let how =
            "20 kB: a thousand loops inside each other over five hundred variables that all change";
        let bomb = bomb(1_000, 500).component()?;
        host.attack(
            case(56, "compile bomb", how),
            async || {
                let peak = Peak::watch();
                let clock = Clock::start();
                let refusal = host.refused(&bomb)?;
                let seconds = clock.now_ms() / 1_000;
                ensure!(refusal.contains("failed to compile the plugin within"), "{refusal}");
                Ok(format!("{} bytes: {refusal}; {seconds} s, {}", bomb.len(), peak.told()?))
            },
            async || {
                let small = host.load(&self::bomb(10, 50).component()?)?;
                host.says(&attempt("").of(&small), Ended::Returned, "outcome on").await
            },
        )
        .await
    })
}

/// Every variable changes in every loop, so that each needs a join of its own at the head of each.
fn bomb(loops: usize, variables: usize) -> Module<'static> {
    let change = (0..variables)
        .map(|number| format!("(local.set {number} (i32.add (local.get {number}) (local.get 0)))"));
    let change = change.collect::<Vec<_>>().concat();
    let (open, close) = ("(loop ".repeat(loops), "(br_if 0 (local.get 0)))".repeat(loops));
    let locals = "i32 ".repeat(variables);
    let text = format!("(func (export \"bomb\") (local {locals}) {open} {change} {close})");
    Module { more: text.leak(), ..HONEST }
}

/// The peak of memory of this process's children, from here on.
struct Peak {
    kib: Arc<AtomicU64>,
    _task: Task,
}

impl Peak {
    fn watch() -> Self {
        let kib = Arc::new(AtomicU64::new(0));
        let found = Arc::clone(&kib);
        let task = Task::spawn(async move {
            let mut ticks = tokio::time::interval(LOOK_EVERY);
            loop {
                ticks.tick().await;
                found.fetch_max(children_kib(), Ordering::Relaxed);
            }
        });
        Self { kib, _task: task }
    }

    /// The peak; fails where it is beyond what a child may have, or where no child was seen.
    fn told(&self) -> Result<String> {
        let kib = self.kib.load(Ordering::Relaxed);
        ensure!(kib > 0, "no child was seen");
        ensure!(kib <= COMPILE_ADDRESS_SPACE_BYTES >> 10, "the child had {kib} KiB");
        Ok(format!("child {} MiB", kib >> 10))
    }
}

/// The largest peak among the children that live now.
fn children_kib() -> u64 {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let peak = |child: &str| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    let all: Vec<_> = children
        .flat_map(|list| list.split_whitespace().filter_map(peak).collect::<Vec<_>>())
        .collect();
    all.into_iter().max().unwrap_or_default()
}

async fn many_and_large(host: &Host) -> Result<()> {
    let functions = |count: u32| -> Result<Vec<u8>> {
        let many = "(func)".repeat(usize::try_from(count)?);
        Module { more: &many, ..HONEST }.component()
    };
    let large = |bytes: usize| -> Result<Vec<u8>> {
        let nops = "nop ".repeat(bytes);
        Module { more: &format!("(func {nops})"), ..HONEST }.component()
    };
    let (many, huge) = (functions(100_000)?, large(3 << 20)?);
    host.attack(
        case(57, "100,000 functions, one of 3 MB", "counted before anything is compiled"),
        async || {
            let refusal = host.refused(&huge)?;
            ensure!(refusal.contains("bytes in a function"), "{refusal}");
            let refusal = host.refused(&many)?;
            ensure!(refusal.contains(&format!("{FUNCTIONS_MAX} are the most")), "{refusal}");
            Ok(refusal)
        },
        async || {
            let peak = Peak::watch();
            host.load(&functions(FUNCTIONS_MAX - 100)?)?;
            host.load(&large(FUNCTION_BYTES_MAX - 100)?)?;
            Ok(format!("just below both: loaded, {}", peak.told()?))
        },
    )
    .await
}

async fn nested(host: &Host) -> Result<()> {
    let nested_max = usize::try_from(NESTED_MAX)?;
    let deep =
        |depth: usize| lookalike(&format!("{}{}", "(component ".repeat(depth), ")".repeat(depth)));
    // Each type is two of the one before.
    let doubled = |depth: usize| {
        let types = (1..depth).fold("(type $t0 (tuple u8 u8))".to_owned(), |text, number| {
            let before = number - 1;
            format!("{text}(type $t{number} (tuple $t{before} $t{before}))")
        });
        lookalike(&types)
    };
    let how = "65 components beside and inside each other; a type of 2⁴⁰ members in 40 lines";
    host.attack(
        case(58, "nested components, type bomb", how),
        async || {
            let beside = with_components(&HONEST.component()?, nested_max);
            for bytes in [beside, deep(nested_max + 1)?] {
                let refusal = host.refused(&bytes)?;
                ensure!(refusal.contains("nested modules and components"), "{refusal}");
            }
            let refusal = host.refused(&doubled(40)?)?;
            ensure!(refusal.contains("failed to validate the plugin"), "{refusal}");
            Ok(refusal)
        },
        async || {
            // It has two modules of its own.
            let few = host.load(&with_components(&HONEST.component()?, nested_max - 8))?;
            host.says(&attempt("").of(&few), Ended::Returned, "outcome on").await
        },
    )
    .await
}

async fn no_component(host: &Host) -> Result<()> {
    let whole = attacker()?;
    let precompiled = compile::compile(&whole).map_err(|error| anyhow!("{error}"))?;
    host.attack(
        case(
            59,
            "truncated, core module, WAT, ELF, .cwasm",
            "97 truncations, and what authors attach by mistake",
        ),
        async || {
            for length in (0..whole.len()).step_by(whole.len() / 97) {
                host.refused(whole.get(..length).unwrap_or_default())?;
            }
            for (bytes, says) in [
                (b"\0asm\x01\0\0\0".as_slice(), "a core module"),
                (b"(component)", "WebAssembly text"),
                (b"\x7fELF\x02\x01\x01", "machine code (ELF)"),
                (b"\x1f\x8b\x08", "a gzip archive"),
                (b"", "nothing"),
            ] {
                let refusal = host.refused(bytes)?;
                ensure!(refusal.contains(says), "{refusal}");
            }
            let refusal = host.refused(&precompiled)?;
            ensure!(refusal.contains("precompiled plugins are never accepted"), "{refusal}");
            Ok(refusal)
        },
        async || {
            let loaded = host.load(&whole)?;
            let deed = attempt("status").with("address", "10.9.0.7").under(fleet()).of(&loaded);
            host.says(&deed, Ended::Returned, "outcome on").await
        },
    )
    .await
}

async fn imports(host: &Host) -> Result<()> {
    let names = [
        "wasi:sockets/tcp@0.2.0",
        "wasi:sockets/ip-name-lookup@0.2.0",
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:filesystem/types@0.3.0",
        "node-remedy:fence/net@0.2.0",
        "evil:host/x@1.0.0",
    ];
    host.attack(
        case(60, "extra imports", "wasi:sockets, wasi:http, another version of ours, a stranger's"),
        async || {
            let mut refusals = Vec::new();
            for name in names {
                let bytes = lookalike(&format!("(import \"{name}\" (instance))"))?;
                let refusal = host.refused(&bytes)?;
                // Another version of the contract is told from what is none of it.
                let version = name.split_once('@').filter(|(ours, _)| ours.starts_with(CONTRACT));
                let says = match version {
                    Some((_, version)) => format!("it is made for {CONTRACT}@{version}"),
                    None => format!("it imports {name}"),
                };
                ensure!(refusal.contains(&says), "{says}: {refusal}");
                refusals.push(refusal);
            }
            Ok(refusals.swap_remove(0))
        },
        // What std itself imports is there, and leads nowhere: 43 and 55.
        async || {
            let whole = attacker()?;
            let count = std_imports(&whole)?;
            ensure!(count > 0, "it imports nothing of std's");
            let loaded = host.load(&whole)?;
            let deed = attempt("status").with("address", "10.9.0.7").under(fleet()).of(&loaded);
            let said = host.says(&deed, Ended::Returned, "outcome on").await?;
            Ok(format!("{count} imports of std's own are stubs; {said}"))
        },
    )
    .await
}

fn std_imports(component: &[u8]) -> Result<usize> {
    let mut count = 0;
    for part in wasmparser::Parser::new(0).parse_all(component) {
        if let wasmparser::Payload::ComponentImportSection(imports) = part? {
            for import in imports {
                count += usize::from(import?.name.name.starts_with("wasi:"));
            }
        }
    }
    Ok(count)
}

/// What `node-remedy plugin` says of the attacker, and whether it is content.
fn plugin(arguments: &[&str]) -> Result<(bool, String)> {
    let mut command = Command::new(Controller::binary());
    let output = tokio::task::block_in_place(|| command.arg("plugin").args(arguments).output())?;
    let said = String::from_utf8([output.stdout, output.stderr].concat())?;
    canary::note(&said);
    Ok((output.status.success(), said))
}

fn openssl(arguments: &[&str]) -> Result<()> {
    let output = Command::new("openssl").args(arguments).output()?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A component in a file, with somebody's keys beside it.
struct Signed<'a> {
    folder: &'a Path,
    digest: String,
    component: String,
}

impl Signed<'_> {
    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A key pair of this name, and its signature over a file.
    fn sign(&self, key: &str, component: &str) -> Result<String> {
        let (private, public) = (self.at(key), self.at(&format!("{key}.pub")));
        openssl(&["genpkey", "-algorithm", "ED25519", "-out", &private])?;
        openssl(&["pkey", "-in", &private, "-pubout", "-out", &public])?;
        let (is_well, signature) = plugin(&["sign", component, "--key", &private])?;
        ensure!(is_well, "{signature}");
        let file = self.at(&format!("{key}.sig"));
        fs::write(&file, signature)?;
        Ok(file)
    }

    /// What is made of a FencePlugin that wants this key's signature and this digest.
    fn verify(&self, digest: &str, key: &str, signature: Option<&str>) -> Result<(bool, String)> {
        let public = fs::read_to_string(self.at(&format!("{key}.pub")))?;
        let object: Value = json!({
            "apiVersion": "node-remedy.io/v1alpha1", "kind": "FencePlugin",
            "metadata": {"name": "attacker"},
            "spec": {
                "source": {"configMap": {"name": "attacker", "key": "attacker.wasm"}},
                "digest": digest,
                "grants": [{"cidrs": ["10.9.0.0/16"]}],
                "verify": {"policy": "require", "keys": [public]},
            },
        });
        let file = self.at("plugin.yaml");
        fs::write(&file, object.to_string())?;
        let mut verify = vec!["verify", &self.component, "--grants", &file];
        verify.extend(signature.iter().flat_map(|file| ["--signature", file]));
        plugin(&verify)
    }
}

async fn signatures(host: &Host) -> Result<()> {
    let folder = fresh_folder("plugins-attacks-signatures")?;
    let whole = attacker()?;
    let component = folder.join("attacker.wasm");
    fs::write(&component, &whole)?;
    let (component, digest) = (component.display().to_string(), Digest::of(&whole).to_string());
    let signed = Signed { folder: &folder, digest, component };
    let other = signed.at("other.wasm");
    fs::write(&other, with_section(&whole, "changed", b"a byte"))?;
    let own = signed.sign("own", &signed.component)?;
    let strangers = signed.sign("stranger", &signed.component)?;
    let of_other = signed.sign("of-other", &other)?;
    let zero = format!("sha256:{}", "0".repeat(64));
    let right = signed.digest.clone();
    let rows = [
        ("a", "digest mismatch", &zero, "own", Some(own.as_str()), "✗ spec.digest is"),
        ("b", "unsigned", &right, "own", None, "has no signature"),
        ("c", "other key", &right, "own", Some(strangers.as_str()), "none of the keys made"),
        (
            "d",
            "signature of another",
            &right,
            "of-other",
            Some(of_other.as_str()),
            "none of the keys",
        ),
    ];
    for (part, attack, digest, key, signature, says) in rows {
        let attack = format!("OCI, ConfigMap: {attack}");
        let how =
            "a component in a file, as node-remedy plugin verify sees it before it is applied";
        host.attack(
            Case { number: 61, part, attack: &attack, how },
            async || {
                let (is_well, said) = signed.verify(digest, key, signature)?;
                let line = said.lines().find(|line| line.contains(says));
                ensure!(!is_well && line.is_some(), "{said}");
                Ok(line.unwrap_or_default().trim().to_owned())
            },
            async || {
                let (is_well, said) = signed.verify(&right, "own", Some(&own))?;
                let line = said.lines().find(|line| line.contains("signature: by"));
                ensure!(is_well, "{said}");
                Ok(line.context("not signed")?.to_owned())
            },
        )
        .await?;
    }
    Ok(())
}

async fn start_functions(host: &Host) -> Result<()> {
    let spins = "(func $work (loop (br 0))) (start $work)";
    let waits = Module {
        imports: "(import \"node-remedy:fence/op@0.1.0\" \"sleep\" (func $sleep (param i32) (result i32)))",
        more: "(func $work (drop (call $sleep (i32.const 3600000)))) (start $work)",
        ..HONEST
    };
    host.attack(
        case(
            62,
            "work in a start function",
            "a loop without end, and an hour's sleep, while it is set up",
        ),
        async || {
            let refusal = host.refused(&waits.component()?)?;
            ensure!(refusal.contains("failed to instantiate the plugin"), "{refusal}");
            let refusal = host.refused(&Module { more: spins, ..HONEST }.component()?)?;
            ensure!(refusal.contains(&format!("{TRIAL_FUEL} units of fuel")), "{refusal}");
            Ok(refusal)
        },
        async || {
            let brief = "(global $g (mut i32) (i32.const 0)) \
                         (func $work (global.set $g (i32.const 7))) (start $work)";
            let brief = host.load(&Module { more: brief, ..HONEST }.component()?)?;
            host.says(&attempt("").of(&brief), Ended::Returned, "outcome on").await
        },
    )
    .await
}

/// So many zeros, packed.
pub(crate) fn gzipped(zeros: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Into memory; it has no way to fail.
    let _ = encoder.write_all(&vec![0; zeros]);
    encoder.finish().unwrap_or_default()
}

/// So many zeros as zstd, of whole blocks that repeat a byte (RFC 8878, section 3.1.1.2.2).
pub(crate) fn zstandard(zeros: usize) -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    // A window of one block, no size and no checksum.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let block = |is_last: bool| -> [u8; 4] {
        let [low, middle, high, _] = (u32::from(is_last) | (1 << 1) | (128 << 13)).to_le_bytes();
        [low, middle, high, 0]
    };
    let more = zeros.div_ceil(BLOCK).saturating_sub(1);
    [frame.as_slice(), &block(false).repeat(more), &block(true)].concat()
}

async fn padding(host: &Host) -> Result<()> {
    let whole = attacker()?;
    let padded = |bytes: usize| with_section(&whole, "padding", &vec![0; bytes]);
    let huge = padded(100 << 20);
    let folder = fresh_folder("plugins-attacks-padding")?;
    let at = |name: &str| folder.join(name).display().to_string();
    let packed =
        [(at("huge.wasm.gz"), gzipped(100 << 20)), (at("huge.wasm.zst"), zstandard(100 << 20))];
    for (file, bytes) in &packed {
        fs::write(file, bytes)?;
    }
    host.attack(
        case(63, "100 MB custom section", "as it is, as 450 kB of gzip, as 3 kB of zstd"),
        async || {
            let refusal = host.refused(&huge)?;
            ensure!(refusal.contains(&format!("{COMPONENT_BYTES_MAX} are the most")), "{refusal}");
            for (file, _) in &packed {
                let (is_well, said) = plugin(&["inspect", file])?;
                let is_refused =
                    said.contains(&format!("holds more than {COMPONENT_BYTES_MOST} bytes"));
                ensure!(!is_well && is_refused, "{said}");
            }
            Ok(refusal)
        },
        async || {
            let most = padded(COMPONENT_BYTES_MAX - whole.len() - 100);
            let most = host.load(&most)?;
            let deed = attempt("status").with("address", "10.9.0.7").under(fleet()).of(&most);
            host.says(&deed, Ended::Returned, "outcome on").await
        },
    )
    .await
}
