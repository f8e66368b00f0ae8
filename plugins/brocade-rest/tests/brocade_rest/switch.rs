//! A switch in memory. Shapes are those of Brocade's YANG module `brocade-interface`, 9.1.0.

use node_remedy_plugin_brocade_rest::BrocadeRest;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::web::text_of;
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
pub(crate) const PORTS: &str = "/rest/running/brocade-interface/fibrechannel";

/// A port.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) is_enabled: bool,
    pub(crate) operation: u32,
    pub(crate) physical: &'static str,
    pub(crate) persistent: Option<bool>,
    /// What stands in `is-enabled-state` against `enabled-state`.
    pub(crate) contradicts: bool,
}

/// The switch.
pub(crate) struct Switch {
    pub(crate) ports: Vec<Port>,
    /// Before Fabric OS 9.
    pub(crate) is_old: bool,
    /// Says yes and does nothing.
    pub(crate) is_stuck: bool,
    /// How long after its yes a port has changed.
    pub(crate) late_ms: u64,
    pub(crate) comes: Vec<(u64, usize, bool)>,
    /// Refuses `persistent-disable`.
    pub(crate) is_passing: bool,
    /// The bodies that it was sent.
    pub(crate) written: Vec<String>,
}

impl Default for Switch {
    fn default() -> Self {
        let mut ports = vec![Port::up(); 4];
        ports[2] = Port { is_enabled: false, operation: 3, physical: "No_Light", ..Port::up() };
        Self {
            ports,
            is_old: false,
            is_stuck: false,
            late_ms: 0,
            comes: Vec::new(),
            is_passing: false,
            written: Vec::new(),
        }
    }
}

impl Port {
    pub(crate) fn up() -> Self {
        Self {
            is_enabled: true,
            operation: 2,
            physical: "Online",
            persistent: Some(false),
            contradicts: false,
        }
    }

    fn document(&self, at: usize, is_old: bool) -> String {
        let number = if self.is_enabled { 2 } else { 6 };
        let word = if is_old {
            String::new()
        } else {
            let word = self.is_enabled != self.contradicts;
            format!("<is-enabled-state>{word}</is-enabled-state>")
        };
        let lasts = self
            .persistent
            .map(|lasts| format!("<persistent-disable>{}</persistent-disable>", u8::from(lasts)));
        format!(
            "<fibrechannel><name>0/{at}</name><wwn>20:0{at}:00:05:33:aa:bb:cc</wwn>\
             <enabled-state>{number}</enabled-state>{word}\
             <user-friendly-name>port{at}</user-friendly-name>\
             <operational-status>{}</operational-status>\
             <physical-state>{}</physical-state>{}</fibrechannel>",
            self.operation,
            self.physical,
            lasts.unwrap_or_default()
        )
    }
}

impl Switch {
    /// With another port 0/1.
    pub(crate) fn reading(change: impl FnOnce(&mut Port)) -> Self {
        let mut switch = Self::default();
        change(&mut switch.ports[1]);
        switch
    }

    fn answer(&mut self, now_ms: u64, request: &HttpRequest) -> (u16, String) {
        for (_, at, enabled) in self.comes.extract_if(.., |(at_ms, ..)| *at_ms <= now_ms) {
            let port = &mut self.ports[at];
            port.is_enabled = enabled;
            port.operation = if enabled { 2 } else { 3 };
            port.physical = if enabled { "Online" } else { "In_Sync" };
        }
        if request.path.split('?').next() != Some(PORTS) {
            return (404, error("Not found"));
        }
        if request.method == "GET" {
            let ports = self.ports.iter().enumerate();
            let ports: Vec<_> = ports.map(|(at, one)| one.document(at, self.is_old)).collect();
            let ports = ports.concat();
            return (200, format!("<?xml version=\"1.0\"?>\n<Response>\n{ports}\n</Response>\n"));
        }
        let body = String::from_utf8(request.body.clone()).unwrap();
        let name = text_of(&body, "name").unwrap();
        let at: usize = name.strip_prefix("0/").unwrap().parse().unwrap();
        let leaf = |name: &str| text_of(&body, name).map(str::to_owned);
        let enabled = leaf("enabled-state").map(|value| value == "2");
        let enabled = enabled.or_else(|| leaf("is-enabled-state").map(|value| value == "true"));
        let lasts = leaf("persistent-disable").map(|value| value == "1");
        self.written.push(body);
        if self.is_passing && lasts.is_some() {
            return (400, error("Not supported on this port"));
        }
        let port = &mut self.ports[at];
        if self.is_stuck {
            return (204, String::new());
        }
        port.persistent = lasts.or(port.persistent);
        self.comes.extend(enabled.map(|enabled| (now_ms + self.late_ms, at, enabled)));
        (204, String::new())
    }
}

impl Web for Switch {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) = self.answer(now_ms, request);
        (20, HttpResponse { status, headers: Vec::new(), body: body.into_bytes() })
    }
}

/// An error as the switch writes it.
pub(crate) fn error(message: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><errors><error><error-type>application</error-type>\
         <error-message>{message}</error-message></error></errors>"
    )
}

/// One call to a switch.
pub(crate) fn ask(web: impl Into<Overlay<Switch>>, action: Action, plug: &str) -> Ended<Switch> {
    ask_for(web, action, plug, &[], |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    web: impl Into<Overlay<Switch>>,
    action: Action,
    plug: &str,
    parameters: &[(&str, &str)],
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Switch> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let request = Request {
        plug: plug.to_owned(),
        parameters: parameters.iter().map(own).collect(),
        ..Request::new(action, DEADLINE_MS)
    };
    web::ask::<BrocadeRest, Switch>("switch", web.into(), &request, host)
}
