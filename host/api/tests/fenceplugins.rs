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
    assert_eq!(plugin.spec.source.config_map.key, "tasmota.wasm.gz");
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
        plugin.yaml:7:5: spec.source.configMap: found nothing, expected a map
        plugin.yaml:7:5: spec.source.file: found an unknown field, expected one of configMap
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
