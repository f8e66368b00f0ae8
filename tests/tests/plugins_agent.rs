//! A built-in method called as the fence agent that cluster managers know: by a symlink with an agent's
//! name, with `key=value` lines on stdin or with options, on sushy-emulator.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_api::plan::agents;
use node_remedy_tests::Controller;
use node_remedy_tests::ipmi::{PASSWORD, Power, USERNAME};
use node_remedy_tests::process::{fresh_folder, repository};
use node_remedy_tests::python::{python, python_file};
use node_remedy_tests::redfish::Emulator;
use node_remedy_tests::snmp::{self, Model, PRIVACY, WRITER};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

/// What must hold of an agent's metadata: the parts of fence-agents' metadata.rng, and that each name
/// stands once.
const CHECK_METADATA: &str = r#"
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.argv[1])
assert root.tag == "resource-agent" and root.get("name") == "fence_redfish" and root.get("shortdesc")
assert [part.tag for part in root] == ["longdesc", "vendor-url", "parameters", "actions"]
parameters = root.find("parameters")
names = [one.get("name") for one in parameters]
assert len(names) > 5 and len(set(names)) == len(names), names
for one in parameters:
    assert one.get("unique") == "0" and one.get("required") in "01"
    assert [part.tag for part in one] == ["getopt", "content", "shortdesc"], one.get("name")
    assert one.find("getopt").get("mixed") and one.find("shortdesc").get("lang") == "en"
    assert one.find("content").get("type") in ("boolean", "string", "integer", "second", "select")
letters = [word for one in parameters.iter("getopt") for word in one.get("mixed").split(", ")[:-1]]
assert len(set(letters)) == len(letters), letters
print(" ".join(one.get("name") for one in root.find("actions")))
"#;

/// What a call came to.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// The program under an agent's name.
fn agent(folder: &Path, name: &str) -> Result<PathBuf> {
    let link = folder.join(name);
    symlink(Controller::binary(), &link)?;
    Ok(link)
}

async fn call(agent: &Path, options: &[&str], lines: &str) -> Result<Ended> {
    let mut command = Command::new(agent);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let lines = lines.to_owned();
    let ended = tokio::task::spawn_blocking(move || -> Result<Output> {
        let mut child = command.spawn().context("failed to start node-remedy")?;
        child.stdin.take().context("no stdin")?.write_all(lines.as_bytes())?;
        Ok(child.wait_with_output()?)
    });
    let Output { status, stdout, stderr } = ended.await??;
    let ended = Ended {
        code: status.code().context("killed")?,
        stdout: String::from_utf8(stdout)?,
        stderr: String::from_utf8(stderr)?,
    };
    let said = [ended.stdout.as_str(), &ended.stderr].concat();
    ensure!(!said.contains(PASSWORD), "the password is in {said}");
    Ok(ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_of_an_agent_by_stdin_and_by_options() -> Result<()> {
    let folder = fresh_folder("plugins-agent")?;
    let emulator = Emulator::start(&folder).await?;
    let [system, other] = emulator.two_systems()?;
    let agent = agent(&folder, "fence_redfish")?;
    let authority = emulator.authority().display().to_string();
    let (ip, port) = emulator
        .address()
        .rsplit_once(':')
        .context("no port")
        .map(|(ip, port)| (ip.to_owned(), port.to_owned()))?;
    // Callers say both plug and port, and things that nobody knows.
    let lines = |action: &str| {
        format!(
            "# from a cluster manager\naction={action}\nip={ip}\nipport={port}\nlogin={USERNAME}\n\
             passwd={PASSWORD}\ntls_ca={authority}\nport={system}\nplug={system}\nnodename=n1\n\
             debug_file=/nowhere"
        )
    };
    for (action, code, says, power) in [
        ("status", 0, "Status: ON\n", Power::On),
        ("off", 0, "Success: Powered OFF\n", Power::Off),
        ("status", 2, "Status: OFF\n", Power::Off),
        ("off", 0, "Success: Powered OFF\n", Power::Off),
        ("on", 0, "Success: Powered ON\n", Power::On),
        ("reboot", 0, "Success: Rebooted\n", Power::On),
        ("monitor", 0, "", Power::On),
        ("validate-all", 0, "", Power::On),
        ("explode", 1, "", Power::On),
    ] {
        let ended = call(&agent, &[], &lines(action)).await?;
        assert_eq!((ended.code, ended.stdout.as_str()), (code, says), "{action}: {}", ended.stderr);
        assert_eq!(emulator.power(system).await?, power, "{action}");
    }
    let listed = call(&agent, &[], &lines("list")).await?.stdout;
    let (mut listed, mut expected): (Vec<_>, _) =
        (listed.lines().collect(), [format!("{system},{system}"), format!("{other},{other}")]);
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);

    let password = folder.join("password");
    std::fs::write(&password, format!("{PASSWORD}\n"))?;
    let password = password.display().to_string();
    let address = emulator.address();
    let options = ["-a", &address, "-l", USERNAME, "-f", &password, "--tls-ca", &authority];
    let begun = Instant::now();
    let rest = ["--plug", other, "--action=status", "--delay", "2", "-v"];
    let ended = call(&agent, &[&options[..], &rest].concat(), "").await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (2, "Status: OFF\n"), "{}", ended.stderr);
    assert!(begun.elapsed() >= Duration::from_secs(2), "a delay of 2 s is not waited for");
    let wrong = call(&agent, &[&options[..], &["--plug", "9", "-o", "off"]].concat(), "").await?;
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("no system has the id or UUID"), "{}", wrong.stderr);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_s_metadata_is_what_cluster_managers_read() -> Result<()> {
    let agent = agent(&fresh_folder("plugins-agent-metadata")?, "fence_redfish")?;
    for (options, lines) in [(&["-o", "metadata"][..], ""), (&[], "action=metadata")] {
        let ended = call(&agent, options, lines).await?;
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let actions = python(CHECK_METADATA, &[&ended.stdout]).await?;
        let expected = "on off reboot status monitor list list-status metadata validate-all";
        assert_eq!(actions, expected);
    }
    let options = ["fence", "--agent", "ipmi", "-o", "metadata"];
    let by_flag = call(&Controller::binary(), &options, "").await?.stdout;
    assert!(by_flag.contains(r#"<resource-agent name="fence_ipmi""#), "{by_flag}");
    Ok(())
}

/// The lines that cluster managers have for APC's PDUs, in version 1 with a community and in version 3.
#[tokio::test(flavor = "multi_thread")]
async fn a_pdu_is_switched_by_the_lines_of_its_old_agent() -> Result<()> {
    let folder = fresh_folder("plugins-agent-pdu")?;
    let pdu = snmp::Agent::start(&folder, Model::ApcRpdu2).await?;
    let agent = agent(&folder, "fence_apc_snmp")?;
    let address = pdu.address();
    let by_community = format!("ipaddr={address}\ncommunity={WRITER}\nport=3\n");
    let by_user = format!(
        "ipaddr={address}\nlogin=sha256-aes256\npasswd={}\nport=3\nsnmp_version=3\n\
         snmp_sec_level=authPriv\nsnmp_auth_prot=sha256\nsnmp_priv_prot=aes256\n\
         snmp_priv_passwd={PRIVACY}\n",
        snmp::AUTH
    );
    for lines in [by_community, by_user] {
        for (action, code, power) in [
            ("status", 0, Power::On),
            ("off", 0, Power::Off),
            ("status", 2, Power::Off),
            ("on", 0, Power::On),
        ] {
            let ended = call(&agent, &[], &format!("{lines}action={action}\n")).await?;
            assert_eq!(ended.code, code, "{action}: {}", ended.stderr);
            assert_eq!(pdu.state(3).await?, power, "{action}");
            for secret in [WRITER, PRIVACY, snmp::AUTH] {
                let said = [ended.stdout.as_str(), &ended.stderr].concat();
                assert!(!said.contains(secret), "a secret is in {said}");
            }
        }
    }
    Ok(())
}

/// Without brackets `::1` and its port would be the address of another machine.
#[tokio::test(flavor = "multi_thread")]
async fn an_ipv6_address_with_a_port_is_the_machine_that_was_named() -> Result<()> {
    let agent = agent(&fresh_folder("plugins-agent-ipv6")?, "fence_ipmilan")?;
    let bmc = UdpSocket::bind("[::1]:0").await?;
    let port = bmc.local_addr()?.port();
    let lines = format!(
        "action=off\nip=::1\nipport={port}\nlogin={USERNAME}\npasswd={PASSWORD}\npower_timeout=4\n"
    );
    let mut first = [0; 64];
    let (ended, heard) = tokio::join!(
        call(&agent, &[], &lines),
        timeout(Duration::from_secs(30), bmc.recv(&mut first))
    );
    assert!(heard.context("nothing came")?? > 0);
    assert_eq!(ended?.code, 1, "nobody answered");
    Ok(())
}

/// As cluster managers start an agent: nothing is said of a machine yet.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_started_without_a_plug() -> Result<()> {
    let folder = fresh_folder("plugins-agent-start")?;
    let pdu = snmp::Agent::start(&folder, Model::ApcRpdu2).await?;
    let apc = agent(&folder, "fence_apc_snmp")?;
    let lines = format!("action=monitor\nipaddr={}\ncommunity={WRITER}\n", pdu.address());
    let ended = call(&apc, &[], &lines).await?;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let wrong = call(&apc, &[], &lines.replace(WRITER, "wrong")).await?;
    assert_eq!(wrong.code, 1, "{}", wrong.stdout);

    let emulator = Emulator::start(&folder).await?;
    let redfish = agent(&folder, "fence_redfish")?;
    let [system, _] = emulator.two_systems()?;
    let lines = format!(
        "ip={}\nusername={USERNAME}\npassword={PASSWORD}\ntls_ca={}\n",
        emulator.address(),
        emulator.authority().display()
    );
    let ended = call(&redfish, &[], &format!("action=monitor\n{lines}")).await?;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    // The node's name, which cluster managers say as the plug, is no system; a path is one.
    let by_path = format!(
        "action=status\n{lines}nodename=n1\nport=n1\nsystems_uri=/redfish/v1/Systems/{system}\n"
    );
    let ended = call(&redfish, &[], &by_path).await?;
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "Status: ON\n"), "{}", ended.stderr);
    Ok(())
}

/// What the tables of agents are tested against is what real agents say.
#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_agents_is_their_own_metadata() -> Result<()> {
    let roots = [repository().join("target/fence-agents"), PathBuf::from("/")];
    let root = roots.iter().find(|root| root.join("usr/share/fence/fencing.py").is_file());
    let root = root.context("no fence-agents: cargo xtask setup")?.display().to_string();
    let names: Vec<&str> = agents().map(|(agent, _)| agent).collect();
    let file = repository().join("tests/sims/agents/metadata.py");
    let said = python_file(&file, &[&[root.as_str()], &names[..]].concat()).await?;
    let kept = std::fs::read_to_string(repository().join("tests/fixtures/fence-agents.txt"))?;
    assert_eq!(said.trim(), kept.trim());
    Ok(())
}
