//! Which virtual machine a plug names: a name, with subscription and resource group from the
//! parameters, or the `spec.providerID` of its Node.

use node_remedy_sdk::{Failure, FailureKind};

/// A machine, as it is named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plug {
    /// Its resource id, which is a path of Azure Resource Manager.
    pub(crate) id: String,
    /// The subscription it is in.
    pub(crate) subscription: String,
}

const EXPECTED: &str = "a name with the parameters subscription and resource-group, or \
     azure:///subscriptions/…/virtualMachines/NAME";

impl Plug {
    /// Reads a plug.
    pub(crate) fn parse(
        plug: &str,
        subscription: Option<&str>,
        group: Option<&str>,
    ) -> Result<Self, Failure> {
        let refuse = || {
            let sentence = format!("found plug {plug:?}, expected {EXPECTED}");
            Failure::new(FailureKind::BadParameters, sentence)
        };
        let Some(id) = plug.strip_prefix("azure://") else {
            let (Some(subscription), Some(group)) = (subscription, group) else {
                return Err(refuse());
            };
            return Self::of(subscription, group, &["virtualMachines", plug]).ok_or_else(refuse);
        };
        let parts: Vec<_> = id.strip_prefix('/').ok_or_else(refuse)?.split('/').collect();
        // Azure writes these words in whatever case it likes.
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        let [subscriptions, own_subscription, groups, own_group, providers, provider, kind @ ..] =
            parts.as_slice()
        else {
            return Err(refuse());
        };
        let is_known = is(subscriptions, "subscriptions")
            && is(groups, "resourceGroups")
            && is(providers, "providers")
            && is(provider, "Microsoft.Compute");
        let kind = match kind {
            [machines, name] if is(machines, "virtualMachines") => vec!["virtualMachines", name],
            [sets, set, machines, number]
                if is(sets, "virtualMachineScaleSets")
                    && is(machines, "virtualMachines")
                    && number.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                vec!["virtualMachineScaleSets", set, "virtualMachines", number]
            }
            _ => return Err(refuse()),
        };
        for (what, own, set) in
            [("subscription", own_subscription, subscription), ("resource-group", own_group, group)]
        {
            if let Some(set) = set.filter(|set| !is(set, own)) {
                let sentence = format!("the plug's {what} is {own}, and the parameter is {set}");
                return Err(Failure::new(FailureKind::BadParameters, sentence));
            }
        }
        if !is_known {
            return Err(refuse());
        }
        Self::of(own_subscription, own_group, &kind).ok_or_else(refuse)
    }

    fn of(subscription: &str, group: &str, kind: &[&str]) -> Option<Self> {
        let is_sound = is_id(subscription) && is_name(group, "-_.()");
        if !is_sound || !kind.iter().all(|part| is_name(part, "-_.")) {
            return None;
        }
        let kind = kind.join("/");
        let id = format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/{kind}"
        );
        Some(Self { id, subscription: subscription.to_owned() })
    }
}

/// 32 hexadecimal digits in five groups.
fn is_id(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Letters and digits, and these between them; no full stop at the end.
fn is_name(text: &str, more: &str) -> bool {
    (1..=90).contains(&text.len())
        && !text.starts_with('.')
        && !text.ends_with('.')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: &str = "01234567-89ab-cdef-0123-456789abcdef";

    #[test]
    fn a_machine_is_named_whole_or_by_parameters() {
        let id = |kind: &str| {
            format!("/subscriptions/{S}/resourceGroups/rg_(1)/providers/Microsoft.Compute/{kind}")
        };
        let named = Plug::parse("w-1", Some(S), Some("rg_(1)")).unwrap();
        assert_eq!(named.id, id("virtualMachines/w-1"));
        for kind in ["virtualMachines/w-1", "virtualMachineScaleSets/set-1/virtualMachines/17"] {
            let whole = format!("azure://{}", id(kind));
            assert_eq!(Plug::parse(&whole, None, None).unwrap().id, id(kind));
            let other_case = whole.replace("resourceGroups", "resourcegroups");
            assert_eq!(Plug::parse(&other_case, Some(S), Some("RG_(1)")).unwrap().id, id(kind));
        }
    }

    #[test]
    fn what_names_no_machine_is_refused() {
        let other = "11234567-89ab-cdef-0123-456789abcdef";
        let base = format!("azure:///subscriptions/{S}/resourceGroups/g/providers");
        let whole = format!("{base}/Microsoft.Compute/virtualMachines/w");
        for (plug, subscription, group) in [
            ("w", None, Some("g")),
            ("w", Some(S), None),
            ("w", Some("subscription-1"), Some("g")),
            ("", Some(S), Some("g")),
            ("w/powerOff", Some(S), Some("g")),
            ("w?x=y", Some(S), Some("g")),
            ("..", Some(S), Some("g")),
            ("w", Some(S), Some("g/providers")),
            (&whole, Some(other), None),
            (&whole, None, Some("other")),
            (&whole.replace("Compute", "Storage"), None, None),
            (&whole.replace("virtualMachines", "disks"), None, None),
            (&whole.replace("azure:///", "azure://"), None, None),
            (&format!("{whole}/start"), None, None),
            (&base, None, None),
            (
                &format!("{base}/Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines/w"),
                None,
                None,
            ),
            ("gce://p/z/w", Some(S), Some("g")),
        ] {
            let failure = Plug::parse(plug, subscription, group).unwrap_err();
            assert_eq!(failure.kind, FailureKind::BadParameters, "{plug}");
        }
    }
}
