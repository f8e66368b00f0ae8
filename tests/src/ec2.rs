//! An EC2 service for tests: moto's server over TLS, with three instances that run, and with users of
//! which it checks signatures and policies.
//!
//! What is true is asked for by another client than ours, Amazon's boto3.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::ipmi::Power;
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::python::{program, python};
use crate::time::until;

/// Moto loads a whole catalogue of machine images.
const READY_WITHIN: Duration = Duration::from_mins(2);

const FILL: &str = include_str!("../sims/aws/fill.py");
const OBSERVE: &str = include_str!("../sims/aws/observe.py");

/// The service; it ends with this value.
pub struct Ec2 {
    _process: Process,
    port: u16,
    pki: Pki,
    wired: PathBuf,
    filled: Filled,
}

/// What it was filled with.
#[derive(Deserialize)]
struct Filled {
    instances: [String; 3],
    zone: String,
    /// Access key id and secret key by user.
    keys: BTreeMap<String, [String; 2]>,
}

impl Ec2 {
    /// Starts one whose instances are nobody's.
    pub async fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, "alone").await
    }

    /// Starts one whose instances are an autoscaling group, which ends and replaces those that stop in
    /// service.
    pub async fn start_in_group(folder: &Path) -> Result<Self> {
        Self::start_with(folder, "group").await
    }

    async fn start_with(folder: &Path, gathered: &str) -> Result<Self> {
        let pki = Pki::generate(&folder.join("pki"))?;
        let [port] = free_tcp_ports()?;
        let arguments = [
            "-H".to_owned(),
            "127.0.0.1".to_owned(),
            "-p".to_owned(),
            port.to_string(),
            "-c".to_owned(),
            pki.server_certificate.display().to_string(),
            "-k".to_owned(),
            pki.server_key.display().to_string(),
        ];
        // Its checks are off for so many requests, and then turned on by the one that fills it.
        let unchecked = "INITIAL_NO_AUTH_ACTION_COUNT=1000000".to_owned();
        let wired = folder.join("wired.json");
        let server = repository().join("tests/sims/aws/server.py");
        let server = [
            unchecked,
            format!("WIRED={}", wired.display()),
            program("python").display().to_string(),
            server.display().to_string(),
        ];
        let mut process = Process::start(&Program {
            name: "moto",
            path: Path::new("/usr/bin/env"),
            arguments: &[&server[..], &arguments].concat(),
            logs: folder,
        })?;
        until("moto listens", READY_WITHIN, || {
            let alive = process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        let authority = pki.ca_certificate.display().to_string();
        let url = format!("https://127.0.0.1:{port}");
        let filled = python(FILL, &[&url, &authority, gathered]).await?;
        let filled = serde_json::from_str(&filled).with_context(|| filled.clone())?;
        Ok(Self { _process: process, port, pki, wired, filled })
    }

    /// Ties its instances to machines, by the state files of their chassis.
    pub fn wire(&self, chassis: &BTreeMap<&str, &Path>) -> Result<()> {
        Ok(fs::write(&self.wired, serde_json::to_string(chassis)?)?)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.pki.ca_certificate.clone()
    }

    /// Its instances.
    #[must_use]
    pub fn instances(&self) -> &[String; 3] {
        &self.filled.instances
    }

    /// What a Node on this instance says of itself.
    #[must_use]
    pub fn provider_id(&self, instance: &str) -> String {
        format!("aws:///{}/{instance}", self.filled.zone)
    }

    /// Access key id and secret key of a user: `fence` may do what a fence does with instances of no
    /// group, `group-fence` with any, `group-reader` may only look at groups, `reader` only at instances.
    pub fn key(&self, user: &str) -> Result<(&str, &str)> {
        let [id, secret] = self.filled.keys.get(user).context("no such user")?;
        Ok((id, secret))
    }

    /// What another client reads of an instance's state now.
    pub async fn state(&self, instance: &str) -> Result<String> {
        self.observe("state", instance).await
    }

    /// The same, of one that is on or off.
    pub async fn power(&self, instance: &str) -> Result<Power> {
        match self.state(instance).await?.as_str() {
            "running" => Ok(Power::On),
            "stopped" => Ok(Power::Off),
            other => anyhow::bail!("moto says {other:?}"),
        }
    }

    /// Where another client sees that its group has an instance, and how many the group wants:
    /// `InService desired 3`.
    pub async fn in_group(&self, instance: &str) -> Result<String> {
        self.observe("group", instance).await
    }

    /// Has another client end an instance for good.
    pub async fn terminate(&self, instance: &str) -> Result<String> {
        self.observe("terminate", instance).await
    }

    async fn observe(&self, what: &str, instance: &str) -> Result<String> {
        let url = format!("https://{}", self.address());
        let authority = self.pki.ca_certificate.display().to_string();
        let (id, secret) = self.key("observer")?;
        python(OBSERVE, &[&url, &authority, id, secret, what, instance]).await
    }
}
