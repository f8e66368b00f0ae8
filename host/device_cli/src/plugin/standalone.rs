//! A Cargo.toml of this repository as it is outside of its workspace: what it inherits is written out. It
//! reads our own files, which the tests hold to one line for each thing that is inherited; not TOML at large.

/// The workspace that they inherit from.
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");
/// Where the SDK is in it.
const SDK: &str = "path = \"plugins/sdk\"";

/// The manifest of a member, written out; the SDK, where it is depended on, lies at `sdk`.
pub(super) fn standalone(member: &str, sdk: &str) -> String {
    let mut text = String::new();
    let mut section = "";
    for line in member.lines() {
        if line.starts_with('[') {
            section = line;
        }
        if section == "[lints]" {
            continue;
        }
        let inherits =
            if section == "[package]" { "[workspace.package]" } else { "[workspace.dependencies]" };
        text.push_str(&written_out(line, inherits).replace(SDK, &format!("path = \"{sdk}\"")));
        text.push('\n');
    }
    text.replace("\n\n\n", "\n\n")
}

/// A line with the workspace's value in the place of its reference to it.
fn written_out(line: &str, inherits: &str) -> String {
    let (key, more) = if let Some(key) = line.strip_suffix(".workspace = true") {
        (key, "")
    } else if let Some((key, more)) = line.split_once(" = { workspace = true") {
        (key, more.trim_end_matches('}').trim_end())
    } else {
        return line.to_owned();
    };
    let value = value_of(key, inherits);
    if more.is_empty() {
        return format!("{key} = {value}");
    }
    let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
    let inside =
        inside.map_or_else(|| format!("version = {value}"), |inside| inside.trim().to_owned());
    format!("{key} = {{ {inside}{more} }}")
}

/// What the workspace says of it.
fn value_of(key: &str, section: &str) -> &'static str {
    let lines = WORKSPACE.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let own = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    own.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_inherits_is_written_out() {
        let member = "[package]\nname = \"lamp\"\nedition.workspace = true\npublish.workspace = true\n\n\
                      [lints]\nworkspace = true\n\n[dependencies]\n\
                      node-remedy-sdk = { workspace = true, features = [\"web\"] }\n\
                      cbc = { workspace = true, optional = true }\nserde_json.workspace = true\n\
                      des = { workspace = true, optional = true }\n";
        let wanted = "[package]\nname = \"lamp\"\nedition = \"2024\"\npublish = false\n\n\
                      [dependencies]\nnode-remedy-sdk = { path = \"sdk\", version = \"0.1.0\", features = [\"web\"] }\n\
                      cbc = { version = \"0.2\", features = [\"alloc\"], optional = true }\n\
                      serde_json = \"1\"\ndes = { version = \"0.9\", optional = true }\n";
        assert_eq!(standalone(member, "sdk"), wanted);
    }
}
