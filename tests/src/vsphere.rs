//! A vCenter for tests: a stand-in of ours over TLS. What is true is asked for by another client than ours,
//! apache-libcloud's driver for vSphere's REST API, which switches machines too.

use std::path::Path;

use anyhow::{Result, bail};

use crate::ipmi::Power;
use crate::process::repository;
use crate::python::program;
use crate::stand_in::StandIn;

/// Who may switch machines.
pub const USERNAME: &str = "fence@vsphere.local";
/// The password of every account.
pub const PASSWORD: &str = "vcenter-at-three";
/// The UUID of `vm-41`.
pub const UUID: &str = "4213ab00-2222-4333-8444-000000000041";

/// A driver, logged in.
const DRIVER: &str = "import os; os.environ['SSL_CERT_FILE'] = ca\n\
    from libcloud.compute.base import Node\n\
    from libcloud.compute.drivers.vsphere import VSphere_REST_NodeDriver\n\
    user, password, id, word = args\n\
    host, port = url.removeprefix('https://').split(':')\n\
    driver = VSphere_REST_NodeDriver(key=user, secret=password, host=host, port=int(port), ca_cert=ca)\n\
    node = Node(id, id, None, [], [], driver)\n\
    if word: getattr(driver, word)(node)\n\
    print(driver._request('/rest/vcenter/vm/' + id + '/power').object['value']['state'])";

/// Starts one.
pub async fn start(folder: &Path) -> Result<StandIn> {
    let script = repository().join("tests/sims/vsphere/vcenter.py").display().to_string();
    StandIn::start("vcenter", &program("python"), folder, |port, pki| {
        let (certificate, key) = (pki.server_certificate.display(), pki.server_key.display());
        let line = format!("{script} {port} {certificate} {key} {USERNAME} {PASSWORD}");
        line.split(' ').map(str::to_owned).collect()
    })
    .await
}

/// What libcloud reads of a machine after it did this: nothing, `stop_node`, `start_node`.
pub async fn libcloud(vcenter: &StandIn, machine: &str, word: &str) -> Result<Power> {
    match vcenter.ask(DRIVER, &[USERNAME, PASSWORD, machine, word]).await?.as_str() {
        "POWERED_ON" => Ok(Power::On),
        "POWERED_OFF" => Ok(Power::Off),
        other => bail!("libcloud says {other:?}"),
    }
}
