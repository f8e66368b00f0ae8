//! Runs on simplest forms go the way of those on whole records.

use node_remedy_decide::Liveness;

use super::*;
use crate::same::{BOOT, LIFE};
use crate::world::Task;

/// Numbers that look drawn by lot, the same each time.
struct Lot(u64);

impl Lot {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A run on whole records beside one on simplest forms: the same happens to both.
struct Twins<'a> {
    book: &'a Book,
    whole: Record,
    now: u64,
    life: u64,
    boot: u64,
    simple: Rc<Known>,
    told: Vec<String>,
}

impl Twins<'_> {
    fn pass(&mut self, since: Since) {
        self.now += since.ms;
        self.life += u64::from(since.reported);
        self.boot += u64::from(since.rebooted);
        self.simple = self.book.later(&self.simple, since);
        self.told.push(format!("{since:?}"));
    }

    fn decide(&mut self, asked: Input) -> Decided {
        let liveness = Liveness {
            boot_id: self.boot.to_string(),
            lease_renewed: Some(node_remedy_decide::Time(self.life)),
            reported: Some(node_remedy_decide::Time(self.life)),
        };
        let now = node_remedy_decide::Time(self.now);
        let record = self.whole.clone();
        let mut seen;
        let event = match asked {
            Input::Looked(sight) => {
                seen = view(sight, &liveness);
                seen.taken_at = now;
                Event::Looked(&seen)
            }
            Input::Ended(heard) => {
                Event::Ended { op: record.in_flight().unwrap().id, end: end_of(heard) }
            }
            Input::Slot { .. } => Event::Slot(SlotAnswer::Granted),
            Input::Adopted { epoch, pid } => {
                Event::Adopted { epoch: epoch.into(), process: pid.name().to_owned() }
            }
        };
        let whole = step(&self.book.plan, &self.book.policy, record, event, now);
        let simple = self.book.decide(&self.simple, asked).unwrap();
        self.told.push(format!("{asked:?} -> {:?} {:?}", whole.record.phase, whole.effects));
        let expected = Decided {
            record: simple.record.clone(),
            todo: todo_of(&whole.effects).unwrap(),
            next_look_ms: whole
                .next_look
                .map_or(SLEEP_MAX_MS, |at| u32::try_from(at.0 - now.0).unwrap().min(SLEEP_MAX_MS)),
        };
        let same = expected.todo == simple.todo
            && expected.next_look_ms == simple.next_look_ms
            && whole.record.phase == simple.record.record.phase;
        assert!(
            same,
            "{}\nwhole {expected:?} {:#?}\nsimple {simple:?} {:#?}",
            self.told.join("\n"),
            whole.record,
            self.simple.record
        );
        self.whole = whole.record;
        self.simple = simple.record.clone();
        expected
    }
}

fn run_of(seed: u64, setting: &Setting, book: &Book) -> usize {
    let mut lot = Lot(seed);
    let mut opened = book.opened().unwrap().record.clone();
    opened.liveness_at_open = liveness();
    let mut twins = Twins {
        book,
        whole: opened,
        now: NOW.0,
        life: LIFE.0,
        boot: BOOT,
        simple: book.opened().unwrap(),
        told: vec![format!("seed {seed} {setting:?}")],
    };
    let mut sight = Sight {
        is_live: true,
        is_old: false,
        ill: true,
        quarantined: false,
        out_of_service: false,
        pod: true,
        attached: true,
    };
    let mut on = true;
    let mut decided = Decided {
        record: twins.simple.clone(),
        todo: Todo::of(&[], true).unwrap(),
        next_look_ms: SLEEP_MAX_MS,
    };
    for step in 0..150 {
        let mut asked = None;
        if decided.todo.looks() {
            asked = Some(Input::Looked(sight));
        }
        while let Some(task) = decided.todo.first() {
            decided.todo = decided.todo.rest();
            match task {
                Task::TakeSlot => asked = Some(Input::Slot { granted: true }),
                Task::Call => {
                    if lot.below(6) == 0 {
                        let ms = [1_000, 3_000, 15_000][usize::try_from(lot.below(3)).unwrap()];
                        twins.pass(Since { ms, ..Since::default() });
                    }
                    let action = twins.whole.in_flight().unwrap().action;
                    let luck = lot.below(8);
                    if luck > 1 && action == node_remedy_decide::Action::Off {
                        on = false;
                        sight.ill = true;
                    }
                    if luck > 1 && action == node_remedy_decide::Action::On {
                        on = true;
                    }
                    let read = if on { CallOutcome::On } else { CallOutcome::Off };
                    let effect = twins.whole.in_flight().unwrap().is_effect();
                    let heard = match (luck, effect) {
                        (0 | 2, true) => CallOutcome::Nothing,
                        (0 | 2, false) => CallOutcome::Unreachable,
                        (7, true) => CallOutcome::HeldBack,
                        (6, _) if lot.below(3) == 0 => CallOutcome::NotLeader,
                        _ => read,
                    };
                    asked = Some(Input::Ended(heard));
                }
                Task::Quarantine => sight.quarantined = true,
                Task::Unquarantine => sight.quarantined = false,
                Task::OutOfService => sight.out_of_service = true,
                Task::LiftOutOfService => sight.out_of_service = false,
                Task::DeletePods | Task::GracefulDelete => sight.pod = lot.below(3) == 0,
                Task::DeleteAttachments => sight.attached = lot.below(3) == 0,
            }
        }
        if matches!(twins.whole.phase, node_remedy_decide::Phase::Final(_)) {
            return step;
        }
        let luck = lot.below(24);
        if luck == 0 && twins.whole.in_flight().is_some() {
            asked = Some(Input::Adopted { epoch: 1, pid: Pid::B });
        } else if luck == 1 && twins.whole.in_flight().is_none() {
            on = !on;
            asked = Some(Input::Looked(sight));
        } else if luck < 5 && on && twins.whole.in_flight().is_none() {
            let rebooted = lot.below(2) == 0;
            sight.ill = false;
            twins.pass(Since { reported: true, rebooted, ..Since::default() });
        }
        let asked = asked.unwrap_or_else(|| {
            let late_ms = if lot.below(5) == 0 { 15_000 } else { 0 };
            let ms = u64::from(decided.next_look_ms) + late_ms;
            twins.pass(Since { ms, reported: on && !sight.ill, ..Since::default() });
            Input::Looked(sight)
        });
        decided = twins.decide(match asked {
            Input::Looked(_) => Input::Looked(sight),
            Input::Ended(_) | Input::Slot { .. } | Input::Adopted { .. } => asked,
        });
    }
    150
}

#[test]
fn a_run_on_simplest_forms_goes_the_way_of_one_on_whole_records() {
    let setting = Setting::default();
    let book = Book::new(&setting);
    let ended = (0..20_000).filter(|seed| run_of(*seed, &setting, &book) < 150).count();
    assert!(ended > 1_000, "only {ended} runs came to an end");
    assert!(book.records() > 1_000, "only {} records", book.records());
}
