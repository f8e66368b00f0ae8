//! The proposal's pod template: checked for what a Job needs, and its two shorthands written out.
//! The Job is made by the controller.

use serde_json::{Value, json};

use crate::document::Path;

/// Where the files of a `configmaps:` entry appear in the container.
pub(super) const CONFIG_MAP_FOLDER: &str = "/etc/node-remedy/configmaps";

/// The template with `env: [secret]` as `envFrom` and `configmaps: [name]` as mounted volumes; or
/// what is wrong, each with its path below the template.
pub(super) fn expand(template: &Value) -> Result<Value, Vec<(Path, String)>> {
    let mut wrong = Vec::new();
    let mut template = template.clone();
    let spec = Path::root().field("spec");
    let Some(Value::Object(pod)) = template.get_mut("spec") else {
        return Err(vec![(spec, "found nothing, expected a map".to_owned())]);
    };
    match pod.get("restartPolicy").and_then(Value::as_str) {
        Some("Never") => {}
        None => {
            pod.insert("restartPolicy".to_owned(), json!("Never"));
        }
        Some(other) => wrong.push((
            spec.field("restartPolicy"),
            format!("found {other:?}, expected Never: a remedy runs once"),
        )),
    }
    if pod.contains_key("nodeName") {
        let sentence = "found it, expected none: the scheduler chooses, and never the node itself";
        wrong.push((spec.field("nodeName"), sentence.to_owned()));
    }
    let mut volumes = Vec::new();
    match pod.get_mut("containers") {
        Some(Value::Array(containers)) if !containers.is_empty() => {
            for (index, container) in containers.iter_mut().enumerate() {
                let path = spec.field("containers").index(index);
                expand_container(container, &path, &mut volumes, &mut wrong);
            }
        }
        Some(_) | None => wrong.push((
            spec.field("containers"),
            "found no containers, expected at least one".to_owned(),
        )),
    }
    if !volumes.is_empty() {
        match pod.entry("volumes").or_insert_with(|| json!([])) {
            Value::Array(list) => list.extend(volumes),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => {
                wrong.push((spec.field("volumes"), "found no list, expected one".to_owned()));
            }
        }
    }
    if wrong.is_empty() { Ok(template) } else { Err(wrong) }
}

fn expand_container(
    container: &mut Value,
    path: &Path,
    volumes: &mut Vec<Value>,
    wrong: &mut Vec<(Path, String)>,
) {
    let Value::Object(container) = container else {
        wrong.push((path.clone(), "found no map, expected a container".to_owned()));
        return;
    };
    for field in ["name", "image"] {
        if container.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            wrong.push((path.field(field), "found nothing, expected text".to_owned()));
        }
    }
    if let Some(secrets) = container.get("env").and_then(names) {
        container.remove("env");
        let from = secrets.iter().map(|name| json!({ "secretRef": { "name": name } })).collect();
        extend(container, "envFrom", from, path, wrong);
    }
    let Some(written) = container.remove("configmaps") else { return };
    let Some(config_maps) = names(&written) else {
        let sentence = "found no list of names, expected the names of ConfigMaps".to_owned();
        wrong.push((path.field("configmaps"), sentence));
        return;
    };
    let mut mounts = Vec::new();
    for name in config_maps {
        let volume = format!("configmap-{name}");
        mounts.push(json!({
            "name": volume, "mountPath": format!("{CONFIG_MAP_FOLDER}/{name}"), "readOnly": true,
        }));
        let volume = json!({ "name": volume, "configMap": { "name": name } });
        if !volumes.contains(&volume) {
            volumes.push(volume);
        }
    }
    extend(container, "volumeMounts", mounts, path, wrong);
}

fn extend(
    container: &mut serde_json::Map<String, Value>,
    field: &str,
    more: Vec<Value>,
    path: &Path,
    wrong: &mut Vec<(Path, String)>,
) {
    match container.entry(field).or_insert_with(|| json!([])) {
        Value::Array(list) => list.extend(more),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            wrong.push((path.field(field), "found no list, expected one".to_owned()));
        }
    }
}

/// A list of nothing but names: the shorthand. Kubernetes' own `env` is a list of maps.
fn names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}
