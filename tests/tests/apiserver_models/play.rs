//! Plays a script on one side and writes down what was answered and what happened.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use node_remedy_world::api::Kind;
use node_remedy_world::api::object::{condition_status, list, text};
use serde_json::{Value, json};

use super::facts::{Names, Reader};
use super::script::{Request, Script, Step, UID, VERSION, Watch, create, get};
use super::side::{Answer, Side, Watched};
use super::trace::{Fact, in_normal_order};

/// What a side may take until an awaited fact comes: more than anything that is awaited takes, and
/// room for a busy machine.
const AWAITED_WITHIN: Duration = Duration::from_secs(150);

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// Every request and its answer.
    pub(crate) answers: Vec<String>,
    /// What happened up to the last fact that was awaited, in normal order.
    pub(crate) facts: Vec<String>,
}

/// A part of the controller manager was quicker than the script allows ([`Step::Race`]): these facts cannot be compared.
#[derive(Debug)]
pub(crate) struct Raced {
    lost_by: &'static str,
}

impl Display for Raced {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} came in between", self.lost_by)
    }
}

impl Error for Raced {}

/// Plays a script to its end.
pub(crate) async fn play<S: Side>(script: &Script, side: &mut S) -> Result<Transcript> {
    let mut player = Player {
        side,
        names: Names::new(script.name, script.nodes),
        reader: Reader::default(),
        facts: Vec::new(),
        kept: BTreeMap::new(),
        answers: Vec::new(),
        begin: 0,
        awaited: BTreeMap::new(),
        told: Vec::new(),
    };
    player.prepare().await?;
    for step in &script.steps {
        player.step(step).await.with_context(|| player.so_far(step))?;
    }
    player.transcript().await
}

struct Player<'a, S> {
    side: &'a mut S,
    names: Names,
    reader: Reader,
    facts: Vec<Fact>,
    kept: BTreeMap<&'static str, String>,
    answers: Vec<String>,
    /// Facts up to this version are preparations.
    begin: u64,
    /// How often each line was awaited.
    awaited: BTreeMap<&'static str, usize>,
    /// The facts that were awaited, in the order of the steps.
    told: Vec<Fact>,
}

impl<S: Side> Player<'_, S> {
    /// A namespace, and nodes that are ready.
    async fn prepare(&mut self) -> Result<()> {
        let namespace = json!({ "metadata": { "name": self.names.script } });
        self.ask(&create(Kind::Namespace, namespace)).await?;
        for node in self.names.nodes.clone() {
            loop {
                let request = get(Kind::Node, &node);
                let answer = self.side.ask(&request, &self.names.script).await?;
                let is_ready = |node: &Value| {
                    condition_status(node, "Ready") == "True"
                        && list(node, "/spec/taints").is_empty()
                };
                if matches!(answer, Answer::Done(node) if is_ready(&node)) {
                    break;
                }
                ensure!(self.side.now() < AWAITED_WITHIN, "{node} does not become ready");
                self.side.wait().await?;
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Ask(request) => self.ask(request).await,
            Step::Watch(watch) => self.watch(watch).await,
            Step::Begin { a_runs } => self.begin(*a_runs).await,
            Step::Hit(letter, misfortune) => {
                let node = self.names.node(*letter).context("no such node")?.to_owned();
                let line = misfortune.line(*letter);
                let at = self.side.now();
                // Nobody writes it; it is told for what comes after it.
                self.told.push(Fact {
                    version: 0,
                    at,
                    line,
                    writes: Vec::new(),
                    reads: Vec::new(),
                });
                self.side.apply_fault(&node, *misfortune).await
            }
            Step::Until(lines) => self.until(lines).await,
            Step::Nothing { for_s } => {
                let end = self.side.now() + Duration::from_secs(*for_s);
                while self.side.now() < end {
                    self.side.wait().await?;
                }
                Ok(())
            }
            Step::Took { from, to, within_s } => {
                let at = |line: &str| {
                    let told = self.told.iter().rfind(|fact| fact.line == line);
                    told.map(|fact| fact.at).with_context(|| format!("{line} was not awaited"))
                };
                let took_s = at(to)?.as_secs_f64() - at(from)?.as_secs_f64();
                println!("{} {}: {took_s:.1} s to {to}", S::NAME, self.names.script);
                ensure!(within_s.contains(&took_s), "from {from} to {to} it took {took_s:.1} s");
                Ok(())
            }
            Step::Race { lost_by } => {
                self.hear().await?;
                let mut since = self.facts.iter().filter(|fact| fact.version > self.begin);
                if since.any(|fact| fact.line == *lost_by) {
                    bail!(Raced { lost_by });
                }
                Ok(())
            }
            Step::ForgetHistory => {
                self.hear().await?;
                self.side.forget_history().await
            }
        }
    }

    async fn ask(&mut self, request: &Request) -> Result<()> {
        let asked = Request {
            name: self.filled(&request.name),
            body: serde_json::from_str(&self.filled(&request.body.to_string()))?,
            ..request.clone()
        };
        let answer = self.side.ask(&asked, &self.names.script).await?;
        let (verb, part) = (request.verb, request.part);
        let what = format!("{verb:?} {} {} {part:?}", request.kind.name(), request.name);
        let said = match answer {
            Answer::Refused { code, reason } => format!("{code} {reason}"),
            Answer::Done(object) => {
                let notes = request.notes.iter().map(|pointer| self.noted(&object, pointer));
                let notes: String = notes.collect();
                for (name, pointer) in &request.keeps {
                    self.kept.insert(name, text(&object, pointer).to_owned());
                }
                format!("done{notes}")
            }
        };
        self.answers.push(format!("{what}: {said}"));
        Ok(())
    }

    /// A value in words that are the same on both sides.
    fn noted(&self, object: &Value, pointer: &str) -> String {
        let value = object.pointer(pointer).unwrap_or(&Value::Null);
        let known = self.kept.iter().find(|(_, kept)| value.as_str() == Some(kept.as_str()));
        let value = match known {
            Some((name, _)) => format!("{{{name}}}"),
            // Versions and UIDs are never alike, only the same as before or not.
            None if matches!(pointer, VERSION | UID) => "another".to_owned(),
            None => value.to_string().replace(S::DRIVER, "{driver}"),
        };
        format!(", {pointer} {value}")
    }

    async fn watch(&mut self, watch: &Watch) -> Result<()> {
        let from = self.filled(watch.from);
        let said = match self.side.watch(watch, &self.names.script, &from).await? {
            Watched::Refused { code, reason } => format!("{code} {reason}"),
            Watched::Told { events, bookmark } => {
                self.kept.insert(watch.keep, bookmark);
                let events = events.iter().map(|(change, name)| format!("{change:?} {name}, "));
                format!("{}bookmark", events.collect::<String>())
            }
        };
        let (kind, fields) = (watch.kind.name(), watch.fields);
        self.answers.push(format!("watch {kind} {fields} from {}: {said}", watch.from));
        Ok(())
    }

    async fn begin(&mut self, a_runs: Option<&'static str>) -> Result<()> {
        if let Some(pod) = a_runs {
            let answer = self.side.ask(&get(Kind::Pod, pod), &self.names.script).await?;
            let Answer::Done(pod) = answer else { bail!("there is no {pod}") };
            let node = text(&pod, "/spec/nodeName");
            self.names.call_a(node);
            self.hear().await?;
            if let Some(attachment) = self.reader.attachment_to(node) {
                self.kept.insert("attachment", attachment.to_owned());
            }
        }
        self.begin = self.side.version().await?;
        self.awaited.clear();
        Ok(())
    }

    async fn until(&mut self, lines: &[&'static str]) -> Result<()> {
        for line in lines {
            *self.awaited.entry(line).or_default() += 1;
        }
        let end = self.side.now() + AWAITED_WITHIN;
        loop {
            self.hear().await?;
            let found: Vec<Option<Fact>> = lines.iter().map(|line| self.nth(line)).collect();
            if found.iter().all(Option::is_some) {
                self.told.extend(found.into_iter().flatten());
                return Ok(());
            }
            let missing = lines.iter().zip(&found).find(|(_, found)| found.is_none());
            ensure!(
                self.side.now() < end,
                "waited in vain for {:?}",
                missing.map(|(line, _)| line)
            );
            self.side.wait().await?;
        }
    }

    /// The fact of this line that was awaited last.
    fn nth(&self, line: &str) -> Option<Fact> {
        let times = self.awaited.get(line)?.checked_sub(1)?;
        let since = self.facts.iter().filter(|fact| fact.version > self.begin);
        since.filter(|fact| fact.line == line).nth(times).cloned()
    }

    async fn hear(&mut self) -> Result<()> {
        for change in self.side.news().await? {
            self.facts.extend(self.reader.read(&self.names, &change));
        }
        Ok(())
    }

    /// Fills in names; what it does not know stays.
    fn filled(&self, text: &str) -> String {
        let mut filled = text.replace("{ns}", &self.names.script).replace("{driver}", S::DRIVER);
        for (letter, node) in ('a'..='z').zip(&self.names.nodes) {
            filled = filled.replace(&format!("{{{letter}}}"), node);
        }
        for (name, value) in &self.kept {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        filled
    }

    async fn transcript(mut self) -> Result<Transcript> {
        if !self.told.is_empty() {
            self.side.catch_up().await?;
            self.hear().await?;
        }
        let last = self.told.iter().map(|fact| fact.version).max().unwrap_or_default();
        let facts =
            self.facts.iter().filter(|fact| (self.begin + 1..=last).contains(&fact.version));
        let facts: Vec<Fact> = facts.cloned().collect();
        Ok(Transcript { answers: self.answers, facts: in_normal_order(&facts) })
    }

    fn so_far(&self, step: &Step) -> String {
        let since = self.facts.iter().filter(|fact| fact.version > self.begin);
        let facts: Vec<String> =
            since.map(|fact| format!("{:.1} {}", fact.at.as_secs_f64(), fact.line)).collect();
        let (script, answers) = (&self.names.script, self.answers.join("\n"));
        format!("{} {script}: {step:?} after\n{answers}\n{}", S::NAME, facts.join("\n"))
    }
}
