//! S5: a power command stands in the record before the device hears it, and what nobody heard the
//! end of is read and never repeated blindly.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_world::facts::{Taken, What};
use node_remedy_world::time::Time;

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

#[derive(Default)]
pub(super) struct Intent {
    miswired: BTreeSet<u64>,
    /// Each node's last recorded command: the operation's number, its method, what it does.
    recorded: BTreeMap<String, (u64, String, String)>,
    /// The operation whose command the device of each node's method took last.
    taken: BTreeMap<(String, String), u64>,
    /// Nodes and methods whose device took a command, which, and no read was begun since.
    unread: BTreeMap<(String, String), String>,
}

impl Intent {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { miswired: setting.miswired.clone(), ..Self::default() }
    }
}

impl Check for Intent {
    fn see(&mut self, _: &Scene, _: Time, what: &What) -> Option<String> {
        if let What::IntentRecorded { node, operation, method, action, .. } = what {
            // What a call reads about its own command is no other look at the device.
            if action == "status" {
                self.unread.remove(&(node.clone(), method.clone()));
            } else {
                let recorded = (*operation, method.clone(), action.clone());
                self.recorded.insert(node.clone(), recorded);
            }
        }
        let Taken { node, command, plug, .. } = what.taken()?;
        if self.miswired.contains(&plug.1) {
            return None;
        }
        let Some((operation, method, action)) = self.recorded.get(node) else {
            return Some("nothing of it stands in a record".to_owned());
        };
        if !action.eq_ignore_ascii_case(command) {
            return Some(format!("the record says {action}"));
        }
        // A datagram that is sent again is the same operation.
        let of = (node.to_owned(), method.clone());
        let is_next = self.taken.insert(of.clone(), *operation) != Some(*operation);
        // The way back is open to a plug that nobody read: an `on` is never gated (A2).
        let before = if is_next { self.unread.insert(of, command.into()) } else { None };
        let is_blind = before.is_some_and(|before| before == command || command != "on");
        is_blind.then(|| "asked again, and nobody read what the last one did".to_owned())
    }
}
