//! EC2 Auto Scaling (query API, version 2011-01-01): what an instance's group makes of it, and taking it
//! out of service and back. The service has an endpoint of its own, which is asked only about instances
//! of a group. Not here: when that is done, and changing a group.

use node_remedy_sdk::web::{Answer, Api, Manner, Meaning, encoded};
use node_remedy_sdk::{Failure, FailureKind, Host};

use crate::query::{self, REQUEST_MS, UNAUTHENTICATED, child, children, text};

/// Between two looks at an instance that changes its place.
const PAUSE_MS: u32 = 1_000;
/// What to check where the key may not; the action follows.
const DENIED: &str = "unless allow-replace is true, the key's policies must allow";

const MANNER: Manner = Manner {
    endpoint: "autoscaling",
    device: "EC2 Auto Scaling",
    request_ms: REQUEST_MS,
    headers: &[],
    unauthenticated: UNAUTHENTICATED,
    denied: DENIED,
    missing: "check region and autoscaling-address",
};

/// Where a group has an instance ("Amazon EC2 Auto Scaling instance lifecycle").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its health is watched: one that stops is ended and replaced.
    InService,
    /// On the way out of service.
    EnteringStandby,
    /// Out of service, and left alone.
    Standby,
    /// On the way into service.
    Pending,
    /// Being ended, whatever it does.
    Terminating,
    /// On the way out of the group, or kept warm beside it: its health is not watched.
    Aside,
}

/// An instance in its group.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member {
    instance: String,
    group: String,
    pub(crate) place: Place,
    /// The state in the group's own word.
    word: String,
}

impl Member {
    /// What its group makes of it, for people.
    pub(crate) fn words(&self) -> String {
        format!("{} in autoscaling group {}", self.word, self.group)
    }

    /// Whether it is out of service, or will be at once.
    pub(crate) fn is_out(&self) -> bool {
        matches!(self.place, Place::Standby | Place::EnteringStandby)
    }
}

/// EC2 Auto Scaling, for one call.
pub(crate) fn api<H: Host>(host: &H, deadline_ms: u32) -> Api<'_, H> {
    Api::new(host, &MANNER, deadline_ms).with_words(meaning)
}

/// Reads where its group has an instance.
pub(crate) fn describe<H: Host>(
    api: &Api<'_, H>,
    instance: &str,
    tagged: &str,
) -> Result<Member, Failure> {
    const ACTION: &str = "DescribeAutoScalingInstances";
    let answer = ask(api, ACTION, &format!("&InstanceIds.member.1={instance}"))?;
    let document = query::read(&MANNER, ACTION, &answer)?;
    let list = child(document.root_element(), &format!("{ACTION}Result"))
        .and_then(|result| child(result, "AutoScalingInstances"));
    let members = list.into_iter().flat_map(children("member"));
    let mut found = members
        .filter(|member| text(*member, "InstanceId").as_deref() == Some(instance))
        .filter_map(|member| {
            Some((text(member, "AutoScalingGroupName")?, text(member, "LifecycleState")?))
        });
    let Some((group, word)) = found.next() else {
        // Tags come before the list does, and go after it.
        let sentence = format!(
            "{ACTION}: instance {instance} is tagged with group {tagged} and its state there is not \
             told; if it stays so, set allow-replace to true"
        );
        return Err(busy(sentence));
    };
    let place = match word.split(':').next().unwrap_or_default() {
        "InService" => Place::InService,
        "EnteringStandby" => Place::EnteringStandby,
        "Standby" => Place::Standby,
        "Pending" => Place::Pending,
        "Terminating" | "Terminated" => Place::Terminating,
        "Detaching" | "Detached" | "Warmed" => Place::Aside,
        _ => {
            let sentence =
                format!("{ACTION}: found state {word:?}, which this version does not know");
            return Err(Failure::new(FailureKind::Protocol, sentence));
        }
    };
    Ok(Member { instance: instance.to_owned(), group, place, word })
}

/// Takes an instance out of service, and waits until it is. The group is made smaller by one, or it
/// would start another in its place.
pub(crate) fn leave<H: Host>(api: &Api<'_, H>, member: &Member) -> Result<(), Failure> {
    if member.place == Place::InService {
        let form = format!("{}&ShouldDecrementDesiredCapacity=true", form_of(member));
        ask(api, "EnterStandby", &form)?;
    }
    until_out(api, member)
}

/// Puts an instance back into service.
pub(crate) fn rejoin<H: Host>(api: &Api<'_, H>, member: &Member) -> Result<(), Failure> {
    until_out(api, member)?;
    ask(api, "ExitStandby", &form_of(member)).map(|_| ())
}

fn until_out<H: Host>(api: &Api<'_, H>, member: &Member) -> Result<(), Failure> {
    loop {
        let now = describe(api, &member.instance, &member.group)?;
        match now.place {
            // Whatever is done to it, its group ends it.
            Place::Standby | Place::Terminating | Place::Aside => return Ok(()),
            // What was accepted may not be told yet.
            Place::EnteringStandby | Place::InService | Place::Pending => {}
        }
        if !api.has_time_for(PAUSE_MS) || !api.host().sleep(PAUSE_MS) {
            let sentence = format!("it is not out of service yet: {}", now.words());
            return Err(busy(sentence));
        }
    }
}

fn form_of(member: &Member) -> String {
    let Member { instance, group, .. } = member;
    format!("&AutoScalingGroupName={}&InstanceIds.member.1={instance}", encoded(group))
}

fn ask<H: Host>(api: &Api<'_, H>, action: &str, form: &str) -> Result<Answer, Failure> {
    let form = format!("{form}&Version=2011-01-01");
    query::ask(api, &MANNER, action, &form).map_err(|mut failure| {
        if failure.detail.ends_with(DENIED) {
            failure.detail.push_str(" autoscaling:");
            failure.detail.push_str(action);
        }
        failure
    })
}

fn busy(sentence: String) -> Failure {
    Failure { retryable: true, ..Failure::new(FailureKind::Busy, sentence) }
}

/// What the service's own code for a refusal means ("Common Error Types", and the errors of its actions).
fn meaning(_status: u16, body: &[u8]) -> Option<Meaning> {
    let code = query::code(body)?;
    let means = |kind, check| Some(Meaning { kind, is_retryable: false, check });
    let later = |kind, check| Some(Meaning { kind, is_retryable: true, check });
    match code {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "NotAuthorized" => {
            means(FailureKind::Denied, DENIED)
        }
        "Throttling" | "ThrottlingException" | "RequestLimitExceeded" => {
            later(FailureKind::Throttled, "EC2 Auto Scaling is asked too often")
        }
        "ResourceContention" | "ScalingActivityInProgress" => {
            later(FailureKind::Busy, "the group is being changed")
        }
        "ValidationError" => later(
            FailureKind::Device,
            "check whether the group's minimum leaves room for one instance less, or set \
             allow-replace to true",
        ),
        _ => query::common(code),
    }
}
