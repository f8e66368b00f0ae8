//! What an agent was told, under any of the names that fence agents have for it, and how the device is
//! reached by that. Not here: how options and lines are written ([`crate::fence::agent::options`]).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use node_remedy_api::plan::{Meaning, meaning, value_of, with_port};
use node_remedy_sandbox::manifest::Ability;
use node_remedy_sandbox::{Authorities, Manifest, Secret, Trust};
use zeroize::Zeroizing;

use crate::fence::session::{BUNDLE_BYTES_MAX, PASSWORD_BYTES_MAX, Reach, read_short};

/// The credential that versions 1 and 2c of SNMP have.
const COMMUNITY: &str = "community";
/// A `delay` beyond an hour is a mistake.
const DELAY_S_MAX: u64 = 3_600;
/// How much an agent says; nobody needs to hear that it has no effect.
pub(super) const TALK: &[&str] = &["verbose", "verbose_level", "quiet", "debug", "debug_file"];

/// What an agent was told.
#[derive(Default)]
pub(super) struct AgentOptions {
    pub(super) action: Option<String>,
    plug: Option<String>,
    /// The path of the one system of a BMC, which goes before any plug.
    system: Option<String>,
    nodename: Option<String>,
    address: Option<String>,
    port: Option<String>,
    username: Option<String>,
    password: Option<Zeroizing<String>>,
    pub(super) parameters: BTreeMap<String, String>,
    secrets: BTreeMap<String, Zeroizing<Vec<u8>>>,
    pub(super) trust: Trust,
    /// What was said and has no effect here.
    pub(super) ignored: Vec<String>,
    pub(super) delay: Duration,
    pub(super) timeout: Option<Duration>,
}

impl AgentOptions {
    /// Whether nothing came of what was taken.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let texts =
            [&self.action, &self.plug, &self.system, &self.address, &self.port, &self.username];
        texts.iter().all(|text| text.is_none())
            && self.password.is_none()
            && self.parameters.is_empty()
            && self.secrets.is_empty()
            && self.ignored.is_empty()
            && self.trust == Trust::default()
            && self.delay.is_zero()
            && self.timeout.is_none()
    }

    /// Takes one thing; says whether anybody knows what it is.
    pub(super) fn take(
        &mut self,
        manifest: &Manifest,
        key: &str,
        value: &str,
    ) -> anyhow::Result<bool> {
        let key = key.replace('-', "_").to_lowercase();
        let own = key.replace('_', "-");
        let asks = |name: &str| manifest.asks.credentials.iter().any(|ask| ask.name == name);
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
            "passwd_script" | "password_script" | "snmp_priv_passwd_script" => {
                bail!(
                    "{key}: no script is run; expected password_file=FILE, or the secret on stdin"
                )
            }
            // As agents that speak IPMI and SNMP call them.
            "hexadecimal_kg" if asks("kg") => {
                self.secrets.insert("kg".to_owned(), from_hexadecimal(value)?);
            }
            "cacert" if value.is_empty() => {}
            "cacert" => return self.take(manifest, "tls_ca", value),
            "snmp_priv_passwd" if asks("privacy") => {
                self.secrets.insert("privacy".to_owned(), bytes(value));
            }
            _ if asks(&own) => {
                self.secrets.insert(own, bytes(value));
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
            Meaning::System => self.system = Some(value.to_owned()),
            Meaning::Plug => self.plug = Some(value.to_owned()),
            Meaning::Action => self.action = Some(value.to_owned()),
            Meaning::User => self.username = Some(value.to_owned()),
            Meaning::Password => self.password = Some(Zeroizing::new(value.to_owned())),
            Meaning::Given(words, _) if words.contains(&value.to_lowercase().as_str()) => {}
            Meaning::Given(_, what) => bail!("{key}: found {value:?}, expected {what}"),
            Meaning::Ignored if TALK.contains(&key) => {}
            Meaning::Ignored => self.ignored.push(key.to_owned()),
            Meaning::Refused(instead) => bail!("{key} is not taken here; expected {instead}"),
            Meaning::SecretKey if manifest.name == "aws" => {
                self.password = Some(Zeroizing::new(value.to_owned()));
            }
            Meaning::Secret | Meaning::IdentityKey | Meaning::SecretKey => return Ok(false),
            Meaning::HandOn | Meaning::Unknown => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn reach(self, manifest: &Manifest, timeout: Duration) -> anyhow::Result<Reach> {
        let mut parameters = self.parameters;
        if let Some(address) = self.address {
            let address = match &self.port {
                Some(port) => with_port(&address, port),
                None => address,
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
            credentials.insert(name, Secret { identity: None, bytes: secret });
        }
        if let Some(first) = first {
            match (self.password, self.username) {
                (Some(password), identity) => {
                    let secret = Secret { identity, bytes: bytes(&password) };
                    credentials.insert(first.name.clone(), secret);
                }
                (None, Some(identity)) if first.optional => {
                    let secret = Secret { identity: Some(identity), bytes: bytes("") };
                    credentials.insert(first.name.clone(), secret);
                }
                (None, _) if first.optional || credentials.contains_key(&first.name) => {}
                (None, _) => bail!("{} needs a password", manifest.name),
            }
        }
        let plug = plug(manifest, self.system, self.plug, self.nodename);
        Ok(Reach { parameters, credentials, plug, trust: self.trust, timeout })
    }
}

/// What is switched. The node's name is a plug only where a device has several, and never a system of a
/// BMC: cluster managers say it as the plug, too, to an agent that has none.
fn plug(
    manifest: &Manifest,
    system: Option<String>,
    plug: Option<String>,
    nodename: Option<String>,
) -> String {
    let has_systems = meaning(&manifest.name, "systems_uri") == Meaning::System;
    let plug = match system {
        Some(system) => Some(system),
        None if has_systems => plug.filter(|plug| nodename.as_ref() != Some(plug)),
        None => plug.or(nodename.filter(|_| manifest.actions.contains(&Ability::Plugs))),
    };
    plug.unwrap_or_default()
}

/// A key as `0x` and hexadecimal digits, or without the `0x`.
fn from_hexadecimal(written: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let digits = written.strip_prefix("0x").unwrap_or(written).as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let is_pair = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(pair).ok().filter(|_| is_pair)?;
        u8::from_str_radix(text, 16).ok()
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    // The key itself is not repeated.
    bytes.map(Zeroizing::new).context("hexadecimal_kg: expected pairs of hexadecimal digits")
}

fn bytes(text: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(text.as_bytes().to_vec())
}

fn seconds(key: &str, value: &str) -> anyhow::Result<Duration> {
    let seconds = value.trim_end_matches('s').parse();
    let seconds = seconds.with_context(|| format!("{key}: found {value:?}, expected seconds"))?;
    Ok(Duration::from_secs(seconds))
}
