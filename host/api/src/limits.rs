//! Every limit on what a user or a device can make us hold, each with its reason.

/// Bytes of one configuration document: what etcd takes for one object, and more than any person
/// writes by hand.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// Values in one document after aliases are expanded. A bomb of nested aliases stops here.
pub const DOCUMENT_NODES_MAX: usize = 100_000;
/// How deep a document nests; the deepest legal one, a pod template, needs about 15.
pub const DOCUMENT_DEPTH_MAX: usize = 64;
/// Problems reported for one document; past it a person fixes the first ones anyway.
pub const PROBLEMS_MAX: usize = 100;
/// Characters of what was found that an error repeats.
pub const FOUND_CHARACTERS_MAX: usize = 60;

/// Thresholds of one configuration.
pub const THRESHOLDS_MAX: usize = 64;
/// Remedies that one configuration defines.
pub const REMEDIES_MAX: usize = 64;
/// Remedy steps of one ladder, `remedy1` to `remedy5`: a structural schema needs them spelled out.
pub const REMEDY_STEPS_MAX: usize = 5;
/// Signs of one threshold: a person still sees what it means.
pub const SYMPTOMS_MAX: usize = 16;
/// Parts of one `all` or `any`.
pub const SYMPTOM_PARTS_MAX: usize = 8;
/// Reasons or sources that one symptom names.
pub const SYMPTOM_WORDS_MAX: usize = 16;
/// Events or changes that a symptom counts to.
pub const SYMPTOM_COUNT_MAX: u32 = 100;
/// Labels by which failure domains are told apart: zone, room, rack, switch, two PDUs, with room.
pub const TOPOLOGIES_MAX: usize = 8;
/// Incidents of one node that an alarm counts to: so many records of each node are kept in any case.
pub const REPEATS_MAX: u32 = 10;
/// The longest time that an alarm looks back: records are kept for it.
pub const REPEAT_WINDOW_DAYS_MAX: u64 = 14;
/// Incidents that a breaker counts to: more are a matter of `maxInFlight`.
pub const BREAKER_INCIDENTS_MAX: u32 = 1000;
/// The longest time that a breaker looks back or rests: records are kept for both together.
pub const BREAKER_DAYS_MAX: u64 = 7;
/// Pause windows of one configuration: each day of a week, with room.
pub const PAUSE_WINDOWS_MAX: usize = 32;
/// The longest pause window: a longer one is a pause, which somebody should end.
pub const PAUSE_WINDOW_DAYS_MAX: u64 = 7;
/// The longest period of a threshold, and the longest of all time-outs: a month.
pub const PERIOD_DAYS_MAX: u64 = 31;

/// Stages in one step of a plan.
pub const STAGES_MAX: usize = 16;
/// Methods in one stage.
pub const METHODS_MAX: usize = 16;
/// Methods of one plan: more devices than any machine hangs on.
pub const PLAN_METHODS_MAX: usize = 64;
/// Grants of one plan: of its configuration, and of each plugin from outside that it calls.
pub const PLAN_GRANTS_MAX: usize = 64;
/// Grants of one configuration, or of one plugin from outside.
pub const GRANTS_MAX: usize = 16;
/// Components that a FencePlugin's status remembers.
pub const EARLIER_PLUGINS_MAX: usize = 8;
/// Failed calls that a FencePlugin's status tells.
pub const LAST_ERRORS_MAX: usize = 8;
/// Characters of what one of them says.
pub const LAST_ERROR_CHARACTERS_MAX: usize = 1_024;
/// Lines of a FencePlugin's status on what its grants let it reach.
pub const STATUS_GRANTS_MAX: usize = 64;
/// Characters of such a line.
pub const STATUS_GRANT_CHARACTERS_MAX: usize = 1_024;
/// Keys that may have signed a plugin from outside.
pub const PLUGIN_KEYS_MAX: usize = 8;
/// Characters of an image: a host's name, a repository's and a tag's or digest's.
pub const IMAGE_CHARACTERS_MAX: usize = 700;
/// Characters of the authorities that a registry is believed by; a system's own bundle of 140 has 220,000, and
/// nobody means that one here.
pub const CA_BUNDLE_CHARACTERS_MAX: usize = 65_536;
/// The most that a plugin from outside may be allowed: bytes of its component, and of its memory. The sandbox
/// says of each why (`host/sandbox/src/limits.rs`).
pub const PLUGIN_COMPONENT_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a plugin's manifest, which its status repeats.
pub const PLUGIN_MANIFEST_BYTES_MAX: usize = 65_536;
/// Bytes of one call's memory.
pub const PLUGIN_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// Fuel of one call.
pub const PLUGIN_FUEL_MAX: u64 = 100_000_000_000;
/// Seconds of one call.
pub const PLUGIN_DEADLINE_S_MAX: u64 = 3_600;
/// Calls under way at a time.
pub const PLUGIN_CALLS_MAX: u32 = 256;
/// Bytes of address space of the child that compiles.
pub const PLUGIN_COMPILE_MEMORY_BYTES_MAX: u64 = 4 << 30;
/// CPU seconds of the child that compiles.
pub const PLUGIN_COMPILE_CPU_S_MAX: u64 = 120;
/// Methods and templates that one configuration defines.
pub const DEFINITIONS_MAX: usize = 256;
/// Parameters of one method.
pub const PARAMETERS_MAX: usize = 64;
/// CSI drivers whose volumes one method cuts.
pub const STORAGE_DRIVERS_MAX: usize = 16;
/// Characters of one parameter's value.
pub const PARAMETER_CHARACTERS_MAX: usize = 4096;
/// Rows of an inventory.
pub const INVENTORY_ROWS_MAX: usize = 20_000;

/// Entries of a journal: two feeds, three tries, two restarts and their status reads, tenfold.
pub const OPERATIONS_MAX: usize = 512;
/// Lines of history that a NodeFence keeps.
pub const HISTORY_MAX: usize = 100;
/// Jobs that one incident remembers: each remedy step, tried by hand again and again.
pub const JOBS_MAX: usize = 64;
/// Decisions of plugins that one incident remembers; the core keeps no more.
pub const DECISIONS_MAX: usize = 40;
/// Bytes of one remedy's pod template as JSON; five of them fit into one NodeFence with room.
pub const POD_TEMPLATE_BYTES_MAX: usize = 32 * 1024;
/// Pods of one node: the largest clusters run 500, with room.
pub const RELEASED_PODS_MAX: usize = 2048;
/// Attachments of one node.
pub const RELEASED_ATTACHMENTS_MAX: usize = 2048;
/// Characters of a boot id, or of a system's UUID; both have 36.
pub const MACHINE_ID_CHARACTERS_MAX: usize = 128;
/// InternalIPs that a Node reports: a machine has a few. One more is kept, which shows that there are too many.
pub const NODE_ADDRESSES_MAX: usize = 32;
/// Slots of a RemedyBudget.
pub const IN_FLIGHT_MAX: usize = 1000;

/// Refusals kept on the budget: one line per node, and a storm is told by fewer.
pub const REFUSALS_MAX: usize = 200;
/// Characters of why a node is not acted on.
pub const REFUSAL_CHARACTERS_MAX: usize = 1_024;
