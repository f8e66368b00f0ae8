//! What `verify-wiring` writes: the pause while a plug is tried, and the record of what was found.

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use node_remedy_api::plan::Method;
use node_remedy_api::remedypause::{RemedyPause, RemedyPauseSpec};
use node_remedy_api::time::Moment;
use node_remedy_config::wiring::{Tried, Wiring, config_map};
use node_remedy_runtime::cluster::{At, Cluster, ClusterError, DeleteHow};

/// The RemedyPause of a trial. There is one at a time: its name is the lock.
pub(super) const PAUSE: &str = "verify-wiring";
/// A record is written again so often when somebody else writes it in between.
const TRIES: usize = 5;

/// Nothing is cut anywhere while this stands. A node that falls silent by a plug that is not its own must
/// not be fenced by a table of wiring that was just found wrong.
pub(super) async fn pause<C: Cluster>(
    cluster: &C,
    reason: String,
    by: &str,
    until: Moment,
) -> anyhow::Result<RemedyPause> {
    let spec =
        RemedyPauseSpec { node_selector: None, reason, by: by.to_owned(), until: Some(until) };
    match cluster.create(&RemedyPause::new(PAUSE, spec)).await {
        Err(ClusterError::AlreadyExists(_)) => bail!(
            "another trial goes on, or was killed; see: node-remedy status. If it was killed, look \
             whether its plug is on, then: node-remedy resume {PAUSE}"
        ),
        made => made.context("failed to pause; nothing was switched"),
    }
}

/// Lets the pause of a trial stand until a person ends it.
pub(super) async fn keep_on<C: Cluster>(
    cluster: &C,
    pause: &RemedyPause,
) -> Result<(), ClusterError> {
    let spec = RemedyPauseSpec { until: None, ..pause.spec.clone() };
    cluster.replace(&RemedyPause { spec, ..pause.clone() }).await.map(|_| ())
}

/// Ends the pause of a trial.
pub(super) async fn resume<C: Cluster>(
    cluster: &C,
    pause: &RemedyPause,
) -> Result<(), ClusterError> {
    let how = DeleteHow { uid: pause.uid(), ..DeleteHow::default() };
    match cluster.delete::<RemedyPause>(At::cluster(PAUSE), &how).await {
        Ok(_) | Err(ClusterError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes that a plug is this node's.
pub(super) async fn record<C: Cluster>(
    cluster: &C,
    namespace: &str,
    node: &str,
    tried: &Tried,
) -> anyhow::Result<()> {
    change(cluster, namespace, node, |before| before.with(tried.clone())).await
}

/// Takes back what was ever written of a plug: it is tried anew.
pub(super) async fn withdraw<C: Cluster>(
    cluster: &C,
    namespace: &str,
    node: &str,
    method: &Method,
) -> anyhow::Result<()> {
    change(cluster, namespace, node, |before| before.without(&method.device, &method.plug)).await
}

async fn change<C: Cluster>(
    cluster: &C,
    namespace: &str,
    node: &str,
    change: impl Fn(Wiring) -> Wiring,
) -> anyhow::Result<()> {
    let name = config_map(node);
    for tries_left in (0..TRIES).rev() {
        let found = cluster.get::<ConfigMap>(At::within(namespace, &name)).await;
        let found = found.with_context(|| format!("failed to read ConfigMap {name}"))?;
        let data = found.as_ref().and_then(|one| one.data.clone()).unwrap_or_default();
        // What cannot be read verifies nothing, and is replaced.
        let before = Wiring::read(&data).unwrap_or_default();
        let after = change(before.clone());
        if after == before {
            return Ok(());
        }
        let data = Some(after.data());
        let written = if let Some(object) = found {
            cluster.replace(&ConfigMap { data, ..object }).await
        } else {
            let metadata = ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            };
            cluster.create(&ConfigMap { metadata, data, ..ConfigMap::default() }).await
        };
        match written {
            Ok(_) => return Ok(()),
            Err(ClusterError::Conflict(_) | ClusterError::AlreadyExists(_)) if tries_left > 0 => {}
            Err(error) => {
                return Err(error).with_context(|| format!("failed to write ConfigMap {name}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use node_remedy_api::nodefence::FencedNode;
    use node_remedy_api::plan::NodePlan;

    use super::*;
    use node_remedy_simulate::testing::in_quiet_world;

    fn method(plug: &str) -> Method {
        let method = serde_json::json!({
            "name": "outlet", "plugin": "apc-pdu", "device": "pdu", "plug": plug,
        });
        serde_json::from_value(method).unwrap()
    }

    #[test]
    fn what_was_found_is_kept_plug_by_plug_until_it_is_withdrawn() {
        in_quiet_world(async |bench| {
            let cluster = bench.client("alice");
            let kept = async || {
                let at = At::within("ns", "wiring-node-a");
                let object = cluster.get::<ConfigMap>(at).await.unwrap();
                object.map(|one| Wiring::read(&one.data.unwrap()).unwrap())
            };
            withdraw(&cluster, "ns", "node-a", &method("1")).await.unwrap();
            assert_eq!(kept().await, None, "nothing to withdraw, nothing written");
            let node = FencedNode { uid: "uid-a".to_owned(), ..FencedNode::default() };
            for plug in ["1", "2"] {
                let tried = Tried::now(&node, &method(plug), &[], Moment::from_ms(1), "alice");
                record(&cluster, "ns", "node-a", &tried).await.unwrap();
            }
            withdraw(&cluster, "ns", "node-a", &method("1")).await.unwrap();
            let kept = kept().await.unwrap();
            assert_eq!(kept.of(&node, &method("1"), &NodePlan::default()), None);
            assert!(kept.of(&node, &method("2"), &NodePlan::default()).is_some());
        });
    }

    #[test]
    fn there_is_one_trial_at_a_time() {
        in_quiet_world(async |bench| {
            let cluster = bench.client("alice");
            let until = Moment::from_ms(u64::MAX >> 20);
            let made = pause(&cluster, "w1".to_owned(), "alice", until).await.unwrap();
            let again = pause(&cluster, "w2".to_owned(), "bob", until).await.unwrap_err();
            assert!(again.to_string().contains("another trial goes on"), "{again}");
            resume(&cluster, &made).await.unwrap();
            pause(&cluster, "w2".to_owned(), "bob", until).await.unwrap();
        });
    }
}
