//! Taints and tolerations, as scheduler and eviction read them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::object::{list, number, part, set, text};
use crate::time::{Time, seconds_stamp};

/// Set by whoever knows that a node is off.
pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// Whether the node carries a taint with this key.
pub(super) fn has_key(node: &Value, key: &str) -> bool {
    list(node, "/spec/taints").iter().any(|taint| text(taint, "/key") == key)
}

/// Whether the node carries this very taint.
pub(super) fn has(node: &Value, key: &str, effect: &str) -> bool {
    let is = |taint: &Value| text(taint, "/key") == key && text(taint, "/effect") == effect;
    list(node, "/spec/taints").iter().any(is)
}

/// Adds a taint unless it is there.
pub(super) fn add(node: &mut Value, key: &str, effect: &str, now: Time) {
    if has(node, key, effect) {
        return;
    }
    let mut taint = json!({ "key": key, "effect": effect });
    if effect == "NoExecute" {
        set(&mut taint, "timeAdded", json!(seconds_stamp(now)));
    }
    let taints = part(part(node, "spec"), "taints");
    if taints.is_null() {
        *taints = json!([]);
    }
    if let Some(taints) = taints.as_array_mut() {
        taints.push(taint);
    }
}

/// Removes a taint; an empty list goes with it.
pub(super) fn remove(node: &mut Value, key: &str, effect: &str) {
    let spec = part(node, "spec");
    let taints = part(spec, "taints");
    if let Some(taints) = taints.as_array_mut() {
        taints.retain(|taint| text(taint, "/key") != key || text(taint, "/effect") != effect);
        if !taints.is_empty() {
            return;
        }
    }
    crate::api::object::remove(spec, "taints");
}

/// How long a pod puts up with a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Patience {
    /// Not at all.
    None,
    /// For so long.
    For(Duration),
    /// For ever.
    Endless,
}

/// How long `pod` tolerates `taint`; the shortest of the tolerations that match counts.
pub(super) fn patience(pod: &Value, taint: &Value) -> Patience {
    let matching = list(pod, "/spec/tolerations").iter().filter(|one| tolerates(one, taint));
    let spans = matching.map(|toleration| {
        number(toleration, "/tolerationSeconds")
            .map_or(Patience::Endless, |seconds| Patience::For(Duration::from_secs(seconds)))
    });
    spans.min().unwrap_or(Patience::None)
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
    let exists = text(toleration, "/operator") == "Exists";
    (effect.is_empty() || effect == text(taint, "/effect"))
        && (key == text(taint, "/key") || (key.is_empty() && exists))
        && (exists || text(toleration, "/value") == text(taint, "/value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_match_as_kubernetes_says() {
        let taint = json!({ "key": "k", "value": "v", "effect": "NoExecute" });
        let rows = [
            (json!([]), Patience::None),
            (json!([{ "operator": "Exists" }]), Patience::Endless),
            (json!([{ "key": "k", "operator": "Exists" }]), Patience::Endless),
            (json!([{ "key": "k", "value": "v", "effect": "NoExecute" }]), Patience::Endless),
            (json!([{ "key": "k", "value": "w" }]), Patience::None),
            (json!([{ "key": "k", "operator": "Exists", "effect": "NoSchedule" }]), Patience::None),
            (json!([{ "key": "other", "operator": "Exists" }]), Patience::None),
            (
                json!([
                    { "key": "k", "operator": "Exists", "tolerationSeconds": 300 },
                    { "key": "k", "operator": "Exists", "tolerationSeconds": 10 },
                ]),
                Patience::For(Duration::from_secs(10)),
            ),
        ];
        for (tolerations, expected) in rows {
            let pod = json!({ "spec": { "tolerations": tolerations } });
            assert_eq!(patience(&pod, &taint), expected, "{pod}");
        }
    }
}
