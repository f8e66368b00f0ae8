//! The manifest.

use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sdk::FenceMethod;
use serde_json::Value;

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
