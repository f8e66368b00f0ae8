//! Reads a policy out of a document: schema first, then what no schema can say. Every problem of
//! the document is reported, not only the first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::{
    CONDITION_STALE_AFTER, JOB_BACKOFF_LIMIT, JOB_DEADLINE, JobTemplate, Symptom, contradictions,
    pod_template,
};
use crate::document::{
    Document, Path, Problem, Problems, Reading, Severity, Tree, check, nearest, schema_of,
};
use crate::fenceplugin::{NAME_MAX as PLUGIN_NAME_MAX, is_name as is_plugin_name};
use crate::policy::model::{Policy, Remedy, RemedyStep, Threshold};
use crate::remedyconfiguration::{
    RemedyConfig, RemedyConfiguration, RemedyConfigurationSpec, RemedyStepItem, ThresholdConfig,
};
use crate::selector::Selector;
use crate::time::Span;
use crate::{GROUP, VERSION, limits};

/// What the proposal's document calls itself.
const DOCUMENT_API_VERSION: &str = "node-remedy/v1alpha";
/// The kind of the proposal's document.
const DOCUMENT_KIND: &str = "Configuration";
/// The remedies that exist without being defined.
const OWN_REMEDIES: [&str; 2] = ["fence", "storage-fence"];
/// The step that every fence ends with. No condition asks for it, so it is no remedy of a ladder.
const RECOVERY: &str = "recovery";

/// Reads a `Configuration` document or a `RemedyConfiguration`.
pub fn read(document: &Document) -> Reading<Policy> {
    let mut reader = Reader { document, problems: Problems::none() };
    let policy = reader.policy();
    reader.problems.with(policy)
}

/// Made once: it follows from the types, and configurations are read often.
static SCHEMA: LazyLock<Json> = LazyLock::new(schema_of::<RemedyConfiguration>);

struct Reader<'a> {
    document: &'a Document,
    problems: Problems,
}

impl Reader<'_> {
    fn policy(&mut self) -> Option<Policy> {
        let root = &self.document.root;
        let text = |field: &str| root.get(field).and_then(Tree::text).unwrap_or_default();
        let schema = Json::clone(&SCHEMA);
        let own = format!("{GROUP}/{VERSION}");
        let (tree, base, schema) = match (text("apiVersion"), text("kind")) {
            (DOCUMENT_API_VERSION, DOCUMENT_KIND) => {
                (root.clone(), Path::root(), with_header(schema))
            }
            (version, "RemedyConfiguration") if version == own => {
                let path = Path::root().field("spec");
                let Some(spec) = root.get("spec") else {
                    self.error(&path, "found nothing, expected a map".to_owned());
                    return None;
                };
                (spec.clone(), path, schema)
            }
            (version, kind) => {
                self.error(
                    &Path::root(),
                    format!(
                        "found apiVersion {version:?} and kind {kind:?}, expected \
                         {DOCUMENT_API_VERSION} {DOCUMENT_KIND} or {own} RemedyConfiguration"
                    ),
                );
                return None;
            }
        };
        check(self.document, &tree, &schema, &base, &mut self.problems);
        if self.problems.has_errors() {
            return None;
        }
        let spec: RemedyConfigurationSpec = match serde_json::from_value(tree.to_json()) {
            Ok(spec) => spec,
            Err(error) => {
                self.error(&base, format!("found what cannot be read: {error}"));
                return None;
            }
        };
        let remedies = self.remedies(&spec.remedy_configs, &base);
        let thresholds = self.thresholds(&spec.threshold_configs, &base, &remedies);
        let selector = self.selector(spec.node_selector.as_deref(), &base);
        let policies = spec.policies.unwrap_or_default();
        let stale_after = policies.condition_stale_after.unwrap_or(CONDITION_STALE_AFTER);
        let path = base.field("policies").field("conditionStaleAfter");
        let condition_stale_after = self.period(Some(stale_after), &path).unwrap_or_default();
        self.windows(&policies, &base.field("policies"));
        let given = policies.clone();
        let policy = Policy {
            name: root
                .get("metadata")
                .and_then(|metadata| metadata.get("name"))
                .and_then(Tree::text)
                .unwrap_or(&self.document.origin)
                .to_owned(),
            origin: self.document.origin.clone(),
            mode: spec.mode,
            selector,
            thresholds,
            condition_stale_after,
            gate: policies.gate(),
            incident: policies.incident(),
            repeat_alarm: policies.repeat_alarm,
        };
        self.contradictions(&policy, &given, &base);
        Some(policy)
    }

    fn contradictions(&mut self, policy: &Policy, given: &super::Policies, base: &Path) {
        for (severity, path, sentence) in
            contradictions::of_policies(policy, given, &base.field("policies"))
        {
            self.push(severity, &path, sentence);
        }
        if self.problems.has_errors() {
            // One that cannot be read is left out, and the others are not where they stand.
            return;
        }
        for (index, threshold) in policy.thresholds.iter().enumerate() {
            let path = base.field("thresholdConfigs").index(index);
            for (severity, path, sentence) in contradictions::of_threshold(threshold, &path) {
                self.push(severity, &path, sentence);
            }
            for (number, remedy_step) in (1_usize..).zip(&threshold.ladder) {
                let path = path.field(&format!("remedy{number}"));
                if let Some((severity, path, sentence)) =
                    contradictions::of_remedy_step(remedy_step, &policy.incident.grades, &path)
                {
                    self.push(severity, &path, sentence);
                }
            }
        }
    }

    fn selector(&mut self, text: Option<&str>, base: &Path) -> Option<Selector> {
        match Selector::parse(text?) {
            Ok(selector) => Some(selector),
            Err(expected) => {
                let found = format!("found {:?}, expected {expected}", text.unwrap_or_default());
                self.error(&base.field("nodeSelector"), found);
                None
            }
        }
    }

    fn windows(&mut self, policies: &super::Policies, base: &Path) {
        if let Some(alarm) = policies.repeat_alarm {
            let path = base.field("repeatAlarm").field("window");
            self.window(alarm.window, limits::REPEAT_WINDOW_DAYS_MAX, &path);
        }
        if let Some(breaker) = policies.breaker {
            let path = base.field("breaker");
            self.window(breaker.window, limits::BREAKER_DAYS_MAX, &path.field("window"));
            self.window(breaker.cool_down, limits::BREAKER_DAYS_MAX, &path.field("coolDown"));
        }
        for (index, window) in policies.pause_windows.iter().flatten().enumerate() {
            let path = base.field("pauseWindows").index(index);
            for mistake in window.mistakes() {
                self.error(&path.field(mistake.field), mistake.sentence);
            }
        }
    }

    fn window(&mut self, found: Span, days_max: u64, path: &Path) {
        let longest = Span::from_minutes(days_max.saturating_mul(24 * 60));
        if found < Span::from_minutes(1) || found > longest {
            self.error(path, format!("found {found}, expected 1m to {longest}"));
        }
    }

    fn remedies(&mut self, configs: &[RemedyConfig], base: &Path) -> BTreeMap<String, Remedy> {
        let mut remedies = BTreeMap::from([
            ("fence".to_owned(), Remedy::Fence),
            ("storage-fence".to_owned(), Remedy::Isolation),
        ]);
        let mut names = BTreeSet::new();
        for (index, config) in configs.iter().enumerate() {
            let path = base.field("remedyConfigs").index(index);
            if !names.insert(config.name.as_str()) {
                let sentence =
                    format!("found {:?} a second time, expected another name", config.name);
                self.error(&path.field("name"), sentence);
            }
            if let Some(remedy) = self.remedy(config, &path) {
                remedies.insert(config.name.clone(), remedy);
            } else {
                // Named all the same, so that a threshold that names it is not refused as well.
                remedies.insert(config.name.clone(), Remedy::Fence);
            }
        }
        remedies
    }

    fn remedy(&mut self, config: &RemedyConfig, path: &Path) -> Option<Remedy> {
        let mut ways = Vec::new();
        if config.fence.is_some() {
            ways.push(Remedy::Fence);
        }
        if let Some(method) = &config.method {
            ways.push(Remedy::Method(method.clone()));
        }
        if let Some(cluster_action) = config.cluster {
            ways.push(Remedy::Cluster(cluster_action));
        }
        if let Some(plugin) = &config.plugin {
            if !is_plugin_name(plugin) {
                let sentence = format!(
                    "found {plugin:?}, expected the name of a FencePlugin of kind remedy: 1 to \
                     {PLUGIN_NAME_MAX} of a-z, 0-9 and -"
                );
                self.error(&path.field("plugin"), sentence);
            }
            ways.push(Remedy::Plugin(plugin.clone()));
        }
        if let Some(template) = &config.pod_template {
            ways.push(Remedy::PodTemplate(self.job(config, template, path)?));
        } else {
            self.only_with_job(config, path);
        }
        if ways.len() == 1 {
            return ways.pop();
        }
        let found = if ways.is_empty() { "none" } else { "several" };
        let expected = "exactly one of fence, method, cluster, podTemplate, plugin";
        self.error(path, format!("found {found} of the ways to remedy, expected {expected}"));
        None
    }

    fn job(&mut self, config: &RemedyConfig, template: &Json, path: &Path) -> Option<JobTemplate> {
        let deadline = path.field("deadline");
        let deadline = self.period(Some(config.deadline.unwrap_or(JOB_DEADLINE)), &deadline);
        let path = path.field("podTemplate");
        let template = match pod_template::expand(template) {
            Ok(template) => template.to_string(),
            Err(wrong) => {
                for (below, sentence) in wrong {
                    self.error(&path.join(&below), sentence);
                }
                return None;
            }
        };
        let most = limits::POD_TEMPLATE_BYTES_MAX;
        if template.len() > most {
            let sentence = format!("found {} bytes, expected at most {most}", template.len());
            self.error(&path, sentence);
            return None;
        }
        let backoff_limit = config.backoff_limit.unwrap_or(JOB_BACKOFF_LIMIT);
        Some(JobTemplate { pod_template: template, deadline: deadline?, backoff_limit })
    }

    fn only_with_job(&mut self, config: &RemedyConfig, path: &Path) {
        for (field, given) in [
            ("deadline", config.deadline.is_some()),
            ("backoffLimit", config.backoff_limit.is_some()),
        ] {
            if given {
                let sentence = "found it without podTemplate, expected it beside one";
                self.error(&path.field(field), sentence.to_owned());
            }
        }
    }

    fn thresholds(
        &mut self,
        configs: &[ThresholdConfig],
        base: &Path,
        remedies: &BTreeMap<String, Remedy>,
    ) -> Vec<Threshold> {
        let mut thresholds: Vec<Threshold> = Vec::new();
        for (index, config) in configs.iter().enumerate() {
            let path = base.field("thresholdConfigs").index(index);
            let ladder = self.ladder(config, &path, remedies);
            self.recovery(config, &path, remedies);
            let Some((symptom, period)) = self.symptom(config, &path) else { continue };
            if thresholds.iter().any(|other| other.symptom.overlaps(&symptom)) {
                let sentence = "found the same symptom as in an earlier threshold, expected one threshold \
                                for it";
                self.error(&path, sentence.to_owned());
            }
            thresholds.push(Threshold { symptom, period, ladder });
        }
        thresholds
    }

    /// Its symptom, and for how long that has to hold.
    fn symptom(&mut self, config: &ThresholdConfig, path: &Path) -> Option<(Symptom, Span)> {
        let symptom = Symptom::read(&config.symptom(), path, &mut |path, sentence| {
            self.error(path, sentence);
        });
        let is_condition = config.node_condition_type.is_some();
        let is_compound = !config.all.is_empty() || !config.any.is_empty() || config.not.is_some();
        let mut period = Some(Span::default());
        for (field, given, is_due, beside) in [
            ("nodeConditionPeriod", config.node_condition_period, is_condition, "a condition"),
            ("period", config.period, is_compound, "all, any or not"),
        ] {
            let path = path.field(field);
            if is_due {
                period = self.period(given, &path);
            } else if given.is_some() && symptom.is_some() {
                self.error(&path, format!("found it without {beside}, expected none"));
            }
        }
        Some((symptom?, period?))
    }

    /// A length of time that is neither nothing nor absurd.
    fn period(&mut self, period: Option<Span>, path: &Path) -> Option<Span> {
        let longest = Span::from_minutes(limits::PERIOD_DAYS_MAX.saturating_mul(24 * 60));
        match period {
            None => {
                let sentence = "found nothing, expected a length of time such as 5s, 3m or 1h30m";
                self.error(path, sentence.to_owned());
                None
            }
            Some(period) if period < Span::from_s(1) || period > longest => {
                self.error(path, format!("found {period}, expected 1s to {longest}"));
                None
            }
            Some(period) => Some(period),
        }
    }

    fn ladder(
        &mut self,
        config: &ThresholdConfig,
        path: &Path,
        remedies: &BTreeMap<String, Remedy>,
    ) -> Vec<RemedyStep> {
        // Without a period of its own a remedy step waits as long as the threshold did.
        let events = config.node_event.as_ref().map(|events| events.window);
        let flaps = config.node_condition_flaps.as_ref().map(|flaps| flaps.window);
        let times = [config.node_condition_period, config.node_lease_age, config.period];
        let default = times.into_iter().chain([config.never_joined, events, flaps]);
        let default = default.flatten().next().unwrap_or_default();
        let remedy_steps =
            [&config.remedy1, &config.remedy2, &config.remedy3, &config.remedy4, &config.remedy5];
        let mut ladder = Vec::new();
        let mut ended = false;
        for (number, items) in (1_usize..).zip(remedy_steps) {
            let path = path.field(&format!("remedy{number}"));
            if items.is_empty() {
                ended = true;
            } else if ended {
                let sentence = "found it without the remedy before it, expected no gap";
                self.error(&path, sentence.to_owned());
            } else {
                let remedy_step = self.remedy_step(items, &path, default, remedies);
                self.one_fence(&ladder, remedy_step.as_ref(), &path);
                ladder.extend(remedy_step);
            }
        }
        ladder
    }

    /// How a node is fenced its FenceConfiguration says, once for the whole ladder. Parts of it may be tried
    /// before: first its methods, one by one, then its isolation.
    fn one_fence(&mut self, ladder: &[RemedyStep], remedy_step: Option<&RemedyStep>, path: &Path) {
        let Some(remedy_step) = remedy_step.filter(|remedy_step| remedy_step.remedy.is_of_plan())
        else {
            return;
        };
        let mut earlier = ladder.iter().filter(|remedy_step| remedy_step.remedy.is_of_plan());
        let is_before = |earlier: &RemedyStep| match (&earlier.remedy, &remedy_step.remedy) {
            (Remedy::Method(one), Remedy::Method(other)) => one != other,
            (Remedy::Method(_), _) | (Remedy::Isolation, Remedy::Fence) => true,
            (_, _) => false,
        };
        if let Some(earlier) = earlier.find(|earlier| !is_before(earlier)) {
            let sentence = format!(
                "found {:?} after {:?}, expected one fence in a ladder, before it at most its methods, each \
                 once, and then storage-fence: steps that follow one another are stages of the \
                 FenceConfiguration",
                remedy_step.name, earlier.name
            );
            self.error(path, sentence);
        }
    }

    /// `recovery` of the proposal names the step of that name, which follows anyway.
    fn recovery(
        &mut self,
        config: &ThresholdConfig,
        path: &Path,
        remedies: &BTreeMap<String, Remedy>,
    ) {
        let own = remedies.contains_key(RECOVERY);
        for (index, item) in config.recovery.iter().enumerate() {
            if own || item.name.as_deref() != Some(RECOVERY) {
                let found = match &item.name {
                    Some(name) if name == RECOVERY => "a remedy of remedyConfigs".to_owned(),
                    Some(name) => format!("the name {name:?}"),
                    None => "no name".to_owned(),
                };
                let sentence = format!(
                    "found {found}, expected - name: recovery, which is the step that every fence ends \
                     with: what it does stands under recovery of the FenceConfiguration"
                );
                self.error(&path.field(RECOVERY).index(index), sentence);
            }
        }
    }

    /// One remedy step out of its list of one-key maps.
    fn remedy_step(
        &mut self,
        items: &[RemedyStepItem],
        path: &Path,
        default: Span,
        remedies: &BTreeMap<String, Remedy>,
    ) -> Option<RemedyStep> {
        let (mut name, mut period, mut clean) = (None, None, None);
        for (index, item) in items.iter().enumerate() {
            let path = path.index(index);
            if let Some(value) = &item.name {
                self.once(&mut name, value.clone(), &path.field("name"));
            }
            if let Some(value) = item.period {
                let path = path.field("period");
                if let Some(value) = self.period(Some(value), &path) {
                    self.once(&mut period, value, &path);
                }
            }
            if let Some(value) = item.clean_resource {
                self.once(&mut clean, value, &path.field("clean-resource"));
            }
            if let Some(value) = item.clean_resourece {
                let path = path.field("clean-resourece");
                self.warn(&path, "read as clean-resource; write clean-resource".to_owned());
                self.once(&mut clean, value, &path);
            }
        }
        let Some(name) = name else {
            self.error(path, "found no name, expected - name: REMEDY".to_owned());
            return None;
        };
        let Some(remedy) = remedies.get(&name).cloned() else {
            let known = remedies.keys().map(String::as_str);
            let expected = match nearest(&name, known.clone()) {
                _ if name == RECOVERY => {
                    "a remedy: recovery is the step that every fence ends with".to_owned()
                }
                Some(near) => format!("a defined remedy (did you mean {near}?)"),
                None => {
                    format!("a remedy under remedyConfigs, or one of {}", OWN_REMEDIES.join(", "))
                }
            };
            self.error(path, format!("found the name {name:?}, expected {expected}"));
            return None;
        };
        Some(RemedyStep {
            name,
            remedy,
            period: period.unwrap_or(default),
            clean_resource: clean.unwrap_or(false),
        })
    }

    fn once<T>(&mut self, place: &mut Option<T>, value: T, path: &Path) {
        if place.replace(value).is_some() {
            self.error(path, "found it a second time, expected it once".to_owned());
        }
    }

    fn error(&mut self, path: &Path, sentence: String) {
        self.push(Severity::Error, path, sentence);
    }

    fn warn(&mut self, path: &Path, sentence: String) {
        self.push(Severity::Warning, path, sentence);
    }

    fn push(&mut self, severity: Severity, path: &Path, sentence: String) {
        let problem: Problem = self.document.problem(severity, path, sentence);
        self.problems.push(problem);
    }
}

/// The proposal's document has its header beside its fields.
fn with_header(mut schema: Json) -> Json {
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        for field in ["apiVersion", "kind"] {
            properties.insert(field.to_owned(), serde_json::json!({ "type": "string" }));
        }
    }
    schema
}
