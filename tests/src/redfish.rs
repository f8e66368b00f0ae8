//! A Redfish service for tests: `sushy-emulator` of OpenStack's sushy-tools over TLS, with two fake
//! machines that switch one to eleven seconds after it said yes.
//!
//! What is true is asked for by another client than ours, Python's requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::net::TcpStream;

use crate::ipmi::{Guid, PASSWORD, Power, USERNAME};
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::python::{program, python};
use crate::time::until;

/// Flask starts in a second on an idle machine.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// A machine of an emulator.
#[derive(Clone, Debug)]
pub struct System {
    /// Its UUID, which is its id as well.
    pub uuid: String,
    /// Its power.
    pub power: SystemPower,
}

/// Where a machine's power is.
#[derive(Clone, Debug)]
pub enum SystemPower {
    /// In the emulator; this it is at first.
    Own(Power),
    /// In the chassis of a machine, whose state file this is.
    Chassis(PathBuf),
}

/// The emulator; it ends with this value.
pub struct Emulator {
    process: Process,
    port: u16,
    pki: Pki,
    systems: Vec<String>,
}

impl Emulator {
    /// Starts one with a machine that is on and a machine that is off.
    pub async fn start(folder: &Path) -> Result<Self> {
        let system =
            |power| System { uuid: Guid::fresh().as_uuid(), power: SystemPower::Own(power) };
        Self::start_with(folder, &[system(Power::On), system(Power::Off)]).await
    }

    /// Starts one with these machines.
    pub async fn start_with(folder: &Path, systems: &[System]) -> Result<Self> {
        let pki = Pki::generate(&folder.join("pki"))?;
        let [port] = free_tcp_ports()?;
        let (accounts, state) = (folder.join("htpasswd"), folder.join("state"));
        fs::create_dir_all(&state)?;
        let hash = "import bcrypt, sys; print(bcrypt.hashpw(sys.argv[1].encode(), bcrypt.gensalt(4)).decode())";
        let hash = python(hash, &[PASSWORD]).await?;
        fs::write(&accounts, format!("{USERNAME}:{hash}\n"))?;
        let configuration = folder.join("emulator.conf");
        let files = [
            ("AUTH_FILE", &accounts),
            ("STATE_DIR", &state),
            ("SSL_CERT", &pki.server_certificate),
            ("SSL_KEY", &pki.server_key),
        ];
        let files =
            files.map(|(name, file)| format!("SUSHY_EMULATOR_{name} = '{}'\n", file.display()));
        let machines: Vec<String> = systems.iter().map(machine).collect();
        fs::write(
            &configuration,
            format!(
                "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n{}\
                 SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{}]\n",
                files.concat(),
                machines.join(", ")
            ),
        )?;
        let script = repository().join("tests/sims/redfish/emulator.py").display().to_string();
        let arguments = [script, "--config".into(), configuration.display().to_string()];
        let process = Process::start(&Program {
            name: "sushy-emulator",
            path: &program("python"),
            arguments: &[&arguments[..], &["--fake".to_owned()]].concat(),
            logs: folder,
        })?;
        let systems = systems.iter().map(|system| system.uuid.clone()).collect();
        let mut emulator = Self { process, port, pki, systems };
        until("the emulator listens", READY_WITHIN, || {
            let alive = emulator.process.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", port)).await.is_ok().then_some(()))
            }
        })
        .await?;
        Ok(emulator)
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

    /// The UUIDs of its first two machines, which are their ids as well.
    pub fn two_systems(&self) -> Result<[&str; 2]> {
        match self.systems.as_slice() {
            [first, second, ..] => Ok([first, second]),
            systems => bail!("the emulator has {} systems", systems.len()),
        }
    }

    /// What another client reads of a machine's power now.
    pub async fn power(&self, system: &str) -> Result<Power> {
        let read = "import requests, sys; _, url, user, password, ca = sys.argv; \
                    print(requests.get(url, auth=(user, password), verify=ca).json()['PowerState'])";
        let url = format!("https://{}/redfish/v1/Systems/{system}", self.address());
        let authority = self.pki.ca_certificate.display().to_string();
        match python(read, &[&url, USERNAME, PASSWORD, &authority]).await?.as_str() {
            "On" => Ok(Power::On),
            "Off" => Ok(Power::Off),
            other => anyhow::bail!("the emulator says {other:?}"),
        }
    }

    /// How often it was asked to reset a machine.
    pub fn resets(&self) -> Result<usize> {
        let log = fs::read_to_string(self.process.log())?;
        Ok(log.lines().filter(|line| line.contains("POST") && line.contains(".Reset")).count())
    }
}

/// A machine as the emulator's configuration has it.
fn machine(System { uuid, power }: &System) -> String {
    let (word, chassis) = match power {
        SystemPower::Own(Power::On) => ("On", String::new()),
        SystemPower::Own(Power::Off) => ("Off", String::new()),
        SystemPower::Chassis(file) => ("On", format!("'chassis': '{}', ", file.display())),
    };
    format!("{{'uuid': '{uuid}', 'name': '{uuid}', {chassis}'power_state': '{word}', 'nics': []}}")
}
