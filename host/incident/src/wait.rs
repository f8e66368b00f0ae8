//! What an incident's task waits for, and how it looks.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_api::annotations::{ABORT, COMMANDS, CONFIRM_OFF, RETRY};
use node_remedy_api::limits::MACHINE_ID_CHARACTERS_MAX;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_decide::bug::{Bug, guard};
use node_remedy_decide::{Command, Goal, Phase, Time, VIEW_AGE_MAX, View};
use node_remedy_observe::live::{cached, live};
use node_remedy_observe::volumes;
use node_remedy_record::sentences;
use node_remedy_runtime::cluster::{At, Cluster, ClusterError};

use crate::neighbours;
use crate::state::{Incident, Observation, WakeUp};

/// After a failed live look.
const LOOK_AGAIN_MS: u64 = 1_000;
/// No timer is set further ahead; a look costs little.
const SLEEP_MAX: Duration = Duration::from_mins(1);

impl<C: Cluster> Incident<C> {
    /// Waits for the next thing to decide about; `None` once its NodeFence is gone.
    pub(crate) async fn observe(&mut self) -> Option<Observation> {
        loop {
            // Also where nobody wakes it: whoever does may be busy with other nodes.
            let words = self.words_of_people();
            self.pending.extend(words);
            if let Some(seen) = self.pending.pop_front().or_else(|| self.deletion()) {
                return Some(seen);
            }
            if self.look_wanted {
                self.look_wanted = false;
                match self.look().await {
                    Ok(view) => {
                        self.looks.ends();
                        return Some(Observation::Looked(Box::new(view)));
                    }
                    Err(error) => {
                        tracing::warn!(node = self.node(), %error, "failed to look; again soon");
                        let lasts = self.looks.fails(self.context.clock.now());
                        let what = "its node and what is on it cannot be read";
                        self.tell_standstill(what, lasts, &error).await;
                        let again = self.context.clock.now().0.saturating_add(LOOK_AGAIN_MS);
                        self.next_look = Some(Time(again));
                    }
                }
            }
            let wait = self.next_look.map_or(SLEEP_MAX, |at| {
                Duration::from_millis(at.0.saturating_sub(self.context.clock.now().0))
                    .min(SLEEP_MAX)
            });
            tokio::select! {
                biased;
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => {
                    // A call's task neither panics nor is aborted while its incident lives.
                    if let Ok((op, called)) = done {
                        self.note_call(op, &called);
                        if called.is_late() {
                            self.note_late();
                        }
                        self.pending.push_back(Observation::Ended(op, called.end));
                    }
                }
                Some(done) = self.asks.join_next(), if !self.asks.is_empty() => {
                    if let Ok((number, answer)) = done {
                        self.pending.push_back(Observation::Decided(number, answer));
                    }
                }
                Some(mail) = self.mail.recv() => {
                    let WakeUp::Wake = mail;
                    while self.mail.try_recv().is_ok() {}
                    if self.is_gone().await {
                        return None;
                    }
                    let words = self.words_of_people();
                    self.pending.extend(words);
                    let facts = cached(&self.context.caches, &self.context.clock, self.node());
                    self.pending.push_back(Observation::Looked(Box::new(crate::view::of_incident(self, &facts))));
                }
                () = tokio::time::sleep(wait) => {
                    if self.is_gone().await {
                        return None;
                    }
                    self.look_wanted = true;
                }
            }
        }
    }

    /// Whether its NodeFence is gone, which its finalizer prevents and whoever takes that off can do. One that was
    /// just written may not stand in the cache yet.
    async fn is_gone(&self) -> bool {
        let nodefences = &self.context.caches.nodefences;
        let is_ours = |found: &NodeFence| found.uid() == self.nodefence.uid();
        if !nodefences.is_followed()
            || nodefences.find(&self.name()).is_some_and(|kept| is_ours(&kept.0))
        {
            return false;
        }
        let found = self.context.cluster.get::<NodeFence>(At::cluster(&self.name())).await;
        found.is_ok_and(|found| !found.is_some_and(|found| is_ours(&found)))
    }

    /// What the deletion of its NodeFence asks for, once: an incident that has switched nothing off and released
    /// nothing is over; any other one goes on to its end, as what it took has to be given back.
    fn deletion(&mut self) -> Option<Observation> {
        let kept = self.context.caches.nodefences.find(&self.name())?;
        let is_deleted =
            kept.0.uid() == self.nodefence.uid() && kept.0.metadata.deletion_timestamp.is_some();
        if !is_deleted || self.deletion_heard {
            return None;
        }
        if let Some(open) = self.record.in_flight().filter(|open| open.cuts()) {
            // Whether anything is switched off is known at its end: one that has not begun is not begun any more. What is
            // cut again behind a release is not theirs.
            if self.record.first_released_at.is_none() {
                self.context.calls.gate.withdraw(&self.operation(open.id));
            }
            return None;
        }
        self.deletion_heard = true;
        let is_parked = self.record.phase == Phase::Parked;
        let ends =
            matches!(self.record.goal, Goal::Close(_)) && !guard(Bug::ParkedUnheard, is_parked);
        if !self.record.is_committed(&self.plan) {
            return (!ends).then_some(Observation::Command(Command::Abort));
        }
        self.untold.push(sentences::deleted());
        None
    }

    async fn look(&mut self) -> Result<View, ClusterError> {
        let context = self.context.clone();
        let (limits, now) = (&self.nodefence.spec.gate, || context.clock.now());
        // All at once: a slow server must not make what was read first too old to act on.
        let mut pods = context.caches.pods_of_node(self.node());
        pods.retain(|pod| volumes::wanted(pod, &self.plan, &self.policy));
        let (facts, job, storage, ()) = futures::try_join!(
            live(&context.cluster, &context.caches, &context.clock, self.node()),
            self.look_for_job(),
            async { Ok(context.storage.of_node(&context.cluster, limits, self.node(), now).await) },
            async {
                self.volumes.look(&context.cluster, &pods, self.node()).await;
                Ok(())
            },
        )?;
        (self.job, self.storage) = (job, storage);
        if context.clock.now().since(facts.taken_at) > VIEW_AGE_MAX {
            self.note_late();
        }
        let mut leases = std::mem::take(&mut self.neighbours_read);
        let neighbours = neighbours::of(self, &mut leases).await;
        self.neighbours_read = leases;
        let view = View { neighbours, ..crate::view::of_incident(self, &facts) };
        self.facts = Some(facts);
        Ok(view)
    }

    /// The words that somebody annotated the NodeFence with since they were last heard.
    fn words_of_people(&mut self) -> Vec<Observation> {
        let Some(kept) = self.context.caches.nodefences.find(&self.name()) else {
            return Vec::new();
        };
        let uid = self.nodefence.uid().unwrap_or_default();
        let annotations = kept.0.annotations();
        let said: BTreeMap<&str, String> = COMMANDS
            .iter()
            .filter_map(|key| Some((*key, annotations.get(*key)?.clone())))
            .collect();
        // Taking the annotation away takes a moment to come back through the watch.
        let is_new = |(key, word): &(&&str, &String)| self.heard.get(**key) != Some(*word);
        let new = said.iter().filter(is_new);
        let words =
            new.filter_map(|(key, word)| command(key, word, &uid)).map(Observation::Command);
        let words = words.collect();
        self.heard = said;
        words
    }
}

/// What a word asks for, if it is said of this NodeFence.
fn command(key: &str, word: &str, uid: &str) -> Option<Command> {
    if key == CONFIRM_OFF {
        let (boot_id, by) = confirmed(word, uid)?;
        return Some(Command::ConfirmOff { by, boot_id });
    }
    if key == RETRY {
        return (word == uid).then_some(Command::Retry);
    }
    match word.split_once('/').unwrap_or((word, "")) {
        (about, "") if about == uid && key == ABORT => Some(Command::Abort),
        (about, "leave-off") if about == uid && key == ABORT => Some(Command::AbortLeaveOff),
        _ => None,
    }
}

/// The boot that a person says is off, and who says so, if it is said of this NodeFence.
fn confirmed(word: &str, uid: &str) -> Option<(String, String)> {
    let mut context = word.splitn(3, '/');
    let (about, boot_id) = (context.next()?, context.next()?);
    // A user's name may have slashes itself. Without one, somebody wrote it by hand.
    let by = context
        .next()
        .unwrap_or("whoever annotated the NodeFence; the API server's audit log names them");
    let boot_id = boot_id.chars().take(MACHINE_ID_CHARACTERS_MAX).collect();
    (about == uid).then(|| (boot_id, by.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_is_of_one_nodefence_and_names_who_gave_it() {
        let by = |word| confirmed(word, "uid").map(|(boot, by)| format!("{boot} {by}"));
        assert_eq!(by("uid/boot/https://idp#ada").as_deref(), Some("boot https://idp#ada"));
        assert!(by("uid/boot").unwrap().starts_with("boot whoever"));
        assert_eq!((by("other/boot/ada"), by("uid"), by("")), (None, None, None));
    }
}
