//! `plugin push`: a component from a file into a registry, and the FencePlugin that fetches it from there.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use node_remedy_api::fenceplugin::Image;
use node_remedy_api::limits::CA_BUNDLE_CHARACTERS_MAX;
use node_remedy_registry as oci;
use node_remedy_registry::client::Client;
use node_remedy_registry::credentials::Account;
use node_remedy_registry::push::{Component, Signing};
use node_remedy_registry::transport::{Initiator, Transport};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::signature::PublicKey;
use node_remedy_sandbox::{Authorities, PluginLimits, SystemNames, Trust};
use node_remedy_store::store::Plugins;
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::Output;
use crate::files::read_text;
use crate::output::{out, outln};
use crate::plugin::file::{load, signature, signing_key};

/// Of a password's file.
const PASSWORD_BYTES_MAX: usize = 64 << 10;

/// `plugin push`.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// A .wasm, .wasm.gz or .wasm.zst file; what is pushed is the component, unpacked
    file: PathBuf,
    /// Where it goes: REGISTRY/REPOSITORY:TAG
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Sign it with this private key, ECDSA on P-256 or Ed25519, in PEM (PKCS #8), not encrypted
    #[arg(long, value_name = "FILE", conflicts_with = "signature")]
    key: Option<PathBuf>,
    /// A signature over it, from `plugin sign` or `cosign sign-blob`
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
    /// Speak to the registry without TLS
    #[arg(long, conflicts_with = "ca")]
    plain_http: bool,
    /// The registry's certificate is signed by one of these authorities, a file in PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The user to log in as
    #[arg(long, value_name = "NAME", requires = "password_file")]
    username: Option<String>,
    /// A file with the password or token; its last newline is not part of it
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Pushes it.
pub(super) async fn push(plugins: &Plugins, args: &PushArgs) -> anyhow::Result<()> {
    let image: Image = args.image.parse()?;
    let tag = image.tag.as_deref().filter(|_| image.digest.is_none());
    let tag = tag.with_context(|| {
        format!(
            "found {:?}, expected REGISTRY/REPOSITORY:TAG: the digest is told afterwards",
            args.image
        )
    })?;
    let (wasm, plugin) = load(plugins, &args.file, &PluginLimits::most())?;
    let made = args.signature.as_deref().map(signature).transpose()?;
    let key = args.key.as_deref().map(|key| signing_key(key, "cosign sign")).transpose()?;
    let ca = args.ca.as_deref().map(|file| {
        let text = read_text(file, CA_BUNDLE_CHARACTERS_MAX);
        text.with_context(|| format!("failed to read {}", file.display()))
    });
    let ca = ca.transpose()?;
    let trust = match &ca {
        Some(pem) => Trust::Authorities(Authorities::from_pem(pem.as_bytes())?),
        None => Trust::SystemAuthorities,
    };
    let way = Transport {
        net: &Sockets,
        names: &SystemNames,
        guarded: &[],
        trust,
        plain_http: args.plain_http,
        initiator: Initiator::Person,
    };
    let account = account(args)?;
    let mut client = Client::new(way, &image.registry, &image.repository, account).writing();
    let manifest = plugin.manifest();
    let component = Component { name: &manifest.name, version: &manifest.version, wasm: &wasm };
    let digest = oci::push(&mut client, component, Some(tag)).await?;
    let named = image.at(&digest).to_string();
    let signing = match (&key, &made) {
        (Some(key), _) => Some(Signing::Key(key)),
        (None, Some(made)) => Some(Signing::Made(made)),
        (None, None) => None,
    };
    if let Some(signing) = &signing {
        let repository = format!("{}/{}", image.registry, image.repository);
        node_remedy_registry::push::sign(&mut client, &repository, &digest, signing).await?;
    }
    let key = key.and_then(|key| key.public());
    let signed_by = key.as_ref().map(|key| key.id().to_string());
    let component = plugin.digest().to_string();
    match args.output {
        Output::Json => outln!(
            "{}",
            json!({
                "name": manifest.name, "image": named, "manifest": digest, "digest": component,
                "signedBy": signed_by,
            })
        ),
        Output::Text => {
            let signed = match (&signed_by, made) {
                (Some(key), _) => format!("# signed by {key}\n"),
                (None, Some(_)) => "# signed with the signature that was given\n".to_owned(),
                (None, None) => String::new(),
            };
            out!("# {named}\n# component {component}\n{signed}");
            let printed =
                fence_plugin(&manifest.name, &named, &component, key.as_ref(), ca.as_deref(), args);
            out!("{printed}");
        }
    }
    Ok(())
}

fn account(args: &PushArgs) -> anyhow::Result<Option<Account>> {
    let (Some(username), Some(file)) = (&args.username, &args.password_file) else {
        return Ok(None);
    };
    let text = read_text(file, PASSWORD_BYTES_MAX).map(Zeroizing::new);
    let text = text.with_context(|| format!("failed to read {}", file.display()))?;
    let password = Zeroizing::new(text.strip_suffix('\n').unwrap_or(&text).to_owned());
    Ok(Some(Account { username: username.clone(), password }))
}

/// The object that fetches it, which grants nothing yet.
fn fence_plugin(
    name: &str,
    image: &str,
    digest: &str,
    key: Option<&PublicKey>,
    ca: Option<&str>,
    args: &PushArgs,
) -> String {
    let mut text = format!(
        "apiVersion: node-remedy.io/v1alpha1\nkind: FencePlugin\nmetadata:\n  name: {name}\nspec:\n  \
         source:\n    oci:\n      image: {image}\n"
    );
    if args.plain_http {
        text.push_str("      plainHttp: true\n");
    }
    if let Some(pem) = ca {
        text.push_str("      tls:\n        caBundle: |\n");
        indent(&mut text, 10, pem);
    }
    if args.username.is_some() {
        text.push_str("      # A Secret of type kubernetes.io/dockerconfigjson:\n");
        text.push_str("      # pullSecret: NAME\n");
    }
    // Writing into a String does not fail.
    let _ = writeln!(text, "  digest: {digest}");
    if let Some(key) = key {
        text.push_str("  verify:\n    policy: require\n    keys:\n    - |\n");
        indent(&mut text, 6, &key.to_pem());
    }
    text.push_str("  grants: []\n");
    text
}

fn indent(text: &mut String, by: usize, lines: &str) {
    for line in lines.lines() {
        text.push_str(&" ".repeat(by));
        text.push_str(line);
        text.push('\n');
    }
}
