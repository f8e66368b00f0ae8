//! A cluster of Proxmox VE in memory: guests on nodes, tasks that change them, and what goes wrong.
//! Shapes are those of the API viewer of Proxmox VE 8.

use node_remedy_plugin_proxmox::Proxmox;
use node_remedy_sdk::testing::web::{self, Ended, Overlay};
use node_remedy_sdk::testing::{TestHost, Web};
use node_remedy_sdk::{Action, HttpRequest, HttpResponse, Request};
use serde_json::{Value, json};

/// As most calls are allowed to take.
pub(crate) const DEADLINE_MS: u32 = 60_000;
pub(crate) const UUID: &str = "11111111-2222-4333-8444-555555555501";

/// A guest.
pub(crate) struct Guest {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) node: &'static str,
    /// `status/current`.
    pub(crate) current: Value,
    pub(crate) is_template: bool,
}

/// The cluster.
pub(crate) struct Cluster {
    pub(crate) guests: Vec<Guest>,
    /// How long a task takes.
    pub(crate) task_ms: u64,
    /// What a task ends with.
    pub(crate) exit: &'static str,
    /// Tasks end, and nothing happens.
    pub(crate) is_stuck: bool,
    /// After so many reads of a guest it is on another node.
    pub(crate) moves_after: Option<u32>,
    /// Commands that were begun, and when they are done.
    pub(crate) begun: Vec<(String, u64)>,
    /// What comes of a guest when its task ends.
    pub(crate) comes: Vec<(u64, u64, &'static str)>,
}

impl Default for Cluster {
    fn default() -> Self {
        let guest = |number, name, kind, node, status| Guest {
            number,
            name,
            kind,
            node,
            current: json!({ "vmid": number, "name": name, "status": status }),
            is_template: false,
        };
        Self {
            guests: vec![
                guest(101, "node1", "qemu", "pve1", "running"),
                guest(102, "node2", "qemu", "pve2", "stopped"),
                guest(201, "box1", "lxc", "pve2", "running"),
            ],
            task_ms: 1_500,
            exit: "OK",
            is_stuck: false,
            moves_after: None,
            begun: Vec::new(),
            comes: Vec::new(),
        }
    }
}

impl Cluster {
    /// With another word or two of its first guest.
    pub(crate) fn reading(words: &Value) -> Self {
        let mut cluster = Self::default();
        let current = cluster.guests[0].current.as_object_mut().unwrap();
        current.extend(words.as_object().unwrap().clone());
        cluster
    }

    fn answer(&mut self, now_ms: u64, request: &HttpRequest) -> Option<(u16, Value)> {
        for (_, number, status) in self.comes.extract_if(.., |(at_ms, ..)| *at_ms <= now_ms) {
            for guest in self.guests.iter_mut().filter(|one| one.number == number) {
                guest.current["status"] = status.into();
            }
        }
        let path = request.path.strip_prefix("/api2/json/")?;
        if path == "cluster/resources?type=vm" {
            let list = self.guests.iter().map(|one| {
                json!({
                    "type": one.kind, "vmid": one.number, "name": one.name, "node": one.node,
                    "status": one.current["status"], "template": u8::from(one.is_template),
                })
            });
            return Some((200, json!({ "data": list.collect::<Vec<_>>() })));
        }
        let path = path.strip_prefix("nodes/")?;
        let (node, path) = path.split_once('/')?;
        if let Some(task) = path.strip_prefix("tasks/") {
            let task = task.strip_suffix("/status")?;
            let at: usize = task.split(':').nth(2)?.parse().ok()?;
            let (_, done_ms) = self.begun.get(at)?;
            let data = if now_ms < *done_ms {
                json!({ "upid": task, "status": "running" })
            } else {
                json!({ "upid": task, "status": "stopped", "exitstatus": self.exit })
            };
            return Some((200, json!({ "data": data })));
        }
        let mut parts = path.split('/');
        let (kind, number) = (parts.next()?, parts.next()?.parse::<u64>().ok()?);
        let rest = parts.collect::<Vec<_>>().join("/");
        self.move_on();
        let (task_ms, has_effect) = (self.task_ms, !self.is_stuck && self.exit == "OK");
        let at = self.begun.len();
        let is_it = |one: &&Guest| (one.kind, one.number, one.node) == (kind, number, node);
        let Some(guest) = self.guests.iter().find(is_it) else {
            let gone =
                format!("Configuration file 'nodes/{node}/{kind}/{number}' does not exist\n");
            return Some((500, json!({ "data": null, "message": gone })));
        };
        match (request.method.as_str(), rest.as_str()) {
            ("GET", "status/current") => Some((200, json!({ "data": guest.current }))),
            ("GET", "config") => {
                let data =
                    json!({ "name": guest.name, "smbios1": format!("uuid={UUID},base64=1") });
                Some((200, json!({ "data": data })))
            }
            ("POST", command) => {
                let command = command.strip_prefix("status/")?;
                if has_effect {
                    let status = if command == "stop" { "stopped" } else { "running" };
                    self.comes.push((now_ms.saturating_add(task_ms), number, status));
                }
                self.begun.push((format!("{command} {number}"), now_ms.saturating_add(task_ms)));
                let task =
                    format!("UPID:{node}:{at}:00001B58:6B0302B2:qm{command}:{number}:root@pam:");
                Some((200, json!({ "data": task })))
            }
            _ => None,
        }
    }

    fn move_on(&mut self) {
        if let Some(left) = &mut self.moves_after {
            if *left == 0 {
                self.guests[0].node = "pve9";
            }
            *left = left.saturating_sub(1);
        }
    }
}

impl Web for Cluster {
    fn exchange(&mut self, now_ms: u64, request: &HttpRequest) -> (u64, HttpResponse) {
        let (status, body) =
            self.answer(now_ms, request).unwrap_or_else(|| (501, json!({ "data": null })));
        (20, HttpResponse { status, headers: Vec::new(), body: body.to_string().into_bytes() })
    }
}

/// An error as the API writes it.
pub(crate) fn error(message: &str) -> String {
    json!({ "data": null, "message": format!("{message}\n") }).to_string()
}

/// One call to a cluster.
pub(crate) fn ask(web: impl Into<Overlay<Cluster>>, action: Action, plug: &str) -> Ended<Cluster> {
    let request = Request { plug: plug.to_owned(), ..Request::new(action, DEADLINE_MS) };
    ask_for(web, &request, |host| host)
}

/// The same, with all that can be said.
pub(crate) fn ask_for(
    web: impl Into<Overlay<Cluster>>,
    request: &Request,
    host: impl FnOnce(TestHost) -> TestHost,
) -> Ended<Cluster> {
    web::ask::<Proxmox, Cluster>("api", web.into(), request, host)
}
