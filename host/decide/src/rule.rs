//! The names of the design's rules, carried by every transition that one of them shaped.
//!
//! They are there for people (`explain` and the report name the rule behind a line) and for
//! the tests, which count that no rule is never hit.

use core::fmt;

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $name:ident),+ $(,)?) => {
        /// A rule of the automaton (`A…`) or of proof and release (`P…`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $($(#[doc = $doc])* $name),+ }

        impl Rule {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

rules! {
    /// Everything that allowed an off or isolation is read again live right before it.
    A1,
    /// Switching on, restoring and untainting are never gated.
    A2,
    /// `on` covers every plug that may have been switched off, and waits out late effects.
    A3,
    /// A power-off that was not ours is not undone behind a person's back.
    A4,
    /// What isolation cut is restored before `on`, with all feeds read off right before.
    A5,
    /// Well with the same boot after a release: power-management, at the cost of a restart. If none is left, the next remedy that
    /// switches off has its turn.
    A6,
    /// Retries resume at the first unmet sub-step; power cycles are counted.
    A7,
    /// Done waits for well: a machine just powered on is never Ready at once.
    A8,
    /// An isolation failure is recorded and the flow goes on, unless must-success.
    A9,
    /// An indeterminate reset is settled by a new boot id or its time-out.
    A10,
    /// The ladder advances only when the previous remedy has ended and the condition still holds. If a node is back
    /// with the boot that pods were released from, or its cut was undone, the next remedy that switches off starts at once.
    A11,
    /// Nothing reached the device: no retry is used, the device is probed.
    A12,
    /// A failed `on` closes the device for further offs.
    A13,
    /// The gate closing after isolation, and a parked node that came back by hand.
    A14,
    /// The Node object is gone or re-created, or its machine terminated.
    A15,
    /// Others may power the machine: read it again before each release batch.
    A16,
    /// People pause, approve, retry, abort.
    A17,
    /// How old a condition is.
    A18,
    /// How long a slot of the budget is held.
    A19,
    /// No grade, no release.
    P1,
    /// A proof covers one boot; the taint is lifted before `on`.
    P2,
    /// Every kind of release stands behind proof, wherever it is configured.
    P3,
    /// Quarantine first, then release by mode, by UID.
    P4,
    /// `on` waits until what is released is gone, or nothing moves any more.
    P5,
    /// Pods still Ready on a node without power-off proof may be protected by a budget.
    P6,
    /// Only our own taints.
    P7,
    /// The machine behind the device is the node.
    P8,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
