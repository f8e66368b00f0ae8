//! The host's side of interface `op`: log, the commit point, checkpoint, cancellation, time and
//! randomness.

use std::time::Duration;

use node_remedy_decide::bug::{Bug, guard, is_seeded};

use crate::bindings::node_remedy::fence::op::{Host, Level};
use crate::limits::{CHECKPOINT_BYTES_MAX, LOG_BYTES_MAX, LOG_LINE_BYTES_MAX, RANDOM_BYTES_MAX};
use crate::state::CallState;
use crate::types::{Cut, Effect, LogLevel, LogLine};
use crate::words::Secrets;

impl Host for CallState {
    async fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.count_call()?;
        let level = match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
        };
        self.keep_log(level, &message);
        Ok(())
    }

    async fn begin_effect(&mut self, note: String) -> wasmtime::Result<Result<(), String>> {
        self.count_call()?;
        Ok(self.begin(&note))
    }

    async fn checkpoint(&mut self, state: Vec<u8>) -> wasmtime::Result<Result<(), String>> {
        self.count_call()?;
        if state.len() > CHECKPOINT_BYTES_MAX {
            return Ok(Err(format!("a checkpoint holds at most {CHECKPOINT_BYTES_MAX} bytes")));
        }
        // Whether a secret is in it is looked for when the guest is gone: an answer, or the time that it takes,
        // would tell whether a guess is right, a million times in one call.
        if is_seeded(Bug::CheckpointTells) && self.secrets.are_in(&state) {
            return Ok(Err("a secret is in it".to_owned()));
        }
        self.record.checkpoint = Some(state);
        Ok(Ok(()))
    }

    async fn cancelled(&mut self) -> wasmtime::Result<bool> {
        self.count_call()?;
        Ok(self.cancel.is_asked())
    }

    async fn sleep(&mut self, ms: u32) -> wasmtime::Result<bool> {
        self.count_call()?;
        let slept = self.seams.clock.sleep(Duration::from_millis(ms.into()));
        tokio::select! {
            biased;
            () = self.cancel.asked() => Ok(false),
            () = slept => Ok(true),
        }
    }

    async fn elapsed_ms(&mut self) -> wasmtime::Result<u64> {
        self.count_call()?;
        Ok(CallState::elapsed_ms(self))
    }

    async fn random(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        self.count_call()?;
        if length > RANDOM_BYTES_MAX {
            let limit = RANDOM_BYTES_MAX.into();
            return Err(Cut::Flood { what: "random bytes", limit }.into());
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.random.fill(&mut bytes);
        Ok(bytes)
    }
}

impl CallState {
    /// The commit point. Everything that could forbid it is asked here, last thing before.
    fn begin(&mut self, note: &str) -> Result<(), String> {
        if guard(Bug::ReadsBegin, !self.action.has_effect()) {
            self.record.lie = Some("it wanted to begin an effect in a call that has none");
            return Err(format!("{} has no effect", self.action.as_str()));
        }
        if self.cancel.is_asked() {
            return Err("the call is cancelled".to_owned());
        }
        self.seams.gate.check().map_err(|error| error.to_string())?;
        self.seams.gate.begin(&self.operation_id)?;
        self.record.effect = Effect::Begun;
        self.keep_log(LogLevel::Info, &format!("effect begins: {note}"));
        Ok(())
    }

    /// Keeps a line of the log, cleaned.
    pub(crate) fn keep_log(&mut self, level: LogLevel, message: &str) {
        // An empty line costs the host as much as a short one.
        let cost = message.len().clamp(16, LOG_LINE_BYTES_MAX);
        // What has no room is not even looked at: how long that takes depends on the secrets.
        if self.record.log_bytes + cost > LOG_BYTES_MAX {
            self.record.log_dropped = self.record.log_dropped.saturating_add(1);
            return;
        }
        let none = Secrets::default();
        let secrets = if is_seeded(Bug::LogUnredacted) { &none } else { &self.secrets };
        let message = secrets.clean(message, LOG_LINE_BYTES_MAX);
        let cost = cost.max(message.len());
        let has_room = self.record.log_bytes + cost <= LOG_BYTES_MAX;
        self.record.log_bytes += cost;
        if !has_room {
            self.record.log_dropped = self.record.log_dropped.saturating_add(1);
            return;
        }
        let (at_ms, after) = (CallState::elapsed_ms(self), self.record.transcript.events.len());
        self.record.log.push(LogLine { at_ms, after, level, message });
    }
}
