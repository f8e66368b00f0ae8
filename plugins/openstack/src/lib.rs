//! The power of a server of OpenStack: Nova's API v2.1 over HTTPS, with tokens of Keystone v3.
//!
//! One call: find the server that the plug names by its id, do one thing, read back. In the order a call
//! runs:
//!
//! * `cloud`: which of the ways in is used, where Nova is, and whether the catalogue agrees
//! * `server`: what a server reads, and when that is off
//!
//! The host logs in; neither password nor token is in this memory. Nova says yes at once and acts
//! later: an accepted `os-stop` is never reported as off.
//!
//! What this deliberately is not: evacuation, or a judgement about a dead compute host.

mod cloud;
mod server;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::Body;
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Host, Outcome, PlugInfo, PlugState, PlugsRequest, Request,
    fence_plugin,
};
use serde_json::{Value, json};

use cloud::Cloud;
use server::Server;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenStack;

fence_plugin!(OpenStack);

impl FenceMethod for OpenStack {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let cloud = Cloud::new(host, &request.parameters, request.deadline_ms)?;
        let id = server::id_of(&request.plug)?;
        let server = Server::read(&cloud, id)?;
        cloud.compare_with_catalogue();
        let is_provider_id = request.plug.contains("://");
        let mut machine = Managed { cloud: &cloud, server, is_provider_id, is_fresh: true };
        carry_out(request, host, &mut machine)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let cloud = Cloud::new(host, &request.parameters, request.deadline_ms)?;
        Ok(Server::all(&cloud)?.iter().map(Server::plug_info).collect())
    }
}

/// A server of a project.
struct Managed<'a, H> {
    cloud: &'a Cloud<'a, H>,
    server: Server,
    /// Whether the plug is the node's providerID.
    is_provider_id: bool,
    /// Whether nobody looked at what was read of it yet.
    is_fresh: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        if !std::mem::take(&mut self.is_fresh) {
            self.server = Server::read(self.cloud, &self.server.id)?;
        }
        let Server { id, .. } = &self.server;
        let mut identity = vec![("instance-id".to_owned(), id.clone())];
        if !self.is_provider_id {
            // Nova shows a virtual machine its own id as the UUID of its firmware. Bare metal has one of its own.
            identity.push(("system-uuid".to_owned(), id.clone()));
        }
        let (state, words) = (self.server.state(), self.server.words());
        Ok(Reading { state, words, identity })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        if change == Change::Reset && self.server.state() == PlugState::Off {
            let sentence = "the server is off, and a hard reboot would start it";
            return Err(Failure::new(FailureKind::Device, sentence));
        }
        Ok(action(change).0.to_owned())
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        let path = self.cloud.path(&format!("/servers/{}/action", self.server.id));
        self.cloud.api.ask("POST", &path, Body::Json(&action(change).1)).map(|_| ())
    }
}

/// What is asked for, for people and for Nova. None of it asks an operating system: `os-stop` does first,
/// where an image says so, and then no longer.
fn action(change: Change) -> (&'static str, Value) {
    match change {
        Change::Off => ("os-stop", json!({ "os-stop": null })),
        Change::On => ("os-start", json!({ "os-start": null })),
        Change::Reset => ("hard reboot", json!({ "reboot": { "type": "HARD" } })),
    }
}
