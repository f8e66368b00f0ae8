//! The BMC model over a loopback socket, spoken to by `ipmitool`: an implementation of the other
//! side that is not ours.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, its helpers too"
)]

use std::net::UdpSocket;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use node_remedy_devices::bmc::{Bmc, Cause, Change, Config, Suite};

/// A model served on a port of its own.
struct Served {
    bmc: Arc<Mutex<Bmc>>,
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(config: Config) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let port = socket.local_addr().unwrap().port();
        let bmc = Arc::new(Mutex::new(Bmc::new(config)));
        let stop = Arc::new(AtomicBool::new(false));
        let (served, stopped) = (Arc::clone(&bmc), Arc::clone(&stop));
        let thread = std::thread::spawn(move || serve(&socket, &served, &stopped));
        Self { bmc, port, stop, thread: Some(thread) }
    }

    fn ipmitool(&self, arguments: &[&str]) -> Output {
        Command::new("ipmitool")
            .args(["-I", "lanplus", "-H", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-R", "1", "-N", "1"])
            .args(arguments)
            .output()
            .unwrap()
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.ipmitool(arguments);
        assert!(output.status.success(), "ipmitool {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a real client needs real time")]
fn serve(socket: &UdpSocket, bmc: &Mutex<Bmc>, stop: &AtomicBool) {
    let began = Instant::now();
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::SeqCst) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap();
        let replies =
            bmc.lock().unwrap().datagram(now_ms, u64::from(peer.port()), &buffer[..length]);
        for reply in replies {
            socket.send_to(&reply.bytes, peer).unwrap();
        }
    }
}

/// Is ipmitool there? In CI it has to be.
fn ipmitool_is_here() -> bool {
    let found = Command::new("ipmitool").arg("-V").output().is_ok();
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(found || !in_ci, "ipmitool (Debian package ipmitool) is needed in CI");
    if !found {
        println!("skipped: ipmitool (Debian package ipmitool) is not installed");
    }
    found
}

const ADMIN: [&str; 4] = ["-U", "admin", "-P", "secret"];

#[test]
fn switches_power_with_either_suite_and_closes_its_sessions() {
    if !ipmitool_is_here() {
        return;
    }
    for suite in ["3", "17"] {
        let served = Served::new(Config::default());
        let say = |what: &[&str]| served.says(&[&["-C", suite], &ADMIN[..], what].concat());
        assert_eq!(say(&["chassis", "power", "status"]), "Chassis Power is on");
        assert_eq!(say(&["chassis", "power", "off"]), "Chassis Power Control: Down/Off");
        assert_eq!(say(&["chassis", "power", "status"]), "Chassis Power is off");
        assert_eq!(say(&["chassis", "power", "on"]), "Chassis Power Control: Up/On");
        assert_eq!(say(&["chassis", "power", "reset"]), "Chassis Power Control: Reset");
        let mut bmc = served.bmc.lock().unwrap();
        let events = bmc.drain_power_events();
        let changes: Vec<_> = events.iter().map(|event| event.change).collect();
        assert_eq!(changes, [Change::Off, Change::On, Change::Reset]);
        let by_admin = Cause::Command { user: "admin".into() };
        assert!(events.iter().all(|event| event.cause == by_admin));
        assert_eq!((bmc.open_sessions(), bmc.half_open_sessions()), (0, 0));
    }
}

#[test]
fn gives_its_list_of_suites_and_its_guid() {
    if !ipmitool_is_here() {
        return;
    }
    let served = Served::new(Config::default());
    // Without -C, ipmitool asks for the list and takes the best.
    let guid = served.says(&[&ADMIN[..], &["mc", "guid"]].concat());
    assert!(guid.contains("A0A1A2A3A4A5A6A7A8A9AAABACADAEAF"), "{guid}");
    let info = served.says(&[&ADMIN[..], &["mc", "info"]].concat());
    assert!(info.contains("IPMI Version              : 2.0"), "{info}");
}

#[test]
fn refuses_the_wrong_password_user_role_and_suite() {
    if !ipmitool_is_here() {
        return;
    }
    let config = Config { suites: vec![Suite::Sha256], ..Config::default() };
    let served = Served::new(config);
    let refused = |arguments: &[&str]| {
        // Only with -v does it say what the BMC answered.
        let output = served.ipmitool(&[&["-v"], arguments, &["power", "off"]].concat());
        assert!(!output.status.success(), "{arguments:?} was let in");
        String::from_utf8(output.stderr).unwrap()
    };
    refused(&["-C", "17", "-U", "admin", "-P", "guess"]);
    let user = refused(&["-C", "17", "-U", "nobody", "-P", "secret"]);
    assert!(user.contains("unauthorized name"), "{user}");
    let role = refused(&["-C", "17", "-U", "viewer", "-P", "viewpw"]);
    assert!(role.contains("unauthorized role") || role.contains("invalid role"), "{role}");
    refused(&["-C", "3", "-U", "admin", "-P", "secret"]);
    refused(&["-C", "0", "-U", "admin", "-P", "secret"]);
    let viewer = &["-C", "17", "-L", "USER", "-U", "viewer", "-P", "viewpw"];
    refused(viewer);
    assert_eq!(served.says(&[&viewer[..], &["power", "status"]].concat()), "Chassis Power is on");
    assert!(served.bmc.lock().unwrap().powered());
    assert_eq!(served.bmc.lock().unwrap().open_sessions(), 0);
}

#[test]
fn uses_a_key_of_its_own() {
    if !ipmitool_is_here() {
        return;
    }
    let kg = b"twenty bytes of key!".to_vec();
    let served = Served::new(Config { kg: Some(kg), ..Config::default() });
    let with_kg = [&["-C", "17", "-k", "twenty bytes of key!"], &ADMIN[..]].concat();
    let status = ["power", "status"];
    assert_eq!(served.says(&[&with_kg[..], &status].concat()), "Chassis Power is on");
    let without = served.ipmitool(&[&["-C", "17"], &ADMIN[..], &status].concat());
    assert!(!without.status.success());
}

#[test]
fn says_yes_and_does_nothing_when_told_to() {
    if !ipmitool_is_here() {
        return;
    }
    let served = Served::new(Config::default());
    served.bmc.lock().unwrap().faults.set("stuck", 1).unwrap();
    let say = |what: &str| served.says(&[&["-C", "17"], &ADMIN[..], &["power", what]].concat());
    assert_eq!(say("off"), "Chassis Power Control: Down/Off");
    assert_eq!(say("status"), "Chassis Power is on");
}
