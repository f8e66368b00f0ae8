//! What an incident's task waits for, and how it looks.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use node_remedy_decide::{Command, Time, VIEW_AGE_MAX, View};

use super::live::{cached, live};
use super::view;
use crate::cli::people::{ABORT, COMMANDS, CONFIRM_OFF, RETRY};
use crate::cluster::{Cluster, ClusterError};
use crate::reconcile::{Incident, Mail, Seen};

/// After a failed live look.
const LOOK_AGAIN_MS: u64 = 1_000;
/// No timer is set further ahead; a look costs little.
const SLEEP_MAX: Duration = Duration::from_mins(1);

impl<C: Cluster> Incident<C> {
    /// Waits for the next thing to decide about.
    pub(crate) async fn observe(&mut self) -> Seen {
        loop {
            if let Some(seen) = self.pending.pop_front() {
                return seen;
            }
            if self.look_wanted {
                self.look_wanted = false;
                match self.look().await {
                    Ok(view) => return Seen::Looked(Box::new(view)),
                    Err(error) => {
                        tracing::warn!(node = self.node(), %error, "failed to look; again soon");
                        let again = self.parts.clock.now().0.saturating_add(LOOK_AGAIN_MS);
                        self.next_look = Some(Time(again));
                    }
                }
            }
            let wait = self.next_look.map_or(SLEEP_MAX, |at| {
                Duration::from_millis(at.0.saturating_sub(self.parts.clock.now().0)).min(SLEEP_MAX)
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
                        self.pending.push_back(Seen::Ended(op, called.end));
                    }
                }
                Some(mail) = self.mail.recv() => {
                    let Mail::Wake = mail;
                    while self.mail.try_recv().is_ok() {}
                    let word = self.word_of_a_person();
                    self.pending.extend(word);
                    let facts = cached(&self.parts.mirror, &self.parts.clock, self.node());
                    self.pending.push_back(Seen::Looked(Box::new(view::of_incident(self, &facts))));
                }
                () = tokio::time::sleep(wait) => self.look_wanted = true,
            }
        }
    }

    async fn look(&mut self) -> Result<View, ClusterError> {
        let parts = self.parts.clone();
        let (limits, now) = (&self.nodefence.spec.gate, || parts.clock.now());
        // All at once: a slow server must not make what was read first too old to act on.
        let (facts, job, storage) = futures::try_join!(
            live(&parts.cluster, &parts.mirror, &parts.clock, self.node()),
            self.look_for_job(),
            async { Ok(parts.storage.of_node(&parts.cluster, limits, self.node(), now).await) },
        )?;
        (self.job, self.storage) = (job, storage);
        if parts.clock.now().since(facts.taken_at) > VIEW_AGE_MAX {
            self.note_late();
        }
        let view = view::of_incident(self, &facts);
        self.facts = Some(facts);
        Ok(view)
    }

    /// The words of people that the NodeFence is annotated with, as the watch shows it.
    pub(crate) fn words_that_stand(&self) -> Option<BTreeMap<&'static str, String>> {
        let kept = self.parts.mirror.nodefences.find(&self.name())?;
        let annotations = kept.0.annotations();
        let said =
            COMMANDS.into_iter().filter_map(|key| Some((key, annotations.get(key)?.clone())));
        Some(said.collect())
    }

    /// A word that somebody annotated the NodeFence with.
    fn word_of_a_person(&mut self) -> Option<Seen> {
        let said = self.words_that_stand()?;
        let uid = self.nodefence.uid().unwrap_or_default();
        // Taking the annotation away takes a moment to come back through the watch.
        let before = std::mem::replace(&mut self.heard, said.clone());
        let mut new = said;
        new.retain(|key, word| before.get(key) != Some(word));
        if new.get(RETRY).is_some_and(|word| *word == uid) {
            return Some(Seen::Command(Command::Retry));
        }
        match new.get(ABORT).map(|word| word.split_once('/').unwrap_or((word, ""))) {
            Some((about, "")) if about == uid => return Some(Seen::Command(Command::Abort)),
            Some((about, "leave-off")) if about == uid => {
                return Some(Seen::Command(Command::AbortLeaveOff));
            }
            Some(_) | None => {}
        }
        let (boot_id, by) = confirmed(new.get(CONFIRM_OFF)?, &uid)?;
        Some(Seen::Command(Command::ConfirmOff { by, boot_id }))
    }
}

/// The boot that a person says is off, and who says so, if it is said of this NodeFence.
fn confirmed(word: &str, uid: &str) -> Option<(String, String)> {
    let mut parts = word.splitn(3, '/');
    let (about, boot_id) = (parts.next()?, parts.next()?);
    // A user's name may have slashes itself. Without one, somebody wrote it by hand.
    let by = parts
        .next()
        .unwrap_or("whoever annotated the NodeFence; the API server's audit log names them");
    (about == uid).then(|| (boot_id.to_owned(), by.to_owned()))
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
