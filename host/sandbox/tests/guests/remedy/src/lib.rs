//! A remedy that does what the node's label `do` names, also what a remedy must not.

use exports::node_remedy::fence::remedy::{Decision, Entry, Guest, NodeView};
use node_remedy::fence::op;

wit_bindgen::generate!({ path: "../../../../../wit", world: "remedy-plugin", generate_all });

const MANIFEST: &[u8; include_bytes!("../manifest.json").len()] =
    include_bytes!("../manifest.json");

#[used]
#[unsafe(link_section = "node-remedy:manifest")]
static SECTION: [u8; MANIFEST.len()] = *MANIFEST;

struct Remedy;

static mut ASKED: u32 = 0;

impl Guest for Remedy {
    fn next(view: NodeView, history: Vec<Entry>) -> Decision {
        let deed = view.labels.iter().find(|(key, _)| key == "do").map(|(_, deed)| deed.as_str());
        let deed = deed.unwrap_or_default();
        if let Some((what, number)) = deed.split_once(' ') {
            return so_much(what, number.parse().unwrap_or_default());
        }
        match deed {
            "see" => Decision::Fail(format!("{view:?} {history:?}")),
            "method" => Decision::Method("bmc".into()),
            "cluster" => Decision::ClusterMethod("drain".into()),
            "fence" => Decision::Fence,
            "wait" => Decision::Wait(60),
            "done" => Decision::Done,
            "remember" => {
                let asked = unsafe {
                    ASKED += 1;
                    ASKED
                };
                Decision::Wait(asked)
            }
            "trap" => panic!("as it was told"),
            "spin" => loop {
                std::hint::black_box(&history);
            },
            "sleep" => {
                op::sleep(600_000);
                Decision::Done
            }
            "flood" => {
                for _ in 0..100_000 {
                    op::log(op::Level::Warn, &"x".repeat(10_000));
                }
                Decision::Done
            }
            "hoard" => Decision::Fail("x".repeat(8 << 20)),
            "act" => {
                let _ = op::begin_effect("just once");
                Decision::Fence
            }
            "forge" => Decision::Fail("fine\nERROR \u{1b}[2J".into()),
            "talk" => Decision::Fail("x".repeat(100_000)),
            "nameless" => Decision::Method(String::new()),
            _ => Decision::Done,
        }
    }
}

/// Just so much of something.
fn so_much(what: &str, number: u32) -> Decision {
    match what {
        "name" => Decision::Method("x".repeat(number as usize)),
        "wait" => Decision::Wait(number),
        "nap" => {
            op::sleep(number);
            Decision::Done
        }
        _ => Decision::Fail(format!("no deed {what}")),
    }
}

export!(Remedy);
