//! Offs as a record tells them.

use node_remedy_decide::{Action, Binding, Kind, Method, Operation, Plan, Record, Time};

/// A plug is bound to its node by the configuration alone.
pub fn knows_no_machine(method: &Method) -> bool {
    method.binding == Binding::Labelled
}

/// When an off ended; when it was intended, while nobody knows.
pub fn ended_at(off: &Operation) -> Time {
    off.ended_at.unwrap_or(off.intended_at)
}

/// The offs since such a plug was last switched on: what an earlier pass switched off and on again is not cut now.
pub fn standing_offs<'a>(
    plan: &'a Plan,
    record: &'a Record,
) -> impl Iterator<Item = (&'a Method, &'a Operation)> {
    let switched = switched(plan, record);
    let is_on = |(_, one): &(&Method, &Operation)| one.action == Action::On;
    let on = switched.clone().filter(is_on).map(|(_, one)| one.id).max();
    switched.filter(move |(_, one)| one.cuts() && Some(one.id) > on)
}

/// Whether it is a power plug that the configuration alone binds to the node: an outlet of a PDU.
pub fn is_labelled_outlet(method: &Method) -> bool {
    matches!(method.kind, Kind::Power(_)) && knows_no_machine(method)
}

/// What may have been done to plugs by which another machine may have fallen silent.
pub fn switched<'a>(
    plan: &'a Plan,
    record: &'a Record,
) -> impl DoubleEndedIterator<Item = (&'a Method, &'a Operation)> + Clone {
    record.operations.iter().filter(|one| one.may_have_acted()).filter_map(|one| {
        let method = plan.method(one.method).filter(|method| may_silence_another(method))?;
        Some((method, one))
    })
}

/// Another machine may hang on its plug and be heard no more. A cut of storage silences no kubelet.
pub fn may_silence_another(method: &Method) -> bool {
    knows_no_machine(method)
        && matches!(method.kind, Kind::Power(_) | Kind::ResetOnly | Kind::Fabric(_))
}
