//! Reading what happens to the cluster: one entry, one kind of misfortune, known nodes only.

use std::net::IpAddr;
use std::time::Duration;

use node_remedy_devices::bmc::Faults;
use node_remedy_devices::snmp;
use serde_saphyr::{Location, Spanned};

use super::raw::{
    RawApiFault, RawClockFault, RawDeviceFault, RawDump, RawEdit, RawFault, RawNodeCondition,
    RawOperatorCommand, RawOutage, RawServerClock, Text,
};
use crate::api::{Key, Kind};
use crate::facts::Power;
use crate::rng::Rng;
use crate::scenario::names::Cast;
use crate::scenario::reader::Reader;
use crate::scenario::spec::{
    ApiFault, ApiFaultKind, ClockChange, ClockFault, ControllerEvent, DumpSpec, Event, Fault,
    OperatorCommand, Outage, Trigger,
};
use crate::time::millis;

/// No clock of a machine that runs is wronger than that, in thousandths.
const DRIFT_MAX: i32 = 100;

/// A field of an entry, what it says, and the event that it makes of a node.
type Field<'a, T> = (&'static str, &'a Option<T>, fn(String) -> Event);

/// The same for a pod, by namespace and name.
type PodField<'a> = (&'static str, &'a Option<Text>, fn(String, String) -> Event);

/// The same for what happens to a process of node-remedy.
type OutageField<'a> = (&'static str, &'a Option<RawOutage>, fn(Outage) -> ControllerEvent);

/// An entry as events; a rack is one event for each of its nodes.
pub(super) fn read(
    reader: &mut Reader,
    raw: &RawFault,
    place: Location,
    cast: &Cast<'_>,
    mut rng: Rng,
) -> Vec<Fault> {
    let nodes = cast.nodes;
    let (at, when) = moment(reader, raw, place);
    let spread =
        raw.within.as_ref().map_or(Duration::ZERO, |w| reader.duration("faults.within", w));
    let mut events = Vec::new();
    let mut kinds = 0_usize;
    let of_one_node: [Field<'_, Text>; 10] = [
        ("kubeletStops", &raw.kubelet_stops, Event::KubeletStops),
        ("networkLost", &raw.network_lost, Event::NetworkLost),
        ("machineHangs", &raw.machine_hangs, Event::MachineHangs),
        ("powerOffByHand", &raw.power_off_by_hand, Event::PowerOffByHand),
        ("powerOnByHand", &raw.power_on_by_hand, Event::PowerOnByHand),
        ("nodeComesBack", &raw.node_comes_back, Event::NodeComesBack),
        ("deleteNode", &raw.delete_node, Event::DeleteNode),
        ("cordon", &raw.cordon, Event::Cordon),
        ("taintOutOfService", &raw.taint_out_of_service, Event::TaintOutOfService),
        ("deleteAttachments", &raw.delete_attachments, Event::DeleteAttachments),
    ];
    for (field, said, event) in of_one_node {
        let Some(said) = said else { continue };
        kinds += 1;
        if nodes.iter().any(|(node, _)| *node == said.value) {
            events.push(event(said.value.clone()));
        } else {
            no_such_node(reader, field, said);
        }
    }
    let of_racks: [Field<'_, Vec<Text>>; 2] = [
        ("rackSilent", &raw.rack_silent, Event::NetworkLost),
        ("rackComesBack", &raw.rack_comes_back, Event::NodeComesBack),
    ];
    for (field, racks, event) in of_racks {
        let Some(racks) = racks else { continue };
        kinds += 1;
        for said in racks {
            let of_rack = |(node, zone): &&(&str, Option<&str>)| {
                *node == said.value || *zone == Some(said.value.as_str())
            };
            let before = events.len();
            events.extend(nodes.iter().filter(of_rack).map(|(node, _)| event((*node).to_owned())));
            if events.len() == before {
                let found = &said.value;
                let what = format!(
                    "faults.{field}: found {found:?}, expected a node or a zone of this scenario"
                );
                reader.wrong(said.referenced, what);
            }
        }
    }
    if let Some(raw) = &raw.bmc_fault {
        kinds += 1;
        if !nodes.iter().any(|(node, _)| *node == raw.node.value) {
            no_such_node(reader, "bmcFault.node", &raw.node);
        }
        let (node, fault) = (raw.node.value.clone(), raw.fault.value.clone());
        if Faults::default().set(&fault, 1).is_err() {
            reader.no_such_fault("faults.bmcFault.fault", &fault, raw.fault.referenced);
        }
        events.push(Event::BmcFault { node, fault, value: raw.value.unwrap_or(1) });
    }
    if let Some(raw) = &raw.device_fault {
        kinds += 1;
        events.extend(device_fault(reader, raw, cast));
    }
    for (field, said, power) in [
        ("plugOffByHand", &raw.plug_off_by_hand, Power::Off),
        ("plugOnByHand", &raw.plug_on_by_hand, Power::On),
    ] {
        let Some(said) = said else { continue };
        kinds += 1;
        let plug = reader.plug(&format!("faults.{field}"), said, 0, cast.devices);
        events.extend(plug.map(|plug| Event::PlugByHand { plug, power }));
    }
    if let Some(raw) = &raw.cloud_fault {
        kinds += 1;
        events.push(reader.cloud_fault(raw, cast.instances));
    }
    if let Some(said) = &raw.instance_terminated {
        kinds += 1;
        reader.instance("instanceTerminated", said, cast.instances);
        events.push(Event::InstanceTerminated(said.value.clone()));
    }
    if let Some(raw) = &raw.kernel_dumps {
        kinds += 1;
        if !nodes.iter().any(|(node, _)| *node == raw.node.value) {
            no_such_node(reader, "kernelDumps.node", &raw.node);
        }
        events.extend(dump(reader, raw, cast));
    }
    let of_one_pod: [PodField<'_>; 3] = [
        ("forceDeletePod", &raw.force_delete_pod, |namespace, name| Event::ForceDeletePod {
            namespace,
            name,
        }),
        ("holdPod", &raw.hold_pod, |namespace, name| Event::HoldPod { namespace, name }),
        ("letPodGo", &raw.let_pod_go, |namespace, name| Event::LetPodGo { namespace, name }),
    ];
    for (field, said, event) in of_one_pod {
        let Some(said) = said else { continue };
        kinds += 1;
        if let Some((namespace, name)) = said.value.split_once('/') {
            events.push(event(namespace.to_owned(), name.to_owned()));
        } else {
            let found = &said.value;
            let what = format!("faults.{field}: found {found:?}, expected NAMESPACE/NAME");
            reader.wrong(said.referenced, what);
        }
    }
    let outages: [OutageField<'_>; 3] = [
        ("devicesLost", &raw.devices_lost, ControllerEvent::DevicesLost),
        ("controllerKilled", &raw.controller_killed, ControllerEvent::Killed),
        ("controllerPaused", &raw.controller_paused, ControllerEvent::Paused),
    ];
    for (field, said, event) in outages {
        let Some(said) = said else { continue };
        kinds += 1;
        events.push(Event::OfController(event(outage(reader, field, said, cast))));
    }
    if let Some(said) = &raw.api_fault {
        kinds += 1;
        let fault = api_fault(reader, said).map(ControllerEvent::ApiFault);
        events.extend(fault.map(Event::OfController));
    }
    if let Some(said) = &raw.clock_fault {
        kinds += 1;
        let fault = clock_fault(reader, said, cast).map(ControllerEvent::ClockFault);
        events.extend(fault.map(Event::OfController));
    }
    if let Some(said) = &raw.server_clock {
        kinds += 1;
        events.extend(server_clock(reader, said));
    }
    if let Some(said) = raw.etcd {
        kinds += 1;
        events.push(Event::Etcd(said));
    }
    for (field, said) in [("edit", &raw.edit), ("remove", &raw.remove)] {
        let Some(said) = said else { continue };
        kinds += 1;
        events.extend(edit(reader, field, said));
    }
    if let Some(said) = &raw.node_condition {
        kinds += 1;
        events.extend(condition(reader, said, cast));
    }
    if let Some(said) = &raw.node_event {
        kinds += 1;
        if !nodes.iter().any(|(node, _)| *node == said.node.value) {
            no_such_node(reader, "nodeEvent.node", &said.node);
        }
        let (node, reason) = (said.node.value.clone(), said.reason.clone());
        events.push(Event::NodeEvent { node, reason });
    }
    if let Some(said) = &raw.other_remedy {
        kinds += 1;
        if !nodes.iter().any(|(node, _)| *node == said.node.value) {
            no_such_node(reader, "otherRemedy.node", &said.node);
        }
        let lasts = reader.duration("faults.otherRemedy.lasts", &said.lasts);
        events.push(Event::OtherRemedy { node: said.node.value.clone(), lasts });
    }
    if let Some(raw) = &raw.operator_command {
        kinds += 1;
        events.extend(operator_command(reader, raw, cast));
    }
    if kinds != 1 {
        let what = format!("faults: found {kinds} things that happen, expected one an entry");
        reader.wrong(place, what);
    }
    events
        .into_iter()
        .map(|what| {
            let later = Duration::from_millis(rng.within(0, millis(spread)));
            Fault { at: at.saturating_add(later), when: when.clone(), what }
        })
        .collect()
}

/// A time of the timeline, or one after a fact.
fn moment(reader: &mut Reader, raw: &RawFault, place: Location) -> (Duration, Option<Trigger>) {
    match (&raw.at, &raw.when, &raw.after) {
        (Some(at), None, None) => (reader.duration("faults.at", at), None),
        (None, Some(when), after) => {
            let after = after.as_ref().map(|after| reader.duration("faults.after", after));
            let pattern = reader.pattern("faults.when", &when.fact, &when.fields);
            let time = when.time.as_ref().map_or(1, |said| said.value);
            if let Some(said) = when.time.as_ref().filter(|said| said.value == 0) {
                let what = "faults.when.time: found 0, expected 1 or more".to_owned();
                reader.wrong(said.referenced, what);
            }
            (after.unwrap_or_default(), Some(Trigger { pattern, time }))
        }
        (at, when, _) => {
            let found = match (at, when) {
                (None, _) => "neither at nor when",
                (Some(_), Some(_)) => "both at and when",
                (Some(_), None) => "at with after",
            };
            let what = format!("faults: found {found}, expected at, or when (and after)");
            reader.wrong(place, what);
            (Duration::ZERO, None)
        }
    }
}

fn device_fault(reader: &mut Reader, raw: &RawDeviceFault, cast: &Cast<'_>) -> Option<Event> {
    let (device, fault) = (raw.device.value.clone(), raw.fault.value.clone());
    if !cast.devices.iter().any(|one| one.name == device) {
        let what = format!(
            "faults.deviceFault.device: found {device:?}, expected a PDU or switch of this \
             scenario"
        );
        reader.wrong(raw.device.referenced, what);
        return None;
    }
    if snmp::Faults::default().set(&fault, 1).is_err() {
        let path = "faults.deviceFault.fault";
        reader.no_such_device_fault(path, &fault, raw.fault.referenced);
        return None;
    }
    Some(Event::DeviceFault { device, fault, value: raw.value.unwrap_or(1) })
}

/// A person's command about the incident of a node.
fn operator_command(
    reader: &mut Reader,
    raw: &RawOperatorCommand,
    cast: &Cast<'_>,
) -> Option<Event> {
    if !cast.nodes.iter().any(|(node, _)| *node == raw.node.value) {
        no_such_node(reader, "operatorCommand.node", &raw.node);
    }
    let found = &raw.command.value;
    let known = OperatorCommand::ALL.into_iter().find(|(name, _)| name == found);
    let Some((_, command)) = known else {
        let commands = OperatorCommand::ALL.map(|(name, _)| name).join(", ");
        let what =
            format!("faults.operatorCommand.command: found {found:?}, expected one of {commands}");
        reader.wrong(raw.command.referenced, what);
        return None;
    };
    Some(Event::OperatorCommand { node: raw.node.value.clone(), command })
}

fn condition(reader: &mut Reader, raw: &RawNodeCondition, cast: &Cast<'_>) -> Option<Event> {
    if !cast.nodes.iter().any(|(node, _)| *node == raw.node.value) {
        no_such_node(reader, "nodeCondition.node", &raw.node);
    }
    let status = &raw.status.value;
    if !["True", "False", "Unknown"].contains(&status.as_str()) {
        let what = format!(
            "faults.nodeCondition.status: found {status:?}, expected True, False or Unknown"
        );
        reader.wrong(raw.status.referenced, what);
        return None;
    }
    Some(Event::NodeCondition {
        node: raw.node.value.clone(),
        kind: raw.kind.clone(),
        status: status.clone(),
        reason: raw.reason.clone(),
    })
}

fn dump(reader: &mut Reader, raw: &RawDump, cast: &Cast<'_>) -> Option<Event> {
    if let Some(said) = &raw.controller {
        controller(reader, "kernelDumps", said, cast);
    }
    let from = match raw.from.as_ref().map(|said| (said.value.parse::<IpAddr>(), said)) {
        None => None,
        Some((Ok(address), _)) => Some(address),
        Some((Err(_), said)) => {
            let found = &said.value;
            let what = format!("faults.kernelDumps.from: found {found:?}, expected an address");
            reader.wrong(said.referenced, what);
            return None;
        }
    };
    let dump = DumpSpec {
        lasts: reader.duration("faults.kernelDumps.lasts", &raw.lasts),
        controller: raw.controller.as_ref().map(|said| said.value),
        from,
        big_endian: raw.big_endian,
    };
    Some(Event::KernelDumps { node: raw.node.value.clone(), dump })
}

fn outage(reader: &mut Reader, field: &str, raw: &RawOutage, cast: &Cast<'_>) -> Outage {
    if let Some(said) = &raw.controller {
        controller(reader, field, said, cast);
    }
    let lasts = reader.duration(&format!("faults.{field}.lasts"), &raw.lasts);
    Outage { controller: raw.controller.as_ref().map(|said| said.value), lasts }
}

fn controller(reader: &mut Reader, field: &str, said: &Spanned<u32>, cast: &Cast<'_>) {
    if !(1..=cast.controllers).contains(&said.value) {
        let what = format!(
            "faults.{field}.controller: found {}, expected 1 to {}, the scenario's controllers",
            said.value, cast.controllers
        );
        reader.wrong(said.referenced, what);
    }
}

fn clock_fault(reader: &mut Reader, raw: &RawClockFault, cast: &Cast<'_>) -> Option<ClockFault> {
    let path = "faults.clockFault";
    controller(reader, "clockFault", &raw.controller, cast);
    let change = match (&raw.ahead, &raw.back, &raw.drift) {
        (Some(ahead), None, None) => ClockChange::Jump(span(reader, path, ahead)),
        (None, Some(back), None) => ClockChange::Jump(-span(reader, path, back)),
        (None, None, Some(drift)) if drift.value.abs() <= DRIFT_MAX => {
            ClockChange::Drift(drift.value)
        }
        (None, None, Some(drift)) => {
            let what = format!(
                "{path}.drift: found {}, expected thousandths from -{DRIFT_MAX} to {DRIFT_MAX}",
                drift.value
            );
            reader.wrong(drift.referenced, what);
            return None;
        }
        _ => {
            let what = format!("{path}: expected one of ahead, back and drift");
            reader.wrong(raw.controller.referenced, what);
            return None;
        }
    };
    Some(ClockFault { controller: raw.controller.value, change })
}

fn server_clock(reader: &mut Reader, said: &Spanned<RawServerClock>) -> Option<Event> {
    let path = "faults.serverClock";
    match (&said.value.ahead, &said.value.back) {
        (Some(ahead), None) => Some(Event::ServerClock(span(reader, path, ahead))),
        (None, Some(back)) => Some(Event::ServerClock(-span(reader, path, back))),
        _ => {
            reader.wrong(said.referenced, format!("{path}: expected one of ahead and back"));
            None
        }
    }
}

/// A duration in milliseconds.
fn span(reader: &mut Reader, path: &str, said: &Text) -> i64 {
    i64::try_from(millis(reader.duration(path, said))).unwrap_or(i64::MAX)
}

fn edit(reader: &mut Reader, field: &str, said: &Spanned<RawEdit>) -> Option<Event> {
    let raw = &said.value;
    let Some(kind) = Kind::of_name(&raw.kind.value) else {
        let found = &raw.kind.value;
        let all = Kind::ALL.map(Kind::name).join(", ");
        let what = format!("faults.{field}.kind: found {found:?}, expected one of {all}");
        reader.wrong(raw.kind.referenced, what);
        return None;
    };
    let key = match (kind.is_namespaced(), &raw.namespace) {
        (true, Some(namespace)) => Key::within(kind, namespace, &raw.name),
        (false, None) => Key::cluster(kind, &raw.name),
        (is_wanted, _) => {
            let wanted = if is_wanted { "one" } else { "none" };
            let what = format!("faults.{field}.namespace: expected {wanted} for a {}", kind.name());
            reader.wrong(said.referenced, what);
            return None;
        }
    };
    match (field, &raw.merge) {
        ("edit", Some(merge)) if merge.is_object() => {
            Some(Event::Edit { key, merge: merge.clone() })
        }
        ("remove", None) => Some(Event::Remove { key }),
        _ => {
            let what =
                format!("faults.{field}.merge: expected fields with edit, and none with remove");
            reader.wrong(said.referenced, what);
            None
        }
    }
}

fn api_fault(reader: &mut Reader, raw: &RawApiFault) -> Option<ApiFault> {
    let path = "faults.apiFault";
    let takes = raw.takes.as_ref().map(|said| reader.duration(&format!("{path}.takes"), said));
    let fault = match (&*raw.fault.value, takes) {
        ("unavailable", None) => ApiFaultKind::Unavailable,
        ("answerLost", None) => ApiFaultKind::AnswerLost,
        ("throttled", None) => ApiFaultKind::Throttled,
        ("conflict", None) => ApiFaultKind::Conflict,
        ("denied", None) => ApiFaultKind::Denied,
        ("watchesBreak", None) => ApiFaultKind::WatchesBreak,
        ("historyGone", None) => ApiFaultKind::HistoryGone,
        ("watchesFreeze", None) => ApiFaultKind::WatchesFreeze,
        ("slow", Some(takes)) => ApiFaultKind::Slow(takes),
        ("carriedOutLate", Some(takes)) => ApiFaultKind::CarriedOutLate(takes),
        ("watchesLag", Some(takes)) => ApiFaultKind::WatchesLag(takes),
        (found, _) => {
            let names = ApiFaultKind::NAMES.join(", ");
            let what = format!(
                "{path}.fault: found {found:?}, expected one of {names}, and takes with slow, \
                 carriedOutLate and watchesLag only"
            );
            reader.wrong(raw.fault.referenced, what);
            return None;
        }
    };
    let percent = raw.percent.as_ref().map_or(100, |said| said.value);
    if let Some(said) = raw.percent.as_ref().filter(|said| !(1..=100).contains(&said.value)) {
        let what = format!("{path}.percent: found {percent}, expected 1 to 100");
        reader.wrong(said.referenced, what);
    }
    let lasts = reader.duration(&format!("{path}.lasts"), &raw.lasts);
    let verb = one_of(reader, &format!("{path}.verb"), raw.verb.as_ref(), &ApiFault::VERBS);
    let resources = &ApiFault::RESOURCES;
    let resource = one_of(reader, &format!("{path}.resource"), raw.resource.as_ref(), resources);
    Some(ApiFault { fault, verb, resource, percent, lasts })
}

/// A word that has to be one of these, where one is said.
fn one_of(
    reader: &mut Reader,
    path: &str,
    said: Option<&Text>,
    known: &[&'static str],
) -> Option<&'static str> {
    let said = said?;
    let found = known.iter().copied().find(|one| *one == said.value);
    if found.is_none() {
        let what = format!("{path}: found {:?}, expected one of {}", said.value, known.join(", "));
        reader.wrong(said.referenced, what);
    }
    found
}

fn no_such_node(reader: &mut Reader, field: &str, said: &Text) {
    let found = &said.value;
    let what = format!("faults.{field}: found {found:?}, expected a node of this scenario");
    reader.wrong(said.referenced, what);
}
