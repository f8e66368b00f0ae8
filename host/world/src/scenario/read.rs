//! From a scenario file to a [`Scenario`]: every mistake is collected, each with its place,
//! with what was found and what is expected.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::raw::{
    RawCluster, RawConfiguration, RawExpectation, RawFault, RawScenario, RawStatefulSet, Text,
};
use super::{Expectation, duration, fault};
use crate::api::Kind;
use crate::api::object::{name, namespace, text};
use crate::rng::Rng;
use crate::scenario::names::{Cast, is_object_name};
use crate::scenario::reader::{Reader, ScenarioError, ScenarioErrors};
use crate::scenario::spec::{Document, Order, Scenario, StatefulSetSpec, VolumesSpec};
use crate::timings::Timings;

/// The largest scenario or configuration file: what etcd takes of one object.
pub(super) const FILE_BYTES: usize = 1 << 20;

/// The most pods of one StatefulSet.
pub(super) const REPLICAS: u64 = 10_000;
/// The most processes of node-remedy.
const CONTROLLERS: u32 = 5;

impl Scenario {
    /// Reads a scenario; files that it names are looked for beside it.
    pub fn read(path: &Path) -> Result<Self, ScenarioErrors> {
        let file = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("."));
        let load = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path)
                .map_err(|error| format!("failed to read {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("failed to read the scenario: {error}");
            ScenarioErrors(vec![ScenarioError { file: file.clone(), line: 0, column: 0, what }])
        })?;
        Self::parse(&file, &text, &load)
    }

    /// Reads a scenario from its text; `load` gives the text of a file that it names.
    pub fn parse(
        file: &str,
        text: &str,
        load: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioErrors> {
        let mut reader = Reader { file: file.to_owned(), errors: Vec::new() };
        let scenario = reader.yaml(text, FILE_BYTES).and_then(|raws| reader.single(raws));
        let scenario = scenario.map(|raw| reader.scenario(raw, load));
        match scenario {
            Some(scenario) if reader.errors.is_empty() => Ok(scenario),
            Some(_) | None => Err(ScenarioErrors(reader.errors)),
        }
    }
}

impl Reader {
    fn single(&mut self, mut raws: Vec<RawScenario>) -> Option<RawScenario> {
        let count = raws.len();
        let raw = raws.pop();
        if count != 1 {
            let what = format!("found {count} YAML documents, expected one scenario");
            self.wrong(Location::UNKNOWN, what);
            return None;
        }
        raw
    }

    fn scenario(
        &mut self,
        raw: RawScenario,
        load: &dyn Fn(&str) -> Result<String, String>,
    ) -> Scenario {
        let duration = self.duration("duration", &raw.duration);
        if raw.expect.is_empty() {
            let what = "expect: found nothing, expected at least one fact: a scenario that \
                        asserts nothing shows nothing";
            self.wrong(raw.duration.referenced, what.to_owned());
        }
        let devices = self.devices(&raw.pdus, &raw.switches);
        let nodes = self.nodes(raw.seed, &raw.nodes.value, raw.nodes.referenced, &devices);
        let names: Vec<(&str, Option<&str>)> =
            nodes.iter().map(|node| (node.name.as_str(), node.zone.as_deref())).collect();
        let controllers = self.controllers(raw.controllers.as_ref());
        let instances = nodes.iter().filter(|node| node.cloud.is_some());
        let instances: Vec<&str> = instances.map(|node| node.name.as_str()).collect();
        let cast = Cast { nodes: &names, devices: &devices, instances: &instances, controllers };
        let mut faults = Vec::new();
        for fault in &raw.faults {
            let rng = Rng::named(raw.seed, &format!("happening {}", fault.referenced.line()));
            let at = fault.referenced;
            faults.extend(fault::read(self, &fault.value, at, &cast, rng));
            self.in_time(&fault.value, &raw.duration);
        }
        faults.sort_by_key(|fault| fault.at);
        Scenario {
            title: raw.title,
            seed: raw.seed,
            duration,
            until_calm: raw.until_calm.as_ref().map(|said| self.duration("untilCalm", said)),
            shuffle: raw.shuffle,
            admit: None,
            second_installation: raw.second_installation,
            timings: self.timings(&raw.cluster),
            controllers,
            stateful_sets: raw
                .workloads
                .stateful_sets
                .iter()
                .map(|set| self.stateful_set(set))
                .collect(),
            configuration: raw
                .configuration
                .into_iter()
                .flat_map(|entry| self.configuration(entry.value, entry.referenced, load))
                .collect(),
            existing: Vec::new(),
            faults,
            expect: raw.expect.iter().map(|one| self.expectation(one)).collect(),
            expect_without: raw.expect_without.iter().map(|one| self.expectation(one)).collect(),
            nodes,
            devices,
        }
    }

    fn controllers(&mut self, said: Option<&Spanned<u32>>) -> u32 {
        let Some(said) = said else { return 1 };
        if !(1..=CONTROLLERS).contains(&said.value) {
            let found = said.value;
            let what = format!("controllers: found {found}, expected 1 to {CONTROLLERS}");
            self.wrong(said.referenced, what);
        }
        said.value
    }

    /// What would come when the scenario is over never comes.
    fn in_time(&mut self, fault: &RawFault, scenario: &Text) {
        let Some(duration) = duration::read(&scenario.value) else { return };
        let mut latest = Duration::ZERO;
        let fields = [("at", fault.at.as_ref()), ("within", fault.within.as_ref())];
        for (field, said) in fields {
            let Some(said) = said else { continue };
            latest = latest.saturating_add(duration::read(&said.value).unwrap_or_default());
            if latest >= duration {
                let what = format!(
                    "faults.{field}: found {:?}, expected that it happens before the scenario is \
                     over, whose duration is {}",
                    said.value, scenario.value
                );
                self.wrong(said.referenced, what);
                return;
            }
        }
    }

    fn timings(&mut self, raw: &RawCluster) -> Timings {
        let mut timings = Timings {
            checks_at_detach: raw.checks_at_detach,
            csi_addons: raw.csi_addons,
            storage_pools: raw.storage_pools.clone(),
            ..Timings::default()
        };
        let rows = [
            ("nodeMonitorGrace", &raw.node_monitor_grace, &mut timings.node_monitor_grace),
            ("nodeMonitorPeriod", &raw.node_monitor_period, &mut timings.node_monitor_period),
            ("leaseRenewal", &raw.lease_renewal, &mut timings.lease_renewal),
            ("firstStatus", &raw.first_status, &mut timings.first_status),
            ("networkBack", &raw.network_back, &mut timings.network_back),
            ("podStart", &raw.pod_start, &mut timings.pod_start),
            ("podStop", &raw.pod_stop, &mut timings.pod_stop),
            ("attach", &raw.attach, &mut timings.attach),
            ("networkFence", &raw.network_fence, &mut timings.network_fence),
        ];
        for (field, said, timing) in rows {
            let Some(said) = said else { continue };
            let path = format!("cluster.{field}");
            *timing = self.duration(&path, said);
            // What repeats must not repeat without end at one moment.
            if timing.is_zero() && duration::read(&said.value).is_some() {
                let what = format!("{path}: found {:?}, expected more than nothing", said.value);
                self.wrong(said.referenced, what);
            }
        }
        timings
    }

    fn stateful_set(&mut self, raw: &RawStatefulSet) -> StatefulSetSpec {
        let path = "workloads.statefulSets";
        if !is_object_name(&raw.name.value) {
            self.not_a_name(&format!("{path}.name"), &raw.name);
        }
        if raw.replicas.value > REPLICAS {
            let found = raw.replicas.value;
            let what = format!("{path}.replicas: found {found}, expected at most {REPLICAS}");
            self.wrong(raw.replicas.referenced, what);
        }
        let toleration = raw.toleration.as_ref();
        StatefulSetSpec {
            namespace: raw.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            name: raw.name.value.clone(),
            replicas: raw.replicas.value,
            volumes: if raw.volumes.unwrap_or(true) {
                VolumesSpec::OneEach
            } else {
                VolumesSpec::None
            },
            toleration: toleration.map(|said| self.duration(&format!("{path}.toleration"), said)),
            order: if raw.parallel.unwrap_or(false) {
                Order::Parallel
            } else {
                Order::OrderedReady
            },
        }
    }

    fn configuration(
        &mut self,
        raw: RawConfiguration,
        at: Location,
        load: &dyn Fn(&str) -> Result<String, String>,
    ) -> Vec<Document> {
        match (raw.file, raw.object) {
            (Some(file), None) => match load(&file.value) {
                Ok(text) => {
                    // The objects of another file are complained about under its own name.
                    let mut other = Self { file: file.value.clone(), errors: Vec::new() };
                    let objects = other.yaml::<Value>(&text, FILE_BYTES).unwrap_or_default();
                    let objects = objects.into_iter().filter(|object| !object.is_null());
                    let documents =
                        objects.filter_map(|object| other.document(object, Location::UNKNOWN));
                    let documents = documents.collect();
                    self.errors.append(&mut other.errors);
                    documents
                }
                Err(error) => {
                    self.wrong(file.referenced, format!("configuration.file: {error}"));
                    Vec::new()
                }
            },
            (None, Some(object)) => self.document(object, at).into_iter().collect(),
            (Some(_), Some(_)) | (None, None) => {
                let what = "configuration: expected either a file or an object";
                self.wrong(at, what.to_owned());
                Vec::new()
            }
        }
    }

    fn document(&mut self, object: Value, at: Location) -> Option<Document> {
        let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
        let Some(known) = Kind::of_object(version, kind) else {
            let what = format!(
                "configuration: found apiVersion {version:?}, kind {kind:?}, expected an object \
                 of a kind that a simulated cluster has"
            );
            self.wrong(at, what);
            return None;
        };
        if name(&object).is_empty() || known.is_namespaced() == namespace(&object).is_empty() {
            let what = format!(
                "configuration: {kind}: expected metadata.name{}",
                if known.is_namespaced() { " and metadata.namespace" } else { " and no namespace" }
            );
            self.wrong(at, what);
            return None;
        }
        Some(Document { source: self.file.clone(), object })
    }

    fn expectation(&mut self, raw: &RawExpectation) -> Expectation {
        let at = raw.fact.referenced;
        Expectation {
            place: format!("{}:{}:{}", self.file, at.line(), at.column()),
            pattern: self.pattern("expect", &raw.fact, &raw.fields),
            times: raw.times,
            after: raw.after.as_ref().map(|after| self.duration("expect.after", after)),
            by: raw.by.as_ref().map(|by| self.duration("expect.by", by)),
        }
    }
}
