//! Faults of any device by name, as scenarios and test tables write them. What a fault bends is the
//! model's own.

use std::fmt::{self, Display, Formatter};

/// A fault's name, and how a number sets it.
pub(crate) type Named<F> = (&'static str, fn(&mut F, Value));

/// Clears all faults.
const NONE: &str = "none";

/// The number that goes with a fault's name. 0 clears the fault.
#[derive(Clone, Copy)]
pub(crate) struct Value(u32);

/// A fault that a model does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault {
    /// The name that was asked for.
    pub name: String,
    /// What the model is of.
    pub device: &'static str,
    /// The names that there are.
    pub known: Vec<&'static str>,
}

impl Display for UnknownFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, device, known } = self;
        write!(f, "no such fault of {device}: {name}; there are {}", known.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

impl Value {
    pub(crate) fn count(self) -> u32 {
        self.0
    }

    pub(crate) fn flag(self) -> bool {
        self.0 != 0
    }

    /// Milliseconds.
    pub(crate) fn ms(self) -> u64 {
        self.0.into()
    }

    pub(crate) fn some(self) -> Option<u32> {
        self.flag().then_some(self.0)
    }

    pub(crate) fn some_ms(self) -> Option<u64> {
        self.some().map(u64::from)
    }

    /// A status or a code; a larger number is cut to the largest byte.
    pub(crate) fn some_byte(self) -> Option<u8> {
        self.some().map(|value| u8::try_from(value).unwrap_or(u8::MAX))
    }

    pub(crate) fn some_len(self) -> Option<usize> {
        self.some().map(|value| usize::try_from(value).unwrap_or(usize::MAX))
    }
}

/// The names of a table, and the one that clears all.
pub(crate) fn names<F: 'static>(table: &'static [Named<F>]) -> impl Iterator<Item = &'static str> {
    table.iter().map(|(name, _)| *name).chain([NONE])
}

/// Sets the fault of this name in `faults`.
pub(crate) fn set<F: Default + 'static>(
    faults: &mut F,
    (device, table): (&'static str, &'static [Named<F>]),
    name: &str,
    value: u32,
) -> Result<(), UnknownFault> {
    if name == NONE {
        *faults = F::default();
        return Ok(());
    }
    let found = table.iter().find(|(known, _)| *known == name);
    let (_, set) = found.ok_or_else(|| UnknownFault {
        name: name.to_owned(),
        device,
        known: names(table).collect(),
    })?;
    set(faults, Value(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::UnknownFault;
    use crate::{bmc, ec2, snmp};

    macro_rules! can_be_set_and_cleared {
        ($faults:ty) => {
            for name in <$faults>::names() {
                let mut faults = <$faults>::default();
                faults.set(name, 1).unwrap();
                assert_eq!(faults == <$faults>::default(), name == "none", "{name}");
                faults.set(name, 0).unwrap();
                assert_eq!(faults, <$faults>::default(), "{name}");
            }
        };
    }

    #[test]
    fn every_fault_can_be_set_and_cleared_by_name() {
        can_be_set_and_cleared!(bmc::Faults);
        can_be_set_and_cleared!(snmp::Faults);
        can_be_set_and_cleared!(ec2::Faults);
    }

    #[test]
    fn a_fault_that_is_not_known_is_named_with_those_that_are() {
        let unknown: UnknownFault = ec2::Faults::default().set("gremlin", 1).unwrap_err();
        let said = unknown.to_string();
        assert!(said.starts_with("no such fault of EC2: gremlin; there are silent, "), "{said}");
        assert!(said.ends_with(", none"), "{said}");
    }
}
