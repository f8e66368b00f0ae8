//! The cluster seam over a real API server.
//!
//! Each request is built from the kind's static metadata and sent by `kube::Client`;
//! each is bounded by [`REQUEST_TIMEOUT`]. Watches end by themselves after
//! [`WATCH_TIMEOUT_S`], so a silently dropped connection is noticed soon.

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Client;
use kube::api::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, Request, WatchEvent, WatchParams,
};
use kube::client::Body;
use node_remedy_decide::Time;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cluster::object::Object;
use crate::cluster::unread::Read;
use crate::cluster::{At, Change, Cluster, ClusterError, DeleteHow, Scope, Watch, unread};

/// Longer than a healthy API server needs even under load, shorter than a lease.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Objects of a large collection that are read at once: a fifth of what kubectl takes. The text of a page is in memory
/// whole, and what was needed once stays with the process.
const PAGE: u32 = 100;
/// A million objects: far beyond what a cluster has, short of for ever.
const PAGES_MAX: u32 = 10_000;
/// A watch on a dead connection is found out no later than this.
const WATCH_TIMEOUT_S: u32 = 50;
/// A watch that outlives its own server-side time-out by this much is dead.
const WATCH_SLACK: Duration = Duration::from_secs(10);

/// A page of a list, its objects still as text: only one of them at a time is in memory read.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, deserialize_with = "null_is_empty")]
    items: Vec<&'a RawValue>,
}

/// An empty list may be written as null. What has no items at all is no list: taken for an empty one, all would be gone.
fn null_is_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// A real API server.
#[derive(Clone)]
pub struct KubeCluster {
    /// It asks again, for as long as a request may take, where the server is busy.
    client: Client,
    /// The same, and asks once.
    once: Client,
    server: String,
}

impl KubeCluster {
    /// From `--kubeconfig`, or the environment of a pod where there is none.
    pub async fn connect(kubeconfig: Option<&std::path::Path>) -> anyhow::Result<Self> {
        use anyhow::Context as _;
        let mut config = match kubeconfig {
            Some(path) => {
                let told = path.display();
                std::fs::metadata(path)
                    .with_context(|| format!("failed to read kubeconfig {told}"))?;
                // Not the reason: it shows the lines around the fault, and a token may be there.
                let file = kube::config::Kubeconfig::read_from(path).map_err(|_| {
                    anyhow::anyhow!(
                        "failed to read kubeconfig {told}: it is no kubeconfig; see `kubectl \
                         config view --kubeconfig {told}`"
                    )
                })?;
                let options = kube::config::KubeConfigOptions::default();
                kube::Config::from_custom_kubeconfig(file, &options)
                    .await
                    .with_context(|| format!("failed to use kubeconfig {}", path.display()))?
            }
            None => kube::Config::infer().await.context(
                "failed to find a cluster; pass --kubeconfig FILE or run inside a pod with a \
                 service account",
            )?,
        };
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        let server =
            config.cluster_url.host().context("the API server's URL has no host")?.to_owned();
        // A disruption budget says no with a 429, and for long: that is an answer, and no trouble.
        let mut once = config.clone();
        once.default_retry = false;
        let set_up = |config| Client::try_from(config).context("failed to set up the API client");
        Ok(Self { client: set_up(config)?, once: set_up(once)?, server })
    }

    /// The API server's name or address, without port.
    pub fn server(&self) -> &str {
        &self.server
    }

    fn request<K: Object>(namespace: Option<&str>) -> Request {
        Request::new(K::url_path(&(), namespace))
    }
}

async fn bounded<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, ClusterError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, call).await {
        Ok(answer) => answer.map_err(classify),
        Err(_) => Err(ClusterError::Unavailable(format!("no answer within {REQUEST_TIMEOUT:?}"))),
    }
}

fn delete_params(how: &DeleteHow) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: how.grace_s,
        preconditions: (how.uid.is_some() || how.resource_version.is_some()).then(|| {
            Preconditions { uid: how.uid.clone(), resource_version: how.resource_version.clone() }
        }),
        propagation_policy: how.with_dependents.then_some(PropagationPolicy::Background),
        ..DeleteParams::default()
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all else is: no usable answer came")]
fn classify(error: kube::Error) -> ClusterError {
    match error {
        kube::Error::Api(status) => classify_status(&status),
        kube::Error::SerdeError(error) => ClusterError::Unreadable(error.to_string()),
        kube::Error::BuildRequest(error) => ClusterError::Invalid(error.to_string()),
        other => ClusterError::Unavailable(sentence(&other)),
    }
}

fn classify_status(status: &kube::core::Status) -> ClusterError {
    let message = status.message.clone();
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => ClusterError::AlreadyExists(message),
        (409, _) => ClusterError::Conflict(message),
        (404, _) => ClusterError::NotFound(message),
        (410, _) => ClusterError::Gone,
        (400 | 405 | 413 | 415 | 422, _) => ClusterError::Invalid(message),
        (401 | 403, _) => ClusterError::Denied(message),
        (429, _) => {
            let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            ClusterError::Throttled { after: Duration::from_secs(u64::from(seconds.max(1))) }
        }
        _ => ClusterError::Unavailable(message),
    }
}

/// An error with its causes, in one line.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        cause = inner.source();
    }
    out
}

fn encode<K: Object>(object: &K) -> Result<Vec<u8>, ClusterError> {
    serde_json::to_vec(object).map_err(|error| ClusterError::Invalid(error.to_string()))
}

fn built(
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
) -> Result<http::Request<Vec<u8>>, ClusterError> {
    request.map_err(|error| ClusterError::Invalid(error.to_string()))
}

impl Cluster for KubeCluster {
    async fn list_each<K: Object>(
        &self,
        scope: &Scope,
        mut each: impl FnMut(Read<K>),
    ) -> Result<String, ClusterError> {
        let mut next = None;
        for _ in 0..PAGES_MAX {
            let params = ListParams {
                field_selector: scope.fields.clone(),
                limit: Some(PAGE),
                continue_token: next.take(),
                ..ListParams::default()
            };
            let request = built(Self::request::<K>(scope.namespace.as_deref()).list(&params))?;
            let text = bounded(self.client.request_text(request)).await?;
            let unreadable = |error: serde_json::Error| ClusterError::Unreadable(error.to_string());
            let page: Page<'_> = serde_json::from_str(&text).map_err(unreadable)?;
            for object in page.items {
                each(unread::read_text(object).map_err(unreadable)?);
            }
            // All pages are of one resourceVersion; a page that came too late is a 410.
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => next = Some(token),
                None => return Ok(page.metadata.resource_version.unwrap_or_default()),
            }
        }
        Err(ClusterError::Unreadable(format!("more than {PAGES_MAX} pages of {PAGE}")))
    }

    async fn watch<K: Object>(
        &self,
        scope: &Scope,
        resource_version: &str,
    ) -> Result<Watch<K>, ClusterError> {
        let params = WatchParams {
            field_selector: scope.fields.clone(),
            timeout: Some(WATCH_TIMEOUT_S),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = Self::request::<K>(scope.namespace.as_deref());
        let request = built(request.watch(&params, resource_version))?;
        let events = bounded(self.client.request_events::<Value>(request)).await?;
        let limit = Duration::from_secs(u64::from(WATCH_TIMEOUT_S)) + WATCH_SLACK;
        let changes = events.take_until(tokio::time::sleep(limit)).map(|event| match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                Ok(Change::Applied(unread::read(object)))
            }
            Ok(WatchEvent::Deleted(object)) => Ok(Change::Deleted(unread::read(object))),
            Ok(WatchEvent::Bookmark(mark)) => Ok(Change::Bookmark(mark.metadata.resource_version)),
            Ok(WatchEvent::Error(status)) => Err(classify_status(&status)),
            Err(error) => Err(classify(error)),
        });
        Ok(changes.boxed_local())
    }

    async fn get<K: Object>(&self, at: At<'_>) -> Result<Option<K>, ClusterError> {
        let request = Self::request::<K>(at.namespace).get(at.name, &GetParams::default());
        match bounded(self.client.request(built(request)?)).await {
            Ok(object) => Ok(Some(object)),
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let request = Self::request::<K>(object.meta().namespace.as_deref());
        let request = built(request.create(&PostParams::default(), encode(object)?))?;
        bounded(self.client.request(request)).await
    }

    async fn replace<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let request = Self::request::<K>(object.meta().namespace.as_deref());
        let request = built(request.replace(&name, &PostParams::default(), encode(object)?))?;
        bounded(self.client.request(request)).await
    }

    async fn replace_status<K: Object>(&self, object: &K) -> Result<K, ClusterError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let request = Self::request::<K>(object.meta().namespace.as_deref());
        let body = encode(object)?;
        let params = PostParams::default();
        let request = built(request.replace_subresource("status", &name, &params, body))?;
        bounded(self.client.request(request)).await
    }

    async fn patch<K: Object>(
        &self,
        at: At<'_>,
        patch: &json_patch::Patch,
    ) -> Result<K, ClusterError> {
        let patch = Patch::<()>::Json(patch.clone());
        let request =
            Self::request::<K>(at.namespace).patch(at.name, &PatchParams::default(), &patch);
        bounded(self.client.request(built(request)?)).await
    }

    async fn merge_status<K: Object>(
        &self,
        at: At<'_>,
        patch: &serde_json::Value,
    ) -> Result<K, ClusterError> {
        let request = Self::request::<K>(at.namespace).patch_subresource(
            "status",
            at.name,
            &PatchParams::default(),
            &Patch::Merge(patch),
        );
        bounded(self.client.request(built(request)?)).await
    }

    async fn delete<K: Object>(&self, at: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let params = delete_params(how);
        let request = built(Self::request::<K>(at.namespace).delete(at.name, &params))?;
        match bounded(self.client.request_status::<Value>(request)).await {
            Ok(_) => Ok(true),
            Err(ClusterError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn evict(&self, pod: At<'_>, how: &DeleteHow) -> Result<bool, ClusterError> {
        let eviction = serde_json::json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": pod.name, "namespace": pod.namespace },
            "deleteOptions": delete_params(how),
        });
        let request = Self::request::<Pod>(pod.namespace).create_subresource(
            "eviction",
            pod.name,
            &PostParams::default(),
            eviction.to_string().into_bytes(),
        );
        match bounded(self.once.request::<Value>(built(request)?)).await {
            Ok(_) => Ok(true),
            Err(ClusterError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn server_time(&self) -> Result<Time, ClusterError> {
        let request = http::Request::get("/version")
            .body(Body::empty())
            .map_err(|error| ClusterError::Invalid(error.to_string()))?;
        let response = bounded(self.client.send(request)).await?;
        let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
        date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
            .and_then(|date| u64::try_from(date.timestamp().as_millisecond()).ok())
            .map(Time)
            .ok_or_else(|| ClusterError::Unreadable("the answer carries no Date".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_may_be_null_and_what_has_no_items_is_no_list() {
        let count = |text: &str| serde_json::from_str(text).map(|page: Page<'_>| page.items.len());
        for (text, items) in [
            (r#"{"kind": "NodeList", "metadata": {}, "items": [{"a": 1}, null]}"#, 2),
            (r#"{"metadata": {"resourceVersion": "7"}, "items": []}"#, 0),
            (r#"{"metadata": {}, "items": null}"#, 0),
        ] {
            assert_eq!(count(text).unwrap(), items, "{text}");
        }
        for text in ["{}", r#"{"kind": "Status", "metadata": {}}"#] {
            let error = count(text).unwrap_err().to_string();
            assert!(error.contains("missing field `items`"), "{text}: {error}");
        }
    }
}
