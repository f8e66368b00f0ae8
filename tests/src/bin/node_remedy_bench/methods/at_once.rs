//! Forty BMCs, all read at once: by forty processes of each kind, and inside one process, as the
//! controller reads them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::{join_all, try_join_all};
use node_remedy_sandbox::{Action, Call};
use node_remedy_tests::Bmc;
use node_remedy_tests::ipmi::{Kind, PASSWORD};
use node_remedy_tests::process::fresh_folder;

use super::cases::{fence_ipmilan, ipmitool, our_ipmi, secret_file};
use super::peers::Peers;
use super::table::{DeviceShare, mebibytes, millis};
use super::ways::{Sample, Watch, Way, must_report_on};
use crate::sandboxed::Sandboxed;
use node_remedy_tests::weigh::{Program, median, weigh};

/// As many machines as a rack has.
const BMCS: usize = 40;
/// Each run is forty reads.
const RUNS: usize = 7;
/// What Debian's simulator has.
const SUITE: &str = "3";

/// Forty reads, and what they took.
struct Crowd {
    name: String,
    asks: Asks,
    samples: Vec<Sample>,
}

enum Asks {
    Processes { programs: Vec<Program>, on: &'static str },
    Inside { plugin: Arc<Sandboxed>, calls: Vec<Call> },
}

pub(super) async fn measure(peers: &Peers) -> Result<()> {
    let folder = fresh_folder("bench-methods-at-once")?;
    let folders: Vec<_> = (0..BMCS).map(|number| folder.join(number.to_string())).collect();
    let started = folders.iter().map(|folder| Bmc::start(Kind::IpmiSim, folder));
    let bmcs = try_join_all(started).await?;
    let password = secret_file(&folder, PASSWORD)?;

    let ours = bmcs.iter().map(|bmc| our_ipmi(bmc, SUITE, &password));
    let ours = ours.map(|program| Ok(Way::process("", program?, "on"))).collect::<Result<_>>()?;
    let tools = bmcs.iter().map(|bmc| ipmitool(bmc, SUITE, &password)).collect();
    let mut crowds = vec![inside(&bmcs).await?];
    crowds.push(Crowd::of("node-remedy fence", ours)?);
    crowds.push(Crowd::of("ipmitool", tools)?);
    println!("{BMCS} BMCs read at once (ipmi_sim, cipher suite {SUITE}), median of {RUNS} runs");
    let agents = bmcs.iter().map(|bmc| fence_ipmilan(peers, bmc, SUITE));
    match agents.collect::<Result<_, _>>() {
        Ok(agents) => crowds.push(Crowd::of("fence_ipmilan", agents)?),
        Err(absent) => println!("  {:<40}could not run: {}", absent.name, absent.reason),
    }
    let mut share = DeviceShare::start()?;
    for run in 0..=RUNS {
        for crowd in &mut crowds {
            let sample = crowd.ask().await.with_context(|| crowd.name.clone())?;
            // The first is to warm up.
            if run > 0 {
                crowd.samples.push(sample);
                (0..BMCS).for_each(|_| share.count());
            } else {
                share = DeviceShare::start()?;
            }
        }
    }
    print(&crowds, share.each()?);
    Ok(())
}

async fn inside(bmcs: &[Bmc]) -> Result<Crowd> {
    let plugin = Arc::new(Sandboxed::load("ipmi")?);
    let calls = bmcs.iter().map(|bmc| plugin.prepare(bmc, Action::Status, SUITE));
    let calls = try_join_all(calls).await?;
    let name = "inside: one process, a call each".to_owned();
    Ok(Crowd { name, asks: Asks::Inside { plugin, calls }, samples: Vec::new() })
}

impl Crowd {
    /// A process for each.
    fn of(name: &str, ways: Vec<Way>) -> Result<Self> {
        let mut programs = Vec::new();
        let mut says = None;
        for way in ways {
            let (program, on) = way.into_program().context("not a process")?;
            programs.push(program);
            says = Some(on);
        }
        let on = says.context("no process to start")?;
        let name = format!("{BMCS} × {name}");
        Ok(Self { name, asks: Asks::Processes { programs, on }, samples: Vec::new() })
    }

    /// CPU is that of all together, the peak that of the largest.
    async fn ask(&self) -> Result<Sample> {
        match &self.asks {
            Asks::Processes { programs, on } => {
                let weighed = weigh(programs.clone()).await?;
                for ended in &weighed.ended {
                    ended.must_say(on)?;
                }
                let peak_bytes = weighed.ended.iter().map(|ended| ended.peak_bytes).max();
                let cpu = weighed.ended.iter().map(|ended| ended.cpu).sum();
                Ok(Sample { wall: weighed.wall, cpu, peak_bytes })
            }
            Asks::Inside { plugin, calls } => {
                let watch = Watch::start();
                let reports = join_all(calls.iter().map(|call| plugin.call(call.clone()))).await;
                let sample = watch.sample();
                reports.iter().try_for_each(must_report_on)?;
                Ok(sample)
            }
        }
    }
}

fn print(crowds: &[Crowd], device: Duration) {
    println!("  the device itself: {} CPU a read, over all ways", millis(device));
    println!(
        "  {:<40}{:>14}{:>14}{:>18}{:>17}",
        "", "wall", "CPU of all", "largest's peak", "wall : inside"
    );
    let first = crowds.first().map(wall).unwrap_or_default();
    for crowd in crowds {
        let Crowd { name, samples, .. } = crowd;
        let wall = wall(crowd);
        let cpu = median(samples.iter().map(|sample| sample.cpu)).unwrap_or_default();
        let peak = median(samples.iter().filter_map(|sample| sample.peak_bytes));
        let peak = peak.map_or_else(|| "–".to_owned(), mebibytes);
        let times = format!("{:.1} ×", wall.as_secs_f64() / first.as_secs_f64());
        println!("  {name:<40}{:>14}{:>14}{peak:>18}{times:>17}", millis(wall), millis(cpu));
    }
    println!();
}

fn wall(crowd: &Crowd) -> Duration {
    median(crowd.samples.iter().map(|sample| sample.wall)).unwrap_or_default()
}
