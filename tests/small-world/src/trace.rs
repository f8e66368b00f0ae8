//! A way through the world, told so that a person can follow it.

use crate::book::Book;
use crate::moves::{Move, Step, play, verb};
use crate::same_world::Places;
use crate::world::{Setting, Stage, Task, World};

/// One line for each move, with what the world looks like after it.
pub fn trace(setting: &Setting, way: &[Move]) -> Vec<String> {
    let book = Book::new(setting);
    let mut world = match World::beginning(&book) {
        Ok(world) => world,
        Err(broken) => return vec![broken.to_string()],
    };
    let mut places = Places::AsBefore;
    let mut lines = vec![format!("     {}", picture(&world))];
    for (number, one) in (1_u32..).zip(way) {
        let what = what(&world, *one, places);
        match play(&world, *one, setting, &book) {
            Ok((next, moved)) => {
                world = next;
                places = places.then(moved);
            }
            Err(broken) => {
                lines.push(format!("{number:3}. {what}: {broken}"));
                return lines;
            }
        }
        lines.push(format!("{number:3}. {what}"));
        lines.push(format!("     {}", picture(&world)));
    }
    lines
}

/// The move, and what exactly an act or a wait is.
fn what(world: &World, one: Move, places: Places) -> String {
    let told = one.told(places);
    match one {
        Move::Wait => {
            let ms = crate::clock::next_due(world).unwrap_or_default();
            format!("{told}: {ms} ms")
        }
        Move::Process(pid, Step::Act(_) | Step::PauseInCall) => {
            let task = world.process(pid).incident().and_then(|incident| match incident.stage {
                Stage::Acting(todo) | Stage::ActingFirst(todo, _) => {
                    let action = incident.held.record.in_flight().map(|open| open.action);
                    Some(match (todo.first()?, action) {
                        (Task::Call, Some(action)) => verb(action).to_owned(),
                        (task, _) => format!("{task:?}"),
                    })
                }
                Stage::Observing | Stage::Recording(_) | Stage::Settling(_) => None,
            });
            format!("{told} ({})", task.unwrap_or_default())
        }
        Move::Process(..)
        | Move::Boot
        | Move::LateLands
        | Move::DeviceAnswers
        | Move::DeviceFails
        | Move::NodeReturns
        | Move::NodeIsLost
        | Move::MachineReboots
        | Move::MachineHangs
        | Move::PowerReturns => told.to_string(),
    }
}

/// The world in one line.
fn picture(world: &World) -> String {
    let node = &world.node;
    let machine = match (node.powered, node.boots_in_ms.is_some(), node.kubelet) {
        (false, ..) => "off",
        (true, true, _) => "booting",
        (true, false, true) => "on, node well",
        (true, false, false) => "on, node lost",
    };
    let held = [
        (node.quarantined, ", quarantined"),
        (node.out_of_service, ", out of service"),
        (node.pod, ", pod"),
        (node.attached, ", attached"),
    ];
    let held: String = held.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    format!("record {:?}; machine {machine}{held}", world.phase())
}
