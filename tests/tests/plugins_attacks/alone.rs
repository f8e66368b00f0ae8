//! A process and a network of its own for each family of attacks: its memory is then the host's and
//! nobody else's, and the addresses that must not be reached are there, with somebody listening.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use node_remedy_swarm::corpus::build_attacker;
use node_remedy_tests::process::fresh_folder;

/// Set where the process has its own network.
const INSIDE: &str = "NODE_REMEDY_ATTACKS_INSIDE";
/// Past this a family hangs, which is a verdict, too.
const WITHIN_SECONDS: &str = "300";

/// The addresses of this network. Those of 10.9.0.0/16 are the devices', with that net's broadcast address.
const ADDRESSES: [&str; 15] = [
    "10.9.0.7/16 brd 10.9.255.255",
    "10.9.0.8/16 brd 10.9.255.255",
    "10.9.7.7/16 brd 10.9.255.255",
    "10.96.0.1/32",
    "10.96.0.9/32",
    "10.244.0.5/32",
    "10.244.0.9/32",
    "169.254.169.254/32",
    "fd00:9::7/128",
    "fd00:ec2::254/128",
    "fd00:ec2::23/128",
    "fd20:ce::254/128",
    "2002:a09:7::1/128",
    "64:ff9b::a9fe:a9fe/128",
    "2002:a9fe:a9fe::1/128",
];

/// Runs a family: outside of its own network by starting this very test again inside of one.
pub(crate) fn alone(test: &str, family: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let name = format!("plugins_attacks::{test}");
    if let Some(folder) = std::env::var_os(INSIDE) {
        furnish(Path::new(&folder))?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build()?;
        return runtime.block_on(family());
    }
    let folder = fresh_folder(&name.replace("::", "-"))?;
    // Built out here, where there is a network.
    build_attacker()?;
    let output = Command::new("timeout")
        .args(["--kill-after=5", WITHIN_SECONDS])
        .args(["unshare", "--user", "--map-root-user", "--net", "--mount", "--"])
        .args(["setpriv", "--pdeathsig", "KILL", "--"])
        .arg(std::env::current_exe()?)
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, &folder)
        .output()
        .context("failed to start timeout, unshare and setpriv (coreutils, util-linux)")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the host of {name} ended with {}: {why}", output.status);
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.contains("1 passed"), "{name} did not run: {said}");
    println!("{said}");
    Ok(())
}

/// Brings the network up, with a resolver that asks us.
fn furnish(folder: &Path) -> Result<()> {
    run("ip", "link set lo up")?;
    for address in ADDRESSES {
        // No neighbour on loopback could have the same address.
        let once = if address.contains("::") { " nodad" } else { "" };
        run("ip", &format!("addr add {address} dev lo{once}"))?;
    }
    let resolver = folder.join("resolv.conf");
    std::fs::write(&resolver, "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n")?;
    run("mount", &format!("--bind {} /etc/resolv.conf", resolver.display()))
}

fn run(program: &str, arguments: &str) -> Result<()> {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.with_context(|| format!("failed to start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments}: {said}");
    Ok(())
}
