//! A real Kubernetes control plane on loopback: etcd, API server, controller manager, scheduler.
//!
//! One binary of ours holds them all (`tests/control-plane`, built by `cargo xtask setup`). Several
//! run side by side, each with its own ports, authority and folder. Nodes are not part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::audit;
use crate::pki::Pki;
use crate::process::{Process, Program, free_tcp_ports, fresh_folder, repository};
use crate::time::until;
use crate::user::User;

/// Between choosing a port and binding it another process may take it: rare, so a few tries do.
const START_TRIES: usize = 3;
/// Ready takes 3 s on an idle machine; this leaves room for a busy one.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// How the control plane judges nodes.
#[derive(Clone, Copy, Debug)]
pub struct NodeMonitoring {
    /// Silence after which a node becomes Unknown.
    pub grace_period_s: u64,
    /// How often the controller manager looks.
    pub period_s: u64,
}

impl NodeMonitoring {
    /// For kubelets that renew every second: a loss is seen in about five seconds.
    pub const QUICK: Self = Self { grace_period_s: 4, period_s: 1 };
    /// Kubernetes' own defaults.
    pub const DEFAULT: Self = Self { grace_period_s: 50, period_s: 5 };
}

/// The releases of Kubernetes that the tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kubernetes {
    /// The default.
    V1_37,
    /// The one before.
    V1_36,
}

impl Kubernetes {
    /// Every one of them.
    pub const ALL: [Self; 2] = [Self::V1_37, Self::V1_36];

    /// The binary with all its components, built by `cargo xtask setup`.
    #[must_use]
    pub fn binary(self) -> PathBuf {
        let folder = repository().join("target/control-plane");
        match self {
            Self::V1_37 => folder.join("control-plane"),
            Self::V1_36 => folder.join("v1.36/control-plane"),
        }
    }
}

/// A running control plane; dropped, it is gone.
#[derive(Debug)]
pub struct ControlPlane {
    folder: PathBuf,
    server: String,
    kubeconfigs: BTreeMap<User, PathBuf>,
    // Dropped in this order: the clients of a component before the component.
    _scheduler: Process,
    _controller_manager: Process,
    api_server: Process,
    _etcd: Process,
}

impl ControlPlane {
    /// Starts one whose files lie in `target/logs/levels/NAME-PID`, and waits until it is ready.
    pub async fn start(name: &str, monitoring: NodeMonitoring) -> Result<Self> {
        Self::start_release(Kubernetes::V1_37, name, monitoring).await
    }

    /// Starts a control plane of this release.
    pub async fn start_release(
        release: Kubernetes,
        name: &str,
        monitoring: NodeMonitoring,
    ) -> Result<Self> {
        if !release.binary().exists() {
            bail!("the control plane of {release:?} is not built: run `cargo xtask setup`");
        }
        let folder = match release {
            Kubernetes::V1_37 => fresh_folder(name)?,
            Kubernetes::V1_36 => fresh_folder(&format!("{name}-1.36"))?,
        };
        let mut tries = 1;
        loop {
            match Self::try_start(release, &folder, monitoring).await {
                Err(failure) if tries < START_TRIES => {
                    eprintln!("control plane, try {tries}: {failure:#}");
                    tries += 1;
                }
                outcome => return outcome.context("failed to start a control plane"),
            }
        }
    }

    async fn try_start(
        release: Kubernetes,
        folder: &Path,
        monitoring: NodeMonitoring,
    ) -> Result<Self> {
        let start = |component: &str, flags: &[String]| start(release, folder, component, flags);
        let [client_port, peer_port, api_port] = free_tcp_ports()?;
        let etcd_url = format!("http://127.0.0.1:{client_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let server = format!("https://127.0.0.1:{api_port}");
        let pki = Pki::generate(&folder.join("pki"))?;
        let kubeconfigs = write_kubeconfigs(folder, &server, &pki.ca_pem)?;
        let data = folder.join("etcd");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }

        let etcd_flags = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--log-level=warn".into(),
            "--unsafe-no-fsync".into(),
        ];
        let mut etcd = start("etcd", &etcd_flags)?;
        let api_flags = api_server_flags(folder, &pki, &etcd_url, api_port)?;
        let mut api_server = start("kube-apiserver", &api_flags)?;
        let client = connect(&kubeconfigs, User::Admin).await?;
        until("the API server is ready", READY_WITHIN, || {
            // A port that was taken ends the process: no use in waiting.
            let ended = etcd.check_alive().and_then(|()| api_server.check_alive());
            let client = client.clone();
            async move {
                if let Err(failure) = ended {
                    return Ok(Some(Err(failure)));
                }
                let request = http_get("/readyz")?;
                Ok((client.request_text(request).await? == "ok").then_some(Ok(())))
            }
        })
        .await??;

        let mut manager_flags = component_flags(&kubeconfigs, User::ControllerManager)?;
        manager_flags.extend([
            format!("--service-account-private-key-file={}", pki.tokens_key.display()),
            "--use-service-account-credentials=false".into(),
            format!("--node-monitor-grace-period={}s", monitoring.grace_period_s),
            format!("--node-monitor-period={}s", monitoring.period_s),
        ]);
        let controller_manager = start("kube-controller-manager", &manager_flags)?;
        let scheduler_flags = component_flags(&kubeconfigs, User::Scheduler)?;
        let scheduler = start("kube-scheduler", &scheduler_flags)?;
        Ok(Self {
            folder: folder.to_owned(),
            server,
            kubeconfigs,
            _scheduler: scheduler,
            _controller_manager: controller_manager,
            api_server,
            _etcd: etcd,
        })
    }

    /// The folder with logs and files of this run.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The API server's address.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The API server's process id.
    #[must_use]
    pub fn api_server_pid(&self) -> u32 {
        self.api_server.pid()
    }

    /// The API server stands still for everybody: connections stay open, and nothing is answered.
    pub fn hang_api_server(&self) -> Result<()> {
        self.api_server.hang()
    }

    /// It goes on where it stood still.
    pub fn let_api_server_go_on(&self) -> Result<()> {
        self.api_server.go_on()
    }

    /// A kubeconfig file for this user.
    pub fn kubeconfig(&self, user: User) -> Result<&Path> {
        let path = self.kubeconfigs.get(&user).context("a user without kubeconfig")?;
        Ok(path)
    }

    /// Writes a kubeconfig file for this user that leads to `server` instead.
    pub fn kubeconfig_through(&self, user: User, server: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("kubeconfig-{}-through", user.word()));
        write_kubeconfig(&path, user, &json!({"server": server}))?;
        Ok(path)
    }

    /// How a client for this user connects.
    pub async fn config(&self, user: User) -> Result<kube::Config> {
        config(&self.kubeconfigs, user).await
    }

    /// A client for this user.
    pub async fn client(&self, user: User) -> Result<Client> {
        connect(&self.kubeconfigs, user).await
    }

    /// The API server's audit log, one JSON event a line.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join(audit::LOG_FILE)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // etcd preallocates 64 MB; logs and audit stay for the person who reads a failure. etcd
        // may still write a file while this runs, and a left-over is swept by the next run.
        let _ = std::fs::remove_dir_all(self.folder.join("etcd"));
    }
}

fn start(release: Kubernetes, folder: &Path, component: &str, flags: &[String]) -> Result<Process> {
    let mut arguments = vec![component.to_owned()];
    arguments.extend_from_slice(flags);
    let path = release.binary();
    Process::start(&Program { name: component, path: &path, arguments: &arguments, logs: folder })
}

fn api_server_flags(folder: &Path, pki: &Pki, etcd_url: &str, port: u16) -> Result<Vec<String>> {
    let tokens = folder.join("tokens.csv");
    let line = |user: &User| {
        let (token, name, group) = (user.token(), user.name(), user.group());
        format!("{token},{name},{name},{group}")
    };
    let lines: Vec<_> = User::ALL.iter().map(line).collect();
    std::fs::write(&tokens, lines.join("\n"))?;
    let policy = folder.join("audit-policy.json");
    std::fs::write(&policy, audit::policy().to_string())?;
    Ok(vec![
        format!("--etcd-servers={etcd_url}"),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        // Kubernetes 1.37 publishes no endpoint that is loopback, and nothing here asks for it.
        "--endpoint-reconciler-type=none".into(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", pki.server_certificate.display()),
        format!("--tls-private-key-file={}", pki.server_key.display()),
        format!("--service-account-key-file={}", pki.tokens_public_key.display()),
        format!("--service-account-signing-key-file={}", pki.tokens_key.display()),
        "--service-account-issuer=https://127.0.0.1".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=RBAC,Node".into(),
        format!("--token-auth-file={}", tokens.display()),
        "--allow-privileged=true".into(),
        // Pods here have no token volume to mount.
        "--disable-admission-plugins=ServiceAccount".into(),
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.join(audit::LOG_FILE).display()),
        // A write is answered only when it stands in the log, so the log is never behind.
        "--audit-log-mode=blocking".into(),
        "--v=1".into(),
    ])
}

fn component_flags(kubeconfigs: &BTreeMap<User, PathBuf>, user: User) -> Result<Vec<String>> {
    let file = kubeconfigs.get(&user).context("a user without kubeconfig")?.display();
    Ok(vec![
        format!("--kubeconfig={file}"),
        format!("--authentication-kubeconfig={file}"),
        format!("--authorization-kubeconfig={file}"),
        "--leader-elect=false".into(),
        // Nobody asks the component anything, so it needs no port.
        "--secure-port=0".into(),
    ])
}

fn write_kubeconfigs(folder: &Path, server: &str, ca_pem: &str) -> Result<BTreeMap<User, PathBuf>> {
    let authority = folder.join("ca.crt");
    std::fs::write(&authority, ca_pem)?;
    User::ALL
        .into_iter()
        .map(|user| {
            let path = folder.join(format!("kubeconfig-{}", user.word()));
            let cluster = json!({"server": server, "certificate-authority": authority});
            write_kubeconfig(&path, user, &cluster)?;
            Ok((user, path))
        })
        .collect()
}

fn write_kubeconfig(path: &Path, user: User, cluster: &Value) -> Result<()> {
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": user.word(), "user": {"token": user.token()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user.word()}}],
        "current-context": "test",
    });
    Ok(std::fs::write(path, serde_json::to_string_pretty(&file)?)?)
}

async fn connect(kubeconfigs: &BTreeMap<User, PathBuf>, user: User) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfigs, user).await?)?)
}

async fn config(kubeconfigs: &BTreeMap<User, PathBuf>, user: User) -> Result<kube::Config> {
    let path = kubeconfigs.get(&user).context("a user without kubeconfig")?;
    let kubeconfig = Kubeconfig::read_from(path)?;
    let options = KubeConfigOptions::default();
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}
