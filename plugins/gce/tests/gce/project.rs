//! A project of Google Compute Engine, in memory: two instances, operations that take their time, and
//! answers in the API's shapes.

use node_remedy_plugin_gce::Gce;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
/// The instance that is asked for.
pub(crate) const PLUG: &str = "gce://p-1/z-1/worker-1";
/// Its path.
pub(crate) const PATH: &str = "/compute/v1/projects/p-1/zones/z-1/instances/worker-1";

/// The project.
pub(crate) struct Project {
    pub(crate) status: String,
    pub(crate) comes: Option<(u64, &'static str)>,
    /// How long a change takes.
    pub(crate) late_ms: u64,
    /// What an operation ends with that fails.
    pub(crate) fails: Option<Value>,
    pub(crate) ends_ms: u64,
    /// What was asked for that is not a read.
    pub(crate) changes: Vec<String>,
}

impl Project {
    /// With an instance of this status.
    pub(crate) fn with(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            comes: None,
            late_ms: 0,
            fails: None,
            ends_ms: 0,
            changes: Vec::new(),
        }
    }

    /// Answers so to what begins so.
    pub(crate) fn instead(self, line: &str, status: u16, body: &str) -> Overlay<Self> {
        Overlay::new(self).instead(line, status, body)
    }

    fn operation(&self, now_ms: u64) -> Value {
        let is_done = now_ms >= self.ends_ms;
        let mut operation = json!({
            "kind": "compute#operation", "name": "operation-1",
            "status": if is_done { "DONE" } else { "RUNNING" },
        });
        if let (Some(error), true) = (&self.fails, is_done) {
            operation["httpErrorStatusCode"] = 503.into();
            operation["error"] = json!({ "errors": [error] });
        }
        operation
    }

    fn answer(&mut self, now_ms: u64, method: &str, path: &str) -> (u16, String) {
        if let Some((_, status)) = self.comes.take_if(|(at_ms, _)| *at_ms <= now_ms) {
            status.clone_into(&mut self.status);
        }
        if (method, path) == ("GET", PATH) {
            return (200, instance("worker-1", &self.status).to_string());
        }
        if (method, path) == ("GET", "/compute/v1/projects/p-1/zones/z-1/operations/operation-1") {
            return (200, self.operation(now_ms).to_string());
        }
        let Some(what) = path.strip_prefix(PATH).filter(|_| method == "POST") else {
            return (404, error("notFound", "The resource was not found"));
        };
        self.changes.push(what.to_owned());
        let (to, _) = what.trim_start_matches('/').split_once('?').unwrap_or((&what[1..], ""));
        self.ends_ms = now_ms + self.late_ms;
        if self.fails.is_none() {
            let to = if to == "stop" { "TERMINATED" } else { "RUNNING" };
            self.comes = Some((self.ends_ms, to));
        }
        (200, self.operation(now_ms).to_string())
    }
}

impl Web for Project {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) = self.answer(now_ms, &request.method, &request.path);
        (50, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// An instance, as the API tells of it.
pub(crate) fn instance(name: &str, status: &str) -> Value {
    let zone = "https://www.googleapis.com/compute/v1/projects/p-1/zones/z-1";
    json!({
        "kind": "compute#instance", "id": "7001", "name": name, "status": status,
        "zone": zone, "selfLink": format!("{zone}/instances/{name}"),
    })
}

/// A refusal.
pub(crate) fn error(reason: &str, message: &str) -> String {
    let one = json!({ "message": message, "domain": "global", "reason": reason });
    json!({ "error": { "code": 400, "message": message, "errors": [one] } }).to_string()
}

/// One call.
pub(crate) fn ask(project: impl Into<Overlay<Project>>, action: Action) -> Ended<Project> {
    ask_for(project, &request(action), |host| host)
}

/// A request as the host makes it.
pub(crate) fn request(action: Action) -> Request {
    Request { plug: PLUG.to_owned(), ..Request::new(action, DEADLINE_MS) }
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    project: impl Into<Overlay<Project>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Project> {
    web::ask::<Gce, Project>("compute", project.into(), request, host)
}
