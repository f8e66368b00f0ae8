//! Whose turn it is among the calls of one plugin: so many are under way at a time, and further ones wait in
//! the order in which they came, until their deadline. A plugin that spins holds up its own calls, and of
//! the threads no more than its share. Not here: turns at a device, which are the controller's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::call::Call;
use crate::limits::CALLS_QUEUED_MAX;
use crate::seams::Seams;
use crate::types::{Failure, FailureKind};

/// The turns of one plugin.
pub(crate) struct CallSlots {
    slots: Arc<Semaphore>,
    most: u32,
    waiting: AtomicUsize,
}

/// One call's turn, for as long as it is under way.
pub(crate) struct CallSlot(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

impl CallSlots {
    /// So many at a time.
    pub(crate) fn new(most: u32) -> Self {
        let slots = usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self { slots: Arc::new(Semaphore::new(slots)), most, waiting: AtomicUsize::new(0) }
    }

    /// Waits for this call's turn. It is refused where too many wait already, or its deadline comes first.
    pub(crate) async fn take(&self, call: &Call, seams: &Seams) -> Result<CallSlot, Failure> {
        if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(CallSlot(slot));
        }
        let Some(_waits) = Waits::among(&self.waiting) else {
            return Err(self.busy("and as many wait"));
        };
        tokio::select! {
            biased;
            slot = Arc::clone(&self.slots).acquire_owned() => {
                slot.map(CallSlot).map_err(|_| self.busy("and none will end"))
            }
            () = call.cancel.asked() => {
                let detail = "the call was cancelled before its turn came";
                Err(Failure::of_sandbox(FailureKind::Cancelled, detail))
            }
            () = seams.clock.sleep(call.request.deadline) => {
                Err(self.busy("and none ended by the deadline of this one"))
            }
        }
    }

    /// Waits for the turn of one that is asked and not called: that takes two seconds at most.
    pub(crate) async fn take_to_ask(&self) -> Option<CallSlot> {
        Arc::clone(&self.slots).acquire_owned().await.ok().map(CallSlot)
    }

    fn busy(&self, more: &str) -> Failure {
        let detail = format!(
            "{} calls of the plugin are under way, which are the most at a time, {more}",
            self.most
        );
        Failure::of_sandbox(FailureKind::Busy, detail)
    }
}

/// One of those who wait.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn among(waiting: &'a AtomicUsize) -> Option<Self> {
        let one = Self(waiting);
        // What is counted here is taken back when it is dropped, refused or not.
        (waiting.fetch_add(1, Ordering::Relaxed) < CALLS_QUEUED_MAX).then_some(one)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::grants::Grants;
    use crate::trial;

    #[tokio::test(start_paused = true)]
    async fn as_many_wait_as_may_and_the_next_is_refused() {
        let (call_slots, seams) = (CallSlots::new(1), trial::seams());
        let mut call = trial::call(Grants::default());
        call.request.deadline = Duration::from_mins(1);
        let under_way = call_slots.take(&call, &seams).await.ok().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..CALLS_QUEUED_MAX {
            let mut one = Box::pin(call_slots.take(&call, &seams));
            assert!(futures::poll!(&mut one).is_pending());
            waiting.push(one);
        }
        let refused = call_slots.take(&call, &seams).await.err().unwrap();
        assert_eq!(refused.kind, FailureKind::Busy);
        assert!(refused.detail.ends_with("and as many wait"), "{}", refused.detail);
        // Whose turn comes leaves room among those who wait.
        drop(under_way);
        assert!(waiting.swap_remove(0).await.is_ok());
        let mut next = Box::pin(call_slots.take(&call, &seams));
        assert!(futures::poll!(&mut next).is_pending());
    }
}
