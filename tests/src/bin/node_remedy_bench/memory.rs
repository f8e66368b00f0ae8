//! What `node-remedy run` needs of memory, processor time and time to start while nothing happens, in clusters of
//! growing size.
//!
//! The release build, after it has seen every node and a while has passed; in the same run the API server, and
//! another build of node-remedy if one is named, so that a figure has something to be compared with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::control_plane::NodeMonitoring;
use node_remedy_tests::crowd::Crowd;
use node_remedy_tests::ipmi::Kind;
use node_remedy_tests::process::repository;
use node_remedy_tests::remedy::{self, Installation};
use node_remedy_tests::{Cluster, Controller, Pace};
use serde_json::json;
use tokio::time::Instant;

/// Nodes in all, if none are named; the first three have machines.
const SIZES: [u32; 3] = [3, 1_000, 5_000];
const MACHINES: u32 = 3;
const PODS_EACH: u32 = 10;
/// Some twelve times as long as 5,000 nodes take on two cores.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// Three rounds of renewals: caches have been read, written and freed again.
const IDLE_FOR: Duration = Duration::from_secs(30);

const SETTINGS: Settings = Settings {
    nodes: MACHINES,
    pace: Pace::REAL,
    monitoring: NodeMonitoring::DEFAULT,
    bmcs: Kind::IpmiSim,
};

/// What is measured.
struct Asked {
    sizes: Vec<u32>,
    /// One after the other in the same cluster.
    builds: Vec<PathBuf>,
}

struct Row {
    ready: Duration,
    idle_kib: u64,
    most_kib: u64,
    cpu_percent: f64,
}

/// Measures with `[--nodes N,N] [--against BINARY]`.
pub(crate) async fn measure(arguments: &[String]) -> Result<()> {
    let asked = Asked::read(arguments)?;
    let mib = |kib: u64| format!("{}.{} MiB", kib / 1_024, kib % 1_024 * 10 / 1_024);
    println!(
        "{:>6}  {:>9}  {:>10}  {:>10}  {:>6}  {:>12}  build",
        "nodes", "ready in", "idle", "most", "CPU", "API server"
    );
    for size in asked.sizes {
        let cluster = Cluster::start(&format!("bench-memory-{size}"), SETTINGS).await?;
        let crowd = Crowd::join(cluster.client(), size.saturating_sub(MACHINES), PODS_EACH).await?;
        let threshold = json!({"nodeLeaseAge": "20s"});
        remedy::install(&cluster, &Installation { threshold, ..Installation::default() }).await?;
        let nodes = Api::<Node>::all(cluster.client());
        let nodes = nodes.list_metadata(&ListParams::default()).await?.items.len();
        for build in &asked.builds {
            let row = measure_build(&cluster, build).await?;
            let api_server = memory(cluster.control_plane().api_server_pid(), "VmRSS")?;
            println!(
                "{nodes:>6}  {:>7.1} s  {:>10}  {:>10}  {:>4.1} %  {:>12}  {}",
                row.ready.as_secs_f64(),
                mib(row.idle_kib),
                mib(row.most_kib),
                row.cpu_percent,
                mib(api_server),
                build.display(),
            );
        }
        drop(crowd);
    }
    println!("each node with {PODS_EACH} pods; idle: after {IDLE_FOR:?}; CPU: of one core, idle");
    Ok(())
}

impl Asked {
    fn read(arguments: &[String]) -> Result<Self> {
        let own = repository().join("target/release/node-remedy");
        let mut asked = Self { sizes: SIZES.to_vec(), builds: vec![own] };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} wants a value"))?;
            match word.as_str() {
                "--nodes" => {
                    let sizes = value.split(',').map(str::parse);
                    asked.sizes = sizes.collect::<Result<_, _>>().with_context(|| {
                        format!("--nodes: found {value:?}, expected numbers: 1000,5000")
                    })?;
                }
                "--against" => asked.builds.push(PathBuf::from(value)),
                other => bail!("found {other:?}, expected --nodes or --against"),
            }
        }
        Ok(asked)
    }
}

async fn measure_build(cluster: &Cluster, binary: &Path) -> Result<Row> {
    let began = Instant::now();
    let mut controller = Controller::start_as(cluster, "one", binary)?;
    controller.until_ready_within(READY_WITHIN).await?;
    let ready = began.elapsed();
    tokio::time::sleep(IDLE_FOR).await;
    let pid = controller.pid();
    let before = cpu_ticks(pid)?;
    tokio::time::sleep(IDLE_FOR).await;
    // USER_HZ is 100 on Linux: a tick is 10 ms (proc_pid_stat(5), sysconf(3)).
    let cpu = Duration::from_millis((cpu_ticks(pid)? - before) * 10);
    let row = Row {
        ready,
        idle_kib: memory(pid, "VmRSS")?,
        most_kib: memory(pid, "VmHWM")?,
        cpu_percent: cpu.as_secs_f64() / IDLE_FOR.as_secs_f64() * 100.0,
    };
    controller.terminate().await?;
    Ok(row)
}

/// A line of /proc/PID/status, in KiB (proc_pid_status(5)).
fn memory(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let words = line.with_context(|| format!("no {name} of {pid}"))?;
    let number = words.split_whitespace().next().context("an empty line")?;
    Ok(number.parse()?)
}

/// User and system time together (proc_pid_stat(5), fields 14 and 15).
fn cpu_ticks(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is a name in parentheses that may contain blanks.
    let (_, rest) = stat.rsplit_once(')').context("no process name")?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let field = |number: usize| -> Result<u64> {
        Ok(fields.get(number - 3).context("too few fields")?.parse()?)
    };
    Ok(field(14)? + field(15)?)
}
