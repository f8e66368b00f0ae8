//! What the eviction subresource of a pod does: a delete that asks the pod's disruption budget.
//!
//! How many disruptions a budget allows the disruption controller writes into its status, a moment
//! later than pods change; here it is counted when it is asked for.

use serde_json::Value;

use super::ApiServer;
use super::deletion::DeleteOptions;
use super::error::ApiError;
use super::kind::Kind;
use super::object::{Key, condition_status, is_terminating, list, namespace, number, text};

/// Whether an eviction of `pod` may go on to the delete.
pub(super) fn allow(api: &ApiServer, key: &Key, pod: &Value) -> Result<(), ApiError> {
    let is_over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending");
    if is_over || is_terminating(pod) {
        return Ok(());
    }
    let of_pod = |budget: &&Value| {
        namespace(budget) == namespace(pod) && selects(budget.pointer("/spec/selector"), pod)
    };
    let mut budgets = api.all(Kind::PodDisruptionBudget).filter(of_pod);
    let Some(budget) = budgets.next() else { return Ok(()) };
    if budgets.next().is_some() {
        return Err(ApiError::Internal(format!(
            "{key}: more than one PodDisruptionBudget, which the eviction subresource does not \
             support"
        )));
    }
    let count = Count::of(api, budget);
    let is_ready = condition_status(pod, "Ready") == "True";
    let always = text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    let is_spare = always || (count.healthy >= count.desired && count.desired > 0);
    if (!is_ready && is_spare) || count.healthy > count.desired {
        return Ok(());
    }
    Err(ApiError::TooManyRequests(format!(
        "{key}: cannot evict pod as it would violate the pod's disruption budget"
    )))
}

/// Of a budget's pods, how many serve and how many have to.
struct Count {
    healthy: u64,
    desired: u64,
}

impl Count {
    fn of(api: &ApiServer, budget: &Value) -> Self {
        let selector = budget.pointer("/spec/selector");
        let of_budget =
            |pod: &&Value| namespace(pod) == namespace(budget) && selects(selector, pod);
        let pods: Vec<&Value> = api.all(Kind::Pod).filter(of_budget).collect();
        let serves =
            |pod: &&&Value| !is_terminating(pod) && condition_status(pod, "Ready") == "True";
        let healthy = pods.iter().filter(serves).count() as u64;
        let wanted = api.all(Kind::StatefulSet).filter(|set| {
            namespace(set) == namespace(budget)
                && selector_of_template(set).is_some_and(|pod| selects(selector, &pod))
        });
        let replicas: u64 = wanted.filter_map(|set| number(set, "/spec/replicas")).sum();
        let expected = replicas.max(pods.len() as u64);
        let desired = match budget.pointer("/spec/maxUnavailable") {
            Some(most) => expected.saturating_sub(scaled(most, expected)),
            None => budget.pointer("/spec/minAvailable").map_or(0, |least| scaled(least, expected)),
        };
        Self { healthy, desired }
    }
}

/// What a set's pods look like to a selector.
fn selector_of_template(set: &Value) -> Option<Value> {
    Some(serde_json::json!({ "metadata": set.pointer("/spec/template/metadata")?.clone() }))
}

/// A number, or a share of `of` rounded up.
fn scaled(written: &Value, of: u64) -> u64 {
    let share = || written.as_str()?.strip_suffix('%')?.parse::<u64>().ok();
    written.as_u64().or_else(|| Some(share()?.saturating_mul(of).div_ceil(100))).unwrap_or_default()
}

/// Whether a label selector takes an object; none takes nothing, an empty one everything.
fn selects(selector: Option<&Value>, object: &Value) -> bool {
    let Some(selector) = selector else { return false };
    let label = |key: &str| {
        let labels = object.pointer("/metadata/labels")?;
        labels.get(key)?.as_str()
    };
    let mut equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut rules = list(selector, "/matchExpressions").iter();
    equal.all(|(key, value)| label(key) == value.as_str())
        && rules.all(|rule| {
            let found = label(text(rule, "/key"));
            let is_in = found.is_some_and(|found| {
                list(rule, "/values").iter().any(|value| value.as_str() == Some(found))
            });
            match text(rule, "/operator") {
                "In" => is_in,
                "NotIn" => !is_in,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

impl ApiServer {
    /// Evicts a pod: deleted, where no disruption budget forbids it.
    pub(super) fn evict(
        &mut self,
        by: &str,
        key: Key,
        how: &DeleteOptions,
    ) -> Result<super::Deleted, ApiError> {
        let pod = self.find(&key)?;
        super::deletion::check(&key, &pod, how)?;
        allow(self, &key, &pod)?;
        self.delete(by, key, how)
    }
}
