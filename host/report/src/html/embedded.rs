//! The timeline inside the page, and how it is read back.

use crate::html::parts::{Context, Share};
use crate::markup::Markup;
use crate::{Run, Timeline, Weight};

/// Larger files are no report of ours: twice a page, for browsers that save with additions.
pub const READ_BYTES_MAX: usize = 2 * crate::html::parts::PAGE_BYTES_MAX;

const OPENS: &str = "<script type=\"application/json\" id=\"timeline\">";
const CLOSES: &str = "</script>";

/// Why a file gives no timeline.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is larger than any page.
    #[error("failed to read the report: {bytes} bytes, at most {READ_BYTES_MAX} allowed")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// There is no embedded timeline, or more than one.
    #[error("failed to read the report: found {found} embedded timelines, expected one")]
    NotOne {
        /// How many there are.
        found: usize,
    },
    /// The embedded timeline does not end: the file is cut off.
    #[error("failed to read the report: it ends inside the embedded timeline")]
    CutOff,
    /// The embedded timeline is not one that this version writes.
    #[error("failed to read the timeline in the report")]
    NotATimeline(#[source] serde_json::Error),
}

/// The timeline that a page carries. For a page that had to be shortened that is the short one:
/// to compare, make the page of the replayed timeline and read that back too.
pub fn read_back(html: &str) -> Result<Timeline, ReadError> {
    if html.len() > READ_BYTES_MAX {
        return Err(ReadError::TooLarge { bytes: html.len() });
    }
    let found = html.matches(OPENS).count();
    let (1, Some((_, rest))) = (found, html.split_once(OPENS)) else {
        return Err(ReadError::NotOne { found });
    };
    let (json, _) = rest.split_once(CLOSES).ok_or(ReadError::CutOff)?;
    serde_json::from_str(json).map_err(ReadError::NotATimeline)
}

/// Writes the timeline where the page ends. Plain values always serialize; should one not, the
/// page carries no timeline and says so when it is read back.
pub(super) fn write(out: &mut Markup, context: &Context<'_>) {
    let json = match context.share {
        Share::Everything | Share::ProvingExchanges | Share::NoDetail => {
            serde_json::to_string(context.timeline)
        }
        Share::ShortTimeline => serde_json::to_string(&shortened(context.timeline)),
    };
    if let Ok(json) = json {
        out.verbatim(OPENS);
        out.verbatim(&harmless(&json));
        out.verbatim(CLOSES);
    }
}

/// In JSON these characters stand only inside of strings, where their escapes mean the same;
/// without them nothing in the timeline can end the script element or open another.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn shortened(timeline: &Timeline) -> Timeline {
    let mut short = timeline.clone();
    shorten(&mut short.with);
    if let Some(without) = &mut short.without {
        shorten(without);
    }
    short
}

fn shorten(run: &mut Run) {
    run.entries.retain(|entry| entry.weight != Weight::Detail);
    for incident in &mut run.incidents {
        let proving = incident.proof.as_ref().map(|proof| proof.journal);
        for row in incident.journal.iter_mut().filter(|row| Some(row.number) != proving) {
            row.exchanges.clear();
        }
    }
}
