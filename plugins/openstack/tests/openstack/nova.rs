//! Nova in memory: servers that are stopped and started some time after it said yes. Shapes are those of
//! the compute API reference, v2.1.

use node_remedy_plugin_openstack::OpenStack;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, Fields, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
pub(crate) const ID: &str = "11111111-2222-4333-8444-555555555501";
pub(crate) const OTHER: &str = "11111111-2222-4333-8444-555555555502";
pub(crate) const STRANGER: &str = "11111111-2222-4333-8444-555555555599";

/// Nova.
pub(crate) struct Nova {
    pub(crate) servers: Vec<Value>,
    /// How long after its yes a server has changed.
    pub(crate) late_ms: u64,
    /// The compute host is dead: what was accepted never comes.
    pub(crate) is_dead: bool,
    /// Servers in the list of the project.
    pub(crate) listed: usize,
    /// What comes, and when.
    pub(crate) comes: Vec<(u64, usize, &'static str)>,
    /// What was asked for: server and action.
    pub(crate) actions: Vec<(String, Value)>,
}

impl Default for Nova {
    fn default() -> Self {
        Self {
            servers: vec![server(ID, "node1", "active", 1), server(OTHER, "node2", "stopped", 4)],
            late_ms: 0,
            is_dead: false,
            listed: 2,
            comes: Vec::new(),
            actions: Vec::new(),
        }
    }
}

impl Nova {
    /// With another word or two of its first server.
    pub(crate) fn reading(vm_state: &str, task: Option<&str>, power: i64) -> Self {
        let mut nova = Self::default();
        nova.servers[0] = server(ID, "node1", vm_state, power);
        nova.servers[0]["OS-EXT-STS:task_state"] = task.into();
        nova
    }

    fn answer(&mut self, now_ms: u64, request: &HttpRequest) -> Option<(u16, Value)> {
        for (_, at, word) in self.comes.extract_if(.., |(at_ms, _, _)| *at_ms <= now_ms) {
            let (state, power) = if word == "os-stop" { ("stopped", 4) } else { ("active", 1) };
            let name = self.servers[at]["name"].as_str().unwrap().to_owned();
            let id = self.servers[at]["id"].as_str().unwrap().to_owned();
            self.servers[at] = server(&id, &name, state, power);
        }
        let path = request.path.strip_prefix("/v2.1/servers/")?;
        if let Some(query) = path.strip_prefix("detail?limit=100") {
            let after = query.strip_prefix("&marker=").map_or(0, |id| {
                let last: usize = id.rsplit('-').next().unwrap().parse().unwrap();
                last + 1
            });
            let page = (after..self.listed).take(100).map(|number| {
                server(&format!("11111111-2222-4333-8444-{number:012}"), "many", "active", 1)
            });
            return Some((200, json!({ "servers": page.collect::<Vec<_>>() })));
        }
        let (id, rest) = path.split_once('/').unwrap_or((path, ""));
        let Some(at) = self.servers.iter().position(|one| one["id"] == id) else {
            return Some((
                404,
                refusal("itemNotFound", &format!("Instance {id} could not be found.")),
            ));
        };
        if rest.is_empty() {
            return Some((200, json!({ "server": self.servers[at] })));
        }
        let asked: Value = serde_json::from_slice(&request.body).ok()?;
        let word =
            ["os-stop", "os-start", "reboot"].into_iter().find(|word| asked.get(word).is_some())?;
        self.actions.push((id.to_owned(), asked));
        let so_already = if word == "os-stop" { "stopped" } else { "active" };
        if self.servers[at]["OS-EXT-STS:vm_state"] == so_already && word != "reboot" {
            let says = format!(
                "Cannot '{}' instance {id} while it is in vm_state {so_already}",
                &word[3..]
            );
            return Some((409, refusal("conflictingRequest", &says)));
        }
        self.servers[at]["OS-EXT-STS:task_state"] = "powering-off".into();
        if !self.is_dead {
            self.comes.push((now_ms + self.late_ms, at, word));
        }
        Some((202, Value::Null))
    }
}

impl Web for Nova {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) = self.answer(now_ms, request).unwrap_or((400, Value::Null));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        (20, HttpResponse { status, headers: Vec::new(), body })
    }
}

fn server(id: &str, name: &str, vm_state: &str, power: i64) -> Value {
    json!({
        "id": id, "name": name, "status": if vm_state == "stopped" { "SHUTOFF" } else { "ACTIVE" },
        "OS-EXT-STS:vm_state": vm_state, "OS-EXT-STS:task_state": null,
        "OS-EXT-STS:power_state": power,
    })
}

/// A refusal as Nova writes it.
pub(crate) fn refusal(name: &str, message: &str) -> Value {
    json!({ name: { "code": 400, "message": message } })
}

/// Keystone's catalogue with compute at this place.
pub(crate) fn catalogue(url: &str) -> String {
    json!({ "/token/catalog": [
        { "type": "identity", "endpoints": [{ "url": "https://cloud:5000", "region": "north" }] },
        { "type": "compute", "endpoints": [{ "url": url, "region": "north", "interface": "public" }] },
    ]})
    .to_string()
}

pub(crate) fn parameters() -> Fields {
    [
        ("auth-url", "https://cloud:5000/v3"),
        ("compute-url", "https://cloud:8774/v2.1/"),
        ("authentication", "password"),
        ("project", "cluster"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// One call to Nova.
pub(crate) fn ask(web: impl Into<Overlay<Nova>>, action: Action, plug: &str) -> Ended<Nova> {
    ask_for(web, action, plug, |request| request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    web: impl Into<Overlay<Nova>>,
    action: Action,
    plug: &str,
    request: impl FnOnce(Request) -> Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Nova> {
    let plain = Request::new(action, DEADLINE_MS);
    let plain = Request { plug: plug.to_owned(), parameters: parameters(), ..plain };
    web::ask::<OpenStack, Nova>("compute", web.into(), &request(plain), host)
}
