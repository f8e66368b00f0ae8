//! The ComputerSystem resource (schema `ComputerSystem.v1`, DSP8010) and how the right one is found:
//! by id, UUID or path, and never by its place in the list.

use node_remedy_sdk::power::is_same_uuid;
use node_remedy_sdk::web::Api;
use node_remedy_sdk::{Failure, FailureKind, Fields, Host, PlugInfo, PlugState};
use serde_json::Value;

use crate::limits;
use crate::service::ROOT;

/// A system, as it was read.
pub(crate) struct System {
    path: String,
    resource: Value,
}

impl System {
    /// Finds the system that `plug` names: its id, its UUID or its path. Empty stands for the only one.
    pub(crate) fn find<H: Host>(service: &Api<'_, H>, plug: &str) -> Result<Self, Failure> {
        if plug.starts_with(ROOT) {
            return Self::read(service, plug);
        }
        let members = members(service)?;
        if let Some(path) = members.iter().find(|path| id_of(path) == plug && !plug.is_empty()) {
            return Self::read(service, path);
        }
        match members.as_slice() {
            [] => return Err(no_such_plug("the BMC has no systems".to_owned())),
            [only] if plug.is_empty() => return Self::read(service, only),
            several if plug.is_empty() => {
                return Err(no_such_plug(format!(
                    "the BMC has {} systems and the plug names none; expected one of {}",
                    several.len(),
                    ids(several)
                )));
            }
            _ => {}
        }
        let mut found = Vec::new();
        for path in &members {
            let system = Self::read(service, path)?;
            if system.uuid().is_some_and(|uuid| is_same_uuid(uuid, plug)) {
                found.push(system);
            }
        }
        match (found.pop(), found.len()) {
            (Some(system), 0) => Ok(system),
            (Some(_), more) => Err(no_such_plug(format!(
                "{} systems have the UUID {plug}; name one by its id: {}",
                more + 1,
                ids(&members)
            ))),
            (None, _) => Err(no_such_plug(format!(
                "no system has the id or UUID {plug:?}; expected one of {}",
                ids(&members)
            ))),
        }
    }

    /// Every system of the BMC.
    pub(crate) fn all<H: Host>(service: &Api<'_, H>) -> Result<Vec<Self>, Failure> {
        members(service)?.iter().map(|path| Self::read(service, path)).collect()
    }

    /// Reads the same system once more.
    pub(crate) fn again<H: Host>(&self, service: &Api<'_, H>) -> Result<Self, Failure> {
        Self::read(service, &self.path)
    }

    fn read<H: Host>(service: &Api<'_, H>, path: &str) -> Result<Self, Failure> {
        let resource = service.get(path).map_err(|failure| match failure.device_code {
            Some(404) => no_such_plug(format!("there is no system at {path}")),
            Some(_) | None => failure,
        })?;
        let kind = resource.get("@odata.type").and_then(Value::as_str);
        match kind.filter(|kind| !kind.starts_with("#ComputerSystem.")) {
            Some(kind) => Err(no_such_plug(format!("{path} is a {kind}, expected a system"))),
            None => Ok(Self { path: path.to_owned(), resource }),
        }
    }

    /// What its power reads: `PowerState` of the schema `Resource`. A word that is not known is no
    /// state.
    pub(crate) fn state(&self) -> PlugState {
        match self.text("PowerState") {
            Some("On") => PlugState::On,
            Some("Off") => PlugState::Off,
            Some("PoweringOn" | "PoweringOff") => PlugState::Transitioning,
            Some(_) | None => PlugState::Unknown,
        }
    }

    /// A chassis that contradicts an `Off`, with its word. OpenBMC tells the state of the *host* as `PowerState` and says `Off`
    /// where it does not know it: a host that hangs while its BMC starts anew keeps its power and reads `Off`
    /// (openbmc/openbmc#2224). Its chassis tell whether there is power. Chassis of other makes say `On` for an enclosure.
    pub(crate) fn contradicted<H: Host>(
        &self,
        service: &Api<'_, H>,
    ) -> Result<Option<String>, Failure> {
        if self.state() != PlugState::Off || !self.is_of_openbmc() {
            return Ok(None);
        }
        for path in self.linked("Chassis") {
            let chassis = service.get(&path)?;
            match chassis.get("PowerState").and_then(Value::as_str) {
                Some("Off") | None => {}
                Some(word) => return Ok(Some(format!("chassis {} {word}", id_of(&path)))),
            }
        }
        Ok(None)
    }

    /// bmcweb, the Redfish service of OpenBMC, calls its manager so (`redfish-manager-uri-name`).
    fn is_of_openbmc(&self) -> bool {
        let managers = self.linked("ManagedBy");
        let mut ids = managers.iter().map(|path| id_of(path).to_ascii_lowercase());
        ids.any(|id| id == "bmc" || id.starts_with("bmc_") || id.starts_with("hgx_bmc"))
    }

    fn linked(&self, what: &str) -> Vec<String> {
        let links = self.resource.pointer(&format!("/Links/{what}")).and_then(Value::as_array);
        let all = links.into_iter().flatten().take(limits::MEMBERS_MAX);
        all.filter_map(|one| link(one, "/@odata.id")).collect()
    }

    /// The word itself, for people.
    pub(crate) fn power_word(&self) -> &str {
        self.text("PowerState").unwrap_or("nothing")
    }

    /// What the BMC calls the machine.
    pub(crate) fn identity(&self) -> Fields {
        let named = [("system-uuid", self.uuid()), ("serial", self.known("SerialNumber"))];
        named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect()
    }

    /// As one of the plugs of the BMC.
    pub(crate) fn plug_info(&self) -> PlugInfo {
        PlugInfo {
            plug: id_of(&self.path).to_owned(),
            name: self.known("Name").unwrap_or_default().to_owned(),
            state: self.state(),
            identity: self.identity(),
        }
    }

    /// Where resets are asked for. `address` is the BMC's own: a target may be written with it.
    pub(crate) fn reset_target(&self, address: &str) -> Result<&str, Failure> {
        let target = self.reset().and_then(|reset| reset.get("target")?.as_str());
        let target = target.ok_or_else(|| {
            Failure::new(
                FailureKind::Unsupported,
                format!("{} names no way to reset it; the BMC cannot switch power", self.path),
            )
        })?;
        path_at(address, target).ok_or_else(|| {
            let sentence = format!("{} is reset at {target}, which is not this BMC", self.path);
            Failure::new(FailureKind::Unsupported, sentence)
        })
    }

    /// The reset types that the BMC says it takes, in the resource or in the action's own; `None` where
    /// it does not say.
    pub(crate) fn reset_types<H: Host>(
        &self,
        service: &Api<'_, H>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let Some(reset) = self.reset() else { return Ok(None) };
        if let Some(listed) = reset.get("ResetType@Redfish.AllowableValues") {
            return Ok(Some(texts(listed)));
        }
        let Some(path) = reset.get("@Redfish.ActionInfo").and_then(Value::as_str) else {
            return Ok(None);
        };
        let info = service.get(path)?;
        let parameters = info.get("Parameters").and_then(Value::as_array);
        let is_type = |one: &&Value| one.get("Name").and_then(Value::as_str) == Some("ResetType");
        let of_type = parameters.and_then(|all| all.iter().find(is_type));
        Ok(of_type.and_then(|one| one.get("AllowableValues")).map(texts))
    }

    fn reset(&self) -> Option<&Value> {
        self.resource.pointer("/Actions/#ComputerSystem.Reset")
    }

    fn uuid(&self) -> Option<&str> {
        let zeros = |uuid: &&str| uuid.chars().any(|digit| digit != '0' && digit != '-');
        self.known("UUID").filter(zeros)
    }

    /// A property that says something.
    fn known(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.resource.get(name)?.as_str()
    }
}

/// The paths of all systems, over all pages of the collection.
fn members<H: Host>(service: &Api<'_, H>) -> Result<Vec<String>, Failure> {
    let root = service.get(ROOT)?;
    let mut next = link(&root, "/Systems/@odata.id").ok_or_else(|| {
        Failure::new(FailureKind::Unsupported, "this Redfish service has no Systems")
    })?;
    let mut paths = Vec::new();
    for _ in 0..limits::PAGES_MAX {
        let page = service.get(&next)?;
        let members = page.get("Members").and_then(Value::as_array);
        let of_page = members.into_iter().flatten();
        paths.extend(of_page.filter_map(|member| link(member, "/@odata.id")));
        if paths.len() > limits::MEMBERS_MAX {
            break;
        }
        let Some(more) = link(&page, "/Members@odata.nextLink") else { return Ok(paths) };
        next = more;
    }
    let sentence = format!("the list of systems has no end after {} of them", paths.len());
    Err(Failure::new(FailureKind::Protocol, sentence))
}

/// The path of an URL at this very host and port; a path is one already.
fn path_at<'t>(address: &str, target: &'t str) -> Option<&'t str> {
    if target.starts_with('/') {
        return Some(target);
    }
    let rest = target.strip_prefix("https://")?;
    let (authority, path) = rest.split_at(rest.find('/')?);
    let own = address.strip_prefix("https://").unwrap_or(address);
    let own = own.split('/').next().unwrap_or(own);
    let is_bare = own.matches(':').count() > 1 && !own.starts_with('[');
    let own = if is_bare { format!("[{own}]") } else { own.to_owned() };
    let plain = |text: &str| text.strip_suffix(":443").unwrap_or(text).to_ascii_lowercase();
    (plain(authority) == plain(&own)).then_some(path)
}

fn link(resource: &Value, pointer: &str) -> Option<String> {
    resource.pointer(pointer)?.as_str().map(str::to_owned)
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// The last segment of a path, which is the id of the resource (DSP0266, 9.5.4).
fn id_of(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, id)| id)
}

fn ids(paths: &[String]) -> String {
    paths.iter().map(|path| id_of(path)).collect::<Vec<_>>().join(", ")
}

fn no_such_plug(detail: String) -> Failure {
    Failure::new(FailureKind::NoSuchPlug, detail)
}

#[cfg(test)]
mod tests {
    use super::path_at;

    #[test]
    fn a_target_at_this_very_bmc_is_a_path() {
        const PATH: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
        for (address, authority) in [
            ("bmc-7.example", "bmc-7.example"),
            ("bmc-7.example", "BMC-7.example:443"),
            ("https://bmc-7.example:443/", "bmc-7.example"),
            ("192.0.2.7:8443", "192.0.2.7:8443"),
            ("fd00::7", "[fd00::7]"),
            ("[fd00::7]:8443", "[fd00::7]:8443"),
        ] {
            assert_eq!(path_at(address, &format!("https://{authority}{PATH}")), Some(PATH));
        }
        assert_eq!(path_at("192.0.2.7", PATH), Some(PATH));
        for other in ["192.0.2.8", "192.0.2.7:8443", "192.0.2.7.example", "a@192.0.2.7"] {
            assert_eq!(path_at("192.0.2.7", &format!("https://{other}{PATH}")), None, "{other}");
        }
        for wrong in ["http://192.0.2.7/x", "https://192.0.2.7", "x", ""] {
            assert_eq!(path_at("192.0.2.7", wrong), None, "{wrong}");
        }
    }
}
