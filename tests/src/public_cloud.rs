//! A cloud for tests of which there is no emulator: our stand-in (`tests/sims/NAME/server.py`) over TLS,
//! which writes what proves its accounts into a folder, and two clients that drive it too and say what is
//! true: the cloud's own published one (`tests/sims/NAME/client.py`) and apache-libcloud.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::repository;
use crate::python::{program, python_file};
use crate::stand_in::StandIn;

/// The cloud; it ends with this value.
#[derive(Debug)]
pub struct PublicCloud {
    stand_in: StandIn,
    name: &'static str,
    folder: PathBuf,
}

impl PublicCloud {
    /// Starts one of `tests/sims/`.
    pub async fn start(name: &'static str, folder: &Path) -> Result<Self> {
        let python = program("python");
        let stand_in = StandIn::start(name, &python, folder, |port, pki| {
            let files = [&pki.server_certificate, &pki.server_key, &folder.to_owned()];
            let [certificate, key, place] = files.map(|file| file.display().to_string());
            let script = script(name, "server").display().to_string();
            vec![script, port.to_string(), certificate, key, place]
        });
        Ok(Self { stand_in: stand_in.await?, name, folder: folder.to_owned() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        self.stand_in.address()
    }

    /// The file of the authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> String {
        self.stand_in.authority().display().to_string()
    }

    /// A file that it wrote.
    pub fn file(&self, name: &str) -> Result<String> {
        let file = self.folder.join(name);
        fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
    }

    /// What the published client prints last, given address, authority and these.
    pub async fn client(&self, arguments: &[&str]) -> Result<String> {
        self.python("client", arguments).await
    }

    /// What apache-libcloud's driver prints last, given the same.
    pub async fn libcloud(&self, arguments: &[&str]) -> Result<String> {
        self.python("libcloud_client", arguments).await
    }

    async fn python(&self, what: &str, arguments: &[&str]) -> Result<String> {
        let (address, authority) = (format!("https://{}", self.address()), self.authority());
        let all = [&[address.as_str(), authority.as_str()], arguments].concat();
        python_file(&script(self.name, what), &all).await
    }

    /// A path in its folder, for the client.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// How many requests it heard that begin so, method and path.
    pub fn heard(&self, begin: &str) -> Result<usize> {
        Ok(self.stand_in.log()?.lines().filter(|line| line.starts_with(begin)).count())
    }
}

fn script(name: &str, what: &str) -> PathBuf {
    repository().join("tests/sims").join(name).join(format!("{what}.py"))
}
