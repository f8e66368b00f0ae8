//! The commands about a component in a file, on the example from outside: what it is, what it would be
//! allowed, and a signature that OpenSSL checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use expect_test::expect;
use node_remedy_tests::Controller;
use node_remedy_tests::process::{fresh_folder, repository};
use serde_json::{Value, json};

fn component() -> String {
    repository().join("target/outside/tasmota.wasm").display().to_string()
}

/// What `node-remedy plugin` says, and how it ends; digests and sizes change with every build.
fn plugin(arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let output = Command::new(Controller::binary()).arg("plugin").args(arguments).output()?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(said)?))
}

fn openssl(arguments: &[&str]) -> Result<()> {
    let output = Command::new("openssl").args(arguments).output()?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The component as `plugin inspect` tells it.
fn inspected() -> Result<Value> {
    let (code, said) = plugin(&["inspect", &component(), "--output", "json"])?;
    ensure!(code == Some(0), "{said}");
    Ok(serde_json::from_str(&said)?)
}

/// A FencePlugin for the example, with this beside its source and digest.
fn fence_plugin(folder: &Path, digest: &str, more: &Value) -> Result<String> {
    let mut object = json!({
        "apiVersion": "node-remedy.io/v1alpha1", "kind": "FencePlugin", "metadata": {"name": "tasmota"},
        "spec": {"source": {"configMap": {"name": "tasmota", "key": "tasmota.wasm"}}, "digest": digest},
    });
    if let (Some(Value::Object(spec)), Some(more)) = (object.get_mut("spec"), more.as_object()) {
        spec.extend(more.clone());
    }
    let file = folder.join("plugin.yaml");
    fs::write(&file, object.to_string())?;
    Ok(file.display().to_string())
}

#[test]
fn what_a_component_would_be_allowed_is_shown_before_it_is_applied() -> Result<()> {
    let folder = fresh_folder("plugins-outside-verify")?;
    let digest = inspected()?["digest"].as_str().unwrap_or_default().to_owned();
    let grants = json!({"grants": [
        {"cidrs": ["192.0.2.0/24", "0.0.0.0/0", "fd00::/8"], "ports": [8080, 443]},
        {"hosts": ["relay.example.org"], "methods": ["POST"]},
    ]});
    let verify = |file: String| plugin(&["verify", &component(), "--grants", &file]);
    let (code, said) = verify(fence_plugin(&folder, &digest, &grants)?)?;
    expect![[r"
        tasmota 0.1.0  DIGEST
        signature: none is wanted
        to 192.0.2.0/24
          endpoint   relay            http  port 8080 443  basic  GET /cm
          credential account          write
          a call     512 HTTP requests, 2048 datagrams, 64 credential operations at most
        to 0.0.0.0/0
          endpoint   relay            http  port 8080 443  basic  GET /cm
          credential account          write
          a call     512 HTTP requests, 2048 datagrams, 64 credential operations at most
        to fd00::/8
          endpoint   relay            http  port 8080 443  basic  GET /cm
          credential account          write
          a call     512 HTTP requests, 2048 datagrams, 64 credential operations at most
        ✗ relay.example.org: failed to grant endpoint 'relay': found method GET, which is not granted; add GET to grants.methods
    "]]
    .assert_eq(&said.replace(&digest, "DIGEST"));
    assert_eq!(code, Some(1));
    let granted = json!({"grants": [{"cidrs": ["192.0.2.7/32"]}]});
    let (code, said) = verify(fence_plugin(&folder, &digest, &granted)?)?;
    assert_eq!(code, Some(0), "{said}");
    let zero = format!("sha256:{}", "0".repeat(64));
    let (code, said) = verify(fence_plugin(&folder, &zero, &json!({}))?)?;
    assert_eq!(code, Some(1));
    assert!(said.contains(&format!("✗ spec.digest is {zero}, the component's {digest}")), "{said}");
    assert!(said.contains("✗ spec.grants is empty: no method of it is ever ready"), "{said}");
    Ok(())
}

/// The same of a plugin that speaks TLS, under each thing that a grant may want of the other side.
#[test]
fn whom_tls_must_prove_the_device_to_be_is_shown_before_it_is_applied() -> Result<()> {
    let folder = fresh_folder("plugins-outside-verify-tls")?;
    let component = repository().join("target/plugins/redfish.wasm").display().to_string();
    let own = rcgen::generate_simple_self_signed(vec!["bmc.example".to_owned()])?;
    let pin = format!("sha256//{}=", "A".repeat(43));
    let wanted = [
        json!({}),
        json!({"tls": {"caBundle": own.cert.pem()}}),
        json!({"tls": {"pins": [pin]}}),
        json!({"tls": {"insecure": true}}),
    ];
    let (mut shown, mut told) = (Vec::new(), Vec::new());
    for wanted in wanted {
        let mut grant = json!({"cidrs": ["192.0.2.0/24"]});
        if let (Some(grant), Some(wanted)) = (grant.as_object_mut(), wanted.as_object()) {
            grant.extend(wanted.clone());
        }
        let zero = format!("sha256:{}", "0".repeat(64));
        let file = fence_plugin(&folder, &zero, &json!({"grants": [grant]}))?;
        let named =
            fs::read_to_string(&file)?.replace(r#"{"name":"tasmota"}"#, r#"{"name":"redfish"}"#);
        fs::write(&file, named)?;
        let (_, said) = plugin(&["verify", &component, "--grants", &file])?;
        let lines = said.lines().map(str::trim).filter(|line| line.starts_with("TLS: "));
        shown.extend(lines.map(ToOwned::to_owned));
        let (_, said) = plugin(&["verify", &component, "--grants", &file, "--output", "json"])?;
        let document: Value = serde_json::from_str(&said)?;
        let endpoints = document.pointer("/grants/0/endpoints").and_then(Value::as_array);
        for endpoint in endpoints.into_iter().flatten() {
            let [auth, tls] = ["auth", "tls"].map(|field| endpoint.get(field));
            told.push(format!("{} {}", json!(auth), json!(tls)));
        }
    }
    expect![[r"
        TLS: its name, to an authority that the system trusts
        TLS: its name, to an authority that the system trusts
        TLS: its name, to an authority of the grant's tls.caBundle
        TLS: its name, to an authority of the grant's tls.caBundle
        TLS: its key, which is sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
        TLS: its key, which is sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
        TLS: nothing (insecure): who sits on the wire can read the credential
        TLS: nothing (insecure): who sits on the wire can read the credential
    "]]
    .assert_eq(&(shown.join("\n") + "\n"));
    expect![[r#"
        "basic" {"authorities":"system"}
        "login, ends by DELETE {location}" {"authorities":"system"}
        "basic" {"authorities":"grant"}
        "login, ends by DELETE {location}" {"authorities":"grant"}
        "basic" {"pins":["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]}
        "login, ends by DELETE {location}" {"pins":["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]}
        "basic" {"insecure":true}
        "login, ends by DELETE {location}" {"insecure":true}
    "#]]
    .assert_eq(&(told.join("\n") + "\n"));
    Ok(())
}

/// Both kinds of keys, and the same by OpenSSL.
#[test]
fn a_signature_is_one_that_openssl_verifies() -> Result<()> {
    let folder = fresh_folder("plugins-outside-sign")?;
    let at = |name: &str| folder.join(name).display().to_string();
    let digest = inspected()?["digest"].as_str().unwrap_or_default().to_owned();
    let p256: &[&str] = &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for (name, algorithm) in [("p256", p256), ("ed25519", &["-algorithm", "ED25519"])] {
        let (key, public, raw) = (at(name), at(&format!("{name}.pub")), at(&format!("{name}.raw")));
        openssl(&[&["genpkey", "-out", &key], algorithm].concat())?;
        openssl(&["pkey", "-in", &key, "-pubout", "-out", &public])?;
        let (code, signature) = plugin(&["sign", &component(), "--key", &key])?;
        assert_eq!(code, Some(0), "{signature}");
        let text = at(&format!("{name}.sig"));
        fs::write(&text, &signature)?;
        openssl(&["base64", "-d", "-A", "-in", &text, "-out", &raw])?;
        if name == "p256" {
            openssl(&["dgst", "-sha256", "-verify", &public, "-signature", &raw, &component()])?;
        } else {
            let [input, signed] = [component(), raw];
            let arguments = ["pkeyutl", "-verify", "-pubin", "-rawin", "-inkey", &public];
            openssl(&[arguments.as_slice(), &["-in", &input, "-sigfile", &signed]].concat())?;
        }
        let wanted = json!({
            "grants": [{"cidrs": ["192.0.2.7/32"]}],
            "verify": {"policy": "require", "keys": [fs::read_to_string(&public)?]},
        });
        let file = fence_plugin(&folder, &digest, &wanted)?;
        let verify = ["verify", &component(), "--grants", &file];
        let (code, said) = plugin(&[verify.as_slice(), &["--signature", &text]].concat())?;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("signature: by sha256:"), "{said}");
        let (code, said) = plugin(&verify)?;
        assert_eq!(code, Some(1));
        assert!(said.contains("✗ the file has no signature"), "{said}");
    }
    Ok(())
}

#[test]
fn what_is_no_component_is_refused_with_what_it_is() -> Result<()> {
    let folder = fresh_folder("plugins-outside-refused")?;
    let write = |name: &str, bytes: &[u8]| -> Result<PathBuf> {
        let file = folder.join(name);
        fs::write(&file, bytes)?;
        Ok(file)
    };
    let whole = fs::read(component())?;
    let half = whole.get(..whole.len() / 2).unwrap_or_default();
    for (file, says) in [
        (
            write("core.wasm", b"\0asm\x01\0\0\0")?,
            "found a core module, expected a WebAssembly component",
        ),
        (write("elf.wasm", b"\x7fELF\x02\x01\x01")?, "precompiled plugins are never accepted"),
        (write("half.wasm", half)?, "failed to"),
        (write("text.wasm.gz", b"(component)")?, "text.wasm.gz is no gzip"),
        (folder.join("missing.wasm"), "failed to read"),
    ] {
        for command in ["inspect", "configmap"] {
            let (code, said) = plugin(&[command, &file.display().to_string()])?;
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains(says) && said.contains("wasm"), "{command}: {said}");
        }
    }
    Ok(())
}
