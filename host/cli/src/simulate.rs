//! `simulate` and `snapshot`: the policy, and the very plugins, tried before anything breaks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use node_remedy_api::fenceconfiguration::FenceConfiguration;
use node_remedy_api::fenceplugin::FencePlugin;
use node_remedy_api::limits::DOCUMENT_BYTES_MAX;
use node_remedy_api::remedyconfiguration::RemedyConfiguration;
use node_remedy_api::remedypause::RemedyPause;
use node_remedy_api::selector::Selector;
use node_remedy_device_cli::args::{ClusterArgs, Output};
use node_remedy_device_cli::files::{read_bytes, read_text};
use node_remedy_device_cli::output::{out, outln};
use node_remedy_observe::caches::NODE_LEASES;
use node_remedy_observe::vetoes::NodeMaintenance;
use node_remedy_report::text::{Closing, Colour, Depth, Terminal};
use node_remedy_report::{Theme, Timeline, html, lanes_svg, text};
use node_remedy_runtime::cluster::kube::KubeCluster;
use node_remedy_runtime::cluster::unread::Read;
use node_remedy_runtime::cluster::{Cluster as _, Object, Scope};
use node_remedy_sandbox::limits::COMPONENT_BYTES_MAX;
use node_remedy_simulate::diff::Difference;
use node_remedy_simulate::redact::Redactor;
use node_remedy_simulate::{Comparison, Source, component, redact, tell};
use node_remedy_world::Scenario;
use node_remedy_world::scenario::{Loss, LossHow, SNAPSHOT_BYTES_MAX};
use serde_json::{Value, json};

use crate::args::SimulateArgs;

/// Between a scenario and the files that it names, in what a report carries.
const FILE_MARK: &str = "#### file: ";
/// Where nobody says how wide the terminal is.
const COLUMNS: usize = 110;

/// What a container is started with.
const STARTED_WITH: [&str; 4] = ["env", "envFrom", "args", "command"];

/// Plays a scenario, prints its timeline, writes its report.
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    if let Some(report) = &args.verify {
        return verify(report);
    }
    let Some(path) = &args.scenario else { bail!("no scenario; see node-remedy simulate --help") };
    let loss = match (&args.lose, &args.power_loss) {
        (Some(said), _) => Some(LossRequest::parse(said, false)?),
        (None, Some(said)) => Some(LossRequest::parse(said, true)?),
        (None, None) => None,
    };
    let (mut scenario, source) = prepare(path, loss.as_ref())?;
    if let Some(seed) = args.seed {
        scenario.seed = seed;
    }
    let comparison = if args.no_baseline { Comparison::Nothing } else { Comparison::Without };
    let timeline = tell(&scenario, &source, comparison)?;
    if let Some(file) = &args.report {
        let page = html::page(&timeline).context("failed to make the report")?;
        std::fs::write(file, page)
            .with_context(|| format!("failed to write {}", file.display()))?;
    }
    if let Some(file) = &args.svg {
        std::fs::write(file, lanes_svg(&timeline, Theme::Light))
            .with_context(|| format!("failed to write {}", file.display()))?;
    }
    match args.output {
        Output::Json => outln!("{}", serde_json::to_string_pretty(&timeline)?),
        Output::Text => print_text(args, path, &timeline)?,
    }
    Ok(if as_expected(&timeline) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a person wants to be lost.
struct LossRequest<'a> {
    said: &'a str,
    /// `None`: the node of this name.
    selector: Option<Selector>,
    how: LossHow,
}

impl<'a> LossRequest<'a> {
    /// A node's name, or a label selector: no name has one of its signs.
    fn parse(said: &'a str, is_dark: bool) -> anyhow::Result<Self> {
        let is_selector = said.contains(['=', '!', ' ', ',']);
        let selector = match Selector::parse(said) {
            Ok(selector) if is_selector => Some(selector),
            Err(error) if is_selector => bail!("{said:?}: expected a node or {error}"),
            Ok(_) | Err(_) => None,
        };
        let how = match (is_dark, is_selector) {
            (true, _) => LossHow::Dark,
            (false, true) => LossHow::NetworkLost,
            (false, false) => LossHow::KubeletStops,
        };
        Ok(Self { said, selector, how })
    }
}

fn as_expected(timeline: &Timeline) -> bool {
    let without = timeline.without.as_ref().is_none_or(|run| run.outcome.as_expected);
    timeline.with.outcome.as_expected && without
}

fn print_text(args: &SimulateArgs, path: &Path, timeline: &Timeline) -> anyhow::Result<()> {
    let named = |name: &str| std::env::var_os(name).unwrap_or_default();
    let is_plain = !named("NO_COLOR").is_empty() || named("TERM") == "dumb";
    let colour =
        if std::io::stdout().is_terminal() && !is_plain { Colour::Always } else { Colour::Never };
    let terminal = Terminal { columns: COLUMNS, colour };
    out!("{}", text::render(timeline, Depth::Timeline, &terminal));
    outln!("");
    let report = args
        .report
        .as_ref()
        .map_or("not written; add --report FILE".to_owned(), |file| file.display().to_string());
    let path = path.display().to_string();
    let again = try_next(args, &path, timeline.inputs.seed + 1);
    let try_next: Vec<&str> = again.iter().map(String::as_str).collect();
    let closing = Closing { report: &report, scenario: &path, try_next: &try_next };
    out!("{}", text::verdict(timeline, &closing, &terminal));
    Ok(())
}

/// What a person may try next.
fn try_next(args: &SimulateArgs, path: &str, seed: u64) -> Vec<String> {
    let lost = args.lose.as_ref().map(|said| ("lose", said));
    match lost.or(args.power_loss.as_ref().map(|said| ("power-loss", said))) {
        Some((how, said)) => vec![
            format!("node-remedy simulate {path} --{how} '{said}' --seed {seed}"),
            format!(
                "node-remedy simulate {path} --lose NODE, or --power-loss NODE, of another node"
            ),
        ],
        None => vec![
            format!("node-remedy simulate {path} --seed {seed}"),
            format!("edit {path}: another fault, another hour"),
            "node-remedy snapshot > c.yaml && node-remedy simulate c.yaml --lose NODE".to_owned(),
        ],
    }
}

/// A scenario with every file it names, as one text that a report can carry: what is played is
/// that very text, in which stand-ins have taken the place of credentials.
fn prepare(path: &Path, lose: Option<&LossRequest<'_>>) -> anyhow::Result<(Scenario, Source)> {
    // A snapshot is of a whole cluster.
    let bytes_max = if lose.is_some() { SNAPSHOT_BYTES_MAX } else { DOCUMENT_BYTES_MAX };
    let text = read(path, bytes_max)?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("scenario").to_owned();
    let shown = path.display().to_string();
    if let Some(asked) = lose {
        let is_lost = |name: &str, labels: &BTreeMap<String, String>| match &asked.selector {
            Some(selector) => selector.matches(&labels.clone().into_iter().collect()),
            None => name == asked.said,
        };
        let loss = Loss { said: asked.said, is_lost: &is_lost, how: asked.how };
        let scenario = |text: &str| {
            Scenario::from_snapshot(&shown, text, &loss)
                .with_context(|| format!("failed to make a scenario of {shown}"))
        };
        // Mistakes are told of what the person wrote.
        scenario(&text)?;
        let text = Redactor::new(redact::Kind::Snapshot).text(&text)?;
        let scenario = scenario(&text)?;
        let text = format!("# lose {}\n{text}", asked.said);
        return Ok((scenario, Source { name, text }));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let loaded = RefCell::new(BTreeMap::new());
    let load = |file: &str| {
        let path = folder.join(file);
        let text = match component::name_in(file) {
            // Cargo writes `_` where a plugin's name has `-`; none has `_`.
            Some(name) => component_of(&path, &name.replace('_', "-")),
            None => read(&path, DOCUMENT_BYTES_MAX),
        };
        let text = text.map_err(|error| format!("{error:#}"))?;
        loaded.borrow_mut().insert(file.to_owned(), text.clone());
        Ok(text)
    };
    Scenario::parse(&shown, &text, &load)?;
    let mut redactor = Redactor::new(redact::Kind::Scenario);
    let mut whole = redactor.text(&text)?;
    let mut files = loaded.into_inner();
    for text in files.values_mut() {
        *text = redactor.text(text)?;
    }
    let load = |file: &str| files.get(file).cloned().ok_or_else(|| format!("no {file}"));
    let scenario = Scenario::parse(&shown, &whole, &load)?;
    for (file, text) in files {
        for part in ["\n", FILE_MARK, &file, "\n", &text] {
            whole.push_str(part);
        }
    }
    Ok((scenario, Source { name, text: whole }))
}

fn read(path: &Path, bytes_max: usize) -> anyhow::Result<String> {
    read_text(path, bytes_max).with_context(|| format!("failed to read {}", path.display()))
}

/// A component in a file, as a configuration has it.
fn component_of(path: &Path, name: &str) -> anyhow::Result<String> {
    let failed = || format!("failed to read {}", path.display());
    let bytes = read_bytes(path, COMPONENT_BYTES_MAX).with_context(failed)?;
    component::documents(name, &bytes).with_context(failed)
}

/// Plays what a report carries again and compares.
fn verify(report: &Path) -> anyhow::Result<ExitCode> {
    let page = read(report, html::READ_BYTES_MAX)?;
    let told = html::read_back(&page)
        .with_context(|| format!("{} is not a report of ours", report.display()))?;
    let mark = format!("\n{FILE_MARK}");
    let mut parts = told.inputs.scenario.split(&mark);
    let text = parts.next().unwrap_or_default();
    let files: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('\n')).collect();
    let load = |file: &str| {
        let text = files.get(file).map(|text| (*text).to_owned());
        text.ok_or_else(|| format!("the report does not carry {file}"))
    };
    ensure!(
        !text.starts_with("# lose "),
        "a report of a snapshot is verified from the snapshot: \
        node-remedy simulate SNAPSHOT --lose NODE, or --power-loss SELECTOR"
    );
    let mut scenario = Scenario::parse(&told.inputs.name, text, &load)?;
    scenario.seed = told.inputs.seed;
    let source = Source { name: told.inputs.name.clone(), text: told.inputs.scenario.clone() };
    let comparison = if told.without.is_some() { Comparison::Without } else { Comparison::Nothing };
    let again = tell(&scenario, &source, comparison)?;
    if again.inputs.plugins != told.inputs.plugins || again.inputs.version != told.inputs.version {
        outln!("not comparable: the report was made by other plugins or another version");
        outln!("  report: {} {:?}", told.inputs.version, told.inputs.plugins);
        outln!("  here:   {} {:?}", again.inputs.version, again.inputs.plugins);
        return Ok(ExitCode::FAILURE);
    }
    let remade = html::page(&again).context("failed to make the report")?;
    let Some(difference) = Difference::first(&page, &remade) else {
        let entries = told.with.entries.len();
        outln!("reproduced: seed {}, {entries} entries, identical", told.inputs.seed);
        return Ok(ExitCode::SUCCESS);
    };
    outln!("not reproduced; the first difference: {difference}");
    Ok(ExitCode::FAILURE)
}

/// Writes what `simulate --lose` needs of a cluster, reading only.
pub async fn snapshot(args: &ClusterArgs) -> anyhow::Result<ExitCode> {
    let cluster = KubeCluster::connect(args.kubeconfig.as_deref()).await?;
    let all = Scope::all();
    let mut items = Vec::new();
    add::<Node>(&cluster, &all, &mut items).await?;
    add::<Lease>(&cluster, &Scope::within(NODE_LEASES), &mut items).await?;
    add::<Pod>(&cluster, &all, &mut items).await?;
    add::<PersistentVolume>(&cluster, &all, &mut items).await?;
    add::<PersistentVolumeClaim>(&cluster, &all, &mut items).await?;
    add::<VolumeAttachment>(&cluster, &all, &mut items).await?;
    add::<k8s_openapi::api::apps::v1::StatefulSet>(&cluster, &all, &mut items).await?;
    add::<PodDisruptionBudget>(&cluster, &all, &mut items).await?;
    add::<ConfigMap>(&cluster, &Scope::within(&args.namespace), &mut items).await?;
    // A cluster where node-remedy was never installed has no such kinds.
    let _ = add::<RemedyConfiguration>(&cluster, &all, &mut items).await;
    let _ = add::<FenceConfiguration>(&cluster, &all, &mut items).await;
    let _ = add::<RemedyPause>(&cluster, &all, &mut items).await;
    let _ = add::<FencePlugin>(&cluster, &all, &mut items).await;
    // Nor has one without its operator this one.
    let _ = add::<NodeMaintenance>(&cluster, &all, &mut items).await;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let text = serde_saphyr::to_string(&list).context("failed to write YAML")?;
    // ConfigMaps of historical configurations hold passwords.
    out!("{}", Redactor::new(redact::Kind::Snapshot).text(&text)?);
    Ok(ExitCode::SUCCESS)
}

async fn add<K: Object>(
    cluster: &KubeCluster,
    scope: &Scope,
    items: &mut Vec<Value>,
) -> anyhow::Result<()> {
    let kind = K::kind(&());
    let mut listed = Vec::new();
    let keep = |read: Read<K>| {
        listed.push(match read {
            Ok(object) => serde_json::to_value(&object),
            Err(unread) => Ok(unread.object().clone()),
        });
    };
    let read = cluster.list_each(scope, keep).await;
    read.with_context(|| format!("failed to list {kind}s"))?;
    for value in listed {
        let mut value = value?;
        leave_out(&mut value, "/metadata", &["managedFields"]);
        // The whole object once more, as text.
        leave_out(&mut value, "/metadata/annotations", &[redact::LAST_APPLIED]);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".to_owned(), K::api_version(&()).into_owned().into());
            fields.insert("kind".to_owned(), kind.clone().into_owned().into());
        }
        // Images are most of a node; what containers are started with may hold any secret.
        leave_out(&mut value, "/status", &["images"]);
        for pod in ["/spec", "/spec/template/spec"] {
            for containers in ["containers", "initContainers"] {
                let count = value.pointer(&format!("{pod}/{containers}")).and_then(Value::as_array);
                for index in 0..count.map_or(0, Vec::len) {
                    leave_out(&mut value, &format!("{pod}/{containers}/{index}"), &STARTED_WITH);
                }
            }
        }
        items.push(value);
    }
    Ok(())
}

/// Takes fields away from the object at a place, if there is one.
fn leave_out(value: &mut Value, place: &str, names: &[&str]) {
    if let Some(fields) = value.pointer_mut(place).and_then(Value::as_object_mut) {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}
