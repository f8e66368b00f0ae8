//! The patch that adds one annotation.

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use serde_json::json;

/// The JSON patch that adds an annotation. What has none gets the first one only if nothing was changed
/// since it was read: another one may have come.
pub fn annotation(incident: &NodeFence, key: &str, value: &str) -> serde_json::Value {
    if incident.annotations().is_empty() {
        let read = incident.resource_version();
        return json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": read},
            {"op": "add", "path": "/metadata/annotations", "value": {key: value}},
        ]);
    }
    let path = format!("/metadata/annotations/{}", key.replace('/', "~1"));
    json!([{"op": "add", "path": path, "value": value}])
}
