//! S5: a power command stands in the record before the device hears it, and what nobody heard the
//! end of is read and never repeated blindly.

use std::collections::{BTreeMap, BTreeSet};

use node_remedy_world::facts::{What, Yes};
use node_remedy_world::time::Time;

use super::Check;
use crate::scene::Scene;

#[derive(Default)]
pub(super) struct Intent {
    /// Each node's last recorded power command: the operation's number and what it does.
    recorded: BTreeMap<String, (u64, String)>,
    /// The operation whose command each node's BMC took last.
    taken: BTreeMap<String, u64>,
    /// Nodes whose BMC took a command, and no read was begun since.
    unread: BTreeSet<String>,
}

impl Check for Intent {
    fn see(&mut self, _: &Scene, _: Time, what: &What) -> Option<String> {
        if let What::IntentRecorded { node, operation, action, .. } = what {
            // What a call reads about its own command is no other look at the device.
            if action == "status" {
                self.unread.remove(node);
            } else {
                self.recorded.insert(node.clone(), (*operation, action.clone()));
            }
        }
        let Yes { node, command, .. } = what.yes()?;
        let Some((operation, action)) = self.recorded.get(node) else {
            return Some("nothing of it stands in a record".to_owned());
        };
        if !action.eq_ignore_ascii_case(command) {
            return Some(format!("the record says {action}"));
        }
        // A datagram that is sent again is the same operation.
        let is_next = self.taken.insert(node.to_owned(), *operation) != Some(*operation);
        let is_blind = is_next && !self.unread.insert(node.to_owned());
        is_blind.then(|| "asked again, and nobody read what the last one did".to_owned())
    }
}
