//! The manifest, and the component as the profile `plugin` builds it: its size, what it carries, and
//! every import.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use expect_test::expect;
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_plugin_sdk::FenceMethod;
use serde_json::Value;
use wasmparser::{Parser, Payload};

/// Twice what it is today is a reason to look.
const SIZE_MAX: usize = 250_000;

fn manifest() -> Value {
    serde_json::from_str(Ipmi::MANIFEST).unwrap()
}

#[test]
fn the_manifest_names_this_very_version() {
    assert_eq!(manifest()["name"], "ipmi");
    assert_eq!(manifest()["version"], env!("CARGO_PKG_VERSION"));
    assert!(Ipmi::MANIFEST.len() <= 64 * 1024);
}

#[test]
fn reset_is_not_called_idempotent() {
    let manifest = manifest();
    let idempotent = manifest["idempotentActions"].as_array().unwrap();
    assert!(!idempotent.contains(&"reset".into()));
    for action in idempotent {
        assert!(manifest["actions"].as_array().unwrap().contains(action));
    }
}

#[test]
fn no_secret_is_asked_to_be_revealed() {
    for credential in manifest()["asks"]["credentials"].as_array().unwrap() {
        let operations = credential["operations"].as_array().unwrap();
        assert!(!operations.contains(&"reveal".into()), "{credential}");
    }
}

#[test]
fn the_manifest_in_the_documentation_is_this_one() {
    let page = include_str!("../../../../wit/manifest.md");
    assert!(page.contains(Ipmi::MANIFEST.trim()), "wit/manifest.md shows another manifest");
}

/// Builds the component beside the tests, as `cargo xtask plugins` does.
fn build() -> Vec<u8> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME")])
        .args(["--target", "wasm32-wasip2", "--profile", "plugin"])
        .args(["--target-dir", target.to_str().unwrap()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::read(target.join("wasm32-wasip2/plugin/node_remedy_plugin_ipmi.wasm")).unwrap()
}

#[test]
fn the_component_is_small_carries_its_manifest_and_imports_only_this() {
    let component = build();
    assert!(component.len() <= SIZE_MAX, "{} bytes", component.len());
    println!("{} bytes", component.len());

    let mut manifests = Vec::new();
    let mut imports = BTreeMap::new();
    for payload in Parser::new(0).parse_all(&component) {
        match payload.unwrap() {
            Payload::CustomSection(section) if section.name() == "node-remedy:manifest" => {
                manifests.push(section.data());
            }
            Payload::ComponentImportSection(section) => {
                let names = section.into_iter().map(|import| import.unwrap().name.name);
                // Interfaces only: inner components name what they are handed without a package.
                for name in names.filter(|name| name.contains(':')) {
                    imports.insert(name.to_owned(), Vec::new());
                }
            }
            // The functions stand in the core module, the interface before each.
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.unwrap();
                    if let Some(functions) = imports.get_mut(import.module) {
                        functions.push(import.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(manifests, [Ipmi::MANIFEST.as_bytes()]);

    let mut list = String::new();
    for (interface, mut functions) in imports {
        functions.sort();
        writeln!(list, "{interface}").unwrap();
        if interface.starts_with("node-remedy") {
            for function in functions {
                writeln!(list, "  {function}").unwrap();
            }
        }
    }
    expect![[r#"
        node-remedy:fence/credentials@0.1.0
          [method]key.decrypt
          [method]key.derive
          [method]key.encrypt
          [method]key.mac
          [method]secret.identity
          [method]secret.mac
          [method]secret.session-key
          [resource-drop]key
          [resource-drop]secret
          open
        node-remedy:fence/net@0.1.0
          [method]datagram.farewell
          [method]datagram.receive
          [method]datagram.send
          [resource-drop]datagram
          udp
        node-remedy:fence/op@0.1.0
          begin-effect
          elapsed-ms
          log
          random
          sleep
        node-remedy:fence/types@0.1.0
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
    "#]]
    .assert_eq(&list);
}
