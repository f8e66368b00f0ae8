//! A server: its id, what it reads, and when that is off.

use node_remedy_sdk::{Failure, FailureKind, Host, PlugInfo, PlugState};
use serde_json::Value;

use crate::cloud::Cloud;

/// Servers on one page: each has three to four kilobytes.
const PAGE: usize = 100;
/// Pages that are read.
const PAGES_MAX: usize = 20;

/// A server, as it was read.
pub(crate) struct Server {
    pub(crate) id: String,
    name: String,
    /// What Nova has made of it, whatever is being done with it.
    vm_state: String,
    /// What is being done with it.
    task_state: Option<String>,
    /// What the hypervisor said last.
    power_state: Option<i64>,
}

/// The id in a plug: an UUID, or the last segment of `openstack:///UUID`, `openstack://REGION/UUID`.
pub(crate) fn id_of(plug: &str) -> Result<&str, Failure> {
    let id = plug
        .strip_prefix("openstack://")
        .map_or(plug, |path| path.rsplit_once('/').map_or(path, |(_, id)| id));
    let groups: Vec<_> = id.split('-').collect();
    let is_uuid = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_uuid {
        return Ok(id);
    }
    let sentence = format!("found the plug {plug:?}, expected a server's id or openstack:///ID");
    Err(Failure::new(FailureKind::NoSuchPlug, sentence))
}

impl Server {
    /// Reads the server of this id.
    pub(crate) fn read<H: Host>(cloud: &Cloud<'_, H>, id: &str) -> Result<Self, Failure> {
        let path = cloud.path(&format!("/servers/{id}"));
        let answer = match cloud.api.get(&path) {
            // Nova names the refusal; another server's 404 is a wrong address.
            Err(failure)
                if failure.device_code == Some(404)
                    && failure.detail.contains("could not be found") =>
            {
                let elsewhere = cloud.difference().map(|other| format!("; {other}"));
                let elsewhere = elsewhere.unwrap_or_default();
                let sentence = format!("there is no server {id} in the project{elsewhere}");
                return Err(Failure::new(FailureKind::NoSuchPlug, sentence));
            }
            answer => answer?,
        };
        let server = answer.get("server").and_then(Self::of);
        let server = server.filter(|server| server.id.eq_ignore_ascii_case(id));
        server.ok_or_else(|| {
            Failure::new(FailureKind::Protocol, format!("GET {path}: found no server {id} in it"))
        })
    }

    /// All servers that the account sees.
    pub(crate) fn all<H: Host>(cloud: &Cloud<'_, H>) -> Result<Vec<Self>, Failure> {
        let mut all: Vec<Self> = Vec::new();
        for _ in 0..PAGES_MAX {
            let after = all.last().map(|last| format!("&marker={}", last.id)).unwrap_or_default();
            let path = cloud.path(&format!("/servers/detail?limit={PAGE}{after}"));
            let answer = cloud.api.get(&path)?;
            let page = answer.get("servers").and_then(Value::as_array).ok_or_else(|| {
                Failure::new(FailureKind::Protocol, format!("GET {path}: found no list of servers"))
            })?;
            all.extend(page.iter().filter_map(Self::of));
            if page.len() < PAGE {
                return Ok(all);
            }
        }
        let sentence = format!("the list of servers has no end after {} of them", all.len());
        Err(Failure::new(FailureKind::Protocol, sentence))
    }

    fn of(server: &Value) -> Option<Self> {
        let text = |name: &str| server.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            id: text("id")?,
            name: text("name").unwrap_or_default(),
            vm_state: text("OS-EXT-STS:vm_state").unwrap_or_else(|| "not told".to_owned()),
            task_state: text("OS-EXT-STS:task_state"),
            power_state: server.get("OS-EXT-STS:power_state").and_then(Value::as_i64),
        })
    }

    /// Off is what Nova stopped, what the hypervisor says is shut down, and what nothing is being done
    /// with. Suspended and shelved servers have what they come back with; of `error` nobody knows.
    pub(crate) fn state(&self) -> PlugState {
        match (self.vm_state.as_str(), self.task_state.as_deref(), self.power_state) {
            // A copy of its disk is made while it runs.
            (_, Some(task), Some(1 | 3)) if task.starts_with("image_") => PlugState::On,
            (_, Some(_), _) => PlugState::Transitioning,
            ("stopped", None, Some(4)) => PlugState::Off,
            // Paused holds its memory and goes on where it was.
            (_, None, Some(1 | 3)) => PlugState::On,
            (_, None, _) => PlugState::Unknown,
        }
    }

    /// The device's own words.
    pub(crate) fn words(&self) -> String {
        let power = match self.power_state {
            Some(0) => "no state".to_owned(),
            Some(1) => "running".to_owned(),
            Some(3) => "paused".to_owned(),
            Some(4) => "shut down".to_owned(),
            Some(6) => "crashed".to_owned(),
            Some(7) => "suspended".to_owned(),
            Some(other) => format!("number {other}"),
            None => "not told".to_owned(),
        };
        let task = self.task_state.as_deref().unwrap_or("none");
        format!("vm_state is {}, task {task}, power {power}", self.vm_state)
    }

    /// As one of the plugs of the project.
    pub(crate) fn plug_info(&self) -> PlugInfo {
        let identity = vec![("instance-id".to_owned(), self.id.clone())];
        PlugInfo { plug: self.id.clone(), name: self.name.clone(), state: self.state(), identity }
    }
}
