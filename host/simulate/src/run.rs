//! What one simulated run left behind.

use std::time::Duration;

use node_remedy_world::facts::Fact;

use crate::recorder::Collected;

/// The controller's name among the world's clients; facts name it.
pub const CLIENT: &str = "node-remedy";

/// What one playing left behind.
pub struct Played {
    /// What truly happened.
    pub facts: Vec<Fact>,
    /// What the controller decided and was told by devices.
    pub collected: Collected,
    /// How long it lasted.
    pub lasted: Duration,
    /// What the definitions of our kinds dropped or refused of what the controller wrote.
    pub misfits: Vec<String>,
}
