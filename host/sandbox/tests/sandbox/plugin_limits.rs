//! Limits of one plugin, each at what it allows and just beyond.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use node_remedy_sandbox::limits::{COMPILED_BYTES_MAX, FUEL_PER_CALL_MOST};
use node_remedy_sandbox::{
    Action, Call, CallReport, Ended, Executor, FailureKind, LoadError, Plugin, PluginLimits,
    Verdict, compile,
};

use crate::guest::{HOSTILE, SANDBOX, WASM, World, call};
use crate::load::with_section;

fn hostile(limits: PluginLimits) -> Result<Arc<Plugin>, LoadError> {
    SANDBOX.load_within(&WASM, &limits)
}

fn refusal(wasm: &[u8], limits: &PluginLimits) -> String {
    SANDBOX.load_within(wasm, limits).unwrap_err().to_string()
}

fn asleep(deadline_s: u64) -> Call {
    let mut asleep = call(Action::Status, "sleep");
    asleep.request.deadline = Duration::from_secs(deadline_s);
    asleep
}

#[test]
fn a_component_may_have_as_many_bytes_as_its_plugin_is_allowed() {
    let usual = PluginLimits::default();
    let padded = with_section(&WASM, "padding", &vec![0; usual.component_len()]);
    let bytes = u64::try_from(padded.len()).unwrap();
    let enough = PluginLimits { component_bytes: bytes, ..usual };
    assert!(SANDBOX.load_within(&padded, &enough).is_ok());
    let less = PluginLimits { component_bytes: bytes - 1, ..usual };
    assert!(refusal(&padded, &less).contains(&format!("found {bytes} bytes")));
    assert!(refusal(&padded, &usual).contains("8388608 are the most"));
}

#[test]
fn a_manifest_may_ask_for_as_much_memory_as_its_plugin_is_allowed() {
    let memory_bytes = HOSTILE.manifest().memory_bytes;
    let enough = PluginLimits { memory_bytes, ..PluginLimits::default() };
    assert!(hostile(enough).is_ok());
    let less = PluginLimits { memory_bytes: memory_bytes - 1, ..enough };
    let refused = refusal(&WASM, &less);
    assert!(
        refused.contains("asks for 33554432 bytes of memory, 33554431 are the most"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_may_compute_as_much_as_its_plugin_is_allowed() {
    let usual = World::new().call(Action::Status, "honest").await;
    let with = async |fuel| {
        let plugin = hostile(PluginLimits { fuel, ..PluginLimits::default() }).unwrap();
        plugin.call(call(Action::Status, "honest"), &World::new().seams).await
    };
    let enough = with(usual.fuel).await;
    assert_eq!((enough.ended, enough.fuel), (Ended::Returned, usual.fuel));
    // Fuel is looked at where functions and loops begin, so not every unit less is seen.
    let less = usual.fuel - usual.fuel / 20;
    let cut = with(less).await;
    assert_eq!(cut.ended, Ended::Cut);
    let sentence = cut.result.unwrap_err().detail;
    assert!(sentence.contains(&format!("more than {less} units of fuel")), "{sentence}");
}

#[tokio::test(start_paused = true)]
async fn a_call_may_take_as_long_as_its_plugin_is_allowed() {
    let with = async |seconds| {
        let deadline = Duration::from_secs(seconds);
        let plugin = hostile(PluginLimits { deadline, ..PluginLimits::default() }).unwrap();
        plugin.call(asleep(10), &World::new().seams).await
    };
    for (limit, took_ms) in [(3, 3_000), (10, 10_000), (60, 10_000)] {
        let report = with(limit).await;
        assert_eq!((report.ended, report.elapsed_ms), (Ended::Deadline, took_ms), "{limit} s");
    }
}

/// The first two begin at once; the third where there is room, or when one of them has ended.
async fn three_calls(at_a_time: u32, third: Call) -> [CallReport; 3] {
    let limits = PluginLimits { calls: at_a_time, ..PluginLimits::default() };
    let (plugin, world) = (hostile(limits).unwrap(), World::new());
    let run = |call| Executor::Inline.run(Arc::clone(&plugin), call, world.seams.clone());
    let (one, two, three) = tokio::join!(run(asleep(2)), run(asleep(4)), run(third));
    [one, two, three]
}

#[tokio::test(start_paused = true)]
async fn so_many_calls_of_a_plugin_are_under_way_as_it_is_allowed() {
    let reports = Box::pin(three_calls(3, asleep(1))).await;
    assert_eq!(reports.map(|report| report.elapsed_ms), [2_000, 4_000, 1_000], "room for all");

    let [.., third] = Box::pin(three_calls(2, asleep(1))).await;
    assert_eq!(third.ended, Ended::NotStarted);
    let Verdict::FailedBeforeEffect(failure) = third.verdict() else { panic!("{third:?}") };
    assert_eq!(failure.kind, FailureKind::Busy);
    assert_eq!(
        failure.detail,
        "2 calls of the plugin are under way, which are the most at a time, and none ended by the \
         deadline of this one"
    );

    let [.., third] = Box::pin(three_calls(2, asleep(3))).await;
    assert_eq!(third.ended, Ended::Deadline, "its turn came after 2 s");
    assert_eq!(third.elapsed_ms, 1_000, "and its deadline ran since it was asked for");
}

/// The manifest asks for 32 MiB a call.
#[tokio::test(start_paused = true)]
async fn the_calls_of_a_plugin_have_room_in_its_memory_together() {
    let together = |together_bytes| {
        let limits = PluginLimits { together_bytes, ..PluginLimits::default() };
        let (plugin, world) = (hostile(limits).unwrap(), World::new());
        async move {
            let run = |s| Executor::Inline.run(Arc::clone(&plugin), asleep(s), world.seams.clone());
            // Who has to wait does so until its deadline.
            let (one, two, three) = tokio::join!(run(4), run(3), run(2));
            let began = [one, two, three].map(|report| report.ended != Ended::NotStarted);
            (plugin.calls_at_once(), began.into_iter().filter(|began| *began).count())
        }
    };
    let memory_bytes = HOSTILE.manifest().memory_bytes;
    assert_eq!(Box::pin(together(3 * memory_bytes)).await, (3, 3));
    assert_eq!(Box::pin(together(3 * memory_bytes - 1)).await, (2, 2));
    assert_eq!(Box::pin(together(0)).await, (1, 1), "one at least");
    assert_eq!(HOSTILE.calls_at_once(), 16, "of 32 those that 512 MiB have room for");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_turn_can_be_cancelled() {
    let third = asleep(10);
    let cancel = third.cancel.clone();
    let ask = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.ask();
    };
    let ([.., third], ()) = tokio::join!(three_calls(2, third), ask);
    assert_eq!(third.ended, Ended::NotStarted);
    assert_eq!(third.result.unwrap_err().kind, FailureKind::Cancelled);
}

/// Forty spinners on one thread, of which two may spin at a time: a call of another plugin shares it with
/// two, not with forty.
#[tokio::test]
async fn a_plugin_that_spins_holds_up_its_own_calls_and_no_other_plugin() {
    let limits = PluginLimits { calls: 2, fuel: FUEL_PER_CALL_MOST, ..PluginLimits::default() };
    let (spinner, world) = (hostile(limits).unwrap(), World::new());
    let executor = Executor::threads(&SANDBOX, 1).unwrap();
    let mut spin = call(Action::Status, "spin");
    spin.request.deadline = Duration::from_mins(1);
    let enough = spin.cancel.clone();
    let spinning =
        (0..40).map(|_| executor.run(Arc::clone(&spinner), spin.clone(), world.seams.clone()));
    // The spinners are asked for first: two of them are ahead of it.
    let neighbour = async {
        let honest = call(Action::Status, "honest");
        let report = executor.run(Arc::clone(&HOSTILE), honest, world.seams.clone()).await;
        enough.ask();
        report
    };
    let (spun, report) = tokio::join!(futures::future::join_all(spinning), neighbour);
    assert!(report.result.is_ok(), "{report:?}");
    let how = |ended| spun.iter().filter(|report| report.ended == ended).count();
    assert_eq!((how(Ended::Cancelled), how(Ended::NotStarted)), (2, 38));
}

/// Some kilobytes whose only function has so many loops in one another, through each of which the compiler
/// takes as many variables.
fn slow_to_compile(depth: usize) -> Vec<u8> {
    let variables = "i64 ".repeat(depth);
    let mut uses = String::new();
    for one in 1..=depth {
        let _ = write!(uses, "local.get {one} i64.const 1 i64.add local.set {one} ");
    }
    let (loops, ends) = ("loop ".repeat(depth), "local.get 0 br_if 0 end ".repeat(depth));
    let shell = format!(
        "(component (core module (func (param i32) (local {variables}) {loops} {uses} {ends})) \
         (instance $m) (export \"node-remedy:fence/method@0.1.0\" (instance $m)))"
    );
    let manifest = include_bytes!("../guests/hostile/manifest.json");
    with_section(&wat::parse_str(shell).unwrap(), "node-remedy:manifest", manifest)
}

/// What it says of a child that is stopped, and of one that has enough: then the component is what it is,
/// no plugin.
#[test]
fn a_component_is_compiled_within_the_limits_of_its_plugin() {
    let exe = Path::new(env!("CARGO_BIN_EXE_node-remedy-compile"));
    let slow = slow_to_compile(500);
    let said = |limits: PluginLimits| {
        SANDBOX.load_external_within(exe, &slow, &limits).unwrap_err().to_string()
    };
    let most = PluginLimits::most();
    let enough = said(most);
    assert!(enough.contains("failed to instantiate the plugin"), "{enough}");
    let little_time = said(PluginLimits { compile_cpu_s: 1, ..most });
    assert!(little_time.contains("within 1 s of CPU and 4096 MiB"), "{little_time}");
    let little_memory = said(PluginLimits { compile_memory_bytes: 128 << 20, ..most });
    assert!(little_memory.contains("within 120 s of CPU and 128 MiB"), "{little_memory}");
}

/// No component is known of which so much comes. In the child's place stands one that answers with as many bytes
/// as the limit on memory that it is told.
#[test]
fn a_child_answers_with_as_much_code_as_may_be_and_no_more() {
    let exe = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guests/answers.sh"));
    let answers = |bytes: usize| {
        let compile_memory_bytes = u64::try_from(bytes).unwrap();
        let limits = PluginLimits { compile_memory_bytes, ..PluginLimits::default() };
        compile::compile_in_child_within(exe, b"", &limits)
    };
    assert_eq!(answers(COMPILED_BYTES_MAX).unwrap().len(), COMPILED_BYTES_MAX);
    let refused = answers(COMPILED_BYTES_MAX + 1).unwrap_err().to_string();
    assert!(refused.contains("more than 67108864 bytes of code"), "{refused}");
}

#[test]
fn a_component_of_another_version_of_the_contract_is_refused_with_both_named() {
    let made_for = |version: &str| {
        let mut wasm = WASM.to_vec();
        let (from, to) = (b"@0.1.0", format!("@{version}"));
        assert_eq!(from.len(), to.len());
        let places = wasm.windows(from.len()).enumerate().filter(|(_, bytes)| bytes == from);
        for place in places.map(|(place, _)| place).collect::<Vec<_>>() {
            wasm[place..place + from.len()].copy_from_slice(to.as_bytes());
        }
        wasm
    };
    for version in ["0.2.0", "1.0.0", "0.1.1"] {
        let refused = refusal(&made_for(version), &PluginLimits::default());
        let both = format!(
            "it is made for node-remedy:fence@{version}, and this host speaks node-remedy:fence@0.1.0"
        );
        assert!(refused.contains(&both), "{refused}");
    }
    assert!(SANDBOX.load(&made_for("0.1.0")).is_ok());
    // One that imports nothing of ours.
    let only_exports =
        "(component (instance $m) (export \"node-remedy:fence/method@0.2.0\" (instance $m)))";
    let refused = refusal(&wat::parse_str(only_exports).unwrap(), &PluginLimits::default());
    assert!(refused.contains("node-remedy:fence@0.2.0"), "{refused}");
}
