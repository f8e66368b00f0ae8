//! The devices, and the ways to ask each of them.
//!
//! Every way at a device is told the same: account, address, whom to trust, and whatever else saves it
//! from searching.

use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use node_remedy_plugin_apc_pdu::ApcPdu;
use node_remedy_plugin_ipmi::Ipmi;
use node_remedy_sandbox::{Action, Authorities, Trust};
use node_remedy_sdk::testing::TestHost;
use node_remedy_sdk::{FenceMethod, PlugState, Request};
use node_remedy_tests::Bmc;
use node_remedy_tests::ec2::Ec2;
use node_remedy_tests::ipmi::{Kind, PASSWORD, USERNAME};
use node_remedy_tests::openstack::{self, ADMIN, Cloud};
use node_remedy_tests::process::fresh_folder;
use node_remedy_tests::proxmox;
use node_remedy_tests::redfish::Emulator;
use node_remedy_tests::snmp::{AUTH, Agent, Model, PRIVACY, READER};

use super::peers::{Absent, Peers};
use super::ways::Way;
use crate::sandboxed::{Reach, Sandboxed, secret};
use node_remedy_tests::weigh::Program;

/// Of the native code, which waits for no device so long.
const DEADLINE_MS: u32 = 60_000;
/// A plug of the PDUs that is on.
const PLUG: &str = "3";

/// A device, and everything that asks it.
pub(super) struct Case {
    /// The method, and what stands for the device.
    pub(super) title: String,
    /// The component in its sandbox comes first, then `node-remedy fence`.
    pub(super) ways: Vec<Way>,
    pub(super) absent: Vec<Absent>,
    /// Runs until the case is over.
    _device: Box<dyn Any + Send>,
}

/// Ways by which a device is asked, in the making.
struct Ways {
    title: String,
    ways: Vec<Way>,
    absent: Vec<Absent>,
}

impl Ways {
    /// The component, and the binary beside this one, of the same profile.
    async fn ours(method: &str, device: &str, reach: Reach, options: &[&str]) -> Result<Self> {
        let plugin = Arc::new(Sandboxed::load(method)?);
        let call = plugin.prepare_for(Action::Status, reach).await?;
        let inside = Way::sandboxed(&format!("inside: {method}.wasm in its sandbox"), plugin, call);
        let fence = Way::process("node-remedy fence", ours(method, options)?, "on");
        let title = format!("{method}: {device}");
        Ok(Self { title, ways: vec![inside, fence], absent: Vec::new() })
    }

    fn native(mut self, run: impl Fn(u64) -> Result<()> + Send + Sync + 'static) -> Self {
        self.ways.push(Way::native("native: the same code, std's sockets", Arc::new(run)));
        self
    }

    fn and(mut self, peer: Result<Way, Absent>) -> Self {
        match peer {
            Ok(way) => self.ways.push(way),
            Err(absent) => self.absent.push(absent),
        }
        self
    }

    fn at(self, device: impl Any + Send) -> Case {
        let Self { title, ways, absent } = self;
        Case { title, ways, absent, _device: Box::new(device) }
    }
}

/// `node-remedy fence METHOD status`.
fn ours(method: &str, options: &[&str]) -> Result<Program> {
    let binary = std::env::current_exe()?.with_file_name("node-remedy");
    Ok(Program::new(binary, &[&["fence", method, "status"], options].concat()))
}

/// `node-remedy fence ipmi status` at this BMC.
pub(super) fn our_ipmi(bmc: &Bmc, suite: &str, password: &Path) -> Result<Program> {
    let suite = format!("cipher-suite={suite}");
    let (address, password) = (bmc.address(), password.display().to_string());
    let options = ["--address", &address, "--set", &suite, "--username", USERNAME];
    ours("ipmi", &[&options[..], &["--password-file", &password]].concat())
}

/// The agent at this BMC, told its cipher suite: it would search for one for 14 seconds.
pub(super) fn fence_ipmilan(peers: &Peers, bmc: &Bmc, suite: &str) -> Result<Way, Absent> {
    let port = bmc.port().to_string();
    let place = ["-o", "status", "-a", "127.0.0.1", "-u", &port, "-P", "-C", suite];
    peers.agent("fence_ipmilan", &[&place[..], &["-l", USERNAME, "-p", PASSWORD]].concat())
}

/// What the agent itself runs.
pub(super) fn ipmitool(bmc: &Bmc, suite: &str, password: &Path) -> Way {
    let (port, password) = (bmc.port().to_string(), password.display().to_string());
    let place = ["-I", "lanplus", "-H", "127.0.0.1", "-p", &port, "-C", suite, "-U", USERNAME];
    let words = [&place[..], &["-f", &password, "chassis", "power", "status"]].concat();
    Way::process("ipmitool", Program::new("ipmitool", &words), "Chassis Power is on")
}

/// A file with a secret in it.
pub(super) fn secret_file(folder: &Path, bytes: &str) -> Result<PathBuf> {
    let file = folder.join(format!("secret-{}", fs::read_dir(folder)?.count()));
    fs::write(&file, bytes)?;
    Ok(file)
}

/// A BMC.
pub(super) async fn ipmi(peers: &Peers, kind: Kind, suite: &'static str) -> Result<Case> {
    let (device, name) = match kind {
        Kind::Bmc17 => ("bmc17.py", "bmc17"),
        Kind::IpmiSim => ("ipmi_sim", "ipmi_sim"),
    };
    let folder = fresh_folder(&format!("bench-methods-{name}-{suite}"))?;
    let bmc = Bmc::start(kind, &folder).await?;
    let password = secret_file(&folder, PASSWORD)?;
    let program = our_ipmi(&bmc, suite, &password)?;
    let options: Vec<_> = program.arguments.iter().skip(3).map(String::as_str).collect();
    let title = format!("{device}, cipher suite {suite}");
    let ways = Ways::ours("ipmi", &title, Reach::bmc(&bmc, suite), &options).await?;
    let address = bmc.address();
    let ways = ways.native(move |seed| {
        let host = TestHost::real_time(u64::from(DEADLINE_MS)).seed(seed);
        let host = host.credential("account", Some(USERNAME), PASSWORD.as_bytes());
        natively(&Ipmi, "", &[("cipher-suite", suite)], &host.socket("bmc", &address))
    });
    Ok(ways
        .and(Ok(ipmitool(&bmc, suite, &password)))
        .and(fence_ipmilan(peers, &bmc, suite))
        .at(bmc))
}

/// The plugin's own code with the host that its native tests use: blocking sockets, no sandbox.
fn natively(
    method: &impl FenceMethod,
    plug: &str,
    parameters: &[(&str, &str)],
    host: &TestHost,
) -> Result<()> {
    let mut request = Request::new(node_remedy_sdk::Action::Status, DEADLINE_MS);
    plug.clone_into(&mut request.plug);
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    request.parameters.extend(parameters.iter().map(owned));
    let outcome = method.run(&request, host).map_err(|failure| anyhow!("{}", failure.detail))?;
    ensure!(outcome.state == PlugState::On, "expected on, it reported {outcome:?}");
    Ok(())
}

/// A PDU whose tables the agent and the plugin both read, by community.
pub(super) async fn apc_community(peers: &Peers) -> Result<Case> {
    let folder = fresh_folder("bench-methods-apc-2c")?;
    let agent = Agent::start(&folder, Model::ApcMasterSwitch).await?;
    let (address, port) = (agent.address(), agent.port().to_string());
    let reach = Reach {
        parameters: parameters(&[("address", &address), ("version", "2c")]),
        credentials: BTreeMap::from([secret("community", None, READER)]),
        plug: PLUG.to_owned(),
        trust: Trust::default(),
    };
    let community = format!("community={}", secret_file(&folder, READER)?.display());
    let options = ["--plug", PLUG, "--address", &address, "--set", "version=2c"];
    let options = [&options[..], &["--credential", &community]].concat();
    let ways = Ways::ours("apc-pdu", "snmpd with a MasterSwitch's tables, v2c", reach, &options);
    let place = address.clone();
    let ways = ways.await?.native(move |seed| {
        let host = TestHost::real_time(u64::from(DEADLINE_MS)).seed(seed).socket("agent", &place);
        let host = host.credential("community", None, READER.as_bytes()).revealing("community");
        natively(&ApcPdu, PLUG, &[("version", "2c")], &host)
    });
    let theirs = ["-o", "status", "-a", "127.0.0.1", "-u", &port, "-n", PLUG, "-d", "2c"];
    let theirs = peers.agent("fence_apc_snmp", &[&theirs[..], &["-c", READER]].concat());
    Ok(ways.and(Ok(snmpget(&address, &["-v2c", "-c", READER]))).and(theirs).at(agent))
}

/// The same by a user, authenticated and encrypted.
pub(super) async fn apc_user(peers: &Peers) -> Result<Case> {
    const USER: &str = "sha1-aes128";
    let folder = fresh_folder("bench-methods-apc-3")?;
    let agent = Agent::start(&folder, Model::ApcMasterSwitch).await?;
    let (address, port) = (agent.address(), agent.port().to_string());
    let reach = Reach {
        parameters: parameters(&[("address", &address)]),
        credentials: BTreeMap::from([
            secret("account", Some(USER), AUTH),
            secret("privacy", None, PRIVACY),
        ]),
        plug: PLUG.to_owned(),
        trust: Trust::default(),
    };
    let password = secret_file(&folder, AUTH)?.display().to_string();
    let privacy = format!("privacy={}", secret_file(&folder, PRIVACY)?.display());
    let options = ["--plug", PLUG, "--address", &address, "--username", USER];
    let secrets = ["--password-file", &password, "--credential", &privacy];
    let options = [&options[..], &secrets].concat();
    let device = "snmpd with a MasterSwitch's tables, v3, SHA-1 and AES-128";
    let ways = Ways::ours("apc-pdu", device, reach, &options).await?;
    let place = address.clone();
    let ways = ways.native(move |seed| {
        let host = TestHost::real_time(u64::from(DEADLINE_MS)).seed(seed).socket("agent", &place);
        let host = host.credential("account", Some(USER), AUTH.as_bytes());
        natively(&ApcPdu, PLUG, &[], &host.credential("privacy", None, PRIVACY.as_bytes()))
    });
    let theirs = ["-o", "status", "-a", "127.0.0.1", "-u", &port, "-n", PLUG, "-d", "3"];
    let level = ["-E", "authPriv", "-b", "SHA", "-p", AUTH, "-B", "AES", "-P", PRIVACY, "-l", USER];
    let theirs = peers.agent("fence_apc_snmp", &[&theirs[..], &level].concat());
    let tool = ["-v3", "-l", "authPriv", "-u", USER, "-a", "SHA", "-A", AUTH, "-x", "AES"];
    let tool = snmpget(&address, &[&tool[..], &["-X", PRIVACY]].concat());
    Ok(ways.and(Ok(tool)).and(theirs).at(agent))
}

/// One object, and nothing that finds out which: a floor for whoever speaks SNMP.
fn snmpget(address: &str, who: &[&str]) -> Way {
    let status = format!(".1.3.6.1.4.1.318.1.1.4.4.2.1.3.{PLUG}");
    let words = [&["-m", "", "-Oqv"], who, &[address, &status]].concat();
    Way::process("snmpget of one object", Program::new("snmpget", &words), "1")
}

/// A Redfish service over TLS.
pub(super) async fn redfish(peers: &Peers) -> Result<Case> {
    let folder = fresh_folder("bench-methods-redfish")?;
    let emulator = Emulator::start(&folder).await?;
    let [system, _] = emulator.two_systems()?;
    let authority = emulator.authority();
    let (address, port) = (emulator.address(), emulator.port().to_string());
    let reach = Reach {
        parameters: parameters(&[("address", &address)]),
        credentials: BTreeMap::from([secret("account", Some(USERNAME), PASSWORD)]),
        plug: system.to_owned(),
        trust: trusting(&authority)?,
    };
    let ca = authority.display().to_string();
    let password = secret_file(&folder, PASSWORD)?.display().to_string();
    let options = ["--plug", system, "--address", &address, "--tls-ca", &ca];
    let account = ["--username", USERNAME, "--password-file", &password];
    let options = [&options[..], &account].concat();
    let ways = Ways::ours("redfish", "sushy-emulator over TLS", reach, &options).await?;
    let uri = format!("/redfish/v1/Systems/{system}");
    let theirs = ["-o", "status", "-a", "127.0.0.1", "-u", &port, "--systems-uri", &uri];
    let account = ["--ssl-secure", "-l", USERNAME, "-p", PASSWORD];
    let theirs = peers.agent("fence_redfish", &[&theirs[..], &account].concat());
    let theirs = theirs.map(|way| way.with("REQUESTS_CA_BUNDLE", &ca));
    Ok(ways.and(theirs).at(emulator))
}

/// An EC2 service over TLS.
pub(super) async fn aws(peers: &Peers) -> Result<Case> {
    const REGION: &str = "eu-west-1";
    let folder = fresh_folder("bench-methods-aws")?;
    let ec2 = Ec2::start(&folder).await?;
    let [instance, ..] = ec2.instances().clone();
    let (id, key) = ec2.key("fence")?;
    let address = ec2.address();
    let reach = Reach {
        parameters: parameters(&[("address", &address), ("region", REGION)]),
        credentials: BTreeMap::from([secret("account", Some(id), key)]),
        plug: instance.clone(),
        trust: trusting(&ec2.authority())?,
    };
    let ca = ec2.authority().display().to_string();
    let password = secret_file(&folder, key)?.display().to_string();
    let region = format!("region={REGION}");
    let options = ["--plug", &instance, "--address", &address, "--set", &region, "--tls-ca", &ca];
    let options = [&options[..], &["--username", id, "--password-file", &password]].concat();
    let device = "moto's EC2 over TLS, signatures checked";
    let ways = Ways::ours("aws", device, reach, &options).await?;
    let theirs = ["-o", "status", "-n", &instance, "-r", REGION, "-a", id, "-s", key];
    let theirs = peers.agent("fence_aws", &theirs).map(|way| {
        way.with("AWS_ENDPOINT_URL", &format!("https://{address}")).with("AWS_CA_BUNDLE", &ca)
    });
    Ok(ways.and(theirs).at(ec2))
}

/// Keystone and nova over TLS.
pub(super) async fn openstack(peers: &Peers) -> Result<Case> {
    let folder = fresh_folder("bench-methods-openstack")?;
    let cloud = Cloud::start(&folder).await?;
    let [server, _] = cloud.servers.clone();
    let (keystone, nova, ca) = (&cloud.auth_url, &cloud.compute_url, cloud.authority());
    let password = openstack::PASSWORD;
    let project = [("auth-url", &**keystone), ("compute-url", nova), ("project", "cluster")];
    let reach = Reach {
        parameters: parameters(&project),
        credentials: BTreeMap::from([secret("account", Some(ADMIN), password)]),
        plug: server.clone(),
        trust: trusting(Path::new(&ca))?,
    };
    let file = secret_file(&folder, password)?.display().to_string();
    let set = project.map(|(name, value)| format!("{name}={value}"));
    let mut options = vec!["--plug", &server, "--tls-ca", &ca, "--username", ADMIN];
    options.extend(["--password-file", &file]);
    options.extend(set.iter().flat_map(|pair| ["--set", pair]));
    let device = "keystone 30 and nova 34 over TLS";
    let ways = Ways::ours("openstack", device, reach, &options).await?;
    let auth = format!("--auth-url={keystone}");
    let theirs = ["-o", "status", "-n", &server, &auth, "--project-name=cluster", "-l", ADMIN];
    let ca = format!("--cacert={ca}");
    let theirs = peers.agent("fence_openstack", &[&theirs[..], &["-p", password, &ca]].concat());
    Ok(ways.and(theirs).at(cloud))
}

/// Proxmox VE over TLS.
pub(super) async fn proxmox(peers: &Peers) -> Result<Case> {
    const GUEST: &str = "101";
    let folder = fresh_folder("bench-methods-proxmox")?;
    let cluster = proxmox::start(&folder).await?;
    let address = cluster.address();
    let (user, password) = (proxmox::USERNAME, proxmox::PASSWORD);
    let reach = Reach {
        parameters: parameters(&[("address", &address)]),
        credentials: BTreeMap::from([secret("account", Some(user), password)]),
        plug: GUEST.to_owned(),
        trust: trusting(&cluster.authority())?,
    };
    let ca = cluster.authority().display().to_string();
    let file = secret_file(&folder, password)?.display().to_string();
    let options = ["--plug", GUEST, "--address", &address, "--tls-ca", &ca, "--username", user];
    let options = [&options[..], &["--password-file", &file]].concat();
    let ways = Ways::ours("proxmox", "fakepve over TLS", reach, &options).await?;
    let (_, port) = address.split_once(':').unwrap_or_default();
    let theirs = ["-o", "status", "-a", "127.0.0.1", "-u", port, "-n", GUEST, "-l", user];
    // Its curl looks only where its wheel was told to, so nothing but the system's trust would do.
    let rest = ["-p", password, "--pve-node-auto", "--ssl-insecure"];
    let theirs = peers.agent("fence_pve", &[&theirs[..], &rest].concat());
    let theirs = theirs.map(|way| way.called("fence_pve --ssl-insecure"));
    Ok(ways.and(theirs).at(cluster))
}

fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn trusting(authority: &Path) -> Result<Trust> {
    Ok(Trust::Authorities(Authorities::from_pem(&fs::read(authority)?)?))
}
