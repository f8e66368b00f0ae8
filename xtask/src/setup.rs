//! `cargo xtask setup`: the parts that tests run against.
//!
//! Each part is looked at first, so a second run does nothing. What cannot be had is named with the
//! reason, and only the levels that need it suffer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::progress::{Stopwatch, run_logged};
use crate::root::{at, cargo, find_program};
use crate::{languages, plugins, stamp};

pub(crate) const HELP: &str = "\
  wasm target      rustup target wasm32-wasip2, for the plugins
  Debian packages  openipmi (ipmi_sim), ipmitool, snmpd, snmp, libvirt-daemon, libvirt-clients
                   (virsh), docker-registry, iproute2 and openssl, by apt-get as root or with sudo
  namespaces       nothing is brought: whether this user may make a network of their own, for the attacks on
                   the sandbox
  fence agents     target/fence-agents: the package of that name unpacked and not installed, for its sender
                   of kdump messages and, in benches, its agents
  Python venv      target/venv with tests/sims/requirements.txt
  OpenStack venv   target/openstack-venv: keystone and nova with their own tests' virtual machines;
                   one to three minutes, 500 MB
  control planes   target/control-plane: etcd, API server, controller manager, scheduler, kubectl of
                   two Kubernetes releases; two Go builds of 4 to 10 minutes on two cores, again only
                   when their sources change
  plugins          as `cargo xtask plugins`
  languages        as `cargo xtask plugins --languages`: plugins in JavaScript, Python and C, with componentize-qjs
                   (npm), componentize-py (PyPI) and Debian's clang, lld and wasi-libc; half a minute, 200 MB

One more, 130 MB, is brought by the bench that needs it, `cargo xtask bench methods`:
  agents' venv     target/agents-venv: what the fence agents import, tests/sims/agents/requirements.txt

What is there already is left alone. Output of what runs is kept in target/logs.

Examples:
  cargo xtask setup
";

const PACKAGES: [(&str, &str); 9] = [
    ("openipmi", "ipmi_sim"),
    ("ipmitool", "ipmitool"),
    ("snmpd", "snmpd"),
    ("snmp", "snmpget"),
    ("libvirt-daemon", "libvirtd"),
    ("libvirt-clients", "virsh"),
    ("docker-registry", "docker-registry"),
    ("iproute2", "ip"),
    ("openssl", "openssl"),
];
/// The `go.mod` of a control plane in `tests/control-plane`, and where its binary goes.
type Release = (&'static str, &'static str);
const CONTROL_PLANE: Release = ("go.mod", "control-plane");
/// The models are compared with this release, too.
const OLDER_CONTROL_PLANE: Release = ("v1.36/go.mod", "v1.36/control-plane");

/// Something that a level of tests needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    WasmTarget,
    DebianPackages,
    Namespaces,
    FenceAgents,
    PythonVenv,
    OpenStackVenv,
    AgentsVenv,
    ControlPlane,
    OlderControlPlane,
    Plugins,
    Binary,
    Languages,
}

impl Part {
    /// What `setup` brings. The binary is built by those who run it, and the agents' venv serves one bench.
    const ALL: [Self; 10] = [
        Self::WasmTarget,
        Self::DebianPackages,
        Self::Namespaces,
        Self::FenceAgents,
        Self::PythonVenv,
        Self::OpenStackVenv,
        Self::ControlPlane,
        Self::OlderControlPlane,
        Self::Plugins,
        Self::Languages,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WasmTarget => "wasm target",
            Self::DebianPackages => "Debian packages",
            Self::Namespaces => "namespaces",
            Self::FenceAgents => "fence agents",
            Self::PythonVenv => "Python venv",
            Self::OpenStackVenv => "OpenStack venv",
            Self::AgentsVenv => "agents' venv",
            Self::ControlPlane => "control plane",
            Self::OlderControlPlane => "older control plane",
            Self::Plugins => "plugins",
            Self::Binary => "node-remedy",
            Self::Languages => "languages",
        }
    }

    /// Makes sure that it is there. Of several who ask for the same at once, one makes it.
    pub(crate) fn provide(self) -> Result<()> {
        static MAKERS: [Mutex<()>; 12] = [const { Mutex::new(()) }; 12];
        let maker = MAKERS.get(self as usize).map(Mutex::lock);
        // What a maker that panicked left behind is looked at as anything else is.
        let _maker = maker.map(|maker| maker.unwrap_or_else(PoisonError::into_inner));
        match self {
            Self::WasmTarget => wasm_target(),
            Self::DebianPackages => debian_packages(),
            Self::Namespaces => namespaces(),
            Self::FenceAgents => fence_agents(),
            Self::PythonVenv => python_venv("venv", "tests/sims/requirements.txt"),
            Self::OpenStackVenv => {
                python_venv("openstack-venv", "tests/sims/openstack/requirements.txt")
            }
            Self::AgentsVenv => python_venv("agents-venv", "tests/sims/agents/requirements.txt"),
            Self::ControlPlane => control_plane(CONTROL_PLANE),
            Self::OlderControlPlane => control_plane(OLDER_CONTROL_PLANE),
            Self::Plugins => plugins::build_all().map(|_| ()),
            Self::Binary => binary(),
            Self::Languages => languages::build_all().map(|_| ()),
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    crate::refuse_arguments(arguments)?;
    let mut missing = Vec::new();
    for part in Part::ALL {
        let watch = Stopwatch::start();
        match part.provide() {
            Ok(()) => println!("{:<16} there ({watch})", part.name()),
            Err(failure) => {
                println!("{:<16} MISSING: {failure:#}", part.name());
                missing.push(part.name());
            }
        }
    }
    if !missing.is_empty() {
        bail!("could not get: {}", missing.join(", "));
    }
    Ok(())
}

fn wasm_target() -> Result<()> {
    let mut asks = Command::new("rustc");
    asks.current_dir(at("")).args(["--print", "target-libdir", "--target", "wasm32-wasip2"]);
    let folder = asks.output().context("failed to start rustc")?.stdout;
    let folder = String::from_utf8_lossy(&folder);
    if at(folder.trim()).is_dir() {
        return Ok(());
    }
    if find_program("rustup").is_none() {
        bail!("rustup is not installed, and rustc has no wasm32-wasip2");
    }
    let mut rustup = Command::new("rustup");
    rustup.current_dir(at("")).args(["target", "add", "wasm32-wasip2"]);
    run_logged("adding the wasm target", "setup-wasm-target", &mut rustup)?;
    Ok(())
}

fn debian_packages() -> Result<()> {
    let missing = PACKAGES.iter().filter(|(_, program)| find_program(program).is_none());
    install(&missing.map(|(package, _)| *package).collect::<Vec<_>>())
}

/// Whether this user may make a network of their own, in which addresses stand that are not to be reached.
fn namespaces() -> Result<()> {
    for program in ["unshare", "setpriv"] {
        if find_program(program).is_none() {
            bail!("{program} is not installed (Debian package util-linux)");
        }
    }
    let mut own = Command::new("unshare");
    own.args([
        "--user",
        "--map-root-user",
        "--net",
        "--mount",
        "--",
        "ip",
        "link",
        "set",
        "lo",
        "up",
    ]);
    let output = own.output().context("failed to start unshare")?;
    if !output.status.success() {
        bail!(
            "this user may not make a network namespace ({}): let them, sysctl \
             kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Installs Debian packages.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("install {} by hand", missing.join(" "));
    if find_program("apt-get").is_none() {
        bail!("this is not Debian: {by_hand}");
    }
    let wait_for_lock = "DPkg::Lock::Timeout=120";
    let update = as_root(&["apt-get", "-o", wait_for_lock, "update", "-q"])
        .with_context(|| by_hand.clone())?;
    run_logged("updating the package lists", "setup-apt-update", &mut { update })?;
    let mut words =
        vec!["apt-get", "-o", wait_for_lock, "install", "-y", "-q", "--no-install-recommends"];
    words.extend(missing);
    run_logged("installing Debian packages", "setup-apt-install", &mut as_root(&words)?)
        .context(by_hand)?;
    Ok(())
}

/// The package needs a hundred others; the sender of kdump messages none of them, and the agents
/// those of a venv.
fn fence_agents() -> Result<()> {
    let (package, sender) = ("fence-agents", "usr/libexec/fence-agents/fence_kdump_send");
    let folder = at("target").join(package);
    if folder.join(sender).is_file() || Path::new("/").join(sender).is_file() {
        return Ok(());
    }
    if find_program("apt-get").is_none() || find_program("dpkg-deb").is_none() {
        bail!("this is not Debian: install {package} by hand");
    }
    fs::create_dir_all(&folder)?;
    let fetch = || {
        let mut download = Command::new("apt-get");
        download.current_dir(&folder).args(["-q", "download", package]);
        run_logged("fetching the fence agents", "setup-agents-download", &mut download)
    };
    // The lists may be missing, or name a version that is no longer there.
    if fetch().is_err() {
        let mut update = as_root(&["apt-get", "update", "-q"])?;
        run_logged("updating the package lists", "setup-apt-update", &mut update)?;
        fetch()?;
    }
    let archives = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let archive = archives.filter(is_archive).max().context("apt-get brought nothing")?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(archive).arg(&folder);
    run_logged("unpacking the fence agents", "setup-agents-unpack", &mut unpack)?;
    Ok(())
}

/// The command itself for root, with sudo for others, if sudo asks nothing.
fn as_root(words: &[&str]) -> Result<Command> {
    let identity = Command::new("id").arg("-u").output().context("failed to start id")?;
    let is_root = identity.stdout.trim_ascii() == b"0";
    let (program, rest) = if is_root {
        words.split_first().context("no command")?
    } else {
        let asks_nothing = Command::new("sudo").args(["-n", "true"]).output();
        if !asks_nothing.is_ok_and(|output| output.status.success()) {
            bail!("neither root nor sudo without a password");
        }
        (&"sudo", words)
    };
    let mut command = Command::new(program);
    command.args(rest).env("DEBIAN_FRONTEND", "noninteractive");
    Ok(command)
}

pub(crate) fn python_venv(name: &str, requirements: &str) -> Result<()> {
    let (venv, requirements) = (at("target").join(name), at(requirements));
    let python = venv.join("bin/python");
    let hash = stamp::hash_of(std::slice::from_ref(&requirements))?;
    if stamp::is_fresh(&python, &hash) {
        return Ok(());
    }
    if find_program("python3").is_none() {
        bail!("python3 is not installed");
    }
    // Python makes none where a link leads to one that is there.
    if !python.exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&venv);
        run_logged("making a Python venv", &format!("setup-{name}"), &mut create)
            .context("python3 has no venv module: install python3-venv")?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements);
    run_logged("installing Python packages", &format!("setup-{name}-pip"), &mut install)?;
    stamp::put(&python, &hash)
}

fn control_plane((module, binary): Release) -> Result<()> {
    // What starts the components, and ends them with the tests; and a terminal to type at.
    for (program, package) in [("setpriv", "util-linux"), ("script", "bsdutils")] {
        if find_program(program).is_none() {
            bail!("{program} is not installed (Debian package {package})");
        }
    }
    build_control_plane(module, &at("target/control-plane").join(binary))
}

/// Builds one of the Kubernetes release that `module`, a `go.mod` in `tests/control-plane`, names.
fn build_control_plane(module: &str, binary: &Path) -> Result<()> {
    let folder = at("tests/control-plane");
    let (module, sums) = (folder.join(module), folder.join(module).with_extension("sum"));
    let hash = stamp::hash_of(&[module.clone(), sums, folder.join("main.go")])?;
    if stamp::is_fresh(binary, &hash) {
        return Ok(());
    }
    let go = find_program("go").context("Go is not installed")?;
    fs::create_dir_all(binary.parent().context("a binary in no folder")?)?;
    let text = fs::read_to_string(&module)?;
    let named = text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
    let version = named
        .with_context(|| format!("{} does not require k8s.io/kubernetes", module.display()))?;
    let (major, rest) = version.split_once('.').context("a version without minor")?;
    let (minor, _) = rest.split_once('.').context("a version without patch")?;
    let names = "k8s.io/component-base/version";
    let linker_flags = format!(
        "-s -w -X {names}.gitVersion=v{version} -X {names}.gitMajor={major} \
         -X {names}.gitMinor={minor}"
    );
    let mut build = Command::new(go);
    build
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        // One above this checkout would be an error beside `-modfile`.
        .env("GOWORK", "off")
        .args(["build", "-trimpath", "-ldflags", &linker_flags, "-modfile"])
        .arg(&module)
        .arg("-o")
        .arg(binary)
        .arg(".");
    let what = format!("building a control plane of Kubernetes {version} (4 to 10 min)");
    run_logged(&what, &format!("setup-control-plane-{major}.{minor}"), &mut build)?;
    stamp::put(binary, &hash)
}

fn binary() -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--package", "node-remedy", "--bin", "node-remedy"]);
    run_logged("building node-remedy", "build-node-remedy", &mut build)?;
    Ok(())
}
