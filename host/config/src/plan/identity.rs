//! What a node's machine may be called by the device that powers it.
//!
//! Only spellings: whether a device's word matches one of them, `decide` says.

use std::collections::BTreeSet;

use node_remedy_api::nodefence::{FencedNode, IdentityField};

/// The UUID that firmware gives a machine.
const SYSTEM_UUID: &str = "system-uuid";
/// What a provider calls an instance.
const INSTANCE_ID: &str = "instance-id";
/// The UUID of boards whose vendor never gave them one: thousands of machines share it.
const PLACEHOLDER: Uuid = Uuid([3, 0, 2, 0, 4, 0, 5, 0, 0, 6, 0, 7, 0, 8, 0, 9]);

/// Whether a field tells one machine from another by something that the Node tells too.
pub(super) fn is_known(field: &str) -> bool {
    [SYSTEM_UUID, INSTANCE_ID].contains(&field)
}

/// Every spelling of the node's identity, for those fields that a device reports.
pub(super) fn expected(node: &FencedNode, reported: &[String]) -> Vec<IdentityField> {
    let mut expected: Vec<IdentityField> = Vec::new();
    for name in reported {
        let values = match name.as_str() {
            SYSTEM_UUID => uuid_spellings(&node.system_uuid),
            INSTANCE_ID => instance_spellings(&node.provider_id),
            _ => Vec::new(),
        };
        for value in values {
            let field = IdentityField { name: name.clone(), value };
            if !expected.contains(&field) {
                expected.push(field);
            }
        }
    }
    expected
}

/// vCenter calls a machine by the UUID of its firmware, whose bytes a providerID may have in another order.
fn instance_spellings(provider_id: &str) -> Vec<String> {
    let Some(id) = instance_id(provider_id) else { return Vec::new() };
    let spelled =
        if provider_id.starts_with("vsphere://") { uuid_spellings(&id) } else { Vec::new() };
    if spelled.is_empty() { vec![id] } else { spelled }
}

/// The machine's UUID with its bytes in each order in which a device may report them; none for one that names no machine.
///
/// Two Nodes that have one in common could be taken for each other.
pub fn machines(system_uuid: &str) -> BTreeSet<[u8; 16]> {
    orders(system_uuid).into_iter().flatten().map(|uuid| uuid.0).collect()
}

/// The instance that a provider's id names, or the id itself where its form is not known, in small letters: Azure, Nova and
/// vCenter find it whatever letters it is written in.
pub fn instance(provider_id: &str) -> Option<String> {
    let itself = || (!provider_id.is_empty()).then(|| provider_id.to_owned());
    let instance = instance_id(provider_id).or_else(itself)?.to_ascii_lowercase();
    // One machine, in whatever order its bytes are written.
    let of_vsphere = provider_id.starts_with("vsphere://");
    let spellings = if of_vsphere { uuid_spellings(&instance) } else { Vec::new() };
    Some(spellings.into_iter().min().unwrap_or(instance))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Uuid([u8; 16]);

/// The node's own spelling first: it is the one that people are shown.
///
/// Management controllers send sixteen bytes, and vendors disagree on their order: as
/// printed, as SMBIOS stores them (the first three groups reversed), or all reversed, as
/// IPMI says. Redfish prints groups.
fn uuid_spellings(text: &str) -> Vec<String> {
    let orders = orders(text).into_iter().flatten();
    orders.flat_map(|order| [order.grouped(), order.plain()]).collect()
}

/// The bytes of a UUID in each order that is in use, as printed first; `None` for what names no machine.
fn orders(text: &str) -> Option<[Uuid; 3]> {
    let uuid = Uuid::parse(text).filter(|uuid| !uuid.is_placeholder())?;
    Some([uuid, uuid.mixed(), uuid.reversed()])
}

impl Uuid {
    /// Groups of 8-4-4-4-12 digits, or 32 digits.
    fn parse(text: &str) -> Option<Self> {
        let groups: Vec<usize> = text.split('-').map(str::len).collect();
        if !matches!(groups.as_slice(), [8, 4, 4, 4, 12] | [32]) {
            return None;
        }
        let mut digits = text.chars().filter(|character| *character != '-');
        let mut bytes = [0_u8; 16];
        for byte in &mut bytes {
            let (high, low) = (digits.next()?.to_digit(16)?, digits.next()?.to_digit(16)?);
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(Self(bytes))
    }

    fn is_placeholder(self) -> bool {
        let uniform = self.0.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
        uniform || [self, self.mixed(), self.reversed()].contains(&PLACEHOLDER)
    }

    fn mixed(self) -> Self {
        let mut bytes = self.0;
        for group in [0..4, 4..6, 6..8] {
            if let Some(group) = bytes.get_mut(group) {
                group.reverse();
            }
        }
        Self(bytes)
    }

    fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    fn plain(self) -> String {
        hex::encode(self.0)
    }

    fn grouped(self) -> String {
        let mut text = self.plain();
        for at in [20, 16, 12, 8] {
            text.insert(at, '-');
        }
        text
    }
}

/// What the provider calls the instance; nothing for a form that is not known.
///
/// A name that is unique only in its project or subscription keeps them in front.
fn instance_id(provider_id: &str) -> Option<String> {
    let (provider, path) = provider_id.split_once("://")?;
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match (provider, segments.as_slice()) {
        ("aws", [.., id]) if id.starts_with("i-") => Some((*id).to_owned()),
        ("gce", [_project, _zone, _name]) => Some(segments.join("/")),
        ("azure", ["subscriptions", _subscription, .., _name]) => {
            Some(format!("/{}", segments.join("/")))
        }
        ("openstack", [id] | [_, id]) => Some((*id).to_owned()),
        ("vsphere", [id]) => Some((*id).to_owned()),
        _ => None,
    }
}
