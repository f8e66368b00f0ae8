//! `run`: the controller on a real cluster.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context as _;
use node_remedy_sandbox::net::Sockets;
use node_remedy_sandbox::{Entropy as _, Executor, Sandbox, SystemEntropy, SystemNames};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use super::{LogFormat, RunArgs};
use crate::admin::{self, Readiness};
use crate::clock::Clock;
use crate::cluster::kube::KubeCluster;
use crate::controller::{Controller, Seams, Settings};
use crate::guard;
use crate::listen::UdpPorts;
use crate::plugins::Plugins;
use crate::record::audit::{Audit, LogAudit};
use crate::record::audit_file::FileAudit;
use crate::record::metrics::Metrics;

/// Threads for plugins: calls mostly wait, and a spinning guest holds one of them.
const PLUGIN_THREADS: usize = 4;

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    log_to_stderr(args.log_format, &args.log)?;
    let cluster = KubeCluster::connect(args.cluster.kubeconfig.as_deref()).await?;
    let guarded = guard::addresses(cluster.server(), &args.pod_ips, &SystemNames).await?;
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
    let settings = Settings {
        guarded,
        namespace: args.cluster.namespace.clone(),
        process: format!("{}-{}", args.identity, random_word()?),
        host_node: args.node_name.clone(),
        job_accounts: args.job_service_accounts.clone(),
    };
    let plugins = Plugins::new(sandbox);
    let controller = Controller::new(seams, settings, plugins, metrics.clone(), readiness.clone());
    tokio::select! {
        biased;
        failed = admin::serve(args.admin_address, metrics, readiness) => {
            failed.map(|never| match never {})
        }
        () = controller.run(stop_signal()?) => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// No two processes share it, however fast a pod of the same name comes back.
fn random_word() -> anyhow::Result<String> {
    let seed = SystemEntropy.seed().context("failed to draw a process name")?;
    Ok(crate::hex::hex(seed.get(..4).unwrap_or(&seed)))
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
