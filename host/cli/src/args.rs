//! Arguments of the commands, as clap reads them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node_remedy_device_cli::args::{ClusterArgs, Output};

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Configuration files, or - for stdin; each may hold several documents. A shell's <(…) is read to its
    /// end; a named pipe and a device are refused
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Policy, thresholds and plan of one node, each value with its origin, and what each grade of
    /// proof releases
    #[command(after_help = "Examples:
  node-remedy config show worker-3
  node-remedy config show worker-3 --file remedy.yaml --file fence.yaml --file node.yaml
  node-remedy config show worker-3 --output json
Exits 0 if nothing is missing for the node to be remedied as shown, 1 if something is or the node
cannot be read, 64 for wrong usage.")]
    Show(ConfigShowArgs),
}

/// `config show`.
#[derive(Debug, Args)]
pub struct ConfigShowArgs {
    /// Which cluster, where no files are given.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The node's name
    #[arg(value_name = "NODE")]
    pub node: String,
    /// Read this file and no cluster; may be repeated. The node's own object must be in one of them
    /// (kubectl get node NODE -o yaml)
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// A scenario, or a snapshot together with --lose or --power-loss
    #[arg(value_name = "SCENARIO", required_unless_present = "verify")]
    pub scenario: Option<PathBuf>,
    /// Overrides the scenario's seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// With a snapshot: the node whose kubelet stops, or a selector such as rack=b of nodes that all lose
    /// their network at once
    #[arg(long, value_name = "NODE|SELECTOR", conflicts_with = "verify")]
    pub lose: Option<String>,
    /// With a snapshot: the node, or a selector of nodes, that lose power at once, and their BMCs with it
    #[arg(long, value_name = "NODE|SELECTOR", conflicts_with_all = ["verify", "lose"])]
    pub power_loss: Option<String>,
    /// How the timeline is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// Where the HTML report is written
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Where the swim-lanes alone are written, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Do not play the same seed without node-remedy beside it
    #[arg(long)]
    pub no_baseline: bool,
    /// Reproduce a report from what it carries, and compare
    #[arg(long, value_name = "REPORT", conflicts_with = "scenario")]
    pub verify: Option<PathBuf>,
}

/// `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Incidents that are over, too
    #[arg(long)]
    pub all: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The node's name
    #[arg(value_name = "NODE", required_unless_present = "why")]
    pub node: Option<String>,
    /// Print the runbook page of a reason, such as UnhealthyShare; asks no cluster
    #[arg(long, value_name = "REASON", conflicts_with_all = ["node", "output"])]
    pub why: Option<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `retry`.
#[derive(Debug, Args)]
pub struct PersonArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The incident's name, as `node-remedy status` prints it
    #[arg(value_name = "NODEFENCE")]
    pub nodefence: String,
}

/// `abort`.
#[derive(Debug, Args)]
pub struct AbortArgs {
    /// Which incident.
    #[command(flatten)]
    pub person: PersonArgs,
    /// Leave the machine as it is. If its Node is gone and the incident is parked or waits for a device, the incident ends
    #[arg(long)]
    pub leave_off: bool,
}

/// `ack`.
#[derive(Debug, Args)]
pub struct AckArgs {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The node whose machine it failed to switch on
    #[arg(value_name = "NODE")]
    pub node: String,
}

/// `confirm-off`.
#[derive(Debug, Args)]
pub struct ConfirmArgs {
    /// Which incident.
    #[command(flatten)]
    pub person: PersonArgs,
    /// Confirm without being asked
    #[arg(long)]
    pub yes: bool,
}
