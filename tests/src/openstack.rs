//! A cloud for tests: real keystone and real nova of a venv of their own, each over TLS, nova with its own
//! tests' hypervisor. What is true is asked for by other clients than ours: Python's requests, and
//! `openstack`, which is slow to begin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::ipmi::Power;
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::python::python;
use crate::time::until;

/// Who may do everything.
pub const ADMIN: &str = "admin";
/// Who may read.
pub const READER: &str = "reader";
/// The password of both.
pub const PASSWORD: &str = "keystone-at-three";
/// Both make their databases first, which is half a minute on an idle machine.
const READY_WITHIN: Duration = Duration::from_mins(4);

/// Keystone and nova; they end with this value.
#[derive(Debug)]
pub struct Cloud {
    _processes: [Process; 2],
    authority: PathBuf,
    /// Where keystone is.
    pub auth_url: String,
    /// Where nova is.
    pub compute_url: String,
    /// The ids of its servers, which both run when it begins.
    pub servers: [String; 2],
    /// An application credential of the admin: its id and its secret.
    pub credential: [String; 2],
}

impl Cloud {
    /// Starts both, and waits until both serve.
    pub async fn start(folder: &Path) -> Result<Self> {
        let pki = Pki::generate(&folder.join("pki"))?;
        let [keystone, nova] = free_tcp_ports()?;
        let auth_url = format!("https://127.0.0.1:{keystone}/v3");
        let compute_url = format!("https://127.0.0.1:{nova}/v2.1");
        let authority = pki.ca_certificate.clone();
        let (trusted, place) = (authority.display().to_string(), folder.display().to_string());
        let [certificate, key] =
            [&pki.server_certificate, &pki.server_key].map(|file| file.display().to_string());
        let start = |name: &str, port: u16, rest: [&str; 2]| {
            let script = repository().join("tests/sims/openstack").join(format!("serve_{name}.py"));
            let script = script.display().to_string();
            let port = port.to_string();
            let words = ["-W", "ignore", &*script, &*port, &*certificate, &*key, &*place];
            let arguments: Vec<_> = words.into_iter().chain(rest).map(str::to_owned).collect();
            let path = program("python");
            Process::start(&Program { name, path: &path, arguments: &arguments, logs: folder })
        };
        let mut processes = [
            start("keystone", keystone, [&compute_url, PASSWORD])?,
            start("nova", nova, [&auth_url, &trusted])?,
        ];
        let (log, ids) = (folder.join("keystone.log"), folder.join("servers"));
        until("keystone and nova serve", READY_WITHIN, || {
            let alive = processes.iter_mut().try_for_each(Process::check_alive);
            let is_up = fs::read_to_string(&log).is_ok_and(|log| log.contains("keystone serves"));
            let is_up = is_up && ids.exists();
            async move {
                alive?;
                Ok(is_up.then_some(()))
            }
        })
        .await?;
        let credential = two_lines(&folder.join("application-credential"))?;
        let servers = two_lines(&ids)?;
        Ok(Self { _processes: processes, authority, auth_url, compute_url, servers, credential })
    }

    /// The file of the authority that signed both certificates.
    #[must_use]
    pub fn authority(&self) -> String {
        self.authority.display().to_string()
    }

    /// What requests read of a server: its status, its task, and the number of its power.
    pub async fn power(&self, server: &str) -> Result<Power> {
        let read = "import requests, sys; auth, compute, ca, user, password, id = sys.argv[1:]\n\
            s = requests.Session(); s.verify, s.trust_env = ca, False\n\
            d = {'name': 'Default'}\n\
            body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': {\n\
                'name': user, 'domain': d, 'password': password}}},\n\
                'scope': {'project': {'name': 'cluster', 'domain': d}}}}\n\
            t = s.post(auth + '/auth/tokens', json=body).headers['X-Subject-Token']\n\
            m = s.get(compute + '/servers/' + id, headers={'X-Auth-Token': t}).json()['server']\n\
            print(m['status'], m['OS-EXT-STS:task_state'], m['OS-EXT-STS:power_state'])";
        let authority = self.authority();
        let arguments = [&self.auth_url, &self.compute_url, &*authority, ADMIN, PASSWORD, server];
        match python(read, &arguments).await?.as_str() {
            "ACTIVE None 1" => Ok(Power::On),
            "SHUTOFF None 4" => Ok(Power::Off),
            other => bail!("nova says {other:?}"),
        }
    }

    /// The same by the command line `openstack`.
    pub async fn power_by_command(&self, server: &str) -> Result<Power> {
        let mut command = Command::new(program("openstack"));
        command.args(["server", "show", server, "-f", "value", "-c", "status"]);
        command.args(["-c", "OS-EXT-STS:power_state", "-c", "OS-EXT-STS:task_state"]);
        let fields = [
            ("OS_AUTH_URL", &*self.auth_url),
            ("OS_CACERT", &*self.authority()),
            ("OS_USERNAME", ADMIN),
            ("OS_PASSWORD", PASSWORD),
            ("OS_PROJECT_NAME", "cluster"),
            ("OS_USER_DOMAIN_NAME", "Default"),
            ("OS_PROJECT_DOMAIN_NAME", "Default"),
            ("OS_IDENTITY_API_VERSION", "3"),
            // Whatever the machine trusts, these are signed by the test's own.
            ("REQUESTS_CA_BUNDLE", &*self.authority()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        command.envs(fields);
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.context("failed to start openstack: cargo xtask setup")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "openstack: {said}");
        let told = String::from_utf8(output.stdout)?;
        let mut words: Vec<_> = told.split_whitespace().collect();
        words.sort_unstable();
        match words.as_slice() {
            ["1", "ACTIVE", "None"] => Ok(Power::On),
            ["4", "None", "SHUTOFF"] => Ok(Power::Off),
            other => bail!("openstack says {other:?}"),
        }
    }
}

/// A program of the venv with OpenStack.
fn program(name: &str) -> PathBuf {
    repository().join("target/openstack-venv/bin").join(name)
}

fn two_lines(file: &Path) -> Result<[String; 2]> {
    let text = fs::read_to_string(file)?;
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.try_into().ok().with_context(|| format!("{} has not two lines", file.display()))
}
