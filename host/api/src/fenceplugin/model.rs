//! A plugin from outside, as people ask for it and as its state is told.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::Condition;
use crate::fenceplugin::bounds::PluginLimits;
use crate::limits;
use crate::plan::{Allows, PluginKind};
use crate::time::Moment;

/// One plugin, under the name that methods call it by.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "node-remedy.io",
    version = "v1alpha1",
    kind = "FencePlugin",
    plural = "fenceplugins",
    shortname = "fp",
    status = "FencePluginStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A fence method from outside: its component by digest, and what it is allowed to reach.",
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9-]{1,40}$')")
        .message("a plugin's name is 1 to 40 of a-z, 0-9 and -, as in its manifest"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct FencePluginSpec {
    /// Where the component stands.
    pub source: PluginSource,
    /// The component's SHA-256, `sha256:` and 64 hex digits: of the `.wasm` itself, however it is packed
    /// at its source; `node-remedy plugin inspect FILE` prints it. Nothing else is ever run.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: String,
    /// Whose signature the component must carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// What the plugin may use, where that is not what every plugin from outside may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PluginLimits>,
    /// Where the plugin may connect; without a grant no method of it is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::GRANTS_MAX))]
    pub grants: Vec<Allows>,
}

/// Where a component stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.configMap) != has(self.oci)")
        .message("a component stands in a ConfigMap or in a registry: exactly one of configMap and oci")
)]
pub struct PluginSource {
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An artefact in a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
}

/// A key of an immutable ConfigMap in the controller's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The ConfigMap; its `immutable` must be true.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key under `binaryData`; it ends in `.wasm`, `.wasm.gz` or `.wasm.zst`.
    #[schemars(
        length(min = 6, max = 253),
        regex(pattern = r"^[-._a-zA-Z0-9]+\.wasm(\.gz|\.zst)?$")
    )]
    pub key: String,
}

/// An artefact in an OCI registry: one layer of media type `application/wasm`, which is the component, and a
/// config of media type `application/vnd.wasm.config.v0+json`; `node-remedy plugin push` makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// `REGISTRY/REPOSITORY:TAG` or `REGISTRY/REPOSITORY@sha256:…`. A tag is resolved once; what it led to
    /// stands in the status, and is used until the spec changes.
    #[schemars(length(min = 3, max = limits::IMAGE_CHARACTERS_MAX))]
    pub image: String,
    /// A Secret of type `kubernetes.io/dockerconfigjson` in the controller's namespace, which the controller
    /// must be allowed to read: `node-remedy rbac --secret NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
    /// Whom the registry must prove to be; absent: its name, to an authority that the system trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<RegistryTls>,
    /// `HOST` or `HOST:PORT`: asked first, for the same repository; the registry itself where that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 259))]
    pub mirror: Option<String>,
    /// Registry and mirror are spoken to without TLS: whoever sits on the wire reads the pull secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
}

/// Whom a registry must prove to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryTls {
    /// Certificates of authorities in PEM: one of them, and no other, vouches for registry and mirror.
    #[schemars(length(min = 1, max = limits::CA_BUNDLE_CHARACTERS_MAX))]
    pub ca_bundle: String,
}

/// Whose signature over the component is wanted, as `node-remedy plugin sign` and `cosign sign-blob` make it:
/// beside a key `NAME.wasm.gz` of a ConfigMap it stands under `NAME.wasm.gz.sig`, in base64. In a registry it
/// stands where `node-remedy plugin push` and `cosign sign` put it, and covers the artefact's manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// What becomes of a component without one.
    pub policy: VerifyPolicy,
    /// Public keys in PEM, ECDSA on P-256 or Ed25519; the signature of one of them suffices.
    #[schemars(length(min = 1, max = limits::PLUGIN_KEYS_MAX), inner(length(min = 1, max = 1_024)))]
    pub keys: Vec<String>,
}

/// What becomes of a component that none of the keys has signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VerifyPolicy {
    /// It is not loaded.
    #[default]
    Require,
    /// It is loaded, and the condition `Verified` says so.
    Warn,
}

/// A component that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadedPlugin {
    /// Its SHA-256, as `spec.digest` had it.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// Where it stood.
    pub source: PluginSource,
    /// The manifest that its image was, where it stood in a registry: a tag may lead elsewhere by now.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 71))]
    pub manifest: String,
    /// The key that had signed it, where that was wanted.
    #[serde(default)]
    #[schemars(length(max = 71))]
    pub verified_by: String,
    /// What it was allowed to use, where its object said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PluginLimits>,
}

/// A call of the plugin that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When it ended.
    pub at: Moment,
    /// The component that was called.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// The device that it was to speak to; empty: a remedy, which speaks to none.
    #[serde(default)]
    #[schemars(length(max = limits::LAST_ERROR_CHARACTERS_MAX))]
    pub device: String,
    /// What was asked of it: `off`, `on`, `reset`, `status`, `monitor`; of a remedy `next`.
    #[schemars(length(max = 32))]
    pub action: String,
    /// What kind of failure, by the contract's word: `unreachable`, `timeout`, `unauthenticated`, …
    #[schemars(length(max = 32))]
    pub kind: String,
    /// What it said, or what was said of it.
    #[schemars(length(max = limits::LAST_ERROR_CHARACTERS_MAX))]
    pub message: String,
}

/// What became of the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FencePluginStatus {
    /// Accepted, Ready, and Verified where that is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default)]
    pub observed_generation: i64,
    /// What was loaded, the newest last, and where it stood: an incident ends with the component that it
    /// began with, also behind a controller that has just started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::EARLIER_PLUGINS_MAX))]
    pub loaded: Vec<LoadedPlugin>,
    /// What is loaded now; empty: nothing. While a newer one cannot be had it stays what it was.
    #[serde(default)]
    #[schemars(length(max = 71))]
    pub digest: String,
    /// The key that signed what is loaded now: the SHA-256 of its SubjectPublicKeyInfo.
    #[serde(default)]
    #[schemars(length(max = 71))]
    pub verified_by: String,
    /// What it may use, each limit spelled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PluginLimits>,
    /// The plugin's own version.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub version: String,
    /// What it says of itself.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub description: String,
    /// What its success proves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PluginKind>,
    /// What it can do.
    #[serde(default)]
    #[schemars(length(max = 16), inner(length(max = 32)))]
    pub actions: Vec<String>,
    /// What it asks for, one line each: `endpoint bmc: udp from address, port 623`,
    /// `credential account: mac session-key`.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub asks: Vec<String>,
    /// What its grants leave of that, one line for each network and each name: `to 10.1.0.0/16: endpoint bmc:
    /// udp, port 623; credential account: mac; …`; or why a network gives it nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::STATUS_GRANTS_MAX),
        inner(length(max = limits::STATUS_GRANT_CHARACTERS_MAX))
    )]
    pub grants: Vec<String>,
    /// Its calls that failed, the newest last: of each device, action and kind the last one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::LAST_ERRORS_MAX))]
    pub last_errors: Vec<LastError>,
    /// All that it says of itself, as JSON: who has no component reads here what may be configured.
    #[serde(default)]
    #[schemars(length(max = limits::PLUGIN_MANIFEST_BYTES_MAX))]
    pub plugin_manifest: String,
}
