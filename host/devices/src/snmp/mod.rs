//! A switched PDU or a switch: the managed side of SNMPv2c, and the relays or ports behind it.
//!
//! ```text
//!  datagram ─▶ wire ─▶ tables: which cell of which plug ─▶ read, or switched ─▶ power
//!                 faults bend any of these ──────────────────────────────────────┘
//! ```
//!
//! The caller owns time: [`Agent::datagram`] and [`Agent::tick`] take it, and [`Agent::next_change`]
//! says when a plug will change by itself. A plug is an outlet or a port, counted from 1; it is on
//! while it feeds what hangs on it, or carries its traffic.
//!
//! What this deliberately is not: SNMPv1 and v3, walks by GETBULK, groups of outlets, PoE.

mod faults;
mod tables;
mod wire;

use std::collections::BTreeMap;

pub use faults::Faults;
pub use tables::Model;

pub use crate::Reply;
pub use crate::power::{Cause, Change};

use crate::UnknownFault;
use crate::power::Supply;
use tables::{Cell, Place};
use wire::{Kind, Oid, Question, Value};

/// What a device is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which device.
    pub model: Model,
    /// How many outlets or ports it has; all are on at first.
    pub plugs: u32,
    /// The only community it takes; it may read and write.
    pub community: String,
}

/// A plug went on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugEvent {
    /// When.
    pub at_ms: u64,
    /// Which plug.
    pub plug: u32,
    /// Whether it is on now.
    pub on: bool,
    /// Who did it.
    pub cause: Cause,
}

/// What was said about a plug in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugReport {
    /// Which plug.
    pub plug: u32,
    /// What.
    pub what: Saying,
}

/// What can be said about a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    /// Yes to this change; what is done about it is another matter.
    Yes(Change),
    /// This change is refused with this error-status.
    Refused(Change, u32),
    /// Its state, which may be wrong.
    Reads {
        /// Whether it is said to be on.
        on: bool,
    },
}

/// One outlet or port.
#[derive(Clone, Debug)]
struct Plug {
    supply: Supply,
    /// What it was told to be last.
    told: bool,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Agent {
    faults: Faults,
    config: Config,
    places: BTreeMap<Oid, Place>,
    plugs: Vec<Plug>,
    events: Vec<PlugEvent>,
    said: Vec<PlugReport>,
    now_ms: u64,
}

/// From a yes to a relay that has moved, or a link that is down.
const SWITCHES_AFTER_MS: u64 = 400;
/// How long a reset leaves its plug off.
const RESET_MS: u64 = 5_000;
/// Events and sayings that are kept until somebody drains them, so that nothing grows for ever.
const KEPT: usize = 4096;

/// error-status (RFC 3416, 3): noAccess is for what cannot be written, as agents use it.
const NO_ACCESS: u32 = 6;
const WRONG_TYPE: u32 = 7;
const WRONG_VALUE: u32 = 10;

impl Agent {
    /// A healthy device.
    pub fn new(config: Config) -> Self {
        let plug = Plug { supply: Supply::new(true), told: true };
        Self {
            faults: Faults::default(),
            places: config.model.places(config.plugs),
            plugs: (0..config.plugs).map(|_| plug.clone()).collect(),
            events: Vec::new(),
            said: Vec::new(),
            now_ms: 0,
            config,
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets a fault by name from now on, as [`Faults::set`] does.
    pub fn set_fault(&mut self, now_ms: u64, name: &str, value: u32) -> Result<(), UnknownFault> {
        self.tick(now_ms);
        let was_fed = !self.faults.no_input;
        self.faults.set(name, value)?;
        let is_fed = !self.faults.no_input;
        if was_fed != is_fed {
            let closed = (1..).zip(&self.plugs).filter(|(_, plug)| plug.supply.powered());
            for (plug, _) in closed {
                let (at_ms, cause) = (self.now_ms, Cause::FlipBack);
                push(&mut self.events, PlugEvent { at_ms, plug, on: is_fed, cause });
            }
        }
        Ok(())
    }

    /// Takes one datagram and answers.
    pub fn datagram(&mut self, now_ms: u64, data: &[u8]) -> Vec<Reply> {
        self.tick(now_ms);
        if self.faults.is_deaf() {
            return Vec::new();
        }
        if self.faults.drop > 0 {
            self.faults.drop -= 1;
            return Vec::new();
        }
        let question = wire::question(data).filter(|question| {
            !self.faults.community && question.community == self.config.community.as_bytes()
        });
        let Some(mut bytes) = question.and_then(|question| self.answer(&question)) else {
            return Vec::new();
        };
        if let Some(length) = self.faults.truncate {
            bytes.truncate(length);
        }
        let reply = Reply { delay_ms: self.faults.delay_ms, bytes };
        if self.faults.dup { vec![reply.clone(), reply] } else { vec![reply] }
    }

    /// Lets time pass: changes that are due happen.
    pub fn tick(&mut self, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        let is_dead = self.faults.dead || self.faults.no_input;
        for (number, plug) in (1..).zip(&mut self.plugs) {
            if is_dead {
                // Nor does it remember what it was told: what is, is what it finds.
                plug.supply.forget();
                plug.told = plug.supply.powered();
            }
            plug.supply.tick(self.now_ms, self.faults.flip_back_ms);
            for event in plug.supply.drain() {
                let on = event.change == Change::On;
                match event.cause {
                    Cause::Command { .. } => {}
                    Cause::FlipBack | Cause::Outside => plug.told = on,
                }
                if !self.faults.no_input {
                    let (at_ms, cause) = (event.at_ms, event.cause);
                    push(&mut self.events, PlugEvent { at_ms, plug: number, on, cause });
                }
            }
        }
        self.events.sort_by_key(|event| event.at_ms);
    }

    /// When a plug will next change by itself.
    pub fn next_change(&self) -> Option<u64> {
        self.plugs.iter().filter_map(|plug| plug.supply.next_change()).min()
    }

    /// Is this plug on? The truth, whatever its answers say; none if there is no such plug.
    pub fn is_on(&self, plug: u32) -> Option<bool> {
        let on = self.plug(plug)?.supply.powered();
        Some(on && !self.faults.no_input)
    }

    /// Somebody presses the button of an outlet, or configures a port.
    pub fn set_plug(&mut self, now_ms: u64, plug: u32, on: bool) {
        self.tick(now_ms);
        let now_ms = self.now_ms;
        if let Some(plug) = self.plug_mut(plug) {
            plug.supply.set(now_ms, on, Cause::Outside);
        }
        self.tick(now_ms);
    }

    /// The changes of plugs since the last call, in order of time.
    pub fn drain_events(&mut self) -> Vec<PlugEvent> {
        std::mem::take(&mut self.events)
    }

    /// What was said about plugs since the last call.
    pub fn drain_said(&mut self) -> Vec<PlugReport> {
        std::mem::take(&mut self.said)
    }

    fn plug(&self, number: u32) -> Option<&Plug> {
        self.plugs.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    fn plug_mut(&mut self, number: u32) -> Option<&mut Plug> {
        self.plugs.get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    fn answer(&mut self, question: &Question) -> Option<Vec<u8>> {
        let id = if self.faults.wrong_id { question.id ^ 0x0f00 } else { question.id };
        let (error, mut bindings): (_, Vec<(Oid, Value)>) = match question.kind {
            Kind::Get => ((0, 0), question.bindings.iter().map(|(oid, _)| self.get(oid)).collect()),
            Kind::GetNext => {
                ((0, 0), question.bindings.iter().map(|(oid, _)| self.next(oid)).collect())
            }
            Kind::Set => (self.set(&question.bindings), question.bindings.clone()),
        };
        if question.kind == Kind::Get {
            self.note_read(&question.bindings);
        }
        if question.kind == Kind::Set && self.faults.reply_lost {
            return None;
        }
        if self.faults.wrong_oid {
            for (oid, _) in &mut bindings {
                oid.push(7);
            }
        }
        wire::answer(&question.community, id, error, &bindings)
    }

    fn get(&self, oid: &Oid) -> (Oid, Value) {
        let value = self.places.get(oid).map(|place| self.value(*place));
        let value = value.unwrap_or_else(|| {
            let column = oid.split_last().map_or(oid.as_slice(), |(_, column)| column);
            let has_others = self.places.keys().any(|other| other.starts_with(column));
            if has_others { Value::NoSuchInstance } else { Value::NoSuchObject }
        });
        (oid.clone(), value)
    }

    fn next(&self, oid: &Oid) -> (Oid, Value) {
        let after = (std::ops::Bound::Excluded(oid), std::ops::Bound::Unbounded);
        match self.places.range::<Oid, _>(after).next() {
            Some((next, place)) => (next.clone(), self.value(*place)),
            None => (oid.clone(), Value::EndOfMib),
        }
    }

    fn value(&self, Place { cell, plug, is_newest }: Place) -> Value {
        let number = |[on, off]: [i64; 2], is_on| Value::Integer(if is_on { on } else { off });
        match cell {
            Cell::Name(of) => Value::Text(of(plug)),
            Cell::State(numbers) => {
                // Who has one table only cannot contradict itself.
                let has_two = self.config.model == Model::ApcRpdu2;
                let differs = has_two && is_newest && self.faults.tables_differ;
                number(numbers, self.reads(plug) ^ differs)
            }
            Cell::Told(numbers, _) => {
                let told = self.plug(plug).is_some_and(|plug| plug.told);
                number(numbers, told && !self.faults.says_off)
            }
            Cell::Does(_) => Value::Integer(-1),
        }
    }

    /// What is said of a plug's state.
    fn reads(&self, plug: u32) -> bool {
        let stale_ms = self.faults.stale_ms.unwrap_or(0);
        let seen = self.plug(plug).is_some_and(|plug| plug.supply.seen(self.now_ms, stale_ms));
        seen && !self.faults.says_off
    }

    /// Takes note of the plugs whose state was asked for.
    fn note_read(&mut self, bindings: &[(Oid, Value)]) {
        let places = bindings.iter().filter_map(|(oid, _)| self.places.get(oid));
        let states = places.filter(|place| place.is_newest).copied();
        for Place { plug, .. } in states.collect::<Vec<_>>() {
            // Told to be down and still up is not off, nor is the other way round.
            let is_told = self.config.model == Model::Switch
                && self.plug(plug).is_some_and(|plug| plug.told)
                && !self.faults.says_off;
            let on = self.reads(plug) || is_told;
            push(&mut self.said, PlugReport { plug, what: Saying::Reads { on } });
        }
    }

    /// Writes all of these or none; says the error-status and where.
    fn set(&mut self, bindings: &[(Oid, Value)]) -> (u32, u32) {
        let mut changes = Vec::new();
        for (place, (oid, value)) in (1..).zip(bindings) {
            match self.change(oid, value) {
                Ok(change) => changes.push(change),
                Err(status) => return (status, place),
            }
        }
        if let Some(status) = self.faults.set_status {
            for (plug, change) in changes {
                push(&mut self.said, PlugReport { plug, what: Saying::Refused(change, status) });
            }
            return (status, 1);
        }
        for (plug, change) in changes {
            push(&mut self.said, PlugReport { plug, what: Saying::Yes(change) });
            self.switch(plug, change);
        }
        (0, 0)
    }

    /// What a written number asks for.
    fn change(&self, oid: &Oid, value: &Value) -> Result<(u32, Change), u32> {
        let Some(Place { cell, plug, .. }) = self.places.get(oid) else { return Err(NO_ACCESS) };
        let Value::Integer(number) = value else { return Err(WRONG_TYPE) };
        let change = match cell {
            Cell::Name(_) | Cell::State(_) => return Err(NO_ACCESS),
            Cell::Told([on, _], _) if number == on => Change::On,
            Cell::Told([_, off], _) if number == off => Change::Off,
            Cell::Told(_, reset) if *reset == Some(*number) => Change::Reset,
            Cell::Does(change) if *number == 0 => *change,
            Cell::Told(..) | Cell::Does(_) => return Err(WRONG_VALUE),
        };
        Ok((*plug, change))
    }

    fn switch(&mut self, plug: u32, change: Change) {
        let late_ms = self.faults.late_ms.unwrap_or(0);
        let at_ms = self.now_ms.saturating_add(SWITCHES_AFTER_MS).saturating_add(late_ms);
        let is_stuck = self.faults.stuck;
        let Some(plug) = self.plug_mut(plug) else { return };
        plug.told = change != Change::Off;
        let mut schedule = |at_ms, change| {
            plug.supply.schedule(at_ms, change, Cause::Command { user: String::new() });
        };
        match change {
            _ if is_stuck => {}
            Change::Off | Change::On => schedule(at_ms, change),
            Change::Reset => {
                schedule(at_ms, Change::Off);
                schedule(at_ms.saturating_add(RESET_MS), Change::On);
            }
        }
    }
}

fn push<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() < KEPT {
        kept.push(one);
    }
}

#[cfg(test)]
mod tests;
