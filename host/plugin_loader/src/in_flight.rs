//! What is asked of registries beside everything else. Not here: what is asked, and what comes of it.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

/// What is asked of registries now, by what it is for: a registry that is slow keeps nobody else waiting.
#[derive(Default)]
pub(super) struct UnderWay {
    tasks: JoinSet<String>,
    keys: BTreeSet<String>,
}

impl UnderWay {
    /// Begins it, unless it is going on.
    pub(super) fn begin(&mut self, key: String, work: impl Future<Output = ()> + 'static) {
        if self.keys.insert(key.clone()) {
            self.tasks.spawn_local(async move {
                work.await;
                key
            });
        }
    }

    /// Waits until one of them is done; for ever, where there is none.
    pub(super) async fn one_is_done(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(key)) => {
                self.keys.remove(&key);
            }
            // It panicked, and nobody knows which: each may be begun again.
            Some(Err(_)) => self.keys.clear(),
            None => std::future::pending().await,
        }
    }
}
