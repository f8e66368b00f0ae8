//! EC2: how an instance is read and asked for something, and what EC2's own error codes mean. Not here:
//! what is asked for.

use node_remedy_sdk::web::{Answer, Api, Manner, Meaning};
use node_remedy_sdk::{Failure, FailureKind, Fields, Host};
use roxmltree::Node;

use crate::query::{self, REQUEST_MS, UNAUTHENTICATED, child, children, text};

/// An instance that is not known may be one that is not known everywhere yet: it is asked for again so
/// often, after so long.
const UNKNOWN_AGAIN: u32 = 2;
/// See [`UNKNOWN_AGAIN`].
const UNKNOWN_PAUSE_MS: u32 = 2_000;
/// The tag that EC2 Auto Scaling puts on its instances.
const GROUP_TAG: &str = "aws:autoscaling:groupName";

const MANNER: Manner = Manner {
    endpoint: "ec2",
    device: "EC2",
    request_ms: REQUEST_MS,
    headers: &[],
    unauthenticated: UNAUTHENTICATED,
    denied: "check the policies of the key's user or role",
    missing: "check region and address",
};

/// An instance, as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    id: String,
    /// The state's code, with whatever EC2 puts into its high byte.
    pub(crate) code: u32,
    /// The state's name.
    pub(crate) name: String,
    /// The zone it is in.
    pub(crate) zone: Option<String>,
    /// The group of EC2 Auto Scaling that it is tagged with.
    pub(crate) group: Option<String>,
    /// Why it came into its state.
    pub(crate) reason: Option<String>,
    /// Whether it was launched so that it can hibernate.
    pub(crate) can_hibernate: bool,
}

/// Why an instance was stopped that has lost its memory.
const MEMORY_DROPPED: [&str; 2] =
    ["Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown"];

impl Instance {
    /// Whether it is gone for good.
    pub(crate) fn is_terminated(&self) -> bool {
        self.code & 0xff == 48 || self.name == "terminated"
    }

    /// Whether it reads stopped and its memory may be kept: then a start lets it go on where it was, with its old pods.
    ///
    /// EC2 has no state for that. It reads `stopped`, and the reason says so (EC2 API, `StateReason`). Of one that can hibernate
    /// only a reason that is known to drop the memory does.
    pub(crate) fn hibernates(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        let is_dropped = MEMORY_DROPPED.contains(&reason);
        self.name == "stopped" && (reason.contains("Hibernat") || self.can_hibernate && !is_dropped)
    }

    /// Its state, for people.
    pub(crate) fn words(&self) -> String {
        let kept = if self.hibernates() {
            ", and it may hibernate: a start would let its old pods go on"
        } else {
            ""
        };
        format!("{} ({}){kept}", self.name, self.code & 0xff)
    }

    /// What EC2 calls it.
    pub(crate) fn identity(&self) -> Fields {
        let group = self.group.clone().map(|group| ("autoscaling-group".to_owned(), group));
        [("instance-id".to_owned(), self.id.clone())].into_iter().chain(group).collect()
    }
}

/// EC2, for one call.
pub(crate) fn api<H: Host>(host: &H, deadline_ms: u32) -> Api<'_, H> {
    Api::new(host, &MANNER, deadline_ms).with_words(meaning)
}

/// Asks for one thing to be done with one instance.
pub(crate) fn ask<H: Host>(
    api: &Api<'_, H>,
    action: &str,
    id: &str,
    how: &str,
) -> Result<Answer, Failure> {
    let form = format!("&InstanceId.1={id}{how}&Version=2016-11-15");
    let answer = query::ask(api, &MANNER, action, &form)?;
    let document = query::read(&MANNER, action, &answer)?;
    // Reboots say in so many words whether they were accepted.
    match child(document.root_element(), "return").and_then(|node| node.text()) {
        Some("true") | None => Ok(answer),
        Some(other) => {
            let sentence = format!("{action}: found return {other:?}, expected true");
            Err(Failure::new(FailureKind::Device, sentence))
        }
    }
}

/// Reads one instance.
pub(crate) fn describe<H: Host>(api: &Api<'_, H>, id: &str) -> Result<Instance, Failure> {
    const ACTION: &str = "DescribeInstances";
    let mut again = UNKNOWN_AGAIN;
    let answer = loop {
        match ask(api, ACTION, id, "") {
            Err(failure) if failure.kind == FailureKind::NoSuchPlug && again > 0 => {
                if !api.has_time_for(UNKNOWN_PAUSE_MS) || !api.host().sleep(UNKNOWN_PAUSE_MS) {
                    return Err(failure);
                }
                again -= 1;
            }
            answer => break answer?,
        }
    };
    let document = query::read(&MANNER, ACTION, &answer)?;
    let protocol = |sentence: String| {
        Failure::new(FailureKind::Protocol, format!("{ACTION}: {sentence}; is this EC2?"))
    };
    let items = |node: Node<'_, '_>, list: &str| -> Vec<_> {
        child(node, list).into_iter().flat_map(children("item")).map(|item| item.id()).collect()
    };
    let of = |node_id| document.get_node(node_id);
    let mut found = items(document.root_element(), "reservationSet")
        .into_iter()
        .filter_map(of)
        .flat_map(|reservation| items(reservation, "instancesSet"))
        .filter_map(of);
    let (instance, more) = (found.next(), found.next());
    let Some(instance) = instance else {
        let sentence = format!("{ACTION}: there is no instance {id} in this region and account");
        return Err(Failure::new(FailureKind::NoSuchPlug, sentence));
    };
    let named = text(instance, "instanceId");
    if more.is_some() || named.as_deref() != Some(id) {
        return Err(protocol(format!("found another instance than {id}")));
    }
    let state = child(instance, "instanceState");
    let name = state.and_then(|state| text(state, "name"));
    let code = state.and_then(|state| text(state, "code")?.parse().ok());
    let (Some(name), Some(code)) = (name, code) else {
        return Err(protocol(format!("instance {id} has no state")));
    };
    let placement = child(instance, "placement");
    let tags = child(instance, "tagSet").into_iter().flat_map(children("item"));
    let mut group = tags.filter(|tag| text(*tag, "key").as_deref() == Some(GROUP_TAG));
    Ok(Instance {
        id: id.to_owned(),
        code,
        name,
        zone: placement.and_then(|placement| text(placement, "availabilityZone")),
        group: group.next().and_then(|tag| text(tag, "value")),
        reason: child(instance, "stateReason").and_then(|reason| text(reason, "code")),
        can_hibernate: child(instance, "hibernationOptions")
            .and_then(|options| text(options, "configured"))
            .is_some_and(|configured| configured != "false"),
    })
}

/// What EC2's own code for a refusal means (EC2 API, "Error codes for the Amazon EC2 API").
fn meaning(_status: u16, body: &[u8]) -> Option<Meaning> {
    let code = query::code(body)?;
    let means = |kind, check| Some(Meaning { kind, is_retryable: false, check });
    let later = |kind, check| Some(Meaning { kind, is_retryable: true, check });
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => means(
            FailureKind::Denied,
            "the key's policies must allow ec2:DescribeInstances, ec2:StopInstances, \
             ec2:StartInstances and ec2:RebootInstances for this instance",
        ),
        "OperationNotPermitted" => {
            means(FailureKind::Denied, "check whether the instance is protected against stopping")
        }
        "RequestLimitExceeded" | "Throttling" | "ThrottlingException" | "RequestThrottled" => {
            later(FailureKind::Throttled, "EC2 is asked too often")
        }
        "InvalidInstanceID.NotFound" | "InvalidInstanceID.Malformed" => means(
            FailureKind::NoSuchPlug,
            "check instance id, region and account: EC2 knows no such instance there",
        ),
        "IncorrectInstanceState" | "IncorrectState" => {
            later(FailureKind::Busy, "the instance is in a state in which that cannot be done")
        }
        "IncorrectSpotInstanceRequestState" => later(
            FailureKind::Unsupported,
            "its Spot request does not allow that now; only those of persistent requests are stopped",
        ),
        "UnsupportedOperation" | "UnsupportedHostConfiguration" => means(
            FailureKind::Unsupported,
            "EC2 cannot do that with this instance: those with an instance store as root, and those \
             of one-time Spot requests, cannot be stopped",
        ),
        "InvalidAction" | "UnknownParameter" | "InvalidParameterCombination" => means(
            FailureKind::Unsupported,
            "this service does not know the request; where it refuses SkipOsShutdown, set \
             skip-os-shutdown to false",
        ),
        "InsufficientInstanceCapacity" | "InsufficientHostCapacity" | "InsufficientCapacity" => {
            later(FailureKind::Device, "the zone has no room for it now")
        }
        "InstanceLimitExceeded" | "VcpuLimitExceeded" => {
            means(FailureKind::Device, "the account's quota of instances is used up")
        }
        _ => query::common(code),
    }
}
