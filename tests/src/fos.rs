//! A Fibre Channel switch for tests: a stand-in of ours over TLS. What is true is asked for by another client
//! than ours, curl, which switches ports too. (Brocade's own `pyfos` speaks to port 443 alone, and wants a
//! `requests` of 2020.)

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::ipmi::Power;
use crate::process::repository;
use crate::python::program;
use crate::stand_in::StandIn;

/// Who may switch ports.
pub const USERNAME: &str = "admin";
/// Who may look at them.
pub const READER: &str = "reader";
/// The password of both.
pub const PASSWORD: &str = "fabric-at-three";

/// Starts one with Fabric OS of this version, 8 or 9.
pub async fn start(folder: &Path, version: u32) -> Result<StandIn> {
    let script = repository().join("tests/sims/fos/switch.py").display().to_string();
    StandIn::start("switch", &program("python"), folder, |port, pki| {
        let (certificate, key) = (pki.server_certificate.display(), pki.server_key.display());
        let line = format!("{script} {port} {certificate} {key} {USERNAME} {PASSWORD} {version}");
        line.split(' ').map(str::to_owned).collect()
    })
    .await
}

/// What curl is answered, with the body that it sends, if any.
pub async fn curl(switch: &StandIn, patch: Option<&str>) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--cacert"]);
    command.arg(switch.authority()).args(["--user", &format!("{USERNAME}:{PASSWORD}")]);
    if let Some(body) = patch {
        command.args(["--request", "PATCH", "--data", body]);
        command.args(["--header", "Content-Type: application/yang-data+xml"]);
    }
    let path = "rest/running/brocade-interface/fibrechannel";
    command.arg(format!("https://{}/{path}", switch.address()));
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.context("failed to start curl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "curl: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// What curl reads of a port: on where it is enabled and online, off where it is disabled and offline.
pub async fn port(switch: &StandIn, name: &str) -> Result<Power> {
    let told = curl(switch, None).await?;
    let named = format!("<name>{name}</name>");
    let one = told.split("<fibrechannel>").find(|one| one.contains(&named)).context("no port")?;
    let leaf = |name: &str| {
        let (_, rest) = one.split_once(&format!("<{name}>")).unwrap_or_default();
        rest.split('<').next().unwrap_or_default()
    };
    match (leaf("enabled-state"), leaf("operational-status"), leaf("persistent-disable")) {
        ("2", "2", "0") => Ok(Power::On),
        ("6", "3", "1") => Ok(Power::Off),
        other => bail!("curl reads {other:?}"),
    }
}
