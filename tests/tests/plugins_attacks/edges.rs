//! The twins of the limits: for each constant of the sandbox's `limits` that bounds a guest and is reached
//! within seconds, the most that passes and the first that does not.

use anyhow::{Context, Result, ensure};
use node_remedy_sandbox::Ended;
use node_remedy_sandbox::limits as most;

use super::alone::alone;
use super::canary;
use super::host::{Host, Try, attempt, fleet, told};
use super::modules::{HONEST, with_instances, with_manifest_of};
use super::victims::{Answer, Device, Server, plain};

/// One limit and the deed that goes up to it.
struct Edge {
    limit: &'static str,
    most: usize,
    /// The deed of this much.
    deed: fn(usize) -> Try,
    ended: Ended,
    says: &'static str,
}

#[test]
fn what_is_just_below_each_limit_passes_and_what_is_just_above_does_not() -> Result<()> {
    let name = "edges::what_is_just_below_each_limit_passes_and_what_is_just_above_does_not";
    alone(name, async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        let _web = Server::start("10.9.0.7:80", |_| plain(200, "on")).await?;
        let _line = Server::start("10.9.0.7:23", |_| Answer::Silence).await?;
        for edge in edges() {
            edge.is_sharp(&host).await.with_context(|| format!("limits::{}", edge.limit))?;
        }
        sizes(&host)?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

impl Edge {
    async fn is_sharp(&self, host: &Host) -> Result<()> {
        let below = host.call(&(self.deed)(self.most)).await?;
        ensure!(below.result.is_ok(), "{}, which is the most: it {}", self.most, told(&below));
        host.says(&(self.deed)(self.most + 1), self.ended, self.says).await?;
        Ok(())
    }
}

fn deed(name: &str, number: usize) -> Try {
    attempt(name).with("address", "10.9.0.7").number(number).under(fleet())
}

fn get(path: &str) -> Try {
    attempt("fetch").with("url", "http://10.9.0.7/").with("path", path).under(fleet())
}

fn line(name: &str, number: usize) -> Try {
    let mut grant = fleet();
    grant.ports.push(23..=23);
    deed(name, number).with("line", "10.9.0.7").under(grant)
}

fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

fn edges() -> Vec<Edge> {
    let returned = Ended::Returned;
    vec![
        Edge {
            limit: "DATAGRAMS_SENT_MAX",
            most: count(most::DATAGRAMS_SENT_MAX),
            deed: |number| deed("datagrams", number),
            ended: Ended::Cut,
            says: "datagrams",
        },
        Edge {
            limit: "DATAGRAM_BYTES_MAX",
            most: most::DATAGRAM_BYTES_MAX,
            deed: |number| deed("long-datagram", number),
            ended: returned,
            says: "too-large",
        },
        Edge {
            limit: "FAREWELL_BYTES_MAX",
            most: most::FAREWELL_BYTES_MAX,
            deed: |number| deed("farewell", number),
            ended: Ended::Cut,
            says: "bytes of farewell",
        },
        Edge {
            limit: "STREAM_WRITE_BYTES_MAX",
            most: most::STREAM_WRITE_BYTES_MAX,
            deed: |number| line("write", number),
            ended: returned,
            says: "refused: too-large",
        },
        Edge {
            limit: "STREAM_BYTES_WRITTEN_MAX",
            most: most::STREAM_BYTES_WRITTEN_MAX,
            deed: |number| line("write-all", number),
            ended: Ended::Cut,
            says: "bytes written",
        },
        Edge {
            limit: "HTTP_REQUESTS_MAX",
            most: count(most::HTTP_REQUESTS_MAX),
            deed: |number| deed("fetch-again-and-again", number).with("url", "http://10.9.0.7/"),
            ended: Ended::Cut,
            says: "HTTP requests",
        },
        Edge {
            limit: "HTTP_TARGET_BYTES_MAX",
            most: most::HTTP_TARGET_BYTES_MAX,
            deed: |number| get(&format!("/{}", "x".repeat(number - 1))),
            ended: returned,
            says: "refused: denied",
        },
        Edge {
            limit: "HTTP_HEADERS_MAX",
            most: most::HTTP_HEADERS_MAX,
            deed: |number| deed("many-headers", number).with("url", "http://10.9.0.7/"),
            ended: returned,
            says: "refused: denied",
        },
        Edge {
            limit: "HTTP_HEADER_BYTES_MAX",
            most: most::HTTP_HEADER_BYTES_MAX,
            deed: |number| get("/power").with("headers", &format!("x={}", "y".repeat(number - 1))),
            ended: returned,
            says: "refused: denied",
        },
        Edge {
            limit: "HTTP_REQUEST_BODY_BYTES_MAX",
            most: most::HTTP_REQUEST_BODY_BYTES_MAX,
            deed: |number| get("/power").with("method", "POST").with("body", &"x".repeat(number)),
            ended: returned,
            says: "refused: too-large",
        },
        Edge {
            limit: "KEY_OPERATIONS_MAX",
            most: count(most::KEY_OPERATIONS_MAX),
            deed: |number| deed("key-operations", number),
            ended: returned,
            says: "OverBudget",
        },
        Edge {
            limit: "USM_KEYS_MAX",
            most: count(most::USM_KEYS_MAX),
            deed: |number| deed("usm-keys", number),
            ended: returned,
            says: "OverBudget",
        },
        Edge {
            limit: "CREDENTIAL_DATA_BYTES_MAX",
            most: most::CREDENTIAL_DATA_BYTES_MAX,
            deed: |number| deed("credential-data", number),
            ended: returned,
            says: "BadLength",
        },
        Edge {
            limit: "RANDOM_BYTES_MAX",
            most: count(most::RANDOM_BYTES_MAX),
            deed: |number| deed("random", number),
            ended: Ended::Cut,
            says: "random bytes",
        },
        Edge {
            limit: "RESOURCES_MAX",
            // One is the socket by which the device is heard.
            most: most::RESOURCES_MAX - 1,
            deed: |number| deed("hoard-handles", number),
            ended: Ended::Trapped,
            says: "",
        },
    ]
}

/// Sizes of what is loaded.
fn sizes(host: &Host) -> Result<()> {
    let limit = most::MANIFEST_BYTES_MAX;
    host.load(&with_manifest_of(limit)?).context("limits::MANIFEST_BYTES_MAX")?;
    host.refused(&with_manifest_of(limit + 1)?).context("limits::MANIFEST_BYTES_MAX")?;
    let honest = HONEST.component()?;
    let memories = |count: usize| with_instances(&honest, "(module (memory 1))", count);
    // One is its own.
    host.load(&memories(most::MEMORIES_MAX - 1)?).context("limits::MEMORIES_MAX")?;
    host.refused(&memories(most::MEMORIES_MAX)?).context("limits::MEMORIES_MAX")?;
    let instances = |count: usize| with_instances(&honest, "(module)", count);
    host.load(&instances(most::INSTANCES_MAX - 1)?).context("limits::INSTANCES_MAX")?;
    host.refused(&instances(most::INSTANCES_MAX)?).context("limits::INSTANCES_MAX")?;
    Ok(())
}
