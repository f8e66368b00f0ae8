//! Devices for tests that switch power when HTTP asks them to: a small server of Python's standard library
//! (`tests/sims/webhook/plugs.py`) in the shapes of two makers of smart plugs, and of one's own.
//!
//! What is true is asked for by another client than ours, Python's urllib.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::ipmi::{PASSWORD, PowerFile, USERNAME};
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::time::until;

/// Python starts in a tenth of a second on an idle machine.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// How a device proves itself, and who may ask it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Plain HTTP, anybody.
    Open,
    /// Plain HTTP, user name and password.
    PlainBasic,
    /// TLS, user name and password.
    Basic,
    /// TLS, a token.
    Bearer,
}

impl Door {
    fn is_tls(self) -> bool {
        matches!(self, Self::Basic | Self::Bearer)
    }
}

/// The server; it ends with this value.
pub struct Plugs {
    process: Process,
    port: u16,
    door: Door,
    authority: PathBuf,
}

impl Plugs {
    /// Starts one whose home-made controller switches so long after it said yes.
    pub async fn start(folder: &Path, door: Door, late: Duration) -> Result<Self> {
        Self::start_with(folder, door, json!({ "late": late.as_secs_f64() })).await
    }

    /// Starts one whose relays switch these machines, the first for plug 1.
    pub async fn wired(folder: &Path, door: Door, machines: &[PowerFile]) -> Result<Self> {
        let relays: Vec<_> = machines.iter().map(PowerFile::path).collect();
        Self::start_with(folder, door, json!({ "relays": relays })).await
    }

    async fn start_with(folder: &Path, door: Door, more: Value) -> Result<Self> {
        let [port] = free_tcp_ports()?;
        let pki = Pki::generate(&folder.join("pki"))?;
        let login = match door {
            Door::Open => json!({}),
            Door::PlainBasic | Door::Basic => json!({ "basic": [USERNAME, PASSWORD] }),
            Door::Bearer => json!({ "bearer": PASSWORD }),
        };
        let tls = door.is_tls().then(|| {
            [&pki.server_certificate, &pki.server_key].map(|file| file.display().to_string())
        });
        let mut configuration = json!({ "port": port, "login": login, "tls": tls });
        if let (Some(all), Value::Object(more)) = (configuration.as_object_mut(), more) {
            all.extend(more);
        }
        let file = folder.join("plugs.json");
        fs::write(&file, configuration.to_string())?;
        let sim = repository().join("tests/sims/webhook/plugs.py");
        let arguments = [sim.display().to_string(), file.display().to_string()];
        let process = Process::start(&Program {
            name: "plugs",
            path: &python(),
            arguments: &arguments,
            logs: folder,
        })?;
        let mut plugs = Self { process, port, door, authority: pki.ca_certificate };
        until("the plugs listen", READY_WITHIN, || {
            let alive = plugs.process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        Ok(plugs)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port of it.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// What another client reads at a path: JSON, or the text as it is.
    pub async fn read(&self, path: &str) -> Result<Value> {
        let read = "import ssl, sys, urllib.request; _, url, name, value, ca = sys.argv; \
                    request = urllib.request.Request(url, headers={name: value}); \
                    tls = ssl.create_default_context(cafile=ca) if url.startswith('https') else None; \
                    print(urllib.request.urlopen(request, context=tls).read().decode())";
        let scheme = if self.door.is_tls() { "https" } else { "http" };
        let url = format!("{scheme}://{}{path}", self.address());
        let basic = "import base64, sys; print(base64.b64encode(sys.argv[1].encode()).decode())";
        let header = match self.door {
            Door::Open => "none".to_owned(),
            Door::Bearer => format!("Bearer {PASSWORD}"),
            Door::PlainBasic | Door::Basic => {
                format!("Basic {}", say(&[basic, &format!("{USERNAME}:{PASSWORD}")]).await?)
            }
        };
        let authority = self.authority.display().to_string();
        let said = say(&[read, &url, "Authorization", &header, &authority]).await?;
        Ok(serde_json::from_str(&said).unwrap_or(Value::String(said)))
    }

    /// How often it was asked for paths that begin so.
    pub fn asked(&self, line: &str) -> Result<usize> {
        let log = fs::read_to_string(self.process.log())?;
        Ok(log.lines().filter(|logged| logged.contains(&format!("\"{line}"))).count())
    }
}

fn python() -> PathBuf {
    repository().join("target/venv/bin/python")
}

/// What a line of Python says, with these arguments.
async fn say(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(python());
    command.arg("-c").args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.context("failed to start Python: cargo xtask setup")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "python: {}: {said}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
