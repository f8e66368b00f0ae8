//! Tells facts as they change, each once, with the seconds since the scenario began.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use node_remedy_tests::Cluster;
use node_remedy_tests::ipmi::{Power, PowerChange, PowerEvent};
use tokio::time::Instant;

use crate::facts::{Facts, look};

/// Well below what a person tells apart.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The teller of one node's scenario.
pub(crate) struct Narrator {
    node: String,
    began: Instant,
    facts: Facts,
    /// When the database was last seen to become Ready.
    ready_at: Option<Timestamp>,
}

impl Narrator {
    pub(crate) fn start(node: String) -> Self {
        Self { node, began: Instant::now(), facts: Facts::new(), ready_at: None }
    }

    /// Tells what changed since the last look.
    pub(crate) async fn news(&mut self, cluster: &Cluster) -> Result<()> {
        let facts = look(cluster, &self.node).await?;
        let seconds = self.began.elapsed().as_secs_f64();
        for ((lane, subject), words) in &facts {
            if self.facts.get(&(*lane, subject.clone())) != Some(words) {
                println!("{seconds:>6.1} s  {lane:<10}  {subject:<15}  {words}");
            }
        }
        for (lane, subject) in self.facts.keys().filter(|key| !facts.contains_key(*key)) {
            println!("{seconds:>6.1} s  {lane:<10}  {subject:<15}  gone");
        }
        let is_ready = |facts: &Facts| {
            let database = facts.get(&("workload", "db-0".to_owned()));
            database.is_some_and(|words| words.contains("Ready"))
        };
        if is_ready(&facts) && !is_ready(&self.facts) {
            self.ready_at = Some(Timestamp::now());
        }
        self.facts = facts;
        Ok(())
    }

    /// Tells until something is so.
    pub(crate) async fn until(
        &mut self,
        cluster: &Cluster,
        what: &str,
        within: Duration,
        is_so: impl AsyncFn() -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + within;
        loop {
            self.news(cluster).await?;
            if is_so().await? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("waited {within:?} in vain until {what}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Tells for a while.
    pub(crate) async fn pass(&mut self, cluster: &Cluster, long: Duration) -> Result<()> {
        let end = Instant::now() + long;
        while Instant::now() < end {
            self.news(cluster).await?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// From the first read that said off after the machine went off to the database's return.
    pub(crate) fn proof_to_ready(&self, log: &[PowerEvent]) -> Option<Duration> {
        let off = |event: &&PowerEvent| event.power == Power::Off;
        let went = log.iter().filter(off).find(|event| event.what == PowerChange::Became)?.at;
        let proven = log
            .iter()
            .filter(off)
            .find(|event| event.what == PowerChange::Read && event.at >= went)?
            .at;
        self.ready_at?.duration_since(proven).try_into().ok()
    }
}
