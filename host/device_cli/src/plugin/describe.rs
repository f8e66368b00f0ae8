//! What a manifest says, for people and for programs.

use node_remedy_sandbox::Manifest;
use node_remedy_sandbox::manifest::{Auth, Kind, Protocol};
use serde_json::{Value, json};

use crate::output::outln;

pub(crate) fn describe(manifest: &Manifest, digest: &str) -> anyhow::Result<()> {
    let Manifest { name, version, description, kind, .. } = manifest;
    outln!("{name} {version}: {description}");
    outln!("  kind         {}", word(*kind));
    let actions = manifest.actions.iter().map(|one| format!("{one:?}").to_lowercase());
    outln!("  actions      {}", actions.collect::<Vec<_>>().join(" "));
    outln!("  identity     {}", manifest.identity.join(" "));
    outln!("  late effect  {} s", manifest.late_effect_seconds);
    outln!("  deadline     {} s", manifest.deadline_seconds);
    outln!("  digest       {digest}");
    outln!("parameters");
    for (parameter, property) in &manifest.parameters.properties {
        let is_required = manifest.parameters.required.contains(parameter);
        let default = match &property.default {
            Some(Value::String(text)) => format!("default {text}"),
            Some(other) => format!("default {other}"),
            None if is_required => "required".to_owned(),
            None => "optional".to_owned(),
        };
        outln!("  {parameter:<18} {default:<22} {}", property.description);
    }
    outln!("endpoints");
    for ask in &manifest.asks.endpoints {
        let port = ask.port.or(ask.protocol.usual_port());
        let port = port.map(|port| format!(", port {port}")).unwrap_or_default();
        let protocol = Protocol::as_str(ask.protocol);
        let optional = if ask.optional { "optional, " } else { "" };
        let (name, from, scheme) = (&ask.name, &ask.from, scheme(&ask.auth));
        outln!("  {name:<18} {optional}{protocol} from {from}{port}, {scheme}");
    }
    outln!("credentials");
    for ask in &manifest.asks.credentials {
        let operations = ask.operations.iter().map(|operation| operation.as_str());
        let operations = operations.collect::<Vec<_>>().join(" ");
        let optional = if ask.optional { "optional, " } else { "" };
        outln!("  {:<18} {optional}{operations}", ask.name);
    }
    Ok(())
}

pub(crate) fn document(manifest: &Manifest, digest: &str) -> Value {
    let Manifest { name, version, description, kind, .. } = manifest;
    let actions: Vec<_> =
        manifest.actions.iter().map(|one| format!("{one:?}").to_lowercase()).collect();
    let parameters = manifest.parameters.properties.iter().map(|(name, property)| {
        let is_required = manifest.parameters.required.contains(name);
        let about = json!({
            "description": property.description, "default": property.default,
            "required": is_required,
        });
        (name.clone(), about)
    });
    let endpoints = manifest.asks.endpoints.iter().map(|ask| {
        json!({
            "name": ask.name, "protocol": ask.protocol.as_str(), "from": ask.from,
            "auth": scheme(&ask.auth), "optional": ask.optional,
        })
    });
    let credentials = manifest.asks.credentials.iter().map(|ask| {
        let operations: Vec<_> = ask.operations.iter().map(|one| one.as_str()).collect();
        json!({"name": ask.name, "operations": operations, "optional": ask.optional})
    });
    json!({
        "name": name, "version": version, "description": description, "kind": word(*kind),
        "digest": digest, "actions": actions, "identity": manifest.identity,
        "lateEffectSeconds": manifest.late_effect_seconds,
        "deadlineSeconds": manifest.deadline_seconds,
        "parameters": parameters.collect::<serde_json::Map<_, _>>(),
        "endpoints": endpoints.collect::<Vec<_>>(),
        "credentials": credentials.collect::<Vec<_>>(),
    })
}

pub(crate) fn scheme(auth: &Auth) -> String {
    if *auth == Auth::NONE { "no authentication by the host".to_owned() } else { auth.told() }
}

pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Power => "power",
        Kind::Fabric => "fabric",
        Kind::Storage => "storage",
        Kind::Watch => "watch",
        Kind::Remedy => "remedy",
    }
}
