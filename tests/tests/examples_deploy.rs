//! The Deployment as it ships says what the documents promise of it.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use node_remedy_tests::process::repository;
use serde_json::json;

fn deployment() -> Result<Deployment> {
    let text = std::fs::read_to_string(repository().join("deploy/deployment.yaml"))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// One lost machine takes one replica, and a cluster whose workers are all gone keeps both.
#[test]
fn replicas_stand_on_different_machines_and_may_stand_on_control_planes() -> Result<()> {
    let spec = deployment()?.spec.context("no spec")?;
    assert!(spec.replicas >= Some(2), "{:?}", spec.replicas);
    let pod = spec.template.spec.context("no pod")?;
    let affinity = pod.affinity.and_then(|affinity| affinity.pod_anti_affinity);
    let terms = affinity.and_then(|one| one.required_during_scheduling_ignored_during_execution);
    let own = spec.template.metadata.and_then(|metadata| metadata.labels);
    let apart = terms.iter().flatten().any(|term| {
        let selected = term.label_selector.as_ref().and_then(|one| one.match_labels.as_ref());
        term.topology_key == "kubernetes.io/hostname" && selected == own.as_ref()
    });
    assert!(apart, "{terms:?}");
    let tolerated = pod.tolerations.unwrap_or_default();
    let control_plane = Some("node-role.kubernetes.io/control-plane");
    assert!(tolerated.iter().any(|one| one.key.as_deref() == control_plane), "{tolerated:?}");
    Ok(())
}

/// Whoever reaches a port of the controller can hold it open.
#[test]
fn no_pod_is_let_in_but_those_that_scrape() -> Result<()> {
    let text = std::fs::read_to_string(repository().join("deploy/networkpolicy.yaml"))?;
    let policies: Vec<NetworkPolicy> = serde_saphyr::from_multiple(&text)?;
    let specs: Vec<_> = policies.into_iter().filter_map(|policy| policy.spec).collect();
    let closed = Some(vec!["Ingress".to_owned()]);
    assert!(specs.iter().all(|spec| spec.policy_types == closed), "{specs:?}");
    // One of them is for every pod of the namespace and opens nothing.
    let [one, all] = specs.as_slice() else { panic!("{specs:?}") };
    assert_eq!(serde_json::to_value(&all.pod_selector)?, json!({}));
    assert_eq!(all.ingress, None);
    let rules = one.ingress.as_deref().unwrap_or_default();
    let [rule] = rules else { panic!("{rules:?}") };
    let ports: Vec<_> = rule.ports.iter().flatten().map(|port| port.port.clone()).collect();
    assert_eq!(ports, [Some(IntOrString::String("admin".to_owned()))]);
    let scrapers =
        json!([{"namespaceSelector": {"matchLabels": {"node-remedy.io/metrics": "scraper"}}}]);
    assert_eq!(serde_json::to_value(&rule.from)?, scrapers);

    let spec = deployment()?.spec.context("no spec")?.template;
    let own = spec.metadata.and_then(|metadata| metadata.labels);
    assert_eq!(serde_json::to_value(&one.pod_selector)?, json!({"matchLabels": own}));
    let ports = spec.spec.into_iter().flat_map(|pod| pod.containers).filter_map(|one| one.ports);
    assert!(ports.flatten().any(|port| port.name.as_deref() == Some("admin")));
    let kustomization = std::fs::read_to_string(repository().join("deploy/kustomization.yaml"))?;
    assert!(kustomization.contains("- networkpolicy.yaml"), "{kustomization}");
    Ok(())
}

/// Whoever may scrape cannot hold up a probe.
#[test]
fn probes_have_a_port_that_no_pod_is_let_in_at() -> Result<()> {
    let pod = deployment()?.spec.context("no spec")?.template.spec.context("no pod")?;
    let container = pod.containers.first().context("no container")?;
    for probe in [&container.liveness_probe, &container.readiness_probe] {
        let asked = probe.as_ref().and_then(|probe| probe.http_get.as_ref()).context("no probe")?;
        assert_eq!(asked.port, IntOrString::String("probes".to_owned()));
    }
    let ports = container.ports.iter().flatten();
    let probes = ports.clone().find(|port| port.name.as_deref() == Some("probes"));
    let option = format!(":{}", probes.context("no port for probes")?.container_port);
    let arguments = container.args.iter().flatten();
    let mut own = arguments.filter(|one| one.starts_with("--probe-address="));
    assert!(own.any(|one| one.ends_with(&option)), "{:?}", container.args);
    Ok(())
}

/// It needs nothing of the machine that it stands on.
#[test]
fn the_pod_is_one_that_the_restricted_standard_admits() -> Result<()> {
    let pod = deployment()?.spec.context("no spec")?.template.spec.context("no pod")?;
    assert_eq!((pod.host_network, pod.host_pid, pod.host_ipc), (None, None, None));
    let security = pod.security_context.context("no security context")?;
    assert_eq!(security.run_as_non_root, Some(true));
    let seccomp = security.seccomp_profile.map(|profile| profile.type_);
    assert_eq!(seccomp.as_deref(), Some("RuntimeDefault"));
    for container in pod.containers {
        let own = container.security_context.context("no security context")?;
        assert_eq!(own.allow_privilege_escalation, Some(false));
        assert_eq!(own.read_only_root_filesystem, Some(true));
        let capabilities = own.capabilities.context("no capabilities")?;
        assert_eq!(capabilities.drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(capabilities.add, None);
    }
    Ok(())
}
