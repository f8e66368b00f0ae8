//! Tests of `node_remedy_incident::finalizer` in the model cluster or a simulated run.

use std::rc::Rc;

use kube::ResourceExt as _;
use node_remedy_api::nodefence::NodeFence;
use node_remedy_incident::finalizer::*;
use node_remedy_model_cluster::interceptor::Open;
use node_remedy_runtime::cluster::{At, Cluster, DeleteHow};
use node_remedy_simulate::testing::{example, in_quiet_world, play_behind};

/// A finalizer of somebody else's stays theirs, and an object that is gone is let go.
#[test] // promise: P7
fn only_our_finalizer_is_taken_off() {
    let played = play_behind(&example("lost-node.yaml", |text| text), &Rc::new(Open));
    let (kept, ..) = played.collected.incidents.into_values().next().unwrap();
    in_quiet_world(|bench| async move {
        let cluster = bench.client("a");
        let mut nodefence = NodeFence::new("n-1", kept.spec);
        let finalizers = vec!["example.com/theirs".to_owned(), FINALIZER.to_owned()];
        nodefence.metadata.finalizers = Some(finalizers);
        let created = cluster.create(&nodefence).await.unwrap();
        let_go(&cluster, &created).await.unwrap();
        let found = cluster.get::<NodeFence>(At::cluster("n-1")).await.unwrap().unwrap();
        assert_eq!(found.finalizers(), ["example.com/theirs"]);
        let how = DeleteHow { uid: found.uid(), ..DeleteHow::default() };
        cluster.delete::<NodeFence>(At::cluster("n-1"), &how).await.unwrap();
        let_go(&cluster, &created).await.unwrap();
    });
}
