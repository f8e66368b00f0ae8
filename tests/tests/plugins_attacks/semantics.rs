//! Attacks 44–55: what a plugin says. A sandbox cannot make a plugin tell the truth; what it can do is to
//! keep its word from being a proof. So the rows say what the host concludes from the call, what a separate
//! read in a fresh instance says, and, where the automaton decides, what it makes of such a device: the
//! scenario that plays it runs here, too.

use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};
use node_remedy_sandbox::limits::SECRET_OPERATIONS_MAX;
use node_remedy_sandbox::{Action, AdminGrant, Ended, PlugState, Verdict};
use node_remedy_tests::Controller;
use node_remedy_tests::process::repository;

use super::alone::alone;
use super::canary;
use super::host::{Host, Try, attempt, case, fleet, told};
use super::modules::{HONEST, Module};
use super::victims::{Device, Resolver, Server, plain};

const OWN: &str = "10.9.0.7";

#[test]
fn no_word_is_believed_that_was_not_checked() -> Result<()> {
    alone("semantics::no_word_is_believed_that_was_not_checked", async || {
        let host = Host::start().await?;
        let device = Device::start("10.9.0.7:623").await?;
        half_done(&host, &device).await?;
        not_done(&host, &device).await?;
        of_another_node(&host).await?;
        undone(&host, &device).await?;
        beyond_words(&host).await?;
        fickle_and_false(&host, &device).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

#[test]
fn nothing_is_kept_and_nothing_is_stolen() -> Result<()> {
    alone("semantics::nothing_is_kept_and_nothing_is_stolen", async || {
        let resolver = Resolver::start().await?;
        let host = Host::start().await?;
        let _device = Device::start("10.9.0.7:623").await?;
        kept(&host).await?;
        exfiltrated(&host, &resolver).await?;
        guessed(&host).await?;
        stolen(&host).await?;
        looked_around(&host).await?;
        println!("{} notes without a canary", canary::nobody_sang()?);
        Ok(())
    })
}

fn deed(name: &str) -> Try {
    attempt(name).with("address", OWN).under(fleet())
}

/// What a scenario comes to in its last lines.
fn played(scenario: &str, must_say: &str) -> Result<String> {
    let file = repository().join("tests/scenarios").join(scenario);
    let mut simulate = Command::new(Controller::binary());
    simulate.args(["simulate", "--no-baseline"]).arg(file);
    let output = tokio::task::block_in_place(|| simulate.output())?;
    let said =
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(output.status.success() && said.contains(must_say), "{scenario}: {said}");
    Ok(format!("{scenario}: {must_say}"))
}

/// What the separate read says, on which alone a proof can stand.
async fn read(host: &Host) -> Result<PlugState> {
    let report = host.call(&deed("status")).await?;
    report.result.map(|outcome| outcome.state).map_err(|failure| anyhow!(failure.detail))
}

async fn half_done(host: &Host, device: &Device) -> Result<()> {
    host.attack(
        case(44, "trap after the device acted", "off is sent and answered, then the plugin traps"),
        async || {
            let off = deed("off-then-trap").asked(Action::Off);
            let said = host.says(&off, Ended::Trapped, "indeterminate").await?;
            ensure!(!device.is_on(), "the device did not act");
            ensure!(read(host).await? == PlugState::Off, "the read says otherwise");
            Ok(format!("{said}; only a read may follow, which says off"))
        },
        async || {
            device.switch(true);
            host.says(&deed("off").asked(Action::Off), Ended::Returned, "outcome off").await
        },
    )
    .await
}

async fn not_done(host: &Host, device: &Device) -> Result<()> {
    device.switch(true);
    let how = "off is claimed without a word to the device, and after a question that is not off";
    host.attack(
        case(45, "success without acting", how),
        async || {
            let unheard = deed("claim-off").asked(Action::Off);
            let unheard = host.says(&unheard, Ended::Returned, "not to be believed").await?;
            ensure!(unheard.contains("indeterminate"), "it {unheard}");
            let heard = deed("ask-and-claim-off").asked(Action::Off);
            host.says(&heard, Ended::Returned, "outcome off").await?;
            ensure!(read(host).await? == PlugState::On, "the read says off");
            let made = played("bmc-lies.yaml", "nothing was released")?;
            Ok(format!("its word is no proof, the separate read says on; {made}"))
        },
        async || {
            host.says(&deed("off").asked(Action::Off), Ended::Returned, "outcome off").await?;
            ensure!(read(host).await? == PlugState::Off, "the read says on");
            Ok("off, and the separate read says off".to_owned())
        },
    )
    .await
}

async fn of_another_node(host: &Host) -> Result<()> {
    let how = "status under another machine's UUID and another operation's id";
    let other = "9d3a7c52-61f0-4b1e-8d24-70f5c2a81b66";
    host.attack(
        case(46, "result for another node, replayed", how),
        async || {
            let status = deed("status-of-another").with("sought", other);
            let (report, _) = host.must(&status, Ended::Returned, "outcome").await?;
            let Verdict::Outcome(outcome) = report.verdict() else { bail!("no outcome") };
            let is_told = outcome.identity == [("system-uuid".to_owned(), other.to_owned())];
            ensure!(is_told, "identity {:?}", outcome.identity);
            // A report is the caller's own: nothing in it could say of which call it is.
            let made = played("wrong-machine.yaml", "wired to another machine")?;
            Ok(format!("the answer is of the call it came from; {made}"))
        },
        async || host.says(&deed("status"), Ended::Returned, "outcome").await,
    )
    .await
}

async fn undone(host: &Host, device: &Device) -> Result<()> {
    device.switch(true);
    host.attack(
        case(47, "success, then undo", "off is sent and read, then on is sent before it returns"),
        async || {
            let off = deed("off-then-on").asked(Action::Off);
            host.says(&off, Ended::Returned, "outcome off").await?;
            ensure!(device.is_on(), "it was not undone");
            ensure!(read(host).await? == PlugState::On, "the read says off");
            let made = played("on-again-while-releasing.yaml", "no volume ever had two writers")?;
            Ok(format!("its word is no proof, the separate read says on; {made}"))
        },
        async || host.says(&deed("off").asked(Action::Off), Ended::Returned, "outcome off").await,
    )
    .await
}

async fn beyond_words(host: &Host) -> Result<()> {
    let how =
        "a state that is no member of its enum; the longest retry-after and the smallest code";
    host.attack(
        case(48, "out-of-range enum, endless durations", how),
        async || {
            let busy = host.call(&deed("busy-for-ever")).await?;
            let Verdict::FailedBeforeEffect(failure) = busy.verdict() else {
                bail!("it {}", told(&busy));
            };
            // Kept as it was said. How long is waited is the policy's: nothing in the controller reads it.
            ensure!(failure.retry_after.is_some() && busy.checkpoint.is_none(), "{failure:?}");
            let wrong = Module { state: "\\c8", ..HONEST }.component()?;
            let wrong = host.load(&wrong)?;
            host.says(&attempt("").of(&wrong), Ended::Trapped, "trapped").await
        },
        async || {
            let right = host.load(&Module { state: "\\01", ..HONEST }.component()?)?;
            host.says(&attempt("").of(&right), Ended::Returned, "outcome off").await
        },
    )
    .await
}

async fn fickle_and_false(host: &Host, device: &Device) -> Result<()> {
    device.switch(true);
    let how = "off or on by a throw of dice, while the device says on";
    host.attack(
        case(49, "different answer on retry", how),
        async || {
            let mut said = Vec::new();
            for _ in 0..16 {
                let report = host.call(&deed("fickle")).await?;
                said.push(report.result.map_err(|failure| anyhow!(failure.detail))?.state);
            }
            let both = said.contains(&PlugState::On) && said.contains(&PlugState::Off);
            ensure!(both, "sixteen throws: {said:?}");
            Ok("believed like 50: each read stands alone, in a fresh instance; none undoes another"
                .to_owned())
        },
        async || host.says(&deed("status"), Ended::Returned, "outcome on").await,
    )
    .await?;
    let how = "a status that reads off, of a device that says on to everybody else";
    host.attack(
        case(50, "lies \"off\"", how),
        async || {
            let lie = deed("read-as-off");
            host.says(&lie, Ended::Returned, "outcome off").await?;
            // Another plugin reads what is true: `independent: true` wants one.
            ensure!(device.is_on() && read(host).await? == PlugState::On, "the device is off");
            let made = played("one-feed-said-off.yaml", "no volume ever had two writers")?;
            Ok(format!("NOT seen by the sandbox: independent reads, a renewed Lease do; {made}"))
        },
        async || host.says(&deed("status"), Ended::Returned, "outcome on").await,
    )
    .await
}

async fn kept(host: &Host) -> Result<()> {
    let how = "a static that remembers the last call, on the same thread";
    host.attack(
        case(51, "keeps node A's data for node B", how),
        async || {
            let mut said = String::new();
            for _ in 0..4 {
                said =
                    host.says(&deed("have-run-before"), Ended::Returned, "before: false").await?;
            }
            Ok(format!("{said}: a fresh instance for each call"))
        },
        async || {
            // What may be kept is kept by the host, for the same operation only.
            let (report, said) =
                host.must(&deed("checkpoint").number(100), Ended::Returned, "kept").await?;
            ensure!(report.checkpoint.is_some_and(|kept| kept.len() == 100), "nothing is kept");
            Ok(said)
        },
    )
    .await
}

/// The plugin may read `community`.
fn revealing() -> AdminGrant {
    AdminGrant { reveal: std::iter::once("community".to_owned()).collect(), ..fleet() }
}

async fn exfiltrated(host: &Host, resolver: &Resolver) -> Result<()> {
    let how =
        "a revealed secret in log, hex, detail, identity, extra, checkpoint, URL and DNS label";
    host.attack(
        case(52, "exfiltration", how),
        async || {
            let before = resolver.asked().len();
            let loud = deed("exfiltrate").under(revealing());
            // It is told that the checkpoint was kept, and it was not.
            let says = "detail [secret], kept true, by name 0";
            let (report, said) = host.must(&loud, Ended::Returned, says).await?;
            ensure!(report.checkpoint.is_none(), "the secret is kept");
            canary::sings_not(&format!("{report:?}"))?;
            ensure!(
                resolver.asked().len() == before,
                "names were asked for: {:?}",
                resolver.asked()
            );
            Ok(format!("{said}. NOT prevented: encodings of its own, timing, its own device"))
        },
        async || {
            let quiet = deed("status").under(revealing());
            host.says(&quiet, Ended::Returned, "outcome on").await
        },
    )
    .await
}

async fn guessed(host: &Host) -> Result<()> {
    let import = |interface: &str, function: &str, parameters: &str| {
        format!(
            "(import \"node-remedy:fence/{interface}@0.1.0\" \"{function}\" \
             (func $guess (param {parameters})))"
        )
    };
    let how =
        "numbers of handles nobody gave it, for secrets, keys and sockets; names with ../ and NUL";
    host.attack(
        case(53, "handle guessing, ../", how),
        async || {
            let none = "0 of 7 names opened";
            host.says(&deed("guess-names"), Ended::Returned, none).await?;
            let mut said = String::new();
            for (interface, function, parameters, arguments) in [
                ("credentials", "[method]secret.reveal", "i32 i32", 1),
                ("credentials", "[method]secret.identity", "i32 i32", 1),
                ("credentials", "[resource-drop]secret", "i32", 0),
                ("net", "[method]datagram.farewell", "i32 i32 i32", 2),
            ] {
                for handle in ["0", "1", "4294967295"] {
                    let zeros = "(i32.const 0)".repeat(arguments);
                    let run = format!("(call $guess (i32.const {handle}) {zeros})");
                    let imports = import(interface, function, parameters);
                    let guess = Module { imports: &imports, run: &run, ..HONEST }.component()?;
                    let guess = host.load(&guess)?;
                    said = host.says(&attempt("").of(&guess), Ended::Trapped, "handle").await?;
                }
            }
            Ok(said)
        },
        async || host.says(&deed("hoard-handles").number(1), Ended::Returned, "1 handles").await,
    )
    .await
}

async fn stolen(host: &Host) -> Result<()> {
    // A device that says back all it hears, the host's own header among it.
    let _echo = Server::start("10.9.0.7:80", |heard| plain(200, heard)).await?;
    // With each bit turned over, so that what is sought is not what is found.
    let sought = canary::ACCOUNT.bytes().map(|byte| format!("{:02x}", byte ^ 0xff));
    let sought = sought.collect::<Vec<_>>().concat();
    let how = "reveal, every operation, an echo of the host's own header; then all its memory is searched";
    let steal = deed("steal-bytes").with("url", "http://10.9.0.7/").with("sought", &sought);
    host.attack(
        case(54, "reads credential bytes", how),
        async || {
            let says = "revealed false, mac Ok(32), keyed Ok(true), sent 200, 0 copies";
            host.says(&steal, Ended::Returned, says).await
        },
        async || {
            let most = SECRET_OPERATIONS_MAX;
            let limit = usize::try_from(most)?;
            let guesses = deed("guess-secret").number(limit + 1_000);
            host.says(&guesses, Ended::Returned, &format!("{most} operations")).await
        },
    )
    .await
}

async fn looked_around(host: &Host) -> Result<()> {
    let how = "files, a listing, a write, environment, arguments, standard input, the finest clock";
    host.attack(
        case(55, "env, args, files, clock", how),
        async || {
            let nothing = "read 0, listed false, written false, 0 variables, 0 arguments, 0 typed, a \
                           clock of milliseconds: true";
            let said = host.says(&deed("look-around"), Ended::Returned, nothing).await?;
            Ok(format!("nothing there: {said}"))
        },
        async || host.says(&deed("status"), Ended::Returned, "outcome on").await,
    )
    .await
    .context("looking around")
}
