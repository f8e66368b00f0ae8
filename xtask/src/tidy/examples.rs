//! What a stranger builds on is shown: each public item of the SDK has an example, which its documentation
//! tests run.

use crate::source::Source;

/// Where the SDK is. What is only for its macros is for nobody to read.
const SDK: &str = "plugins/sdk/src/";
const FOR_MACROS: &str = "plugins/sdk/src/wasm";
/// How a public item begins, at the edge of its file.
const ITEMS: [&str; 7] = [
    "pub fn ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
    "macro_rules! ",
    "pub const ",
];

/// Items without one.
pub(super) fn missing(source: &Source) -> Vec<String> {
    if !source.path.starts_with(SDK) || source.path.starts_with(FOR_MACROS) {
        return Vec::new();
    }
    let (mut found, mut has_example) = (Vec::new(), false);
    for (number, line) in (1..).zip(source.text.lines()) {
        if line.starts_with("///") {
            has_example |= line == "/// ```";
        } else if !line.starts_with("#[") {
            let is_item = ITEMS.iter().any(|item| line.starts_with(item));
            if is_item && !has_example {
                found.push(format!("{}:{number}: has no example: {line}", source.path));
            }
            has_example = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_the_sdk_has_an_example() {
        let shown = "/// It is.\n///\n/// ```\n/// assert!(true);\n/// ```\n#[derive(Debug)]\npub struct Shown;\n";
        let bare = "\n/// It is not.\npub fn bare() {\n    pub fn inside() {}\n}\nfn own() {}\n";
        let source = |path: &str| Source { path: path.to_owned(), text: format!("{shown}{bare}") };
        assert_eq!(
            missing(&source("plugins/sdk/src/a.rs")),
            ["plugins/sdk/src/a.rs:10: has no example: pub fn bare() {"]
        );
        assert_eq!(missing(&source("plugins/sdk/src/wasm.rs")), [""; 0]);
        assert_eq!(missing(&source("plugins/ipmi/src/a.rs")), [""; 0]);
    }
}
