//! The models as a side: a world in virtual time with the nodes of one script and nothing else.

use std::time::Duration;

use std::sync::Arc;

use anyhow::{Context, Result};
use node_remedy_world::api::object::name;
use node_remedy_world::api::{ApiError, Client, DeleteOptions, Deleted, Key, Kind, Selector};
use node_remedy_world::scenario::{Event, NodeSpec, START, Scenario};
use node_remedy_world::time::{after, between};
use node_remedy_world::{Timings, World};
use serde_json::Value;

use super::facts::{Change, KINDS, Names};
use super::real::{MONITORING, PACE};
use super::script::{Misfortune, Request, Script, Verb, Watch};
use super::side::{Answer, Company, Side, Watched};

/// Who plays the script.
const CLIENT: &str = "script";
/// What a request takes, and the least time that is waited.
const MOMENT: Duration = Duration::from_millis(4);

/// The models.
pub(crate) struct Model {
    world: World,
    /// The version up to which news were told.
    told: u64,
}

impl Model {
    /// A world with the nodes of a script, as fast as the real ones, and with those of nobody.
    pub(crate) fn new(script: &Script, company: Company) -> Self {
        let own = Names::new(script.name, script.nodes).nodes.into_iter();
        let own = own.map(|name| (name, script.name));
        let nodes = own.chain(company.nodes()).map(|(name, zone)| NodeSpec {
            name,
            zone: Some(zone.to_owned()),
            labels: Vec::new(),
            provider_id: None,
            system_uuid: String::new(),
            boot_time: PACE.boot,
            bmc: None,
            cloud: None,
            feeds: Vec::new(),
            port: None,
        });
        let scenario = Scenario {
            title: script.name.to_owned(),
            seed: 1,
            duration: Duration::from_hours(1),
            until_calm: None,
            shuffle: false,
            admit: None,
            timings: Timings {
                node_monitor_grace: Duration::from_secs(MONITORING.grace_period_s),
                node_monitor_period: Duration::from_secs(MONITORING.period_s),
                lease_renewal: PACE.renew_every,
                pod_start: PACE.start_pod,
                pod_stop: PACE.stop_pod,
                ..Timings::default()
            },
            nodes: nodes.collect(),
            devices: Vec::new(),
            controllers: 0,
            second_installation: false,
            stateful_sets: Vec::new(),
            configuration: Vec::new(),
            existing: Vec::new(),
            faults: Vec::new(),
            expect: Vec::new(),
            expect_without: Vec::new(),
        };
        Self { world: World::new(&scenario), told: 0 }
    }

    fn carry_out(client: &mut Client<'_>, request: &Request, key: &Key) -> Result<Answer> {
        let (kind, body) = (request.kind, request.body.clone());
        let done = match request.verb {
            Verb::Get => client.get(key),
            Verb::Create => client.create(kind, body),
            Verb::Replace => client.update(kind, body, request.part),
            Verb::MergePatch => client.merge_patch(key, &body, request.part),
            Verb::JsonPatch => client.json_patch(key, &serde_json::from_value(body)?, request.part),
            Verb::Delete => {
                let body = Some(&body).filter(|body| !body.is_null());
                let how = DeleteOptions::of_request(body, request.query);
                client.delete(key, &how).map(|deleted| match deleted {
                    Deleted::Gone(object) | Deleted::Waiting(object) => object,
                })
            }
            Verb::Evict => {
                let body = Some(&body).filter(|body| !body.is_null());
                client.evict(key, &DeleteOptions::of_request(body, "")).map(|_| Arc::default())
            }
        };
        Ok(match done {
            Ok(object) => Answer::Done(Value::clone(&object)),
            Err(error) => refused(&error),
        })
    }
}

fn refused(error: &ApiError) -> Answer {
    Answer::Refused { code: error.code(), reason: error.reason().to_owned() }
}

fn key(kind: Kind, namespace: &str, name: &str) -> Key {
    let namespace = if kind.is_namespaced() { namespace } else { "" };
    Key::within(kind, namespace, name)
}

impl Side for Model {
    const NAME: &'static str = "the models";
    const DRIVER: &'static str = "block.csi.node-remedy.io";

    async fn ask(&mut self, request: &Request, namespace: &str) -> Result<Answer> {
        let key = key(request.kind, namespace, &request.name);
        let answer = Self::carry_out(&mut self.world.api().client(CLIENT), request, &key)?;
        self.world.advance(after(self.world.now(), MOMENT));
        Ok(answer)
    }

    async fn watch(&mut self, watch: &Watch, namespace: &str, from: &str) -> Result<Watched> {
        let namespace = Some(namespace).filter(|_| watch.kind.is_namespaced());
        let selector = Selector::read(namespace, Some(watch.fields))?;
        let from = from.parse().context("a version")?;
        let seen = self.world.api().client(CLIENT).watch(watch.kind, &selector, from);
        Ok(match seen {
            Err(error) => Watched::Refused { code: error.code(), reason: error.reason().into() },
            Ok(seen) => {
                let events = seen.events.iter();
                let events = events.map(|event| (event.change, name(&event.object).to_owned()));
                Watched::Told { events: events.collect(), bookmark: seen.bookmark.to_string() }
            }
        })
    }

    async fn apply_fault(&mut self, node: &str, misfortune: Misfortune) -> Result<()> {
        let node = node.to_owned();
        self.world.apply_fault(&match misfortune {
            Misfortune::KubeletStops => Event::KubeletStops(node),
            Misfortune::KubeletStarts => Event::NodeComesBack(node),
        });
        Ok(())
    }

    async fn forget_history(&mut self) -> Result<()> {
        // What the timeline so far needs of it was told.
        self.world.api().compact();
        Ok(())
    }

    async fn version(&mut self) -> Result<u64> {
        Ok(self.world.api().version())
    }

    async fn news(&mut self) -> Result<Vec<Change>> {
        let api = self.world.api();
        let since = api.changes(self.told)?.filter(|change| KINDS.contains(&change.key.kind));
        let news = since.map(|change| Change {
            kind: change.key.kind,
            change: change.change,
            object: Value::clone(&change.object),
            version: change.version,
            at: between(START, change.at),
        });
        let news = news.collect();
        self.told = api.version();
        Ok(news)
    }

    async fn wait(&mut self) -> Result<()> {
        let moment = after(self.world.now(), MOMENT);
        let next = self.world.next_at().map_or(moment, |next| next.max(moment));
        self.world.advance(next);
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<()> {
        Ok(())
    }

    fn now(&self) -> Duration {
        between(START, self.world.now())
    }
}
