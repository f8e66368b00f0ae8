//! An incident stands still while the API server fails one of its requests on end; people hear of it.

use node_remedy_decide::{Span, Time};
use node_remedy_record::repeat_filter::TELL_AGAIN;

/// A request that fails for so long holds its incident up.
const TELL_AFTER: Span = Span::minutes(1);

/// Since when one request fails, and when that was told.
#[derive(Debug, Default)]
pub struct Standstill {
    since: Option<Time>,
    told_at: Option<Time>,
}

impl Standstill {
    /// Notes that it failed once more. For how long it has failed, where people have yet to hear of that.
    pub fn fails(&mut self, now: Time) -> Option<Span> {
        let lasts = now.since(*self.since.get_or_insert(now));
        let is_news = self.told_at.is_none_or(|at| now.since(at) >= TELL_AGAIN);
        if lasts < TELL_AFTER || !is_news {
            return None;
        }
        self.told_at = Some(now);
        Some(lasts)
    }

    /// Notes that it succeeded.
    pub(crate) fn ends(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_on_end_is_told_after_a_minute_and_again_after_half_an_hour() {
        let at = |minutes| Time(0).after(Span::minutes(minutes));
        let mut standstill = Standstill::default();
        assert_eq!(standstill.fails(at(0)), None);
        assert_eq!(standstill.fails(at(1)), Some(Span::minutes(1)));
        assert_eq!(standstill.fails(at(2)), None);
        assert_eq!(standstill.fails(at(31)), Some(Span::minutes(31)));
        standstill.ends();
        assert_eq!(standstill.fails(at(61)), None, "it fails anew");
        assert_eq!(standstill.fails(at(62)), Some(Span::minutes(1)));
    }
}
