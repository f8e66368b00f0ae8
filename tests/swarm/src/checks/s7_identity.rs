//! S7: no machine is switched off by way of a BMC that is another machine's.

use std::collections::BTreeSet;

use node_remedy_world::facts::{Taken, What};
use node_remedy_world::time::Time;

use super::Check;
use crate::scene::{Scene, Setting};

pub(super) struct Identity {
    impostors: BTreeSet<String>,
}

impl Identity {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { impostors: setting.impostors.clone() }
    }
}

impl Check for Identity {
    fn see(&mut self, _: &Scene, _: Time, what: &What) -> Option<String> {
        let Taken { node, plug: (device, _), .. } = what.taken()?;
        let is_other = device.is_empty() && self.impostors.contains(node);
        is_other.then(|| "this BMC says that it is another machine's".to_owned())
    }
}
