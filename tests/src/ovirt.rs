//! An oVirt engine for tests: a stand-in of ours over TLS. What is true is asked for by another client than
//! ours, oVirt's own SDK for Python, which switches machines too.

use std::path::Path;

use anyhow::{Result, bail};

use crate::ipmi::Power;
use crate::process::repository;
use crate::python::program;
use crate::stand_in::StandIn;

/// Who may switch machines.
pub const USERNAME: &str = "admin@internal";
/// Who may read them.
pub const READER: &str = "reader@internal";
/// The password of both.
pub const PASSWORD: &str = "engine-at-three";
/// The id of `node1`.
pub const ID: &str = "0e100000-0000-4000-8000-000000000041";

/// The SDK does what it is told, and reads until the machine is at rest.
const SDK: &str = "import ovirtsdk4, time\n\
    user, password, name, word = args\n\
    c = ovirtsdk4.Connection(url=url + '/ovirt-engine/api', username=user, password=password, ca_file=ca)\n\
    vms = c.system_service().vms_service()\n\
    found = vms.list(search='name=' + name)\n\
    assert len(found) == 1, found\n\
    vm = vms.vm_service(found[0].id)\n\
    if word: getattr(vm, word)()\n\
    wanted = {'stop': ['down'], 'start': ['up']}.get(word, ['down', 'up'])\n\
    end = time.monotonic() + 20\n\
    while vm.get().status.value not in wanted and time.monotonic() < end: pass\n\
    print(vm.get().status.value)\n\
    c.close()";

/// Starts one.
pub async fn start(folder: &Path) -> Result<StandIn> {
    let script = repository().join("tests/sims/ovirt/engine.py").display().to_string();
    StandIn::start("engine", &program("python"), folder, |port, pki| {
        let (certificate, key) = (pki.server_certificate.display(), pki.server_key.display());
        let line = format!("{script} {port} {certificate} {key} {USERNAME} {PASSWORD}");
        line.split(' ').map(str::to_owned).collect()
    })
    .await
}

/// What the SDK reads of a machine after it did this: nothing, `stop`, `start`.
pub async fn sdk(engine: &StandIn, name: &str, word: &str) -> Result<Power> {
    match engine.ask(SDK, &[USERNAME, PASSWORD, name, word]).await?.as_str() {
        "up" => Ok(Power::On),
        "down" => Ok(Power::Off),
        other => bail!("the SDK says {other:?}"),
    }
}
