//! The command line: one file per command, this one lists them.
//!
//! Errors end in the next command to type; exit codes are part of the interface and
//! stand in each command's help.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod admission;
pub mod args;
pub mod audit;
pub mod binding;
pub mod check;
pub mod config;
pub mod explain;
pub mod fence_paths;
pub mod history;
pub mod operator;
pub mod pages;
pub mod pause;
pub mod plugin_docs;
pub mod rbac;
pub mod run;
pub mod simulate;
pub mod status;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use args::{
    AbortArgs, AckArgs, CheckArgs, ConfigCommand, ConfigShowArgs, ConfirmArgs, ExplainArgs,
    PersonArgs, SimulateArgs, StatusArgs,
};
pub use node_remedy_device_cli::args::{
    ClusterArgs, DeviceArgs, FenceAction, FenceArgs, Output, TlsArgs, here,
};
pub use run::{LogFormat, RunArgs};

/// Fences lost Kubernetes nodes, with proof.
#[derive(Debug, Parser)]
#[command(name = "node-remedy", version, about, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the cluster and remedy its nodes
    #[command(after_help = "Examples:
  node-remedy run                                   inside a pod, with its service account
  node-remedy run --kubeconfig ~/.kube/config       from outside
Stops cleanly on SIGTERM and SIGINT; exits 0 then, 1 if it could not start.")]
    Run(RunArgs),
    /// Validate configuration files
    #[command(after_help = "Examples:
  node-remedy check remedy.yaml fence.yaml
  node-remedy check --output json config/*.yaml
Exits 0 if every file is valid, 1 if one is not.")]
    Check(CheckArgs),
    /// Show what is in force for a node, and where each value comes from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Play a scenario in virtual time, with the real configuration and plugins
    #[command(after_help = "Examples:
  node-remedy simulate examples/scenarios/lost-node.yaml
  node-remedy simulate lost-node.yaml --seed 7 --report report.html
  node-remedy snapshot > c.yaml && node-remedy simulate c.yaml --lose worker-3
  node-remedy simulate c.yaml --power-loss rack=b
  node-remedy simulate --verify report.html
Exits 0 if all the scenario expects came true, 1 if not.")]
    Simulate(SimulateArgs),
    /// Write what `simulate` needs to know of a cluster (read-only)
    #[command(after_help = "Example:
  node-remedy snapshot --kubeconfig ~/.kube/config > c.yaml")]
    Snapshot(ClusterArgs),
    /// Tell whether everything is all right: what needs a person, what is paused, the incidents
    #[command(
        after_help = "Exits 0 if nothing needs you, 2 if something does, 1 if the cluster cannot be read.

Examples:
  node-remedy status
  node-remedy status --all
  node-remedy status --output json"
    )]
    Status(StatusArgs),
    /// Say why a node is, or is not, acted on
    #[command(after_help = "Examples:
  node-remedy explain worker-3
  node-remedy explain --why UnhealthyShare    what this reason means, and what you can do; asks no cluster")]
    Explain(ExplainArgs),
    /// Print what a rule or a promise says, as timelines and the audit log name them
    #[command(after_help = "Examples:
  node-remedy rule A16
  node-remedy rule S1")]
    Rule {
        /// The rule, such as A16
        #[arg(value_name = "RULE")]
        name: String,
    },
    /// Tell past incidents: how they ended, how long each step took, what was released
    #[command(after_help = "Examples:
  node-remedy history worker-3
  node-remedy history --pods         which pods were released from the nodes that failed, most often first
Records are kept for 14 days, and the last 10 of each node.")]
    History(crate::history::HistoryArgs),
    /// Let a parked incident try again
    #[command(after_help = "Example:
  node-remedy retry worker-3-1")]
    Retry(PersonArgs),
    /// Stop an incident; a machine that was powered off is powered on first
    #[command(after_help = "Examples:
  node-remedy abort worker-3-1
  node-remedy abort worker-3-1 --leave-off")]
    Abort(AbortArgs),
    /// Allow the first off of an incident that waits for a person
    #[command(after_help = "Example:
  node-remedy approve worker-3-1")]
    Approve(PersonArgs),
    /// Say that a device which failed to switch a node's machine on was checked or repaired
    #[command(after_help = "Example:
  node-remedy ack worker-3
Until then nothing is switched off through that device.")]
    Ack(AckArgs),
    /// Give your word that an incident's machine is off, so that its pods may be released
    #[command(after_help = "Example:
  node-remedy confirm-off worker-3-1 --yes
The word is bound to this incident and to the boot it is about.")]
    ConfirmOff(ConfirmArgs),
    /// Cut nothing any more, everywhere or on some nodes; what is off is still switched on
    #[command(after_help = "Examples:
  node-remedy pause --reason 'new switches' --for 2h
  node-remedy pause --reason 'new fans' --nodes rack=7
`node-remedy status` shows it, and who paused.")]
    Pause(crate::pause::PauseArgs),
    /// End a pause
    #[command(after_help = "Examples:
  node-remedy resume pause-x7k2f
  node-remedy resume --all")]
    Resume(crate::pause::ResumeArgs),
    /// Call one fence method by hand, in its sandbox
    #[command(after_help = "Examples:
  node-remedy fence ipmi status --address 10.0.8.3 --username admin --password-file pw
  node-remedy fence ipmi off --address 127.0.0.1:6231 --username admin --password-file pw \\
      --set cipher-suite=3 --output json
  node-remedy fence redfish status --address 10.0.8.4 --plug 1 --username admin --password-file pw \\
      --tls-ca bmc-ca.pem
  node-remedy fence redfish list --address 10.0.8.4 --username admin --password-file pw --tls-ca bmc-ca.pem
  node-remedy fence apc-pdu status --address 10.0.9.3 --plug 3 --set version=2c \\
      --credential community=FILE
`status` exits 0 for on, 2 for off, 1 for failure or unknown.
`off`, `on`, `reset` and `reboot` exit 0 only when a later read confirmed it, else 1.
As a fence agent, for cluster managers that know those (key=value on stdin, or their options):
  echo 'action=status ...' | node-remedy fence --agent ipmi
  ln -s node-remedy fence_ipmilan && ./fence_ipmilan --help")]
    Fence(FenceArgs),
    /// Prove which outlet or port carries a node: switch it off, look who falls silent, switch it on
    #[command(after_help = "Examples:
  kubectl cordon worker-3 && kubectl drain worker-3 --ignore-daemonsets
  node-remedy verify-wiring worker-3
  node-remedy verify-wiring worker-3 --method outlet-a --yes worker-3 --output json
The machine boots once for each of its outlets. Only devices that know no machine are tried, one
plug at a time; nothing is fenced meanwhile. What is off is switched on again, also after Ctrl-C.
Exits 0 if every plug is this node's and was recorded, 2 if one is not, 1 if nothing was proven.")]
    VerifyWiring(node_remedy_device_cli::wiring::WiringArgs),
    /// Which fence methods there are, what each asks for, and how one comes from outside
    #[command(
        subcommand,
        after_help = "Examples:
  node-remedy plugin list
  node-remedy plugin describe redfish
  node-remedy plugin describe redfish --output json
  node-remedy plugin new my-relay
  node-remedy plugin run my_relay.wasm status --address 10.0.9.7 --plug 2 --username admin --password-file pw
  node-remedy plugin inspect tasmota.wasm
  node-remedy plugin sign tasmota.wasm --key signer.pem > tasmota.sig
  node-remedy plugin configmap tasmota.wasm --signature tasmota.sig | kubectl apply -f -
  node-remedy plugin push tasmota.wasm registry.example.org/fence/tasmota:0.1.0 --key signer.pem"
    )]
    Plugin(node_remedy_device_cli::plugin::PluginCommand),
    /// Print the permissions that the controller needs, for your own Secrets
    #[command(after_help = "Example:
  node-remedy rbac --secret bmc-credentials | kubectl apply -f -")]
    Rbac(crate::rbac::RbacArgs),
    /// Check an audit log (`run --audit-log FILE`)
    #[command(
        subcommand,
        after_help = "Example:
  node-remedy audit verify audit.jsonl.1 audit.jsonl
Exits 0 if every line follows from the one before, 1 with the first that does not."
    )]
    Audit(crate::audit::AuditCommand),
    /// Print the reference of all metrics, docs/metrics.md
    #[command(after_help = "Example:
  node-remedy metrics > docs/metrics.md")]
    Metrics,
    /// Print the admission policies that bind people's words to their names and rights
    #[command(after_help = "Example:
  node-remedy admission | kubectl apply -f -")]
    Admission,
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  node-remedy completion bash > /etc/bash_completion.d/node-remedy")]
    Completion {
        /// bash, zsh, fish, elvish or powershell.
        shell: clap_complete::Shell,
    },
}

/// Carries one command out; its exit code is part of the interface.
pub fn carry_out(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(args) => here(crate::run::run(&args)),
        Command::Check(args) => crate::check::check(&args),
        Command::Config(ConfigCommand::Show(args)) => here(crate::config::show(&args)),
        Command::Simulate(args) => crate::simulate::simulate(&args),
        Command::Snapshot(args) => here(crate::simulate::snapshot(&args)),
        Command::Status(args) => here(crate::status::status(&args)),
        Command::Explain(args) => here(crate::explain::explain(&args)),
        Command::Rule { name } => pages::rule(&name),
        Command::History(args) => here(crate::history::history(&args)),
        Command::Retry(args) => here(crate::operator::retry(&args)),
        Command::Abort(args) => here(crate::operator::abort(&args)),
        Command::Approve(args) => here(crate::operator::approve(&args)),
        Command::Ack(args) => here(crate::operator::ack(&args)),
        Command::ConfirmOff(args) => here(crate::operator::confirm_off(&args)),
        Command::Pause(args) => here(crate::pause::pause(&args)),
        Command::Resume(args) => here(crate::pause::resume(&args)),
        Command::Fence(args) => here(node_remedy_device_cli::fence::fence(&args)),
        Command::VerifyWiring(args) => here(node_remedy_device_cli::wiring::verify(&args)),
        Command::Plugin(command) => node_remedy_device_cli::plugin::plugin(&command),
        Command::Rbac(args) => crate::rbac::rbac(&args),
        Command::Metrics => {
            node_remedy_device_cli::output::print(format_args!(
                "{}",
                node_remedy_runtime::metrics::reference()
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Admission => crate::admission::admission(),
        Command::Audit(command) => crate::audit::audit(&command),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "node-remedy", &mut script);
            node_remedy_device_cli::output::print(format_args!("{}", String::from_utf8(script)?))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs a fence method as an agent, if that is what the arguments call: the program's own name is an
/// agent's, or they begin with `fence --agent METHOD`.
pub fn as_agent(arguments: &[String]) -> Option<anyhow::Result<ExitCode>> {
    let [program, rest @ ..] = arguments else { return None };
    let (name, method, rest) = match (node_remedy_device_cli::fence::agent::named(program), rest) {
        (Some((name, method)), rest) => (name, method, rest),
        (None, [fence, agent, method, rest @ ..]) if fence == "fence" && agent == "--agent" => {
            (format!("fence_{}", method.replace('-', "_")), method.clone(), rest)
        }
        (None, _) => return None,
    };
    Some(here(node_remedy_device_cli::fence::agent::agent(&name, &method, rest)))
}
