//! A bad way to the API server: what a scenario's `apiFault` does to node-remedy's requests.

use std::cell::RefCell;
use std::time::Duration;

use node_remedy_decide::Time;
use node_remedy_runtime::cluster::ClusterError;
use node_remedy_runtime::cluster::kube::REQUEST_TIMEOUT;
use node_remedy_runtime::virtual_clock::VirtualClock;
use node_remedy_world::AppliedFault;
use node_remedy_world::facts::What;
use node_remedy_world::rng::Rng;
use node_remedy_world::scenario::{ApiFault, ApiFaultKind, ControllerEvent, Scenario};
use node_remedy_world::time::after;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::driver::Shared;
use crate::interceptor::{Interceptor, Request};
use crate::repeats::Repeats;

/// What a throttled client is asked to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Few tasks are ready at one moment, and each has a few steps of its own.
const OTHERS_FIRST_MAX: u64 = 6;

/// The faults of a scenario, as one process meets them.
pub struct ApiFaults {
    shared: Shared,
    clock: VirtualClock,
    repeats: Repeats,
    applied_fault: RefCell<UnboundedReceiver<AppliedFault>>,
    /// From when on, until when.
    faults: RefCell<Vec<(Time, Time, ApiFault)>>,
    rng: RefCell<Rng>,
    /// Where the order of tasks is drawn.
    order: Option<RefCell<Rng>>,
}

impl ApiFaults {
    /// What is to hit the way of one process; each draws for itself.
    pub fn of(shared: Shared, clock: VirtualClock, scenario: &Scenario, process: u32) -> Self {
        let draws =
            |what: &str| RefCell::new(Rng::named(scenario.seed, &format!("{what} of {process}")));
        let applied_fault = RefCell::new(shared.applied_fault());
        Self {
            shared,
            clock,
            repeats: Repeats::default(),
            applied_fault,
            faults: RefCell::default(),
            rng: draws("way"),
            order: scenario.shuffle.then(|| draws("order")),
        }
    }

    /// Lets others go first so often as is drawn.
    async fn give_way(&self) {
        let Some(order) = &self.order else { return };
        let times = order.borrow_mut().below(OTHERS_FIRST_MAX);
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    }

    fn hear(&self) {
        while let Ok(applied_fault) = self.applied_fault.borrow_mut().try_recv() {
            if let ControllerEvent::ApiFault(fault) = applied_fault.what {
                let until = after(applied_fault.at, fault.lasts);
                self.faults.borrow_mut().push((applied_fault.at, until, fault));
            }
        }
    }

    /// What a request with this verb for this resource meets, drawn anew for each.
    fn met(&self, verb: &str, resource: &str) -> Vec<ApiFaultKind> {
        self.hear();
        let now = self.clock.now();
        let mut faults = self.faults.borrow_mut();
        faults.retain(|(_, to, _)| now < *to);
        let present =
            faults.iter().filter(|(from, _, fault)| *from <= now && fault.is_of(verb, resource));
        let drawn = present
            .filter(|(.., fault)| self.rng.borrow_mut().below(100) < u64::from(fault.percent));
        drawn.map(|(.., fault)| fault.fault).collect()
    }
}

impl Interceptor for ApiFaults {
    async fn admit(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        self.give_way().await;
        if let Some((write, times)) = self.repeats.note(request, self.clock.now()) {
            self.shared.with(|world| world.note(What::WriteRepeated { write, times }));
        }
        for fault in self.met(request.verb, &request.resource) {
            match fault {
                ApiFaultKind::Denied => return Err(ClusterError::Denied("a bad way".to_owned())),
                ApiFaultKind::Unavailable => {
                    return Err(ClusterError::Unavailable("a bad way".to_owned()));
                }
                ApiFaultKind::Throttled => {
                    return Err(ClusterError::Throttled { after: RETRY_AFTER });
                }
                ApiFaultKind::Conflict if matches!(request.verb, "update" | "patch") => {
                    return Err(ClusterError::Conflict("a lost race".to_owned()));
                }
                ApiFaultKind::Slow(takes) => {
                    let starts = self.starts();
                    tokio::time::sleep(takes.min(REQUEST_TIMEOUT)).await;
                    if takes > REQUEST_TIMEOUT || self.starts() != starts {
                        return Err(ClusterError::Unavailable("no answer in time".to_owned()));
                    }
                }
                ApiFaultKind::Conflict
                | ApiFaultKind::AnswerLost
                | ApiFaultKind::CarriedOutLate(_)
                | ApiFaultKind::WatchesBreak
                | ApiFaultKind::HistoryGone
                | ApiFaultKind::WatchesLag(_)
                | ApiFaultKind::WatchesFreeze => {}
            }
        }
        Ok(())
    }

    fn carried_out_late(&self, request: &Request<'_>) -> Option<Duration> {
        let met = request.is_write().then(|| self.met(request.verb, &request.resource));
        met.into_iter().flatten().find_map(|fault| {
            if let ApiFaultKind::CarriedOutLate(takes) = fault { Some(takes) } else { None }
        })
    }

    fn starts(&self) -> u64 {
        self.shared.with(|world| world.api().starts())
    }

    async fn told(&self, resource: &str) -> Result<(), ClusterError> {
        self.give_way().await;
        for fault in self.met("watch", resource) {
            match fault {
                ApiFaultKind::WatchesBreak => {
                    return Err(ClusterError::Unavailable("a broken watch".to_owned()));
                }
                ApiFaultKind::HistoryGone => return Err(ClusterError::Gone),
                ApiFaultKind::WatchesLag(takes) => tokio::time::sleep(takes).await,
                ApiFaultKind::WatchesFreeze => std::future::pending().await,
                ApiFaultKind::Unavailable
                | ApiFaultKind::AnswerLost
                | ApiFaultKind::CarriedOutLate(_)
                | ApiFaultKind::Denied
                | ApiFaultKind::Throttled
                | ApiFaultKind::Conflict
                | ApiFaultKind::Slow(_) => {}
            }
        }
        Ok(())
    }

    async fn answer(&self, request: &Request<'_>) -> Result<(), ClusterError> {
        self.give_way().await;
        let is_lost =
            || self.met(request.verb, &request.resource).contains(&ApiFaultKind::AnswerLost);
        if request.is_write() && is_lost() {
            return Err(ClusterError::Unavailable("a lost answer".to_owned()));
        }
        Ok(())
    }
}
