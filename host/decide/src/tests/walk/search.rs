//! The way through all worlds, breadth first, so that what breaks is told by the shortest
//! order of events that leads to it.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::HashMap;
use std::println;

use super::{Move, Seen, Setting, World, over};
use crate::*;

/// A walk that needs more has a world too large to be walked through in a test.
const STATES_MAX: usize = 400_000;

pub(super) fn explore(name: &str, stage: &Setting, beginning: World, seen: &mut Seen) {
    let walk = walk(stage, vec![beginning], STATES_MAX, seen);
    println!("{name}: {} states, {} steps", walk.states, walk.steps);
}

struct Walk {
    states: usize,
    steps: usize,
}

/// Walks through everything that can happen from these beginnings.
fn walk(stage: &Setting, beginnings: Vec<World>, states_max: usize, seen: &mut Seen) -> Walk {
    let mut index: HashMap<u64, u32> = HashMap::new();
    let mut parents: Vec<(u32, Option<Move>)> = Vec::new();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ends: Vec<bool> = Vec::new();
    let mut queue: VecDeque<(u32, World)> = VecDeque::new();
    let mut walk = Walk { states: 0, steps: 0 };
    for world in beginnings {
        let id = u32::try_from(parents.len()).expect("few beginnings");
        index.insert(world.key(), id);
        parents.push((id, None));
        ends.push(false);
        queue.push_back((id, world));
    }
    while let Some((id, world)) = queue.pop_front() {
        if over(world.record.phase) && world.todo.is_empty() {
            ends[id as usize] = true;
        }
        for one in world.moves() {
            let mut next = world.clone();
            walk.steps += 1;
            if let Err(broken) = next.play(stage, one, seen) {
                panic!(
                    "{broken}\nafter {:?}, {one:?}\n{}",
                    trace(&parents, id),
                    brief(&next.record)
                );
            }
            let key = next.key();
            let to = *index.entry(key).or_insert_with(|| {
                let to = u32::try_from(parents.len()).expect("fewer states than u32");
                parents.push((id, Some(one)));
                ends.push(false);
                queue.push_back((to, next));
                to
            });
            edges.push((to, id));
        }
        if parents.len() >= states_max {
            let grown = format!("the world has grown beyond {states_max} states, lately to");
            panic!("{grown} {:?}: {}", trace(&parents, id), brief(&world.record));
        }
    }
    walk.states = parents.len();
    check_liveness(&parents, &mut edges, ends);
    walk
}

/// L1: from wherever it is, an incident can still come to an end, without another fault.
fn check_liveness(parents: &[(u32, Option<Move>)], edges: &mut [(u32, u32)], mut ends: Vec<bool>) {
    edges.sort_unstable();
    let mut queue: Vec<u32> =
        (0..u32::try_from(ends.len()).expect("checked")).filter(|id| ends[*id as usize]).collect();
    while let Some(id) = queue.pop() {
        let first = edges.partition_point(|(to, _)| *to < id);
        for (_, from) in edges[first..].iter().take_while(|(to, _)| *to == id) {
            if !core::mem::replace(&mut ends[*from as usize], true) {
                queue.push(*from);
            }
        }
    }
    if let Some(stuck) = ends.iter().position(|end| !end) {
        let id = u32::try_from(stuck).expect("checked");
        panic!("L1: no end can be reached after {:?}", trace(parents, id));
    }
}

/// A record without what fills the screen.
fn brief(record: &Record) -> String {
    let mut text = format!("{:?} retries {} goal {:?}", record.phase, record.retries, record.goal);
    text.extend(record.operations.iter().map(|one| {
        format!(
            "\n  {:?} plug {} {:?} try {} at {}: {:?} at {:?}",
            one.id, one.method, one.action, one.attempt, one.intended_at.0, one.end, one.ended_at
        )
    }));
    text
}

fn trace(parents: &[(u32, Option<Move>)], mut id: u32) -> Vec<Move> {
    let mut moves = Vec::new();
    while let (parent, Some(one)) = parents[id as usize] {
        moves.push(one);
        id = parent;
    }
    moves.reverse();
    moves
}
