//! A bad way to the API server: what a scenario's `apiFault` does to node-remedy's requests.

use std::cell::RefCell;
use std::time::Duration;

use node_remedy_world::Scenario;
use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::{ApiFault, ApiFaultKind, ControllerEvent, Event};
use tokio::time::Instant;

use super::door::{Door, Request};
use crate::cluster::ClusterError;

/// What a throttled client is asked to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The faults of a scenario, as one process meets them.
pub(super) struct BadWay {
    /// From when on, until when.
    faults: Vec<(Instant, Instant, ApiFault)>,
    rng: RefCell<Rng>,
}

impl BadWay {
    /// The faults of a story that begins at `origin`; each process draws for itself.
    pub(super) fn of(scenario: &Scenario, origin: Instant, process: &str) -> Self {
        let faults = scenario.happenings.iter().filter_map(|happening| {
            let Event::OfController(ControllerEvent::ApiFault(fault)) = happening.what else {
                return None;
            };
            let from = origin + happening.at;
            Some((from, from + fault.lasts, fault))
        });
        let rng = RefCell::new(Rng::named(scenario.seed, &format!("way of {process}")));
        Self { faults: faults.collect(), rng }
    }

    /// What this request meets, drawn anew for each.
    fn met(&self) -> Vec<ApiFaultKind> {
        let now = Instant::now();
        let present = self.faults.iter().filter(|(from, to, _)| (*from..*to).contains(&now));
        let drawn = present
            .filter(|(.., fault)| self.rng.borrow_mut().below(100) < u64::from(fault.percent));
        drawn.map(|(.., fault)| fault.fault).collect()
    }
}

impl Door for BadWay {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        for fault in self.met() {
            match fault {
                ApiFaultKind::Unavailable => {
                    return Err(ClusterError::Unavailable("a bad way".to_owned()));
                }
                ApiFaultKind::Throttled => {
                    return Err(ClusterError::Throttled { after: RETRY_AFTER });
                }
                ApiFaultKind::Conflict if matches!(request.verb, "update" | "patch") => {
                    return Err(ClusterError::Conflict("a lost race".to_owned()));
                }
                ApiFaultKind::Slow(takes) => tokio::time::sleep(takes).await,
                ApiFaultKind::Conflict | ApiFaultKind::AnswerLost => {}
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        if request.is_write() && self.met().contains(&ApiFaultKind::AnswerLost) {
            return Err(ClusterError::Unavailable("a lost answer".to_owned()));
        }
        Ok(())
    }
}
