//! PDUs and a switch for tests: net-snmp's agent with their tables behind it.
//!
//! What is true is read with net-snmp's own `snmpget`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::ipmi::Power;
use crate::process::{Process, Program, free_udp_port, repository};
use crate::time::until;

/// Starting its table handlers takes a second on a busy machine.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// The community that may read.
pub const READER: &str = "public-reader";
/// The community that may write.
pub const WRITER: &str = "private-writer";
/// What users of SNMPv3 authenticate with.
pub const AUTH: &str = "authpass12";
/// What they encrypt with.
pub const PRIVACY: &str = "privpass12";

/// A user of SNMPv3 that may write.
#[derive(Debug)]
pub struct User {
    /// Its name.
    pub name: &'static str,
    /// Its protocols as snmpd calls them: authentication, privacy.
    protocols: (&'static str, Option<&'static str>),
    /// And as the methods do.
    pub parameters: &'static [&'static str],
}

/// One for each protocol, and each level but the lowest.
pub const USERS: [User; 9] = [
    User {
        name: "md5-des",
        protocols: ("MD5", Some("DES")),
        parameters: &["auth-protocol=md5", "privacy-protocol=des"],
    },
    User { name: "sha1-aes128", protocols: ("SHA", Some("AES")), parameters: &[] },
    User {
        name: "sha1-aes256",
        protocols: ("SHA", Some("AES-256")),
        parameters: &["privacy-protocol=aes256"],
    },
    User {
        name: "sha1-aes256c",
        protocols: ("SHA", Some("AES-256-C")),
        parameters: &["privacy-protocol=aes256-cisco"],
    },
    User {
        name: "sha224-aes128",
        protocols: ("SHA-224", Some("AES")),
        parameters: &["auth-protocol=sha224", "privacy-protocol=aes128"],
    },
    User {
        name: "sha256-aes256",
        protocols: ("SHA-256", Some("AES-256")),
        parameters: &["auth-protocol=sha256", "privacy-protocol=aes256"],
    },
    User {
        name: "sha384-aes256c",
        protocols: ("SHA-384", Some("AES-256-C")),
        parameters: &["auth-protocol=sha384", "privacy-protocol=aes256-cisco"],
    },
    User {
        name: "sha512-aes256",
        protocols: ("SHA-512", Some("AES-256")),
        parameters: &["auth-protocol=sha512", "privacy-protocol=aes256"],
    },
    User {
        name: "sha1-clear",
        protocols: ("SHA", None),
        parameters: &["security-level=auth-no-priv"],
    },
];
/// May read without any password.
pub const LOOKER: &str = "looker";

/// Which device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// APC, second generation; it keeps the older tables.
    ApcRpdu2,
    /// APC, first generation.
    ApcRpdu,
    /// APC MasterSwitch plus.
    ApcMasterSwitchPlus,
    /// APC MasterSwitch.
    ApcMasterSwitch,
    /// Eaton G2, G3.
    Eaton,
    /// Eaton managed.
    EatonManaged,
    /// Eaton switched.
    EatonSwitched,
    /// A switch with PoE.
    Switch,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ApcRpdu2,
        Self::ApcRpdu,
        Self::ApcMasterSwitchPlus,
        Self::ApcMasterSwitch,
        Self::Eaton,
        Self::EatonManaged,
        Self::EatonSwitched,
        Self::Switch,
    ];

    /// As the simulator calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ApcRpdu2 => "apc-rpdu2",
            Self::ApcRpdu => "apc-rpdu",
            Self::ApcMasterSwitchPlus => "apc-msp",
            Self::ApcMasterSwitch => "apc-ms",
            Self::Eaton => "eaton",
            Self::EatonManaged => "eaton-managed",
            Self::EatonSwitched => "eaton-switched",
            Self::Switch => "switch",
        }
    }

    /// Which method is for it.
    #[must_use]
    pub fn plugin(self) -> &'static str {
        match self {
            Self::ApcRpdu2 | Self::ApcRpdu | Self::ApcMasterSwitchPlus | Self::ApcMasterSwitch => {
                "apc-pdu"
            }
            Self::Eaton | Self::EatonManaged | Self::EatonSwitched => "eaton-pdu",
            Self::Switch => "snmp-switch",
        }
    }

    /// How people write its third plug.
    #[must_use]
    pub fn third(self) -> &'static str {
        if self == Self::Switch { "Gi1/0/3" } else { "3" }
    }

    /// What is handed over to the tables.
    fn roots(self) -> &'static [&'static str] {
        match self.plugin() {
            "apc-pdu" => &[".1.3.6.1.4.1.318.1.1"],
            "eaton-pdu" if self == Self::EatonSwitched => &[".1.3.6.1.4.1.20677.2"],
            "eaton-pdu" => &[".1.3.6.1.4.1.534.6.6"],
            _ => &[".1.3.6.1.2.1.2.2", ".1.3.6.1.2.1.31.1", ".1.3.6.1.2.1.105.1"],
        }
    }

    /// Where the vendor's MIB has the state of a plug, and what stands there for on and off.
    fn status(self, plug: u32) -> (String, [&'static str; 2]) {
        match self {
            Self::ApcRpdu2 => (format!(".1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.{plug}"), ["2", "1"]),
            Self::ApcRpdu => (format!(".1.3.6.1.4.1.318.1.1.12.3.5.1.1.4.{plug}"), ["1", "2"]),
            Self::ApcMasterSwitchPlus => {
                (format!(".1.3.6.1.4.1.318.1.1.6.7.1.1.5.1.1.{plug}"), ["1", "2"])
            }
            Self::ApcMasterSwitch => (format!(".1.3.6.1.4.1.318.1.1.4.4.2.1.3.{plug}"), ["1", "2"]),
            Self::Eaton => (format!(".1.3.6.1.4.1.534.6.6.7.6.6.1.2.0.{plug}"), ["1", "0"]),
            Self::EatonManaged => {
                (format!(".1.3.6.1.4.1.534.6.6.6.1.2.2.1.3.{}", plug.saturating_sub(1)), ["1", "0"])
            }
            Self::EatonSwitched => (format!(".1.3.6.1.4.1.20677.2.6.3.{plug}.0"), ["1", "2"]),
            Self::Switch => {
                (format!(".1.3.6.1.2.1.2.2.1.8.{}", 10_000_u32.saturating_add(plug)), ["1", "2"])
            }
        }
    }
}

/// A machine that hangs on a plug.
#[derive(Clone, Copy)]
pub struct Wired<'a> {
    /// The plug.
    pub plug: u32,
    /// The state file of the machine's chassis.
    pub chassis: &'a Path,
    /// All plugs that feed it, this one included.
    pub feeds: &'a [(&'a Agent, u32)],
}

/// A device; it ends with this value.
pub struct Agent {
    process: Process,
    model: Model,
    port: u16,
    folder: PathBuf,
}

impl Agent {
    /// It answers nothing from now on.
    pub fn hang(&self) -> Result<()> {
        self.process.hang()
    }

    /// It answers again.
    pub fn go_on(&self) -> Result<()> {
        self.process.go_on()
    }

    /// Starts one with eight plugs, all on.
    pub async fn start(folder: &Path, model: Model) -> Result<Self> {
        let port = free_udp_port()?;
        let kept = folder.join("kept");
        fs::create_dir_all(&kept)?;
        let configuration = folder.join("snmpd.conf");
        fs::write(&configuration, settings(folder, model, port)?)?;
        let environment = ["SNMP_PERSISTENT_DIR", "SNMPCONFPATH"]
            .map(|name| format!("{name}={}", kept.display()));
        // Its own tables of interfaces are left out, to be replaced; and smux, for which every agent
        // wants the same TCP port.
        let modules = "-ifTable,ifXTable,interfaces,interface,mteTrigger,mteTriggerConf,smux";
        let snmpd = ["snmpd", "-f", "-Lo", "-C", "-I", modules, "-c"].map(str::to_owned);
        let rest = [configuration.display().to_string()];
        let arguments = [environment.as_slice(), snmpd.as_slice(), rest.as_slice()].concat();
        let process = Process::start(&Program {
            name: "snmpd",
            path: Path::new("/usr/bin/env"),
            arguments: &[vec!["PATH=/usr/sbin:/usr/bin:/bin".to_owned()], arguments].concat(),
            logs: folder,
        })?;
        let mut agent = Self { process, model, port, folder: folder.to_owned() };
        until("the agent answers", READY_WITHIN, || {
            let alive = agent.process.check_alive();
            let read = agent.state(1);
            async move {
                alive?;
                Ok(read.await.ok())
            }
        })
        .await?;
        Ok(agent)
    }

    /// The UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hangs machines on its plugs: for each plug the state file of a chassis, and all plugs that feed it.
    pub fn wire(&self, machines: &[Wired<'_>]) -> Result<()> {
        let wired = machines.iter().map(|Wired { plug, chassis, feeds }| {
            let feeds: Vec<_> =
                feeds.iter().map(|(agent, plug)| json!([agent.folder, plug.to_string()])).collect();
            (plug.to_string(), json!({"chassis": chassis, "feeds": feeds}))
        });
        let wired: serde_json::Map<_, _> = wired.collect();
        Ok(fs::write(self.folder.join("feeds.json"), Value::Object(wired).to_string())?)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What `snmpget` reads of a plug now.
    pub fn state(&self, plug: u32) -> impl Future<Output = Result<Power>> + use<> {
        let (oid, [on, off]) = self.model.status(plug);
        let address = self.address();
        async move {
            let read = tokio::task::spawn_blocking(move || {
                let mut snmpget = Command::new("snmpget");
                snmpget.args(["-v2c", "-c", READER, "-m", "", "-Oqv", "-t", "2", "-r", "1"]);
                snmpget.args([&address, &oid]).output()
            });
            let read = read.await?.context("failed to start snmpget: cargo xtask setup")?;
            let said = String::from_utf8(read.stdout)?;
            ensure!(read.status.success(), "snmpget: {}", String::from_utf8_lossy(&read.stderr));
            match said.trim() {
                number if number == on => Ok(Power::On),
                number if number == off => Ok(Power::Off),
                other => bail!("snmpget reads {other:?} of plug {plug}"),
            }
        }
    }

    /// The plugs that are off.
    pub async fn dark(&self) -> Result<Vec<u32>> {
        let mut dark = Vec::new();
        for plug in 1..=8 {
            if self.state(plug).await? == Power::Off {
                dark.push(plug);
            }
        }
        Ok(dark)
    }

    /// What was written and taken, in order: `.OID = NUMBER`.
    pub fn sets(&self) -> Result<Vec<String>> {
        match fs::read_to_string(self.folder.join("sets.log")) {
            Ok(log) => Ok(log.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// From now on this goes wrong (`tables.py` says what can).
    pub fn fail(&self, faults: &str) -> Result<()> {
        Ok(fs::write(self.folder.join("faults"), faults)?)
    }
}

fn settings(folder: &Path, model: Model, port: u16) -> Result<String> {
    let mut text = format!(
        "agentaddress udp:127.0.0.1:{port}\nsysdescr simulated {}\n\
         rocommunity {READER} 127.0.0.1\nrwcommunity {WRITER} 127.0.0.1\n\
         createUser {LOOKER}\nrouser {LOOKER} noauth\n",
        model.word()
    );
    for User { name, protocols: (auth, privacy), .. } in &USERS {
        write!(text, "createUser {name} {auth} {AUTH}")?;
        match privacy {
            Some(privacy) => writeln!(text, " {privacy} {PRIVACY}\nrwuser {name} priv")?,
            None => writeln!(text, "\nrwuser {name} auth")?,
        }
    }
    let handler = repository().join("tests/sims/snmp/tables.py");
    for root in model.roots() {
        let (handler, word, folder) = (handler.display(), model.word(), folder.display());
        writeln!(text, "pass_persist {root} /usr/bin/python3 {handler} {word} {folder}")?;
    }
    Ok(text)
}
