//! S4: no command to a device from a process after another one was made leader. Reads may come from
//! whoever stands by, too: it probes.

use node_remedy_world::facts::What;
use node_remedy_world::time::Time;

use crate::checks::check::Check;
use crate::scene::Scene;

pub(super) struct Leader;

impl Check for Leader {
    fn see(&mut self, scene: &Scene, _: Time, what: &What) -> Option<String> {
        let by = what.commanded()?;
        let other_leads = !scene.leader.is_empty() && scene.leader != by;
        other_leads.then(|| format!("sent by {by} while {} leads", scene.leader))
    }
}
