//! An engine in memory. Shapes are those of the REST API guide of oVirt 4.5.

use node_remedy_plugin_ovirt::Ovirt;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
pub(crate) const ID: &str = "11111111-2222-4333-8444-555555555501";
pub(crate) const OTHER: &str = "11111111-2222-4333-8444-555555555502";
pub(crate) const STRANGER: &str = "11111111-2222-4333-8444-555555555599";

/// The engine: ids, names and statuses of its machines.
pub(crate) struct Engine {
    pub(crate) machines: Vec<(String, String, String)>,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// How long after its yes a machine has changed.
    pub(crate) late_ms: u64,
    pub(crate) comes: Vec<(u64, usize, &'static str)>,
    /// What was asked for.
    pub(crate) asked: Vec<String>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::with(&[(ID, "node1", "up"), (OTHER, "node2", "down")])
    }
}

impl Engine {
    pub(crate) fn with(machines: &[(&str, &str, &str)]) -> Self {
        let own =
            |&(id, name, status): &(&str, &str, &str)| (id.into(), name.into(), status.into());
        Self {
            machines: machines.iter().map(own).collect(),
            is_stuck: false,
            late_ms: 0,
            comes: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Whose machines never change.
    pub(crate) fn stuck(status: &str) -> Self {
        let mut engine = Self::with(&[(ID, "node1", status)]);
        engine.is_stuck = true;
        engine
    }

    pub(crate) fn late(late_ms: u64) -> Self {
        Self { late_ms, ..Self::default() }
    }

    fn answer(&mut self, now_ms: u64, request: &HttpRequest) -> Option<(u16, Value)> {
        for (_, at, status) in self.comes.extract_if(.., |(at_ms, _, _)| *at_ms <= now_ms) {
            status.clone_into(&mut self.machines[at].2);
        }
        let of = |(id, name, status): &(String, String, String)| json!({ "id": id, "name": name, "status": status, "href": format!("/ovirt-engine/api/vms/{id}") });
        let path = request.path.strip_prefix("/ovirt-engine/api/vms")?;
        if path.is_empty() || path.starts_with('?') {
            let name = path.strip_prefix("?search=name%3D");
            let is_it = |one: &&(String, String, String)| {
                name.is_none_or(|name| one.1.eq_ignore_ascii_case(name))
            };
            let list: Vec<_> = self.machines.iter().filter(is_it).map(of).collect();
            let answer = if list.is_empty() { json!({}) } else { json!({ "vm": list }) };
            return Some((200, answer));
        }
        let (id, word) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        let Some(at) = self.machines.iter().position(|one| one.0 == id) else {
            return Some((404, Value::Null));
        };
        if word.is_empty() {
            return Some((200, of(&self.machines[at])));
        }
        self.asked.push(format!("{word} {id}"));
        let (status, so_already) = if word == "stop" { ("down", "down") } else { ("up", "up") };
        if self.machines[at].2 == so_already && word != "reset" {
            return Some((409, error(&format!("[Cannot {word} VM. VM is {so_already}.]"))));
        }
        if !self.is_stuck {
            self.comes.push((now_ms + self.late_ms, at, status));
        }
        Some((200, json!({ "status": "complete" })))
    }
}

impl Web for Engine {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) = self.answer(now_ms, request).unwrap_or((400, Value::Null));
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        (20, HttpResponse { status, headers: Vec::new(), body })
    }
}

/// A fault as the API writes it.
pub(crate) fn error(detail: &str) -> Value {
    json!({ "reason": "Operation Failed", "detail": detail })
}

/// One call to an engine.
pub(crate) fn ask(web: impl Into<Overlay<Engine>>, action: Action, plug: &str) -> Ended<Engine> {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(web, &request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    web: impl Into<Overlay<Engine>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Engine> {
    web::ask::<Ovirt, Engine>("engine", web.into(), request, host)
}
