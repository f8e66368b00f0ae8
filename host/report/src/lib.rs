//! Tells what happened in a simulated run: as text, as one HTML page, as a verdict.
//!
//! Takes a finished [`Timeline`] and renders it. It deliberately knows nothing of clusters,
//! plugins or decisions: whoever played the scenario collected the facts. Nothing here reads
//! a clock, an environment or a terminal, so the same timeline always gives the same bytes.

mod timeline;

mod alike;
mod fold;
mod printable;
mod rules;
mod spell;

mod lanes;
mod markup;

pub mod html;
pub mod text;

pub use crate::lanes::Theme;
pub use lanes::lanes_svg;
pub use spell::clock;
pub use timeline::{
    Direction, Entry, Exchange, Incident, Inputs, Interval, JournalRow, Lane, Outcome, PluginUsed,
    Proof, Refusal, Run, Timeline, Weight,
};
