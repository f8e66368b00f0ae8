//! Renders a story kept as JSON: `render STORY.json OUT.html` writes the page, the pictures
//! beside it, and prints what a terminal would show.

use std::error::Error;
use std::path::Path;

use node_remedy_report::text::{Closing, Colour, Depth, Terminal, timeline, verdict};
use node_remedy_report::{Story, Theme, html, lanes_svg};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [story, out] = arguments.as_slice() else {
        return Err("usage: render STORY.json OUT.html".into());
    };
    let story: Story = serde_json::from_str(&std::fs::read_to_string(story)?)?;
    let page = html::page(&story)?;
    std::fs::write(out, &page)?;
    for (theme, ending) in [(Theme::Light, "light.svg"), (Theme::Dark, "dark.svg")] {
        std::fs::write(Path::new(out).with_extension(ending), lanes_svg(&story, theme))?;
    }
    let terminal = Terminal { columns: 110, colour: Colour::Always };
    println!("{}", timeline(&story, Depth::Story, &terminal));
    let closing = Closing { report: out, scenario: "in the report", try_next: &[] };
    print!("{}", verdict(&story, &closing, &terminal));
    eprintln!("{} bytes", page.len());
    Ok(())
}
