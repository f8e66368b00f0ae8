//! Runs in which the storage of lost nodes is cut before their power, or in its place; and what undoes
//! that, or seems to make it needless.

use node_remedy_world::rng::Rng;
use sha2::{Digest as _, Sha256};

use super::others::{ONE_METHOD, as_object};
use super::{Draft, FENCE, Machines};

/// Storage is cut first, then power.
const CUT: &str = "storage cut";
/// Storage is cut, and nothing else.
const CUT_ALONE: &str = "storage cut alone";
/// Somebody deletes the Node behind its cut.
const GONE: &str = "node deleted behind its cut";
/// Somebody deletes a pod by force behind the cut.
const BY_FORCE: &str = "pod taken by force behind the cut";
/// Somebody gives the storage back while pods are released.
const UNDONE: &str = "cut undone";
/// Somebody gives it back once more.
const AGAIN: &str = "cut undone again";
/// A person has it tried again.
const TRIED_AGAIN: &str = "tried again behind the cut";
/// Every class that is drawn here.
pub(super) const CLASSES: [&str; 7] = [CUT, CUT_ALONE, GONE, BY_FORCE, UNDONE, AGAIN, TRIED_AGAIN];
/// In so many of a hundred runs.
const PERCENT: u64 = 30;

const METHOD: &str = "  - name: storage
    builtin: network-fence
    parameters: { driver: block.csi.node-remedy.io, secretName: s, secretNamespace: ns, pool: a }
    storageDrivers: [block.csi.node-remedy.io]
";
const ISOLATION: &str = "  - name: cut-storage\n    methods: [storage]\n";
const RECOVERY: &str = "  recovery:\n  - name: give-storage-back\n    methods: [storage]\n";
const HEAD: &str = "apiVersion: node-remedy.io/v1alpha1
kind: FenceConfiguration
metadata:
  name: ipmi
spec:
  nodeSelector: node-remedy.io/fence=ipmi
  methods:
";

impl Draft {
    /// Now and then nodes with a BMC lose their storage first. It draws from a seed of its own, so that other
    /// runs stay as they were. Answers the fence configuration, and whether people act behind the cut.
    pub(super) fn storage_cut(
        &mut self,
        seed: u64,
        lost: &[String],
        fence: String,
    ) -> (String, bool) {
        let mut rng = Rng::named(seed, CUT);
        let is_plain = fence.starts_with("- file") && self.machines == Machines::Bmcs;
        let node = lost.first().filter(|_| is_plain && rng.below(100) < PERCENT);
        let Some(node) = node else { return (fence, false) };
        self.drawn.push(CUT.to_owned());
        // What climbs over one method needs its power.
        let climbs = self.drawn.iter().any(|one| one == ONE_METHOD);
        let text = if rng.below(100) < 30 && !climbs {
            self.drawn.push(CUT_ALONE.to_owned());
            format!("{HEAD}{METHOD}  isolation:\n{ISOLATION}{RECOVERY}")
        } else {
            FENCE
                .replace("  methods:\n", &format!("  methods:\n{METHOD}"))
                .replace("  powerManagement:\n", &format!("{ISOLATION}  powerManagement:\n"))
                .replace("  grants:\n", &format!("{RECOVERY}  grants:\n"))
        };
        if rng.below(100) < 30 {
            // One that says yes and does nothing is tried for long, and again when a person says so.
            let fault = if rng.below(2) == 0 { "dead" } else { "stuck" };
            let (begins, class) = self.fault(node, fault, 1);
            self.happens(1, &begins, &class);
        }
        let cut = "method: storage, action: \"off\"";
        let mut has_people = false;
        if rng.below(100) < 25 {
            let after = rng.below(20_000);
            self.blow(node, "intentRecorded", cut, after, &format!("deleteNode: {node}"));
            self.drawn.push(GONE.to_owned());
            has_people = true;
        }
        if rng.below(100) < 35 {
            let (after, ordinal) = (rng.below(20_000), rng.below(3));
            let deed = format!("forceDeletePod: default/db-{ordinal}");
            self.blow(node, "intentRecorded", cut, after, &deed);
            self.drawn.push(BY_FORCE.to_owned());
            has_people = true;
        }
        if rng.below(100) < 25 {
            let soon_or_late = if rng.below(2) == 0 { 40_000 } else { 600_000 };
            let after = rng.below(soon_or_late);
            let deed = gives_storage_back(node);
            let proven = ("proofRecorded", "grade: storage-fenced");
            self.blow(node, proven.0, proven.1, after, &deed);
            self.drawn.push(UNDONE.to_owned());
            let mut rng = Rng::named(seed, AGAIN);
            if rng.below(2) == 0 {
                let later = after + rng.within(15_000, 300_000);
                self.blow(node, proven.0, proven.1, later, &deed);
                self.drawn.push(AGAIN.to_owned());
            }
            has_people = true;
        }
        if rng.below(100) < 25 {
            let at = rng.within(150_000, 600_000);
            self.happens(
                at,
                &format!("operatorCommand: {{ node: {node}, command: retry }}"),
                TRIED_AGAIN,
            );
        }
        (as_object(&text), has_people)
    }
}

/// Somebody gives back the storage of a node's first incident.
pub(super) fn gives_storage_back(node: &str) -> String {
    format!(
        "edit: {{ kind: NetworkFence, name: {}, merge: {{ spec: {{ fenceState: Unfenced }} }} }}",
        network_fence(node)
    )
}

/// What the controller calls the NetworkFence of the first incident of a node.
fn network_fence(node: &str) -> String {
    let hash = Sha256::digest(format!("{node}-1/storage"));
    let half = hash.first_chunk().copied().unwrap_or_default();
    format!("node-remedy-{:032x}", u128::from_be_bytes(half))
}

#[cfg(test)]
mod tests {
    use super::network_fence;

    #[test]
    fn a_network_fence_is_called_as_the_controller_calls_it() {
        assert_eq!(network_fence("node-a"), "node-remedy-9aca3dba15e245a26081a6f50ee042d9");
    }
}
