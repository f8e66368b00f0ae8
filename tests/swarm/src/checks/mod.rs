//! The invariants, a file each: every fact of a run is held against all of them, then the end.
//! Names and lines are those of the tables in docs/guarantees.md.
//!
//! A check reads facts of the world. What a record says is only ever held against them.

mod check;
mod first_off;
mod l1_it_ends;
mod l3_somebody_leads;
mod l4_marks_go;
mod l5_cycles;
mod l7_sessions;
mod l8_in_time;
mod s10_trigger;
mod s13_storm;
mod s17_storage_veto;
mod s18_breaker;
mod s19_headroom;
mod s1_release;
mod s20_budgets;
mod s21_jobs;
mod s23_told;
mod s2_in_flight;
mod s3_quorum;
mod s4_leader;
mod s5_intent;
mod s6_left_off;
mod s7_identity;
mod s8_selection;
mod s9_marks;

use node_remedy_world::facts::Fact;
use node_remedy_world::scenario::START;
use node_remedy_world::time::between;

use crate::scene::{Scene, Setting};

pub use check::{Check, Violation};

/// Makes a check for a run.
pub type Maker = fn(&Setting) -> Box<dyn Check>;

/// Every invariant that is checked, in the order of their names.
pub const ALL: [(&str, Maker); 23] = [
    ("S1", |setting| Box::new(s1_release::Release::new(setting))),
    ("S2", |setting| Box::new(s2_in_flight::InFlight::new(setting))),
    ("S3", |setting| Box::new(s3_quorum::Quorum::new(setting))),
    ("S4", |_| Box::new(s4_leader::Leader)),
    ("S5", |setting| Box::new(s5_intent::Intent::new(setting))),
    ("S6", |setting| Box::new(s6_left_off::LeftOff::new(setting))),
    ("S7", |setting| Box::new(s7_identity::Identity::new(setting))),
    ("S8", |_| Box::new(s8_selection::Selection)),
    ("S9", |setting| Box::new(s9_marks::Marks::new(setting))),
    ("S10", |setting| Box::new(s10_trigger::Trigger::new(setting))),
    ("S13", |setting| Box::new(s13_storm::Storm::new(setting))),
    ("S17", |setting| Box::new(s17_storage_veto::StorageVeto::new(setting))),
    ("S18", |setting| Box::new(s18_breaker::OpenBreaker::new(setting))),
    ("S19", |setting| Box::new(s19_headroom::Headroom::new(setting))),
    ("S20", |setting| Box::new(s20_budgets::Budgets::new(setting))),
    ("S21", |setting| Box::new(s21_jobs::Jobs::new(setting))),
    ("S23", |setting| Box::new(s23_told::Reports::new(setting))),
    ("L1", |setting| Box::new(l1_it_ends::ItEnds::new(setting))),
    ("L3", |_| Box::new(l3_somebody_leads::SomebodyLeads)),
    ("L4", |setting| Box::new(l4_marks_go::MarksGo::new(setting))),
    ("L5", |setting| Box::new(l5_cycles::Cycles::new(setting))),
    ("L7", |setting| Box::new(l7_sessions::Sessions::new(setting))),
    ("L8", |setting| Box::new(l8_in_time::InTime::new(setting))),
];

/// Holds the facts of a run against every invariant; `note` is told each with the scene before.
pub fn check(
    facts: &[Fact],
    setting: &Setting,
    mut note: impl FnMut(&Scene, &Fact),
) -> Vec<Violation> {
    let mut scene = Scene::default();
    let mut checks: Vec<(&'static str, Box<dyn Check>)> =
        ALL.iter().map(|(name, make)| (*name, make(setting))).collect();
    let mut found = Vec::new();
    for fact in facts {
        let Fact { at, what } = fact;
        for (invariant, check) in &mut checks {
            if let Some(why) = check.see(&scene, *at, what) {
                let seconds = between(START, *at).as_secs_f64();
                let sentence = format!("{seconds:.3} s: {what}: {why}");
                found.push(Violation { invariant, at: Some(*at), sentence });
            }
        }
        note(&scene, fact);
        scene.note(*at, what);
    }
    for (invariant, check) in &mut checks {
        let at_the_end = check.end(&scene).into_iter();
        found.extend(at_the_end.map(|why| Violation {
            invariant,
            at: None,
            sentence: format!("the end: {why}"),
        }));
    }
    found
}

#[cfg(test)]
mod tests;
