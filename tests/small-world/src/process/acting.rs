//! What was decided is done, one thing after the other.

use node_remedy_decide::{Phase, VIEW_AGE_MAX};

use super::{go_on_with, incident_of, may_send, put_down};
use crate::bug::Bug;
use crate::device;
use crate::invariants::{Broken, at_release, at_send, at_unquarantine};
use crate::moves::Went;
use crate::world::{Meant, Pending, Pid, Setting, Stage, Task, Todo, World};

/// Does the next thing that was decided.
pub(crate) fn act(
    world: &mut World,
    pid: Pid,
    went: Went,
    setting: &Setting,
) -> Result<(), Broken> {
    let (task, is_recorded) = take_task(world, pid)?;
    match task {
        Task::TakeSlot => {
            let process = world.process(pid);
            let granted = process.term.as_ref().is_some_and(|one| one.epoch >= world.lease.epoch);
            if !process.cut_off {
                incident_of(world, pid)?.pending = Some(Pending::Slot { granted });
            }
        }
        Task::Call => {
            let heard = device::call(world, pid, went, is_recorded, setting)?;
            incident_of(world, pid)?.pending = Some(Pending::Ended(heard));
        }
        Task::Quarantine
        | Task::Unquarantine
        | Task::OutOfService
        | Task::LiftOutOfService
        | Task::DeletePods
        | Task::GracefulDelete
        | Task::DeleteAttachments => {
            if is_withheld(world, pid, task, setting)? {
                incident_of(world, pid)?.look_wanted = true;
            } else if went == Went::Well && !world.process(pid).cut_off {
                at_send(world, pid)?;
                change_cluster(world, pid, task, setting)?;
            }
        }
    }
    let is_final = matches!(incident_of(world, pid)?.held.record.phase, Phase::Final(_));
    if is_final && matches!(incident_of(world, pid)?.stage, Stage::Observing) {
        put_down(world, pid);
    }
    Ok(())
}

/// Takes the next task off the list, and says whether it stands in a record that was written.
pub(crate) fn take_task(world: &mut World, pid: Pid) -> Result<(Task, bool), Broken> {
    let incident = incident_of(world, pid)?;
    match incident.stage.clone() {
        Stage::Acting(todo) => {
            go_on_with(incident, todo.rest());
            Ok((todo.first().ok_or(Broken::model("nothing to do"))?, true))
        }
        Stage::ActingFirst(todo, meant) => {
            incident.stage = match todo.rest().first() {
                Some(_) => Stage::ActingFirst(todo.rest(), meant),
                None => Stage::Recording(Meant { todo: Todo::default(), ..meant }),
            };
            Ok((todo.first().ok_or(Broken::model("nothing to do"))?, false))
        }
        Stage::Observing | Stage::Recording(_) | Stage::Settling(_) => {
            Err(Broken::model("acts while it does something else"))
        }
    }
}

/// What touches the Node or its pods needs the lease; what gives something away, fresh evidence.
fn is_withheld(world: &World, pid: Pid, task: Task, setting: &Setting) -> Result<bool, Broken> {
    let process = world.process(pid);
    let term = process.term.as_ref().ok_or(Broken::model("acts without a term"))?;
    let look = process.incident().and_then(|incident| incident.look);
    let is_fresh = look.is_some_and(|look| u64::from(look.age_ms) <= VIEW_AGE_MAX.0);
    let is_too_old = task.gives_away() && !is_fresh && !setting.has(Bug::NoAgeLimit);
    Ok(!may_send(term, setting) || is_too_old)
}

fn change_cluster(
    world: &mut World,
    pid: Pid,
    task: Task,
    setting: &Setting,
) -> Result<(), Broken> {
    let incident = incident_of(world, pid)?.clone();
    if task.gives_away() {
        at_release(world, &incident)?;
        world.truth.released = true;
    }
    let lifts_quarantine = task == Task::Unquarantine
        || (task == Task::LiftOutOfService && setting.has(Bug::LiftsBothTaints));
    if lifts_quarantine && world.node.quarantined {
        at_unquarantine(world, &incident)?;
        world.node.quarantined = false;
    }
    let node = &mut world.node;
    match task {
        Task::Quarantine => node.quarantined = true,
        Task::OutOfService => node.out_of_service = true,
        Task::LiftOutOfService => node.out_of_service = false,
        Task::DeletePods => node.pod = false,
        // Its kubelet ends it and unmounts.
        Task::GracefulDelete if node.kubelet => node.pod = false,
        Task::DeleteAttachments => node.attached = false,
        Task::GracefulDelete | Task::Unquarantine | Task::TakeSlot | Task::Call => {}
    }
    Ok(())
}
