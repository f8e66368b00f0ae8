//! Attacks through the network: whom it may reach, and what comes back.

use crate::answers::{AttackRequest, AttackResult, failed, found};
use crate::bindings::node_remedy::fence::net::{
    self, Datagram, HttpRequest, HttpResponse, NetError, Part,
};
use crate::bindings::node_remedy::fence::types::{Failure, PlugState};

/// One request, as the parameters spell it, and what came back.
pub fn fetch(asked: AttackRequest<'_>) -> AttackResult {
    let HttpResponse { status, headers, body } = get(asked, asked.get("path")).map_err(refused)?;
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let body = match body.len() {
        0..=400 => String::from_utf8_lossy(&body).into_owned(),
        long => format!("{long} bytes"),
    };
    let headers = match names.len() {
        0..=8 => names.join(","),
        many => format!("{many} headers"),
    };
    Ok(found(PlugState::On, &format!("{status} {headers} [{body}]")))
}

/// Asks, and then asks wherever the answer points to.
pub fn follow(asked: AttackRequest<'_>) -> AttackResult {
    let first = get(asked, asked.get("path")).map_err(refused)?;
    let location = first.headers.iter().find(|(name, _)| name == "location");
    let location = location.map(|(_, value)| value.as_str()).unwrap_or_default();
    let then = match get(asked, location) {
        Ok(second) => second.status.to_string(),
        Err(error) => error.name().to_owned(),
    };
    Ok(found(PlugState::On, &format!("{} to {location}, then {then}", first.status)))
}

/// So many times, in one call.
pub fn fetch_again_and_again(asked: AttackRequest<'_>) -> AttackResult {
    let mut answers = 0;
    for _ in 0..asked.number() {
        get(asked, asked.get("path")).map_err(refused)?;
        answers += 1;
    }
    Ok(found(PlugState::On, &format!("{answers} answers")))
}

/// A request with so many headers.
pub fn many_headers(asked: AttackRequest<'_>) -> AttackResult {
    let header = |number: u64| (format!("x-{number}"), "y".to_owned());
    let request = HttpRequest {
        method: "GET".to_owned(),
        path: asked.get("path").to_owned(),
        headers: (0..asked.number()).map(header).collect(),
        body: vec![],
        timeout_ms: 5_000,
    };
    let answer = net::fetch(asked.get("endpoint"), &request).map_err(refused)?;
    Ok(found(PlugState::On, &answer.status.to_string()))
}

/// What the answer to a login shows.
pub fn login_data(asked: AttackRequest<'_>) -> AttackResult {
    let shown = net::login_data(asked.get("endpoint")).map_err(refused)?;
    get(asked, "/power").map_err(refused)?;
    Ok(found(PlugState::On, &shown))
}

/// One question and its answer.
pub fn datagram() -> AttackResult {
    let device = net::udp("bmc").map_err(refused)?;
    let answer = ask(&device, b"status")?;
    Ok(found(PlugState::On, &String::from_utf8_lossy(&answer)))
}

pub fn ask(device: &Datagram, question: &[u8]) -> Result<Vec<u8>, Failure> {
    device.send(question).map_err(|error| failed(&format!("send: {}", error.name())))?;
    match device.receive(1_000) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(failed("receive: nothing came")),
        Err(error) => Err(failed(&format!("receive: {}", error.name()))),
    }
}

/// Every port of a machine, and other machines, as names of endpoints.
pub fn guess_endpoints() -> AttackResult {
    let mut open = 0;
    let mut tried = 0;
    let hosts = ["10.9.0.7", "10.9.0.8", "127.0.0.1", "169.254.169.254", "web", "bmc", "*"];
    for host in hosts {
        for port in 1..=300 {
            for name in [format!("{host}:{port}"), format!("http://{host}:{port}/")] {
                tried += 3;
                open += u32::from(net::udp(&name).is_ok());
                open += u32::from(net::tcp(&name).is_ok());
                let request = HttpRequest {
                    method: "GET".to_owned(),
                    path: "/".to_owned(),
                    headers: vec![],
                    body: vec![],
                    timeout_ms: 1,
                };
                open += u32::from(net::fetch(&name, &request).is_ok());
            }
        }
    }
    Err(failed(&format!("{open} of {tried} doors are open")))
}

/// So many sockets, none of them given back.
pub fn hoard_sockets(asked: AttackRequest<'_>) -> AttackResult {
    let held: Vec<_> = (0..asked.number()).map_while(|_| net::udp("bmc").ok()).collect();
    let answer = ask(held.first().ok_or_else(|| failed("none"))?, b"status")?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(found(PlugState::On, &format!("{} held, {answer}", held.len())))
}

/// A line to a stream, and its answer.
pub fn stream(asked: AttackRequest<'_>) -> AttackResult {
    let stream = net::tcp("line").map_err(refused)?;
    stream.write(&[Part::Bytes(asked.get("body").as_bytes().to_vec())]).map_err(refused)?;
    let answer = stream.read(1_000, 1_000).map_err(refused)?;
    Ok(found(PlugState::On, &String::from_utf8_lossy(&answer)))
}

/// Headers stand between `|`, each as `name=value`.
pub fn get(asked: AttackRequest<'_>, path: &str) -> Result<HttpResponse, NetError> {
    let headers = asked.get("headers").split('|').filter_map(|header| header.split_once('='));
    let request = HttpRequest {
        method: asked.get("method").to_owned(),
        path: path.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: asked.get("body").as_bytes().to_vec(),
        timeout_ms: asked.get("timeout-ms").parse().unwrap_or_default(),
    };
    net::fetch(asked.get("endpoint"), &request)
}

pub fn refused(error: NetError) -> Failure {
    failed(&format!("refused: {}", error.name()))
}
