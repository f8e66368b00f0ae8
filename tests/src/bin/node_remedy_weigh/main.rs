//! The small process between a bench and the processes that it weighs.
//!
//! Nothing is here but a call: whatever this program has in memory counts as theirs.

use anyhow::Result;

fn main() -> Result<()> {
    node_remedy_tests::weigh::weigh_as_ordered()
}
