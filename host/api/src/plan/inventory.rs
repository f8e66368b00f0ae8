//! A table of nodes as CSV: a header line, then a line per node, the first column its name. Plain
//! on purpose: values hold no commas, quotes or line breaks.

use std::collections::BTreeMap;

use crate::limits;

/// The table, by node and column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InventoryTable {
    rows: BTreeMap<String, BTreeMap<String, String>>,
}

/// What is wrong with a line of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}: {sentence}")]
pub struct InventoryError {
    /// The ConfigMap and its key.
    pub origin: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found and what is expected.
    pub sentence: String,
}

impl InventoryTable {
    /// Reads the table; all lines that are wrong are reported.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Vec<InventoryError>> {
        let mut errors = Vec::new();
        let mut wrong = |line: usize, sentence: String| {
            if errors.len() < limits::PROBLEMS_MAX {
                errors.push(InventoryError { origin: origin.to_owned(), line, sentence });
            }
        };
        let mut columns: Vec<&str> = Vec::new();
        let mut rows = BTreeMap::new();
        let lines = (1_usize..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        for (number, line) in lines {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if line.contains('"') {
                wrong(number, "found a quote, expected plain values between commas".to_owned());
            } else if columns.is_empty() {
                columns = cells;
            } else if cells.len() != columns.len() {
                let (found, expected) = (cells.len(), columns.len());
                wrong(
                    number,
                    format!("found {found} values, expected {expected} as in the header"),
                );
            } else if rows.len() >= limits::INVENTORY_ROWS_MAX {
                let max = limits::INVENTORY_ROWS_MAX;
                wrong(number, format!("found more than {max} nodes, expected fewer"));
                break;
            } else {
                let row: BTreeMap<String, String> = columns
                    .iter()
                    .zip(&cells)
                    .map(|(column, cell)| ((*column).to_owned(), (*cell).to_owned()))
                    .collect();
                let node = cells.first().copied().unwrap_or_default().to_owned();
                if node.is_empty() {
                    wrong(
                        number,
                        "found no node name, expected one in the first column".to_owned(),
                    );
                } else if rows.insert(node.clone(), row).is_some() {
                    wrong(number, format!("found node {node} a second time, expected one line"));
                }
            }
        }
        if errors.is_empty() { Ok(Self { rows }) } else { Err(errors) }
    }

    /// The row of a node; empty for one that the table does not have.
    pub fn row(&self, node: &str) -> BTreeMap<String, String> {
        self.rows.get(node).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_rows_by_node() {
        let table =
            InventoryTable::parse("t", "node,bmc,outlet\nw1, 10.0.0.1 ,3\n\nw2,10.0.0.2,4\n");
        let table = table.unwrap();
        assert_eq!(table.row("w1").get("bmc").map(String::as_str), Some("10.0.0.1"));
        assert_eq!(table.row("w2").get("outlet").map(String::as_str), Some("4"));
        assert!(table.row("w3").is_empty());
    }

    #[test]
    fn every_wrong_line_is_named() {
        let text = "node,bmc\nw1,a,b\nw2,\"x\"\n,c\nw3,d\nw3,e\n";
        let errors = InventoryTable::parse("ConfigMap/inventory[table]", text).unwrap_err();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "ConfigMap/inventory[table]:2: found 3 values, expected 2 as in the header",
                "ConfigMap/inventory[table]:3: found a quote, expected plain values between commas",
                "ConfigMap/inventory[table]:4: found no node name, expected one in the first column",
                "ConfigMap/inventory[table]:6: found node w3 a second time, expected one line",
            ]
        );
    }
}
