//! Texts with places that the host fills: `{identity}`, `{secret}`, `{project}`. Not here: what may
//! stand in a place ([`super::auth`]).

use std::fmt;

use serde::Deserialize;
use zeroize::Zeroizing;

/// A text with places.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(String),
}

impl Template {
    /// Reads the text; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, from)) = rest.split_once('{') {
            let place = from.split_once('}').filter(|(name, _)| is_name(name));
            let Some((name, after)) = place else {
                return Err(format!("found {text:?}, expected a name and }} after each {{"));
            };
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Place(name.to_owned()));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }

    /// A text without places.
    pub(crate) fn literal(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())] }
    }

    /// The text, where it has no places.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => Some(text),
            [..] => None,
        }
    }

    /// The names of its places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text with every place filled; none where one has no value. What is filled in is never
    /// read for places again.
    pub(crate) fn fill(
        &self,
        value: impl Fn(&str) -> Option<Zeroizing<String>>,
    ) -> Option<Zeroizing<String>> {
        let mut filled = Zeroizing::new(String::new());
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Place(name) => filled.push_str(&value(name)?),
            }
        }
        Some(filled)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Place(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

fn is_name(name: &str) -> bool {
    let is_in_names = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_in_names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_once() {
        let template = Template::parse("/{tenant}/x/{name}").unwrap();
        assert_eq!(template.places().collect::<Vec<_>>(), ["tenant", "name"]);
        let value = |name: &str| Some(Zeroizing::new(format!("<{{tenant}} {name}>")));
        let filled = template.fill(value).unwrap();
        assert_eq!(filled.as_str(), "/<{tenant} tenant>/x/<{tenant} name>");
        assert!(template.fill(|_| None).is_none());
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for wrong in ["{", "{}", "{a b}", "x{Name}", "{{a}}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Template::parse("a}b").is_ok());
    }
}
