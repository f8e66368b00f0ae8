//! A fence method as the fence agent that cluster managers know: `key=value` lines on stdin or options,
//! their words for actions, their exit codes (FenceAgentAPI of ClusterLabs/fence-agents).
//!
//! An `off` ends well only when a later read said off. Not here: what is read and sent ([`crate::fence::session`]).

pub mod metadata;
pub mod options;
pub mod told;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use node_remedy_api::plan::plugin_of;
use node_remedy_sandbox::manifest::Kind;
use node_remedy_sandbox::{Action, Failure, PlugState};
use zeroize::Zeroizing;

use crate::fence::EXIT_OFF;
use crate::fence::agent::options::{TIMEOUT_S, from_lines, from_options};
use crate::fence::held::hold_interrupts;
use crate::fence::outcome::{Outcome, Sent};
use crate::fence::session::{DeviceSession, load};
use crate::output::{complain, out, outln};

/// What stdin may hold: a few dozen lines.
const STDIN_BYTES_MAX: u64 = 64 << 10;

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
    if arguments.iter().any(|argument| matches!(argument.as_str(), "-V" | "--version")) {
        outln!("{}", env!("CARGO_PKG_VERSION"));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.iter().any(|argument| matches!(argument.as_str(), "-h" | "--help")) {
        out!("{}", crate::fence::agent::metadata::help(name, &manifest));
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
        out!("{}", crate::fence::agent::metadata::xml(name, &manifest));
        return Ok(ExitCode::SUCCESS);
    }
    if action == "manpage" {
        out!("{}", crate::fence::agent::metadata::help(name, &manifest));
        return Ok(ExitCode::SUCCESS);
    }
    for key in &told.ignored {
        complain(format_args!("{name}: {key} has no effect here"));
    }
    if is_fabric && action == "reboot" {
        bail!("{method} cuts a path and cannot reboot; expected off or on");
    }
    let delay = told.delay;
    let timeout = told.timeout.unwrap_or(Duration::from_secs(TIMEOUT_S));
    let reach = told.reach(&manifest, timeout)?;
    let mut hand = DeviceSession::open(executor, plugin, reach).await?;
    if matches!(action.as_str(), "validate-all" | "validate") {
        return Ok(ExitCode::SUCCESS);
    }
    tokio::time::sleep(delay).await;
    hand.begin_anew(timeout);
    carry_out(&mut hand, &action, timeout).await
}

async fn carry_out(
    hand: &mut DeviceSession,
    action: &str,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
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
            hand.monitor().await.map_err(said)?;
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
            hold_interrupts("the same agent with action=on")?;
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

async fn switch(
    hand: &mut DeviceSession,
    action: Action,
    wanted: PlugState,
) -> anyhow::Result<ExitCode> {
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use node_remedy_api::plan::agents;
    use node_remedy_api::plan::{Meaning, meaning};
    use node_remedy_sandbox::manifest::Protocol;
    use node_remedy_sandbox::{HostPort, Manifest, Trust};
    use proptest::prelude::*;

    use super::*;

    /// Name, letter and whether it is a flag of each parameter of real agents, by their metadata.
    const AGENTS: &str = include_str!("../../../../tests/fixtures/fence-agents.txt");
    const IPMI: &str = include_str!("../../../../plugins/ipmi/manifest.json");
    const REDFISH: &str = include_str!("../../../../plugins/redfish/manifest.json");

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

    proptest! {
        #[test]
        fn the_machine_that_is_reached_is_the_one_that_was_named(
            ip in any::<IpAddr>(), port in 1_u16.., with_brackets in any::<bool>(),
        ) {
            let manifest = manifest(IPMI);
            let written =
                if ip.is_ipv6() && with_brackets { format!("[{ip}]") } else { ip.to_string() };
            let lines = format!("ip={written}\nipport={port}\npassword=x");
            let told = from_lines(&manifest, &lines).unwrap();
            let reach = told.reach(&manifest, Duration::ZERO).unwrap();
            let reached = HostPort::parse(&reach.parameters["address"], Protocol::Udp).unwrap();
            prop_assert_eq!(reached.host.parse::<IpAddr>(), Ok(ip));
            prop_assert_eq!(reached.port, Some(port));
        }
    }

    #[test]
    fn a_node_s_name_is_no_plug_of_a_device_that_has_none() {
        let apc = include_str!("../../../../plugins/apc-pdu/manifest.json");
        let path = "/redfish/v1/Systems/1";
        let by_path = format!("port=n1\nsystems_uri={path}");
        for (text, lines, plug) in [
            (IPMI, "", ""),
            (apc, "", "n1"),
            (REDFISH, "", ""),
            // As cluster managers say it of an agent that has no plugs.
            (REDFISH, "port=n1", ""),
            (REDFISH, "port=437XR1138R2", "437XR1138R2"),
            (REDFISH, by_path.as_str(), path),
        ] {
            let manifest = manifest(text);
            let lines = format!("{lines}\nnodename=n1\nip=192.0.2.7\npassword=x");
            let told = from_lines(&manifest, &lines).unwrap();
            assert_eq!(told.reach(&manifest, Duration::ZERO).unwrap().plug, plug, "{lines}");
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

    fn of_plugin(plugin: &str) -> Option<Manifest> {
        let plugins = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins"));
        let text = std::fs::read(plugins.join(plugin).join("manifest.json")).ok()?;
        Some(Manifest::parse(&text).unwrap())
    }

    /// Whatever an agent's configuration says is taken, refused with what to write, or said to be of no
    /// effect; and its letters mean what they mean with the agent.
    #[test]
    fn no_parameter_of_a_real_agent_is_left_out_in_silence() {
        let mut seen = 0;
        for line in AGENTS.lines() {
            let mut words = line.split(' ');
            let agent = words.next().unwrap();
            let (_, plugin) = agents().find(|(known, _)| *known == agent).unwrap();
            let Some(manifest) = of_plugin(plugin).filter(|one| one.kind != Kind::Watch) else {
                continue;
            };
            let mut letters = std::collections::BTreeMap::<char, bool>::new();
            for word in words {
                let (name, rest) = word.split_once(':').unwrap();
                let (letter, is_flag) = (rest.chars().find(|one| *one != '!'), rest.contains('!'));
                seen += 1;
                // A file is read at once; the first two are said by letter alone.
                if ["help", "version", "cacert"].contains(&name) {
                    continue;
                }
                let value = if is_flag { "1" } else { "7" };
                match from_lines(&manifest, &format!("{name}={value}")) {
                    Ok(told) if name != "nodename" => {
                        let is_so = matches!(meaning(plugin, name), Meaning::Given(..));
                        let is_silent = told.is_empty()
                            && !is_so
                            && !crate::fence::agent::told::TALK.contains(&name);
                        assert!(!is_silent, "{agent} {name} is left out in silence");
                    }
                    Ok(_) => {}
                    Err(said) => {
                        let said = said.to_string();
                        assert!(said.contains("expected"), "{agent} {name}: {said}");
                    }
                }
                // The one that logs in to a shell has a letter of the one that speaks SNMP.
                if let Some(letter) = letter.filter(|one| (agent, *one) != ("fence_apc", 'c')) {
                    let long = crate::fence::agent::options::long_of(&manifest, letter).unwrap();
                    assert_eq!(
                        crate::fence::agent::options::is_flag(long),
                        is_flag,
                        "{agent} -{letter} is --{long}"
                    );
                    let same = |one: &str| meaning(plugin, one);
                    let is_same = long.replace('-', "_") == name.replace('-', "_")
                        || (same(long) == same(name) && same(name) != Meaning::HandOn);
                    *letters.entry(letter).or_default() |= is_same;
                }
            }
            assert!(letters.values().all(|is_known| *is_known), "{agent}: {letters:?}");
        }
        assert!(seen > 800, "{seen} parameters");
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let manifest = manifest(IPMI);
        let read = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            from_options(&manifest, &words).map_err(|said| said.to_string())
        };
        for line in [
            "-P -a 192.0.2.7 -l admin -p x -C 3 -L OPERATOR -o off",
            "--lanplus --username=admin --ip 192.0.2.7 --password x --cipher=3 --privlvl OPERATOR -ooff",
            "-vvP -a192.0.2.7 -ladmin -px -C3 -LOPERATOR --method=onoff -ooff",
        ] {
            let told = read(line).unwrap();
            assert_eq!(told.action.as_deref(), Some("off"), "{line}");
            let reach = told.reach(&manifest, Duration::ZERO).unwrap();
            assert_eq!(reach.parameters["address"], "192.0.2.7", "{line}");
            assert_eq!(reach.parameters["cipher-suite"], "3", "{line}");
            assert_eq!(reach.parameters["privilege-level"], "operator", "{line}");
            assert_eq!(reach.credentials["account"].identity.as_deref(), Some("admin"), "{line}");
        }
        for (line, said) in [
            ("-a", "-a: found no value"),
            ("-y", "-y: there is no such option"),
            ("off", "found \"off\", expected an option"),
            ("-m cycle", "never cycled"),
            ("--target=0x82", "no BMC is reached through another"),
        ] {
            let refusal = read(line).err().unwrap();
            assert!(refusal.contains(said), "{line}: {refusal}");
        }
        let kg = from_lines(&manifest, "hexadecimal_kg=0x6b67\npassword=x").unwrap();
        let reach = kg.reach(&manifest, Duration::ZERO).unwrap();
        assert_eq!(reach.credentials["kg"].bytes.as_slice(), b"kg");
        assert!(from_lines(&manifest, "hexadecimal_kg=6b6").is_err());
        assert_eq!(
            from_lines(&manifest, "power_wait=2\nverbose=1").unwrap().ignored,
            ["power_wait"]
        );
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
