//! The twins of the limits: for each constant of the sandbox's `limits` that a guest reaches, the most that
//! passes and the first that does not. What is loaded has its edges in `loaded`; which constant has its edge in
//! another test, and which no guest can reach, stands in `elsewhere`, and a constant that is in none of the three
//! fails a test.

use anyhow::{Context, Result, ensure};
use node_remedy_sandbox::limits as most;
use node_remedy_sandbox::{Action, CallReport, Ended};

use super::alone::alone;
use super::canary;
use super::host::{Host, Try, attempt, fleet, told};
use super::victims::{Answer, Device, Server, plain, with_headers};

mod elsewhere;
mod loaded;

/// One limit and the deed that goes up to it.
struct Edge {
    limit: &'static str,
    most: usize,
    /// The deed of this much.
    deed: fn(usize) -> Try,
    ended: Ended,
    says: &'static str,
}

/// A limit beyond which a call goes on, and what is beyond is not kept.
struct Cap {
    limit: &'static str,
    most: usize,
    /// The deed of this much.
    deed: fn(usize) -> Try,
    /// How much of it is there in the end.
    kept: fn(&CallReport) -> usize,
}

#[test]
fn what_is_just_below_each_limit_passes_and_what_is_just_above_does_not() -> Result<()> {
    let name = "edges::what_is_just_below_each_limit_passes_and_what_is_just_above_does_not";
    alone(name, async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        let _web = Server::start("10.9.0.7:80", by_path).await?;
        let _line = Server::start("10.9.0.7:23", as_long_as_asked).await?;
        for edge in edges() {
            edge.is_sharp(&host).await.with_context(|| format!("limits::{}", edge.limit))?;
        }
        for cap in caps() {
            cap.is_sharp(&host).await.with_context(|| format!("limits::{}", cap.limit))?;
        }
        head(&host).await.with_context(|| format!("limits::{HEAD}"))?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

#[test]
fn what_is_loaded_may_be_as_large_as_each_limit_and_no_larger() -> Result<()> {
    let name = "edges::what_is_loaded_may_be_as_large_as_each_limit_and_no_larger";
    alone(name, async || loaded::all(&Host::start().await?).await)
}

#[test]
fn every_limit_has_its_edge_in_a_test_or_says_why_not() -> Result<()> {
    let guests = edges().iter().map(|edge| edge.limit).collect::<Vec<_>>();
    let caps = caps().iter().map(|cap| cap.limit).collect::<Vec<_>>();
    elsewhere::all(&[guests.as_slice(), &caps, &[HEAD], loaded::LIMITS].concat())
}

/// The web server answers with as much as the path says.
fn by_path(request: &str) -> Answer {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (what, number) = path.rsplit_once('/').unwrap_or_default();
    let number = number.parse().unwrap_or_default();
    match what {
        "/body" => plain(200, &"x".repeat(number)),
        // The body's length is one.
        "/headers" => with_headers(200, &"a: b\r\n".repeat(number - 1), ""),
        "/head" => with_headers(200, &format!("a: {}\r\n", "b".repeat(number)), ""),
        _ => plain(200, "on"),
    }
}

/// The line sends as many bytes as it is told.
fn as_long_as_asked(heard: &str) -> Answer {
    heard.trim().parse().map_or(Answer::Silence, |number| Answer::Whole(vec![b'x'; number]))
}

impl Cap {
    async fn is_sharp(&self, host: &Host) -> Result<()> {
        let Self { most, .. } = *self;
        for (asked, expected) in [(most - 1, most - 1), (most, most), (most + 1, most)] {
            let report = host.call(&(self.deed)(asked)).await?;
            let (ended, kept) = (report.ended, (self.kept)(&report));
            let is_so = ended == Ended::Returned && kept == expected;
            ensure!(is_so, "{kept} of {asked} are kept, expected {expected}; it {}", told(&report));
        }
        Ok(())
    }
}

/// Of an answer's head some bytes are the status line's and the body's length.
const HEAD: &str = "HTTP_RESPONSE_HEAD_BYTES_MAX";

async fn head(host: &Host) -> Result<()> {
    let answer = |bytes: usize| get(&format!("/head/{bytes}"));
    let most = most::HTTP_RESPONSE_HEAD_BYTES_MAX;
    host.honest(&answer(most - 100)).await?;
    host.says(&answer(most), Ended::Returned, "refused: too-large").await?;
    Ok(())
}

impl Edge {
    async fn is_sharp(&self, host: &Host) -> Result<()> {
        let below = host.call(&(self.deed)(self.most)).await?;
        let said = told(&below);
        // What is refused to a guest, it may tell as its outcome.
        let is_refused = self.ended == Ended::Returned && said.contains(self.says);
        ensure!(below.result.is_ok() && !is_refused, "{}, which is the most: it {said}", self.most);
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
            limit: "STREAM_BYTES_READ_MAX",
            most: most::STREAM_BYTES_READ_MAX,
            deed: |number| line("read-all", number),
            ended: Ended::Cut,
            says: "bytes read",
        },
        Edge {
            limit: "SOCKETS_OPENED_MAX",
            most: count(most::SOCKETS_OPENED_MAX),
            deed: |number| deed("sockets-one-by-one", number),
            ended: Ended::Cut,
            says: "16 sockets",
        },
        Edge {
            limit: "HTTP_RESPONSE_BODY_BYTES_MAX",
            most: most::HTTP_RESPONSE_BODY_BYTES_MAX,
            deed: |number| get(&format!("/body/{number}")),
            ended: returned,
            says: "refused: too-large",
        },
        Edge {
            limit: "HTTP_RESPONSE_HEADERS_MAX",
            most: most::HTTP_RESPONSE_HEADERS_MAX,
            deed: |number| get(&format!("/headers/{number}")),
            ended: returned,
            says: "refused: too-large",
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
            limit: "CHECKPOINT_BYTES_MAX",
            most: most::CHECKPOINT_BYTES_MAX,
            deed: |number| deed("checkpoint", number),
            ended: returned,
            says: "a checkpoint holds at most",
        },
        Edge {
            limit: "RANDOM_BYTES_MAX",
            most: count(most::RANDOM_BYTES_MAX),
            deed: |number| deed("random", number),
            ended: Ended::Cut,
            says: "random bytes",
        },
        Edge {
            limit: "HOSTCALL_BYTES_MAX",
            most: most::HOSTCALL_BYTES_MAX,
            deed: |number| deed("long-log", number),
            ended: Ended::Trapped,
            says: "fuel",
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

/// What a line of log, a sentence or a list is cut to ends with a sign of it.
fn length(text: &str) -> usize {
    text.trim_end_matches('…').len()
}

/// The number with which a detail begins.
fn counted(report: &CallReport) -> usize {
    let first = report.result.as_ref().ok().and_then(|told| told.detail.split(' ').next());
    first.and_then(|first| first.parse().ok()).unwrap_or_default()
}

fn caps() -> Vec<Cap> {
    vec![
        Cap {
            limit: "SOCKETS_MAX",
            most: most::SOCKETS_MAX,
            deed: |number| deed("hoard-sockets", number),
            kept: counted,
        },
        Cap {
            limit: "SECRET_OPERATIONS_MAX",
            most: count(most::SECRET_OPERATIONS_MAX),
            deed: |number| deed("guess-secret", number),
            kept: counted,
        },
        Cap {
            limit: "LOG_LINE_BYTES_MAX",
            most: most::LOG_LINE_BYTES_MAX,
            deed: |number| deed("long-log", number),
            kept: |report| report.log.first().map_or(0, |line| length(&line.message)),
        },
        Cap {
            // In lines of the longest.
            limit: "LOG_BYTES_MAX",
            most: most::LOG_BYTES_MAX / most::LOG_LINE_BYTES_MAX,
            deed: |number| deed("log-lines", number),
            kept: |report| report.log.len(),
        },
        Cap {
            limit: "DETAIL_BYTES_MAX",
            most: most::DETAIL_BYTES_MAX,
            deed: |number| deed("detail", number),
            kept: |report| report.result.as_ref().map_or(0, |told| length(&told.detail)),
        },
        Cap {
            limit: "FIELDS_MAX",
            most: most::FIELDS_MAX,
            deed: |number| deed("fields", number),
            kept: |report| report.result.as_ref().map_or(0, |told| told.identity.len()),
        },
        Cap {
            limit: "PLUGS_MAX",
            most: most::PLUGS_MAX,
            deed: |number| deed("", number).asked(Action::Plugs),
            kept: |report| report.plugs.len(),
        },
        Cap {
            limit: "EXCHANGES_MAX",
            most: most::EXCHANGES_MAX,
            // One of them is the answer.
            deed: |number| deed("datagrams", number - 1),
            kept: |report| report.exchanges.len(),
        },
    ]
}
