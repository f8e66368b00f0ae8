//! Every limit of the sandbox, each with its reason. A number that bounds a plugin stands here and
//! nowhere else. Not here: what an admin or a manifest sets (deadline, grants), which may only
//! be tighter.

use std::time::Duration;

// Artefact -------------------------------------------------------------------------------------

/// Size of a component. Rust plugins are 0.1–0.3 MB, JavaScript ones 1 MB.
pub const COMPONENT_BYTES_MAX: usize = 8 << 20;
/// The same where an admin raises it: Python is 18 MB, and packages of its own come on top.
pub const COMPONENT_BYTES_MOST: usize = 64 << 20;
/// Size of the manifest section: the figure the contract states.
pub const MANIFEST_BYTES_MAX: usize = 64 << 10;
/// Functions in a component of the usual size, and so many more for each such size that an admin allows. Compile
/// memory grows with them: 100,000 took 553 MB.
pub const FUNCTIONS_MAX: u32 = 20_000;
/// Size of one function. Compile time is worse than linear in it: one of 3 MB took 621 MB.
pub const FUNCTION_BYTES_MAX: usize = 512 << 10;
/// Modules and components inside one component. Tool chains make up to eight.
pub const NESTED_MAX: u32 = 64;
/// CPU seconds of the child that compiles; bombs of 70 kB cost 16 s, honest plugins below one.
pub const COMPILE_CPU_S: u64 = 20;
/// The same where an admin raises it: longer, and a replica that starts would be without the plugin for long.
pub const COMPILE_CPU_S_MOST: u64 = 120;
/// Address space of the child that compiles.
pub const COMPILE_ADDRESS_SPACE_BYTES: u64 = 1 << 30;
/// The same where an admin raises it.
pub const COMPILE_ADDRESS_SPACE_BYTES_MOST: u64 = 4 << 30;
/// Wall time of the child that compiles: CPU limit plus a machine that is busy with more than this.
pub const COMPILE_WALL: Duration = Duration::from_mins(1);
/// What the compiling child may answer for a component of the usual size, and so much more for each such size
/// that an admin allows: machine code is some four times the wasm.
pub const COMPILED_BYTES_MAX: usize = 64 << 20;
/// Fuel of the trial instantiation. Static initialisers fit; work in a start function does not.
pub const TRIAL_FUEL: u64 = 20_000_000;
/// Wall time of the trial instantiation.
pub const TRIAL_WALL: Duration = Duration::from_secs(2);

// One call: guest --------------------------------------------------------------------------------

/// Linear memory of all memories together. Also bounds how late an epoch is noticed inside one
/// `memory.fill` to some 30 ms.
pub const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// The same where an admin raises it: the most that a manifest can ask for.
pub const MEMORY_BYTES_MOST: u64 = 256 << 20;
/// What the calls of one plugin from outside may ask for together: a controller has room for that, whatever a
/// manifest says of one call.
pub const TOGETHER_BYTES_MAX: u64 = 512 << 20;
/// Elements of one table; like functions, more for a component that may be larger.
pub const TABLE_ELEMENTS_MAX: usize = 10_000;
/// Core instances, and tables; like functions, more for a component that may be larger. The tool chains' shims
/// make four.
pub const INSTANCES_MAX: usize = 16;
/// Memories.
pub const MEMORIES_MAX: usize = 4;
/// Instructions, roughly, per call: one to two seconds of CPU, a thousand times what a session
/// costs.
pub const FUEL_PER_CALL: u64 = 10_000_000_000;
/// The same where an admin raises it: ten to twenty seconds of CPU.
pub const FUEL_PER_CALL_MOST: u64 = 100_000_000_000;
/// The guest's stack.
pub const WASM_STACK_BYTES: usize = 256 << 10;
/// The stack the guest and the host functions it calls run on.
pub const ASYNC_STACK_BYTES: usize = 2 << 20;
/// Bytes the host copies for one host call or result.
pub const HOSTCALL_BYTES_MAX: usize = 1 << 20;
/// Host calls per call: a poll every 10 ms for the longest deadline stays far below.
pub const HOST_CALLS_MAX: u32 = 1_000_000;
/// Resources alive at a time.
pub const RESOURCES_MAX: usize = 256;
/// Random bytes one request may ask for.
pub const RANDOM_BYTES_MAX: u32 = 4 << 10;
/// How often a running guest is looked at on the plugin threads.
pub const EPOCH_TICK: Duration = Duration::from_millis(10);

// One call: time ---------------------------------------------------------------------------------

/// How long any call may take: the most that a manifest can ask for.
pub const DEADLINE_MOST: Duration = Duration::from_hours(1);
/// From the soft cancel to the cut: time to close a session with a device.
pub const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// Time for all farewells of a call together; they are only sent, never answered.
pub const FAREWELL_TIME: Duration = Duration::from_millis(250);

/// Time for ending all sessions of a call, answers included: a BMC that is slow takes a second.
pub const LOGOUT_TIME: Duration = Duration::from_secs(2);

// One call: network ------------------------------------------------------------------------------

/// Sockets and connections open at a time: one to speak through, one for a device's second controller.
pub const SOCKETS_MAX: usize = 2;
/// Sockets and connections opened over the whole call.
pub const SOCKETS_OPENED_MAX: u32 = 16;
/// Datagrams sent. A session is some fifteen; a `status` that polls twice a second for its
/// longest deadline sends some hundreds.
pub const DATAGRAMS_SENT_MAX: u32 = 2_048;
/// Size of one datagram, in both directions.
pub const DATAGRAM_BYTES_MAX: usize = 16 << 10;
/// Size of what a plugin leaves to be sent when it is cut.
pub const FAREWELL_BYTES_MAX: usize = 1 << 10;
/// Until a connection stands, TLS agreed on: the kernel's second try comes after three seconds.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Until a device took what one write holds. One that takes longer takes no more.
pub const STREAM_WRITE_TIME: Duration = Duration::from_secs(10);
/// Bytes of one write: commands are some hundred.
pub const STREAM_WRITE_BYTES_MAX: usize = 64 << 10;
/// Bytes written over the whole call, on all connections: polls twice a second stay far below.
pub const STREAM_BYTES_WRITTEN_MAX: usize = 1 << 20;
/// Bytes of one read: the largest message of the protocols spoken so far comes in parts anyway.
pub const STREAM_READ_BYTES_MAX: usize = 16 << 10;
/// Bytes read over the whole call, on all connections: a list of some hundred machines, many times.
pub const STREAM_BYTES_READ_MAX: usize = 4 << 20;
/// How long the end of a stream on which a secret was written is kept back for what follows, whatever it holds: an
/// echo that is cut by a packet's end goes on at once.
pub const ECHO_TIME: Duration = Duration::from_millis(100);
/// So many bytes of such a stream's end are kept back at least: more than a secret that fits a line has in any form.
pub const ECHO_BYTES_MIN: usize = 1 << 10;
/// HTTP requests over the whole call: a `status` that polls twice a second for two minutes, twice.
/// Each puts one secret at most on the wire, so this is the budget of `write` too; nothing that a
/// plugin chooses goes into that operation, so it is no oracle.
pub const HTTP_REQUESTS_MAX: u32 = 512;
/// Path and query of an HTTP request.
pub const HTTP_TARGET_BYTES_MAX: usize = 4 << 10;
/// Headers a plugin may add to a request. Half a dozen is usual.
pub const HTTP_HEADERS_MAX: usize = 32;
/// Names and values of those headers together.
pub const HTTP_HEADER_BYTES_MAX: usize = 8 << 10;
/// Body of an HTTP request. Power actions are some hundred bytes.
pub const HTTP_REQUEST_BODY_BYTES_MAX: usize = 64 << 10;
/// Body of an HTTP response: a service catalogue or a list of instances is below 200 kB.
pub const HTTP_RESPONSE_BODY_BYTES_MAX: usize = 512 << 10;
/// Headers of an HTTP response, in number.
pub const HTTP_RESPONSE_HEADERS_MAX: usize = 100;
/// Status line and headers of an HTTP response.
pub const HTTP_RESPONSE_HEAD_BYTES_MAX: usize = 32 << 10;
/// Logins over the whole call. Each token is looked for in all that the plugin says and reads from then on.
pub const LOGINS_MAX: u32 = 8;
/// A token, or what accompanies one: the longest (scoped and signed) are some 8 kB.
pub const TOKEN_BYTES_MAX: usize = 12 << 10;
/// Sessions kept beyond their call, over all plugins; one for each account and server.
pub const SESSIONS_KEPT_MAX: usize = 256;
/// Replies the in-memory network keeps for a reader that does not read.
pub const REPLIES_QUEUED_MAX: usize = 256;

// One call: credentials --------------------------------------------------------------------------

/// Operations with a secret itself. A session needs at most six; a guess at the bytes needs more.
pub const SECRET_OPERATIONS_MAX: u32 = 64;
/// Operations with keys made from a secret: four for each datagram of a session.
pub const KEY_OPERATIONS_MAX: u32 = 8_192;
/// SNMPv3 keys made from passwords. Each costs some MiB of hashing, milliseconds of a thread that
/// others wait for; a session needs two, and two more where the device's engine has changed.
pub const USM_KEYS_MAX: u32 = 8;
/// The longest SNMPv3 key: twice what AES-256 takes.
pub const USM_KEY_BYTES_MAX: usize = 64;
/// What may be handed to one credential operation.
pub const CREDENTIAL_DATA_BYTES_MAX: usize = 64 << 10;

// One call: words --------------------------------------------------------------------------------

/// One line of log.
pub const LOG_LINE_BYTES_MAX: usize = 1 << 10;
/// The log of a call; what is beyond is counted.
pub const LOG_BYTES_MAX: usize = 16 << 10;
/// Bytes of standard error that a call's log keeps: enough for a panic's message and its place.
pub const STDERR_BYTES_MAX: usize = 4_096;
/// A sentence for people: details of outcomes and failures, notes.
pub const DETAIL_BYTES_MAX: usize = 1 << 10;
/// Plugs of a device. A chassis of PDUs has some hundred outlets, a switch stack a thousand ports.
pub const PLUGS_MAX: usize = 4_096;
/// Pairs in `identity` and `extra`.
pub const FIELDS_MAX: usize = 32;
/// State that one attempt leaves to the next.
pub const CHECKPOINT_BYTES_MAX: usize = 4 << 10;
/// Bytes of the exchange kept as evidence; what is beyond is counted.
pub const EXCHANGE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one HTTP body kept as evidence, so that a long one leaves room for what follows.
pub const EXCHANGE_BODY_BYTES_MAX: usize = 4 << 10;
/// Messages of the exchange kept as evidence.
pub const EXCHANGES_MAX: usize = 512;
/// Bytes of one call's transcript: some hundred requests with the answers of a chatty device. A transcript
/// that lacks an end is of no use, so what is beyond is counted and none is written.
pub const TRANSCRIPT_BYTES_MAX: usize = 4 << 20;
/// One plaintext beside a kept datagram: a message inside a session, not a transfer.
pub const PLAINTEXT_BYTES_MAX: usize = 1 << 10;
/// Datagrams beyond this are not searched for a ciphertext: the longest plaintext and any header.
pub const SEALED_BYTES_MAX: usize = 2 << 10;
/// How far back a ciphertext is looked for: one request and its answer, sent twice, and a
/// farewell.
pub const SEALED_KEPT_MAX: usize = 8;

// One datagram of a watcher --------------------------------------------------------------------

/// Instructions, roughly: reading a few bytes takes a thousandth of it.
pub const WATCH_FUEL: u64 = 20_000_000;
/// Wall time.
pub const WATCH_TIME: Duration = Duration::from_millis(250);
/// Between two datagrams of one sender that a watcher is run for. Who dumps says so every ten
/// seconds; who floods shall not cost more.
pub const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Size of a datagram that a watcher is run for.
pub const WATCH_BYTES_MAX: usize = 1 << 10;
/// Senders that one watch knows: every node of a large cluster, twice.
pub const WATCH_SENDERS_MAX: usize = 10_000;

// One decision of a remedy ------------------------------------------------------------------------

/// Instructions, roughly: an interpreter of a scripting language starts and decides within a tenth of it.
pub const REMEDY_FUEL: u64 = 2_000_000_000;
/// Wall time. It has nobody to wait for.
pub const REMEDY_TIME: Duration = Duration::from_secs(2);
/// The name of a method, or of what is done in the cluster; Kubernetes' own names are no longer.
pub const REMEDY_NAME_BYTES_MAX: usize = 253;
/// The longest that a remedy may ask to be left alone for: a node is ill meanwhile, and a plugin that wants
/// more may ask again.
pub const REMEDY_WAIT_S_MAX: u32 = 4 * 3_600;

// Executor ---------------------------------------------------------------------------------------

/// Calls one plugin thread works on at a time; nearly all of them wait for a device.
pub const CALLS_PER_THREAD_MAX: usize = 64;
/// Calls that wait for a thread, and of one plugin calls that wait for those under way. Beyond it a call is
/// refused as busy, nothing begun.
pub const CALLS_QUEUED_MAX: usize = 256;
/// Calls of one plugin from outside under way at a time: it may spin in each of them for as long as its fuel
/// lasts, and a call of another plugin on the same thread waits one tick for each.
pub const CALLS_PER_PLUGIN: u32 = 32;
/// The same where an admin raises it: what the threads have room for in all.
pub const CALLS_PER_PLUGIN_MOST: u32 = 256;
