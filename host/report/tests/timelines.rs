//! The three timelines of the demo, rendered: what a terminal shows, and what the page promises.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's helpers may fail the test")]

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::{ExpectFile, expect_file};
use node_remedy_report::html::{self, PAGE_BYTES_MAX, ReadError, read_back};
use node_remedy_report::text::{Closing, Colour, Depth, Terminal, render, verdict};
use node_remedy_report::{Direction, Exchange, Theme, Timeline, Weight, lanes_svg};

const NAMES: [&str; 3] = ["lost-node", "bmc-says-yes", "dark-rack"];

fn fixture(name: &str) -> Timeline {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn timelines() -> [Timeline; 3] {
    NAMES.map(fixture)
}

fn page(timeline: &Timeline) -> String {
    html::page(timeline).unwrap()
}

fn terminal(columns: usize, colour: Colour) -> Terminal {
    Terminal { columns, colour }
}

const COMMANDS: [&str; 2] =
    ["node-remedy simulate examples/scenario.yaml --seed 8", "cargo xtask test"];

fn text(timeline: &Timeline, depth: Depth, terminal: &Terminal) -> String {
    let closing = Closing {
        report: "/tmp/demo/report.html",
        scenario: "examples/scenario.yaml",
        try_next: &COMMANDS,
    };
    format!("{}\n{}", render(timeline, depth, terminal), verdict(timeline, &closing, terminal))
}

fn check(name: &str, expected: &ExpectFile) {
    let text = text(&fixture(name), Depth::Timeline, &terminal(100, Colour::Never));
    expected.assert_eq(&text);
}

#[test]
fn the_lost_node_on_a_terminal() {
    check("lost-node", &expect_file!["fixtures/lost-node.txt"]);
}

#[test]
fn the_bmc_that_says_yes_on_a_terminal() {
    check("bmc-says-yes", &expect_file!["fixtures/bmc-says-yes.txt"]);
}

#[test]
fn the_dark_rack_on_a_terminal() {
    check("dark-rack", &expect_file!["fixtures/dark-rack.txt"]);
}

/// Commands are: whoever copies one copies all of it.
#[test]
fn no_line_but_a_command_is_wider_than_the_terminal() {
    for timeline in timelines() {
        for columns in [24, 39, 60, 80, 200] {
            let text = text(&timeline, Depth::Everything, &terminal(columns, Colour::Never));
            let is_command = |line: &str| COMMANDS.iter().any(|command| line.ends_with(command));
            let (commands, others): (Vec<&str>, Vec<&str>) =
                text.lines().partition(|line| is_command(line));
            assert_eq!(commands.len(), COMMANDS.len(), "{columns} columns:\n{text}");
            let widest = others.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{widest} of {columns} columns:\n{text}");
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    for timeline in timelines() {
        let plain = text(&timeline, Depth::Everything, &terminal(90, Colour::Never));
        let coloured = text(&timeline, Depth::Everything, &terminal(90, Colour::Always));
        assert!(!plain.contains('\u{1b}'));
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, code)) = rest.split_once('\u{1b}') {
            stripped.push_str(before);
            rest = code.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }
}

#[test]
fn details_are_told_only_when_asked_for() {
    let timeline = fixture("lost-node");
    let told = |depth| render(&timeline, depth, &terminal(100, Colour::Never));
    assert!(!told(Depth::Timeline).contains("looks again in"));
    assert!(told(Depth::Everything).contains("looks again in"));
}

#[test]
fn what_was_missed_is_said_first_on_page_and_terminal() {
    let mut timeline = fixture("lost-node");
    timeline.with.outcome.as_expected = false;
    timeline.with.outcome.missed = vec!["db-0 running elsewhere".into()];
    let text = text(&timeline, Depth::Timeline, &terminal(100, Colour::Never));
    assert!(text.contains("✗ db-0 back on node-b") && text.contains("expected: db-0 running"));
    assert!(page(&timeline).contains("<li>db-0 running elsewhere</li>"));
}

#[test]
fn a_page_is_small_and_loads_nothing() {
    for timeline in timelines() {
        let page = page(&timeline);
        assert!(page.len() < PAGE_BYTES_MAX);
        for loads in ["http://", "https://", "src=", "<link", "@import", "url("] {
            assert!(!page.contains(loads), "{}: {loads}", timeline.inputs.name);
        }
    }
}

#[test]
fn every_link_leads_somewhere_and_every_id_is_one() {
    for timeline in timelines() {
        let page = page(&timeline);
        let ids: Vec<&str> = values(&page, " id=\"").collect();
        let known: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(known.len(), ids.len(), "an id is given twice");
        let links: Vec<&str> = values(&page, " href=\"").collect();
        assert!(links.len() > 10);
        for link in links {
            let id = link.strip_prefix('#').expect("links stay on the page");
            assert!(known.contains(id), "{}: {link} leads nowhere", timeline.inputs.name);
        }
        let described = values(&page, " aria-labelledby=\"").flat_map(str::split_whitespace);
        for id in described {
            assert!(known.contains(id), "{id} is described by nothing");
        }
    }
}

#[test]
fn every_line_with_a_journal_row_leads_to_it() {
    let timeline = fixture("lost-node");
    let page = page(&timeline);
    let rows = timeline.with.entries.iter().filter_map(|entry| entry.journal.as_ref());
    for (_, number) in rows {
        assert!(page.contains(&format!(" href=\"#j0-{number}\"")), "row {number}");
    }
}

#[test]
fn a_journal_row_that_does_not_exist_is_named_without_a_link() {
    let mut timeline = fixture("lost-node");
    timeline.with.entries[3].journal = Some(("node-a-1".into(), 77));
    timeline.with.entries[4].journal = Some(("node-z-9".into(), 1));
    let page = page(&timeline);
    assert!(page.contains("node-a-1 #77") && page.contains("node-z-9 #1"));
    assert!(!page.contains("#j0-77"));
}

#[test]
fn pages_and_pictures_are_well_formed() {
    for timeline in timelines() {
        well_formed(&page(&timeline));
        well_formed(&lanes_svg(&timeline, Theme::Light));
        well_formed(&lanes_svg(&timeline, Theme::Dark));
    }
}

#[test]
fn nothing_in_a_timeline_becomes_markup() {
    let evil = "</script><b onclick='x'>\"&\u{1b}[2J";
    let json = serde_json::to_string(&fixture("lost-node")).unwrap();
    let quoted = serde_json::to_string(evil).unwrap();
    let json = json.replace("node-a", &quoted[1..quoted.len() - 1]);
    let mut timeline: Timeline = serde_json::from_str(&json).unwrap();
    timeline.inputs.scenario.push_str(evil);
    timeline.with.outcome.verdict = evil.into();
    let page = page(&timeline);
    assert!(!page.contains("<b onclick"));
    assert!(page.contains("&lt;b onclick"));
    assert!(!page.contains('\u{1b}'));
    well_formed(&page);
    well_formed(&lanes_svg(&timeline, Theme::Light));
    assert_eq!(read_back(&page).unwrap(), timeline);
}

#[test]
fn the_timeline_is_read_back_and_gives_the_same_bytes_again() {
    for timeline in timelines() {
        let first = page(&timeline);
        let back = read_back(&first).unwrap();
        assert_eq!(back, timeline);
        assert_eq!(page(&back), first);
        assert_eq!(lanes_svg(&back, Theme::Light), lanes_svg(&timeline, Theme::Light));
    }
}

#[test]
fn what_is_no_report_is_refused_with_the_reason() {
    let whole = page(&fixture("dark-rack"));
    let cut_off = whole.get(..whole.len() - 100).unwrap();
    assert!(matches!(read_back(cut_off), Err(ReadError::CutOff)));
    assert!(matches!(read_back("<p>hello"), Err(ReadError::NotOne { found: 0 })));
    let twice = format!("{whole}{whole}");
    assert!(matches!(read_back(&twice), Err(ReadError::NotOne { found: 2 })));
    let other = whole.replace("\"inputs\"", "\"outputs\"");
    assert!(matches!(read_back(&other), Err(ReadError::NotATimeline(_))));
    assert!(matches!(read_back(&" ".repeat(2_000_000)), Err(ReadError::TooLarge { .. })));
}

#[test]
fn a_long_timeline_is_shortened_in_steps_and_keeps_its_proof() {
    let mut long = fixture("lost-node");
    let proving = long.with.incidents[0].proof.as_ref().unwrap().journal;
    let exchanges = &long.with.incidents[0].journal[3].exchanges;
    let proof_bytes = pairs(&exchanges.last().unwrap().hex);
    for (exchanges, says) in
        [(700, "the embedded timeline has them"), (4_000, "playing the scenario")]
    {
        for row in &mut long.with.incidents[0].journal {
            if row.number != proving {
                row.exchanges = vec![datagram(); exchanges];
            }
        }
        let page = page(&long);
        assert!(page.len() < PAGE_BYTES_MAX);
        assert!(page.contains(says), "{exchanges} datagrams a row");
        assert!(page.contains(&proof_bytes));
        let back = read_back(&page).unwrap();
        assert_eq!(back.with.incidents[0].proof, long.with.incidents[0].proof);
        assert!(html::page(&back).unwrap().contains(&proof_bytes));
    }
    long.inputs.scenario = "x".repeat(PAGE_BYTES_MAX);
    assert!(html::page(&long).is_err());
}

fn datagram() -> Exchange {
    Exchange {
        at_ms: 1,
        direction: Direction::Sent,
        hex: "00ff".into(),
        decoded: None,
        plaintext: None,
    }
}

/// Bytes as a page shows them; the embedded timeline has them without spaces.
fn pairs(hex: &str) -> String {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_proof_card_tells_what_stood_inside_and_the_journal_has_the_sealed_bytes_too() {
    let mut timeline = fixture("lost-node");
    let proof = timeline.with.incidents[0].proof.clone().unwrap();
    let mut rows = timeline.with.incidents[0].journal.iter_mut();
    let row = rows.find(|row| row.number == proof.journal).unwrap();
    row.exchanges = vec![datagram(); 3];
    row.exchanges.push(Exchange {
        hex: "0600ff07aabb".into(),
        decoded: Some("chassis status: power off, fault none · completion code 00".into()),
        plaintext: Some("81047b20".into()),
        direction: Direction::Received,
        ..datagram()
    });
    let page = page(&timeline);
    let card = between(&page, "proof-card", "</article>");
    assert!(card.contains("chassis status: power off, fault none</span>"), "{card}");
    assert!(card.contains("completion code 00") && card.contains("81 04 7b 20"));
    assert!(card.contains("the last 1 of 4 datagrams") && !card.contains("06 00 ff 07 aa bb"));
    let row = between(&page, &format!("id=\"j0-{}\"", proof.journal), "</details>");
    assert!(row.contains("81 04 7b 20") && row.contains("06 00 ff 07 aa bb"));
}

#[test]
fn a_journal_row_and_a_rule_lead_back_to_the_lines_that_rest_on_them() {
    let timeline = fixture("lost-node");
    let page = page(&timeline);
    let mut rules = BTreeSet::new();
    for (place, entry) in timeline.with.entries.iter().enumerate() {
        let back = format!("href=\"#w{place}\"");
        if let Some((_, number)) = &entry.journal {
            let row = between(&page, &format!("id=\"j0-{number}\""), "id=\"j0-");
            assert!(row.contains(&back), "row {number} does not lead to line {place}");
        }
        // A rule leads to its first lines and counts the others.
        if let Some(rule) = entry.rule.as_ref().filter(|rule| rules.insert(rule.as_str())) {
            let meaning = between(&page, &format!("id=\"rule-{rule}\""), "</dd>");
            assert!(meaning.contains(&back), "{rule} does not lead to line {place}");
        }
    }
    assert!(rules.len() > 3);
}

#[test]
fn lines_that_say_alike_share_one_and_each_can_still_be_reached() {
    let timeline = fixture("dark-rack");
    let text = render(&timeline, Depth::Timeline, &terminal(100, Colour::Never));
    assert!(text.lines().count() <= 25, "{text}");
    assert!(text.contains("10 nodes") && text.contains("node-11 … node-20, until"), "{text}");
    let page = page(&timeline);
    let ids: BTreeSet<&str> = values(&page, " id=\"").collect();
    for place in 0..timeline.with.entries.len() {
        assert!(ids.contains(format!("w{place}").as_str()), "line {place}");
    }
}

/// What stands after `opens`, up to the next `closes`.
fn between<'a>(page: &'a str, opens: &str, closes: &str) -> &'a str {
    let (_, rest) = page.split_once(opens).expect(opens);
    rest.split(closes).next().unwrap()
}

#[test]
fn thirty_nodes_stay_a_few_rows_and_keep_every_fact() {
    let timeline = fixture("dark-rack");
    let svg = lanes_svg(&timeline, Theme::Light);
    assert!(svg.contains("20 nodes") && svg.contains("10 nodes") && svg.contains("30 devices"));
    let page = page(&timeline);
    for entry in timeline.with.entries.iter().filter(|entry| entry.weight != Weight::Detail) {
        assert!(page.contains(&format!(">{}<", entry.subject)));
    }
    for refusal in &timeline.with.refusals {
        assert!(page.contains(&refusal.numbers.replace('>', "&gt;")));
    }
}

/// The values of an attribute outside of the embedded timeline.
fn values<'a>(page: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    let body = page.split("<script").next().unwrap();
    body.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap())
}

/// Every element that is opened is closed, in order; only our own tags end themselves.
fn well_formed(markup: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in markup.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '/']).next().unwrap();
        assert!(!text.contains('>') || name == "style", "stray > after {tag}");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') && name != "!doctype" {
            assert_eq!(tag.matches('"').count() % 2, 0, "quotes of {tag}");
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}
