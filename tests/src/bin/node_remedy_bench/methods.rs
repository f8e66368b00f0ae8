//! What one read of a machine's power costs: `node-remedy fence` beside the fence agent and the tool of
//! the same device, whole process against whole process, and the component in its sandbox beside the
//! same code without one.
//!
//! All ways take turns at the same device, run by run, so that whatever else the machine does falls on
//! all of them. Only the ratios mean anything elsewhere. It fails where a way does not say that the
//! machine is on; a peer that could not be had is named with the reason, and a device that did not start
//! is a failure too.

mod at_once;
mod cases;
mod peers;
mod table;
pub(crate) mod ways;

use anyhow::{Result, bail};
use node_remedy_tests::ipmi::Kind;

use self::cases::Case;
use self::peers::Peers;
use crate::sandboxed::component;
use node_remedy_tests::weigh::floor;

/// Enough for a median that another run repeats.
const RUNS: u64 = 30;
/// Files in the page cache, code paths warm, Python's files compiled.
const RUNS_BEFORE: u64 = 3;

/// The methods that are measured, for the sizes of their components.
const METHODS: [&str; 6] = ["ipmi", "apc-pdu", "redfish", "aws", "openstack", "proxmox"];

pub(crate) async fn measure() -> Result<()> {
    let peers = Peers::find();
    println!("{}", conditions(&peers).await?);
    let mut wrong = Vec::new();
    for device in DEVICES {
        match device.start(&peers).await {
            Ok(case) => measure_case(case, &mut wrong).await?,
            Err(failure) => wrong.push(format!("{device:?} did not start: {failure:#}")),
        }
    }
    if let Err(failure) = at_once::measure(&peers).await {
        wrong.push(format!("many at once: {failure:#}"));
    }
    println!("{}", sizes()?);
    if !wrong.is_empty() {
        bail!("{} ways came to nothing:\n  {}", wrong.len(), wrong.join("\n  "));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Device {
    Bmc17Suite17,
    Bmc17Suite3,
    IpmiSim,
    ApcByCommunity,
    ApcByUser,
    Redfish,
    Aws,
    OpenStack,
    Proxmox,
}

const DEVICES: [Device; 9] = [
    Device::Bmc17Suite17,
    Device::Bmc17Suite3,
    Device::IpmiSim,
    Device::ApcByCommunity,
    Device::ApcByUser,
    Device::Redfish,
    Device::Aws,
    Device::OpenStack,
    Device::Proxmox,
];

impl Device {
    /// Starts it; the one before it is gone by then.
    async fn start(self, peers: &Peers) -> Result<Case> {
        match self {
            Self::Bmc17Suite17 => cases::ipmi(peers, Kind::Bmc17, "17").await,
            Self::Bmc17Suite3 => cases::ipmi(peers, Kind::Bmc17, "3").await,
            Self::IpmiSim => cases::ipmi(peers, Kind::IpmiSim, "3").await,
            Self::ApcByCommunity => cases::apc_community(peers).await,
            Self::ApcByUser => cases::apc_user(peers).await,
            Self::Redfish => cases::redfish(peers).await,
            Self::Aws => cases::aws(peers).await,
            Self::OpenStack => cases::openstack(peers).await,
            Self::Proxmox => cases::proxmox(peers).await,
        }
    }
}

/// Lets all ways take turns, and prints what they took.
async fn measure_case(mut case: Case, wrong: &mut Vec<String>) -> Result<()> {
    let mut share = table::DeviceShare::start()?;
    for run in 0..RUNS_BEFORE + RUNS {
        if run == RUNS_BEFORE {
            share = table::DeviceShare::start()?;
        }
        let mut still = Vec::new();
        for mut way in case.ways {
            match way.ask(run).await {
                Ok(sample) => {
                    if run >= RUNS_BEFORE {
                        way.samples.push(sample);
                        share.count();
                    }
                    still.push(way);
                }
                Err(failure) => {
                    wrong.push(format!("{}, {}, run {run}: {failure:#}", case.title, way.name));
                }
            }
        }
        case.ways = still;
    }
    println!("{}", table::Table { case: &case, device: share.each()? });
    Ok(())
}

/// What the figures depend on.
async fn conditions(peers: &Peers) -> Result<String> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let cores = std::thread::available_parallelism()?;
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let mut lines = vec![
        format!(
            "One status of a machine that is on; {RUNS} runs after {RUNS_BEFORE}, all ways in turn."
        ),
        format!("node-remedy and native code: {profile} build; {cores} cores, load before: {load}"),
        format!(
            "peak: the largest single process of a way; nothing below {} can be told",
            table::mebibytes(floor().await?)
        ),
        "inside: loaded once, with the sessions that are kept between calls, as in the controller"
            .to_owned(),
    ];
    lines.extend(peers.versions().await);
    Ok(lines.join("\n") + "\n")
}

fn sizes() -> Result<String> {
    let mut lines = vec!["size in bytes of a component, and compiled ahead:".to_owned()];
    for method in METHODS {
        let wasm = component(method);
        let ahead = wasm.with_extension("cwasm");
        let size = |path| std::fs::metadata(path).map(|file| file.len());
        lines.push(format!("  {method:<12}{:>9}{:>9}", size(wasm)?, size(ahead)?));
    }
    Ok(lines.join("\n"))
}
