//! A program that stands for a device with an HTTPS API: started on a free port with a certificate of
//! its own, awaited, and ended with its value.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::net::TcpStream;

use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports};
use crate::python::python;
use crate::time::until;

/// Python starts in a second on an idle machine.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// A running one.
#[derive(Debug)]
pub struct StandIn {
    process: Process,
    port: u16,
    pki: Pki,
}

impl StandIn {
    /// Starts a program; its arguments are made from the port it listens on and the certificate it
    /// shows.
    pub async fn start(
        name: &str,
        path: &Path,
        folder: &Path,
        arguments: impl FnOnce(u16, &Pki) -> Vec<String>,
    ) -> Result<Self> {
        let [port] = free_tcp_ports()?;
        let pki = Pki::generate(&folder.join("pki"))?;
        let arguments = arguments(port, &pki);
        let program = Program { name, path, arguments: &arguments, logs: folder };
        let mut one = Self { process: Process::start(&program)?, port, pki };
        until(&format!("{name} listens"), READY_WITHIN, || {
            let alive = one.process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        Ok(one)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The file of the authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.pki.ca_certificate.clone()
    }

    /// All that it wrote so far.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.process.log())?)
    }

    /// How many lines that it wrote hold all of these words.
    pub fn lines(&self, words: &[&str]) -> Result<usize> {
        let log = self.log()?;
        Ok(log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count())
    }

    /// What these lines of Python print: another client than ours. `url` is where it listens and `ca`
    /// trusts its authority; the arguments are `args`.
    pub async fn ask(&self, lines: &str, arguments: &[&str]) -> Result<String> {
        let head = "import sys, requests\nurl, ca, *args = sys.argv[1:]\n";
        let (url, authority) =
            (format!("https://{}", self.address()), self.authority().display().to_string());
        let arguments = [&[&*url, &*authority], arguments].concat();
        let told = python(&format!("{head}{lines}"), &arguments).await?;
        ensure!(!told.is_empty(), "{lines} printed nothing");
        Ok(told)
    }
}
