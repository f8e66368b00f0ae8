//! Renders a timeline kept as JSON: `render TIMELINE.json OUT.html` writes the page, the pictures
//! beside it, and prints what a terminal would show.

use std::error::Error;
use std::path::Path;

use node_remedy_report::text::{Closing, Colour, Depth, Terminal, render, verdict};
use node_remedy_report::{Theme, Timeline, html, lanes_svg};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [timeline, out] = arguments.as_slice() else {
        return Err("usage: render TIMELINE.json OUT.html".into());
    };
    let timeline: Timeline = serde_json::from_str(&std::fs::read_to_string(timeline)?)?;
    let page = html::page(&timeline)?;
    std::fs::write(out, &page)?;
    for (theme, ending) in [(Theme::Light, "light.svg"), (Theme::Dark, "dark.svg")] {
        std::fs::write(Path::new(out).with_extension(ending), lanes_svg(&timeline, theme))?;
    }
    let terminal = Terminal { columns: 110, colour: Colour::Always };
    println!("{}", render(&timeline, Depth::Timeline, &terminal));
    let closing = Closing { report: out, scenario: "in the report", try_next: &[] };
    print!("{}", verdict(&timeline, &closing, &terminal));
    eprintln!("{} bytes", page.len());
    Ok(())
}
