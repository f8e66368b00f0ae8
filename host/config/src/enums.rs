//! Words that `decide` and the API spell alike, and the way from each to the other.
//!
//! A word that only one side knows does not compile: nothing can be written that would be
//! read as something else. Words that carry data are mapped in `written` and `read`.

use node_remedy_api::time::{Moment, Span};
use node_remedy_api::{nodefence as api, plan, policy};
use node_remedy_decide as decide;

/// The same word on the other side.
pub trait Twin<T> {
    /// The same word on the other side.
    fn twin(self) -> T;
}

macro_rules! twins {
    ($($ours:path = $theirs:path { $($word:ident),+ $(,)? })+) => { $(
        impl Twin<$theirs> for $ours {
            fn twin(self) -> $theirs {
                use {$ours as Ours, $theirs as Theirs};
                match self { $(Ours::$word => Theirs::$word),+ }
            }
        }

        impl Twin<$ours> for $theirs {
            fn twin(self) -> $ours {
                use {$ours as Ours, $theirs as Theirs};
                match self { $(Theirs::$word => Ours::$word),+ }
            }
        }
    )+ };
}

twins! {
    decide::Action = api::Action { Status, Off, On, Reset, Monitor }
    decide::PlugState = api::PlugState { On, Off, Transitioning, Unknown, Terminated }
    decide::FailureKind = api::FailureKind {
        Unreachable, Timeout, Unauthenticated, Denied, Throttled, Unsupported, BadParameters,
        NoSuchPlug, Busy, Protocol, Device, NotMade, Cancelled, Other,
    }
    decide::FinalReason = api::FinalReason {
        Remedied, Recovered, RecoveredByHand, Aborted, Replaced, NodeGone, Superseded,
        Unreported,
    }
    decide::Grade = api::Grade {
        PowerOffVerified, StorageFenced, WatchdogDeadline, OperatorConfirmed, JobSucceeded,
        KdumpSeen, Partition, NewBootId,
    }
    decide::JobOutcome = api::JobOutcome { Succeeded, Failed, Lost }
    decide::State = api::State { New, Running, Done, Final, Error }
    decide::Step = api::Step { Isolation, PowerManagement, Recovery }
    decide::Feed = plan::Feed { Whole, Part }
    decide::NeededFor = plan::NeededFor { NextStep, Nothing }
    decide::Execution = plan::Run { All, OnlyOne }
    decide::ClusterAction = api::ClusterAction { Cordon, Quarantine, Drain, Release, DeleteNode }
    decide::IdentityRule = policy::Identity { Require, Prefer }
    decide::KdumpReleases = policy::KdumpReleases { WithoutVolumes, All }
}

impl Twin<Moment> for decide::Time {
    fn twin(self) -> Moment {
        Moment::from_ms(self.0)
    }
}

impl Twin<decide::Time> for Moment {
    fn twin(self) -> decide::Time {
        decide::Time(self.ms)
    }
}

impl Twin<decide::Span> for Span {
    fn twin(self) -> decide::Span {
        decide::Span(self.ms)
    }
}
