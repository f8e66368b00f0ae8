//! Asking a call to stop. Soft at first: the plugin sees `cancelled` and may close its session;
//! the cut after a grace is [`crate::plugin`]'s.

use std::sync::Arc;

use tokio::sync::watch;

/// Asks one call to stop; clones ask the same call.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    /// One that nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks the call to stop.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is asked.
    pub async fn asked(&self) {
        let mut asked = self.0.subscribe();
        // The sender lives as long as self, so this only ends by being asked.
        let _ = asked.wait_for(|asked| *asked).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
