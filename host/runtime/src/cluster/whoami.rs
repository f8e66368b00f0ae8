//! Who this process is to the API server.

use anyhow::Context as _;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;

use crate::cluster::Cluster as _;
use crate::cluster::kube::KubeCluster;

/// Who we are to the API server: what its admission policy holds `by` against.
pub async fn user(cluster: &KubeCluster) -> anyhow::Result<String> {
    let review = cluster.create(&SelfSubjectReview::default()).await;
    let review = review.context("failed to ask the API server who you are")?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    user.context("the API server does not say who you are")
}
