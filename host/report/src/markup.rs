//! Writes HTML and SVG that is well nested and escaped by construction.
//!
//! Deliberately no template language: an element closes where its closure ends, and every
//! text and every attribute is escaped on its way in.

use crate::printable;

/// One attribute: its name and its value as plain text.
pub(crate) type Attribute<'a> = (&'a str, &'a str);

/// Markup as it grows.
#[derive(Default)]
pub(crate) struct Markup {
    out: String,
}

impl Markup {
    /// An element with what `inside` writes.
    pub(crate) fn element(
        &mut self,
        tag: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(tag, attributes);
        self.out.push('>');
        inside(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
        if ENDS_LINE.contains(&tag) {
            self.out.push('\n');
        }
    }

    /// An element with only text.
    pub(crate) fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.element(tag, attributes, |markup| markup.text(text));
    }

    /// An element without content.
    pub(crate) fn void(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.open(tag, attributes);
        self.out.push_str("/>");
    }

    /// Text, escaped.
    pub(crate) fn text(&mut self, text: &str) {
        escape(&mut self.out, &printable::line(text));
    }

    /// Text whose line ends matter, escaped.
    pub(crate) fn block(&mut self, text: &str) {
        escape(&mut self.out, &printable::block(text));
    }

    /// What must not be escaped: our own style sheets, and JSON that is already safe.
    pub(crate) fn verbatim(&mut self, ours: &str) {
        self.out.push_str(ours);
    }

    /// Markup written elsewhere, to stand here.
    pub(crate) fn append(&mut self, other: &Markup) {
        self.out.push_str(&other.out);
    }

    /// The whole.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(&mut self.out, &printable::line(value));
            self.out.push('"');
        }
    }
}

/// A line end after these keeps the source of a page readable and its differences small.
const ENDS_LINE: [&str; 16] = [
    "head", "header", "section", "figure", "table", "tr", "details", "summary", "li", "dl", "p",
    "h2", "h3", "svg", "g", "style",
];

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_cannot_become_markup() {
        let mut markup = Markup::default();
        markup.leaf("b", &[("title", "\"><i>")], "<script>&'\u{1b}");
        let expected = "<b title=\"&quot;&gt;&lt;i&gt;\">&lt;script&gt;&amp;&#39;\u{fffd}</b>";
        assert_eq!(markup.finish(), expected);
    }
}
