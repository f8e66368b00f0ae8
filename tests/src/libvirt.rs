//! A hypervisor for tests: the real libvirt daemon with the test driver it has built in, over TCP and
//! TLS, with a machine that runs and one that is shut off.
//!
//! What is true is asked for by libvirt's own client, virsh.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::net::TcpStream;

use crate::ipmi::{Guid, Power};
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports};
use crate::time::until;

/// The daemon looks for devices, firewalls and buses before it listens.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The driver to open.
pub const URI: &str = "test:///default";

/// How a daemon lets people in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Whoever reaches it.
    Open,
    /// Whoever has a certificate, and over TCP whoever logs in.
    Closed,
}

/// The daemon; it ends with this value.
pub struct Hypervisor {
    daemon: Process,
    /// The test driver forgets everything when its last client goes; this one stays.
    holder: Option<Process>,
    folder: Scratch,
    tcp: u16,
    tls: u16,
    authority: PathBuf,
    uuids: [String; 2],
}

/// A folder that a user without rights can reach, gone with this value.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind, it is only some kilobytes.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Hypervisor {
    /// The names of its machines: one runs, one is shut off.
    pub const MACHINES: [&str; 2] = ["node-a", "node-b"];

    /// Starts one, with logs in a folder.
    pub async fn start(logs: &Path, door: Door) -> Result<Self> {
        let [tcp, tls] = free_tcp_ports()?;
        let name = format!("node-remedy-libvirt-{}-{tcp}", std::process::id());
        let folder = Scratch(std::env::temp_dir().join(name));
        let pki = Pki::generate(&folder.0.join("pki"))?;
        let configuration = folder.0.join("libvirtd.conf");
        fs::write(&configuration, configuration_of(&folder.0, [tcp, tls], &pki, door))?;
        let daemon = start_as_nobody(&folder.0, &configuration, logs)?;
        let authority = logs.join("ca.crt");
        fs::copy(&pki.ca_certificate, &authority)?;
        let uuids = [Guid::fresh().as_uuid(), Guid::fresh().as_uuid()];
        let mut hypervisor = Self { daemon, holder: None, folder, tcp, tls, authority, uuids };
        until("libvirtd listens", READY_WITHIN, || {
            let alive = hypervisor.daemon.check_alive();
            async move {
                alive?;
                Ok(TcpStream::connect(("127.0.0.1", tls)).await.is_ok().then_some(()))
            }
        })
        .await?;
        if door == Door::Open {
            hypervisor.fill(logs).await?;
        }
        Ok(hypervisor)
    }

    /// Where it listens without TLS.
    #[must_use]
    pub fn tcp(&self) -> String {
        format!("127.0.0.1:{}", self.tcp)
    }

    /// Where it listens with TLS.
    #[must_use]
    pub fn tls(&self) -> String {
        format!("127.0.0.1:{}", self.tls)
    }

    /// The authority that signed its certificate.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The UUIDs of its machines.
    #[must_use]
    pub fn uuids(&self) -> &[String; 2] {
        &self.uuids
    }

    /// What virsh reads of a machine's state now.
    pub async fn power(&self, machine: &str) -> Result<Power> {
        match self.virsh(&["domstate", machine]).await?.as_str() {
            "running" => Ok(Power::On),
            "shut off" => Ok(Power::Off),
            other => bail!("virsh says {other:?}"),
        }
    }

    /// What a command of virsh says.
    pub async fn virsh(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("virsh");
        command.env("HOME", &self.folder.0).args(["--quiet", "--connect", &self.connect_uri()]);
        command.args(words);
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.context("failed to start virsh: cargo xtask setup")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "virsh {}: {said}", words.join(" "));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    fn connect_uri(&self) -> String {
        format!("test+tcp://{}/default", self.tcp())
    }

    /// Makes the machines, once somebody holds the driver's memory.
    async fn fill(&mut self, logs: &Path) -> Result<()> {
        let uri = self.connect_uri();
        let words = ["--connect", &uri, "event", "--all", "--loop"];
        self.holder = Some(Process::start(&Program {
            name: "virsh-event",
            path: Path::new("/usr/bin/virsh"),
            arguments: &words.map(str::to_owned),
            logs,
        })?);
        let files: Vec<_> = Self::MACHINES
            .iter()
            .zip(&self.uuids)
            .map(|(name, uuid)| {
                let xml = format!(
                    "<domain type='test'><name>{name}</name><uuid>{uuid}</uuid><memory>65536</memory>\
                     <os><type>hvm</type></os></domain>"
                );
                let file = self.folder.0.join(format!("{name}.xml"));
                fs::write(&file, xml).map(|()| file.display().to_string())
            })
            .collect::<Result<_, _>>()?;
        until("a machine stays defined", READY_WITHIN, || async {
            for file in &files {
                self.virsh(&["define", file]).await?;
            }
            let there = self.virsh(&["list", "--all", "--name"]).await?;
            Ok(Self::MACHINES.iter().all(|name| there.contains(name)).then_some(()))
        })
        .await?;
        self.virsh(&["start", Self::MACHINES[0]]).await?;
        Ok(())
    }
}

fn configuration_of(folder: &Path, [tcp, tls]: [u16; 2], pki: &Pki, door: Door) -> String {
    let (login, certificate) = match door {
        Door::Open => ("none", 1),
        Door::Closed => ("sasl", 0),
    };
    format!(
        "listen_tcp = 1\nlisten_tls = 1\nlisten_addr = \"127.0.0.1\"\ntcp_port = \"{tcp}\"\n\
         tls_port = \"{tls}\"\nauth_tcp = \"{login}\"\nauth_tls = \"none\"\nauth_unix_rw = \"none\"\n\
         unix_sock_dir = \"{}\"\nkey_file = \"{}\"\ncert_file = \"{}\"\nca_file = \"{}\"\n\
         tls_no_sanity_certificate = 1\ntls_no_verify_certificate = {certificate}\n",
        folder.display(),
        pki.server_key.display(),
        pki.server_certificate.display(),
        pki.ca_certificate.display(),
    )
}

/// As root it would be the machine's own daemon, with its folders; as anybody else it has its own.
fn start_as_nobody(folder: &Path, configuration: &Path, logs: &Path) -> Result<Process> {
    let home = folder.display().to_string();
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    let mut words: Vec<String> = Vec::new();
    if is_root {
        let demote = ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"];
        // The kernel forgets whom to follow into death when the user changes.
        words.extend(demote.into_iter().chain(["--pdeathsig", "KILL", "--"]).map(str::to_owned));
        words.push("/usr/bin/env".to_owned());
        for path in [folder.to_owned(), folder.join("pki")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777))?;
        }
    }
    for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        words.push(format!("{variable}={home}"));
    }
    let conf = configuration.display().to_string();
    let pid = folder.join("pid").display().to_string();
    let daemon = ["/usr/sbin/libvirtd", "--listen", "--config", &conf, "--pid-file", &pid];
    words.extend(daemon.map(str::to_owned));
    let starts = if is_root { "/usr/bin/setpriv" } else { "/usr/bin/env" };
    Process::start(&Program { name: "libvirtd", path: Path::new(starts), arguments: &words, logs })
}
