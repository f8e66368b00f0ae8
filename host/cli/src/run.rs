//! `run`: the controller on a real cluster.

use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use node_remedy_api::time::Span;
use node_remedy_context::context::{Seams, Settings};
use node_remedy_controller::controller::Controller;
use node_remedy_device_cli::args::ClusterArgs;
use node_remedy_record::audit::{Audit, LogAudit};
use node_remedy_record::audit_file::FileAudit;
use node_remedy_registry::cache::Cache;
use node_remedy_runtime::admin::{Pages, Readiness};
use node_remedy_runtime::clock::Clock;
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::metrics::Metrics;
use node_remedy_runtime::udp::UdpPorts;
use node_remedy_runtime::{admin, protected_addresses};
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{Entropy as _, Executor, Sandbox, SystemEntropy, SystemNames};
use node_remedy_store::store::Plugins;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// A shorter time would keep slow devices busy with nothing but probes.
const PROBE_EVERY_MIN: Span = Span::from_s(5);

/// How often devices are probed; `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeEvery(pub Option<Duration>);

/// Reads `--probe-every`.
pub fn probe_every(text: &str) -> Result<ProbeEvery, String> {
    if text == "never" {
        return Ok(ProbeEvery(None));
    }
    let span = Span::parse(text).map_err(|error| format!("expected never, or {error}"))?;
    if span < PROBE_EVERY_MIN {
        return Err(format!("expected never, or at least {PROBE_EVERY_MIN}"));
    }
    Ok(ProbeEvery(Some(Duration::from_millis(span.ms))))
}

/// Threads for plugins: calls mostly wait, and a spinning guest holds one of them.
const PLUGIN_THREADS: usize = 4;

/// Passwords are in this process: its memory goes into no core file, and no other process of this user reads it,
/// such as the child that compiles what comes from outside.
fn keep_memory_to_itself() -> rustix::io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    log_to_stderr(args.log_format, &args.log)?;
    keep_memory_to_itself().context("failed to forbid core dumps")?;
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let guarded =
        protected_addresses::addresses(cluster.server(), &args.pod_ips, &SystemNames).await?;
    let clock = Clock::system();
    let sandbox = Sandbox::new().context("failed to start the sandbox")?;
    let executor = Executor::threads(&sandbox, PLUGIN_THREADS)
        .context("failed to start the plugins' threads")?;
    let metrics = Rc::new(Metrics::new());
    let readiness = Readiness::new();
    let audit: Rc<dyn Audit> = match &args.audit_log {
        Some(path) => Rc::new(FileAudit::open(path, clock.now())?),
        None => Rc::new(LogAudit),
    };
    let seams = Seams {
        cluster,
        clock: clock.clone(),
        executor,
        net: Arc::new(Sockets),
        entropy: Arc::new(SystemEntropy),
        names: Arc::new(SystemNames),
        listen: Rc::new(UdpPorts::new(metrics.clone())),
        audit,
    };
    let plugin_cache = args.plugin_cache.as_deref().map(|folder| {
        let failed = || format!("failed to use --plugin-cache {}", folder.display());
        Cache::open(folder).with_context(failed)
    });
    let settings = Settings {
        guarded,
        plugin_cache: plugin_cache.transpose()?,
        namespace: args.cluster.namespace.clone(),
        process: format!("{}-{}", args.identity, random_word()?),
        host_node: args.node_name.clone(),
        probe_every: args.probe_every.0,
        job_accounts: args.job_service_accounts.clone(),
    };
    let exe = std::env::current_exe().context("failed to find this program's own file")?;
    let plugins = Plugins::new(sandbox).compiled_by(exe);
    let controller = Controller::new(seams, settings, plugins, metrics.clone(), readiness.clone());
    let pages = Pages { metrics: Some(metrics), readiness };
    tokio::select! {
        biased;
        failed = probes(args.probe_address, Pages { metrics: None, ..pages.clone() }) => {
            failed.map(|never| match never {})
        }
        failed = admin::serve("--admin-address", args.admin_address, pages) => {
            failed.map(|never| match never {})
        }
        () = controller.run(stop_signal()?) => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Answers probes where they have a port of their own.
async fn probes(address: Option<SocketAddr>, pages: Pages) -> anyhow::Result<Infallible> {
    match address {
        Some(address) => admin::serve("--probe-address", address, pages).await,
        None => std::future::pending().await,
    }
}

/// No two processes share it, however fast a pod of the same name comes back.
fn random_word() -> anyhow::Result<String> {
    let seed = SystemEntropy.seed().context("failed to draw a process name")?;
    Ok(hex::encode(seed.get(..4).unwrap_or(&seed)))
}

fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to wait for SIGINT")?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn log_to_stderr(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("--log {filter}: expected a level or target=level,…"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// How logs are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Where /metrics, /healthz and /readyz are served
    #[arg(long, default_value = "127.0.0.1:9464", value_name = "ADDRESS")]
    pub admin_address: SocketAddr,
    /// Where /healthz and /readyz are served besides, for probes that nobody else can hold up
    #[arg(long, value_name = "ADDRESS")]
    pub probe_address: Option<SocketAddr>,
    /// The name this replica goes by; the pod's name in a pod
    #[arg(long, value_name = "NAME", default_value = "node-remedy")]
    pub identity: String,
    /// The node that this replica runs on, if it runs in the cluster
    #[arg(long, value_name = "NODE")]
    pub node_name: Option<String>,
    /// This replica's own addresses, if it runs in the cluster: no range of a grant lets a plugin
    /// connect there
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',')]
    pub pod_ips: Vec<IpAddr>,
    /// How often every device is asked whether it answers, such as 10m; `never` to leave them alone
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = crate::run::probe_every)]
    pub probe_every: crate::run::ProbeEvery,
    /// A service account of the controller's namespace that remedies' Jobs may run as; may be
    /// repeated. `default` always is one
    #[arg(long = "job-service-account", value_name = "NAME")]
    pub job_service_accounts: Vec<String>,
    /// Write every incident's opening, transitions and calls, and every refusal, to this file, too,
    /// each line with the hash of the one before; 64 MiB, and 8 files before it
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// A folder in which plugins that were fetched from registries are kept, 65 MiB of them, for when a
    /// registry is down
    #[arg(long, value_name = "FOLDER")]
    pub plugin_cache: Option<PathBuf>,
    /// How logs are written
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Which log lines, as `level` or `target=level,…`
    #[arg(long, default_value = "info", value_name = "FILTER")]
    pub log: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_probed_every_so_often_or_never() {
        assert_eq!(probe_every("10m"), Ok(ProbeEvery(Some(Duration::from_mins(10)))));
        assert_eq!(probe_every("never"), Ok(ProbeEvery(None)));
        for wrong in ["0s", "4s", "soon", ""] {
            assert!(probe_every(wrong).unwrap_err().starts_with("expected never"), "{wrong}");
        }
    }
}
