//! Reads a `FenceConfiguration`: schema first, then names, templates, expressions, pairs of
//! actions and grants.

mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::expression::Expression;
use super::plugins::{ActionSet, only_watches};
use super::source::{Does, Draft, FenceSource, Grants, Nodes, StageDraft};
use super::{grants, network_fence, trust};
use crate::document::{
    Document, Path, Problems, Reading, Severity, Tree, check, nearest, schema_of,
};
use crate::fenceconfiguration::{
    CredentialSpec, FenceConfiguration, FenceConfigurationSpec, MethodAction, MethodSpec,
    StageSpec, TemplateSpec,
};
use crate::nodefence::Action;
use crate::plan::device::RESTART_INSTANCE;
use crate::plan::model::{Builtin, Credential, Run, SecretPlace};
use crate::selector::Selector;
use crate::{GROUP, VERSION};

/// The key of a Secret that holds the user name, where nothing else is said: the key of
/// Kubernetes' own `kubernetes.io/basic-auth`.
pub(super) const IDENTITY_KEY: &str = "username";
/// The key that holds the password.
pub(super) const SECRET_KEY: &str = "password";
/// The name under which a plan keeps a plugin's first credential.
pub(super) const FIRST_CREDENTIAL: &str = "default";

/// Reads a `FenceConfiguration`, from a file or as the API server gave it.
pub fn read(document: &Document) -> Reading<FenceSource> {
    let mut reader = Reader { document, problems: Problems::none() };
    let source = reader.source();
    reader.problems.with(source)
}

/// Made once: it follows from the types, and configurations are read often.
static SCHEMA: LazyLock<Json> = LazyLock::new(schema_of::<FenceConfiguration>);

struct Reader<'a> {
    document: &'a Document,
    problems: Problems,
}

/// A step: what its methods may ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Isolation,
    Power,
    Recovery,
}

impl Reader<'_> {
    fn source(&mut self) -> Option<FenceSource> {
        let root = &self.document.root;
        let text = |field: &str| root.get(field).and_then(Tree::text).unwrap_or_default();
        let own = format!("{GROUP}/{VERSION}");
        let (version, kind) = (text("apiVersion"), text("kind"));
        if version != own || kind != "FenceConfiguration" {
            let sentence = format!(
                "found apiVersion {version:?} and kind {kind:?}, expected {own} FenceConfiguration"
            );
            self.error(&Path::root(), sentence);
            return None;
        }
        let base = Path::root().field("spec");
        let Some(spec) = root.get("spec") else {
            self.error(&base, "found nothing, expected a map".to_owned());
            return None;
        };
        check(self.document, spec, &SCHEMA, &base, &mut self.problems);
        if self.problems.has_errors() {
            return None;
        }
        match serde_json::from_value::<FenceConfigurationSpec>(spec.to_json()) {
            Ok(spec) => self.compile(&spec, &base),
            Err(error) => {
                self.error(&base, format!("found what cannot be read: {error}"));
                None
            }
        }
    }

    fn compile(&mut self, spec: &FenceConfigurationSpec, base: &Path) -> Option<FenceSource> {
        self.unique(spec.templates.iter().map(|template| &template.name), &base.field("templates"));
        self.unique(spec.methods.iter().map(|method| &method.name), &base.field("methods"));
        let grants = &spec.grants;
        for (index, grant) in grants.iter().enumerate() {
            let path = base.field("grants").index(index);
            grants::check(&grant.allows, &path, &mut |path, sentence| self.error(path, sentence));
        }
        let trusted = self.trusted(&spec.trusted_node_fields, &base.field("trustedNodeFields"));
        let drafts: BTreeMap<&str, Option<Draft>> = (0_usize..)
            .zip(&spec.methods)
            .map(|(index, method)| {
                let path = base.field("methods").index(index);
                (method.name.as_str(), self.draft(method, &spec.templates, &path))
            })
            .collect();
        for draft in drafts.values().flatten() {
            trust::check(draft, &trusted, trust::OF_FENCE_CONFIGURATION, &mut self.problems);
        }
        self.witnesses(spec, &drafts, base);
        let mut source = FenceSource {
            origin: self.document.origin.clone(),
            nodes: self.nodes(&spec.node_selector, &base.field("nodeSelector"))?,
            inventory: spec.inventory.clone(),
            sources: vec![self.document.origin.clone()],
            methods: Vec::new(),
            beside: Vec::new(),
            isolation: Vec::new(),
            power_management: Vec::new(),
            recovery: Vec::new(),
            grants: Grants::Given(grants.clone()),
        };
        if spec.isolation.is_empty() && spec.power_management.is_empty() {
            self.error(
                base,
                "found neither isolation nor powerManagement, expected one".to_owned(),
            );
        }
        for (field, stages, step) in [
            ("isolation", &spec.isolation, Step::Isolation),
            ("powerManagement", &spec.power_management, Step::Power),
            ("recovery", &spec.recovery, Step::Recovery),
        ] {
            for (index, stage) in stages.iter().enumerate() {
                let path = base.field(field).index(index);
                let stage = self.stage(stage, step, &drafts, &mut source, &path);
                match step {
                    Step::Isolation => source.isolation.push(stage),
                    Step::Power => source.power_management.push(stage),
                    Step::Recovery => source.recovery.push(stage),
                }
            }
        }
        let mut stages =
            [&spec.isolation, &spec.power_management, &spec.recovery].into_iter().flatten();
        let named: BTreeSet<&str> =
            stages.by_ref().flat_map(|stage| &stage.methods).map(String::as_str).collect();
        let beside = drafts.into_iter().filter(|(name, _)| !named.contains(name));
        source.beside = beside.filter_map(|(_, draft)| draft).collect();
        source.check(&self.document.spot(base), &mut self.problems);
        Some(source)
    }

    fn trusted(&mut self, texts: &[String], path: &Path) -> Vec<Expression> {
        let mut trusted = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let path = path.index(index);
            let Some(expression) = self.expression(text, &path) else { continue };
            if expression.is_node_field() {
                trusted.push(expression);
            } else {
                let expected =
                    "one field of the node such as ${node.annotations['example.com/bmc']}";
                self.error(&path, format!("found {text:?}, expected {expected}"));
            }
        }
        trusted
    }

    fn nodes(&mut self, text: &str, path: &Path) -> Option<Nodes> {
        match Selector::parse(text) {
            Ok(selector) => Some(Nodes::Selected(selector)),
            Err(expected) => {
                self.error(path, format!("found {text:?}, expected {expected}"));
                None
            }
        }
    }

    fn unique<'a>(&mut self, names: impl Iterator<Item = &'a String>, path: &Path) {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            if !seen.insert(name) {
                let sentence = format!("found {name:?} a second time, expected another name");
                self.error(&path.index(index).field("name"), sentence);
            }
        }
    }

    fn draft(
        &mut self,
        method: &MethodSpec,
        templates: &[TemplateSpec],
        path: &Path,
    ) -> Option<Draft> {
        let template = match &method.template {
            None => None,
            Some(name) => Some(self.template(name, templates, &path.field("template"))?),
        };
        let plugin = template.map(|template| &template.plugin).or(method.plugin.as_ref());
        let watches = plugin.is_some_and(|plugin| only_watches(plugin));
        let (does, asked) = match (plugin, method.builtin, method.action) {
            (Some(plugin), None, None)
                if watches && (template.is_none() || method.plugin.is_none()) =>
            {
                (Does::Plugin(plugin.clone()), ActionSet::default())
            }
            (Some(plugin), None, Some(_)) if watches => {
                let sentence =
                    format!("found an action of {plugin}, which only sees, expected none");
                self.error(&path.field("action"), sentence);
                return None;
            }
            (Some(plugin), None, Some(action)) if template.is_none() || method.plugin.is_none() => {
                (Does::Plugin(plugin.clone()), asked(action))
            }
            (None, Some(builtin), None) => (Does::Builtin(builtin), ActionSet::of(Action::On)),
            (None, Some(_), Some(_)) => {
                let sentence = "found an action of a built-in method, expected none";
                self.error(&path.field("action"), sentence.to_owned());
                return None;
            }
            (Some(plugin), None, None) if template.is_none() || method.plugin.is_none() => {
                (Does::Plugin(plugin.clone()), ActionSet::default())
            }
            (Some(_) | None, Some(_) | None, _) => {
                let sentence =
                    "found none or several of template, plugin and builtin, expected one";
                self.error(path, sentence.to_owned());
                return None;
            }
        };
        let plug = self.expression(method.plug.as_deref().unwrap_or(""), &path.field("plug"))?;
        let mut parameters = BTreeMap::new();
        let own = (&method.parameters, path.field("parameters"));
        let of_template = template.map(|template| {
            let index = templates.iter().position(|other| other.name == template.name);
            let path = Path::root().field("spec").field("templates").index(index.unwrap_or(0));
            (&template.parameters, path.field("parameters"))
        });
        for (values, path) in of_template.into_iter().chain([own]) {
            for (name, value) in values {
                let expression = self.expression(value, &path.field(name))?;
                parameters.insert(name.clone(), expression);
            }
        }
        if does == Does::Builtin(Builtin::NetworkFence) {
            for sentence in network_fence::refusals(|name| parameters.contains_key(name)) {
                self.error(&path.field("parameters"), sentence);
            }
        }
        let inherited =
            template.map(|template| template.credentials.as_slice()).unwrap_or_default();
        let credentials = inherited.iter().chain(&method.credentials).map(credential).collect();
        Some(Draft {
            name: method.name.clone(),
            does,
            asked,
            plug,
            parameters,
            credentials,
            must_success: false,
            sole_feed: method.sole_feed,
            trust_wiring: method.trust_wiring,
            storage_drivers: method.storage_drivers.clone(),
            witness: method.witness.clone(),
        })
    }

    fn template<'t>(
        &mut self,
        name: &str,
        templates: &'t [TemplateSpec],
        path: &Path,
    ) -> Option<&'t TemplateSpec> {
        let found = templates.iter().find(|template| template.name == name);
        if found.is_none() {
            let names = templates.iter().map(|template| template.name.as_str());
            self.error(path, missing(name, "template", names));
        }
        found
    }

    fn expression(&mut self, text: &str, path: &Path) -> Option<Expression> {
        match Expression::parse(text, &self.document.spot(path)) {
            Ok(expression) => Some(expression),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    fn stage(
        &mut self,
        stage: &StageSpec,
        step: Step,
        drafts: &BTreeMap<&str, Option<Draft>>,
        source: &mut FenceSource,
        path: &Path,
    ) -> StageDraft {
        if stage.must_success && stage.run == Run::OnlyOne {
            let sentence = "found true in a stage that runs only-one, expected it in one that runs \
                            all: only one method has to succeed";
            self.error(&path.field("mustSuccess"), sentence.to_owned());
        }
        let mut methods = Vec::new();
        for (index, name) in stage.methods.iter().enumerate() {
            let path = path.field("methods").index(index);
            let draft = match drafts.get(name.as_str()) {
                Some(draft) => draft.clone(),
                None => self.own_method(name, drafts, &path),
            };
            let Some(mut draft) = draft else { continue };
            if let Some(sentence) = misplaced(&draft, step) {
                self.error(&path, sentence);
            }
            if let Some(sentence) = questionable(&draft, step) {
                self.problems.push(self.document.problem(Severity::Warning, &path, sentence));
            }
            draft.must_success |= stage.must_success;
            let place = source.add(draft);
            if !methods.contains(&place) {
                methods.push(place);
            }
        }
        StageDraft { name: stage.name.clone(), run: stage.run, methods }
    }

    fn own_method(
        &mut self,
        name: &str,
        drafts: &BTreeMap<&str, Option<Draft>>,
        path: &Path,
    ) -> Option<Draft> {
        let own = own_method(name, &self.document.spot(path));
        if own.is_none() {
            let known =
                Builtin::READY_MADE.map(Builtin::word).into_iter().chain([RESTART_INSTANCE]);
            let names = drafts.keys().copied().chain(known);
            self.error(path, missing(name, "method", names));
        }
        own
    }

    fn error(&mut self, path: &Path, sentence: String) {
        self.problems.push(self.document.problem(Severity::Error, path, sentence));
    }
}

/// A method that needs no definition.
pub(super) fn own_method(name: &str, spot: &crate::document::Spot) -> Option<Draft> {
    let (does, asked) = match Builtin::of(name) {
        Some(builtin) => (Does::Builtin(builtin), ActionSet::of(Action::On)),
        None if name == RESTART_INSTANCE => (Does::Instance, ActionSet::REBOOT),
        None => return None,
    };
    Some(Draft {
        name: name.to_owned(),
        does,
        asked,
        plug: Expression::parse("", spot).ok()?,
        parameters: BTreeMap::new(),
        credentials: BTreeMap::new(),
        must_success: false,
        sole_feed: false,
        trust_wiring: false,
        storage_drivers: Vec::new(),
        witness: None,
    })
}

/// Why a method cannot stand in a step.
pub(super) fn misplaced(draft: &Draft, step: Step) -> Option<String> {
    let name = &draft.name;
    match (step, &draft.does) {
        (_, Does::Plugin(plugin))
            if draft.asked == ActionSet::default() && !only_watches(plugin) =>
        {
            Some(format!("found {name}, which has no action, expected it as a witness alone"))
        }
        (Step::Power | Step::Recovery, Does::Plugin(plugin)) if only_watches(plugin) => {
            Some(format!("found {name}, which only sees, expected it under isolation"))
        }
        (Step::Isolation, Does::Plugin(_)) if draft.asked.on || draft.asked.reset => {
            Some(format!("found {name}, which does not only cut, expected action off"))
        }
        (Step::Power | Step::Recovery, Does::Builtin(Builtin::DeleteNode)) => Some(format!(
            "found {name}, expected it under isolation; the Node goes once everything on it is released"
        )),
        (Step::Power, Does::Builtin(Builtin::NetworkFence)) => {
            Some(format!("found {name}, which cuts no power, expected it under isolation"))
        }
        (Step::Isolation | Step::Recovery, Does::Instance) => {
            Some(format!("found {name}, expected it under power management"))
        }
        (Step::Recovery, Does::Plugin(_)) if draft.asked.off || draft.asked.reset => {
            Some(format!("found {name}, which switches off, expected action on"))
        }
        (
            Step::Isolation | Step::Power | Step::Recovery,
            Does::Plugin(_) | Does::Builtin(_) | Does::Instance,
        ) => None,
    }
}

/// What is legal and most likely not meant.
pub(super) fn questionable(draft: &Draft, step: Step) -> Option<String> {
    let cordons = draft.does == Does::Builtin(Builtin::MarkUnschedulable);
    (step == Step::Recovery && cordons).then(|| {
        "mark-unschedulable in recovery leaves the node cordoned; mark-schedulable is what undoes \
         isolation"
            .to_owned()
    })
}

/// A name that nothing has.
pub(super) fn missing<'a>(
    name: &str,
    what: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    if let Some(near) = nearest(name, names.clone()) {
        return format!("found the {what} {name:?}, expected a defined one (did you mean {near}?)");
    }
    let names: Vec<&str> = names.collect();
    let known = if names.is_empty() { "none is".to_owned() } else { names.join(", ") };
    format!("found the {what} {name:?}, expected a defined one ({known})")
}

fn asked(action: MethodAction) -> ActionSet {
    match action {
        MethodAction::Off => ActionSet::of(Action::Off),
        MethodAction::On => ActionSet::of(Action::On),
        MethodAction::Reboot => ActionSet::REBOOT,
        MethodAction::Reset => ActionSet::of(Action::Reset),
    }
}

fn credential(spec: &CredentialSpec) -> (String, Credential) {
    let name = spec.name.clone().unwrap_or_else(|| FIRST_CREDENTIAL.to_owned());
    let secret = SecretPlace {
        namespace: String::new(),
        name: spec.secret.clone(),
        identity_key: spec.identity_key.clone().unwrap_or_else(|| IDENTITY_KEY.to_owned()),
        secret_key: spec.secret_key.clone().unwrap_or_else(|| SECRET_KEY.to_owned()),
    };
    (name, Credential { secret: Some(secret), config_map: None })
}
