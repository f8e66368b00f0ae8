//! Attacks 9, 17–19, 23–28: what a plugin writes into a request, and what a device answers. The devices
//! are real servers, TLS is OpenSSL's.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use node_remedy_sandbox::limits::{
    HTTP_RESPONSE_BODY_BYTES_MAX, HTTP_RESPONSE_HEADERS_MAX, SOCKETS_MAX,
};
use node_remedy_sandbox::{AdminGrant, Authorities, Ended, Trust};
use node_remedy_tests::process::{Process, Program, fresh_folder};
use node_remedy_tests::time::until;
use tokio::net::TcpStream;

use super::alone::alone;
use super::artefact::{gzipped, zstandard};
use super::canary;
use super::host::{Host, Try, attempt, case, fleet};
use super::victims::{Answer, Device, Resolver, Server, plain, with_headers};

const OWN: &str = "http://10.9.0.7/";
const METADATA: &str = "169.254.169.254:80";
const SAFE: &str = "10.9.0.7:443";
/// 64 MiB of zeros, packed.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzipped(64 << 20));
/// The same in zstd.
static ZSTD_BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| zstandard(64 << 20));

#[test]
fn no_request_is_bent_and_no_answer_is_too_much() -> Result<()> {
    alone("answers::no_request_is_bent_and_no_answer_is_too_much", async || {
        let _resolver = Resolver::start().await?;
        let host = Host::start().await?;
        let device = Server::start("10.9.0.7:80", by_path).await?;
        redirect(&host).await?;
        bent_requests(&host, &device).await?;
        hoarded_sockets(&host).await?;
        slow_and_endless(&host).await?;
        bombs(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

#[test]
fn the_other_side_of_tls_is_the_granted_one() -> Result<()> {
    alone("answers::the_other_side_of_tls_is_the_granted_one", async || {
        let _resolver = Resolver::start().await?;
        let host = Host::start().await?;
        another_name(&host).await?;
        downgrade(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

/// The device answers as the path says.
fn by_path(request: &str) -> Answer {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let length = |bytes: usize| "x".repeat(bytes);
    match path {
        "/inward" => with_headers(302, "location: http://169.254.169.254/latest/\r\n", ""),
        "/here" => with_headers(302, "location: http://10.9.0.7/power\r\n", ""),
        "/drip" => Answer::Drip(head_and(&length(5_000)), 20),
        "/slow" => Answer::Drip(head_and("on"), 2),
        "/silence" => Answer::Silence,
        "/endless" => Answer::Endless(b"HTTP/1.1 200 Said\r\n\r\n".to_vec()),
        "/endless-head" => Answer::Endless(b"HTTP/1.1 200 Said\r\nx: ".to_vec()),
        "/largest" => plain(200, &length(HTTP_RESPONSE_BODY_BYTES_MAX)),
        "/larger" => plain(200, &length(HTTP_RESPONSE_BODY_BYTES_MAX + 1)),
        "/bomb" => packed("gzip", &BOMB),
        "/zstd-bomb" => packed("zstd", &ZSTD_BOMB),
        "/headers" => with_headers(200, &"a: b\r\n".repeat(32_768), ""),
        "/many" => with_headers(200, &"a: b\r\n".repeat(HTTP_RESPONSE_HEADERS_MAX - 1), ""),
        _ => plain(200, "on"),
    }
}

fn head_and(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 Said\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn packed(encoding: &str, bytes: &[u8]) -> Answer {
    let head = format!(
        "HTTP/1.1 200 Said\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n",
        bytes.len()
    );
    Answer::Whole([head.as_bytes(), bytes].concat())
}

fn get(path: &str) -> Try {
    attempt("fetch").with("url", OWN).with("path", path).under(fleet())
}

async fn redirect(host: &Host) -> Result<()> {
    let how = "a 302 to 169.254.169.254, not followed by the host; the plugin asks for where it points to";
    let follow = |path: &str| attempt("follow").with("url", OWN).with("path", path).under(fleet());
    host.attack(
        case(9, "redirect to a denied host", how),
        async || {
            let victim = Server::victim(METADATA).await?;
            let said = host.says(&follow("/inward"), Ended::Returned, "then denied").await?;
            victim.nobody_came(METADATA).await?;
            Ok(said)
        },
        async || host.says(&follow("/here"), Ended::Returned, "302 to /power, then 200").await,
    )
    .await
}

async fn bent_requests(host: &Host, device: &Server) -> Result<()> {
    let none_of = async |tries: &[Try]| -> Result<String> {
        let before = device.connections();
        let mut said = String::new();
        for one in tries {
            said = host.says(one, Ended::Returned, "refused: denied").await?;
        }
        ensure!(device.connections() == before, "the device heard {:?}", device.heard());
        Ok(said)
    };
    let with = |headers: &str| get("/power").with("headers", headers);
    let how = "Host, :authority, X-Original-URL, X-HTTP-Method-Override and a proxy's headers, set by the plugin";
    host.attack(
        case(17, "Host is not the authority", how),
        async || {
            let tries = [
                "Host=169.254.169.254",
                "HOST=10.9.0.8",
                ":authority=10.9.0.8",
                "X_Original_URL=/other",
                "x-rewrite-url=/other",
                "X-HTTP-Method-Override=DELETE",
                "Proxy-Authorization=Basic eA==",
                "Authorization=Basic eA==",
                "Cookie=session=1",
            ];
            none_of(&tries.map(with)).await
        },
        async || {
            let said = host.says(&with("X-Trace=1"), Ended::Returned, "[on]").await?;
            let heard = device.heard().pop().unwrap_or_default();
            let is_whole = heard.contains("host: 10.9.0.7\r\n") && heard.contains("x-trace: 1\r\n");
            ensure!(is_whole, "the device heard {heard}");
            Ok(said)
        },
    )
    .await?;
    let how = "line ends in path, query, method, header name and header value";
    host.attack(
        case(18, "CRLF injection", how),
        async || {
            none_of(&[
                get("/power\r\nHost: 10.9.0.8"),
                get("/power HTTP/1.1\r\n\r\nGET /other"),
                get("/power?a=b\r\nx: y"),
                get("/power%0d%0aHost:%20x"),
                get("/power").with("method", "GET / HTTP/1.1\r\n\r\nPOST"),
                with("x=y\r\nHost: 10.9.0.8"),
                with("x\r\nHost=10.9.0.8"),
                with("x=y\nz: 1"),
                with("x=\0"),
            ])
            .await
        },
        async || {
            let body = "off\r\n\r\nGET /other HTTP/1.1\r\n\r\n";
            let post = get("/power").with("method", "POST").with("body", body);
            let said = host.says(&post, Ended::Returned, "[on]").await?;
            let heard = device.heard();
            let is_one = heard.last().is_some_and(|last| last.ends_with(body));
            ensure!(is_one, "the device heard {heard:?}");
            Ok(format!("in a body: {said}"))
        },
    )
    .await
}

async fn hoarded_sockets(host: &Host) -> Result<()> {
    let _device = Device::start("10.9.0.7:623").await?;
    let hoard = |number: usize| {
        attempt("hoard-sockets").with("address", "10.9.0.7").number(number).under(fleet())
    };
    let most = format!("{SOCKETS_MAX} held, on");
    host.attack(
        case(23, "socket hoarding", "a component that opens 10,000 sockets and gives none back"),
        async || host.says(&hoard(10_000), Ended::Returned, &most).await,
        async || host.says(&hoard(SOCKETS_MAX), Ended::Returned, &most).await,
    )
    .await
}

async fn slow_and_endless(host: &Host) -> Result<()> {
    let how = "a byte each 20 ms, and silence; with the request's time-out, and with none before the deadline";
    host.attack(
        case(24, "slow drip", how),
        async || {
            for path in ["/drip", "/silence"] {
                let patient = get(path).with("timeout-ms", "300");
                host.says(&patient, Ended::Returned, "refused: timeout").await?;
            }
            let endless = get("/drip").with("timeout-ms", &u32::MAX.to_string());
            let endless = endless.within(Duration::from_millis(300));
            host.says(&endless, Ended::Deadline, "did not end by its deadline").await
        },
        async || host.says(&get("/slow"), Ended::Returned, "[on]").await,
    )
    .await?;
    host.attack(
        case(25, "endless body", "bytes without end, in the body and in the head"),
        async || {
            host.says(&get("/endless-head"), Ended::Returned, "refused: too-large").await?;
            host.says(&get("/larger"), Ended::Returned, "refused: too-large").await?;
            host.says(&get("/endless"), Ended::Returned, "refused: too-large").await
        },
        async || {
            let whole = format!("[{HTTP_RESPONSE_BODY_BYTES_MAX} bytes]");
            host.says(&get("/largest"), Ended::Returned, &whole).await
        },
    )
    .await
}

async fn bombs(host: &Host) -> Result<()> {
    let how =
        "64 MiB of zeros in gzip and in zstd, which no plugin may ask for: nobody here unpacks";
    host.attack(
        case(26, "gzip bomb, zstd bomb", how),
        async || {
            let accepting = get("/bomb").with("headers", "Accept-Encoding=gzip, zstd");
            host.says(&accepting, Ended::Returned, "refused: denied").await?;
            let as_sent = |bomb: &[u8]| format!("[{} bytes]", bomb.len());
            host.says(&get("/zstd-bomb"), Ended::Returned, &as_sent(&ZSTD_BOMB)).await?;
            host.says(&get("/bomb"), Ended::Returned, &as_sent(&BOMB)).await
        },
        async || host.says(&get("/power"), Ended::Returned, "[on]").await,
    )
    .await?;
    let how = "32,769 headers in a request, 1,000 in a request, 32,769 in an answer";
    host.attack(
        case(27, "32,769 headers", how),
        async || {
            let asking = attempt("many-headers").with("url", OWN).number(32_769).under(fleet());
            host.says(&asking, Ended::Trapped, "too much data is being copied").await?;
            let asking = attempt("many-headers").with("url", OWN).number(1_000).under(fleet());
            host.says(&asking, Ended::Returned, "refused: denied").await?;
            host.says(&get("/headers"), Ended::Returned, "refused: too-large").await
        },
        async || {
            let asking = attempt("many-headers").with("url", OWN).number(32).under(fleet());
            host.says(&asking, Ended::Returned, "200").await?;
            let many = format!("200 {HTTP_RESPONSE_HEADERS_MAX} headers");
            host.says(&get("/many"), Ended::Returned, &many).await
        },
    )
    .await
}

/// OpenSSL's server, with a certificate of this name that it signed itself.
struct Tls {
    _process: Process,
    trust: Trust,
}

impl Tls {
    async fn start(name: &str, options: &[&str]) -> Result<Self> {
        let folder = fresh_folder("plugins-attacks-tls")?;
        let own = rcgen::generate_simple_self_signed(vec![name.to_owned()])?;
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        std::fs::write(&certificate, own.cert.pem())?;
        std::fs::write(&key, own.signing_key.serialize_pem())?;
        let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
        let fixed =
            ["s_server", "-www", "-quiet", "-accept", SAFE, "-cert", &certificate, "-key", &key];
        let arguments: Vec<_> = fixed.iter().chain(options).map(|&word| word.to_owned()).collect();
        let process = Process::start(&Program {
            name: "openssl",
            path: Path::new("openssl"),
            arguments: &arguments,
            logs: &folder,
        })?;
        until("OpenSSL's server listens", Duration::from_secs(10), || async {
            Ok(TcpStream::connect(SAFE).await.ok())
        })
        .await?;
        let authorities = Authorities::from_pem(own.cert.pem().as_bytes())?;
        Ok(Self { _process: process, trust: Trust::Authorities(authorities) })
    }

    fn grant(&self) -> AdminGrant {
        AdminGrant { trust: self.trust.clone(), ..fleet() }
    }
}

fn safe(url: &str) -> Try {
    attempt("fetch").with("endpoint", "safe").with("secure-url", url).under(fleet())
}

async fn another_name(host: &Host) -> Result<()> {
    let url = "https://bmc.example/";
    let how = "a Host of its own inside TLS; a server with a certificate for another name";
    host.attack(
        case(19, "SNI is not the host", how),
        async || {
            {
                let ear = Server::start(SAFE, |_| Answer::Whole(Vec::new())).await?;
                let bent = safe(url).with("headers", "Host=evil.example");
                host.says(&bent, Ended::Returned, "refused: denied").await?;
                ensure!(ear.connections() == 0, "a connection for a bent request");
                host.says(&safe(url), Ended::Returned, "refused: ").await?;
                let greeting = ear.heard().pop().context("nobody greeted")?;
                let is_named = greeting.contains("bmc.example") && !greeting.contains("evil");
                ensure!(is_named, "the greeting names another: {greeting:?}");
            }
            let other = Tls::start("evil.example", &[]).await?;
            host.says(&safe(url).under(other.grant()), Ended::Returned, "for other names").await
        },
        async || {
            let own = Tls::start("bmc.example", &[]).await?;
            host.says(&safe(url).under(own.grant()), Ended::Returned, "outcome on: 200").await
        },
    )
    .await
}

async fn downgrade(host: &Host) -> Result<()> {
    let url = "https://bmc.example/";
    let how =
        "http:// where TLS is asked for, Upgrade, a certificate nobody trusts, a server of TLS 1.1";
    host.attack(
        case(28, "TLS downgrade, accept-any", how),
        async || {
            let plain = safe("http://bmc.example/");
            host.says(&plain, Ended::Returned, "expected the endpoint's own scheme").await?;
            let upgrade = safe(url).with("headers", "Upgrade=TLS/1.0");
            host.says(&upgrade, Ended::Returned, "refused: denied").await?;
            {
                let _own = Tls::start("bmc.example", &[]).await?;
                let other = rcgen::generate_simple_self_signed(vec!["bmc.example".to_owned()])?;
                let other = Authorities::from_pem(other.cert.pem().as_bytes())?;
                let grant = AdminGrant { trust: Trust::Authorities(other), ..fleet() };
                host.says(&safe(url).under(grant), Ended::Returned, "no trusted authority").await?;
            }
            let old = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
            let old = Tls::start("bmc.example", &old).await?;
            host.says(&safe(url).under(old.grant()), Ended::Returned, "no TLS 1.2 or 1.3").await
        },
        async || {
            let own = Tls::start("bmc.example", &["-tls1_2"]).await?;
            host.says(&safe(url).under(own.grant()), Ended::Returned, "outcome on: 200").await
        },
    )
    .await
}
