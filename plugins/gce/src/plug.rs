//! Which instance a plug names: a name, with project and zone from the parameters, or the
//! `spec.providerID` of its Node.

use node_remedy_sdk::{Failure, FailureKind};

/// An instance, as it is named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plug {
    /// The project's id, with its domain where it has one.
    pub(crate) project: String,
    /// The zone.
    pub(crate) zone: String,
    /// The instance's name.
    pub(crate) name: String,
}

impl Plug {
    /// Reads a plug.
    pub(crate) fn parse(
        plug: &str,
        project: Option<&str>,
        zone: Option<&str>,
    ) -> Result<Self, Failure> {
        let refuse = |sentence: String| Err(Failure::new(FailureKind::BadParameters, sentence));
        let expected = "a name with the parameters project and zone, or gce://PROJECT/ZONE/NAME";
        let (project, zone, name) = match plug.strip_prefix("gce://") {
            Some(path) => {
                let mut parts = path.split('/');
                let (Some(own_project), Some(own_zone), Some(name), None) =
                    (parts.next(), parts.next(), parts.next(), parts.next())
                else {
                    return refuse(format!("found plug {plug:?}, expected {expected}"));
                };
                for (what, own, set) in
                    [("project", own_project, project), ("zone", own_zone, zone)]
                {
                    if let Some(set) = set.filter(|set| *set != own) {
                        return refuse(format!(
                            "the plug's {what} is {own}, and the parameter {what} is {set}"
                        ));
                    }
                }
                (own_project, own_zone, name)
            }
            None => match (project, zone) {
                (Some(project), Some(zone)) => (project, zone, plug),
                (_, _) => return refuse(format!("found plug {plug:?}, expected {expected}")),
            },
        };
        if !is_name(name, "-") || !is_name(zone, "-") || !is_name(project, "-.:") {
            return refuse(format!(
                "found instance {name:?} in zone {zone:?} of project {project:?}, expected {expected}"
            ));
        }
        let [project, zone, name] = [project, zone, name].map(str::to_owned);
        Ok(Self { project, zone, name })
    }

    /// What the host expects the instance to be called.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}/{}", self.project, self.zone, self.name)
    }

    /// Its zone, as a path of the API.
    pub(crate) fn zone_path(&self) -> String {
        format!("/compute/v1/projects/{}/zones/{}", self.project, self.zone)
    }

    /// It, as a path of the API.
    pub(crate) fn path(&self) -> String {
        format!("{}/instances/{}", self.zone_path(), self.name)
    }
}

/// Lower case, begun by a letter; these letters too, but not at the end.
fn is_name(text: &str, between: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    (1..=100).contains(&text.len())
        && text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.ends_with(is_plain)
        && text.chars().all(|letter| is_plain(letter) || between.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_named_whole_or_by_parameters() {
        let parse = |plug, project, zone| Plug::parse(plug, project, zone).unwrap().path();
        let path = "/compute/v1/projects/p-1/zones/europe-west1-b/instances/w-1";
        assert_eq!(parse("w-1", Some("p-1"), Some("europe-west1-b")), path);
        let whole = "gce://p-1/europe-west1-b/w-1";
        assert_eq!(parse(whole, None, None), path);
        assert_eq!(parse(whole, Some("p-1"), Some("europe-west1-b")), path);
        let plug = Plug::parse("gce://example.org:p-1/z/w", None, None).unwrap();
        assert_eq!(plug.id(), "example.org:p-1/z/w");
    }

    #[test]
    fn what_names_no_instance_is_refused() {
        for (plug, project, zone) in [
            ("", Some("p"), Some("z")),
            ("w", None, Some("z")),
            ("w", Some("p"), None),
            ("W", Some("p"), Some("z")),
            ("w/stop", Some("p"), Some("z")),
            ("w?x=y", Some("p"), Some("z")),
            ("..", Some("p"), Some("z")),
            ("w", Some("p/zones/z"), Some("z")),
            ("w", Some("p."), Some("z")),
            ("gce://p/z", None, None),
            ("gce://p/z/w/x", None, None),
            ("gce:///z/w", None, None),
            ("gce://p/z/w", Some("other"), None),
            ("gce://p/z/w", None, Some("other")),
            ("aws:///z/i-1", Some("p"), Some("z")),
        ] {
            let failure = Plug::parse(plug, project, zone).unwrap_err();
            assert_eq!(failure.kind, FailureKind::BadParameters, "{plug}");
        }
    }
}
