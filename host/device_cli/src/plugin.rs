//! `plugin`: which fence methods are built in, what each says of itself; and the way of one from outside: written
//! ([`mod@new`]), tried on a device ([`run`]), looked at ([`mod@inspect`]), packed ([`mod@file`]) and judged
//! ([`mod@verify`]).

mod describe;
pub mod file;
pub mod inspect;
pub mod manifest;
pub mod new;
pub mod push;
pub mod run;
pub mod standalone;
pub mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use node_remedy_sandbox::{Manifest, Sandbox};
use node_remedy_store::store::Plugins;
use serde_json::json;

use crate::args::Output;
use crate::output::outln;
use crate::plugin::describe::{describe, document, word};

/// `plugin`.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// One line for each
    List {
        /// How the result is printed
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Parameters, endpoints and credentials of one
    Describe {
        /// The plugin, such as ipmi
        #[arg(value_name = "PLUGIN")]
        name: String,
        /// How the result is printed
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// The same of a component in a file, which is compiled and tried out; its digest, imports, sections, and
    /// whether it fits into a ConfigMap
    #[command(after_help = "Example:
  node-remedy plugin inspect tasmota.wasm
  node-remedy plugin inspect tasmota.wasm --output json
Exits 0 if a controller would load it, 1 if not, with the reason: what is wrong with a manifest is
named with its place in it, an import that is not offered is marked.")]
    Inspect {
        /// A .wasm, .wasm.gz or .wasm.zst file
        file: PathBuf,
        /// How the result is printed
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Put a manifest into a component, for tool chains that write no custom sections
    #[command(after_help = "Example:
  node-remedy plugin manifest relay.wasm manifest.json --out tasmota.wasm
What the manifest says is checked; a component that has one already is refused.")]
    Manifest {
        /// A .wasm file: a component without a manifest
        file: PathBuf,
        /// The manifest, in JSON: wit/manifest.md
        manifest: PathBuf,
        /// Where the component with its manifest is written
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print an immutable ConfigMap with a component in it
    #[command(
        name = "configmap",
        after_help = "Example:
  node-remedy plugin configmap tasmota.wasm | kubectl apply -f -
  node-remedy plugin configmap tasmota.wasm --fence-plugin > tasmota.yaml
Its name ends in the first digits of the digest: another component is another ConfigMap."
    )]
    ConfigMap {
        /// A .wasm, .wasm.gz or .wasm.zst file
        file: PathBuf,
        /// The controller's namespace
        #[arg(long, default_value = "node-remedy")]
        namespace: String,
        /// A signature over it, from `plugin sign` or `cosign sign-blob`
        #[arg(long, value_name = "FILE")]
        signature: Option<PathBuf>,
        /// Print a FencePlugin for it, too, which grants nothing yet
        #[arg(long)]
        fence_plugin: bool,
    },
    /// Show what a FencePlugin would make of a component: digest, signature, what it may reach
    #[command(after_help = "Example:
  node-remedy plugin verify tasmota.wasm --grants tasmota.yaml --signature tasmota.sig
For each network or name of spec.grants: endpoints, HTTP methods and paths, operations with credentials.
Exits 0 if the component would be loaded and each grant covers what it asks for, 1 with what is missing.")]
    Verify {
        /// A .wasm, .wasm.gz or .wasm.zst file
        file: PathBuf,
        /// A file with the FencePlugin in it
        #[arg(long, value_name = "FILE")]
        grants: PathBuf,
        /// A signature over it
        #[arg(long, value_name = "FILE")]
        signature: Option<PathBuf>,
        /// How the result is printed
        #[arg(long, value_enum, default_value_t)]
        output: Output,
    },
    /// Bring a component into an OCI registry; prints a FencePlugin for it
    #[command(after_help = "Examples:
  node-remedy plugin push tasmota.wasm registry.example.org/fence/tasmota:0.1.0 --key signer.pem > tasmota.yaml
  node-remedy plugin push tasmota.wasm ghcr.io/me/tasmota:0.1.0 --username me --password-file token
  node-remedy plugin push tasmota.wasm 127.0.0.1:5000/tasmota:dev --plain-http
A signature is put beside those that are there, where `cosign verify --key` looks for it, too.
Of what is printed, grants is empty: say there where it may connect.")]
    Push(crate::plugin::push::PushArgs),
    /// Sign a component; prints the signature in base64
    #[command(after_help = "Example:
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out signer.pem
  openssl pkey -in signer.pem -pubout -out signer.pub      for spec.verify.keys
  node-remedy plugin sign tasmota.wasm --key signer.pem > tasmota.sig
  node-remedy plugin configmap tasmota.wasm --signature tasmota.sig | kubectl apply -f -
The same with an encrypted key of cosign: cosign sign-blob --key cosign.key tasmota.wasm
In a registry signatures are read in cosign's simple-signing format, not as bundles. cosign 3 makes both
kinds with --new-bundle-format=false --use-signing-config=false.")]
    Sign {
        /// A .wasm, .wasm.gz or .wasm.zst file; what is signed is the component, unpacked
        file: PathBuf,
        /// The private key, ECDSA on P-256 or Ed25519, in PEM (PKCS #8), not encrypted
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Write a folder with a plugin in it that builds and passes its test, to begin from
    #[command(after_help = "Examples:
  node-remedy plugin new my-relay
  node-remedy plugin new my-bmc --kind udp
  cd my-relay && cargo test && cargo build --target wasm32-wasip2 --release
The SDK is written beside it; its README says how to take it from a registry instead.
Exits 0 if the folder was written, 1 if it is there already or NAME is none for a plugin.")]
    New(crate::plugin::new::NewArgs),
    /// Call a component in a file on a device, as `fence` calls a built-in method
    #[command(after_help = "Examples:
  node-remedy plugin run my_relay.wasm status --address 10.0.9.7 --plug 2 \\
      --username admin --password-file pw
  node-remedy plugin run my_relay.wasm off --address 10.0.9.7 --plug 2 --record off.json
  node-remedy plugin run my_relay.wasm --replay off.json
It may connect to the address given and to nothing else. Shown are the outcome, all that was said,
the log, and what each call took of its limits.
`status` exits 0 for on, 2 for off, 1 for failure or unknown; `monitor` and `list` 0 or 1.
`off`, `on`, `reset` and `reboot` exit 0 only when a later read confirmed it, else 1.
`--replay` exits 0 if the component asks, begins and says the same, 2 with the first difference, 1
if the file cannot be played. A device that checks who asks inside of its datagrams, as IPMI does,
needs the same --password-file again.")]
    Run(Box<crate::plugin::run::args::RunArgs>),
}

/// Carries it out.
pub fn plugin(command: &PluginCommand) -> anyhow::Result<ExitCode> {
    let exe = std::env::current_exe().context("failed to find this program's own file")?;
    let plugins =
        Plugins::new(Sandbox::new().context("failed to start the sandbox")?).compiled_by(exe);
    match command {
        PluginCommand::List { output } => {
            let mut all = Vec::new();
            for name in Plugins::names() {
                let (manifest, digest) = plugins.about(name)?;
                all.push((manifest, digest.to_string()));
            }
            match output {
                Output::Json => {
                    let all: Vec<_> =
                        all.iter().map(|(one, digest)| document(one, digest)).collect();
                    outln!("{}", json!(all));
                }
                Output::Text => {
                    for (Manifest { name, version, kind, description, .. }, _) in &all {
                        outln!("{name:<14} {version:<8} {:<8} {description}", word(*kind));
                    }
                }
            }
        }
        PluginCommand::Describe { name, output } => {
            let (manifest, digest) = plugins.about(name)?;
            let digest = digest.to_string();
            match output {
                Output::Json => outln!("{}", document(&manifest, &digest)),
                Output::Text => describe(&manifest, &digest)?,
            }
        }
        PluginCommand::Inspect { file, output } => {
            crate::plugin::inspect::inspect(&plugins, file, *output)?;
        }
        PluginCommand::ConfigMap { file, namespace, signature, fence_plugin } => {
            let printed = crate::plugin::file::Printed {
                namespace,
                signature: signature.as_deref(),
                fence_plugin: *fence_plugin,
            };
            crate::plugin::file::config_map(&plugins, file, &printed)?;
        }
        PluginCommand::Push(args) => crate::args::here(crate::plugin::push::push(&plugins, args))?,
        PluginCommand::Manifest { file, manifest, out } => {
            crate::plugin::manifest::manifest(file, manifest, out)?;
        }
        PluginCommand::Sign { file, key } => crate::plugin::file::sign(file, key)?,
        PluginCommand::New(args) => crate::plugin::new::new(args)?,
        PluginCommand::Run(args) => return crate::plugin::run::run(&plugins, args),
        PluginCommand::Verify { file, grants, signature, output } => {
            let signature = signature.as_deref().map(crate::plugin::file::signature).transpose()?;
            return crate::plugin::verify::verify(
                &plugins,
                file,
                grants,
                signature.as_deref(),
                *output,
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
