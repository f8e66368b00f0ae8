//! `cargo xtask setup`: the parts that tests run against.
//!
//! Each part is looked at first, so a second run does nothing. What cannot be had is named with the
//! reason, and only the levels that need it suffer.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

use crate::arguments::refuse;
use crate::prerequisites::{
    CONTROL_PLANE, OLDER_CONTROL_PLANE, binary, control_plane, debian_packages, fence_agents,
    namespaces, python_venv, wasm_target,
};
use crate::progress::Stopwatch;
use crate::{languages, plugins};

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
    refuse(arguments)?;
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
