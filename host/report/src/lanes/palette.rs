//! The colours, once: one accent, one for bad news, greys.

use crate::lanes::theme::Theme;

/// What the lanes look like, in terms of the palette.
pub(crate) const STYLE: &str = include_str!("lanes.css");

/// Name, light value, dark value. All text meets a contrast of 4.5 to 1 on its ground.
const PALETTE: [(&str, &str, &str); 12] = [
    ("paper", "#ffffff", "#11151a"),
    ("raised", "#f6f7f9", "#191f26"),
    ("ink", "#1a1f26", "#e4e8ed"),
    ("soft", "#57606b", "#9da7b3"),
    ("line", "#d7dce2", "#2e3640"),
    ("bar", "#e4e7eb", "#2b333c"),
    ("accent", "#0b6470", "#62c7d3"),
    ("accent-bar", "#bfe3e7", "#15484f"),
    ("on-accent", "#ffffff", "#0c1a1c"),
    ("bad", "#a3321a", "#ff9c84"),
    ("bad-bar", "#f8ddd5", "#4b241b"),
    ("on-bad", "#ffffff", "#1f0c07"),
];

fn value(theme: Theme, (_, light, dark): (&str, &'static str, &'static str)) -> &'static str {
    match theme {
        Theme::Light => light,
        Theme::Dark => dark,
    }
}

/// The palette as custom properties.
pub(crate) fn variables(theme: Theme) -> String {
    PALETTE.iter().fold(String::from("color-scheme:light dark;"), |css, &colour| {
        format!("{css}--{}:{};", colour.0, value(theme, colour))
    })
}

/// The style of a picture that stands alone, with the colours put in: not every viewer of
/// pictures knows custom properties.
pub(crate) fn standalone(theme: Theme) -> String {
    PALETTE.iter().fold(STYLE.to_owned(), |css, &colour| {
        css.replace(&format!("var(--{})", colour.0), value(theme, colour))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(hex: &str) -> f64 {
        let channel = |range: std::ops::Range<usize>| {
            let value = f64::from(u8::from_str_radix(&hex[range], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1..3) + 0.7152 * channel(3..5) + 0.0722 * channel(5..7)
    }

    #[test]
    fn every_text_can_be_read_on_its_ground() {
        let pairs = [
            ("ink", "paper"),
            ("ink", "raised"),
            ("ink", "bar"),
            ("ink", "accent-bar"),
            ("ink", "bad-bar"),
            ("soft", "paper"),
            ("soft", "raised"),
            ("accent", "paper"),
            ("accent", "raised"),
            ("bad", "paper"),
            ("bad", "raised"),
            ("on-accent", "accent"),
            ("on-bad", "bad"),
        ];
        for theme in [Theme::Light, Theme::Dark] {
            let colour = |name| value(theme, *PALETTE.iter().find(|c| c.0 == name).unwrap());
            for (text, ground) in pairs {
                let (a, b) = (luminance(colour(text)), luminance(colour(ground)));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 4.5, "{theme:?}: {text} on {ground} has only {contrast:.2}");
            }
        }
    }

    #[test]
    fn a_picture_that_stands_alone_needs_no_custom_properties() {
        assert!(STYLE.contains("var(--"));
        assert!(!standalone(Theme::Dark).contains("var("));
    }
}
