//! A fence method as the fence agent that cluster managers know: `key=value` lines on stdin or options,
//! their words for actions, their exit codes (FenceAgentAPI of ClusterLabs/fence-agents).
//!
//! An `off` ends well only when a later read said off. Not here: what is read and sent ([`super::hand`]).

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use node_remedy_api::plan::{Meaning, meaning, plugin_of, value_of};
use node_remedy_sandbox::manifest::{Ability, Kind};
use node_remedy_sandbox::{
    Action, Authorities, Failure, Manifest, PlugState, PropertyKind, Secret, Trust,
};
use zeroize::Zeroizing;

use super::hand::{BUNDLE_BYTES_MAX, Hand, PASSWORD_BYTES_MAX, Reach, load, read_short};
use super::{EXIT_OFF, Outcome, Sent};
use crate::cli::out::{out, outln};

mod metadata;

/// What stdin may hold: a few dozen lines.
const STDIN_BYTES_MAX: u64 = 64 << 10;
/// Seconds that an agent has where nobody says otherwise: the power time-out that agents have.
const TIMEOUT_S: u64 = 60;
/// The credential that versions 1 and 2c of SNMP have.
const COMMUNITY: &str = "community";
/// A `delay` beyond an hour is a mistake.
const DELAY_S_MAX: u64 = 3_600;

/// Options of every agent, with the letter, the name on stdin, and what they mean.
pub(super) const OPTIONS: &[(char, &str, &str, &str)] = &[
    ('o', "action", "action", "What to do"),
    ('a', "ip", "ip", "Address of the device: HOST or HOST:PORT"),
    ('u', "ipport", "ipport", "Port of the device, where the address names none"),
    ('l', "username", "username", "User name"),
    ('p', "password", "password", "Password; by stdin or in a file, it is not seen by other users"),
    (
        'f',
        "password-file",
        "password_file",
        "File with the password; its last newline is not part of it",
    ),
    ('n', "plug", "plug", "Outlet, port or instance on the device"),
    ('D', "delay", "delay", "Seconds to wait before anything is done"),
    ('t', "power-timeout", "power_timeout", "Seconds for the whole action"),
    ('C', "tls-ca", "tls_ca", "File with the authorities that sign the device's certificate"),
    ('P', "tls-pin", "tls_pin", "sha256//BASE64 of the device's key"),
    ('i', "ssl-insecure", "ssl_insecure", "Whoever answers is the device"),
];

/// What an agent was told.
#[derive(Default)]
struct Told {
    action: Option<String>,
    plug: Option<String>,
    nodename: Option<String>,
    address: Option<String>,
    port: Option<String>,
    username: Option<String>,
    password: Option<Zeroizing<String>>,
    parameters: BTreeMap<String, String>,
    secrets: BTreeMap<String, Zeroizing<String>>,
    trust: Trust,
    delay: Duration,
    timeout: Option<Duration>,
}

/// The agent that a program of this name is, and its method: `fence_ipmilan`, `fence_redfish`.
pub fn named(program: &str) -> Option<(String, String)> {
    let name = Path::new(program).file_name()?.to_str()?;
    let own = name.strip_prefix("fence_")?;
    let method = plugin_of(name).unwrap_or_else(|| own.replace('_', "-"));
    Some((name.to_owned(), method))
}

/// Carries out what arguments or, where there are none, stdin say; `name` is the agent's own.
pub async fn agent(name: &str, method: &str, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (executor, plugin) = load(method)?;
    let manifest = plugin.manifest().clone();
    if arguments.iter().any(|argument| matches!(argument.as_str(), "-h" | "--help")) {
        out!("{}", metadata::help(name, &manifest));
        return Ok(ExitCode::SUCCESS);
    }
    let told = if arguments.is_empty() {
        from_lines(&manifest, &stdin()?)?
    } else {
        from_options(&manifest, arguments)?
    };
    let is_fabric = manifest.kind != Kind::Power;
    let usual = if is_fabric { "off" } else { "reboot" };
    let action = told.action.clone().unwrap_or_else(|| usual.to_owned());
    if matches!(action.as_str(), "metadata" | "meta-data") {
        out!("{}", metadata::xml(name, &manifest));
        return Ok(ExitCode::SUCCESS);
    }
    if is_fabric && action == "reboot" {
        bail!("{method} cuts a path and cannot reboot; expected off or on");
    }
    let delay = told.delay;
    let timeout = told.timeout.unwrap_or(Duration::from_secs(TIMEOUT_S));
    let reach = told.reach(&manifest, timeout)?;
    let mut hand = Hand::open(executor, plugin, reach).await?;
    if matches!(action.as_str(), "validate-all" | "validate") {
        return Ok(ExitCode::SUCCESS);
    }
    tokio::time::sleep(delay).await;
    hand.begin_anew(timeout);
    carry_out(&mut hand, &action, timeout).await
}

async fn carry_out(hand: &mut Hand, action: &str, timeout: Duration) -> anyhow::Result<ExitCode> {
    let said = |failure: Failure| anyhow::anyhow!(failure.detail);
    match action {
        "status" => {
            let state = hand.read(None).await.map_err(said)?.state;
            outln!("Status: {}", shown(state));
            Ok(match state {
                PlugState::On => ExitCode::SUCCESS,
                PlugState::Off => ExitCode::from(EXIT_OFF),
                PlugState::Transitioning | PlugState::Unknown => ExitCode::FAILURE,
            })
        }
        "monitor" => {
            hand.once(Action::Monitor).await.map_err(said)?;
            Ok(ExitCode::SUCCESS)
        }
        "list" | "list-status" => {
            for plug in hand.plugs().await.map_err(said)? {
                match action {
                    "list" => outln!("{},{}", plug.plug, plug.name),
                    _ => outln!("{},{},{}", plug.plug, plug.name, shown(plug.state)),
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        "off" => switch(hand, Action::Off, PlugState::Off).await,
        "on" => switch(hand, Action::On, PlugState::On).await,
        "reboot" => {
            let off = hand.switch(Action::Off, PlugState::Off).await.map_err(said)?;
            confirmed(off.outcome())?;
            hand.begin_anew(timeout);
            let on = hand.switch(Action::On, PlugState::On).await.map_err(said)?;
            confirmed(on.outcome()).context("it is off, and the on was not confirmed")?;
            outln!("Success: Rebooted");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!(
            "found action {other:?}, expected on, off, reboot, status, monitor, list, \
             list-status, metadata or validate-all"
        ),
    }
}

async fn switch(hand: &mut Hand, action: Action, wanted: PlugState) -> anyhow::Result<ExitCode> {
    let sent = hand.switch(action, wanted).await.map_err(|failure| anyhow::anyhow!(failure.detail));
    confirmed(Sent::outcome(sent?))?;
    outln!("Success: Powered {}", shown(wanted));
    Ok(ExitCode::SUCCESS)
}

fn confirmed(outcome: Outcome) -> anyhow::Result<()> {
    if outcome.confirmed { Ok(()) } else { Err(anyhow::anyhow!(outcome.detail)) }
}

fn shown(state: PlugState) -> &'static str {
    match state {
        PlugState::On => "ON",
        PlugState::Off => "OFF",
        PlugState::Transitioning => "TRANSITIONING",
        PlugState::Unknown => "UNKNOWN",
    }
}

fn stdin() -> anyhow::Result<Zeroizing<String>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        bail!("pass options (--help lists them), or key=value lines on stdin");
    }
    let mut lines = Zeroizing::new(String::new());
    stdin.take(STDIN_BYTES_MAX).read_to_string(&mut lines).context("failed to read stdin")?;
    Ok(lines)
}

/// What key=value lines say. Keys that nobody knows are left alone, as the API asks.
fn from_lines(manifest: &Manifest, lines: &str) -> anyhow::Result<Told> {
    let mut told = Told::default();
    for line in lines.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((key, value)) = line.split_once('=') {
            told.take(manifest, key.trim(), value)?;
        }
    }
    Ok(told)
}

/// What options say: `-o off`, `--action off`, `--action=off`. One that nobody knows is a mistake.
fn from_options(manifest: &Manifest, arguments: &[String]) -> anyhow::Result<Told> {
    let mut told = Told::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            Some(_) | None => (argument.as_str(), None),
        };
        let name = match name.strip_prefix("--") {
            Some(long) => long.to_owned(),
            None => letter(name).with_context(|| format!("found {name:?}, expected an option"))?,
        };
        if name == "verbose" {
            continue;
        }
        let is_flag = name == "ssl-insecure";
        let value = match inline {
            Some(value) => value,
            None if is_flag => "1".to_owned(),
            None => rest.next().with_context(|| format!("--{name}: found no value"))?.clone(),
        };
        if !told.take(manifest, &name, &value)? {
            bail!("--{name}: there is no such option; --help lists them");
        }
    }
    Ok(told)
}

/// The long name of a letter.
fn letter(name: &str) -> Option<String> {
    let letter = name.strip_prefix('-').and_then(|name| name.parse::<char>().ok())?;
    match letter {
        'v' => Some("verbose".to_owned()),
        letter => {
            let found = OPTIONS.iter().find(|(one, _, _, _)| *one == letter);
            found.map(|(_, long, _, _)| (*long).to_owned())
        }
    }
}

impl Told {
    /// Takes one thing; says whether anybody knows what it is.
    fn take(&mut self, manifest: &Manifest, key: &str, value: &str) -> anyhow::Result<bool> {
        let key = key.replace('-', "_").to_lowercase();
        let own = key.replace('_', "-");
        let is_yes = matches!(value, "1" | "true" | "yes" | "on");
        match key.as_str() {
            "password_file" => {
                let bytes = read_short("password_file", Path::new(value), PASSWORD_BYTES_MAX)?;
                let text = Zeroizing::new(String::from_utf8(bytes).context("password_file")?);
                let line = text.strip_suffix('\n').unwrap_or(&text);
                self.password = Some(Zeroizing::new(line.to_owned()));
            }
            "nodename" => self.nodename = Some(value.to_owned()),
            "delay" => self.delay = seconds(&key, value)?.min(Duration::from_secs(DELAY_S_MAX)),
            "power_timeout" => self.timeout = Some(seconds(&key, value)?),
            "tls_ca" => {
                let pem = read_short("tls_ca", Path::new(value), BUNDLE_BYTES_MAX)?;
                let authorities =
                    Authorities::from_pem(&pem).with_context(|| format!("tls_ca {value}"))?;
                self.trust = Trust::Authorities(authorities);
            }
            "tls_pin" => self.trust = Trust::Pins([value.parse().context("tls_pin")?].into()),
            "ssl_insecure" => {
                if is_yes {
                    self.trust = Trust::Insecure;
                }
            }
            // As agents that speak SNMP call it.
            "snmp_priv_passwd" => {
                self.secrets.insert("privacy".to_owned(), Zeroizing::new(value.to_owned()));
            }
            _ if manifest.asks.credentials.iter().any(|ask| ask.name == own) => {
                self.secrets.insert(own, Zeroizing::new(value.to_owned()));
            }
            _ if manifest.parameters.properties.contains_key(&own) => {
                self.parameters.insert(own, value.to_owned());
            }
            _ => return self.take_common(manifest, &key, value),
        }
        Ok(true)
    }

    /// Takes what all agents have, under any of its names.
    fn take_common(&mut self, manifest: &Manifest, key: &str, value: &str) -> anyhow::Result<bool> {
        match meaning(&manifest.name, key) {
            Meaning::Parameter("address") => self.address = Some(value.to_owned()),
            Meaning::Parameter(name) => {
                let value = value_of(&manifest.name, name, value);
                self.parameters.insert(name.to_owned(), value);
            }
            Meaning::Port => self.port = Some(value.to_owned()),
            Meaning::Plug => self.plug = Some(value.to_owned()),
            Meaning::Action => self.action = Some(value.to_owned()),
            Meaning::User => self.username = Some(value.to_owned()),
            Meaning::Password => self.password = Some(Zeroizing::new(value.to_owned())),
            Meaning::Given(_) | Meaning::Ignored => {}
            Meaning::Refused(instead) => bail!("{key} is not taken here; expected {instead}"),
            Meaning::Secret | Meaning::IdentityKey | Meaning::SecretKey => return Ok(false),
            Meaning::HandOn | Meaning::Unknown => return Ok(false),
        }
        Ok(true)
    }

    fn reach(self, manifest: &Manifest, timeout: Duration) -> anyhow::Result<Reach> {
        let mut parameters = self.parameters;
        if let Some(address) = self.address {
            let address = match &self.port {
                Some(port) if !has_port(&address) => format!("{address}:{port}"),
                Some(_) | None => address,
            };
            parameters.entry("address".to_owned()).or_insert(address);
        }
        // Agents that speak SNMP speak version 1 where nobody says otherwise; ours, version 3.
        if self.secrets.contains_key(COMMUNITY) {
            parameters.entry("version".to_owned()).or_insert_with(|| "1".to_owned());
        }
        let asks = &manifest.asks.credentials;
        let first = asks.iter().find(|ask| !ask.optional).or_else(|| asks.first());
        let mut credentials = BTreeMap::new();
        for (name, secret) in self.secrets {
            credentials.insert(name, secret_of(None, &secret));
        }
        if let Some(first) = first {
            match (self.password, self.username) {
                (Some(password), identity) => {
                    credentials.insert(first.name.clone(), secret_of(identity, &password));
                }
                (None, Some(identity)) if first.optional => {
                    credentials.insert(first.name.clone(), secret_of(Some(identity), ""));
                }
                (None, _) if first.optional || credentials.contains_key(&first.name) => {}
                (None, _) => bail!("{} needs a password", manifest.name),
            }
        }
        // The node's name is a plug only where a device has several.
        let has_plugs = manifest.actions.contains(&Ability::Plugs);
        let plug = self.plug.or(self.nodename.filter(|_| has_plugs)).unwrap_or_default();
        Ok(Reach { parameters, credentials, plug, trust: self.trust, timeout })
    }
}

fn secret_of(identity: Option<String>, secret: &str) -> Secret {
    Secret { identity, bytes: Zeroizing::new(secret.as_bytes().to_vec()) }
}

/// Whether an address names a port. One of IPv6 does only with brackets.
fn has_port(address: &str) -> bool {
    let rest = address.rsplit_once(']').map_or(address, |(_, rest)| rest);
    rest.matches(':').count() == 1
}

fn seconds(key: &str, value: &str) -> anyhow::Result<Duration> {
    let seconds = value.trim_end_matches('s').parse();
    let seconds = seconds.with_context(|| format!("{key}: found {value:?}, expected seconds"))?;
    Ok(Duration::from_secs(seconds))
}

/// The type of a parameter, as metadata and help name it.
fn type_of(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::String => "string",
        PropertyKind::Integer => "integer",
        PropertyKind::Boolean => "boolean",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPMI: &str = include_str!("../../../../../plugins/ipmi/manifest.json");
    const REDFISH: &str = include_str!("../../../../../plugins/redfish/manifest.json");

    fn manifest(text: &str) -> Manifest {
        Manifest::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_program_is_the_agent_that_its_name_says() {
        let method = |program: &str| named(program).map(|(_, method)| method);
        assert_eq!(method("/usr/sbin/fence_ipmilan").as_deref(), Some("ipmi"));
        assert_eq!(method("fence_apc_snmp").as_deref(), Some("apc-pdu"));
        assert_eq!(method("fence_redfish").as_deref(), Some("redfish"));
        assert_eq!(method("fence_my_device").as_deref(), Some("my-device"));
        assert_eq!(method("/usr/bin/node-remedy"), None);
    }

    #[test]
    fn lines_and_options_say_the_same() {
        let manifest = manifest(REDFISH);
        let lines = "action=off\nipaddr=192.0.2.7\nipport=8443\nlogin=fence\npasswd=a=b c\nport=7\n\
                     nodename=n1\nunknown=x\nssl_insecure=1\npower_timeout=30\n\n#x=y\nverbose=1";
        let options = [
            "-o",
            "off",
            "--ip=192.0.2.7",
            "-u",
            "8443",
            "-l",
            "fence",
            "-p",
            "a=b c",
            "--plug",
            "7",
            "--ssl-insecure",
            "--power-timeout",
            "30",
            "-v",
        ];
        let options = options.map(str::to_owned);
        for told in [from_lines(&manifest, lines), from_options(&manifest, &options)] {
            let told = told.unwrap();
            assert_eq!(told.action.as_deref(), Some("off"));
            assert_eq!(
                (told.timeout, &told.trust),
                (Some(Duration::from_secs(30)), &Trust::Insecure)
            );
            let reach = told.reach(&manifest, Duration::from_secs(30)).unwrap();
            assert_eq!(reach.parameters["address"], "192.0.2.7:8443");
            assert_eq!(reach.plug, "7");
            let account = &reach.credentials["account"];
            assert_eq!(account.identity.as_deref(), Some("fence"));
            assert_eq!(account.bytes.as_slice(), b"a=b c");
        }
    }

    #[test]
    fn a_node_s_name_is_no_plug_of_a_device_that_has_none() {
        for (text, plug) in [(IPMI, ""), (REDFISH, "n1")] {
            let manifest = manifest(text);
            let told = from_lines(&manifest, "nodename=n1\nip=192.0.2.7\npassword=x").unwrap();
            assert_eq!(told.reach(&manifest, Duration::ZERO).unwrap().plug, plug);
        }
    }

    #[test]
    fn a_plugin_s_own_parameters_are_taken_by_both_spellings() {
        let manifest = manifest(IPMI);
        for key in ["cipher_suite", "cipher-suite", "cipher"] {
            let told = from_lines(&manifest, &format!("{key}=3")).unwrap();
            assert_eq!(told.parameters["cipher-suite"], "3", "{key}");
        }
        let refusal = from_lines(&manifest, "method=cycle").err().unwrap().to_string();
        assert!(refusal.contains("never cycled"), "{refusal}");
        let unknown = from_options(&manifest, &["--surprise=1".to_owned()]);
        assert!(unknown.err().unwrap().to_string().contains("no such option"));
    }

    /// A parameter of ours under a name that agents have for something else could not be set.
    #[test]
    fn no_built_in_method_has_a_parameter_that_agents_call_something_else() {
        let plugins = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins");
        let mut seen = 0;
        for entry in std::fs::read_dir(plugins).unwrap() {
            let file = entry.unwrap().path().join("manifest.json");
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            let manifest = manifest(&text);
            if manifest.kind == Kind::Watch {
                continue;
            }
            for name in manifest.parameters.properties.keys().filter(|name| *name != "address") {
                let found = meaning(&manifest.name, name);
                let is_free = matches!(found, Meaning::HandOn | Meaning::Unknown)
                    || matches!(found, Meaning::Parameter(known) if known == name);
                assert!(is_free, "{}: {name}", file.display());
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen} parameters");
    }
}
