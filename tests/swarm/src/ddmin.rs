//! Delta debugging: what of a list can be left out while something stays as it is.
//!
//! Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002), by
//! complements only: to try what is left without a part says all that trying the part alone would.

/// What trying a part of a list has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It still breaks.
    Breaks,
    /// Something of what was left out is needed.
    Holds,
    /// Nothing: no further try is allowed.
    NoneLeft,
}

/// The shortest list found that still breaks, in the order of `whole`, which is taken to break.
///
/// Tries without everything, then without each half, each quarter, and so on. Where tries do not
/// run out, nothing single can be left out of the result. Fails when a try does.
pub fn ddmin<T: Clone, E>(
    whole: &[T],
    mut test: impl FnMut(&[T]) -> Result<Tried, E>,
) -> Result<Vec<T>, E> {
    let mut left = whole.to_vec();
    let mut size = left.len();
    while size > 0 {
        let before = left.len();
        let mut start = 0;
        while start < left.len() {
            let mut rest = left.clone();
            rest.drain(start..left.len().min(start + size));
            match test(&rest)? {
                // What came after it has moved to its place.
                Tried::Breaks => left = rest,
                Tried::Holds => start += size,
                Tried::NoneLeft => return Ok(left),
            }
        }
        // What one was needed for may have gone after it was tried.
        let is_to_repeat = size == 1 && left.len() < before;
        if !is_to_repeat {
            size /= 2;
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    type Breaks<'a> = &'a dyn Fn(&[u32]) -> bool;

    /// What is left of `0..count`, and after how many tries, of which `tries_max` are allowed.
    fn left(count: u32, tries_max: usize, breaks: impl Fn(&[u32]) -> bool) -> (Vec<u32>, usize) {
        let mut tries = 0;
        let whole: Vec<u32> = (0..count).collect();
        let left = ddmin::<_, Infallible>(&whole, |part| {
            if tries == tries_max {
                return Ok(Tried::NoneLeft);
            }
            tries += 1;
            Ok(if breaks(part) { Tried::Breaks } else { Tried::Holds })
        });
        (left.unwrap(), tries)
    }

    #[test]
    fn only_what_is_needed_is_left() {
        let has = |part: &[u32], all: &[u32]| all.iter().all(|one| part.contains(one));
        for (needed, tries_max) in [
            (vec![7], 20),
            (vec![0, 99], 50),
            (vec![3, 4, 60], 60),
            // One after the other, each in its turn.
            ((0..100).collect(), 400),
        ] {
            let (left, tries) = left(100, 10_000, |part| has(part, &needed));
            assert_eq!(left, needed);
            assert!(tries <= tries_max, "{needed:?}: {tries} tries");
        }
    }

    #[test]
    fn nothing_single_can_be_left_out_of_the_result() {
        let chained = |part: &[u32]| {
            part.contains(&0) && part.iter().all(|one| *one == 0 || part.contains(&(one - 1)))
        };
        let even = |part: &[u32]| part.len() >= 6 && part.len().is_multiple_of(2);
        let either = |part: &[u32]| part.contains(&30) || part.contains(&3) && part.contains(&4);
        // 1 can go once 21 is gone, and that only alone.
        let later = |part: &[u32]| {
            part.contains(&0) && part.contains(&20) && (!part.contains(&21) || part.contains(&1))
        };
        let all: [Breaks; 4] = [&chained, &even, &either, &later];
        for breaks in all {
            let (left, _) = left(32, 10_000, breaks);
            assert!(breaks(&left), "{left:?}");
            for place in 0..left.len() {
                let mut rest = left.clone();
                rest.remove(place);
                assert!(!breaks(&rest), "{left:?} without {}", left[place]);
            }
        }
        assert_eq!(left(32, 10_000, chained).0, [0]);
    }

    #[test]
    fn where_nothing_is_needed_nothing_is_left_after_one_try() {
        assert_eq!(left(50, 10, |_| true), (vec![], 1));
        assert_eq!(left(0, 10, |_| true), (vec![], 0));
    }

    #[test]
    fn tries_are_bounded_and_what_was_found_by_then_breaks() {
        let breaks = |part: &[u32]| part.contains(&1) && part.contains(&62);
        for tries_max in 0..12 {
            let (left, tries) = left(64, tries_max, breaks);
            assert!(breaks(&left) && tries <= tries_max, "{tries} of {tries_max}: {left:?}");
        }
        assert_eq!(left(64, 0, breaks).0.len(), 64);
    }

    #[test]
    fn a_try_that_fails_ends_it() {
        assert_eq!(ddmin(&[1, 2, 3], |_| Err("no world")), Err("no world"));
    }
}
