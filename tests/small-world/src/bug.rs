//! What can be broken on purpose, to see that the invariants would notice.

use std::fmt;

macro_rules! bugs {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal),+ $(,)?) => {
        /// A guard of the controller that is left out, or an assumption that does not hold.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Bug { $($(#[doc = $doc])* $name),+ }

        impl Bug {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name on the command line.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }
        }
    };
}

bugs! {
    /// Records are written whatever stands there.
    NoCompareAndSwap = "no-compare-and-swap",
    /// Who loses a write reads the record again and goes on, leader or not.
    GoesOnAfterConflict = "goes-on-after-conflict",
    /// Calls and writes are sent whether or not the lease still holds.
    NoLeaseGate = "no-lease-gate",
    /// A standby takes the lease before its duration has passed.
    EarlyTakeOver = "early-take-over",
    /// What was decided is done first and recorded then.
    ActsBeforeRecording = "acts-before-recording",
    /// A new leader takes an open call of another's for one that was never made.
    ForgetsForeignCalls = "forgets-foreign-calls",
    /// A new leader leaves alone what others began.
    LeavesForeignRecords = "leaves-foreign-records",
    /// A leader that does not know yet that it is none takes up what a newer one has written.
    TakesUpNewerRecords = "takes-up-newer-records",
    /// A new leader counts restarts from the beginning.
    ForgetsRestarts = "forgets-restarts",
    /// A process takes its own record up again as if it had never put it down.
    ResumesOwnCalls = "resumes-own-calls",
    /// A command's good answer stands in for the read that should verify it.
    NoVerifyingRead = "no-verifying-read",
    /// A cache's word is taken for the API server's.
    TrustsCache = "trusts-cache",
    /// What was decided is done however old the look behind it.
    NoAgeLimit = "no-age-limit",
    /// A command without an answer counts as one that was never sent.
    SilenceIsNo = "silence-is-no",
    /// A device carries commands out long after its manifest says it would.
    LaterThanTold = "later-than-told",
    /// A lost node's quarantine is believed to stand without being looked at.
    AssumesQuarantine = "assumes-quarantine",
    /// The quarantine is lifted together with the out-of-service taint.
    LiftsBothTaints = "lifts-both-taints",
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
