//! The programs and libraries that builds and tests need, each brought by a function that first looks whether it is
//! there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::progress::run_logged;
use crate::root::{at, cargo, find_program};
use crate::stamp;

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
pub(crate) type Release = (&'static str, &'static str);
pub(crate) const CONTROL_PLANE: Release = ("go.mod", "control-plane");
/// The models are compared with this release, too.
pub(crate) const OLDER_CONTROL_PLANE: Release = ("v1.36/go.mod", "v1.36/control-plane");

/// What reads the prose of the pages, and its version: later ones require a module that the proxy does not serve.
pub(crate) const VALE: &str = "target/vale/vale";
const VALE_MODULE: &str = "github.com/vale-cli/vale/v3/cmd/vale@v3.22.0";

/// The target that plugins are built for. Of several who ask at once, one adds it.
pub(crate) fn wasm_target() -> Result<()> {
    static ADDING: Mutex<()> = Mutex::new(());
    // What somebody who panicked left behind is looked at as anything else is.
    let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The packages whose programs tests start.
pub(crate) fn debian_packages() -> Result<()> {
    let missing = PACKAGES.iter().filter(|(_, program)| find_program(program).is_none());
    install(&missing.map(|(package, _)| *package).collect::<Vec<_>>())
}

/// Whether this user may make a network of their own, in which addresses stand that are not to be reached.
pub(crate) fn namespaces() -> Result<()> {
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
pub(crate) fn fence_agents() -> Result<()> {
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

/// `target/NAME`: a Python of its own with what a `requirements.txt` names.
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

/// What starts and runs the control plane of a release.
pub(crate) fn control_plane((module, binary): Release) -> Result<()> {
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

/// Builds vale, which needs Go and a C compiler.
pub(crate) fn vale() -> Result<()> {
    let binary = at(VALE);
    if stamp::is_fresh(&binary, VALE_MODULE) {
        return Ok(());
    }
    let go = find_program("go").context("Go is not installed")?;
    let mut install = Command::new(go);
    install
        .current_dir(at("target"))
        .env("GOBIN", binary.parent().context("a binary in no folder")?)
        .env("GOWORK", "off")
        .args(["install", VALE_MODULE]);
    run_logged("building vale", "setup-vale", &mut install)?;
    stamp::put(&binary, VALE_MODULE)
}

/// `target/debug/node-remedy`.
pub(crate) fn binary() -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--package", "node-remedy", "--bin", "node-remedy"]);
    run_logged("building node-remedy", "build-node-remedy", &mut build)?;
    Ok(())
}
