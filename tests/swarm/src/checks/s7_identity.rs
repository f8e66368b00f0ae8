//! S7: no machine is switched off by way of a BMC that is another machine's. Of two machines with one identity
//! nobody can tell that once the other one's Node is gone.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Taken, What};
use node_remedy_world::time::Time;

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Identity {
    impostors: BTreeSet<String>,
    twins: BTreeSet<String>,
}

impl Identity {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { impostors: setting.impostors.clone(), twins: setting.twins.clone() }
    }

    /// Whether its identity was another Node's, too, which is gone.
    fn is_left_alone(&self, scene: &Scene, node: &str) -> bool {
        let mut others = self.twins.iter().filter(|other| *other != node);
        self.twins.contains(node) && others.any(|other| !scene.nodes.contains(other))
    }
}

impl Check for Identity {
    fn see(&mut self, scene: &Scene, _: Time, what: &What) -> Option<String> {
        if let What::BmcChanged { node, of_another } = what {
            if *of_another {
                self.impostors.insert(node.clone());
            } else {
                self.impostors.remove(node);
            }
        }
        let Taken { node, plug: (device, _), .. } = what.taken()?;
        let is_other = device.is_empty() && self.impostors.contains(node);
        (is_other && !self.is_left_alone(scene, node))
            .then(|| "this BMC says that it is another machine's".to_owned())
    }
}
