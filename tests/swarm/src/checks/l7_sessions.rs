//! L7: sessions with a BMC are closed, and a BMC has one at a time. It is asked of BMCs that nothing
//! is wrong with, in runs in which no process dies or stands still: what they leave open, nobody
//! else can close.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use node_remedy_world::facts::What;
use node_remedy_world::time::{Time, between};

use crate::checks::check::Check;
use crate::scene::{Scene, Setting};

/// No call takes longer.
const CALL_MAX: Duration = Duration::from_secs(30);

pub(super) struct Sessions {
    sound: BTreeSet<String>,
    open_since: BTreeMap<String, Time>,
}

impl Sessions {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { sound: setting.sound_bmcs.clone(), open_since: BTreeMap::new() }
    }
}

impl Check for Sessions {
    fn see(&mut self, _: &Scene, at: Time, what: &What) -> Option<String> {
        let What::BmcSessions { node, open } = what else { return None };
        if !self.sound.contains(node) {
            return None;
        }
        let since = match open {
            0 => self.open_since.remove(node),
            _ => Some(*self.open_since.entry(node.clone()).or_insert(at)),
        };
        if *open > 1 {
            return Some("a BMC is asked by one call at a time".to_owned());
        }
        let is_long = since.is_some_and(|since| between(since, at) > CALL_MAX);
        is_long.then(|| "it was open for longer than any call takes".to_owned())
    }

    fn end(&mut self, _: &Scene) -> Vec<String> {
        let left = self.open_since.keys();
        left.map(|node| format!("a session with the BMC of {node} is still open")).collect()
    }
}
