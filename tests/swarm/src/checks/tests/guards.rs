//! The checks of guards that only some policies set.

use super::*;
use crate::guards::Guards;

fn names(all: &[&str]) -> std::collections::BTreeSet<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn guarded(guards: Guards) -> Setting {
    Setting { guards, ..Setting::default() }
}

/// Eight nodes, of which `n` is lost from second 1 on, and what is besides.
fn eight(besides: Vec<(u64, What)>) -> Story {
    let created = ["n", "m", "o", "p", "q", "r", "s", "t"]
        .map(|node| (0, What::NodeCreated { node: node.into() }));
    [created.to_vec(), vec![(1, lost())], besides].concat()
}

fn off(at: u64) -> Story {
    vec![(at, meant(1, "off")), (at, said_yes("off", US)), (at + 1, state("Error"))]
}

fn lost_too(at: u64, node: &str) -> Story {
    vec![(at, What::NetworkLost { node: node.into() })]
}

#[test]
fn s3_a_control_plane_node_is_cut_only_while_the_others_are_a_majority() {
    let judged = |members: &[&str], besides: Story| {
        let setting = guarded(Guards { control_plane: names(members), ..Guards::default() });
        judged(eight([besides, off(40)].concat()), &setting)
    };
    let three = ["n", "m", "o"];
    assert_eq!(judged(&three, vec![]), [""; 0]);
    assert_eq!(judged(&three, lost_too(2, "m")), ["S3"]);
    assert_eq!(judged(&three, lost_too(39, "m")), [""; 0], "nobody knows yet");
    assert_eq!(judged(&three, lost_too(2, "p")), [""; 0], "of no concern");
    assert_eq!(judged(&["m", "o", "p"], lost_too(2, "m")), [""; 0], "not of it");
    assert_eq!(judged(&["n", "m"], vec![]), ["S3"]);
    assert_eq!(judged(&["n"], vec![]), ["S3"]);
}
