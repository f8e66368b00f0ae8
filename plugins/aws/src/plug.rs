//! Which instance a plug names: an instance id, or the `spec.providerID` of its Node.

use node_remedy_sdk::{Failure, FailureKind};

/// An instance, as it is named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plug {
    /// `i-` and hexadecimal digits.
    pub(crate) id: String,
    /// The zone, where the plug is a providerID that tells it.
    pub(crate) zone: Option<String>,
    is_provider_id: bool,
}

impl Plug {
    /// Reads a plug of this region.
    pub(crate) fn parse(plug: &str, region: &str) -> Result<Self, Failure> {
        let refuse = |sentence: String| Err(Failure::new(FailureKind::BadParameters, sentence));
        let is_region =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(is_region) {
            return refuse(format!("found region {region:?}, expected one such as eu-west-1"));
        }
        let expected = "an instance id such as i-0123456789abcdef0, or aws:///ZONE/i-…";
        let (zone, id, is_provider_id) = match plug.strip_prefix("aws://") {
            None => (None, plug, false),
            // `aws://ZONE/ID` was written by early versions; both forms end alike.
            Some(path) => match path.strip_prefix('/').unwrap_or(path).rsplit_once('/') {
                Some((zone, id)) => (Some(zone), id, true),
                None => return refuse(format!("found plug {plug:?}, expected {expected}")),
            },
        };
        if !is_instance_id(id) {
            return refuse(format!("found plug {plug:?}, expected {expected}"));
        }
        if let Some(zone) = zone.filter(|zone| !is_in(zone, region)) {
            return refuse(format!(
                "the plug's zone {zone} is not in region {region}; check the parameter region"
            ));
        }
        Ok(Self { id: id.to_owned(), zone: zone.map(str::to_owned), is_provider_id })
    }

    /// Whether it is what a Node says of itself. That never changes while the Node exists.
    pub(crate) fn is_of_the_node(&self) -> bool {
        self.is_provider_id
    }
}

fn is_instance_id(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    id.strip_prefix("i-")
        .is_some_and(|digits| (8..=32).contains(&digits.len()) && digits.bytes().all(is_digit))
}

/// Whether a zone is one of a region: `eu-west-1a`, or `us-west-2-lax-1a` near it.
fn is_in(zone: &str, region: &str) -> bool {
    let Some(rest) = zone.strip_prefix(region) else { return false };
    match rest.as_bytes() {
        [letter] => letter.is_ascii_lowercase(),
        [b'-', more @ ..] => !more.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "i-0123456789abcdef0";

    #[test]
    fn an_id_or_a_provider_id_names_an_instance() {
        let parse = |plug: &str| Plug::parse(plug, "us-west-2").unwrap();
        let id = ID.to_owned();
        assert_eq!(parse(ID), Plug { id: id.clone(), zone: None, is_provider_id: false });
        for (plug, zone) in [
            (format!("aws:///us-west-2b/{ID}"), "us-west-2b"),
            (format!("aws://us-west-2b/{ID}"), "us-west-2b"),
            (format!("aws:///us-west-2-lax-1a/{ID}"), "us-west-2-lax-1a"),
        ] {
            let zone = Some(zone.to_owned());
            assert_eq!(parse(&plug), Plug { id: id.clone(), zone, is_provider_id: true });
        }
    }

    #[test]
    fn what_names_no_instance_of_the_region_is_refused() {
        let elsewhere = format!("aws:///us-west-20/{ID}");
        let in_another = format!("aws:///eu-west-1a/{ID}");
        for plug in [
            "",
            "worker-1",
            "i-",
            "i-0123456789ABCDEF0",
            "i-0123456789abcdef0&Force=true",
            "aws:///us-west-2a/",
            "aws://i-0123456789abcdef0",
            "gce://p/z/i-0123456789abcdef0",
            &elsewhere,
            &in_another,
        ] {
            let failure = Plug::parse(plug, "us-west-2").unwrap_err();
            assert_eq!(failure.kind, FailureKind::BadParameters, "{plug}");
        }
        for region in ["", "eu-west-1.evil.example", "EU", "a/b"] {
            assert!(Plug::parse(ID, region).is_err(), "{region}");
        }
    }
}
