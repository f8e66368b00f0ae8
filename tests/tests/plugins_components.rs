//! Every component as it ships, in `target/plugins` and `target/watchers`: its size, the manifest it carries, and all that it
//! imports. What is not imported cannot be called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use expect_test::expect;
use node_remedy_tests::process::repository;
use node_remedy_tests::python::python;
use wasmparser::{Parser, Payload};

/// One component.
const SIZE_MAX: usize = 250_000;
/// All of them, packed as a registry packs layers.
const PACKED_MAX: usize = 2_000_000;

/// A component as it ships.
struct Component {
    name: String,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Every component, by name.
fn all() -> Result<Vec<Component>> {
    let mut all = Vec::new();
    let folders = ["target/plugins", "target/watchers"].map(|folder| repository().join(folder));
    let entries = folders.map(fs::read_dir).into_iter().collect::<std::io::Result<Vec<_>>>()?;
    for entry in entries.into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let name = path.file_stem().and_then(|stem| stem.to_str()).context("no name")?;
            all.push(Component { name: name.to_owned(), bytes: fs::read(&path)?, path });
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    ensure!(all.len() > 1, "there are {} components", all.len());
    Ok(all)
}

/// The functions that a component imports, by interface.
fn imports(component: &Component) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut imports = BTreeMap::new();
    for payload in Parser::new(0).parse_all(&component.bytes) {
        let payload = payload?;
        if let Payload::ComponentImportSection(section) = payload {
            for import in section {
                let name = import?.name.name;
                // Interfaces only: inner components name what they are handed without a package.
                if name.contains(':') {
                    imports.entry(name.to_owned()).or_default();
                }
            }
        } else if let Payload::ImportSection(section) = payload {
            // The functions stand in the core module, the interface before each.
            for import in section.into_imports() {
                let import = import?;
                let functions: Option<&mut BTreeSet<_>> = imports.get_mut(import.module);
                functions.map(|functions| functions.insert(import.name.to_owned()));
            }
        }
    }
    Ok(imports)
}

#[test]
fn each_carries_the_manifest_of_its_folder_and_no_other() -> Result<()> {
    for component in all()? {
        let source = repository().join("plugins").join(&component.name).join("manifest.json");
        let source = fs::read(&source).with_context(|| source.display().to_string())?;
        let mut carried = Vec::new();
        for payload in Parser::new(0).parse_all(&component.bytes) {
            if let Payload::CustomSection(section) = payload?
                && section.name() == "node-remedy:manifest"
            {
                carried.push(section.data().to_vec());
            }
        }
        assert_eq!(carried, [source], "{}", component.name);
    }
    Ok(())
}

#[tokio::test]
async fn each_is_small_and_all_together_are() -> Result<()> {
    let all = all()?;
    for Component { name, bytes, .. } in &all {
        println!("{name:<14} {:>7} bytes", bytes.len());
    }
    for Component { name, bytes, .. } in &all {
        assert!(bytes.len() <= SIZE_MAX, "{name}: {} bytes, at most {SIZE_MAX}", bytes.len());
    }
    let pack = "import gzip, sys; print(sum(len(gzip.compress(open(f, 'rb').read())) for f in sys.argv[1:]))";
    let paths: Vec<_> = all.iter().map(|one| one.path.display().to_string()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let packed: usize = python(pack, &paths).await?.parse()?;
    println!("all packed     {packed:>7} bytes");
    assert!(packed <= PACKED_MAX, "{packed} bytes, at most {PACKED_MAX}");
    Ok(())
}

#[test]
fn each_imports_only_this() -> Result<()> {
    let mut ours = String::new();
    let mut theirs = BTreeSet::new();
    for component in all()? {
        writeln!(ours, "{}", component.name)?;
        for (interface, functions) in imports(&component)? {
            if interface.starts_with("node-remedy:") && functions.is_empty() {
                continue;
            }
            match interface.strip_prefix("node-remedy:fence/") {
                Some(interface) => {
                    let interface = interface.split('@').next().unwrap_or_default();
                    let functions: Vec<&str> = functions
                        .iter()
                        .map(|function| function.trim_start_matches("[method]"))
                        .filter(|function| !function.starts_with("[resource-drop]"))
                        .collect();
                    writeln!(ours, "  {interface}: {}", functions.join(" "))?;
                }
                None => {
                    theirs.insert(interface);
                }
            }
        }
    }
    expect![[r"
        apc-pdu
          credentials: key.decrypt key.encrypt key.mac secret.identity secret.reveal secret.usm-key open
          net: datagram.receive datagram.send udp
          op: begin-effect elapsed-ms log random sleep
        aws
          net: fetch
          op: begin-effect elapsed-ms log sleep
        azure
          net: fetch
          op: begin-effect elapsed-ms log sleep
        brocade-rest
          net: fetch
          op: begin-effect elapsed-ms log sleep
        eaton-pdu
          credentials: key.decrypt key.encrypt key.mac secret.identity secret.reveal secret.usm-key open
          net: datagram.receive datagram.send udp
          op: begin-effect elapsed-ms log random sleep
        gce
          net: fetch
          op: begin-effect elapsed-ms log sleep
        ipmi
          credentials: key.decrypt key.derive key.encrypt key.mac secret.identity secret.mac secret.session-key open
          net: datagram.farewell datagram.receive datagram.send udp
          op: begin-effect elapsed-ms log random sleep
        kdump
        libvirt
          net: connection.farewell connection.read connection.write tcp
          op: begin-effect elapsed-ms log sleep
        openstack
          net: fetch login-data
          op: begin-effect elapsed-ms log sleep
        ovirt
          net: fetch
          op: begin-effect elapsed-ms log sleep
        proxmox
          net: fetch
          op: begin-effect elapsed-ms log sleep
        redfish
          net: fetch
          op: begin-effect elapsed-ms log sleep
        snmp-switch
          credentials: key.decrypt key.encrypt key.mac secret.identity secret.reveal secret.usm-key open
          net: datagram.receive datagram.send udp
          op: begin-effect elapsed-ms log random sleep
        vmware
          net: fetch
          op: begin-effect elapsed-ms log sleep
        webhook
          net: fetch
          op: begin-effect elapsed-ms log sleep
    "]]
    .assert_eq(&ours);
    // What the standard library brings along; the host answers it with stubs.
    let theirs: Vec<_> = theirs.into_iter().collect();
    expect![[r"
        wasi:cli/environment@0.2.6
        wasi:cli/exit@0.2.6
        wasi:cli/stderr@0.2.6
        wasi:cli/stdin@0.2.6
        wasi:cli/stdout@0.2.6
        wasi:cli/terminal-input@0.2.6
        wasi:cli/terminal-output@0.2.6
        wasi:cli/terminal-stderr@0.2.6
        wasi:cli/terminal-stdin@0.2.6
        wasi:cli/terminal-stdout@0.2.6
        wasi:io/error@0.2.6
        wasi:io/poll@0.2.6
        wasi:io/streams@0.2.6
    "]]
    .assert_eq(&format!("{}\n", theirs.join("\n")));
    Ok(())
}
