//! Runs in which machines hang on outlets and ports: who is fenced in which way, and what PDUs and
//! switches do wrong.
//!
//! Drawn apart from everything else, so that a run without a rack is what it was without this file.
//! Not drawn is a PDU that says off and means nothing of it (`says_off`): where the machine is silent,
//! too, nobody can tell.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use node_remedy_world::rng::Rng;

use super::{CALM_MS, Draft, wiring};

/// What a PDU or switch does wrong, and how much of it.
pub(super) const DEVICE_FAULTS: [(&str, u64, u64); 17] = [
    ("delay", 10, 3_000),
    ("drop", 1, 10),
    ("dup", 1, 1),
    ("silent", 1, 1),
    ("dead", 1, 1),
    ("no_input", 1, 1),
    ("community", 1, 1),
    // authorizationError.
    ("set_status", 16, 16),
    ("wrong_id", 1, 1),
    ("wrong_oid", 1, 1),
    ("stuck", 1, 1),
    // What the manifests say that an effect may take at most is 30 s.
    ("off_after", 1_000, 28_000),
    ("reply_lost", 1, 1),
    ("flip_back", 1_000, 20_000),
    ("stale", 1_000, 90_000),
    ("tables_differ", 1, 1),
    ("truncate", 5, 40),
];

/// The other classes of fault that are drawn here.
pub(super) const CLASSES: [&str; 4] =
    ["one feed", "two feeds", "port before power", "plug switched by hand"];

/// How storage is cut.
const CUT: &str = "{ name: storage, builtin: network-fence, \
                   parameters: { driver: block.csi.node-remedy.io, secretName: s, secretNamespace: ns, pool: a }, \
                   storageDrivers: [block.csi.node-remedy.io] }";

/// The devices of a rack: two PDUs, and one switch for all.
const PDUS: [&str; 2] = ["pdu-a", "pdu-b"];
const SWITCH: &str = "leaf";

/// How a machine is fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By its BMC.
    Bmc,
    /// By the outlets of two PDUs; it has no BMC.
    Outlets,
    /// By its BMC and by the outlets of two PDUs, which feed the BMC, too.
    Both,
    /// By the port of a switch, and then by its BMC.
    Port,
    /// By its BMC; the outlet that feeds both is in no configuration of its own.
    Fed,
    /// By an outlet, behind cut storage; it has no BMC.
    Outlet,
}

/// What machines hang on in a run.
pub(super) struct Rack {
    ways: BTreeMap<String, Way>,
    /// What PDUs are of.
    makes: [&'static str; 2],
    /// Whether a recovery stage opens the ports once more.
    opens_again: bool,
    /// Whether a BMC beside outlets has a stage of its own, before theirs.
    bmc_first: bool,
    /// The outlet that is written down for the one that is fenced by it, whosoever it is.
    outlet: Option<usize>,
}

impl Rack {
    /// Now and then there is one.
    pub(super) fn of(seed: u64, names: &[String]) -> Self {
        let mut rng = Rng::named(seed, "rack");
        let has_rack = rng.below(100) < 35;
        let way = |drawn: u64| match drawn {
            _ if !has_rack => Way::Bmc,
            0..45 => Way::Outlets,
            45..80 => Way::Port,
            _ => Way::Bmc,
        };
        let mut ways: BTreeMap<String, Way> =
            names.iter().map(|name| (name.clone(), way(rng.below(100)))).collect();
        let mut beside = Rng::named(seed, "a BMC beside outlets");
        let (has_both, bmc_first) = (beside.below(100) < 30, beside.below(2) == 0);
        for way in ways.values_mut().filter(|way| has_both && **way == Way::Outlets) {
            *way = Way::Both;
        }
        let mut make = |[one, other]: [&'static str; 2]| {
            if rng.below(2) == 0 { one } else { other }
        };
        let makes = [make(["apc", "apc-rpdu"]), make(["eaton", "apc"])];
        let opens_again = Rng::named(seed, "recovery stage").below(2) == 0;
        if wiring::is_drawn(seed) {
            for way in ways.values_mut() {
                *way = Way::Fed;
            }
        }
        Self { ways, makes, opens_again, bmc_first, outlet: None }
    }

    /// Whether each machine hangs on one outlet.
    pub(super) fn is_fed(&self) -> bool {
        self.ways.values().any(|way| *way == Way::Fed)
    }

    /// This node is the one that is fenced by an outlet.
    pub(super) fn fence_by_outlet(&mut self, node: &str) {
        if self.is_fed() {
            self.ways.insert(node.to_owned(), Way::Outlet);
        }
    }

    /// The outlet that is written down for it.
    pub(super) fn name_outlet(&mut self, outlet: usize) {
        self.outlet = Some(outlet);
    }

    fn way(&self, node: &str) -> Way {
        self.ways.get(node).copied().unwrap_or(Way::Bmc)
    }

    pub(super) fn has_bmc(&self, node: &str) -> bool {
        !matches!(self.way(node), Way::Outlets | Way::Outlet)
    }

    /// Whether any machine hangs on something.
    pub(super) fn is_there(&self) -> bool {
        self.ways.values().any(|way| *way != Way::Bmc)
    }

    /// The devices whose plugs are ports.
    pub(super) fn switches(&self) -> BTreeSet<String> {
        self.is_there().then(|| SWITCH.to_owned()).into_iter().collect()
    }

    /// What a fact about the BMC of a node is called where its power is that of outlets.
    pub(super) fn fact<'a>(&self, node: &str, fact: &'a str) -> &'a str {
        match fact {
            "bmcAccepted" if !self.has_bmc(node) => "plugAccepted",
            "bmcReported" if !self.has_bmc(node) => "plugReported",
            other => other,
        }
    }

    /// A fault of what gives a node its power, and its class; one that only BMCs have becomes another.
    pub(super) fn fault(&self, node: &str, fault: &str, value: u64) -> (String, String) {
        if self.has_bmc(node) {
            let what = format!("bmcFault: {{ node: {node}, fault: {fault}, value: {value} }}");
            return (what, format!("bmc {fault}"));
        }
        let has_it = DEVICE_FAULTS.iter().any(|(name, ..)| *name == fault) || fault == "none";
        let fault = match fault {
            fault if has_it => fault,
            "wrong_sid" | "bad_tag" => "wrong_id",
            "open_status" | "no_ciphers" | "mute_ciphers" => "silent",
            _ => "community",
        };
        let pdu = if self.way(node) == Way::Outlet { "pdu-a" } else { "pdu-b" };
        let what = format!("deviceFault: {{ device: {pdu}, fault: {fault}, value: {value} }}");
        (what, format!("device {fault}"))
    }

    /// The label that says how a node is fenced, and what it hangs on; `number` is its place.
    pub(super) fn node(&self, node: &str, number: usize) -> (&'static str, String) {
        let plug = number + 1;
        match self.way(node) {
            Way::Bmc => ("ipmi", String::new()),
            Way::Outlets => {
                let feeds = format!("feeds: [pdu-a/{plug}, pdu-b/{plug}]");
                ("outlets", format!(", {feeds}, bmc: {{ present: false }}"))
            }
            Way::Both => ("both", format!(", feeds: [pdu-a/{plug}, pdu-b/{plug}]")),
            Way::Port => ("port", format!(", port: {SWITCH}/{plug}")),
            Way::Fed => ("ipmi", format!(", feeds: [pdu-a/{plug}]")),
            Way::Outlet => {
                ("outlet", format!(", feeds: [pdu-a/{plug}], bmc: {{ present: false }}"))
            }
        }
    }

    /// The devices, as a scenario lists them.
    pub(super) fn devices(&self) -> String {
        if !self.is_there() {
            return String::new();
        }
        let [a, b] = self.makes;
        format!(
            "pdus: [{{ name: pdu-a, make: {a}, outlets: 16 }}, {{ name: pdu-b, make: {b}, outlets: 16 }}]\n\
             switches: [{{ name: {SWITCH}, ports: 16 }}]\n"
        )
    }

    /// How machines on outlets are fenced, and those behind a port, for the scenario's configuration.
    pub(super) fn configuration(&self) -> String {
        if !self.is_there() {
            return String::new();
        }
        let plugin = |make: &str| if make == "eaton" { "eaton-pdu" } else { "apc-pdu" };
        let [a, b] = self.makes.map(plugin);
        let by_snmp = |name: &str, plugin: &str, address: &str| {
            format!(
                "{{ name: {name}, plugin: {plugin}, parameters: {{ address: {address}, version: 2c }}, \
                 credentials: [{{ name: community, secret: community, identityKey: \"\" }}] }}"
            )
        };
        let method = |name: &str, template: &str, plug: &str, rest: &str| {
            format!(
                "{{ name: {name}, template: {template}, plug: \"${{inventory['{plug}']}}\", {rest} }}"
            )
        };
        // Nobody tries the wiring of a run.
        let outlet = "action: reboot, trustWiring: true";
        let grant = |plugin: &str, address: &str| {
            format!("{{ plugin: {plugin}, cidrs: [{address}/32], reveal: [community] }}")
        };
        let object = |name: &str, spec: &str| {
            format!(
                "- object: {{ apiVersion: node-remedy.io/v1alpha1, kind: FenceConfiguration, metadata: {{ name: {name} }}, \
                 spec: {{ nodeSelector: node-remedy.io/fence={name}, \
                 inventory: {{ configMap: machines, key: nodes.csv }}, {spec} }} }}\n"
            )
        };
        let feeds = |templates: &str, methods: &str, stages: &str, grants: &str| {
            format!(
                "templates: [{}, {}{templates}], methods: [{}, {}{methods}], \
                 isolation: [{{ name: quarantine, methods: [quarantine] }}], powerManagement: [{stages}], \
                 grants: [{}, {}{grants}]",
                by_snmp("feed-a", a, "198.51.100.1"),
                by_snmp("feed-b", b, "198.51.100.2"),
                method("outlet-a", "feed-a", "outlet-a", outlet),
                method("outlet-b", "feed-b", "outlet-b", outlet),
                grant(a, "198.51.100.1"),
                grant(b, "198.51.100.2"),
            )
        };
        let stage = |methods: &str| {
            format!("{{ name: feeds, run: all, mustSuccess: true, methods: [{methods}] }}")
        };
        let outlets = feeds("", "", &stage("outlet-a, outlet-b"), "");
        let bmc = "{ name: bmc, plugin: ipmi, parameters: { address: \"${inventory['bmc-address']}\" }, \
                   credentials: [{ secret: bmc-credentials }] }";
        let bmc_grant = "{ plugin: ipmi, cidrs: [192.0.2.0/24], ports: [623] }";
        let stages = if self.bmc_first {
            format!("{{ name: bmc, methods: [power] }}, {}", stage("outlet-a, outlet-b"))
        } else {
            stage("outlet-a, outlet-b, power")
        };
        let power = ", { name: power, template: bmc, action: reboot }";
        let both = feeds(&format!(", {bmc}"), power, &stages, &format!(", {bmc_grant}"));
        let [join, recovery] = if self.opens_again {
            let join = method("join", "switch", "switch-port", "action: on");
            [join + ", ", "recovery: [{ name: ports, methods: [join] }], ".to_owned()]
        } else {
            [String::new(), String::new()]
        };
        let port = format!(
            "templates: [{}, {bmc}], methods: [{}, {join}{{ name: power, template: bmc, action: reboot }}], \
             isolation: [{{ name: quarantine, methods: [quarantine] }}, {{ name: network, methods: [cut] }}], \
             powerManagement: [{{ name: power, methods: [power] }}], {recovery}\
             grants: [{}, {bmc_grant}]",
            by_snmp("switch", "snmp-switch", "198.51.100.3"),
            method("cut", "switch", "switch-port", "action: off"),
            grant("snmp-switch", "198.51.100.3"),
        );
        let mut text = object("outlets", &outlets) + &object("port", &port);
        if self.ways.values().any(|way| *way == Way::Both) {
            text += &object("both", &both);
        }
        if let Some(number) = self.outlet {
            let spec = format!(
                "templates: [{}], methods: [{CUT}, {{ name: outlet, template: feed-a, plug: \"{number}\", soleFeed: true, {outlet} }}], \
                 isolation: [{{ name: cut, methods: [storage] }}, {{ name: quarantine, methods: [quarantine] }}], \
                 powerManagement: [{{ name: power, methods: [outlet] }}], recovery: [{{ name: back, methods: [storage] }}], \
                 grants: [{}]",
                by_snmp("feed-a", a, "198.51.100.1"),
                grant(a, "198.51.100.1"),
            );
            text += &object("outlet", &spec);
        }
        let _ = writeln!(
            text,
            "- object: {{ apiVersion: v1, kind: Secret, metadata: {{ name: community, namespace: node-remedy }}, \
             stringData: {{ password: simulated }} }}"
        );
        text
    }
}

impl Draft {
    /// What goes wrong with PDUs and switches, and hands on their plugs.
    pub(super) fn rack_faults(&mut self, seed: u64, names: &[String], lost: &[String]) {
        if !self.rack.is_there() {
            return;
        }
        // From here on everything is of the rack.
        let mut rng = Rng::named(seed, "rack's faults");
        for device in PDUS.into_iter().chain([SWITCH]) {
            let what = format!("deviceFault: {{ device: {device}, fault: none }}");
            let _ = writeln!(self.faults, "- {{ at: {CALM_MS}ms, {what} }}");
        }
        for node in lost {
            let (class, devices): (&str, &[&str]) = match self.rack.way(node) {
                Way::Bmc | Way::Fed => continue,
                Way::Outlet => ("one feed", &PDUS[..1]),
                Way::Outlets | Way::Both => ("two feeds", &PDUS),
                Way::Port => ("port before power", &[SWITCH]),
            };
            self.drawn.push(class.to_owned());
            let Some(device) = one_of(&mut rng, devices) else { continue };
            let mut below = |bound: u64| rng.below(bound);
            let number = names.iter().position(|name| name == node).unwrap_or_default() + 1;
            if below(100) < 60 {
                let drawn = below(u64::try_from(DEVICE_FAULTS.len()).unwrap_or(1));
                let drawn = DEVICE_FAULTS.get(usize::try_from(drawn).unwrap_or_default());
                let Some((fault, low, high)) = drawn.copied() else { continue };
                // A switch or both PDUs without input are many lost nodes, which others draw.
                let (fault, device) = match (fault, device) {
                    ("no_input", SWITCH) => ("dead", SWITCH),
                    ("no_input", _) => ("no_input", "pdu-a"),
                    (fault, device) => (fault, device),
                };
                let (at, value) = (below(180_000), low + below(high - low + 1));
                let text = |value: u64| {
                    format!("deviceFault: {{ device: {device}, fault: {fault}, value: {value} }}")
                };
                self.happens(at, &text(value), &format!("device {fault}"));
                if below(100) < 40 {
                    let over = at + 3_000 + below(87_000);
                    self.happens(over, &text(0), &format!("device {fault}"));
                }
            }
            if below(100) < 15 {
                let after = below(20_000);
                let way = if below(2) == 0 { "plugOnByHand" } else { "plugOffByHand" };
                let asked = if below(2) == 0 { "off" } else { "on" };
                // Somebody who switches a port off behind our back mends it as well.
                let way = if device == SWITCH { "plugOnByHand" } else { way };
                let what = format!("{way}: {device}/{number}");
                let fields = format!("command: \"{asked}\"");
                self.blow(node, "plugAccepted", &fields, after, &what);
                self.drawn.push("plug switched by hand".to_owned());
            }
        }
    }
}

fn one_of<'a>(rng: &mut Rng, all: &[&'a str]) -> Option<&'a str> {
    let drawn = rng.below(u64::try_from(all.len()).unwrap_or(1));
    all.get(usize::try_from(drawn).unwrap_or_default()).copied()
}
