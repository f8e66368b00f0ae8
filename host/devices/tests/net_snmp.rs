//! The models of PDUs and switches over a loopback socket, spoken to by net-snmp's tools: an
//! implementation of the other side that is not ours.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, its helpers too"
)]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use node_remedy_devices::snmp::{Agent, Config, Model};

const COMMUNITY: &str = "private";
/// Longer than any relay takes.
const LATER_MS: u64 = 1_000;

/// Serves a device until `stop`; each datagram comes a second after the one before.
fn serve(socket: &UdpSocket, agent: &mut Agent, stop: &AtomicBool) {
    let mut buffer = [0; 2048];
    let mut now_ms = 0;
    while !stop.load(Ordering::SeqCst) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        now_ms += LATER_MS;
        for reply in agent.datagram(now_ms, &buffer[..length]) {
            socket.send_to(&reply.bytes, peer).unwrap();
        }
    }
}

/// What each of these commands of net-snmp says, one after the other.
fn says(model: Model, commands: &[&[&str]]) -> Vec<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let stop = AtomicBool::new(false);
    let mut agent = Agent::new(Config { model, plugs: 3, community: COMMUNITY.to_owned() });
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&socket, &mut agent, &stop));
        let told = commands.iter().map(|command| {
            let output = Command::new(command[0])
                .args(["-v2c", "-c", COMMUNITY, "-m", "", "-On", "-Oq", "-t", "5", "-r", "0"])
                .arg(&address)
                .args(&command[1..])
                .output()
                .unwrap();
            let said = if output.status.success() { output.stdout } else { output.stderr };
            String::from_utf8(said).unwrap().trim().to_owned()
        });
        let told = told.collect();
        stop.store(true, Ordering::SeqCst);
        serving.join().unwrap();
        told
    })
}

/// Are they there? In CI they have to be.
fn net_snmp_is_here() -> bool {
    let found = Command::new("snmpget").arg("-V").output().is_ok();
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(found || !in_ci, "snmpget (Debian package snmp) is needed in CI");
    if !found {
        println!("skipped: snmpget (Debian package snmp) is not installed");
    }
    found
}

#[test]
fn outlets_are_listed_switched_and_read() {
    if !net_snmp_is_here() {
        return;
    }
    let state = ".1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.2";
    let older = ".1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.2";
    let control = ".1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.2";
    let names = ".1.3.6.1.4.1.318.1.1.26.9.2.3.1.3";
    let told = says(
        Model::ApcRpdu2,
        &[
            &["snmpwalk", names],
            &["snmpset", control, "i", "2"],
            &["snmpget", state, older],
            &["snmpset", control, "i", "7"],
            &["snmpget", ".1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.9", ".1.3.6.1.4.1.9.9"],
        ],
    );
    let listed: Vec<String> =
        (1..=3).map(|plug| format!("{names}.{plug} \"outlet {plug}\"")).collect();
    assert_eq!(told[0], listed.join("\n"));
    assert_eq!(told[1], format!("{control} 2"));
    assert_eq!(told[2], format!("{state} 1\n{older} 2"), "off, in the words of either table");
    assert!(told[3].contains("wrongValue"), "{}", told[3]);
    assert!(
        told[4].contains("No Such Instance") && told[4].contains("No Such Object"),
        "{}",
        told[4]
    );
}

#[test]
fn ports_are_named_cut_and_restored() {
    if !net_snmp_is_here() {
        return;
    }
    let (admin, oper) = (".1.3.6.1.2.1.2.2.1.7.10002", ".1.3.6.1.2.1.2.2.1.8.10002");
    let told = says(
        Model::Switch,
        &[
            &["snmpget", ".1.3.6.1.2.1.31.1.1.1.1.10002"],
            &["snmpset", admin, "i", "2"],
            &["snmpget", admin, oper],
            &["snmpset", admin, "i", "1"],
            &["snmpget", admin, oper],
            &["snmpset", oper, "i", "2"],
        ],
    );
    assert_eq!(told[0], ".1.3.6.1.2.1.31.1.1.1.1.10002 \"Gi1/0/2\"");
    assert_eq!(told[2], format!("{admin} 2\n{oper} 2"));
    assert_eq!(told[4], format!("{admin} 1\n{oper} 1"));
    assert!(told[5].contains("noAccess"), "{}", told[5]);
}
