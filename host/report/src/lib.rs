//! Tells what happened in a simulated night: as text, as one HTML page, as a verdict.
//!
//! Takes a finished [`Story`] and renders it. It deliberately knows nothing of clusters,
//! plugins or decisions: whoever played the scenario collected the facts. Nothing here reads
//! a clock, an environment or a terminal, so the same story always gives the same bytes.

mod story;

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
pub use story::{
    Direction, Entry, Exchange, Incident, Inputs, JournalRow, Lane, Outcome, PluginUsed, Proof,
    Refusal, Run, Story, Stretch, Weight,
};
