//! Attacks 29–43: on what the host has only so much of. Each is cut at the limit that is its own, and says
//! which; its twin stays just below.

use std::time::Duration;

use anyhow::{Result, ensure};
use node_remedy_sandbox::limits::{
    FUEL_PER_CALL, FUEL_PER_CALL_MOST, HOST_CALLS_MAX, HOSTCALL_BYTES_MAX, LOG_BYTES_MAX,
    RANDOM_BYTES_MAX, RESOURCES_MAX, STDERR_BYTES_MAX, TABLE_ELEMENTS_MAX,
};
use node_remedy_sandbox::{Ended, PluginLimits};
use node_remedy_swarm::corpus::attacker_file;
use wit_component::StringEncoding;

use super::alone::alone;
use super::canary;
use super::host::{Host, Try, attempt, case, fleet};
use super::modules::{HONEST, Module, attacker, with_instances};
use super::victims::Device;

/// Guests that nothing but their deadline stops get this one.
const SHORT: Duration = Duration::from_millis(500);

#[test]
fn nothing_is_taken_beyond_its_limit() -> Result<()> {
    alone("resources::nothing_is_taken_beyond_its_limit", async || {
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        time(&host).await?;
        memory(&host).await?;
        tables_and_instances(&host).await?;
        strings(&host).await?;
        calls(&host).await?;
        words(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

/// A deed of the attacker, whose device is there to be heard.
fn deed(name: &str) -> Try {
    attempt(name).with("address", "10.9.0.7").under(fleet())
}

fn most(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

async fn time(host: &Host) -> Result<()> {
    // A tenth of the fuel that is usual, so that a busy machine burns it long before the deadline.
    let frugal = PluginLimits { fuel: FUEL_PER_CALL / 10, ..PluginLimits::default() };
    let frugal = host.load_within(&std::fs::read(attacker_file())?, &frugal)?;
    let frugally = |name| deed(name).of(&frugal);
    // And as much as can be had, so that a fast machine does not burn it before the deadline.
    let tireless = PluginLimits { fuel: FUEL_PER_CALL_MOST, ..PluginLimits::default() };
    let tireless = host.load_within(&std::fs::read(attacker_file())?, &tireless)?;
    host.attack(
        case(
            29,
            "infinite loop",
            "a loop without end: at its deadline, and with time enough at its fuel",
        ),
        async || {
            let spin = deed("spin").of(&tireless).within(SHORT);
            host.says(&spin, Ended::Deadline, "by its deadline").await?;
            let fuel = format!("{} units of fuel", FUEL_PER_CALL / 10);
            host.says(&frugally("spin"), Ended::Cut, &fuel).await
        },
        async || host.honest(&frugally("spin-for").number(10_000_000)).await,
    )
    .await?;
    host.attack(
        case(30, "memory.fill without end", "32 MiB filled again and again; each byte costs fuel"),
        async || host.says(&frugally("fill-memory"), Ended::Cut, "units of fuel").await,
        async || host.honest(&frugally("eat-memory").number(32)).await,
    )
    .await?;
    host.attack(
        case(31, "deep recursion", "ten million calls deep"),
        async || {
            let deep = deed("recurse").number(10_000_000);
            host.says(&deep, Ended::Trapped, "the plugin trapped").await
        },
        async || host.honest(&deed("recurse").number(100)).await,
    )
    .await?;
    host.attack(
        case(
            32,
            "re-entrance",
            "a host call from the allocator, while the host hands over an answer",
        ),
        async || host.says(&deed("re-enter"), Ended::Trapped, "cannot leave component").await,
        async || host.honest(&deed("random").number(16)).await,
    )
    .await
}

async fn memory(host: &Host) -> Result<()> {
    host.attack(
        case(33, "memory bomb", "1 GiB, a MiB at a time, where the manifest says 64 MiB"),
        async || {
            let hungry = deed("eat-memory").number(1_024);
            host.says(&hungry, Ended::Cut, "bytes of memory; 67108864 is the most").await
        },
        async || host.honest(&deed("eat-memory").number(56)).await,
    )
    .await
}

/// One that grows its table to so many elements when it is called.
pub(super) fn grows_table(to: usize) -> Result<Vec<u8>> {
    let grow = format!("(drop (table.grow $t (ref.null func) (i32.const {})))", to - 1);
    Module { run: &grow, more: "(table $t 1 funcref)", ..HONEST }.component()
}

async fn tables_and_instances(host: &Host) -> Result<()> {
    let too_many = format!("{TABLE_ELEMENTS_MAX} is the most");
    host.attack(
        case(34, "table bomb", "50,000,000 elements from the start, and grown to while it runs"),
        async || {
            let from_the_start = Module { more: "(table 50000000 funcref)", ..HONEST };
            let refusal = host.refused(&from_the_start.component()?)?;
            ensure!(refusal.contains(&too_many), "{refusal}");
            let grows = host.load(&grows_table(50_000_000)?)?;
            host.says(&attempt("").of(&grows), Ended::Cut, &too_many).await
        },
        async || {
            let grows = host.load(&grows_table(TABLE_ELEMENTS_MAX)?)?;
            host.says(&attempt("").of(&grows), Ended::Returned, "outcome on").await
        },
    )
    .await?;
    host.attack(
        case(
            35,
            "10,000 instances and memories",
            "components that make 10,000, 900 and ten of them while they are set up",
        ),
        async || {
            let of =
                |module: &str, count: usize| with_instances(&HONEST.component()?, module, count);
            for (module, count, says) in [
                ("(module)", 10_000, "instances count exceeds limit"),
                ("(module)", 900, "instance count too high"),
                ("(module (memory 1) (memory 1))", 1, "failed to validate the plugin"),
            ] {
                let refusal = host.refused(&of(module, count)?)?;
                ensure!(refusal.contains(says), "{refusal}");
            }
            let refusal = host.refused(&of("(module (memory 1))", 10)?)?;
            ensure!(refusal.contains("memory count too high"), "{refusal}");
            Ok(refusal)
        },
        async || {
            let few = with_instances(&HONEST.component()?, "(module (memory 1))", 3)?;
            let few = host.load(&few)?;
            host.says(&attempt("").of(&few), Ended::Returned, "outcome on").await
        },
    )
    .await?;
    host.attack(
        case(36, "1,000,000 handles", "a secret opened a million times and never given back"),
        async || {
            let hoard = deed("hoard-handles").number(1_000_000);
            host.says(&hoard, Ended::Trapped, "resource table").await
        },
        // The socket by which the device is heard is one, too.
        async || host.honest(&deed("hoard-handles").number(RESOURCES_MAX - 1)).await,
    )
    .await
}

/// One that hands the host's log this, as pointer and length.
fn logs(data: &str, pointer: &str, length: &str, encoding: StringEncoding) -> Result<Vec<u8>> {
    let run = format!("(call $log (i32.const 1) (i32.const {pointer}) (i32.const {length}))");
    Module {
        imports: "(import \"node-remedy:fence/op@0.1.0\" \"log\" (func $log (param i32 i32 i32)))",
        run: &run,
        more: &format!("(data (i32.const 2048) \"{data}\")"),
        encoding,
        ..HONEST
    }
    .component()
}

async fn strings(host: &Host) -> Result<()> {
    host.attack(
        case(37, "giant strings", "a line of log of 32 MiB; one in a module's imagination, 2 GiB"),
        async || {
            let imagined = logs("", "16", "0x7fffffff", StringEncoding::UTF8)?;
            let imagined = host.load(&imagined)?;
            host.says(&attempt("").of(&imagined), Ended::Trapped, "trapped").await?;
            let giant = deed("long-log").number(32 << 20);
            host.says(&giant, Ended::Trapped, "fuel").await
        },
        async || host.honest(&deed("long-log").number(HOSTCALL_BYTES_MAX - 1_000)).await,
    )
    .await?;
    let how = "UTF-16 at an odd address, half a surrogate pair, broken UTF-8, a string past the memory's end";
    host.attack(
        case(38, "misaligned UTF-16, invalid UTF-8", how),
        async || {
            let mut said = String::new();
            for (data, pointer, length, encoding) in [
                ("a\\00b\\00", "2049", "2", StringEncoding::UTF16),
                ("\\00\\d8a\\00", "2048", "2", StringEncoding::UTF16),
                ("\\ff\\fe\\fd", "2048", "3", StringEncoding::UTF8),
                ("\\c3", "2048", "1", StringEncoding::UTF8),
                ("", "131071", "2", StringEncoding::UTF8),
                ("", "-1", "-1", StringEncoding::UTF8),
                ("", "2049", "0x80000001", StringEncoding::CompactUTF16),
            ] {
                let broken = host.load(&logs(data, pointer, length, encoding)?)?;
                said = host.says(&attempt("").of(&broken), Ended::Trapped, "trapped").await?;
            }
            Ok(said)
        },
        async || {
            let sound = logs("h\\00\\e4\\00", "2048", "2", StringEncoding::UTF16)?;
            let sound = host.load(&sound)?;
            let (report, said) = host.must(&attempt("").of(&sound), Ended::Returned, "on").await?;
            let line = report.log.first().map(|line| line.message.as_str());
            ensure!(line == Some("hä"), "logged {line:?}");
            Ok(format!("{said}, logged hä"))
        },
    )
    .await
}

async fn calls(host: &Host) -> Result<()> {
    host.attack(
        case(
            39,
            "64 MiB of randomness in a loop",
            "by our own interface and by WASI's, 256 bytes at a time",
        ),
        async || {
            host.honest(&deed("random-of-wasi")).await?;
            let greedy = deed("random").number(64 << 20);
            host.says(&greedy, Ended::Cut, &format!("{RANDOM_BYTES_MAX} random bytes")).await
        },
        async || host.honest(&deed("random").number(most(RANDOM_BYTES_MAX))).await,
    )
    .await?;
    host.attack(
        case(40, "pollables that are never ready", "an hour's sleep through wasi:io/poll"),
        async || host.says(&deed("sleep").within(SHORT), Ended::Deadline, "by its deadline").await,
        async || host.honest(&deed("status")).await,
    )
    .await?;
    let limit = most(HOST_CALLS_MAX);
    host.attack(
        case(41, "10,000,000 host calls", "a loop of the cheapest call that there is"),
        async || {
            let chatty = deed("host-calls").number(10_000_000).within(Duration::from_secs(50));
            host.says(&chatty, Ended::Cut, &format!("more than {HOST_CALLS_MAX} host calls")).await
        },
        async || {
            let chatty = deed("host-calls").number(limit - 10).within(Duration::from_secs(50));
            host.honest(&chatty).await
        },
    )
    .await
}

async fn words(host: &Host) -> Result<()> {
    host.attack(
        case(
            42,
            "log bomb, ANSI, forged lines",
            "20,000 lines of 500 bytes; a line that holds another and a colour",
        ),
        async || {
            let flood = deed("log").number(20_000);
            let (report, _) = host.must(&flood, Ended::Returned, "outcome").await?;
            let kept: usize = report.log.iter().map(|line| line.message.len()).sum();
            ensure!(kept <= LOG_BYTES_MAX, "{kept} bytes of log are kept");
            let lines = report.log.len() + most(report.log_dropped);
            ensure!(lines == 20_000, "{lines} lines are accounted for");
            let (forged, _) = host.must(&deed("forge-log"), Ended::Returned, "outcome").await?;
            let line = forged.log.first().map(|line| line.message.clone()).unwrap_or_default();
            let is_one = !line.contains(|each: char| each.is_control() || each == '\u{202e}');
            ensure!(is_one && line.contains("\\nERROR"), "logged {line:?}");
            Ok(format!("{kept} bytes kept, {} lines counted; {line}", report.log_dropped))
        },
        async || {
            let (report, said) = host.must(&deed("log").number(30), Ended::Returned, "on").await?;
            ensure!(report.log_dropped == 0, "{} lines are lost", report.log_dropped);
            Ok(format!("{said}, none lost"))
        },
    )
    .await?;
    host.attack(
        case(43, "huge stdout", "20 MiB to stdout, which is dropped, and to stderr, which is cut"),
        async || {
            let (report, _) =
                host.must(&deed("stdout").number(20 << 10), Ended::Returned, "printed").await?;
            let kept: String = report.log.iter().map(|line| line.message.as_str()).collect();
            ensure!(!kept.contains('y'), "stdout was kept: {kept}");
            let lengths = 1..=STDERR_BYTES_MAX;
            ensure!(lengths.contains(&kept.len()), "{} bytes are kept", kept.len());
            Ok(format!("{} bytes of stderr are kept", kept.len()))
        },
        async || host.honest(&deed("stdout").number(1)).await,
    )
    .await?;
    // Not an attack of its own: the whole component is loaded as any other.
    ensure!(host.load(&attacker()?)?.digest() == host.attacker.digest(), "another digest");
    Ok(())
}
