//! The power of a virtual machine or container of Proxmox VE, over the HTTPS API of a cluster.
//!
//! One call: find the guest that the plug names and the node it is on, do one thing, follow the task
//! that does it to its end, read back. In the order a call runs:
//!
//! * `cluster`: how the API is spoken to, which guests there are, and tasks
//! * `guest`: what one of them reads, and what it can be asked
//!
//! The host logs in, or sends the API token; neither is in this memory. What a task says of itself is
//! told and never believed: the outcome is what the guest read afterwards.
//!
//! What this deliberately is not: a graceful shutdown, a way around locks, or a remedy for a dead
//! Proxmox node. What cannot be read is not off.

mod cluster;
mod guest;

use node_remedy_sdk::power::{Change, Machine, Reading, carry_out};
use node_remedy_sdk::web::Api;
use node_remedy_sdk::{
    Failure, FailureKind, FenceMethod, Fields, Host, Outcome, PlugInfo, PlugsRequest, Request,
    fence_plugin,
};

use cluster::Place;
use guest::Guest;

/// The fence method.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proxmox;

fence_plugin!(Proxmox);

impl FenceMethod for Proxmox {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn run(&self, request: &Request, host: &impl Host) -> Result<Outcome, Failure> {
        let api = api(host, &request.parameters, request.deadline_ms);
        let place = Place::find(&api, &request.plug)?;
        let uuid = guest::uuid(&api, &place);
        let mut machine = Managed { api: &api, place, uuid, is_suspended: false };
        carry_out(request, host, &mut machine)
    }

    fn plugs(&self, request: &PlugsRequest, host: &impl Host) -> Result<Vec<PlugInfo>, Failure> {
        let api = api(host, &request.parameters, request.deadline_ms);
        Ok(Place::all(&api)?.iter().map(Place::plug_info).collect())
    }
}

fn api<'a, H: Host>(host: &'a H, parameters: &Fields, deadline_ms: u32) -> Api<'a, H> {
    let has_token =
        parameters.iter().any(|(name, value)| name == "authentication" && value == "token");
    let manner = if has_token { &cluster::TOKEN } else { &cluster::TICKET };
    Api::new(host, manner, deadline_ms)
}

/// A guest of a cluster.
struct Managed<'a, H> {
    api: &'a Api<'a, H>,
    place: Place,
    /// What its configuration says that its UUID is.
    uuid: Option<String>,
    /// Its memory was on disk when it was read last.
    is_suspended: bool,
}

impl<H: Host> Machine for Managed<'_, H> {
    fn read(&mut self) -> Result<Reading, Failure> {
        let guest = match Guest::read(self.api, &self.place) {
            // A guest that moved is read where it is now.
            Err(failure) if failure.device_code == Some(500) => {
                let found = Place::find(self.api, &self.place.vmid.to_string())?;
                if found == self.place {
                    return Err(failure);
                }
                self.place = found;
                Guest::read(self.api, &self.place)?
            }
            read => read?,
        };
        self.is_suspended = guest.is_suspended();
        let number = Some(self.place.vmid.to_string());
        let identity = [("system-uuid", self.uuid.clone()), ("vmid", number)];
        let told = identity.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(Reading { state: guest.state(), words: guest.words(), identity: told.collect() })
    }

    fn word(&mut self, change: Change) -> Result<String, Failure> {
        if change == Change::On && self.is_suspended {
            let why =
                "not started: its memory is on disk, and it would go on with the pods that it had";
            return Err(Failure::new(FailureKind::Device, why));
        }
        self.place.command(change).map(str::to_owned)
    }

    fn ask(&mut self, change: Change) -> Result<(), Failure> {
        cluster::carry_through(self.api, &self.place, self.place.command(change)?)
    }
}
