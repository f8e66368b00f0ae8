//! Words and how they are painted.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Dim,
    Bold,
    /// Rules, grades, commands: what a reader may look up or type.
    Accent,
    Good,
    Bad,
}

impl Paint {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Dim => "\u{1b}[2m",
            Paint::Bold => "\u{1b}[1m",
            Paint::Accent => "\u{1b}[36m",
            Paint::Good => "\u{1b}[1;32m",
            Paint::Bad => "\u{1b}[1;31m",
        }
    }
}

/// Text of one colour.
pub(crate) type Span<'a> = (Paint, &'a str);
