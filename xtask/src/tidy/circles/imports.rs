//! What a Rust file declares and names: its modules, its `use` lines, and the paths in its code.
//!
//! Reads tokens, not types. Code that only tests compile is left out. A name that a macro makes is not seen.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// One file, or one `mod name { … }` inside of it.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// `mod name;`: each has a file of its own.
    pub(super) files: Vec<String>,
    /// `mod name { … }`
    pub(super) inline: Vec<(String, Module)>,
    pub(super) uses: Vec<Use>,
    /// Functions, types and constants that it defines.
    pub(super) defined: Vec<String>,
    /// Paths of two names or more, as `super::plan::read` or `plan::read`.
    pub(super) paths: Vec<Vec<String>>,
    /// Names that stand in its code alone, outside of `use` lines and paths.
    pub(super) names: BTreeSet<String>,
}

/// One name that a `use` line brings in.
#[derive(Debug, PartialEq)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// The name it has from here on; none if all names of the module are brought in (`*`).
    pub(super) name: Option<String>,
    /// `pub use`: it only hands the name on.
    pub(super) is_handed_on: bool,
}

/// Words before the name of what a module defines.
const DEFINING: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Reads one file. The error says why it is no Rust.
pub(super) fn read(text: &str) -> Result<Module, String> {
    let tokens = TokenStream::from_str(text).map_err(|error| error.to_string())?;
    let mut module = Module::default();
    items(tokens, &mut module);
    Ok(module)
}

/// Reads the tokens of a file, a module or any block of code.
fn items(tokens: TokenStream, module: &mut Module) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    while let Some(first) = rest.first() {
        if let Some(after) = test_item(rest) {
            rest = after;
        } else if is_word(first, "mod") {
            rest = declaration(rest, module);
        } else if let Some((is_handed_on, tree)) = use_line(rest) {
            let end = tree.iter().position(|token| is_mark(token, ';')).unwrap_or(tree.len());
            let (tree, after) = tree.split_at(end);
            use_tree(tree, &[], is_handed_on, &mut module.uses);
            rest = after;
        } else if let [keyword, TokenTree::Ident(name), ..] = rest
            && DEFINING.iter().any(|word| is_word(keyword, word))
        {
            module.defined.push(name.to_string());
            rest = without_first(rest);
        } else if let [one, two, rest_of_path @ ..] = rest
            && is_joint(one)
            && is_mark(two, ':')
        {
            // `::name`: of another crate.
            rest = path(rest_of_path, &mut Module::default());
        } else if word_of(first).is_some() {
            rest = path(rest, module);
        } else {
            if let TokenTree::Group(group) = first {
                items(group.stream(), module);
            }
            rest = without_first(rest);
        }
    }
}

/// What follows an item that only tests compile: `#[cfg(test)]` or `#[cfg(any(test, …))]` before it.
fn test_item(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    let [mark, TokenTree::Group(attribute), rest @ ..] = tokens else { return None };
    let text = attribute.stream().to_string().replace(' ', "");
    if !is_mark(mark, '#') || !matches!(text.as_str(), "cfg(test)" | "test") {
        return None;
    }
    // An item ends with its block or a semicolon.
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => is_mark(token, ';'),
    };
    let end = rest.iter().position(ends).map_or(rest.len(), |end| end + 1);
    Some(rest.split_at(end).1)
}

/// Whether a `use` line begins here, if it is a `pub use`, and what follows the word.
fn use_line(tokens: &[TokenTree]) -> Option<(bool, &[TokenTree])> {
    let is_pub = |token: &TokenTree| is_word(token, "pub");
    match tokens {
        [word, rest @ ..] if is_word(word, "use") => Some((false, rest)),
        [first, word, rest @ ..] if is_pub(first) && is_word(word, "use") => Some((true, rest)),
        [first, TokenTree::Group(_), word, rest @ ..] if is_pub(first) && is_word(word, "use") => {
            Some((true, rest))
        }
        _ => None,
    }
}

/// `mod name;` or `mod name { … }`.
fn declaration<'a>(tokens: &'a [TokenTree], module: &mut Module) -> &'a [TokenTree] {
    match tokens {
        [_, TokenTree::Ident(name), TokenTree::Group(body), rest @ ..] => {
            let mut inner = Module::default();
            items(body.stream(), &mut inner);
            module.inline.push((name.to_string(), inner));
            rest
        }
        [_, TokenTree::Ident(name), rest @ ..] => {
            module.files.push(name.to_string());
            rest
        }
        rest => without_first(rest),
    }
}

/// The names of a `use` line without `use` and `;`: `a::b`, `a::{b, c as d}`, `a::*`.
fn use_tree(tokens: &[TokenTree], before: &[String], is_handed_on: bool, uses: &mut Vec<Use>) {
    for tree in tokens.split(|token| is_mark(token, ',')) {
        let mut path = before.to_vec();
        let mut name = None;
        let mut is_all = false;
        let mut rest = tree;
        while let Some((token, after)) = rest.split_first() {
            rest = after;
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    use_tree(&inner, &path, is_handed_on, uses);
                    path.clear();
                }
                TokenTree::Ident(word) if word == "as" => {
                    name = rest.first().and_then(word_of);
                    rest = &[];
                }
                // `a::{self}` is `a`.
                TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => is_all |= is_mark(token, '*'),
            }
        }
        if path.len() > before.len() || (is_all || tree.len() == 1) && !path.is_empty() {
            let name = name.or_else(|| path.last().cloned()).filter(|_| !is_all);
            uses.push(Use { path, name, is_handed_on });
        }
    }
}

/// A name, and all that follow it after `::`.
fn path<'a>(tokens: &'a [TokenTree], module: &mut Module) -> &'a [TokenTree] {
    let mut names = Vec::new();
    let mut rest = tokens;
    while let [first, after @ ..] = rest
        && let Some(name) = word_of(first)
    {
        names.push(name);
        rest = after;
        match after {
            [one, two, next @ ..] if is_joint(one) && is_mark(two, ':') => rest = next,
            _ => break,
        }
    }
    match names.as_slice() {
        [name] => _ = module.names.insert(name.clone()),
        _ => module.paths.push(names),
    }
    rest
}

fn without_first(tokens: &[TokenTree]) -> &[TokenTree] {
    tokens.split_first().map_or(tokens, |(_, rest)| rest)
}

fn word_of(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

fn is_word(token: &TokenTree, expected: &str) -> bool {
    word_of(token).is_some_and(|word| word == expected)
}

fn is_mark(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == expected)
}

/// Whether it is a colon that the next mark belongs to, as in `::`.
fn is_joint(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == Spacing::Joint)
}
