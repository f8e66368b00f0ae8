//! The plugin, natively over real sockets, against OpenIPMI's own BMC simulator.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{
    Action, Failure, FailureKind, FenceMethod, Host, Outcome, PlugState, Request,
};

use crate::bmc::{request, with};

/// A running ipmi_sim in a directory of its own; ends when dropped.
struct IpmiSim {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl Drop for IpmiSim {
    fn drop(&mut self) {
        // It ends with the test, whatever the test found.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Starts one, or says why not. In CI a missing part is a failure.
fn start(name: &str) -> Option<IpmiSim> {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("state")).unwrap();
    let at = |file: &str| directory.join(file);
    std::fs::write(at("power"), "1\n").unwrap();
    std::fs::write(at("chassis.sh"), CHASSIS).unwrap();
    let shown = directory.display();
    let lan = format!(
        "name \"test\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    \
         priv_limit admin\n    allowed_auths_admin none md5\n    allowed_auths_user none md5\n    \
         guid a123456789abcdefa123456789abcdef\n  endlan\n  \
         chassis_control \"/bin/sh {shown}/chassis.sh {shown}/power\"\n  \
         user 2 true \"admin\" \"secret\" admin 10 none md5\n  \
         user 3 true \"viewer\" \"viewpw\" user 10 none md5\n"
    );
    std::fs::write(at("lan.conf"), lan).unwrap();
    std::fs::write(at("bmc.emu"), EMULATION).unwrap();
    let started = Command::new("ipmi_sim")
        .args(["-n", "-c", path(&at("lan.conf")), "-f", path(&at("bmc.emu"))])
        .args(["-s", path(&at("state"))])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(process) => Some(IpmiSim { process, directory, port }),
        Err(error) => {
            let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(!in_ci, "ipmi_sim (Debian package openipmi) is needed in CI: {error}");
            println!("skipped: ipmi_sim (Debian package openipmi) does not start: {error}");
            None
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

const EMULATION: &str = "mc_setbmc 0x20\n\
    mc_add 0x20 0x01 no-device-sdrs 0x20 1 2 0x9f 0x001291 0x0f02\n\
    sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n";

/// `chassis.sh STATE get power` and `chassis.sh STATE set power 0|1`, as ipmi_sim calls it.
const CHASSIS: &str = "case \"$2 $3\" in\n\
    'get power') echo power:$(cat \"$1\") ;;\n\
    'set power') echo \"$4\" > \"$1\" ;;\n\
    *) : ;;\nesac\n";

impl IpmiSim {
    fn call(&self, user: (&str, &str), action: Action, level: &str) -> Result<Outcome, Failure> {
        self.call_with(user, &with(request(action), "privilege-level", level))
    }

    fn call_with(
        &self,
        (name, password): (&str, &str),
        request: &Request,
    ) -> Result<Outcome, Failure> {
        let host = TestHost::real_time(u64::from(request.deadline_ms))
            .credential("account", Some(name), password.as_bytes())
            .socket("bmc", &format!("127.0.0.1:{}", self.port));
        Ipmi.run(request, &host)
    }

    /// Asks until it answers: a process that was just started has no socket yet.
    fn wait_until_ready(&self) {
        let began = TestHost::real_time(30_000);
        while began.elapsed_ms() < 20_000 {
            if self.call(("admin", "secret"), Action::Status, "administrator").is_ok() {
                return;
            }
            assert!(began.sleep(50));
        }
        panic!("ipmi_sim did not answer within 20 s");
    }
}

const ADMIN: (&str, &str) = ("admin", "secret");

#[test]
fn power_is_read_cut_and_given_back() {
    let Some(sim) = start("ipmi-sim-power") else { return };
    sim.wait_until_ready();
    let state = |action| sim.call(ADMIN, action, "administrator").unwrap().state;
    assert_eq!(state(Action::Status), PlugState::On);
    assert_eq!(state(Action::Monitor), PlugState::On);
    // ipmi_sim hands the change to a script: what is read in the same session may lag.
    assert_ne!(state(Action::Off), PlugState::Unknown);
    let until = |wanted| {
        let mut wait = request(Action::Status);
        wait.until = Some(wanted);
        sim.call_with(ADMIN, &wait).unwrap()
    };
    let off = until(PlugState::Off);
    assert_eq!(off.state, PlugState::Off);
    assert_eq!(off.identity[0].1, "a123456789abcdefa123456789abcdef");
    assert_eq!(std::fs::read_to_string(sim.directory.join("power")).unwrap().trim(), "0");
    sim.call(ADMIN, Action::On, "operator").unwrap();
    assert_eq!(until(PlugState::On).state, PlugState::On);
}

#[test]
fn suite_17_is_refused_and_3_found_without_a_list() {
    let Some(sim) = start("ipmi-sim-suites") else { return };
    sim.wait_until_ready();
    let began = TestHost::real_time(60_000);
    let outcome = sim.call(ADMIN, Action::Status, "administrator").unwrap();
    assert!(outcome.extra.contains(&("cipher-suite".into(), "3".into())), "{outcome:?}");
    // A client that waits for the list takes ten seconds and more.
    assert!(began.elapsed_ms() < 5_000, "took {} ms", began.elapsed_ms());

    let pinned = with(request(Action::Status), "cipher-suite", "17");
    let failure = sim.call_with(ADMIN, &pinned).unwrap_err();
    assert_eq!((failure.kind, failure.device_code), (FailureKind::Unsupported, Some(0x04)));
}

#[test]
fn wrong_password_and_unknown_user_are_told_apart() {
    let Some(sim) = start("ipmi-sim-refusals") else { return };
    sim.wait_until_ready();
    let kind_and_detail = |user| {
        let failure = sim.call(user, Action::Status, "administrator").unwrap_err();
        (failure.kind, failure.detail)
    };
    let (kind, detail) = kind_and_detail(("admin", "guess"));
    assert_eq!(kind, FailureKind::Unauthenticated);
    assert!(detail.contains("wrong password"), "{detail}");
    let (kind, detail) = kind_and_detail(("nobody", "secret"));
    assert_eq!(kind, FailureKind::Unauthenticated, "{detail}");
    assert!(detail.contains("does not know the user"), "{detail}");
}

#[test]
fn a_port_where_nobody_listens_is_unreachable() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let host = TestHost::real_time(30_000)
        .credential("account", Some("admin"), b"secret")
        .socket("bmc", &format!("127.0.0.1:{port}"));
    let failure = Ipmi.run(&request(Action::Status), &host).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable, "{}", failure.detail);
    assert!(host.elapsed_ms() < 5_000, "took {} ms", host.elapsed_ms());
}
