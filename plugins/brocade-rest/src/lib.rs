//! The ports of a Fibre Channel switch with Brocade Fabric OS 8.2 or later, over its REST API: a node whose
//! port is disabled has no access to the storage behind it.
//!
//! One call: find the port that the plug names, do one thing, read back. In the order a call runs:
//!
//! * `port`: the ports, as the switch lists them, and when one is cut
//! * here: what is asked for
//!
//! The host begins a session for each call and ends it, for a switch has few; neither password nor session
//! is in this memory. What was accepted is not yet cut: the outcome is what was read afterwards.
//!
//! What this deliberately is not: zoning, E-ports between switches, or power.

mod port;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::{Api, Body, Manner};
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Fields, Host, Level, Outcome, PlugInfo, PlugsRequest,
    Request, fence_plugin,
};

use port::Port;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrocadeRest;

fence_plugin!(BrocadeRest);

const MANNER: Manner = Manner {
    endpoint: "switch",
    device: "the switch",
    request_ms: 30_000,
    headers: &[("Accept", YANG)],
    unauthenticated: "check user name and password",
    denied: "check the role of the account: switchadmin or admin may switch ports, in this logical switch",
    missing: "check that the address is the switch's, that it has Fabric OS 8.2 or later, and that REST is on",
};
/// The media type of Fabric OS.
const YANG: &str = "application/yang-data+xml";
const PORTS: &str = "/rest/running/brocade-interface/fibrechannel";

impl FenceMethod for BrocadeRest {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let switch = Switch::new(host, &request.parameters, request.deadline_ms);
        let name = port::name_of(&request.plug)?;
        let port = switch.port(&name)?;
        let mut port = Managed { switch: &switch, port, is_fresh: true };
        carry_out(request, host, &mut port)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let switch = Switch::new(host, &request.parameters, request.deadline_ms);
        Ok(switch.ports()?.iter().map(Port::plug_info).collect())
    }
}

/// A switch, or one of its logical switches.
struct Switch<'a, H> {
    api: Api<'a, H>,
    path: String,
    is_persistent: bool,
}

impl<'a, H: Host> Switch<'a, H> {
    fn new(host: &'a H, parameters: &Fields, deadline_ms: u32) -> Self {
        let parameter = |wanted: &str| {
            let is_it = |(name, _): &&(String, String)| name == wanted;
            parameters.iter().find(is_it).map(|(_, value)| value.as_str())
        };
        let path = parameter("vf-id").map(|id| format!("{PORTS}?vf-id={id}"));
        Self {
            api: Api::new(host, &MANNER, deadline_ms),
            path: path.unwrap_or_else(|| PORTS.to_owned()),
            is_persistent: parameter("persistent") != Some("false"),
        }
    }

    /// Every port. One alone would need a slash in a segment of the path, which no host lets through.
    fn ports(&self) -> Result<Vec<Port>, Failure> {
        let answer = self.api.ask("GET", &self.path, Body::Empty)?;
        Port::all(&String::from_utf8_lossy(answer.body()))
    }

    fn port(&self, name: &str) -> Result<Port, Failure> {
        let mut ports = self.ports()?;
        let count = ports.len();
        let at = ports.iter().position(|port| port.name == name);
        at.map(|at| ports.swap_remove(at)).ok_or_else(|| {
            let sentence = format!("none of the {count} ports of the switch is {name}");
            Failure::new(FailureKind::NoSuchPlug, sentence)
        })
    }

    /// Changes one leaf of a port.
    fn set(&self, name: &str, leaf: &str, value: &str) -> Result<(), Failure> {
        let document =
            format!("<fibrechannel><name>{name}</name><{leaf}>{value}</{leaf}></fibrechannel>");
        let body = Body::Other { kind: YANG, document: &document };
        self.api.ask("PATCH", &self.path, body).map(|_| ())
    }
}

/// A port of a switch.
struct Managed<'a, H> {
    switch: &'a Switch<'a, H>,
    port: Port,
    /// Whether nobody looked at what was read of it yet.
    is_fresh: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        if !std::mem::take(&mut self.is_fresh) {
            self.port = self.switch.port(&self.port.name)?;
        }
        let (state, words) = (self.port.state(), self.port.words());
        Ok(Reading { state, words, identity: Fields::new() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        match change {
            Change::Off => Ok("disable".to_owned()),
            Change::On => Ok("enable".to_owned()),
            Change::Reset => Err(Failure::new(FailureKind::Unsupported, "a port has no reset")),
        }
    }

    /// Cut first, and then for good; the other way round when it is restored.
    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let (switch, port) = (self.switch, &self.port);
        let (leaf, [off, on]) = port.enabling();
        let lasts = switch.is_persistent && port.persistent.is_some();
        if change == Change::Off {
            switch.set(&port.name, leaf, off)?;
            if lasts && let Err(failure) = switch.set(&port.name, "persistent-disable", "1") {
                let sentence = format!("cut until the switch restarts: {}", failure.detail);
                switch.api.host().log(Level::Warn, &sentence);
            }
            return Ok(());
        }
        if port.persistent == Some(true) {
            switch.set(&port.name, "persistent-disable", "0")?;
        }
        switch.set(&port.name, leaf, on)
    }
}
