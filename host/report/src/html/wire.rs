//! Datagrams as a table: what they mean, what stood inside of them, the bytes.

use super::{cell, columns};
use crate::markup::Markup;
use crate::{Direction, Exchange, spell};

/// A table of datagrams; `caption` says which.
pub(super) fn table(out: &mut Markup, exchanges: &[Exchange], caption: impl FnOnce(&mut Markup)) {
    out.element("table", &[("class", "wire"), ("role", "table")], |table| {
        table.element("caption", &[], caption);
        columns(table, &["Time", "Way", "Meaning and bytes"]);
        table.element("tbody", &[], |body| {
            for exchange in exchanges {
                body.element("tr", &[("role", "row")], |row| datagram(row, exchange));
            }
        });
    });
}

fn datagram(row: &mut Markup, exchange: &Exchange) {
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
        cell.leaf("span", &[("class", "meaning")], meaning);
        if !numbers.is_empty() {
            cell.text(" ");
            cell.leaf("span", &[("class", "soft-text")], numbers);
        }
        if let Some(plaintext) = &exchange.plaintext {
            bytes(cell, "inside", plaintext);
        }
        bytes(cell, "wire", &exchange.hex);
    });
}

fn bytes(cell: &mut Markup, name: &str, hex: &str) {
    cell.element("code", &[], |code| {
        code.leaf("span", &[("class", "bytes-of")], name);
        code.text(" ");
        code.text(&spell::pairs(hex));
    });
}
