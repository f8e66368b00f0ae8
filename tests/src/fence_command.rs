//! A built-in fence method used by hand, `node-remedy fence`, on a device that a test started. What it
//! came to goes into a table that `cargo xtask test plugins` prints.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Controller;
use crate::ipmi::Power;
use crate::process::{fresh_folder, repository};
use crate::time::Clock;

/// Where the rows of the table are, one file for each process that runs tests.
const TABLE: &str = "target/tmp/plugins-table";
/// Where those of the table of faults are, of which most come from the plugins' own tests.
const FAULTS: &str = "target/tmp/faults-table";

/// A method, and how it is told to reach its device.
#[derive(Clone, Debug)]
pub struct FenceCommand {
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

impl FenceCommand {
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

    /// A command that fails for this fault, and a row of the table of faults: `left` counts the sessions
    /// that are open at the device then, of which there must be none. What it said is its sentence alone.
    pub async fn fault(
        &self,
        fault: &str,
        action: &str,
        options: &[&str],
        left: impl Fn() -> Result<usize>,
    ) -> Result<Ended> {
        let clock = Clock::start();
        let ended = self.fence(action, &[options, &["--output", "json"]].concat()).await?;
        let seconds = Duration::from_millis(clock.now_ms()).as_secs_f64();
        let (code, left) = (ended.code, left()?);
        ensure!(code == 1, "{fault}: exit code {code}, expected 1: {}", ended.said);
        ensure!(left == 0, "{fault}: {left} sessions are open: {}", ended.said);
        let line = ended.said.lines().find(|line| line.starts_with('{'));
        let told: Value = serde_json::from_str(line.context("no JSON was printed")?)?;
        let text = |name: &str| told.get(name).and_then(Value::as_str).map(str::to_owned);
        // Where a refusal is followed by a read, that is what it comes to.
        let kind = text("failure").or_else(|| text("state"));
        let kind = kind.with_context(|| format!("{fault}: no failure: {told}"))?;
        ensure!(kind != "off", "{fault} reads as off: {told}");
        let said = text("detail").context("no sentence")?;
        let method = &self.method;
        let row = format!("{method}\t{fault}\t{action}\t{kind}\t{seconds:.2}⁴\t{left}\t{said}");
        leave(FAULTS, &row)?;
        Ok(Ended { code, said })
    }

    fn row(&self, action: &str, verdict: &str) -> Result<()> {
        let Self { method, auth, against, .. } = self;
        leave(TABLE, &format!("{method}\t{auth}\t{action}\t{against}\t{verdict}"))
    }
}

/// Adds a row, cells between tabs, to a table that `cargo xtask test plugins` prints.
pub(crate) fn leave(table: &str, row: &str) -> Result<()> {
    let folder = repository().join(table);
    fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}.tsv", std::process::id()));
    let mut file = File::options().create(true).append(true).open(file)?;
    // One write, so that rows of tests beside each other do not mix.
    Ok(file.write_all(format!("{row}\n").as_bytes())?)
}
