//! What plugins decided, to the status and back. A decision that cannot be read back is none: the record
//! says that it is broken, and nothing is asked or done instead of it.

use node_remedy_api::time::{Moment, Span};
use node_remedy_api::{limits, nodefence as api};
use node_remedy_config::enums::Twin as _;
use node_remedy_decide as decide;
use node_remedy_decide::Time;

use crate::status::fields::{BrokenRecord, NAME_MAX, SENTENCE_MAX, broken, cut, place};

/// The decisions, the latest last; a record keeps so many.
pub(super) fn write(decisions: &[decide::Decided]) -> Vec<api::Decided> {
    let surplus = decisions.len().saturating_sub(limits::DECISIONS_MAX);
    let kept = decisions.iter().skip(surplus);
    kept.map(|one| api::Decided {
        number: one.number,
        remedy_step: place(one.remedy_step),
        asked_at: one.asked_at.twin(),
        choice: one.choice.as_ref().map(choice),
        chosen_at: one.chosen_at.map(Time::twin),
        followed_at: one.followed_at.map(Time::twin),
        failed: one.failed.as_ref().map(|why| cut(why, SENTENCE_MAX)),
        ended_at: one.ended_at.map(Time::twin),
    })
    .collect()
}

fn choice(choice: &decide::Choice) -> api::Choice {
    let bare = |kind| api::Choice { kind, name: None, wait: None, why: None };
    let named = |kind, name: &str| api::Choice { name: Some(cut(name, NAME_MAX)), ..bare(kind) };
    match choice {
        decide::Choice::Method(name) => named(api::ChoiceKind::Method, name),
        decide::Choice::Cluster(name) => named(api::ChoiceKind::Cluster, name),
        decide::Choice::Fence => bare(api::ChoiceKind::Fence),
        decide::Choice::Wait(span) => {
            api::Choice { wait: Some(Span::from_ms(span.0)), ..bare(api::ChoiceKind::Wait) }
        }
        decide::Choice::Done => bare(api::ChoiceKind::Done),
        decide::Choice::Fail(why) => {
            let why = Some(cut(why, SENTENCE_MAX));
            api::Choice { why, ..bare(api::ChoiceKind::Fail) }
        }
    }
}

/// Numbers grow, and only the last may be open: two at once would be followed both.
pub(super) fn read(
    status: &api::NodeFenceStatus,
    remedy_step: impl Fn(&str, u32) -> Result<usize, BrokenRecord>,
) -> Result<Vec<decide::Decided>, BrokenRecord> {
    let mut last = 0;
    let mut decisions = Vec::with_capacity(status.decisions.len());
    for (at, one) in status.decisions.iter().enumerate() {
        let field = |name: &str| format!("decisions[{at}].{name}");
        if one.number <= last {
            let expected = format!("a number above the one before it ({last})");
            return Err(broken(field("number"), &one.number, expected));
        }
        last = one.number;
        let read = one.choice.as_ref().map(|choice| read_choice(&field("choice"), choice));
        decisions.push(decide::Decided {
            number: one.number,
            remedy_step: remedy_step(&field("remedyStep"), one.remedy_step)?,
            asked_at: one.asked_at.twin(),
            choice: read.transpose()?,
            chosen_at: one.chosen_at.map(Moment::twin),
            followed_at: one.followed_at.map(Moment::twin),
            failed: one.failed.clone(),
            ended_at: one.ended_at.map(Moment::twin),
        });
    }
    Ok(decisions)
}

fn read_choice(field: &str, choice: &api::Choice) -> Result<decide::Choice, BrokenRecord> {
    use api::ChoiceKind as Kind;
    Ok(match (choice.kind, &choice.name, choice.wait, &choice.why) {
        (Kind::Method, Some(name), None, None) => decide::Choice::Method(name.clone()),
        (Kind::Cluster, Some(name), None, None) => decide::Choice::Cluster(name.clone()),
        (Kind::Fence, None, None, None) => decide::Choice::Fence,
        (Kind::Wait, None, Some(wait), None) => decide::Choice::Wait(wait.twin()),
        (Kind::Done, None, None, None) => decide::Choice::Done,
        (Kind::Fail, None, None, Some(why)) => decide::Choice::Fail(why.clone()),
        (
            Kind::Method | Kind::Cluster | Kind::Fence | Kind::Wait | Kind::Done | Kind::Fail,
            _,
            _,
            _,
        ) => {
            let expected = "a name exactly for method and cluster, a wait exactly for wait, and a why \
                            exactly for fail";
            return Err(broken(field, choice, expected));
        }
    })
}
