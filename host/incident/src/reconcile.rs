//! The one path, walked once per event of one incident: observe → decide → record → act.
//!
//! Each incident is a task of its own, so a hung device, plugin or API call of one node
//! delays no other. Everything the task knows stands in its NodeFence before anything is
//! done about it; killed between any two lines here, the next leader reads the record,
//! treats every unfinished intent as foreign and asks the device what became of it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_config::plan::{incident_policy_of, plan_of};
use node_remedy_context::context::Context;
use node_remedy_decide as decide;
use node_remedy_decide::{Event, Freshness, Record, StorageLease, Transition};
use node_remedy_observe::volumes::Volumes;
use node_remedy_record::repeat_filter::Holds;
use node_remedy_record::status;
use node_remedy_runtime::cluster::Cluster;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::finalizer;
use crate::standstill::Standstill;

pub use crate::state::{Asks, Incident, Late, Observation, Over, WakeUp};

impl<C: Cluster> Incident<C> {
    /// Takes an incident up: a new one, or one that another process left.
    ///
    /// # Errors
    /// Where spec or status contradict themselves; the caller parks it.
    pub fn take_up(
        context: Rc<Context<C>>,
        epoch: u64,
        nodefence: NodeFence,
        mail: mpsc::UnboundedReceiver<WakeUp>,
    ) -> Result<Self, String> {
        let status = nodefence.status.as_ref().ok_or("its status is missing")?;
        let record = status::read(&nodefence.spec, status).map_err(|error| error.to_string())?;
        let plan = plan_of(&nodefence.spec).map_err(|error| error.to_string())?;
        let policy = incident_policy_of(&nodefence.spec.policy);
        let foreign = is_foreign(&record, &context.process, epoch);
        let pending =
            if foreign { VecDeque::from([Observation::Adopted]) } else { VecDeque::new() };
        let volumes = Volumes::new(nodefence.spec.policy.safe_detach_drivers.iter().cloned());
        let owes_slot = record.slot == decide::Slot::Free;
        context.unproven.note(&nodefence.spec.node.name, &plan, &record);
        Ok(Self {
            context,
            epoch,
            nodefence,
            plan,
            policy,
            record,
            facts: None,
            job: None,
            job_refused: None,
            storage: StorageLease::NotAsked,
            neighbours_read: BTreeMap::new(),
            volumes,
            pending,
            look_wanted: true,
            heard: BTreeMap::new(),
            taken_away_at: None,
            next_look: None,
            owes_slot,
            locked_at: None,
            locked_by: None,
            mail,
            calls: JoinSet::new(),
            asks: Asks::new(),
            late: Late::default(),
            looks: Standstill::default(),
            entered: None,
            untold: Vec::new(),
            holds: Holds::default(),
            deletion_heard: false,
            telling: None,
        })
    }

    /// Walks the path until the incident is over.
    pub async fn run(mut self) -> Over {
        loop {
            let Some(seen) = self.observe().await else {
                self.tell_vanished().await;
                return Over::Gone;
            };
            let decided = self.decide(&seen);
            if self.record(&decided).await.is_err() {
                return Over::Lost;
            }
            self.act(&decided.effects).await;
            self.tell(&decided).await;
            if matches!(self.record.phase, decide::Phase::Final(_)) {
                self.have_told().await;
                if let Err(error) = finalizer::let_go(&self.context.cluster, &self.nodefence).await
                {
                    tracing::info!(node = self.node(), %error, "failed to let its NodeFence go; again soon");
                }
                return Over::Final;
            }
        }
    }

    fn decide(&self, seen: &Observation) -> Transition {
        let event = match seen {
            Observation::Looked(view) => Event::Looked(view),
            Observation::Ended(op, end) => Event::Ended { op: *op, end: end.clone() },
            Observation::Slot(answer) => Event::Slot(*answer),
            Observation::Decided(number, answer) => {
                Event::Decided { number: *number, answer: answer.clone() }
            }
            Observation::Command(command) => Event::Command(command.clone()),
            Observation::Adopted => {
                Event::Adopted { epoch: self.epoch, process: self.context.process.clone() }
            }
        };
        let now = self.context.clock.now();
        let mut decided = decide::step(&self.plan, &self.policy, self.record.clone(), event, now);
        if matches!(seen, Observation::Looked(view) if view.freshness == Freshness::Cached) {
            // A cache's word is no look: a node that renews its Lease, and so wakes the incident again
            // and again, must not put the next look off for ever.
            decided.next_look = decided.next_look.into_iter().chain(self.next_look).min();
        }
        decided
    }

    /// The NodeFence's name.
    pub fn name(&self) -> String {
        self.nodefence.name_any()
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.nodefence.spec.node.name
    }
}

/// Whether nobody here has done what the record says, or nobody here remembers: an open call of
/// this very process belongs to a task that is over, and its end will never be heard.
pub fn is_foreign(record: &Record, process: &str, epoch: u64) -> bool {
    record.process != process || record.epoch != epoch || record.in_flight().is_some()
}

/// Whether a newer leader has written this record. It is its, and is left alone.
pub fn is_of_newer_leader(nodefence: &NodeFence, epoch: u64) -> bool {
    nodefence.status.as_ref().is_some_and(|status| status.epoch > epoch)
}
