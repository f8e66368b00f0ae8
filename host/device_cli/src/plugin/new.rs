//! `plugin new`: a folder with a plugin in it that builds and passes its test at once, anywhere. What is
//! written are the files of `examples/plugins/template-*`, which are built and tested like all others, with
//! the plugin's name in the place of theirs, and the SDK.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use node_remedy_store::store::Plugins;

use crate::output::outln;
use crate::plugin::standalone::standalone;

/// Paths in a folder, and what they hold.
type Files = &'static [(&'static str, &'static str)];

const SDK: Files = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
const TEMPLATE_HTTP: Files = include!(concat!(env!("OUT_DIR"), "/template_http.rs"));
const TEMPLATE_UDP: Files = include!(concat!(env!("OUT_DIR"), "/template_udp.rs"));

/// Where the SDK goes in the new folder.
const SDK_FOLDER: &str = "sdk";
/// What a manifest's name may have (`wit/manifest.md`).
const NAME_BYTES_MAX: usize = 40;
/// Names of crates that Rust or the plugin itself has already.
const TAKEN: [&str; 9] = [
    "alloc",
    "core",
    "node-remedy-sdk",
    "proc-macro",
    "serde-json",
    "std",
    "test",
    "self",
    "super",
];
/// Words of the language that a crate cannot be called by.
const KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized",
    "use", "virtual", "where", "while", "yield", "union",
];
/// Small, and without unwinding tables: what `cargo xtask plugins` builds ours with.
const PROFILE: &str = "
# Small, and without unwinding tables.
[profile.release]
opt-level = \"s\"
lto = true
codegen-units = 1
panic = \"abort\"
strip = true

# Whatever folder this lies in, it is a workspace of its own.
[workspace]
";

/// `plugin new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// The plugin's name and the folder's: small letters, digits and -, at most 40
    name: String,
    /// What it speaks to its device
    #[arg(long, value_enum, default_value_t)]
    kind: TemplateKind,
}

/// What a template speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TemplateKind {
    /// Requests; the host adds user name and password
    #[default]
    Http,
    /// Datagrams; the host signs them with the password
    Udp,
}

impl TemplateKind {
    /// Its files, and the name in them.
    fn files(self) -> (Files, &'static str) {
        match self {
            Self::Http => (TEMPLATE_HTTP, "template-http"),
            Self::Udp => (TEMPLATE_UDP, "template-udp"),
        }
    }
}

/// Writes it.
pub(super) fn new(args: &NewArgs) -> anyhow::Result<()> {
    let name = args.name.as_str();
    check(name)?;
    let folder = Path::new(name);
    fs::create_dir(folder).with_context(|| {
        format!("failed to make a folder {name}, expected none of that name here, and the right to make one")
    })?;
    let files = files(args.kind, name);
    for (path, text) in &files {
        let file = folder.join(path);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(&file, text))
            .with_context(|| format!("failed to write {}; delete {name}", file.display()))?;
    }
    outln!("{name}: {} files, {} of them the SDK", files.len(), SDK.len());
    outln!("  cd {name}");
    outln!("  cargo test");
    outln!("  cargo build --target wasm32-wasip2 --release");
    let component = name.replace('-', "_");
    outln!("  node-remedy plugin inspect target/wasm32-wasip2/release/{component}.wasm");
    Ok(())
}

/// Every file of the folder.
fn files(kind: TemplateKind, name: &str) -> Vec<(String, String)> {
    let (template, its_name) = kind.files();
    let renamed = |text: &str| {
        text.replace(its_name, name).replace(&its_name.replace('-', "_"), &name.replace('-', "_"))
    };
    let own = template.iter().map(|(path, text)| {
        let text = renamed(text);
        let text =
            if *path == "Cargo.toml" { standalone(&text, SDK_FOLDER) + PROFILE } else { text };
        ((*path).to_owned(), text)
    });
    let sdk = SDK.iter().map(|(path, text)| {
        let is_manifest = *path == "Cargo.toml";
        let text = if is_manifest { standalone(text, ".") } else { (*text).to_owned() };
        (format!("{SDK_FOLDER}/{path}"), text)
    });
    own.chain(sdk).collect()
}

fn check(name: &str) -> anyhow::Result<()> {
    let is_word =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    ensure!(
        (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(is_word)
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !name.ends_with('-'),
        "found the name {name:?}, expected a small letter and then small letters, digits and -, \
         {NAME_BYTES_MAX} at most, such as my-relay"
    );
    ensure!(
        !KEYWORDS.contains(&name) && !TAKEN.contains(&name),
        "found the name {name:?}, which no crate of Rust can have here, expected another, such as my-{name}"
    );
    ensure!(
        !Plugins::is_builtin(name),
        "found the name {name:?}, which a built-in plugin has, expected another: no FencePlugin can have it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_refused_with_what_can() {
        for (name, says) in [
            ("", "expected a small letter"),
            ("My-relay", "expected a small letter"),
            ("7-relay", "expected a small letter"),
            ("my_relay", "expected a small letter"),
            ("../relay", "expected a small letter"),
            ("relay-", "expected a small letter"),
            ("an-unreasonably-long-name-for-a-relay-plug", "40 at most"),
            ("fn", "such as my-fn"),
            ("test", "such as my-test"),
            ("node-remedy-sdk", "which no crate"),
            ("ipmi", "which a built-in plugin has"),
            ("kdump", "which a built-in plugin has"),
        ] {
            let error = check(name).unwrap_err().to_string();
            assert!(error.contains(says), "{name}: {error}");
        }
        for name in ["relay", "my-relay", "r2", "a"] {
            check(name).unwrap();
        }
    }

    /// Nothing of our repository is left in a folder of somebody else.
    #[test]
    fn what_is_written_stands_alone() {
        for kind in [TemplateKind::Http, TemplateKind::Udp] {
            let files = files(kind, "my-relay");
            for (path, text) in &files {
                for left in ["template-http", "template_http", "template-udp", "template_udp"] {
                    assert!(!text.contains(left), "{path} holds {left}");
                }
                let is_manifest = path.ends_with("Cargo.toml");
                assert!(!is_manifest || !text.contains("workspace = true"), "{path}:\n{text}");
                assert!(!text.contains("../../wit"), "{path}");
            }
            let file = |path: &str| {
                let found = files.iter().find(|(other, _)| other == path);
                found.map(|(_, text)| text.as_str()).unwrap_or_default()
            };
            assert!(file("Cargo.toml").contains("name = \"my-relay\""));
            assert!(file("manifest.json").contains("\"name\": \"my-relay\""));
            assert!(file("tests/native.rs").contains("use my_relay::Method;"));
            for path in
                ["README.md", ".gitignore", "device.py", "sdk/src/lib.rs", "sdk/wit/fence.wit"]
            {
                assert!(!file(path).is_empty(), "no {path}");
            }
        }
    }
}
