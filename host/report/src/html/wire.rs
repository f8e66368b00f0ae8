//! Datagrams as a table: what they mean, what stood inside of them, the bytes.

use crate::html::parts::{cell, columns};
use crate::markup::Markup;
use crate::{Direction, Exchange, spell};

/// Which bytes to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Those that the meaning was read from: what stood inside, where that is known.
    Told,
    /// And the datagram around it.
    All,
}

/// A table of datagrams; `caption` says which.
pub(super) fn table(
    out: &mut Markup,
    exchanges: &[Exchange],
    shown: Bytes,
    caption: impl FnOnce(&mut Markup),
) {
    out.element("table", &[("class", "wire"), ("role", "table")], |table| {
        table.element("caption", &[], caption);
        columns(table, &["Time", "Way", "Meaning and bytes"]);
        table.element("tbody", &[], |body| {
            for exchange in exchanges {
                body.element("tr", &[("role", "row")], |row| datagram(row, exchange, shown));
            }
        });
    });
}

fn datagram(row: &mut Markup, exchange: &Exchange, shown: Bytes) {
    cell(row, "when", |cell| cell.text(&spell::clock_ms(exchange.at_ms)));
    let (sign, way) = match exchange.direction {
        Direction::Sent => ("→", "sent"),
        Direction::Received => ("←", "received"),
    };
    cell(row, "way", |cell| {
        cell.leaf("span", &[("aria-hidden", "true")], sign);
        cell.leaf("span", &[("class", "heard")], way);
    });
    cell(row, "what", |cell| {
        let decoded = exchange.decoded.as_deref().unwrap_or("not decoded");
        let (meaning, numbers) = decoded.split_once(" · ").unwrap_or((decoded, ""));
        let class = match exchange.direction {
            Direction::Sent => "meaning",
            Direction::Received => "meaning answer",
        };
        cell.leaf("span", &[("class", class)], meaning);
        if !numbers.is_empty() {
            cell.text(" ");
            cell.leaf("span", &[("class", "soft-text")], numbers);
        }
        if let Some(plaintext) = &exchange.plaintext {
            bytes(cell, "inside", plaintext);
        }
        if shown == Bytes::All || exchange.plaintext.is_none() {
            bytes(cell, "wire", &exchange.hex);
        }
    });
}

fn bytes(cell: &mut Markup, name: &str, hex: &str) {
    cell.element("code", &[], |code| {
        code.leaf("span", &[("class", "bytes-of")], name);
        code.text(" ");
        code.text(&spell::pairs(hex));
    });
}
