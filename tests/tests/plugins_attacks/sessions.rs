//! Attacks 66 to 68: what the host logs in for, says and shows around a session. A device that repeats what it was sent does
//! so in the encoding of its own pages; an answer to a login may hold a token beside the one that a manifest names;
//! and the end of a session is a request that nobody asks for.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use node_remedy_sandbox::{AdminGrant, Ended, HttpMethod};

use super::alone::alone;
use super::canary;
use super::host::{Host, attempt, case, fleet};
use super::victims::{Answer, Server, plain};

const OWN: &str = "http://10.9.0.7/";
/// The ways in which a page repeats a password.
const ENCODINGS: [&str; 8] =
    ["/json", "/html", "/percent", "/base64", "/base64-1", "/base64-2", "/utf-16le", "/utf-16be"];

#[test]
fn a_session_shows_and_does_no_more_than_is_granted() -> Result<()> {
    alone("sessions::a_session_shows_and_does_no_more_than_is_granted", async || {
        let host = Host::start().await?;
        encodings(&host).await?;
        exposes(&host).await?;
        logout(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

/// The password as a page says it, whatever was asked.
fn encoded(path: &str) -> Vec<u8> {
    let own = canary::ACCOUNT;
    let each = |escape: &dyn Fn(u8) -> String| own.bytes().map(escape).collect::<String>();
    let after = |before: &str| STANDARD.encode(format!("{before}{own}!"));
    let text = match path {
        "/json" => each(&|byte| format!("\\u{:04x}", u16::from(byte))),
        "/html" => each(&|byte| format!("&#{byte};")),
        "/percent" => each(&|byte| format!("%{byte:02X}")),
        "/base64" => after(""),
        "/base64-1" => after("x"),
        "/base64-2" => after("xy"),
        "/utf-16le" => return own.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "/utf-16be" => return own.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => "on".to_owned(),
    };
    text.into_bytes()
}

async fn encodings(host: &Host) -> Result<()> {
    let _device = Server::start("10.9.0.7:80", |request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let body = encoded(path);
        let head = format!("HTTP/1.1 200 Said\r\ncontent-length: {}\r\n\r\n", body.len());
        Answer::Whole([head.into_bytes(), body].concat())
    })
    .await?;
    let get = |path: &str| attempt("fetch").with("url", OWN).with("path", path).under(fleet());
    let how = "a device that says the password in JSON, HTML, %, UTF-16 and base64 at each of three offsets";
    host.attack(
        case(66, "echo in other encodings", how),
        async || {
            let mut said = String::new();
            for path in ENCODINGS {
                said = host.says(&get(path), Ended::Returned, "[").await?;
                let (body, _) = said.rsplit_once(']').unwrap_or_default();
                let body = body.rsplit('[').next().unwrap_or_default();
                // The ends of base64 hold bits of a neighbour.
                let clear = body.chars().filter(|one| *one != '*').count();
                ensure!(clear <= 6 && body.contains("***"), "{path}: {clear} characters of {body}");
            }
            Ok(said)
        },
        async || host.says(&get("/power"), Ended::Returned, "[on]").await,
    )
    .await
}

/// A server of tokens: the one that counts stands beside the one that a manifest names.
async fn tokens() -> Result<Server> {
    let answer = r#"{"token_type": "Bearer", "access_token": "live-token-0123456789"}"#;
    Server::start("10.9.0.7:80", move |request| match request {
        login if login.starts_with("POST /login") => plain(200, answer),
        _ => plain(200, "on"),
    })
    .await
}

async fn exposes(host: &Host) -> Result<()> {
    let server = tokens().await?;
    let ask = attempt("login-data").with("session-url", OWN).with("endpoint", "session");
    let granted = AdminGrant { exposes: ["/access_token".to_owned()].into(), ..fleet() };
    let how =
        "a manifest that names token_type as its token and has access_token shown to the plugin";
    host.attack(
        case(67, "a token by exposes", how),
        async || {
            let says = "to grants.exposes, if the plugin may read it";
            let said = host.says(&ask.clone().under(fleet()), Ended::Returned, says).await?;
            ensure!(server.connections() == 0, "it logged in: {:?}", server.heard());
            Ok(said)
        },
        async || {
            let says = "live-token-0123456789";
            host.says(&ask.clone().under(granted.clone()), Ended::Returned, says).await
        },
    )
    .await
}

async fn logout(host: &Host) -> Result<()> {
    let server = tokens().await?;
    let ask = attempt("fetch").with("leaving-url", OWN).with("endpoint", "leaving");
    let mut granted = fleet();
    granted.http.methods.insert(HttpMethod::Delete);
    let how = "status under a grant of GET and POST, with a logout that deletes a machine";
    host.attack(
        case(68, "a method by logout", how),
        async || {
            let says = "add DELETE to grants.methods";
            let said = host.says(&ask.clone().under(fleet()), Ended::Returned, says).await?;
            ensure!(server.connections() == 0, "it logged in: {:?}", server.heard());
            Ok(said)
        },
        async || {
            let said =
                host.says(&ask.clone().under(granted.clone()), Ended::Returned, "[on]").await?;
            let last = server.heard().pop().unwrap_or_default();
            ensure!(last.starts_with("DELETE /machines/1"), "it ended with {last}");
            Ok(said)
        },
    )
    .await
}
