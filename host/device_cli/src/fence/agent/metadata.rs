//! What an agent says of itself: XML for cluster managers, and help for people. Both are made from the
//! plugin's manifest.

use std::fmt::Write as _;

use node_remedy_api::plan::{Meaning, known};
use node_remedy_sandbox::Manifest;
use node_remedy_sandbox::manifest::{Ability, Kind};
use serde_json::Value;

use crate::fence::agent::options::{OPTIONS, is_flag, type_of};

/// What a configuration refuses and an agent takes: secrets, which there stand elsewhere.
const TAKEN: &[&str] = &["community", "snmp_priv_passwd", "hexadecimal_kg", "cacert"];

/// One option of an agent.
struct Listed {
    letter: Option<char>,
    long: String,
    stdin: String,
    kind: &'static str,
    default: Option<String>,
    is_required: bool,
    about: String,
}

/// The metadata document of an agent (FenceAgentAPI; its grammar is metadata.rng of fence-agents).
pub(super) fn xml(name: &str, manifest: &Manifest) -> String {
    let name = escape(name);
    let about = escape(&manifest.description);
    let mut xml = format!(
        "<?xml version=\"1.0\" ?>\n<resource-agent name=\"{name}\" shortdesc=\"{about}\">\n\
         <longdesc>{about}. An off ends well only when a later read said off.</longdesc>\n\
         <vendor-url></vendor-url>\n<parameters>\n"
    );
    let mut all = options(manifest);
    as_agents_have_them(manifest, &mut all);
    for one in all {
        let Listed { letter, long, stdin, kind, default, is_required, about } = one;
        let letter = letter.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let default = default.map(|value| format!(" default=\"{}\"", escape(&value)));
        let _ = write!(
            xml,
            "\t<parameter name=\"{stdin}\" unique=\"0\" required=\"{}\">\n\
             \t\t<getopt mixed=\"{letter}--{long}=[{stdin}]\" />\n\
             \t\t<content type=\"{kind}\"{} />\n\
             \t\t<shortdesc lang=\"en\">{}</shortdesc>\n\t</parameter>\n",
            u8::from(is_required),
            default.unwrap_or_default(),
            escape(&about),
        );
    }
    xml.push_str("</parameters>\n<actions>\n");
    for action in actions(manifest) {
        let automatic = if action == "on" { " automatic=\"0\"" } else { "" };
        let _ = writeln!(xml, "\t<action name=\"{action}\"{automatic} />");
    }
    xml.push_str("</actions>\n</resource-agent>\n");
    xml
}

/// What `--help` prints.
pub(super) fn help(name: &str, manifest: &Manifest) -> String {
    let mut help = format!("{}\n\nUsage: {name} [options]\n\nOptions:\n", manifest.description);
    for one in options(manifest) {
        let letter = one.letter.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let default = one.default.map(|value| format!(" ({value})")).unwrap_or_default();
        let option = format!("{letter}--{}=[{}]", one.long, one.stdin);
        let _ = writeln!(help, "  {option:<36} {}{default}", one.about);
    }
    let _ = write!(
        help,
        "\nActions: {}\n\nWithout options, key=value lines are read from stdin.\n\
         Exits 0, or 1 for failure; status exits 0 for on, 2 for off, 1 for anything else.\n\
         Example: {name} -a 192.0.2.7 -l fence -f password.txt -o status\n",
        actions(manifest).join(", ")
    );
    help
}

fn actions(manifest: &Manifest) -> Vec<&'static str> {
    let mut actions = vec!["on", "off"];
    if manifest.kind == Kind::Power {
        actions.push("reboot");
    }
    actions.extend(["status", "monitor"]);
    if manifest.actions.contains(&Ability::Plugs) {
        actions.extend(["list", "list-status"]);
    }
    actions.extend(["metadata", "validate-all"]);
    actions
}

fn options(manifest: &Manifest) -> Vec<Listed> {
    let usual = if manifest.kind == Kind::Power { "reboot" } else { "off" };
    let common = OPTIONS.iter().map(|(letter, long, about)| {
        let stdin = long.replace('-', "_");
        let default = match stdin.as_str() {
            "action" => Some(usual.to_owned()),
            "delay" => Some("0".to_owned()),
            "power_timeout" => Some(crate::fence::agent::options::TIMEOUT_S.to_string()),
            _ => None,
        };
        let kind = match stdin.as_str() {
            "delay" | "power_timeout" => "second",
            "ipport" => "integer",
            "ssl_insecure" => "boolean",
            _ => "string",
        };
        let is_required = stdin == "action";
        let (long, about) = ((*long).to_owned(), (*about).to_owned());
        Listed { letter: *letter, long, stdin, kind, default, is_required, about }
    });
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let own = manifest.parameters.properties.iter().filter(|(name, _)| *name != "address");
    let own = own.map(|(name, property)| Listed {
        letter: None,
        long: name.clone(),
        stdin: name.replace('-', "_"),
        kind: type_of(property.kind),
        default: property.default.as_ref().map(text),
        is_required: manifest.parameters.required.contains(name),
        about: property.description.clone(),
    });
    common.chain(own).collect()
}

/// Adds what real agents have beside that and is taken here too: configurations with a name that metadata
/// lacks are refused before any agent sees them.
fn as_agents_have_them(manifest: &Manifest, all: &mut Vec<Listed>) {
    for (name, meaning) in known(&manifest.name) {
        let is_taken = match meaning {
            Meaning::Refused(_) => TAKEN.contains(name),
            Meaning::Secret | Meaning::IdentityKey | Meaning::SecretKey => false,
            Meaning::Parameter(_)
            | Meaning::HandOn
            | Meaning::Port
            | Meaning::Plug
            | Meaning::System
            | Meaning::Action
            | Meaning::User
            | Meaning::Password
            | Meaning::Given(..)
            | Meaning::Ignored
            | Meaning::Unknown => true,
        };
        if !is_taken || all.iter().any(|one| one.stdin == *name) {
            continue;
        }
        let about = match meaning {
            Meaning::Given(_, what) => format!("Only {what}"),
            Meaning::Ignored => "Has no effect here".to_owned(),
            Meaning::System => "Path of the system: /redfish/v1/Systems/1".to_owned(),
            Meaning::Parameter(own) => format!("The same as {}", own.replace('-', "_")),
            Meaning::Port
            | Meaning::Plug
            | Meaning::Action
            | Meaning::User
            | Meaning::Password
            | Meaning::Refused(_)
            | Meaning::Secret
            | Meaning::IdentityKey
            | Meaning::SecretKey
            | Meaning::HandOn
            | Meaning::Unknown => "As fence-agents have it".to_owned(),
        };
        let long = name.replace('_', "-");
        all.push(Listed {
            letter: None,
            kind: if is_flag(&long) { "boolean" } else { "string" },
            long,
            stdin: (*name).to_owned(),
            default: None,
            is_required: false,
            about,
        });
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
