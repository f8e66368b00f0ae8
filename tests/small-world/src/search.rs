//! The way through all worlds, and whether each of them comes to an end.
//!
//! A world is gone on from once, with as few things gone wrong before it as can be: whatever can
//! happen after more of them can happen after fewer. Among worlds with the same number of things
//! gone wrong the search goes breadth first, so that what breaks is told by as few faults as lead
//! there, and then by few moves.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::book::Book;
use crate::invariants::{Broken, Line};
use crate::moves::{Move, moves, play};
use crate::world::{Setting, World};

/// What a search came to.
#[derive(Debug, Default)]
pub struct Found {
    /// Different worlds.
    pub states: usize,
    /// Of those, how many need so many things to go wrong, from none.
    pub by_faults: Vec<usize>,
    /// Ways from one to the next.
    pub transitions: u64,
    /// Moves on the longest way by which a world was first met.
    pub deepest: u32,
    /// Moves until every incident has come to its end, from wherever nothing more goes wrong.
    pub steps_to_end: usize,
    /// Different records.
    pub records: usize,
    /// Questions put to `decide`.
    pub questions: u64,
    /// In how many worlds the incident was in which phase.
    pub phases: BTreeMap<String, u64>,
    /// The first line that does not hold, and the way there.
    pub broken: Option<(Broken, Vec<Move>)>,
}

/// How the search came to a world.
#[derive(Clone, Copy)]
struct Came {
    from: u32,
    by: Option<Move>,
    faults: u8,
    moves: u32,
}

/// A search under way.
struct Search<'a> {
    setting: &'a Setting,
    book: &'a Book,
    numbers: HashMap<u128, u32>,
    came: Vec<Came>,
    /// Worlds to go on from, by how many things went wrong before them.
    queues: Vec<VecDeque<(u32, World)>>,
    /// Ways on from where no incident is over, faults left out, as (to, from).
    ways: Vec<(u32, u32)>,
    found: Found,
}

/// Walks through everything that can happen; stops at the first line that does not hold.
///
/// # Errors
/// More worlds than `states_max`.
pub fn search(setting: &Setting, states_max: usize) -> anyhow::Result<Found> {
    let book = Book::new(setting);
    let mut search = Search {
        setting,
        book: &book,
        numbers: HashMap::new(),
        came: Vec::new(),
        queues: vec![VecDeque::new(); usize::from(setting.faults) + 1],
        ways: Vec::new(),
        found: Found::default(),
    };
    let beginning = World::beginning(&book).map_err(|broken| anyhow::anyhow!("{broken}"))?;
    search.meet(beginning, Came { from: 0, by: None, faults: 0, moves: 0 });
    while let Some((number, world)) = search.next() {
        anyhow::ensure!(search.came.len() <= states_max, "more than {states_max} states");
        if let Err((broken, one)) = search.go_on(number, &world) {
            let mut way = search.way_to(number);
            way.extend(one);
            search.found.broken = Some((broken, way));
            break;
        }
    }
    search.found.states = search.came.len();
    search.found.records = book.records();
    search.found.questions = book.questions();
    if search.found.broken.is_none() {
        search.check_ends();
    }
    Ok(search.found)
}

impl Search<'_> {
    /// The next world to go on from: one with the fewest faults.
    fn next(&mut self) -> Option<(u32, World)> {
        for (faults, queue) in (0..).zip(&mut self.queues) {
            while let Some((number, world)) = queue.pop_front() {
                let came = usize::try_from(number).ok().and_then(|at| self.came.get(at));
                // One that was met again with fewer was gone on from already.
                if came.is_some_and(|came| came.faults == faults) {
                    return Some((number, world));
                }
            }
        }
        None
    }

    /// Plays every move from this world.
    fn go_on(&mut self, number: u32, world: &World) -> Result<(), (Broken, Option<Move>)> {
        let came =
            self.came_to(number).ok_or((Broken::model("a world that was never met"), None))?;
        *self.found.phases.entry(format!("{:?}", world.phase())).or_default() += 1;
        self.found.deepest = self.found.deepest.max(came.moves);
        let may_fail = came.faults < self.setting.faults;
        let mut is_stuck = !world.is_over();
        for one in moves(world, self.setting, may_fail) {
            let next = play(world, one, self.setting, self.book);
            let (next, _) = next.map_err(|broken| (broken, Some(one)))?;
            self.found.transitions += 1;
            let faults = came.faults + u8::from(one.is_fault());
            let moves = came.moves + 1;
            let to = self.meet(next, Came { from: number, by: Some(one), faults, moves });
            is_stuck &= one.is_fault() || to == number;
            if !world.is_over() && !one.is_fault() && to != number {
                self.ways.push((to, number));
            }
        }
        if is_stuck {
            let what = "the incident is not over, and nothing will ever happen";
            return Err((Broken { line: Line::L1, what }, None));
        }
        Ok(())
    }

    /// The number of a world; a new one, or one met with fewer faults than before, is gone on from
    /// later.
    fn meet(&mut self, world: World, came: Came) -> u32 {
        let new = u32::try_from(self.came.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(world.digest()).or_insert(new);
        let before = usize::try_from(number).ok().and_then(|at| self.came.get_mut(at));
        match before {
            Some(before) if before.faults <= came.faults => return number,
            Some(before) => *before = came,
            None => self.came.push(came),
        }
        if let Some(queue) = self.queues.get_mut(usize::from(came.faults)) {
            queue.push_back((number, world));
        }
        number
    }

    /// The way to a world.
    fn way_to(&self, mut number: u32) -> Vec<Move> {
        let mut way = Vec::new();
        while let Some(Came { from, by: Some(one), .. }) = self.came_to(number) {
            way.push(one);
            number = from;
        }
        way.reverse();
        way
    }

    fn came_to(&self, number: u32) -> Option<Came> {
        self.came.get(usize::try_from(number).ok()?).copied()
    }

    /// L1: once nothing goes wrong any more, no incident goes round in circles. Worlds are taken away
    /// from their ends backwards, in rounds; what is left goes round, or leads there.
    fn check_ends(&mut self) {
        self.ways.sort_unstable();
        let mut open: Vec<u32> = vec![0; self.came.len()];
        for (_, from) in &self.ways {
            count(&mut open, *from, 1);
        }
        let mut ended: Vec<u32> =
            (0..).zip(&open).filter(|(_, n)| **n == 0).map(|(n, _)| n).collect();
        while !ended.is_empty() {
            let mut next = Vec::new();
            for to in ended {
                let first = self.ways.partition_point(|(one, _)| *one < to);
                let ways = self.ways.iter().skip(first).take_while(|(one, _)| *one == to);
                for (_, from) in ways {
                    if count(&mut open, *from, u32::MAX) == Some(0) {
                        next.push(*from);
                    }
                }
            }
            self.found.steps_to_end += usize::from(!next.is_empty());
            ended = next;
        }
        if let Some(way) = self.way_round(&open) {
            let what = "the incident can go round for ever, though nothing goes wrong any more";
            self.found.broken = Some((Broken { line: Line::L1, what }, way));
        }
        for came in &self.came {
            let faults = usize::from(came.faults);
            self.found.by_faults.resize(self.found.by_faults.len().max(faults + 1), 0);
            if let Some(states) = self.found.by_faults.get_mut(faults) {
                *states += 1;
            }
        }
    }

    /// A way that comes back to where it was, if there is one among the worlds that are left.
    fn way_round(&self, open: &[u32]) -> Option<Vec<Move>> {
        let left = |number: u32| {
            usize::try_from(number).ok().and_then(|at| open.get(at)).is_some_and(|ways| *ways > 0)
        };
        let next: HashMap<u32, u32> = self
            .ways
            .iter()
            .filter(|(to, from)| left(*to) && left(*from))
            .map(|(to, from)| (*from, *to))
            .collect();
        let mut at = (0..).zip(open).find(|(_, ways)| **ways > 0).map(|(number, _)| number)?;
        let mut seen = Vec::new();
        while !seen.contains(&at) {
            seen.push(at);
            at = *next.get(&at)?;
        }
        let round = seen.iter().skip_while(|one| **one != at);
        let last = round.copied().max_by_key(|one| self.came_to(*one).map(|came| came.moves))?;
        Some(self.way_to(last))
    }
}

/// Adds to a counter, wrapping, and says what it is then.
fn count(counters: &mut [u32], number: u32, by: u32) -> Option<u32> {
    let counter = counters.get_mut(usize::try_from(number).ok()?)?;
    *counter = counter.wrapping_add(by);
    Some(*counter)
}
