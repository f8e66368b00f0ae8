//! Turns at a device, and devices at which a plugin breaks down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use node_remedy_act::calls::*;
use node_remedy_api::plan::{Allows, Budget, Grant};
use node_remedy_decide::{Action, End, FailureKind};
use node_remedy_runtime::cluster::Cluster;
use node_remedy_runtime::leader_election::LeaseGate;
use node_remedy_sandbox as sandbox;
use node_remedy_sandbox::net::{Fabric, HttpPeer, HttpReply, MemoryNet};
use node_remedy_sandbox::{
    Cancel, ExchangeRecord, Executor, NoNames, OpenGate, Sandbox, Seams, SeededEntropy,
};
use node_remedy_simulate::testing::{Bench, in_quiet_world};
use node_remedy_store::store::Plugins;
use serde_json::json;
use tokio::time::Instant;

const TAKES: Duration = Duration::from_millis(500);

/// Devices that take half a second for each answer, and when each was asked.
struct Slow {
    since: Instant,
    asked: Mutex<Vec<(String, u128)>>,
}

impl Fabric for Slow {
    fn datagram(&self, _: SocketAddr, _: u16, _: &[u8]) -> Vec<(Duration, Vec<u8>)> {
        Vec::new()
    }

    fn http(&self, to: &HttpPeer, _: &Request<Vec<u8>>) -> Option<HttpReply> {
        let at = self.since.elapsed().as_millis();
        self.asked.lock().unwrap().push((to.host.clone(), at));
        Some(HttpReply { after: TAKES, result: Ok(Response::new(b"on".to_vec())) })
    }
}

fn at(device: &str) -> CallRequest {
    let method = json!({
        "name": "power", "plugin": "webhook", "device": format!("webhook/{device}"),
        "parameters": {
            "address": device, "scheme": "http", "authentication": "none", "on-words": "on",
            "off-words": "off", "status-path": "/", "on-path": "/on", "off-path": "/off",
        },
    });
    let cidrs = vec!["10.9.0.0/16".to_owned()];
    let allows = Allows { cidrs, ports: vec![80, 443, 8080], ..Allows::default() };
    let grants = [Grant { plugin: "webhook".to_owned(), allows }];
    let deadline = Duration::from_secs(10);
    CallRequest { deadline, ..CallRequest::read(&serde_json::from_value(method).unwrap(), &grants) }
}

/// The same where the plugin breaks down: its first request is one too many.
fn broken_at(device: &str) -> CallRequest {
    let mut asked = at(device);
    asked.grants[0].allows.budget = Some(Budget { http_requests: Some(0), ..Budget::default() });
    asked
}

fn calls(bench: &Bench, slow: &Arc<Slow>) -> Calls<impl Cluster + use<>> {
    Calls {
        cluster: bench.client("calls"),
        namespace: "node-remedy".to_owned(),
        plugins: Plugins::new(Sandbox::new().unwrap()),
        executor: Executor::Inline,
        seams: Seams {
            net: Arc::new(MemoryNet::new(slow.clone())),
            clock: bench.clock.call_clock(),
            entropy: Arc::new(SeededEntropy::new(1)),
            gate: Arc::new(OpenGate),
            sessions: Arc::default(),
        },
        gate: RecordedGate::new(LeaseGate::new(bench.clock.boot_clock())),
        names: Arc::new(NoNames),
        guarded: Vec::new(),
        exchange_record: ExchangeRecord::Off,
        clock: bench.clock.clone(),
        device_mutexes: DeviceMutexes::default(),
        breaker: Breaker::default(),
        last_errors: LastErrors::default(),
    }
}

#[test]
fn a_device_at_which_a_plugin_broke_down_thrice_is_called_for_an_on_alone() {
    in_quiet_world(|bench| async move {
        let slow = Arc::new(Slow { since: Instant::now(), asked: Mutex::default() });
        let calls = calls(&bench, &slow);
        let call = async |asked: &CallRequest| calls.call(asked, Cancel::new()).await;
        let broken = broken_at("10.9.0.7");
        for _ in 0..3 {
            let called = call(&broken).await;
            let report = called.report.unwrap();
            assert_eq!(report.ended, sandbox::Ended::Cut, "{report:?}");
        }
        // Nothing is wrong with this one but what went before.
        let sound = at("10.9.0.7");
        let refused = call(&sound).await;
        assert!(refused.report.is_none(), "{refused:?}");
        let says = "broke down 3 times in a row at webhook/10.9.0.7";
        assert!(refused.detail.contains(says), "{refused:?}");
        let End::NotAttempted(failure) = &refused.end else { panic!("{refused:?}") };
        assert_eq!(failure.kind, FailureKind::Busy);
        let probed = calls.probe(&sound.method, &sound.grants).await;
        assert!(
            matches!(&probed, Some(End::NotAttempted(failure)) if failure.kind == FailureKind::Busy),
            "{probed:?}"
        );
        assert!(slow.asked.lock().unwrap().is_empty(), "the device was asked");

        let elsewhere = call(&at("10.9.0.8")).await;
        assert!(matches!(elsewhere.end, End::Succeeded { .. }), "{elsewhere:?}");
        let on = call(&CallRequest { action: Action::On, ..sound }).await;
        assert!(matches!(on.end, End::Succeeded { .. }), "{on:?}");
        let asked = slow.asked.lock().unwrap();
        assert!(asked.iter().any(|(host, _)| host == "10.9.0.7"), "{asked:?}");
    });
}

#[test]
fn calls_of_one_device_take_turns_and_those_of_another_do_not_wait() {
    in_quiet_world(|bench| async move {
        let slow = Arc::new(Slow { since: Instant::now(), asked: Mutex::default() });
        let calls = calls(&bench, &slow);
        // Another port of it is the same device, whatever the plan calls it.
        let (one, same, other) = (at("10.9.0.7"), at("10.9.0.7:8080"), at("10.9.0.8"));
        let call = |asked| calls.call(asked, Cancel::new());
        let probe = async {
            // While the first one speaks with it.
            tokio::time::sleep(TAKES / 2).await;
            calls.probe(&same.method, &same.grants).await
        };
        let (first, second, third, apart, probed) =
            tokio::join!(call(&one), call(&same), call(&one), call(&other), probe);
        for called in [first, second, third, apart] {
            assert!(matches!(called.end, End::Succeeded { .. }), "{called:?}");
        }
        assert!(probed.is_none(), "a probe waits for nobody");
        let asked = slow.asked.lock().unwrap();
        let of = |device: &str| {
            let at = asked.iter().filter(|(host, _)| host == device);
            at.map(|(_, at)| *at).collect::<Vec<_>>()
        };
        assert_eq!(of("10.9.0.7"), [0, 500, 1_000]);
        assert_eq!(of("10.9.0.8"), [0]);
    });
}
