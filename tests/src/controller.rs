//! The program under test, as a process of its own: started, killed and read from outside.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Cluster;
use crate::process::{Process, Program, free_tcp_ports, repository};
use crate::time::until;
use crate::user::User;

/// SIGTERM to gone.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// The namespace of its Lease, Secrets and ConfigMaps.
pub const NAMESPACE: &str = "node-remedy";
/// Started to ready: its plugins are compiled ahead, its caches small.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running controller; dropped, it is killed.
#[derive(Debug)]
pub struct Controller {
    process: Process,
    admin_port: u16,
}

impl Controller {
    /// The binary that is tested.
    #[must_use]
    pub fn binary() -> PathBuf {
        repository().join("target/debug/node-remedy")
    }

    /// Starts `node-remedy run` on a cluster, as one replica of perhaps several. Its log is
    /// `node-remedy-IDENTITY.log` in the cluster's folder; a second start appends to it.
    pub fn start(cluster: &Cluster, identity: &str) -> Result<Self> {
        let kubeconfig = cluster.control_plane().kubeconfig(User::NodeRemedy)?;
        Self::launch(cluster, identity, &Self::binary(), kubeconfig, &[])
    }

    /// The same with more options.
    pub fn start_saying(cluster: &Cluster, identity: &str, options: &[&str]) -> Result<Self> {
        let kubeconfig = cluster.control_plane().kubeconfig(User::NodeRemedy)?;
        Self::launch(cluster, identity, &Self::binary(), kubeconfig, options)
    }

    /// The same with another build of it.
    pub fn start_as(cluster: &Cluster, identity: &str, path: &Path) -> Result<Self> {
        let kubeconfig = cluster.control_plane().kubeconfig(User::NodeRemedy)?;
        Self::launch(cluster, identity, path, kubeconfig, &[])
    }

    /// The same with another kubeconfig file, which may lead through a [`crate::FaultyApi`].
    pub fn start_with(cluster: &Cluster, identity: &str, kubeconfig: &Path) -> Result<Self> {
        Self::launch(cluster, identity, &Self::binary(), kubeconfig, &[])
    }

    fn launch(
        cluster: &Cluster,
        identity: &str,
        path: &Path,
        kubeconfig: &Path,
        options: &[&str],
    ) -> Result<Self> {
        if !path.exists() {
            bail!("node-remedy is not built: run `cargo build -p node-remedy`");
        }
        let [admin_port] = free_tcp_ports()?;
        let mut arguments = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--namespace={NAMESPACE}"),
            format!("--identity={identity}"),
            format!("--admin-address=127.0.0.1:{admin_port}"),
            "--log-format=json".to_owned(),
        ];
        arguments.extend(options.iter().copied().map(str::to_owned));
        let name = format!("node-remedy-{identity}");
        let logs = cluster.control_plane().folder();
        let program = Program { name: &name, path, arguments: &arguments, logs };
        Ok(Self { process: Process::start(&program)?, admin_port })
    }

    /// Waits until it says that it is ready.
    pub async fn until_ready(&mut self) -> Result<()> {
        self.until_ready_within(READY_WITHIN).await
    }

    /// The same in a cluster that takes longer to be read.
    pub async fn until_ready_within(&mut self, limit: Duration) -> Result<()> {
        let port = self.admin_port;
        until("node-remedy is ready", limit, || {
            let alive = self.process.check_alive();
            async move {
                if let Err(failure) = alive {
                    return Ok(Some(Err(failure)));
                }
                let answer = http_get(port, "/readyz").await?;
                Ok(answer.starts_with("HTTP/1.1 200").then_some(Ok(())))
            }
        })
        .await?
    }

    /// What `/metrics` answers, head and all.
    pub async fn metrics(&self) -> Result<String> {
        http_get(self.admin_port, "/metrics").await
    }

    /// The file with its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.process.has_ended()
    }

    /// SIGKILL: no goodbye of any kind.
    pub fn kill9(mut self) -> Result<()> {
        self.process.kill9()
    }

    /// SIGTERM, and waits for the end.
    pub async fn terminate(mut self) -> Result<()> {
        self.process.terminate()?;
        until("the controller ends", ENDS_WITHIN, || {
            let ended = self.process.has_ended();
            async move { Ok(ended?.then_some(())) }
        })
        .await
    }
}

/// What a person types: runs `node-remedy` with these arguments on the cluster, with a person's
/// rights, and answers what it printed.
pub async fn ask(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let output = ask_for_any_end(cluster, arguments).await?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("node-remedy {}: {}: {said}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// What `status` says, whether or not anything needs a person.
pub async fn status(cluster: &Cluster) -> Result<String> {
    let output = ask_for_any_end(cluster, &["status"]).await?;
    if !matches!(output.status.code(), Some(0 | 2)) {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The same, where it may fail.
pub async fn ask_for_any_end(cluster: &Cluster, arguments: &[&str]) -> Result<Output> {
    ask_as(cluster.control_plane().kubeconfig(User::Admin)?, arguments).await
}

/// The same, by whoever has this kubeconfig file.
pub async fn ask_as(kubeconfig: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(Controller::binary());
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).stdin(Stdio::null());
    Ok(tokio::task::spawn_blocking(move || command.output()).await??)
}

/// The same at a terminal, where somebody types this line; what is printed comes together.
pub async fn ask_typing(cluster: &Cluster, arguments: &[&str], typed: &str) -> Result<Output> {
    let kubeconfig = cluster.control_plane().kubeconfig(User::Admin)?;
    let binary = Controller::binary();
    let words = [&[&*binary.to_string_lossy()], arguments].concat().join(" ");
    let command = format!("{words} --kubeconfig {}", kubeconfig.display());
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let typed = format!("{typed}\n");
    let asked = move || -> Result<Output> {
        let mut script = script.spawn().context("failed to start script (util-linux)")?;
        let mut keyboard = script.stdin.take().context("no keyboard")?;
        keyboard.write_all(typed.as_bytes())?;
        // Whoever typed sits there until it ends.
        let output = script.wait_with_output()?;
        drop(keyboard);
        Ok(output)
    };
    tokio::task::spawn_blocking(asked).await?
}

/// The same, under way.
pub fn ask_and_go_on(cluster: &Cluster, name: &str, arguments: &[&str]) -> Result<Process> {
    let kubeconfig = cluster.control_plane().kubeconfig(User::Admin)?;
    let mut arguments: Vec<String> = arguments.iter().copied().map(str::to_owned).collect();
    arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
    let logs = cluster.control_plane().folder();
    Process::start(&Program { name, path: &Controller::binary(), arguments: &arguments, logs })
}

/// One plain request, answered whole: the server closes the connection.
async fn http_get(port: u16, path: &str) -> Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}
