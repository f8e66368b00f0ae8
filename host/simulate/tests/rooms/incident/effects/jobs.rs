//! What a Job keeps of the template that it is made from.

use node_remedy_act::job;
use node_remedy_api::nodefence::JobTemplate;
use node_remedy_api::time::Span;
use node_remedy_simulate as simulate;
use node_remedy_simulate::Part;
use node_remedy_simulate::testing::example;
use serde_json::json;

#[test]
fn a_job_runs_as_the_account_that_its_template_names() {
    let run = example("lost-node.yaml", |text| text);
    let played = simulate::play(&run, Part::With).unwrap();
    let (nodefence, ..) = &played.collected.incidents["node-a-1"];
    for named in [Some("ansible"), None] {
        let pod = json!({"spec": {"serviceAccountName": named, "containers": []}});
        let template = JobTemplate {
            pod_template: pod.to_string(),
            deadline: Span::from_minutes(30),
            backoff_limit: 0,
        };
        let now = "2026-11-21T03:01:00Z".parse().unwrap();
        let built = job::build(nodefence, "repair", &template, 1, "ours", now).unwrap();
        let pod = built.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.service_account_name.as_deref(), named);
    }
}
