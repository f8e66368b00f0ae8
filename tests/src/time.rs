//! Time in the tests: one monotonic clock per run and waiting for conditions.
//!
//! It is deliberately the real clock: everything here runs against real processes.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::time::Instant;

/// How often a condition is looked at: well below anything a test measures in tenths of a second,
/// and cheap for an API server on loopback.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Milliseconds since the start of a run; shared by all machines of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts at zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Waits until `look` finds something, and says what was missing when it does not come in time.
///
/// A failing look is not the end: a control plane that starts refuses connections. The last
/// failure is told when time runs out.
pub async fn until<T, Look, Found>(what: &str, within: Duration, mut look: Look) -> Result<T>
where
    Look: FnMut() -> Found,
    Found: Future<Output = Result<Option<T>>>,
{
    let deadline = Instant::now() + within;
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last_failure = None;
    loop {
        ticks.tick().await;
        match tokio::time::timeout_at(deadline, look()).await {
            Ok(Ok(Some(found))) => return Ok(found),
            Ok(Ok(None)) => last_failure = None,
            Ok(Err(failure)) => last_failure = Some(failure),
            Err(_) => {}
        }
        if Instant::now() >= deadline {
            let late = anyhow!("waited {within:?} in vain until {what}");
            return match last_failure {
                Some(failure) => Err(failure).context(late),
                None => Err(late),
            };
        }
    }
}

/// A task that ends when its owner does.
#[derive(Debug)]
pub struct Task(tokio::task::JoinHandle<()>);

impl Task {
    /// Starts `work` in the background.
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_never_comes_is_named_with_its_last_failure() {
        let missing = until::<(), _, _>("the moon rises", Duration::from_secs(1), || async {
            Err(anyhow!("clouds"))
        })
        .await
        .unwrap_err();
        let text = format!("{missing:#}");
        assert!(text.contains("until the moon rises") && text.contains("clouds"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_is_looked_at_again_after_a_failure() {
        let mut looks = 0;
        let found = until("third look", Duration::from_secs(1), || {
            looks += 1;
            let look = looks;
            async move {
                if look < 2 { Err(anyhow!("not yet")) } else { Ok((look > 2).then_some(look)) }
            }
        })
        .await
        .unwrap();
        assert_eq!(found, 3);
    }
}
