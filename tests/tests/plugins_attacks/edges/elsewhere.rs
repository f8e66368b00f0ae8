//! The limits whose edge is in another test, and those that no guest can go up to.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use node_remedy_tests::process::repository;

/// A constant, and the test that has what just passes and what just does not: a file and a function.
const ELSEWHERE: &[(&str, &str)] = &[
    // What an admin raises, up to what is most.
    (
        "COMPONENT_BYTES_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "COMPILE_CPU_S_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "COMPILE_ADDRESS_SPACE_BYTES_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "MEMORY_BYTES_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "FUEL_PER_CALL_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "DEADLINE_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    (
        "CALLS_PER_PLUGIN_MOST",
        "host/sandbox/src/plugin_limits.rs::the_limits_of_a_plugin_grow_with_its_component_and_never_past_the_most",
    ),
    // The child that compiles.
    (
        "COMPILE_CPU_S",
        "host/sandbox/tests/sandbox/plugin_limits.rs::a_component_is_compiled_within_the_limits_of_its_plugin",
    ),
    (
        "COMPILE_ADDRESS_SPACE_BYTES",
        "host/sandbox/tests/sandbox/plugin_limits.rs::a_component_is_compiled_within_the_limits_of_its_plugin",
    ),
    (
        "COMPILED_BYTES_MAX",
        "host/sandbox/tests/sandbox/plugin_limits.rs::a_child_answers_with_as_much_code_as_may_be_and_no_more",
    ),
    // What a plugin writes to standard error.
    (
        "STDERR_BYTES_MAX",
        "host/sandbox/src/stderr.rs::what_is_said_is_kept_in_lines_and_within_bounds",
    ),
    // One plugin's calls.
    (
        "FUEL_PER_CALL",
        "host/sandbox/tests/sandbox/plugin_limits.rs::a_call_may_compute_as_much_as_its_plugin_is_allowed",
    ),
    (
        "CALLS_PER_PLUGIN",
        "host/sandbox/tests/sandbox/plugin_limits.rs::so_many_calls_of_a_plugin_are_under_way_as_it_is_allowed",
    ),
    (
        "TOGETHER_BYTES_MAX",
        "host/sandbox/tests/sandbox/plugin_limits.rs::the_calls_of_a_plugin_have_room_in_its_memory_together",
    ),
    (
        "CALLS_QUEUED_MAX",
        "host/sandbox/src/call_slots.rs::as_many_wait_as_may_and_the_next_is_refused",
    ),
    (
        "CALLS_PER_THREAD_MAX",
        "host/sandbox/tests/sandbox/threads.rs::what_does_not_fit_the_queue_is_refused_as_busy_and_nothing_begun",
    ),
    // Ten calls below a million, and ten millions.
    (
        "HOST_CALLS_MAX",
        "tests/tests/plugins_attacks/resources.rs::nothing_is_taken_beyond_its_limit",
    ),
    // Sessions.
    (
        "LOGINS_MAX",
        "host/sandbox/tests/sandbox/login.rs::a_server_that_forgets_every_session_is_not_asked_for_ever",
    ),
    (
        "TOKEN_BYTES_MAX",
        "host/sandbox/tests/sandbox/login.rs::a_token_may_be_as_long_as_the_limit_and_no_longer",
    ),
    (
        "SESSIONS_KEPT_MAX",
        "host/sandbox/src/net/session_store.rs::as_many_sessions_are_kept_as_may_be_and_the_next_lives_for_its_call",
    ),
    (
        "USM_KEY_BYTES_MAX",
        "host/sandbox/src/crypto/usm.rs::what_would_never_end_or_make_no_key_is_refused",
    ),
    // Streams.
    (
        "STREAM_READ_BYTES_MAX",
        "host/sandbox/tests/sandbox/connection.rs::one_read_gives_no_more_than_the_most",
    ),
    // Evidence.
    (
        "EXCHANGE_BYTES_MAX",
        "host/sandbox/src/exchange.rs::plaintexts_are_bounded_in_size_number_and_sum",
    ),
    (
        "EXCHANGE_BODY_BYTES_MAX",
        "host/sandbox/tests/sandbox/fetch.rs::a_body_is_kept_as_evidence_up_to_the_limit",
    ),
    (
        "PLAINTEXT_BYTES_MAX",
        "host/sandbox/src/exchange.rs::plaintexts_are_bounded_in_size_number_and_sum",
    ),
    (
        "SEALED_BYTES_MAX",
        "host/sandbox/src/exchange.rs::plaintexts_are_bounded_in_size_number_and_sum",
    ),
    (
        "SEALED_KEPT_MAX",
        "host/sandbox/src/exchange.rs::plaintexts_are_bounded_in_size_number_and_sum",
    ),
    ("TRANSCRIPT_BYTES_MAX", "host/sandbox/src/transcript.rs::what_is_beyond_the_limit_is_counted"),
    // Watchers.
    ("WATCH_FUEL", "host/sandbox/tests/sandbox/watch.rs::a_watcher_that_misbehaves_sees_nothing"),
    (
        "WATCH_TIME",
        "host/sandbox/tests/sandbox/watch.rs::a_watcher_has_as_long_as_the_limit_and_no_longer",
    ),
    (
        "WATCH_EVERY",
        "host/sandbox/tests/sandbox/watch.rs::only_a_known_sender_is_seen_and_not_more_often_than_it_may",
    ),
    (
        "WATCH_BYTES_MAX",
        "host/sandbox/tests/sandbox/watch.rs::only_a_known_sender_is_seen_and_not_more_often_than_it_may",
    ),
    (
        "WATCH_SENDERS_MAX",
        "host/sandbox/tests/sandbox/watch.rs::as_many_senders_are_known_as_may_be",
    ),
    // Remedies.
    (
        "REMEDY_FUEL",
        "host/sandbox/tests/sandbox/remedy.rs::a_remedy_that_misbehaves_decides_nothing",
    ),
    (
        "REMEDY_TIME",
        "host/sandbox/tests/sandbox/remedy.rs::what_a_remedy_asks_for_may_be_as_much_as_the_limit",
    ),
    (
        "REMEDY_NAME_BYTES_MAX",
        "host/sandbox/tests/sandbox/remedy.rs::what_a_remedy_asks_for_may_be_as_much_as_the_limit",
    ),
    (
        "REMEDY_WAIT_S_MAX",
        "host/sandbox/tests/sandbox/remedy.rs::what_a_remedy_asks_for_may_be_as_much_as_the_limit",
    ),
];

/// A constant that bounds the host's own doing, or that another one always stops a guest before.
const OUT_OF_REACH: &[(&str, &str)] = &[
    (
        "COMPILE_WALL",
        "the limit on CPU ends a child that works; this one ends a machine that does not",
    ),
    (
        "TRIAL_WALL",
        "fuel ends a start function that works; `62` of the attacks waits and is ended by it",
    ),
    ("ASYNC_STACK_BYTES", "the stack under the guest's, which wasmtime wants larger"),
    ("EPOCH_TICK", "how often a thread looks, no limit"),
    ("CANCEL_GRACE", "time that a host gives; `calls.rs` tests what is cut after it"),
    ("FAREWELL_TIME", "time for the host's own sends"),
    ("LOGOUT_TIME", "time for the host's own requests"),
    (
        "CONNECT_TIME",
        "time for a server that does not answer; the request's own time-out comes before it",
    ),
    ("STREAM_WRITE_TIME", "time for a server that does not read"),
    ("ECHO_TIME", "how long the host keeps bytes back, no limit"),
    ("ECHO_BYTES_MIN", "how many bytes the host keeps back, no limit"),
    ("REPLIES_QUEUED_MAX", "of the network in memory, which only tests and the simulator have"),
];

/// Every constant of the sandbox's limits stands in one of the lists, and every test that is named exists.
pub(super) fn all(here: &[&str]) -> Result<()> {
    let text = std::fs::read_to_string(repository().join("host/sandbox/src/limits.rs"))?;
    let constants: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let elsewhere = ELSEWHERE.iter().chain(OUT_OF_REACH).map(|(name, _)| *name);
    let mut listed = BTreeSet::new();
    for name in here.iter().copied().chain(elsewhere) {
        ensure!(constants.contains(name), "there is no limits::{name}");
        ensure!(listed.insert(name), "limits::{name} is listed twice");
    }
    let missing: Vec<_> = constants.difference(&listed).collect();
    ensure!(missing.is_empty(), "no test has an edge of {missing:?}");
    for (name, test) in ELSEWHERE {
        let (file, function) = test.split_once("::").context("no function")?;
        let text = std::fs::read_to_string(repository().join(file)).context(*test)?;
        ensure!(text.contains(&format!("fn {function}(")), "{name}: there is no {test}");
    }
    Ok(())
}
