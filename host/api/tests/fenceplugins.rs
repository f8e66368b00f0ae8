//! FencePlugins: what is read of one, and what is wrong named by its place.

use expect_test::{Expect, expect};
use node_remedy_api::plan::Allows;

use crate::{lines, read};

const PLUGIN: &str = "\
apiVersion: node-remedy.io/v1alpha1
kind: FencePlugin
metadata:
  name: tasmota
spec:
  source:
    configMap: {name: tasmota-1, key: tasmota.wasm.gz}
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  grants:
  - cidrs: [192.0.2.0/24]
    ports: [80]
";

fn check(from: &str, to: &str, expected: Expect) {
    assert_eq!(PLUGIN.matches(from).count(), 1, "{from}");
    let read = read(&[("plugin.yaml", &PLUGIN.replacen(from, to, 1))]);
    expected.assert_eq(&lines(&read.problems));
}

#[test]
fn a_plugin_is_read_with_its_source_and_grants() {
    let read = read(&[("plugin.yaml", PLUGIN)]);
    assert_eq!(lines(&read.problems), "");
    let [plugin] = read.plugins.as_slice() else { panic!("{:?}", read.plugins) };
    assert_eq!(plugin.name, "tasmota");
    let map = plugin.spec.source.config_map.as_ref().map(|map| map.key.as_str());
    assert_eq!((map, &plugin.spec.source.oci), (Some("tasmota.wasm.gz"), &None));
    let grants: Vec<_> = plugin.grants().collect();
    let allows =
        Allows { cidrs: vec!["192.0.2.0/24".to_owned()], ports: vec![80], ..Allows::default() };
    assert_eq!(grants.len(), 1);
    assert_eq!((&grants[0].plugin, &grants[0].allows), (&plugin.name, &allows));
}

#[test]
fn what_is_wrong_is_named_by_its_place() {
    check(
        "  name: tasmota\n",
        "  name: Tasmota_1\n",
        expect![[r#"
        plugin.yaml:4:9: metadata.name: found "Tasmota_1", expected 1 to 40 of a-z, 0-9 and -
    "#]],
    );
    check(
        "sha256:0123",
        "sha256:012",
        expect![[r#"
        plugin.yaml:8:11: spec.digest: found "sha256:012456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", expected sha256: and 64 hex digits, as `node-remedy plugin inspect` prints them
    "#]],
    );
    check(
        "sha256:0123",
        "0123",
        expect![[r#"
        plugin.yaml:8:11: spec.digest: found "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", expected sha256: and 64 hex digits, as `node-remedy plugin inspect` prints them
    "#]],
    );
    check(
        "tasmota.wasm.gz",
        "tasmota.tar",
        expect![[r#"
        plugin.yaml:7:39: spec.source.configMap.key: found "tasmota.tar", expected a key that ends in .wasm, .wasm.gz or .wasm.zst
    "#]],
    );
    check(
        "192.0.2.0/24",
        "192.0.2.0/33",
        expect![[r#"
        plugin.yaml:10:13: spec.grants[0].cidrs[0]: found "192.0.2.0/33", expected a network such as 10.1.0.0/16 or 10.1.2.3/32
    "#]],
    );
    check(
        "  - cidrs: [192.0.2.0/24]\n    ports: [80]",
        "  - ports: [80]",
        expect![[r#"
        plugin.yaml:10:5: spec.grants[0]: found neither cidrs nor hosts, expected one
    "#]],
    );
    check(
        "    ports: [80]",
        "    port: [80]",
        expect![[r#"
        plugin.yaml:11:5: spec.grants[0].port: found an unknown field, expected ports (did you mean that?)
    "#]],
    );
    check(
        "    configMap: {name: tasmota-1, key: tasmota.wasm.gz}",
        "    file: x",
        expect![[r#"
        plugin.yaml:7:5: spec.source.file: found an unknown field, expected one of configMap, oci
    "#]],
    );
    check(
        "spec:",
        "status:",
        expect![[r#"
        plugin.yaml:1:1: spec: found nothing, expected a map
    "#]],
    );
}

/// Its source in a registry, with these fields.
fn check_oci(fields: &str, expected: Expect) {
    check("configMap: {name: tasmota-1, key: tasmota.wasm.gz}", fields, expected);
}

#[test]
fn a_plugin_stands_in_a_config_map_or_in_a_registry() {
    let oci = "oci: {image: 'registry.example.org:5000/fence/tasmota:0.1.0', pullSecret: a, mirror: m.example.org}";
    check_oci(oci, expect![""]);
    check_oci(
        "oci: {image: 'registry.example.org/tasmota:0.1.0', plainHttp: true, mirror: '127.0.0.1:5000'}",
        expect![""],
    );
    check_oci(
        "oci: {image: 'registry.example.org/tasmota:1'}\n    configMap: {name: a, key: b.wasm}",
        expect![[r#"
            plugin.yaml:7:5: spec.source: found configMap and oci, expected one
        "#]],
    );
    check(
        "  source:\n    configMap: {name: tasmota-1, key: tasmota.wasm.gz}",
        "  source: {}",
        expect![[r#"
            plugin.yaml:6:11: spec.source: found neither configMap nor oci, expected one
        "#]],
    );
    for (image, expected) in [
        (
            "tasmota",
            expect![[r#"
            plugin.yaml:7:18: spec.source.oci.image: found "tasmota", expected REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:…
        "#]],
        ),
        (
            "fence/tasmota:1",
            expect![[r#"
            plugin.yaml:7:18: spec.source.oci.image: found "fence/tasmota:1", expected a registry, such as registry.example.org, before the first /
        "#]],
        ),
        (
            "ghcr.io/fence/tasmota",
            expect![[r#"
            plugin.yaml:7:18: spec.source.oci.image: found "ghcr.io/fence/tasmota", expected a tag or a digest at the end: :TAG or @sha256:…
        "#]],
        ),
        (
            "ghcr.io/Fence/tasmota:1",
            expect![[r#"
            plugin.yaml:7:18: spec.source.oci.image: found "ghcr.io/Fence/tasmota:1", expected a repository of a-z, 0-9, . _ - and / after the registry
        "#]],
        ),
        (
            "ghcr.io/fence/tasmota@sha256:12",
            expect![[r#"
            plugin.yaml:7:18: spec.source.oci.image: found "ghcr.io/fence/tasmota@sha256:12", expected @sha256: and 64 hex digits
        "#]],
        ),
    ] {
        check_oci(&format!("oci: {{image: '{image}'}}"), expected);
    }
    check_oci(
        "oci: {image: 'ghcr.io/a:1', mirror: 'https://m.example.org'}",
        expect![[r#"
            plugin.yaml:7:41: spec.source.oci.mirror: found "https://m.example.org", expected HOST or HOST:PORT of a registry, without https://
        "#]],
    );
    check_oci(
        "oci: {image: 'ghcr.io/a:1', tls: {caBundle: x}, plainHttp: true}",
        expect![[r#"
            plugin.yaml:7:49: spec.source.oci.tls.caBundle: found no certificate in PEM, expected -----BEGIN CERTIFICATE-----
            plugin.yaml:7:64: spec.source.oci.plainHttp: found plainHttp beside tls, expected one
        "#]],
    );
}

#[test]
fn limits_are_bounded_by_the_schema() {
    let most = "componentBytes: 67108864, memoryBytes: 268435456, fuel: 100000000000, \
                deadlineSeconds: 3600, concurrentCalls: 256, compileMemoryBytes: 4294967296, \
                compileCpuSeconds: 120";
    let text = PLUGIN.replacen("  grants:", &format!("  limits: {{{most}}}\n  grants:"), 1);
    let read = read(&[("plugin.yaml", &text)]);
    assert_eq!(lines(&read.problems), "");
    let limits = read.plugins[0].spec.limits.unwrap();
    assert_eq!((limits.component_bytes, limits.concurrent_calls), (Some(64 << 20), Some(256)));
    check(
        "  grants:",
        "  limits: {componentBytes: 67108865, fuel: 0, concurrentCalls: 257}\n  grants:",
        expect![[r#"
        plugin.yaml:9:28: spec.limits.componentBytes: found 67108865, expected a number from 1 to 67108864
        plugin.yaml:9:44: spec.limits.fuel: found 0, expected a number from 1 to 100000000000
        plugin.yaml:9:64: spec.limits.concurrentCalls: found 257, expected a number from 1 to 256
    "#]],
    );
}
