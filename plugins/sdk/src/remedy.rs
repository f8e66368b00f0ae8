//! What a remedy is written against. It is a function of how a node looks and of what was tried; whatever
//! it decides still passes the guards, the budget and the proof that the same remedy would have to pass if
//! it stood in the configuration.

use crate::Fields;

/// One remedy. A fresh value is made for each decision: what it has to remember stands in the history.
///
/// ```
/// use node_remedy_sdk::{Decision, Entry, NodeView, RemedyPlugin};
///
/// /// Waits for five minutes before it fences, and then says that it knows no more.
/// #[derive(Default)]
/// struct Patient;
///
/// impl RemedyPlugin for Patient {
///     const MANIFEST: &'static str = r#"{ "manifestVersion": 1, "name": "patient" }"#;
///
///     fn next(&self, _: &NodeView, history: &[Entry]) -> Decision {
///         match history.len() {
///             0 => Decision::Wait(300),
///             1 => Decision::Fence,
///             _ => Decision::Fail("fenced, and as ill as before".to_owned()),
///         }
///     }
/// }
///
/// assert_eq!(Patient.next(&NodeView::default(), &[]), Decision::Wait(300));
/// ```
pub trait RemedyPlugin: Default {
    /// The manifest, as JSON.
    const MANIFEST: &'static str;

    /// What is to be tried next; `history` is what this remedy had tried, the oldest first.
    fn next(&self, view: &NodeView, history: &[Entry]) -> Decision;
}

/// A node that is ill.
///
/// ```
/// use node_remedy_sdk::NodeView;
///
/// let labels = vec![("tier".to_owned(), "db".to_owned())];
/// let node = NodeView { labels, ..NodeView::default() };
/// assert_eq!(node.label("tier"), Some("db"));
/// assert_eq!(node.label("zone"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Fields,
    /// Its condition Ready is True.
    pub ready: bool,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The boot that it runs, as its kubelet said last.
    pub boot_id: String,
    /// Pods on it.
    pub pods: u32,
    /// Those of them with volumes that outlive them.
    pub pods_with_volumes: u32,
    /// Other nodes that are unhealthy.
    pub peers_unhealthy: u32,
    /// Other nodes.
    pub peers_total: u32,
}

impl NodeView {
    /// A label's value.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// A condition, by its type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == kind)
    }
}

/// A condition of a node.
///
/// ```
/// use node_remedy_sdk::{Condition, NodeView};
///
/// let deadlock = Condition { kind: "KernelDeadlock".to_owned(), ..Condition::default() };
/// let node = NodeView { conditions: vec![deadlock], ..NodeView::default() };
/// assert!(node.condition("KernelDeadlock").is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Its reason, one word.
    pub reason: String,
    /// Since when it is so.
    pub age_s: u64,
}

/// Something that was tried because this remedy decided so, and came to its end. The node is ill still.
///
/// ```
/// use node_remedy_sdk::Entry;
///
/// let drained = Entry { action: "cluster drain".to_owned(), succeeded: true, ..Entry::default() };
/// assert!(drained.action.starts_with("cluster ") && drained.succeeded);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What: `method NAME`, `cluster NAME`, `fence` or `wait SECONDS`.
    pub action: String,
    /// Whether it was done.
    pub succeeded: bool,
    /// Why not, for people.
    pub detail: String,
    /// How long ago it ended.
    pub age_s: u64,
}

/// What is to be tried next.
///
/// ```
/// use node_remedy_sdk::Decision;
///
/// let first = Decision::Cluster("drain".to_owned());
/// assert_ne!(first, Decision::Done);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// One method of the node's FenceConfiguration, by name.
    Method(String),
    /// Something in the cluster itself: `cordon`, `quarantine`, `drain`, `release` or `delete-node`.
    Cluster(String),
    /// The whole plan of the node's FenceConfiguration.
    Fence,
    /// Nothing for so many seconds, at most four hours; then it is asked again.
    Wait(u32),
    /// Nothing more: the next remedy of the ladder may have its turn.
    Done,
    /// Nothing more, and it did not help, for this reason.
    Fail(String),
}
