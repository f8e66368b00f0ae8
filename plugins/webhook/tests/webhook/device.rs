//! Devices in memory that answer to HTTP: two kinds of smart plug in the shapes that their makers publish,
//! and a home-made controller.

use std::cell::RefCell;
use std::rc::Rc;

use node_remedy_plugin_webhook::Webhook;
use node_remedy_sdk::testing::{TestHost, Trace, Web};
use node_remedy_sdk::{Action, Failure, FenceMethod, HttpRequest, HttpResponse, Outcome, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;

/// Shelly's second generation: outlet 0 by remote procedure calls.
pub(crate) const SHELLY: &[(&str, &str)] = &[
    ("status-path", "/rpc/Switch.GetStatus?id={plug}"),
    ("state-pointer", "/output"),
    ("on-words", "true"),
    ("off-words", "false"),
    ("off-method", "GET"),
    ("off-path", "/rpc/Switch.Set?id={plug}&on=false"),
    ("on-method", "GET"),
    ("on-path", "/rpc/Switch.Set?id={plug}&on=true"),
];

/// Tasmota: one command language behind one path.
pub(crate) const TASMOTA: &[(&str, &str)] = &[
    ("status-path", "/cm?cmnd=Power"),
    ("state-pointer", "/POWER"),
    ("on-words", "ON"),
    ("off-words", "OFF"),
    ("off-method", "GET"),
    ("off-path", "/cm?cmnd=Power%20{action}"),
    ("on-method", "GET"),
    ("on-path", "/cm?cmnd=Power%20{action}"),
];

/// A controller of one's own: outlets by name, bodies in JSON, an answer that is a word.
pub(crate) const HOME_MADE: &[(&str, &str)] = &[
    ("status-path", "/outlets/{plug}"),
    ("on-words", "on, warm"),
    ("off-words", "off"),
    ("off-method", "PUT"),
    ("off-path", "/outlets/{plug}"),
    ("off-body", r#"{"outlet": "{plug}", "state": "{action}"}"#),
    ("on-path", "/outlets/{plug}"),
    ("on-body", r#"{"outlet": "{plug}", "state": "{action}"}"#),
    ("reset-path", "/outlets/{plug}/cycle"),
];

/// What the device answers instead of what it should, where a method and a path begin so.
pub(crate) struct Instead {
    line: &'static str,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    takes_ms: u64,
}

/// A device with one outlet, whose name is `name`.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) is_on: bool,
    /// What it will be, and when.
    pub(crate) comes: Option<(u64, bool)>,
    pub(crate) instead: Vec<Instead>,
    /// How long after its yes a change shows.
    pub(crate) late_ms: u64,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// Switches itself on again.
    pub(crate) flips_back: bool,
    /// Every request: line, content type, body.
    pub(crate) heard: Vec<(String, String, String)>,
}

impl Device {
    pub(crate) fn on(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_on: true,
            comes: None,
            instead: Vec::new(),
            late_ms: 0,
            is_stuck: false,
            flips_back: false,
            heard: Vec::new(),
        }
    }

    pub(crate) fn instead(mut self, line: &'static str, status: u16, body: &[u8]) -> Self {
        let (headers, body) = (Vec::new(), body.to_vec());
        self.instead.push(Instead { line, status, headers, body, takes_ms: 5 });
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(last) = self.instead.last_mut() {
            last.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub(crate) fn silent(mut self, line: &'static str) -> Self {
        let (headers, body) = (Vec::new(), Vec::new());
        self.instead.push(Instead { line, status: 200, headers, body, takes_ms: u64::MAX });
        self
    }

    fn set(&mut self, now_ms: u64, on: bool) {
        if !self.is_stuck {
            self.comes = Some((now_ms + self.late_ms, on));
        }
        self.settle(now_ms);
        if self.flips_back {
            self.comes = Some((now_ms + 1, true));
        }
    }

    fn settle(&mut self, now_ms: u64) {
        if let Some((_, on)) = self.comes.take_if(|(at_ms, _)| *at_ms <= now_ms) {
            self.is_on = on;
        }
    }

    /// Status and body of an answer.
    fn answer(&mut self, now_ms: u64, line: &str, body: &str) -> (u16, String) {
        self.settle(now_ms);
        let name = &self.name;
        let none = || (404, json!({"code": -105, "message": "not found"}).to_string());
        if let Some(query) = line.strip_prefix("GET /rpc/Switch.Set?") {
            let was_on = self.is_on;
            let on = match query.strip_prefix(&format!("id={name}&on=")) {
                Some("true") => true,
                Some("false") => false,
                _ => return none(),
            };
            self.set(now_ms, on);
            return (200, json!({ "was_on": was_on }).to_string());
        }
        if line == format!("GET /rpc/Switch.GetStatus?id={name}") {
            let status = json!({"id": 0, "source": "HTTP_in", "output": self.is_on, "apower": 8.9,
                "temperature": {"tC": 46.5}});
            return (200, status.to_string());
        }
        if let Some(command) = line.strip_prefix("GET /cm?cmnd=") {
            match command.to_ascii_lowercase().as_str() {
                "power" => {}
                "power%20on" => self.set(now_ms, true),
                "power%20off" => self.set(now_ms, false),
                _ => return (200, json!({"Command": "Unknown"}).to_string()),
            }
            let word = if self.is_on { "ON" } else { "OFF" };
            return (200, json!({ "POWER": word }).to_string());
        }
        let path = format!("/outlets/{name}");
        let state = if self.is_on { "warm\n" } else { "off\n" };
        match line.split_once(' ') {
            Some(("GET", found)) if found == path => (200, state.to_owned()),
            Some(("POST", found)) if found == format!("{path}/cycle") => (202, String::new()),
            Some(("PUT" | "POST", found)) if found == path => {
                let asked: Value = serde_json::from_str(body).unwrap();
                assert_eq!(asked["outlet"], name.as_str());
                self.set(now_ms, asked["state"] == "on");
                (204, String::new())
            }
            _ => none(),
        }
    }
}

impl Web for Device {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let line = format!("{} {}", request.method, request.path);
        let body = String::from_utf8(request.body.clone()).unwrap();
        let content_type = request.headers.iter().map(|(_, value)| value.clone()).collect();
        self.heard.push((line.clone(), content_type, body.clone()));
        if let Some(one) = self.instead.iter().find(|one| line.starts_with(one.line)) {
            let Instead { status, headers, body, takes_ms, .. } = one;
            let (headers, body) = (headers.clone(), body.clone());
            return (*takes_ms, HttpResponse { status: *status, headers, body });
        }
        let (status, body) = self.answer(now_ms, &line, &body);
        (20, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// What a call came to.
pub(crate) struct Ended {
    pub(crate) result: Result<Outcome, Failure>,
    pub(crate) took_ms: u128,
    pub(crate) trace: Vec<Trace>,
    pub(crate) device: Rc<RefCell<Device>>,
}

pub(crate) fn request(action: Action, plug: &str, parameters: &[(&str, &str)]) -> Request {
    let parameters = parameters.iter().map(|(key, value)| ((*key).into(), (*value).into()));
    Request {
        plug: plug.to_owned(),
        parameters: parameters.collect(),
        ..Request::new(action, DEADLINE_MS)
    }
}

/// One call to a device, over TLS.
pub(crate) fn ask(
    device: Device,
    action: Action,
    plug: &str,
    parameters: &[(&str, &str)],
) -> Ended {
    ask_for(device, &request(action, plug, parameters), |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    device: Device,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended {
    let device = Rc::new(RefCell::new(device));
    let plain = TestHost::new(u64::from(request.deadline_ms)).web("https", device.clone());
    let host = host(plain);
    let result = Webhook.run(request, &host);
    Ended { result, took_ms: host.elapsed().as_millis(), trace: host.trace(), device }
}
