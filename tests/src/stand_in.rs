//! A cloud for tests of which there is no emulator: our stand-in (`tests/sims/NAME/server.py`) over TLS,
//! which writes what proves its accounts into a folder, and the cloud's own published client
//! (`tests/sims/NAME/client.py`), which drives it too and says what is true.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpStream;

use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::python::{program, python_file};
use crate::time::until;

/// It reads what was published first.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// The stand-in; it ends with this value.
pub struct StandIn {
    process: Process,
    name: &'static str,
    port: u16,
    pki: Pki,
    folder: PathBuf,
}

impl StandIn {
    /// Starts one of `tests/sims/`.
    pub async fn start(name: &'static str, folder: &Path) -> Result<Self> {
        let pki = Pki::generate(&folder.join("pki"))?;
        let [port] = free_tcp_ports()?;
        let script = script(name, "server");
        let files = [&script, &pki.server_certificate, &pki.server_key, &folder.to_owned()];
        let [script, certificate, key, place] = files.map(|file| file.display().to_string());
        let mut process = Process::start(&Program {
            name,
            path: &program("python"),
            arguments: &[script, port.to_string(), certificate, key, place],
            logs: folder,
        })?;
        until("the stand-in listens", READY_WITHIN, || {
            let alive = process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        Ok(Self { process, name, port, pki, folder: folder.to_owned() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> String {
        self.pki.ca_certificate.display().to_string()
    }

    /// A file that it wrote.
    pub fn file(&self, name: &str) -> Result<String> {
        let file = self.folder.join(name);
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    }

    /// What the published client prints last, given address, authority and these.
    pub async fn client(&self, arguments: &[&str]) -> Result<String> {
        let (address, authority) = (format!("https://{}", self.address()), self.authority());
        let all = [&[address.as_str(), authority.as_str()], arguments].concat();
        python_file(&script(self.name, "client"), &all).await
    }

    /// A path in its folder, for the client.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// How many requests it heard that begin so, method and path.
    pub fn heard(&self, begin: &str) -> Result<usize> {
        let log = fs::read_to_string(self.process.log())?;
        Ok(log.lines().filter(|line| line.starts_with(begin)).count())
    }
}

fn script(name: &str, what: &str) -> PathBuf {
    repository().join("tests/sims").join(name).join(format!("{what}.py"))
}
