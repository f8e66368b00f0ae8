//! Paths and bodies with places for the plug and the action. A value is written into a place so that it
//! stays one value: no plug's name becomes another path, parameter or member. Not here: what is sent.

use std::fmt::Write as _;

use node_remedy_sdk::{Failure, FailureKind};

/// What stands in the places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a> {
    pub(crate) plug: &'a str,
    pub(crate) action: &'a str,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Form,
    Text,
}

impl Content {
    pub(crate) fn of(content_type: &str) -> Result<Self, Failure> {
        match content_type {
            "application/json" => Ok(Self::Json),
            "application/x-www-form-urlencoded" => Ok(Self::Form),
            "text/plain" => Ok(Self::Text),
            other => Err(bad(format!("content-type {other:?} is none that this plugin writes"))),
        }
    }
}

/// A piece of a template.
enum Piece<'a> {
    Text(&'a str),
    Value(&'a str),
}

/// A path and query; `name` is the parameter they stand in.
pub(crate) fn path(name: &str, template: &str, values: Values<'_>) -> Result<String, Failure> {
    let mut path = String::new();
    for piece in pieces(template, values) {
        match piece {
            Piece::Text(text) => path.push_str(text),
            Piece::Value(value) => path.push_str(&percent_encoded(value)),
        }
    }
    if !path.starts_with('/') {
        return Err(bad(format!("{name}: found {template:?}, expected a path that begins with /")));
    }
    if path.contains(['{', '}']) {
        let expected = "expected no places but {plug} and {action}";
        return Err(bad(format!("{name}: found {template:?}, {expected}")));
    }
    let before_query = path.split('?').next().unwrap_or_default();
    if before_query.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(bad(format!("{name}: found {path:?}, expected no segment that is . or ..")));
    }
    Ok(path)
}

/// A body; `name` is the parameter it stands in.
pub(crate) fn body(
    name: &str,
    template: &str,
    content: Content,
    values: Values<'_>,
) -> Result<String, Failure> {
    let mut body = String::new();
    let mut is_in_string = false;
    for piece in pieces(template, values) {
        let value = match piece {
            Piece::Text(text) => {
                is_in_string = ends_in_string(is_in_string, text);
                body.push_str(text);
                continue;
            }
            Piece::Value(value) => value,
        };
        match content {
            Content::Form => body.push_str(&percent_encoded(value)),
            Content::Json if is_in_string => body.push_str(&json_escaped(value)),
            // Outside of a string only a number is one value.
            Content::Json if is_number(value) => body.push_str(value),
            Content::Text if value.bytes().all(is_unreserved) => body.push_str(value),
            Content::Json => {
                let expected = "expected a whole number, or the place between quotes";
                return Err(bad(format!("{name}: found {value:?} for a place, {expected}")));
            }
            Content::Text => {
                let expected = "expected letters, digits, - . _ ~ in plain text";
                return Err(bad(format!("{name}: found {value:?} for a place, {expected}")));
            }
        }
    }
    Ok(body)
}

/// Read once, from left to right: a place inside of a value is none.
fn pieces<'a>(template: &'a str, values: Values<'a>) -> Vec<Piece<'a>> {
    let places = [("{plug}", values.plug), ("{action}", values.action)];
    let mut pieces = Vec::new();
    let mut rest = template;
    loop {
        let found = places.iter().filter_map(|(place, value)| {
            let (before, after) = rest.split_once(place)?;
            Some((before, *value, after))
        });
        let Some((before, value, after)) = found.min_by_key(|(before, ..)| before.len()) else {
            pieces.push(Piece::Text(rest));
            return pieces;
        };
        pieces.extend([Piece::Text(before), Piece::Value(value)]);
        rest = after;
    }
}

/// Whether JSON stands inside of a string after this text.
fn ends_in_string(was_in_string: bool, text: &str) -> bool {
    let (mut is_in_string, mut is_escaped) = (was_in_string, false);
    for letter in text.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' => is_in_string = !is_in_string,
            _ => {}
        }
    }
    is_in_string
}

/// RFC 3986, 2.1: every byte but the unreserved ones.
fn percent_encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut encoded, byte| {
        if is_unreserved(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// A whole number as JSON writes it: without leading zeros.
fn is_number(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|number| number.to_string() == value)
}

pub(crate) fn bad(detail: String) -> Failure {
    Failure::new(FailureKind::BadParameters, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(plug: &str) -> Values<'_> {
        Values { plug, action: "off" }
    }

    #[test]
    fn a_value_stays_one_value_in_a_path() {
        for (plug, expected) in [
            ("0", "/a/0/off?id=0"),
            ("a/b?c&d=e#f", "/a/a%2Fb%3Fc%26d%3De%23f/off?id=a%2Fb%3Fc%26d%3De%23f"),
            ("Küche 1+%", "/a/K%C3%BCche%201%2B%25/off?id=K%C3%BCche%201%2B%25"),
            ("{action}", "/a/%7Baction%7D/off?id=%7Baction%7D"),
            ("\r\nHost: x", "/a/%0D%0AHost%3A%20x/off?id=%0D%0AHost%3A%20x"),
        ] {
            assert_eq!(path("p", "/a/{plug}/{action}?id={plug}", values(plug)).unwrap(), expected);
        }
        for (template, plug) in [
            ("a", ""),
            ("/{id}", ""),
            ("/a}", ""),
            ("/a/{plug}/b", ".."),
            ("/{plug}", "."),
            ("", ""),
        ] {
            assert!(path("p", template, values(plug)).is_err(), "{template} {plug}");
        }
        assert!(path("p", "/a?x={plug}", values("..")).is_ok());
    }

    #[test]
    fn a_value_stays_one_value_in_a_body() {
        let json = r#"{"id": "{plug}", "q\"{plug}": {"do": "{action}"}}"#;
        let written = body("b", json, Content::Json, values("a\"b\\\n{action}")).unwrap();
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["id"], "a\"b\\\n{action}");
        assert_eq!(read["q\"a\"b\\\n{action}"]["do"], "off");
        assert_eq!(read.as_object().unwrap().len(), 2);

        let bare = r#"{"id": {plug}, "on": false}"#;
        assert_eq!(
            body("b", bare, Content::Json, values("7")).unwrap(),
            r#"{"id": 7, "on": false}"#
        );
        for plug in ["7, \"on\": true", "", "07", "-1", "1e3", "true", "\"x\""] {
            assert!(body("b", bare, Content::Json, values(plug)).is_err(), "{plug}");
        }
        let form = body("b", "o={plug}&s={action}", Content::Form, values("a&s=on")).unwrap();
        assert_eq!(form, "o=a%26s%3Don&s=off");
        assert_eq!(body("b", "{action} {plug}", Content::Text, values("r-1")).unwrap(), "off r-1");
        for plug in ["a b", "a\nb", "ä"] {
            assert!(body("b", "{action} {plug}", Content::Text, values(plug)).is_err(), "{plug}");
        }
    }
}
