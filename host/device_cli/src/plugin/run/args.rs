//! Arguments of `plugin run`.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use node_remedy_sandbox::Manifest;
use node_remedy_sandbox::manifest::{Auth, Protocol};

use crate::args::{DeviceArgs, FenceAction, Output};

/// `plugin run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A .wasm, .wasm.gz or .wasm.zst file
    pub(crate) file: PathBuf,
    /// What to do
    #[arg(value_enum, value_name = "ACTION", required_unless_present = "replay")]
    pub(crate) action: Option<FenceAction>,
    /// Which device, and who asks it
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// The FencePlugin whose limits apply; without one, the usual limits of a plugin from outside
    #[arg(long, value_name = "FILE")]
    pub(crate) fence_plugin: Option<PathBuf>,
    /// Write what was asked and answered to this file, secrets left out
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Play the calls of such a file again: no device, no network, no time that passes
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["action", "record", "address", "plug", "set", "timeout"]
    )]
    pub(crate) replay: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// A transcript holds datagrams and HTTP.
pub fn check_fits(manifest: &Manifest) -> anyhow::Result<()> {
    for ask in &manifest.asks.endpoints {
        let (endpoint, protocol) = (&ask.name, ask.protocol.as_str());
        match ask.protocol {
            Protocol::Tcp | Protocol::Tls => bail!(
                "--record: found endpoint '{endpoint}', a stream by {protocol}; a transcript holds datagrams and \
                 HTTP, for in a stream a secret may come in pieces; leave --record out"
            ),
            Protocol::Udp | Protocol::Http | Protocol::Https => {}
        }
        if let Auth::Login(login) = &ask.auth
            && !login.exposes.is_empty()
        {
            bail!(
                "--record: found endpoint '{endpoint}', whose login exposes a part of its answer (login-data); a \
                 transcript does not hold logins; leave --record out"
            );
        }
    }
    Ok(())
}
