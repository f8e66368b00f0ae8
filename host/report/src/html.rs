//! The report: one self-contained HTML page, from the verdict down to the datagram.
//!
//! It loads nothing, runs no script, and is readable on a telephone, in the dark and on
//! paper. Every line leads to its journal row, each row to what went over the wire, each rule
//! to its meaning. The timeline itself is embedded, so that the page can be checked by playing
//! it again. Deliberately not a console: it shows a finished run and cannot do anything.

mod citations;
mod embedded;
mod evidence;
mod opening;
mod parts;
mod sources;
mod timeline;
mod wire;

pub use embedded::{READ_BYTES_MAX, ReadError, read_back};
pub use parts::PAGE_BYTES_MAX;

use crate::html::parts::{Context, Share};
use crate::lanes::Theme;
use crate::markup::Markup;
use crate::{Timeline, alike, lanes};

const STYLE: &str = include_str!("report.css");

/// The timeline does not fit on a page, however much is left out.
#[derive(Debug, thiserror::Error)]
#[error("failed to fit the timeline on one page: {bytes} bytes, at most {PAGE_BYTES_MAX} allowed")]
pub struct TooLarge {
    /// How large the shortest page would be.
    pub bytes: usize,
}

/// The whole page. The same timeline gives the same bytes.
///
/// A timeline too long for [`PAGE_BYTES_MAX`] is shortened in steps, and the page says what it
/// leaves out; the proof with its datagrams always stays.
pub fn page(timeline: &Timeline) -> Result<String, TooLarge> {
    let mut bytes = 0;
    for share in Share::ALL {
        let html = write(timeline, share);
        if html.len() < PAGE_BYTES_MAX {
            return Ok(html);
        }
        bytes = html.len();
    }
    Err(TooLarge { bytes })
}

fn write(timeline: &Timeline, share: Share) -> String {
    let context = Context {
        timeline,
        with: alike::turns(&timeline.with),
        without: timeline.without.as_ref().map(alike::turns).unwrap_or_default(),
        share,
    };
    let mut page = Markup::default();
    page.verbatim("<!doctype html>\n");
    page.element("html", &[("lang", "en")], |page| {
        page.element("head", &[], |head| write_head(head, timeline));
        page.element("body", &[], |body| {
            opening::write(body, &context);
            body.element("main", &[], |main| {
                main.element("div", &[("class", "beside")], |main| {
                    main.element("div", &[], |left| opening::legends(left, &context));
                    main.element("div", &[], |right| evidence::write(right, &context));
                });
                timeline::write(main, &context);
                sources::write(main, &context);
            });
            embedded::write(body, &context);
        });
    });
    page.finish()
}

fn write_head(head: &mut Markup, timeline: &Timeline) {
    head.void("meta", &[("charset", "utf-8")]);
    let viewport = "width=device-width, initial-scale=1";
    head.void("meta", &[("name", "viewport"), ("content", viewport)]);
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    head.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", policy)]);
    head.leaf(
        "title",
        &[],
        &format!("{}: {}", timeline.inputs.name, timeline.with.outcome.verdict),
    );
    head.element("style", &[], |style| {
        let (light, dark) = (lanes::variables(Theme::Light), lanes::variables(Theme::Dark));
        style.verbatim(&format!(
            ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        ));
        style.verbatim(lanes::STYLE);
        style.verbatim(STYLE);
    });
}
