//! A stream as the parameter `script` spells it: steps between semicolons, and in the failure what
//! each came to.

use crate::answers::failed;
use crate::bindings::node_remedy::fence::net::{Connection, NetError, Part};
use crate::bindings::node_remedy::fence::types::{Failure, Outcome};
use crate::bindings::node_remedy::fence::{net, credentials, op};

pub fn converse(parameters: &[(String, String)]) -> Result<Outcome, Failure> {
    let script = parameters.iter().find(|(key, _)| key == "script");
    let script = script.map(|(_, script)| script.as_str()).unwrap_or_default();
    let mut open: Vec<Connection> = Vec::new();
    let mut said = Vec::new();
    for step in script.split(';') {
        let (verb, rest) = step.split_once('=').unwrap_or((step, ""));
        said.push(match verb {
            "open" => match net::tcp(if rest.is_empty() { "device" } else { rest }) {
                Ok(connection) => {
                    open.push(connection);
                    "open".to_owned()
                }
                Err(error) => error.name().to_owned(),
            },
            "write" => word(write(last(&open)?, rest)),
            "read" => heard(read(last(&open)?, rest)),
            "read-bytes" => all(last(&open)?, 1, 1),
            "read-all" => all(last(&open)?, 999, 900),
            "farewell" => {
                last(&open)?.farewell(rest.as_bytes());
                "set".to_owned()
            }
            "close" => {
                open.pop();
                "closed".to_owned()
            }
            "begin" => format!("{:?}", op::begin_effect("by stream").is_ok()),
            "sleep" => op::sleep(rest.parse().unwrap()).to_string(),
            "long" => word(last(&open)?.write(&[Part::Bytes(vec![b'x'; rest.parse().unwrap()])])),
            "flood-writes" => loop {
                let written = last(&open)?.write(&[Part::Bytes(vec![b'x'; 60_000])]);
                written.map_err(|error| failed(error.name()))?;
            },
            "flood-reads" => loop {
                let came = last(&open)?.read(u32::MAX, 1_000);
                came.map_err(|error| failed(error.name()))?;
            },
            "trap" => panic!("with the connection open"),
            other => return Err(failed(&format!("no step {other}"))),
        });
    }
    Err(failed(&said.join(" | ")))
}

fn last(open: &[Connection]) -> Result<&Connection, Failure> {
    open.last().ok_or_else(|| failed("nothing is open"))
}

/// Text, in which `$` stands for the secret.
fn write(connection: &Connection, text: &str) -> Result<(), NetError> {
    let account = credentials::open("account").map_err(|_| NetError::Login)?;
    let mut parts = Vec::new();
    for (index, piece) in text.split('$').enumerate() {
        if index > 0 {
            parts.push(Part::Secret(&account));
        }
        parts.push(Part::Bytes(piece.as_bytes().to_vec()));
    }
    connection.write(&parts)
}

fn read(connection: &Connection, spelt: &str) -> Result<Vec<u8>, NetError> {
    let (max, timeout_ms) = spelt.split_once(',').unwrap();
    connection.read(max.parse().unwrap(), timeout_ms.parse().unwrap())
}

/// All that comes within some seconds, in pieces of this size and with this patience.
fn all(connection: &Connection, max: u32, timeout_ms: u32) -> String {
    let mut came = Vec::new();
    let begun = op::elapsed_ms();
    while op::elapsed_ms() < begun + 8_000 {
        match connection.read(max, timeout_ms) {
            Ok(bytes) if bytes.is_empty() => break,
            Ok(bytes) => came.extend(bytes),
            Err(_) => {}
        }
    }
    String::from_utf8_lossy(&came).into_owned()
}

fn word(result: Result<(), NetError>) -> String {
    result.map_or_else(|error| error.name().to_owned(), |()| "ok".to_owned())
}

fn heard(result: Result<Vec<u8>, NetError>) -> String {
    match result {
        Ok(bytes) if bytes.len() > 100 => format!("{} bytes", bytes.len()),
        Ok(bytes) => format!("[{}]", String::from_utf8_lossy(&bytes)),
        Err(error) => error.name().to_owned(),
    }
}
