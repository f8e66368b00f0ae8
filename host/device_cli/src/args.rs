//! Arguments that several commands share, and how a command is run.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use node_remedy_api::limits;
use node_remedy_api::time::Span;

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs; one document.
    Json,
}

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// Kubeconfig file; without it the pod's service account or the usual places
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The controller's namespace, which holds its Secrets and ConfigMaps
    #[arg(long, default_value = "node-remedy", value_name = "NAME")]
    pub namespace: String,
}

/// `fence`.
#[derive(Debug, Args)]
pub struct FenceArgs {
    /// The plugin, such as ipmi
    #[arg(value_name = "PLUGIN")]
    pub plugin: String,
    /// What to do
    #[arg(value_enum, value_name = "ACTION")]
    pub action: FenceAction,
    /// Which device, and who asks it
    #[command(flatten)]
    pub device: DeviceArgs,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// A device that is called by hand.
#[derive(Debug, Args)]
pub struct DeviceArgs {
    /// The device, as HOST or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The outlet, port or instance on the device
    #[arg(long, default_value = "", value_name = "PLUG")]
    pub plug: String,
    /// The user to log in as
    #[arg(long, value_name = "NAME")]
    pub username: Option<String>,
    /// A file with the password; its last newline is not part of it
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A further secret of the plugin, such as privacy or community of the SNMP methods
    #[arg(long, value_name = "NAME=FILE")]
    pub credential: Vec<String>,
    /// A parameter of the plugin
    #[arg(long = "set", visible_alias = "parameter", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Whom a device must prove to be that is spoken to by TLS
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Seconds for the whole command; the on of a reboot has at least 10 of its own
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub timeout: u32,
}

/// Whom the other side of TLS must prove to be; none of these: its name, to an authority that the
/// system trusts.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct TlsArgs {
    /// The device's certificate is signed by one of these authorities, a file in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// The device holds this key, whatever its certificate says: sha256//BASE64, as curl's --pinnedpubkey
    #[arg(long, value_name = "PIN")]
    pub tls_pin: Option<String>,
    /// Whoever answers is the device; who sits on the wire can read the password
    #[arg(long)]
    pub tls_insecure: bool,
}

/// What `fence` can do; `reboot` is off, verified, then on, verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FenceAction {
    /// Read the power state
    Status,
    /// Power off, then read
    Off,
    /// Power on, then read
    On,
    /// One hard reset of a machine that is not off, as far as it can be known: accepted, and the
    /// plug reads on
    Reset,
    /// Off, confirmed, then on, confirmed
    Reboot,
    /// Is the path to the device sound
    Monitor,
    /// The plugs of the device
    List,
}

/// Runs a command on this thread; everything here is single-threaded by design.
pub fn here<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // The one TLS provider; installing it twice is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    tokio::task::LocalSet::new().block_on(&runtime, command)
}

/// A time from one second on, as people write it.
pub fn length(text: &str) -> Result<Span, String> {
    let longest = Span::from_minutes(limits::PERIOD_DAYS_MAX.saturating_mul(24 * 60));
    let span = Span::parse(text).map_err(|error| format!("expected {error}"))?;
    if span < Span::from_s(1) || span > longest {
        return Err(format!("expected 1s to {longest}"));
    }
    Ok(span)
}
