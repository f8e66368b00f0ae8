//! From a scenario file to a [`Scenario`]: every mistake is collected, each with its place,
//! with what was found and what is expected.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Location, Spanned, options::AliasLimits};

use super::happening::Cast;
use super::nodes::is_object_name;
use super::raw::{
    RawCluster, RawConfiguration, RawExpectation, RawHappening, RawScenario, RawStatefulSet, Text,
};
use super::{
    Document, Expectation, Order, Pattern, Scenario, StatefulSetSpec, VolumesSpec, duration,
    happening,
};
use crate::api::Kind;
use crate::api::object::{name, namespace, text};
use crate::facts::VOCABULARY;
use crate::rng::Rng;
use crate::stage::Timings;

/// The largest scenario or configuration file: what etcd takes of one object.
pub(super) const FILE_BYTES: usize = 1 << 20;
/// The most that aliases make of a file, each taken to stand for all of it: what a laptop has to spare.
const ALIASED_BYTES: usize = 256 << 20;
/// The most values that aliases stand for, however short.
const REPLAYS: usize = 100_000;
/// The most pods of one StatefulSet.
pub(super) const REPLICAS: u64 = 10_000;
/// The most processes of node-remedy.
const CONTROLLERS: u32 = 5;

/// A mistake in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct ScenarioError {
    /// The file, as it was named.
    pub file: String,
    /// From 1 on; 0 where the file has no such place.
    pub line: u64,
    /// From 1 on; 0 where the file has no such place.
    pub column: u64,
    /// Path, what was found, what is expected.
    pub what: String,
}

/// All mistakes in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioErrors(pub Vec<ScenarioError>);

impl std::fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioErrors {}

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

/// Collects what is wrong while it reads on.
pub(super) struct Reader {
    pub(super) file: String,
    pub(super) errors: Vec<ScenarioError>,
}

impl Reader {
    pub(super) fn wrong(&mut self, at: Location, what: String) {
        let (line, column) = (at.line(), at.column());
        self.errors.push(ScenarioError { file: self.file.clone(), line, column, what });
    }

    /// A duration, or zero and a complaint.
    pub(super) fn duration(&mut self, path: &str, text: &Text) -> Duration {
        duration::read(&text.value).unwrap_or_else(|| {
            self.wrong(
                text.referenced,
                format!(
                    "{path}: found {:?}, expected a duration such as 90s, 1m30s or 250ms, up to \
                     a week",
                    text.value
                ),
            );
            Duration::ZERO
        })
    }

    /// The documents of a file of at most `limit` bytes.
    pub(super) fn yaml<T: DeserializeOwned>(&mut self, text: &str, limit: usize) -> Option<Vec<T>> {
        if text.len() > limit {
            let what = format!("found {} bytes, expected at most {limit}", text.len());
            self.wrong(Location::UNKNOWN, what);
            return None;
        }
        // The limit on bytes bounds what the parser would bound otherwise, all but what aliases repeat.
        let replays = ALIASED_BYTES / text.len().max(1);
        let mut alias_limits = AliasLimits::default();
        alias_limits.max_total_replayed_events = replays.min(REPLAYS);
        let options = serde_saphyr::options! {
            with_snippet: false,
            strict_booleans: true,
            budget: None,
            alias_limits: alias_limits,
        };
        match serde_saphyr::from_multiple_with_options(text, options) {
            Ok(read) => Some(read),
            Err(error) => {
                let at = error.location().unwrap_or(Location::UNKNOWN);
                self.wrong(at, message(&error, text, at));
                None
            }
        }
    }

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
        let mut happenings = Vec::new();
        for happening in &raw.happenings {
            let rng = Rng::named(raw.seed, &format!("happening {}", happening.referenced.line()));
            let at = happening.referenced;
            happenings.extend(happening::read(self, &happening.value, at, &cast, rng));
            self.in_time(&happening.value, &raw.duration);
        }
        happenings.sort_by_key(|happening| happening.at);
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
            happenings,
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

    /// What would come when the story is over never comes.
    fn in_time(&mut self, happening: &RawHappening, story: &Text) {
        let Some(duration) = duration::read(&story.value) else { return };
        let mut latest = Duration::ZERO;
        let fields = [("at", happening.at.as_ref()), ("within", happening.within.as_ref())];
        for (field, said) in fields {
            let Some(said) = said else { continue };
            latest = latest.saturating_add(duration::read(&said.value).unwrap_or_default());
            if latest >= duration {
                let what = format!(
                    "happenings.{field}: found {:?}, expected that it happens before the story is \
                     over, whose duration is {}",
                    said.value, story.value
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

    /// Facts by a name that there is and by fields that they have.
    pub(super) fn pattern(
        &mut self,
        path: &str,
        fact: &Text,
        fields: &BTreeMap<String, Text>,
    ) -> Pattern {
        match VOCABULARY.iter().find(|(name, _)| *name == fact.value) {
            None => {
                let names: Vec<&str> = VOCABULARY.iter().map(|(name, _)| *name).collect();
                let what = format!(
                    "{path}.fact: found {:?}, expected one of {}",
                    fact.value,
                    names.join(", ")
                );
                self.wrong(fact.referenced, what);
            }
            Some((_, known)) => {
                let unknown = fields.iter().filter(|(field, _)| !known.contains(&field.as_str()));
                for (field, value) in unknown {
                    let what = format!(
                        "{path}.where: found {field:?}, expected one of {}",
                        known.join(", ")
                    );
                    self.wrong(value.referenced, what);
                }
            }
        }
        let fields = fields.iter().map(|(field, value)| (field.clone(), value.value.clone()));
        Pattern { fact: fact.value.clone(), fields: fields.collect() }
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

/// The parser's sentence without the place, which stands before it anyway, and with what
/// was found, where the parser does not say it.
fn message(error: &serde_saphyr::Error, text: &str, at: Location) -> String {
    let error = error.to_string();
    let line = error.lines().next().unwrap_or_default();
    let (sentence, _) = line.split_once(" at line ").unwrap_or((line, ""));
    // What follows is advice to programmers.
    let (sentence, _) = sentence.split_once(", set ").unwrap_or((sentence, ""));
    let sentence = sentence.trim_start_matches("error: ");
    match sentence.strip_prefix("invalid ") {
        Some(expected) => format!("found {:?}, expected {expected}", scalar_at(text, at)),
        None => sentence.to_owned(),
    }
}

/// The scalar that begins at a place.
fn scalar_at(text: &str, at: Location) -> &str {
    let index = |place: u64| usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index(at.line())).unwrap_or_default();
    let rest = line
        .char_indices()
        .nth(index(at.column()))
        .map_or("", |(from, _)| line.get(from..).unwrap_or_default());
    rest.split([',', '}', ']', '#']).next().unwrap_or_default().trim_end()
}
