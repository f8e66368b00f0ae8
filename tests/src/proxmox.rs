//! Proxmox VE for tests: fakepve over TLS, with two virtual machines and a container. What is true is
//! asked for by another client than ours, Python's requests.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::ipmi::Power;
use crate::process::repository;
use crate::python::program;
use crate::stand_in::StandIn;

/// The account.
pub const USERNAME: &str = "root@pam";
/// Its password.
pub const PASSWORD: &str = "fakepve-at-three";
/// What the firmware of the first machine shows.
pub const UUID: &str = "1a2b3c4d-0000-4000-8000-00000000a101";

const GUESTS: &str = r#"{"guests": [
    {"vmid": 101, "name": "node1", "status": "running",
     "config": {"cores": 1, "memory": 512, "smbios1": "uuid=1a2b3c4d-0000-4000-8000-00000000a101"}},
    {"vmid": 102, "name": "twin", "status": "running", "config": {"cores": 1, "memory": 512}},
    {"vmid": 103, "name": "twin", "status": "running", "config": {"cores": 1, "memory": 512}},
    {"vmid": 201, "name": "box1", "type": "lxc", "node": "pve2", "status": "running",
     "config": {"cores": 1, "memory": 512}}
]}"#;

/// Starts a cluster whose clock runs five times as fast as ours.
pub async fn start(folder: &Path) -> Result<StandIn> {
    let guests = folder.join("guests.json");
    fs::write(&guests, GUESTS)?;
    StandIn::start("fakepve", &program("fakepve"), folder, |port, pki| {
        let (guests, certificate) = (guests.display(), pki.server_certificate.display());
        let key = pki.server_key.display();
        let line = format!(
            "{guests} --host 127.0.0.1 --port {port} --user {USERNAME} --password {PASSWORD} \
             --time-scale 0.2 --cert {certificate} --key {key}"
        );
        line.split(' ').map(str::to_owned).collect()
    })
    .await
}

/// An API token of that account: its name and its secret.
pub const TOKEN: [&str; 2] = ["root@pam!fence", "0c0ffee0-4444-4000-8000-00000000a101"];

/// Starts a front that takes the API token and asks the cluster in its place.
pub async fn token_front(cluster: &StandIn, folder: &Path) -> Result<StandIn> {
    let script = repository().join("tests/sims/pve/token_front.py").display().to_string();
    let (address, authority) = (cluster.address(), cluster.authority());
    let [name, secret] = TOKEN;
    StandIn::start("token-front", &program("python"), folder, |port, pki| {
        let (certificate, key) = (pki.server_certificate.display(), pki.server_key.display());
        let line = format!(
            "{script} {port} {certificate} {key} https://{address} {} {USERNAME} {PASSWORD} {name}={secret}",
            authority.display()
        );
        line.split(' ').map(str::to_owned).collect()
    })
    .await
}

/// What another client reads of a guest now; `guest` is its kind, node and number.
pub async fn power(cluster: &StandIn, guest: [&str; 3]) -> Result<Power> {
    let [kind, node, number] = guest;
    let read = "user, password, path = args\n\
        s = requests.Session(); s.verify, s.trust_env = ca, False\n\
        t = s.post(url + '/api2/json/access/ticket', data={'username': user, 'password': password}).json()['data']\n\
        s.cookies.set('PVEAuthCookie', t['ticket'])\n\
        print(s.get(url + path).json()['data']['status'])";
    let path = format!("/api2/json/nodes/{node}/{kind}/{number}/status/current");
    match cluster.ask(read, &[USERNAME, PASSWORD, &path]).await?.as_str() {
        "running" => Ok(Power::On),
        "stopped" => Ok(Power::Off),
        other => bail!("fakepve says {other:?}"),
    }
}
