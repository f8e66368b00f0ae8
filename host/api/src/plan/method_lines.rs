//! A method of the proposals' ConfigMaps, with its template, as a draft: what fence agents call
//! their parameters becomes what our plugins call theirs, and passwords become places.

use std::collections::BTreeMap;

use super::address::with_port;
use super::agents::Meaning;
use super::expression::Expression;
use super::object::{FIRST_CREDENTIAL, IDENTITY_KEY, SECRET_KEY, missing, own_method};
use super::plugins::ActionSet;
use super::properties::{Definition, Line, normal};
use super::source::{Does, Draft};
use super::{agents, plugins, trust};
use crate::document::{Problems, nearest};
use crate::nodefence::Action;
use crate::plan::model::{Credential, LiteralPlace, SecretPlace};

/// The names under which a method says which plugin it wants.
const PLUGIN_NAMES: [&str; 4] = ["plugin", "method-name", "agent-name", "agent"];
/// The names under which it says that its outlet is all that the machine hangs on.
const SOLE_FEED_NAMES: [&str; 2] = ["sole-feed", "solefeed"];
const TRUST_WIRING_NAMES: [&str; 2] = ["trust-wiring", "trustwiring"];
/// Stands for what is taken from the node; no text of a configuration holds it.
const TAKEN: char = '\0';
/// What a template's name may be given without.
const TEMPLATE_PREFIX: &str = "fence-method-template-";

/// The draft of a method, or nothing where a problem forbids it.
pub(super) fn draft(
    name: &str,
    method: &Definition,
    templates: &BTreeMap<String, Definition>,
    problems: &mut Problems,
) -> Option<Draft> {
    let template = match method.line("template") {
        None => None,
        Some(line) => Some(template(line, templates, problems)?),
    };
    if let Some(line) = template.and_then(|template| template.line("template")) {
        let sentence =
            "found a template in a template, expected parameters: templates are one step deep";
        problems.push(line.spot.error(sentence));
        return None;
    }
    // The method's own lines come last and win.
    let lines: Vec<(&Line, &Definition)> = template
        .into_iter()
        .chain([method])
        .flat_map(|definition| definition.lines.iter().map(move |line| (line, definition)))
        .filter(|(line, _)| normal(&line.name) != "template")
        .collect();
    let wanted =
        lines.iter().rev().find(|(line, _)| PLUGIN_NAMES.contains(&normal(&line.name).as_str()));
    let Some((wanted, _)) = wanted else {
        problems.push(method.spot.error("found no plugin, expected plugin= in method or template"));
        return None;
    };
    if let Some(draft) = own_method(&normal(&wanted.value), &wanted.spot) {
        return Some(Draft { name: name.to_owned(), ..draft });
    }
    let Some(plugin) = plugins::plugin_of(&wanted.value) else {
        let sentence = format!("found {:?}, for which there is no plugin yet", wanted.value);
        problems.push(wanted.spot.error(sentence));
        return None;
    };
    let mut gathered = Gathered { plugin, ..Gathered::default() };
    for (line, definition) in lines {
        gathered.take(line, definition, problems);
    }
    gathered.draft(name, method, problems)
}

fn template<'a>(
    line: &Line,
    templates: &'a BTreeMap<String, Definition>,
    problems: &mut Problems,
) -> Option<&'a Definition> {
    let name = normal(&line.value);
    let found = templates.get(&name).or_else(|| templates.get(&format!("{TEMPLATE_PREFIX}{name}")));
    if found.is_none() {
        let sentence = missing(&line.value, "template", templates.keys().map(String::as_str));
        problems.push(line.spot.error(sentence));
    }
    found
}

/// What the lines of a method and its template add up to.
#[derive(Default)]
struct Gathered {
    plugin: String,
    parameters: BTreeMap<String, Line>,
    port: Option<Line>,
    plug: Option<Line>,
    action: Option<Line>,
    must_success: bool,
    sole_feed: bool,
    trust_wiring: bool,
    /// Literal user name and password with the ConfigMap that holds them.
    user: Option<(Line, String)>,
    password: Option<(Line, String)>,
    secret: Option<Line>,
    identity_key: Option<String>,
    secret_key: Option<String>,
}

impl Gathered {
    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "must-success" => Some(&mut self.must_success),
            _ if SOLE_FEED_NAMES.contains(&name) => Some(&mut self.sole_feed),
            _ if TRUST_WIRING_NAMES.contains(&name) => Some(&mut self.trust_wiring),
            _ => None,
        }
    }

    fn take(&mut self, line: &Line, definition: &Definition, problems: &mut Problems) {
        let name = normal(&line.name);
        if PLUGIN_NAMES.contains(&name.as_str()) {
            return;
        }
        if let Some(flag) = self.flag(&name) {
            match yes(&line.value) {
                Some(value) => *flag = value,
                None => problems.push(wrong(line, "yes or no")),
            }
            return;
        }
        let literal = || Some((line.clone(), definition.config_map.clone()));
        match agents::meaning(&self.plugin, &line.name) {
            Meaning::Parameter(name) => {
                self.parameters.insert(name.to_owned(), line.clone());
            }
            Meaning::HandOn => {
                self.parameters.insert(name, line.clone());
            }
            Meaning::Port => self.port = Some(line.clone()),
            Meaning::Plug | Meaning::System => self.plug = Some(line.clone()),
            Meaning::Action => self.action = Some(line.clone()),
            Meaning::User => self.user = literal(),
            Meaning::Password => self.password = literal(),
            Meaning::Secret => self.secret = Some(line.clone()),
            Meaning::IdentityKey => self.identity_key = Some(line.value.clone()),
            Meaning::SecretKey => self.secret_key = Some(line.value.clone()),
            Meaning::Given(words, what) => {
                if !words.contains(&line.value.to_lowercase().as_str()) {
                    problems.push(wrong(line, what));
                }
            }
            Meaning::Ignored => problems.push(line.spot.warning(
                "has no meaning here and is left out: time-outs and retries are the policy's",
            )),
            Meaning::Refused(what) => problems.push(wrong(line, what)),
            Meaning::Unknown => {
                let near = nearest(&line.name, agents::known(&self.plugin).map(|(name, _)| *name));
                let sentence = match near {
                    Some(near) => {
                        format!("found an unknown parameter, expected {near} (did you mean that?)")
                    }
                    None => format!("found a parameter that the plugin {} has not", self.plugin),
                };
                problems.push(line.spot.error(sentence));
            }
        }
    }

    fn draft(mut self, name: &str, method: &Definition, problems: &mut Problems) -> Option<Draft> {
        let asked = self.asked(problems)?;
        let credentials = self.credentials(problems)?;
        self.join_port();
        if self.plugin == "ipmi" {
            self.normalise_ipmi(problems);
        }
        for (name, line) in &mut self.parameters {
            line.value = plugins::value_of(&self.plugin, name, &line.value);
        }
        let mut parse = |text: &str, spot| {
            Expression::parse(text, spot).map_err(|problem| problems.push(problem)).ok()
        };
        let mut parameters = BTreeMap::new();
        for (name, line) in &self.parameters {
            parameters.insert(name.clone(), parse(&line.value, &line.spot)?);
        }
        let plug = match &self.plug {
            Some(line) => parse(&line.value, &line.spot)?,
            None => parse("", &method.spot)?,
        };
        let draft = Draft {
            name: name.to_owned(),
            does: Does::Plugin(self.plugin),
            asked,
            plug,
            parameters,
            credentials,
            must_success: self.must_success,
            sole_feed: self.sole_feed,
            trust_wiring: self.trust_wiring,
            storage_drivers: Vec::new(),
            witness: None,
        };
        trust::check(&draft, &[], trust::OF_CONFIG_MAP, problems);
        Some(draft)
    }

    /// Fence agents reboot where nothing is said.
    fn asked(&self, problems: &mut Problems) -> Option<ActionSet> {
        let watches = plugins::only_watches(&self.plugin);
        let Some(line) = &self.action else {
            return Some(if watches { ActionSet::default() } else { ActionSet::REBOOT });
        };
        if watches {
            problems.push(wrong(line, "no action of what only sees"));
            return None;
        }
        match line.value.as_str() {
            "off" | "false" => Some(ActionSet::of(Action::Off)),
            "on" | "true" => Some(ActionSet::of(Action::On)),
            "reboot" => Some(ActionSet::REBOOT),
            "reset" => Some(ActionSet::of(Action::Reset)),
            _ => {
                problems.push(wrong(line, "off, on, reboot or reset"));
                None
            }
        }
    }

    fn credentials(&self, problems: &mut Problems) -> Option<BTreeMap<String, Credential>> {
        let credential = match (&self.secret, &self.password) {
            (Some(secret), None) if secret.value.is_empty() => {
                problems.push(wrong(secret, "the name of a Secret"));
                return None;
            }
            (Some(secret), None) => Credential {
                secret: Some(SecretPlace {
                    namespace: String::new(),
                    name: secret.value.clone(),
                    identity_key: self.identity_key.clone().unwrap_or(IDENTITY_KEY.to_owned()),
                    secret_key: self.secret_key.clone().unwrap_or(SECRET_KEY.to_owned()),
                }),
                config_map: None,
            },
            (Some(secret), Some(_)) => {
                problems.push(wrong(secret, "a Secret or a literal password, not both"));
                return None;
            }
            (None, Some((password, config_map))) => {
                problems.push(password.spot.warning(format!(
                    "THE PASSWORD STANDS HERE IN PLAIN TEXT, readable by everyone who may read \
                     ConfigMaps; put it into a Secret and write secret=NAME in place of {}",
                    password.name
                )));
                Credential {
                    secret: None,
                    config_map: Some(self.literal(password, config_map, problems)?),
                }
            }
            (None, None) => {
                if let Some((user, _)) = &self.user {
                    problems.push(user.spot.error("found a user name without a password"));
                    return None;
                }
                return Some(BTreeMap::new());
            }
        };
        Some(BTreeMap::from([(FIRST_CREDENTIAL.to_owned(), credential)]))
    }

    fn literal(
        &self,
        password: &Line,
        config_map: &str,
        problems: &mut Problems,
    ) -> Option<LiteralPlace> {
        if let Some((user, place)) = &self.user
            && (place != config_map || user.entry != password.entry)
        {
            problems.push(wrong(user, "user name and password side by side in one place"));
            return None;
        }
        Some(LiteralPlace {
            namespace: String::new(),
            name: config_map.to_owned(),
            entry: password.entry.clone(),
            identity_key: self.user.as_ref().map(|(line, _)| line.name.clone()).unwrap_or_default(),
            secret_key: password.name.clone(),
        })
    }

    fn join_port(&mut self) {
        if let (Some(port), Some(address)) = (&self.port, self.parameters.get_mut("address")) {
            address.value = joined(&address.value, &port.value);
        }
    }

    /// Fence agents write ADMINISTRATOR; a BMC has no plugs.
    fn normalise_ipmi(&mut self, problems: &mut Problems) {
        if let Some(line) = self.parameters.get_mut("privilege-level") {
            line.value = line.value.to_lowercase();
        }
        for (name, legal) in [
            ("privilege-level", &["user", "operator", "administrator"]),
            ("cipher-suite", &["auto", "17", "3"]),
        ] {
            if let Some(line) = self.parameters.get(name)
                && !legal.contains(&line.value.as_str())
            {
                problems.push(wrong(line, &legal.join(", ")));
            }
        }
        if !self.parameters.contains_key("address") {
            let spot = self.action.as_ref().or(self.plug.as_ref()).map(|line| &line.spot);
            if let Some(spot) = spot.or(self.secret.as_ref().map(|line| &line.spot)) {
                problems.push(spot.error("found no address, expected ipaddr= or address="));
            }
        }
        self.plug = None;
    }
}

/// An address with a port, where parts of it are taken from the node: brackets that those need come
/// when they are known.
fn joined(address: &str, port: &str) -> String {
    let (mut plain, mut taken, mut rest) = (String::new(), Vec::new(), address);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else { break };
        plain.push_str(before);
        plain.push(TAKEN);
        taken.push(format!("${{{inside}}}"));
        rest = after;
    }
    plain.push_str(rest);
    let joined = with_port(&plain, port);
    taken.iter().fold(joined, |joined, one| joined.replacen(TAKEN, one, 1))
}

fn wrong(line: &Line, expected: &str) -> crate::document::Problem {
    let found = if plugins::is_secret(&line.name) {
        "a value".to_owned()
    } else {
        format!("{:?}", line.value)
    };
    line.spot.error(format!("found {found}, expected {expected}"))
}

/// `yes` and `no` in the spellings that people use.
pub(super) fn yes(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "true" | "1" | "on" => Some(true),
        "no" | "false" | "0" | "off" => Some(false),
        _ => None,
    }
}
