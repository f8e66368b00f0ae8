//! A full record goes into a NodeFence and comes back whole.

use node_remedy_api::nodefence::{NodeFence, NodeFenceSpec, NodeFenceStatus};
use serde_json::json;

#[test]
fn a_full_status_survives_the_way_through_json() {
    let status = json!({
        "node": "w1", "step": "Power-Management", "status": "Running", "phase": "Releasing",
        "enteredAt": "2026-11-21T03:00:01.250Z", "openedAt": "2026-11-21T03:00:00.001Z",
        "attempt": 2, "phaseFirstOperation": 1, "firstReleasedAt": "2026-11-21T03:00:00.911Z",
        "partlyReleasedAt": "2026-11-21T03:00:00.910Z",
        "handedOverAt": "2026-11-21T03:00:00.912Z", "retries": 1, "restarts": 0,
        "remedyStep": 1,
        "jobs": ["w1-1-job-1"],
        "jobRuns": [{
            "number": 1, "name": "w1-1-job-1", "remedyStep": 0, "attempt": 1,
            "intendedAt": "2026-11-21T03:00:00.002Z", "seenAt": "2026-11-21T03:00:00.003Z",
            "pod": "w1-1-job-1-x",
            "end": {"at": "2026-11-21T03:00:00.004Z", "outcome": "Failed", "detail": "no such disk"},
        }], "epoch": 7, "process": "pod-uid/abcd",
        "livenessAtOpen": {"bootID": "b1", "leaseRenewed": "2026-11-21T02:59:30.123Z",
                        "reported": "2026-11-21T02:59:31.000Z"},
        "baseline": {"at": "2026-11-21T03:00:00.500Z", "liveness": {"bootID": "b1"}},
        "operations": [{
            "id": 1, "method": 1, "name": "power", "plug": "", "device": "ipmi/192.0.2.11",
            "action": "off", "attempt": 1, "epoch": 7, "process": "pod-uid/abcd",
            "intendedAt": "2026-11-21T03:00:00.600Z", "stateBefore": "on",
            "end": {"kind": "succeeded", "state": "off",
                    "identity": [{"name": "system-uuid", "value": "a1"}]},
            "endedAt": "2026-11-21T03:00:00.700Z", "digest": "sha256:00"
        }, {
            "id": 2, "method": 1, "plug": "", "device": "", "action": "status", "attempt": 2,
            "epoch": 7, "process": "pod-uid/abcd", "intendedAt": "2026-11-21T03:00:00.800Z",
            "stateBefore": "unknown",
            "end": {"kind": "failed", "failureKind": "unauthenticated", "detail": "wrong password"}
        }],
        "nextOperation": 3, "foundOff": [2], "identified": [1], "failed": [0],
        "proof": {"grade": "power-off-verified", "at": "2026-11-21T03:00:00.900Z",
                  "by": {"reads": [2]}, "liveness": {"bootID": "b1"},
                  "voidedAt": "2026-11-21T03:00:00.950Z"},
        "released": {
            "at": "2026-11-21T03:00:00.910Z",
            "pods": [{"uid": "u1", "namespace": "default", "name": "db-0"}],
            "attachments": [{"uid": "u2", "name": "csi-1", "volume": "pv-1"}],
            "everything": true, "left": 2, "progressAt": "2026-11-21T03:00:00.920Z",
            "sentAt": "2026-11-21T03:00:00.930Z", "sent": 1,
            "endedAt": "2026-11-21T03:00:00.940Z"
        },
        "marks": {"quarantine": true, "cordon": false, "outOfService": true},
        "slotHeld": true,
        "goal": {"kind": "park", "park": {"reason": "WrongMachine", "expected": "a", "found": "b"}},
        "resume": "PoweringOff",
        "gateClosedAt": "2026-11-21T03:00:00.960Z",
        "dumpHeldAt": "2026-11-21T03:00:00.965Z",
        "unreachableAt": "2026-11-21T03:00:00.970Z", "unreachable": 1,
        "parked": {"reason": "OffNotVerified", "tries": 3, "at": "2026-11-21T03:00:00.980Z",
                   "poweredOffByUs": [1], "plugs": ["ipmi/192.0.2.11"],
                   "sentence": "asked 3 times", "next": "check the BMC"},
        "request": {"kind": "confirmOff", "by": "ann", "bootID": "b1"},
        "conditions": [{"type": "Parked", "status": "True", "reason": "OffNotVerified",
                        "message": "", "lastTransitionTime": "2026-11-21T03:00:00.990Z"}],
        "history": [{"at": "2026-11-21T03:00:00.990Z", "phase": "Parked", "why": "asked"}],
    });
    let typed: NodeFenceStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), status);
}

#[test]
fn a_spec_with_its_snapshot_survives_too() {
    let spec = json!({
        "node": {"name": "w1", "uid": "n1", "providerID": "", "systemUUID": "4c4c", "bootID": "b1"},
        "trigger": {"conditionType": "Ready", "status": "Unknown",
                    "since": "2026-11-21T03:00:00.990Z", "period": "5s"},
        "remedy": "fence",
        "plan": {
            "sources": ["FenceConfiguration/ipmi"],
            "methods": [{
                "name": "power", "plugin": "ipmi", "device": "ipmi/192.0.2.11",
                "parameters": {"address": "192.0.2.11"},
                "credentials": {"default": {"secret": {
                    "name": "bmc-credentials", "identityKey": "username",
                    "secretKey": "password"}}},
                "mustSuccess": true, "soleFeed": true,
                "storageDrivers": ["csi.example.com"], "resetOnly": true, "witness": 0,
                "facts": {"digest": "sha256:1", "kind": "power", "feed": "whole",
                          "cutsApiServer": true, "lateEffect": "30s",
                          "binding": "reported",
                          "expected": [{"name": "system-uuid", "value": "4c4c"}]}
            }],
            "powerManagement": [{"name": "power", "run": "only-one", "neededFor": "nothing",
                                 "methods": [0]}],
            "grants": [{"plugin": "ipmi", "cidrs": ["192.0.2.0/24"], "ports": [623]}]
        },
        "policy": serde_json::to_value(node_remedy_api::policy::IncidentPolicy::default()).unwrap(),
        "gate": {"maxUnhealthyPercent": 30, "maxUnhealthyCount": 5, "maxSilentAtOnce": 3,
                 "maxInFlight": 1,
                 "coolDown": "10m",
                 "cordonedByOthers": "ignore",
                 "pauseWindows": [{"cron": "0 8 * * 1-5", "duration": "2h",
                                   "timeZone": "Europe/Berlin", "reason": "trading"}]},
    });
    let typed: NodeFenceSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), spec);
    assert_eq!(NodeFence::new("w1-1", typed).spec.node.name, "w1");
}
