//! Tests of the crate, from the least powerful kind to the most: tables, one test for each
//! rule, an exhaustive walk through a small world, and arbitrary orders of events.

mod at_once;
mod breaker;
mod driver;
mod fixtures;
mod gates;
mod orders;
mod rules;
mod symptoms;
mod table;
mod walk;
