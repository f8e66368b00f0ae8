//! Options and lines as fence agents read them: `getopt`'s letters, together or with their values at them,
//! long names, and `key=value` lines. Not here: what each means ([`crate::fence::agent::told`]).

use anyhow::{Context as _, bail};
use node_remedy_api::plan::{Meaning, meaning};
use node_remedy_sandbox::{Manifest, PropertyKind};

use crate::fence::agent::told::AgentOptions;

/// Options of every agent, with the letter, the name, and what they mean. Letters are those of real agents.
pub(super) const OPTIONS: &[(Option<char>, &str, &str)] = &[
    (Some('o'), "action", "What to do"),
    (Some('a'), "ip", "Address of the device: HOST or HOST:PORT"),
    (Some('u'), "ipport", "Port of the device, where the address names none"),
    (Some('l'), "username", "User name"),
    (Some('p'), "password", "Password; by stdin or in a file, it is not seen by other users"),
    (None, "password-file", "File with the password; its last newline is not part of it"),
    (Some('n'), "plug", "Outlet, port or instance on the device"),
    (None, "delay", "Seconds to wait before anything is done"),
    (None, "power-timeout", "Seconds for the whole action"),
    (None, "tls-ca", "File with the authorities that sign the device's certificate"),
    (None, "tls-pin", "sha256//BASE64 of the device's key"),
    (None, "ssl-insecure", "Whoever answers is the device"),
];

/// Letters of agents, some with several meanings: of an agent it is the first that it has.
const LETTERS: &[(char, &str)] = &[
    ('4', "inet4-only"),
    ('6', "inet6-only"),
    ('A', "auth"),
    ('A', "pve-node-auto"),
    ('B', "snmp-priv-prot"),
    ('C', "cipher"),
    ('C', "separator"),
    ('D', "debug-file"),
    ('E', "snmp-sec-level"),
    ('L', "privlvl"),
    ('N', "pve-node"),
    ('P', "lanplus"),
    ('P', "snmp-priv-passwd"),
    ('R', "snmp-priv-passwd-script"),
    ('S', "password-script"),
    ('V', "version"),
    ('a', "access-key"),
    ('b', "snmp-auth-prot"),
    ('b', "boto3_debug"),
    ('c', "community"),
    ('c', "command-prompt"),
    ('d', "snmp-version"),
    ('d', "vmware_type"),
    ('e', "exec"),
    ('k', "identity-file"),
    ('m', "method"),
    ('q', "quiet"),
    ('r', "region"),
    ('s', "vmware-datacenter"),
    ('s', "switch"),
    ('s', "secret-key"),
    ('t', "notls"),
    ('v', "verbose"),
    ('x', "ssh"),
    ('z', "ssl"),
];

/// Options that take no value.
const FLAGS: &[&str] = &[
    "baremetalsolution",
    "disable-http-filter",
    "earlyexit",
    "help",
    "inet4-only",
    "inet6-only",
    "lanplus",
    "missing-as-off",
    "msi",
    "network-fencing",
    "notls",
    "port-as-ip",
    "pve-node-auto",
    "quiet",
    "ssh",
    "ssl",
    "ssl-insecure",
    "ssl-secure",
    "stackdriver-logging",
    "use-cookies",
    "use-sudo",
    "verbose",
    "version",
];

/// What key=value lines say. Keys that nobody knows are left alone, as the API asks.
pub(super) fn from_lines(manifest: &Manifest, lines: &str) -> anyhow::Result<AgentOptions> {
    let mut told = AgentOptions::default();
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

/// What options say: `-o off`, `-ooff`, `--action off`, `--action=off`. One that nobody knows is a mistake.
pub(super) fn from_options(
    manifest: &Manifest,
    arguments: &[String],
) -> anyhow::Result<AgentOptions> {
    let mut told = AgentOptions::default();
    let mut rest = arguments.iter();
    let next = |name: &str, value: Option<&String>| {
        value.cloned().with_context(|| format!("{name}: found no value"))
    };
    while let Some(argument) = rest.next() {
        if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if is_flag(long) => (long, "1".to_owned()),
                None => (long, next(argument, rest.next())?),
            };
            known(told.take(manifest, name, &value)?, argument)?;
            continue;
        }
        let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            bail!("found {argument:?}, expected an option; --help lists them");
        };
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let named = long_of(manifest, letter);
            let long = named.with_context(|| {
                format!("-{letter}: there is no such option; --help lists them")
            })?;
            if is_flag(long) {
                known(told.take(manifest, long, "1")?, argument)?;
                continue;
            }
            let attached: String = letters.by_ref().collect();
            let value = if attached.is_empty() { next(argument, rest.next())? } else { attached };
            known(told.take(manifest, long, &value)?, argument)?;
        }
    }
    Ok(told)
}

fn known(is_known: bool, option: &str) -> anyhow::Result<()> {
    if is_known {
        return Ok(());
    }
    let name = option.split('=').next().unwrap_or(option);
    bail!("{name}: there is no such option; --help lists them")
}

pub(super) fn is_flag(long: &str) -> bool {
    FLAGS.contains(&long.replace('_', "-").as_str())
}

/// The long name of a letter.
pub(super) fn long_of(manifest: &Manifest, letter: char) -> Option<&'static str> {
    let is_known = |long: &str| {
        manifest.parameters.properties.contains_key(long)
            || !matches!(meaning(&manifest.name, long), Meaning::HandOn | Meaning::Unknown)
    };
    let own = LETTERS.iter().find(|(one, long)| *one == letter && is_known(long));
    own.map(|(_, long)| *long).or_else(|| {
        let common = OPTIONS.iter().find(|(one, ..)| *one == Some(letter));
        common.map(|(_, long, _)| *long)
    })
}

/// Seconds that an agent has where nobody says otherwise: the power time-out that agents have.
pub(crate) const TIMEOUT_S: u64 = 60;

/// The type of a parameter, as metadata and help name it.
pub(crate) fn type_of(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::String => "string",
        PropertyKind::Integer => "integer",
        PropertyKind::Boolean => "boolean",
    }
}
