//! What is not loaded, and why it says so.

use std::path::Path;

use node_remedy_sandbox::{Action, Digest, Ended, compile, limits, shape};

use crate::guest::{HOSTILE, SANDBOX, WASM, World, call};

fn refusal(bytes: &[u8]) -> String {
    SANDBOX.load(bytes).unwrap_err().to_string()
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component's bytes with one more custom section at its own level.
pub(crate) fn with_section(bytes: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let mut section = leb(name.len());
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(data);
    [bytes, &[0], &leb(section.len()), &section].concat()
}

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[test]
fn what_is_not_a_component_is_named() {
    let rows: [(&[u8], &str); 7] = [
        (b"", "found nothing"),
        (b"\x7fELF\x02\x01\x01", "found machine code (ELF)"),
        (b"\0asm\x01\0\0\0", "found a core module"),
        (b"(component)", "found WebAssembly text"),
        (b"\x1f\x8b\x08", "found a gzip archive"),
        (b"{\"name\": \"ipmi\"}", "found something else"),
        (b"\0asm\x0d\0\x01\0", "does not export node-remedy:fence/method@0.1.0"),
    ];
    for (bytes, expected) in rows {
        let refusal = refusal(bytes);
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn precompiled_code_is_refused() {
    let refusal = refusal(&compile::compile(&WASM).unwrap());
    assert!(refusal.contains("precompiled plugins are never accepted"), "{refusal}");
}

#[test]
fn every_truncation_is_refused() {
    let step = WASM.len() / 97;
    for length in (8..WASM.len()).step_by(step) {
        assert!(SANDBOX.load(&WASM[..length]).is_err(), "{length} of {} bytes", WASM.len());
    }
}

#[test]
fn sizes_are_capped_before_anything_is_read() {
    let padded = with_section(&WASM, "padding", &vec![0; limits::COMPONENT_BYTES_MAX]);
    assert!(refusal(&padded).contains("8388608 are the most"));
    // What an admin may allow is told of all the same.
    assert_eq!(shape(&padded).unwrap().exports, ["node-remedy:fence/method@0.1.0"]);
    let most = with_section(&WASM, "padding", &vec![0; limits::COMPONENT_BYTES_MOST]);
    assert!(shape(&most).unwrap_err().to_string().contains("67108864 are the most"));
}

#[test]
fn imports_beside_ours_are_refused_by_name() {
    for import in
        ["wasi:sockets/tcp@0.2.0", "wasi:http/outgoing-handler@0.2.0", "evil:host/x@1.0.0"]
    {
        let text = format!("(component (import \"{import}\" (instance)))");
        let refusal = refusal(&wat(&text));
        assert!(refusal.contains(&format!("it imports {import}")), "{refusal}");
    }
}

#[test]
fn proposals_that_are_off_are_refused() {
    for module in
        ["(memory i64 1)", "(memory 1 1 shared)", "(memory 1) (memory 1)", "(func return_call 0)"]
    {
        // The validator runs last, so the shell around the module must look like a plugin.
        let text = format!("(core module {module})");
        let bytes = with_component_field(&text);
        let refusal = refusal(&bytes);
        assert!(refusal.contains("failed to validate the plugin"), "{module}: {refusal}");
    }
}

/// A component that exports the method's name and holds a manifest, plus a field.
fn with_component_field(field: &str) -> Vec<u8> {
    let shell = format!(
        "(component {field} (instance $m) (export \"node-remedy:fence/method@0.1.0\" (instance $m)))"
    );
    with_section(&wat(&shell), "node-remedy:manifest", MANIFEST)
}

const MANIFEST: &[u8] = include_bytes!("../guests/hostile/manifest.json");

#[test]
fn too_many_and_too_large_functions_are_refused() {
    let many = "(func)".repeat(20_001);
    assert!(refusal(&with_component_field(&format!("(core module {many})"))).contains("functions"));
    let large = "nop ".repeat(limits::FUNCTION_BYTES_MAX + 1);
    let refused = refusal(&with_component_field(&format!("(core module (func {large}))")));
    assert!(refused.contains("bytes in a function"), "{refused}");
    let nested = "(component)".repeat(65);
    assert!(refusal(&with_component_field(&nested)).contains("nested modules and components"));
}

#[test]
fn a_component_that_only_looks_like_a_plugin_is_refused() {
    assert!(refusal(&with_component_field("")).contains("failed to instantiate the plugin"));
}

#[test]
fn there_is_exactly_one_manifest_and_it_is_sound() {
    let two = with_section(&WASM, "node-remedy:manifest", MANIFEST);
    assert!(refusal(&two).contains("2 sections"));
    let shell =
        "(component (instance $m) (export \"node-remedy:fence/method@0.1.0\" (instance $m)))";
    assert!(refusal(&wat(shell)).contains("0 sections"));
    let with = |manifest: &[u8]| with_section(&wat(shell), "node-remedy:manifest", manifest);
    assert!(refusal(&with(b"\xff\xfe")).contains("failed to read the manifest"));
    assert!(refusal(&with(b"{}")).contains("missing field"));
    assert!(refusal(&with(&vec![b' '; 70_000])).contains("bytes of manifest"));
}

#[test]
fn the_digest_is_of_the_component() {
    assert_eq!(HOSTILE.digest(), Digest::of(&WASM));
    assert!(HOSTILE.digest().to_string().starts_with("sha256:"));
}

#[tokio::test(start_paused = true)]
async fn code_compiled_ahead_or_in_a_child_runs_the_same() {
    let world = World::new();
    let expected = world.call(Action::Status, "honest").await;
    assert_eq!(expected.ended, Ended::Returned);

    let exe = Path::new(env!("CARGO_BIN_EXE_node-remedy-compile"));
    let external = SANDBOX.load_external(exe, &WASM).unwrap();
    let report = external.call(call(Action::Status, "honest"), &World::new().seams).await;
    assert_eq!(report.fuel, expected.fuel);

    let code: &'static [u8] = compile::pack(&compile::compile(&WASM).unwrap()).unwrap().leak();
    let builtin = SANDBOX.load_builtin(&WASM, code).unwrap();
    let report = builtin.call(call(Action::Status, "honest"), &World::new().seams).await;
    assert_eq!(report.fuel, expected.fuel);
    assert_eq!(builtin.digest(), external.digest());
}

#[test]
fn a_child_that_is_not_ours_gives_no_code() {
    let error = compile::compile_in_child(Path::new("/bin/false"), &WASM).unwrap_err();
    assert!(error.to_string().contains("failed to compile"), "{error}");
    assert!(compile::compile_in_child(Path::new("/does/not/exist"), &WASM).is_err());
}

#[test]
fn work_in_a_start_function_is_found_when_loading() {
    let busy = "(core module $busy (func $spin (loop br 0)) (start $spin)) \
                (core instance (instantiate $busy))";
    let shell = format!(
        "(component {busy} (instance $m) (export \"node-remedy:fence/method@0.1.0\" (instance $m)))"
    );
    let refused = refusal(&with_section(&wat(&shell), "node-remedy:manifest", MANIFEST));
    assert!(refused.contains("failed to instantiate the plugin"), "{refused}");
}
