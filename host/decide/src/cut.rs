//! What isolation cut: since when who might still write behind it, and when it may be given back.
//!
//! A cut stands between two writers. Whatever vanished from the node since, by whose hand ever, may run
//! elsewhere by now: then only a machine that is off, a newer boot or a person's word lets it back.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::bug::{Bug, guard, is_seeded};
use crate::draft::{Draft, Flow};
use crate::record::CutOff;
use crate::retry::{climb_to_an_off, end_release, go_back, last_failure, void};
use crate::standing::{
    has_stood_since, is_asked_back, is_coming_back, is_kept_cut, is_read_here, last_attempt,
    stands_after, still_cut, storage_still_cut,
};
use crate::{
    Action, AttachmentView, Backing, Evidence, Exempt, FinalReason, Goal, Grade, Kind, Method,
    MethodIndex, NodeView, Notice, Operation, PARKED_LOOK_EVERY, ParkReason, Phase, Plan,
    PlugState, PodView, Proof, RELEASED_MAX, Record, Rule, Span, Time, View, VolumeView, cut,
};

/// Notes what stands on the node before it is cut off. Until a read shows a cut, what comes to the node meanwhile is added: it may
/// write behind it.
pub(crate) fn note_before(draft: &mut Draft<'_>) {
    let still_cut = still_cut(draft);
    let is_shown = |cut: &MethodIndex| {
        draft.record.operations.iter().any(|one| one.method == *cut && one.is_read_off())
    };
    if still_cut.iter().any(is_shown) {
        return;
    }
    let seen = draft.seen().and_then(|view| Some((view, draft.node(view)?)));
    let Some(mut before) = seen.map(|(view, node)| what_stands(draft.plan, view, node)) else {
        if still_cut.is_empty() {
            draft.record.cut_off = None;
        }
        return;
    };
    if let Some(noted) = draft.record.cut_off.take().filter(|_| !still_cut.is_empty()) {
        before = with_earlier(noted, before);
    }
    draft.record.cut_off = Some(before);
}

/// What was noted for an earlier try of the same cut, and what has come since.
fn with_earlier(noted: CutOff, now: CutOff) -> CutOff {
    let all = |noted: Vec<String>, now: Vec<String>| {
        let new: Vec<String> = now.into_iter().filter(|uid| !noted.contains(uid)).collect();
        as_many_as_fit(noted.iter().chain(&new))
    };
    CutOff {
        pods: all(noted.pods, now.pods),
        attachments: all(noted.attachments, now.attachments),
        untold: noted.untold || now.untold,
    }
}

fn what_stands(plan: &Plan, view: &View, node: &NodeView) -> CutOff {
    let cuts_any = cuts_any(plan);
    let kinds = plan.cut_methods().filter_map(|index| plan.method(index));
    let drivers: Vec<&str> = kinds.flat_map(Method::drivers).collect();
    let is_cut = |one: &VolumeView| {
        let is_of_it = one.driver().is_some_and(|driver| drivers.contains(&driver));
        cuts_any || one.backing == Backing::Unknown || is_of_it
    };
    // What tolerates the out-of-service taint is not ours to delete, and others may.
    let is_movable = |pod: &PodView| {
        let tolerates = pod.exempt == Some(Exempt::Tolerates);
        pod.exempt.is_none() || guard(Bug::ToleratingForgotten, tolerates)
    };
    let may_write =
        |pod: &&PodView| is_movable(pod) && (cuts_network(plan) || pod.volumes.iter().any(is_cut));
    let of_pods = || view.pods.iter().flat_map(|pod| &pod.volumes);
    let is_of_others = |one: &&AttachmentView| {
        let mut volumes = of_pods().filter(|volume| volume.name() == Some(&one.volume));
        volumes.next().is_some_and(|volume| !is_cut(volume))
    };
    let is_told = |one: &VolumeView| {
        one.in_use_as().is_some_and(|name| node.volumes_in_use.iter().any(|it| it == name))
    };
    let untold = |pod: &PodView| pod.volumes.iter().any(|one| is_cut(one) && !is_told(one));
    let pods: Vec<&PodView> = view.pods.iter().filter(may_write).collect();
    CutOff {
        untold: pods.iter().any(|pod| untold(pod)),
        pods: as_many_as_fit(pods.iter().map(|pod| &pod.uid)),
        attachments: as_many_as_fit(
            view.attachments.iter().filter(|one| !is_of_others(one)).map(|one| &one.uid),
        ),
    }
}

fn cuts_network(plan: &Plan) -> bool {
    let mut kinds = plan.cut_methods().filter_map(|index| plan.method(index));
    kinds.any(|method| matches!(method.kind, Kind::Fabric(_)))
}

/// Whether any volume may be behind a cut of this plan: a network is cut, or storage of which nobody said whose it is.
fn cuts_any(plan: &Plan) -> bool {
    let mut kinds = plan.cut_methods().filter_map(|index| plan.method(index));
    let names_none = |method: &Method| method.cuts_storage() && method.drivers().next().is_none();
    cuts_network(plan) || kinds.any(names_none)
}

/// These UIDs, or as many as a record holds. Then an empty one, which nobody has, stands for the others: whoever
/// looks later whether all are there finds one missing.
fn as_many_as_fit<'u>(uids: impl Iterator<Item = &'u String>) -> Vec<String> {
    let mut fit: Vec<String> = uids.take(RELEASED_MAX.saturating_add(1)).cloned().collect();
    if fit.len() > RELEASED_MAX {
        fit.truncate(RELEASED_MAX.saturating_sub(1));
        fit.push(String::new());
    }
    fit
}

/// How often a cut is read behind which pods were released: whoever undoes it makes two writers. As often
/// as a kubelet renews its Lease.
const READ_EVERY: Span = Span::seconds(10);

/// How late a read of a cut may come while the phase is at work.
const READ_LATE_MAX: Span = Span::minutes(2);

/// A16: a cut that a release rests on, or behind which something vanished, and that was undone is made again, for as long as
/// the machine may run behind it.
pub(crate) fn watch(draft: &mut Draft<'_>) -> Option<Flow> {
    // Others may have taken something away while the last call took its time.
    if guard(Bug::CutUnseen, may_vanish(draft)) && draft.look().is_none() {
        return Some(Flow::Stay);
    }
    if !is_watching(draft) {
        return None;
    }
    let is_undone = is_undone(draft, draft.seen().and_then(View::machine));
    if is_undone {
        let again = in_a_while(draft);
        let is_word_for_all = is_left_alone(draft) && is_seeded(Bug::WordForLaterCuts);
        if again.is_some() || is_word_for_all || is_seeded(Bug::UndoneOnceOnly) {
            return again;
        }
    }
    let is_first = !is_undone || is_left_alone(draft);
    let reads_on = |cut: &MethodIndex| is_first && reads_on_again(draft, *cut);
    let cut = to_watch(draft).into_iter().find(|cut| guard(Bug::UndoneCutLeft, reads_on(cut)))?;
    // A newer boot is not cut, so it takes a fresh look.
    if draft.look().is_none() {
        return Some(Flow::Stay);
    }
    // What vanished runs elsewhere, and the machine may have written since: its boot has to end.
    draft.record.first_released_at = draft.record.first_released_at.or(Some(draft.now));
    Some(undone(draft, cut))
}

/// A16: reads the watched cut that was read longest ago, once `late` after it is due.
fn read_next(draft: &mut Draft<'_>, late: Span) -> Option<Flow> {
    if !is_watching(draft) {
        return None;
    }
    let due_at = |cut: &MethodIndex| {
        let read = draft.record.last_ended(*cut, Action::Status);
        read.and_then(|one| one.ended_at).unwrap_or_default().after(READ_EVERY)
    };
    let (due_at, cut) = to_watch(draft).into_iter().map(|cut| (due_at(&cut), cut)).min()?;
    if draft.now < due_at.after(late) {
        draft.look_at(due_at.after(late));
        return None;
    }
    // What is seen comes first: devices that take long to answer must not hide a node that is well.
    if draft.look().is_none() {
        return Some(Flow::Stay);
    }
    draft.rule(Rule::A16);
    Some(draft.call(cut, Action::Status))
}

/// Reads a cut that is long overdue although the phase has something to do. Devices that are slow to answer must not keep the
/// phase from its work, so after each such read the phase has its turn.
pub(crate) fn read_overdue(draft: &mut Draft<'_>) -> Option<Flow> {
    let last = draft.record.operations.last().map(|one| one.method);
    let was_a_cut = last.is_some_and(|last| draft.plan.cut_methods().any(|cut| cut == last));
    if was_a_cut { None } else { read_next(draft, READ_LATE_MAX) }
}

/// Reads a cut that is due while the phase waits for something.
pub(crate) fn read_due(draft: &mut Draft<'_>) -> Option<Flow> {
    read_next(draft, Span::ZERO)
}

/// Whether cuts are read: something that stood behind them may run elsewhere, and the boot that was cut may go on.
fn is_watching(draft: &Draft<'_>) -> bool {
    let runs_elsewhere = draft.record.first_released_at.is_some() || has_vanished(draft);
    let machine = draft.seen().and_then(View::machine);
    let is_new_boot = machine.is_some_and(|node| draft.is_new_boot(&node.liveness));
    guard(Bug::CutNotWatched, runs_elsewhere) && !is_new_boot
}

/// The watched cuts that are to stand, or may: of one that nobody has read since its call, only the answer is known. What was
/// open when a person said so stays so; what is given back after that word does not.
fn to_watch(draft: &Draft<'_>) -> Vec<MethodIndex> {
    let is_spared = is_left_alone(draft);
    let open = open(draft);
    let is_to_stand = |cut: &MethodIndex| {
        let is_unread = draft.record.state_since_effect(*cut).is_none();
        let has_stood = is_spared && has_stood_at_the_word(&draft.record, *cut);
        !open.contains(cut) || is_unread || has_stood
    };
    watched(draft).into_iter().filter(is_to_stand).collect()
}

/// Whether earlier cuts are still needed beside this proof: silence and a crash do not show that the machine is off.
pub(crate) fn needs_earlier_cuts(grade: Grade) -> bool {
    guard(Bug::SilenceHidesCuts, matches!(grade, Grade::Partition | Grade::KdumpSeen))
}

/// The cuts that what was released rests on: of the proof, or of an earlier pass, which may have released behind
/// any. What we gave back ourselves, nobody undid.
fn watched(draft: &Draft<'_>) -> Vec<MethodIndex> {
    let cuts: Vec<MethodIndex> = match draft.record.proof.as_ref() {
        Some(proof) if proof.grade == Grade::StorageFenced => {
            draft.record.read_by(proof).into_iter().collect()
        }
        // The machine is off, or said to be dead. That it was silent, or crashed, keeps nobody from undoing a cut.
        Some(proof) if proof.voided_at.is_none() && !needs_earlier_cuts(proof.grade) => Vec::new(),
        Some(_) | None if is_seeded(Bug::EarlierCutsForgotten) => Vec::new(),
        Some(_) | None => storage_still_cut(draft),
    };
    let is_ours = |cut: &MethodIndex| {
        let is_coming =
            is_coming_back(draft, *cut) || is_asked_back(draft, *cut) && reads_as_off(draft);
        !guard(Bug::OwnGivingBackAccused, is_coming)
    };
    cuts.into_iter().filter(is_ours).collect()
}

/// Whether a cut was read to stand, and somebody gave it back since. What its own call answered shows nothing (P1), nor does
/// what was read before we gave it back ourselves.
fn reads_on_again(draft: &Draft<'_>, cut: MethodIndex) -> bool {
    let mut effects = draft.record.operations.iter().filter(|one| one.method == cut);
    let is_on = |one: &&Operation| one.action == Action::On && one.may_have_acted();
    let given_back = effects.rfind(is_on).filter(|_| !is_seeded(Bug::OwnGivingBackAccused));
    has_stood_since(draft, cut, given_back)
        && draft.record.state_since_effect(cut) == Some(PlugState::On)
}

/// P2: somebody gave back a cut that a release rests on, or behind which something vanished. It is cut once more, and no more is
/// released behind it: whoever undid it may do so again.
pub(crate) fn undone(draft: &mut Draft<'_>, cut: MethodIndex) -> Flow {
    draft.rule(Rule::A16);
    draft.rule(Rule::P2);
    let proof = draft.record.proof.as_ref().filter(|proof| proof.voided_at.is_none());
    draft.notice(match proof {
        Some(_) => Notice::ProofVoided { reads_on: Some(cut) },
        None => Notice::CutUndone { method: cut },
    });
    note_undone(draft);
    end_release(draft);
    let plan = draft.plan;
    let is_power = |method: MethodIndex| plan.method(method).is_some_and(Method::switches_power);
    // Power that failed before has another try.
    draft.record.failed.retain(|method| !is_power(*method));
    let method = plan.method(cut).map(|method| method.name.clone()).unwrap_or_default();
    let is_there = draft.seen().is_some_and(|view| draft.node(view).is_some());
    let may_go_off = is_there && !stays_on(draft);
    let goes_off = may_go_off && (draft.switches_power() || climb_to_an_off(draft));
    draft.record.goal = if goes_off {
        Goal::BringBack
    } else {
        let reason = refuted(draft).cloned();
        Goal::Park(reason.unwrap_or(ParkReason::CutUndone { method, failure: None }))
    };
    cut_again(draft)
}

/// The proof says that what it rests on was undone; behind cuts of an earlier pass it is made for that.
fn note_undone(draft: &mut Draft<'_>) {
    let proof = draft.record.proof.as_ref();
    if proof.is_none_or(|proof| proof.grade != Grade::StorageFenced) {
        let liveness =
            proof.map_or(&draft.record.liveness_at_open, |proof| &proof.liveness).clone();
        let reads = watched(draft).into_iter().filter_map(|cut| draft.record.last_read(cut));
        let by = Evidence::Reads(reads.map(|read| read.id).collect());
        let grade = Grade::StorageFenced;
        draft.record.proof = Some(Proof { grade, at: draft.now, by, liveness, voided_at: None });
    }
    void(draft);
}

/// Cuts once more what was given back behind a release. The proof stays: it says that this is no first cut.
pub(crate) fn cut_again(draft: &mut Draft<'_>) -> Flow {
    let open = open(draft);
    let record = &mut draft.record;
    record.failed.retain(|method| !open.contains(method));
    record.retries = 0;
    record.resume = None;
    record.parked = None;
    Flow::Go(Phase::Isolating)
}

/// Whether a person said that what was undone is to stay so.
fn is_left_alone(draft: &Draft<'_>) -> bool {
    let parked = draft.record.park_reason();
    matches!(parked, Some(ParkReason::LeftAlone { .. } | ParkReason::Aborted))
}

/// Whether no power is switched any more when a cut is made again: a person aborted, or what was switched off may be another
/// machine's. So it stays when a cut is undone for a second time. A pause is no abort: the machine is fenced once it ends.
pub(crate) fn stays_on(draft: &Draft<'_>) -> bool {
    let keeps_on = |reason: &ParkReason| matches!(reason, ParkReason::CutUndone { .. });
    draft.record.aborted_at.is_some()
        || refuted(draft).is_some()
        || reasons(&draft.record).any(keeps_on)
}

/// Why what was switched off may be another machine, or is alive.
pub(crate) fn refuted<'r>(draft: &'r Draft<'_>) -> Option<&'r ParkReason> {
    reasons(&draft.record).find(|reason| {
        matches!(
            reason,
            ParkReason::WrongMachine { .. }
                | ParkReason::WrongPlug { .. }
                | ParkReason::WitnessReadsOn { .. }
                | ParkReason::AliveThoughOff
                | ParkReason::MachineDisputed { .. }
        )
    })
}

/// For what the incident is parked, and for what it is going to.
fn reasons(record: &Record) -> impl Iterator<Item = &ParkReason> {
    let next = match &record.goal {
        Goal::Park(reason) => Some(reason),
        Goal::BringBack | Goal::Withdraw | Goal::Close(_) => None,
    };
    record.park_reason().into_iter().chain(next)
}

/// Whether a cut stood when the person spoke for whose word the incident is parked: it read so right before, or since.
fn has_stood_at_the_word(record: &Record, cut: MethodIndex) -> bool {
    let is_read = |one: &&Operation| {
        one.method == cut && one.action == Action::Status && one.state().is_some()
    };
    let (before, since): (Vec<&Operation>, Vec<&Operation>) =
        record.operations.iter().filter(is_read).partition(|one| one.id < record.phase_first);
    before.last().into_iter().chain(&since).any(|one| one.is_read_off())
}

/// Cuts again what was undone; after a failure once a minute, for as long as the machine may write.
fn in_a_while(draft: &mut Draft<'_>) -> Option<Flow> {
    let open = open(draft);
    if is_left_alone(draft) || hits_another(draft) || !guard(Bug::LostCutGivenUp, !open.is_empty())
    {
        return None;
    }
    let record = &draft.record;
    let next = open.into_iter().map(|cut| match last_attempt(record, cut) {
        Some(tried) if !stands_after(record, tried) => {
            tried.ended_at.unwrap_or(tried.intended_at).after(PARKED_LOOK_EVERY)
        }
        // A read of this phase shows that it was undone again: it is cut at once.
        Some(_) | None if is_read_here(record, cut) => Time::default(),
        Some(_) | None => record.entered_at.after(PARKED_LOOK_EVERY),
    });
    let next = next.min().unwrap_or_default();
    if draft.now < next {
        draft.look_at(next);
        return None;
    }
    draft.rule(Rule::A16);
    Some(cut_again(draft))
}

/// Whether what would be cut once more may be another node's by now.
pub(crate) fn hits_another(draft: &Draft<'_>) -> bool {
    let is_undone = is_undone(draft, draft.seen().and_then(View::machine));
    guard(Bug::CutAgainUnasked, is_undone && dispute(draft).is_some())
}

/// P8: what may be another machine's is given back, and a person is told.
pub(crate) fn give_back_disputed(draft: &mut Draft<'_>, why: String) -> Flow {
    draft.rule(Rule::P8);
    go_back(draft, Goal::Park(ParkReason::MachineDisputed { why }))
}

/// Why the machine that is cut may be another Node's.
fn dispute(draft: &Draft<'_>) -> Option<String> {
    draft.seen()?.gate.dispute()
}

/// Cuts that a release rested on, that somebody gave back, and that do not read as made again.
pub(crate) fn open(draft: &Draft<'_>) -> Vec<MethodIndex> {
    if !is_undone(draft, draft.seen().and_then(View::machine)) {
        return Vec::new();
    }
    let is_open = |cut: &MethodIndex| {
        let is_off = |effect: &Operation| effect.action == Action::Off;
        let is_to_stand =
            draft.record.last_effect(*cut).is_some_and(is_off) || is_kept_cut(draft, *cut);
        is_to_stand && draft.record.state_since_effect(*cut) != Some(PlugState::Off)
    };
    let proof = draft.record.proof.as_ref();
    proof.map(|proof| draft.record.read_by(proof)).into_iter().flatten().filter(is_open).collect()
}

/// Why a person is told of a cut that was undone, with what kept it from being made again.
pub(crate) fn told(draft: &Draft<'_>, reason: ParkReason) -> ParkReason {
    match (reason, open(draft).first()) {
        (ParkReason::CutUndone { .. }, Some(cut)) => {
            let method = draft.plan.method(*cut).map(|method| method.name.clone());
            let failure = last_failure(draft, |one| one.method == *cut);
            let failure = dispute(draft).or(failure);
            let failure = failure.unwrap_or_else(|| "it does not read as cut".to_string());
            ParkReason::CutUndone { method: method.unwrap_or_default(), failure: Some(failure) }
        }
        (reason, _) => reason,
    }
}

/// Whether somebody gave back what pods of the boot that still runs were released behind. `node` is the
/// [machine's](View::machine); without one the boot that was cut may still run.
pub(crate) fn is_undone(draft: &Draft<'_>, node: Option<&NodeView>) -> bool {
    let proof = draft.record.proof.as_ref().filter(|proof| proof.grade == Grade::StorageFenced);
    proof.is_some_and(|proof| proof.voided_at.is_some())
        && draft.has_released()
        && !node.is_some_and(|node| draft.is_new_boot(&node.liveness))
}

/// Whether all that feeds the machine last read off, after an off of ours, and nothing has refuted that.
fn reads_as_off(draft: &Draft<'_>) -> bool {
    let is_off = draft.plan.machine_is_off(|feed| draft.record.reads_off(feed));
    draft.sent_off() && is_off && refuted(draft).is_none()
}

/// Whether a storage cut may still stand behind which pods or attachments may vanish, and not everything was released yet.
fn may_vanish(draft: &Draft<'_>) -> bool {
    draft.record.first_released_at.is_none()
        && draft.record.cut_off.as_ref().is_some_and(|before| *before != CutOff::default())
        && !storage_still_cut(draft).is_empty()
        && !is_seeded(Bug::VanishedBeforeProof)
}

/// Whether something is gone that stood on the node before its storage was cut: it may run elsewhere. A living kubelet that uses
/// cut storage only for what still stands has let go of the rest.
fn has_vanished(draft: &Draft<'_>) -> bool {
    let Some(view) = draft.seen().filter(|_| may_vanish(draft)) else { return false };
    // Without its Node, its pods and attachments are gone with it.
    let Some(node) = draft.node(view) else { return true };
    let lets_go = !draft.is_silent(node) && uses_only_what_stands(draft, view, node);
    !stands_all(draft, view) && !lets_go
}

/// Whether the kubelet says that it uses the cut storage for nothing but pods that stand, with their attachments.
fn uses_only_what_stands(draft: &Draft<'_>, view: &View, node: &NodeView) -> bool {
    let has_attachment =
        |one: &VolumeView| view.attachments.iter().any(|it| Some(it.volume.as_str()) == one.name());
    let is_standing = |one: &&VolumeView| has_attachment(one) && !is_seeded(Bug::NeighbourHoldsAll);
    let volumes = view.pods.iter().flat_map(|pod| &pod.volumes).filter(is_standing);
    let standing: Vec<&str> = volumes.filter_map(VolumeView::in_use_as).collect();
    uses_no_more_than(draft, node, &standing)
}

/// Whether all that stood on the node before it was cut off still does. A Node that is gone takes its pods with it.
fn stands_all(draft: &Draft<'_>, view: &View) -> bool {
    let has_pod = |uid: &String| view.pods.iter().any(|pod| pod.uid == *uid);
    let has_attachment = |uid: &String| view.attachments.iter().any(|one| one.uid == *uid);
    let has_all = |before: &CutOff| {
        before.pods.iter().all(has_pod) && before.attachments.iter().all(has_attachment)
    };
    draft.node(view).is_some() && draft.record.cut_off.as_ref().is_none_or(has_all)
}

/// Whether all that stood on the node before it was cut off still does, so that nothing of it can run
/// elsewhere.
pub(crate) fn holds_all(draft: &Draft<'_>, view: &View) -> bool {
    !draft.has_released() && !guard(Bug::VanishedForgotten, !stands_all(draft, view))
}

/// A5: what allows a cut to be given back although the node does not hold all that it held, and no read
/// says off.
pub(crate) fn may_restore_alive(draft: &Draft<'_>, view: &View) -> bool {
    let is_replaced = draft.record.goal == Goal::Close(FinalReason::Replaced);
    if is_replaced || is_seeded(Bug::CutsGoBackAlive) {
        // The provider's word: it never runs again.
        return true;
    }
    let proof = draft.record.proof.as_ref();
    let is_said_off = |proof: &Proof| {
        matches!(proof.grade, Grade::OperatorConfirmed | Grade::WatchdogDeadline)
            && proof.voided_at.is_none()
    };
    let Some(node) = draft.node(view) else {
        // Without its Node nothing more can be heard of the machine than what was said of it, unless it
        // registers anew.
        let is_newer = has_registered_anew(draft, view);
        return is_newer || proof.is_some_and(is_said_off) || is_seeded(Bug::GoneIsOff);
    };
    if draft.is_new_boot(&node.liveness) {
        return true;
    }
    // That it is off holds until it is heard again.
    if proof.is_some_and(|proof| is_said_off(proof) && proof.liveness == node.liveness) {
        return true;
    }
    draft.is_well(view) && has_let_go_of_storage(draft, node)
}

/// Whether the Node is gone, and its machine runs a newer boot under another one.
pub(crate) fn has_registered_anew(draft: &Draft<'_>, view: &View) -> bool {
    let machine = view.machine().filter(|_| draft.node(view).is_none());
    guard(Bug::AnewForgotten, machine.is_some_and(|node| draft.is_new_boot(&node.liveness)))
}

/// Whether the kubelet says that nothing of the cut storage is in use, where it would say so.
fn has_let_go_of_storage(draft: &Draft<'_>, node: &NodeView) -> bool {
    uses_no_more_than(draft, node, &[])
}

/// Whether the kubelet says that nothing of what is cut is in use but these volumes, where it would say so.
fn uses_no_more_than(draft: &Draft<'_>, node: &NodeView, volumes: &[&str]) -> bool {
    let is_untold = draft.record.cut_off.as_ref().is_some_and(|before| before.untold);
    let is_new = |one: &str| !volumes.contains(&one);
    if cuts_any(draft.plan) {
        return !is_untold && !node.volumes_in_use.iter().any(|one| is_new(one));
    }
    let kinds = draft.plan.cut_methods().filter_map(|index| draft.plan.method(index));
    let mut drivers = kinds.flat_map(Method::drivers).peekable();
    let is_hidden = drivers.peek().is_some() && is_untold;
    let uses_more = |driver| node.in_use_of(driver).any(is_new);
    !is_hidden && !drivers.any(uses_more)
}

/// Why an aborted incident parks. That its plug may be another machine's outlives the abort.
pub(crate) fn abort_reason(draft: &Draft<'_>) -> ParkReason {
    let refuted = cut::refuted(draft).filter(|_| !is_seeded(Bug::WrongPlugHidden));
    refuted.cloned().unwrap_or(ParkReason::Aborted)
}
