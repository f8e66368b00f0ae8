//! Management controllers for tests: Debian's `ipmi_sim`, or `bmc17.py` for suite 17 and faults.
//!
//! Both keep their machine's power in a file, which is the truth that [`crate::Machine`] lives by,
//! and log what clients asked, what they were told and what really changed.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{Process, Program, free_udp_port, repository};
use crate::time::until;

/// Both start in tenths of a second on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// A free port may be taken before it is bound: rare, so a few tries do.
const START_TRIES: usize = 5;
/// A BMC on loopback answers in milliseconds; a lost question is asked again after this.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Get System GUID outside any session, in the wrapper of IPMI 1.5 (IPMI 2.0, 13.6 and 22.14).
const GET_SYSTEM_GUID: [u8; 21] =
    [6, 0, 0xff, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0x20, 0x18, 0xc8, 0x81, 0, 0x37, 0x48];
/// Where the GUID stands in the answer.
const GUID_AT: std::ops::Range<usize> = 21..37;
/// The administrator of every simulated BMC.
pub const USERNAME: &str = "admin";
/// The administrator's password.
pub const PASSWORD: &str = "Zq7xKw93Lm-Tweet";

/// A machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// Everything on it runs.
    On,
    /// Nothing on it runs.
    Off,
}

/// Which simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's: suites 0 to 3.
    IpmiSim,
    /// Ours: suites 3 and 17, with faults.
    Bmc17,
}

/// A system GUID as 32 hexadecimal digits, in the order it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guid(String);

impl Guid {
    /// A GUID that no other machine has, also not one of another test process: a BMC that answers
    /// with it is the one that was started with it.
    pub(crate) fn fresh() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        Self::numbered(std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
    }

    fn numbered(process: u32, number: u32) -> Self {
        Self(format!("5ca1ab1e000040008000{process:06x}{number:06x}"))
    }

    /// With hyphens: how a node's `systemUUID` prints it.
    #[must_use]
    pub fn as_uuid(&self) -> String {
        let mut uuid = String::with_capacity(36);
        for (position, digit) in self.0.chars().enumerate() {
            if matches!(position, 8 | 12 | 16 | 20) {
                uuid.push('-');
            }
            uuid.push(digit);
        }
        uuid
    }
}

/// One event of a BMC's power log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerEvent {
    /// When, by the wall clock.
    pub at: jiff::Timestamp,
    /// What happened.
    pub what: PowerChange,
    /// To or about which state.
    pub power: Power,
}

/// What happened in a [`PowerEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerChange {
    /// A client asked for the state and was told this.
    Read,
    /// A client asked for this state.
    Asked,
    /// The machine's power really changed to this.
    Became,
}

/// A machine's power as its file tells it.
#[derive(Clone, Debug)]
pub struct PowerFile(PathBuf);

impl PowerFile {
    /// Of a machine that nobody can switch off: there is no such file.
    pub(crate) fn always_on() -> Self {
        Self(PathBuf::new())
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the file says now. Without a file nobody has ever switched it off.
    #[must_use]
    pub fn read(&self) -> Power {
        match fs::read_to_string(&self.0) {
            Ok(text) if text.trim() == "0" => Power::Off,
            Ok(_) | Err(_) => Power::On,
        }
    }
}

/// A running BMC; dropped, it is gone and its files stay.
#[derive(Debug)]
pub struct Bmc {
    folder: PathBuf,
    port: u16,
    guid: Guid,
    kind: Kind,
    process: Process,
    /// Holds the port of a BMC that is dead.
    silence: Option<UdpSocket>,
}

impl Bmc {
    /// Starts one with its files in `folder`, a GUID of its own and its machine on, and makes sure
    /// that it is this one that answers.
    pub async fn start(kind: Kind, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("power"), "1\n")?;
        let guid = Guid::fresh();
        for _ in 0..START_TRIES {
            let port = free_udp_port()?;
            let mut process = start_process(kind, folder, &guid, port)?;
            if answers(&mut process, &guid, port).await? {
                let folder = folder.to_owned();
                return Ok(Self { folder, port, guid, kind, process, silence: None });
            }
        }
        bail!("failed to start a BMC: see {}", folder.display())
    }

    /// Address and port, as a fence method names them.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The GUID that it reports.
    #[must_use]
    pub fn guid(&self) -> &Guid {
        &self.guid
    }

    /// The file that its machine lives by.
    #[must_use]
    pub fn power_file(&self) -> PowerFile {
        PowerFile(self.folder.join("power"))
    }

    /// The machine's power, seen from outside: no client of the BMC.
    #[must_use]
    pub fn power(&self) -> Power {
        self.power_file().read()
    }

    /// Presses the machine's button: the change stands in the log, but nobody asked for it.
    pub fn press_button(&self, power: Power) -> Result<()> {
        let (digit, word) = match power {
            Power::On => ("1", "on"),
            Power::Off => ("0", "off"),
        };
        let aside = self.folder.join("power.button");
        fs::write(&aside, digit)?;
        fs::rename(&aside, self.folder.join("power"))?;
        let now = jiff::Timestamp::now();
        let line = format!("{}.{:09} became {word}\n", now.as_second(), now.subsec_nanosecond());
        append(&self.log_file(), &line)
    }

    /// Sets faults, `name value` a line. `ipmi_sim` knows `stuck`, `fail`, `delay` and `hold` (both
    /// in seconds); `bmc17.py` those that it documents. An empty text heals it.
    pub fn set_faults(&self, faults: &str) -> Result<()> {
        match self.kind {
            Kind::Bmc17 => fs::write(self.folder.join("faults"), faults)?,
            Kind::IpmiSim => {
                for name in ["stuck", "fail", "delay", "hold"] {
                    let path = self.folder.join(format!("power.{name}"));
                    let value = faults.lines().find_map(|line| line.strip_prefix(name));
                    match value {
                        Some(value) => fs::write(&path, value.trim())?,
                        None if path.exists() => fs::remove_file(&path)?,
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// The BMC itself dies and its address falls silent; the machine runs on. Nobody else gets the
    /// port meanwhile.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill9()?;
        self.silence = Some(UdpSocket::bind((Ipv4Addr::LOCALHOST, self.port))?);
        Ok(())
    }

    /// A BMC that was killed answers again on the same port.
    pub async fn revive(&mut self) -> Result<()> {
        self.silence = None;
        self.process = start_process(self.kind, &self.folder, &self.guid, self.port)?;
        if !answers(&mut self.process, &self.guid, self.port).await? {
            bail!("failed to revive a BMC: see {}", self.folder.display());
        }
        Ok(())
    }

    /// How often clients asked to switch the machine off.
    pub fn offs(&self) -> Result<usize> {
        self.count_asked(Power::Off)
    }

    /// How often clients asked to switch the machine on.
    pub fn ons(&self) -> Result<usize> {
        self.count_asked(Power::On)
    }

    /// Everything that happened to the machine's power, in order.
    pub fn log(&self) -> Result<Vec<PowerEvent>> {
        read_log(&self.log_file())
    }

    /// The cipher suites of the sessions that were opened, in order; only `bmc17.py` tells.
    pub fn cipher_suites(&self) -> Result<Vec<u8>> {
        let text = match fs::read_to_string(self.folder.join("log")) {
            Ok(text) => text,
            Err(failure) if failure.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(failure) => return Err(failure.into()),
        };
        let opened = text.lines().filter_map(|line| line.strip_prefix("open algs="));
        opened
            .map(|line| match line.split_once(')').map(|(algorithms, _)| algorithms) {
                Some("(1, 1, 1") => Ok(3),
                Some("(3, 4, 1") => Ok(17),
                other => bail!("unknown algorithms {other:?}"),
            })
            .collect()
    }

    /// The file behind [`Bmc::log`].
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.folder.join("power.log")
    }

    fn count_asked(&self, power: Power) -> Result<usize> {
        let asked = |event: &&PowerEvent| event.what == PowerChange::Asked && event.power == power;
        Ok(self.log()?.iter().filter(asked).count())
    }
}

/// Reads a BMC's power log. A BMC that nobody has talked to has none.
pub fn read_log(path: &Path) -> Result<Vec<PowerEvent>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(failure) if failure.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(failure) => return Err(failure.into()),
    };
    let mut events: Vec<_> = text
        .lines()
        .map(|line| parse_event(line).with_context(|| format!("failed to read {line:?}")))
        .collect::<Result<_>>()?;
    // Two calls of the back-end may finish in another order than they began.
    events.sort_by_key(|event| event.at);
    Ok(events)
}

fn parse_event(line: &str) -> Result<PowerEvent> {
    let mut words = line.split_whitespace();
    let (at, what, power) = (words.next(), words.next(), words.next());
    let (seconds, nanoseconds) =
        at.and_then(|text| text.split_once('.')).context("no time with a fraction")?;
    Ok(PowerEvent {
        at: jiff::Timestamp::new(seconds.parse()?, nanoseconds.parse()?)?,
        what: match what {
            Some("read") => PowerChange::Read,
            Some("asked") => PowerChange::Asked,
            Some("became") => PowerChange::Became,
            other => bail!("unknown event {other:?}"),
        },
        power: match power {
            Some("on") => Power::On,
            Some("off") => Power::Off,
            other => bail!("unknown power {other:?}"),
        },
    })
}

fn start_process(kind: Kind, folder: &Path, guid: &Guid, port: u16) -> Result<Process> {
    let sims = repository().join("tests/sims/ipmi");
    let (port, folder_text) = (port.to_string(), folder.display().to_string());
    let (path, arguments) = match kind {
        Kind::IpmiSim => {
            (sims.join("mkbmc.sh"), vec![folder_text, port, PASSWORD.to_owned(), guid.0.clone()])
        }
        Kind::Bmc17 => {
            let script = sims.join("bmc17.py").display().to_string();
            let user = format!("{USERNAME}:{PASSWORD}:4");
            let options = ["--guid".to_owned(), guid.0.clone(), "--user".to_owned(), user];
            let mut arguments = vec![script, port, folder_text];
            arguments.extend(options);
            (repository().join("target/venv/bin/python"), arguments)
        }
    };
    Process::start(&Program { name: "bmc", path: &path, arguments: &arguments, logs: folder })
}

/// Waits until the BMC on this port says who it is: whether it is the one that was started.
async fn answers(process: &mut Process, guid: &Guid, port: u16) -> Result<bool> {
    until("the BMC says its GUID", READY_WITHIN, || {
        let ended = process.has_ended();
        async move {
            if ended? {
                return Ok(Some(false));
            }
            Ok(ask_guid(port).await?.map(|told| told == *guid))
        }
    })
    .await
}

async fn ask_guid(port: u16) -> Result<Option<Guid>> {
    let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect((Ipv4Addr::LOCALHOST, port)).await?;
    socket.send(&GET_SYSTEM_GUID).await?;
    let mut answer = [0; 64];
    let Ok(length) = tokio::time::timeout(ANSWER_WITHIN, socket.recv(&mut answer)).await else {
        return Ok(None);
    };
    let told = answer.get(..length?).and_then(|answer| answer.get(GUID_AT));
    let told = told.context("no GUID in the answer")?;
    Ok(Some(Guid(format!("{:032x}", u128::from_be_bytes(told.try_into()?)))))
}

fn append(path: &Path, line: &str) -> Result<()> {
    use std::io::Write;
    let mut file = fs::File::options().create(true).append(true).open(path)?;
    Ok(file.write_all(line.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_prints_as_a_uuid() {
        assert_eq!(Guid::numbered(1, 26).as_uuid(), "5ca1ab1e-0000-4000-8000-00000100001a");
    }

    #[test]
    fn a_power_log_line_is_read_and_a_torn_one_refused() {
        let event = parse_event("1763725000.123456789 became off").unwrap();
        assert_eq!((event.what, event.power), (PowerChange::Became, Power::Off));
        assert_eq!(event.at.as_nanosecond() % 1_000_000_000, 123_456_789);
        assert!(parse_event("1763725000.12 became").is_err());
        assert!(parse_event("1763725000 read off").is_err());
    }
}
