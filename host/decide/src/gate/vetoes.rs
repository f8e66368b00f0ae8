//! What people and other controllers said about a node, and when it keeps its power uncut.
//!
//! None of it stops what brings a machine back: on, restoring and untainting ask no gate (A2).

use crate::bug::{Bug, guard, is_seeded};
use crate::gate::refusal::{Pause, Refusal, Verdict};
use crate::gate::view::{ForeignCordon, OperatorVetoes};
use crate::{Span, Time};

/// While somebody's word stands it is read again this often; a word that changes wakes us earlier.
pub const WORD_LOOK_EVERY: Span = Span::seconds(10);

/// Refuses by every word that stands.
pub(super) fn refuse_by_vetoes(
    foreign_cordon: ForeignCordon,
    vetoes: &OperatorVetoes,
    now: Time,
    verdict: &mut Verdict,
) {
    let before = verdict.refusals.len();
    for what in &vetoes.unread {
        verdict.refusals.push(Refusal::VetoesUnread { what: what.clone() });
    }
    let stands = |pause: &&Pause| pause.until.is_none_or(|until| now < until);
    for pause in vetoes.pauses.iter().filter(|pause| guard(Bug::PauseIgnored, stands(pause))) {
        verdict.refusals.push(Refusal::Paused(pause.clone()));
        verdict.look_at(pause.until.unwrap_or(now.after(WORD_LOOK_EVERY)));
    }
    if let Some(mark) = vetoes.excluded_by.clone().filter(|_| !is_seeded(Bug::LabelIgnored)) {
        verdict.refusals.push(Refusal::Excluded { mark });
    }
    if let Some(what) = vetoes.maintenance.clone().filter(|_| !is_seeded(Bug::MaintenanceIgnored)) {
        verdict.refusals.push(Refusal::Maintenance { what });
    }
    let is_kept = vetoes.cordoned_by_other && foreign_cordon == ForeignCordon::Maintenance;
    if guard(Bug::CordonIgnored, is_kept) {
        verdict.refusals.push(Refusal::Cordoned);
    }
    if let Some(taint) = vetoes.removed_by.clone() {
        verdict.refusals.push(Refusal::BeingRemoved { taint });
    }
    if verdict.refusals.len() > before {
        verdict.look_at(now.after(WORD_LOOK_EVERY));
    }
}
