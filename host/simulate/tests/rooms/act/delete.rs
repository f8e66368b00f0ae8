//! Tests of `node_remedy_act::delete` in the model cluster or a simulated run.

use k8s_openapi::api::core::v1::Pod;
use node_remedy_act::delete::*;
use node_remedy_runtime::cluster::{At, Cluster};
use node_remedy_simulate::testing::in_quiet_world;
use serde_json::json;

/// Its Job would take it for one that failed, and run it again.
#[test]
fn a_pod_that_has_ended_keeps_its_word() {
    in_quiet_world(|bench| async move {
        let cluster = bench.client("a");
        for (phase, after) in
            [("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Running", "Failed")]
        {
            let name = phase.to_lowercase();
            let object = json!({
                "metadata": {
                    "name": name, "namespace": "default", "finalizers": ["example.com/kept"],
                },
                "spec": {"nodeName": "node-a", "containers": []},
            });
            let pod: Pod = serde_json::from_value(object).unwrap();
            let created = cluster.create(&pod).await.unwrap();
            let ended = json!({"status": {"phase": phase}});
            let at = At::within("default", &name);
            cluster.merge_status::<Pod>(at, &ended).await.unwrap();
            let uid = created.metadata.uid.unwrap();
            let (namespace, phase) = ("default".to_owned(), phase.to_owned());
            let pod = PodId { uid, namespace, name: name.clone(), phase };
            delete_pod(&cluster, &pod, PodDelete::Force).await.unwrap();
            let found = cluster.get::<Pod>(At::within("default", &name)).await.unwrap().unwrap();
            assert!(found.metadata.deletion_timestamp.is_some(), "{name}");
            assert_eq!(found.status.unwrap().phase.as_deref(), Some(after), "{name}");
        }
    });
}
