//! A built-in fence method used by hand, `node-remedy fence`, on a device that a test started. What it
//! came to goes into a table that `cargo xtask test plugins` prints.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::Controller;
use crate::ipmi::Power;
use crate::process::{fresh_folder, repository};

/// Where the rows of the table are, one file for each process that runs tests.
const TABLE: &str = "target/tmp/plugins-table";

/// A method, and how it is told to reach its device.
#[derive(Clone, Debug)]
pub struct Hand {
    method: String,
    against: String,
    auth: String,
    folder: PathBuf,
    options: Vec<String>,
    /// What no command may print.
    secrets: Vec<String>,
}

/// What a command came to.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code: 0, 1, or 2 for a status that reads off.
    pub code: i32,
    /// All that it printed.
    pub said: String,
}

impl Hand {
    /// A method; `folder` is the test's own, and `against` names the device for the table.
    pub fn new(method: &str, folder: &str, against: &str) -> Result<Self> {
        Ok(Self {
            method: method.to_owned(),
            against: against.to_owned(),
            auth: "none".to_owned(),
            folder: fresh_folder(&format!("plugins-{method}-{folder}"))?,
            options: Vec::new(),
            secrets: Vec::new(),
        })
    }

    /// The test's own folder.
    #[must_use]
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// The name of this way to authenticate, for the table.
    #[must_use]
    pub fn auth(mut self, auth: &str) -> Self {
        auth.clone_into(&mut self.auth);
        self
    }

    /// Options of every command.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// User name and password of every command; the password by a file.
    pub fn account(mut self, username: &str, password: &str) -> Result<Self> {
        let file = self.folder.join("password");
        fs::write(&file, format!("{password}\n"))?;
        self.secrets.push(password.to_owned());
        let file = file.display().to_string();
        Ok(self.options(&["--username", username, "--password-file", &file]))
    }

    /// Something that no command may print.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secrets.push(secret.to_owned());
        self
    }

    /// Runs a command to its end.
    pub async fn fence(&self, action: &str, options: &[&str]) -> Result<Ended> {
        let mut command = Command::new(Controller::binary());
        command.args(["fence", &self.method, action]).args(&self.options).args(options);
        let ended = tokio::task::spawn_blocking(move || command.output()).await?;
        let Output { status, stdout, stderr } =
            ended.context("failed to start node-remedy: cargo build -p node-remedy")?;
        let said = [String::from_utf8(stdout)?, String::from_utf8(stderr)?].concat();
        for secret in &self.secrets {
            ensure!(!said.contains(secret), "a secret is in {said}");
        }
        Ok(Ended { code: status.code().context("killed")?, said })
    }

    /// A command that must end with this code, and a row of the table.
    pub async fn expect(&self, action: &str, options: &[&str], code: i32) -> Result<Ended> {
        let ended = self.fence(action, options).await?;
        let Ended { code: found, said } = &ended;
        ensure!(*found == code, "{action}: exit code {found}, expected {code}: {said}");
        let state = said.lines().next().unwrap_or_default();
        self.row(action, &format!("exit {code}, {state}"))?;
        Ok(ended)
    }

    /// Off and on and whatever lies between, each held against what another client reads then. The
    /// machine is on when it begins and when it ends.
    pub async fn walk(&self, plug: &str, truth: impl AsyncFn() -> Result<Power>) -> Result<()> {
        for (action, code, power) in [
            ("status", 0, Power::On),
            ("off", 0, Power::Off),
            ("status", 2, Power::Off),
            ("off", 0, Power::Off),
            ("on", 0, Power::On),
            ("reboot", 0, Power::On),
            ("monitor", 0, Power::On),
        ] {
            let ended = self.expect(action, &["--plug", plug], code).await?;
            let found = truth().await?;
            ensure!(found == power, "{action}: the device is {found:?} after: {}", ended.said);
        }
        Ok(())
    }

    fn row(&self, action: &str, verdict: &str) -> Result<()> {
        let Self { method, auth, against, .. } = self;
        let folder = repository().join(TABLE);
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}.tsv", std::process::id()));
        let mut file = File::options().create(true).append(true).open(file)?;
        // One write, so that rows of tests beside each other do not mix.
        let row = format!("{method}\t{auth}\t{action}\t{against}\t{verdict}\n");
        Ok(file.write_all(row.as_bytes())?)
    }
}
