//! Reading what befalls the cluster: one entry, one kind of misfortune, known nodes only.

use std::time::Duration;

use node_remedy_devices::bmc::Faults;
use serde_saphyr::Location;

use super::raw::{RawHappening, Text};
use super::read::Reader;
use super::{Event, Happening};
use crate::rng::Rng;
use crate::time::millis;

/// A field of an entry, what it says, and the event that it makes of a node.
type Field<'a, T> = (&'static str, &'a Option<T>, fn(String) -> Event);

/// Nodes by name, with their zones.
type Nodes<'a> = [(&'a str, Option<&'a str>)];

/// An entry as events; a rack is one event for each of its nodes.
pub(super) fn read(
    reader: &mut Reader,
    raw: &RawHappening,
    place: Location,
    nodes: &Nodes<'_>,
    mut rng: Rng,
) -> Vec<Happening> {
    let at = reader.duration("happenings.at", &raw.at);
    let spread =
        raw.within.as_ref().map_or(Duration::ZERO, |w| reader.duration("happenings.within", w));
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
                    "happenings.{field}: found {found:?}, expected a node or a zone of this scenario"
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
            reader.no_such_fault("happenings.bmcFault.fault", &fault, raw.fault.referenced);
        }
        events.push(Event::BmcFault { node, fault, value: raw.value.unwrap_or(1) });
    }
    if let Some(said) = &raw.force_delete_pod {
        kinds += 1;
        if let Some((namespace, name)) = said.value.split_once('/') {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            events.push(Event::ForceDeletePod { namespace, name });
        } else {
            let found = &said.value;
            let what =
                format!("happenings.forceDeletePod: found {found:?}, expected NAMESPACE/NAME");
            reader.wrong(said.referenced, what);
        }
    }
    if kinds != 1 {
        let what = format!("happenings: found {kinds} things that happen, expected one an entry");
        reader.wrong(place, what);
    }
    events
        .into_iter()
        .map(|what| {
            let later = Duration::from_millis(rng.within(0, millis(spread)));
            Happening { at: at.saturating_add(later), what }
        })
        .collect()
}

fn no_such_node(reader: &mut Reader, field: &str, said: &Text) {
    let found = &said.value;
    let what = format!("happenings.{field}: found {found:?}, expected a node of this scenario");
    reader.wrong(said.referenced, what);
}
